"""Facts about the laboratory's commands, through the real entry point; those that start processes are processes themselves."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from inside import maxmean
from maxmean import estimate as maxmean_estimate
from maxmean.deep import agents
from maxmean.deep.registry import REGISTRY
from maxmean.lab import report, store
from maxmean.lab import run as run_module
from maxmean.lab.claims import judge
from maxmean.lab.experiments import EXPERIMENTS
from maxmean.lab.files import read_bytes
from maxmean.lab.store import Store

ROOT = Path(__file__).parents[2]

CLAIMS = [
    f"{kind}{k}"
    for kind, count in {"S": 13, "A": 3, "M": 5, "W": 5, "T": 1, "E": 3, "D": 7}.items()
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
    run = maxmean("reproduce", "gaussian", "--out", quick[0], "--engine", "inline", "--quiet")
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.fixture(scope="module")
def judged(quick: tuple[Path, subprocess.CompletedProcess[str]]) -> list[dict[str, Any]]:
    return json.loads(maxmean("claims", "--json", "--from", str(quick[0])).stdout)


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
            *(f"E{k}" for k in range(1, 4)),
            *(f"D{k}" for k in range(1, 8)),
            *(f"X{k}" for k in range(1, 6)),
        ]
        for claim in found:
            assert {"id", "verdict", "measured", "scale", "experiment"} <= set(claim)
            assert claim["verdict"] in ("holds", "holds in part", "fails", "undecided", "too small to judge")
            for number in claim["measured"].values():
                assert set(number) == {"value", "low", "high"}


def test_claims_of_what_was_not_run_are_undecided(judged: list[dict[str, Any]]) -> None:
    found = {c["id"]: c for c in judged}
    assert found["A1"]["verdict"] == "undecided"


def test_a_scale_too_small_for_a_claim_does_not_judge_it(
    quick: tuple[Path, subprocess.CompletedProcess[str]], judged: list[dict[str, Any]]
) -> None:
    """The run, the verdicts in every form and the report say so; what was measured is there all the same."""
    small = [claim for claim in judged if claim["experiment"] == "gaussian"]
    assert [claim["id"] for claim in small] == [f"S{k}" for k in range(1, 11)]
    for claim in small:
        assert (claim["verdict"], claim["scale"]) == ("too small to judge", "quick")
        assert claim["note"] == "judged at the paper scale: maxmean reproduce gaussian --scale paper"
        assert claim["measured"]
    assert "Too small to judge the paper's claims S1-S10." in quick[1].stdout
    page = (quick[0] / "report" / "report.html").read_text()
    assert (
        "Of 10 claims 0 hold, 0 hold in part, 0 fail, 0 are undecided and 10 were measured at too small a scale."
        in page
    )
    for form in ([], ["--markdown"]):
        said = maxmean("claims", *form, "--from", quick[0]).stdout
        assert said.count("too small to judge") >= 10
        assert "holds" not in said
        assert "fails" not in said


def test_a_quick_run_ends_on_one_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 80 columns and 24 lines, with a line for the progress of each of nine experiments and one for the command."""
    monkeypatch.setattr(report, "lay_out", lambda figure: None)  # its figures are not painted
    monkeypatch.setattr(report, "save", lambda figure, kind, stem: kind.encode())
    monkeypatch.setattr(report, "inline_svg", lambda figure, stem: "<svg></svg>")
    run = maxmean("reproduce", "ads", "--engine", "inline", "--out", tmp_path / "out", cwd=ROOT, columns=80)
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert len(lines) <= 24 - 9 - 1 - 1  # with all nine named there is one line more
    assert max(map(len, lines[:-1])) <= 80
    said = " ".join(run.stdout.split())
    assert re.search(r"1 experiment at the quick scale in \d+ s: ads\.", said)
    clicks = pd.read_csv(ROOT / "src/maxmean/data/ads.csv")
    fairer = maxmean_estimate(clicks, "ke", by="ad", value="clicked").value
    assert f"ad I has the highest click rate, {clicks[clicks['ad'] == 'ad I']['clicked'].mean():.4f}" in said
    assert f"a fairer value of the best is {fairer:.4f} (ke)" in said
    assert "maxmean estimate src/maxmean/data/ads.csv" in said
    assert lines[-1] == f"Report: {tmp_path / 'out' / 'report' / 'report.html'}"


