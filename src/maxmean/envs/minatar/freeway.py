"""Freeway: a chicken crosses eight lanes of traffic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from ..random import below
from .game import DOWN, NOOP, SIZE, UP, MinAtar, cell, moved

LANES = 8
"""The car of lane i drives in row i + 1."""
COLUMN = 4
"""Where the chicken crosses."""
REST = 3
"""Frames between two steps of the chicken."""


class FreewayState(NamedTuple):
    """Everything is int8."""

    chicken: jax.Array
    """The chicken's row."""
    rest: jax.Array
    """Frames until it can step again."""
    x: jax.Array
    """[8]: the cars' columns."""
    timer: jax.Array
    """[8]: frames until each car moves."""
    speed: jax.Array
    """[8]: frames between two moves, 1 to 5; negative for cars that drive to the left."""


class Outcomes(NamedTuple):
    """The speeds that the cars get when the chicken arrives: int8 [8], -5 to -1 or 1 to 5."""

    speed: jax.Array


@dataclass(frozen=True)
class Freeway(MinAtar):
    """A point for each crossing; then all cars change their speeds. A car sends the chicken back to the start.

    The timer runs out in the 2,501st frame. That is truncation: the game could go on.
    """

    step_limit: int = 2_501

    game_name: ClassVar[str] = "freeway"
    channels: ClassVar[tuple[str, ...]] = ("chicken", "car", "speed1", "speed2", "speed3", "speed4", "speed5")
    useful_actions: ClassVar[tuple[int, ...]] = (NOOP, UP, DOWN)
    frame_words: ClassVar[int] = 5
    start_words: ClassVar[int] = 5

    def start(self, drawn: tuple[jax.Array, ...]) -> FreewayState:
        speed = self.outcomes(drawn).speed
        return FreewayState(
            chicken=jnp.int8(SIZE - 1),
            rest=jnp.int8(REST),
            x=jnp.zeros(LANES, jnp.int8),
            timer=jnp.abs(speed),
            speed=speed,
        )

    def outcomes(self, drawn: tuple[jax.Array, ...]) -> Outcomes:
        """Eight even speeds out of five, from four words' halves, and eight even directions, from one word's bits."""
        lanes = jnp.arange(LANES, dtype=jnp.uint32)
        halves = jnp.stack([half for word in drawn[:4] for half in (word, word << 16)])
        left = (drawn[4] >> lanes) & 1 != 0
        pace = 1 + below(halves, 5)
        return Outcomes(jnp.where(left, -pace, pace).astype(jnp.int8))

    def frame(
        self, game: FreewayState, action: jax.Array, outcomes: Outcomes
    ) -> tuple[FreewayState, jax.Array, jax.Array]:
        rested = game.rest == 0
        up, down = rested & (action == UP), rested & (action == DOWN)
        chicken = moved(game.chicken, up, down)
        rest = jnp.where(up | down, REST, game.rest).astype(jnp.int8)

        across = chicken == 0
        chicken = jnp.where(across, SIZE - 1, chicken).astype(jnp.int8)
        speed = jnp.where(across, outcomes.speed, game.speed)
        timer = jnp.where(across, jnp.abs(speed), game.timer)

        drives = timer == 0
        ahead = game.x + jnp.sign(speed)
        ahead = jnp.where(ahead < 0, SIZE - 1, jnp.where(ahead >= SIZE, 0, ahead)).astype(jnp.int8)
        x = jnp.where(drives, ahead, game.x)
        # A car hits the chicken where it stands or where it drives. The start's row has no cars: nobody is hit twice.
        lane = jnp.arange(1, LANES + 1, dtype=jnp.int8)
        hit = jnp.any((lane == chicken) & ((game.x == COLUMN) | (x == COLUMN)))
        after = FreewayState(
            chicken=jnp.where(hit, SIZE - 1, chicken).astype(jnp.int8),
            rest=rest - (rest > 0).astype(jnp.int8),
            x=x,
            timer=jnp.where(drives, jnp.abs(speed), timer - jnp.int8(1)),
            speed=speed,
        )
        return after, across, jnp.bool_(False)

    def observe_game(self, game: FreewayState) -> jax.Array:
        column = jnp.arange(SIZE, dtype=jnp.int8)
        back = game.x - jnp.sign(game.speed)
        back = jnp.where(back < 0, SIZE - 1, jnp.where(back >= SIZE, 0, back))
        car = game.x[:, None] == column
        trail = back[:, None] == column
        pace = jnp.abs(game.speed)[:, None]
        lanes = [car] + [trail & (pace == n) for n in range(1, 6)]
        return jnp.stack(
            [cell(game.chicken, jnp.int8(COLUMN)), *(jnp.pad(lane, ((1, 1), (0, 0))) for lane in lanes)], axis=-1
        )
