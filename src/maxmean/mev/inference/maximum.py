r"""A confidence interval for the maximum mean: one for the problem, whatever estimator is used.

**Upper end.** The true best option's mean is the maximum, so that its own upper bound at level 1 - a/2 is enough, and the largest
of all options' upper bounds is no smaller. No correction for their number is needed.

**Lower end.** The test of "no mean exceeds t" in two steps (Romano, Shaikh and Wolf, "A practical two-step method for testing
moment inequalities", Econometrica 82, 2014), inverted: all upper bounds hold at once except with probability b; under them the
worst case has means min(t, upper bound), and t is rejected if the strongest evidence against it is too strong even then, at level
a/2 - b. Options that are clearly behind stop counting in the second step, so that one option far ahead has nearly the interval
that it would have alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..arrays import Array
from .checks import checked, checked_counts, checked_freedom, tail_of
from .simultaneous import correlation_of, diagonal, student_points, too_few_rows
from .tails import at_least, first_above, largest_rate, smallest_count, tail_probability, upper_quantile

_FIRST_STEP = 0.1
"""The share of each tail that the first step spends, as the authors recommend."""


def maximum_interval(
    means: Array, covariance: Array, *, level: float = 0.95, freedom: Array = math.inf
) -> tuple[float, float]:
    r"""A confidence interval for the largest of several means.

    With estimates :math:`x_i`, standard errors :math:`s_i` and a = 1 - level, the upper end is
    :math:`\max_i (x_i + t_{1-a/2} s_i)`. The lower end is the smallest t at which

    .. math:: P\left(\max_i \left(Z_i - \max(0, (t - u_i)/s_i)\right) \ge \max_i (x_i - t)/s_i\right) \ge a/2 - b

    where :math:`u_i` are upper bounds that hold at once with probability 1 - b, b = a/20, and the Z have Student's
    distribution and the correlations of the estimates. Options with different degrees of freedom are compared by their p-values.

    Parameters
    ----------
    means
        Estimated means, shape ``(M,)``. If the smallest is the best, pass the negated means.
    covariance
        Covariance matrix *of the means*, shape ``(M, M)``, or their variances, shape ``(M,)``, for independent options.
    level
        Confidence level, in (0, 1).
    freedom
        Degrees of freedom of the standard errors, a number or one for each option: observations less one; infinite where the
        standard errors are known. With a covariance matrix, the smallest counts for all; if that says that there were fewer rows
        than twice the options, the matrix's correlations are too uncertain, and P is Bonferroni's bound.

    Examples
    --------
    >>> [round(end, 3) for end in maximum_interval([1.0, 0.7, -1.0], [0.25, 0.25, 0.25])]
    [-0.215, 1.98]

    One option far ahead, and one alone:

    >>> [round(end, 3) for end in maximum_interval([9.0, 0.7, -1.0], [0.25, 0.25, 0.25])]
    [7.998, 9.98]
    >>> [round(end, 3) for end in maximum_interval([9.0], [0.25])]
    [7.998, 9.98]
    """
    estimates, covariances = checked(means, covariance)
    tail = tail_of(level)
    errors = np.sqrt(diagonal(covariances))
    degrees = checked_freedom(freedom, len(estimates))
    doubtful = errors > 0
    certain = float(np.max(estimates[~doubtful], initial=-math.inf))
    if not doubtful.any():
        return certain, certain
    x, s, df = estimates[doubtful], errors[doubtful], degrees[doubtful]
    upper = float(np.max(x + upper_quantile(tail, df) * s))
    if covariances.ndim == 2 and (correlation := correlation_of(covariances)) is not None:
        df = np.full_like(df, df.min())
        exceeds = _bounded(df) if too_few_rows(correlation, df) else _correlated(correlation, float(df[0]))
    else:
        exceeds = _independent(df)
    low = _lower_end(x, s, df, tail, exceeds)
    return max(low, certain), max(upper, certain)


Exceeds = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""P(some option's evidence is as strong as the observed), given p-values [T] and how far below t each mean is, [T, M]."""


def _lower_end(x: np.ndarray, s: np.ndarray, df: np.ndarray, tail: float, exceeds: Exceeds) -> float:
    first = _FIRST_STEP * tail
    bounds = x + upper_quantile(first / len(x), df) * s

    def surplus(t: np.ndarray) -> np.ndarray:
        strongest = np.min(tail_probability((x - t[:, None]) / s, df), axis=-1)
        behind = np.maximum((t[:, None] - bounds) / s, 0.0)
        return exceeds(strongest, behind) - (tail - first)

    # All count as equal to t: what is rejected then is rejected before any option stops counting.
    least = float(np.max(x - upper_quantile((tail - first) / len(x), df) * s))
    return first_above(surplus, least, float(np.max(x)))


def _independent(df: np.ndarray) -> Exceeds:
    def exceeds(strongest: np.ndarray, behind: np.ndarray) -> np.ndarray:
        each = tail_probability(upper_quantile(strongest[:, None], df) + behind, df)
        return np.asarray(-np.expm1(np.sum(np.log1p(-np.minimum(each, 1.0 - 1e-16)), axis=-1)))

    return exceeds


def _correlated(correlation: np.ndarray, df: float) -> Exceeds:
    points = np.ascontiguousarray(student_points(correlation, df).T)

    def exceeds(strongest: np.ndarray, behind: np.ndarray) -> np.ndarray:
        heights = upper_quantile(strongest, np.asarray(df))
        return np.array([np.mean((points >= limits[:, None]).any(axis=0)) for limits in heights[:, None] + behind])

    return exceeds


def _bounded(df: np.ndarray) -> Exceeds:
    def exceeds(strongest: np.ndarray, behind: np.ndarray) -> np.ndarray:
        return np.asarray(np.sum(tail_probability(upper_quantile(strongest[:, None], df) + behind, df), axis=-1))

    return exceeds


def maximum_rate_interval(successes: Array, trials: Array, *, level: float = 0.95) -> tuple[float, float]:
    """The same for rates, from counts: binomial probabilities instead of Student's, so that it holds with any counts.

    The upper end is the largest of Clopper and Pearson's one-sided bounds; with no success in n trials it is 1 - (a/2)^(1/n).

    >>> [round(end, 4) for end in maximum_rate_interval([0], [20])]
    [0.0, 0.1684]
    >>> [round(end, 4) for end in maximum_rate_interval([30, 36, 2], [1000, 1000, 50])]
    [0.0233, 0.1371]
    """
    k, n = checked_counts(successes, trials)
    tail = tail_of(level)
    first = _FIRST_STEP * tail

    bounds = largest_rate(k, n, first / len(k))

    def surplus(t: np.ndarray) -> np.ndarray:
        rate = np.broadcast_to(t[:, None], (len(t), len(k)))
        strongest = np.min(at_least(k, n, rate), axis=-1)
        needed = smallest_count(strongest[:, None], n, rate)
        each = at_least(needed, n, np.minimum(rate, bounds))
        return -np.expm1(np.sum(np.log1p(-np.minimum(each, 1.0 - 1e-16)), axis=-1)) - (tail - first)

    return first_above(surplus, 0.0, float(np.max(k / n)), jumps=True), float(np.max(largest_rate(k, n, tail)))
