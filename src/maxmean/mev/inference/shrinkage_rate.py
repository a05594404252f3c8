r"""Shrinkage of success rates, from counts: a rate's variance follows from the rate, and three of ten trials stay three of ten.

As :mod:`maxmean.mev.inference.shrinkage`, with binomial counts instead of normal estimates and a Beta prior instead of a normal
one (:mod:`maxmean.mev.inference.tailed_rate`). The centre m of the rates has Jeffreys' prior, and the share
:math:`b = c/(c + n)` by which a usual rate is drawn in has the density :math:`b^{-1/2}/2`. For the probability of being the best
the prior has no heavy tails, and the same density: under the half-Cauchy one of :func:`maxmean.mev.inference.shrink` it was 4.5
points too low on average over eight kinds of counts, and with this one 1.2 (docs/notes/inference.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import Array, special
from .checks import checked_counts, tail_of
from .tailed_rate import Betas, Counted, integrated, plain_prior, posterior_parts, tailed_prior, usual_trials
from .tails import largest_rate

_DRAWS, _FEWEST, _DRAWN = 20_000, 2_000, 4_000_000
"""Draws, the fewest where options are many, and numbers drawn in all."""
_CHUNK = 1_000_000  # numbers held at once
_LEAST = 1e-9  # weight of a node that is drawn from
_FAR, _STEPS, _EXACT = 60.0, 80, 1e-11
"""Log-odds beyond which a rate is 0 or 1; steps towards a quantile, and the last one's length in log-odds."""


