r"""Intervals for those who look again and again: confidence sequences, which hold at all looks at once.

An interval at 95% fails once in twenty looks, and whoever looks every day and stops when it suits sees it fail much more often.
A confidence sequence is a sequence of intervals that hold *all* with probability 1 - alpha, however many and whenever one stops.

**Means.** For normal observations the Bayes factor against :math:`\mu`, its standardised distance mixed over :math:`N(0, g)`, is
a martingale that starts at one, and exceeds 1/alpha ever with probability alpha (Ville, 1939). With n observations and
:math:`\nu = n - 1` degrees of freedom for the standard error,

.. math:: |t| \le \sqrt{\frac{\nu (A - 1)}{1 - A/(1 + n g)}}, \qquad
          A = \left( \frac{\sqrt{1 + n g}}{\alpha} \right)^{2/(\nu + 1)}

(Lai, Annals of Statistics 4, 1976; Wang and Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with
unknown variance", 2024). As :math:`\nu` grows this becomes the normal mixture

.. math:: \sqrt{\frac{1 + n g}{n g} \cdot 2 \log \frac{\sqrt{1 + n g}}{\alpha}}

of Howard, Ramdas, McAuliffe and Sekhon ("Time-uniform, nonparametric, nonasymptotic confidence sequences", Annals of Statistics
49, 2021), by whose formula g is chosen so that intervals are shortest after a planned number of observations. For other data, and
for differences of means with variances of their own, it holds as the central limit theorem does.

**Rates.** Binomial probabilities, mixed over a beta distribution around the rate in question: exact with any counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError
from .checks import checked, checked_counts, checked_freedom, checked_rank, checked_top, tail_of
from .lift import Lift, best_shrunk, contrasts, fieller
from .simultaneous import diagonal
from .tails import difference_freedom
from .top import Top
from .winner import Winner, WinnerMean

_STEPS = 60
"""Halvings of a range of rates."""


def sequence_reach(n: Array, freedom: Array, alpha: float, planned: float) -> np.ndarray:
    """How many standard errors to each side a confidence sequence reaches after ``n`` observations.

    ``freedom`` are the degrees of freedom of the standard error; intervals are shortest after ``planned`` observations.

    >>> sequence_reach([10.0, 1_000.0, 100_000.0], np.inf, 0.05, planned=1_000).round(2).tolist()
    [8.94, 3.04, 3.57]
    >>> sequence_reach([2.0, 10.0, 1_000.0], [1.0, 9.0, 999.0], 0.05, planned=1_000).round(2).tolist()
    [inf, inf, 3.04]
    """
    size, degrees = np.broadcast_arrays(np.asarray(n, float), np.asarray(freedom, float))
    grown = size * _mixture(alpha, planned)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log = 0.5 * np.log1p(grown) - math.log(alpha)
        normal = (1 + grown) / grown * 2 * log
        ratio = np.exp(2 * log / (degrees + 1))
        student = degrees * np.expm1(2 * log / (degrees + 1)) / (1 - ratio / (1 + grown))
        squared = np.where(np.isinf(degrees), normal, np.where(ratio < 1 + grown, student, np.inf))
    return np.sqrt(squared)


def rate_sequence(successes: Array, trials: Array, alpha: float, planned: float) -> np.ndarray:
    r"""Confidence sequences of rates, shape ``(M, 2)``: all p at which the counts are not too improbable,

    .. math:: \frac{B(\kappa p + k,\; \kappa (1 - p) + n - k)}{B(\kappa p,\; \kappa (1 - p))\, p^k (1 - p)^{n - k}} \le 1/\alpha,
              \qquad \kappa = 1/g.

    >>> rate_sequence([0, 30, 300], [20, 1_000, 10_000], 0.05, planned=1_000).round(4).tolist()
    [[0.0, 0.7012], [0.0161, 0.049], [0.0247, 0.0358]]
    """
    k, n = checked_counts(successes, trials)

    def evidence(p: np.ndarray) -> np.ndarray:
        return rate_evidence(k, n, p, alpha, planned)

    limit, rates = -math.log(alpha), k / n
    inside = np.clip(rates, 1e-12, 1 - 1e-12)
    low = np.where(k > 0, _end(evidence, np.full(k.shape, 1e-15), inside, limit), 0.0)
    high = np.where(k < n, _end(evidence, np.full(k.shape, 1 - 1e-15), inside, limit), 1.0)
    return np.stack([np.where(low < 2e-15, 0.0, low), high], axis=-1)


def rate_evidence(k: np.ndarray, n: np.ndarray, p: np.ndarray, alpha: float, planned: float) -> np.ndarray:
    """The logarithm of the Bayes factor against a rate p, with the mixture that is used at ``alpha``."""
    from scipy.special import betaln, xlog1py, xlogy

    around = max(1 / _mixture(alpha, planned), 1.0)
    mixed = betaln(around * p + k, around * (1 - p) + n - k) - betaln(around * p, around * (1 - p))
    return np.asarray(mixed - xlogy(k, p) - xlog1py(n - k, -p))


def _end(evidence: Callable[[np.ndarray], np.ndarray], far: np.ndarray, near: np.ndarray, limit: float) -> np.ndarray:
    """Between where there is no evidence and where there is the most, the value at which it reaches the limit."""
    for _ in range(_STEPS):
        middle = (far + near) / 2
        outside = evidence(middle) > limit
        far, near = np.where(outside, middle, far), np.where(outside, near, middle)
    return near


def _mixture(alpha: float, planned: float) -> float:
    """The variance g of the mixture, for which the interval after ``planned`` observations is shortest."""
    from scipy.special import lambertw

    if not (planned > 0 and math.isfinite(planned)):
        raise ArgumentError(f"planned must be a positive number of observations, not {planned}")
    return float(-lambertw(-(alpha**2) / math.e, -1).real - 1) / planned


@dataclass(frozen=True)
class Sequences:
    """The answers about several options that hold at all looks at once, each with probability ``level``."""

    means: np.ndarray
    covariances: np.ndarray
    """Of the means, shape ``(M, M)``, or variances, shape ``(M,)``."""
    n: np.ndarray
    freedom: np.ndarray
    planned: float
    level: float
    trials: np.ndarray | None = None
    """Says that the means are rates of so many."""

    @classmethod
    def of(
        cls,
        means: Array,
        covariance: Array,
        n: Array,
        *,
        planned: float = 1_000,
        level: float = 0.95,
        freedom: Array = math.inf,
        trials: Array | None = None,
    ) -> Sequences:
        """From estimated means, their covariance matrix or variances, and the numbers of observations."""
        x, covariances = checked(means, covariance)
        tail_of(level)
        size = np.broadcast_to(np.asarray(n, float), x.shape)
        if not (size >= 1).all():
            raise ArgumentError(f"there must be at least one observation of every option, not {size.min():g}")
        tried = None if trials is None else np.broadcast_to(np.asarray(trials, float), x.shape)
        return cls(x, covariances, size, checked_freedom(freedom, len(x)), planned, level, tried)

    @property
    def alpha(self) -> float:
        return 1 - self.level

    def bounds(self, share: float) -> np.ndarray:
        """Each option's sequence, which fails ever with probability ``share``; shape ``(M, 2)``."""
        if self.trials is not None:
            return rate_sequence(np.rint(self.means * self.trials), self.trials, share, self.planned)
        errors = np.sqrt(diagonal(self.covariances))
        reach = sequence_reach(self.n, self.freedom, share, self.planned)
        far = np.where(errors > 0, reach * np.where(errors > 0, errors, 1.0), 0.0)
        return np.stack([self.means - far, self.means + far], axis=-1)

    @cached_property
    def all_bounds(self) -> np.ndarray:
        """The options' sequences that hold for all of them at once, shape ``(M, 2)``."""
        return self.bounds(self.alpha / len(self.means))

    def maximum(self) -> tuple[float, float]:
        """For the largest mean: the true best one's upper bound is enough, and all lower bounds must hold."""
        lower = self.bounds(self.alpha / 2 / len(self.means))[:, 0]
        return float(lower.max()), float(self.bounds(self.alpha / 2)[:, 1].max())

    def best_set(self) -> np.ndarray:
        """Which options may be the best: all but those that some other is significantly better than."""
        others = max(len(self.means) - 1, 1)
        gaps, reach = self._pairs(self.alpha / others)
        return np.asarray(~(gaps > reach).any(axis=0))

    def ranks(self) -> np.ndarray:
        """The range of every option's rank, shape ``(M, 2)``."""
        options = len(self.means)
        gaps, reach = self._pairs(self.alpha / max(options * (options - 1) / 2, 1))
        better = gaps > reach
        return np.stack([1 + better.sum(axis=0), options - better.sum(axis=1)], axis=-1)

    def _pairs(self, share: float) -> tuple[np.ndarray, np.ndarray]:
        """x_j - x_i, [j, i], and how far such a difference reaches."""
        variances, options = diagonal(self.covariances), len(self.means)
        both = variances[:, None] + variances
        if self.covariances.ndim == 2:
            both = np.maximum(both - 2 * self.covariances, 0.0)
            degrees = np.full(both.shape, self.freedom.min())
        else:
            degrees = difference_freedom(variances[:, None], variances, self.freedom[:, None], self.freedom)
        n = 2 / (1 / self.n[:, None] + 1 / self.n)
        reach = sequence_reach(n, degrees, share, self.planned)
        far = np.where(both > 0, reach * np.sqrt(np.where(both > 0, both, 1.0)), 0.0)
        far[np.diag_indices(options)] = np.inf
        return self.means[:, None] - self.means, far

    def winner(self, rank: int = 1) -> Winner:
        """The option in a place: bounds that hold for all options hold for whichever is picked, at every look."""
        index = int(np.argsort(-self.means, kind="stable")[checked_rank(rank, len(self.means)) - 1])
        tied = np.flatnonzero(self.means == self.means[index])
        return self._picked(
            index, float(self.means[index]), self.all_bounds[index], tied if len(tied) > 1 else np.array([], int)
        )

    def _picked(self, index: int, value: float, bounds: np.ndarray, tied: np.ndarray) -> Winner:
        low, high = (float(end) for end in bounds)
        answer = WinnerMean(value, (low, high))
        return Winner(
            index=index,
            naive=answer,
            conditional=answer,
            hybrid=answer,
            bounds=(low, high),
            projection=(low, high),
            truncation=(-math.inf, math.inf),
            tied={int(i): (float(self.all_bounds[i, 0]), float(self.all_bounds[i, 1])) for i in tied},
            level=self.level,
            beta=0.0,
        )

    def top(self, k: int) -> Top:
        """The k leading options, with the averages of their bounds."""
        picked = np.argsort(-self.means, kind="stable")[: checked_top(k, len(self.means))]
        low, high = self.all_bounds[picked].mean(axis=0)
        return Top(tuple(picked.tolist()), float(self.means[picked].mean()), (float(low), float(high)), self.level)

    def lift(self, control: int, *, lower_is_better: bool = False) -> Lift:
        """Every option beside a control; the best one's interval is the one that holds for all."""
        sign = -1 if lower_is_better else 1
        against, rest = contrasts(self.means, self.covariances, self.freedom, control)
        n = 2 / (1 / self.n[rest] + 1 / self.n[control])
        reach = sequence_reach(n, against.degrees, self.alpha / len(rest), self.planned)
        far = np.where(against.errors > 0, reach * np.where(against.errors > 0, against.errors, 1.0), 0.0)
        interval = np.stack([against.values - far, against.values + far], axis=-1)
        base = float(self.means[control])
        relative = np.array(
            [fieller(self.means, self.covariances, control, i, t, t) for i, t in zip(rest, reach, strict=True)]
        )
        best = int(np.argmax(sign * against.values))
        ends = np.sort(sign * interval[best])
        shrunk = best_shrunk(against, sign, best)
        return Lift(
            control=control,
            options=tuple(rest.tolist()),
            difference=against.values,
            interval=interval,
            relative=against.values / abs(base) if base else np.full(len(rest), math.nan),
            relative_interval=relative,
            beats=(interval[:, 0] > 0) if sign > 0 else (interval[:, 1] < 0),
            best=self._picked(best, sign * float(against.values[best]), ends, np.array([], int)),
            best_value=sign * min(max(shrunk, float(ends[0])), float(ends[1])),
            best_relative=(float(relative[best, 0]), float(relative[best, 1])),
            level=self.level,
        )
