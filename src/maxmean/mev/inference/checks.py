"""What inference is given, checked: means and covariances, degrees of freedom, counts and levels."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError
from .simultaneous import diagonal

_ROUNDING = 1e-11
"""Of a standard error: more than what sums of a million numbers are off by, and never seen between different means."""


def checked(means: Array, covariance: Array) -> tuple[np.ndarray, np.ndarray]:
    """Means and their covariances as arrays of floats, if they fit."""
    estimates, covariances = np.asarray(means, dtype=float), np.asarray(covariance, dtype=float)
    options = estimates.size
    if estimates.ndim != 1 or options == 0:
        raise ArgumentError(f"means must have shape (options,) with at least one option, not {estimates.shape}")
    if covariances.shape not in ((options,), (options, options)):
        raise ArgumentError(
            f"covariance must have shape ({options}, {options}) or ({options},), not {covariances.shape}"
        )
    for name, array in (("means", estimates), ("covariance", covariances)):
        if not np.isfinite(array).all():
            raise ArgumentError(f"{name} must be finite, but hold {array[~np.isfinite(array)][0]}")
    variances = diagonal(covariances)
    if variances.min() < 0:
        raise ArgumentError(f"variances must not be negative, but option {variances.argmin()} has {variances.min():g}")
    return estimates, covariances


def level_ties(means: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """The same means, those equal that differ by no more than rounding: four units in the last place, or 1e-11 standard errors.

    Sums of the same numbers in another order differ by that much, and it would decide who wins.

    >>> level_ties(np.array([0.1 + 0.2, 0.3, 0.2]), np.array([0.1, 0.1, 0.1])).tolist()
    [0.30000000000000004, 0.30000000000000004, 0.2]
    """
    order = np.argsort(-means, kind="stable")
    slack = 4 * np.finfo(float).eps * np.abs(means) + _ROUNDING * errors
    gaps = means[order[:-1]] - means[order[1:]]
    close = gaps <= np.minimum(slack[order[:-1]], slack[order[1:]])
    if not (close & (gaps > 0)).any():
        return means
    first = np.maximum.accumulate(np.where(np.concatenate([[False], close]), 0, np.arange(len(means))))
    found = np.empty_like(means)
    found[order] = means[order[first]]
    return found


def checked_freedom(freedom: Array, options: int) -> np.ndarray:
    """Degrees of freedom of each option."""
    given = np.asarray(freedom, float)
    if given.shape not in ((), (options,)):
        raise ArgumentError(f"degrees of freedom must be a number or have shape ({options},), not {given.shape}")
    degrees = np.broadcast_to(given, options)
    if not (degrees > 0).all():
        raise ArgumentError(f"degrees of freedom must be positive, not {degrees.min():g}")
    return degrees


def tail_of(level: float) -> float:
    """Half of what is left of a confidence level."""
    if not 0 < level < 1:
        raise ArgumentError(f"level must lie strictly between 0 and 1, not {level}")
    return (1 - level) / 2


def checked_beta(beta: float | None, level: float, more: float = 0.0) -> float:
    """The share of 1 - level that a projection gets; by default a tenth of it, and ``more``."""
    if beta is None:
        return round((1 - level) * (0.1 + more), 12)  # 0.005, not 0.0050000000000000044
    if not (0 <= beta < 1 - level and beta + level < 1):
        raise ArgumentError(f"beta must lie in [0, 1 - level), here [0, {1 - level:.6g}), not {beta}")
    return beta


def checked_rank(rank: int, options: int) -> int:
    """A place among the options."""
    if not 1 <= rank <= options:
        raise ArgumentError(f"rank must be from 1 to {options}, the number of options, not {rank}")
    return int(rank)


def checked_top(k: int, options: int) -> int:
    """A number of options."""
    if not 1 <= k <= options:
        raise ArgumentError(f"k must be from 1 to {options}, the number of options, not {k}")
    return int(k)


def checked_counts(successes: Array, trials: Array) -> tuple[np.ndarray, np.ndarray]:
    """Successes and trials as arrays, if they can be such."""
    k = np.asarray(successes, float)
    if k.ndim != 1 or k.size == 0:
        raise ArgumentError(f"successes must have shape (options,) with at least one option, not {k.shape}")
    n = np.asarray(trials, float)
    if n.shape not in ((), k.shape):
        raise ArgumentError(f"trials must be a number or have shape {k.shape}, not {n.shape}")
    n = np.broadcast_to(n, k.shape)
    if not ((k >= 0) & (k <= n) & (n >= 1) & (k == np.rint(k)) & (n == np.rint(n))).all():
        raise ArgumentError(
            "successes and trials must be whole numbers, at least one trial and no more successes than trials"
        )
    return k, n


def checked_alone(alone: Array, options: int) -> np.ndarray:
    """How often each option succeeds where another does not, as an array, if it can be such."""
    rows = np.asarray(alone, float)
    if rows.shape != (options, options):
        raise ArgumentError(f"alone must have shape ({options}, {options}), not {rows.shape}")
    if not ((rows >= 0) & (rows == np.rint(rows))).all():
        raise ArgumentError("alone must be whole numbers of rows")
    return rows
