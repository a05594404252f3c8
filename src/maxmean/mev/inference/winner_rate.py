r"""Inference on the winner's success rate, from counts: binomial probabilities, so that it holds with any counts, zero included.

As in :mod:`maxmean.mev.inference.winner`, given the other options' counts the winner's count K is a *truncated* binomial. If
it won alone, it exceeded the best of them; if it is one of several tied ones, it is known to have reached that count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from .checks import checked_beta, checked_counts, checked_rank, tail_of
from .tails import at_least, first_above, largest_rate, smallest_count, smallest_rate
from .winner import BOUND_SHARE, FLOOR_TAIL, Winner, WinnerMean


def infer_winner_rate(
    successes: Array, trials: Array, *, level: float = 0.95, beta: float | None = None, rank: int = 1
) -> Winner:
    r"""The same as :func:`maxmean.mev.inference.infer_winner` for the option with the largest share of successes.

    Given the others, the winner's count K lies in a range from a to b. The *conditional* interval has the rates p at which
    neither :math:`P(K \ge k \mid a \le K \le b)` nor :math:`P(K \le k \mid a \le K \le b)` is below alpha/2; the value has as
    much probability above k as below, half of k's own counting for each. The *hybrid* also truncates K to counts that are not
    too large for p, as the lower bounds of all options hold at once with probability 1 - beta. The upper one of the *bounds* is
    its own of Clopper and Pearson's.

    Parameters
    ----------
    successes, trials
        Counts, shape ``(M,)``; ``trials`` may be one number. If the smallest rate is the best, pass the failures.
    level, beta, rank
        As in :func:`maxmean.mev.inference.infer_winner`.

    Examples
    --------
    No success in 20 trials, and three options of which two are tied:

    >>> [round(end, 4) for end in infer_winner_rate([0], [20]).hybrid.interval]
    [0.0, 0.1684]
    >>> winner = infer_winner_rate([3, 3, 0], [20, 20, 20])
    >>> winner.index, {k: [round(end, 3) for end in ends] for k, ends in winner.tied.items()}
    (0, {0: [0.017, 0.379], 1: [0.017, 0.379]})
    """
    k, n = checked_counts(successes, trials)
    tail, rates, options = tail_of(level), k / n, len(k)
    beta = checked_beta(beta, level)
    order = np.argsort(-rates, kind="stable")
    winner = int(order[checked_rank(rank, options) - 1])
    before, after = order[: rank - 1], order[rank:]
    count, trial, rate = float(k[winner]), float(n[winner]), float(rates[winner])
    behind, ahead = float(np.max(rates[after], initial=0.0)), float(np.min(rates[before], initial=1.0))
    least = _count_from(behind, trial, beyond=rate > behind) if after.size else 0.0
    most = trial - _count_from(1 - ahead, trial, beyond=rate < ahead) if before.size else trial
    kept = _Truncated(count, trial, min(least, count), max(most, count))
    share = -math.expm1(math.log1p(-beta) / options)
    competes = after.size > 0, before.size > 0
    alpha, reach = (1 - level - beta) / (1 - beta), share / (1 + all(competes))
    hybrid = kept.within(reach if competes[0] else 0.0, reach if competes[1] else 0.0) if any(competes) else kept
    everybody = -math.expm1(math.log1p(-tail) / options)

    def simultaneous(i: int, share: float) -> tuple[float, float]:
        return float(smallest_rate(k[i], n[i], share)), float(largest_rate(k[i], n[i], share))

    if rank > 1:
        bounds = simultaneous(winner, everybody)
        ties = {int(i): simultaneous(int(i), everybody) for i in np.flatnonzero(rates == rate)}
    else:
        first = BOUND_SHARE * tail if options > 1 else 0.0
        each = -math.expm1(math.log1p(-first) / options)
        upper = largest_rate(k, n, tail)
        bounds = kept.within(each, 0.0).lower_end((tail - first) / (1 - first)), float(upper[winner])
        ties = {int(i): (simultaneous(int(i), each)[0], float(upper[i])) for i in np.flatnonzero(rates == rate)}
    return Winner(
        index=winner,
        naive=WinnerMean(rate, simultaneous(winner, tail)),
        conditional=kept.answer(1 - level),
        hybrid=hybrid.answer(alpha if any(competes) else 1 - level),
        bounds=bounds,
        projection=(simultaneous(winner, hybrid.up)[0], simultaneous(winner, hybrid.down)[1]),
        truncation=(kept.least / trial, kept.most / trial),
        tied=ties if len(ties) > 1 else {},
        level=float(level),
        beta=float(beta),
        floor=kept.lower_end(FLOOR_TAIL) if rank == 1 and len(ties) == 1 else -math.inf,
    )


def _count_from(rate: float, trials: float, *, beyond: bool) -> float:
    """The smallest count whose share of the trials is not below ``rate``, or is ``beyond`` it."""
    guess = math.floor(rate * trials)
    counts = range(max(guess - 1, 0), guess + 3)
    return float(next(count for count in counts if (count / trials > rate if beyond else count / trials >= rate)))


@dataclass(frozen=True)
class _Truncated:
    """A binomial count that is known to lie between two others."""

    count: float
    trials: float
    least: float
    most: float
    up: float = 0.0
    """Counts so large that as large ones have at most this probability are left out."""
    down: float = 0.0

    def within(self, up: float, down: float) -> _Truncated:
        return _Truncated(self.count, self.trials, self.least, self.most, up, down)

    @property
    def mirrored(self) -> _Truncated:
        """The failures."""
        n = self.trials
        return _Truncated(n - self.count, n, n - self.most, n - self.least, self.down, self.up)

    def answer(self, alpha: float) -> WinnerMean:
        low, high = self.lower_end(alpha / 2), 1 - self.mirrored.lower_end(alpha / 2)
        # Between the ends the count is within reach; beyond them it may not be.
        value = first_above(
            lambda p: self._share(self.count, p) + self._share(self.count + 1, p) - 1.0, low, high, jumps=True
        )
        return WinnerMean(value, (low, high))

    def lower_end(self, tail: float) -> float:
        """The smallest rate under which so large a count has probability ``tail``, at most the observed one."""
        return self._first(lambda p: self._share(self.count, p) - tail, self.count / self.trials)

    def _first(self, surplus: Callable[[np.ndarray], np.ndarray], most: float) -> float:
        return first_above(surplus, 0.0, most, jumps=True) if self.count else 0.0

    def _share(self, low: float, rates: np.ndarray) -> np.ndarray:
        """P(at least so large a count)."""
        n = np.full(rates.shape, self.trials)
        least, most = np.full(rates.shape, self.least), np.full(rates.shape, self.most)
        if self.up:
            most = np.minimum(most, smallest_count(np.asarray(self.up), n, rates) - 1)
        if self.down:
            least = np.maximum(least, n - smallest_count(np.asarray(self.down), n, 1 - rates) + 1)
        whole = _between(least, most, n, rates)
        part = _between(np.maximum(least, low), most, n, rates)
        # At rates too small for a number, or too large, all is in the count next to them.
        limit = np.where(rates < self.count / self.trials, least, most)
        share = np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), limit >= low)
        return np.where(
            (least <= self.count) & (self.count <= most), share, 0.0
        )  # the observed count may be out of reach


def _between(low: np.ndarray, high: np.ndarray, trials: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """P(low <= K <= high), from the tail in which no close numbers are subtracted."""
    above = at_least(low, trials, rates) - at_least(high + 1, trials, rates)
    below = at_least(trials - high, trials, 1 - rates) - at_least(trials - low + 1, trials, 1 - rates)
    return np.where(low > high, 0.0, np.where(2 * rates * trials < low + high, above, below))
