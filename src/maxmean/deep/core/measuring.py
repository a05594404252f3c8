"""Measuring: what is found out about a run at a test, and the bias of Q from the pairs that roll-outs have visited."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .run import Tally

Array = jax.Array

QUANTILES = 5
"""Parts into which the visited pairs are cut by their predicted value."""


class BiasSummary(NamedTuple):
    """What Algorithm 3 finds: Q minus the return, over all visited pairs."""

    mean: Array
    """The mean over the pairs; for heads, the mean of the heads' means."""
    error: Array
    """Its standard error; the pairs of one episode hang together, so episodes are its units."""
    heads: Array
    """[heads]: each head's mean; one entry for agents without heads."""
    values: Array
    """[5]: mean predicted value in each fifth of the pairs, from the smallest to the largest predictions."""
    quantiles: Array
    """[5]: the bias in each fifth."""
    pairs: Array
    """Visited pairs."""


class Measurement(NamedTuple):
    """What is measured of a run at one step; where it is of many runs, each entry has them as its first axis."""

    test_return: Any
    bias: BiasSummary
    tally: Tally
    parameter: Any
    diverged: Any


def summary(values: Array, returns: Array, visited: Array, heads: int) -> BiasSummary:
    """From pairs [T, heads * episodes] to the bias."""
    difference = jnp.where(visited, values - returns, 0.0)
    sums = jnp.sum(difference, axis=0).reshape(heads, -1)
    counts = jnp.sum(visited, axis=0).reshape(heads, -1).astype(jnp.float32)
    means = jnp.sum(sums, axis=1) / jnp.sum(counts, axis=1)
    episodes = sums.shape[1]
    spread = jnp.sum(jnp.square(sums - means[:, None] * counts), axis=1)
    scale = episodes / (episodes - 1) if episodes > 1 else jnp.nan  # one episode tells nothing of its error
    variances = scale * spread / jnp.square(jnp.sum(counts, axis=1))
    pairs = jnp.sum(visited)
    # Fifths by the predicted value: in order of it, the pairs' ranks say to which fifth they belong.
    order = jnp.where(visited, values, jnp.inf).reshape(-1)
    predicted, differences = jax.lax.sort((order, difference.reshape(-1)), num_keys=1)
    rank = jnp.arange(order.size)
    fifth = [(rank >= i * pairs // QUANTILES) & (rank < (i + 1) * pairs // QUANTILES) for i in range(QUANTILES)]

    sound = jnp.all(jnp.isfinite(jnp.where(visited, values, 0.0)))  # else the ranks mean nothing

    def mean(x: Array, part: Array) -> Array:
        return jnp.where(sound, jnp.sum(jnp.where(part, x, 0.0)) / jnp.sum(part), jnp.nan)  # of none, nan

    return BiasSummary(
        mean=jnp.mean(means),
        error=jnp.sqrt(jnp.sum(variances)) / heads,
        heads=means,
        values=jnp.stack([mean(predicted, part) for part in fifth]),
        quantiles=jnp.stack([mean(differences, part) for part in fifth]),
        pairs=pairs,
    )
