"""Samples that depend on each other (section 4.3): a correlated pair, and the statistic that knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...mev.processes import correlated_pair
from ..claims import Finding, Measured
from ..experiment import Results
from ..figures import canvas, caption
from ..tables import TableLayout
from .simulation import Curves, DependenceStudy, Settings, curves

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ESTIMATORS: dict[str, dict[str, Any]] = {name: {"method": name} for name in ("me", "cve", "te", "ke", "te*", "ke*")}
PAIRS = 300
"""Pairs in the sample to look at."""


class Correlation(DependenceStudy):
    """Bias and variance of the estimators, corrected and not, as the cross-sample correlation grows."""

    name = "correlation"
    title = "Cross-sample dependence: a correlated pair"
    section = "4.3"

    estimators = ESTIMATORS
    process = staticmethod(correlated_pair)

    def sample(self, settings: Settings, rng: np.random.Generator) -> pd.DataFrame:
        return _pairs(settings, rng)

    def sample_layout(self, settings: Settings) -> TableLayout:
        return TableLayout(PAIRS * len(settings.rhos), ("rho", "x", "y"), ("what",))

    def figures(self, results: Results[Settings]) -> dict[str, Figure]:
        return {"pairs": _draw_pairs(results), "curves": curves(results, list(ESTIMATORS))}


def _pairs(settings: Settings, rng: np.random.Generator) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for rho in settings.rhos:
        first, second = correlated_pair(rng, rho=rho, sigma=settings.sigma, n=PAIRS).values
        rows.append(pd.DataFrame({"what": "sample", "rho": rho, "x": first[0], "y": second[0]}))
    return pd.concat(rows, ignore_index=True)


def _draw_pairs(results: Results[Settings]) -> Figure:
    table = results.rows(what="sample")
    figure, axes = canvas(1, len(results.settings.rhos), sharex=True, sharey=True, width=10, height=2.7)
    for ax, (rho, rows) in zip(axes.flat, table.groupby("rho"), strict=True):
        ax.scatter(rows["x"], rows["y"], s=5, color="#3b82c4", alpha=0.7, lw=0)
        caption(ax, f"rho = {rho:g}", "X1")
    axes[0, 0].set_ylabel("X2")
    return figure


@Correlation.claim(
    "S13",
    "cross-sample correlation shrinks |bias| and variance of ME and DE, makes TE and KE underestimate with more variance; "
    "TE* and KE* repair it; at rho 0 they are TE and KE",
    "4.3",
)
def _s13(results: Results[Settings]) -> Finding:
    at, rhos = Curves(results), results.settings.rhos
    none, most = rhos[0], rhos[-1]
    margins: dict[str, Measured] = {}
    numbers: dict[str, Measured] = {}
    for name in ("me", "cve"):
        for quantity, word in (("bias", "|bias|"), ("variance", "variance")):
            change = at.size(none, name, quantity) - at.size(most, name, quantity)
            margins[f"fall of {word} of {name} from rho {none:g} to {most:g}, mean over mu1"] = Measured.mean(change)
    for name in ("te", "ke"):
        moved = at(none, name, "bias").mean(axis=1) - at(most, name, "bias").mean(axis=1)
        wider = at(most, name, "variance").mean(axis=1) - at(none, name, "variance").mean(axis=1)
        margins[f"fall of {name}'s bias, mean over mu1"] = Measured.mean(moved)
        margins[f"growth of {name}'s variance, mean over mu1"] = Measured.mean(wider)
        squared = {star: (at(most, star, "bias") ** 2).mean(axis=1) for star in (name, f"{name}*")}
        margins[f"mean squared bias saved by {name}* at rho {most:g}"] = Measured.mean(
            squared[name] - squared[f"{name}*"]
        )
        spared = at(most, name, "variance").mean(axis=1) - at(most, f"{name}*", "variance").mean(axis=1)
        margins[f"variance saved by {name}* at rho {most:g}, mean over mu1"] = Measured.mean(spared)
        change = at(most, name, "variance") - at(none, name, "variance")
        for k in (0, -1):
            where = f"from rho {none:g} to {most:g} at mu1 = {at.gaps[k]:g}"
            numbers[f"change of {name}'s variance {where}"] = Measured.mean(change[:, k])
        apart = np.abs(at(none, f"{name}*", "bias") - at(none, name, "bias")).max(axis=1)
        margins[f"{name}* and {name} agree at rho 0 within 0.02 standard errors"] = Measured.mean(0.02 - apart)
    for name in ESTIMATORS:
        for rho in rhos:
            numbers[f"bias of {name} at rho {rho:g}, mean over mu1"] = Measured.mean(at(rho, name, "bias").mean(axis=1))
            numbers[f"variance of {name} at rho {rho:g}, mean over mu1"] = Measured.mean(
                at(rho, name, "variance").mean(axis=1)
            )
    note = (
        "ME's variance grows with the correlation instead of shrinking: at equal means it is 1 - (1 - rho)/pi exactly. The "
        "maximum of two means that move together has less to choose from, and so averages less noise away. The variances of TE "
        "and KE grow where the means are close and shrink where they are far apart."
    )
    return Finding(margins, numbers, note)
