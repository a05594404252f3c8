"""Maps of estimators: which has the least error in which problem, and what the usual choice loses there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .figures import GREY, canvas, caption, colour_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

USUAL = "ke"
"""The estimator whose loss is shown where another is better."""
_WORDS = {
    "me": "me: the largest mean",
    "ae": "ae: the average of all",
    "de": "de: one half picks",
    "cve": "cve: halves pick in turn",
    "we": "we: weighted by P(best)",
    "mme": "mme: the largest of minima",
    "te": "te: the average of the race",
    "ke": "ke: weighted by kernel",
}


def draw_map(rows: Mapping[str, Mapping[str, pd.DataFrame]], x: str, y: str) -> Figure:
    """Rows of panels by their headings. A panel has the errors by value of y and of x (the index) and estimator (the columns).

    A cell has the estimator with the least error in its colour, and below it how much larger the error of ke is.
    """
    import pandas as pd
    from matplotlib.patches import Patch

    every = pd.concat([errors for panels in rows.values() for errors in panels.values()])
    down, across = (every.index.unique(level).size for level in (0, 1))
    columns = max(map(len, rows.values()))
    small = across * columns > 22  # or the page would make all of it smaller
    wide, high = (0.33, 0.31) if small else (0.44, 0.42)
    figure, axes = canvas(
        len(rows),
        columns,
        sharey=True,
        width=(0.9 if small else 1.2) + wide * across * columns,
        height=0.9 / len(rows) ** 0.5 + high * down,
    )
    for k, (heading, panels) in enumerate(rows.items()):
        for ax, (title, errors) in zip(axes[k], panels.items(), strict=True):
            _panel(ax, errors, small=small)
            caption(ax, f"\n{title}" if heading else title, x if k == len(rows) - 1 else "")
        above = {"textcoords": "offset points", "fontsize": 9.5, "fontweight": "bold"}
        first = axes[k, 0].annotate(heading, (0, 1), (0, 19), xycoords="axes fraction", **above)
        first.set_in_layout(False)  # it may reach over the next panels
        axes[k, 0].set_ylabel(y)
    there = [name for name in every.columns if name in set(every.idxmin(axis=1))]
    handles = [Patch(color=_colour(name), label=_WORDS[name]) for name in there]
    handles.append(Patch(color="none", label=f"+9%: how much larger the error of {USUAL} is"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3 if small else 5, frameon=False, fontsize=8.5)
    return figure


def _panel(ax: Axes, errors: pd.DataFrame, *, small: bool) -> None:
    from matplotlib.colors import to_rgb

    ys, xs = (list(errors.index.unique(level)) for level in (0, 1))
    best = errors.idxmin(axis=1).unstack().loc[ys, xs].to_numpy()
    loss = (errors[USUAL] / errors.min(axis=1) - 1).unstack().loc[ys, xs].to_numpy()
    ax.pcolormesh([[to_rgb(_colour(name)) for name in row] for row in best], edgecolors="white", lw=1.2)
    middle: dict[str, Any] = {"ha": "center", "va": "center", "color": "white", "in_layout": False}
    for y, x in np.ndindex(best.shape):
        usual = best[y, x] == USUAL
        centre = x + 0.5, y + 0.5 + 0.17 * (not usual)
        ax.text(*centre, best[y, x], fontsize=7 if small else 8.5, fontweight="bold", **middle)
        if not usual:
            ax.text(x + 0.5, y + 0.26, f"+{loss[y, x]:.0%}", fontsize=6 if small else 6.5, **middle)
    ax.set_xticks(np.arange(len(xs)) + 0.5, [_short(value) for value in xs])
    ax.set_yticks(np.arange(len(ys)) + 0.5, [_short(value) for value in ys])
    ax.tick_params(length=0, labelsize=7.5 if small else 9)
    ax.grid(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)


def _short(value: float) -> str:
    """A number that fits below a cell.

    >>> [_short(value) for value in (0.25, 200, 30_000, 1_000_000)]
    ['0.25', '200', '30k', '1M']
    """
    unit = next((u for u in ((1e6, "M"), (1e3, "k")) if value >= u[0]), (1, ""))
    return f"{value / unit[0]:g}{unit[1]}"


def _colour(name: str) -> str:
    return {"ae": GREY, "mme": "#c9a227", "de": "#b0894f", "cve": "#7a8f2a"}.get(name) or colour_of(name)
