"""The answer as words and tables, before a terminal, a notebook or a page shows them."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .data import Summaries
from .methods import described
from .show import confidence, decimals_for, number, percent, signed, visible

if TYPE_CHECKING:
    from .compare import Comparison
    from .inference import WinnerMean
    from .lift import NamedLift


class Between(NamedTuple):
    """From one number to another."""

    low: str
    high: str


class Sign(NamedTuple):
    """A word that says something good of its row."""

    word: str


Cell = str | Between | Sign


class Entry(NamedTuple):
    """A row of a table; ``stress`` is 1 for the row to read first, -1 for one to read last."""

    cells: tuple[Cell, ...]
    stress: int = 0


@dataclass(frozen=True)
class Grid:
    """A table: its first ``left`` columns hold words, the others numbers."""

    title: str
    columns: tuple[str, ...]
    lines: tuple[Entry, ...]
    left: int = 1
    hidden: int = 0
    """Rows that are not shown, at the end."""
    caption: str = ""


class Shown(NamedTuple):
    """How much of an answer there is room for."""

    rows: int = 20
    """Options in a table; the leading ones."""
    width: int = 40
    """Columns of a name."""


_OPEN, _CLOSE = "\u2068", "\u2069"  # Unicode's FIRST STRONG ISOLATE and POP DIRECTIONAL ISOLATE


def among(name: str, width: int = 40) -> str:
    """A name to stand among words: whatever direction it is written in, it leaves what follows where it is."""
    return f"{_OPEN}{visible(name, width)}{_CLOSE}"


def plain(text: str) -> str:
    """The same text for what knows nothing of directions; no name that is :func:`visible` has these marks of its own.

    >>> plain(f"The winner, {among('ad I', 40)}")
    'The winner, ad I'
    """
    return text.replace(_OPEN, "").replace(_CLOSE, "")


def steady(text: str) -> str:
    """The same text for what sets two directions and knows no isolates: if a name is written from right to left, marks that it
    is among words that are not.
    """
    if not any(unicodedata.bidirectional(each) in ("R", "AL") for each in text):
        return plain(text)
    mark = "\N{LEFT-TO-RIGHT MARK}"
    return text.replace(_OPEN, mark).replace(_CLOSE, mark)


def about(comparison: Comparison) -> str:
    """What was compared, in a line."""
    problem = comparison.problem
    better = "lower is better" if problem.lower_is_better else "higher is better"
    together = ", with covariances" if isinstance(problem.data, Summaries) else ", rows paired"
    paired = together if problem.data.covariances is not None else ""
    always = "" if problem.planned is None else ", intervals hold at every look"
    return f"{len(problem.names):,} options, {better}{paired}{always}"


def best_mean(comparison: Comparison) -> str:
    """The interval for the best mean."""
    low, high = _range(comparison.maximum, decimals_for(comparison.problem.standard_errors))
    best = "smallest" if comparison.problem.lower_is_better else "largest"
    return f"The {best} true mean, {confidence(comparison.level)} interval: {low} to {high}"


def not_shown(comparison: Comparison) -> list[str]:
    """The methods that the data do not allow, a line for each reason."""
    reasons: dict[str, list[str]] = {}
    for method, reason in comparison.skipped.items():
        reasons.setdefault(reason, []).append(method)
    return [f"not shown: {', '.join(which)} ({reason})" for reason, which in reasons.items()]


def ranking(comparison: Comparison) -> list[int]:
    """The options' numbers, the best mean first."""
    problem = comparison.problem
    return sorted(range(len(problem.names)), key=lambda k: -problem.direction * problem.means[k])


def options_grid(comparison: Comparison, shown: Shown) -> Grid:
    """Every option, the best mean first."""
    problem = comparison.problem
    places = decimals_for(problem.standard_errors)
    sizes, chances = problem.data.n, problem.probability_best
    shrunk, ranks, best = comparison.shrunk, comparison.ranks, set(comparison.best_set)
    order = ranking(comparison)
    lines = [
        Entry(
            (
                visible(problem.names[k], shown.width),
                f"{sizes[k]:,}" if sizes is not None else "",
                number(problem.means[k], places),
                number(problem.standard_errors[k], places + 1),
                number(shrunk[k, 0], places),
                f"{chances[k]:.1%}",
                Between(f"{ranks[k, 0]:,}", f"{ranks[k, 1]:,}") if ranks[k, 0] < ranks[k, 1] else f"{ranks[k, 0]:,}",
                Sign("maybe") if problem.names[k] in best else "",
            )
        )
        for k in order[: shown.rows]
    ]
    columns = ("option", "n", "mean", "std. error", "shrunk", "P(best)", "rank", "best?")
    return Grid("The options", columns, tuple(lines), hidden=len(order) - len(lines))


