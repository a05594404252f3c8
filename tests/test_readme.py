"""The README is true: its table is what its command prints, its Python runs, its files exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), flags=re.M | re.S)


def test_the_table_is_what_the_demo_prints() -> None:
    (shown,) = blocks(ROOT / "README.md", "text")
    command = [sys.executable, "-m", "maxmean.cli", "estimate", "src/maxmean/data/ads.csv"]
    environment = os.environ | {"COLUMNS": "80"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert [line.rstrip() for line in run.stdout.splitlines()] == shown.splitlines()


def test_the_picture_is_what_the_command_draws(tmp_path: Path) -> None:
    """The same picture, up to what another version of the fonts may do: size and mean colour agree."""
    from matplotlib.image import imread

    fresh = tmp_path / "ads.png"
    command = [
        sys.executable,
        "-m",
        "maxmean.cli",
        "estimate",
        "src/maxmean/data/ads.csv",
        "--quiet",
        "--plot",
        str(fresh),
    ]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    drawn, shown = imread(fresh), imread(ROOT / "docs" / "ads.png")
    assert drawn.shape == shown.shape
    assert abs(drawn - shown).mean() < 0.01


def test_the_bundled_data_is_what_its_script_makes() -> None:
    run = subprocess.run([sys.executable, "examples/make_ads.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == (ROOT / "src/maxmean/data/ads.csv").read_text()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_python_in_the_documents_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where they write what they write
    for code in blocks(path, "python"):
        exec(compile(code, str(path), "exec"), {})


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", path.read_text()):
        assert target.startswith("https://") or (path.parent / target).exists(), target


def test_make_targets_in_the_documents_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    for path in DOCUMENTS:
        named = set(re.findall(r"(?:`|^)make ([a-z-]+)", path.read_text(), flags=re.M))
        assert named <= targets, (path.name, named - targets)
