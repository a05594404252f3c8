r"""Shrinkage: all means drawn towards each other, by as much as their spread beyond chance allows.

The true means are taken for draws from a normal distribution, :math:`\mu_i \sim N(m, \tau^2)`, and the estimates for
:math:`x \sim N(\mu, \Sigma)`. Nothing has to be chosen: m has a flat prior and tau the uniform shrinkage prior (Daniels, 1999),
under which the share :math:`s^2/(s^2 + \tau^2)` by which a usual mean is drawn in is uniform between 0 and 1; a usual
:math:`s^2` is half the variance of the difference from another option. What is not known about m and tau is
integrated over, so that intervals are not too short with few options (Morris, JASA 1983).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..arrays import Array, special
from .checks import checked, tail_of
from .simultaneous import diagonal

_COARSE, _FINE = 240, 160
"""Spreads at which the evidence is looked at, first to find where it is, then to integrate over it."""
_NOTHING = -25.0
"""Logarithm of what is nothing beside the largest evidence."""
_DRAWS = 20_000
_CHUNK = 4_000_000  # numbers held at once


@dataclass(frozen=True)
class Shrinkage:
    """The posterior of the means: a mixture of normal distributions, one for each value of the prior's spread."""

    weights: np.ndarray
    """[K]: how probable each spread is."""
    spreads: np.ndarray
    """[K]: tau."""
    means: np.ndarray
    """[K, M]: the means' posterior expectations, given tau."""
    errors: np.ndarray
    """[K, M]: their standard deviations."""
    chances: np.ndarray
    """[M]: the probability that an option is the best."""

    @property
    def values(self) -> np.ndarray:
        """Posterior expectations, shape ``(M,)``: estimates that are not too high for the options that look best."""
        return self.weights @ self.means

    def intervals(self, level: float = 0.95) -> np.ndarray:
        """Equal-tailed posterior intervals, shape ``(M, 2)``."""
        tail = tail_of(level)
        return np.stack([self._quantile(tail), self._quantile(1 - tail)], axis=-1)

    def _quantile(self, share: float) -> np.ndarray:
        ndtr = special(np).ndtr
        reach = 12.0 * self.errors.max(axis=0)
        low, high = self.means.min(axis=0) - reach, self.means.max(axis=0) + reach
        safe = np.maximum(self.errors, np.finfo(float).tiny)
        for _ in range(100):
            middle = (low + high) / 2
            below = self.weights @ ndtr((middle - self.means) / safe) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return (low + high) / 2


