"""Means with the variances of the means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..arrays import Array, Rng, streams
from ..errors import DataError
from .moments import unit_for
from .protocol import Data


@dataclass(frozen=True)
class Summaries:
    """Means with the variances of the means, when the observations themselves are not available.

    >>> Summaries(np.array([1.0, 2.0]), np.array([0.1, 0.2])).split(2, rng=0)
    Traceback (most recent call last):
    maxmean.mev.errors.DataError: the observations are needed to split them, and only summaries were given
    """

    means: Array
    variances: Array
    n: tuple[int, ...] | None = None
    """Observations per option, if known."""
    covariances: Array | None = None
    unit: float = 1.0
    """What a mean of 1 stands for, where the numbers are so large or small that their squares would not be numbers."""
    parts: dict[int, Array] = field(default_factory=dict)
    """Means of disjoint random parts, shape ``(parts, ..., M)``, by the number of parts, if the data have been split already."""

    @classmethod
    def of(
        cls,
        mean: np.ndarray,
        se: np.ndarray | None,
        sd: np.ndarray | None,
        n: np.ndarray | None,
        names: Sequence[str],
    ) -> Summaries:
        """Summaries from means and standard errors, or standard deviations and numbers of observations."""
        broken = np.flatnonzero(n != np.rint(n)) if n is not None else np.array([])
        if n is not None and broken.size:
            raise DataError(f"option {names[broken[0]]!r}: n must be a whole number, not {n[broken[0]]:g}")
        if se is None:
            if sd is None or n is None:
                raise DataError("summaries need the mean and its standard error se, or the standard deviation sd and n")
            few = np.flatnonzero(n < 2)
            if few.size:
                raise DataError(f"option {names[few[0]]!r} has fewer than two values")
            se = sd / np.sqrt(n)
        unit = unit_for(mean, se)
        return cls(mean / unit, (se / unit) ** 2, None if n is None else tuple(int(k) for k in n), unit=unit)

    def split(self, parts: int, rng: Rng) -> Array:
        if parts not in self.parts:
            raise DataError("the observations are needed to split them, and only summaries were given")
        return self.parts[parts]

    def resample(
        self, size: int, rng: np.random.Generator, parts: Sequence[int] = (), *, pairs: bool = True
    ) -> Summaries:
        """Gaussian means; with known n, the variances vary as those of Gaussian samples do."""
        shape = (size, *self.means.shape)
        means = self.means + np.sqrt(self.variances) * rng.standard_normal(shape)
        variances = np.broadcast_to(self.variances, shape)
        if self.n is not None:
            freedom = np.asarray(self.n) - 1
            variances = variances * rng.chisquare(freedom, shape) / freedom
        return Summaries(means, variances, self.n)

    def shifted(self, by: Array) -> Summaries:
        """The same noise around other means: what a simulation reuses for many values of mu."""
        return replace(self, means=self.means + by, parts={k: means + by for k, means in self.parts.items()})

    def scaled(self, factor: float) -> Summaries:
        return replace(
            self,
            means=self.means * factor,
            variances=self.variances * factor * factor,
            covariances=None if self.covariances is None else self.covariances * factor * factor,
            parts={k: means * factor for k, means in self.parts.items()},
        )


def summarise(data: Data, rng: Rng, parts: Sequence[int] = (2,)) -> Summaries:
    """All that the estimators will ask ``data`` for, computed once; the observations can then be forgotten."""
    splits = {p: data.split(p, r) for p, r in zip(parts, streams(rng, len(parts)), strict=True)}
    return Summaries(data.means, data.variances, covariances=data.covariances, parts=splits)
