"""Closed forms: the moments of the maximum, the average, the double and the cross-validation estimator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .gaussians import Pair, Spread


def _maximum(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    """Clark's moments of the larger of two Gaussians, about the larger mean."""
    spread, gap = pair.spread(), pair.gap
    size = np.abs(gap)
    miss, peak = spread.select_first(-size)
    bias = peak - size * miss
    better, worse = (np.where(gap >= 0, a, b) for a, b in ((spread.v1, spread.v2), (spread.v2, spread.v1)))
    second = better * (1 - miss) + (worse + size**2) * miss - size * peak
    return bias, second - bias**2


def _average(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    spread, gap = pair.spread(), pair.gap
    covariance = (spread.v1 + spread.v2 - spread.theta**2) / 2
    return 0.0 - np.abs(gap) / 2, np.full_like(gap, (spread.v1 + spread.v2 + 2 * covariance) / 4)


def _double(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    a, b = pair.halves()
    return _one_direction(a, b, pair.gap)


def _one_direction(select: Spread, evaluate: Spread, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    p, _ = select.select_first(gap)
    q = select.select_first(-gap)[0]
    bias = 0.0 - np.abs(gap) * np.where(gap > 0, q, p)
    return bias, p * evaluate.v1 + q * evaluate.v2 + p * q * gap**2


def _cross_validation(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    r"""Both directions share the data: Cov = E[D_A^+] E[D_B^+] - gap (gap p_A p_B + b_A peak_A + b_B peak_B)."""
    a, b = pair.halves()
    gap = pair.gap
    # The covariance does not change when the options trade places; the smaller probabilities keep it from cancelling.
    size = np.abs(gap)
    (bias_a, variance_a), (bias_b, variance_b) = _one_direction(a, b, gap), _one_direction(b, a, gap)
    (p_a, peak_a), (p_b, peak_b) = a.select_first(-size), b.select_first(-size)
    share_a, share_b = (np.where(gap > 0, 1 - s.share, s.share) for s in (a, b))
    shortfall_a, shortfall_b = peak_a - size * p_a, peak_b - size * p_b
    covariance = shortfall_a * shortfall_b + size * (share_a * peak_a + share_b * peak_b) - size**2 * p_a * p_b
    return (bias_a + bias_b) / 2, (variance_a + variance_b + 2 * covariance) / 4


CLOSED: dict[str, Callable[[Pair], tuple[np.ndarray, np.ndarray]]] = {
    "me": _maximum,
    "ae": _average,
    "de": _double,
    "cve": _cross_validation,
}
