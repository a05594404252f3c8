"""Stored results, read back: only what is whole, and what the experiment itself would have written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from .experiment import SCALES, Experiment, Results, Shard, plain
from .settings import check_kinds
from .store import DamagedError, Store, StudyPlan

MOST = 1 << 32
"""How many bytes the tables of an experiment may have together."""


@dataclass(frozen=True)
class LeftOut:
    """Stored results of an experiment that cannot be used, and why, in one sentence."""

    experiment: str
    why: str

    def __str__(self) -> str:
        return f"{self.experiment}: {self.why}"


Say = Callable[[LeftOut], object]


def unsaid(left_out: LeftOut) -> None:
    """For those who do not ask why something is left out."""


def load(store: Store, experiment: Experiment[Any], scale: str, seed: int) -> Results[Any] | None:
    """The results of an experiment at a scale from a seed, or None if it was never run there.

    Shards that cannot be used count as missing; raises :class:`DamagedError` where it is not known which shards there are.
    """
    import pandas as pd

    plan = store.read_plan(experiment.name, scale, seed)
    if plan is None:
        return None
    try:
        settings = _settings(experiment, plan)
        shards = _shards(experiment, settings, seed, plan)
    except ValueError as error:
        path = str(store.plan_path(experiment.name, scale, seed))
        raise DamagedError(f"{path!r} cannot be used: {error}") from None
    tables: dict[Any, list[pd.DataFrame]] = {settings: []}
    seconds, versions, damage, size = 0.0, set(), [], 0
    for shard in shards:
        own = experiment.settings_of(settings, shard)
        try:
            found = store.find(shard, experiment.layout(own, shard.part))
        except DamagedError as error:
            damage.append(str(error))
            continue
        if found is None:
            continue
        table, manifest = found
        size += int(table.memory_usage().sum())
        if size > MOST:
            raise DamagedError(f"the tables in {str(store.root / experiment.name)!r} are too large together")
        tables.setdefault(own, []).append(table)
        seconds += manifest["seconds"]
        versions.add(", ".join(f"{name} {number}" for name, number in manifest["versions"].items()))
    missing = len(shards) - sum(map(len, tables.values()))
    joined = {own: pd.concat(some, ignore_index=True) if some else pd.DataFrame() for own, some in tables.items()}
    about = (missing, seconds, tuple(sorted(versions)), tuple(damage))
    return Results(experiment.name, scale, settings, seed, joined.pop(settings), *about, apart=joined)


def _settings(experiment: Experiment[Any], plan: StudyPlan) -> Any:
    """The stored settings as the experiment's own class, which may have other ones by now; raises ValueError then."""
    kind = type(experiment.settings(experiment.scales[0]))
    known, version = {f.name for f in fields(kind)}, plan.shards[0].version
    if version != experiment.version:
        raise ValueError(f"version {version} of the experiment made it, and this is version {experiment.version}")
    if known != set(plan.settings):
        raise ValueError(f"its settings are not those of this version, which are {', '.join(sorted(known))}")
    stored = {name: tuple(value) if isinstance(value, list) else value for name, value in plan.settings.items()}
    check_kinds(kind, stored)
    return kind(**stored)


def _shards(experiment: Experiment[Any], settings: Any, seed: int, plan: StudyPlan) -> list[Shard]:
    """The shards of these settings, if they are those of the plan; raises ValueError otherwise."""
    own = [Shard(**plain(shard)) for shard in experiment.shards(settings, seed)]
    if own != plan.shards:
        raise ValueError("it lists other shards than its settings make")
    return own


def load_best(
    store: Store, experiment: Experiment[Any], prefer: tuple[str, int] | None = None, say: Say = unsaid
) -> Results[Any] | None:
    """The results to show: those preferred (scale, seed); else the latest complete ones at the largest scale; else any.

    ``say`` hears of those that come first but cannot be used, a sentence for each.
    """
    try:
        known = [(scale, seed) for scale in reversed(SCALES) for seed in store.seeds(experiment.name, scale)]
    except DamagedError as error:
        say(LeftOut(experiment.name, str(error)))
        return None
    incomplete = None
    for scale, seed in [prefer] if prefer in known else known:
        try:
            results = load(store, experiment, scale, seed)
        except DamagedError as error:
            say(_left_out(experiment, scale, seed, str(error)))
            continue
        if results is None:
            continue
        if results.damage:
            more = f", and {len(results.damage) - 1} more files" if len(results.damage) > 1 else ""
            say(_left_out(experiment, scale, seed, f"{results.damage[0]}{more}"))
        if not results.missing:
            return results
        incomplete = incomplete or results
    return incomplete


def _left_out(experiment: Experiment[Any], scale: str, seed: int, why: str) -> LeftOut:
    return LeftOut(experiment.name, f"{why} ({scale} scale, seed {seed}); 'maxmean reproduce' computes it again")
