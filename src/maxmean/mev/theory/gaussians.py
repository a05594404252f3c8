"""Two Gaussian options and the second moments of their means: what the exact forms are written in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from ..data.parts import part_sizes
from ..errors import ArgumentError
from .quadrature import density


@dataclass(frozen=True)
class Pair:
    """Two Gaussian options; ``spread`` holds the moments of their means, ``halves`` those of the two halves' means."""

    mu: tuple[np.ndarray, np.ndarray]
    sigma: tuple[float, float]
    n: tuple[int, int]
    correlation: float

    @staticmethod
    def make(mu: tuple[Any, Any], sigma: Any, n: Any, correlation: float) -> Pair:
        first, second = np.broadcast_arrays(*(np.asarray(m, dtype=float) for m in mu))
        sigmas = tuple(float(s) for s in np.broadcast_to(sigma, 2))
        sizes = tuple(int(size) for size in np.broadcast_to(n, 2))
        if not (np.all(np.isfinite(first)) and np.all(np.isfinite(second))):
            raise ArgumentError("mu must be finite")
        if not all(0 <= s < math.inf for s in sigmas):
            raise ArgumentError(f"sigma must be finite and not negative, not {sigma}")
        if not np.array_equal(np.broadcast_to(n, 2), sizes) or min(sizes) < 1:
            raise ArgumentError(f"n must be a whole number of at least 1, not {n}")
        if not -1 <= correlation <= 1:
            raise ArgumentError(f"correlation must lie in [-1, 1], not {correlation}")
        if correlation and sizes[0] != sizes[1]:
            raise ArgumentError(f"correlated samples are paired and so of equal size, not {sizes[0]} and {sizes[1]}")
        return Pair((first, second), (sigmas[0], sigmas[1]), (sizes[0], sizes[1]), float(correlation))

    @property
    def gap(self) -> np.ndarray:
        return self.mu[0] - self.mu[1]

    def spread(self) -> Spread:
        return Spread.make(self.sigma, self.n, self.correlation)

    def halves(self) -> tuple[Spread, Spread]:
        if min(self.n) < 2:
            raise ArgumentError(f"two halves need n of at least 2, not {min(self.n)}")
        sizes = [part_sizes(size, 2) for size in self.n]
        first, second = zip(*sizes, strict=True)
        return Spread.make(self.sigma, first, self.correlation), Spread.make(self.sigma, second, self.correlation)


@dataclass(frozen=True)
class Spread:
    """Second moments of two means: variances, standard deviation of the difference, and the independent rest A."""

    v1: float
    v2: float
    theta: float
    share: float
    """b, the multiple of D in A."""
    rest: float
    """Variance of A."""

    @staticmethod
    def make(sigma: tuple[float, float], sizes: Sequence[int], correlation: float) -> Spread:
        s1, s2 = (s / math.sqrt(size) for s, size in zip(sigma, sizes, strict=True))
        # Written so that nothing cancels when the two means are almost the same variable.
        theta = math.sqrt((s1 - s2) ** 2 + 2 * (1 - correlation) * s1 * s2)
        if theta == 0:
            return Spread(s1 * s1, s2 * s2, 0.0, 0.0, s2 * s2)
        share = (s2 / theta) * ((s2 - s1) + (1 - correlation) * s1) / theta
        rest = (s1 / theta) ** 2 * s2**2 * (1 - correlation) * (1 + correlation)
        return Spread(s1 * s1, s2 * s2, theta, share, rest)

    def select_first(self, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P(D > 0), and theta times the standard normal density of gap/theta."""
        if self.theta == 0:
            return (1 + np.sign(gap)) / 2, np.zeros_like(gap)
        z = gap / self.theta
        return ndtr(z), self.theta * density(z)