def shrink(means: Array, covariance: Array, *, seed: int = 0) -> Shrinkage:
    r"""The posterior of the means under a normal prior whose centre and spread are learned from all of them.

    Given tau, with :math:`S = \Sigma + \tau^2 I` and the weighted mean :math:`\hat m` of variance v,

    .. math:: E(\mu) = x - \Sigma S^{-1} (x - \hat m 1), \qquad
              Var(\mu) = \Sigma - \Sigma S^{-1} \Sigma + v\, \Sigma S^{-1} 1 1' S^{-1} \Sigma.

    Parameters
    ----------
    means, covariance
        As in :func:`maxmean.mev.inference.maximum_interval`.
    seed
        Of the draws that tell which option is best: 20,000, so that a probability has a standard error of 0.004 at most.

    Examples
    --------
    >>> posterior = shrink([0.0, 1.0, 2.0, 9.0], [1.0, 1.0, 1.0, 1.0])
    >>> posterior.values.round(1).tolist()
    [0.3, 1.2, 2.1, 8.4]
    >>> shrink([0.0, 0.1, 0.2], [1.0, 1.0, 1.0]).values.round(2).tolist()
    [0.07, 0.1, 0.13]
    """
    x, covariances = checked(means, covariance)
    variances = diagonal(covariances)
    usual = _usual_variance(covariances)
    if usual == 0:  # one option, or no doubt about any difference
        best = (x == x.max()) / np.count_nonzero(x == x.max())
        return Shrinkage(np.ones(1), np.array([math.inf]), x[None], np.sqrt(variances)[None], best)
    if covariances.ndim == 1:
        spectrum, vectors = covariances, None
        turned, ones = x, np.ones_like(x)
    else:
        spectrum, vectors = np.linalg.eigh(covariances)
        spectrum = np.maximum(spectrum, 0.0)
        turned, ones = vectors.T @ x, vectors.sum(axis=0)

    def given(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """For tau^2 = usual * exp(logs): the total variances, the centre's, what is apart from it, and the log-evidence."""
        total = spectrum + usual * np.exp(logs)[:, None]  # [K, M]
        doubt = 1 / (np.square(ones) / total).sum(axis=-1)
        centre = doubt * (ones * turned / total).sum(axis=-1)
        apart = turned - centre[:, None] * ones
        fit = 0.5 * (np.log(doubt) - np.log(total).sum(axis=-1) - (np.square(apart) / total).sum(axis=-1))
        prior = logs - 2 * np.logaddexp(0.0, logs)  # of a uniform share 1/(1 + exp(logs))
        return total, doubt, apart, fit + prior

    logs = np.linspace(-30.0, 30.0 + math.log1p(float(np.ptp(x)) ** 2 / usual), _COARSE)
    evidence = given(logs)[-1]
    there = np.flatnonzero(evidence > evidence.max() + _NOTHING)
    logs = np.linspace(logs[max(there[0] - 1, 0)], logs[min(there[-1] + 1, _COARSE - 1)], _FINE)
    total, doubt, apart, evidence = given(logs)
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    inward = spectrum / total  # how far each direction is drawn in
    expected, kept = turned - inward * apart, spectrum * (1 - inward)
    pull = inward * ones
    if vectors is None:
        errors = np.sqrt(kept + np.square(pull) * doubt[:, None])
    else:
        expected, errors = (
            expected @ vectors.T,
            np.sqrt(kept @ np.square(vectors).T + np.square(pull @ vectors.T) * doubt[:, None]),
        )
    chances = _chances(weights, expected if vectors is None else expected @ vectors, kept, pull, doubt, vectors, seed)
    return Shrinkage(weights, np.sqrt(usual * np.exp(logs)), expected, errors, chances)


def _usual_variance(covariances: np.ndarray) -> float:
    """Half the variance of an option's difference from the others, on average; the harmonic mean over the options."""
    variances = diagonal(covariances)
    others = max(len(variances) - 1, 1)
    shared = 0.0 if covariances.ndim == 1 else (covariances.sum(axis=1) - variances) / others
    half = (variances + (variances.sum() - variances) / others) / 2 - shared
    doubtful = half[half > 1e-12 * variances.max(initial=0.0)]
    return 1 / float(np.mean(1 / doubtful)) if len(variances) > 1 and doubtful.size else 0.0


def _chances(
    weights: np.ndarray,
    expected: np.ndarray,
    kept: np.ndarray,
    pull: np.ndarray,
    doubt: np.ndarray,
    vectors: np.ndarray | None,
    seed: int,
) -> np.ndarray:
    """How often each option is the best of a draw from the posterior; ties are shared."""
    rng = np.random.default_rng(seed)
    options = expected.shape[-1]
    node = np.searchsorted(np.cumsum(weights), (np.arange(_DRAWS) + 0.5) / _DRAWS).clip(max=len(weights) - 1)
    wins, roots, centre = np.zeros(options), np.sqrt(kept), np.sqrt(doubt)
    for k in range(0, _DRAWS, step := max(1, _CHUNK // options)):
        which = node[k : k + step]
        drawn = expected[which] + roots[which] * rng.standard_normal((len(which), options))
        drawn += pull[which] * (centre[which] * rng.standard_normal(len(which)))[:, None]
        if vectors is not None:
            drawn = drawn @ vectors.T
        best = drawn == drawn.max(axis=-1, keepdims=True)
        wins += (best / best.sum(axis=-1, keepdims=True)).sum(axis=0)
    return wins / _DRAWS
