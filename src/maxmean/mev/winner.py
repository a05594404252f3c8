r"""Inference on the winner: what the mean of the option that came out best can be, given that it came out best.

Andrews, Kitagawa and McCloskey, "Inference on Winners", Quarterly Journal of Economics 139(1), 2024. The estimated
means X are taken for normal around the true ones with a known covariance matrix. Given which option w won, and given
what of X is independent of X_w, the winner's X_w is a *truncated* normal: reading it as such lifts the winner's curse.

Everything is computed in units of the winner's standard error s and relative to X_w: ``below`` = (X_w - L)/s and
``above`` = (U - X_w)/s are the distances to the truncation points, ``offset`` = (X_w - mu)/s is the unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .arrays import Array, special

_LOG2_DRAWS = 13  # of the quasi-Monte Carlo quantile
_HELD = 1_000_000  # numbers worked on at once, of draws times options
_SLACK = 1e-6  # asymmetry and negative eigenvalues of a correlation matrix that single precision explains
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(14)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2
_ROOT_HALF, _MILLS_AT_ZERO = math.sqrt(0.5), math.sqrt(math.pi / 2)


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
    """Nearly as exact, and never outside ``projection``: the one to report."""
    projection: tuple[float, float]
    """The winner's part of the intervals that hold for all options at once with confidence 1 - ``beta``."""
    truncation: tuple[float, float]
    """[L, U]: where the winner's estimate could have been, all else equal, for the same option to win."""
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
        Estimated means, shape ``(M,)``. Where the smallest is the best, hand over the negated means.
    covariance
        Covariance matrix *of the means* (sample covariance / n), shape ``(M, M)``, or their variances, shape ``(M,)``,
        for independent options. It may be singular.
    level
        Confidence level of the intervals, in (0, 1).
    beta
        What of 1 - level the hybrid spends on the projection interval, in [0, 1 - level). Left out: a tenth, as the
        authors advise, which is 0.005 at the usual level. At 0 the hybrid is the conditional answer.

    Notes
    -----
    Assumes normal estimates with a known covariance matrix: good for means of many observations. The conditional
    interval has exactly its level, given any winner; the hybrid interval between level and level/(1 - beta).

    If several options tie, the first wins. A tie with c_j < 1 puts L on X_w itself (one with c_j > 1 puts U there), and
    the conditional answer goes to its limit: -inf (inf) for the value and both ends of the interval. The hybrid one
    then is the lower (upper) end of the projection interval, thrice. With both kinds of tie at once nothing is known
    beyond the projection: the value is X_w, the interval the whole projection interval (conditional: the whole line).
    Data that often tie, such as small counts, are no normal data, and neither answer keeps its promise for them. A
    winner without variance has its mean for every answer.

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
    estimates, covariances = _checked(means, covariance)
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, not {level}")
    beta = round((1 - level) / 10, 12) if beta is None else beta  # rounded: 0.005, not 0.0050000000000000044
    if not (0 <= beta < 1 - level and beta + level < 1):
        raise ValueError(f"beta must lie in [0, 1 - level), here [0, {1 - level:.6g}), not {beta}")

    winner = int(np.argmax(estimates))
    mean = float(estimates[winner])
    error = math.sqrt(float(_diagonal(covariances)[winner]))
    reach = _max_quantile(covariances, beta)
    below, above = _distances(estimates, covariances, winner)
    truncation = mean - below * (error or 1.0), mean + above * (error or 1.0)

    def answer(reach: float, alpha: float) -> WinnerMean:
        if error == 0:
            return WinnerMean(mean, (mean, mean))
        tail = math.log(alpha / 2) - math.log1p(-alpha / 2)
        value, low, high = (mean - error * _offset(odds, below, above, reach) for odds in (0.0, -tail, tail))
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


def truncated_log_odds(offset: float, below: float, above: float) -> float:
    r"""Log-odds log F/(1 - F) at a point of a truncated standard normal, accurate to rounding however far out.

    The point is ``offset``, the normal is truncated to [offset - below, offset + above]. F/(1 - F) is the mass below
    the point over the mass above it; both carry the factor phi(offset), and without it

    .. math:: \log\frac{F}{1 - F} = \log\int_0^{below} e^{t u - u^2/2}\,du - \log\int_0^{above} e^{-t u - u^2/2}\,du,
              \qquad t = offset.

    Distances, not ends, go in: an interval much smaller than the rounding of ``offset`` keeps its digits.

    >>> truncated_log_odds(0.0, 2.0, 2.0)
    0.0
    >>> round(truncated_log_odds(1e9, 1e-9, math.inf), 12) == round(math.log(math.e - 1), 12)
    True
    """
    return _log_integral(-offset, below) - _log_integral(offset, above)


