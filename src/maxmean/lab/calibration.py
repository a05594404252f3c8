"""How many shards a GPU computes side by side: a few seconds with one of them, with two, and on while that pays.

Shards differ, and so do their steps, so that steps a second of all of them say little. What counts is how fast each is beside the
others, as a share of its speed alone. The sum of these shares is the gain: 1 for one shard, or for several that take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

from ..cluster import cores
from .children import Child, LostError, stop
from .gpu import Sharing
from .tasks import Task

WINDOW = 3.0
"""Seconds that a measurement takes."""
CLEARLY = 1.05
"""One more shard is kept if it raises the gain by this factor; less may be chance."""
MOST = 8
"""More at once are not tried: each holds a core of the host and takes half a minute to compile."""


@dataclass(frozen=True)
class Calibration:
    """What was measured with 1, 2, ... shards side by side, and how many of them are best."""

    number: int
    shares: tuple[tuple[float, ...], ...] = ((1.0,),)
    """How fast each of them is beside the others, as a share of its speed alone."""
    rates: tuple[float, ...] = ()
    """Steps a second of all runs of all shards."""

    @property
    def gains(self) -> tuple[float, ...]:
        """The work that they do, in shards that have the GPU alone."""
        return tuple(map(sum, self.shares))

    def __str__(self) -> str:
        tried = [
            f"{n}: {rate:,.0f} run-steps/s ({gain:.2f} times the work of one)"
            for n, (rate, gain) in enumerate(zip(self.rates, self.gains, strict=True), 1)
        ]
        return f"Shards side by side, {'; '.join(tried)}: {self.number} at once."


def calibrate(
    tasks: Sequence[Task], sharing: Sharing, say: Callable[[str], None], number: int | None = None
) -> Calibration:
    """How many of these tasks had better be computed side by side, from the first on; or how fast ``number`` of them are."""
    tasks = [task for task in tasks if task.fills_a_gpu]
    if sharing.gpu is None or not (sharing.overlapping or number):
        return Calibration(1)
    most = min(number or min(MOST, cores()), len(tasks))
    while most > 1 and not sharing.fits(tasks[:most]):
        most -= 1
    if most < 2:
        return Calibration(1)
    say(f"trying up to {most} shards side by side; --workers says how many instead ...")
    trials = [Child(_try, task, environment=sharing.environment) for task in tasks[:most]]
    try:
        found = _measured(trials, number is not None)
    finally:
        stop(trials)
    if not found.rates:
        say("the shards cannot be tried side by side: they are computed one after the other.")
    return found


def _measured(trials: Sequence[Child], all_of_them: bool) -> Calibration:
    """Where a trial is lost, as for want of memory, those before it are what there is room for."""
    alone: list[float] = []
    rates: list[float] = []
    shares: list[tuple[float, ...]] = []
    ready = _ready(trials)
    try:
        for n in range(1, len(ready) + 1):
            alone += _speeds(ready[n - 1 : n])
            speeds = _speeds(ready[:n]) if n > 1 else alone
            rates.append(sum(speeds))
            shares.append(tuple(speed / own for speed, own in zip(speeds, alone, strict=True)))
            if not all_of_them and enough([sum(each) for each in shares]):
                return Calibration(n - 1, tuple(shares), tuple(rates))
    except LostError:
        pass
    return Calibration(max(len(shares), 1), tuple(shares) or ((1.0,),), tuple(rates))


def _ready(trials: Sequence[Child]) -> list[Child]:
    """Those that are compiled, up to the first that is lost; all compile at once, and none while something is timed."""
    ready = []
    with suppress(LostError):
        for trial in trials:
            trial.hear()
            ready.append(trial)
    return ready


def enough(gains: Sequence[float]) -> bool:
    """Whether the last one did not pay.

    >>> enough([1.0, 1.4]), enough([1.0, 1.4, 1.42])
    (False, True)
    """
    return len(gains) > 1 and gains[-1] < CLEARLY * gains[-2]


def _speeds(trials: Sequence[Child]) -> list[float]:
    """Run-steps a second of each, all at once."""
    for trial in trials:
        trial.tell(WINDOW)
    return [float(trial.hear()) for trial in trials]


def _try(connection: Connection, task: Task) -> None:
    """In a child: make the task ready, then work on it for as long as one is told, and say how fast."""
    assert task.on_gpu is not None
    speed = task.on_gpu.trial(task.shard.part)
    connection.send("ready")
    while True:
        connection.send(speed(connection.recv()))
