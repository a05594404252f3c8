"""The kernels that minimise squared bias on two Gaussians (appendix C)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ...mev import Beta, Epanechnikov, Gaussian, Indicator, Kernel, theory
from ...mev.tuning import GaussianPairs, tune
from ..claims import Finding, Measured
from ..experiment import Experiment, Results
from ..figures import canvas, caption, legend_below, line
from ..settings import Range, within
from ..tables import TableLayout

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

FAMILIES: dict[str, Any] = {"te": Indicator, "gaussian": Gaussian, "beta": Beta}
ORIGINALS: dict[str, Kernel] = {
    "te(0.1)": Indicator(0.1),
    "ke(gaussian)": Gaussian(),
    "ke(epanechnikov)": Epanechnikov(),
    "ke(beta)": Beta(2.0, 0.5),
}

QUANTITIES = ("bias", "variance", "mse")
CURVE = 101
"""Values of mu1 at which they are drawn."""


@dataclass(frozen=True)
class Settings:
    """The paper's family of problems: mu1 on a grid of [0, 5]. It does not print the grid, so two are tried."""

    grids: tuple[int, ...] = (51, 101)
    beta_bounds: tuple[float, ...] = (1e2, 1e3, 1e4)
    """How large the beta kernel's parameters may grow."""
    points: int = 301
    """Values of T at which the kernels are drawn."""

    def __post_init__(self) -> None:
        within(self, grids=Range(2, 10_001), beta_bounds=Range(1, 1e6), points=Range(2, 100_001))


class TunedKernels(Experiment[Settings]):
    """Optimal parameters, the kernels' shapes and their curves."""

    name = "kernels"
    title = "Kernels tuned to zero bias"
    section = "appendix C"
    size = ("grids", "beta_bounds")

    def settings(self, scale: str) -> Settings:
        return Settings() if scale == "paper" else Settings(grids=(51,), beta_bounds=(1e2,), points=151)

    def parts(self, settings: Settings) -> Sequence[Mapping[str, Any]]:
        simple = [
            {"family": name, "grid": grid, "bound": 0.0} for name in ("te", "gaussian") for grid in settings.grids
        ]
        return simple + [
            {"family": "beta", "grid": settings.grids[0], "bound": bound} for bound in settings.beta_bounds
        ]

    def layout(self, settings: Settings, part: Mapping[str, Any]) -> TableLayout:
        rows = settings.points + len(QUANTITIES) * CURVE
        return TableLayout(rows, ("x", "y", "grid", "bound", "first", "loss"), ("what", "family"), gaps=("second",))

    def compute(self, settings: Settings, part: Mapping[str, Any], rng: np.random.Generator) -> pd.DataFrame:
        import pandas as pd

        problems = GaussianPairs(tuple(float(gap) for gap in np.linspace(0, 5, part["grid"])))
        bounds = [(0.1, part["bound"])] * 2 if part["bound"] else None
        best = tune(FAMILIES[part["family"]], problems=problems, bounds=bounds)
        first, second = (*best.parameters, float("nan"))[:2]
        t = np.linspace(-5, 0, settings.points)
        shape = pd.DataFrame({"what": "shape", "x": t, "y": best.kernel(t) / best.kernel(np.zeros(1))[0]})
        mu1 = np.linspace(0, 5, CURVE)
        moments = theory.gaussian_pair("ke", mu=(mu1, 0.0), kernel=best.kernel)
        curves = zip(QUANTITIES, (moments.bias, moments.variance, moments.mse), strict=True)
        rows = [shape] + [pd.DataFrame({"what": quantity, "x": mu1, "y": y}) for quantity, y in curves]
        return pd.concat(rows, ignore_index=True).assign(
            family=part["family"], grid=part["grid"], bound=part["bound"], first=first, second=second, loss=best.loss
        )

    def figures(self, results: Results[Settings]) -> dict[str, Figure]:
        return {"shapes": _shapes(results), "curves": _curves(results)}