def _log_integral(t: float, width: float) -> float:
    """Logarithm of the integral of exp(-t u - u²/2) over u from 0 to ``width``; no close numbers are subtracted."""
    if width == 0:
        return -math.inf
    end = t + width
    if t < 0 and end <= 0:  # all before the mode: the same integral read from its other end
        return -width * (t + width / 2) + _log_integral(-end, width)
    if t < 0:  # the mode is inside, and the parts on its two sides add up
        return t * t / 2 + math.log(_MILLS_AT_ZERO * (math.erf(-t * _ROOT_HALF) + math.erf(end * _ROOT_HALF)))
    fall = width * (t + width / 2)
    if fall < 1:  # the integrand hardly moves: Gauss-Legendre is exact to rounding
        return math.log(width) + math.log(float(_WEIGHTS @ np.exp(-width * _NODES * (t + width / 2 * _NODES))))
    erfcx = special(np).erfcx
    return math.log(_MILLS_AT_ZERO * float(erfcx(t * _ROOT_HALF) - math.exp(-fall) * erfcx(end * _ROOT_HALF)))


def _offset(log_odds: float, below: float, above: float, reach: float) -> float:
    """The (X_w - mu)/s at which X_w has these log-odds in its truncated law; in [-reach, reach]."""
    if below == 0 and above == 0:
        return math.copysign(reach, log_odds) if log_odds else 0.0
    if below == 0 or above == 0:
        return reach if below == 0 else -reach

    def excess(offset: float) -> float:
        odds = truncated_log_odds(offset, min(below, reach + offset), min(above, reach - offset))
        return min(max(odds - log_odds, -1e3), 1e3)  # infinite at ±reach; the solver wants numbers

    low, high = (-reach, reach) if math.isfinite(reach) else _bracket(excess)
    if math.isinf(low) or math.isinf(high):
        return low if math.isinf(low) else high
    from scipy.optimize import brentq

    return float(brentq(excess, low, high, xtol=1e-15, rtol=4 * np.finfo(float).eps))


def _bracket(increasing: Callable[[float], float]) -> tuple[float, float]:
    """Two points around the root of an increasing function; one is infinite if the root lies beyond all floats."""
    sign = 1.0 if increasing(0.0) < 0 else -1.0
    inner, outer = 0.0, sign
    while math.isfinite(outer) and increasing(outer) * sign < 0:
        inner, outer = outer, 8 * outer
    return min(inner, outer), max(inner, outer)


def _distances(means: np.ndarray, covariance: np.ndarray, winner: int) -> tuple[float, float]:
    """How far below and above its estimate, in standard errors, the winner would still have won."""
    variance = float(_diagonal(covariance)[winner]) or 1.0  # without variance there is no covariance either
    with np.errstate(over="ignore", under="ignore"):
        gaps = (means[winner] - means) / math.sqrt(variance)
        slopes = np.ones_like(means) if covariance.ndim == 1 else 1 - covariance[winner] / variance
        # An option that moves along with the winner one to one, itself or a copy for instance, restricts nothing.
        slopes[np.abs(slopes) <= 64 * np.finfo(float).eps] = 0
        slopes[winner] = 0
        below, above = (gaps[side] / np.abs(slopes[side]) for side in (slopes > 0, slopes < 0))
    return float(np.min(below, initial=np.inf)), float(np.min(above, initial=np.inf))


def _diagonal(covariance: np.ndarray) -> np.ndarray:
    return covariance if covariance.ndim == 1 else covariance.diagonal()


def _checked(means: Array, covariance: Array) -> tuple[np.ndarray, np.ndarray]:
    estimates, covariances = np.asarray(means, dtype=float), np.asarray(covariance, dtype=float)
    options = estimates.size
    if estimates.ndim != 1 or options == 0:
        raise ValueError(f"means must have shape (options,) with at least one option, not {estimates.shape}")
    if covariances.shape not in ((options,), (options, options)):
        raise ValueError(f"covariance must have shape ({options}, {options}) or ({options},), not {covariances.shape}")
    for name, array in (("means", estimates), ("covariance", covariances)):
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite, but hold {array[~np.isfinite(array)][0]}")
    variances = _diagonal(covariances)
    if variances.min() < 0:
        raise ValueError(f"variances must not be negative, but option {variances.argmin()} has {variances.min():g}")
    return estimates, covariances


