r"""Inference on the winner: the mean of the option with the best sample mean, given that it was selected for it.

Andrews, Kitagawa and McCloskey, "Inference on Winners", Quarterly Journal of Economics 139(1), 2024. The estimated means X
are assumed normal around the true ones. Given which option w won, and given the part of X that is independent of X_w, the
winner's X_w is a *truncated* normal, or Student's t if its standard error is estimated: inference from that distribution
corrects the winner's curse. An option in second place, or in any other, is treated in the same way: it is bounded from above too.

Everything is computed in units of the winner's standard error s and relative to X_w: ``below`` = (X_w - L)/s and
``above`` = (U - X_w)/s are the distances to the truncation points, ``offset`` = (X_w - mu)/s is the unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import Array, special
from .checks import checked, checked_beta, checked_freedom, checked_rank, tail_of
from .simultaneous import diagonal, max_quantile
from .tails import upper_quantile
from .truncated import solve_offset

FLOOR_TAIL = 0.25
"""One less the confidence of what a number to plan with is not to lie below."""
BOUND_SHARE = 0.5
"""The share of its tail that the lower bound spends on the projection."""


@dataclass(frozen=True)
class WinnerMean:
    """One answer about the winner's mean."""

    value: float
    """Point estimate; median-unbiased (too high as often as too low) except for the naive one."""
    interval: tuple[float, float]
    """Confidence interval; equal-tailed except for the recommended one."""


@dataclass(frozen=True)
class Winner:
    """The option with the largest estimated mean, and what is known about its true mean: see :func:`infer_winner`."""

    index: int
    naive: WinnerMean
    """As if the option had been named in advance: too high, and covers less often than ``level``."""
    conditional: WinnerMean
    """Exact given the winner, whichever it is; very wide after a close race."""
    hybrid: WinnerMean
    """Nearly as exact, and never outside ``projection``: the shortest that covers, on average."""
    bounds: tuple[float, float]
    """Two bounds of which each fails with probability (1 - ``level``)/2 at most. They always hold the observed mean between
    them, while the hybrid interval lies far below it after a very close race; and they hold for tied options."""
    projection: tuple[float, float]
    """The winner's part of the bounds that hold for all options at once with confidence 1 - ``beta``."""
    truncation: tuple[float, float]
    """[L, U]: the range in which the winner's estimate could lie, all else equal, for the same option to win."""
    tied: dict[int, tuple[float, float]]
    """All options that share the winner's estimate, if several do, with their bounds: these hold for all of them at once."""
    level: float
    beta: float
    floor: float = -math.inf
    """What its mean exceeds with 75% confidence, given that it won; infinitely little for a tied one, and in other places."""


