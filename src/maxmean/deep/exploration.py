"""Exploration: which action a learning agent takes.

An exploration says whose values an agent acts on: one head's, all heads' votes, their mean plus a bonus for their spread. Any of
them may take random actions on top, with a probability epsilon that changes linearly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from ..envs.random import below
from ..errors import unknown
from .checks import LARGEST, AgentError, real_number, whole_number

Array = jax.Array


def votes(q: Array) -> Array:
    """How many heads think each action best, from their values [..., heads, actions]: [..., actions]."""
    return jnp.sum(jnp.argmax(q, axis=-1)[..., None] == jnp.arange(q.shape[-1]), axis=-2)


def masked(q: Array, legal: Array | None) -> Array:
    """Values [..., actions] with -inf in the place of illegal actions; as they are where nothing says which are legal."""
    return q if legal is None else jnp.where(legal, q, -jnp.inf)


def best_action(q: Array, legal: Array | None = None) -> Array:
    """The legal action with the largest of the values [..., actions]; the lowest of several.

    It is a legal one whatever the values are, those of a network that has diverged too.

    >>> int(best_action(jnp.array([3.0, 2.0, 1.0]), jnp.array([False, True, True])))
    1
    """
    best = jnp.argmax(masked(q, legal), axis=-1)
    if legal is None:
        return best
    return jnp.where(
        jnp.any(legal & (best[..., None] == jnp.arange(q.shape[-1])), axis=-1), best, jnp.argmax(legal, -1)
    )


def random_action(word: Array, n: int, legal: Array | None = None) -> Array:
    """One of ``n`` actions, or of those that are legal (bool [n]), with equal probabilities, from a random word.

    >>> int(random_action(jnp.uint32(2**31), 3, jnp.array([True, False, True])))
    2
    """
    if legal is None:
        return below(word, n)
    return jnp.argmax(jnp.cumsum(legal) > below(word, jnp.sum(legal)))


@dataclass(frozen=True, repr=False)
class Exploration:
    """How an agent acts while it learns; by itself, on the heads' votes or the networks' smallest values."""

    initial: float = 0.0
    """Epsilon, the probability of a random action, in the first step."""
    final: float = 0.0
    """Epsilon at the end."""
    steps: int = 0
    """Steps over which epsilon goes from the one to the other."""

    alone: ClassVar[bool] = False
    """Whether one head acts at a time, so that no other's values are needed."""

    def epsilon(self, step: Array) -> Any:
        """The probability of a random action in this step."""
        slope = (self.initial - self.final) / max(self.steps, 1)
        bound = jnp.maximum if self.initial >= self.final else jnp.minimum
        return bound(self.final, self.initial - slope * jnp.asarray(step, jnp.float32))

    def act(self, q: Array, step: Array, words: Array, legal: Array | None = None) -> Array:
        """An action, given the values [actions] that the agent acts on; ``words`` are two random words. It is one of the
        ``legal`` ones (bool [actions]) where some are not.
        """
        best = best_action(q, legal)
        if self.initial == self.final == 0.0:
            return best
        # 24 bits of a word are all that a float32 holds.
        explores = (words[0] >> 8).astype(jnp.float32) * 2.0**-24 < self.epsilon(step)
        return jnp.where(explores, random_action(words[1], q.shape[-1], legal), best)

    def head(self, drawn: Array, heads: int, word: Array) -> Array:
        """The head that acts where heads act alone: ``drawn`` is the episode's. ``word`` is random, also given that it is this
        head's turn and not a random action's.
        """
        return drawn

    def values(self, q: Array) -> Array:
        """What an agent with heads acts on, from all heads' values [heads, actions]: [actions]. Their votes, unless it says
        otherwise.
        """
        return votes(q)

    @property
    def text(self) -> str:
        """How it is written on the command line, and in labels: see :func:`as_exploration`."""
        name = next((name for name, kind in EXPLORATIONS.items() if kind is type(self)), type(self).__name__)
        if self.initial == self.final:
            return f"{name}:{self.final:g}" if self.final else name
        return f"{name}:{self.initial:g},{self.final:g},{self.steps}"

    def __repr__(self) -> str:
        """What it was made with, as far as that is not the default: trainings are compared by these words."""
        own = [each for each in fields(self) if getattr(self, each.name) != each.default]
        return f"{type(self).__name__}({', '.join(f'{each.name}={getattr(self, each.name)!r}' for each in own)})"


@dataclass(frozen=True)
class EpsilonGreedy(Exploration):
    """A random action with probability epsilon; else the best one: of heads by their votes, of networks by their smallest values.

    >>> EpsilonGreedy(1.0, 0.05, 10_000)
    EpsilonGreedy(initial=1.0, final=0.05, steps=10000)
    """

    initial: float = 1.0
    final: float = 0.1
    steps: int = 100_000


