"""``maxmean train`` in Gymnasium's environments: one run after the other, or on a cluster; each goes on where it was stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
from rich.console import Console

from ...cluster import check_engine, described, found, gpus, joined
from ...storage import as_parquet, make_folder, write_whole
from ...untrusted import ContentError
from ..agents import parse_arguments
from ..checks import whole_number
from ..directory import held, writing
from ..places import MARK, RUNS, Mark, Place, read_mark, refuse_spread
from ..progress import make_reporter, standard_error
from ..records import Records, read_table
from ..runs import MOST_RUNS, file_name
from ..spread import ENGINES, leave_gpus, spread
from ..telling import Teller
from .errors import HostError, Stopped
from .keeping import Keeper
from .making import need_gymnasium

if TYPE_CHECKING:
    from .agent import HostAgent

MOST_ENVIRONMENTS = 1_024
"""Side by side in one training."""


class HostRun(NamedTuple):
    """One run."""

    name: str
    algorithm: str
    settings: dict[str, Any]


@dataclass(frozen=True)
class HostTraining:
    """What all runs of a training share."""

    env: str
    steps: int
    checkpoint_interval: int
    tensorboard: bool
    wandb: bool
    num_envs: int = 1

    def make(self) -> Any:
        """The environment, or several side by side."""
        from .making import make_training

        return make_training(self.env, self.num_envs)

    def run(
        self,
        job: HostRun,
        folder: Path,
        say: Callable[[str], None],
        *,
        told: Callable[[HostAgent], object] = lambda agent: None,
        on_record: Callable[[], object] = lambda: None,
        progress: bool = False,
    ) -> bool:
        """One run to its last step, which is kept in its folder with all it needs to go on; False if it was stopped before.

        ``told`` is called with the agent before it learns, ``on_record`` after each record.
        """
        from .classes import HOST_AGENTS

        kind, keeper = HOST_AGENTS[job.algorithm], Keeper(folder)
        new = kind(self.make(), **job.settings)
        agent = keeper.load(new, self.make, say) or new
        told(agent)
        left = self.steps - agent.num_timesteps
        if left > 0 or _records(folder) is None:
            with writing(folder / "records.parquet"):
                make_folder(folder, within=folder.parents[1])
                agent.records.write(folder)  # after a kill there may be some from later, which come again
        if left <= 0:
            say(f"{job.name} is at step {agent.num_timesteps:,} already.")
            return True
        begun = f", going on from step {agent.num_timesteps:,}" if agent.num_timesteps else ""
        say(f"{job.name}{begun}: {agent.driver.need} of memory.")
        saved = agent.num_timesteps

        def keep() -> None:
            nonlocal saved
            step, every = agent.num_timesteps, self.checkpoint_interval
            if step // every > saved // every or step >= self.steps:
                keeper.save(agent)
                saved = step

        def recorded(row: dict[str, Any]) -> None:
            on_record()

        agent.after_step = keep
        sinks = {"tensorboard": self.tensorboard, "wandb": self.wandb}
        try:
            agent.learn(left, progress_bar=progress, callback=recorded, out=folder, **sinks)
        except KeyboardInterrupt as stop:
            if isinstance(stop, Stopped):  # else it goes on from the last checkpoint, as after a kill
                keeper.save(agent)
            return False
        return True


@dataclass(frozen=True)
class HostPart:
    """A run that a task of a cluster trains."""

    training: HostTraining
    job: HostRun
    runs: int = 1

    @property
    def name(self) -> str:
        return self.job.name

    def train(self, folder: Path, teller: Teller) -> bool:
        need_gymnasium()
        return self.training.run(
            self.job,
            folder,
            lambda sentence: teller.say(sentence.removeprefix(self.name).lstrip(":, ")),
            told=lambda agent: teller.watch(lambda: agent.num_timesteps, agent.records),
        )


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
    *,
    num_envs: int = 1,
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
) -> tuple[pd.DataFrame, bool]:
    """Train every agent with every learning rate and every seed; the records of all, and whether all steps were taken."""
    need_gymnasium()
    whole_number("num_envs", num_envs, most=MOST_ENVIRONMENTS)
    whole_number("steps", steps)
    whole_number("seeds", seeds, most=MOST_RUNS)
    whole_number("checkpoint_interval", checkpoint_interval)
    check_engine(engine, ENGINES, workers, address)
    training = HostTraining(env, steps, checkpoint_interval, tensorboard, wandb, num_envs)
    jobs = _jobs(agents, seeds, learning_rates, given)
    ray = None
    if engine == "ray":
        ray = found(address)
        leave_gpus()
    about = {"environment": env, "trainings": _variants(training, jobs), "seeds": seeds}
    console = standard_error(quiet=quiet)

    def say(sentence: str) -> None:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    with held(out, "host training", about):
        if engine == "ray":
            return _spread(ray, training, jobs, out, workers, address, console, say)
        refuse_spread(out)
        for job in jobs:
            folder = out / RUNS / job.name
            if not training.run(job, folder, say, on_record=lambda: _gather(out, jobs), progress=not quiet):
                say("Stopped. What is done is kept; the same command goes on from there.")
                return _gather(out, jobs), False
        return _gather(out, jobs), True


def _spread(
    ray: Any,
    training: HostTraining,
    jobs: Sequence[HostRun],
    out: Path,
    workers: int | None,
    address: str | None,
    console: Console,
    say: Callable[[str], None],
) -> tuple[pd.DataFrame, bool]:
    """All runs, as tasks of a Ray cluster."""

    def keep(records: Records) -> None:
        with writing(out / "records.parquet"):
            write_whole(out / "records.parquet", as_parquet(records.frame()), within=out)

    runs = len(jobs)
    with (
        joined(address, workers, ray=ray, say=say) as ray,
        make_reporter(console, bool(console.quiet), training.steps, runs, 0) as reporter,
    ):
        place = Place.of(out, read_mark(out) or Mark())
        say(f"{runs} run{'s' * (runs > 1)} of {training.env} on {described(ray)}.")
        parts, resources = [HostPart(training, job) for job in jobs], {"num_cpus": 1, "num_gpus": int(gpus(ray) > 0)}
        finished, _ = spread(ray, parts, place, reporter, keep, resources=resources, workers=workers)
    if finished:
        (out / RUNS / MARK).unlink()
    return _gather(out, jobs), finished


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


def _variants(training: HostTraining, jobs: Sequence[HostRun]) -> list[dict[str, Any]]:
    """What is trained with every seed, as the agents of the first one say."""
    from .classes import HOST_AGENTS

    labels, told = [], []
    for job in jobs:
        if job.settings["seed"] == 0:
            agent = HOST_AGENTS[job.algorithm](training.make(), **job.settings)
            labels.append((agent.agent.label, agent.settings.learning_rate))
            told.append(agent.describe())
            for world in (agent.driver.world, agent.driver.eval_world):
                if world is not None:
                    world.env.close()
    _refuse_namesakes(labels)
    return told


def _refuse_namesakes(variants: Sequence[tuple[str, float]]) -> None:
    """Refuse two agents that the records could not tell apart."""
    (label, _), times = Counter(variants).most_common(1)[0]
    if times > 1:
        raise HostError(f"two agents would both be called {label} in the records: train them in two trainings")


def _gather(out: Path, jobs: Sequence[HostRun]) -> pd.DataFrame:
    """All runs' records in one table."""
    found = [_records(out / RUNS / job.name) for job in jobs]
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