def infer_winner(
    means: Array,
    covariance: Array,
    *,
    level: float = 0.95,
    beta: float | None = None,
    freedom: Array = math.inf,
    rank: int = 1,
) -> Winner:
    r"""Median-unbiased estimates of, and confidence intervals for, the mean of the option with the largest estimate.

    With :math:`c_j = \Sigma_{jw} / \Sigma_{ww}`, option w wins as long as :math:`X_w` stays within [L, U],

    .. math:: L = \max_{c_j < 1} \left( X_w - \frac{X_w - X_j}{1 - c_j} \right), \qquad
              U = \min_{c_j > 1} \left( X_w - \frac{X_w - X_j}{1 - c_j} \right),

    and the *conditional* quantile-unbiased estimate at a is the mean :math:`\mu` that solves

    .. math:: F(X_w; \mu) = 1 - a, \qquad F(x; \mu) =
              \frac{\Phi((x - \mu)/s) - \Phi((L - \mu)/s)}{\Phi((U - \mu)/s) - \Phi((L - \mu)/s)}, \qquad
              s^2 = \Sigma_{ww}.

    a = 1/2 gives the value, a = alpha/2 and 1 - alpha/2 the interval, alpha = 1 - level. The *hybrid* also truncates to
    :math:`x \le \mu + c_\beta s`, with (alpha - beta)/(1 - beta) for alpha, where :math:`c_\beta` is the 1 - beta quantile of
    :math:`\max_j \xi_j / \sigma_j`, :math:`\xi \sim N(0, \Sigma)`. If w is bounded from above, as in second place, it
    truncates to :math:`|x - \mu| \le c_\beta s` and :math:`c_\beta` is a quantile of :math:`\max_j |\xi_j| / \sigma_j`.

    If standard errors are estimated, F is Student's distribution, truncated as described in
    :mod:`maxmean.mev.inference.truncated`, and so is :math:`c_\beta`.

    The *bounds* are, from below, the hybrid's lower end at alpha/2, and from above its own :math:`X_w + t_w s_w` with the
    alpha/2 quantile, which selection does not harm: where it fails, :math:`X_j \le X_w < \mu_w - t_w s_w \le \mu_j - t_j s_j`
    for the option j whose :math:`\mu_j - t_j s_j` is largest, so that one and the same option's bound fails whoever wins. In
    second place and further down, they are the simultaneous ones.

    Parameters
    ----------
    means
        Estimated means, shape ``(M,)``. If the smallest is the best, pass the negated means.
    covariance
        Covariance matrix *of the means* (sample covariance / n), shape ``(M, M)``, or their variances, shape ``(M,)``,
        for independent options. It may be singular.
    level
        Confidence level of the intervals, in (0, 1).
    beta
        Share of 1 - level that the hybrid spends on the projection, in [0, 1 - level). Default: a tenth, as the authors
        recommend, which is 0.005 at level 0.95, and 1/freedom of it more, up to half, if standard errors are estimated: that
        is where intervals are shortest. At 0 the hybrid is the conditional answer.
    freedom
        Degrees of freedom of the standard errors, a number or one for each option; infinite where they are known.
    rank
        1 for the option with the largest estimate, 2 for the second, ...

    Notes
    -----
    The conditional interval has exactly its level, given any winner, and the hybrid interval between level and
    level/(1 - beta): for normal estimates with a known covariance matrix, and for independent options with any number of normal
    observations from two on. With correlations that are estimated from few observations this is an approximation.

    If several options tie, the first wins. A tie with c_j < 1 puts L on X_w itself (one with c_j > 1 puts U there), and
    the conditional answer goes to its limit: -inf (inf) for the value and both ends of the interval. The value and both
    ends of the hybrid answer are then the lower (upper) end of the projection. With both kinds of tie at once
    nothing is known beyond the projection: the value is X_w, the interval the whole projection (conditional:
    the whole line). Report the bounds, which hold for every tied option. For a winner without variance, every answer is its mean.

    :math:`c_\beta` is exact without correlations, otherwise by quasi-Monte Carlo (always the same draws) with an error
    of about 0.001, or 0.02 for hundreds of options correlated above 0.9; everything else is exact to rounding.

    Examples
    --------
    >>> winner = infer_winner([1.0, 0.7, -1.0], [0.25, 0.25, 0.25])
    >>> winner.index, winner.truncation
    (0, (0.7, inf))
    >>> [round(end, 2) for end in winner.naive.interval]
    [0.02, 1.98]
    >>> round(winner.conditional.value, 2), [round(end, 2) for end in winner.conditional.interval]
    (0.59, [-2.14, 1.93])
    >>> round(winner.hybrid.value, 2), [round(end, 2) for end in winner.hybrid.interval]
    (0.6, [-0.45, 1.95])
    >>> [round(end, 2) for end in winner.bounds]
    [-0.31, 1.98]

    With five observations each, and the second place:

    >>> few = infer_winner([1.0, 0.7, -1.0], [0.25, 0.25, 0.25], freedom=4)
    >>> [round(end, 2) for end in few.hybrid.interval]
    [-1.15, 2.6]
    >>> second = infer_winner([1.0, 0.7, -1.0], [0.25, 0.25, 0.25], rank=2)
    >>> second.index, second.truncation
    (1, (-1.0, 1.0))
    """
    estimates, covariances = checked(means, covariance)
    tail = tail_of(level)
    degrees = checked_freedom(freedom, len(estimates))
    if covariances.ndim == 2:
        degrees = np.full_like(degrees, degrees.min())
    order = np.argsort(-estimates, kind="stable")
    winner, before = int(order[checked_rank(rank, len(estimates)) - 1]), order[: rank - 1]
    df = float(degrees[winner])
    beta = checked_beta(beta, level, more=min(0.4, 1 / df))

    errors = np.sqrt(diagonal(covariances))
    uppers = estimates + upper_quantile(tail, degrees) * errors if rank == 1 else None

    def race_of(option: int) -> _Race:
        below, above = _distances(estimates, covariances, option, before)
        return _Race(float(estimates[option]), float(errors[option]), float(degrees[option]), below, above, covariances)

    def bounds_of(option: int, race: _Race) -> tuple[float, float]:
        return race.bounds(tail, None if uppers is None else float(uppers[option]))

    race = race_of(winner)
    mean, error, reach = race.mean, race.error, race.reach(beta)
    spent = 0.0 if reach == _NO_REACH else beta
    margin = float(upper_quantile(tail, np.asarray(df))) * error
    tied = [int(option) for option in np.flatnonzero(estimates == mean)]
    return Winner(
        index=winner,
        naive=WinnerMean(mean, (mean - margin, mean + margin)),
        conditional=race.answer(_NO_REACH, 1 - level),
        hybrid=race.answer(reach, (1 - level - spent) / (1 - spent)),
        bounds=bounds_of(winner, race),
        projection=(mean - reach[1] * error, mean + reach[0] * error) if error else (mean, mean),
        truncation=(mean - race.below * (error or 1.0), mean + race.above * (error or 1.0)),
        tied={option: bounds_of(option, race_of(option)) for option in tied} if len(tied) > 1 else {},
        level=float(level),
        beta=float(beta),
        floor=race.answer(_NO_REACH, 2 * FLOOR_TAIL).interval[0] if rank == 1 and len(tied) == 1 else -math.inf,
    )


