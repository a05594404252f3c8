"""Intervals that hold for all options at once: the quantile of the largest z-score, absolute or not."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..arrays import special
from ..errors import ArgumentError
from .roots import find_root
from .sobol import sobol_points

_LOG2_DRAWS = 13  # of the quasi-Monte Carlo quantile
_LOG2_FEWER, _MANY = 11, 100  # where so many options are compared with each other
_HELD = 1_000_000  # numbers worked on at once, of draws times options
_ROWS = 2  # for each option, below which correlations are too uncertain for a question that each option is asked
ROWS_FOR_PAIRS = 5
"""The same where all pairs are compared."""
_SLACK = 1e-6  # asymmetry and negative eigenvalues of a correlation matrix that single precision explains


def max_quantile(covariance: np.ndarray, beta: float, sides: int = 2, freedom: float = math.inf) -> float:
    """c_beta, the 1 - beta quantile of the largest |xi_j|/sigma_j; refuses a matrix that is no covariance matrix.

    With ``sides=1`` that of the largest xi_j/sigma_j. Correlations with few degrees of ``freedom`` give Bonferroni's bound.
    """
    correlation = correlation_of(covariance)
    if correlation is None:
        return _independent_quantile(int(np.count_nonzero(diagonal(covariance) > 0)), beta, sides)
    if too_few_rows(correlation, freedom):
        return -float(special(np).ndtri(beta / (sides * len(correlation))))
    order = _canonical_order(correlation)
    return _correlated_quantile(correlation[np.ix_(order, order)].tobytes(), len(correlation), beta, sides)


def correlation_of(covariance: np.ndarray) -> np.ndarray | None:
    """The correlations of the options that have a variance; None where there are none. Refuses what is no covariance matrix."""
    errors = np.sqrt(diagonal(covariance))
    doubtful = errors > 0
    if covariance.ndim == 1 or np.count_nonzero(covariance) <= np.count_nonzero(doubtful):
        return None
    if covariance[~doubtful].any() or covariance[:, ~doubtful].any():
        raise ArgumentError("covariance must be positive semi-definite, but an option without variance covaries")
    errors = errors[doubtful]
    with np.errstate(over="ignore", under="ignore"):
        correlation = covariance[np.ix_(doubtful, doubtful)] / errors / errors[:, None]
    correlation = np.clip(correlation, -2, 2)  # finite, and still refused
    asymmetry = np.abs(correlation - correlation.T)
    if asymmetry.max() > _SLACK:
        i, j = np.flatnonzero(doubtful)[list(np.unravel_index(asymmetry.argmax(), asymmetry.shape))]
        raise ArgumentError(
            f"covariance must be symmetric, but holds {covariance[i, j]:g} and {covariance[j, i]:g} "
            f"for options {i} and {j}"
        )
    return correlation


def too_few_rows(correlation: np.ndarray | None, freedom: np.ndarray | float, rows: int = _ROWS) -> bool:
    """Whether correlations come from fewer rows than so many for each option, ``freedom`` being rows less one.

    Then they are noise to a good part, and of no higher rank than the rows: the largest z-score under them is too small.
    Bonferroni's bound needs none.

    >>> too_few_rows(np.eye(10), 18.0), too_few_rows(np.eye(10), 19.0), too_few_rows(None, 2.0)
    (True, False, False)
    """
    return correlation is not None and float(np.min(freedom)) + 1 < rows * len(correlation)


def _independent_quantile(options: int, beta: float, sides: int = 2) -> float:
    """The c with (2 Phi(c) - 1)^M = 1 - beta, or Phi(c)^M; by Šidák's inequality (1967) no correlation makes the first larger."""
    if options == 0 or beta == 0:
        return math.inf if options else 0.0
    return -float(special(np).ndtri(-math.expm1(math.log1p(-beta) / options) / sides))


