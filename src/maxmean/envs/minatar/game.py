"""What the five games share: ten by ten cells, six actions, sticky actions, a step limit.

The rules are those of MinAtar (Young and Tian, 2019): a game is given by its start, by what one frame does, and by what is seen.
Each game says these three things in a file of its own. Where a frame needs chance, it gets it as *outcomes* that were drawn
before, so that a frame is a plain function and can be compared with another implementation, outcome by outcome.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..environment import EnvError, Environment, Step, check_action
from ..random import chance, key_words, words

NOOP, LEFT, UP, RIGHT, DOWN, FIRE = range(6)
"""The actions of all games."""

SIZE = 10
"""Cells in a row and in a column."""


class State(NamedTuple):
    """A game with what surrounds it."""

    game: Any
    """The game's own state."""
    last_action: jax.Array
    """uint8: the action that a sticky frame repeats; it survives a reset."""
    time: jax.Array
    """uint16: frames since the start of the episode."""


@dataclass(frozen=True)
class MinAtar(Environment):
    """One of the five games, with MinAtar's options.

    Observations are bool [10, 10, channels]. Actions are 0 nothing, 1 left, 2 up, 3 right, 4 down, 5 fire, or, with
    ``minimal_actions``, those of them that do something in this game, in the same order.
    """

    sticky: float = 0.1
    """Probability that a frame repeats the last action instead of the one given."""
    ramping: bool = True
    """Whether the game becomes harder over time (Asterix, Seaquest and SpaceInvaders)."""
    minimal_actions: bool = False
    """Whether actions without effect are left out."""
    step_limit: int = 10_000
    """Frames after which an episode is truncated; at most 65,535."""

    game_name: ClassVar[str]
    channels: ClassVar[tuple[str, ...]]
    """What each channel of an observation shows."""
    useful_actions: ClassVar[tuple[int, ...]]
    """The actions that do something."""
    frame_words: ClassVar[int] = 0
    """Random words that a frame needs."""
    start_words: ClassVar[int] = 0
    """Random words that a start needs."""

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, _fitting(field.name, getattr(self, field.name), field.default))
        if not 0.0 <= self.sticky <= 1.0:
            raise EnvError(f"sticky must be a probability from 0 to 1, not {self.sticky}")
        if not 1 <= self.step_limit <= 65_535:
            raise EnvError(f"step_limit must be from 1 to 65,535, not {self.step_limit}")

    @abstractmethod
    def start(self, drawn: tuple[jax.Array, ...]) -> Any:
        """The game at the start of an episode, from ``start_words`` random words."""

    @abstractmethod
    def outcomes(self, drawn: tuple[jax.Array, ...]) -> Any:
        """What chance may do in one frame, from ``frame_words`` random words."""

    @abstractmethod
    def frame(self, game: Any, action: jax.Array, outcomes: Any) -> tuple[Any, jax.Array, jax.Array]:
        """One frame: the new game, the reward and whether the game is over."""

    @abstractmethod
    def observe_game(self, game: Any) -> jax.Array:
        """The cells of all channels: bool [10, 10, channels]."""

    @property
    def actions(self) -> tuple[int, ...]:
        """Which of MinAtar's six actions each of ours is."""
        return self.useful_actions if self.minimal_actions else tuple(range(6))

    @property
    def name(self) -> str:
        return f"minatar/{self.game_name}"

    @property
    def n_actions(self) -> int:
        return len(self.actions)

    def reset(self, key: jax.Array, previous: State | None = None) -> tuple[State, jax.Array]:
        """Start an episode. MinAtar does not forget the last action when an episode ends: hand over the ``previous`` state."""
        _check_alone(key, previous)
        game = self.start(words(key, self.start_words))
        last = jnp.uint8(NOOP) if previous is None else previous.last_action
        state = State(game, last, jnp.uint16(0))
        return state, self.observe(_settled(state, key_words(key)[0]))

    def step(self, key: jax.Array, state: State, action: jax.Array) -> Step:
        """One frame with chance drawn from ``key``."""
        _check_alone(key, state)
        check_action(action, self.n_actions)
        drawn = words(key, 1 + self.frame_words)
        return self.advance(state, action, chance(drawn[0], self.sticky), self.outcomes(drawn[1:]))

    def advance(self, state: State, action: jax.Array, stuck: jax.Array, outcomes: Any) -> Step:
        """One frame with given chance: ``stuck`` says whether the last action is repeated."""
        chosen = self._minatar_action(action)
        taken = jnp.where(stuck, state.last_action, chosen.astype(jnp.uint8))
        game, reward, over = self.frame(state.game, taken, outcomes)
        time = state.time + jnp.uint16(1)
        after = State(game, taken, time)
        return Step(
            after,
            self.observe(_settled(after, time)),
            reward.astype(jnp.float32),
            over,
            (time >= self.step_limit) & ~over,
        )

    def observe(self, state: State) -> jax.Array:
        _check_alone(None, state)
        return self.observe_game(state.game)

    def _minatar_action(self, action: jax.Array) -> jax.Array:
        """The MinAtar action behind ``action``, without a look-up: the sets are tiny."""
        action = jnp.asarray(action)
        if self.actions == tuple(range(6)):
            return action
        return sum((jnp.where(action == i, a, 0) for i, a in enumerate(self.actions)), start=jnp.zeros_like(action))


