"""The maximisation-bias example (section 7.2): going left looks good for as long as the values of B are overestimated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..claims import Finding, Measured
from ..errors import LabError
from ..experiment import Experiment, Results
from ..figures import GREY, canvas, caption, legend_below, line, logarithmic
from ..settings import Range, limited, within
from ..tables import TableLayout

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
ALGORITHMS = ("q", "dq", *(f"te-q({alpha:g})" for alpha in ALPHAS), "ke-q")


LAST_EPISODES = slice(-10, None)
"""Those whose mean is what an algorithm ends with."""


@dataclass(frozen=True)
class Settings:
    """Discount 1, epsilon 0.1, learning rate 0.1, as in the paper."""

    runs: int = 100_000
    blocks: int = 10
    """Independent groups of runs; their spread gives the intervals."""
    episodes: int = 500
    actions: int = 8
    rate: float = 0.1
    epsilon: float = 0.1
    variance: float = 1.0
    """Initial process variance of TE-Q and KE-Q, which the paper leaves open."""
    other_variances: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0)
    other_omegas: tuple[float, ...] = (0.1, 1.0)
    other_runs: int = 20_000
    """Runs for each combination of initial values in the study of their influence."""

    def __post_init__(self) -> None:
        variance = Range(1e-9, 1e9, entries=(1, 20))
        within(
            self,
            runs=Range(1, 10**7),
            blocks=Range(1, 1_000),
            episodes=Range(1, 10**6),
            actions=Range(1, 1_000),
            rate=Range(1e-6, 1),
            epsilon=Range(0, 1),
            variance=variance,
            other_variances=variance,
            other_omegas=Range(1e-6, 1, entries=(1, 20)),
            other_runs=Range(1, 10**7),
        )
        if self.blocks > min(self.runs, self.other_runs):
            raise LabError(f"blocks must be at most as many as runs and other_runs, not {self.blocks:,}")
        limited("blocks times episodes", self.blocks * self.episodes, 10**6)


class MaximizationBias(Experiment[Settings]):
    """How often the agent goes left, what it believes left to be worth, and how many means TE-Q averages."""

    name = "maximization-bias"
    title = "The maximisation-bias example"
    section = "7.2"
    needs = ("numba", "tabular")
    packages = ("numba",)
    size = ("runs", "episodes", "other_runs")

    def settings(self, scale: str) -> Settings:
        if scale == "paper":
            return Settings()
        return Settings(runs=5_000, blocks=5, other_variances=(0.1, 1.0, 10.0), other_omegas=(1.0,), other_runs=2_000)

    def parts(self, settings: Settings) -> Sequence[Mapping[str, Any]]:
        curves = [{"what": "curve", "algorithm": name} for name in ALGORITHMS]
        others = [
            {"what": "initial values", "algorithm": name, "variance": variance, "omega": omega}
            for name in ("te-q(0.05)", "te-q(0.1)", "te-q(0.4)", "ke-q")
            for variance in settings.other_variances
            for omega in settings.other_omegas
        ]
        return [*curves, {"what": "identity"}, *others]

    def layout(self, settings: Settings, part: Mapping[str, Any]) -> TableLayout:
        if part["what"] == "curve":
            rows = settings.blocks * settings.episodes
            return TableLayout(rows, ("episode", "left", "value", "block"), ("what", "algorithm"), gaps=("averaged",))
        if part["what"] == "identity":
            return TableLayout(1, ("runs", "different"), ("what",))
        return TableLayout(settings.blocks, ("block", "left", "highest", "variance", "omega"), ("what", "algorithm"))

    def compute(self, settings: Settings, part: Mapping[str, Any], rng: np.random.Generator) -> pd.DataFrame:
        import pandas as pd

        seed = int(rng.integers(2**62))
        if part["what"] == "curve":
            size = settings.runs // settings.blocks
            blocks = [
                _curve(settings, part["algorithm"], seed, size, k * size).assign(block=k)
                for k in range(settings.blocks)
            ]
            return pd.concat(blocks, ignore_index=True).assign(what="curve", algorithm=part["algorithm"])
        if part["what"] == "identity":
            tables = [_learn(settings, name, seed, 1_000, final_tables=True).tables for name in ("q", "te-q(0.5)")]
            different = np.any(tables[0] != tables[1], axis=(1, 2)).sum()
            return pd.DataFrame([{"what": "identity", "runs": 1_000.0, "different": float(different)}])
        size = settings.other_runs // settings.blocks
        rows = []
        for k in range(settings.blocks):
            found = _curve(settings, part["algorithm"], seed, size, k * size, part["variance"], part["omega"])
            rows.append({"block": k, "left": found["left"].iloc[-10:].mean(), "highest": found["value"].max()})
        return pd.DataFrame(rows).assign(**part)

    def figures(self, results: Results[Settings]) -> dict[str, Figure]:
        return {"panels": _panels(results), "initial": _initial(results)}


def _learn(
    settings: Settings, name: str, seed: int, runs: int, variance: float = 1.0, omega: float = 1.0, **how: Any
) -> Any:
    from ...tabular import learn, maximization_bias
    from .cliff import make_algorithm

    return learn(
        maximization_bias(settings.actions),
        make_algorithm(name, variance, omega),
        episodes=settings.episodes,
        runs=runs,
        seed=seed,
        learning_rate=settings.rate,
        epsilon=settings.epsilon,
        threads=1,
        **how,
    )


def _curve(
    settings: Settings, name: str, seed: int, runs: int, first: int, variance: float | None = None, omega: float = 1.0
) -> pd.DataFrame:
    import pandas as pd

    start = settings.variance if variance is None else variance
    found = _learn(
        settings, name, seed, runs, start, omega, first_run=first, watch_pairs=[(0, 0)], watch_choices=[(0, 0)]
    )
    columns = {
        "episode": found.choices["episode"],
        "left": found.choices["share"],
        "averaged": found.choices["averaged"],
        "value": found.values["value"],
    }
    return pd.DataFrame(columns)


def _panels(results: Results[Settings]) -> Figure:
    table = results.rows(what="curve")
    figure, axes = canvas(2, 2, width=10, height=2.9)
    ends = {}
    for k, name in enumerate(ALGORITHMS):
        rows = table[table["algorithm"] == name].groupby("episode")[["left", "averaged", "value"]].mean()
        line(axes[0, 0], rows.index, 100 * rows["left"], name, k)
        line(axes[1, 1], rows.index, rows["value"], name, k)
        if name.startswith("te-q"):
            line(axes[1, 0], rows.index, rows["averaged"], name, k)
        ends[name] = _final(results, name)
    for k, end in enumerate(ends.values()):
        axes[0, 1].plot([k, k], [100 * end.low, 100 * end.high], color=GREY, lw=3)
        axes[0, 1].plot(k, 100 * end.value, "o", color="#3b82c4", ms=4)
    axes[0, 1].set_xticks(range(len(ends)), list(ends), rotation=35, ha="right")
    axes[0, 1].axhline(5, color=GREY, lw=0.8)
    axes[0, 0].axhline(5, color=GREY, lw=0.8)
    axes[1, 1].axhline(-0.1, color=GREY, lw=0.8)
    caption(axes[0, 0], "left chosen in A, %", "episode")
    caption(axes[0, 1], "the same, last ten episodes")
    caption(axes[1, 0], "number of means averaged (TE-Q)", "episode")
    caption(axes[1, 1], "estimate of Q*(A, left) = -0.1", "episode")
    legend_below(figure, axes[0, 0])
    return figure


def _initial(results: Results[Settings]) -> Figure:
    table = results.rows(what="initial values")
    omegas = sorted(table["omega"].unique())
    figure, axes = canvas(1, len(omegas), sharey=True, width=10, height=2.8)
    for ax, omega in zip(axes.flat, omegas, strict=True):
        for k, (name, rows) in enumerate(table[table["omega"] == omega].groupby("algorithm")):
            found = [Measured.mean(group["left"]) for _, group in rows.groupby("variance")]
            x = sorted(rows["variance"].unique())
            low, high = [100 * m.low for m in found], [100 * m.high for m in found]
            line(ax, x, [100 * m.value for m in found], str(name), k, low=low, high=high)
        ax.axhline(100 * _final(results, "q").value, color="#d1495b", lw=0.9, ls=":", label="q")
        logarithmic(ax.xaxis)
        caption(ax, f"left chosen at the end, %; initial omegas {omega:g}", "initial process variance")
    legend_below(figure, axes[0, 0])
    return figure


def _final(results: Results[Settings], name: str) -> Measured:
    return Measured.mean(_blocks(results, name, "left", LAST_EPISODES))


def _blocks(results: Results[Settings], name: str, column: str, episodes: slice) -> np.ndarray:
    """Mean of a column over some episodes, one number a block."""
    table = results.rows(what="curve", algorithm=name)
    wide = table.sort_values(["block", "episode"])[column].to_numpy().reshape(results.settings.blocks, -1)
    return np.nanmean(wide[:, episodes], axis=1)


def _highest(results: Results[Settings], name: str) -> Measured:
    """The value of (A, left) in the episode in which it is highest on average."""
    table = results.rows(what="curve", algorithm=name)
    wide = table.sort_values(["block", "episode"])["value"].to_numpy().reshape(results.settings.blocks, -1)
    return Measured.mean(wide[:, wide.mean(axis=0).argmax()])


def _within(number: Measured, target: float, room: float) -> Measured:
    """How much of ``room`` around ``target`` is left."""
    far = max(abs(number.low - target), abs(number.high - target))
    inside = min(number.low, number.high) <= target <= max(number.low, number.high)
    near = 0.0 if inside else min(abs(number.low - target), abs(number.high - target))
    return Measured(room - abs(number.value - target), room - far, room - near, number.freedom)


def _difference(results: Results[Settings], more: str, less: str, episodes: slice) -> Measured:
    return Measured.mean(_blocks(results, more, "left", episodes) - _blocks(results, less, "left", episodes))


@MaximizationBias.claim(
    "M1", "after 500 episodes Q goes left in about 10%, DQ in about 6%, TE-Q(<= 0.10) in about 5%, KE-Q below DQ", "7.2"
)
def _m1(results: Results[Settings]) -> Finding:
    ends = {name: _final(results, name) for name in ALGORITHMS}
    margins = {
        "q within 1 point of 10%": _within(ends["q"], 0.10, 0.01),
        "dq within 1 point of 6%": _within(ends["dq"], 0.06, 0.01),
        "te-q(0.05) within 0.5 points of 5%": _within(ends["te-q(0.05)"], 0.05, 0.005),
        "te-q(0.1) within 0.5 points of 5%": _within(ends["te-q(0.1)"], 0.05, 0.005),
        "dq minus ke-q": _difference(results, "dq", "ke-q", LAST_EPISODES),
    }
    return Finding(margins, {f"left at the end, {name}": end for name, end in ends.items()})


@MaximizationBias.claim("M2", "TE-Q(0.4) starts lower than Q but ends worse than Q", "7.2")
def _m2(results: Results[Settings]) -> Finding:
    early, late = slice(20, 100), LAST_EPISODES
    margins = {
        "q minus te-q(0.4), episodes 21 to 100": _difference(results, "q", "te-q(0.4)", early),
        "te-q(0.4) minus q, last ten episodes": _difference(results, "te-q(0.4)", "q", late),
    }
    table = results.table[(results.table["what"] == "initial values") & (results.table["algorithm"] == "te-q(0.4)")]
    numbers = {
        f"left at the end, te-q(0.4), initial variance {variance:g}, omegas {omega:g}": Measured.mean(rows["left"])
        for (variance, omega), rows in table.groupby(["variance", "omega"])
    }
    numbers["left at the end, q"] = _final(results, "q")
    note = (
        "It depends on the initial process variance and the initial omegas, neither of which the paper states; the numbers show "
        "from which of them TE-Q(0.4) ends above Q-learning and from which below."
    )
    return Finding(margins, numbers, note)


@MaximizationBias.claim("M3", "TE-Q(0.5) is Q-learning", "7.2")
def _m3(results: Results[Settings]) -> Finding:
    row = results.rows(what="identity").iloc[0]
    return Finding(
        {"no run in which a value differs by a bit": Measured.exact(0.5 - row["different"])},
        {"runs": Measured.exact(row["runs"])},
    )


@MaximizationBias.claim(
    "M4", "the smaller alpha, the more means are averaged: nearly all eight for 0.1, one for 0.5", "7.2"
)
def _m4(results: Results[Settings]) -> Finding:
    late = slice(-100, None)
    used = {alpha: _blocks(results, f"te-q({alpha:g})", "averaged", late) for alpha in ALPHAS}
    margins = {f"means averaged, {a:g} minus {b:g}": Measured.mean(used[a] - used[b]) for a, b in pairwise(ALPHAS)}
    margins["at least 7.5 of 8 at alpha 0.1"] = Measured.mean(used[0.1] - 7.5)
    margins["at most 1.05 at alpha 0.5"] = Measured.mean(1.05 - used[0.5])
    return Finding(
        margins, {f"means averaged in the last 100 episodes, alpha {a:g}": Measured.mean(u) for a, u in used.items()}
    )


@MaximizationBias.claim("M5", "Q overestimates Q*(A, left) at first; DQ does not", "7.2")
def _m5(results: Results[Settings]) -> Finding:
    highest = {name: _highest(results, name) for name in ("q", "dq", "te-q(0.1)", "ke-q")}
    dq = highest["dq"]
    margins = {
        "highest mean estimate of q above its start, 0": highest["q"],
        "dq's highest stays below a tenth of q's": Measured(
            0.1 * highest["q"].value - dq.value,
            0.1 * highest["q"].low - dq.high,
            0.1 * highest["q"].high - dq.low,
            min(highest["q"].freedom, dq.freedom),
        ),
    }
    return Finding(margins, {f"highest mean estimate of Q*(A, left), {name}": m for name, m in highest.items()})
