r"""Shrinkage: all means drawn towards each other, by as much as their spread beyond chance allows.

The true means are taken for draws around a centre m with a spread tau, and the estimates for :math:`x \sim N(\mu, \Sigma)`.
Independent options have a prior with normal or heavy tails, whichever the data ask for
(:mod:`maxmean.mev.inference.tailed`), correlated ones a normal prior. Nothing has to be chosen: m has a flat prior, and the share
:math:`b = s^2/(s^2 + \tau^2)` by which a usual mean is drawn in has the density :math:`b^{-1/2}/2` (Strawderman, Annals of
Mathematical Statistics 42, 1971); a usual :math:`s^2` is half the variance of the difference from another option. What is not
known about the prior is integrated over, so that intervals are not too short with few options (Morris, JASA 1983).

The probability of being the best takes a normal prior, and for tau a half-Cauchy one with the usual s as its scale, which allows
for means that are nearly equal: averaged over spreads from a quarter to two standard errors it is off by less than a point then,
and by two where b is uniform (docs/notes/inference.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np

from ..arrays import Array, special
from .checks import checked, tail_of
from .simultaneous import diagonal
from .tailed import tailed_posterior

_COARSE, _FINE = 240, 160
"""Spreads at which the evidence is looked at, first to find where it is, then to integrate over it."""
_NOTHING = -25.0
"""Logarithm of what is nothing beside the largest evidence."""
_DRAWS = 20_000
_STEPS = 100
_FEWEST, _DRAWN = 2_000, 100_000_000  # draws, and numbers drawn in all
_CHUNK = 4_000_000  # numbers held at once
_SAME, _ROUNDING = 1e-6, 1e-14  # of the standard error and of the mean: by how much copies differ


Parts: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Shrinkage:
    """The posterior of the means: mixtures of normal distributions, over the values that the prior's parameters may have."""

    _mixture: _Mixture = field(repr=False)
    _found: partial[Parts] = field(repr=False)
    _origin: float = 0.0
    """What all but the answers is relative to, so that far from zero no digits are lost."""

    @cached_property
    def _relative(self) -> Parts:
        return self._found()

    @property
    def parts(self) -> Parts:
        """Weights, expectations and standard deviations of each mean's parts, [K, M] each."""
        weights, means, errors = self._relative
        return weights, self._origin + means, errors

    @cached_property
    def chances(self) -> np.ndarray:
        """The probability that an option is the best, shape ``(M,)``; copies of one another share it.

        The order of the options does not matter, and independent ones with equal data have the same.
        """
        wins = np.zeros(self._mixture.options)
        for drawn in self._mixture.draws(_DRAWS):
            best = drawn == drawn.max(axis=-1, keepdims=True)
            wins += (best / best.sum(axis=-1, keepdims=True)).sum(axis=0)
        alike = self._mixture.alike
        wins = np.bincount(alike, wins)[alike] / np.bincount(alike)[alike]
        return (wins / wins.sum() / np.bincount(self._mixture.copies))[self._mixture.copies]

    def draw(self, size: int) -> np.ndarray:
        """True means that the data allow, shape ``(size, M)``, always the same ones."""
        return self._origin + np.concatenate(list(self._mixture.draws(size)))[:, self._mixture.copies]

    @property
    def values(self) -> np.ndarray:
        """Posterior expectations, shape ``(M,)``: estimates that are not too high for the options that look best."""
        weights, means, _ = self._relative
        return np.asarray(self._origin + (weights * means).sum(axis=0))

    def intervals(self, level: float = 0.95) -> np.ndarray:
        """Intervals for all means, shape ``(M, 2)``: on average over the options, ``level`` of them hold.

        They are equal-tailed posterior intervals at half of 1 - ``level``, because the true means need not be like draws from the
        prior: at the level itself 89% of 95% held at worst, with two options five standard errors apart. An option that is
        ahead of many by some four standard errors may lie above its own, and so may one further ahead if options are correlated:
        :func:`maxmean.mev.inference.infer_winner` has an interval for that one.
        """
        tail = tail_of(level) / 2
        return self._origin + np.stack([self._quantile(tail), self._quantile(1 - tail)], axis=-1)

    def _quantile(self, share: float) -> np.ndarray:
        """Newton's method, kept between ends that close in on the quantile."""
        ndtr = special(np).ndtr
        weights, means, errors = self._relative
        safe = np.maximum(errors, np.finfo(float).tiny)
        ends = means + float(special(np).ndtri(share)) * errors
        low, high = ends.min(axis=0), ends.max(axis=0)  # of a mixture, between those of its parts
        at = (weights * ends).sum(axis=0)
        for _ in range(_STEPS):
            z = (at - means) / safe
            surplus = (weights * ndtr(z)).sum(axis=0) - share
            low, high = np.where(surplus < 0, at, low), np.where(surplus < 0, high, at)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                density = (weights / safe * np.exp(-z * z / 2)).sum(axis=0) / math.sqrt(2 * math.pi)
                to = at - surplus / density
            to = np.where((to >= low) & (to <= high), to, (low + high) / 2)
            done, at = np.abs(to - at) <= 1e-12 * np.maximum(errors.max(axis=0), np.abs(to)), to
            if done.all():
                break
        return at


