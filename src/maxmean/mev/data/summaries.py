"""Means with the variances of the means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..arrays import Array, Rng, streams
from ..errors import DataError
from .moments import matrix_root, unit_for
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
        covariance: np.ndarray | None = None,
    ) -> Summaries:
        """Summaries from means with standard errors, or standard deviations and n, or a covariance matrix of the means."""
        broken = np.flatnonzero(n != np.rint(n)) if n is not None else np.array([])
        if n is not None and broken.size:
            raise DataError(f"option {names[broken[0]]!r}: n must be a whole number, not {n[broken[0]]:g}")
        few = np.flatnonzero(n < 2) if n is not None else np.array([])
        if n is not None and few.size:
            raise DataError(f"option {names[few[0]]!r} has fewer than two values")
        if se is None and sd is not None and n is not None:
            se = sd / np.sqrt(n)
        if covariance is not None:
            implied = np.sqrt(covariance.diagonal())
            other = np.flatnonzero(np.abs(se - implied) > 0.01 * implied) if se is not None else np.array([])
            if se is not None and other.size:
                k = other[0]
                raise DataError(
                    f"option {names[k]!r}: its standard error is {se[k]:g}, but {implied[k]:g} by the covariance matrix"
                )
            se = implied
        if se is None:
            raise DataError("summaries need the mean and its standard error se, or the standard deviation sd and n")
        unit = unit_for(mean, se)
        counts = None if n is None else tuple(int(k) for k in n)
        matrix = None if covariance is None else covariance / unit / unit
        return cls(mean / unit, (se / unit) ** 2 if matrix is None else matrix.diagonal(), counts, matrix, unit)

    def split(self, parts: int, rng: Rng) -> Array:
        if parts not in self.parts:
            raise DataError("the observations are needed to split them, and only summaries were given")
        return self.parts[parts]

    def resample(
        self, size: int, rng: np.random.Generator, parts: Sequence[int] = (), *, pairs: bool = True
    ) -> Summaries:
        """Gaussian means; with known n, the variances vary as those of Gaussian samples do."""
        shape = (size, *self.means.shape)
        noise = rng.standard_normal(shape)
        noise = np.sqrt(self.variances) * noise if self.covariances is None else noise @ matrix_root(self.covariances)
        factors = np.ones(1)
        if self.n is not None:
            freedom = np.asarray(self.n) - 1
            factors = rng.chisquare(freedom, shape) / freedom
        covariances = None
        if self.covariances is not None and pairs:
            roots = np.sqrt(factors)
            covariances = np.broadcast_to(
                self.covariances * (roots[..., None] * roots[..., None, :]), (*shape, shape[-1])
            )
        variances = np.broadcast_to(self.variances * factors, shape)
        return Summaries(self.means + noise, variances, self.n, covariances)

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
