"""Facts about shards side by side on a GPU, for which a stand-in does: the numbers stay the same, and no shard is lost."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from maxmean.cluster import ATTEMPTS
from maxmean.lab import side_by_side
from maxmean.lab.calibration import Calibration
from maxmean.lab.engines import Inline
from maxmean.lab.gpu import Gpu, Sharing, _load
from maxmean.lab.side_by_side import SideBySide
from maxmean.lab.tasks import Task
from toys import GpuToy, Settings


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A GPU with room for so many shards; any number, until one says."""

    def has(size: int | None) -> None:
        @contextmanager
        def shared(tasks: Sequence[Task], say: Callable[[str], None]) -> Iterator[Sharing]:
            loads = {task.shard.key: _load(task) for task in tasks}
            yield Sharing(Gpu("stand-in", size), loads, {"STAND_IN": "yes"}, overlapping=True)

        monkeypatch.setattr(side_by_side, "shared_gpu", shared)

    has(None)
    return has


THREE = Settings(shards=3)


def tasks(log: Path, settings: Settings = THREE, moment: float = 0.0, company: int = 1) -> list[Task]:
    toy = GpuToy(log, settings, moment, company)
    return [Task(toy, settings, shard, Path("nowhere")) for shard in toy.shards(settings, 0)]


def events(log: Path) -> list[tuple[int, str]]:
    return [(int(shard), what) for shard, what in (line.split() for line in log.read_text().splitlines())]


def most_at_once(log: Path) -> int:
    count = most = 0
    for _, what in events(log):
        count += {"begins": 1, "ends": -1}[what]
        most = max(most, count)
    return most


def test_the_numbers_do_not_depend_on_what_runs_beside(tmp_path: Path, memory: Callable[[int], None]) -> None:
    expected = {outcome.shard.key: outcome.table for outcome in Inline().run(tasks(tmp_path / "alone"))}
    found = {outcome.shard.key: outcome.table for outcome in SideBySide(2).run(tasks(tmp_path / "beside", company=2))}
    assert found == expected
    assert len(found) == 3
    assert most_at_once(tmp_path / "alone") == 1
    assert most_at_once(tmp_path / "beside") == 2


def test_the_longest_come_first_and_only_as_many_as_fit(tmp_path: Path, memory: Callable[[int], None]) -> None:
    memory(1)
    list(SideBySide(3).run(tasks(tmp_path / "log")))
    assert events(tmp_path / "log") == [(shard, what) for shard in (2, 1, 0) for what in ("begins", "ends")]


