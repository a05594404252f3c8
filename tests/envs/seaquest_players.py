"""Who plays Seaquest, and from where."""

from __future__ import annotations

from typing import Any

from envs.recording import Random
from maxmean.envs.minatar import DOWN, FIRE, LEFT, NOOP, RIGHT, UP


def wanderer(game: Any, rng: Random) -> int:
    return int(rng.integers(6))


def gunner(game: Any, rng: Random) -> int:
    return FIRE if rng.random() < 0.5 else int(rng.integers(1, 5))


def rescuer(game: Any, rng: Random) -> int:
    """Fetches divers, fires at who is in its row, and surfaces in time or with a full boat."""
    if rng.random() < 0.15:
        return int(rng.integers(6))
    if game.diver_count == 6 or (game.oxygen < 25 and game.diver_count != 0):
        return UP
    if game.shot_timer == 0 and any(enemy[1] == game.sub_y for enemy in game.e_fish + game.e_subs):
        return FIRE
    if not game.divers:
        return DOWN if game.sub_y < 4 else NOOP
    x, y, right, _ = game.divers[0]
    x += 1 if right else -1
    if y != game.sub_y:
        return UP if y < game.sub_y else DOWN
    return LEFT if x < game.sub_x else RIGHT


def submerged(game: Any, rng: Random) -> int:
    """Never comes up."""
    return DOWN if game.sub_y < 3 else int(rng.choice([NOOP, LEFT, RIGHT, DOWN, FIRE]))


def bobber(game: Any, rng: Random) -> int:
    """Dives and surfaces all the time."""
    return DOWN if game.sub_y == 0 else UP


def full_boat(game: Any, rng: Random) -> None:
    """Six divers on board, about to surface."""
    game.reset()
    game.diver_count, game.sub_y, game.surface = 6, 3, False
    game.oxygen = int(rng.integers(1, 200))


def late(game: Any, rng: Random) -> None:
    """The hardest stage, with an empty sea that fills."""
    full_boat(game, rng)
    game.e_spawn_speed, game.e_spawn_timer, game.move_speed, game.ramp_index = 1, 0, 2, 19


def ambush(game: Any, rng: Random) -> None:
    """Enemies right before the player, in its row and on their way to it, about to move and to shoot."""
    game.reset()
    game.sub_x, game.sub_y, game.surface, game.sub_or = int(rng.integers(3, 7)), 4, False, bool(rng.integers(2))
    forth = 1 if game.sub_or else -1
    for away in (1, 2, 3):
        for kind, rest in ((game.e_fish, []), (game.e_subs, [int(rng.integers(2))])):
            if rng.random() < 0.4:
                kind.append([game.sub_x + away * forth, 4, not game.sub_or, int(rng.integers(2)), *rest])


def revive(game: Any, rng: Random) -> None:
    """Nothing but a fresh tank; the enemies stay."""
    game.terminal = False
    if game.oxygen <= 0:
        game.oxygen = 200


def scatter(game: Any, rng: Random) -> None:
    """Any number of enemies, divers and torpedoes that can be in the sea together, and the player among them."""
    game.reset()
    game.move_speed = int(rng.integers(2, 6))
    fastest = game.move_speed == 2
    game.e_spawn_speed = int(rng.integers(1, 15)) if fastest else int(rng.integers(14, 21))
    game.e_spawn_timer = int(rng.integers(game.e_spawn_speed))
    game.ramp_index = 20 - game.e_spawn_speed
    game.sub_y, game.sub_or = int(rng.integers(9)), bool(rng.integers(2))
    game.sub_x = int(rng.integers(1, 10)) if game.sub_or else int(rng.integers(9))
    game.surface = game.sub_y == 0
    game.oxygen, game.diver_count = int(rng.integers(201)), int(rng.integers(-2, 7))
    game.shot_timer = int(rng.integers(3))
    _scatter_enemies(game, rng, most=29 if fastest else 15)
    _scatter_divers(game, rng)
    for _ in range(int(rng.integers(20))):
        game.e_bullets.append([int(rng.integers(10)), int(rng.integers(1, 9)), bool(rng.integers(2))])


def _scatter_enemies(game: Any, rng: Random, most: int) -> None:
    """An enemy's age in frames, unlike all others', says where it is: it moves every ``move_speed + 1`` frames.

    When a submarine shoots is left open: a faster stage that begins during its life shifts its moves against its shots. At one
    speed, no submarine moves and shoots in the same frame.
    """
    period = game.move_speed + 1
    ages = rng.choice(10 * period - 1, size=int(rng.integers(1, most + 1)), replace=False)
    directions = rng.integers(2, size=9)
    for age in sorted(ages.tolist(), reverse=True):
        y = int(rng.integers(1, 9))
        right, steps = bool(directions[y]), (age + 1) // period
        enemy = [steps if right else 9 - steps, y, right, period - 1 - (age + 1) % period]
        if rng.random() < 0.5:
            game.e_subs.append([*enemy, int(rng.integers(11))])
        else:
            game.e_fish.append(enemy)


def _scatter_divers(game: Any, rng: Random) -> None:
    """One comes every thirty frames, moves every six, and may have been taken on board since."""
    game.d_spawn_timer = int(rng.integers(30))
    for age in (59 - game.d_spawn_timer, 29 - game.d_spawn_timer):
        right, steps = bool(rng.integers(2)), (age + 1) // 6
        if steps < 10 and rng.random() < 0.7:
            game.divers.append([steps if right else 9 - steps, int(rng.integers(1, 9)), right, 5 - (age + 1) % 6])
