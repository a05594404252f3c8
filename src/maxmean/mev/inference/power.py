"""How many data it takes: what the answers will be with n observations of every option, if the means were known.

Experiments are simulated and answered by the very functions that answer real ones, so that what holds of these (Student's
quantiles with few data, Fisher's test with few successes, the correction for the number of options) is planned for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..arrays import special
from ..data.moments import matrix_root
from ..errors import ArgumentError
from .exact import FEW, fisher_score
from .lift import contrasts, step_down
from .ranks import best_set
from .simultaneous import diagonal
from .tails import difference_freedom, tail_probability
from .winner import infer_winner
from .winner_rate import infer_winner_rate

DRAWS = 4_000
"""Simulated experiments: a probability of 80% then has a standard error of 0.6 points."""
FEWER = 1_000
"""With few successes, where each takes an exact test."""
WIDTHS = 40
"""Simulated experiments for a mean width, which varies less."""
MOST = 1_000_000_000
"""Observations of an option beyond which nothing is planned."""


@dataclass(frozen=True)
class Supposed:
    """What is supposed to be true: one observation's means and variances. Larger is better."""

    means: np.ndarray
    """Shape ``(M,)``."""
    spread: np.ndarray
    """Variances of one observation, shape ``(M,)``, or covariances, shape ``(M, M)``, if options are observed in pairs."""
    rates: bool = False
    """Whether observations are zeros and ones; ``spread`` is then not used."""
    level: float = 0.95
    control: int | None = None
    """The option that the best one shall beat; None if it shall be told apart from all others."""
    seed: int = 0

    @property
    def best(self) -> int:
        """The best option, or the best beside the control."""
        means = self.means.copy()
        if self.control is not None:
            means[self.control] = -math.inf
        return int(means.argmax())

    @property
    def gap(self) -> float:
        """By how much the best is ahead of the control, or of the second."""
        others = self.means[self.control] if self.control is not None else np.delete(self.means, self.best).max()
        return float(self.means[self.best] - others)

    def first_guess(self, power: float) -> int:
        """Observations by the normal formula for the closest two, to begin the search with."""
        variances = self.means * (1 - self.means) if self.rates else diagonal(self.spread)
        ndtri = special(np).ndtri
        quantiles = float(ndtri(power) - ndtri((1 - self.level) / max(len(self.means) - 1, 1)))
        return _bounded(2 * float(variances.max()) * (max(quantiles, 0.5) / self.gap) ** 2)

    def picked(self, n: int) -> float:
        """P(the option that looks best is the best); one of several that are tied may be picked with the same probability."""
        means, _ = self._draws(n, DRAWS)
        if self.control is not None:
            means = np.delete(means, self.control, axis=1)
            truth = np.delete(self.means, self.control)
        else:
            truth = self.means
        ahead = means == means.max(axis=1, keepdims=True)
        return float(np.mean(ahead[:, truth.argmax()] / ahead.sum(axis=1)))

    def told(self, n: int) -> float:
        """P(the best one beats the control), or P(the set of the best holds it alone)."""
        return self._beating(n) if self.control is not None else self._alone(n)

    def _alone(self, n: int) -> float:
        few = self._few(n)
        means, spread = self._draws(n, FEWER if few else DRAWS)
        alpha, others, b = 1 - self.level, len(self.means) - 1, self.best
        leads = means.argmax(axis=1) == b
        if few:
            decided, sure = ~leads, np.zeros(len(means), bool)
        else:
            scores = np.delete(self._scores(means, spread, n, b), b, axis=1).min(axis=1)
            tails = alpha, alpha if others == 1 else 0.9 * alpha / others
            least, most = (-float(special(np).ndtri(tail)) for tail in tails)
            # Between the limits for one other option and for all, only the whole procedure can tell.
            sure = leads & (scores >= most)
            decided = ~leads | (scores < least) | sure
        wins = int(sure.sum())
        freedom = math.inf if self.rates else n - 1.0
        for k in np.flatnonzero(~decided):
            trials = np.full(len(self.means), n) if self.rates else None
            found = best_set(means[k], spread[k], level=self.level, freedom=freedom, trials=trials)
            wins += bool(found.sum() == 1 and found[b])
        return wins / len(means)

    def _beating(self, n: int) -> float:
        assert self.control is not None
        few = self._few(n)
        means, spread = self._draws(n, FEWER if few else DRAWS)
        scores = -self._scores(means, spread, n, self.control)
        if few:
            k = np.rint(means * n)
            base = np.broadcast_to(k[:, [self.control]], k.shape)
            tried = np.full(k.shape, float(n))
            scores = fisher_score(k, tried, base, tried)
        scores = np.delete(scores, self.control, axis=1)
        variances = self._variances(n)
        # Correlations of the differences are taken for known: they are nearly so with few data already.
        against, rest = contrasts(self.means, variances, np.full(len(self.means), math.inf), self.control)
        place = int(np.flatnonzero(rest == self.best)[0])
        alpha = 1 - self.level
        least, most = (-float(special(np).ndtri(tail)) for tail in (alpha, alpha / len(rest)))
        wins = int((scores[:, place] > most).sum())
        for row in scores[(scores[:, place] > least) & (scores[:, place] <= most)]:
            wins += bool(step_down(row, against.covariances, alpha)[place])
        return wins / len(scores)

    def width(self, n: int) -> float:
        """The mean width of the interval for the mean of the option that looks best; of its lift, if there is a control."""
        means, spread = self._draws(n, WIDTHS)
        freedom = np.full(len(self.means), math.inf if self.rates else n - 1.0)
        widths = []
        for x, covariance in zip(means, spread, strict=True):
            if self.control is not None:
                against, _ = contrasts(x, covariance, freedom, self.control)
                found = infer_winner(against.values, against.covariances, level=self.level, freedom=against.degrees)
            elif self.rates:
                found = infer_winner_rate(np.rint(x * n), np.full(len(x), n), level=self.level)
            else:
                found = infer_winner(x, covariance, level=self.level, freedom=freedom)
            widths.append(found.bounds[1] - found.bounds[0])
        return float(np.mean(widths))

    def _variances(self, n: int) -> np.ndarray:
        return np.asarray(self.means * (1 - self.means) / n if self.rates else self.spread / n)

    def _few(self, n: int) -> bool:
        """Whether rates are compared by exact tests."""
        return self.rates and float(2 * n * np.minimum(self.means, 1 - self.means).min()) < 2 * FEW

    def _draws(self, n: int, draws: int) -> tuple[np.ndarray, np.ndarray]:
        """Means and their variances, or covariances, of simulated experiments; those of different n have the same luck."""
        rng = np.random.default_rng([self.seed, 1])
        options = len(self.means)
        if self.rates:
            means = rng.binomial(n, self.means, (draws, options)) / n
            adjusted = (means * n + 0.5) / (n + 1)
            return means, adjusted * (1 - adjusted) / n
        noise = rng.standard_normal((draws, options))
        if self.spread.ndim == 1:
            from scipy.special import chdtri

            means = self.means + np.sqrt(self.spread / n) * noise
            luck = np.random.default_rng([self.seed, 2]).random((draws, options))
            return means, self.spread / n * chdtri(n - 1.0, luck) / (n - 1)
        means = self.means + noise @ matrix_root(self.spread) / math.sqrt(n)
        return means, self._wishart(n, draws) / n

    def _wishart(self, n: int, draws: int) -> np.ndarray:
        """Sample covariance matrices, [draws, M, M]; of many observations, the true one."""
        options = len(self.means)
        if n - 1 < options or n > 100 * options:
            if n > 100 * options:
                return np.broadcast_to(self.spread, (draws, options, options))
            rng = np.random.default_rng([self.seed, 3])
            rows = rng.standard_normal((draws, n - 1, options)) @ matrix_root(self.spread)
            return np.asarray(rows.swapaxes(1, 2) @ rows / (n - 1))
        from scipy.stats import wishart

        drawn = wishart.rvs(n - 1, np.eye(options), size=draws, random_state=np.random.default_rng([self.seed, 3]))
        root = matrix_root(self.spread)
        return np.asarray(root.T @ np.reshape(drawn, (draws, options, options)) @ root / (n - 1))

    def _scores(self, means: np.ndarray, spread: np.ndarray, n: int, option: int) -> np.ndarray:
        """Normal scores of one option's lead over all, [draws, M], as of :func:`maxmean.mev.inference.best_set`."""
        variances = spread if spread.ndim == 2 else np.diagonal(spread, axis1=1, axis2=2)
        both = variances + variances[:, [option]]
        degrees = np.full(both.shape, math.inf if self.rates else n - 1.0)
        if spread.ndim == 3:
            both = np.maximum(both - 2 * spread[:, option], 0.0)
        elif not self.rates:
            degrees = difference_freedom(variances, variances[:, [option]], n - 1.0, n - 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (means[:, [option]] - means) / np.sqrt(both)
        t[:, option] = 0.0
        return np.copysign(special(np).ndtri(tail_probability(np.abs(t), degrees)), t)


def needed(reached: Callable[[int], bool], start: int) -> int:
    """The fewest observations at which a goal is reached, to 1%: by steps of a half, then by bisection."""
    low, high = start, start
    if reached(start):
        while low > 2:
            low = max(low * 2 // 3, 2)
            if not reached(low):
                break
            high = low
        if high == low:
            return low
    else:
        while True:
            if high >= MOST:
                raise ArgumentError(f"that takes more than {MOST:,} observations of every option: ask for less")
            low, high = high, min(high * 3 // 2 + 1, MOST)
            if reached(high):
                break
    while high - low > max(1, low // 100):
        middle = round(math.sqrt(low * high))
        middle = min(max(middle, low + 1), high - 1)
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def grid(n: int, points: int = 9) -> Iterator[int]:
    """Numbers of observations around ``n``, from an eighth to the double, for a curve.

    >>> list(grid(800, 5))
    [100, 200, 400, 800, 1600]
    """
    yield from sorted({_bounded(n * 2.0 ** (4 * k / (points - 1) - 3)) for k in range(points)})


def _bounded(n: float) -> int:
    return int(min(max(round(n), 2), MOST))
