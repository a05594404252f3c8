"""Measuring: what is found out about a run at a test, and the bias of Q from the pairs that roll-outs have visited."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

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
    """[5]: mean predicted value in each fifth of the pairs, from the smallest to the largest predictions; pairs with equal
    predictions are spread over their fifths alike."""
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
    # Fifths by the predicted value: in order of it, the pairs' ranks say to which fifth they belong. Equal predictions share
    # their ranks, as their order among themselves is only that of time.
    order = jnp.where(visited, values, jnp.inf).reshape(-1)
    predicted, differences = jax.lax.sort((order, difference.reshape(-1)), num_keys=1)
    rank = jnp.arange(order.size)

    def below(cut: Array) -> Array:
        """How much of each pair belongs to the first ``cut``: all or nothing, or for ties with the next one an equal part."""
        edge = predicted[jnp.minimum(cut, order.size - 1)]
        first, after = (jnp.searchsorted(predicted, edge, side=side) for side in ("left", "right"))
        return jnp.where(rank < first, 1.0, jnp.where(rank < after, (cut - first) / (after - first), 0.0))

    parts = [below(i * pairs // QUANTILES) for i in range(QUANTILES + 1)]
    fifth = [more - less for less, more in pairwise(parts)]

    sound = jnp.all(jnp.isfinite(jnp.where(visited, values, 0.0)))  # else the ranks mean nothing

    def mean(x: Array, part: Array) -> Array:
        found = jnp.sum(jnp.where(part > 0, part * x, 0.0)) / jnp.sum(part)  # of none, nan
        least, most = jnp.min(x, where=part > 0, initial=jnp.inf), jnp.max(x, where=part > 0, initial=-jnp.inf)
        # Rounding must not take it beyond what it is the mean of: equal predictions have that prediction as their mean.
        return jnp.where(sound & (jnp.sum(part) > 0), jnp.clip(found, least, most), jnp.nan)

    return BiasSummary(
        mean=jnp.mean(means),
        error=jnp.sqrt(jnp.sum(variances)) / heads,
        heads=means,
        values=jnp.stack([mean(predicted, part) for part in fifth]),
        quantiles=jnp.stack([mean(differences, part) for part in fifth]),
        pairs=pairs,
    )


def jackknife(sums: NDArray[np.float64], counts: NDArray[np.float64]) -> tuple[float, float]:
    r"""The standard error of a mean over the pairs of few episodes, and its degrees of freedom.

    .. math:: d_{hi} = \frac{1}{H}\,\frac{S_{hi} - \bar D_h\, n_{hi}}{n_h - n_{hi}}, \qquad
        \text{error}^2 = \frac{k - 1}{k} \sum_{h,i} d_{hi}^2, \qquad
        \nu = \min\Big(H (k - 1), \big(\textstyle\sum_{h,i} d_{hi}^2\big)^2 \Big/ \sum_{h,i} d_{hi}^4\Big)

    ``sums`` :math:`S_{hi}` and ``counts`` :math:`n_{hi}` are [heads, k], of the k episodes of each of H heads, whose means
    :math:`\bar D_h` are averaged; :math:`n_h = \sum_i n_{hi}`. :math:`d_{hi}` is how far that average moves without episode i of
    head h. A long episode pulls the mean towards itself, which the residuals of :func:`summary` hide and leaving it out does not.

    :math:`\nu` is the number of episodes that would give the sum of squares if all had an equal part in it: 1 where one episode
    dominates, and for normal episodes of equal length about 4.4 of 10, 11 of 30 and, of many, a third. That is fewer than the
    k - 1 of Student's interval, which makes ours wider than need be there.

    Without two episodes, or where a sum is not finite, both are nan.

    >>> error, freedom = jackknife(np.array([[0.0, 2.0, 4.0]]), np.ones((1, 3)))
    >>> round(error, 4), freedom  # of three means, s / sqrt(3); the two outer ones say all about it
    (1.1547, 2.0)
    """
    heads, episodes = sums.shape
    if episodes == 1 or not np.isfinite(sums).all():
        return np.nan, np.nan
    total = np.sum(counts, axis=1, keepdims=True)
    means = np.sum(sums, axis=1, keepdims=True) / total
    squares = np.square((sums - means * counts) / (total - counts) / heads)
    spread = float(np.sum(squares))
    freedom = spread**2 / float(np.sum(squares**2)) if spread else np.inf
    return float(np.sqrt((episodes - 1) / episodes * spread)), min(freedom, heads * (episodes - 1.0))
