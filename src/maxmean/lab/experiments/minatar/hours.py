"""From what a calibration measures in seconds to hours of whole shards: on each game, and of several on one device or more."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

STARTING = 25.0
"""Seconds until a shard's program is compiled on a GPU."""
TESTS = {"asterix": 0.06, "breakout": 0.03, "freeway": 0.12, "seaquest": 0.12, "space_invaders": 0.12}
"""The share of a GPU's time that goes into tests and bias estimates over a whole training. Those of a trial take next to nothing,
since its agents die early. Nobody has measured Freeway and Space Invaders: they are given the largest share."""
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


def side_by_side(hours: Sequence[float], gains: Sequence[float]) -> float:
    """When the last of them is done on one device that has several under way, the longest ones first.

    ``hours`` are those of each shard alone. ``gains`` say how much is done with 1, 2, ... at once, in shards that have the device
    alone; each of them gets the same share of it.

    >>> side_by_side([3.0, 2.0, 2.0], [1.0])
    7.0
    >>> side_by_side([3.0, 2.0, 2.0], [1.0, 1.0])  # they take turns
    7.0
    >>> side_by_side([3.0, 2.0, 2.0], [1.0, 2.0])  # they do not notice each other
    4.0
    """
    waiting = sorted(hours)
    left: list[float] = []
    clock = 0.0
    while waiting or left:
        while waiting and len(left) < len(gains):
            left.append(waiting.pop())
        done = min(left)
        clock += done * len(left) / gains[len(left) - 1]
        left = [hours - done for hours in left if hours > done]
    return clock
