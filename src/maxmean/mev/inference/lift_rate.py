r"""Two rates, from counts: intervals for their difference and for their ratio, by score tests.

A value is in the interval unless the test of it rejects, with the standard error that it would have if it were true (Miettinen
and Nurminen, "Comparative analysis of two rates", Statistics in Medicine 4, 1985). They hold with few successes, where
the usual standard error is zero or far too small, and never leave the range of a rate.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_STEPS = 60
"""Halvings: a rate is then exact to rounding."""


def difference_bounds(
    successes: np.ndarray, trials: np.ndarray, base: float, base_trials: float, reach: float
) -> np.ndarray:
    """Intervals for the differences of rates to one other, shape ``(K, 2)``; ``reach`` is how many standard errors are allowed.

    Five of ten against none of ten, and its mirror image:

    >>> five, ten = np.array([5.0]), np.array([10.0])
    >>> difference_bounds(five, ten, 0.0, 10.0, 1.959964).round(4).tolist()
    [[0.1467, 0.7683]]
    >>> difference_bounds(five, ten, 10.0, 10.0, 1.959964).round(4).tolist()
    [[-0.7683, -0.1467]]
    """
    k, n, k0, n0 = np.broadcast_arrays(successes, trials, np.asarray(base), np.asarray(base_trials))
    observed = k / n - k0 / n0

    def score(gap: np.ndarray) -> np.ndarray:
        rate = _likeliest(k, n, k0, n0, gap)
        other = rate + gap
        return _scores(observed - gap, other * (1 - other) / n + rate * (1 - rate) / n0, n + n0)

    low = _crossing(score, np.full(k.shape, -1.0), observed, reach)
    high = _crossing(lambda gap: -score(gap), np.full(k.shape, 1.0), observed, reach)
    return np.stack([low, high], axis=-1)


def ratio_bounds(
    successes: np.ndarray, trials: np.ndarray, base: float, base_trials: float, reach: float
) -> np.ndarray:
    """Intervals for the ratios of rates to one other, shape ``(K, 2)``; without a success there, any ratio may be.

    >>> ratio_bounds(np.array([36.0, 0.0]), np.array([1000.0, 1000.0]), 30.0, 1000.0, 1.959964).round(4).tolist()
    [[0.7484, 1.9246], [0.0, 0.1277]]
    >>> ratio_bounds(np.array([3.0]), np.array([20.0]), 0.0, 20.0, 1.959964).round(4).tolist()
    [[0.8289, inf]]
    """
    k, n, k0, n0 = (
        np.asarray(each, float)
        for each in np.broadcast_arrays(successes, trials, np.asarray(base), np.asarray(base_trials))
    )

    def score(part: np.ndarray) -> np.ndarray:
        """Of the ratio part/(1 - part): rates p and p0 with p (1 - part) = p0 part, so that neither end is special."""
        ratio = part / (1 - part)
        linear = ratio * (n + k0) + k + n0
        root = np.sqrt(np.maximum(np.square(linear) - 4 * (n + n0) * ratio * (k + k0), 0.0))
        rate = np.clip(2 * (k + k0) / (linear + root), 0.0, 1.0)
        other = np.clip(ratio * rate, 0.0, 1.0)
        spread = np.square(1 - part) * other * (1 - other) / n + np.square(part) * rate * (1 - rate) / n0
        return _scores((1 - part) * k / n - part * k0 / n0, spread, n + n0)

    with np.errstate(divide="ignore", invalid="ignore"):
        observed = np.where(k + k0 > 0, (k / n) / (k / n + k0 / n0), 0.5)
        inside = np.clip(observed, 1e-12, 1 - 1e-12)
        low = np.where(k > 0, _crossing(score, np.full(k.shape, 1e-15), inside, reach), 0.0)
        high = np.where(k0 > 0, _crossing(lambda part: -score(part), np.full(k.shape, 1 - 1e-15), inside, reach), 1.0)
        return np.stack([low / (1 - low), np.where(k0 > 0, high / (1 - high), np.inf)], axis=-1)


def _likeliest(k: np.ndarray, n: np.ndarray, k0: np.ndarray, n0: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """The rate p0 that makes the counts most probable if the other is p0 + gap: a root of a cubic, in the authors' form."""
    total = n + n0
    square = ((n + 2 * n0) * gap - total - (k + k0)) / (3 * total)
    linear = ((n0 * gap - total - 2 * k0) * gap + k + k0) / (3 * total)
    constant = k0 * gap * (1 - gap) / total
    q = square**3 - 1.5 * linear * square + constant / 2
    p = np.where(q < 0, -1.0, 1.0) * np.sqrt(np.maximum(np.square(square) - linear, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = np.where(p == 0, 0.0, np.clip(q / p**3, -1.0, 1.0))
    rate = 2 * p * np.cos((np.pi + np.arccos(cosine)) / 3) - square
    return np.clip(rate, np.maximum(0.0, -gap), np.minimum(1.0, 1.0 - gap))


def _scores(gap: np.ndarray, variance: np.ndarray, trials: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        found = gap / np.sqrt(variance * trials / (trials - 1))
        certain = np.where(gap == 0, 0.0, np.sign(gap) * np.inf)
    return np.where(variance > 0, found, certain)


def _crossing(score: Callable[[np.ndarray], np.ndarray], far: np.ndarray, near: np.ndarray, reach: float) -> np.ndarray:
    """Where a score that falls from ``far`` to zero at ``near`` passes ``reach``; ``far`` where it never is so large."""
    far, near = far.astype(float), near.astype(float)
    for _ in range(_STEPS):
        middle = (far + near) / 2
        outside = score(middle) > reach
        far, near = np.where(outside, middle, far), np.where(outside, near, middle)
    return near
