"""Tests that a rate is larger than another, as normal scores: of independent counts, and of the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import special

FEW = 40
"""Successes, or failures, of two rates with equally many trials below which their difference is not taken for normal: half of
these are expected of each. Of the same rows, those in which they differ."""


@dataclass(frozen=True)
class Rates:
    """Independent rates, to be compared with each other."""

    won: np.ndarray
    tried: np.ndarray
    variances: np.ndarray
    """Of the rates, as estimated one by one."""

    def scores(self, which: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Normal scores of the tests that these rates are larger than those; the numbers of both are broadcast.

        A large partner does not make up for a small sample: Fisher's test is used where fewer than 20 successes, or failures, are
        expected in the smaller one.

        >>> counts = np.array([0.0, 1500.0]), np.array([5.0, 5000.0])
        >>> score = Rates(*counts, np.array([0.015, 0.00004])).scores(np.array([1]), np.array([0]))
        >>> round(float(special(np).ndtr(-score)[0]), 2)  # 0.7 to the fifth power, nearly
        0.17
        """
        few = self.few(which, others)
        found = self._approximate(which, others)
        if few.any():
            kinds, kind = self._kinds
            low, high = np.minimum(kind[which], kind[others]), np.maximum(kind[which], kind[others])
            pairs, place = np.unique((low * len(kinds) + high)[few], return_inverse=True)
            j, i = np.divmod(pairs, len(kinds))
            turned = np.where(kind[which] == low, 1.0, -1.0)[few]  # each pair is tested once
            found[few] = turned * fisher_score(*kinds[j].T, *kinds[i].T)[place]
        return found

    def few(self, which: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Whether fewer than 20 successes, or failures, are expected in the smaller sample if the rates are equal."""
        won, tried = self.won[which] + self.won[others], self.tried[which] + self.tried[others]
        least = np.minimum(self.tried[which], self.tried[others])
        return np.asarray(least * np.minimum(won, tried - won) < FEW / 2 * tried)

    @cached_property
    def _kinds(self) -> tuple[np.ndarray, np.ndarray]:
        """Different counts, each tested once, and which of them each rate has."""
        return np.unique(np.stack([self.won, self.tried], axis=-1), axis=0, return_inverse=True)

    def _approximate(self, j: np.ndarray, i: np.ndarray) -> np.ndarray:
        """Scores from the standard error under equal rates, without their skewness.

        With equal rates the smaller sample's variance is known from the larger one, so that each is divided by the other's number
        of trials: the pooled variance, but for a term of higher order. With equally many trials it is the usual one.
        """
        n, m = self.tried[j], self.tried[i]
        won, tried = self.won[j] + self.won[i], n + m
        gap = self.won[j] / n - self.won[i] / m
        error = np.sqrt(self.variances[j] * n / m + self.variances[i] * m / n)
        rate = (won + 1) / (tried + 2)
        skewness = (1 - 2 * rate) * (m - n) / np.sqrt(n * m * tried * rate * (1 - rate))
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(gap == 0, 0.0, gap / error)
            # Hall's form of the usual correction, which is monotone ("On the removal of skewness by transformation", 1992).
            return np.where(np.isfinite(z), z - skewness * (z * z - 1) / 6 + np.square(skewness) * z**3 / 108, z)


def fisher_score(won: np.ndarray, tried: np.ndarray, other_won: np.ndarray, other_tried: np.ndarray) -> np.ndarray:
    """Normal scores of Fisher's exact test that a rate is larger than another; negative where the other's may be.

    >>> three = np.array([3.0])
    >>> round(float(special(np).ndtr(-fisher_score(three, three, 0 * three, three))[0]), 9)  # 1 of 20 ways to choose 3 of 6
    0.05
    """
    from scipy.stats import hypergeom

    together, total = won + other_won, tried + other_tried
    # From the smaller sample's successes, of which there are fewer to add up.
    own = tried <= other_tried
    k, n = np.where(own, won, other_won), np.where(own, tried, other_tried)
    as_many, as_few = hypergeom.sf(k - 1, total, together, n), hypergeom.cdf(k, total, together, n)
    return _score(np.where(own, as_many, as_few), np.where(own, as_few, as_many))


def sign_score(alone: np.ndarray, other_alone: np.ndarray) -> np.ndarray:
    """The same of two rates in the same rows, from the numbers of rows in which one succeeds alone (McNemar's test, exact).

    With equal rates, each row in which they differ is a fair coin's.

    >>> round(float(special(np).ndtr(-sign_score(np.array([5.0]), np.array([0.0])))[0]), 9)  # five heads of five
    0.03125
    """
    from scipy.special import betainc

    def as_many(heads: np.ndarray, tails: np.ndarray) -> np.ndarray:
        """So many heads or more; none or more are certain."""
        return np.where(heads > 0, betainc(np.maximum(heads, 1), tails + 1, 0.5), 1.0)

    return _score(as_many(alone, other_alone), as_many(other_alone, alone))


def _score(larger: np.ndarray | float, smaller: np.ndarray | float) -> np.ndarray:
    """From the probabilities of as many successes or more, and of as many or fewer."""
    ndtri = special(np).ndtri
    # Both count what was observed: where neither is below a half, nothing is known.
    return np.asarray(np.where(larger < 0.5, -ndtri(larger), np.where(smaller < 0.5, ndtri(smaller), 0.0)))
