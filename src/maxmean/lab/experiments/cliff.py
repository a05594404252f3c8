"""Cliff Walking (section 7.3): returns and the start state's value over 3,000 episodes, under two exploration rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..claims import Finding, Measured
from ..errors import LabError
from ..experiment import Experiment, Results
from ..figures import GREY, canvas, caption, legend_below, line
from ..settings import Range, limited, within
from ..tables import TableLayout

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ...tabular import Algorithm, Schedule

ALGORITHMS = ("q", "dq", "wq", "scq(2)", "scq(3)", "te-q(0.05)", "te-q(0.1)", "te-q(0.2)", "ke-q")
RULES = ("constant", "annealed")


def make_algorithm(name: str, variance: float = 1.0, omega: float = 1.0) -> Algorithm:
    """An algorithm from the label that the tables use, such as ``te-q(0.05)`` or ``scq(2)``."""
    from ... import tabular

    kind, _, parameter = name.rstrip(")").partition("(")
    tracker = tabular.VarianceTracker(variance, omega, omega)
    match kind:
        case "q":
            return tabular.Q()
        case "dq":
            return tabular.DoubleQ()
        case "wq":
            return tabular.WeightedQ()
        case "scq":
            beta, _, previous = parameter.partition(", ")
            return tabular.SelfCorrectingQ(float(beta), previous or "update")
        case "te-q":
            return tabular.TEQ(alpha=float(parameter), tracker=tracker)
        case "ke-q":
            return tabular.KEQ(tracker=tracker)
    raise ValueError(f"no algorithm is called {name!r}")


def exploration(rule: str) -> Schedule:
    """Epsilon 0.1 always, or one over the root of the state's visits."""
    from ... import tabular

    return tabular.constant(0.1) if rule == "constant" else tabular.INVERSE_ROOT


