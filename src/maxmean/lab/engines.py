"""Engines: where shards are computed. In this process, in a pool of processes, or on a Ray cluster.

An engine takes tasks and yields an outcome for each, in whatever order they finish. It does not write tables: the
caller keeps them, so a cluster needs no shared disk. Shards that can go on from checkpoints keep those where they are computed;
on a disk of its own a node goes on with what it began itself.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from ..errors import missing
from ..storage import as_parquet
from .errors import LabError
from .experiment import Experiment, Shard

ATTEMPTS = 3
"""How often a shard is tried before it is reported as failed."""
MOST_WORKERS = 1_024
"""How many processes may compute at once."""


@dataclass(frozen=True)
class Task:
    """A shard with the experiment that can compute it."""

    experiment: Experiment[Any]
    settings: Any
    shard: Shard
    folder: Path
    """Where a long shard may keep its state."""


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
    """Compute one shard. Whatever goes wrong in it is an outcome, not an exception."""
    begin = time.perf_counter()
    try:
        table = task.experiment.resume(task.settings, task.shard.part, task.shard.rng(), task.folder, console)
        return TaskResult(task.shard, as_parquet(table), time.perf_counter() - begin)
    except Exception:
        return TaskResult(task.shard, None, time.perf_counter() - begin, traceback.format_exc(limit=-3))


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
        try:
            import ray
        except ImportError:
            raise LabError(missing("the ray engine", "ray")) from None
        started = not ray.is_initialized()
        if started:
            _check_reachable(self.address)
            local = {"address": "local", "num_cpus": self.workers or cores(), "include_dashboard": False}
            try:
                ray.init(
                    **({"address": self.address} if self.address else local),
                    log_to_driver=self.aloud and any(map(_fills_a_gpu, tasks)),
                    logging_level=logging.ERROR,
                )
            except (
                Exception
            ) as error:  # of many kinds: no cluster, another version of Ray or Python, no room to start one
                where = f"no Ray cluster answers at {self.address!r}" if self.address else "Ray does not start here"
                said = (str(error).strip() or type(error).__name__).splitlines()[0]
                raise LabError(f"{where}: {said}") from None
        try:
            yield from self._drain(ray, tasks)
        finally:
            if started:
                ray.shutdown()

    def _drain(self, ray: Any, tasks: Sequence[Task]) -> Iterator[TaskResult]:
        gpus = ray.cluster_resources().get("GPU", 0) > 0

        def send(task: Task) -> Any:
            large = _fills_a_gpu(task)
            work = ray.remote(_compute_aloud if large and self.aloud else compute)
            resources = {"num_cpus": 1, "num_gpus": int(gpus and large)}
            return work.options(name=task.experiment.name, max_retries=0, **resources).remote(task)

        tried = {task.shard.key: 1 for task in tasks}
        running = {send(task): task for task in tasks}
        while running:
            (done, *_), _ = ray.wait(list(running), num_returns=1)
            task = running.pop(done)
            try:
                outcome = ray.get(done)
            except ray.exceptions.RayError as error:
                outcome = TaskResult(task.shard, None, error=str(error).splitlines()[0])
            if outcome.table is None and tried[task.shard.key] < ATTEMPTS:
                tried[task.shard.key] += 1
                running[send(task)] = task
            else:
                yield outcome


def _fills_a_gpu(task: Task) -> bool:
    return task.experiment.wants_gpu(task.settings)


def _compute_aloud(task: Task) -> TaskResult:
    """In another process: its standard error is what it has."""
    return compute(task, Console(stderr=True, width=200))


def _check_reachable(address: str | None) -> None:
    """Refuse an address where no cluster can be; Ray itself would try for minutes, or import what the address names."""
    if address in (None, "auto", "local"):
        return
    place = re.fullmatch(r"(?:ray://)?(?:\[([0-9a-fA-F:]+)\]|([\w.-]+)):([0-9]{1,5})", address)
    if place is None or not 0 < int(place[3]) < 2**16:
        raise LabError(f"the address of a Ray cluster is auto, HOST:PORT or ray://HOST:PORT, not {address!r}")
    try:
        with socket.create_connection((place[1] or place[2], int(place[3])), timeout=10) as talk:
            if "RAY_USE_TLS" not in os.environ and not _speaks_http2(talk):
                raise LabError(
                    f"no Ray cluster answers at {address!r}: something else does; by default it has port 6379"
                )
    except OSError as error:
        raise LabError(f"no Ray cluster answers at {address!r}: {error.strerror or error}") from None


def _speaks_http2(talk: socket.socket) -> bool:
    """Whether what listens begins as every gRPC server does: a client's preface is answered with a frame of settings."""
    preface, settings = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 4
    talk.sendall(preface + bytes([0, 0, 0, settings, 0, 0, 0, 0, 0]))
    head = b""
    while len(head) < 4 and (more := talk.recv(9)):
        head += more
    return len(head) >= 4 and head[3] == settings


def make_engine(name: str, workers: int | None, address: str | None, console: Console | None = None) -> ShardEngine:
    """An engine by the name that the command line uses. With a console, shards that take long say how far they are."""
    if workers is not None and not 1 <= workers <= MOST_WORKERS:
        raise LabError(f"workers must be a whole number from 1 to {MOST_WORKERS:,}, not {workers}")
    if address is not None and name != "ray":
        raise LabError("an address goes with the ray engine: --engine ray")
    match name:
        case "inline":
            return Inline(console)
        case "processes":
            return Processes(workers)
        case "ray":
            return Ray(address, workers, aloud=console is not None)
    raise LabError(f"unknown engine {name!r} (there are inline, processes, ray)")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, get_context("spawn"), _begin_worker, (os.getpid(),))


def _begin_worker(parent: int) -> None:
    """Workers leave Ctrl-C to the parent, and follow it when it dies without a word."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def follow() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _stop(pool: ProcessPoolExecutor) -> None:
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()
