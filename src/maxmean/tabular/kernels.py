"""The kernels of :mod:`maxmean.mev` inside compiled loops.

Speed forces a second implementation here; ``tests/tabular/test_compiled_kernels.py`` ties it to the first. The Gaussian cdf
is read from a table (absolute error below 3e-8) and so are functions of the user's; everything else is the formula
itself, to rounding (Student's t and beta: an absolute error below 1e-12 for parameters up to 1000).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.special import ndtr, ndtri

from ..mev import Beta, Epanechnikov, Gaussian, Indicator, Kernel, Softmax, StudentT, Triangle
from .checks import MDPError

_KNOWN = (Indicator, Gaussian, StudentT, Beta)

INDICATOR, GAUSSIAN, SOFTMAX, EPANECHNIKOV, TRIANGLE, STUDENT_T, BETA, TABLE = range(8)

_STEPS = 1024  # table entries a unit of T
_REACH = 9.0
_FARTHEST = -math.sqrt(np.finfo(float).max) / 16  # whose square is finite, as in ``mev``
_PHI = ndtr(np.arange(-int(_REACH * _STEPS) - 1, 2) / _STEPS)


class CompiledKernel(NamedTuple):
    """A kernel as plain numbers: which one, its parameters, its value at T = 0, and a table for functions of the user's."""

    code: int
    first: float
    second: float
    top: float
    reach: float
    """Square of a T from which on the kernel is zero, to double precision; 0 if it is zero for every T < 0."""
    table: np.ndarray


def compile_kernel(kernel: Kernel) -> CompiledKernel:
    """A kernel of ``mev`` in the form that compiled loops take."""
    none = np.zeros((2, 0))
    several = next(
        (name for name, value in vars(kernel).items() if isinstance(kernel, _KNOWN) and np.ndim(value)), None
    )
    if several is not None:
        raise MDPError(
            f"a kernel in a compiled loop has one number for {several}, not {np.shape(getattr(kernel, several))}"
        )
    match kernel:
        case Indicator():
            threshold = float(ndtri(kernel.alpha))
            return CompiledKernel(INDICATOR, threshold, 0.0, 1.0, _just_over(threshold), none)
        case Gaussian():
            scale = float(kernel.scale)
            return CompiledKernel(GAUSSIAN, scale, 0.0, 0.5, _just_over(_REACH * scale), none)
        case Softmax():
            return CompiledKernel(SOFTMAX, 0.0, 0.0, 1.0, _just_over(746.0), none)
        case Epanechnikov():
            return CompiledKernel(EPANECHNIKOV, 0.0, 0.0, 0.75, _just_over(1.0), none)
        case Triangle():
            return CompiledKernel(TRIANGLE, 0.0, 0.0, 1.0, _just_over(1.0), none)
        case StudentT():
            return CompiledKernel(STUDENT_T, float(kernel.df), 0.0, 0.5, math.inf, none)
        case Beta():
            return CompiledKernel(BETA, float(kernel.a), float(kernel.b), 1.0, _just_over(5.0), none)
    grid = np.concatenate(
        [-np.geomspace(1e12, _REACH, 20_000, endpoint=False), -np.arange(int(_REACH * _STEPS), -1, -1) / _STEPS]
    )
    values = np.asarray(kernel(grid), dtype=float)
    return CompiledKernel(TABLE, 0.0, 0.0, float(values[-1]), math.inf, np.stack([grid, values]))


def _just_over(t: float) -> float:
    """T² with room for rounding: what lies at the edge itself is left to the kernel."""
    return t * t * (1 + 1e-12)


@njit(cache=True, error_model="numpy")
def kernel_value(kernel: CompiledKernel, t: float) -> float:
    """kappa(T) for T < 0, -inf included."""
    code = kernel.code
    if code == INDICATOR:
        return 1.0 if t >= kernel.first else 0.0
    if code == GAUSSIAN:
        return phi(t / kernel.first)
    if code == SOFTMAX:
        return math.exp(t)
    if code == EPANECHNIKOV:
        return 0.75 * (1.0 - t * t) if t > -1.0 else 0.0
    if code == TRIANGLE:
        return 1.0 + t if t > -1.0 else 0.0
    if code == STUDENT_T:
        return _student_t(t, kernel.first)
    if code == BETA:
        return _beta_cdf(kernel.first, kernel.second, 1.0 + t / 5.0) if t > -5.0 else 0.0
    return float(np.interp(t, kernel.table[0], kernel.table[1])) if t > kernel.table[0, 0] else 0.0


@njit(cache=True, error_model="numpy", inline="always")
def phi(z: float) -> float:
    """The standard normal distribution function for z <= 0, by linear interpolation between exact values."""
    position = (z + _REACH) * _STEPS
    if not position > 0.0:
        return 0.0
    k = int(position)
    return _PHI[k + 1] + (position - k) * (_PHI[k + 2] - _PHI[k + 1])


@njit(cache=True, error_model="numpy")
def _student_t(t: float, df: float) -> float:
    if t == -math.inf:
        return 0.0
    scaled = max(t / math.sqrt(df), _FARTHEST)
    ratio = scaled * scaled
    if ratio < 1.0:
        return 0.5 * (1.0 - _beta_cdf(0.5, 0.5 * df, ratio / (1.0 + ratio)))
    return 0.5 * _beta_cdf(0.5 * df, 0.5, 1.0 / (1.0 + ratio))


@njit(cache=True, error_model="numpy")
def _beta_cdf(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function by its continued fraction (Lentz's method), on the side where it is short."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    mirrored = x > (a + 1.0) / (a + b + 2.0)
    if mirrored:
        a, b, x = b, a, 1.0 - x
    log_front = a * math.log(x) + b * math.log1p(-x) - (math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b))
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / _away_from_zero(1.0 + even * d)
        c = _away_from_zero(1.0 + even / c)
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1.0 / _away_from_zero(1.0 + odd * d)
        c = _away_from_zero(1.0 + odd / c)
        change = d * c
        value *= change
        if abs(change - 1.0) < 1e-16:
            break
    value *= math.exp(log_front) / a
    return 1.0 - value if mirrored else value


@njit(cache=True, error_model="numpy", inline="always")
def _away_from_zero(x: float) -> float:
    return 1e-300 if abs(x) < 1e-300 else x
