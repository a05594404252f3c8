"""Means of observations and how they vary, in the order of operations that keeps their digits."""

from __future__ import annotations

import math

import numpy as np

from ..arrays import Array


def mean(xp: Array, values: Array) -> Array:
    """Mean over the last axis, which stays; relative to the first value, so that a constant's mean is that constant."""
    first = values[..., :1]
    return first + xp.mean(values - first, axis=-1, keepdims=True)


def variance_of_mean(xp: Array, values: Array) -> Array:
    n = values.shape[-1]
    deviations = values - mean(xp, values)
    return xp.sum(deviations * deviations, axis=-1) / (n * (n - 1))


def skewness(values: np.ndarray) -> float:
    """The third central moment in units of the standard deviation's cube; 0 where all values are equal.

    >>> round(skewness(np.array([0.0, 0.0, 0.0, 4.0])), 4)
    1.1547
    """
    apart = values - values.mean()
    spread = math.sqrt(float(np.mean(np.square(apart))))
    return float(np.mean((apart / spread) ** 3)) if spread > 0 else 0.0


def skewness_error(n: int) -> float:
    """The standard deviation of the skewness of n normal values; infinite for fewer than three.

    >>> round(skewness_error(20), 3)
    0.473
    """
    return math.sqrt(6 * (n - 2) / ((n + 1) * (n + 3))) if n > 2 else math.inf


def covariances_of_means(xp: Array, values: Array) -> Array:
    """From ``(..., options, n)``."""
    n = values.shape[-1]
    centred = values - mean(xp, values)
    return xp.matmul(centred, xp.matrix_transpose(centred)) / (n * (n - 1))


def matrix_root(covariance: np.ndarray) -> np.ndarray:
    """R with R'R = covariance; a singular matrix is fine."""
    eigenvalues, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(eigenvalues, 0))).T


def unit_for(*arrays: np.ndarray) -> float:
    """A power of two near the largest value if that value's square would leave the floating point range, else 1."""
    largest = max(float(np.max(np.abs(array))) for array in arrays)
    return 1.0 if largest == 0 or 1e-100 < largest < 1e100 else 2.0 ** min(max(math.frexp(largest)[1], -1000), 1000)
