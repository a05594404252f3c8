"""Freeway beside the package's."""

from __future__ import annotations

from typing import Any

import numpy as np

from envs.lockstep import lengths, prove, prove_starts
from envs.recording import Play, Random, Record, Rules, Variables, int8
from maxmean.envs.minatar import DOWN, UP, Freeway
from maxmean.envs.minatar.freeway import FreewayState, Outcomes

LANES = 8
LIMIT = 2_500
X, Y, TIMER, SPEED = range(4)


def variables(game: Any) -> Variables:
    return {
        "pos": game.pos,
        "move_timer": game.move_timer,
        "terminate_timer": game.terminate_timer,
        "cars": [[int(value) for value in car] for car in game.cars],
    }


def encode(game: Any) -> FreewayState:
    x, _, timer, speed = np.array(game.cars, np.int8).T
    return FreewayState(int8(game.pos), int8(game.move_timer), x, timer, speed)


def decode(game: FreewayState, time: np.ndarray) -> Variables:
    row = np.broadcast_to(np.arange(1, LANES + 1), np.shape(game.x))
    return {
        "pos": game.chicken,
        "move_timer": game.rest,
        "terminate_timer": LIMIT - time.astype(int),
        "cars": np.stack([game.x, row, game.timer, game.speed], axis=-1),
    }


def outcomes(drawn: list[Any], rng: Random) -> Outcomes:
    pace, direction = drawn or (rng.integers(1, 6, LANES), rng.random(LANES))
    return Outcomes(int8(np.where(direction < 0.5, -pace, pace)))


def wanderer(game: Any, rng: Random) -> int:
    return int(rng.integers(6))


def climber(game: Any, rng: Random) -> int:
    """Walks up when the car of the next row is not near."""
    if rng.random() < 0.1:
        return int(rng.choice([0, DOWN]))
    ahead = game.cars[game.pos - 2][X] if game.pos > 1 else 9
    return UP if game.pos == 9 or abs(ahead - 4) > 1 else 0


def scatter(game: Any, rng: Random) -> None:
    game.reset()
    game.pos, game.move_timer = int(rng.integers(1, 10)), int(rng.integers(4))
    for car in game.cars:
        car[X], car[TIMER] = int(rng.integers(10)), int(rng.integers(abs(car[SPEED]) + 1))


def count(record: Record) -> dict[str, int]:
    before, after = record.variables()
    reward, taken = np.array(record.reward), np.array(record.taken)
    across = reward > 0
    speeds = after["cars"][across][..., SPEED]
    x, speed = before["cars"][..., X], after["cars"][..., SPEED]
    moved = x != after["cars"][..., X]
    hit = (after["pos"] == 9) & (before["pos"] < 8) & ~across
    return {
        "crossing": int(np.sum(across)),
        "cars change": int(np.sum(np.any(before["cars"][across][..., SPEED] != speeds, axis=1))),
        **{f"speed {s}": int(np.sum(speeds == s)) for s in (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)},
        "car leaves to the left": int(np.sum(moved & (x == 0) & (speed < 0))),
        "car leaves to the right": int(np.sum(moved & (x == 9) & (speed > 0))),
        "hit after a step up": int(np.sum(hit & (taken == UP) & (before["move_timer"] == 0))),
        "hit while standing": int(np.sum(hit & (before["move_timer"] > 0))),
        "step down": int(np.sum((after["pos"] == before["pos"] + 1) & (taken == DOWN))),
        "kept by the wait": int(np.sum((before["move_timer"] > 0) & (taken == UP))),
        "timer runs out": sum(record.terminal),
    }


RULES = Rules(Freeway(), variables, encode, decode, outcomes, timed=True)
PLAYS = (
    Play(climber, chunks=3),
    Play(wanderer, chunks=3, sticky=0.0),
    Play(climber, scatter, patience=30),
)


@lengths
def test_freeway_is_exact(times: int) -> None:
    seen = prove(RULES, PLAYS, times, count)
    assert seen["frames"] >= 5_000 * times


def test_starts_are_the_packages() -> None:
    prove_starts(RULES, lambda start: [np.abs(start.speed).astype(int), np.where(start.speed > 0, 0.75, 0.25)])
