"""Asterix beside the package's."""

from __future__ import annotations

from typing import Any

import numpy as np

from envs.lockstep import lengths, prove, prove_starts
from envs.recording import Play, Random, Record, Rules, Variables, flag, int8, typed
from maxmean.envs.minatar import Asterix
from maxmean.envs.minatar.asterix import AsterixState, Outcomes

LANES = 8
MOVES = {0: (0, 0), 1: (-1, 0), 2: (0, -1), 3: (1, 0), 4: (0, 1), 5: (0, 0)}
TIMERS = ("spawn_speed", "spawn_timer", "move_speed", "move_timer", "ramp_timer", "ramp_index")


def variables(game: Any) -> Variables:
    scalars = {name: getattr(game, name) for name in ("player_x", "player_y", *TIMERS)}
    rows = [[-1, 0, 0, 0] if e is None else [e[0], e[1], int(e[2]), int(e[3])] for e in game.entities]
    return {**scalars, "entities": rows}


def encode(game: Any) -> AsterixState:
    entities = [e or [-1, 0, False, False] for e in game.entities]
    return AsterixState(
        int8(game.player_x),
        int8(game.player_y),
        int8([e[0] for e in entities]),
        flag([e[2] for e in entities]),
        flag([e[3] for e in entities]),
        *(int8(getattr(game, name)) for name in TIMERS),
    )


def decode(game: AsterixState, time: np.ndarray) -> Variables:
    taken = np.asarray(game.x) >= 0
    row = np.broadcast_to(np.arange(1, LANES + 1), taken.shape)
    entities = np.stack([game.x, *(np.where(taken, field, 0) for field in (row, game.right, game.gold))], axis=-1)
    timers = (game.spawn_interval, game.spawn_timer, game.move_interval, game.move_timer, game.ramp_timer, game.ramp)
    return {
        "player_x": game.player_x,
        "player_y": game.player_y,
        "entities": entities,
        **dict(zip(TIMERS, timers, strict=True)),
    }


def outcomes(drawn: list[Any], rng: Random) -> Outcomes:
    right = drawn[0] < 1 / 2 if drawn else rng.random() < 1 / 2
    gold = drawn[1] < 1 / 3 if drawn else rng.random() < 1 / 3
    lane = drawn[2] if len(drawn) == 3 else rng.integers(840)
    return Outcomes(flag(right), flag(gold), typed(lane, np.int32))


def wanderer(game: Any, rng: Random) -> int:
    return int(rng.integers(6))


def collector(game: Any, rng: Random) -> int:
    """Keeps away from enemies and likes rows with gold."""

    def worth(action: int) -> float:
        dx, dy = MOVES[action]
        x, y = min(9, max(0, game.player_x + dx)), min(8, max(1, game.player_y + dy))
        value = float(rng.random())
        for e in game.entities:
            if e is None:
                continue
            ahead = (x - e[0]) * (1 if e[2] else -1)
            if e[3]:
                value += (3 if e[1] == y else 1) / (1 + abs(e[0] - x) + abs(e[1] - y))
            elif e[1] == y and 0 <= ahead <= 2:
                value -= 100 / (1 + ahead)
        return value

    return max(range(5), key=worth)


def scatter(game: Any, rng: Random) -> None:
    """Any state that the ranges of its variables allow."""
    game.player_x, game.player_y = int(rng.integers(10)), int(rng.integers(1, 9))
    game.spawn_speed, game.move_speed = int(rng.integers(1, 11)), int(rng.integers(1, 6))
    game.spawn_timer, game.move_timer = int(rng.integers(game.spawn_speed)), int(rng.integers(game.move_speed))
    game.ramp_timer, game.ramp_index = int(rng.integers(-1, 101)), int(rng.integers(10))
    crowd = rng.random()
    game.entities = [
        [int(rng.integers(10)), i + 1, bool(rng.integers(2)), bool(rng.integers(2))] if rng.random() < crowd else None
        for i in range(LANES)
    ]
    game.terminal = False


def revive(game: Any, rng: Random) -> None:
    """The enemy in the player's row leaves."""
    game.entities[game.player_y - 1] = None
    game.terminal = False


def count(record: Record) -> dict[str, int]:
    before, after = record.variables()
    x, direction, gold = (before["entities"][..., i] for i in (0, 2, 3))
    new = (x < 0) & (after["entities"][..., 0] >= 0)
    due = before["spawn_timer"] == 0
    came = {
        f"{kind} from the {side}": int(
            np.sum(new & (after["entities"][..., 3] == g) & (after["entities"][..., 2] == d))
        )
        for g, kind in enumerate(("enemy", "gold"))
        for d, side in enumerate(("right", "left"))
    }
    full = np.all(x >= 0, axis=1)
    reward, terminal = np.array(record.reward), np.array(record.terminal)
    walked = before["move_timer"] == 0
    ramps = after["ramp_index"] > before["ramp_index"]
    return {
        **came,
        "ramp": int(np.sum(ramps)),
        "episode of three ramps": int(np.sum(np.bincount(np.cumsum(record.fresh), ramps) >= 3)),
        "fastest": int(np.sum((after["spawn_speed"] == 1) & (after["move_speed"] == 1))),
        "nobody comes into full lanes": int(np.sum(due & full & (direction[:, 0] >= 0))),
        "gold met by a step": int(np.sum((reward > 0) & ~walked)),
        "gold met by its walk": int(np.sum((reward > 0) & walked)),
        "end by a step": int(np.sum(terminal & ~walked)),
        "end by a walk": int(np.sum(terminal & walked)),
        "visitor leaves": int(
            np.sum(walked[:, None] & ((x == 0) & (direction == 0) | (x == 9) & (direction == 1)) & (gold >= 0))
        ),
    }


def rules(*, ramping: bool) -> Rules:
    return Rules(Asterix(ramping=ramping), variables, encode, decode, outcomes)


PLAYS = (
    Play(wanderer),
    Play(collector),
    Play(collector, revive=revive),
    Play(wanderer, revive=revive, sticky=0.0),
    Play(wanderer, scatter, patience=20),
)


@lengths
def test_asterix_is_exact(times: int) -> None:
    seen = prove(rules(ramping=True), PLAYS, times, count)
    assert seen["frames"] >= 5_000 * times


def test_asterix_is_exact_without_ramping() -> None:
    prove(rules(ramping=False), PLAYS, 1, count, frozenset({"ramp", "episode of three ramps"}))


def test_starts_are_the_packages() -> None:
    prove_starts(rules(ramping=True), lambda start: [])