def test_beside_one_that_fills_the_gpu_begins_another_that_does_not(
    tmp_path: Path, memory: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of four, the two longest fill it: with two at once, the longest one and the longest of the others begin.

    They are tried in the same order.
    """
    tried: list[int] = []

    def calibrate(tasks: Sequence[Task], *_: object) -> Calibration:
        tried.extend(task.shard.part["shard"] for task in tasks)
        return Calibration(2)

    monkeypatch.setattr(side_by_side, "calibrate", calibrate)
    settings = Settings(shards=4)
    toy = GpuToy(tmp_path / "log", settings, company=2, full=frozenset({2, 3}))
    list(SideBySide().run([Task(toy, settings, shard, Path("nowhere")) for shard in toy.shards(settings, 0)]))
    assert tried == [3, 1, 0, 2]
    begun = [shard for shard, what in events(tmp_path / "log") if what == "begins"]
    assert {*begun[:2]} == {3, 1}


def test_how_many_is_what_the_calibration_found(
    tmp_path: Path, memory: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maxmean.lab.calibration.cores", lambda: 2)
    said = io.StringIO()
    list(SideBySide(console=Console(file=said, width=200)).run(tasks(tmp_path / "log", company=2)))
    assert "2 at once" in said.getvalue()
    assert most_at_once(tmp_path / "log") == 2


def test_lines_of_shards_can_be_told_apart(tmp_path: Path, memory: Callable[[int], None]) -> None:
    said = io.StringIO()
    list(SideBySide(2, Console(file=said, width=200)).run(tasks(tmp_path / "log", Settings(shards=2))))
    lines = said.getvalue().splitlines()
    assert sorted(lines) == ["[1 1] begins", "[1 1] shard 1 is under way", "[2 0] begins", "[2 0] shard 0 is under way"]


def test_a_shard_that_kills_its_process_is_tried_again_and_the_others_do_not_notice(
    tmp_path: Path, memory: Callable[[int], None]
) -> None:
    outcomes = list(SideBySide(3).run(tasks(tmp_path / "log", replace(THREE, trouble="die"))))
    (failed,) = [outcome for outcome in outcomes if outcome.table is None]
    assert (failed.shard.part, failed.error) == ({"shard": 2}, "its process was killed by SIGKILL")
    assert len(outcomes) == 3
    begun = [shard for shard, what in events(tmp_path / "log") if what == "begins"]
    assert {shard: begun.count(shard) for shard in begun} == {0: 1, 1: 1, 2: ATTEMPTS}
    assert events(tmp_path / "log")[-1] == (2, "begins")  # the last time when nothing else is under way


def test_a_shard_that_fails_once_is_tried_again(tmp_path: Path, memory: Callable[[int], None]) -> None:
    said = io.StringIO()
    settings = replace(THREE, trouble=str(tmp_path / "tried"))
    found = list(SideBySide(2, Console(file=said, width=200)).run(tasks(tmp_path / "log", settings)))
    assert all(outcome.table is not None for outcome in found)
    assert "[1 2] failed, and is tried again: RuntimeError: the first attempt fails" in said.getvalue()


def test_stopping_lets_shards_keep_what_they_have_done(tmp_path: Path, memory: Callable[[int], None]) -> None:
    """Two are stopped; a third has ended before."""
    moments = tasks(tmp_path / "log")[:1] + tasks(tmp_path / "log", moment=60.0)[1:3]
    outcomes = SideBySide(3).run(moments)
    assert next(outcomes).table is not None
    begin = time.monotonic()
    while len([what for _, what in events(tmp_path / "log") if what == "begins"]) < 3:
        assert time.monotonic() - begin < 60
        time.sleep(0.02)
    begin = time.monotonic()
    outcomes.close()  # type: ignore[attr-defined]
    assert time.monotonic() - begin < 30
    assert sorted(shard for shard, what in events(tmp_path / "log") if what == "keeps") == [1, 2]


COMMAND = [sys.executable, "-m", "maxmean.cli", "reproduce", "minatar", "--set", "together=true", "--set", "heads="]
SHORT = "seeds=1 warmup=100 test_interval=200 checkpoint_interval=200"
OPTIONS = [word for text in SHORT.split() for word in ("--set", text)] + ["--set", "besides=breakout@1e-4 ddqn"]


@pytest.mark.slow
def test_minatar_side_by_side_has_the_tables_of_one_after_the_other(tmp_path: Path) -> None:
    """On a CPU, through the real command: the processes are those of a GPU."""
    for name, engine in {"alone": ["--engine", "inline"], "beside": ["--engine", "gpu", "--workers", "2"]}.items():
        run = [*COMMAND, *OPTIONS, "--set", "steps=600", *engine, "--out", str(tmp_path / name)]
        found = subprocess.run(run, capture_output=True, text=True)
        assert found.returncode == 0, found.stderr
    assert "[1 breakout@10^-3 dqn] 1 run of minatar/breakout on cpu" in found.stderr
    assert "[2 breakout@10^-4 ddqn] 600 of 600 steps" in found.stderr
    tables = [sorted((tmp_path / name).glob("minatar/*.parquet")) for name in ("alone", "beside")]
    assert [path.name for path in tables[0]] == [path.name for path in tables[1]]
    assert [path.read_bytes() for path in tables[0]] == [path.read_bytes() for path in tables[1]]


@pytest.mark.slow
def test_minatar_side_by_side_goes_on_after_ctrl_c(tmp_path: Path) -> None:
    long = [*COMMAND, *OPTIONS, "--set", "steps=20000", "--engine", "gpu", "--workers", "2", "--out", str(tmp_path)]
    process = subprocess.Popen(long, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 120
    while len({path.parent for path in tmp_path.glob("minatar/*.state/checkpoints/[0-9]*")}) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopping; what is under way keeps a checkpoint." in said
    assert "Stopped. What is finished is kept" in said
    assert "Traceback" not in said
    again = subprocess.Popen(long, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert again.stderr is not None
    heard = next(line for line in again.stderr if "Going on from step" in line or "already" in line)
    assert heard.startswith("[")
    os.kill(again.pid, signal.SIGINT)
    again.communicate(timeout=60)