@dataclass(frozen=True)
class Settings:
    """The paper: 500 runs of 3,000 episodes, learning rate 0.1 (100 + 1)/(100 + n)."""

    runs: int = 500
    blocks: int = 10
    episodes: int = 3_000
    window: int = 20
    """Episodes averaged into one row."""
    max_steps: int = 10_000

    def __post_init__(self) -> None:
        within(
            self,
            runs=Range(1, 10**7),
            blocks=Range(1, 1_000),
            episodes=Range(1, 10**6),
            window=Range(1, 10**6),
            max_steps=Range(1, 10**9),
        )
        if self.blocks > self.runs:
            raise LabError(f"blocks must be at most as many as runs, {self.runs:,}, not {self.blocks:,}")
        if self.episodes % self.window:
            raise LabError(f"episodes must be a multiple of window, {self.window:,}, not {self.episodes:,}")
        limited("blocks times episodes over window", self.blocks * self.episodes // self.window, 10**6)


class Cliff(Experiment[Settings]):
    """Return and largest value of the start state over training."""

    name = "cliff"
    title = "Cliff Walking: learning curves"
    section = "7.3"
    needs = ("numba", "tabular")
    packages = ("numba",)
    size = ("runs", "episodes")

    def settings(self, scale: str) -> Settings:
        return Settings() if scale == "paper" else Settings(runs=40, blocks=4, episodes=600)

    def parts(self, settings: Settings) -> Sequence[Mapping[str, Any]]:
        return [{"algorithm": name, "rule": rule} for name in ALGORITHMS for rule in RULES]

    def layout(self, settings: Settings, part: Mapping[str, Any]) -> TableLayout:
        rows = settings.blocks * settings.episodes // settings.window
        return TableLayout(rows, ("episode", "return", "value", "length", "block"), ("algorithm", "rule"))

    def compute(self, settings: Settings, part: Mapping[str, Any], rng: np.random.Generator) -> pd.DataFrame:
        import pandas as pd

        from ... import tabular

        world = tabular.cliff_walking()
        start = int(np.argmax(world.start))
        seed, size = int(rng.integers(2**62)), settings.runs // settings.blocks
        blocks = []
        for k in range(settings.blocks):
            found = tabular.learn(
                world,
                make_algorithm(part["algorithm"]),
                episodes=settings.episodes,
                runs=size,
                first_run=k * size,
                seed=seed,
                learning_rate=tabular.CLIFF_LEARNING_RATE,
                epsilon=exploration(part["rule"]),
                max_steps=settings.max_steps,
                watch_states=[start],
                threads=1,
            )
            columns = {
                "return": found.episodes["return"],
                "value": found.values["value"],
                "length": found.episodes["length"],
            }
            windows = {
                key: values.to_numpy().reshape(-1, settings.window).mean(axis=1) for key, values in columns.items()
            }
            last = np.arange(1, len(windows["return"]) + 1) * settings.window
            blocks.append(pd.DataFrame({"episode": last, **windows}).assign(block=k))
        return pd.concat(blocks, ignore_index=True).assign(**part)

    def figures(self, results: Results[Settings]) -> dict[str, Figure]:
        return {"curves": _curves(results)}


def _curves(results: Results[Settings]) -> Figure:
    figure, axes = canvas(2, 2, sharex=True, width=10, height=3.0)
    for column, rule in enumerate(RULES):
        for k, name in enumerate(ALGORITHMS):
            rows = results.rows(algorithm=name, rule=rule)
            means = rows.groupby("episode")[["return", "value"]].mean()
            line(axes[0, column], means.index, means["return"].clip(-120), name, k)
            line(axes[1, column], means.index, means["value"], name, k)
        epsilon = "epsilon = 0.1" if rule == "constant" else "epsilon = 1/sqrt(n(s))"
        caption(axes[0, column], f"return, {epsilon}")
        caption(axes[1, column], f"largest value of the start state, {epsilon}", "episode")
        axes[1, column].axhline(-11, color=GREY, lw=0.8)
    legend_below(figure, axes[0, 0])
    return figure


def _blocks(results: Results[Settings], name: str, rule: str, column: str, last: int | None) -> np.ndarray:
    """Mean of a column over the last so many episodes, or over all, one number a block."""
    table = results.rows(algorithm=name, rule=rule)
    if last is not None:
        table = table[table["episode"] > results.settings.episodes - last]
    return table.groupby("block")[column].mean().to_numpy()


def _apart(results: Results[Settings], high: str, low: str, rule: str, column: str, last: int | None) -> Measured:
    """How far one algorithm's mean lies above another's; their runs are independent."""
    first, second = (_blocks(results, name, rule, column, last) for name in (high, low))
    return Measured.difference(first, second)


@Cliff.claim("W1", "TE-Q(0.05), KE-Q and WQ reach the highest returns for both exploration rules", "7.3")
def _w1(results: Results[Settings]) -> Finding:
    margins, numbers = {}, {}
    best, rest = ("te-q(0.05)", "ke-q", "wq"), ("q", "dq", "scq(2)", "scq(3)")
    for rule in RULES:
        for name in best:
            gaps = {rival: _apart(results, name, rival, rule, "return", 100) for rival in rest}
            closest = min(gaps, key=lambda rival: gaps[rival].value)
            margins[f"{rule}: return of {name} minus the best of the rest's ({closest}), last 100 episodes"] = gaps[
                closest
            ]
        for name in ALGORITHMS:
            numbers[f"{rule}: return of {name}, last 100 episodes"] = Measured.mean(
                _blocks(results, name, rule, "return", 100)
            )
    note = (
        "WQ follows D'Eramo et al. (2016) with 100 draws, acts epsilon-greedily on its values like the others, and starts "
        "with very wide standard errors; the paper does not say how it acts nor how it starts."
    )
    return Finding(margins, numbers, note)


@Cliff.claim("W2", "Q's start-state value lies highest, DQ underestimates severely; the optimum is -11", "7.3")
def _w2(results: Results[Settings]) -> Finding:
    margins, numbers = {}, {}
    for rule in RULES:
        gaps = {name: _apart(results, "q", name, rule, "value", None) for name in ALGORITHMS if name != "q"}
        margins[f"{rule}: q's value of the start above the highest other, mean over training"] = min(
            gaps.values(), key=lambda m: m.high
        )
        below = {name: _apart(results, name, "dq", rule, "value", None) for name in ALGORITHMS if name != "dq"}
        margins[f"{rule}: dq's value below the lowest other"] = min(below.values(), key=lambda m: m.high)
        dq = Measured.mean(-11 - _blocks(results, "dq", rule, "value", 100) - 1)
        margins[f"{rule}: dq more than 1 below the optimum -11 at the end"] = dq
        for name in ALGORITHMS:
            numbers[f"{rule}: value of the start, {name}, last 100 episodes"] = Measured.mean(
                _blocks(results, name, rule, "value", 100)
            )
    return Finding(margins, numbers)


@Cliff.claim("W3", "every algorithm returns more with epsilon(s) = 1/sqrt(n(s)) than with 0.1", "7.3")
def _w3(results: Results[Settings]) -> Finding:
    margins = {}
    for name in ALGORITHMS:
        annealed, constant = (_blocks(results, name, rule, "return", None) for rule in ("annealed", "constant"))
        margins[f"return of {name}, annealed minus constant, mean over training"] = Measured.difference(
            annealed, constant
        )
    return Finding(margins)