def _fitting(option: str, value: Any, default: Any) -> Any:
    """``value`` in the default's own type, so that equal environments are equal and hash alike."""
    if isinstance(default, bool):
        if not isinstance(value, bool | np.bool_):
            raise EnvError(f"{option} must be True or False, not {value!r}")
        return bool(value)
    if isinstance(default, int):
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise EnvError(f"{option} must be an integer, not {value!r}")
        return int(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise EnvError(f"{option} must be a number, not {value!r}")
    return float(value)


def _check_alone(key: jax.Array | None, state: State | None) -> None:
    """Refuse several keys or several states; their shapes are known when a function is traced, so that this costs nothing."""
    shapes = {
        "key": () if key is None else key_words(key).shape[:-1],
        "state": () if state is None else np.shape(state.time),
    }
    for what, shape in shapes.items():
        if shape:
            raise EnvError(f"one {what} is expected, not {list(shape)} of them: jax.vmap is there for many")


def _settled(state: State, number: jax.Array) -> State:
    """The same state, in a form that XLA computes once.

    An observation reads the state for each of its cells, and XLA would rather compute a state, random words and all, for each of
    them than store it: up to a hundred times slower. Only a division by an unknown number is too dear for it to repeat. So all is
    divided by a one, made of any ``number``, that it cannot see through.
    """
    bit = number & 1
    one = 1 + (bit & (bit ^ 1))

    def settled(leaf: jax.Array) -> jax.Array:
        if leaf.dtype == jnp.bool_:
            return leaf.astype(jnp.uint8) // one.astype(jnp.uint8) != 0
        return jax.lax.div(leaf, jnp.broadcast_to(one.astype(leaf.dtype), leaf.shape))

    return jax.tree.map(settled, state)


def four_channels(*shown: jax.Array) -> jax.Array:
    """Four channels, bool [10, 10] each, as one observation [10, 10, 4].

    All four of a cell are made at once, as the bytes of a word, which is up to twice as fast as to stack them.
    """
    word = sum((channel.astype(jnp.uint32) << (8 * i) for i, channel in enumerate(shown)), jnp.uint32(0))
    return jax.lax.bitcast_convert_type(word, jnp.uint8) != 0


def cells(rows: jax.Array, width: int = SIZE) -> jax.Array:
    """Rows of bits as cells: bit x of row y becomes cell [y, x]."""
    return (rows[..., None] >> jnp.arange(width, dtype=rows.dtype)) & 1 != 0


def cell(y: jax.Array, x: jax.Array) -> jax.Array:
    """Ten by ten cells of which one is set, or none if (y, x) lies outside."""
    place = jnp.arange(SIZE, dtype=jnp.int8)
    return (place[:, None] == y) & (place[None, :] == x)


def moved(position: jax.Array, back: jax.Array, forth: jax.Array, low: int = 0, high: int = SIZE - 1) -> jax.Array:
    """A position (int8) after a move back or forth, kept within its bounds."""
    return jnp.clip(position - back.astype(jnp.int8) + forth.astype(jnp.int8), low, high)
