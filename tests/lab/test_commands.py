"""Facts about the laboratory's commands, through the real entry point; those that start processes are processes themselves."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inside import maxmean

CLAIMS = [
    f"{kind}{k}"
    for kind, count in {"S": 13, "A": 3, "M": 5, "W": 5, "T": 1, "D": 7}.items()
    for k in range(1, count + 1)
]


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "maxmean.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"COLUMNS": "200"})


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    out = tmp_path_factory.mktemp("quick") / "out"
    return out, process("reproduce", "gaussian", "--out", str(out), "--workers", "2")


def test_reproduce_says_where_it_is_and_ends_with_the_report(
    quick: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    out, run = quick
    assert run.returncode == 0, run.stderr
    assert "gaussian: 13 of 13 shards done" in run.stderr
    assert run.stdout.splitlines()[0] == "13 shards computed, 0 kept from before."
    last = run.stdout.splitlines()[-1]
    assert last == f"Report: {out / 'report' / 'report.html'}"
    assert (out / "report" / "report.html").is_file()
    for kind, start in {"pdf": b"%PDF-", "png": b"\x89PNG"}.items():
        pictures = list((out / "report" / "figures").glob(f"*.{kind}"))
        assert pictures
        assert all(path.read_bytes().startswith(start) for path in pictures)


def test_the_same_command_again_computes_nothing(quick: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    run = maxmean("reproduce", "gaussian", "--out", str(quick[0]))
    assert run.stdout.splitlines()[0] == "0 shards computed, 13 kept from before."


def test_quiet_is_silent(quick: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    run = process("reproduce", "gaussian", "--out", str(quick[0]), "--quiet")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.fixture(scope="module")
def judged(quick: tuple[Path, subprocess.CompletedProcess[str]]) -> list[dict[str, Any]]:
    return json.loads(maxmean("claims", "--json", "--out", str(quick[0])).stdout)


def test_claims_as_json_are_a_list_of_objects(judged: list[dict[str, Any]]) -> None:
    shipped = json.loads(maxmean("claims", "--json").stdout)
    for found in (judged, shipped):
        assert [claim["id"] for claim in found] == [
            *(f"S{k}" for k in range(1, 14)),
            "A1",
            "A2",
            "A3",
            *(f"M{k}" for k in range(1, 6)),
            *(f"W{k}" for k in range(1, 6)),
            "T1",
            *(f"D{k}" for k in range(1, 8)),
        ]
        for claim in found:
            assert {"id", "verdict", "measured", "scale", "experiment"} <= set(claim)
            assert claim["verdict"] in ("holds", "fails", "undecided")
            for number in claim["measured"].values():
                assert set(number) == {"value", "low", "high"}


def test_claims_of_what_was_not_run_are_undecided(judged: list[dict[str, Any]]) -> None:
    found = {c["id"]: c for c in judged}
    assert found["S1"]["verdict"] == "holds"
    assert found["S1"]["scale"] == "quick"
    assert found["A1"]["verdict"] == "undecided"


@pytest.mark.slow
def test_report_without_out_uses_the_shipped_results(tmp_path: Path) -> None:
    run = maxmean("report", cwd=tmp_path)
    assert run.stdout == f"Report: {Path('maxmean-report') / 'report.html'}\n", run.stderr
    assert (tmp_path / "maxmean-report" / "report.html").stat().st_size > 50_000


def test_list_names_every_experiment() -> None:
    text = maxmean("list").stdout
    for word in ("gaussian", "kernels", "autocorrelation", "correlation", "ads", "S12", "7.1"):
        assert word in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["reproduce", "gausian"], "unknown experiment 'gausian'; did you mean 'gaussian'?"),
        (["reproduce", "--scale", "huge"], "gaussian has no scale 'huge' (there are quick, paper)"),
        (["reproduce", "--engine", "spark"], "unknown engine 'spark'"),
        (["reproduce", "--workers", "0"], "workers must be a whole number from 1 to 1,024, not 0"),
        (["reproduce", "--workers", "99999999"], "workers must be a whole number from 1 to 1,024, not 99999999"),
        (["reproduce", "--seed", "-1"], "seed must not be negative"),
        (["reproduce", "--address", "auto"], "an address goes with the ray engine"),
        (["claims", "--out", "nowhere"], "there are no results in 'nowhere'"),
        (["report", "--out", "nowhere"], "there are no results in 'nowhere'"),
    ],
)
def test_mistakes_get_one_sentence_and_exit_status_2(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    run = maxmean(*arguments, cwd=tmp_path)
    assert run.returncode == 2
    assert sentence in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert run.stdout == ""


def test_a_read_only_directory_is_one_sentence(tmp_path: Path) -> None:
    if os.geteuid() == 0:  # the superuser may write anywhere but to what is no disk
        target = "/proc/maxmean"
    else:
        target = str(tmp_path / "locked" / "out")
        (tmp_path / "locked").mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    run = maxmean("reproduce", "gaussian", "--out", target)
    assert run.returncode == 2
    assert "cannot use" in run.stderr
    assert "Traceback" not in run.stderr
    assert len(run.stderr.splitlines()) == 1
