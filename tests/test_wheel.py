"""The release: one version everywhere, and a wheel that works in an environment of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import site
import subprocess
import sys
import tomllib
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import maxmean
from maxmean.lab.experiments import EXPERIMENTS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "maxmean"
LARGEST = 12_000_000
"""Bytes that a wheel may have."""
WATCHED = ("breakout",)
"""The games whose trained policies a wheel has; the repository has those of all five."""


@dataclass(frozen=True)
class Installed:
    """An environment that has the wheel, and of everything else only what the tests' own environment has."""

    folder: Path

    def maxmean(self, *arguments: object, cwd: Path) -> str:
        """What the command answers, run as a user would."""
        return self._answer([str(self.folder / "bin" / "maxmean"), *map(str, arguments)], cwd)

    def python(self, code: str, cwd: Path) -> str:
        return self._answer([str(self.folder / "bin" / "python"), "-c", code], cwd)

    def _answer(self, command: list[str], cwd: Path) -> str:
        kept = "PYTHONPYCACHEPREFIX"  # where the dependencies' bytecode is
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("PYTHON") or name == kept
        }
        found = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)
        assert found.returncode == 0, found.stderr
        return found.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this source, built from a copy: setuptools leaves files beside what it builds."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "source"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, copy)
    [found] = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in a new environment. Its dependencies are those of the running one: nothing is downloaded."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(folder, symlinks=True)
    _pip("--python", folder / "bin" / "python", "install", "--no-deps", "--no-compile", wheel)
    [packages] = folder.glob("lib/python*/site-packages")
    # Python reads no .pth files in a folder that one names, so that this source's own installation stays unseen.
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    return Installed(folder)


def _pip(*arguments: object) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
    found = subprocess.run([*command, *map(str, arguments), "--no-index"], capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    released = re.findall(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert project["version"] == maxmean.__version__ == cited["version"] == released[0][0]
    assert str(cited["date-released"]) == released[0][1]


def test_releases_are_listed_the_newest_first() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    found = re.findall(r"^## (\d+)\.(\d+)\.(\d+) \((\S+)\)$", text, re.MULTILINE)
    assert len(found) == text.count("\n## ")
    numbers = [(tuple(map(int, parts)), day) for *parts, day in found]
    assert numbers == sorted(set(numbers), reverse=True)


def test_the_citation_has_what_the_format_asks_for() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert cited["license"] == project["license"]
    assert [author["name"] for author in cited["authors"]] == [author["name"] for author in project["authors"]]
    [paper] = cited["references"]
    assert [author["family-names"] for author in paper["authors"]] == ["Waltz", "Okhrin"]


def test_continuous_integration_runs_every_python_that_the_package_names() -> None:
    workflow: Any = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    [job] = workflow["jobs"].values()
    versions = job["strategy"]["matrix"]["python"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert versions == named
    assert project["requires-python"] == f">={versions[0]}"
    assert any(step.get("run") == ".ci/run" for step in job["steps"])


def test_a_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < LARGEST


def test_a_wheel_has_the_data_and_all_results_as_they_are(wheel: Path) -> None:
    """Policies act as those of the repository, and tables say what they say there: they are the same files."""
    policies = [
        SOURCE / "policies" / "minatar" / f"{game}.{kind}" for game in WATCHED for kind in ("json", "safetensors")
    ]
    shipped = [
        *policies,
        *(path for name in ("data", "results") for path in (SOURCE / name).rglob("*") if path.is_file()),
    ]
    with zipfile.ZipFile(wheel) as files:
        held = {name for name in files.namelist() if re.match("maxmean/(data|policies|results)/", name)}
        assert held == {path.relative_to(SOURCE.parent).as_posix() for path in shipped}
        for path in shipped:
            assert files.read(path.relative_to(SOURCE.parent).as_posix()) == path.read_bytes()


def test_a_wheel_has_no_tests_and_nothing_else_at_the_top(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        assert {name.split("/")[0] for name in files.namelist()} == {
            "maxmean",
            f"maxmean-{maxmean.__version__}.dist-info",
        }


def test_the_installed_package_is_the_wheel_s(installed: Installed, tmp_path: Path) -> None:
    assert installed.maxmean("--version", cwd=tmp_path) == f"maxmean {maxmean.__version__}\n"
    assert Path(installed.python("import maxmean; print(maxmean.__file__)", tmp_path)).is_relative_to(installed.folder)


def test_an_installed_maxmean_estimates(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("option,value\na,1\na,3\nb,0\nb,1\n")
    found = json.loads(installed.maxmean("estimate", "two.csv", "--method", "me", "--json", cwd=tmp_path))
    assert found["estimates"]["me"]["value"] == 2.0


def test_an_installed_maxmean_judges_the_claims_on_the_results_that_come_with_it(
    installed: Installed, tmp_path: Path
) -> None:
    verdicts = json.loads(installed.maxmean("claims", "--json", cwd=tmp_path))
    known = {claim.id for experiment in EXPERIMENTS.values() for claim in experiment.claims}
    assert {verdict["id"] for verdict in verdicts} == known
    assert {verdict["verdict"] for verdict in verdicts} <= {"holds", "holds in part", "fails", "undecided"}


def test_an_installed_maxmean_writes_a_report(installed: Installed, tmp_path: Path) -> None:
    """Of one experiment, for all of them take half a minute."""
    stored = tmp_path / "results"
    [results] = installed.folder.glob("lib/python*/site-packages/maxmean/results")
    stored.mkdir()
    shutil.copy(results / "maxmean-results.json", stored)
    shutil.copytree(results / "convergence", stored / "convergence")
    installed.maxmean("report", "--from", stored, "--out", "report", cwd=tmp_path)
    page = (tmp_path / "report" / "report.html").read_text()
    assert "<svg" in page or "<img" in page
    assert "convergence" in page
