"""How answers look: on a terminal, in a notebook, in a picture. Names are data: shown, never interpreted."""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Sequence
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

from .data import Summaries
from .methods import described

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType
    from rich.table import Table

    from .compare import Comparison
    from .estimate import Estimate
    from .inference import WinnerMean
    from .plan import Plan

_ROWS = 20  # options listed on a terminal or in a picture; the leading ones
_WIDTH = 40


def visible(text: str, width: int = _WIDTH) -> str:
    r"""A name with control and formatting characters spelt out, quoted where its edges are blank, shortened when long.

    >>> visible("a\x1b[31mb"), visible(" ")
    ('a\\x1b[31mb', "' '")
    """
    return shortened(escaped(text if text and text == text.strip() else repr(text)), width)


def shortened(text: str, width: int) -> str:
    """``text`` in at most ``width`` columns, its middle left out where it is longer.

    >>> shortened("abcdefghij", 5), shortened("\u65e5\u672c\u8a9e", 5)
    ('ab…ij', '\u65e5…\u8a9e')
    """
    if sum(map(_columns, text)) <= width:
        return text
    head, tail = _fitting(text, width // 2), _fitting(text[::-1], (width - 1) // 2)
    return f"{head}…{tail[::-1]}"


def _fitting(text: str, width: int) -> str:
    ends = accumulate(map(_columns, text))
    return text[: sum(1 for _ in takewhile(lambda end: end <= width, ends))]


def _columns(character: str) -> int:
    """Columns of a terminal that a character takes: two for those of East Asia."""
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def escaped(text: str) -> str:
    """``text`` with control and formatting characters spelt out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def number(value: float, decimals: int | None = None) -> str:
    """A number as a person reads it: to ``decimals`` places, or to four significant digits.

    >>> number(0.051234), number(0.051234, 3), number(1234567.0), number(float("-inf"))
    ('0.05123', '0.051', '1,234,567', '-∞')
    >>> number(2.16349e300, -298), number(2_000_000_337.5, -1), number(-0.0004, 2)
    ('2.16e+300', '2,000,000,338', '0.00')
    """
    if math.isnan(value):
        return "?"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    exponent = math.floor(math.log10(abs(value))) if value else 0
    if decimals is None:
        shown = f"{value:.3e}" if exponent >= 9 or exponent < -4 else f"{value:,.{max(0, 3 - exponent)}f}"
    elif exponent >= 15 or (decimals > 7 and value):
        shown = f"{value:.{min(max(exponent + decimals, 1), 15)}e}"
    else:
        shown = f"{value:,.{min(max(decimals, 0), 7)}f}"
    return shown if shown.strip("-0.,") else shown.lstrip("-")


def decimals_for(standard_errors: Sequence[float]) -> int:
    """Decimal places that show the smallest standard error to two digits, unless it is nothing beside the largest.

    >>> decimals_for([0.0067, 0.012]), decimals_for([1500.0, 1e-30])
    (4, -2)
    """
    positive = [error for error in standard_errors if error > 1e-6 * max(standard_errors)]
    return 1 - math.floor(math.log10(min(positive))) if positive else 4


def terminal(comparison: Comparison) -> RenderableType:
    """The whole answer as Rich renderables."""
    from rich.console import Group
    from rich.text import Text

    problem = comparison.problem
    better = "lower is better" if problem.lower_is_better else "higher is better"
    together = ", with covariances" if isinstance(problem.data, Summaries) else ", rows paired"
    paired = together if problem.data.covariances is not None else ""
    always = "" if problem.planned is None else ", intervals hold at every look"
    head = Text(f"{len(problem.names)} options, {better}{paired}{always}")
    reasons: dict[str, list[str]] = {}
    for method, reason in comparison.skipped.items():
        reasons.setdefault(reason, []).append(method)
    skipped = [Text(f"not shown: {', '.join(which)} ({reason})", style="dim") for reason, which in reasons.items()]
    return Group(
        head,
        _options_table(comparison),
        _estimates_table(comparison),
        *skipped,
        _maximum(comparison),
        _winner_table(comparison),
        *_lift_tables(comparison),
        *(Text(f"note: {visible(note, 300)}", style="yellow") for note in comparison.notes),
        Text(comparison.sentence(), style="bold"),
    )


def print_answer(comparison: Comparison) -> None:
    """Print the whole answer. On a terminal too narrow for the tables, lines wrap; numbers are never cut."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(markup=False, highlight=False, emoji=False)
    answer = terminal(comparison)
    needed = max(
        Measurement.get(console, console.options.update(max_width=300), part).maximum for part in _tables(comparison)
    )
    console.width = max(console.width, min(needed, 300))
    console.print(answer)


def print_plan(plan: Plan) -> None:
    """Print what fewer and more observations do, and the answer in a sentence."""
    from rich.console import Console
    from rich.text import Text

    console = Console(markup=False, highlight=False, emoji=False)
    told = "told apart" if plan.control is None else f"beats {visible(plan.control)}"
    columns = ["observations", "looks best", told, *(["width"] if plan.width is not None else [])]
    table = _table(f"What more data do for {visible(plan.best)}", *columns, left=0)
    for each in plan.curve:
        cells = [f"{each.n:,}", f"{each.picked:.1%}", f"{each.told:.1%}"]
        cells += [number(each.width)] if each.width is not None else []
        table.add_row(*cells, style="bold" if each.n == plan.n else None)
    console.print(table)
    console.print(Text(plan.sentence(), style="bold"))


def _tables(comparison: Comparison) -> list[RenderableType]:
    answers = [_options_table(comparison), _estimates_table(comparison), _maximum(comparison)]
    return [*answers, _winner_table(comparison), *_lift_tables(comparison)]


def _options_table(comparison: Comparison) -> RenderableType:
    from rich.text import Text

    problem = comparison.problem
    places = decimals_for(problem.standard_errors)
    table = _table("The options", "option", "n", "mean", "std. error", "shrunk", "P(best)", "rank", "best?")
    sizes, chances = problem.data.n, problem.probability_best
    shrunk, ranks, best = comparison.shrunk, comparison.ranks, set(comparison.best_set)
    order = sorted(range(len(problem.names)), key=lambda k: -problem.direction * problem.means[k])
    for k in order[:_ROWS]:
        name = problem.names[k]
        table.add_row(
            Text(visible(name)),
            f"{sizes[k]:,}" if sizes is not None else "",
            number(problem.means[k], places),
            number(problem.standard_errors[k], places + 1),
            number(shrunk[k, 0], places),
            f"{chances[k]:.1%}",
            f"{ranks[k, 0]:,} to {ranks[k, 1]:,}" if ranks[k, 0] < ranks[k, 1] else f"{ranks[k, 0]:,}",
            Text("maybe", style="green") if name in best else "",
        )
    if len(order) > _ROWS:
        table.add_row(Text(f"… and {len(order) - _ROWS:,} more", style="dim"))
    return table


def _estimates_table(comparison: Comparison) -> RenderableType:
    places = decimals_for(comparison.problem.standard_errors)
    table = _table("How good is the best one?", "method", "", "estimate", "bias", "options", left=2)
    for method, est in comparison.estimates.items():
        table.add_row(
            method,
            described(method, comparison.problem.lower_is_better),
            number(est.value, places),
            " to ".join(signed(end, places) for end in est.bias().interval),
            f"{len(est.options)}",
            style="dim" if method == "me" else "bold" if method == comparison.answer.method else None,
        )
    table.caption = "bias: from the smallest to the largest that the data allow"
    table.caption_justify = "left"
    return table


def signed(value: float, places: int) -> str:
    """A difference, with its sign.

    >>> signed(0.251, 2), signed(-0.251, 2), signed(0.001, 2)
    ('+0.25', '-0.25', '0.00')
    """
    shown = number(value, places)
    return f"+{shown}" if value > 0 and shown.strip("0.,") else shown


def percent(share: float) -> str:
    """A share with its sign, to a tenth of a percent.

    >>> percent(0.1234), percent(-0.05), percent(math.inf), percent(math.nan)
    ('+12.3%', '-5.0%', '∞', '?')
    """
    return f"{share:+,.1%}" if math.isfinite(share) else number(share)


def _maximum(comparison: Comparison) -> RenderableType:
    from rich.text import Text

    ends = _range(comparison.maximum, decimals_for(comparison.problem.standard_errors))
    best = "smallest" if comparison.problem.lower_is_better else "largest"
    return Text(f"The {best} true mean, {comparison.level:.0%} interval: {ends} \n", style="bold")


def _winner_table(comparison: Comparison) -> RenderableType:
    from rich.text import Text

    winner, places = comparison.winner, decimals_for(comparison.problem.standard_errors)
    interval = f"{comparison.level:.0%} interval"
    if winner.tied:
        table = _table(f"The {len(winner.tied):,} that share the best mean", "own mean of", "to plan with", interval)
        for tie in winner.tied[:_ROWS]:
            table.add_row(Text(visible(tie.option)), number(tie.value, places), _range(tie.interval, places))
        if len(winner.tied) > _ROWS:
            table.add_row(Text(f"… and {len(winner.tied) - _ROWS:,} more", style="dim"))
        return table
    table = _table(f"The winner, {visible(winner.option)}", "its own mean", "value", interval)
    table.add_row("as observed", number(winner.naive, places), "", style="dim")
    rows: dict[str, WinnerMean] = {}
    if comparison.problem.planned is None:  # else all intervals are the same
        rows = {"corrected, given that it won": winner.conditional, "corrected, hybrid": winner.hybrid}
    rows["to plan with, shrinkage"] = winner.recommended
    for kind, mean in rows.items():
        style = "bold" if mean is winner.recommended else None
        table.add_row(kind, number(mean.value, places), _range(mean.interval, places), style=style)
    return table


def _lift_tables(comparison: Comparison) -> list[RenderableType]:
    """Every option beside the control, best first, and the best one's lift; nothing without a control."""
    from rich.text import Text

    lift, places = comparison.lift, decimals_for(comparison.problem.standard_errors)
    if lift is None:
        return []
    interval = f"{lift.level:.0%} interval"
    control = visible(lift.control)
    table = _table(f"Lift over {control}", "option", "difference", interval, "relative", interval, "beats it?")
    order = sorted(lift.options, key=lambda each: -comparison.problem.direction * each.difference)
    for each in order[:_ROWS]:
        table.add_row(
            Text(visible(each.option)),
            signed(each.difference, places),
            " to ".join(signed(end, places) for end in each.interval),
            percent(each.relative),
            " to ".join(percent(end) for end in each.relative_interval),
            Text("yes", style="green") if each.beats else "",
        )
    if len(order) > _ROWS:
        table.add_row(Text(f"… and {len(order) - _ROWS:,} more", style="dim"))
    table.caption, table.caption_justify = "all of these hold at once", "left"
    best = _table(f"The lift of the best, {visible(lift.best.option)}", "over the control", "value", interval)
    best.add_row("as observed", signed(lift.best.naive, places), "", style="dim")
    own = lift.best.recommended
    ends = " to ".join(signed(end, places) for end in own.interval)
    best.add_row("to plan with, shrinkage", signed(own.value, places), ends, style="bold")
    ends = " to ".join(percent(end) for end in lift.best.relative.interval)
    best.add_row("the same, relative", percent(lift.best.relative.value), ends, style="bold")
    return [table, best]


def _range(ends: tuple[float, float], places: int) -> str:
    return f"{number(ends[0], places)} to {number(ends[1], places)}"


def _table(title: str, *columns: str, left: int = 1) -> Table:
    """An empty table, its first ``left`` columns flush left and the others flush right; those are never cut."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for k, column in enumerate(columns):
        words = k < left
        table.add_column(column, justify="left" if words else "right", no_wrap=not words, overflow="fold")
    return table


def html_page(estimate: Estimate) -> str:
    """Notebook view of one estimate."""
    return f"<p><b>{html.escape(repr(estimate))}</b></p>{_html_table(estimate.table())}"


def html_comparison(comparison: Comparison) -> str:
    """Notebook view of a comparison."""
    options = next(iter(comparison.estimates.values())).table().drop(columns="weight")
    sentence = html.escape(comparison.sentence())
    lift = "" if comparison.lift is None else _html_table(comparison.lift.table())
    return f"<p>{sentence}</p>{_html_table(comparison.table())}{_html_table(options)}{lift}"


def _html_table(frame: pd.DataFrame) -> str:
    return frame.rename(index=visible).to_html(escape=True, float_format=number, max_rows=_ROWS)
