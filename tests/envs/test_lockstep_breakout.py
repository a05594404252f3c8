"""Breakout beside the package's."""

from __future__ import annotations

from typing import Any

import numpy as np

from envs.lockstep import lengths, prove, prove_starts
from envs.recording import Play, Random, Record, Rules, Variables, flag, int8, typed
from maxmean.envs.minatar import LEFT, NOOP, RIGHT, Breakout
from maxmean.envs.minatar.breakout import BreakoutState, Outcomes

SCALARS = ("pos", "ball_x", "ball_y", "last_x", "last_y", "ball_dir", "strike")
DIRECTIONS = np.array([[0, 1], [3, 2]])
"""The package's direction of the ball by [down, right]."""


def variables(game: Any) -> Variables:
    return {**{name: int(getattr(game, name)) for name in SCALARS}, "brick_map": game.brick_map.astype(int)}


def encode(game: Any) -> BreakoutState:
    bits = game.brick_map[1:4].ravel() != 0
    right, down = game.ball_dir in (1, 2), game.ball_dir in (2, 3)
    places = (int8(getattr(game, name)) for name in SCALARS[:5])
    code = sum(1 << i for i in np.flatnonzero(bits).tolist())
    return BreakoutState(*[*places, *map(flag, (right, down, game.strike)), typed(code, np.uint32)])


def decode(game: BreakoutState, time: np.ndarray) -> Variables:
    bits = (np.asarray(game.bricks)[:, None] >> np.arange(30, dtype=np.uint32)) & 1
    direction = DIRECTIONS[np.asarray(game.down).astype(int), np.asarray(game.right).astype(int)]
    scalars = (game.paddle, game.ball_x, game.ball_y, game.last_x, game.last_y, direction, game.struck)
    bricks = np.pad(bits.reshape(-1, 3, 10), ((0, 0), (1, 6), (0, 0)))
    return {**dict(zip(SCALARS, scalars, strict=True)), "brick_map": bricks}


def outcomes(drawn: list[Any], rng: Random) -> Outcomes:
    return Outcomes()


def wanderer(game: Any, rng: Random) -> int:
    return int(rng.integers(6))


def keeper(game: Any, rng: Random) -> int:
    """Follows the ball; at the last moment it may step aside, to meet the ball's next cell."""
    aim = game.ball_x
    if game.ball_y == 8 and rng.random() < 0.4:
        aim += 1 if game.ball_dir in (1, 2) else -1
    return LEFT if aim < game.pos else RIGHT if aim > game.pos else NOOP


def scatter(game: Any, rng: Random) -> None:
    game.reset()
    game.pos, game.ball_x, game.ball_y = int(rng.integers(10)), int(rng.integers(10)), int(rng.integers(9))
    game.ball_dir, game.strike = int(rng.integers(4)), bool(rng.integers(2))
    game.last_x, game.last_y = int(rng.integers(10)), int(rng.integers(9))
    game.brick_map[1:4] = rng.random((3, 10)) < rng.random()


def count(record: Record) -> dict[str, int]:
    before, after = record.variables()
    bricks, left = (np.sum(v["brick_map"], axis=(1, 2)) for v in (before, after))
    flip_x = np.isin(before["ball_dir"], (1, 2)) != np.isin(after["ball_dir"], (1, 2))
    flip_y = np.isin(before["ball_dir"], (2, 3)) != np.isin(after["ball_dir"], (2, 3))
    down = np.isin(before["ball_dir"], (2, 3))
    paddle = flip_y & down & (before["ball_y"] == 8)
    straight = paddle & (before["ball_x"] == after["pos"])
    top = flip_y & ~down & (before["ball_y"] == 0)
    edge = (before["ball_x"] == after["ball_x"]) & ~np.array(record.fresh)
    return {
        "brick": int(np.sum(record.reward)),
        "brick struck from above": int(np.sum((np.array(record.reward) > 0) & down)),
        "no second brick in a row": int(np.sum((before["strike"] == 1) & (after["strike"] == 1))),
        "wall cleared": int(np.sum((left == 0) & (bricks > 0))),
        "wall laid anew": int(np.sum((left == 30) & (bricks == 0))),
        "reflected by a side": int(np.sum(edge & flip_x)),
        "reflected by the top": int(np.sum(top)),
        "reflected by a top corner": int(np.sum(top & edge)),
        "met straight": int(np.sum(straight)),
        "met aside": int(np.sum(paddle & ~straight & flip_x)),
        "met aside in a corner": int(np.sum(paddle & edge)),
    }


RULES = Rules(Breakout(), variables, encode, decode, outcomes)
PLAYS = (
    Play(wanderer),
    Play(keeper),
    Play(keeper, sticky=0.0, chunks=2),
    Play(keeper, scatter, patience=20),
)


@lengths
def test_breakout_is_exact(times: int) -> None:
    seen = prove(RULES, PLAYS, times, count)
    assert seen["frames"] >= 5_000 * times


def test_starts_are_the_packages() -> None:
    prove_starts(RULES, lambda start: [0 if start.right else 1])