def _labels(results: Results[Settings]) -> dict[str, pd.DataFrame]:
    """The tuned kernels on the first grid, the beta kernel with the most room, by a label with their parameters."""
    table, settings = results.table, results.settings
    found = {}
    for family in FAMILIES:
        bound = settings.beta_bounds[-1] if family == "beta" else 0.0
        rows = table[(table["family"] == family) & (table["grid"] == settings.grids[0]) & (table["bound"] == bound)]
        numbers = [f"{value:.3g}" for value in rows.iloc[0][["first", "second"]] if np.isfinite(value)]
        label = f"te({numbers[0]})" if family == "te" else f"ke({family} {', '.join(numbers)})"
        found[f"{label}, tuned"] = rows
    return found


def _shapes(results: Results[Settings]) -> Figure:
    figure, axes = canvas(1, 2, sharey=True, height=3.0)
    t = np.linspace(-5, 0, 501)
    for k, (label, kernel) in enumerate(ORIGINALS.items()):
        line(axes[0, 0], t, kernel(t) / kernel(np.zeros(1))[0], label, k)
    for k, (label, rows) in enumerate(_labels(results).items()):
        shape = rows[rows["what"] == "shape"]
        line(axes[0, 1], shape["x"], shape["y"], label, k)
    for ax, title in zip(axes.flat, ("as in section 4.1", "tuned"), strict=True):
        caption(ax, f"kernel / kernel(0), {title}", "T")
        ax.legend(frameon=False, fontsize=8)
    return figure


def _curves(results: Results[Settings]) -> Figure:
    figure, axes = canvas(1, 3, sharex=True)
    for ax, quantity in zip(axes.flat, QUANTITIES, strict=True):
        for k, (label, rows) in enumerate(_labels(results).items()):
            part = rows[rows["what"] == quantity]
            line(ax, part["x"], part["y"], label, k)
        caption(ax, quantity, "mu1 - mu2")
    legend_below(figure, axes[0, 0])
    return figure


@TunedKernels.claim(
    "S11",
    "squared bias is least for scale 0.84 and for alpha 0.14; the best beta kernel degenerates to the TE's step",
    "C",
)
def _s11(results: Results[Settings]) -> Finding:
    rows = results.table.drop_duplicates(["family", "grid", "bound"]).set_index(["family", "grid", "bound"])
    settings = results.settings
    grid = settings.grids[0]
    scale, alpha = rows.loc[("gaussian", grid, 0.0), "first"], rows.loc[("te", grid, 0.0), "first"]
    te_loss = rows.loc[("te", grid, 0.0), "loss"]
    betas = [rows.loc[("beta", grid, bound)] for bound in settings.beta_bounds]
    widths, excess = [_beta_width(b["first"], b["second"]) for b in betas], [b["loss"] / te_loss - 1 for b in betas]
    shrinking = [a - b for values in (widths, excess) for a, b in pairwise(values)]
    margins = {
        "scale within rounding of 0.84": Measured.exact(0.005 - abs(scale - 0.84)),
        "alpha within rounding of 0.14": Measured.exact(0.005 - abs(alpha - 0.14)),
        "beta kernel: width and excess loss shrink as it may grow": Measured.exact(min(shrinking, default=0.0)),
    }
    numbers = {
        **{f"best scale, {g} gaps": Measured.exact(rows.loc[("gaussian", g, 0.0), "first"]) for g in settings.grids},
        **{f"best alpha, {g} gaps": Measured.exact(rows.loc[("te", g, 0.0), "first"]) for g in settings.grids},
    }
    for bound, width, more in zip(settings.beta_bounds, widths, excess, strict=True):
        numbers[f"width of the beta kernel's step, parameters up to {bound:g}"] = Measured.exact(width)
        numbers[f"its loss over the best te's, parameters up to {bound:g}"] = Measured.exact(more)
    finer = [
        f"on {g} gaps they are {rows.loc[('gaussian', g, 0.0), 'first']:.3f} and {rows.loc[('te', g, 0.0), 'first']:.3f}"
        for g in settings.grids[1:]
    ]
    note = "; ".join(["The optima depend on how finely [0, 5] is divided, which the paper does not say", *finer]) + "."
    return Finding(margins, numbers, note)


def _beta_width(a: float, b: float) -> float:
    """Standard deviation of the beta distribution, stretched to [-5, 0]."""
    return float(5 * np.sqrt(a * b / ((a + b) ** 2 * (a + b + 1))))