@dataclass(frozen=True)
class ShrinkageRate:
    """The posterior of the rates: mixtures of Beta distributions, over the values that the prior's parameters may have.

    Computed for the rarer of successes and failures, so that a problem and its mirror image have the same answers.
    """

    _counts: Counted
    _which: np.ndarray
    """[M]: the pair of counts that an option has."""
    _mirrored: bool
    """Whether failures take the place of successes in here."""
    _seed: int

    @cached_property
    def _posterior(self) -> tuple[np.ndarray, Betas]:
        counts = self._counts
        if counts.times.sum() == 1:  # nothing to be drawn to
            alone = Betas(np.ones((1, 1)), counts.successes[None] + 0.5, (counts.trials - counts.successes)[None] + 0.5)
            return (counts.successes + 0.5) / (counts.trials + 1), alone
        return posterior_parts(counts, integrated(counts, tailed_prior(self._usual)))

    @property
    def _usual(self) -> float:
        return usual_trials(np.repeat(self._counts.trials, self._counts.times))

    @property
    def parts(self) -> Betas:
        """Weights and the two parameters of each rate's parts, [K, M] each; those that are alike count as one."""
        weights, a, b = (each[:, self._which] for each in self._posterior[1])
        return Betas(weights, b, a) if self._mirrored else Betas(weights, a, b)

    @property
    def values(self) -> np.ndarray:
        """Posterior expectations, shape ``(M,)``: estimates that are not too high for the options that look best."""
        return self._outward(self._posterior[0][self._which])

    def intervals(self, level: float = 0.95) -> np.ndarray:
        """Intervals for all rates, shape ``(M, 2)``: on average over the options, ``level`` of them hold.

        Equal-tailed posterior intervals at half of 1 - ``level``, as :meth:`maxmean.mev.inference.Shrinkage.intervals`. Where
        many options have no success at all, the posterior is too sure that their rates are zero. So their upper ends are no
        smaller than Clopper and Pearson's bound for the options with the lowest rates together, however many of these make it
        smallest; the same for failures.
        """
        tail = tail_of(level) / 2
        low, high = (quantile(self._posterior[1], share) for share in (tail, 1 - tail))
        k, n, times = self._counts.successes, self._counts.trials, self._counts.times  # in the order of the rates
        successes, failures, trials = k * times, (n - k) * times, n * times
        high = np.where(k == 0, np.maximum(high, _least_bound(successes, trials, tail)), high)
        low = np.where(k == n, np.minimum(low, 1 - _least_bound(failures[::-1], trials[::-1], tail)), low)
        ends = [self._outward(end[self._which]) for end in (low, high)]
        return np.stack(ends[::-1] if self._mirrored else ends, axis=-1)

    @cached_property
    def chances(self) -> np.ndarray:
        """The probability that an option is the best, shape ``(M,)``; options with the same counts have the same."""
        if len(self._which) == 1:
            return np.ones(1)
        wins = np.zeros(len(self._which))
        for drawn in self._odds(_DRAWS):
            best = drawn == (drawn.min if self._mirrored else drawn.max)(axis=-1, keepdims=True)
            wins += (best / best.sum(axis=-1, keepdims=True)).sum(axis=0)
        alike = np.repeat(np.arange(len(self._counts.times)), self._counts.times)
        wins = np.bincount(alike, wins) / self._counts.times
        return np.asarray(wins[self._which] / wins[self._which].sum())

    def draw(self, size: int) -> np.ndarray:
        """True rates that the data allow, shape ``(size, M)``, always the same ones; fewer of many thousands of options."""
        odds = np.concatenate(list(self._odds(size)))[:, _places(self._which)]
        return 1 / (1 + odds) if self._mirrored else odds / (1 + odds)

    def _odds(self, size: int) -> Iterator[np.ndarray]:
        """Odds of success or failure, in blocks, the options in the order of their counts."""
        counts, options = self._counts, len(self._which)
        grid = integrated(counts, plain_prior(self._usual))
        more, fewer = (np.ravel(each) for each in grid.shapes)
        there = np.flatnonzero(grid.weights.ravel() > _LEAST)
        upto = np.cumsum(grid.weights.ravel()[there])
        size = min(size, max(_FEWEST, _DRAWN // options))
        node = there[np.searchsorted(upto / upto[-1], (np.arange(size) + 0.5) / size).clip(max=len(there) - 1)]
        k, rest = (np.repeat(each, counts.times) for each in (counts.successes, counts.trials - counts.successes))
        rng = np.random.default_rng(self._seed)
        for first in range(0, size, step := max(1, _CHUNK // options)):
            some = node[first : first + step, None]
            above, below = rng.standard_gamma(k + more[some]), rng.standard_gamma(rest + fewer[some])
            yield above / np.maximum(below, np.finfo(float).tiny * (1 + above))

    def _outward(self, rates: np.ndarray) -> np.ndarray:
        return 1 - rates if self._mirrored else rates


def shrink_rate(successes: Array, trials: Array, *, seed: int = 0) -> ShrinkageRate:
    r"""The same as :func:`maxmean.mev.inference.shrink` for success rates of independent options.

    Parameters
    ----------
    successes, trials
        Counts, shape ``(M,)``; ``trials`` may be one number.
    seed
        Of the draws that tell which option is best: 20,000, so that a probability has a standard error of 0.004 at most, and
        fewer with more than 200 options (0.011 with 2,000 and more).

    Examples
    --------
    Few trials leave much open, whatever is known about the others:

    >>> posterior = shrink_rate([3, 5, 9], [10, 1000, 1000])
    >>> posterior.values.round(3).tolist(), posterior.intervals()[0].round(2).tolist()
    ([0.221, 0.005, 0.009], [0.03, 0.55])
    >>> posterior.chances.round(2).tolist()
    [1.0, 0.0, 0.0]
    """
    k, n = checked_counts(successes, trials)
    mirrored = _is_mirrored(k, n)
    k = n - k if mirrored else k
    pairs = np.column_stack([k / n, n, k])
    once, which, times = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    return ShrinkageRate(Counted(once[:, 2], once[:, 1], times), which.reshape(-1), mirrored, seed)


def _least_bound(successes: np.ndarray, trials: np.ndarray, tail: float) -> float:
    """The smallest of the upper bounds for the rate of the first option, of the first two together, and so on.

    >>> counts = np.array([[0.0, 0.0, 1.0, 50.0], [30.0, 50.0, 20.0, 100.0]])
    >>> round(_least_bound(*counts, 0.025), 4) == round(1 - 0.025 ** (1 / 80), 4)
    True
    """
    return float(largest_rate(np.cumsum(successes), np.cumsum(trials), tail).min())


def _is_mirrored(k: np.ndarray, n: np.ndarray) -> bool:
    """Whether failures are rarer than successes, on the whole; the sorted counts decide between equally many."""
    if 2 * k.sum() != n.sum():
        return bool(2 * k.sum() > n.sum())
    one, other = (np.column_stack([n, each])[np.lexsort([each, n])].ravel() for each in (k, n - k))
    differ = np.flatnonzero(one != other)
    return bool(differ.size and one[differ[0]] > other[differ[0]])


def _places(which: np.ndarray) -> np.ndarray:
    """Each option's place among all in the order of their counts; of those with the same, in the order in which they came.

    >>> _places(np.array([2, 0, 2, 1])).tolist()
    [2, 0, 3, 1]
    """
    places = np.empty(len(which), dtype=int)
    places[np.argsort(which, kind="stable")] = np.arange(len(which))
    return places


def quantile(parts: Betas, share: float) -> np.ndarray:
    """The rate below which ``share`` of each mixture lies: Newton's method on log-odds, between ends that close in on it."""
    betainc, betaln = special(np).betainc, special(np).betaln
    weights, a, b = parts
    mean = (weights * a / (a + b)).sum(axis=0)
    second = (weights * a * (a + 1) / ((a + b) * (a + b + 1))).sum(axis=0)
    spread = np.sqrt(np.maximum(second - mean**2, 0.0)) / (mean * (1 - mean))  # of the log-odds, roughly
    at = np.log(mean / (1 - mean)) + np.clip(float(special(np).ndtri(share)) * spread, -3.0, 3.0)
    low, high, scale = np.full(at.shape, -_FAR), np.full(at.shape, _FAR), betaln(a, b)
    left = np.arange(len(at))
    for _ in range(_STEPS):
        w, p, q, here = weights[:, left], a[:, left], b[:, left], at[left]
        ahead, behind = -np.logaddexp(0.0, -here), -np.logaddexp(0.0, here)
        surplus = (w * betainc(p, q, np.exp(ahead))).sum(axis=0) - share
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            density = (w * np.exp(p * ahead + q * behind - scale[:, left])).sum(axis=0)
            to = here - surplus / density
        low[left] = np.where(surplus < 0, here, low[left])
        high[left] = np.where(surplus < 0, high[left], here)
        inside = (to > low[left]) & (to < high[left])
        at[left] = np.where(inside, to, (low[left] + high[left]) / 2)
        left = left[np.abs(at[left] - here) > _EXACT * np.maximum(1.0, np.abs(here))]
        if not left.size:
            break
    return np.where(at <= 1e-6 - _FAR, 0.0, np.where(at >= _FAR - 1e-6, 1.0, 1 / (1 + np.exp(-at))))
