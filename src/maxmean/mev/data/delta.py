r"""Rows that are not independent observations of a mean: ratios, rows of one unit, and covariates, by the delta method.

Whatever is averaged, an option's mean is a smooth function of sums over *units* (users, sessions, rows): its error is a sum of
one small contribution :math:`\psi_{ui}` from each unit u, and

.. math:: \mathrm{Cov}(\hat\mu_i, \hat\mu_j) \approx \sum_u \psi_{ui}\, \psi_{uj}.

With the sums :math:`N_{ui}` and :math:`D_{ui}` of the numerator and the denominator over the rows of unit u in option i (for a
plain mean, D counts rows), :math:`\hat\mu_i = \sum_u N_{ui} / \sum_u D_{ui}` and
:math:`\psi_{ui} = (N_{ui} - \hat\mu_i D_{ui}) / \sum_u D_{ui}` (Deng, Knoblich and Lu, "Applying the delta method in metric
analytics", KDD 2018). A unit with rows in several options makes their means covary.

A covariate X from before the experiment has the same expectation in all options: what it happens to differ by is chance, and
:math:`\hat\mu_i - \theta (\bar X_i - \bar X)` has less of it (Deng, Xu, Kohavi and Walker, "Improving the sensitivity of online
controlled experiments", WSDM 2013; as analysis of covariance, Fisher 1932). :math:`\theta` is the slope within options.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import DataError
from .limits import MOST_PAIRED, TOO_MANY_PAIRED
from .moments import unit_for
from .summaries import Summaries

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

DELTA = ("denominator", "cluster", "covariate")
"""Roles of columns that make rows something else than independent observations of a mean."""


@dataclass(frozen=True)
class Rows:
    """A table in which each row belongs to an option and a unit; all arrays have one number a row."""

    option: np.ndarray
    """The option's number, from 0."""
    value: np.ndarray
    denominator: np.ndarray | None = None
    """What the sum of the values is divided by; None counts rows."""
    cluster: np.ndarray | None = None
    """The unit's number, from 0; None makes each row a unit."""
    covariate: np.ndarray | None = None


def summarise_units(rows: Rows, names: tuple[str, ...]) -> Summaries:
    """Means and their covariances; ``n`` counts units. Without units in common or a covariate, means are independent.

    Two users with two rows each: the rows alone would seem to say more than twice as much.

    >>> rows = Rows(np.repeat([0, 1], 4), np.array([1.0, 1.0, 3.0, 3.0, 2.0, 2.0, 6.0, 6.0]), cluster=np.repeat(range(4), 2))
    >>> found = summarise_units(rows, ("a", "b"))
    >>> found.means.tolist(), found.variances.tolist(), found.n
    ([2.0, 4.0], [1.0, 4.0], (2, 2))
    """
    options, unit = len(names), unit_for(rows.value)
    entry, where, cluster = _entries(rows, options)
    total = np.bincount(entry, rows.value / unit)
    weight = np.bincount(entry, rows.denominator)
    size = np.bincount(where, minlength=options).astype(float)
    below = np.bincount(where, weight, options)
    for name, n, divisor in zip(names, size, below, strict=True):
        if n < 2:
            raise DataError(f"option {name!r} has fewer than two units")
        if divisor <= 0:
            raise DataError(f"option {name!r}: its denominator adds up to zero")
    means = np.bincount(where, total, options) / below
    share = (total - means[where] * weight) / below[where]
    factor = size / (size - 1)
    added = np.zeros((len(share), 0)), np.zeros((0, options))
    if rows.covariate is not None:
        x = np.bincount(entry, rows.covariate / unit_for(rows.covariate)) / np.bincount(entry)
        means, share, added = _adjusted(means, share, where, x, size)
        left = len(share) - options
        if left < 2:
            raise DataError("a covariate needs more units than there are options, by two at least")
        factor *= left / (left - 1)
    apart = len(np.unique(cluster)) == len(cluster)
    counts = tuple(int(n) for n in size)
    if apart and rows.covariate is None:
        variances = np.bincount(where, np.square(share), options) * factor
        return Summaries(means, variances, counts, unit=unit)
    if options > MOST_PAIRED:
        raise DataError(TOO_MANY_PAIRED)
    matrix = _products(share, where, cluster, options, *added) * np.sqrt(np.outer(factor, factor))
    return Summaries(means, matrix.diagonal(), counts, matrix, unit)


def _entries(rows: Rows, options: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The unit within its option that each row belongs to; and of each of these the option and the unit."""
    if rows.cluster is None:
        each = np.arange(len(rows.option))
        return each, rows.option.astype(np.intp), each
    pairs, entry = np.unique(rows.cluster.astype(np.int64) * options + rows.option, return_inverse=True)
    cluster, where = np.divmod(pairs, options)
    return entry, where, cluster


def _adjusted(
    means: np.ndarray, share: np.ndarray, where: np.ndarray, x: np.ndarray, size: np.ndarray
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Means at the covariate's overall mean; contributions to their own option, [entries]; and to all, [entries, 2] and [2, M].

    The two are by way of the overall mean of the covariate, and of the slope.
    """
    centre, overall = np.bincount(where, x) / size, float(x.mean())
    apart = x - centre[where]
    squares = float(apart @ apart)
    if squares <= 1e-24 * float(x @ x):
        raise DataError("the covariate is the same for all units of an option: it explains nothing")
    scaled = share * size[where]
    slope = float(apart @ scaled) / squares
    left = scaled - slope * apart
    moved = centre - overall
    to_all = np.stack([slope * (x - overall) / len(x), apart * left / squares], axis=-1)
    return means - slope * moved, left / size[where], (to_all, np.stack([np.ones_like(moved), -moved]))


def _products(
    share: np.ndarray, where: np.ndarray, cluster: np.ndarray, options: int, to_all: np.ndarray, how: np.ndarray
) -> np.ndarray:
    """The sum over units of the products of their contributions, [M, M]."""
    own = _sparse(share, where, cluster, options)
    units = own.shape[0]
    sums = np.stack([np.bincount(cluster, column, units) for column in to_all.T], axis=-1) if to_all.size else None
    found = np.asarray((own.T @ own).todense())
    if sums is None:
        return found
    crossed = np.asarray(own.T @ sums) @ how
    return found + crossed + crossed.T + how.T @ (sums.T @ sums) @ how


def _sparse(share: np.ndarray, where: np.ndarray, cluster: np.ndarray, options: int) -> csr_matrix:
    from scipy.sparse import csr_matrix

    return csr_matrix((share, (cluster, where)), shape=(int(cluster.max()) + 1, options))
