"""SpaceInvaders beside the package's."""

from __future__ import annotations

from typing import Any

import numpy as np

from envs.lockstep import lengths, prove, prove_starts
from envs.recording import Play, Random, Record, Rules, Variables, flag, int8, typed
from maxmean.envs.minatar import FIRE, LEFT, NOOP, RIGHT, SpaceInvaders
from maxmean.envs.minatar.space_invaders import Outcomes, SpaceInvadersState

TIMERS = ("enemy_move_interval", "alien_move_timer", "alien_shot_timer", "shot_timer", "ramp_index")
MAPS = ("f_bullet_map", "e_bullet_map", "alien_map")


def variables(game: Any) -> Variables:
    scalars = {name: int(getattr(game, name)) for name in ("pos", "alien_dir", *TIMERS)}
    return {**scalars, **{name: getattr(game, name).astype(int) for name in MAPS}}


def encode(game: Any) -> SpaceInvadersState:
    row = 1 << np.arange(10)
    boards = [typed(row @ getattr(game, name).astype(int), np.uint16) for name in MAPS]
    timers = [int8(getattr(game, name)) for name in TIMERS]
    return SpaceInvadersState(*[int8(game.pos), *boards, flag(game.alien_dir > 0), *timers])


def decode(game: SpaceInvadersState, time: np.ndarray) -> Variables:
    row = np.arange(10, dtype=np.uint16)
    boards = (np.asarray(game.bullets), np.asarray(game.bombs), np.asarray(game.aliens))
    maps = (((board[:, None, :] >> row[:, None]) & 1).astype(int) for board in boards)
    timers = (game.move_interval, game.move_timer, game.bomb_timer, game.shot_timer, game.ramp)
    return {
        "pos": game.cannon,
        "alien_dir": np.where(game.right, 1, -1),
        **dict(zip(TIMERS, timers, strict=True)),
        **dict(zip(MAPS, maps, strict=True)),
    }


def outcomes(drawn: list[Any], rng: Random) -> Outcomes:
    return Outcomes()


def wanderer(game: Any, rng: Random) -> int:
    return int(rng.integers(6))


def pacifist(game: Any, rng: Random) -> int:
    return int(rng.integers(5))


def gunner(game: Any, rng: Random) -> int:
    """Keeps out of the bombs' way, goes below the nearest aliens and fires; the fast last ones it meets by firing at random."""
    near = np.sum(game.e_bullet_map[6:9], axis=0) + game.alien_map[9]
    if near[game.pos]:
        return LEFT if game.pos > 0 and not near[game.pos - 1] else RIGHT
    few = np.sum(game.alien_map) < 4
    if game.shot_timer == 0 and (few or np.any(game.alien_map[:, game.pos])):
        return FIRE
    if few:
        return int(rng.choice([NOOP, LEFT, RIGHT]))
    columns = np.flatnonzero(np.any(game.alien_map, axis=0))
    aim = columns[np.argmin(np.abs(columns - game.pos))]
    move = LEFT if aim < game.pos else RIGHT if aim > game.pos else int(rng.choice([NOOP, LEFT, RIGHT]))
    there = game.pos + {LEFT: -1, RIGHT: 1, NOOP: 0}[move]
    return NOOP if 0 <= there < 10 and near[there] else move


def scatter(game: Any, rng: Random) -> None:
    game.reset()
    game.pos, game.alien_dir = int(rng.integers(10)), int(rng.choice([-1, 1]))
    game.enemy_move_interval = int(rng.integers(6, 13))
    game.alien_move_timer = int(rng.integers(game.enemy_move_interval))
    game.alien_shot_timer, game.shot_timer = int(rng.integers(10)), int(rng.integers(5))
    game.ramp_index = 12 - game.enemy_move_interval
    for name, most in zip(MAPS, (0.2, 0.1, rng.random()), strict=True):
        getattr(game, name)[:] = rng.random((10, 10)) < most
    game.alien_map[int(rng.integers(9)), int(rng.integers(10))] = 1


def revive(game: Any, rng: Random) -> None:
    game.terminal = False


def count(record: Record) -> dict[str, int]:
    before, after = record.variables()
    reward, terminal = np.array(record.reward), np.array(record.terminal)
    here = np.arange(len(reward)), 9, after["pos"]
    marched = before["alien_move_timer"] == 0
    turned = before["alien_dir"] != after["alien_dir"]
    landed = turned & np.any(before["alien_map"][:, 9] > 0, axis=1)
    waves = np.sum(after["alien_map"], axis=(1, 2)) > np.sum(before["alien_map"], axis=(1, 2))
    few = np.sum(before["alien_map"], axis=(1, 2)) < before["enemy_move_interval"]
    nobody_here = ~np.any(before["alien_map"] > 0, axis=1)[here[0], after["pos"]]
    drops = before["alien_shot_timer"] == 0
    ramp = after["ramp_index"] > before["ramp_index"]
    return {
        "alien shot": int(np.sum(reward)),
        "two aliens shot in a frame": int(np.sum(reward == 2)),
        "wave cleared": int(np.sum(waves)),
        "wave speeds up": int(np.sum(ramp)),
        "no faster wave than the fastest": int(np.sum(waves & (before["enemy_move_interval"] == 6))),
        "few aliens march faster": int(np.sum(marched & few)),
        "last alien marches": int(np.sum(marched & (after["alien_move_timer"] == 0))),
        "turn at the left": int(np.sum(turned & (after["alien_dir"] > 0))),
        "turn at the right": int(np.sum(turned & (after["alien_dir"] < 0))),
        "bomb": int(np.sum(drops)),
        "bomb from aside": int(np.sum(drops & nobody_here & ~marched)),
        "shot refused": int(np.sum((np.array(record.taken) == FIRE) & (before["shot_timer"] > 0))),
        "end by a bomb": int(np.sum(terminal & (after["e_bullet_map"][here] > 0) & ~landed)),
        "end by an alien": int(np.sum(terminal & (after["alien_map"][here] > 0))),
        "end by a landing": int(np.sum(terminal & landed)),
    }


def rules(*, ramping: bool) -> Rules:
    return Rules(SpaceInvaders(ramping=ramping), variables, encode, decode, outcomes)


PLAYS = (
    Play(wanderer),
    Play(gunner),
    Play(gunner, revive=revive, sticky=0.0, chunks=2),
    Play(pacifist, revive=revive),
    Play(gunner, scatter, patience=20),
)


@lengths
def test_space_invaders_is_exact(times: int) -> None:
    seen = prove(rules(ramping=True), PLAYS, times, count)
    assert seen["frames"] >= 5_000 * times


def test_space_invaders_is_exact_without_ramping() -> None:
    prove(rules(ramping=False), PLAYS, 1, count, frozenset({"wave speeds up"}))


def test_starts_are_the_packages() -> None:
    prove_starts(rules(ramping=True), lambda start: [])
