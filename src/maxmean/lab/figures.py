"""How figures look: one style, colours that keep their meaning, and vector graphics that follow light and dark pages."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#000000"
"""Text and axes; a page replaces it by its own text colour."""

COLOURS = {
    "me": "#d1495b",
    "de": "#8a8f98",
    "cve": "#8a8f98",
    "we": "#9467bd",
    "ke": "#3b82c4",
    "te": "#2f9e6e",
}
_SHADES = {"te(0.05)": "#7cc8a4", "te(0.1)": "#2f9e6e", "te(0.15)": "#1f7a53", "te(0.2)": "#17603f"}
_OTHERS = ("#e07b39", "#c9a227", "#1d9aa8", "#b5637c", "#6b7f3a")


def colour_of(label: str, position: int = 0) -> str:
    """The colour of an estimator, the same in every figure."""
    plain = label.replace("*", "")
    return _SHADES.get(plain) or COLOURS.get(plain) or _OTHERS[position % len(_OTHERS)]


def canvas(rows: int, columns: int, *, width: float = 9.0, height: float = 2.6, **options: Any) -> tuple[Figure, Any]:
    """A figure with a grid of axes, always two-dimensional."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **options)
    for ax in axes.flat:
        ax.patch.set_alpha(0)
        ax.grid(alpha=0.25, lw=0.6)
        ax.set_axisbelow(True)
    return figure, axes


_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "figure.facecolor": "none",
    "text.parse_math": False,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


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
) -> None:
    """A labelled curve in the colour of its estimator, with its band where there is one; starred ones are dashed."""
    colour = colour_of(label, position)
    axes.plot(x, y, color=colour, lw=1.5, ls="--" if label.endswith("*") else "-", label=label)
    if low is not None:
        axes.fill_between(x, low, high, color=colour, alpha=0.2, lw=0)


def save(figure: Figure, kind: str, salt: str) -> bytes:
    """The figure as the bytes of a file. The same figure gives the same bytes."""
    import matplotlib as mpl

    buffer = io.BytesIO()
    options = {"svg.hashsalt": salt, "svg.fonttype": "none", "text.parse_math": False}
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None, "ModDate": None}}.get(kind)
    with mpl.rc_context(options):  # type: ignore[arg-type]
        background = "white" if kind != "svg" else "none"
        figure.savefig(buffer, format=kind, dpi=150, facecolor=background, metadata=metadata)
    return buffer.getvalue()


def inline_svg(figure: Figure, salt: str) -> str:
    """The figure as an SVG element whose ink is the page's text colour."""
    text = save(figure, "svg", salt).decode()
    return text[text.index("<svg") :].replace(INK, "currentColor")
