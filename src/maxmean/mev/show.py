"""How answers look on a terminal, and how names and numbers look everywhere. Names are data: shown, never interpreted."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from .answer import Grid
    from .compare import Comparison
    from .plan import Plan

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


def confidence(level: float) -> str:
    """A confidence level in percent, with all its digits.

    >>> confidence(0.95), confidence(0.999), confidence(0.55)
    ('95%', '99.9%', '55%')
    """
    return f"{100 * level:.10g}%"


def decimals_for(standard_errors: Sequence[float]) -> int:
    """Decimal places that show the smallest standard error to two digits, unless it is nothing beside the largest.

    >>> decimals_for([0.0067, 0.012]), decimals_for([1500.0, 1e-30])
    (4, -2)
    """
    least = 1e-6 * max(standard_errors, default=0.0)
    positive = [error for error in standard_errors if error > least]
    return 1 - math.floor(math.log10(min(positive))) if positive else 4


def terminal(comparison: Comparison) -> RenderableType:
    """The whole answer as Rich renderables."""
    from rich.console import Group
    from rich.text import Text

    from .answer import about, best_mean, not_shown

    options, estimates, *others = _tables(comparison)
    return Group(
        Text(about(comparison)),
        options,
        estimates,
        *(Text(line, style="dim") for line in not_shown(comparison)),
        Text(f"{best_mean(comparison)} \n", style="bold"),
        *others,
        *(Text(f"note: {visible(note, 300)}", style="yellow") for note in comparison.notes),
        Text(comparison.sentence(), style="bold"),
    )


def print_answer(comparison: Comparison) -> None:
    """Print the whole answer. On a terminal too narrow for the tables, lines wrap; numbers are never cut."""
    from rich.console import Console
    from rich.measure import Measurement
    from rich.text import Text

    from .answer import best_mean

    console = Console(markup=False, highlight=False, emoji=False)
    answer = terminal(comparison)
    needed = max(
        Measurement.get(console, console.options.update(max_width=300), part).maximum
        for part in [Text(best_mean(comparison)), *_tables(comparison)]
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
    from .answer import Shown, estimates_grid, lift_grids, options_grid, winner_grid

    shown = Shown()
    grids = [options_grid(comparison, shown), estimates_grid(comparison), winner_grid(comparison, shown)]
    return [_drawn(grid) for grid in [*grids, *lift_grids(comparison, shown)]]


def _drawn(grid: Grid) -> Table:
    """A table for a terminal."""
    from rich.text import Text

    from .answer import Between, Sign, plain

    styles = {0: None, 1: "bold", -1: "dim"}
    table = _table(plain(grid.title), *grid.columns, left=grid.left)
    for line in grid.lines:
        cells = []
        for cell in line.cells:
            if isinstance(cell, Between):
                cells.append(Text(f"{cell.low} to {cell.high}"))
            else:
                cells.append(Text(cell.word, style="green") if isinstance(cell, Sign) else Text(cell))
        table.add_row(*cells, style=styles[line.stress])
    if grid.hidden:
        table.add_row(Text(f"… and {grid.hidden:,} more", style="dim"))
    if grid.caption:
        table.caption, table.caption_justify = grid.caption, "left"
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
