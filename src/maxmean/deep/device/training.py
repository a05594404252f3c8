"""Training: the front door of deep Q-learning. It measures, records, keeps checkpoints, and goes on where it was stopped."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
from rich.console import Console

from ... import envs
from ...cluster import check_engine
from .. import checkpoint, policy
from ..agent import Agent
from ..checks import AgentError, truth, whole_number
from ..core.memory import Need, fitting, refuse_too_much
from ..directory import clear, held, writing
from ..places import refuse_spread
from ..policy import Policy
from ..progress import SilentReporter, Times, interruptible, make_reporter, standard_error
from ..records import Records
from ..runs import file_name
from ..settings import Settings
from ..spread import ENGINES
from .block import Block, make_blocks
from .memory import how_many_tests, need
from .plan import TrainingPlan, describe_environment

CHECKPOINT_INTERVAL = 50_000
LONG = 60.0
"""Seconds; a training that took longer says at its end what they were spent on."""


@dataclass(frozen=True)
class Training:
    """What a training has found."""

    plan: TrainingPlan
    records: pd.DataFrame
    """One row for each run at each test; see :mod:`maxmean.deep.records`."""
    heads: pd.DataFrame
    """The bias of each head."""
    quantiles: pd.DataFrame
    """The bias in each fifth of the visited pairs, by their predicted value."""
    policies: dict[str, Policy]
    """The best seed's policy of each variant, by the mean of its last ten test returns."""
    memory: Need
    finished: bool
    """Whether all steps were taken; not so if it was interrupted."""


