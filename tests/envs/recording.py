"""Plays of the ``minatar`` package's games, recorded with everything that chance decided in them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np

from maxmean.envs.minatar import MinAtar, State

CHUNK = 1_000
"""Frames that are recorded, replayed and compared at a time: all chunks of a game share one compiled scan."""

Variables = dict[str, Any]
"""The package's state variables by name: numbers or arrays of a fixed shape, in a record with a leading axis for time."""
Random = np.random.Generator


def typed(value: Any, dtype: Any) -> Any:
    """A NumPy array for where ours says ``jax.Array``."""
    return np.asarray(value, dtype)


def int8(value: Any) -> Any:
    return typed(value, np.int8)


def flag(value: Any) -> Any:
    return typed(value, bool)


def original(name: str, *, sticky: float = 0.1, ramping: bool = True, seed: int = 0, lean: float = 1.0) -> Any:
    """The package's environment with :class:`Dice` in place of its generator."""
    environment = importlib.import_module("minatar").Environment(name, sticky, ramping)
    environment.random = environment.env.random = Dice(seed, lean)
    environment.reset()
    environment.random.take()
    return environment


class Dice:
    """Stands in for NumPy's ``RandomState`` and remembers what it gave.

    Uniform numbers are multiplied by ``lean``: below one half, all directions are to the right.
    """

    def __init__(self, seed: int, lean: float = 1.0) -> None:
        self._random = np.random.default_rng(seed)
        self._lean = lean
        self._given: list[Any] = []

    def rand(self, *shape: int) -> Any:
        return self._give(self._random.random(shape or None) * self._lean)

    def randint(self, low: int, high: int | None = None, size: int | None = None) -> Any:
        return self._give(self._random.integers(low, high, size))

    def take(self) -> list[Any]:
        """All that was given since the last time."""
        given, self._given = self._given, []
        return given

    def _give(self, value: Any) -> Any:
        self._given.append(np.copy(value) if np.ndim(value) else value)
        return value


class Script:
    """Stands in for NumPy's ``RandomState`` and gives what was written before."""

    def __init__(self, lines: list[Any]) -> None:
        self.lines = lines

    def rand(self, *shape: int) -> Any:
        return self.lines.pop(0)

    def randint(self, *bounds: int) -> Any:
        return self.lines.pop(0)


@dataclass(frozen=True)
class Rules:
    """How to tell our words for a game from the package's."""

    env: MinAtar
    variables: Callable[[Any], Variables]
    """The package's game to its state variables."""
    encode: Callable[[Any], Any]
    """The package's game to our state of the game."""
    decode: Callable[[Any, np.ndarray], Variables]
    """Our states of the game, and the times, to the package's state variables, all with a leading axis."""
    outcomes: Callable[[list[Any], Random], Any]
    """What the dice gave in a frame to our outcomes; what they did not give is arbitrary, and ours must not look at it."""
    timed: bool = False
    """Whether the package ends the game where ours truncates it."""


@dataclass(frozen=True)
class Play:
    """Who plays, and from where."""

    player: Callable[[Any, Random], int]
    """The package's game to an action."""
    start: Callable[[Any, Random], None] = lambda game, rng: game.reset()
    """Brings the package's game to the start of an episode."""
    revive: Callable[[Any, Random], None] | None = None
    """What follows an end, instead of a new start."""
    patience: int = 100_000
    """Frames after which the next episode starts in any case."""
    sticky: float = 0.1
    lean: float = 1.0
    chunks: int = 1
    """Its length in the short suite."""


class Feed(NamedTuple):
    """What ours is given; each field has a leading axis for time."""

    fresh: np.ndarray
    """Whether the frame begins in ``state`` instead of where the last one ended."""
    state: State
    action: Any
    stuck: Any
    outcomes: Any


@dataclass
class Record:
    """A stretch of a play of the package's game: an entry a frame."""

    before: list[Variables] = field(default_factory=list)
    after: list[Variables] = field(default_factory=list)
    observation: list[np.ndarray] = field(default_factory=list)
    reward: list[float] = field(default_factory=list)
    terminal: list[bool] = field(default_factory=list)
    action: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    """The action after stickiness."""
    stuck: list[bool] = field(default_factory=list)
    outcomes: list[Any] = field(default_factory=list)
    time: list[int] = field(default_factory=list)
    fresh: list[bool] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    """Which of ``starts`` the frame's episode had."""
    starts: list[State] = field(default_factory=list)
    """In our words."""

    def variables(self) -> tuple[Variables, Variables]:
        """The package's state variables before and after each frame, as arrays."""
        return _stack_variables(self.before), _stack_variables(self.after)

    def feed(self) -> Feed:
        starts, place = _stack(self.starts), np.array(self.start)
        return Feed(
            np.array(self.fresh),
            jax.tree.map(lambda leaf: leaf[place], starts),
            np.array(self.action, np.int32),
            np.array(self.stuck),
            _stack(self.outcomes),
        )


def recorded(rules: Rules, play: Play, chunks: int, seed: int) -> Iterator[Record]:
    """Play the package's game for ``chunks`` times :data:`CHUNK` frames."""
    env = original(rules.env.game_name, sticky=play.sticky, ramping=rules.env.ramping, seed=seed, lean=play.lean)
    game, rng = env.env, np.random.default_rng([seed, 1])
    terminal, begins, time = False, True, 0
    for _ in range(chunks):
        record = Record()
        for _ in range(CHUNK):
            if begins:
                begin = play.revive if play.revive and terminal else play.start
                begin(game, rng)
                env.random.take()
                time = 0
            if begins or not record.starts:
                record.starts.append(
                    State(rules.encode(game), typed(env.last_action, np.uint8), typed(time, np.uint16))
                )
            record.fresh.append(begins)
            record.start.append(len(record.starts) - 1)
            record.before.append(record.after[-1] if record.after and not begins else rules.variables(game))
            action = play.player(game, rng)
            reward, terminal = env.act(action)
            drawn = env.random.take()
            time += 1
            begins = terminal or time >= min(rules.env.step_limit, play.patience)
            record.action.append(action)
            record.taken.append(env.last_action)
            record.stuck.append(bool(drawn[0] < play.sticky))
            record.outcomes.append(rules.outcomes(drawn[1:], rng))
            record.after.append(rules.variables(game))
            record.observation.append(game.state())
            record.reward.append(float(reward))
            record.terminal.append(bool(terminal))
            record.time.append(time)
        yield record


def _stack(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def _stack_variables(rows: list[Variables]) -> Variables:
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}
