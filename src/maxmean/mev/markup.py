"""Tables and pictures as HTML: text that the browser sets, and intervals that it draws at whatever width there is."""

from __future__ import annotations

import html
from collections.abc import Sequence
from itertools import pairwise

from .answer import Between, Cell, Entry, Grid, Sign
from .charts import Bar, Chart, Guide, Scale

_STRESS = {0: "", 1: ' class="first"', -1: ' class="last"'}


def text(words: str) -> str:
    """Words as they are, whatever they look like.

    >>> text("<b>&")
    '&lt;b&gt;&amp;'
    """
    return html.escape(words)


def table(grid: Grid, first: int = 20) -> str:
    """A table. Rows after the ``first`` ones are folded away."""
    top, rest = grid.lines[:first], grid.lines[first:]
    folded = ""
    if rest:
        folded = f"<details><summary>{len(rest):,} more</summary>{_table(grid, rest)}</details>"
    more = f'<p class="quiet">… and {grid.hidden:,} more</p>' if grid.hidden else ""
    caption = f'<p class="quiet">{text(grid.caption)}</p>' if grid.caption else ""
    return f"<section><h3>{text(grid.title)}</h3>{_table(grid, top)}{folded}{more}{caption}</section>"


def _table(grid: Grid, lines: Sequence[Entry]) -> str:
    """Ranges take three columns, so that both ends stand under each other."""
    spans = [
        3 if any(isinstance(line.cells[k], Between) for line in grid.lines) else 1 for k in range(len(grid.columns))
    ]
    head = "".join(
        f'<th scope="col"{"" if k < grid.left else _classed("number")}{_span(span)}>{text(name)}</th>'
        for k, (name, span) in enumerate(zip(grid.columns, spans, strict=True))
    )
    rows = []
    for line in lines:
        cells = "".join(
            _cell(cell, span, k, grid.left) for k, (cell, span) in enumerate(zip(line.cells, spans, strict=True))
        )
        rows.append(f"<tr{_STRESS[line.stress]}>{cells}</tr>")
    return f'<div class="wide"><table class="grid"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _cell(cell: Cell, span: int, column: int, left: int) -> str:
    if isinstance(cell, Between):
        ends = (f'<td class="number">{text(end)}</td>' for end in cell)
        return '<td class="to">to</td>'.join(ends)
    if isinstance(cell, Sign):
        return f'<td class="number"><span class="sign">{text(cell.word)}</span></td>'
    if column >= left:
        return f'<td class="number">{text(cell)}</td>' + '<td class="to"></td>' * (span - 1)
    return f'<th scope="row"><span dir="auto">{text(cell)}</span></th>' if column == 0 else f"<td>{text(cell)}</td>"


def _classed(name: str) -> str:
    return f' class="{name}"'


def _span(span: int) -> str:
    return f' colspan="{span}"' if span > 1 else ""


def picture(charts: Sequence[Chart]) -> str:
    """All charts; the first two have one scale, and stand in one table for it to be in one place."""
    return f"<figure>{_drawn(charts[:2])}{''.join(_drawn([chart]) for chart in charts[2:])}</figure>"


def _drawn(charts: Sequence[Chart]) -> str:
    scale = Scale.of(charts)
    legend = "".join(map(_legend, charts[0].guides))
    parts = "".join(_chart(chart, scale) for chart in charts)
    return (f'<p class="legend">{legend}</p>' if legend else "") + f'<table class="picture">{parts}</table>'


def _chart(chart: Chart, scale: Scale) -> str:
    ticks = scale.ticks()
    lines = "".join(f'<line class="tick" {_upright(scale.place(at))}/>' for at, _ in ticks)
    lines += "".join(f'<line class="guide {guide.kind}" {_upright(scale.place(guide.at))}/>' for guide in chart.guides)
    rows = "".join(
        f'<tr class="{bar.kind}"><th scope="row"><span>{text(bar.label)}</span></th>'
        f'<td class="strip"><svg aria-hidden="true" focusable="false">{lines}{_bar(bar, scale)}</svg></td>'
        f'<td class="number">{text(bar.shown)}</td></tr>'
        for bar in chart.bars
    )
    more = [f"{chart.hidden:,} further options are in the table"] if chart.hidden else []
    below = "; ".join([*([chart.below] if chart.below else []), *more])
    axis = f'<tr class="scale"><td></td><td class="strip">{_axis(scale, ticks)}</td><td></td></tr>'
    note = f'<tr class="below"><td></td><td class="quiet">{text(below)}</td><td></td></tr>' if below else ""
    head = f'<tr><th colspan="3" scope="rowgroup"><h3>{text(chart.title)}</h3></th></tr>'
    return f"<tbody>{head}{rows}{axis}{note}</tbody>"


def _legend(guide: Guide) -> str:
    if not guide.label:
        return ""
    line = f'<line class="guide {guide.kind}" x1="0" x2="100%" y1="50%" y2="50%"/>'
    return (
        f'<span><svg aria-hidden="true" focusable="false">{line}</svg> {text(guide.label)} {text(guide.shown)}</span> '
    )


def _axis(scale: Scale, ticks: Sequence[tuple[float, str]]) -> str:
    """Every other number can be left out where there is little room."""
    every = 4 if any(len(a) + len(b) > 12 for (_, a), (_, b) in pairwise(ticks)) else 2
    numbers = []
    for k, (at, shown) in enumerate(ticks):
        spare = _classed("spare") if k % every else ""
        numbers.append(f'<text x="{_percent(scale.place(at))}" y="1.1em"{spare}>{text(shown)}</text>')
    return f'<svg aria-hidden="true" focusable="false">{"".join(numbers)}</svg>'


def _bar(bar: Bar, scale: Scale) -> str:
    """The interval, which ends at the edge if it is infinite, and the point."""
    drawn = ""
    if bar.ends is not None:
        low, high = (_percent(scale.place(end)) for end in bar.ends)
        drawn = f'<line class="interval" x1="{low}" x2="{high}" y1="50%" y2="50%"/>'
    if bar.value != bar.value:
        return drawn
    at = _percent(scale.place(bar.value))
    if bar.kind == "own":
        return f'{drawn}<svg class="point" x="{at}" y="50%"><path d="M0-5.5 5.5 0 0 5.5-5.5 0z"/></svg>'
    return f'{drawn}<circle class="point" cx="{at}" cy="50%" r="4.5"/>'


def _upright(place: float) -> str:
    at = _percent(place)
    return f'x1="{at}" x2="{at}" y1="0" y2="100%"'


def _percent(place: float) -> str:
    return f"{100 * place:.2f}%"
