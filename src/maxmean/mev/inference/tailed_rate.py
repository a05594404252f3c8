r"""The prior of success rates: a Beta distribution whose centre, spread and tails are integrated over, from the counts.

A rate is a draw from :math:`\mathrm{Beta}(m c_i, (1-m) c_i)`, and its count binomial. Given the centre m and the concentration
:math:`c_i` the count has a Beta-binomial probability and the rate a Beta posterior: no variance has to be estimated.
As in :mod:`maxmean.mev.inference.tailed`, either :math:`c_i = c` or :math:`c_i = c E_i` with exponentially distributed
:math:`E_i`, the scale mixture that makes a normal distribution Student's with two degrees of freedom. Concentrations are on a
geometric grid; centres are nodes that close in on where the evidence is, on the scale of log-odds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import special
from .tailed import NEGLIGIBLE, NOTHING, TINY, blocks, closing_in

_STEP = 0.4
"""Between the logarithms of neighbouring concentrations."""
_TIGHT, _LOOSE = 8.4, -5.0
"""Logarithms of the largest concentration, in usual trials (a spread of a sixtieth of a standard error), and of the smallest."""
_LOWER, _HIGHER = -24, 6
"""Steps between which an option's own concentration lies beside that of all, every other one: E from 1e-4 to 11."""
_FIRST, _NODES, _CROWDED, _CROWD = 32, 48, 16, 50
"""Centres among which is looked for where the evidence is, centres that are integrated over, and of more options than these."""
_SAMPLE = 128
"""Options that tell roughly where the centre is, where there are more."""
_PARTS, _FEWEST = 3_000, 24
"""Parts of all posteriors together, and of each one at least."""
_LARGE = 10.0
"""From here on Stirling's series for the gamma function is good to ten digits."""


class Prior(NamedTuple):
    """Priors between which the data decide."""

    scales: np.ndarray
    """[L]: concentrations."""
    mixing: np.ndarray
    """[T, L]: how probable each is under every prior."""
    logs: np.ndarray
    """[T]: how probable the priors are, as logarithms."""


class Betas(NamedTuple):
    """Mixtures of Beta distributions, [K, M] each."""

    weights: np.ndarray
    a: np.ndarray
    b: np.ndarray


@dataclass(frozen=True)
class Counted:
    """Pairs of counts, each once, in an order of their own: by rate, then by trials."""

    successes: np.ndarray
    trials: np.ndarray
    times: np.ndarray
    """How many options have them."""

    def sample(self, size: int) -> Counted:
        """So many options, evenly from the lowest rate to the highest."""
        upto = np.cumsum(self.times)
        if upto[-1] <= size:
            return self
        chosen = np.searchsorted(upto, (np.arange(size) + 0.5) * (upto[-1] / size))
        which, times = np.unique(chosen.clip(max=len(upto) - 1), return_counts=True)
        return Counted(self.successes[which], self.trials[which], times)


def usual_trials(trials: np.ndarray) -> float:
    """Trials that concentrations are relative to: the usual variance of :func:`maxmean.mev.inference.shrink`, with 1/n for s^2.

    >>> usual_trials(np.array([100.0, 100.0])), round(usual_trials(np.array([10.0, 1000.0])), 1)
    (100.0, 19.8)
    """
    variances = 1 / trials
    rest = (variances.sum() - variances) / (len(trials) - 1) if len(trials) > 1 else variances
    return float(np.mean(2 / (variances + rest)))


def tailed_prior(usual: float) -> Prior:
    """For means and intervals: the share c/(c + n) by which a usual rate is drawn in has the density 1/(2 sqrt(share))."""
    logs, share, rest = _concentrations(usual)
    steps = np.arange(_LOWER, _HIGHER + 1, 2)
    chances = np.exp(_STEP * steps - np.exp(_STEP * steps))
    every = np.arange(_LOWER, len(logs) + _HIGHER)
    alike, apart = np.zeros((2, len(logs), len(every)))
    for t in range(len(logs)):
        alike[t, t - _LOWER] = 1.0
        apart[t, t - _LOWER + steps] = chances / chances.sum()
    prior = 0.5 * share + rest
    return Prior(np.exp(logs[0] + _STEP * every), np.concatenate([alike, apart]), np.concatenate([prior, prior]))