def shrink(means: Array, covariance: Array, *, seed: int = 0) -> Shrinkage:
    r"""The posterior of the means under a prior whose centre, spread and tails are learned from all of them.

    Options that are independent, or share one covariance, have the posterior of :mod:`maxmean.mev.inference.tailed`. For others
    the prior is normal: given tau, with :math:`S = \Sigma + \tau^2 I` and the weighted mean :math:`\hat m` of variance v,

    .. math:: E(\mu) = x - \Sigma S^{-1} (x - \hat m 1), \qquad
              Var(\mu) = \Sigma - \Sigma S^{-1} \Sigma + v\, \Sigma S^{-1} 1 1' S^{-1} \Sigma.

    Parameters
    ----------
    means, covariance
        As in :func:`maxmean.mev.inference.maximum_interval`.
    seed
        Of the draws that tell which option is best: 20,000, so that a probability has a standard error of 0.004 at most
        (0.007 with 20,000 options).

    Examples
    --------
    >>> posterior = shrink([0.0, 1.0, 2.0, 9.0], [1.0, 1.0, 1.0, 1.0])
    >>> posterior.values.round(1).tolist()
    [0.3, 1.1, 2.0, 8.6]
    >>> shrink([0.0, 0.1, 0.2], [1.0, 1.0, 1.0]).values.round(2).tolist()
    [0.06, 0.1, 0.14]
    """
    x, covariances = checked(means, covariance)
    kept_ones, copies = np.unique(first_copies(x, covariances), return_inverse=True)
    if len(kept_ones) < len(x):  # copies say the same thing once
        one = shrink(x[kept_ones], covariances[np.ix_(kept_ones, kept_ones)], seed=seed)
        mixture = replace(one._mixture, copies=copies)
        return Shrinkage(mixture, partial(_copied, one, copies), one._origin)
    variances = diagonal(covariances)
    usual = _usual_variance(covariances)
    if usual == 0:  # one option, or no doubt about any difference
        none = np.zeros((1, len(x)))
        certain = _Mixture(np.ones(1), x[None], none, none, np.ones(1), None, copies, *_ordered(x, covariances), seed)
        return Shrinkage(certain, partial(_normal_parts, np.ones(1), x[None], np.sqrt(variances)[None]))
    origin = float(np.partition(x, len(x) // 2)[len(x) // 2])
    x = x - origin
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
        prior = logs - 1.5 * np.logaddexp(0.0, logs)  # of the share 1/(1 + exp(logs))
        return total, doubt, apart, fit + prior

    logs = np.linspace(-30.0, 30.0 + math.log1p(float(np.ptp(x)) ** 2 / usual), _COARSE)
    evidence = given(logs)[-1]
    there = np.flatnonzero(evidence > evidence.max() + _NOTHING)
    logs = np.linspace(logs[max(there[0] - 1, 0)], logs[min(there[-1] + 1, _COARSE - 1)], _FINE)
    total, doubt, apart, evidence = given(logs)
    weights = np.exp(evidence - evidence.max())
    weights /= weights.sum()
    likely = np.exp(evidence - evidence.max() + (np.logaddexp(0.0, logs) - logs) / 2)  # a half-Cauchy prior instead
    inward = spectrum / total  # how far each direction is drawn in
    expected, kept = turned - inward * apart, spectrum * (1 - inward)
    pull = inward * ones
    ordered = _ordered(x, covariances)
    mixture = _Mixture(likely / likely.sum(), expected, kept, pull, doubt, vectors, copies, *ordered, seed)
    if (shared := _shared(covariances)) is not None:
        return Shrinkage(mixture, partial(_tailed_parts, x, variances, usual, shared), origin)
    assert vectors is not None
    errors = np.sqrt(kept @ np.square(vectors).T + np.square(pull @ vectors.T) * doubt[:, None])
    return Shrinkage(mixture, partial(_normal_parts, weights, expected @ vectors.T, errors), origin)


def _copied(one: Shrinkage, copies: np.ndarray) -> Parts:
    weights, means, errors = one._relative
    return weights[:, copies], means[:, copies], errors[:, copies]


def _normal_parts(weights: np.ndarray, means: np.ndarray, errors: np.ndarray) -> Parts:
    return np.repeat(weights[:, None], means.shape[1], axis=1), means, errors


def _tailed_parts(x: np.ndarray, variances: np.ndarray, usual: float, shared: float) -> Parts:
    weights, means, errors = tailed_posterior(x, variances - shared, usual)
    return weights, means, np.sqrt(np.square(errors) + shared)


def _shared(covariances: np.ndarray) -> float | None:
    """The covariance of any two options, if it is the same for all: what they share moves all of them alike."""
    if covariances.ndim == 1:
        return 0.0
    apart = covariances[~np.eye(len(covariances), dtype=bool)]
    least, most = float(apart.min()), float(apart.max())
    same = most - least <= 1e-12 * float(covariances.diagonal().max())
    return least if same and 0 <= least <= float(covariances.diagonal().min()) else None


@dataclass(frozen=True)
class _Mixture:
    """The posterior with a half-Cauchy prior, to draw from: given a spread, directions are independent but for the centre."""

    weights: np.ndarray
    """[K]: how probable each spread is."""
    expected: np.ndarray
    """[K, M]: the means' posterior expectations along the directions."""
    kept: np.ndarray
    """[K, M]: variances along them if the centre were known."""
    pull: np.ndarray
    """[K, M]: how far each follows the centre."""
    doubt: np.ndarray
    """[K]: the centre's variance."""
    vectors: np.ndarray | None
    """[M, M]: the directions, where they are not the options."""
    copies: np.ndarray
    """Which of the M each option is a copy of."""
    places: np.ndarray
    """[M]: which numbers of a draw are an option's; its place among all, so that their order does not matter."""
    alike: np.ndarray
    """[M]: equal for those that nothing but their names tells apart."""
    seed: int

    @property
    def options(self) -> int:
        return self.expected.shape[-1]

    def draws(self, size: int) -> Iterator[np.ndarray]:
        """``size`` draws of the means, in blocks; fewer of many thousands of options."""
        rng = np.random.default_rng(self.seed)
        size = min(size, max(_FEWEST, _DRAWN // self.options))
        node = np.searchsorted(np.cumsum(self.weights), (np.arange(size) + 0.5) / size).clip(max=len(self.weights) - 1)
        roots, centre = np.sqrt(self.kept), np.sqrt(self.doubt)
        for k in range(0, size, step := max(1, _CHUNK // self.options)):
            which = node[k : k + step]
            drawn = rng.standard_normal((len(which), self.options))[:, self.places]
            if self.vectors is not None:  # noise of the options: the signs of directions are a matter of rounding
                drawn = drawn @ self.vectors
            drawn *= roots[which]
            drawn += self.expected[which]
            drawn += self.pull[which] * (centre[which] * rng.standard_normal(len(which)))[:, None]
            yield drawn if self.vectors is None else drawn @ self.vectors.T


def _ordered(x: np.ndarray, covariances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each option's place by its estimate, then by its variance; and which are alike: independent ones that share both.

    >>> [each.tolist() for each in _ordered(np.array([3.0, 1.0, 3.0]), np.array([1.0, 1.0, 1.0]))]
    [[1, 0, 2], [1, 0, 1]]
    """
    rows = np.column_stack([x, diagonal(covariances)])
    places = np.empty(len(x), dtype=int)
    places[np.lexsort(rows.T[::-1])] = np.arange(len(x))
    if covariances.ndim == 2:
        return places, np.arange(len(x))
    return places, np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def first_copies(x: np.ndarray, covariances: np.ndarray) -> np.ndarray:
    """For each option the first that it is a copy of, itself as a rule: equal estimates, without doubt about the difference.

    >>> first_copies(np.array([1.0, 2.0, 1.0]), np.array([[1.0, 0.3, 1.0], [0.3, 1.0, 0.3], [1.0, 0.3, 1.0]])).tolist()
    [0, 1, 0]
    """
    if covariances.ndim == 1:
        return np.arange(len(x))
    variances = covariances.diagonal()
    both = variances[:, None] + variances
    same = both - 2 * covariances <= _SAME**2 * both
    same &= np.abs(x[:, None] - x) <= _SAME * np.sqrt(both) + _ROUNDING * np.abs(x)
    np.fill_diagonal(same, True)
    return np.asarray(same.argmax(axis=1))


def _usual_variance(covariances: np.ndarray) -> float:
    """Half the variance of an option's difference from the others, on average; the harmonic mean over the options."""
    variances = diagonal(covariances)
    others = max(len(variances) - 1, 1)
    shared = 0.0 if covariances.ndim == 1 else (covariances.sum(axis=1) - variances) / others
    half = (variances + (variances.sum() - variances) / others) / 2 - shared
    doubtful = half[half > 1e-12 * variances.max(initial=0.0)]
    return 1 / float(np.mean(1 / doubtful)) if len(variances) > 1 and doubtful.size else 0.0
