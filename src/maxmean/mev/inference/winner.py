r"""Inference on the winner: the mean of the option with the best sample mean, given that it was selected for it.

Andrews, Kitagawa and McCloskey, "Inference on Winners", Quarterly Journal of Economics 139(1), 2024. The estimated means X
are assumed normal around the true ones, with a known covariance matrix. Given which option w won, and given the part of X that
is independent of X_w, the winner's X_w is a *truncated* normal: inference from that distribution corrects the winner's curse.

Everything is computed in units of the winner's standard error s and relative to X_w: ``below`` = (X_w - L)/s and
``above`` = (U - X_w)/s are the distances to the truncation points, ``offset`` = (X_w - mu)/s is the unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import Array, special
from ..errors import ArgumentError
from .checks import checked
from .simultaneous import diagonal, max_quantile
from .truncated import solve_offset


@dataclass(frozen=True)
class WinnerMean:
    """One answer about the winner's mean."""

    value: float
    """Point estimate; median-unbiased (too high as often as too low) except for the naive one."""
    interval: tuple[float, float]
    """Equal-tailed confidence interval."""


@dataclass(frozen=True)
class Winner:
    """The option with the largest estimated mean, and three answers about its true mean: see :func:`infer_winner`."""

    index: int
    naive: WinnerMean
    """As if the option had been named in advance: too high, and covers less often than ``level``."""
    conditional: WinnerMean
    """Exact given the winner, whichever it is; very wide after a close race."""
    hybrid: WinnerMean
    """Nearly as exact, and never outside ``projection``: report this one."""
    projection: tuple[float, float]
    """The winner's part of the intervals that hold for all options at once with confidence 1 - ``beta``."""
    truncation: tuple[float, float]
    """[L, U]: the range in which the winner's estimate could lie, all else equal, for the same option to win."""
    level: float
    beta: float


def infer_winner(means: Array, covariance: Array, *, level: float = 0.95, beta: float | None = None) -> Winner:
    r"""Median-unbiased estimates of, and confidence intervals for, the mean of the option with the largest estimate.

    With :math:`c_j = \Sigma_{jw} / \Sigma_{ww}`, option w wins as long as :math:`X_w` stays within [L, U],

    .. math:: L = \max_{c_j < 1} \left( X_w - \frac{X_w - X_j}{1 - c_j} \right), \qquad
              U = \min_{c_j > 1} \left( X_w - \frac{X_w - X_j}{1 - c_j} \right),

    and the *conditional* quantile-unbiased estimate at a is the mean :math:`\mu` that solves

    .. math:: F(X_w; \mu) = 1 - a, \qquad F(x; \mu) =
              \frac{\Phi((x - \mu)/s) - \Phi((L - \mu)/s)}{\Phi((U - \mu)/s) - \Phi((L - \mu)/s)}, \qquad
              s^2 = \Sigma_{ww}.

    a = 1/2 gives the value, a = alpha/2 and 1 - alpha/2 the interval, alpha = 1 - level. The *hybrid* truncates to
    :math:`[\max(L, \mu - c_\beta s), \min(U, \mu + c_\beta s)]` with (alpha - beta)/(1 - beta) for alpha, where
    :math:`c_\beta` is the 1 - beta quantile of :math:`\max_j |\xi_j| / \sigma_j`, :math:`\xi \sim N(0, \Sigma)`.

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
        Share of 1 - level that the hybrid spends on the projection interval, in [0, 1 - level). Default: a tenth, as the
        authors recommend, which is 0.005 at level 0.95. At 0 the hybrid is the conditional answer.

    Notes
    -----
    Assumes normal estimates with a known covariance matrix: good for means of many observations. The conditional
    interval has exactly its level, given any winner; the hybrid interval between level and level/(1 - beta).

    If several options tie, the first wins. A tie with c_j < 1 puts L on X_w itself (one with c_j > 1 puts U there), and
    the conditional answer goes to its limit: -inf (inf) for the value and both ends of the interval. The value and both
    ends of the hybrid answer are then the lower (upper) end of the projection interval. With both kinds of tie at once
    nothing is known beyond the projection: the value is X_w, the interval the whole projection interval (conditional:
    the whole line). Data that often tie, such as small counts, are not normal, and neither answer has its nominal
    coverage for them. For a winner without variance, every answer is its mean.

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
    (0.59, [-0.55, 1.95])
    """
    estimates, covariances = checked(means, covariance)
    if not 0 < level < 1:
        raise ArgumentError(f"level must lie strictly between 0 and 1, not {level}")
    beta = round((1 - level) / 10, 12) if beta is None else beta  # rounded: 0.005, not 0.0050000000000000044
    if not (0 <= beta < 1 - level and beta + level < 1):
        raise ArgumentError(f"beta must lie in [0, 1 - level), here [0, {1 - level:.6g}), not {beta}")

    winner = int(np.argmax(estimates))
    mean = float(estimates[winner])
    error = math.sqrt(float(diagonal(covariances)[winner]))
    reach = max_quantile(covariances, beta)
    below, above = _distances(estimates, covariances, winner)
    truncation = mean - below * (error or 1.0), mean + above * (error or 1.0)

    def answer(reach: float, alpha: float) -> WinnerMean:
        if error == 0:
            return WinnerMean(mean, (mean, mean))
        tail = math.log(alpha / 2) - math.log1p(-alpha / 2)
        value, low, high = (mean - error * solve_offset(odds, below, above, reach) for odds in (0.0, -tail, tail))
        return WinnerMean(value, (low, high))

    margin = -float(special(np).ndtri((1 - level) / 2)) * error
    return Winner(
        index=winner,
        naive=WinnerMean(mean, (mean - margin, mean + margin)),
        conditional=answer(math.inf, 1 - level),
        hybrid=answer(reach, (1 - level - beta) / (1 - beta)),
        projection=(mean - reach * error, mean + reach * error) if error else (mean, mean),
        truncation=truncation,
        level=float(level),
        beta=float(beta),
    )


def _distances(means: np.ndarray, covariance: np.ndarray, winner: int) -> tuple[float, float]:
    """How far below and above its estimate, in standard errors, the winner would still have won."""
    variance = float(diagonal(covariance)[winner]) or 1.0  # without variance there is no covariance either
    with np.errstate(over="ignore", under="ignore"):
        gaps = (means[winner] - means) / math.sqrt(variance)
        slopes = np.ones_like(means) if covariance.ndim == 1 else 1 - covariance[winner] / variance
        # An option that moves along with the winner one to one, itself or a copy for instance, restricts nothing.
        slopes[np.abs(slopes) <= 64 * np.finfo(float).eps] = 0
        slopes[winner] = 0
        below, above = (gaps[side] / np.abs(slopes[side]) for side in (slopes > 0, slopes < 0))
    return float(np.min(below, initial=np.inf)), float(np.min(above, initial=np.inf))
