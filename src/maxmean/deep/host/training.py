"""``maxmean train`` in Gymnasium's environments: one run after the other, each going on where it was stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from rich.console import Console

from ...storage import as_parquet, make_folder, write_whole
from ...untrusted import ContentError
from ..agents import parse_arguments
from ..checks import whole_number
from ..directory import held, writing
from ..progress import standard_error
from ..records import read_table
from ..runs import MOST_RUNS, file_name
from .errors import HostError, Stopped
from .keeping import Keeper
from .making import need_gymnasium


class HostRun(NamedTuple):
    """One run."""

    name: str
    algorithm: str
    settings: dict[str, Any]


def train(
    env: str,
    agents: Sequence[tuple[str, dict[str, Any]]],
    steps: int,
    seeds: int,
    learning_rates: Sequence[float] | None,
    given: dict[str, Any],
    out: Path,
    checkpoint_interval: int,
    tensorboard: bool,
    wandb: bool,
    quiet: bool,
) -> tuple[pd.DataFrame, bool]:
    """Train every agent with every learning rate and every seed; the records of all, and whether all steps were taken."""
    need_gymnasium()
    from .classes import HOST_AGENTS
    from .making import make_env

    whole_number("steps", steps)
    whole_number("seeds", seeds, most=MOST_RUNS)
    whole_number("checkpoint_interval", checkpoint_interval)
    jobs = _jobs(agents, seeds, learning_rates, given)
    first = [HOST_AGENTS[job.algorithm](make_env(env), **job.settings) for job in jobs if job.settings["seed"] == 0]
    _refuse_namesakes([(agent.agent.label, agent.settings.learning_rate) for agent in first])
    about = {"environment": env, "trainings": [agent.describe() for agent in first], "seeds": seeds}
    console = standard_error(quiet=quiet)
    with held(out, "host training", about):
        for job in jobs:
            if not _run(job, env, steps, out, jobs, checkpoint_interval, tensorboard, wandb, console):
                console.print("Stopped. What is done is kept; the same command goes on from there.")
                return _gather(out, jobs), False
        return _gather(out, jobs), True


def _run(
    job: HostRun,
    env: str,
    steps: int,
    out: Path,
    jobs: Sequence[HostRun],
    checkpoint_interval: int,
    tensorboard: bool,
    wandb: bool,
    console: Console,
) -> bool:
    """One run to its last step, which is kept with all it needs to go on; False if it was stopped before."""
    from .classes import HOST_AGENTS
    from .making import make_env

    def say(sentence: str) -> None:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    folder, kind = out / "runs" / job.name, HOST_AGENTS[job.algorithm]
    keeper = Keeper(folder)
    new = kind(make_env(env), **job.settings)
    agent = keeper.load(new, lambda: make_env(env), say) or new
    left = steps - agent.num_timesteps
    if left > 0 or _records(folder) is None:
        with writing(folder / "records.parquet"):
            make_folder(folder, within=out)
            agent.records.write(
                folder
            )  # as they were then: after a kill there may be some from later, which come again
    if left <= 0:
        say(f"{job.name} is at step {agent.num_timesteps:,} already.")
        return True
    begun = f", going on from step {agent.num_timesteps:,}" if agent.num_timesteps else ""
    say(f"{job.name}{begun}: {agent.driver.need} of memory.")
    saved = agent.num_timesteps

    def keep(row: dict[str, Any]) -> None:
        nonlocal saved
        _gather(out, jobs)
        if row["step"] - saved >= checkpoint_interval or row["step"] >= steps:
            keeper.save(agent)
            saved = row["step"]

    try:
        agent.learn(
            left, progress_bar=not console.quiet, callback=keep, out=folder, tensorboard=tensorboard, wandb=wandb
        )
    except KeyboardInterrupt as stop:
        if isinstance(stop, Stopped):  # else it goes on from the last checkpoint, as after a kill
            keeper.save(agent)
        return False
    return True


def _jobs(
    agents: Sequence[tuple[str, dict[str, Any]]],
    seeds: int,
    learning_rates: Sequence[float] | None,
    given: dict[str, Any],
) -> list[HostRun]:
    jobs = []
    for text, common in agents:
        name, own = parse_arguments(text, **common)
        own = {key: value for key, value in own.items() if value is not False}
        for rate in learning_rates or (None,):
            settings = {**given, **own, **({} if rate is None else {"learning_rate": rate})}
            label = "-".join([file_name(text), *([] if rate is None else [f"{rate:g}"])])
            jobs += [HostRun(f"{label}-seed{seed}", name, {**settings, "seed": seed}) for seed in range(seeds)]
    twice = next((name for name, times in Counter(job.name for job in jobs).items() if times > 1), None)
    if twice is not None:
        raise HostError(f"{twice.removesuffix('-seed0')} is named twice")
    return jobs


def _refuse_namesakes(variants: Sequence[tuple[str, float]]) -> None:
    """Refuse two agents that the records could not tell apart."""
    (label, _), times = Counter(variants).most_common(1)[0]
    if times > 1:
        raise HostError(f"two agents would both be called {label} in the records: train them in two trainings")


def _gather(out: Path, jobs: Sequence[HostRun]) -> pd.DataFrame:
    """All runs' records in one table."""
    found = [_records(out / "runs" / job.name) for job in jobs]
    tables = [table for table in found if table is not None]
    if not tables:
        return pd.DataFrame()
    whole = pd.concat(tables, ignore_index=True).sort_values(
        ["step", "variant", "learning_rate", "seed"], ignore_index=True, kind="stable"
    )
    with writing(out / "records.parquet"):
        write_whole(out / "records.parquet", as_parquet(whole), within=out)
    return whole


def _records(folder: Path) -> pd.DataFrame | None:
    """A run's records; None if they are not there or damaged, and its checkpoint has to give them anew."""
    try:
        return read_table(folder / "records.parquet")
    except ContentError:
        return None
