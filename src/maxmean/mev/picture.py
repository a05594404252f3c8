"""The picture of a comparison as a file: the options above, and below them where each estimator puts the best."""

from __future__ import annotations

import io
import math
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..drawing import check_matplotlibrc, own_style
from .answer import Shown, plain, steady
from .charts import Bar, Chart, charts
from .errors import PictureWarning
from .fonts import fonts_for, quiet_search
from .target import check_target, write_target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .compare import Comparison

FIGURES = ("png", "pdf", "svg")

_SHOWN = Shown(rows=30, width=28)
_COLOURS = {
    "best": "#1f6fb2",
    "rest": "#a3adb8",
    "naive": "#c2410c",
    "fair": "#15803d",
    "method": "black",
    "own": "black",
}


def plot(comparison: Comparison, path: str | os.PathLike[str] | None = None) -> Figure:
    """Draw a comparison; with a ``path`` (.png, .pdf or .svg), write it there, whole or not at all."""
    kind = "png" if path is None else check_figure(path)  # before anything is drawn
    shown = charts(comparison, _SHOWN)
    heights = [len(chart.bars) + 1 for chart in shown]
    heights[1:2] = [len(comparison.estimates) + 3]  # room for the winner's own mean, whether it is there or not
    labels = [_label(chart, bar) for chart in shown for bar in chart.bars]
    size = (8, 1.32 + 0.48 * (len(shown) - 2) + 0.24 * sum(heights))
    with canvas(size, [*labels, *(chart.title + chart.below for chart in shown)], kind) as figure:
        grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
        axes = [figure.add_subplot(grid[row]) for row in range(len(heights))]
        axes[0].sharex(axes[1])
        axes[0].tick_params(labelbottom=False)
        for ax, chart in zip(axes, shown, strict=True):
            _draw(ax, chart)
        axes[0].legend(loc="best", frameon=False, fontsize=8.5)
        figure.suptitle("How good is the best one, really?", x=0.01, ha="left", fontweight="bold")
        if path is not None:
            save(figure, path, kind)
    return figure


@contextmanager
def canvas(size: tuple[float, float], texts: Iterable[str], kind: str) -> Iterator[Figure]:
    """An empty figure in the style of answers: ``texts`` are text, in fonts that have their characters.

    What no font has is a :class:`PictureWarning`, but not in an .svg: text stays text there, and its viewer has other fonts.
    """
    check_matplotlibrc()
    from matplotlib.figure import Figure

    found = fonts_for(plain(text) for text in texts)
    if found.missing and kind != "svg":
        warnings.warn(found.sentence(), PictureWarning, stacklevel=5)
    style = {
        "font.size": 9,
        "font.family": found.families,
        "svg.fonttype": "none",
        "text.parse_math": False,  # a dollar sign in a name is a dollar sign
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
    }
    with own_style(style), quiet_search(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # said already
        yield Figure(figsize=size, layout="constrained")


@contextmanager
def told() -> Iterator[list[str]]:
    """A list of what pictures that are drawn meanwhile cannot show, instead of warnings."""
    sentences: list[str] = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", PictureWarning)
        yield sentences
    sentences += [str(each.message) for each in said if issubclass(each.category, PictureWarning)]


def save(figure: Figure, path: str | os.PathLike[str], kind: str) -> None:
    """Write a figure, whole or not at all; inside its :func:`canvas`."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=150)
    write_target(path, buffer.getvalue())


def check_figure(path: str | os.PathLike[str]) -> str:
    """The kind of picture that ``path`` asks for, if it can be written there and pictures can be drawn."""
    kind = check_target(path, FIGURES, "a picture")
    check_matplotlibrc()
    return kind


def _label(chart: Chart, bar: Bar) -> str:
    return steady(f"{bar.label}  {bar.shown}" if chart.numbered else bar.label)


def _draw(axes: Any, chart: Chart) -> None:
    for row, bar in enumerate(chart.bars):
        if bar.ends is not None and all(math.isfinite(end) for end in bar.ends):  # what is infinite is left open
            axes.plot(bar.ends, [row, row], color=_COLOURS[bar.kind], lw=1.8, solid_capstyle="butt")
        if math.isfinite(bar.value):
            axes.plot(bar.value, row, "D" if bar.kind == "own" else "o", color=_COLOURS[bar.kind], ms=5)
    _rows(axes, [_label(chart, bar) for bar in chart.bars])
    more = f"; {chart.hidden:,} further options are not shown" if chart.hidden else ""
    axes.set_title(steady(chart.title) + ("" if chart.below else more), fontsize=9)
    axes.set_xlabel(steady(chart.below) + (more if chart.below else ""))
    for guide in chart.guides:
        style = (0, (4, 3)) if guide.kind == "naive" else "-"
        axes.axvline(guide.at, color=_COLOURS[guide.kind], lw=1, ls=style, zorder=0, label=guide.label)


def _rows(axes: Any, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
