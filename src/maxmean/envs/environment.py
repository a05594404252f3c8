"""What an environment is: pure functions of a state pytree. Many environments at once are the business of ``jax.vmap``."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from ..errors import MaxmeanError, missing

try:
    import jax
except ModuleNotFoundError as error:
    if error.name != "jax":
        raise
    raise ModuleNotFoundError(missing("maxmean.envs", "jax"), name="jax") from None


class EnvError(MaxmeanError):
    """A name, an option, an action or a state that does not fit; the message is one sentence that says what would."""


class Step(NamedTuple):
    """What one step of an environment gives."""

    state: Any
    """The new state; once the episode has ended, it is there to be handed to ``reset``."""
    observation: jax.Array
    reward: jax.Array
    """float32 scalar."""
    terminated: jax.Array
    """bool: the episode has come to its own end; nothing follows."""
    truncated: jax.Array
    """bool: the episode was cut off; the state still has a value."""


class Environment(ABC):
    """An environment with discrete actions whose state is a pytree and whose observation is a function of that state.

    Nothing here is changed by a step: all that changes is in the state. So a state can be kept, copied, put into a replay and
    stepped again from there as often as wanted. Instances are frozen and hashable: they may be static arguments of ``jax.jit``.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """What :func:`maxmean.envs.make` calls it."""

    @property
    @abstractmethod
    def n_actions(self) -> int:
        """Actions are 0 to n_actions - 1."""

    @abstractmethod
    def reset(self, key: jax.Array, previous: Any = None) -> tuple[Any, jax.Array]:
        """Start an episode: its first state and observation. ``previous`` is the state in which the last episode ended, if
        there was one; an environment may carry something over from it.
        """

    @abstractmethod
    def step(self, key: jax.Array, state: Any, action: jax.Array) -> Step:
        """Take ``action``, an integer. One that is out of range is an error outside ``jit``; inside it, it cannot be seen.

        A state after the end has no meaning, and neither has a step from there: reset.
        """

    @abstractmethod
    def observe(self, state: Any) -> jax.Array:
        """What the agent sees of ``state``."""

    def legal(self, state: Any) -> jax.Array | None:
        """Which actions are legal in ``state``, bool [n_actions]; None where all always are, as in all environments that do not
        say otherwise.

        At least one is, wherever an episode has not terminated. A compiled training cannot refuse a state in which none is: it
        takes action 0 there, gives the state the value -inf, and its record says that the run has diverged.
        """
        return None

    @property
    def observation(self) -> jax.ShapeDtypeStruct:
        """Shape and type of an observation."""
        return jax.eval_shape(lambda key: self.reset(key)[1], jax.eval_shape(lambda: jax.random.key(0)))


def check_action(action: Any, n_actions: int) -> None:
    """Refuse what is no integer and, where its value can be seen (outside ``jit``), what is out of range."""
    try:
        index = operator.index(action)
    except jax.errors.TracerIntegerConversionError:
        return
    except TypeError:
        array = isinstance(action, jax.Array | np.ndarray)
        shown = f"{action.dtype}{list(action.shape)}" if array else repr(action)
        raise EnvError(f"an action is an integer from 0 to {n_actions - 1}, not {shown}") from None
    if not 0 <= index < n_actions:
        raise EnvError(f"action {index} is out of range: there are {n_actions} actions, 0 to {n_actions - 1}")
