"""Bounds on bias and variance (sections 2 and 3), with what is proven, conjectured and false about them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..methods import METHODS


def bias_bounds(method: str, means: Any, variances: Any, *, sizes: Any = None, parts: int = 2) -> tuple[float, float]:
    r"""Lowest and highest bias that the method can have, for options with these true means and variances of the means.

    With Aven's :math:`B = \sqrt{\frac{M-1}{M} \sum_i v_i}`:

    ======================  =============================================================  =========================
    method                  bounds                                                         status
    ======================  =============================================================  =========================
    ``me``                  0, B                                                           proven (Aven, 1985)
    ``ae``                  both :math:`\overline\mu - \mu_*`                               exact
    ``de``, ``cve``         :math:`-\frac12(\sqrt{\sum v^A_i} + \sqrt{\sum v^B_i})`, 0      lower conjectured
                                                                                           (van Hasselt, 2013)
    ``we``                  those of DE and ME                                             lower conjectured
    ``te``, ``ke``,         :math:`\min\mu - \mu_* - B`, B                                 proven (Lemma 1 and its
    ``te*``, ``ke*``                                                                       corollary)
    ``mme``                 :math:`-\sqrt{N (N-1) v_*}`, B                                 proven; equal parts
    ======================  =============================================================  =========================

    B needs no independence and no Gaussians. Lemma 1 says more than B: the bias of TE and KE stays below that of the
    ME, which :func:`gaussian_pair` gives. DE and CVE need the variances of the halves' means: :math:`v^A_i = v_i n_i
    / n^A_i` from ``sizes``, the numbers of observations, or :math:`2 v_i` without. The paper has no bound for MME;
    this one is Aven's for the smallest of the N parts of the best option, and, from above, the smallest part mean
    being no more than the mean of all parts. That WE lies above DE holds for halves of equal size: where n is odd and
    the gap large, a DE that selects on the larger half comes out slightly above it.

    >>> low, high = bias_bounds("me", [0.0, 0.0], [1.0, 1.0])
    >>> low, high
    (0.0, 1.0)
    >>> bias_bounds("ae", [1.0, 0.0], [1.0, 1.0])
    (-0.5, -0.5)
    """
    if method not in METHODS:
        raise ArgumentError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    mu, v = np.broadcast_arrays(np.asarray(means, dtype=float), np.asarray(variances, dtype=float))
    best = float(mu.max())
    upper = math.sqrt((mu.size - 1) / mu.size * float(v.sum()))
    if method == "me":
        return 0.0, upper
    if method == "ae":
        return float(mu.mean()) - best, float(mu.mean()) - best
    if method == "mme":
        # Every option that is truly best gives a valid bound; the steadiest one gives the tightest.
        return -math.sqrt(parts * (parts - 1) * float(v[mu == best].min())), upper
    if method in ("de", "cve", "we"):
        halves = 2.0, 2.0
        if sizes is not None:
            n = np.broadcast_to(np.asarray(sizes), mu.shape)
            halves = n / ((n + 1) // 2), n / (n // 2)
        lower = -0.5 * sum(math.sqrt(float(np.sum(v * half))) for half in halves)
        return lower, upper if method == "we" else 0.0
    return float(mu.min()) - best - upper, upper


def variance_bound(variances: Any, means: Any = None) -> float:
    r"""The paper's bound :math:`\sum_i v_i` on an estimator's variance, or with true ``means`` one that always holds.

    The bound without means is printed for ME, CVE, WE, TE and KE (Lemma 2 and its corollary). It is true of the ME,
    and of WE, TE and KE where the true means are equal, but **not in general**: weights that follow the data can move
    the estimate more than any one mean moves. :func:`gaussian_pair` shows it for an option beside a certain one
    (``sigma=(1, 0)``), where the variance reaches 1.07 times the bound for WE, 1.12 for KE (Gaussian), 1.19 for
    TE(0.1) and 1.48 for CVE; and with equal variances for TE at alpha below about 0.006.

    With ``means`` the bound is

    .. math:: \sum_i v_i + \sum_i (\mu_i - \overline\mu)^2

    proven for every estimate between the smallest and the largest mean (ME, AE, WE, TE, KE), however dependent the
    means: its square about any point c is at most :math:`\sum_i (\hat\mu_i - c)^2`.

    >>> variance_bound([1.0, 1.0])
    2.0
    >>> from maxmean.mev.theory import gaussian_pair
    >>> gaussian_pair("te", mu=(2.0, 0.0), sigma=(1.0, 0.0), n=1, alpha=0.1).variance > variance_bound([1.0, 0.0])
    True
    >>> variance_bound([1.0, 0.0], means=[2.0, 0.0])
    3.0
    """
    total = float(np.sum(np.asarray(variances, dtype=float)))
    if means is None:
        return total
    mu = np.asarray(means, dtype=float)
    return total + float(np.sum((mu - mu.mean()) ** 2))
