"""Data about several options, in the three shapes it comes in: samples, counts, or summaries.

All three give what the estimators ask for: ``means``, ``variances`` (of the means), ``covariances`` (of the means, for
paired samples), the means of disjoint random parts (``split``), and bootstrap copies of themselves (``resample``). A
batch of problems is the same thing with leading axes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Protocol

import numpy as np

from ..errors import MaxmeanError
from .arrays import Array, Rng, as_floats, namespace, streams, uniform

EXACT_RESAMPLING = 5_000
"""An option with more observations than this is resampled by the central limit theorem instead of row by row."""


class DataError(MaxmeanError):
    """Data that an estimator cannot use; the message is one sentence that names the option or the value."""


class Data(Protocol):
    """What every shape of data offers. The last axis runs over the options."""

    @property
    def means(self) -> Array: ...
    @property
    def variances(self) -> Array: ...
    @property
    def covariances(self) -> Array | None: ...
    def split(self, parts: int, rng: Rng) -> Array:
        """Means of ``parts`` disjoint random parts of each option's data, shape ``(parts, ..., M)``."""
        ...

    def resample(self, size: int, rng: np.random.Generator, parts: Sequence[int] = (), *, pairs: bool = True) -> Data:
        """``size`` bootstrap copies, on a new leading axis; ``parts`` are the splits that will be asked for.

        ``pairs`` says whether the copies' covariances will be: of thousands of options, they take most of the time.
        """
        ...

    def scaled(self, factor: float) -> Data:
        """The same data in other units."""
        ...


@dataclass(frozen=True)
class Samples:
    """Observations of each option: one array an option, the last axis running over its observations.

    >>> data = Samples.of([[1.0, 3.0], [2.0, 2.0, 5.0]])
    >>> data.means, data.variances
    (array([2., 3.]), array([1., 1.]))
    """

    values: tuple[Array, ...]
    """Floating point arrays; :meth:`of` makes them of anything."""
    paired: bool = False
    """Row k of every option belongs to one unit (a user, a day), so that covariances mean something."""

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
        return xp.stack([_mean(xp, values)[..., 0] for values in self.values], axis=-1)

    @cached_property
    def variances(self) -> Array:
        xp = namespace(*self.values)
        return xp.stack([_variance_of_mean(xp, values) for values in self.values], axis=-1)

    @cached_property
    def covariances(self) -> Array:
        if not self.paired:
            return None
        if len(set(self.n)) > 1:
            raise DataError("paired samples must have the same number of observations for every option")
        xp = namespace(*self.values)
        return _covariances_of_means(xp, xp.stack(list(self.values), axis=-2))

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
        _check_parts(n, parts)
        if xp is np:
            shuffled = np.random.default_rng(rng).permuted(values, axis=-1)
        else:
            order = xp.argsort(uniform(rng, tuple(values.shape), values), axis=-1)
            shuffled = xp.take_along_axis(values, order, axis=-1)
        edges = np.cumsum([0, *part_sizes(n, parts)])
        return xp.stack([_mean(xp, shuffled[..., a:b])[..., 0] for a, b in pairwise(edges)])

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
        rows = table[rng.integers(0, n, (size, n))]
        part_means = _part_means(rows, parts, axis=1)
        rows = np.ascontiguousarray(rows.swapaxes(1, 2))  # (size, options, n): sums run over neighbours in memory
        return Summaries(
            _mean(np, rows)[..., 0],
            _variance_of_mean(np, rows),
            covariances=_covariances_of_means(np, rows) if pairs else None,
            parts=part_means,
        )

    def scaled(self, factor: float) -> Samples:
        if factor == 1:  # there may be millions of values
            return self
        return replace(self, values=tuple(values * factor for values in self.values))


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
        _check_parts(int(trials.min()), parts)
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

    def scaled(self, factor: float) -> Counts:
        if factor != 1:
            raise DataError("counts have no units to scale")
        return self


