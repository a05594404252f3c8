"""The GPU of this machine, and what shards take of it. Only child processes hold some of its memory, never this one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

from .children import Child, LostError, stop
from .errors import LabError
from .mps import multi_process_service
from .tasks import Task

_AS_NEEDED = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
"""By default JAX takes three quarters of a GPU's memory at once, so that a second program would find none."""
_NO_OTHER = {"JAX_PLATFORMS": "cuda,cpu"}
"""A program that does not get the GPU must fail, and be tried again; by default JAX would train on the CPU for days."""


@dataclass(frozen=True)
class Load:
    """What a shard takes of a GPU."""

    memory: int
    """Bytes."""
    seconds: float
    """Roughly, on some GPU: with it the longest shards come first."""
    full: bool = False
    """Whether it keeps the whole GPU busy: two such gain less beside each other than others do beside one of them."""


class GpuWork(Protocol):
    """Shards that are made for a GPU."""

    def load(self, part: Mapping[str, Any]) -> Load:
        """What a shard takes of it."""

    def trial(self, part: Mapping[str, Any]) -> Callable[[float], float]:
        """A shard, compiled: called with some seconds, it computes for so long, and returns its steps a second."""


@dataclass(frozen=True)
class Gpu:
    """A GPU, as JAX describes it."""

    name: str
    memory: int | None
    """Bytes that JAX gives to arrays, by default three quarters of what is there; the rest is for CUDA and the programs."""


@dataclass(frozen=True)
class Sharing:
    """How tasks share the GPU."""

    gpu: Gpu | None
    """None if JAX finds none."""
    loads: dict[str, Load]
    """By the key of the shard."""
    environment: dict[str, str]
    """What a process that computes a task needs."""
    overlapping: bool
    """Whether kernels of several programs overlap."""

    def longest_first(self, tasks: Sequence[Task]) -> list[Task]:
        return sorted(tasks, key=lambda task: -self.loads[task.shard.key].seconds)

    def full(self, task: Task) -> bool:
        """Whether it keeps the whole GPU busy."""
        return self.loads[task.shard.key].full

    def mixed(self, tasks: Sequence[Task]) -> list[Task]:
        """In the order in which they had better begin, if none of them ended: the longest, and beside it what gains there."""
        waiting, begun = self.longest_first(tasks), list[Task]()
        while waiting:
            begun.append(waiting.pop(waiting.index(self.beside(begun, waiting))))
        return begun

    def beside(self, running: Sequence[Task], waiting: Sequence[Task]) -> Task:
        """The next one of those that wait, the longest first."""
        return waiting[next_beside([*map(self.full, running)], [*map(self.full, waiting)])]

    def fits(self, tasks: Sequence[Task]) -> bool:
        """Whether the memory has room for all of them at once."""
        if self.gpu is None or self.gpu.memory is None:
            return True
        return sum(self.loads[task.shard.key].memory for task in tasks) <= self.gpu.memory


def next_beside(running: Sequence[bool], waiting: Sequence[bool]) -> int:
    """Which of those that wait begins next, where True is for a shard that fills the GPU: beside such a one, one that does not.

    >>> next_beside([True], [True, True, False]), next_beside([True], [True, True]), next_beside([False], [True, False])
    (2, 0, 0)
    """
    return waiting.index(False) if any(running) and not all(waiting) else 0


def has_gpu() -> bool:
    """Whether this machine has a GPU of NVIDIA's, whose programs can share it. To ask JAX would take some of its memory."""
    return any(Path("/dev").glob("nvidia[0-9]*"))


@contextmanager
def shared_gpu(tasks: Sequence[Task], say: Callable[[str], None]) -> Iterator[Sharing]:
    """The GPU, ready for several programs at once where NVIDIA's service is there; ``say`` hears of what is not."""
    with multi_process_service(say) as variables:
        try:
            gpu, loads = _look(tasks, variables or {})
        except LostError as lost:
            if not variables:
                raise _unknown(lost) from None
            gpu = None
        if gpu is None and variables:
            say("JAX finds no GPU through NVIDIA's multi-process service.")
            variables = None
            try:
                gpu, loads = _look(tasks, {})
            except LostError as lost:
                raise _unknown(lost) from None
        if gpu is None:
            say("JAX finds no GPU: shards are computed on the CPU.")
        environment = _AS_NEEDED | (variables or {}) | (_NO_OTHER if gpu else {})
        yield Sharing(gpu, loads, environment, overlapping=gpu is not None and variables is not None)


def _look(tasks: Sequence[Task], variables: dict[str, str]) -> tuple[Gpu | None, dict[str, Load]]:
    """What a child sees of the GPU, and what the tasks will take of it."""
    child = Child(_tell, tasks, environment=_AS_NEEDED | variables)
    try:
        found: tuple[Gpu | None, dict[str, Load]] = child.hear()
    finally:
        stop([child])
    return found


def _unknown(lost: LostError) -> LabError:
    return LabError(f"what the shards take of the GPU cannot be found out: {lost}; --engine inline goes without")


def _tell(connection: Connection, tasks: Sequence[Task]) -> None:
    connection.send((_seen(), {task.shard.key: _load(task) for task in tasks}))


def _seen() -> Gpu | None:
    """The GPU that JAX finds in this process."""
    try:
        import jax

        if jax.default_backend() == "cpu":
            return None
    except Exception:  # of many kinds: JAX is not there, or was told of a platform that is not
        return None
    from ..deep.core.memory import available

    return Gpu(jax.devices()[0].device_kind, available())


def _load(task: Task) -> Load:
    work = task.on_gpu
    return Load(0, 0.0) if work is None else work.load(task.shard.part)
