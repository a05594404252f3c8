"""How figures look: one style, colours that keep their meaning, and vector graphics that follow light and dark pages."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from ..drawing import own_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#000000"
"""Text and axes; a page replaces it by its own text colour."""

GREY = "#8a8f98"
"""Lines to compare with, such as zero."""

_COLOURS = {
    "te-bdqn(0.1)": "#86cfae",
    "te-bdqn(0.2)": "#2f9e6e",
    "te-bdqn(0.3)": "#7a8f2a",
    "te-bdqn(0.4)": "#1d9aa8",
    "te*-bdqn(0.1)": "#86cfae",
    "ke-bdqn": "#3b82c4",
    "ada-te-bdqn(0.0001)": "#c44fa5",
    "ada-te-bdqn": "#e07b39",
    "ada-te*-bdqn": "#c44fa5",
    "ada-ke-bdqn": "#9467bd",
    "ada-ke*-bdqn": "#9467bd",
    "bdqn": "#9467bd",
    "maxmin-dqn(2)": "#c9a227",
    "maxmin-dqn": "#b0894f",
    "scdqn(2)": "#e07b39",
    "scdqn(3)": "#c9a227",
    "scdqn": "#b0894f",
    "ddqn": GREY,
    "dqn": "#d1495b",
    "te-q(0.05)": "#86cfae",
    "te-q(0.1)": "#2f9e6e",
    "te-q(0.2)": "#1f7a53",
    "te-q(0.3)": "#7a8f2a",
    "te-q(0.4)": "#1d9aa8",
    "te-q(0.5)": "#e07b39",
    "ke-q(epanechnikov": "#e07b39",
    "ke-q(softmax": "#c9a227",
    "ke-q(student": "#9467bd",
    "ke-q": "#3b82c4",
    "scq(2, step": "#b0894f",
    "scq(2": "#e07b39",
    "scq(3": "#c9a227",
    "dq": GREY,
    "wq": "#9467bd",
    "q": "#d1495b",
    "te(0.05)": "#86cfae",
    "te(0.15)": "#1f7a53",
    "te(0.2)": "#155c3e",
    "te": "#2f9e6e",
    "ke(epanechnikov": "#e07b39",
    "ke(beta": "#c9a227",
    "ke": "#3b82c4",
    "me": "#d1495b",
    "cve, consecutive": "#b0894f",
    "cve": GREY,
    "we": "#9467bd",
}
"""By the words that a label begins with; the first that fits. Mid-tones, which light and dark pages both carry."""
_DASHED = ("*", "beta 1", "te-q(0.5)", "step")
"""Marks of curves that would hide another."""
_OTHERS = ("#3b82c4", "#e07b39", "#9467bd")


def colour_of(label: str, position: int = 0) -> str:
    """The colour of an estimator, the same in every figure; other things take theirs by position."""
    found = (
        colour
        for start, colour in _COLOURS.items()
        if label.startswith(start) and not label[len(start) :][:1].isalpha()
    )
    return next(found, _OTHERS[position % len(_OTHERS)])


def canvas(rows: int, columns: int, *, width: float = 9.0, height: float = 2.6, **options: Any) -> tuple[Figure, Any]:
    """A figure with a grid of axes, always two-dimensional."""
    with own_style(_STYLE):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **options)
    for ax in axes.flat:
        ax.patch.set_alpha(0)
        ax.grid(alpha=0.25, lw=0.6)
        ax.set_axisbelow(True)
    return figure, axes


_DPI = 150
_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "text.parse_math": False,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def caption(axes: Axes, title: str, below: str = "") -> None:
    """A panel's title, flush left, and what its horizontal axis shows."""
    axes.set_title(title, loc="left", fontsize=9.5)
    if below:
        axes.set_xlabel(below)


def logarithmic(axis: Any) -> None:
    """A logarithmic axis with plain numbers at the powers of ten: labels are not mathematics here, whatever they hold."""
    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    axis.set_major_formatter(lambda value, _: f"{value:,g}" if value < 1e6 else f"{value:.0e}")
    axis.set_minor_formatter(lambda value, _: "")


def legend_below(figure: Figure, axes: Axes, columns: int = 6) -> None:
    """One legend for all panels, under them."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(columns, max(len(labels), 1)), frameon=False)


def line(
    axes: Axes,
    x: Any,
    y: Any,
    label: str,
    position: int = 0,
    *,
    low: Any = None,
    high: Any = None,
    marker: str = "",
    colour: str = "",
    style: str = "",
) -> None:
    """A labelled curve in the colour of its estimator, with its band where there is one; what would hide another is dashed."""
    colour = colour or colour_of(label, position)
    style = style or ("--" if any(mark in label for mark in _DASHED) else "-")
    axes.plot(x, y, color=colour, lw=1.5, ls=style, marker=marker, label=label)
    if low is not None:
        axes.fill_between(x, low, high, color=colour, alpha=0.2, lw=0)


def lay_out(figure: Figure) -> None:
    """Give all its parts their places, once for the several files that are made of it: that takes most of a file's time."""
    figure.set_dpi(_DPI)
    engine = figure.get_layout_engine()
    if engine is not None:  # by itself: to draw the figure for it would take half as long again
        engine.execute(figure)
    figure.set_layout_engine(None)  # or every file would begin with it anew


def save(figure: Figure, kind: str, salt: str) -> bytes:
    """The figure as the bytes of a file. The same figure gives the same bytes."""
    buffer = io.BytesIO()
    options = {"svg.hashsalt": salt, "svg.fonttype": "none", "text.parse_math": False}
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None, "ModDate": None}}.get(kind)
    with own_style(options):
        background = "white" if kind != "svg" else "none"
        figure.savefig(buffer, format=kind, dpi=_DPI, facecolor=background, metadata=metadata)
    return buffer.getvalue()


def inline_svg(figure: Figure, salt: str) -> str:
    """The figure as an SVG element whose ink is the page's text colour."""
    text = save(figure, "svg", salt).decode()
    return text[text.index("<svg") :].replace(INK, "currentColor")
