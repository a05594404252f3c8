"""Run experiments: find out which shards are missing, have them computed, keep them, and read them back as results."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..mev.data import DataError
from .change import change
from .claims import Verdict, judge
from .engines import Engine, Outcome, Task
from .experiment import SCALES, Experiment, Results, Shard, plain
from .experiments import EXPERIMENTS
from .progress import Reporter
from .store import DamagedError, Plan, Store

SHIPPED = Path(__file__).parents[1] / "results"
"""The ``paper``-scale results that come with the package."""


@dataclass(frozen=True)
class Summary:
    """What a run did."""

    computed: int
    kept: int
    """Shards that were there already."""
    failed: tuple[Outcome, ...]


@dataclass(frozen=True)
class Job:
    """An experiment, and the settings to run it with."""

    experiment: Experiment[Any]
    scale: str
    settings: Any

    @classmethod
    def of(cls, experiment: Experiment[Any], scale: str, changes: Sequence[str] = ()) -> Job:
        """The settings of a scale, with changes such as ``steps=5000``; with any, the scale is called custom."""
        if scale not in experiment.scales:
            raise DataError(f"{experiment.name} has no scale {scale!r} (there are {', '.join(experiment.scales)})")
        settings = change(experiment.settings(scale), changes)
        if changes:
            experiment.check(settings)
        return cls(experiment, "custom" if changes else scale, settings)


def reproduce(jobs: Sequence[Job], store: Store, engine: Engine, seed: int, report: Reporter) -> Summary:
    """Compute every shard that is not in the store yet. A shard that fails is reported, and the others go on."""
    tasks: list[Task] = []
    kept = 0
    for job in jobs:
        experiment, scale = job.experiment, job.scale
        shards = experiment.shards(job.settings, seed)
        store.write_plan(experiment.name, scale, Plan(plain(job.settings), shards))
        missing = [shard for shard in shards if not _present(store, shard, report)]
        kept += len(shards) - len(missing)
        report.begin(experiment.name, len(shards), len(shards) - len(missing))
        tasks += [Task(experiment, job.settings, shard, store.folder(shard)) for shard in missing]
    failed = []
    packages = {job.experiment.name: job.experiment.packages for job in jobs}
    outcomes = engine.run(tasks)
    try:
        for outcome in outcomes:
            if outcome.table is None:
                failed.append(outcome)
                report.say(f"{outcome.shard} failed: {outcome.error.strip().splitlines()[-1]}")
            else:
                store.write(outcome.shard, outcome.table, outcome.seconds, packages[outcome.shard.experiment])
                shutil.rmtree(store.folder(outcome.shard), ignore_errors=True)
                report.advance(outcome.shard.experiment)
    finally:
        outcomes.close()  # type: ignore[attr-defined]
    return Summary(len(tasks) - len(failed), kept, tuple(failed))


def _present(store: Store, shard: Shard, report: Reporter) -> bool:
    try:
        there = store.has(shard)
        if there:  # what it was made from goes, if a kill came before that
            shutil.rmtree(store.folder(shard), ignore_errors=True)
        return there
    except DamagedError as error:
        report.say(f"{error}; it is computed again")
        store.remove(shard)
        return False


def load(store: Store, experiment: Experiment[Any], scale: str, seed: int) -> Results[Any] | None:
    """The results of an experiment at a scale from a seed, or None if it was never run there.

    Damaged shards count as missing, a damaged plan as never run.
    """
    import pandas as pd

    try:
        plan = store.read_plan(experiment.name, scale, seed)
    except DamagedError:
        return None
    if not plan or not plan.shards:
        return None
    tables, seconds, versions, missing = [], 0.0, set(), 0
    for shard in plan.shards:
        try:
            table, manifest = store.read(shard) if store.has(shard) else (None, None)
        except DamagedError:
            table, manifest = None, None
        if table is None or manifest is None:
            missing += 1
            continue
        tables.append(table)
        seconds += manifest["seconds"]
        versions.add(", ".join(f"{name} {number}" for name, number in manifest["versions"].items()))
    joined = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
    settings = _settings(experiment, plan.settings)
    if settings is None or plan.shards[0].version != experiment.version:
        return None
    return Results(experiment.name, scale, settings, seed, joined, missing, seconds, tuple(sorted(versions)))


def _settings(experiment: Experiment[Any], stored: dict[str, Any]) -> Any:
    """The stored settings as the experiment's own class, or None where that class has other fields by now."""
    kind = type(experiment.settings("quick"))
    if {f.name for f in fields(kind)} != set(stored):
        return None
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()})


def load_best(store: Store, experiment: Experiment[Any], prefer: tuple[str, int] | None = None) -> Results[Any] | None:
    """The results to show: those preferred (scale, seed); else the latest complete ones at the largest scale; else any."""
    known = [(scale, seed) for scale in reversed(SCALES) for seed in store.seeds(experiment.name, scale)]
    wanted = [prefer] if prefer in known else known
    found = [results for scale, seed in wanted if (results := load(store, experiment, scale, seed)) is not None]
    complete = [results for results in found if not results.missing]
    return next(iter(complete or found), None)


def verdicts(store: Store, prefer: tuple[str, int] | None = None) -> list[Verdict]:
    """Verdicts on every claim that an experiment speaks to, in the paper's order."""
    return [verdict for e in EXPERIMENTS.values() for verdict in judge(e, load_best(store, e, prefer))]