@dataclass(frozen=True)
class Summaries:
    """Means with the variances of the means, where the observations themselves are not at hand.

    >>> Summaries(np.array([1.0, 2.0]), np.array([0.1, 0.2])).split(2, rng=0)
    Traceback (most recent call last):
    maxmean.mev.data.DataError: the observations are needed to split them, and only summaries were given
    """

    means: Array
    variances: Array
    n: tuple[int, ...] | None = None
    """Observations an option, where known."""
    covariances: Array | None = None
    unit: float = 1.0
    """What a mean of 1 stands for, where the numbers are so large or small that their squares would not be numbers."""
    parts: dict[int, Array] = field(default_factory=dict)
    """Means of disjoint random parts, shape ``(parts, ..., M)``, by their number, where somebody has split before."""

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


def repeated(names: Iterable[str]) -> str | None:
    """The first name that was there before, or None.

    >>> repeated("abcb")
    'b'
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def unit_for(*arrays: np.ndarray) -> float:
    """A power of two near the largest value if that value's square would leave the floating point range, else 1."""
    largest = max(float(np.max(np.abs(array))) for array in arrays)
    return 1.0 if largest == 0 or 1e-100 < largest < 1e100 else 2.0 ** min(max(math.frexp(largest)[1], -1000), 1000)


def summarise(data: Samples | Counts, rng: Rng, parts: Sequence[int] = (2,)) -> Summaries:
    """All that the estimators will ask ``data`` for, computed once; the observations can then be forgotten."""
    splits = {p: data.split(p, r) for p, r in zip(parts, streams(rng, len(parts)), strict=True)}
    return Summaries(data.means, data.variances, covariances=data.covariances, parts=splits)


def part_sizes(n: int, parts: int) -> list[int]:
    """Sizes of ``parts`` parts of ``n`` observations that differ by one at most, the larger ones first.

    >>> part_sizes(11, 3)
    [4, 4, 3]
    """
    return [n // parts + (k < n % parts) for k in range(parts)]


_HELD = 1_000_000  # numbers drawn for a group of options at once


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
        splits = {p: np.moveaxis(means, 1, -1) for p, means in _part_means(drawn, parts, axis=-1).items()}
        return drawn.mean(axis=-1).T, _variance_of_mean(np, drawn).T, splits
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


def _hypergeometric(rng: np.random.Generator, good: np.ndarray, bad: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Hypergeometric numbers; from a billion on, where NumPy has none, by their normal limit."""
    if max(good.max(), bad.max()) < 10**9:
        return rng.hypergeometric(good, bad, size)
    total = good + bad
    share = good / total
    spread = np.sqrt(size * share * (1 - share) * ((total - size) / (total - 1)))
    drawn = np.rint(size * share + spread * rng.standard_normal(good.shape)).astype(np.int64)
    return np.clip(drawn, np.maximum(0, size - bad), np.minimum(good, size))


def _part_means(drawn: np.ndarray, parts: Sequence[int], axis: int) -> dict[int, np.ndarray]:
    """Resampled rows come in random order: consecutive blocks of them are random parts."""
    n = drawn.shape[axis]
    edges = {p: np.cumsum(part_sizes(n, p))[:-1] for p in parts}
    return {p: np.stack([b.mean(axis=axis) for b in np.split(drawn, e, axis=axis)]) for p, e in edges.items()}


def _mean(xp: Array, values: Array) -> Array:
    """Mean over the last axis, which stays; relative to the first value, so that a constant's mean is that constant."""
    first = values[..., :1]
    return first + xp.mean(values - first, axis=-1, keepdims=True)


def _variance_of_mean(xp: Array, values: Array) -> Array:
    n = values.shape[-1]
    deviations = values - _mean(xp, values)
    return xp.sum(deviations * deviations, axis=-1) / (n * (n - 1))


def _covariances_of_means(xp: Array, values: Array) -> Array:
    """From ``(..., options, n)``."""
    n = values.shape[-1]
    centred = values - _mean(xp, values)
    return xp.matmul(centred, xp.matrix_transpose(centred)) / (n * (n - 1))


def matrix_root(covariance: np.ndarray) -> np.ndarray:
    """R with R'R = covariance; a singular matrix is fine."""
    eigenvalues, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(eigenvalues, 0))).T


def _check_parts(n: int, parts: int) -> None:
    if parts < 1:
        raise DataError(f"data can be split into 1 or more parts, not {parts}")
    if n < parts:
        raise DataError(f"{parts} parts need at least {parts} observations of every option, and one has {n}")
