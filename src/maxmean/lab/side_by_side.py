"""Shards side by side on one GPU, each in a process of its own, which draws the same random numbers whatever runs beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait

from rich.console import Console

from ..cluster import ATTEMPTS
from .calibration import calibrate
from .children import Child, LostError, stop
from .gpu import Sharing, shared_gpu
from .tasks import Task, TaskResult, compute


class SideBySide:
    """As many shards at once on this machine's GPU as there is memory for and a short calibration finds worth while.

    ``workers`` says how many instead. Without NVIDIA's multi-process service they come one after the other: together they would
    only take turns.
    """

    def __init__(self, workers: int | None = None, console: Console | None = None) -> None:
        self.workers, self.console = workers, console

    def run(self, tasks: Sequence[Task]) -> Iterator[TaskResult]:
        if not tasks:
            return
        with shared_gpu(tasks, self._say) as sharing:
            tasks = sharing.longest_first(tasks)
            room = self.workers
            if room is None:
                calibration = calibrate(sharing.mixed(tasks), sharing, self._say)
                room = calibration.number
                if calibration.rates:
                    self._say(str(calibration))
            elif room > 1 and sharing.gpu is not None and not sharing.overlapping:
                self._say(f"Without it, {room} shards at once take turns.")
            yield from self._pack(tasks, sharing, room)

    def _pack(self, tasks: Sequence[Task], sharing: Sharing, room: int) -> Iterator[TaskResult]:
        """Outcomes of the tasks, with at most ``room`` of them under way. One that fails is tried again, the last time alone."""
        waiting, running = list(tasks), dict[Connection, tuple[Child, Task]]()
        names = {task.shard.key: f"[{i} {task.experiment.brief(task.shard.part)}]" for i, task in enumerate(tasks, 1)}
        tried: Counter[str] = Counter()

        def alone(task: Task) -> bool:
            return tried[task.shard.key] == ATTEMPTS - 1

        def chosen() -> Task | None:
            """The next one that may begin now."""
            beside = [task for _, task in running.values()]
            if not beside:
                return waiting[0] if waiting else None
            if len(beside) >= room or any(map(alone, beside)):
                return None
            fitting = [task for task in waiting if not alone(task) and sharing.fits([*beside, task])]
            return sharing.beside(beside, fitting) if fitting else None

        try:
            while waiting or running:
                while (task := chosen()) is not None:
                    waiting.remove(task)
                    child = Child(_compute, task, self.console is not None, environment=sharing.environment)
                    running[child.connection] = child, task
                    self._say(f"{names[task.shard.key]} begins")
                for connection in wait(list(running)):
                    child, task = running[connection]  # type: ignore[index]
                    try:
                        heard = child.hear()
                    except LostError as lost:
                        heard = TaskResult(task.shard, None, error=str(lost))
                    if isinstance(heard, str):
                        self._say(f"{names[task.shard.key]} {heard}")
                        continue
                    del running[connection]  # type: ignore[arg-type]
                    child.end()
                    tried[task.shard.key] += 1
                    if heard.table is None and tried[task.shard.key] < ATTEMPTS:
                        self._say(f"{names[task.shard.key]} failed, and is tried again: {_last_line(heard.error)}")
                        waiting.append(task)
                    else:
                        yield heard
        finally:
            if running:
                self._say("Stopping; what is under way keeps a checkpoint. Ctrl-C again does not wait for that.")
            stop(child for child, _ in running.values())

    def _say(self, sentence: str) -> None:
        if self.console is not None:
            self.console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def _compute(connection: Connection, task: Task, aloud: bool) -> None:
    """In a child: the lines that the shard says, then what came of it."""
    console = Console(file=_Lines(connection), width=200) if aloud else None  # type: ignore[arg-type]
    connection.send(compute(task, console))


class _Lines:
    """A file whose lines go over a pipe."""

    def __init__(self, connection: Connection) -> None:
        self.connection, self.begun = connection, ""

    def write(self, text: str) -> int:
        *lines, self.begun = (self.begun + text).split("\n")
        for line in filter(None, lines):
            try:
                self.connection.send(line)
            except OSError:
                break  # nobody listens any more; the shard keeps its checkpoint all the same
        return len(text)

    def flush(self) -> None:
        """A line goes as soon as it ends."""


def _last_line(error: str) -> str:
    return (error.strip().splitlines() or ["no reason is known"])[-1]
