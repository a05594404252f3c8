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
from ..errors import ArgumentError
from .simultaneous import correlation_of, diagonal, student_points
from .winner import checked

_FIRST_STEP = 0.1
"""The share of each tail that the first step spends, as the authors recommend."""
_GRID = 34
"""Values of t among which the first one that is not rejected is looked for, before it is made exact."""


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
        standard errors are known. With a covariance matrix, the smallest counts for all.

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
        exceeds = _correlated(correlation, float(df.min()))
        df = np.full_like(df, df.min())
    else:
        exceeds = _independent(df)
    low = _lower_end(x, s, df, tail, exceeds)
    return max(low, certain), max(upper, certain)


Exceeds = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""P(some option's evidence is as strong as the observed), given p-values [T] and how far below t each mean is, [T, M]."""


def _lower_end(x: np.ndarray, s: np.ndarray, df: np.ndarray, tail: float, exceeds: Exceeds) -> float:
    first = _FIRST_STEP * tail
    bounds = x + upper_quantile(first / len(x), df) * s

    def accepted(t: np.ndarray) -> np.ndarray:
        strongest = np.min(tail_probability((x - t[:, None]) / s, df), axis=-1)
        behind = np.maximum((t[:, None] - bounds) / s, 0.0)
        return exceeds(strongest, behind) >= tail - first

    # All count as equal to t: what is rejected then is rejected before any option stops counting.
    least = float(np.max(x - upper_quantile((tail - first) / len(x), df) * s))
    return first_true(accepted, least, float(np.max(x)))


def first_true(accepted: Callable[[np.ndarray], np.ndarray], low: float, high: float) -> float:
    """The smallest value between ``low`` and ``high`` that is accepted; ``high`` is.

    What is accepted begins somewhere and may have gaps: a grid finds the first of its values, bisection where it begins.
    """
    grid = np.linspace(low, high, _GRID)[1:-1]
    inside = accepted(grid)
    first = int(np.argmax(inside)) if inside.any() else len(grid)
    low, high = [low, *grid][first], [*grid, high][first]
    while low < (middle := (low + high) / 2) < high and high - low > 1e-12 * max(abs(low), abs(high)):
        low, high = (low, middle) if accepted(np.array([middle]))[0] else (middle, high)
    return float(high)


def _independent(df: np.ndarray) -> Exceeds:
    def exceeds(strongest: np.ndarray, behind: np.ndarray) -> np.ndarray:
        each = tail_probability(upper_quantile(strongest[:, None], df) + behind, df)
        return np.asarray(-np.expm1(np.sum(np.log1p(-np.minimum(each, 1.0 - 1e-16)), axis=-1)))

    return exceeds


def _correlated(correlation: np.ndarray, df: float) -> Exceeds:
    points = student_points(correlation, df)

    def exceeds(strongest: np.ndarray, behind: np.ndarray) -> np.ndarray:
        heights = upper_quantile(strongest, np.asarray(df))
        return np.array(
            [np.mean(np.max(points - row, axis=-1) >= height) for row, height in zip(behind, heights, strict=True)]
        )

    return exceeds


def upper_quantile(tail: float | np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """What Student's distribution exceeds with probability ``tail``; the normal one where ``freedom`` is infinite."""
    from scipy.special import ndtri, stdtrit

    tail, freedom = np.broadcast_arrays(np.asarray(tail, float), freedom)
    finite = np.isfinite(freedom)
    return np.where(finite, -stdtrit(np.where(finite, freedom, 1.0), tail), -ndtri(tail))


def tail_probability(value: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """P(Student's distribution exceeds ``value``)."""
    from scipy.special import ndtr, stdtr

    finite = np.isfinite(freedom)
    return np.where(finite, stdtr(np.where(finite, freedom, 1.0), -value), ndtr(-value))


def checked_freedom(freedom: Array, options: int) -> np.ndarray:
    """Degrees of freedom of each option."""
    given = np.asarray(freedom, float)
    if given.shape not in ((), (options,)):
        raise ArgumentError(f"degrees of freedom must be a number or have shape ({options},), not {given.shape}")
    degrees = np.broadcast_to(given, options)
    if not (degrees > 0).all():
        raise ArgumentError(f"degrees of freedom must be positive, not {degrees.min():g}")
    return degrees


def tail_of(level: float) -> float:
    """Half of what is left of a confidence level."""
    if not 0 < level < 1:
        raise ArgumentError(f"level must lie strictly between 0 and 1, not {level}")
    return (1 - level) / 2


def maximum_rate_interval(successes: Array, trials: Array, *, level: float = 0.95) -> tuple[float, float]:
    """The same for rates, from counts: binomial probabilities instead of Student's, so that it holds with any counts.

    The upper end is the largest of Clopper and Pearson's one-sided bounds; with no success in n trials it is 1 - (a/2)^(1/n).

    >>> [round(end, 4) for end in maximum_rate_interval([0], [20])]
    [0.0, 0.1684]
    >>> [round(end, 4) for end in maximum_rate_interval([30, 36, 2], [1000, 1000, 50])]
    [0.0233, 0.1371]
    """
    from scipy.special import betaincinv

    k, n = _checked_counts(successes, trials)
    tail = tail_of(level)
    first = _FIRST_STEP * tail

    def upper(tail: float) -> np.ndarray:
        return np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1), 1 - tail), 1.0)

    bounds = upper(first / len(k))

    def accepted(t: np.ndarray) -> np.ndarray:
        rate = np.broadcast_to(t[:, None], (len(t), len(k)))
        strongest = np.min(_at_least(k, n, rate), axis=-1)
        needed = _smallest_count(strongest[:, None], n, rate)
        each = _at_least(needed, n, np.minimum(rate, bounds))
        return -np.expm1(np.sum(np.log1p(-np.minimum(each, 1.0 - 1e-16)), axis=-1)) >= tail - first

    return first_true(accepted, 0.0, float(np.max(k / n))), float(np.max(upper(tail)))


def _checked_counts(successes: Array, trials: Array) -> tuple[np.ndarray, np.ndarray]:
    """Successes and trials as arrays, if they can be such."""
    k = np.asarray(successes, float)
    if k.ndim != 1 or k.size == 0:
        raise ArgumentError(f"successes must have shape (options,) with at least one option, not {k.shape}")
    n = np.asarray(trials, float)
    if n.shape not in ((), k.shape):
        raise ArgumentError(f"trials must be a number or have shape {k.shape}, not {n.shape}")
    n = np.broadcast_to(n, k.shape)
    if not ((k >= 0) & (k <= n) & (n >= 1) & (k == np.rint(k)) & (n == np.rint(n))).all():
        raise ArgumentError(
            "successes and trials must be whole numbers, at least one trial and no more successes than trials"
        )
    return k, n


def _at_least(count: np.ndarray, trials: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """P(at least so many successes)."""
    from scipy.special import betainc

    inside = np.clip(count, 1, trials)
    return np.where(count < 1, 1.0, np.where(count > trials, 0.0, betainc(inside, trials - inside + 1, rate)))


def _smallest_count(tail: np.ndarray, trials: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """The smallest count k with P(at least k successes) <= ``tail``, by bisection; trials + 1 where none is so rare."""
    low, high = np.zeros(rate.shape), np.broadcast_to(trials + 1, rate.shape).copy()
    while (low < high).any():
        middle = np.floor((low + high) / 2)
        rare = _at_least(middle, trials, rate) <= tail * (1 + 1e-12)  # the observed count itself is as rare as it is
        low, high = np.where(rare, low, np.minimum(middle + 1, high)), np.where(rare, middle, high)
    return high
