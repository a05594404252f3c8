"""A run: everything about a training that changes, as one pytree, and where its random numbers come from.

They come from the run's key and a number, such as the step's, so a run has no generator whose state could be lost, and the same
run draws the same numbers however it is cut into pieces.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...envs.random import threefry, word_array
from ..networks import Ensemble, Weights
from .traits import Traits
from .update import Learner

Array = jax.Array


class Tally(NamedTuple):
    """Sums since the last record."""

    loss: Array
    value: Array
    updates: Array
    episodes: Array
    returns: Array
    """Sum of the returns of the training episodes that ended."""

    @classmethod
    def zero(cls) -> Tally:
        none, nothing = jnp.zeros((), jnp.int32), jnp.zeros((), jnp.float32)
        return cls(nothing, nothing, none, none, nothing)


class Run(NamedTuple):
    """Everything about a run that changes, and its own settings. Checkpoints hold its arrays in this order."""

    key: Array
    """uint32 [2]."""
    traits: Traits
    learner: Learner
    replay: Any
    """uint32 [capacity, words]; of stacked frames that are stored once, a :class:`~maxmean.deep.core.frames.FrameMemory`."""
    episode: Any
    """What the driver keeps of the episode under way, where it keeps that on the device."""
    tally: Tally
    diverged: Array
    """int32: the step at which the loss stopped being finite, or -1."""


class Purpose:
    """Streams of random words that must not meet; the steps of the training itself have the run's own key."""

    CREATE, TEST, BIAS, ADAPT, HEAD = range(1, 6)


def derive(key: Array, purpose: int, number: Array | int) -> Array:
    """A key for a purpose, from a run's key: uint32 [2]."""
    first, second = threefry(key[0], key[1], jnp.uint32(0x80000000 + purpose), jnp.asarray(number, jnp.uint32))
    return jnp.stack([first, second])


class FirstWords(NamedTuple):
    """The random words of a run's beginning, by what they decide."""

    environment: Array
    """Two: the key of the environment's first reset."""
    weights: Array
    """Two: the key of the first weights."""
    head: Array
    """The head that acts in the first episode."""

    @classmethod
    def of(cls, key: Array) -> FirstWords:
        words = word_array(derive(key, Purpose.CREATE, 0), jnp.uint32(0), 5)
        return cls(words[:2], words[2:4], words[4])


def first_weights(network: Ensemble, key: Array) -> Weights:
    """The weights with which a run with this key begins."""
    return network.create(jax.random.wrap_key_data(FirstWords.of(key).weights, impl="threefry2x32"))