def plain_prior(usual: float) -> Prior:
    """For the chances of being the best: the same without tails."""
    logs, share, rest = _concentrations(usual)
    return Prior(np.exp(logs), np.eye(len(logs)), 0.5 * share + rest)


def _concentrations(usual: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logarithms of c, of c/(c + usual) and of what is left of one."""
    top = math.log(usual)
    logs = top + _TIGHT - _STEP * np.arange(math.ceil((top + _TIGHT - _LOOSE) / _STEP) + 1)[::-1]
    return logs, -np.logaddexp(0.0, top - logs), -np.logaddexp(0.0, logs - top)


class Weighed(NamedTuple):
    """What may be: centres, as log-odds, beside priors."""

    centres: np.ndarray
    weights: np.ndarray
    """[C, T], adding up to one."""
    prior: Prior

    @property
    def shapes(self) -> tuple[np.ndarray, np.ndarray]:
        """What is added to successes and to failures, [C, L]."""
        return _shapes(self.centres, self.prior.scales)


def integrated(counts: Counted, prior: Prior) -> Weighed:
    """How probable centres and priors are, given the counts."""
    rates = np.log((counts.successes + 0.5) / (counts.trials - counts.successes + 0.5))
    low, high = float(rates.min()), float(rates.max())
    beyond = np.exp2(np.arange(-4.0, 6.0))
    there = np.quantile(np.repeat(rates, np.minimum(counts.times, 100)), np.linspace(0, 1, _FIRST))
    centres = np.unique(np.concatenate([np.linspace(low, high, _FIRST), there, low - beyond, high + beyond]))
    sample, nodes = counts.sample(_SAMPLE), _NODES if counts.times.sum() <= _CROWD else _CROWDED
    for k, (some, wanted) in enumerate(((sample, _FIRST), (sample, _FIRST), (sample, nodes), (counts, nodes))):
        found = _evidence(some, centres, prior)
        centres = closing_in(centres, np.logaddexp.reduce(found, axis=1), wanted)
        prior = _needed(prior, found) if k else prior  # far from where the centre is, rates look widely spread
    found = _evidence(counts, centres, prior)
    weights = np.exp(found - found.max()) * np.gradient(centres)[:, None]
    return Weighed(centres, weights / weights.sum(), prior)


def _needed(prior: Prior, evidence: np.ndarray) -> Prior:
    """Those that have something to say."""
    most = evidence.max(axis=0)
    kept = most > most.max() + NOTHING
    scales = prior.mixing[kept].any(axis=0)
    return Prior(prior.scales[scales], prior.mixing[np.ix_(kept, scales)], prior.logs[kept])


def _evidence(counts: Counted, centres: np.ndarray, prior: Prior) -> np.ndarray:
    """Of every centre and every prior, [C, T], as a logarithm; Jeffreys' prior for the centre, in log-odds."""
    both = np.logaddexp(0.0, centres) + np.logaddexp(0.0, -centres)
    found = prior.logs - 0.5 * both[:, None]
    for some in blocks(len(counts.times), len(centres) * sum(prior.mixing.shape)):
        densities = _densities(counts.successes[some], counts.trials[some], centres, prior.scales)
        each = _times(densities, prior.mixing.T)
        found += np.tensordot(counts.times[some].astype(float), np.log(np.maximum(each, TINY)), 1)
    return found


def posterior_parts(counts: Counted, grid: Weighed) -> tuple[np.ndarray, Betas]:
    """Posterior expectations of the rates, and their posteriors; parts that are alike are one, with their mean and variance."""
    more, fewer = grid.shapes
    weights, (scales, mixing, _) = grid.weights, grid.prior
    options = len(counts.times)
    most = max(_FEWEST, _PARTS // options)
    by_scale = 1 if len(scales) * 3 <= most else 2
    groups = min(len(weights), max(1, most * by_scale // len(scales)))
    reached = np.cumsum(weights.sum(axis=1)) - weights.sum(axis=1) / 2
    even = np.searchsorted(reached, np.arange(groups) / groups)
    first = np.unique(even) if groups < len(weights) else np.arange(groups)
    second = np.arange(0, len(scales), by_scale)
    values, found = np.empty(options), []
    for some in blocks(options, len(grid.centres) * sum(mixing.shape)):
        k, n = counts.successes[some], counts.trials[some]
        densities = _densities(k, n, grid.centres, scales)
        parts = _times(weights / np.maximum(_times(densities, mixing.T), TINY), mixing) * densities
        parts /= parts.sum(axis=(1, 2), keepdims=True)
        a, b = k[:, None, None] + more, (n - k)[:, None, None] + fewer
        means, total = a / (a + b), a + b
        values[some] = (parts * means).sum(axis=(1, 2))
        if groups == len(weights) and by_scale == 1:
            found.append([each.reshape(len(some), -1) for each in (parts, a, b)])
            continue
        apart = means - values[some][:, None, None]
        sums = [
            np.add.reduceat(np.add.reduceat(each, first, axis=1), second, axis=2).reshape(len(some), -1)
            for each in (parts, parts * apart, parts * (means * (b / total) / (total + 1) + np.square(apart)))
        ]
        safe = np.maximum(sums[0], TINY)
        shift = sums[1] / safe
        mean = np.clip(values[some][:, None] + shift, TINY, 1 - 1e-16)
        size = mean * (1 - mean) / np.maximum(sums[2] / safe - np.square(shift), TINY) - 1
        size = np.where(sums[0] > TINY, np.maximum(size, 1e-9), 1.0)
        found.append([sums[0], mean * size, (1 - mean) * size])
    each = [np.concatenate(one).T for one in zip(*found, strict=True)]
    there = each[0].max(axis=1) > NEGLIGIBLE
    return values, Betas(*(one[there] for one in each))


def _times(stack: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """``stack @ matrix`` as one product: hundreds of small ones cost their threads more than they save."""
    return np.asarray((stack.reshape(-1, stack.shape[-1]) @ matrix).reshape(*stack.shape[:-1], -1))


def _shapes(centres: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.exp(-np.logaddexp(0.0, -centres))[:, None] * scales, np.exp(-np.logaddexp(0.0, centres))[:, None] * scales


def _densities(k: np.ndarray, n: np.ndarray, centres: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Beta-binomial probabilities of the counts for every centre and concentration, [M, C, L], the largest of each count one."""
    more, fewer = _shapes(centres, scales)
    logs = -(np.multiply.outer(k, np.logaddexp(0.0, -centres)) + np.multiply.outer(n - k, np.logaddexp(0.0, centres)))
    found = logs[:, :, None] + _rising(k, more) + _rising(n - k, fewer) - _rising(n, scales)[:, None, :]
    return np.asarray(np.exp(found - found.max(axis=(1, 2), keepdims=True)))


def _rising(counts: np.ndarray, a: np.ndarray) -> np.ndarray:
    r"""Logarithms of :math:`a (a + 1) \cdots (a + k - 1) / a^k`, shape ``counts.shape + a.shape``, without loss where a is large.

    >>> bool(np.allclose(_rising(np.array([2.0]), np.array([3.0, 1e9])), np.log([4 / 3, 1 + 1e-9]), rtol=1e-6))
    True
    """
    once, which = np.unique(counts, return_inverse=True)
    k, cells = once[:, None], a.ravel()
    found = np.empty((len(once), cells.size))
    small = cells < _LARGE
    at = cells[small]
    gammaln = special(np).gammaln
    found[:, small] = gammaln(at + k) - gammaln(at) - k * np.log(at)
    at = cells[~small]
    found[:, ~small] = (at + k - 0.5) * np.log1p(k / at) - k + _stirling(at + k) - _stirling(at)
    return found.reshape(len(once), *a.shape)[which.reshape(-1)]


def _stirling(z: np.ndarray) -> np.ndarray:
    """What Stirling's formula leaves of the logarithm of the gamma function."""
    inverse = 1 / z
    square = np.square(inverse)
    return np.asarray(inverse * (1 / 12 - square * (1 / 360 - square / 1260)))
