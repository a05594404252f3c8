r"""Who is best: a set that holds the best option, and an interval for every option's rank.

Both come from tests of differences (Mogstad, Romano, Shaikh and Wilhelm, "Inference for ranks with applications to mobility
across neighbourhoods and academic achievement across countries", Review of Economic Studies 91, 2024). A difference with
estimated variances has Welch's degrees of freedom: its t-statistic is turned into the normal score with the same probability.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..arrays import Array, special
from .maximum import tail_probability, upper_quantile
from .simultaneous import correlation_of, diagonal, student_points
from .winner import checked

_FIRST_STEP = 0.1
"""The share of 1 - level that the first step of the test of the best spends."""
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_HELD = 4_000_000  # numbers worked on at once
MOST_PAIRS = 60 * 59
"""Ordered pairs whose largest difference is simulated, to be tested again without those that were rejected."""


def best_set(means: Array, covariance: Array, *, level: float = 0.95, freedom: Array = math.inf) -> np.ndarray:
    r"""Which options may be the best: bool, shape ``(M,)``. The best one is among them with probability ``level`` at least.

    Option i stays unless some other is significantly better, :math:`\max_j (x_j - x_i)/s_{ij}`. Only the true best must stay, so
    that nothing is paid for the number of tests; each of them allows for the number of others, but for those that are clearly
    worse than i (in two steps, as in :func:`maxmean.mev.inference.maximum_interval`).

    Parameters are those of :func:`maxmean.mev.inference.maximum_interval`.

    >>> best_set([1.0, 0.9, -1.0], [0.01, 0.01, 0.01]).tolist()
    [True, True, False]
    """
    x, covariances = checked(means, covariance)
    scores, spreads = _differences(x, covariances, freedom)
    alpha = 1 - level
    first = _FIRST_STEP * alpha
    others = max(len(x) - 1, 1)
    strongest = scores.max(axis=0, initial=-math.inf)  # the best evidence that somebody is better than option i
    # One other option is as many as there may be, or all are: between these the number that count decides.
    stays = strongest < float(upper_quantile(alpha, np.asarray(math.inf)))
    close = ~stays & (strongest < float(upper_quantile((alpha - first) / others, np.asarray(math.inf))))
    if close.any():
        reach = float(upper_quantile(first / others, np.asarray(math.inf)))
        behind = np.maximum(-(scores[:, close] + reach), 0.0)
        limits = strongest[close] + behind
        exceeded = _exceeded(covariances, spreads, np.flatnonzero(close), limits)
        stays[close] = exceeded >= alpha - first
    return stays


def rank_intervals(means: Array, covariance: Array, *, level: float = 0.95, freedom: Array = math.inf) -> np.ndarray:
    r"""The range of every option's rank, 1 for the largest mean: whole numbers, shape ``(M, 2)``; all hold at once.

    Option i has at least as many before it as are significantly better, and at least as many behind it as are significantly
    worse. The tests of all pairs allow for each other; where there are few enough, those that are rejected are left out and the
    others tested again, until nothing changes.

    >>> rank_intervals([1.0, 0.9, -1.0], [0.01, 0.01, 0.01]).tolist()
    [[1, 2], [1, 2], [3, 3]]
    """
    x, covariances = checked(means, covariance)
    options = len(x)
    scores, spreads = _differences(x, covariances, freedom)  # [better, worse]
    correlation = correlation_of(covariances)
    alpha = 1 - level
    if options == 1:
        return np.ones((1, 2), int)
    if options * (options - 1) > MOST_PAIRS and correlation is None:
        better = scores > _range_quantile(options, alpha) / math.sqrt(2)  # Tukey and Kramer, for independent options
    else:
        better = _step_down(covariances, scores, spreads, alpha)
    worse_than, better_than = better.sum(axis=0), better.sum(axis=1)
    return np.stack([1 + worse_than, options - better_than], axis=-1)


def _differences(x: np.ndarray, covariances: np.ndarray, freedom: Array) -> tuple[np.ndarray, np.ndarray]:
    """Normal scores of x_j - x_i, [j, i], and the standard errors of the differences; certain differences are infinite."""
    variances = diagonal(covariances)
    both = variances[:, None] + variances
    degrees = np.broadcast_to(np.asarray(freedom, float), x.shape)
    if covariances.ndim == 2:
        both = np.maximum(both - 2 * covariances, 0.0)
        paired = correlation_of(covariances) is not None
    else:
        paired = False
    with np.errstate(divide="ignore", invalid="ignore"):
        spreads = np.sqrt(both)
        gaps = x[:, None] - x
        t = np.where(spreads > 0, gaps / spreads, np.where(gaps > 0, np.inf, np.where(gaps < 0, -np.inf, 0.0)))
        if paired:
            welch = np.full(both.shape, degrees.min())
        else:
            shares = np.square(variances) / degrees
            welch = np.where(both > 0, np.square(both) / (shares[:, None] + shares), np.inf)
    welch = np.where(np.isnan(welch), np.inf, np.maximum(welch, degrees.min()))
    tails = tail_probability(np.abs(t), welch)
    scores = np.where(np.isinf(welch) | np.isinf(t), t, np.copysign(-special(np).ndtri(tails), t))
    np.fill_diagonal(scores, -np.inf)
    return scores, spreads


def _exceeded(covariances: np.ndarray, spreads: np.ndarray, which: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """P(some (W_j - W_i)/s_ij exceeds its limit [j, i]), for these options i, with W of these covariances."""
    correlation = correlation_of(covariances)
    if correlation is not None:
        return np.array([_simulated(covariances, spreads, i, row) for i, row in zip(which, limits.T, strict=True)])
    errors = np.sqrt(diagonal(covariances))
    log_ndtr = special(np).log_ndtr
    floor = np.maximum(errors, 1e-12 * errors.max())
    found = []
    for i, row in zip(which, limits.T, strict=True):
        heights = row * spreads[:, i] + np.multiply.outer(_NODES, np.full(len(errors), errors[i]))
        logs = log_ndtr(heights / floor)
        logs[:, i] = 0.0
        found.append(1 - float(_WEIGHTS @ np.exp(logs.sum(axis=-1))))
    return np.array(found)


def _simulated(covariances: np.ndarray, spreads: np.ndarray, i: int, limits: np.ndarray) -> float:
    points = _noise(covariances)
    others = spreads[:, i] > 0
    gaps = (points[:, others] - points[:, [i]]) / spreads[others, i]
    return float(np.mean((gaps >= limits[others]).any(axis=-1)))


def _noise(covariances: np.ndarray) -> np.ndarray:
    """Points that fill N(0, covariances) evenly, [draws, options]."""
    errors = np.sqrt(diagonal(covariances))
    correlation = correlation_of(covariances)
    doubtful = errors > 0
    points = student_points(np.eye(int(doubtful.sum())) if correlation is None else correlation)
    whole = np.zeros((len(points), len(errors)))
    whole[:, doubtful] = points * errors[doubtful]
    return whole


def _step_down(covariances: np.ndarray, scores: np.ndarray, spreads: np.ndarray, alpha: float) -> np.ndarray:
    """Which j are significantly better than which i, [j, i]."""
    better = np.isposinf(scores)
    open_ = (spreads > 0) & ~np.eye(len(spreads), dtype=bool)
    points = _noise(covariances) if open_.any() else np.empty((0, 0))
    while open_.any():
        j, i = np.nonzero(open_)
        largest = np.full(len(points), -np.inf)
        step = max(1, _HELD // len(points))
        for k in range(0, len(j), step):
            a, b = j[k : k + step], i[k : k + step]
            np.maximum(largest, ((points[:, a] - points[:, b]) / spreads[a, b]).max(axis=-1), out=largest)
        rejected = open_ & (scores > np.quantile(largest, 1 - alpha))
        if not rejected.any():
            break
        better |= rejected
        open_ &= ~rejected
    return better


@lru_cache(maxsize=64)
def _range_quantile(options: int, alpha: float) -> float:
    """What the range of so many standard normal numbers exceeds with probability alpha."""
    from scipy.optimize import brentq

    ndtr = special(np).ndtr
    z = np.linspace(-9.0, 9.0, 2001)
    density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    def surplus(q: float) -> float:
        inside = options * density * np.maximum(ndtr(z) - ndtr(z - q), 0.0) ** (options - 1)
        return float(np.trapezoid(inside, z)) - (1 - alpha)

    return float(brentq(surplus, 0.1, 20.0))
