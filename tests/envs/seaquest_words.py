"""Seaquest's state in the package's words and in ours."""

from __future__ import annotations

from typing import Any

import numpy as np

from envs.recording import Random, Variables, flag, int8
from maxmean.envs.minatar.seaquest import Divers, Outcomes, SeaquestState, Shots
from maxmean.envs.minatar.seaquest_crowd import CROWD

MOST_SHOTS, MOST_DIVERS, MOST_ENEMIES = 2, 2, 30
"""The bounds that ours relies on."""

X, Y, RIGHT, TIMER, SHOT = range(5)
SCALARS = {
    "sub_x": "x",
    "sub_y": "y",
    "sub_or": "right",
    "oxygen": "oxygen",
    "diver_count": "rescued",
    "surface": "surfaced",
    "shot_timer": "shot_timer",
    "d_spawn_timer": "diver_timer",
    "e_spawn_speed": "spawn_interval",
    "e_spawn_timer": "spawn_timer",
    "move_speed": "move_interval",
    "ramp_index": "ramp",
}
"""The package's name of each scalar, and ours."""
TYPES = {"right": bool, "surfaced": bool, "oxygen": np.int16, "rescued": np.int16, "ramp": np.int16}


def variables(game: Any) -> Variables:
    """Lists are padded with rows of -1; an overflow is an error."""
    assert len(game.e_fish) + len(game.e_subs) <= MOST_ENEMIES
    return {
        **{name: int(getattr(game, name)) for name in SCALARS},
        "f_bullets": _padded(game.f_bullets, MOST_SHOTS, 3),
        "divers": _padded(game.divers, MOST_DIVERS, 4),
        "e_fish": _padded(game.e_fish, MOST_ENEMIES, 4),
        "e_subs": _padded(game.e_subs, MOST_ENEMIES, 5),
        "e_bullets": _bits(game.e_bullets),
    }


def _padded(rows: list[list[int]], size: int, width: int) -> list[list[int]]:
    assert len(rows) <= size, f"{len(rows)} are more than {size}"
    return [[int(value) for value in row] for row in rows] + [[-1] * width] * (size - len(rows))


def _bits(bullets: list[list[int]]) -> list[list[int]]:
    """Torpedoes as a set, since those in one cell with one direction stay together: [direction][row - 1] has a bit a column."""
    bits = [[0] * 8, [0] * 8]
    for x, y, right in bullets:
        bits[int(right)][y - 1] |= 1 << x
    return bits


def encode(game: Any) -> SeaquestState:
    left: Any
    right: Any
    left, right = np.array(_bits(game.e_bullets), np.uint16)
    scalars: dict[str, Any] = {
        ours: np.asarray(getattr(game, theirs), TYPES.get(ours, np.int8)) for theirs, ours in SCALARS.items()
    }
    return SeaquestState(
        **scalars,
        shots=Shots(*_newest_first(game.f_bullets, 3)),
        divers=Divers(*_newest_first(game.divers, 4)),
        enemies=_enemies(game),
        torpedoes_left=left,
        torpedoes_right=right,
    )


def _newest_first(rows: list[list[int]], width: int) -> list[Any]:
    x, y, right, *timer = np.array([*reversed(rows), *[[-1] + [0] * (width - 1)] * (2 - len(rows))], np.int8).T
    return [x, y, right.astype(bool), *timer]


def _enemies(game: Any) -> Any:
    """Fish and submarines in one order, the newest first: who has come farther has come earlier."""

    def way(enemy: list[int]) -> int:
        steps = enemy[X] if enemy[RIGHT] else 9 - enemy[X]
        return steps * (game.move_speed + 1) + game.move_speed - enemy[TIMER]

    codes = np.full(CROWD, 15, np.uint16)
    order = sorted([*reversed(game.e_subs), *reversed(game.e_fish)], key=way)
    for i, enemy in enumerate(order):
        submarine = len(enemy) == 5
        code = enemy[X] | (enemy[Y] - 1) << 4 | int(enemy[RIGHT]) << 7 | submarine << 8 | enemy[TIMER] << 9
        codes[i] = code | (enemy[SHOT] << 12 if submarine else 0)
    return codes


def decode(game: SeaquestState, time: np.ndarray) -> Variables:
    fields = np.asarray(game.enemies).astype(int)[..., None] >> np.array([0, 4, 7, 9, 12]) & np.array([15, 7, 1, 7, 15])
    fields[..., Y] += 1
    alive, submarine = fields[..., X] != 15, (np.asarray(game.enemies) >> 8) & 1 == 1
    torpedoes = np.stack([game.torpedoes_left, game.torpedoes_right], axis=1)
    return {
        **{theirs: getattr(game, ours) for theirs, ours in SCALARS.items()},
        "f_bullets": _oldest_first(np.stack(game.shots, axis=-1), np.asarray(game.shots.x) >= 0, MOST_SHOTS),
        "divers": _oldest_first(np.stack(game.divers, axis=-1), np.asarray(game.divers.x) >= 0, MOST_DIVERS),
        "e_fish": _oldest_first(fields[..., :SHOT], alive & ~submarine, MOST_ENEMIES),
        "e_subs": _oldest_first(fields, alive & submarine, MOST_ENEMIES),
        "e_bullets": torpedoes,
    }


def _oldest_first(rows: np.ndarray, there: np.ndarray, size: int) -> np.ndarray:
    """The rows that are there, in reverse order and padded with -1."""
    rows, there = rows[:, ::-1], there[:, ::-1]
    order = np.argsort(~there, axis=1, kind="stable")
    rows = np.where(there[..., None], rows, -1)
    return np.take_along_axis(rows, order[..., None], axis=1)[:, :size]


def outcomes(drawn: list[Any], rng: Random) -> Outcomes:
    """An enemy takes three draws and a diver two."""
    enemy: list[Any] = drawn[:3] if len(drawn) >= 3 else [rng.random(), rng.random(), rng.integers(1, 9)]
    diver: list[Any] = drawn[-2:] if len(drawn) in (2, 5) else [rng.random(), rng.integers(1, 9)]
    return Outcomes(
        right=flag(enemy[0] < 1 / 2),
        submarine=flag(enemy[1] < 1 / 3),
        row=int8(enemy[2]),
        diver_right=flag(diver[0] < 1 / 2),
        diver_row=int8(diver[1]),
    )
