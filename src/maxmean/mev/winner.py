"""What is known about the options that look best, by name and in the user's units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .inference import Top, Winner, WinnerMean

if TYPE_CHECKING:
    from .problem import Problem


@dataclass(frozen=True)
class OptionMean:
    """An option and its mean."""

    option: str
    value: float
    """Its mean, drawn towards the others: see :func:`maxmean.mev.inference.shrink`."""
    interval: tuple[float, float]


@dataclass(frozen=True)
class Recommended(WinnerMean):
    """The number to plan with: a value with a small error, and an interval that covers.

    The value is the mean drawn towards the others, but not below what the winner's mean exceeds with 75% confidence, given that
    it won: one that is far ahead is not like the others. In the first place it is never better than the sample mean, which was
    selected for being good.
    """

    method: str = "shrinkage"
    """What gives the value. The interval does not rest on it: it is :attr:`maxmean.mev.inference.Winner.bounds`."""


@dataclass(frozen=True)
class NamedWinner:
    """The option with the best sample mean, or the one in another place, and its own mean, corrected for selection."""

    option: str
    naive: float
    """Its sample mean: too good, because it was selected for being good."""
    conditional: WinnerMean
    """Median-unbiased given that it won; of a tied option, for which nothing is known beyond its bounds, as ``recommended``."""
    hybrid: WinnerMean
    """The same, kept above a bound that holds for all options at once: much shorter after a close race."""
    recommended: Recommended
    """The number to plan with. Its interval holds the sample mean, and holds after ties too."""
    tied: tuple[OptionMean, ...] = ()
    """All options that share this sample mean, if several do; their intervals hold for all of them at once."""
    rank: int = 1


@dataclass(frozen=True)
class NamedTop:
    """The options with the best sample means, and the average of their means."""

    options: tuple[str, ...]
    """Best first."""
    naive: float
    """The average of their sample means: too good, because they were selected for them."""
    recommended: Recommended
    """The average to plan with."""


def name_winner(problem: Problem, found: Winner, rank: int) -> NamedWinner:
    """What was found about a problem's winner."""
    first = found.naive.value == problem.estimates.max()
    naive = found.naive.value if first else math.inf  # further down, nothing was selected for being good

    def fair(index: int, bounds: tuple[float, float]) -> OptionMean:
        recommended = _recommended(problem, float(problem.shrinkage.values[index]), naive, bounds)
        return OptionMean(problem.names[index], recommended.value, recommended.interval)

    own = _recommended(problem, max(float(problem.shrinkage.values[found.index]), found.floor), naive, found.bounds)
    conditional, hybrid = (
        WinnerMean(own.value, own.interval)
        if found.tied
        else WinnerMean(problem.outward(mean.value), problem.interval(*mean.interval))
        for mean in (found.conditional, found.hybrid)
    )
    return NamedWinner(
        problem.names[found.index],
        problem.means[found.index],
        conditional,
        hybrid,
        own,
        tuple(fair(index, bounds) for index, bounds in found.tied.items()),
        rank,
    )


def name_top(problem: Problem, found: Top) -> NamedTop:
    """What was found about a problem's leading options."""
    value = float(problem.shrinkage.values[list(found.indices)].mean())
    names = tuple(problem.names[index] for index in found.indices)
    return NamedTop(names, problem.outward(found.naive), _recommended(problem, value, found.naive, found.bounds))


def _recommended(problem: Problem, value: float, naive: float, bounds: tuple[float, float]) -> Recommended:
    """In the user's units; the value is moved to the nearest end where shrinkage goes beyond what the option's own data allow."""
    low, high = bounds
    return Recommended(problem.outward(max(min(value, naive, high), low)), problem.interval(low, high))
