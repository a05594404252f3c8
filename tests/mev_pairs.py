"""Two Gaussian options, derived again by hand: what the exact moments and the tuned kernels are judged by.

The first option's mean is N(gap, v1), the second's N(0, v2), independent; D is their difference and theta its standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import ndtr, ndtri

Kappa = Callable[[np.ndarray], np.ndarray]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(400)


def phi(z: Any) -> Any:
    return np.exp(-np.square(z) / 2) / math.sqrt(2 * math.pi)


def indicator(alpha: float) -> tuple[Kappa, tuple[float, ...]]:
    """The T-Estimator's kernel, and where it jumps."""
    quantile = float(ndtri(alpha))
    return (lambda t: (t >= quantile) * 1.0), (quantile,)


def gaussian(scale: float = 1.0) -> tuple[Kappa, tuple[float, ...]]:
    return (lambda t: ndtr(t / scale)), ()


def epanechnikov() -> tuple[Kappa, tuple[float, ...]]:
    return (lambda t: 0.75 * np.maximum(1 - t * t, 0)), (-1.0,)


def beta(a: float, b: float, cuts: Sequence[float] = ()) -> tuple[Kappa, tuple[float, ...]]:
    """The beta law on [-5, 0]; ``cuts`` are further places to split the integral, around a steep step."""
    return (lambda t: stats.beta.cdf(1 + t / 5, a, b)), (-5.0, *cuts)


def kernel_moments(
    kernel: tuple[Kappa, Sequence[float]], gap: Any, v1: float = 1.0, v2: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Bias and variance of the K-estimate for every gap, by one integral over D.

    The estimate is the larger mean less w |D|, where w is the weight of the smaller one: X1 - w D if D > 0, else
    X1 + (1 - w) |D|. Given D, X1 is normal around gap + v1/theta² (D - gap) with variance v1 v2/theta², and only D is left.
    """
    kappa, kinks = kernel
    gaps = np.atleast_1d(np.asarray(gap, dtype=float))[:, None]
    theta = math.sqrt(v1 + v2)
    cuts = [0.0, *sorted(-k * theta for k in kinks), gaps.max() + 12 * theta]
    first, second = np.zeros(len(gaps)), np.zeros(len(gaps))
    for low, high in pairwise(cuts):
        size = (low + high) / 2 + (high - low) / 2 * _NODES
        k = kappa(-size / theta)
        weight = k / (kappa(np.zeros(1)) + k)
        for d, change in ((size, -weight * size), (-size, (1 - weight) * size)):
            value = v1 / theta**2 * (d - gaps) + change  # relative to the gap
            mass = phi((d - gaps) / theta) / theta * (high - low) / 2 * _WEIGHTS
            first += (value * mass).sum(axis=1)
            second += (value**2 * mass).sum(axis=1)
    return first, v1 * v2 / theta**2 + second - first**2


def squared_bias(kernel: tuple[Kappa, Sequence[float]], gaps: Any) -> float:
    """Mean over the gaps of the squared bias."""
    return float(np.mean(kernel_moments(kernel, gaps)[0] ** 2))


def split_variances(gap: Any, v1: float = 1.0, v2: float = 1.0) -> tuple[Any, Any]:
    """Variances of DE and CVE, from two halves A and B whose means have the variances v1 and v2.

    DE is B_i, where i wins A; CVE is the mean of that and A_j, where j wins B. E[B_i A_j] is the sum over i and j of
    E[A_j; i wins A] E[B_i; j wins B], and these are partial moments of two normals: E[A_1; 1 wins] = gap p + v1/theta phi.
    """
    theta = math.sqrt(v1 + v2)
    p, peak = ndtr(gap / theta), phi(gap / theta) / theta
    double = (v1 + gap**2) * p + v2 * (1 - p) - (gap * p) ** 2
    e11, e12, e21, e22 = gap * p + v1 * peak, gap * (1 - p) - v1 * peak, -v2 * peak, v2 * peak
    shared = e11**2 + 2 * e12 * e21 + e22**2 - (gap * p) ** 2
    return double, (double + shared) / 2


def weighted_bias(gap: float, v: float) -> float:
    """Bias of WE with equal variances: E[D Phi(D/theta)] - gap, by E[Z Phi(Z)] = m Phi(m/√2) + phi(m/√2)/√2, Z ~ N(m, 1)."""
    theta = math.sqrt(2 * v)
    m = gap / theta
    return float(theta * (m * ndtr(m / math.sqrt(2)) + phi(m / math.sqrt(2)) / math.sqrt(2)) - gap)
