"""Successes out of trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Rng
from ..errors import ArgumentError
from .parts import check_parts


@dataclass(frozen=True)
class Counts:
    """Successes out of trials, for data of zeros and ones: as good as the rows themselves, and much smaller.

    >>> Counts(np.array([2, 3]), np.array([4, 4])).means
    array([0.5 , 0.75])
    """

    successes: np.ndarray
    """Shape ``(..., M)``."""
    trials: np.ndarray
    """Shape ``(..., M)``, or anything that broadcasts to it."""

    covariances: None = None

    @property
    def n(self) -> tuple[int, ...]:
        return tuple(
            int(n) for n in np.broadcast_to(self.trials, self.successes.shape).reshape(-1, self.successes.shape[-1])[0]
        )

    @cached_property
    def means(self) -> np.ndarray:
        return self.successes / self.trials

    @cached_property
    def variances(self) -> np.ndarray:
        return self.means * (1 - self.means) / (self.trials - 1)

    def split(self, parts: int, rng: Rng) -> np.ndarray:
        """A random half of the rows holds a hypergeometric number of the successes: no row needs to be drawn."""
        generator = np.random.default_rng(rng)
        trials = np.broadcast_to(self.trials, self.successes.shape).astype(np.int64)
        check_parts(int(trials.min()), parts)
        left, left_trials = self.successes.astype(np.int64), trials.copy()
        means = []
        for k in range(parts):
            size = trials // parts + (k < trials % parts)
            share = _hypergeometric(generator, left, left_trials - left, size) if k < parts - 1 else left
            means.append(share / size)
            left, left_trials = left - share, left_trials - size
        return np.stack(means)

    def resample(self, size: int, rng: np.random.Generator, parts: Sequence[int] = (), *, pairs: bool = True) -> Counts:
        trials = np.broadcast_to(self.trials, self.successes.shape).astype(np.int64)
        return Counts(rng.binomial(trials, self.means, (size, *self.successes.shape)), trials)

    def failures(self) -> Counts:
        """Where fewer successes are better, more failures are."""
        return Counts(self.trials - self.successes, self.trials)

    def scaled(self, factor: float) -> Counts:
        if factor != 1:
            raise ArgumentError("counts have no units to scale")
        return self


def _hypergeometric(rng: np.random.Generator, good: np.ndarray, bad: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Hypergeometric numbers; from a billion on, where NumPy has none, by their normal limit."""
    if max(good.max(), bad.max()) < 10**9:
        return rng.hypergeometric(good, bad, size)
    total = good + bad
    share = good / total
    spread = np.sqrt(size * share * (1 - share) * ((total - size) / (total - 1)))
    drawn = np.rint(size * share + spread * rng.standard_normal(good.shape)).astype(np.int64)
    return np.clip(drawn, np.maximum(0, size - bad), np.minimum(good, size))