def train(
    environment: str | envs.Environment,
    agents: str | Agent | Sequence[str | Agent],
    *,
    steps: int,
    seeds: int | Sequence[int] = 1,
    learning_rates: float | Sequence[float] | None = None,
    settings: Settings = Settings(),  # noqa: B008  (frozen)
    out: str | Path | None = None,
    checkpoint_interval: int = CHECKPOINT_INTERVAL,
    workers: int | None = None,
    batched: bool | None = None,
    engine: str = "local",
    address: str | None = None,
    quiet: bool = True,
    console: Console | None = None,
    on_record: Callable[[dict[str, Any]], None] | None = None,
) -> Training:
    """Train every agent with every learning rate and every seed on an environment, for ``steps`` steps each.

    Parameters
    ----------
    steps
        Steps of each run, the random ones at the beginning included.
    environment
        A name for :func:`maxmean.envs.make`, or an environment.
    agents
        One or several, or their names (``"te-bdqn:0.2"``); those that differ in numbers and rules only train in one program.
    seeds
        How many (0, 1, ...), or which ones. The same seed gives every variant the same luck.
    learning_rates
        One or several, instead of ``settings.learning_rate``.
    settings
        All other hyper-parameters; see :class:`Settings`.
    out
        A directory for records, checkpoints and policies. If it holds this training already, it goes on from there.
    checkpoint_interval
        Steps between two checkpoints; the last two are kept. On a GPU it also limits how many tests are run at once, on which the
        last bits of what they find may depend.
    workers
        Runs side by side on a CPU; by default one for each core. On a Ray cluster, tasks at once.
    batched
        Whether the runs of a family advance in one program; by default on everything but a CPU.
    engine
        ``"local"``, or ``"ray"``: the runs are spread over a Ray cluster's cores, or over its GPUs if it has some. Needs ``out``.
    address
        A running Ray cluster (``"auto"``, ``"HOST:6379"``); left out, one is started on this machine.
    quiet
        Whether to say nothing of the progress.
    console
        Where to say it; standard error by default.
    on_record
        Called with each new row of the records. On a GPU up to ten tests are run at once, at the latest before a checkpoint.

    Examples
    --------
    >>> from maxmean import deep
    >>> small = deep.Settings(warmup=100, replay_capacity=400, test_interval=200, test_episodes=2, bias_episodes=2, hidden=8)
    >>> found = deep.train("minatar/breakout", deep.DQN(), steps=400, settings=small)
    >>> found.records[["step", "variant", "seed"]].to_dict("list")
    {'step': [200, 400], 'variant': ['dqn', 'dqn'], 'seed': [0, 0]}
    """
    steps, checkpoint_interval = (
        whole_number(name, value) for name, value in (("steps", steps), ("checkpoint_interval", checkpoint_interval))
    )
    workers = None if workers is None else whole_number("workers", workers)
    if batched is not None:
        truth("batched", batched)
    if not (out is None or isinstance(out, str | os.PathLike)):
        raise AgentError(f"out must be a path, not {out!r}")
    if not (on_record is None or callable(on_record)):
        raise AgentError(f"on_record must be a function of a record, which is a dict, not {on_record!r}")
    world = envs.make(environment) if isinstance(environment, str) else environment
    if not isinstance(world, envs.Environment):
        raise AgentError(f"environment must be a name or an environment of maxmean.envs, not {environment!r}")
    if not isinstance(settings, Settings):
        raise AgentError(f"settings must be maxmean.deep.Settings, not {type(settings).__name__}")
    check_engine(engine, ENGINES, workers, address)
    if engine == "ray" and out is None:
        raise AgentError("the ray engine keeps what its tasks do in a directory: give one as out")
    plan = TrainingPlan.of(world, agents, seeds, learning_rates, settings)
    console = console or standard_error()
    if engine == "ray":
        from .spreading import train_spread

        return train_spread(
            plan, steps, Path(str(out)), checkpoint_interval, workers, batched, address, quiet, console, on_record
        )
    tests = how_many_tests(plan, batched, checkpoint_interval // settings.test_interval)
    blocks = make_blocks(plan, batched=batched, tests=tests)
    needed = need(blocks)
    refuse_too_much(needed)
    with (
        fitting(needed),
        nullcontext() if out is None else held(Path(out), "device training", plan.describe()) as folder,
    ):
        for block in blocks:
            block.create()

        def warn(sentence: str) -> None:
            console.print(sentence, markup=False, highlight=False, soft_wrap=True)

        def say(sentence: str) -> None:
            if not quiet:
                warn(sentence)

        if folder is not None:
            refuse_spread(folder)
        kept = None if folder is None else checkpoint.restore(folder / "checkpoints", blocks, steps, warn)
        records = kept or Records()
        begin = min(block.step for block in blocks)
        runs = sum(len(block.runs) for block in blocks)
        device = jax.devices()[0].device_kind
        say(f"{runs} run{'s' * (runs > 1)} of {world.name} on {device}: {needed} of memory.")
        if begin:
            say(f"Going on from step {begin:,}." if begin < steps else f"At step {begin:,} already.")
        session = Session(blocks, records, steps, settings, folder, checkpoint_interval, on_record)
        with make_reporter(console, quiet, steps, runs, begin) as reporter, interruptible() as stopped:
            finished = session.run(workers or os.cpu_count() or 1, reporter, stopped)
        best = best_policies(blocks, records)
        if folder is not None and finished:
            write_policies(folder, best)
    return Training(plan, records.frame(), records.frame("heads"), records.frame("quantiles"), best, needed, finished)


@dataclass
class Session:
    """A training under way."""

    blocks: list[Block]
    records: Records
    steps: int
    settings: Settings
    folder: Path | None
    checkpoint_interval: int
    on_record: Callable[[dict[str, Any]], None] | None
    times: Times = field(default_factory=Times)
    warned: set[tuple[str, float, int]] = field(default_factory=set)
    """Runs of which it was said that they diverged."""

    def run(self, workers: int, reporter: SilentReporter, stopped: Callable[[], bool]) -> bool:
        """Train to the end; true unless stopped before."""
        kept_at = min(block.step for block in self.blocks)
        with ThreadPoolExecutor(1 if self.blocks[0].compiled.batched else workers) as pool:
            while (step := min(block.step for block in self.blocks)) < self.steps:
                stop = self._next_test(step)
                with self.times("learning"):
                    self._advance(pool, stop, reporter, stopped)
                    arrived = all(block.step >= stop for block in self.blocks)
                    if arrived:
                        list(pool.map(Block.look, self.blocks))
                if not arrived:
                    return self._stop(pool, reporter)
                keeps = stop - kept_at >= self.checkpoint_interval or stop >= self.steps
                if keeps or any(block.has_all for block in self.blocks):
                    self._measure(pool, reporter)
                if keeps:
                    self._keep()
                    kept_at = stop
                if stopped() and stop < self.steps:
                    return self._stop(pool, reporter)
        if self.times.total > LONG:
            reporter.say(str(self.times))
        return True

    def _stop(self, pool: ThreadPoolExecutor, reporter: SilentReporter) -> bool:
        """Keep what is done. Whoever stands at a test has been tested by now: a training that goes on begins behind it."""
        self._measure(pool, reporter)
        self._keep()
        kept = " What is done is kept; the same command goes on from there." if self.folder else ""
        reporter.say(f"Stopped.{kept}")
        return False

    def _measure(self, pool: ThreadPoolExecutor, reporter: SilentReporter) -> None:
        """Run the tests that wait, and record what they find."""
        if not self.blocks[0].waiting:
            return
        with self.times("tests and bias estimates"):
            measured = list(pool.map(Block.measure, self.blocks))
        with self.times("records and checkpoints"):
            for test in zip(*measured, strict=True):
                for block, (step, found) in zip(self.blocks, test, strict=True):
                    for row in self.records.add(block.runs, step, found):
                        self._heed(row, reporter)
            reporter.record(self.records)
            if self.folder:
                with writing(self.folder / "records.parquet"):
                    self.records.write(self.folder)

    def _advance(
        self, pool: ThreadPoolExecutor, stop: int, reporter: SilentReporter, stopped: Callable[[], bool]
    ) -> None:
        """Bring all blocks to ``stop``."""

        def advance(block: Block) -> None:
            while block.step < stop and not stopped():
                block.advance(min(stop, block.step + self.settings.target_period), stopped)
                reporter.tick(min(each.step for each in self.blocks))

        list(pool.map(advance, self.blocks))

    def _heed(self, row: dict[str, Any], reporter: SilentReporter) -> None:
        """Hand a new row on, and say so if its run has diverged."""
        if self.on_record:
            self.on_record(row)
        who = (row["variant"], row["learning_rate"], row["seed"])
        if row["diverged"] >= 0 and who not in self.warned:
            self.warned.add(who)
            reporter.say(
                f"{who[0]} with learning rate {who[1]:g} and seed {who[2]} diverged: its loss is not finite since step "
                f"{row['diverged']:,}. It stays in the results, and the others go on."
            )

    def _next_test(self, step: int) -> int:
        return min(self.steps, (step // self.settings.test_interval + 1) * self.settings.test_interval)

    def _keep(self) -> None:
        if self.folder:
            with self.times("records and checkpoints"):
                checkpoint.save(self.folder / "checkpoints", self.blocks, self.records)


def write_policies(folder: Path, best: dict[str, Policy]) -> None:
    """Write the best policies to a training's directory."""
    clear(folder / "policies")
    for name, each in best.items():
        with writing(folder / "policies" / f"{name}.safetensors"):
            each.save(folder / "policies" / name, within=folder)


def best_policies(blocks: Sequence[Block], records: Records) -> dict[str, Policy]:
    """The policy of each variant's best seed that has not diverged, by the mean of its last ten test returns."""
    frame = records.frame()
    if frame.empty:
        return {}
    scores = frame.groupby(["variant", "learning_rate", "seed"], sort=False)["test_return"].agg(
        lambda s: s.tail(10).mean()
    )
    lost = frame.groupby(["variant", "learning_rate", "seed"])["diverged"].max() >= 0
    found: dict[str, tuple[float, Policy]] = {}
    rates = frame["learning_rate"].nunique()
    for block in blocks:
        for i, run in enumerate(block.runs):
            label, rate = run.variant.label, run.variant.learning_rate
            if lost[label, rate, run.seed]:
                continue
            score = float(scores[label, rate, run.seed])
            name = file_name(label if rates == 1 else f"{label}-{rate:g}")
            if name in found and not score > found[name][0]:
                continue
            last = frame[
                (frame["variant"] == label) & (frame["learning_rate"] == rate) & (frame["seed"] == run.seed)
            ].iloc[-1]
            program, agent = block.compiled.program, run.variant.agent
            about = {
                "environment": describe_environment(program.environment),
                "variant": label,
                "learning_rate": rate,
                "seed": run.seed,
                "step": int(block.step),
                "test_return": score if np.isfinite(score) else None,
                "bias": float(last["bias"]) if np.isfinite(last["bias"]) else None,
            }
            found[name] = (
                score,
                policy.export(program.network, block.run_weights(i), agent.members, agent.bootstrapped, about),
            )
    return {name: each for name, (_, each) in found.items()}