@pytest.mark.slow
def test_report_without_out_uses_the_shipped_results(tmp_path: Path) -> None:
    run = maxmean("report", cwd=tmp_path)
    assert run.stdout == f"Report: {Path('maxmean-report') / 'report.html'}\n", run.stderr
    assert (tmp_path / "maxmean-report" / "report.html").stat().st_size > 50_000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["claims", "--out", "results"], "claims reads results and writes none: type --from results instead of --out"),
        (["report", "--to", "a b"], "a report is written to --out: type --out 'a b' instead of --to"),
        (["report", "--out", "results"], "'results' holds results: type --from results to read them"),
    ],
)
def test_how_it_was_once_spelt_gets_a_sentence(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    Store(tmp_path / "results")
    run = maxmean(*arguments, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (2, "")
    (line,) = run.stderr.splitlines()
    assert line.startswith(f"maxmean: {sentence}")
    assert os.listdir(tmp_path) == ["results"]
    assert "--to" not in maxmean("report", "--help").stdout
    assert "--out" not in maxmean("claims", "--help").stdout


def test_a_command_reads_a_table_once_and_judges_once(
    quick: tuple[Path, subprocess.CompletedProcess[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    judged: list[str] = []

    def reading(path: Path, *arguments: Any) -> bytes:
        read.append(path)
        return read_bytes(path, *arguments)

    def judging(experiment: Any, results: Any) -> Any:
        judged.append(experiment.name)
        return judge(experiment, results)

    monkeypatch.setattr(store, "read_bytes", reading)
    monkeypatch.setattr(run_module, "judge", judging)
    tables = sorted((quick[0] / "gaussian").glob("*.parquet"))
    for command in (
        ["reproduce", "gaussian", "--engine", "inline", "--out", quick[0]],
        ["claims", "--from", quick[0]],
        ["report", "--from", quick[0]],
    ):
        read.clear()
        judged.clear()
        assert maxmean(*command).returncode == 0
        assert sorted(path for path in read if path.suffix == ".parquet") == tables
        assert sorted(judged) == sorted(EXPERIMENTS)


def test_list_names_every_experiment() -> None:
    text = maxmean("list").stdout
    for word in ("gaussian", "kernels", "autocorrelation", "correlation", "ads", "S12", "7.1"):
        assert word in text


def test_list_names_every_agent_with_what_it_takes_and_what_it_is() -> None:
    lines = [" ".join(line.split()) for line in maxmean("list", columns=300).stdout.splitlines()]
    for agent in REGISTRY:
        (line,) = [line for line in lines if line.split(" ")[0] == agent.usage]
        said = (getattr(agents, agent.function).__doc__ or "").splitlines()[0]
        if agent.paired:
            said = f"{agent.unpaired} with the paired statistic T*."
        assert re.findall(r"\w+", line.removeprefix(agent.usage)) == re.findall(r"\w+", re.sub(r":\w+:", "", said))
    assert any(line.startswith("te-bdqn:ALPHA Bootstrapped DQN whose targets are T-estimates") for line in lines)


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
        (["claims", "--from", "nowhere"], "there are no results in 'nowhere'"),
        (["report", "--from", "nowhere"], "there are no results in 'nowhere'"),
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


def test_a_dry_run_is_about_what_is_left_and_leaves_all_as_it_is(tmp_path: Path) -> None:
    out = tmp_path / "out"
    dry = ("reproduce", "kernels", "--dry-run", "--out", str(out))
    assert maxmean(*dry).stdout == "kernels: 3 shards\n"
    assert not out.exists()
    (tmp_path / "file").touch()
    for other, sentence in ((tmp_path, "holds other files"), (tmp_path / "file", "cannot use")):
        refused = maxmean("reproduce", "kernels", "--dry-run", "--out", str(other))
        assert refused.returncode == 2
        assert sentence in refused.stderr
    maxmean("reproduce", "kernels", "--out", str(out), "--quiet")
    assert maxmean(*dry).stdout == f"kernels: all 3 shards are in {str(out)!r} already\n"
    first, *_ = sorted((out / "kernels").glob("*.parquet"))
    first.write_bytes(b"no table")
    files = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert (
        maxmean(*dry).stdout
        == f"kernels: 2 of 3 shards are in {str(out)!r} already; for the others:\nkernels: 1 shard\n"
    )
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == files
