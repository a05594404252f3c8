"""Tail probabilities and quantiles, Student's and binomial, and where a test that is inverted begins to accept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .roots import find_root

_GRID = 34
"""Values among which the first one that is accepted is looked for, before it is made exact."""


def upper_quantile(tail: float | np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """What Student's distribution exceeds with probability ``tail``; the normal one where ``freedom`` is infinite."""
    from scipy.special import ndtri, stdtrit

    tail, freedom = np.broadcast_arrays(np.asarray(tail, float), freedom)
    finite = np.isfinite(freedom)
    student = -stdtrit(np.where(finite, freedom, 1.0), np.where(tail > 0, tail, 0.5))
    return np.where(finite & (tail > 0), student, -ndtri(tail))  # SciPy's Student has no quantile at 0


def tail_probability(value: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """P(Student's distribution exceeds ``value``)."""
    from scipy.special import ndtr, stdtr

    finite = np.isfinite(freedom)
    return np.where(finite, stdtr(np.where(finite, freedom, 1.0), -value), ndtr(-value))


def difference_freedom(
    variance: np.ndarray, other: np.ndarray, freedom: np.ndarray | float, other_freedom: np.ndarray | float
) -> np.ndarray:
    r"""Degrees of freedom of the difference of two independent means with these variances; all are broadcast.

    Welch's are :math:`(v + w)^2 / (v^2/\nu + w^2/\omega)`. Two or three observations now and then look far too certain: their
    share of the variance is then too small, and Welch's number jumps to that of the larger sample. So the denominator has
    :math:`4 v w\, |1/\nu - 1/\omega|\, (1/m + 1/m^3)` more, :math:`m = \min(\nu, \omega)`: nothing for samples of equal sizes,
    and enough for a test of unequal ones to hold as often as one of two samples of the smaller size. Fewer than m are never
    needed (Mickey and Brown, "Bounds on the distribution functions of the Behrens-Fisher statistic", Annals of Mathematical
    Statistics 37, 1966).

    >>> share = np.array([0.001, 0.01, 0.1, 1.0])
    >>> difference_freedom(share, 1 - share, 2.0, 999.0).round(1).tolist()  # Welch: 1000.5, 969.9, 172.1, 2.0
    [445.3, 74.7, 8.5, 2.0]
    >>> float(difference_freedom(1.0, 1.0, 9.0, 9.0))
    18.0
    """
    fewer = np.minimum(freedom, other_freedom)
    with np.errstate(divide="ignore", invalid="ignore"):
        unequal = 4 * (1 / fewer + fewer**-3.0) * np.abs(1 / np.asarray(freedom) - 1 / np.asarray(other_freedom))
        spread = np.square(variance) / freedom + np.square(other) / other_freedom + variance * other * unequal
        return np.fmax(np.square(variance + other) / spread, fewer)


def at_least(count: np.ndarray, trials: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """P(at least so many successes)."""
    from scipy.special import betainc

    inside = np.minimum(np.maximum(count, 1), trials)
    return np.where(count < 1, 1.0, np.where(count > trials, 0.0, betainc(inside, trials - inside + 1, rate)))


def smallest_rate(count: np.ndarray, trials: np.ndarray, tail: float) -> np.ndarray:
    """Clopper and Pearson's lower bound: the rate at which so many successes have probability ``tail``."""
    from scipy.special import betaincinv

    return np.where(count > 0, betaincinv(np.maximum(count, 1), trials - count + 1, tail), 0.0)


def largest_rate(count: np.ndarray, trials: np.ndarray, tail: float) -> np.ndarray:
    """Clopper and Pearson's upper bound: the rate at which so few successes have probability ``tail``.

    >>> float(largest_rate(np.array(0), np.array(20), 0.025).round(4)), round(1 - 0.025 ** (1 / 20), 4)
    (0.1684, 0.1684)
    """
    from scipy.special import betainccinv

    return np.where(count < trials, betainccinv(count + 1, np.maximum(trials - count, 1), tail), 1.0)


def smallest_count(tail: np.ndarray, trials: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """The smallest count k with P(at least k successes) <= ``tail``, by bisection; trials + 1 where none is so rare."""
    from scipy.special import ndtri

    def rare(count: np.ndarray) -> np.ndarray:  # the observed count itself is as rare as it is
        return at_least(count, trials, rate) <= tail * (1 + 1e-12)

    low, high = np.zeros(rate.shape), np.broadcast_to(trials + 1, rate.shape).copy()
    for far in (
        -1,
        1,
    ):  # a few counts around the normal approximation, with its correction for skewness, hold most answers
        z = -ndtri(np.minimum(np.maximum(tail, 1e-300), 0.5))
        guess = trials * rate + z * np.sqrt(trials * rate * (1 - rate)) + (1 - 2 * rate) * (z * z - 1) / 6
        near = np.minimum(np.maximum(np.rint(guess) + far * 2, low), high)
        found = rare(near)
        low, high = np.where(found, low, np.minimum(near + 1, high)), np.where(found, near, high)
    while (low < high).any():
        middle = np.floor((low + high) / 2)
        found = rare(middle)
        low, high = np.where(found, low, np.minimum(middle + 1, high)), np.where(found, middle, high)
    return high


def first_above(surplus: Callable[[np.ndarray], np.ndarray], low: float, high: float, *, jumps: bool = False) -> float:
    """The smallest value between ``low`` and ``high`` at which ``surplus`` is not negative; at ``high`` it is not.

    There may be gaps: a grid finds the first of its values. Where the surplus begins before that one is made exact to twelve
    digits, or by further grids if the surplus ``jumps``.
    """
    close = 1e-12 * max(abs(low), abs(high))
    while True:
        grid = np.linspace(low, high, _GRID)
        inside = surplus(grid[:-1]) >= 0
        first = int(np.argmax(inside)) if inside.any() else len(grid) - 1
        if first == 0:
            return float(low)
        low, high = float(grid[first - 1]), float(grid[first])
        if high - low <= close or not low < (low + high) / 2 < high:
            return high
        if not jumps:
            break
    ends = {low: -1.0, high: 1.0}  # whatever rounding says there

    def size(value: float) -> float:
        found = float(surplus(np.array([value]))[0])
        return ends[value] * (abs(found) + 1e-300) if value in ends else found

    return find_root(size, low, high, xtol=close or 1e-300)
