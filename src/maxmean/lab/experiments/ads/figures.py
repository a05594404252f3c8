"""The ads' figures: what the MSE consists of in the six settings, and who has the least of it over the region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...experiment import Results
from ...figures import canvas, caption, colour_of
from ...maps import draw_map
from .settings import PLACES, REGION, Cell, Settings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def bars(results: Results[Settings], estimators: Sequence[str]) -> Figure:
    """Squared bias and variance stacked to the MSE, one panel a setting."""
    names = list(results.settings.problems())[1:]
    figure, axes = canvas(2, 3, width=10, height=2.7)
    for ax, name in zip(axes.flat, [names[k] for k in (0, 2, 4, 1, 3, 5)], strict=True):
        for k, label in enumerate(estimators):
            rows = results.rows(problem=name, estimator=label)
            bias, squared = rows["error"].mean(), rows["squared"].mean()
            colour = colour_of(label.removesuffix("(exact)"))
            ax.bar(k, bias**2, color=colour, alpha=0.45, hatch="//", lw=0)
            ax.bar(k, squared - bias**2, bottom=bias**2, color=colour, lw=0)
        ax.set_xticks(range(len(estimators)), [label.replace("(exact)", "\nexact") for label in estimators])
        caption(ax, f"MSE, {name}  (hatched: squared bias)")
        ax.ticklabel_format(axis="y", scilimits=(0, 0))
    return figure


def errors_of(results: Results[Settings]) -> pd.DataFrame:
    """Root mean squared errors in the region, one row a setting and one column an estimator."""
    rows = results.rows(problem=REGION)
    cells = rows.groupby([*Cell._fields, "estimator"], sort=False)["squared"].mean()
    return np.sqrt(cells).unstack("estimator", sort=False)


def region_map(results: Results[Settings]) -> Figure:
    """A row of panels for where the rates lie, and a panel for each upper limit."""
    settings, errors = results.settings, errors_of(results)
    rows = {
        PLACES[places]: {f"rates up to {high:g}": errors.loc[places].loc[high] for high in settings.region_highest}
        for places in settings.region_places
    }
    return draw_map(rows, "customers", "ads")
