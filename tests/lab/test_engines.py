"""Facts about the engines: they agree to the bit, retry, report what fails and go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from maxmean.cluster import ATTEMPTS, ClusterError
from maxmean.lab.engines import Inline, Processes, make_engine
from maxmean.lab.tasks import ShardEngine, Task
from seldom import mostly_slow
from toys import Settings, Toy

ENGINES: dict[str, Callable[[], ShardEngine]] = {
    "inline": Inline,
    "one process": lambda: Processes(1),
    "two processes": lambda: Processes(2),
}


def tasks(settings: Settings = Settings(), seed: int = 0) -> list[Task]:  # noqa: B008
    toy = Toy(settings)
    return [Task(toy, settings, shard, Path("nowhere")) for shard in toy.shards(settings, seed)]


def tables(engine: ShardEngine, settings: Settings = Settings()) -> dict[str, bytes | None]:  # noqa: B008
    return {outcome.shard.key: outcome.table for outcome in engine.run(tasks(settings))}


@pytest.mark.parametrize("name", mostly_slow([n for n in ENGINES if n != "inline"], ["two processes"]))
def test_engines_agree_to_the_bit(name: str) -> None:
    expected = tables(Inline())
    assert len(expected) == 6
    assert tables(ENGINES[name]()) == expected


@pytest.mark.parametrize("name", mostly_slow(ENGINES, ["inline", "two processes"]))
def test_a_shard_that_always_fails_is_reported_and_the_others_go_on(name: str) -> None:
    outcomes = list(ENGINES[name]().run(tasks(Settings(trouble="raise"))))
    failed = [outcome for outcome in outcomes if outcome.table is None]
    assert len(outcomes) == 6
    assert [outcome.shard.part for outcome in failed] == [{"shard": 2}]
    assert "shard 2 always fails" in failed[0].error


@pytest.mark.parametrize("name", mostly_slow(ENGINES, ["inline", "two processes"]))
def test_a_shard_that_fails_once_is_tried_again(name: str, tmp_path: Path) -> None:
    found = tables(ENGINES[name](), Settings(trouble=str(tmp_path / "tried")))
    assert len(found) == 6
    assert None not in found.values()


def test_a_shard_that_kills_its_process_is_found_and_tried_as_often_as_any_other(tmp_path: Path) -> None:
    log = tmp_path / "log"
    outcomes = list(Processes(2).run(tasks(Settings(shards=4, trouble=f"die and log {log}"))))
    assert len(outcomes) == 4
    (failed,) = [outcome for outcome in outcomes if outcome.table is None]
    assert failed.shard.part == {"shard": 2}
    assert "killed" in failed.error
    assert log.read_text().count("x") == ATTEMPTS


def test_stopping_early_stops_the_work() -> None:
    outcomes = Processes(2).run(tasks(Settings(shards=500)))
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]


def test_engines_by_name() -> None:
    assert isinstance(make_engine("inline", None, None), Inline)
    assert make_engine("processes", 3, None).workers == 3  # type: ignore[attr-defined]
    assert make_engine("gpu", 3, None).workers == 3  # type: ignore[attr-defined]
    assert ATTEMPTS > 1
    for arguments, sentence in {
        ("cluster", None, None): "unknown engine 'cluster'",
        ("processes", 0, None): "workers must be a whole number from 1 to 1,024, not 0",
        ("processes", None, "auto"): "an address goes with the ray engine",
    }.items():
        with pytest.raises(ClusterError, match=sentence):
            make_engine(*arguments)
