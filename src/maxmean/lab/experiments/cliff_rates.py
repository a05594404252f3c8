"""Cliff Walking over learning rates (section 7.3): the first 100 episodes, and 50,000 of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..claims import Finding, Measured
from ..errors import LabError
from ..experiment import Experiment, Results
from ..figures import canvas, caption, legend_below, line
from ..settings import Range, within
from ..tables import TableLayout
from .cliff import RULES, exploration, make_algorithm

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ALGORITHMS = ("q", "dq", "wq", "scq(2)", "scq(2, step)", "scq(3)", "te-q(0.05)", "ke-q")


@dataclass(frozen=True)
class Settings:
    """The paper: 5,000 runs of 100 episodes (interim) and 5 runs of 50,000 (asymptotic), ten constant learning rates."""

    rates: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    interim_runs: int = 5_000
    interim_episodes: int = 100
    interim_blocks: int = 10
    asymptotic_runs: int = 5
    asymptotic_episodes: int = 50_000
    max_steps: int = 10_000

    def __post_init__(self) -> None:
        within(
            self,
            rates=Range(1e-6, 1, entries=(2, 100)),
            interim_runs=Range(1, 10**7),
            interim_episodes=Range(1, 10**6),
            interim_blocks=Range(1, 1_000),
            asymptotic_runs=Range(1, 1_000),
            asymptotic_episodes=Range(1, 10**6),
            max_steps=Range(1, 10**9),
        )
        if self.interim_blocks > self.interim_runs:
            raise LabError(
                f"interim_blocks must be at most as many as interim_runs, {self.interim_runs:,}, not {self.interim_blocks:,}"
            )


class CliffRates(Experiment[Settings]):
    """Average return for each learning rate, early and in the long run."""

    name = "cliff-rates"
    title = "Cliff Walking: interim and asymptotic returns over learning rates"
    section = "7.3"
    needs = ("numba", "tabular")
    packages = ("numba",)
    size = ("rates", "interim_runs", "interim_episodes", "asymptotic_runs", "asymptotic_episodes")

    def settings(self, scale: str) -> Settings:
        if scale == "paper":
            return Settings()
        return Settings(
            rates=(0.1, 0.5, 1.0), interim_runs=100, interim_blocks=5, asymptotic_runs=3, asymptotic_episodes=1_000
        )

    def parts(self, settings: Settings) -> Sequence[Mapping[str, Any]]:
        return [
            {"what": what, "algorithm": name, "rule": rule}
            for what in ("interim", "asymptotic")
            for name in ALGORITHMS
            for rule in RULES
        ]

    def layout(self, settings: Settings, part: Mapping[str, Any]) -> TableLayout:
        rows = len(settings.rates) * _groups(settings, part)
        return TableLayout(rows, ("rate", "block", "return"), ("what", "algorithm", "rule"))

    def compute(self, settings: Settings, part: Mapping[str, Any], rng: np.random.Generator) -> pd.DataFrame:
        import pandas as pd

        from ... import tabular

        interim = part["what"] == "interim"
        groups = _groups(settings, part)
        runs = settings.interim_runs // groups if interim else 1
        rows = []
        for rate in settings.rates:
            seed = int(rng.integers(2**62))
            for k in range(groups):
                found = tabular.learn(
                    tabular.cliff_walking(),
                    make_algorithm(part["algorithm"]),
                    episodes=settings.interim_episodes if interim else settings.asymptotic_episodes,
                    runs=runs,
                    first_run=k * runs,
                    seed=seed,
                    learning_rate=rate,
                    epsilon=exploration(part["rule"]),
                    max_steps=settings.max_steps,
                    threads=1,
                )
                rows.append({"rate": rate, "block": k, "return": found.episodes["return"].mean()})
        return pd.DataFrame(rows).assign(**part)

    def figures(self, results: Results[Settings]) -> dict[str, Figure]:
        return {"rates": _rates(results)}


def _groups(settings: Settings, part: Mapping[str, Any]) -> int:
    """How many independent returns there are for each learning rate."""
    return settings.interim_blocks if part["what"] == "interim" else settings.asymptotic_runs


def _rates(results: Results[Settings]) -> Figure:
    figure, axes = canvas(2, 2, sharex=True, width=10, height=2.9)
    for row, what in enumerate(("interim", "asymptotic")):
        for column, rule in enumerate(RULES):
            for k, name in enumerate(ALGORITHMS):
                found = [Measured.mean(_values(results, what, name, rule, rate)) for rate in results.settings.rates]
                low, high = [m.low for m in found], [m.high for m in found]
                line(axes[row, column], results.settings.rates, [m.value for m in found], name, k, low=low, high=high)
            episodes = results.settings.interim_episodes if what == "interim" else results.settings.asymptotic_episodes
            epsilon = "epsilon = 0.1" if rule == "constant" else "epsilon = 1/sqrt(n(s))"
            caption(
                axes[row, column], f"mean return of {episodes:,} episodes, {epsilon}", "learning rate" if row else ""
            )
    legend_below(figure, axes[0, 0])
    return figure


def _values(results: Results[Settings], what: str, name: str, rule: str, rate: float) -> np.ndarray:
    table = results.table
    chosen = (table["what"] == what) & (table["algorithm"] == name) & (table["rule"] == rule) & (table["rate"] == rate)
    return table.loc[chosen, "return"].to_numpy()


@CliffRates.claim(
    "W4",
    "first 100 episodes: TE-Q and KE-Q are the most robust over learning rates; DQ and SCQ drop sharply at 1.0",
    "7.3",
)
def _w4(results: Results[Settings]) -> Finding:
    rates = results.settings.rates
    margins, numbers = {}, {}
    for rule in RULES:
        worst = {}
        for name in ALGORITHMS:
            values = {rate: _values(results, "interim", name, rule, rate) for rate in rates}
            lowest = min(rates, key=lambda rate: values[rate].mean())
            worst[name] = values[lowest]
            numbers[f"{rule}: worst interim return of {name} over learning rates (at {lowest:g})"] = Measured.mean(
                values[lowest]
            )
        others = [name for name in ALGORITHMS if name not in ("te-q(0.05)", "ke-q")]
        for name in ("te-q(0.05)", "ke-q"):
            rival = max(others, key=lambda other: worst[other].mean())
            margins[f"{rule}: worst case of {name} above the best other's ({rival})"] = Measured.difference(
                worst[name], worst[rival]
            )
        for name in ("dq", "scq(2)", "scq(3)"):
            before, last = (_values(results, "interim", name, rule, rate) for rate in rates[-2:])
            loss = f"{name} loses more than a fifth of its return from rate {rates[-2]:g} to {rates[-1]:g}"
            margins[f"{rule}: {loss}"] = Measured.difference(1.2 * before, last)  # returns are negative
    before, last = (_values(results, "interim", "scq(2, step)", "constant", rate) for rate in rates[-2:])
    numbers["constant: drop of scq(2) with the table of one step ago"] = Measured.difference(before, last)
    note = (
        "SCQ takes for Q_prev each entry's value before its own last update. With the other reading of its paper, the table one "
        "step ago, it is almost Q-learning; the numbers show what becomes of the drop then."
    )
    return Finding(margins, numbers, note)


@CliffRates.claim(
    "W5", "50,000 episodes: DQ and SCQ marginally above WQ, TE-Q, KE-Q for epsilon 0.1; annealed, no difference", "7.3"
)
def _w5(results: Results[Settings]) -> Finding:
    margins, numbers = {}, {}
    means: dict[tuple[str, str], np.ndarray] = {}
    for rule in RULES:
        for name in ALGORITHMS:
            table = results.table
            chosen = (table["what"] == "asymptotic") & (table["algorithm"] == name) & (table["rule"] == rule)
            means[name, rule] = table[chosen].groupby("block")["return"].mean().to_numpy()
            numbers[f"{rule}: asymptotic return of {name}, mean over learning rates"] = Measured.mean(means[name, rule])
    for name in ("dq", "scq(2)", "scq(3)"):
        for rival in ("wq", "te-q(0.05)", "ke-q"):
            margins[f"constant: {name} above {rival}"] = Measured.difference(
                means[name, "constant"], means[rival, "constant"]
            )
    order = sorted((means[name, "annealed"] for name in ALGORITHMS), key=np.mean)
    margins["annealed: best and worst within 2 of each other"] = Measured.difference(order[0] + 2, order[-1])
    note = (
        "Averages over all ten learning rates and all 50,000 episodes, the early ones included. scq(2, step) is SCQ with the "
        "table of one step ago as Q_prev: it stays with Q-learning."
    )
    return Finding(margins, numbers, note)
