r"""The mean of the k options that look best, with bounds that allow for their having been picked.

**Lower end.** Whichever k options are picked, their average error is at most the average of the k largest errors of all: a
quantile of that is subtracted. **Upper end.** The k options picked are on average no better than the k truly best ones, whose
average is at most theirs plus the usual quantile for k options named in advance; those with the largest standard errors are taken
for them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import Array, special
from .checks import checked, checked_counts, checked_freedom, checked_top, tail_of
from .simultaneous import correlation_of, diagonal, normal_points, student_points
from .tails import largest_rate, smallest_rate, upper_quantile

_FAR, _SCORES = 8.5, 2_001
"""Normal scores for which Student's quantiles are tabulated."""


@dataclass(frozen=True)
class Top:
    """The options with the largest estimates, and what is known about the average of their means."""

    indices: tuple[int, ...]
    """Best first."""
    naive: float
    """The average of their estimates: too high, because they were picked for them."""
    bounds: tuple[float, float]
    """Each fails with probability (1 - ``level``)/2 at most."""
    level: float


def infer_top(means: Array, covariance: Array, k: int, *, level: float = 0.95, freedom: Array = math.inf) -> Top:
    r"""Bounds for the average of the true means of the k options with the largest estimates.

    With the errors :math:`e_i = s_i Z_i`, where the Z have Student's distribution and the correlations of the estimates, and
    :math:`e_{(1)} \ge e_{(2)} \ge \dots`, the lower end is the average estimate less the (1 - a/2)-quantile of
    :math:`\frac1k \sum_{j \le k} e_{(j)}`, a = 1 - level. The upper end adds the quantile of the average error of the k options
    with the largest standard errors; with a covariance matrix, the same as is subtracted.

    Parameters are those of :func:`maxmean.mev.inference.maximum_interval`, and the number ``k`` of options. Quantiles are
    those of 8,192 quasi-random points (2,048 with more than 100 options), always the same ones.

    >>> top = infer_top([1.0, 0.7, -1.0], [0.25, 0.25, 0.25], 2)
    >>> top.indices, round(top.naive, 2), [round(end, 1) for end in top.bounds]
    ((0, 1), 0.85, [0.0, 1.5])
    """
    x, covariances = checked(means, covariance)
    tail, degrees = tail_of(level), checked_freedom(freedom, len(x))
    picked = np.argsort(-x, kind="stable")[: checked_top(k, len(x))]
    errors = np.sqrt(diagonal(covariances))
    naive = float(np.mean(x[picked]))
    doubtful = np.flatnonzero(errors > 0)
    below = above = 0.0
    if doubtful.size:
        correlation = correlation_of(covariances) if covariances.ndim == 2 else None
        if correlation is None:  # the same points for the same errors, in whatever order they come
            doubtful = doubtful[np.lexsort([degrees[doubtful], -errors[doubtful]])]
        drawn = _errors(errors[doubtful], degrees[doubtful], correlation)
        count = min(k, len(doubtful))
        largest = np.partition(drawn, len(doubtful) - count, axis=-1)[:, -count:].sum(axis=-1) / k
        below = above = max(float(np.quantile(largest, 1 - tail)), 0.0)
        if correlation is None:
            above = max(float(np.quantile(drawn[:, :count].sum(axis=-1) / k, 1 - tail)), 0.0)
    return Top(tuple(picked.tolist()), naive, (naive - below, naive + above), float(level))


def _errors(errors: np.ndarray, degrees: np.ndarray, correlation: np.ndarray | None) -> np.ndarray:
    """Errors of the estimates, [draws, M]."""
    if correlation is not None:
        return student_points(correlation, float(degrees.min())) * errors
    points = normal_points(len(errors)).copy()
    scores = np.linspace(-_FAR, _FAR, _SCORES)
    for df in np.unique(degrees[np.isfinite(degrees)]):  # a table is enough: the points are good to three digits
        those, quantiles = degrees == df, -upper_quantile(special(np).ndtr(scores), df)
        points[:, those] = np.interp(points[:, those], scores, quantiles)
    return points * errors


def infer_top_rate(successes: Array, trials: Array, k: int, *, level: float = 0.95) -> Top:
    """The same for success rates, from counts: averages of Clopper and Pearson's bounds, which hold with any counts.

    From below, those that hold for all options at once; from above, the k largest of those that hold for k options at once. By
    Bonferroni's inequality they hold for paired rows too.

    >>> infer_top_rate([3, 1, 0], [20, 20, 20], 2).naive
    0.1
    """
    count, n = checked_counts(successes, trials)
    tail, rates = tail_of(level), count / n
    picked = np.argsort(-rates, kind="stable")[: checked_top(k, len(count))]
    lower = smallest_rate(count[picked], n[picked], tail / len(count))
    upper = np.sort(largest_rate(count, n, tail / k))[-k:]
    bounds = float(np.mean(lower)), float(np.mean(upper))
    return Top(tuple(picked.tolist()), float(np.mean(rates[picked])), bounds, float(level))
