"""What the two studies of dependent samples share: bias and variance of the estimators over mu1, by simulation.

Each run draws one set of noise and reuses it for every mu1, which the law allows: moving a mean moves nothing else. Runs are
independent, so their spread gives the confidence intervals.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...mev.data import Samples, summarise
from ...mev.methods import Settings as MethodSettings
from ...mev.methods import evaluate
from ..claims import Measured
from ..experiment import Experiment, Results
from ..figures import canvas, caption, legend_below, line
from ..settings import SHARDS, Range, limited, within
from ..tables import TableLayout

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Settings:
    """Size of a study. The paper: 10,000 repetitions for each mu1 in each of 30 runs."""

    rhos: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)
    gaps: tuple[float, ...] = tuple(float(gap) for gap in np.linspace(0, 5, 26))
    """Values of mu1; mu2 is 0."""
    repetitions: int = 10_000
    runs: int = 30
    runs_a_shard: int = 5
    sigma: float = 10.0
    n: int = 100

    def __post_init__(self) -> None:
        within(
            self,
            rhos=Range(-0.999, 0.999, entries=(2, 20)),
            gaps=Range(0, 1e6, entries=(1, 1_000)),
            repetitions=Range(2, 10**6),
            runs=Range(2, 10**5),
            runs_a_shard=Range(1, 10**5),
            sigma=Range(1e-6, 1e6),
            n=Range(4, 10**6),
        )
        limited("repetitions times n", self.repetitions * self.n, 10**7)
        limited("runs_a_shard times the number of gaps", min(self.runs_a_shard, self.runs) * len(self.gaps), 10**5)
        limited("the number of shards", len(self.rhos) * -(-self.runs // self.runs_a_shard), SHARDS)


QUICK = Settings(gaps=tuple(float(gap) for gap in np.linspace(0, 5, 11)), repetitions=2_000, runs=8, runs_a_shard=4)


class DependenceStudy(Experiment[Settings]):
    """Bias and variance of estimators as some dependence rho grows; a subclass names the process and the estimators."""

    size = ("rhos", "repetitions", "runs")

    estimators: ClassVar[Mapping[str, Mapping[str, Any]]]
    """By label: the ``method``, and where they matter ``alpha`` and whether halves are ``consecutive``."""
    process: ClassVar[Callable[..., Samples]]

    @abstractmethod
    def sample(self, settings: Settings, rng: np.random.Generator) -> pd.DataFrame:
        """A sample for every rho, to look at."""

    @abstractmethod
    def sample_layout(self, settings: Settings) -> TableLayout:
        """What the sample's table has."""

    def settings(self, scale: str) -> Settings:
        return Settings() if scale == "paper" else QUICK

    def parts(self, settings: Settings) -> Sequence[Mapping[str, Any]]:
        """One shard for each rho and block of runs, and one with the sample."""
        starts = range(0, settings.runs, settings.runs_a_shard)
        blocks = [{"what": "study", "rho": rho, "first_run": start} for rho in settings.rhos for start in starts]
        return [*blocks, {"what": "sample", "rho": -1.0, "first_run": 0}]

    def layout(self, settings: Settings, part: Mapping[str, Any]) -> TableLayout:
        if part["what"] == "sample":
            return self.sample_layout(settings)
        rows = len(_runs(settings, part)) * len(settings.gaps) * len(self.estimators)
        return TableLayout(rows, ("rho", "run", "mu1", "bias", "variance"), ("estimator", "what"))

    def compute(self, settings: Settings, part: Mapping[str, Any], rng: np.random.Generator) -> pd.DataFrame:
        if part["what"] == "sample":
            return self.sample(settings, rng)
        draw = Draw(type(self).process, rng, {"rho": part["rho"], "sigma": settings.sigma, "n": settings.n})
        return study(settings, part, self.estimators, draw)


