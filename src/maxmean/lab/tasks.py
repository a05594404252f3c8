"""Tasks: a shard with all that it takes to compute it, and what comes of it. Engines pass them on."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console

from ..errors import MaxmeanError
from ..storage import as_parquet
from .experiment import Experiment, Shard

if TYPE_CHECKING:
    from .gpu import GpuWork


@dataclass(frozen=True)
class Task:
    """A shard with the experiment that can compute it."""

    experiment: Experiment[Any]
    settings: Any
    shard: Shard
    folder: Path
    """Where a long shard may keep its state."""

    @property
    def on_gpu(self) -> GpuWork | None:
        return self.experiment.on_gpu(self.settings)

    @property
    def fills_a_gpu(self) -> bool:
        return self.on_gpu is not None


@dataclass(frozen=True)
class TaskResult:
    """What came of a task: a table as Parquet bytes, or the reason why there is none."""

    shard: Shard
    table: bytes | None
    seconds: float = 0.0
    error: str = ""


class ShardEngine(Protocol):
    """Anything that computes tasks."""

    def run(self, tasks: Sequence[Task]) -> Iterator[TaskResult]:
        """Outcomes as they come; closing the iterator stops the work."""
        ...


def compute(task: Task, console: Console | None = None) -> TaskResult:
    """Compute one shard. Whatever goes wrong in it is an outcome: a sentence that says what to do, or a fault with its trace."""
    begin = time.perf_counter()
    try:
        table = task.experiment.resume(task.settings, task.shard.part, task.shard.rng(), task.folder, console)
        return TaskResult(task.shard, as_parquet(table), time.perf_counter() - begin)
    except MaxmeanError as error:  # its sentence says what to do
        return TaskResult(task.shard, None, time.perf_counter() - begin, str(error))
    except Exception:
        return TaskResult(task.shard, None, time.perf_counter() - begin, traceback.format_exc(limit=-3))
