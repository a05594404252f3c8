"""Facts about results that a stranger sends: what cannot be used is left out with a sentence, and the rest is judged as ever."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from inside import Answer, maxmean
from lab.damage import DAMAGES, ESCAPE, KEEPSAKE, VICTIM, Damage, Place
from maxmean.lab import report
from maxmean.lab.experiments import EXPERIMENTS
from maxmean.lab.run import SHIPPED

OTHER = "kernels"
"""An experiment that nobody touches."""
FORMS: list[list[str]] = [["--json"], [], ["--markdown"]]
QUICK = [damage for k, damage in enumerate(DAMAGES) if k % 15 == 3 or (k % 8 == 1 and damage.name.startswith("table"))]
"""Those that are told apart by much; every third in another form of the verdicts too. All of them, in all forms, are slow."""
CHOSEN = [
    pytest.param(damage, [FORMS[0], *FORMS[1 + k % 2 : 2 + k % 2][: k % 3 == 0]], id=damage.name)
    for k, damage in enumerate(QUICK)
] + [pytest.param(damage, FORMS, id=f"{damage.name}, all forms", marks=pytest.mark.slow) for damage in DAMAGES]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two experiments, as they should be."""
    out = tmp_path_factory.mktemp("whole") / "out"
    run = maxmean("reproduce", VICTIM.name, "--engine", "inline", "--quiet", "--out", out)
    assert run.returncode == 0, run.stderr
    shutil.rmtree(out / "report")
    shutil.copytree(SHIPPED / OTHER, out / OTHER)
    return out


@pytest.fixture(scope="module")
def expected(whole: Path) -> dict[str, Any]:
    return judged(maxmean("claims", "--json", "--from", whole))


@pytest.fixture(autouse=True)
def unpainted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made from the tables, but not painted: that takes most of the time, and is Matplotlib's business."""
    monkeypatch.setattr(report, "lay_out", lambda figure: None)
    monkeypatch.setattr(report, "save", lambda figure, kind, stem: kind.encode())
    monkeypatch.setattr(report, "inline_svg", lambda figure, stem: "<svg></svg>")
    monkeypatch.setattr(type(EXPERIMENTS[OTHER]), "figures", lambda experiment, results: {})


def judged(answer: Answer) -> dict[str, Any]:
    return {claim["id"]: claim for claim in json.loads(answer.stdout)}


def check_said(answer: Answer, damage: Damage, status: int) -> None:
    """One sentence about the experiment, which names a file and moves nothing on a terminal."""
    assert answer.returncode == status, answer.stderr
    assert not set(answer.stdout + answer.stderr) & {*"\x1b\r\u202e"}
    lines = answer.stderr.splitlines()
    assert "Traceback" not in answer.stderr
    if status == 0:
        assert lines == []
    elif status == 1:
        assert lines
        assert all(line.startswith(f"left out: {VICTIM.name}: ") for line in lines)
        assert f"/{VICTIM.name}" in lines[0]
        assert len(lines) == (2 if damage.name == "folder: damaged plans" else 1)
    else:
        (line,) = lines
        assert line.startswith("maxmean: ")
        assert answer.stdout == ""


@pytest.fixture
def out(whole: Path, tmp_path: Path) -> Path:
    """A copy to damage, and beside it a file that is nobody's business."""
    (tmp_path / KEEPSAKE).write_text("mine")
    shutil.copytree(whole, tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize(("damage", "forms"), CHOSEN)
def test_a_strangers_results_are_used_or_left_out_and_put_right(
    whole: Path,
    out: Path,
    expected: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: Damage,
    forms: list[list[str]],
) -> None:
    damage.do(Place(out))
    status = {"harmless": 0, "left out": 1, "refused": 2}[damage.outcome]
    for form in forms:
        answer = maxmean("claims", *form, "--from", out)
        check_said(answer, damage, status)
        if form == ["--json"] and status < 2:
            found = judged(answer)
            assert list(found) == list(expected)
            assert found["S11"] == expected["S11"]
            if damage.name == "folder: damaged plans" or (status == 0 and "missing" not in damage.name):
                assert found == expected
    check_said(maxmean("report", "--from", out, "--out", tmp_path / "report"), damage, status)
    if status < 2:
        page = (tmp_path / "report" / "report.html").read_bytes().decode()
        assert f'id="{OTHER}"' in page
        assert not set(page) & {*"\x1b\u202e"}
    else:
        assert not (tmp_path / "report").exists()
    with monkeypatch.context() as patch:  # the figures and the files of a report were looked at above
        patch.setattr(type(VICTIM), "figures", lambda experiment, results: {})
        patch.setattr(report, "as_csv", lambda table: b"")
        check_put_right(whole, out, damage)
    assert (tmp_path / KEEPSAKE).read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({KEEPSAKE, "out", *["report"] * (status < 2)})


def check_put_right(whole: Path, out: Path, damage: Damage) -> None:
    """``reproduce`` computes again what is damaged, or says in one sentence what is in the way."""
    run = maxmean("reproduce", VICTIM.name, "--engine", "inline", "--quiet", "--out", out)
    assert not set(run.stdout + run.stderr) & {*"\x1b\r\u202e"}
    if damage.outcome == "refused" or not damage.heals:
        assert run.returncode in (1, 2)
        (line,) = run.stderr.splitlines()
        assert line.startswith("maxmean: " if run.returncode == 2 else "left out: ")
        assert str(out) in line
        return
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
    for path in (whole / VICTIM.name).glob("*.parquet"):
        assert (out / VICTIM.name / path.name).read_bytes() == path.read_bytes()


def test_where_nothing_can_be_used_that_is_one_sentence(out: Path, tmp_path: Path) -> None:
    shutil.rmtree(out / OTHER)
    Place(out).table.write_bytes(b"")
    for command in (["claims"], ["claims", "--json"], ["report", "--out", tmp_path / "report"]):
        answer = maxmean(*command, "--from", out)
        assert answer.returncode == 2
        (line,) = answer.stderr.splitlines()
        assert line.startswith(f"maxmean: no results in {str(out)!r} can be used: convergence: '{Place(out).table}'")
        assert answer.stdout == ""
    assert not (tmp_path / "report").exists()


def test_a_smaller_scale_stands_in_for_one_that_is_damaged(out: Path) -> None:
    shutil.copytree(SHIPPED / VICTIM.name, out / VICTIM.name, dirs_exist_ok=True)
    found = judged(maxmean("claims", "--json", "--from", out))
    assert found["T1"]["scale"] == "paper"
    (out / VICTIM.name / "paper-0.plan.json").write_text("[]")
    answer = maxmean("claims", "--json", "--from", out)
    assert answer.returncode == 1
    assert "paper-0.plan.json' is damaged: it holds no JSON object, but a list (paper scale, seed 0)" in answer.stderr
    assert judged(answer)["T1"]["scale"] == "quick"
    assert judged(answer)["T1"]["measured"]


def test_what_is_left_out_says_so_in_the_verdicts(out: Path) -> None:
    Place(out).plan.write_text(ESCAPE)
    claim = judged(maxmean("claims", "--json", "--from", out))["T1"]
    assert (claim["verdict"], claim["scale"]) == ("undecided", "none")
    assert claim["note"].startswith(f"left out: '{Place(out).plan}' is damaged")
