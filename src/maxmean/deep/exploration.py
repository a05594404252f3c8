"""Exploration: which action a learning agent takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from ..envs.random import below

Array = jax.Array


class Exploration(ABC):
    """How an agent acts while it learns."""

    @abstractmethod
    def act(self, q: Array, step: Array, words: Array) -> Array:
        """An action, given the values [actions] by which it acts; ``words`` are two random words."""

    @abstractmethod
    def epsilon(self, step: Array) -> Any:
        """The probability of a random action in this step."""


@dataclass(frozen=True)
class EpsilonGreedy(Exploration):
    """A random action with probability epsilon, which falls linearly; else the best one by the members' smallest values."""

    initial: float = 1.0
    final: float = 0.1
    steps: int = 100_000
    """Steps over which epsilon falls."""

    def act(self, q: Array, step: Array, words: Array) -> Array:
        # 24 bits of a word are all that a float32 holds.
        explores = (words[0] >> 8).astype(jnp.float32) * 2.0**-24 < self.epsilon(step)
        return jnp.where(explores, below(words[1], q.shape[-1]), jnp.argmax(q))

    def epsilon(self, step: Array) -> Any:
        slope = (self.initial - self.final) / max(self.steps, 1)
        return jnp.maximum(self.final, self.initial - slope * jnp.asarray(step, jnp.float32))


@dataclass(frozen=True)
class HeadPerEpisode(Exploration):
    """The best action by one head, which is drawn anew for each episode (Osband et al., 2016)."""

    def act(self, q: Array, step: Array, words: Array) -> Array:
        return jnp.argmax(q)

    def epsilon(self, step: Array) -> Any:
        return jnp.zeros((), jnp.float32)