_NO_REACH = (math.inf, math.inf)


@dataclass(frozen=True)
class _Race:
    """The winner, and how close the race was."""

    mean: float
    error: float
    freedom: float
    below: float
    above: float
    covariances: np.ndarray

    def simultaneous(self, share: float, sides: int) -> float:
        """What no option's |t|, or t, exceeds but with probability ``share``; for the winner's degrees of freedom."""
        normal = max_quantile(self.covariances, share, sides)
        if math.isinf(self.freedom):
            return normal
        return float(upper_quantile(special(np).ndtr(-normal), np.asarray(self.freedom)))

    def solve(self, alpha: float, reach: tuple[float, float]) -> float:
        """The mean at which F is 1 - alpha."""
        odds = math.log1p(-alpha) - math.log(alpha)
        return self.mean - self.error * solve_offset(odds, self.below, self.above, reach, self.freedom)

    def answer(self, reach: tuple[float, float], alpha: float) -> WinnerMean:
        if self.error == 0:
            return WinnerMean(self.mean, (self.mean, self.mean))
        value, low, high = (self.solve(share, reach) for share in (0.5, alpha / 2, 1 - alpha / 2))
        return WinnerMean(value, (low, high))

    def reach(self, beta: float) -> tuple[float, float]:
        """How far the estimate may lie below and above the mean, in standard errors: what selection makes doubtful is bounded."""
        doubtful = math.isfinite(self.above), math.isfinite(self.below)
        if not any(doubtful):  # nobody to compete with
            return _NO_REACH
        c = self.simultaneous(beta, sum(doubtful))
        return c if doubtful[0] else math.inf, c if doubtful[1] else math.inf

    def bounds(self, tail: float, upper: float | None) -> tuple[float, float]:
        """Bounds that each fail with probability ``tail`` at most; without an ``upper`` one, those that hold for all at once."""
        if self.error == 0:
            return self.mean, self.mean
        if upper is not None and math.isinf(self.above):
            return self._lower_bound(tail), upper
        # Bounded from above, the truncated law may tell that the mean is higher than the estimate: not used.
        far = self.simultaneous(tail, 1) * self.error
        return self.mean - far, self.mean + far if upper is None else upper

    def _lower_bound(self, tail: float) -> float:
        if math.isinf(self.below):
            return self.solve(tail, _NO_REACH)
        first = BOUND_SHARE * tail
        return self.solve((tail - first) / (1 - first), (math.inf, self.simultaneous(first, 1)))


def _distances(means: np.ndarray, covariance: np.ndarray, winner: int, before: np.ndarray) -> tuple[float, float]:
    """How far below and above its estimate, in standard errors, the winner would still be ahead of all but ``before``."""
    variance = float(diagonal(covariance)[winner]) or 1.0  # without variance there is no covariance either
    with np.errstate(over="ignore", under="ignore"):
        gaps = np.abs(means[winner] - means) / math.sqrt(variance)
        slopes = np.ones_like(means) if covariance.ndim == 1 else 1 - covariance[winner] / variance
        # An option that moves along with the winner one to one, itself or a copy for instance, restricts nothing.
        slopes[np.abs(slopes) <= 64 * np.finfo(float).eps] = 0
        slopes[winner] = 0
        slopes[before] *= -1
        below, above = (gaps[side] / np.abs(slopes[side]) for side in (slopes > 0, slopes < 0))
    return float(np.min(below, initial=np.inf)), float(np.min(above, initial=np.inf))
