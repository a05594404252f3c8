"""Observations of every option, one by one or in pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise

import numpy as np

from ..arrays import Array, Rng, as_floats, namespace, streams, uniform
from ..errors import DataError
from .moments import covariances_of_means, matrix_root, mean, variance_of_mean
from .parts import check_parts, part_means, part_sizes
from .summaries import Summaries

EXACT_RESAMPLING = 5_000
"""An option with more observations than this is resampled by the central limit theorem instead of row by row."""

_HELD = 1_000_000  # numbers drawn for a group of options at once


@dataclass(frozen=True)
class Samples:
    """Observations of each option: one array per option, the last axis running over its observations.

    >>> data = Samples.of([[1.0, 3.0], [2.0, 2.0, 5.0]])
    >>> data.means, data.variances
    (array([2., 3.]), array([1., 1.]))
    """

    values: tuple[Array, ...]
    """Floating point arrays; :meth:`of` makes them of anything."""
    paired: bool = False
    """Whether row k of every option belongs to the same unit (a user, a day), so that covariances are defined."""

    @classmethod
    def of(cls, samples: Array, *, paired: bool | None = None) -> Samples:
        """From a sequence of arrays (lengths may differ), or one array of shape ``(..., n, M)``, taken as paired."""
        if hasattr(samples, "ndim"):
            if samples.ndim < 2:
                raise DataError(f"an array of samples needs two axes (observations, options), not {samples.ndim}")
            xp = namespace(samples)
            columns = tuple(as_floats(xp, samples[..., i])[0] for i in range(samples.shape[-1]))
            return cls(columns, paired is not False)
        xp = namespace(*samples)
        return cls(tuple(as_floats(xp, values)[0] for values in samples), bool(paired))

    @property
    def n(self) -> tuple[int, ...]:
        return tuple(int(values.shape[-1]) for values in self.values)

    @cached_property
    def means(self) -> Array:
        xp = namespace(*self.values)
        return xp.stack([mean(xp, values)[..., 0] for values in self.values], axis=-1)

    @cached_property
    def variances(self) -> Array:
        xp = namespace(*self.values)
        return xp.stack([variance_of_mean(xp, values) for values in self.values], axis=-1)

    @cached_property
    def covariances(self) -> Array:
        if not self.paired:
            return None
        if len(set(self.n)) > 1:
            raise DataError("paired samples must have the same number of observations for every option")
        xp = namespace(*self.values)
        return covariances_of_means(xp, xp.stack(list(self.values), axis=-2))

    def split(self, parts: int, rng: Rng) -> Array:
        xp = namespace(*self.values)
        # Pairs stay together: the same numbers shuffle every option. Otherwise one option's first half would be correlated
        # with another's second half, and no part would be independent of the rest.
        rngs = streams(rng, 1) * len(self.values) if self.paired else streams(rng, len(self.values))
        means = [self._split_one(xp, values, parts, r) for values, r in zip(self.values, rngs, strict=True)]
        return xp.stack(means, axis=-1)

    @staticmethod
    def _split_one(xp: Array, values: Array, parts: int, rng: Rng) -> Array:
        n = int(values.shape[-1])
        check_parts(n, parts)
        if xp is np:
            shuffled = np.random.default_rng(rng).permuted(values, axis=-1)
        else:
            order = xp.argsort(uniform(rng, tuple(values.shape), values), axis=-1)
            shuffled = xp.take_along_axis(values, order, axis=-1)
        edges = np.cumsum([0, *part_sizes(n, parts)])
        return xp.stack([mean(xp, shuffled[..., a:b])[..., 0] for a, b in pairwise(edges)])

    def resample(
        self, size: int, rng: np.random.Generator, parts: Sequence[int] = (), *, pairs: bool = True
    ) -> Summaries:
        if self.paired:
            return self._resample_rows(size, rng, parts, pairs)
        groups = [_resample_options(values, size, rng, parts) for values in _alike(self.values, size)]
        means, variances, splits = zip(*groups, strict=True)

        def together(pieces: Sequence[np.ndarray]) -> np.ndarray:
            return np.ascontiguousarray(np.concatenate(pieces, axis=-1))  # sums depend on the order in memory

        return Summaries(
            together(means), together(variances), parts={p: together([split[p] for split in splits]) for p in parts}
        )

    def _resample_rows(self, size: int, rng: np.random.Generator, parts: Sequence[int], pairs: bool) -> Summaries:
        table = np.stack(self.values, axis=-1)
        n, options = table.shape
        if n > EXACT_RESAMPLING:
            root = matrix_root(self.covariances)
            # A stream of their own for the parts: asking for them must not change the means.
            (parts_rng,) = rng.spawn(1)

            def gaussian(rng: np.random.Generator, observations: int) -> np.ndarray:
                return self.means + np.sqrt(n / observations) * (rng.standard_normal((size, options)) @ root)

            return Summaries(
                gaussian(rng, n),
                np.broadcast_to(self.variances, (size, options)),
                covariances=np.broadcast_to(self.covariances, (size, options, options)) if pairs else None,
                parts={p: np.stack([gaussian(parts_rng, s) for s in part_sizes(n, p)]) for p in parts},
            )
        # How often each row is drawn says it all: sums over rows are products of matrices.
        chosen, centre = rng.integers(0, n, (size, n)), np.asarray(self.means)
        apart = table - centre
        times = _times(chosen, n)
        moved = times @ apart / n
        squares = times @ np.square(apart) / n - np.square(moved)
        splits = {
            p: np.stack([centre + _times(block, n) @ apart / block.shape[1] for block in _blocks(chosen, p)])
            for p in parts
        }
        covariances = None
        if pairs:
            covariances = np.empty((size, options, options))
            for i in range(options):
                both = times @ (apart[:, i:] * apart[:, [i]]) / n - moved[:, i:] * moved[:, [i]]
                covariances[:, i, i:] = covariances[:, i:, i] = both / (n - 1)
        return Summaries(centre + moved, np.maximum(squares, 0.0) / (n - 1), covariances=covariances, parts=splits)

    def failures(self) -> Samples:
        """Of zeros and ones, the others: where fewer successes are better, more failures are."""
        return replace(self, values=tuple(1 - values for values in self.values))

    def scaled(self, factor: float) -> Samples:
        if factor == 1:  # there may be millions of values
            return self
        return replace(self, values=tuple(values * factor for values in self.values))


def _times(chosen: np.ndarray, n: int) -> np.ndarray:
    """How often each of n rows is chosen, [size, n]."""
    size = len(chosen)
    places = chosen + n * np.arange(size)[:, None]
    return np.bincount(places.ravel(), minlength=size * n).reshape(size, n).astype(float)


def _blocks(chosen: np.ndarray, parts: int) -> list[np.ndarray]:
    """Rows are drawn in random order: consecutive blocks of them are random parts."""
    return np.split(chosen, np.cumsum(part_sizes(chosen.shape[1], parts))[:-1], axis=1)


def _alike(samples: Sequence[np.ndarray], size: int) -> Iterator[np.ndarray]:
    """The options in their order, those of one length that follow each other together, shape ``(options, n)``."""
    for n, group in groupby(samples, key=len):
        options, step = list(group), max(1, _HELD // (size * n)) if n <= EXACT_RESAMPLING else 1
        for k in range(0, len(options), step):
            yield np.stack(options[k : k + step])


def _resample_options(
    options: np.ndarray, size: int, rng: np.random.Generator, parts: Sequence[int]
) -> tuple[np.ndarray, np.ndarray, dict[int, np.ndarray]]:
    """Bootstrap means, variances of the means and part means, each of ``size`` copies of every option on the last axis."""
    count, n = options.shape
    if n <= EXACT_RESAMPLING:
        chosen = rng.integers(0, n, (count, size, n))
        drawn = np.take_along_axis(options[:, None], chosen, axis=-1)
        splits = {p: np.moveaxis(means, 1, -1) for p, means in part_means(drawn, parts, axis=-1).items()}
        return drawn.mean(axis=-1).T, variance_of_mean(np, drawn).T, splits
    (values,) = options
    # The mean and the variance of a resample are jointly normal up to terms of order 1/n. Their correlation comes from
    # the skewness of the sample, the spread of the variance from its kurtosis.
    centre, spread = values.mean(), values.std()
    scores = values - centre
    scores /= spread or 1.0
    squares = scores * scores
    scores *= squares  # in place: there may be millions
    skewness = float(np.mean(scores))
    squares *= squares
    kurtosis = float(np.mean(squares))
    first, second = rng.standard_normal((2, size))
    wobble = (skewness * first + np.sqrt(max(kurtosis - 1 - skewness**2, 0.0)) * second) / np.sqrt(n)
    variances = spread**2 * np.maximum(1 + wobble, 0) / n
    (parts_rng,) = rng.spawn(1)  # asking for parts must not change the means
    means = {
        p: np.stack([centre + spread / np.sqrt(s) * parts_rng.standard_normal(size) for s in part_sizes(n, p)])[
            ..., None
        ]
        for p in parts
    }
    return (centre + spread / np.sqrt(n) * first)[:, None], variances[:, None], means
