"""Bias, variance and MSE of the estimators on simulated ads: what is computed, and what is shown of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....mev.data import Data, summarise
from ....mev.methods import Settings as MethodSettings
from ....mev.methods import evaluate
from ....mev.processes import bernoulli_ads, click_rates
from ...experiment import Experiment, Results
from ...tables import TableLayout
from ..which import ESTIMATORS as ALL
from .figures import bars, region_map
from .settings import REGION, Cell, Settings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

DRAWS = 100
"""Draws of the weighted estimator, as in the paper."""
ESTIMATORS: dict[str, tuple[str, MethodSettings]] = {
    "me": ("me", MethodSettings()),
    "cve": ("cve", MethodSettings()),
    "we": ("we", MethodSettings(draws=DRAWS)),
    "we(exact)": ("we", MethodSettings()),
    "te": ("te", MethodSettings(alpha=0.1)),
    "ke": ("ke", MethodSettings()),
}
"""Of the six settings, by label."""
IN_REGION = {name: ESTIMATORS.get(name, (name, MethodSettings())) for name in ALL}
"""Of the region. Integrating WE exactly takes minutes a setting where some of 200 ads have no clicks."""


class Ads(Experiment[Settings]):
    """The estimators on simulated ads, in six settings around a centre and over a region of settings."""

    name = "ads"
    title = "Internet ads"
    section = "7.1"
    size = ("runs", "region_customers", "region_ads", "region_highest", "region_places", "region_runs")

    def settings(self, scale: str) -> Settings:
        if scale == "paper":
            return Settings()
        return Settings(
            runs=1_000,
            runs_a_shard=1_000,
            region_customers=(10_000, 100_000, 1_000_000),
            region_ads=(5, 20),
            region_highest=(0.03, 0.1),
            region_places=("even", "tied top"),
            region_runs=200,
            region_runs_a_block=20,
        )

    def parts(self, settings: Settings) -> Sequence[Mapping[str, Any]]:
        starts = range(0, settings.runs, settings.runs_a_shard)
        six = [{"what": "six", "problem": name, "first_run": start} for name in settings.problems() for start in starts]
        pairs = [(places, ads) for places in settings.region_places for ads in settings.region_ads]
        return [*six, *({"what": "region", "places": places, "ads": ads} for places, ads in pairs)]

    def layout(self, settings: Settings, part: Mapping[str, Any]) -> TableLayout:
        if part["what"] == "six":
            rows = len(ESTIMATORS) * _runs(settings, part) // settings.runs_a_block
        else:
            blocks = settings.region_runs // settings.region_runs_a_block
            rows = len(IN_REGION) * blocks * len(_cells(settings, part))
        numbers = ("customers", "ads", "highest", "error", "squared")
        return TableLayout(rows, numbers, ("problem", "places", "estimator"))

    def compute(self, settings: Settings, part: Mapping[str, Any], rng: np.random.Generator) -> pd.DataFrame:
        import pandas as pd

        if part["what"] == "six":
            problem = settings.problems()[part["problem"]]
            data = bernoulli_ads(rng, lowest=settings.lowest, repetitions=_runs(settings, part), **problem)
            best = click_rates(problem["ads"], settings.lowest, problem["highest"]).max()
            table = _table(_errors(ESTIMATORS, data, best, rng), settings.runs_a_block)
            return table.assign(problem=part["problem"], places="even", **problem)
        tables = []
        for cell in _cells(settings, part):
            table = _table(_in_region(settings, cell, rng), settings.region_runs_a_block)
            tables.append(table.assign(problem=REGION, **cell._asdict()))
        whole = pd.concat(tables, ignore_index=True)
        # Single precision is far finer than the noise, and half the size.
        return whole.astype({"error": np.float32, "squared": np.float32})

    def figures(self, results: Results[Settings]) -> dict[str, Figure]:
        return {"mse": bars(results, list(ESTIMATORS)), "map": region_map(results)}


def _runs(settings: Settings, part: Mapping[str, Any]) -> int:
    """How many runs a shard of the six settings has: the last one may have fewer."""
    return int(min(settings.runs_a_shard, settings.runs - part["first_run"]))


def _cells(settings: Settings, part: Mapping[str, Any]) -> list[Cell]:
    """The settings of the region that a shard has."""
    return [cell for cell in settings.region() if (cell.places, cell.ads) == (part["places"], part["ads"])]


def _in_region(settings: Settings, cell: Cell, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Errors in one setting of the region, a block at a time: the draws of WE then stay in the processor's cache."""
    found: dict[str, list[np.ndarray]] = {label: [] for label in IN_REGION}
    size = settings.region_runs_a_block
    for _ in range(settings.region_runs // size):
        rates = settings.rates(cell, size, rng)
        clicks = bernoulli_ads(rng, ads=cell.ads, customers=cell.customers, rates=rates, repetitions=size)
        for label, errors in _errors(IN_REGION, summarise(clicks, rng), rates.max(axis=-1), rng).items():
            found[label].append(errors)
    return {label: np.concatenate(errors) for label, errors in found.items()}


def _errors(
    estimators: Mapping[str, tuple[str, MethodSettings]], data: Data, best: Any, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Of every estimator on the same data, one number a run."""
    return {label: evaluate(method, data, how, rng=rng).value - best for label, (method, how) in estimators.items()}


def _table(errors: Mapping[str, np.ndarray], runs_a_block: int) -> pd.DataFrame:
    """Means over blocks of runs."""
    import pandas as pd

    blocks = {label: each.reshape(-1, runs_a_block) for label, each in errors.items()}
    return pd.concat(
        [
            pd.DataFrame({"error": each.mean(axis=1), "squared": (each**2).mean(axis=1)}).assign(estimator=label)
            for label, each in blocks.items()
        ],
        ignore_index=True,
    )