def estimates_grid(comparison: Comparison) -> Grid:
    """Where each method puts the best mean."""
    places = decimals_for(comparison.problem.standard_errors)
    lines = [
        Entry(
            (
                method,
                described(method, comparison.problem.lower_is_better),
                number(est.value, places),
                Between(*(signed(end, places) for end in est.bias().interval)),
                f"{len(est.options)}",
            ),
            stress=-1 if method == "me" else int(method == comparison.answer.method),
        )
        for method, est in comparison.estimates.items()
    ]
    return Grid(
        "How good is the best one?",
        ("method", "", "estimate", "bias", "options"),
        tuple(lines),
        left=2,
        caption="bias: from the smallest to the largest that the data allow",
    )


def winner_grid(comparison: Comparison, shown: Shown) -> Grid:
    """The winner's own mean, corrected; of several that share the best mean, each one's."""
    winner, places = comparison.winner, decimals_for(comparison.problem.standard_errors)
    interval = f"{confidence(comparison.level)} interval"
    if winner.tied:
        return Grid(
            f"The {len(winner.tied):,} that share the best mean",
            ("own mean of", "to plan with", interval),
            tuple(
                Entry((visible(tie.option, shown.width), number(tie.value, places), _range(tie.interval, places)))
                for tie in winner.tied[: shown.rows]
            ),
            hidden=max(len(winner.tied) - shown.rows, 0),
        )
    rows: dict[str, WinnerMean] = {}
    if comparison.problem.planned is None:  # else all intervals are the same
        rows = {"corrected, given that it won": winner.conditional, "corrected, hybrid": winner.hybrid}
    rows["to plan with, shrinkage"] = winner.recommended
    return Grid(
        f"The winner, {among(winner.option, shown.width)}",
        ("its own mean", "value", interval),
        (
            Entry(("as observed", number(winner.naive, places), ""), -1),
            *(
                Entry(
                    (kind, number(mean.value, places), _range(mean.interval, places)), int(mean is winner.recommended)
                )
                for kind, mean in rows.items()
            ),
        ),
    )


def lift_grids(comparison: Comparison, shown: Shown) -> list[Grid]:
    """Every option beside the control, best first, and the best one's lift; nothing without a control."""
    lift = comparison.lift
    if lift is None:
        return []
    places = decimals_for(comparison.problem.standard_errors)
    interval = f"{confidence(lift.level)} interval"
    order = lift_order(comparison, lift)
    beside = Grid(
        f"Lift over {among(lift.control, shown.width)}",
        ("option", "difference", interval, "relative", interval, "beats it?"),
        tuple(
            Entry(
                (
                    visible(lift.options[k].option, shown.width),
                    signed(lift.options[k].difference, places),
                    Between(*(signed(end, places) for end in lift.options[k].interval)),
                    percent(lift.options[k].relative),
                    Between(*map(percent, lift.options[k].relative_interval)),
                    Sign("yes") if lift.options[k].beats else "",
                )
            )
            for k in order[: shown.rows]
        ),
        hidden=max(len(order) - shown.rows, 0),
        caption="all of these hold at once",
    )
    best, own = lift.best, lift.best.recommended
    shares = Between(*map(percent, best.relative.interval))
    return [
        beside,
        Grid(
            f"The lift of the best, {among(best.option, shown.width)}",
            ("over the control", "value", interval),
            (
                Entry(("as observed", signed(best.naive, places), ""), -1),
                Entry(
                    (
                        "to plan with, shrinkage",
                        signed(own.value, places),
                        Between(*(signed(end, places) for end in own.interval)),
                    ),
                    1,
                ),
                Entry(("the same, relative", percent(best.relative.value), shares), 1),
            ),
        ),
    ]


def lift_order(comparison: Comparison, lift: NamedLift) -> list[int]:
    """The numbers of the lifts, the best first."""
    direction = comparison.problem.direction
    return sorted(range(len(lift.options)), key=lambda k: -direction * lift.options[k].difference)


def _range(ends: tuple[float, float], places: int) -> Between:
    return Between(number(ends[0], places), number(ends[1], places))
