"""Seaquest beside the package's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from envs import seaquest_players as players
from envs import seaquest_words as words
from envs.lockstep import lengths, prove, prove_starts
from envs.recording import Play, Record, Rules, original
from envs.seaquest_words import MOST_DIVERS, MOST_ENEMIES, MOST_SHOTS, RIGHT, SHOT, TIMER, X, Y
from maxmean.envs.minatar import FIRE, Seaquest

FIGHTS = (
    "shot strikes a fish",
    "shot strikes a submarine",
    "shot strikes one of several",
    "fish swims into a shot",
    "submarine swims into a shot",
    "submarine that was hit shoots",
)


def count(record: Record) -> dict[str, int]:
    before, after = record.variables()
    reward, terminal = np.array(record.reward), np.array(record.terminal)
    surfaces = (after["surface"] == 1) & (before["surface"] == 0)
    subs, fish = before["e_subs"], before["e_fish"]
    enemies = [
        np.sum(v["e_fish"][..., X] >= 0, axis=1) + np.sum(v["e_subs"][..., X] >= 0, axis=1) for v in (before, after)
    ]
    here = 1 << after["sub_x"]
    row = np.clip(after["sub_y"] - 1, 0, 7)
    torpedo = (after["e_bullets"][np.arange(len(row)), :, row] & here[:, None] > 0).any(axis=1) & (after["sub_y"] > 0)
    leaving = (subs[..., TIMER] == 0) & (subs[..., X] == np.where(subs[..., RIGHT] == 1, 9, 0))

    def at_player(entities: np.ndarray) -> Any:
        return np.any(
            (entities[..., X] == after["sub_x"][:, None]) & (entities[..., Y] == after["sub_y"][:, None]), axis=1
        )

    return {
        **fights(record, before),
        "surfacing with divers": int(np.sum(surfaces & (before["diver_count"] > 0) & (after["diver_count"] >= 0))),
        "surfacing with six": int(np.sum(surfaces & (after["diver_count"] == -1) & (before["diver_count"] >= 5))),
        "points for oxygen": int(np.sum(surfaces & (before["diver_count"] == 6) & (reward > 0))),
        "surfacing below zero": int(np.sum(surfaces & (before["diver_count"] < 0))),
        "end by surfacing without divers": int(np.sum(terminal & (after["sub_y"] == 0) & (after["diver_count"] == 0))),
        "end by lack of oxygen": int(np.sum(terminal & (before["oxygen"] <= 0))),
        "end by a torpedo": int(np.sum(terminal & torpedo)),
        "end by a fish": int(np.sum(terminal & at_player(after["e_fish"]) & ~at_player(after["e_subs"]))),
        "end by a submarine": int(np.sum(terminal & at_player(after["e_subs"]) & ~at_player(after["e_fish"]))),
        "diver rescued": int(np.sum(after["diver_count"] > before["diver_count"])),
        "diver left by a full boat": int(np.sum(at_player(before["divers"]) & (before["diver_count"] == 6))),
        "enemy kept out of its row": int(
            np.sum((before["e_spawn_timer"] == 0) & (enemies[1] == enemies[0]) & (reward == 0))
        ),
        "submarine shoots": int(np.sum((subs[..., X] >= 0) & (subs[..., SHOT] == 0))),
        "submarine shoots as it leaves": int(np.sum(leaving & (subs[..., SHOT] == 0))),
        "fish leaves": int(np.sum((fish[..., TIMER] == 0) & (fish[..., X] == np.where(fish[..., RIGHT] == 1, 9, 0)))),
        "ramp": int(np.sum(after["ramp_index"] > before["ramp_index"])),
        "fastest": int(np.sum((after["e_spawn_speed"] == 1) & (after["move_speed"] == 2))),
        "crowd of twenty": int(np.sum(enemies[1] >= 20)),
        "crowd of twenty-nine": int(np.sum(enemies[1] == 29)),
        "as many shots as can be": int(np.sum(after["f_bullets"][:, -1, X] >= 0)),
        "as many divers as can be": int(np.sum(after["divers"][:, -1, X] >= 0)),
    }


def fights(record: Record, before: dict[str, np.ndarray]) -> Counter[str]:
    """How enemies were hit, where it is certain: at shots off the edges, where nobody can have come in this frame."""
    seen = Counter(dict.fromkeys(FIGHTS, 0))
    for t in np.flatnonzero(np.array(record.reward) > 0):
        now = {name: values[t] for name, values in before.items()}
        shots = [shot for shot in now["f_bullets"] if shot[X] >= 0]
        if record.taken[t] == FIRE and now["shot_timer"] == 0:
            shots.append(np.array([now["sub_x"], now["sub_y"], now["sub_or"]]))
        for shot in shots:
            cell = (shot[X] + (1 if shot[RIGHT] else -1), shot[Y])
            if not 1 <= cell[0] <= 8:
                continue
            fish, subs = (_at(now[name], cell, ahead=False) for name in ("e_fish", "e_subs"))
            swimming_fish, swimming_subs = (_at(now[name], cell, ahead=True) for name in ("e_fish", "e_subs"))
            seen["shot strikes a fish"] += bool(fish)
            seen["shot strikes a submarine"] += bool(subs) and not fish
            seen["shot strikes one of several"] += len(fish) + len(subs) > 1
            if not fish and not subs:
                seen["fish swims into a shot"] += bool(swimming_fish) and not swimming_subs
                seen["submarine swims into a shot"] += bool(swimming_subs)
                seen["submarine that was hit shoots"] += bool(swimming_subs) and bool(swimming_subs[-1][SHOT] == 0)
    return seen


def _at(enemies: np.ndarray, cell: tuple[int, int], *, ahead: bool) -> list[np.ndarray]:
    """The enemies in a cell, or those that swim into it in this frame."""
    step = np.where(enemies[:, RIGHT] == 1, 1, -1) if ahead else 0
    there = (enemies[:, X] >= 0) & (enemies[:, X] + step == cell[0]) & (enemies[:, Y] == cell[1])
    return list(enemies[there & (enemies[:, TIMER] == 0) if ahead else there])


def rules(*, ramping: bool) -> Rules:
    return Rules(Seaquest(ramping=ramping), words.variables, words.encode, words.decode, words.outcomes)


PLAYS = (
    Play(players.wanderer),
    Play(players.rescuer),
    Play(players.rescuer, revive=players.revive, chunks=2),
    Play(players.submerged, revive=players.revive),
    Play(players.bobber, players.full_boat, revive=players.revive, patience=500),
    Play(players.rescuer, players.late, revive=players.revive),
    Play(players.gunner, players.late, revive=players.revive, lean=0.45),
    Play(players.gunner, players.scatter, patience=25),
    Play(players.gunner, players.ambush, patience=5),
)


@lengths
def test_seaquest_is_exact(times: int) -> None:
    seen = prove(rules(ramping=True), PLAYS, times, count)
    assert seen["frames"] >= 5_000 * times


def test_seaquest_is_exact_without_ramping() -> None:
    def surfacings(record: Record) -> dict[str, int]:
        return {name: n for name, n in count(record).items() if name in {"ramp", "surfacing below zero"}}

    prove(rules(ramping=False), (PLAYS[2], PLAYS[4]), 1, surfacings, frozenset({"ramp"}))


def test_bounds_are_reached_and_kept() -> None:
    """Two shots, two divers and thirty enemies, counted in the package's own lists where they are longest: after a newcomer."""
    game = original("seaquest", seed=1, lean=0.45).env
    rng = np.random.default_rng(1)
    players.late(game, rng)
    most: Counter[str] = Counter()

    def watch() -> None:
        enemies = len(game.e_fish) + len(game.e_subs)
        for name, n in (("shots", len(game.f_bullets)), ("divers", len(game.divers)), ("enemies", enemies)):
            most[name] = max(most[name], n)

    def watched(spawn: Callable[[], None]) -> Callable[[], None]:
        def spawned() -> None:
            spawn()
            watch()

        return spawned

    game._spawn_enemy, game._spawn_diver = watched(game._spawn_enemy), watched(game._spawn_diver)
    for _ in range(5_000):
        game.act(players.gunner(game, rng))
        watch()
        players.revive(game, rng)
    assert most == {"shots": MOST_SHOTS, "divers": MOST_DIVERS, "enemies": MOST_ENEMIES}


def test_starts_are_the_packages() -> None:
    prove_starts(rules(ramping=True), lambda start: [])
