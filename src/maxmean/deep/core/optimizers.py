"""The direction of a step of size one. The learning rate is applied by the update, for it may differ between runs."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

Array = jax.Array

DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8
"""Adam's: how slowly the moments forget, and what keeps the division finite."""


class Corrections(NamedTuple):
    """What Adam's two moments are multiplied with in its t-th step, because they started at zero."""

    mean: Array
    """1 / (1 - decay^t)."""
    square: Array
    """1 / sqrt(1 - square_decay^t), for the root of the second moment."""

    @classmethod
    def at(cls, step: Array) -> Corrections:
        return cls(-1.0 / jnp.expm1(step * math.log(DECAY)), jax.lax.rsqrt(-jnp.expm1(step * math.log(SQUARE_DECAY))))


def adam_moments(mean: Array, square: Array, gradient: Array, corrections: Corrections) -> tuple[Array, Array, Array]:
    """The moments after a gradient, and the direction m' / (sqrt(v') + epsilon) of Adam (Kingma and Ba, 2015).

    m' = m / (1 - decay^t) and v' = v / (1 - square_decay^t), with two divisions a weight less than that says, because both
    corrections are factors that all weights share: on a CPU the pass over the weights is a quarter faster for it.
    """
    mean = DECAY * mean + (1 - DECAY) * gradient
    square = SQUARE_DECAY * square + (1 - SQUARE_DECAY) * gradient * gradient
    return mean, square, corrections.mean * mean / (corrections.square * jnp.sqrt(square) + EPSILON)


def adam() -> optax.GradientTransformation:
    """Adam, its state as Optax has it."""

    def update(gradient: Any, state: Any, parameters: Any = None) -> tuple[Any, optax.ScaleByAdamState]:
        corrections = Corrections.at(state.count + 1)
        each = jax.tree.map(lambda m, v, g: adam_moments(m, v, g, corrections), state.mu, state.nu, gradient)
        m, v, direction = jax.tree.transpose(jax.tree.structure(gradient), jax.tree.structure((0, 0, 0)), each)
        return direction, optax.ScaleByAdamState(state.count + 1, m, v)

    return optax.GradientTransformation(optax.scale_by_adam().init, update)


def rmsprop() -> optax.GradientTransformation:
    """RMSprop as PyTorch has it: g / (sqrt(v) + 1e-8), v the running mean of squares that forgets a hundredth a step."""
    return optax.scale_by_rms(decay=0.99, eps=1e-8, eps_in_sqrt=False)
