"""A training on the device, spread over a Ray cluster.

On cores a task trains one run, as a thread does in one process, so that no bit depends on where it is trained. On GPUs it trains
one GPU's share of a family's runs, in one program; there, last bits may depend on how many runs that program has. At the end the
tasks' checkpoints become one, and the directory is as if the training had never been spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console

from ...cluster import described, found, gpus, joined
from ...storage import make_folder
from .. import checkpoint
from ..core.memory import fitting, refuse_too_much
from ..directory import CheckpointError, held, writing
from ..places import RUNS, Mark, Place, discard, read_mark
from ..policy import Policy
from ..progress import make_reporter
from ..records import TABLES, Records
from ..runs import file_name
from ..spread import leave_gpus, spread
from ..telling import Teller
from .block import Block, make_blocks
from .memory import how_many_tests, need
from .plan import TrainingPlan
from .training import Session, Training, best_policies, write_policies


@dataclass(frozen=True)
class DevicePart:
    """Neighbours among the runs of a block."""

    name: str
    plan: TrainingPlan
    batched: bool
    block: int
    first: int
    runs: int
    steps: int
    checkpoint_interval: int

    def own(self, blocks: Sequence[Block]) -> Block:
        """They alone, in the program that the block has."""
        whole = blocks[self.block]
        return Block(whole.compiled, whole.runs[self.first : self.first + self.runs], self.plan.settings, whole.tests)

    def describe(self) -> dict[str, Any]:
        """What the part is of, as plain values, for its folder."""
        return {**self.plan.describe(), "part": self.name}

    def train(self, folder: Path, teller: Teller) -> bool:
        tests = how_many_tests(self.plan, self.batched, self.checkpoint_interval // self.plan.settings.test_interval)
        block = self.own(make_blocks(self.plan, batched=self.batched, tests=tests))
        needed = need([block])
        refuse_too_much(needed)
        with fitting(needed), held(folder, "device training", self.describe()):
            block.create()
            records = checkpoint.restore(folder / "checkpoints", [block], self.steps, teller.say) or Records()
            if 0 < block.step < self.steps:
                teller.say(f"going on from step {block.step:,}.")
            teller.watch(lambda: block.step, records)
            session = Session([block], records, self.steps, block.settings, folder, self.checkpoint_interval, None)
            return session.run(1, teller, teller.stopped)


def divide(
    plan: TrainingPlan, blocks: Sequence[Block], steps: int, checkpoint_interval: int, batched: bool, pieces: int
) -> list[DevicePart]:
    """The runs of each block in so many parts of about the same size, or as many as it has runs."""
    parts = []
    for i, block in enumerate(blocks):
        share = math.ceil(len(block.runs) / pieces)
        for first in range(0, len(block.runs), share):
            runs = block.runs[first : first + share]
            (variant, seed), last = runs[0], runs[-1]
            name = f"{i:04d}-{file_name(variant.label)}-{variant.learning_rate:g}-seed{seed}"
            if len(runs) > 1:
                name += f"-to-{file_name(last.variant.label)}-{last.variant.learning_rate:g}-seed{last.seed}"
            parts.append(DevicePart(name, plan, batched, i, first, len(runs), steps, checkpoint_interval))
    return parts


def train_spread(
    plan: TrainingPlan,
    steps: int,
    out: Path,
    checkpoint_interval: int,
    workers: int | None,
    batched: bool | None,
    address: str | None,
    quiet: bool,
    console: Console,
    on_record: Callable[[dict[str, Any]], None] | None,
) -> Training:
    """What :func:`maxmean.deep.train` does on a Ray cluster."""
    ray = found(address)
    leave_gpus()

    def warn(sentence: str) -> None:
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def say(sentence: str) -> None:
        if not quiet:
            warn(sentence)

    with held(out, "device training", plan.describe()) as folder:
        with joined(address, workers, ray=ray, say=say) as ray:
            mark = read_mark(folder) or _shares(plan, batched, gpus(ray))
            blocks = make_blocks(plan, batched=mark.batched)
            needed = need(blocks)
            refuse_too_much(needed)  # in the end they come together here
            parts = divide(plan, blocks, steps, checkpoint_interval, mark.batched, mark.pieces)
            with fitting(needed), _on_a_cpu():
                _hand_out(folder, parts, blocks, steps, warn)
            place = Place.of(folder, mark)
            runs, tasks = sum(part.runs for part in parts), len(parts)
            say(
                f"{runs} run{'s' * (runs > 1)} of {plan.environment.name} in {tasks} task{'s' * (tasks > 1)} on {described(ray)}."
            )

            def keep(records: Records) -> None:
                with writing(folder / "records.parquet"):
                    records.write(folder)

            with make_reporter(console, quiet, steps, runs, 0) as reporter:
                resources = {"num_cpus": 1, "num_gpus": int(gpus(ray) > 0 and mark.batched)}
                finished, records = spread(
                    ray, parts, place, reporter, keep, on_record=on_record, resources=resources, workers=workers
                )
        best: dict[str, Policy] = {}
        if finished:
            with fitting(needed), _on_a_cpu():
                records = _bring_together(folder, parts, blocks, steps, warn)
                best = best_policies(blocks, records)
                checkpoint.save(folder / "checkpoints", blocks, records)
            write_policies(folder, best)
        keep(records)
        if finished:
            with writing(folder / RUNS):
                discard(folder / RUNS)
    return Training(plan, records.frame(), records.frame("heads"), records.frame("quantiles"), best, needed, finished)


def _shares(plan: TrainingPlan, batched: bool | None, devices: int) -> Mark:
    """How the runs are shared out."""
    together = devices > 0 if batched is None else batched
    families = len(plan.groups())
    return Mark(together, math.ceil(max(devices, 1) / families) if together else 1)


def _hand_out(
    folder: Path, parts: Sequence[DevicePart], blocks: Sequence[Block], steps: int, say: Callable[[str], None]
) -> None:
    """Give each part what the training has kept of its runs, if it was not spread until now."""
    if read_mark(folder) is not None or not checkpoint.checkpoints(folder / "checkpoints"):
        return
    for block in blocks:
        block.create()
    records = checkpoint.restore(folder / "checkpoints", blocks, steps, say)
    if records is None:
        return
    for part in parts:
        own = part.own(blocks)
        whole, rows = blocks[part.block], slice(part.first, part.first + part.runs)
        own.state = jax.tree.map(lambda leaf, rows=rows: leaf[rows], whole.state) if part.batched else whole.state
        own.step = whole.step
        here = {(run.variant.label, run.variant.learning_rate, run.seed) for run in own.runs}
        mine = {
            table: [row for row in records.rows[table] if (row["variant"], row["learning_rate"], row["seed"]) in here]
            for table in TABLES
        }
        with writing(folder / RUNS / part.name):
            make_folder(folder / RUNS / part.name, within=folder)
        with held(folder / RUNS / part.name, "device training", part.describe()) as place:
            checkpoint.save(place / "checkpoints", [own], Records(mine))


def _bring_together(
    folder: Path, parts: Sequence[DevicePart], blocks: Sequence[Block], steps: int, say: Callable[[str], None]
) -> Records:
    """Put the blocks where the parts have their runs; the records of all."""
    rows: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLES}
    states: list[list[Any]] = [[] for _ in blocks]
    for part in parts:
        own, where = part.own(blocks), folder / RUNS / part.name
        own.create()
        records = checkpoint.restore(where / "checkpoints", [own], steps, say)
        if records is None or own.step < steps:
            raise CheckpointError(
                f"{where} holds no sound checkpoint of step {steps:,}: the same command goes on from it"
            )
        for table in TABLES:
            rows[table] += records.rows[table]
        states[part.block].append(jax.tree.map(np.asarray, own.state))
        blocks[part.block].step = own.step
    for block, pieces in zip(blocks, states, strict=True):
        block.state = jax.tree.map(lambda *leaves: np.concatenate(leaves), *pieces) if len(pieces) > 1 else pieces[0]
    return Records(rows)


@contextmanager
def _on_a_cpu() -> Iterator[None]:
    """What is only put together needs no GPU."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield
