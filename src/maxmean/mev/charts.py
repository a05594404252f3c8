"""What a picture shows, before Matplotlib or a browser draws it: charts with a point and an interval in each row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .answer import Shown, among, lift_order, ranking
from .show import confidence, decimals_for, number, percent

if TYPE_CHECKING:
    from .compare import Comparison


class Bar(NamedTuple):
    """A row: a point, and its interval where it has one."""

    label: str
    value: float
    shown: str
    """The value, as a reader sees it."""
    kind: str
    """``best`` (may be, or beats the control) or ``rest``; ``fair``, ``naive`` or another ``method``; the winner's ``own``."""
    ends: tuple[float, float] | None = None


class Guide(NamedTuple):
    """A vertical line through all rows."""

    at: float
    kind: str
    label: str = ""
    shown: str = ""


@dataclass(frozen=True)
class Chart:
    """Rows with one scale."""

    title: str
    bars: tuple[Bar, ...]
    guides: tuple[Guide, ...]
    below: str = ""
    """What stands under the scale."""
    hidden: int = 0
    """Rows that are not shown."""
    numbered: bool = True
    """Whether the numbers stand beside the labels where there is no column for them."""


def charts(comparison: Comparison, shown: Shown) -> list[Chart]:
    """The options; the best mean, on the same scale; and, where there is a control, the lifts over it."""
    lifts = [] if comparison.lift is None else [_lifts(comparison, shown)]
    return [_options(comparison, shown), _best(comparison, shown), *lifts]


def _options(comparison: Comparison, shown: Shown) -> Chart:
    problem, order = comparison.problem, ranking(comparison)
    places, best = decimals_for(problem.standard_errors), set(comparison.best_set)
    if problem.planned is None:
        ends = problem.own_intervals(comparison.level)
    else:
        ends = [problem.interval(*pair) for pair in problem.sequences(comparison.level).all_bounds.tolist()]
    bars = [
        Bar(
            among(problem.names[k], shown.width) + (" (control)" if problem.names[k] == problem.control else ""),
            problem.means[k],
            number(problem.means[k], places),
            "best" if problem.names[k] in best else "rest",
            ends[k],
        )
        for k in order[: shown.rows]
    ]
    title = f"The options, {confidence(comparison.level)} intervals (grey: not the best)"
    return Chart(title, tuple(bars), _guides(comparison), hidden=len(order) - len(bars), numbered=False)


def _best(comparison: Comparison, shown: Shown) -> Chart:
    places = decimals_for(comparison.problem.standard_errors)
    low, high = (number(end, places) for end in comparison.maximum)
    bars = [Bar("the best mean", comparison.maximum_value, f"{low} to {high}", "fair", comparison.maximum)]
    for method, est in comparison.estimates.items():
        kind = "naive" if method == "me" else "fair" if method == comparison.answer.method else "method"
        bars.append(Bar(method, est.value, number(est.value, places), kind))
    if not comparison.winner.tied:
        own = comparison.winner.recommended
        label = f"{among(comparison.winner.option, shown.width)}'s own mean"
        bars.append(Bar(label, own.value, number(own.value, places), "own", own.interval))
    below = "lower is better" if comparison.problem.lower_is_better else ""
    title = f"The best mean, {confidence(comparison.level)} interval, and where each method puts it"
    return Chart(title, tuple(bars), _guides(comparison), below)


def _lifts(comparison: Comparison, shown: Shown) -> Chart:
    lift = comparison.lift
    assert lift is not None
    order = lift_order(comparison, lift)
    bars = [
        Bar(
            among(each.option, shown.width),
            each.difference,
            percent(each.relative),
            "best" if each.beats else "rest",
            each.interval,
        )
        for each in (lift.options[k] for k in order[: shown.rows])
    ]
    own = lift.best.recommended
    label = f"{among(lift.best.option, shown.width)}, corrected"
    bars.append(Bar(label, own.value, percent(lift.best.relative.value), "own", own.interval))
    control = among(lift.control, shown.width)
    return Chart(
        f"Lift over {control}, {confidence(lift.level)} intervals that hold at once (coloured: beats it)",
        tuple(bars),
        (Guide(0.0, "naive"),),
        f"difference to {control}" + ("; lower is better" if comparison.problem.lower_is_better else ""),
        len(order) - len(bars) + 1,
    )


def _guides(comparison: Comparison) -> tuple[Guide, ...]:
    """The naive answer and the corrected one."""
    answer, places = comparison.answer, decimals_for(comparison.problem.standard_errors)
    return (
        Guide(answer.naive, "naive", "as observed (naive)", number(answer.naive, places)),
        Guide(answer.value, "fair", f"corrected ({answer.method})", number(answer.value, places)),
    )


@dataclass(frozen=True)
class Scale:
    """From numbers to places between 0 and 1, with the numbers to write below."""

    low: float
    high: float

    @classmethod
    def of(cls, shown: Sequence[Chart]) -> Scale:
        """Wide enough for all that is finite, with a margin."""
        numbers = [guide.at for chart in shown for guide in chart.guides]
        numbers += [x for chart in shown for bar in chart.bars for x in (bar.value, *(bar.ends or ()))]
        finite = [x for x in numbers if math.isfinite(x)] or [0.0]
        low, high = min(finite), max(finite)
        margin = 0.04 * (high / 2 - low / 2) * 2 if high > low else abs(low) / 10 or 1.0
        low, high = max(low - margin, -8e307), min(high + margin, 8e307)  # so that their distance is a number
        return cls(low, high)

    def place(self, x: float) -> float:
        """Where a number stands; what is beyond the scale, at its end.

        >>> Scale(0.0, 4.0).place(1.0), Scale(0.0, 4.0).place(math.inf)
        (0.25, 1.0)
        """
        return min(max((x - self.low) / (self.high - self.low), 0.0), 1.0)

    def ticks(self, most: int = 5) -> list[tuple[float, str]]:
        """At most so many round numbers on the scale, and how they are written.

        >>> Scale(0.018, 0.072).ticks()
        [(0.02, '0.02'), (0.04, '0.04'), (0.06, '0.06')]
        >>> [shown for _, shown in Scale(-120.0, 1450.0).ticks()]
        ['0', '500', '1,000']
        """
        rough = (self.high - self.low) / most
        power = math.floor(math.log10(rough))
        step = next(factor for factor in (1, 2, 5, 10) if factor * 10.0**power >= rough)
        power, step = (power + 1, 1) if step == 10 else (power, step)
        unit = 10.0**power
        first, last = math.ceil(self.low / unit / step), math.floor(self.high / unit / step)
        return [(k * step * unit, number(k * step * unit, -power)) for k in range(first, last + 1)]
