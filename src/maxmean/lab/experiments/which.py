"""Which estimator when (beyond the paper): who has the least error, over the number of options, their spread and the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...mev.data import Summaries
from ...mev.methods import evaluate
from ..claims import BEYOND, Finding, Measured
from ..experiment import Experiment, Results
from ..maps import draw_map
from ..settings import SHARDS, Range, limited, within
from ..tables import TableLayout

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ESTIMATORS = ("me", "ae", "de", "cve", "we", "mme", "te", "ke")
"""All that need no pairs, with their usual settings."""


@dataclass(frozen=True)
class Settings:
    """True means are normal with a given spread, in standard errors of a mean; observations are normal with one variance."""

    options: tuple[int, ...] = (2, 3, 5, 10, 20, 50)
    spreads: tuple[float, ...] = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
    observations: tuple[int, ...] = (5, 20, 100)
    """Of each option. As the spread is in standard errors, they only tell how well those are known."""
    problems: int = 500
    """In each run."""
    runs: int = 10

    def __post_init__(self) -> None:
        within(
            self,
            options=Range(2, 100, entries=(1, 20)),
            spreads=Range(0, 1e6, entries=(1, 50)),
            observations=Range(4, 10**6, entries=(1, 10)),
            problems=Range(2, 10**5),
            runs=Range(2, 10**4),
        )
        limited("problems times the largest number of options", self.problems * max(self.options), 10**6)
        limited("runs times the number of spreads", self.runs * len(self.spreads), 10**5)
        limited("the number of shards", len(self.options) * len(self.observations), SHARDS)


class WhichEstimator(Experiment[Settings]):
    """Root mean squared error of every estimator on random problems, and who has the least."""

    name = "which"
    title = "Which estimator when: the least error over options, spread and observations"
    section = BEYOND
    size = ("options", "spreads", "observations", "problems", "runs")

    def settings(self, scale: str) -> Settings:
        if scale == "paper":
            return Settings()
        return Settings(options=(2, 5, 10), spreads=(0.0, 0.5, 1.0, 2.0, 4.0), observations=(20,), problems=100, runs=8)

    def parts(self, settings: Settings) -> Sequence[Mapping[str, Any]]:
        return [{"options": m, "observations": n} for m in settings.options for n in settings.observations]

    def layout(self, settings: Settings, part: Mapping[str, Any]) -> TableLayout:
        rows = len(settings.spreads) * settings.runs * len(ESTIMATORS)
        return TableLayout(rows, ("options", "observations", "spread", "run", "bias", "mse"), ("estimator",))

    def compute(self, settings: Settings, part: Mapping[str, Any], rng: np.random.Generator) -> pd.DataFrame:
        import pandas as pd

        rows = []
        for spread in settings.spreads:
            for run in range(settings.runs):
                means = spread * rng.standard_normal((settings.problems, part["options"]))
                data, best = observed(means, part["observations"], rng), means.max(axis=-1)
                for name in ESTIMATORS:
                    errors = evaluate(name, data, rng=rng).value - best
                    rows.append((spread, run, name, errors.mean(), np.square(errors).mean()))
        table = pd.DataFrame(rows, columns=["spread", "run", "estimator", "bias", "mse"])
        return table.assign(options=part["options"], observations=part["observations"])

    def figures(self, results: Results[Settings]) -> dict[str, Figure]:
        return {"map": estimator_map(results)}


def observed(means: np.ndarray, n: int, rng: np.random.Generator) -> Summaries:
    """What n normal observations of each option say, standard errors being one: by the laws of their halves, none is drawn.

    The halves' means are independent of what varies within the halves; together with their difference that is the variance.
    """
    first, second = (n + 1) // 2, n // 2
    halves = np.stack([means + np.sqrt(n / size) * rng.standard_normal(means.shape) for size in (first, second)])
    within_halves = n * rng.chisquare(n - 2, means.shape)
    between = np.square(halves[0] - halves[1]) * first * second / n
    mean = (first * halves[0] + second * halves[1]) / n
    return Summaries(mean, (within_halves + between) / (n - 1) / n, parts={2: halves})


def errors_of(results: Results[Settings]) -> pd.DataFrame:
    """Root mean squared errors, one row a cell of the map and one column an estimator."""
    cells = results.table.groupby(["observations", "options", "spread", "estimator"])["mse"].mean()
    return np.sqrt(cells).unstack("estimator")[list(ESTIMATORS)]


def estimator_map(results: Results[Settings]) -> Figure:
    """One panel for each number of observations."""
    errors = errors_of(results)
    panels = {f"{n:g} observations each": errors.loc[n] for n in results.settings.observations}
    return draw_map({"": panels}, "spread of the true means, in standard errors", "options")


APART = 0.5
"""The spread, in standard errors, from which on options are not nearly equal."""


def _excess(results: Results[Settings], estimator: str, cells: pd.DataFrame) -> np.ndarray:
    """By how much an estimator's error exceeds the least where that is most, among these cells: a share, one number a run.

    Which cell that is, and which estimator has the least error there, is decided over all runs.
    """
    over = (cells[estimator] / cells.min(axis=1) - 1).sort_values()
    where, least = over.index[-1], cells.loc[over.index[-1]].idxmin()
    n, options, spread = where
    rows = results.rows(observations=n, options=options, spread=spread)
    by_run = np.sqrt(rows.pivot(index="run", columns="estimator", values="mse"))
    return np.asarray(by_run[estimator] / by_run[least] - 1)


def _ahead(results: Results[Settings], estimator: str, cells: pd.DataFrame) -> Measured:
    """By how much the next best estimator's error exceeds this one's where that is least, among these cells."""
    others = cells.drop(columns=estimator)
    where = (others.min(axis=1) / cells[estimator]).idxmin()
    n, options, spread = where
    rows = results.rows(observations=n, options=options, spread=spread)
    by_run = np.sqrt(rows.pivot(index="run", columns="estimator", values="mse"))
    return Measured.mean(by_run[others.loc[where].idxmin()] / by_run[estimator] - 1)


def _cells(results: Results[Settings], least: float, most: float = np.inf) -> pd.DataFrame:
    errors = errors_of(results)
    spreads = errors.index.get_level_values("spread")
    return errors[(spreads >= least) & (spreads <= most)]


@WhichEstimator.claim(
    "E1",
    "where the true means are spread by half a standard error or more, ke's error exceeds the least of all by less than a fifth",
    "which estimator when",
)
def _e1(results: Results[Settings]) -> Finding:
    cells = _cells(results, APART)
    if cells.empty:
        return Finding({})
    return Finding({"a fifth less the largest excess of ke": Measured.mean(0.2 - _excess(results, "ke", cells))})


@WhichEstimator.claim(
    "E2",
    "and every other estimator exceeds the least error by more than ke does, where each does worst",
    "which estimator when",
)
def _e2(results: Results[Settings]) -> Finding:
    cells = _cells(results, APART)
    if cells.empty:
        return Finding({})
    own = _excess(results, "ke", cells)
    worst = {name: _excess(results, name, cells) for name in ESTIMATORS}
    return Finding(
        {
            f"largest excess of {name} above that of ke": Measured.mean(worst[name] - own)
            for name in ESTIMATORS
            if name != "ke"
        },
        {f"largest excess of {name}": Measured.mean(worst[name]) for name in ESTIMATORS},
    )


@WhichEstimator.claim(
    "E3",
    "if all means are equal, the average of all has the least error; if they are spread by eight standard errors, the largest",
    "which estimator when",
)
def _e3(results: Results[Settings]) -> Finding:
    margins = {}
    for name, cells in (("ae", _cells(results, 0.0, 0.0)), ("me", _cells(results, 8.0))):
        if not cells.empty:
            margins[f"next best error above that of {name}, least"] = _ahead(results, name, cells)
    return Finding(margins)
