"""Asterix: collect gold, keep out of everybody's way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from ..random import below, chance, coin
from .game import DOWN, LEFT, NOOP, RIGHT, SIZE, UP, MinAtar, cell, four_channels, moved

LANES = 8
"""Rows 1 to 8, each with at most one visitor."""
SPAWN_INTERVAL = 10
MOVE_INTERVAL = 5
RAMP_INTERVAL = 100
LANE_CHOICES = 840


class AsterixState(NamedTuple):
    """Everything is int8 or bool; a visitor of lane i walks in row i + 1."""

    player_x: jax.Array
    player_y: jax.Array
    x: jax.Array
    """[8]: the visitors' columns, -1 in an empty lane."""
    right: jax.Array
    """[8]: whether the visitor walks to the right."""
    gold: jax.Array
    """[8]: whether it is gold; an enemy else."""
    spawn_interval: jax.Array
    spawn_timer: jax.Array
    move_interval: jax.Array
    move_timer: jax.Array
    ramp_timer: jax.Array
    ramp: jax.Array
    """How often the game has become harder."""


class Outcomes(NamedTuple):
    """Who comes, should it be time for somebody to come."""

    right: jax.Array
    """Whether the newcomer walks to the right (1/2)."""
    gold: jax.Array
    """Whether it is gold (1/3)."""
    lane: jax.Array
    """int32, 0 to 839: of n empty lanes it takes number ``lane % n`` from the top; 840 divides by all n up to 8."""


@dataclass(frozen=True)
class Asterix(MinAtar):
    """Walk freely in rows 1 to 8. Gold is a point; an enemy is the end. Over time they come more often and faster."""

    game_name: ClassVar[str] = "asterix"
    channels: ClassVar[tuple[str, ...]] = ("player", "enemy", "trail", "gold")
    useful_actions: ClassVar[tuple[int, ...]] = (NOOP, LEFT, UP, RIGHT, DOWN)
    frame_words: ClassVar[int] = 3

    def start(self, drawn: tuple[jax.Array, ...]) -> AsterixState:
        return AsterixState(
            player_x=jnp.int8(5),
            player_y=jnp.int8(5),
            x=jnp.full(LANES, -1, jnp.int8),
            right=jnp.zeros(LANES, bool),
            gold=jnp.zeros(LANES, bool),
            spawn_interval=jnp.int8(SPAWN_INTERVAL),
            spawn_timer=jnp.int8(SPAWN_INTERVAL),
            move_interval=jnp.int8(MOVE_INTERVAL),
            move_timer=jnp.int8(MOVE_INTERVAL),
            ramp_timer=jnp.int8(RAMP_INTERVAL),
            ramp=jnp.int8(0),
        )

    def outcomes(self, drawn: tuple[jax.Array, ...]) -> Outcomes:
        return Outcomes(coin(drawn[0], 0), chance(drawn[1], 1 / 3), below(drawn[2], LANE_CHOICES))

    def frame(
        self, game: AsterixState, action: jax.Array, outcomes: Outcomes
    ) -> tuple[AsterixState, jax.Array, jax.Array]:
        x, right, gold = self._spawn(game, outcomes)
        player_x = moved(game.player_x, action == LEFT, action == RIGHT)
        player_y = moved(game.player_y, action == UP, action == DOWN, 1, LANES)

        # The player may walk into a visitor, and then a visitor into the player.
        here = jnp.arange(1, LANES + 1, dtype=jnp.int8) == player_y
        met = here & (x == player_x)
        x = jnp.where(met & gold, -1, x)
        walk = game.move_timer == 0
        stepped = x + jnp.where(right, 1, -1).astype(jnp.int8)
        x = jnp.where(walk & (x >= 0), jnp.where(stepped >= SIZE, -1, stepped), x)
        met_again = walk & here & (x == player_x)
        x = jnp.where(met_again & gold, -1, x)
        reward = jnp.sum(met & gold) + jnp.sum(met_again & gold)
        over = jnp.any((met | met_again) & ~gold)

        spawn_timer = jnp.where(game.spawn_timer == 0, game.spawn_interval, game.spawn_timer) - jnp.int8(1)
        move_timer = jnp.where(walk, game.move_interval, game.move_timer) - jnp.int8(1)
        after = game._replace(
            player_x=player_x,
            player_y=player_y,
            x=x,
            right=right,
            gold=gold,
            spawn_timer=spawn_timer,
            move_timer=move_timer,
        )
        return self._ramp(after), reward, over

    def _spawn(self, game: AsterixState, outcomes: Outcomes) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Let a newcomer in where a lane is empty; with all lanes taken, nobody comes."""
        empty = game.x < 0
        lanes = jnp.arange(LANES)
        place = jnp.sum(empty[None, :] & (lanes[None, :] < lanes[:, None]), axis=1)
        chosen = empty & (place == outcomes.lane % jnp.maximum(jnp.sum(empty), 1)) & (game.spawn_timer == 0)
        x = jnp.where(chosen, jnp.where(outcomes.right, 0, SIZE - 1).astype(jnp.int8), game.x)
        return x, jnp.where(chosen, outcomes.right, game.right), jnp.where(chosen, outcomes.gold, game.gold)

    def _ramp(self, game: AsterixState) -> AsterixState:
        """Every hundred frames or so newcomers come more often, and every other time everybody walks faster."""
        if not self.ramping:
            return game
        open_ended = (game.spawn_interval > 1) | (game.move_interval > 1)
        waiting = game.ramp_timer >= 0
        due = open_ended & ~waiting
        faster = due & (game.move_interval > 1) & (game.ramp % 2 == 1)
        oftener = due & (game.spawn_interval > 1)
        counted = game.ramp_timer - (open_ended & waiting).astype(jnp.int8)
        return game._replace(
            move_interval=game.move_interval - faster.astype(jnp.int8),
            spawn_interval=game.spawn_interval - oftener.astype(jnp.int8),
            ramp=game.ramp + due.astype(jnp.int8),
            ramp_timer=jnp.where(due, RAMP_INTERVAL, counted).astype(jnp.int8),
        )

    def observe_game(self, game: AsterixState) -> jax.Array:
        rows = jnp.pad(jnp.stack([game.x, game.x - jnp.where(game.right, 1, -1).astype(jnp.int8)]), ((0, 0), (1, 1)))
        taken, gold = jnp.pad(game.x >= 0, 1), jnp.pad(game.gold, 1)
        column = jnp.arange(SIZE, dtype=jnp.int8)
        at = (rows[0][:, None] == column) & taken[:, None]
        trail = (rows[1][:, None] == column) & taken[:, None]
        player = cell(game.player_y, game.player_x)
        return four_channels(player, at & ~gold[:, None], trail, at & gold[:, None])