@lru_cache(maxsize=8)  # a simulation or a bootstrap asks for the same matrix again and again
def _correlated_quantile(matrix: bytes, options: int, beta: float, sides: int) -> float:
    """c_beta under a correlation matrix R, from P(max |xi| > c) = 2 M Phi(-c) E[1/S], without the 2 for one side.

    The expectation draws an option j at random and xi given xi_j > c; S counts the options with abs(xi) > c, at least
    one. This importance sampling (Adler, Blanchet and Liu, 2012) makes every draw a rare event: thousands suffice.
    """
    correlation = np.frombuffer(matrix).reshape(options, options)
    parts = _root(correlation)
    if beta == 0:
        return math.inf
    ndtr, ndtri = special(np).ndtr, special(np).ndtri
    points = normal_points(len(parts) + 2, 1)
    chosen = np.minimum((ndtr(points[:, 0]) * options).astype(int), options - 1)
    tails = ndtr(points[:, 1])
    draws = (points[:, 2:] @ parts).T
    del points, parts
    step = max(1, _HELD // options)
    pieces = []
    for k in range(0, len(tails), step):
        xi, j = np.ascontiguousarray(draws[:, k : k + step]), chosen[k : k + step]
        along = np.ascontiguousarray(correlation[:, j])
        xi -= along * xi[j, np.arange(len(j))]  # the part of xi that is independent of xi_j
        pieces.append((xi, along, tails[k : k + step]))
    del draws

    def surplus(c: float) -> float:
        shares = 0.0
        for xi, along, tail in pieces:
            whole = along * -ndtri(tail * ndtr(-c))
            whole += xi
            exceeding = (np.abs(whole, out=whole) if sides == 2 else whole) > c
            shares += float(np.sum(1 / np.maximum(np.add.reduce(exceeding, axis=0, dtype=np.int32), 1)))
        return sides * options * float(ndtr(-c)) * shares / len(tails) - beta

    # 1/M <= 1/S <= 1 puts the root between the quantile of a single option and Bonferroni's.
    low, high = (-float(ndtri(beta / (sides * m))) for m in (1, options))
    root = find_root(surplus, low - 1e-9, high + 1e-9, xtol=1e-5)  # draws are good to 1e-3
    return min(max(root, low), _independent_quantile(options, beta) if sides == 2 else high)


def student_points(correlation: np.ndarray, freedom: float = math.inf) -> np.ndarray:
    """Points that fill a multivariate Student distribution evenly, [draws, options], always the same ones.

    An option has the same ones wherever it stands among the others.
    """
    order = _canonical_order(correlation)
    root = _root(correlation[np.ix_(order, order)])[:, np.argsort(order)]
    if math.isinf(freedom):
        return normal_points(len(root), len(correlation)) @ root
    from scipy.special import chdtri

    points = normal_points(len(root) + 1, len(correlation))
    spread = np.sqrt(freedom / chdtri(freedom, special(np).ndtr(points[:, 0])))
    return points[:, 1:] @ root * spread[:, None]


def _canonical_order(correlation: np.ndarray) -> np.ndarray:
    """An order of the options that does not depend on the one they came in, but for those that nothing tells apart."""
    return np.argsort(np.sort(correlation, axis=1).sum(axis=1), kind="stable")


def normal_points(dimensions: int, options: int | None = None) -> np.ndarray:
    """Points that fill a standard normal distribution evenly, [draws, dimensions]; as many as for so many options."""
    draws = _log2_draws(options or dimensions)
    return _few_normal_points(dimensions, draws) if dimensions <= _MANY else _normal_points(dimensions, draws)


def _normal_points(dimensions: int, log2_draws: int) -> np.ndarray:
    points = _uniform_points(dimensions, log2_draws)
    special(np).ndtri(points, out=points)
    points.flags.writeable = False
    return points


_few_normal_points = lru_cache(maxsize=4)(
    _normal_points
)  # the ranks and the leading ones need the same, and so do data sets


def _log2_draws(options: int) -> int:
    return _LOG2_DRAWS if options <= _MANY else _LOG2_FEWER


def _root(correlation: np.ndarray) -> np.ndarray:
    """R with R'R = ``correlation``, the largest part first, without the parts that are zero."""
    options = len(correlation)
    spectrum, vectors = np.linalg.eigh((correlation + correlation.T) / 2)
    if spectrum[0] < -_SLACK * options:
        raise ArgumentError(
            f"covariance must be positive semi-definite, but its correlation matrix has eigenvalue {spectrum[0]:.3g}"
        )
    kept = np.flatnonzero(spectrum > 1e-14 * options)[::-1]  # the first dimensions are the most evenly filled
    return np.asarray((vectors[:, kept] * np.sqrt(spectrum[kept])).T)


def _uniform_points(dimensions: int, log2_draws: int = _LOG2_DRAWS) -> np.ndarray:
    """Quasi-random points of the unit cube, always the same ones."""
    points = sobol_points(dimensions, log2_draws)
    # A random shift instead of scrambling: the same on every version of SciPy.
    points += np.random.default_rng(0).random(dimensions)  # in place, for there may be thousands of dimensions
    points %= 1
    return np.clip(points, 1e-16, 1 - 1e-16, out=points)


def diagonal(covariance: np.ndarray) -> np.ndarray:
    """The variances: the diagonal of a covariance matrix, or the array itself if it holds variances only."""
    return covariance if covariance.ndim == 1 else covariance.diagonal()
