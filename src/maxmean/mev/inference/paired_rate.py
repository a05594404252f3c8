"""Rates of paired zeros and ones: bounds that hold with any counts, however the options depend on each other.

Each option's count is binomial, whatever it has to do with the others'. Clopper and Pearson's bounds of single rates hold at once
by Bonferroni's inequality; of the differences, the covariances know more.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..arrays import Array
from .checks import checked_counts, checked_rank, tail_of
from .tails import largest_rate, smallest_rate
from .winner import Winner, WinnerMean, infer_winner

ENOUGH = 40
"""Successes, and failures, of the winner from which on its rate may be taken for normal, given that it won."""


def maximum_paired_rate_interval(successes: Array, trials: Array, *, level: float = 0.95) -> tuple[float, float]:
    """A confidence interval for the largest of several rates, under any dependence.

    With M options and a = 1 - level, the upper end is the largest of the upper bounds at a/2, for the best option's own is
    enough; the lower end is the largest of the lower bounds at a/(2M), which hold at once.

    >>> [round(end, 4) for end in maximum_paired_rate_interval([0, 0, 0], 20)]
    [0.0, 0.1684]
    >>> [round(end, 4) for end in maximum_paired_rate_interval([30, 28, 24], 30)]
    [0.8525, 1.0]
    """
    k, n = checked_counts(successes, trials)
    tail = tail_of(level)
    return float(np.max(smallest_rate(k, n, tail / len(k)))), float(np.max(largest_rate(k, n, tail)))


def infer_paired_winner_rate(
    successes: Array,
    trials: Array,
    covariance: Array,
    *,
    level: float = 0.95,
    beta: float | None = None,
    freedom: Array = math.inf,
    rank: int = 1,
) -> Winner:
    """The same as :func:`maxmean.mev.inference.infer_winner` for the option with the largest share of successes.

    With at least 40 successes and 40 failures of its own, everything is as of a normal mean with this ``covariance``, but for the
    upper one of the ``bounds`` in the first place, which is Clopper and Pearson's. With fewer, the lower one is Clopper and
    Pearson's at (1 - level)/(2M), in other places the upper one too, and the conditional and the hybrid answer are the option's
    rate with these bounds.

    >>> winner = infer_paired_winner_rate([30, 28, 24], 30, [0.001, 0.002, 0.005])
    >>> winner.index, [round(end, 4) for end in winner.hybrid.interval]
    (0, [0.8525, 1.0])
    """
    k, n = checked_counts(successes, trials)
    rates, tail = k / n, tail_of(level)
    each = tail / len(k)

    def bounds(i: int, normal: tuple[float, float]) -> tuple[float, float]:
        many = min(k[i], n[i] - k[i]) >= ENOUGH
        lower = normal[0] if many else float(smallest_rate(k[i], n[i], each))
        if rank == 1:
            return lower, float(largest_rate(k[i], n[i], tail))
        return lower, normal[1] if many else float(largest_rate(k[i], n[i], each))

    found = infer_winner(rates, covariance, level=level, beta=beta, freedom=freedom, rank=checked_rank(rank, len(k)))
    i = found.index
    found = replace(
        found,
        naive=WinnerMean(
            float(rates[i]), (float(smallest_rate(k[i], n[i], tail)), float(largest_rate(k[i], n[i], tail)))
        ),
        bounds=bounds(i, found.bounds),
        tied={option: bounds(option, normal) for option, normal in found.tied.items()},
    )
    if min(k[i], n[i] - k[i]) >= ENOUGH:
        return found
    own = WinnerMean(float(rates[i]), found.bounds)
    return replace(
        found, conditional=own, hybrid=own, projection=found.bounds, truncation=(0.0, 1.0), beta=0.0, floor=-math.inf
    )
