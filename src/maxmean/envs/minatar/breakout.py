"""Breakout: keep the ball in play and break the wall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from ..random import coin
from .game import LEFT, NOOP, RIGHT, SIZE, MinAtar, four_channels, moved

WALL = (1 << 30) - 1
"""All bricks: bit 10 (y - 1) + x is the brick in row y (1 to 3) and column x."""


class BreakoutState(NamedTuple):
    """The ball travels along diagonals; it was at ``last`` a frame ago."""

    paddle: jax.Array
    ball_x: jax.Array
    ball_y: jax.Array
    last_x: jax.Array
    last_y: jax.Array
    right: jax.Array
    """Whether the ball travels to the right."""
    down: jax.Array
    struck: jax.Array
    """Whether the ball was in a brick in the last frame: it does not break two in a row."""
    bricks: jax.Array


class Outcomes(NamedTuple):
    """Nothing in a frame is left to chance."""


@dataclass(frozen=True)
class Breakout(MinAtar):
    """A paddle at the bottom, three rows of bricks at the top, one point a brick. The game ends when the ball is lost.

    The ball is reflected by walls, bricks and paddle; met by the paddle's very cell it goes back where it came from. When the
    last brick is gone, the next ball that comes down finds a new wall.
    """

    game_name: ClassVar[str] = "breakout"
    channels: ClassVar[tuple[str, ...]] = ("paddle", "ball", "trail", "brick")
    useful_actions: ClassVar[tuple[int, ...]] = (NOOP, LEFT, RIGHT)
    start_words: ClassVar[int] = 1

    def start(self, drawn: tuple[jax.Array, ...]) -> BreakoutState:
        """The ball comes from the upper left or the upper right, evenly."""
        from_right = coin(drawn[0], 0)
        x = jnp.where(from_right, 9, 0).astype(jnp.int8)
        y = jnp.int8(3)
        return BreakoutState(
            paddle=jnp.int8(4),
            ball_x=x,
            ball_y=y,
            last_x=x,
            last_y=y,
            right=~from_right,
            down=jnp.bool_(True),
            struck=jnp.bool_(False),
            bricks=jnp.uint32(WALL),
        )

    def outcomes(self, drawn: tuple[jax.Array, ...]) -> Outcomes:
        return Outcomes()

    def frame(
        self, game: BreakoutState, action: jax.Array, outcomes: Outcomes
    ) -> tuple[BreakoutState, jax.Array, jax.Array]:
        paddle = moved(game.paddle, action == LEFT, action == RIGHT)
        x = game.ball_x + jnp.where(game.right, 1, -1).astype(jnp.int8)
        y = game.ball_y + jnp.where(game.down, 1, -1).astype(jnp.int8)

        aside = (x < 0) | (x >= SIZE)
        x = jnp.clip(x, 0, SIZE - 1)
        right = game.right ^ aside

        top = y < 0
        place = jnp.clip((y - 1) * SIZE + x, 0, 29).astype(jnp.uint32)
        in_brick = (y >= 1) & (y <= 3) & ((game.bricks >> place) & 1 != 0)
        breaks = in_brick & ~game.struck
        bottom = y == SIZE - 1
        flat = bottom & (game.ball_x == paddle)  # the ball comes down onto the paddle
        corner = bottom & ~flat & (x == paddle)  # the paddle has come to meet it

        bricks = jnp.where(breaks, game.bricks & ~(jnp.uint32(1) << place), game.bricks)
        bricks = jnp.where(bottom & (game.bricks == 0), jnp.uint32(WALL), bricks)
        after = BreakoutState(
            paddle=paddle,
            ball_x=x,
            ball_y=jnp.where(breaks | flat | corner, game.ball_y, jnp.maximum(y, 0)),
            last_x=game.ball_x,
            last_y=game.ball_y,
            right=right ^ corner,
            down=game.down ^ (top | breaks | flat | corner),
            struck=in_brick,
            bricks=bricks,
        )
        return after, breaks, bottom & ~flat & ~corner

    def observe_game(self, game: BreakoutState) -> jax.Array:
        place = jnp.arange(SIZE * SIZE, dtype=jnp.int32).reshape(SIZE, SIZE)

        def at(y: jax.Array, x: jax.Array) -> jax.Array:
            return place == SIZE * y.astype(jnp.int32) + x

        in_wall = (place >= SIZE) & (place < 4 * SIZE)
        brick = (game.bricks >> jnp.clip(place - SIZE, 0, 31).astype(jnp.uint32)) & 1 != 0
        return four_channels(
            at(jnp.int32(SIZE - 1), game.paddle),
            at(game.ball_y, game.ball_x),
            at(game.last_y, game.last_x),
            in_wall & brick,
        )
