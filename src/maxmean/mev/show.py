"""How answers look: on a terminal, in a notebook, in a picture. Names are data: shown, never interpreted."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .methods import METHODS

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType
    from rich.table import Table

    from .compare import Comparison
    from .estimate import Estimate

_ROWS = 20  # options listed on a terminal or in a picture; the leading ones
_WIDTH = 40


def visible(text: str) -> str:
    r"""``text`` with control and formatting characters spelt out, and shortened when long.

    >>> visible("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    shown = escaped(text)
    return shown if len(shown) <= _WIDTH else shown[: _WIDTH - 1] + "…"


def escaped(text: str) -> str:
    """``text`` with control and formatting characters spelt out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def number(value: float, decimals: int | None = None) -> str:
    """A number as a person reads it: to ``decimals`` places, or to four significant digits.

    >>> number(0.051234), number(0.051234, 3), number(1234567.0), number(float("-inf"))
    ('0.05123', '0.051', '1,234,567', '-∞')
    """
    if math.isnan(value):
        return "?"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) >= 1e9 or (decimals is None and 0 < abs(value) < 1e-4) or (decimals or 0) > 9:
        return f"{value:.3e}"
    if decimals is None:
        decimals = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 3
    return f"{value:,.{decimals}f}"


def decimals_for(standard_errors: Sequence[float]) -> int:
    """Decimal places that show the smallest standard error to two digits; more would be noise.

    >>> decimals_for([0.0067, 0.012])
    4
    """
    positive = [error for error in standard_errors if error > 0]
    return max(0, 1 - math.floor(math.log10(min(positive)))) if positive else 4


def terminal(comparison: Comparison) -> RenderableType:
    """The whole answer as Rich renderables."""
    from rich.console import Group
    from rich.text import Text

    problem = comparison.problem
    better = "lower is better" if problem.lower_is_better else "higher is better"
    paired = ", rows paired" if problem.data.covariances is not None else ""
    head = Text(f"{len(problem.names)} options, {better}{paired}")
    reasons: dict[str, list[str]] = {}
    for method, reason in comparison.skipped.items():
        reasons.setdefault(reason, []).append(method)
    skipped = [Text(f"not shown: {', '.join(which)} ({reason})", style="dim") for reason, which in reasons.items()]
    return Group(
        head,
        _options_table(comparison),
        _estimates_table(comparison),
        *skipped,
        _winner_table(comparison),
        Text(comparison.sentence(), style="bold"),
    )


def _options_table(comparison: Comparison) -> RenderableType:
    from rich.text import Text

    problem = comparison.problem
    places = decimals_for(problem.standard_errors)
    table = _table("The options", "option", "n", "mean", "std. error", "T", "P(best)", "in the race")
    rows = comparison.answer.table()
    race = set(comparison.in_the_race)
    order = sorted(range(len(problem.names)), key=lambda k: -problem.direction * problem.means[k])
    for k in order[:_ROWS]:
        name, row = problem.names[k], rows.iloc[k]
        table.add_row(
            Text(visible(name)),
            f"{int(row['n']):,}" if "n" in rows else "",
            number(row["mean"], places),
            number(row["se"], places + 1),
            number(row["T"], 2),
            f"{row['P(best)']:.1%}",
            Text("yes", style="green") if name in race else "",
        )
    if len(order) > _ROWS:
        table.add_row(Text(f"… and {len(order) - _ROWS:,} more", style="dim"))
    return table


def _estimates_table(comparison: Comparison) -> RenderableType:
    places = decimals_for(comparison.problem.standard_errors)
    interval = f"{comparison.level:.0%} interval"
    table = _table("How good is the best one?", "method", "", "estimate", "bias", interval, "options", left=2)
    for method, row in comparison.table().iterrows():
        table.add_row(
            str(method),
            METHODS[str(method)],
            number(row["value"], places),
            ("+" if row["bias"] > 0 else "") + number(row["bias"], places),
            _range((row["low"], row["high"]), places),
            f"{int(row['options'])}",
            style="dim" if method == "me" else "bold" if method == comparison.answer.method else None,
        )
    table.caption = "bias and interval: bootstrap, for the maximum mean"
    table.caption_justify = "left"
    return table


def _winner_table(comparison: Comparison) -> RenderableType:
    winner, places = comparison.winner, decimals_for(comparison.problem.standard_errors)
    title = f"The winner, {visible(winner.option)}"
    table = _table(title, "its own mean", "value", f"{comparison.level:.0%} interval")
    table.add_row("as observed", number(winner.naive, places), "", style="dim")
    for kind, mean in (("corrected, given that it won", winner.conditional), ("corrected, hybrid", winner.hybrid)):
        table.add_row(kind, number(mean.value, places), _range(mean.interval, places))
    return table


def _range(ends: tuple[float, float], places: int) -> str:
    return f"{number(ends[0], places)} to {number(ends[1], places)}"


def _table(title: str, *columns: str, left: int = 1) -> Table:
    """An empty table, its first ``left`` columns flush left and the others flush right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for k, column in enumerate(columns):
        table.add_column(column, justify="left" if k < left else "right")
    return table


def html_page(estimate: Estimate) -> str:
    """Notebook view of one estimate."""
    return f"<p><b>{html.escape(repr(estimate))}</b></p>{_html_table(estimate.table())}"


def html_comparison(comparison: Comparison) -> str:
    """Notebook view of a comparison."""
    options = next(iter(comparison.estimates.values())).table().drop(columns="weight")
    sentence = html.escape(comparison.sentence())
    return f"<p>{sentence}</p>{_html_table(comparison.table())}{_html_table(options)}"


def _html_table(frame: pd.DataFrame) -> str:
    return frame.rename(index=visible).to_html(escape=True, float_format=number, max_rows=_ROWS)