def study(
    settings: Settings, part: Mapping[str, Any], estimators: Mapping[str, Mapping[str, Any]], draw: Any
) -> pd.DataFrame:
    """Bias and variance of each estimator at each mu1, one row a run; ``draw(repetitions)`` gives the noise."""
    import pandas as pd

    rows = []
    for run in _runs(settings, part):
        noise: Samples = draw(settings.repetitions)
        summary = summarise(noise, rng=draw.rng)
        in_time = replace(summary, parts={2: _consecutive_halves(noise)})
        for gap in settings.gaps:
            gaps = np.array([gap, 0.0])
            for label, how in estimators.items():
                problems = (in_time if how.get("consecutive") else summary).shifted(gaps)
                chosen = MethodSettings(alpha=how.get("alpha", 0.1))
                values = evaluate(how["method"], problems, chosen, rng=draw.rng).value
                rows.append((part["rho"], run, label, gap, values.mean() - gap, values.var(ddof=1)))
    return pd.DataFrame(rows, columns=["rho", "run", "estimator", "mu1", "bias", "variance"]).assign(what="study")


def _runs(settings: Settings, part: Mapping[str, Any]) -> range:
    """The runs of a shard: the last one may have fewer."""
    return range(part["first_run"], min(part["first_run"] + settings.runs_a_shard, settings.runs))


def _consecutive_halves(samples: Samples) -> np.ndarray:
    """Means of the first and of the second half of each sample, in the order of time."""
    middle = (samples.n[0] + 1) // 2
    halves = [[values[..., :middle].mean(-1), values[..., middle:].mean(-1)] for values in samples.values]
    return np.moveaxis(np.array(halves), 0, -1)


@dataclass
class Draw:
    """A source of noise with a generator that goes on from one use to the next."""

    process: Any
    rng: np.random.Generator
    options: dict[str, Any]

    def __call__(self, repetitions: int) -> Samples:
        return self.process(self.rng, repetitions=repetitions, **self.options)


def curves(results: Results[Settings], estimators: Sequence[str]) -> Figure:
    """Bias above, variance below, one column a rho, with bands of 95% intervals over the runs."""
    settings, table = results.settings, results.table
    figure, axes = canvas(2, len(settings.rhos), sharex=True, sharey="row", width=10)
    for column, rho in enumerate(settings.rhos):
        for row, quantity in enumerate(("bias", "variance")):
            ax = axes[row, column]
            for k, name in enumerate(estimators):
                rows = table[(table["what"] == "study") & (table["rho"] == rho) & (table["estimator"] == name)]
                grouped = rows.groupby("mu1")[quantity]
                found = [Measured.mean(values) for _, values in grouped]
                low, high = [m.low for m in found], [m.high for m in found]
                line(ax, list(grouped.groups), [m.value for m in found], name, k, low=low, high=high)
            caption(ax, f"{quantity}, rho = {rho:g}")
            if row:
                ax.set_xlabel("mu1 - mu2")
    legend_below(figure, axes[0, 0], columns=8)
    return figure


class Curves:
    """Quick look-ups for the judges: per-run values of one estimator at one rho, shape (runs, gaps)."""

    def __init__(self, results: Results[Settings]) -> None:
        table = results.rows(what="study")
        self._values = {
            (rho, name): rows.sort_values(["run", "mu1"])
            for (rho, name), rows in table.groupby(["rho", "estimator"], sort=False)
        }
        self.gaps = np.array(results.settings.gaps)

    def __call__(self, rho: float, estimator: str, quantity: str) -> np.ndarray:
        rows = self._values[(rho, estimator)]
        return rows[quantity].to_numpy().reshape(-1, len(self.gaps))

    def size(self, rho: float, estimator: str, quantity: str) -> np.ndarray:
        """|bias| or variance, averaged over mu1, one number a run.

        The sign of the bias at each mu1 comes from the other half of the runs: taken from the same runs it would follow
        their noise, and the intervals would be too narrow.
        """
        values = self(rho, estimator, quantity)
        half = len(values) // 2
        parts = ((values[:half], values[half:]), (values[half:], values[:half]))
        return np.concatenate([(mine * np.sign(other.mean(axis=0))).mean(axis=1) for mine, other in parts])
