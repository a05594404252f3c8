"""Lift over a control, by name and in the user's units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .inference import Lift, WinnerMean
from .winner import Recommended

if TYPE_CHECKING:
    import pandas as pd

    from .problem import Problem


@dataclass(frozen=True)
class OptionLift:
    """An option beside the control."""

    option: str
    difference: float
    """Its sample mean less the control's."""
    interval: tuple[float, float]
    """Of the difference; those of all options hold at once."""
    relative: float
    """The difference as a share of the control's mean: 0.1 is ten percent more."""
    relative_interval: tuple[float, float]
    """Of the share; those of all options hold at once. Infinite if the control's mean may be zero."""
    beats: bool
    """Whether it is better than the control; none is said to be wrongly, with the probability of the level."""


@dataclass(frozen=True)
class BestLift:
    """The difference of the option with the best sample mean to the control, corrected for its having been picked."""

    option: str
    naive: float
    """As observed: too good, because the option was selected for it."""
    recommended: Recommended
    """The lift to plan with: drawn towards those of the others, and an interval that always holds the observed one."""
    relative: WinnerMean
    """The same as a share of the control's mean."""


@dataclass(frozen=True)
class NamedLift:
    """Every option beside the control, and the best of them: see :func:`maxmean.mev.inference.infer_lift`."""

    control: str
    options: tuple[OptionLift, ...]
    """All but the control, in their order."""
    best: BestLift
    level: float

    @property
    def beats(self) -> tuple[str, ...]:
        """The options that are better than the control."""
        return tuple(each.option for each in self.options if each.beats)

    def table(self) -> pd.DataFrame:
        """One row per option: the difference and the share with their intervals, and whether it beats the control."""
        import pandas as pd

        rows = {
            each.option: {
                "difference": each.difference,
                "low": each.interval[0],
                "high": each.interval[1],
                "relative": each.relative,
                "relative_low": each.relative_interval[0],
                "relative_high": each.relative_interval[1],
                "beats": each.beats,
            }
            for each in self.options
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("option")


def name_lift(problem: Problem, found: Lift, base: float) -> NamedLift:
    """What was found about the lift over a problem's control, whose mean, but for the unit, is ``base``.

    No rate is below zero, so that none is less than the control's by more than all of it.
    """
    least = -1.0 if problem.counts is not None else -math.inf
    rows = zip(
        found.options,
        found.difference.tolist(),
        found.interval.tolist(),
        found.relative.tolist(),
        found.relative_interval.tolist(),
        found.beats.tolist(),
        strict=True,
    )
    return NamedLift(
        problem.names[found.control],
        tuple(
            OptionLift(
                problem.names[option],
                problem.unit * difference,
                (problem.unit * ends[0], problem.unit * ends[1]),
                share,
                (max(shares[0], least), shares[1]),
                beats,
            )
            for option, difference, ends, share, shares, beats in rows
        ),
        _best(problem, found, base, least),
        found.level,
    )


def _best(problem: Problem, found: Lift, base: float, least: float) -> BestLift:
    factor, index = problem.direction * problem.unit, found.best.index

    ends = sorted(factor * end for end in found.best.bounds)
    low, high = max(found.best_relative[0], least), found.best_relative[1]
    share = found.best_value / abs(base) if base else float("nan")
    return BestLift(
        problem.names[found.options[index]],
        problem.unit * float(found.difference[index]),
        Recommended(problem.unit * found.best_value, (ends[0], ends[1])),
        WinnerMean(min(max(share, low), high), (low, high)),
    )
