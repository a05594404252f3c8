r"""Who is best: a set that holds the best option, and an interval for every option's rank.

Both come from tests of differences (Mogstad, Romano, Shaikh and Wilhelm, "Inference for ranks with applications to mobility
across neighbourhoods and academic achievement across countries", Review of Economic Studies 91, 2024). A difference with
estimated variances has Welch's degrees of freedom, or fewer if sample sizes differ: its t-statistic is turned into the normal
score with the same probability. Rates with few successes or failures are compared by Fisher's exact test, others by a score
test; those of the same rows, if they differ in few, by McNemar's. An exact test's probability becomes a score in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from ..arrays import Array, special
from .checks import checked, checked_alone, checked_counts, checked_freedom, tail_of
from .exact import FEW, Rates, sign_score
from .roots import find_root
from .simultaneous import ROWS_FOR_PAIRS, correlation_of, diagonal, normal_points, student_points, too_few_rows
from .tails import difference_freedom, tail_probability

_FIRST_STEP = 0.1
"""The share of 1 - level that the first step of the test of the best spends."""
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_HELD = 4_000_000  # numbers worked on at once
_MANY = 1_000  # options from which on bounds decide alone, which may let a few more stay
MOST_PAIRS = 60 * 59
"""Ordered pairs whose largest difference is simulated, to be tested again without those that were rejected."""


def best_set(
    means: Array,
    covariance: Array,
    *,
    level: float = 0.95,
    freedom: Array = math.inf,
    trials: Array | None = None,
    alone: Array | None = None,
) -> np.ndarray:
    r"""Which options may be the best: bool, shape ``(M,)``. The best one is among them with probability ``level`` at least.

    Option i stays unless some other is significantly better, :math:`\max_j (x_j - x_i)/s_{ij}`. Only the true best must stay, so
    that nothing is paid for the number of tests; each of them allows for the number of others, but for those that are clearly
    worse than i (in two steps, and without correlations of few rows, as in :func:`maxmean.mev.inference.maximum_interval`).

    Parameters are those of :func:`maxmean.mev.inference.maximum_interval`. ``trials`` says that the means are rates of so many:
    two are compared by Fisher's exact test if their common rate makes fewer than 20 successes, or failures, of the smaller number
    of trials, and else by a score test. ``alone``, [j, i], says that they are rates of the same rows, and in how many of these j
    succeeds and i does not: two that differ in fewer than 40 are compared by McNemar's exact test.

    >>> best_set([1.0, 0.9, -1.0], [0.01, 0.01, 0.01]).tolist()
    [True, True, False]

    Two of two are significantly more than none of two by a normal approximation, and not in truth:

    >>> best_set([1.0, 0.0], [0.07, 0.07]).tolist(), best_set([1.0, 0.0], [0.07, 0.07], trials=2).tolist()
    ([True, False], [True, True])
    """
    pairs = _Pairs.of(means, covariance, freedom, trials, alone)
    alpha = 2 * tail_of(level)
    others = max(pairs.options - 1, 1)
    first = _FIRST_STEP * alpha if others > 1 else 0.0  # one other option cannot be left out
    # If one other option counts, or if all do: between these the number that count decides.
    least, most, reach = (_normal_quantile(tail) for tail in (alpha, (alpha - first) / others, first / others))
    stays = np.ones(pairs.options, bool)
    leading = pairs.x == pairs.x.max()
    for which in pairs.blocks():
        scores, spreads = pairs.against(which)
        strongest = scores.max(axis=0)  # the best evidence that somebody is better
        stays[which] = strongest < least
        for k in np.flatnonzero((strongest >= least) & (strongest < most)):
            limits = strongest[k] + np.maximum(-(scores[:, k] + reach), 0.0)
            stays[which[k]] = pairs.may_exceed(int(which[k]), spreads[:, k], limits, alpha - first)
    return stays | leading


def rank_intervals(
    means: Array,
    covariance: Array,
    *,
    level: float = 0.95,
    freedom: Array = math.inf,
    trials: Array | None = None,
    alone: Array | None = None,
) -> np.ndarray:
    r"""The range of every option's rank, 1 for the largest mean: whole numbers, shape ``(M, 2)``; all hold at once.

    Option i has at least as many before it as are significantly better, and at least as many behind it as are significantly
    worse. The tests of all pairs allow for each other; up to 60 options, those that are rejected are left out and the
    others tested again, until nothing changes. With more, the tests are Tukey and Kramer's, or Bonferroni's for correlated ones.
    Correlations from fewer rows than five times the options are too uncertain: Holm's tests do without them.
    Parameters are those of :func:`maxmean.mev.inference.best_set`.

    >>> rank_intervals([1.0, 0.9, -1.0], [0.01, 0.01, 0.01]).tolist()
    [[1, 2], [1, 2], [3, 3]]
    """
    pairs = _Pairs.of(means, covariance, freedom, trials, alone)
    options, alpha = pairs.options, 2 * tail_of(level)
    if options * (options - 1) <= MOST_PAIRS:
        better = _step_down(pairs, alpha)
        before, behind = better.sum(axis=0), better.sum(axis=1)
    else:
        before, behind = np.zeros(options, int), np.zeros(options, int)
        independent = pairs.correlation is None
        limit = (
            _range_quantile(options, alpha) / math.sqrt(2)
            if independent
            else _normal_quantile(alpha / (options * (options - 1)))
        )
        limit = max(limit, 0.0)
        for which in pairs.blocks():
            scores, _ = pairs.against(which)
            before[which], behind[which] = (scores > limit).sum(axis=0), (scores < -limit).sum(axis=0) - 1  # not itself
    return np.stack([1 + before, options - behind], axis=-1)


@dataclass(frozen=True)
class _Pairs:
    """The differences of estimated means."""

    x: np.ndarray
    covariances: np.ndarray
    degrees: np.ndarray
    correlation: np.ndarray | None
    rates: Rates | None = None
    """If the means are such."""
    alone: np.ndarray | None = None
    """In how many rows j succeeds and i does not, [j, i], if they are rates of the same rows."""

    @classmethod
    def of(
        cls,
        means: Array,
        covariance: Array,
        freedom: Array,
        trials: Array | None = None,
        alone: Array | None = None,
    ) -> _Pairs:
        x, covariances = checked(means, covariance)
        rates = None
        if trials is not None:
            rates = Rates(*checked_counts(np.rint(x * np.asarray(trials)), trials), diagonal(covariances))
        rows = None if alone is None else checked_alone(alone, len(x))
        return cls(x, covariances, checked_freedom(freedom, len(x)), correlation_of(covariances), rates, rows)

    @property
    def options(self) -> int:
        return len(self.x)

    @cached_property
    def variances(self) -> np.ndarray:
        return diagonal(self.covariances)

    def blocks(self) -> Iterator[np.ndarray]:
        """All options, as many at once as there is room for their differences with all others."""
        step = max(1, _HELD // self.options)
        yield from (np.arange(k, min(k + step, self.options)) for k in range(0, self.options, step))

    def against(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Normal scores of x_j - x_i for these i, [j, i], and the differences' standard errors; certain ones are infinite."""
        both = self.variances[:, None] + self.variances[which]
        if self.covariances.ndim == 2:
            both = np.maximum(both - 2 * self.covariances[:, which], 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            spreads, gaps = np.sqrt(both), self.x[:, None] - self.x[which]
            t = np.where(spreads > 0, gaps / spreads, np.where(gaps == 0, 0.0, np.copysign(np.inf, gaps)))
        if np.isfinite(self.degrees).any():
            freedom = np.broadcast_to(self.degrees.min(), both.shape)
            if self.correlation is None:
                v, degrees = self.variances, self.degrees
                freedom = difference_freedom(v[:, None], v[which], degrees[:, None], degrees[which])
            finite = np.isfinite(freedom) & np.isfinite(t)
            tails = tail_probability(np.abs(t[finite]), freedom[finite])
            t[finite] = np.copysign(special(np).ndtri(tails), t[finite])
        if self.rates is not None:
            t = self.rates.scores(np.arange(self.options)[:, None], which)
        if self.alone is not None:
            ours, theirs = self.alone[:, which], self.alone[which].T
            few = ours + theirs < FEW
            t[few] = sign_score(ours[few], theirs[few])
        t[which, np.arange(len(which))] = -np.inf
        return t, spreads

    def may_exceed(self, i: int, spreads: np.ndarray, limits: np.ndarray, share: float) -> bool:
        """Whether some (W_j - W_i)/s_ij exceeds its limit with this probability, W having these covariances."""
        each = special(np).ndtr(-np.where(spreads > 0, limits, np.inf))
        # The bounds of Bonferroni, and of Slepian for differences with one and the same independent option, often decide.
        most = each.sum() if self.correlation is not None else -math.expm1(np.log1p(-each).sum())
        if (
            most < share
            or too_few_rows(self.correlation, self.degrees)
            or (self.options > _MANY and self.correlation is None)
        ):
            return bool(most >= share)
        return self._exceeding(i, spreads, limits) >= share

    def _exceeding(self, i: int, spreads: np.ndarray, limits: np.ndarray) -> float:
        if self.correlation is not None:
            others = spreads > 0
            gaps = self.points[others] - self.points[i]
            return float(np.mean((gaps >= (limits[others] * spreads[others])[:, None]).any(axis=0)))
        errors = np.sqrt(self.variances)
        apart = np.full(self.options, np.inf)  # two certain options do not exceed anything
        np.multiply(limits, spreads, out=apart, where=spreads > 0)
        heights = apart + _NODES[:, None] * errors[i]
        below = special(np).ndtr(heights / np.maximum(errors, 1e-12 * errors.max()))
        below[:, i] = 1.0
        return 1 - float(_WEIGHTS @ below.prod(axis=-1))

    @cached_property
    def points(self) -> np.ndarray:
        """Points that fill N(0, covariances) evenly, [options, draws]."""
        errors = np.sqrt(self.variances)
        doubtful = errors > 0
        rho = self.correlation
        points = normal_points(int(doubtful.sum())) if rho is None else student_points(rho)
        whole = np.zeros((self.options, len(points)))
        whole[doubtful] = (points * errors[doubtful]).T
        return whole


def _step_down(pairs: _Pairs, alpha: float) -> np.ndarray:
    """Which j are significantly better than which i, [j, i]."""
    scores, spreads = pairs.against(np.arange(pairs.options))
    better = np.isposinf(scores)
    open_ = (spreads > 0) & ~np.eye(pairs.options, dtype=bool)
    holm = too_few_rows(pairs.correlation, pairs.degrees, ROWS_FOR_PAIRS)
    while open_.any():
        limit = _normal_quantile(alpha / open_.sum()) if holm else _largest(pairs, open_, spreads, 1 - alpha)
        rejected = open_ & (scores > max(limit, 0.0))
        if not rejected.any():
            break
        better |= rejected
        open_ &= ~rejected
    return better


def _largest(pairs: _Pairs, open_: np.ndarray, spreads: np.ndarray, share: float) -> float:
    """The quantile of the largest score of these differences."""
    points = pairs.points
    with np.errstate(divide="ignore"):
        sizes = 1 / spreads
    largest, gap = np.full(points.shape[1], -np.inf), np.empty(points.shape[1])
    for i in range(pairs.options):
        # Both directions of a pair are one absolute difference, as long as neither is rejected.
        both, one = np.flatnonzero(open_[:i, i] & open_[i, :i]), np.flatnonzero(open_[:, i] & ~open_[i])
        for others, absolute in ((both, True), (one, False)):
            for j in others:
                np.subtract(points[j], points[i], out=gap)
                np.multiply(gap, sizes[j, i], out=gap)
                np.maximum(largest, np.abs(gap, out=gap) if absolute else gap, out=largest)
    return float(np.quantile(largest, share))


def _normal_quantile(tail: float) -> float:
    return -float(special(np).ndtri(tail))


@lru_cache(maxsize=64)
def _range_quantile(options: int, alpha: float) -> float:
    """What the range of so many standard normal numbers exceeds with probability alpha."""
    ndtr = special(np).ndtr
    z = np.linspace(-9.0, 9.0, 2001)
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    def surplus(q: float) -> float:
        inside = options * density * np.maximum(ndtr(z) - ndtr(z - q), 0.0) ** (options - 1)
        return float(np.trapezoid(inside, z)) - (1 - alpha)

    return find_root(surplus, 0.1, 20.0)