@dataclass(frozen=True, repr=False)
class HeadPerEpisode(Exploration):
    """The best action by one head, which is drawn anew for each episode (Osband et al., 2016).

    It explores deeply: a head that believes in a far reward goes there. Where all heads agree too early, a small epsilon helps:
    ``HeadPerEpisode(0.05, 0.05)``.
    """

    alone: ClassVar[bool] = True


@dataclass(frozen=True, repr=False)
class Thompson(Exploration):
    """The best action by a head that is drawn anew for each step: Thompson sampling without a plan."""

    alone: ClassVar[bool] = True

    def head(self, drawn: Array, heads: int, word: Array) -> Array:
        return below(word, heads)


@dataclass(frozen=True, repr=False)
class Optimistic(Exploration):
    r"""The best action by :math:`\bar Q + b\,\sigma`, the heads' mean and ``bonus`` times their spread (Chen et al., 2017).

    >>> Optimistic(bonus=0.5).values(jnp.array([[1.0, 0.0], [1.0, 2.0], [1.0, 4.0]])).tolist()
    [1.0, 3.0]
    """

    bonus: float = field(default=0.1, kw_only=True)
    """Standard deviations that are added."""

    @property
    def text(self) -> str:
        return super().text + (f", bonus {self.bonus:g}" if self.bonus != type(self).bonus else "")

    def values(self, q: Array) -> Array:
        return jnp.mean(q, axis=0) + self.bonus * jnp.std(q, axis=0, ddof=min(1, q.shape[0] - 1))


EXPLORATIONS: dict[str, type[Exploration]] = {
    "heads": HeadPerEpisode,
    "epsilon": EpsilonGreedy,
    "thompson": Thompson,
    "optimistic": Optimistic,
}
"""By the names that the command line uses."""


def as_exploration(given: Exploration | str) -> Exploration:
    """An exploration from itself or its name, with epsilon after a colon: constant, or where it begins, ends, and its steps.

    >>> as_exploration("heads"), as_exploration("heads:0.05"), as_exploration("epsilon:1,0.05,10000")
    (HeadPerEpisode(), HeadPerEpisode(initial=0.05, final=0.05),
     EpsilonGreedy(initial=1.0, final=0.05, steps=10000))
    """
    if not isinstance(given, str):
        return checked(given)
    name, _, text = given.strip().lower().partition(":")
    if name not in EXPLORATIONS:
        raise AgentError(unknown("unknown exploration", name, EXPLORATIONS))
    try:
        numbers = [float(each) for each in text.split(",")] if text else []
    except ValueError:
        numbers = [math.nan]
    if len(numbers) not in (0, 1, 3) or not all(map(math.isfinite, numbers)):
        raise AgentError(
            f"exploration {name!r} takes epsilon after the colon, such as {name}:0.05, or its beginning, end and steps, such as "
            f"{name}:1,0.05,10000, not {text!r}"
        )
    if not numbers:
        return EXPLORATIONS[name]()
    if len(numbers) == 1:
        return checked(EXPLORATIONS[name](numbers[0], numbers[0]))
    steps = whole_number("steps of epsilon", numbers[2], least=0, most=10**18)
    return checked(EXPLORATIONS[name](numbers[0], numbers[1], steps))


def checked(exploration: Any) -> Exploration:
    """The exploration, if it is one that makes sense; one sentence else."""
    name = type(exploration).__name__
    if not isinstance(exploration, Exploration):
        known = ", ".join(kind.__name__ for kind in EXPLORATIONS.values())
        raise AgentError(
            f"exploration must be one of maxmean.deep's ({known}), such as EpsilonGreedy(), not {exploration!r}"
        )
    for which in ("initial", "final"):
        value = real_number(f"{name}'s {which}", getattr(exploration, which))
        if not 0.0 <= value <= 1.0:
            raise AgentError(f"{name}'s {which} is a probability, from 0 to 1, not {value}")
    if whole_number(f"{name}'s steps", exploration.steps, least=-LARGEST, most=10**18) < 0:
        raise AgentError(f"{name}'s steps must not be negative, not {exploration.steps}")
    if not isinstance(exploration, EpsilonGreedy) and exploration.steps == exploration.final == 0 < exploration.initial:
        kept = f"{exploration.initial:g}"
        raise AgentError(
            f"{name}({kept}) would take random actions in the first step alone: {name}({kept}, {kept}) goes on with them, and "
            f"{name}({kept}, 0, 10_000) lets them become fewer"
        )
    if isinstance(exploration, Optimistic):
        real_number("Optimistic's bonus", exploration.bonus)
    return exploration
