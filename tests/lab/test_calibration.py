"""Facts about the calibration: shards are added while they pay, and never more than there is room for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from maxmean.lab import calibration
from maxmean.lab.calibration import Calibration, calibrate
from maxmean.lab.children import LostError
from maxmean.lab.gpu import Gpu, Load, Sharing
from maxmean.lab.tasks import Task
from toys import GpuToy, Settings


@dataclass
class Trial:
    """A stand-in for a child that tries a shard; alone it has this speed."""

    speed: float
    fits: bool = True

    def hear(self) -> str:
        if not self.fits:
            raise LostError("its process was killed by SIGKILL")
        return "ready"


def measured(
    monkeypatch: pytest.MonkeyPatch,
    trials: Sequence[Trial],
    share: Callable[[int], float],
    *,
    all_of_them: bool = False,
) -> Calibration:
    """Side by side with others, each shard keeps a share of its speed."""
    monkeypatch.setattr(calibration, "_speeds", lambda some: [share(len(some)) * trial.speed for trial in some])
    return calibration._measured(trials, all_of_them)  # type: ignore[arg-type]


def test_shards_are_added_while_the_gain_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device does up to 2.5 times the work of one shard: the third still adds a quarter, the fourth nothing."""
    found = measured(monkeypatch, [Trial(100.0)] * 6, lambda n: min(1.0, 2.5 / n))
    assert found.number == 3
    assert found.gains == pytest.approx((1.0, 2.0, 2.5, 2.5))
    assert found.rates == pytest.approx((100.0, 200.0, 250.0, 250.0))
    assert "4: 250 run-steps/s (2.50 times the work of one): 3 at once." in str(found)


def test_shards_that_take_turns_come_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, [Trial(100.0)] * 6, lambda n: 1 / n).number == 1


def test_a_quick_shard_does_not_hide_that_the_slow_ones_suffer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second has ten times the steps a second of the first: together they have more of them, and gain nothing."""
    found = measured(monkeypatch, [Trial(10.0), Trial(100.0)], lambda n: 1 / n)
    assert found.rates == pytest.approx((10.0, 55.0))
    assert found.gains == pytest.approx((1.0, 1.0))
    assert found.number == 1


def test_as_many_as_one_asks_for_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured(monkeypatch, [Trial(100.0)] * 4, lambda n: 1 / n, all_of_them=True)
    assert found.number == 4
    assert found.gains == pytest.approx((1.0,) * 4)


def test_where_one_is_lost_there_is_room_for_those_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measured(monkeypatch, [Trial(1.0), Trial(1.0), Trial(1.0, fits=False), Trial(1.0)], lambda n: 1.0)
    assert (found.number, found.gains) == (2, (1.0, 2.0))
    assert measured(monkeypatch, [Trial(1.0, fits=False)], lambda n: 1.0) == Calibration(1)


def tasks(tmp_path: Path, settings: Settings) -> list[Task]:
    toy = GpuToy(tmp_path / "log", settings)
    return [Task(toy, settings, shard, Path("nowhere")) for shard in toy.shards(settings, 0)]


def sharing(some: Sequence[Task], memory: int | None = None, *, overlapping: bool = True) -> Sharing:
    loads = {task.shard.key: Load(1, 0.0) for task in some}
    return Sharing(Gpu("stand-in", memory), loads, {}, overlapping=overlapping)


def test_no_more_are_tried_than_the_memory_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In real processes. The stand-in's shards do not notice each other, so that all that fit are worth while."""
    monkeypatch.setattr(calibration, "cores", lambda: 4)
    some, said = tasks(tmp_path, Settings()), list[str]()
    found = calibrate(some, sharing(some, memory=2), said.append)
    assert (found.number, found.gains, found.rates) == (2, (1.0, 2.0), (100.0, 300.0))
    assert said == ["trying up to 2 shards side by side; --workers says how many instead ..."]


def test_a_trial_that_dies_ends_the_calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "cores", lambda: 4)
    some = tasks(tmp_path, Settings(trouble="die"))[1:4]  # the second of them
    said: list[str] = []
    assert calibrate(some, sharing(some), said.append).number == 1
    assert calibrate(some[1:], sharing(some), said.append) == Calibration(1)
    assert said[-1] == "the shards cannot be tried side by side: they are computed one after the other."


def test_nothing_is_tried_where_nothing_would_be_gained(tmp_path: Path) -> None:
    some = tasks(tmp_path, Settings())
    for shared in (sharing(some, memory=1), sharing(some, overlapping=False)):
        assert calibrate(some, shared, pytest.fail) == Calibration(1)
    assert calibrate(some[:1], sharing(some), pytest.fail) == Calibration(1)
