"""Run experiments: find out which shards are missing, have them computed, keep them, and judge what is stored."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..mev.show import escaped
from .change import change
from .claims import Verdict, judge
from .errors import LabError
from .experiment import Experiment, Results, Shard, plain
from .experiments import EXPERIMENTS
from .loading import LeftOut, Say, load, load_best, unsaid
from .progress import Reporter
from .settings import SHARDS, limited
from .store import DamagedError, Store, StudyPlan
from .tasks import ShardEngine, Task, TaskResult

__all__ = [
    "SHIPPED",
    "ExperimentJob",
    "Judged",
    "Summary",
    "judge_all",
    "left_to_do",
    "load",
    "load_best",
    "nothing",
    "reproduce",
    "trusting",
    "verdicts",
]

SHIPPED = Path(__file__).parents[1] / "results"
"""The ``paper``-scale results that come with the package."""


@dataclass(frozen=True)
class Summary:
    """What a run did."""

    computed: int
    kept: int
    """Shards that were there already."""
    failed: tuple[TaskResult, ...]


@dataclass(frozen=True)
class ExperimentJob:
    """An experiment, and the settings to run it with."""

    experiment: Experiment[Any]
    scale: str
    settings: Any

    @classmethod
    def of(cls, experiment: Experiment[Any], scale: str, changes: Sequence[str] = ()) -> ExperimentJob:
        """The settings of a scale, with changes such as ``steps=5000``; with any, the scale is called custom."""
        if scale not in experiment.scales:
            raise LabError(f"{experiment.name} has no scale {scale!r} (there are {', '.join(experiment.scales)})")
        settings = change(experiment.settings(scale), changes)
        if changes:
            limited("the number of shards", len(experiment.parts(settings)), SHARDS)
            experiment.check(settings)
        return cls(experiment, "custom" if changes else scale, settings)


def reproduce(jobs: Sequence[ExperimentJob], store: Store, engine: ShardEngine, seed: int, report: Reporter) -> Summary:
    """Compute every shard that is not in the store yet. A shard that fails is reported, and the others go on."""
    tasks: list[Task] = []
    kept = 0
    for job in jobs:
        experiment, scale = job.experiment, job.scale
        shards = experiment.shards(job.settings, seed)
        store.write_plan(experiment.name, scale, StudyPlan(plain(job.settings), shards))
        missing = [shard for shard in shards if not _reuse(store, job, shard, report)]
        kept += len(shards) - len(missing)
        report.begin(experiment.name, len(shards), len(shards) - len(missing))
        tasks += [
            Task(experiment, experiment.settings_of(job.settings, shard), shard, store.folder(shard))
            for shard in missing
        ]
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


def left_to_do(job: ExperimentJob, store: Store | None, seed: int) -> list[Shard]:
    """The shards that :func:`reproduce` would compute now, all of them without a store; nothing is changed."""
    left = []
    for shard in job.experiment.shards(job.settings, seed):
        try:
            if store is not None and _stored(store, job, shard):
                continue
        except DamagedError:
            pass
        left.append(shard)
    return left


def _stored(store: Store, job: ExperimentJob, shard: Shard) -> bool:
    """Whether a shard is there and can be used; raises :class:`DamagedError` if it is there and cannot."""
    own = job.experiment.settings_of(job.settings, shard)
    return store.has(shard, job.experiment.layout(own, shard.part))


def _reuse(store: Store, job: ExperimentJob, shard: Shard, report: Reporter) -> bool:
    """Take a shard as it is stored, if it can be used; one that is damaged goes, and ``report`` hears of it."""
    try:
        if not _stored(store, job, shard):
            return False
    except DamagedError as error:
        report.say(escaped(f"{error}; it is computed again"))
        store.remove(shard)
        return False
    shutil.rmtree(store.folder(shard), ignore_errors=True)  # what it was made from, if a kill came before that
    return True


@dataclass(frozen=True)
class Judged:
    """An experiment with its results, if there are any, and the verdicts on its claims."""

    experiment: Experiment[Any]
    results: Results[Any] | None
    verdicts: list[Verdict]

    @property
    def complete(self) -> bool:
        """Whether the verdicts are from all of its shards."""
        return self.results is not None and not self.results.missing


def judge_all(store: Store, prefer: tuple[str, int] | None = None, say: Say = unsaid) -> Iterator[Judged]:
    """Every experiment, judged on what is stored of it; what cannot be used is left out, and ``say`` hears why."""
    for experiment in EXPERIMENTS.values():
        left_out: list[LeftOut] = []
        results = load_best(store, experiment, prefer, left_out.append)
        try:
            with trusting(experiment, store):
                found = judge(experiment, results)
        except DamagedError as error:
            left_out.append(LeftOut(experiment.name, str(error)))
            results, found = None, judge(experiment, None)
        if results is not None and results.damage:
            results, found = None, judge(experiment, None)
        if results is None and left_out:
            found = [replace(verdict, note=f"left out: {left_out[0].why}") for verdict in found]
        for each in left_out:
            say(each)
        yield Judged(experiment, results, found)


@contextmanager
def trusting(experiment: Experiment[Any], store: Store) -> Iterator[None]:
    """In here a stranger's tables are used as if they were ours: what goes wrong is their damage, and nan needs no warning."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except Exception as error:
        where, what = str(store.root / experiment.name), str(error).partition("\n")[0]
        raise DamagedError(
            f"the tables in {where!r} do not fit together ({type(error).__name__}: {what}); "
            "remove them and run 'maxmean reproduce'"
        ) from error


def verdicts(store: Store, prefer: tuple[str, int] | None = None, say: Say = unsaid) -> list[Verdict]:
    """Verdicts on every claim that an experiment speaks to, in the paper's order."""
    return [verdict for judged in judge_all(store, prefer, say) for verdict in judged.verdicts]


def nothing(store: Store, left_out: Sequence[LeftOut]) -> str:
    """What is said where no experiment can be shown."""
    if left_out:
        more = f"; and {len(left_out) - 1} more" if len(left_out) > 1 else ""
        return f"no results in {str(store.root)!r} can be used: {left_out[0]}{more}"
    return (
        f"no experiment is complete in {str(store.root)!r}: 'maxmean reproduce' with this --out computes them, "
        "and goes on with one that was stopped when it has the same arguments"
    )
