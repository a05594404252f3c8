r"""Who is best: a set that holds the best option, and an interval for every option's rank.

Both come from tests of differences (Mogstad, Romano, Shaikh and Wilhelm, "Inference for ranks with applications to mobility
across neighbourhoods and academic achievement across countries", Review of Economic Studies 91, 2024). A difference with
estimated variances has Welch's degrees of freedom: its t-statistic is turned into the normal score with the same probability.
Rates with few successes or failures are compared by Fisher's exact test, whose probability becomes a score in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from ..arrays import Array, special
from .checks import checked, checked_counts, checked_freedom, tail_of
from .roots import find_root
from .simultaneous import ROWS_FOR_PAIRS, correlation_of, diagonal, normal_points, student_points, too_few_rows
from .tails import tail_probability

_FIRST_STEP = 0.1
"""The share of 1 - level that the first step of the test of the best spends."""
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_HELD = 4_000_000  # numbers worked on at once
_MANY = 1_000  # options from which on bounds decide alone, which may let a few more stay
FEW = 40
"""Successes, or failures, of two rates together below which their difference is not taken for normal."""
MOST_PAIRS = 60 * 59
"""Ordered pairs whose largest difference is simulated, to be tested again without those that were rejected."""


def best_set(
    means: Array, covariance: Array, *, level: float = 0.95, freedom: Array = math.inf, trials: Array | None = None
) -> np.ndarray:
    r"""Which options may be the best: bool, shape ``(M,)``. The best one is among them with probability ``level`` at least.

    Option i stays unless some other is significantly better, :math:`\max_j (x_j - x_i)/s_{ij}`. Only the true best must stay, so
    that nothing is paid for the number of tests; each of them allows for the number of others, but for those that are clearly
    worse than i (in two steps, and without correlations of few rows, as in :func:`maxmean.mev.inference.maximum_interval`).

    Parameters are those of :func:`maxmean.mev.inference.maximum_interval`. ``trials`` says that the means are rates of so many:
    two with fewer than 40 successes, or failures, together are compared by Fisher's exact test.

    >>> best_set([1.0, 0.9, -1.0], [0.01, 0.01, 0.01]).tolist()
    [True, True, False]

    Three of three are significantly more than none of three by a normal approximation, and not in truth:

    >>> best_set([1.0, 0.0], [0.036, 0.036]).tolist(), best_set([1.0, 0.0], [0.036, 0.036], trials=3).tolist()
    ([True, False], [True, True])
    """
    pairs = _Pairs.of(means, covariance, freedom, trials)
    alpha = 2 * tail_of(level)
    first, others = _FIRST_STEP * alpha, max(pairs.options - 1, 1)
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
    means: Array, covariance: Array, *, level: float = 0.95, freedom: Array = math.inf, trials: Array | None = None
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
    pairs = _Pairs.of(means, covariance, freedom, trials)
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
    counts: tuple[np.ndarray, np.ndarray] | None = None
    """Successes and trials, if the means are rates."""

    @classmethod
    def of(cls, means: Array, covariance: Array, freedom: Array, trials: Array | None = None) -> _Pairs:
        x, covariances = checked(means, covariance)
        counts = None if trials is None else checked_counts(np.rint(x * np.asarray(trials)), trials)
        return cls(x, covariances, checked_freedom(freedom, len(x)), correlation_of(covariances), counts)

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
            welch = np.full(both.shape, self.degrees.min())
            if self.correlation is None:
                shares = np.square(self.variances) / self.degrees
                welch = np.fmax(np.square(both) / (shares[:, None] + shares[which]), welch)
        finite = np.isfinite(welch) & np.isfinite(t)
        if finite.any():
            tails = tail_probability(np.abs(t[finite]), welch[finite])
            t[finite] = np.copysign(special(np).ndtri(tails), t[finite])
        if self.counts is not None:
            self._exact(t, which)
        t[which, np.arange(len(which))] = -np.inf
        return t, spreads

    def _exact(self, t: np.ndarray, which: np.ndarray) -> None:
        """Replace the scores of rates with few successes or failures by those of Fisher's test."""
        assert self.counts is not None
        kinds, kind = np.unique(np.stack(self.counts, axis=-1), axis=0, return_inverse=True)
        successes, trials = kinds.T
        won = successes[:, None] + successes
        few = np.minimum(won, trials[:, None] + trials - won) < FEW
        there = few[kind][:, kind[which]]
        pairs, place = np.unique((kind[:, None] * len(kinds) + kind[which])[there], return_inverse=True)
        j, i = np.divmod(pairs, len(kinds))
        t[there] = fisher_score(successes[j], trials[j], successes[i], trials[i])[place]

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


def fisher_score(won: np.ndarray, tried: np.ndarray, other_won: np.ndarray, other_tried: np.ndarray) -> np.ndarray:
    """Normal scores of Fisher's exact test that a rate is larger than another; negative where the other's may be.

    >>> three = np.array([3.0])
    >>> round(float(special(np).ndtr(-fisher_score(three, three, 0 * three, three))[0]), 9)  # 1 of 20 ways to choose 3 of 6
    0.05
    """
    from scipy.stats import hypergeom

    together, total = won + other_won, tried + other_tried
    larger, smaller = hypergeom.sf(won - 1, total, together, tried), hypergeom.cdf(won, total, together, tried)
    ndtri = special(np).ndtri
    # Both count what was observed: where neither is below a half, nothing is known.
    return np.where(larger < 0.5, -ndtri(larger), np.where(smaller < 0.5, ndtri(smaller), 0.0))


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
