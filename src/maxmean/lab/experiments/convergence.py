"""Convergence of TE-Q and KE-Q (Theorem 1): the error against Q* on random MDPs, and what happens without a condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..claims import Finding, Measured
from ..errors import LabError
from ..experiment import Experiment, Results
from ..figures import canvas, caption, line, logarithmic
from ..settings import Range, limited, within
from ..tables import TableLayout

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

KERNELS = ("te-q(0.05)", "te-q(0.2)", "ke-q(gaussian)", "ke-q(epanechnikov)", "ke-q(softmax)", "ke-q(student-t)")
CONDITIONS = ("all conditions", "constant learning rate", "no exploration")


@dataclass(frozen=True)
class Settings:
    """Random MDPs with noisy rewards, solved exactly; learning rates n^-power, every action equally likely."""

    problems: int = 20
    states: int = 10
    actions: int = 4
    branching: int = 3
    discount: float = 0.8
    power: float = 0.7
    steps: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)

    def __post_init__(self) -> None:
        within(
            self,
            problems=Range(1, 10_000),
            states=Range(1, 1_000),
            actions=Range(1, 100),
            branching=Range(1, 1_000),
            discount=Range(0, 0.999),
            power=Range(0, 10),
            steps=Range(1, 10**12, entries=(2, 100)),
        )
        if self.branching > self.states:
            raise LabError(f"branching must be at most as many as states, {self.states:,}, not {self.branching:,}")
        limited("states times actions times branching", self.states * self.actions * self.branching, 10**6)


class Convergence(Experiment[Settings]):
    """Largest error of the learned values after more and more steps."""

    name = "convergence"
    title = "Convergence on random MDPs"
    section = "5.1, appendix D"
    needs = ("numba", "tabular")
    packages = ("numba",)
    size = ("problems", "steps")

    def settings(self, scale: str) -> Settings:
        return Settings() if scale == "paper" else Settings(problems=5, steps=(1_000, 10_000, 100_000))

    def parts(self, settings: Settings) -> Sequence[Mapping[str, Any]]:
        return [{"algorithm": name, "condition": CONDITIONS[0]} for name in KERNELS] + [
            {"algorithm": "ke-q(gaussian)", "condition": condition} for condition in CONDITIONS[1:]
        ]

    def layout(self, settings: Settings, part: Mapping[str, Any]) -> TableLayout:
        rows = settings.problems * len(settings.steps)
        return TableLayout(rows, ("problem", "steps", "error"), ("algorithm", "condition"))

    def compute(self, settings: Settings, part: Mapping[str, Any], rng: np.random.Generator) -> pd.DataFrame:
        import pandas as pd

        from ... import tabular

        rate = tabular.constant(0.2) if part["condition"] == CONDITIONS[1] else tabular.polynomial(settings.power)
        epsilon = 0.0 if part["condition"] == CONDITIONS[2] else 1.0
        rows = []
        for problem in range(settings.problems):
            world = tabular.random_mdp(
                settings.states,
                settings.actions,
                branching=settings.branching,
                discount=settings.discount,
                seed=problem,
                noise=1.0,
            )
            exact = tabular.solve(world).q
            seed = int(rng.integers(2**62))
            for steps in settings.steps:
                found = tabular.learn(
                    world,
                    _algorithm(part["algorithm"]),
                    episodes=1,
                    seed=seed,
                    learning_rate=rate,
                    epsilon=epsilon,
                    max_steps=steps,
                    threads=1,
                )
                rows.append({"problem": problem, "steps": steps, "error": float(np.abs(found.q - exact).max())})
        return pd.DataFrame(rows).assign(**part)

    def figures(self, results: Results[Settings]) -> dict[str, Figure]:
        figure, axes = canvas(1, 2, sharey=True, width=10, height=3.2)
        for k, name in enumerate(KERNELS):
            _draw(axes[0, 0], results, name, CONDITIONS[0], name, k)
        for k, condition in enumerate(CONDITIONS):
            _draw(axes[0, 1], results, "ke-q(gaussian)", condition, condition, k)
        caption(axes[0, 0], "largest error of Q, geometric mean over problems", "steps")
        caption(axes[0, 1], "KE-Q (Gaussian) with a condition dropped", "steps")
        for ax in axes.flat:
            logarithmic(ax.xaxis)
            logarithmic(ax.yaxis)
            ax.legend(frameon=False, fontsize=8)
        return {"errors": figure}


def _algorithm(name: str) -> Any:
    from ... import tabular
    from ...mev.methods import parse_kernel
    from .cliff import make_algorithm

    if name.startswith("ke-q("):
        return tabular.KEQ(kernel=parse_kernel(name.removeprefix("ke-q(").rstrip(")")))
    return make_algorithm(name)


def _errors(results: Results[Settings], name: str, condition: str, steps: int) -> np.ndarray:
    table = results.table
    chosen = (table["algorithm"] == name) & (table["condition"] == condition) & (table["steps"] == steps)
    return np.log10(table.loc[chosen].sort_values("problem")["error"].to_numpy())


def _draw(axes: Any, results: Results[Settings], name: str, condition: str, label: str, k: int) -> None:
    steps = results.settings.steps
    found = [Measured.mean(_errors(results, name, condition, n)) for n in steps]
    low, high = [10**m.low for m in found], [10**m.high for m in found]
    line(axes, steps, [10**m.value for m in found], label, k, low=low, high=high)


@Convergence.claim("T1", "TE/KE-Q converges to Q* on finite MDPs with discount below 1 and Robbins-Monro rates", "5.1")
def _t1(results: Results[Settings]) -> Finding:
    steps = results.settings.steps
    margins, numbers = {}, {}
    for name in KERNELS:
        falls = [
            Measured.mean(_errors(results, name, CONDITIONS[0], a) - _errors(results, name, CONDITIONS[0], b))
            for a, b in pairwise(steps)
        ]
        margins[f"{name}: fall of log10 error from each budget to the next, least"] = min(falls, key=lambda m: m.high)
        last = Measured.mean(_errors(results, name, CONDITIONS[0], steps[-1]))
        numbers[f"{name}: largest error after {steps[-1]:,} steps"] = Measured(
            10**last.value, 10**last.low, 10**last.high
        )
    for condition in CONDITIONS[1:]:
        without, whole = (_errors(results, "ke-q(gaussian)", c, steps[-1]) for c in (condition, CONDITIONS[0]))
        margins[f"{condition}: log10 error above that with all conditions, at the end"] = Measured.mean(without - whole)
        last = Measured.mean(_errors(results, "ke-q(gaussian)", condition, steps[-1]))
        numbers[f"{condition}: largest error after {steps[-1]:,} steps"] = Measured(
            10**last.value, 10**last.low, 10**last.high
        )
    return Finding(
        margins,
        numbers,
        "Convergence itself cannot be observed in finite time; what is shown is an error that keeps falling.",
    )