def _max_quantile(covariance: np.ndarray, beta: float) -> float:
    """c_beta, the 1 - beta quantile of the largest |xi_j|/sigma_j; refuses a matrix that is no covariance matrix."""
    errors = np.sqrt(_diagonal(covariance))
    doubtful = errors > 0
    if covariance.ndim == 2 and np.count_nonzero(covariance) > np.count_nonzero(doubtful):
        if covariance[~doubtful].any() or covariance[:, ~doubtful].any():
            raise ValueError("covariance must be positive semi-definite, but an option without variance covaries")
        errors = errors[doubtful]
        with np.errstate(over="ignore", under="ignore"):
            correlation = covariance[np.ix_(doubtful, doubtful)] / errors / errors[:, None]
        correlation = np.clip(correlation, -2, 2)  # finite, and still refused
        asymmetry = np.abs(correlation - correlation.T)
        if asymmetry.max() > _SLACK:
            i, j = np.flatnonzero(doubtful)[list(np.unravel_index(asymmetry.argmax(), asymmetry.shape))]
            raise ValueError(
                f"covariance must be symmetric, but holds {covariance[i, j]:g} and {covariance[j, i]:g} "
                f"for options {i} and {j}"
            )
        return _correlated_quantile(correlation.tobytes(), errors.size, beta)
    return _independent_quantile(int(np.count_nonzero(doubtful)), beta)


def _independent_quantile(options: int, beta: float) -> float:
    """The c with (2 Phi(c) - 1)^M = 1 - beta; by Šidák's inequality (1967) no correlation makes it larger."""
    if options == 0 or beta == 0:
        return math.inf if options else 0.0
    return -float(special(np).ndtri(-math.expm1(math.log1p(-beta) / options) / 2))


@lru_cache(maxsize=8)  # a simulation or a bootstrap asks for the same matrix again and again
def _correlated_quantile(matrix: bytes, options: int, beta: float) -> float:
    """c_beta under a correlation matrix R, from P(max |xi| > c) = 2 M Phi(-c) E[1/S].

    The expectation draws an option j at random and xi given xi_j > c; S counts the options with abs(xi) > c, at least
    one. This importance sampling (Adler, Blanchet and Liu, 2012) makes every draw a rare event: thousands suffice.
    """
    correlation = np.frombuffer(matrix).reshape(options, options)
    spectrum, vectors = np.linalg.eigh((correlation + correlation.T) / 2)
    if spectrum[0] < -_SLACK * options:
        raise ValueError(
            f"covariance must be positive semi-definite, but its correlation matrix has eigenvalue {spectrum[0]:.3g}"
        )
    if beta == 0:
        return math.inf
    from scipy.optimize import brentq
    from scipy.stats import qmc

    ndtr, ndtri = special(np).ndtr, special(np).ndtri
    kept = np.flatnonzero(spectrum > 1e-14 * options)[::-1]  # the first dimensions are the most evenly filled
    dimensions = kept.size + 2
    points = qmc.Sobol(dimensions, scramble=False).random_base2(_LOG2_DRAWS)
    # A random shift instead of scrambling: the same on every version of SciPy.
    points += np.random.default_rng(0).random(dimensions)  # in place, for there may be thousands of dimensions
    points %= 1
    np.clip(points, 1e-16, 1 - 1e-16, out=points)
    chosen = np.minimum((points[:, 0] * options).astype(int), options - 1)
    tails = points[:, 1].copy()
    ndtri(points, out=points)
    draws = points[:, 2:] @ (vectors[:, kept] * np.sqrt(spectrum[kept])).T
    del points, vectors
    step = max(1, _HELD // options)
    pieces = [slice(k, k + step) for k in range(0, len(draws), step)]
    for piece in pieces:  # what of xi is independent of xi_j
        xi, j = draws[piece], chosen[piece]
        xi -= correlation[j] * xi[np.arange(len(xi)), j, None]

    def surplus(c: float) -> float:
        exceeding = -ndtri(tails * ndtr(-c))[:, None]
        count = np.concatenate(
            [
                np.count_nonzero(np.abs(draws[piece] + correlation[chosen[piece]] * exceeding[piece]) > c, axis=1)
                for piece in pieces
            ]
        )
        return 2 * options * float(ndtr(-c)) * float(np.mean(1 / np.maximum(count, 1))) - beta

    # 1/M <= 1/S <= 1 puts the root between the quantile of a single option and Bonferroni's.
    low, high = (-float(ndtri(beta / (2 * m))) for m in (1, options))
    root = float(brentq(surplus, low * (1 - 1e-9), high * (1 + 1e-9), xtol=1e-9))
    return min(max(root, low), _independent_quantile(options, beta))
