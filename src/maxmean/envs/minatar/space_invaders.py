"""SpaceInvaders: a cannon against waves of aliens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from .game import FIRE, LEFT, NOOP, RIGHT, SIZE, MinAtar, cell, cells, moved

SHOT_INTERVAL = 5
ALIEN_MOVE_INTERVAL = 12
ALIEN_SHOT_INTERVAL = 10
FASTEST_WAVE = 6

_ALL = (1 << SIZE) - 1
_BOTTOM = 1 << (SIZE - 1)
_WAVE = tuple(0b1111 if 2 <= x < 8 else 0 for x in range(SIZE))


class SpaceInvadersState(NamedTuple):
    """Boards are columns of bits, uint16 [10]: bit y of column x is the cell in row y. The rest is int8 or bool."""

    cannon: jax.Array
    bullets: jax.Array
    """The cannon's; they rise."""
    bombs: jax.Array
    """The aliens' bullets; they fall."""
    aliens: jax.Array
    right: jax.Array
    """Whether the aliens march to the right."""
    move_interval: jax.Array
    """Frames between two moves of a large wave."""
    move_timer: jax.Array
    bomb_timer: jax.Array
    shot_timer: jax.Array
    ramp: jax.Array
    """How often a wave came faster than the one before."""


class Outcomes(NamedTuple):
    """Nothing in a frame is left to chance."""


def _wave() -> jax.Array:
    return jnp.array(_WAVE, jnp.uint16)


@dataclass(frozen=True)
class SpaceInvaders(MinAtar):
    """A point an alien. The last of a wave march faster; a cleared wave is followed by a faster one.

    The aliens march sideways, and down and back at the edge. The nearest one drops bombs. A bomb or an alien at the cannon, or
    aliens that would leave at the bottom, end the game.
    """

    game_name: ClassVar[str] = "space_invaders"
    channels: ClassVar[tuple[str, ...]] = (
        "cannon",
        "alien",
        "alien_left",
        "alien_right",
        "friendly_bullet",
        "enemy_bullet",
    )
    useful_actions: ClassVar[tuple[int, ...]] = (NOOP, LEFT, RIGHT, FIRE)

    def start(self, drawn: tuple[jax.Array, ...]) -> SpaceInvadersState:
        return SpaceInvadersState(
            cannon=jnp.int8(5),
            bullets=jnp.zeros(SIZE, jnp.uint16),
            bombs=jnp.zeros(SIZE, jnp.uint16),
            aliens=_wave(),
            right=jnp.bool_(False),
            move_interval=jnp.int8(ALIEN_MOVE_INTERVAL),
            move_timer=jnp.int8(ALIEN_MOVE_INTERVAL),
            bomb_timer=jnp.int8(ALIEN_SHOT_INTERVAL),
            shot_timer=jnp.int8(0),
            ramp=jnp.int8(0),
        )

    def outcomes(self, drawn: tuple[jax.Array, ...]) -> Outcomes:
        return Outcomes()

    def frame(
        self, game: SpaceInvadersState, action: jax.Array, outcomes: Outcomes
    ) -> tuple[SpaceInvadersState, jax.Array, jax.Array]:
        column = jnp.arange(SIZE, dtype=jnp.int8)
        fires = (action == FIRE) & (game.shot_timer == 0)
        muzzle = jnp.where(fires & (column == game.cannon), _BOTTOM, 0).astype(jnp.uint16)
        bullets = (game.bullets | muzzle) >> 1
        cannon = moved(game.cannon, action == LEFT, action == RIGHT)
        at_cannon = jnp.where(column == cannon, _BOTTOM, 0).astype(jnp.uint16)
        bombs = (game.bombs << 1) & _ALL

        marched, right, landed = self._march(game)
        moves = game.move_timer == 0
        aliens = jnp.where(moves, marched, game.aliens)
        over = jnp.any((bombs | game.aliens | aliens) & at_cannon != 0) | (moves & landed)

        drops = game.bomb_timer == 0
        bombs = bombs | jnp.where(drops & self._nearest(aliens, cannon), _lowest(aliens), jnp.uint16(0))

        hit = aliens & bullets
        reward = jnp.sum(jax.lax.population_count(hit))
        bullets, left = bullets & ~hit, aliens & ~hit
        cleared = jnp.all(left == 0)
        ramps = cleared & (game.move_interval > FASTEST_WAVE) & self.ramping

        count = jnp.sum(jax.lax.population_count(game.aliens)).astype(jnp.int8)
        move_timer = jnp.where(moves, jnp.minimum(count, game.move_interval), game.move_timer)
        shot_timer = jnp.where(fires, SHOT_INTERVAL, game.shot_timer).astype(jnp.int8)
        after = SpaceInvadersState(
            cannon=cannon,
            bullets=bullets,
            bombs=bombs,
            aliens=jnp.where(cleared, _wave(), left),
            right=jnp.where(moves, right, game.right),
            move_interval=game.move_interval - ramps.astype(jnp.int8),
            move_timer=move_timer - jnp.int8(1),
            bomb_timer=jnp.where(drops, ALIEN_SHOT_INTERVAL, game.bomb_timer).astype(jnp.int8) - jnp.int8(1),
            shot_timer=shot_timer - (shot_timer > 0).astype(jnp.int8),
            ramp=game.ramp + ramps.astype(jnp.int8),
        )
        return after, reward, over

    def _march(self, game: SpaceInvadersState) -> tuple[jax.Array, jax.Array, jax.Array]:
        """The wave after its next move, its direction, and whether it has reached the ground."""
        aliens = game.aliens
        turns = jnp.where(game.right, aliens[SIZE - 1], aliens[0]) != 0
        lower = ((aliens << 1) & _ALL) | (aliens >> (SIZE - 1))
        aside = jnp.where(game.right, jnp.roll(aliens, 1), jnp.roll(aliens, -1))
        return jnp.where(turns, lower, aside), game.right ^ turns, turns & jnp.any(aliens & _BOTTOM != 0)

    def _nearest(self, aliens: jax.Array, cannon: jax.Array) -> jax.Array:
        """The column with aliens that is nearest to the cannon, the left one of two: bool [10]."""
        column = jnp.arange(SIZE, dtype=jnp.int8)
        distance = 2 * jnp.abs(column - cannon) + (column > cannon)
        distance = jnp.where(aliens != 0, distance, 100)
        return distance == jnp.min(distance)

    def observe_game(self, game: SpaceInvadersState) -> jax.Array:
        alien, bullet, bomb = (cells(board).T for board in (game.aliens, game.bullets, game.bombs))
        cannon = cell(jnp.int8(SIZE - 1), game.cannon)
        return jnp.stack([cannon, alien, alien & ~game.right, alien & game.right, bullet, bomb], axis=-1)


def _lowest(aliens: jax.Array) -> jax.Array:
    """The lowest alien of each column: its highest bit alone."""
    filled = aliens
    for shift in (1, 2, 4, 8):
        filled = filled | (filled >> shift)
    return filled ^ (filled >> 1)
