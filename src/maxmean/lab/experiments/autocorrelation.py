"""Samples that depend on their own past (section 4.2): an AR(1) process in each option."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ...mev.processes import autocorrelated
from ..claims import Finding, Measured
from ..errors import LabError
from ..experiment import Results
from ..figures import canvas, caption, line
from ..tables import TableLayout
from .simulation import Curves, DependenceStudy, Settings, curves

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ESTIMATORS: dict[str, dict[str, Any]] = {
    "me": {"method": "me"},
    "cve": {"method": "cve"},
    "cve, consecutive halves": {"method": "cve", "consecutive": True},
    "te(0.05)": {"method": "te", "alpha": 0.05},
    "te(0.1)": {"method": "te", "alpha": 0.1},
    "te(0.2)": {"method": "te", "alpha": 0.2},
    "ke": {"method": "ke"},
}


OF_THE_PAPER = tuple(name for name in ESTIMATORS if name != "cve, consecutive halves")


class Autocorrelation(DependenceStudy):
    """Bias and variance of the estimators as the in-sample correlation grows."""

    name = "autocorrelation"
    title = "In-sample dependence: AR(1) processes"
    section = "4.2"

    estimators = ESTIMATORS
    process = staticmethod(autocorrelated)

    def sample(self, settings: Settings, rng: np.random.Generator) -> pd.DataFrame:
        return _paths(settings, rng)

    def sample_layout(self, settings: Settings) -> TableLayout:
        return TableLayout(2 * settings.n * len(settings.rhos), ("rho", "option", "x", "y"), ("what",))

    def check(self, settings: Settings) -> None:
        if min(settings.rhos) < 0:
            raise LabError(f"each entry of rhos must be a number from 0 to 0.999 here, not {min(settings.rhos)}")

    def figures(self, results: Results[Settings]) -> dict[str, Figure]:
        return {"paths": _draw_paths(results), "curves": curves(results, list(ESTIMATORS))}


def _paths(settings: Settings, rng: np.random.Generator) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for rho in settings.rhos:
        sample = autocorrelated(rng, rho=rho, sigma=settings.sigma, n=settings.n)
        for option, values in enumerate(sample.values):
            time = np.arange(1, settings.n + 1)
            rows.append(pd.DataFrame({"what": "sample", "rho": rho, "option": option + 1, "x": time, "y": values[0]}))
    return pd.concat(rows, ignore_index=True)


def _draw_paths(results: Results[Settings]) -> Figure:
    table = results.rows(what="sample")
    figure, axes = canvas(1, len(results.settings.rhos), sharey=True, width=10, height=2.2)
    for ax, (rho, rows) in zip(axes.flat, table.groupby("rho"), strict=True):
        for k, (option, path) in enumerate(rows.groupby("option")):
            line(ax, path["x"], path["y"], f"X{int(option)}", k)
        caption(ax, f"one sample, rho = {rho:g}", "t")
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure


@Autocorrelation.claim(
    "S12", "in-sample correlation raises |bias| and variance of every estimator and keeps their ranking", "4.2"
)
def _s12(results: Results[Settings]) -> Finding:
    at, rhos = Curves(results), results.settings.rhos
    margins: dict[str, Measured] = {}
    numbers: dict[str, Measured] = {}
    for name in OF_THE_PAPER:
        for quantity, word in (("bias", "|bias|"), ("variance", "variance")):
            sizes = {rho: at.size(rho, name, quantity) for rho in rhos}
            growth = [Measured.mean(sizes[b] - sizes[a]) for a, b in pairwise(rhos)]
            margins[f"{word} of {name}, least growth from one rho to the next"] = min(growth, key=lambda m: m.high)
            for rho in rhos:
                numbers[f"{word} of {name} at rho {rho:g}, mean over mu1"] = Measured.mean(sizes[rho])
    for rho in rhos:
        apart = at(rho, "cve, consecutive halves", "bias").mean(axis=1)
        numbers[f"bias of cve with consecutive halves at rho {rho:g}, mean over mu1"] = Measured.mean(apart)
    margins |= _ranking(at, rhos)
    changed = [name for name, margin in margins.items() if margin.high < 0]
    note = (
        "Means over mu1 in [0, 5], intervals over independent runs. "
        + ("What does not hold: " + "; ".join(changed) + ". " if changed else "")
        + "A bias that is negative without correlation and positive with much of it shrinks on its way through zero. Random "
        "halves of an autocorrelated sample depend on each other, which is why CVE comes to overestimate; with consecutive "
        "halves, which the paper does not consider, it does not."
    )
    return Finding(margins, numbers, note)


def _ranking(at: Curves, rhos: Sequence[float]) -> dict[str, Measured]:
    """Neighbours in the order without correlation, and how far apart they stay at the rho where that is least."""
    margins = {}
    for quantity in ("bias", "variance"):
        mean = {name: at(rhos[0], name, quantity).mean() for name in OF_THE_PAPER}
        for high, low in pairwise(sorted(OF_THE_PAPER, key=lambda name: -mean[name])):
            gaps = {rho: Measured.mean((at(rho, high, quantity) - at(rho, low, quantity)).mean(axis=1)) for rho in rhos}
            least = min(rhos, key=lambda rho: gaps[rho].high)
            margins[f"ranking: {quantity} of {high} above {low}'s, least (rho {least:g})"] = gaps[least]
    return margins
