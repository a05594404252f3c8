"""From what a calibration measures in seconds to hours of whole shards: on each game, and of several on one device or more."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from ...gpu import next_beside

STARTING = 25.0
"""Seconds until a shard's program is compiled on a GPU; measured before a round of steps was one graph."""
TESTS = {"asterix": 0.06, "breakout": 0.03, "freeway": 0.12, "seaquest": 0.12, "space_invaders": 0.12}
"""The share of a GPU's time that goes into tests and bias estimates over a whole training. Those of a trial take next to nothing,
since its agents die early. They were measured while each test was made at its step, as it still is with more than 64 runs.
Freeway and Space Invaders were not, and get the largest share: five runs, ten tests at once, had 4% there and 7% or 8%."""
SLOWER = {"seaquest": (1.125, 1.37)}
"""How much longer than on Breakout a step takes on a GPU, with heads and without. Seaquest has the largest observations, which
weigh more where the networks are small. Games that are not here take about the same."""
# All of it was measured on an H200, see "What it cost" in docs/notes/minatar.md: compiling and Seaquest's other numbers with
# `dqn` and `ddqn`, 30 runs alone, whose time they give by construction; 1.125 in a benchmark of 80 runs of `ke-bdqn`.


def on_game(seconds: float, game: str, tried: str, agents: Sequence[str]) -> float:
    """What a shard takes on a GPU, from what its steps would take at the speed of a trial on the game ``tried``.

    >>> round(on_game(97.0, "breakout", "breakout", ["dqn"]))
    125
    >>> round(on_game(209.0, "seaquest", "breakout", ["dqn", "ddqn"]))  # it took 354
    350
    """
    slower = _slower(game, agents) / _slower(tried, agents)
    return STARTING + seconds * slower / (1.0 - TESTS[game])


def _slower(game: str, agents: Sequence[str]) -> float:
    heads, without = SLOWER.get(game, (1.0, 1.0))
    return heads if any("bdqn" in name for name in agents) else without


def makespan(hours: Sequence[float], machines: int) -> float:
    """When the last of them is done, if each machine takes the longest shard that is left.

    >>> makespan([3.0, 2.0, 2.0], 2)
    4.0
    """
    ends = [0.0] * machines
    for shard in sorted(hours, reverse=True):
        heapq.heapreplace(ends, ends[0] + shard)
    return max(ends)


def side_by_side(
    hours: Sequence[float], full: Sequence[bool], shares: Sequence[Sequence[float]], tried: Sequence[bool]
) -> float:
    """When the last of them is done on one device that has several under way, in the order of :func:`next_beside`.

    ``hours`` are those of each shard alone, ``full`` says which of them fill the device. ``shares`` are the speeds of 1, 2, ...
    shards at once, as shares of those alone, and ``tried`` says which of these were full. Where both kinds were tried beside each
    other, several that are full take turns, and others without one are not taken to be faster than with it.

    >>> side_by_side([3.0, 2.0, 2.0], [False] * 3, [[1.0]], [False])
    7.0
    >>> side_by_side([3.0, 2.0, 2.0], [False] * 3, [[1.0], [0.5, 0.5]], [False] * 2)  # they take turns
    7.0
    >>> side_by_side([3.0, 2.0, 2.0], [False] * 3, [[1.0], [1.0, 1.0]], [False] * 2)  # they do not notice each other
    4.0
    >>> side_by_side([4.0, 4.0, 1.0, 1.0], [True, True, False, False], [[1.0], [0.8, 0.4]], [True, False])  # 5 hours, then 4
    9.0
    """
    waiting = sorted(zip(hours, full, strict=True), key=lambda shard: -shard[0])
    running: list[tuple[float, bool]] = []
    clock = 0.0
    while waiting or running:
        while waiting and len(running) < len(shares):
            running.append(waiting.pop(next_beside([fills for _, fills in running], [fills for _, fills in waiting])))
        speeds = _speeds([fills for _, fills in running], shares[len(running) - 1], tried)
        step = min(left / speed for (left, _), speed in zip(running, speeds, strict=True))
        clock += step
        after = [(left - step * speed, fills) for (left, fills), speed in zip(running, speeds, strict=True)]
        running = [shard for shard in after if shard[0] > 1e-9]
    return clock


def _speeds(full: Sequence[bool], shares: Sequence[float], tried: Sequence[bool]) -> list[float]:
    """How fast each of these is, from the shares of as many that were tried."""
    found = {
        kind: [share for share, fills in zip(shares, tried, strict=False) if fills is kind] for kind in (True, False)
    }
    if not (found[True] and found[False]):
        return [sum(shares) / len(shares)] * len(full)
    filling = 1.0 if all(full) else sum(found[True])
    others = sum(found[False]) / len(found[False])
    return [filling / sum(full) if fills else others for fills in full]
