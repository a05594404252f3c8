"""Engines: where shards are computed. In this process, in a pool of processes, side by side on a GPU, or on a Ray cluster.

An engine takes tasks and yields an outcome for each, in whatever order they finish. It does not write tables: the
caller keeps them, so a cluster needs no shared disk. Shards that can go on from checkpoints keep those where they are computed;
on a disk of its own a node goes on with what it began itself.
"""

from __future__ import annotations

import os
import signal
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import Any

from rich.console import Console

from ..cluster import ATTEMPTS, Lost, check_engine, cores, drain, gpus, joined
from .children import follow
from .side_by_side import SideBySide
from .tasks import ShardEngine, Task, TaskResult, compute

ENGINES = ("inline", "processes", "gpu", "ray")


class Inline:
    """One shard after the other, in this process."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console

    def run(self, tasks: Sequence[Task]) -> Iterator[TaskResult]:
        for task in tasks:
            outcome = compute(task, self.console)
            for _ in range(ATTEMPTS - 1):
                if outcome.table is not None:
                    break
                outcome = compute(task, self.console)
            yield outcome


class Processes:
    """A pool of processes on this machine; by default as many as it has cores."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or cores()

    def run(self, tasks: Sequence[Task]) -> Iterator[TaskResult]:
        left = {task.shard.key: task for task in tasks}
        tried: Counter[str] = Counter()
        suspects: set[str] = set()
        while left:
            # When a worker is killed the whole pool breaks, and nobody knows over which shard. What was under way then is
            # tried again one at a time, so that the next one to break the pool is the culprit.
            chosen = [task for key, task in left.items() if key in suspects or not suspects]
            pool = _pool(1 if suspects else min(self.workers, len(chosen)))
            running: dict[Future[TaskResult], Task] = {}
            try:
                for outcome in _drain(pool, 1 if suspects else 2 * self.workers, chosen, running, tried):
                    del left[outcome.shard.key]
                    yield outcome
                suspects.clear()
            except BrokenExecutor:
                broken = {task.shard.key for task in running.values()}
                tried.update(broken)
                if suspects:
                    (culprit,) = broken
                    if tried[culprit] >= ATTEMPTS:
                        yield TaskResult(left.pop(culprit).shard, None, error="the process that computed it was killed")
                suspects = (suspects or broken) & set(left)
            finally:
                _stop(pool)


def _drain(
    pool: ProcessPoolExecutor,
    room: int,
    tasks: Sequence[Task],
    running: dict[Future[TaskResult], Task],
    tried: Counter[str],
) -> Iterator[TaskResult]:
    """Outcomes of ``tasks``, with at most ``room`` of them in the pool. Raises BrokenExecutor with ``running`` as it was."""
    waiting = deque(tasks)
    while waiting or running:
        while waiting and len(running) < room:
            task = waiting.popleft()
            running[pool.submit(compute, task)] = task
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            outcome = future.result()
            task = running.pop(future)
            tried[task.shard.key] += 1
            if outcome.table is None and tried[task.shard.key] < ATTEMPTS:
                waiting.append(task)
            else:
                yield outcome


class Ray:
    """A Ray cluster: a running one at ``address``, or one started on this machine for the occasion.

    With ``aloud`` one hears how far the shards are that fill a GPU: Ray brings their lines from wherever they are computed.
    """

    def __init__(self, address: str | None = None, workers: int | None = None, *, aloud: bool = False) -> None:
        self.address, self.workers, self.aloud = address, workers, aloud

    def run(self, tasks: Sequence[Task]) -> Iterator[TaskResult]:
        tried: Counter[str] = Counter()

        def again(task: Task, outcome: TaskResult | Lost) -> bool:
            tried[task.shard.key] += 1
            failed = isinstance(outcome, Lost) or outcome.table is None
            return failed and tried[task.shard.key] < ATTEMPTS

        aloud = self.aloud and any(task.fills_a_gpu for task in tasks)
        with joined(self.address, self.workers, aloud=aloud) as ray:
            on_gpus = gpus(ray) > 0

            def send(task: Task) -> Any:
                large = task.fills_a_gpu
                work = ray.remote(_compute_aloud if large and self.aloud else compute)
                resources = {"num_cpus": 1, "num_gpus": int(on_gpus and large)}
                return work.options(name=task.experiment.name, max_retries=0, **resources).remote(task)

            for task, outcome in drain(ray, tasks, send, again):
                yield TaskResult(task.shard, None, error=outcome.reason) if isinstance(outcome, Lost) else outcome


def _compute_aloud(task: Task) -> TaskResult:
    """In another process: its standard error is what it has."""
    return compute(task, Console(stderr=True, width=200))


def make_engine(name: str, workers: int | None, address: str | None, console: Console | None = None) -> ShardEngine:
    """An engine by the name that the command line uses. With a console, shards that take long say how far they are."""
    check_engine(name, ENGINES, workers, address)
    match name:
        case "inline":
            return Inline(console)
        case "processes":
            return Processes(workers)
        case "gpu":
            return SideBySide(workers, console)
    return Ray(address, workers, aloud=console is not None)


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, get_context("spawn"), _begin_worker, (os.getpid(),))


def _begin_worker(parent: int) -> None:
    """Workers leave Ctrl-C to the parent, and follow it when it dies without a word."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    follow(parent)


def _stop(pool: ProcessPoolExecutor) -> None:
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
