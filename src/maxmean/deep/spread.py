"""A training spread over a Ray cluster: who sends the tasks, hears of them, and sends them again when they are lost."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from ..cluster import ATTEMPTS, ClusterError, Lost, drain
from .directory import writing
from .places import RUNS, Place, discard, pack, settle, unpack
from .progress import SilentReporter, interruptible
from .records import TABLES, Records
from .tasks import Outcome, Part, compute
from .telling import BEAT, Board, Reply, TaskNews

ENGINES = ("local", "ray")
"""Where a training can train."""


@dataclass
class Heard:
    """What the tasks of a training have told so far."""

    parts: Sequence[Part]
    on_record: Callable[[dict[str, Any]], None] | None = None
    steps: dict[str, int] = field(default_factory=dict)
    begins: dict[str, int] = field(default_factory=dict)
    """The steps that the parts began at."""
    rows: dict[str, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    handed: set[tuple[Any, ...]] = field(default_factory=set)
    """The records that were handed on."""
    torn: set[str] = field(default_factory=set)
    """The parts of which some rows did not come."""
    news: bool = False

    def hear(self, message: TaskNews) -> None:
        """Take a message in. A task that was sent again tells all from where it goes on, and what it told before is forgotten."""
        name = message.part
        if message.attempt < self.attempts.get(name, 0):
            return  # from a process that was given up, and lives
        self.attempts[name] = message.attempt
        if message.begin is None:
            return
        self.steps[name] = message.step
        self.begins.setdefault(name, message.begin)
        mine = self.rows.setdefault(name, {table: [] for table in TABLES})
        if any(begin > len(mine[table]) for table, begin in message.begins.items()):
            self.torn.add(name)
            return
        self.torn.discard(name)
        for table, begin in message.begins.items():
            mine[table][begin:] = message.rows[table]
            self.news = self.news or bool(message.rows[table])
        for i, row in enumerate(message.rows["records"], message.begins["records"]):
            who = (row["variant"], row["learning_rate"], row["seed"], row["step"])
            if who not in self.handed:
                self.handed.add(who)
                if self.on_record and (message.attempt > 1 or i >= message.restored):
                    self.on_record(row)

    @property
    def mean_step(self) -> int:
        """How far the runs are, on average."""
        return self._mean(self.steps)

    @property
    def mean_begin(self) -> int:
        """How far they were when their tasks began; as 0, like their steps, where those have not told yet."""
        return self._mean(self.begins)

    def _mean(self, steps: dict[str, int]) -> int:
        return sum(steps.get(part.name, 0) * part.runs for part in self.parts) // sum(part.runs for part in self.parts)

    def records(self) -> Records:
        """The tables of all runs."""
        return Records({table: [row for rows in self.rows.values() for row in rows[table]] for table in TABLES})


def spread(
    ray: Any,
    parts: Sequence[Part],
    place: Place,
    reporter: SilentReporter,
    keep: Callable[[Records], None],
    *,
    on_record: Callable[[dict[str, Any]], None] | None = None,
    resources: dict[str, int],
    workers: int | None = None,
) -> tuple[bool, Records]:
    """Have a cluster train all parts, whose folders are in the training's directory then: whether none was stopped, and records.

    ``keep`` is called with the records from time to time. A task is given up when it was lost so many times (:data:`ATTEMPTS`)
    without getting any further; the others go on, and then a :class:`ClusterError` says which ones were given up.
    """
    board = ray.remote(Board).options(num_cpus=0, max_restarts=-1).remote()
    heard, sent, lost = Heard(parts, on_record), dict.fromkeys((part.name for part in parts), 0), dict[str, int]()
    reached, wanted = dict[str, int](), dict[str, dict[str, bytes]]()
    failed: dict[str, str] = {}
    finished, written, tidying = True, time.monotonic(), list[Any]()
    with writing(place.out / RUNS):
        for part in parts:
            settle(place.out / RUNS / part.name)
    work = ray.remote(_remotely).options(name="train", max_retries=0, **resources)

    def send(part: Part) -> Any:
        sent[part.name] += 1
        kept = (place.out / RUNS / part.name).is_dir()
        return work.remote(part, place, board, sent[part.name], wanted.pop(part.name, None), kept)

    def again(part: Part, outcome: Outcome | Lost) -> bool:
        name = part.name
        if isinstance(outcome, Lost):
            further = heard.steps.get(name, 0) > reached.get(name, -1)
            reached[name] = max(reached.get(name, -1), heard.steps.get(name, 0))
            lost[name] = 1 if further else lost[name] + 1
            if not stopped() and lost[name] < ATTEMPTS:
                reporter.say(f"{name} was lost ({outcome.reason}); it is sent again.")
                return True
            return False
        if outcome.wanting:
            wanted[name] = pack(place.out / RUNS / name)
            sent[name] -= 1  # it has not begun
        return outcome.wanting and not stopped()

    def hear(message: TaskNews) -> None:
        heard.hear(message)
        for sentence in message.sentences:
            reporter.say(f"{message.part}: {sentence}")

    def beat() -> None:
        nonlocal written
        try:
            messages = ray.get(board.take.remote(stopped(), heard.torn), timeout=30)
        except ray.exceptions.RayError:
            return  # the board is on its way to another machine; tasks are asked for what it held when rows are missing
        for message in messages:
            hear(message)
        reporter.tick(heard.mean_step, heard.mean_begin)
        if heard.news and time.monotonic() - written > 10 * BEAT:
            keep(heard.records())
            reporter.record(heard.records())
            heard.news, written = False, time.monotonic()

    with interruptible() as stopped, closing(drain(ray, parts, send, again, room=workers, beat=beat)) as ended:
        for part, outcome in ended:
            if isinstance(outcome, Lost):
                failed[part.name] = outcome.reason
                continue
            if outcome.news is not None:
                hear(outcome.news)
            if outcome.files is not None:
                with writing(place.out / RUNS / part.name):
                    unpack(place.out / RUNS / part.name, outcome.files)
                tidying.append(_tidy(ray, outcome))
            if outcome.error:
                failed[part.name] = outcome.error
            finished = finished and outcome.finished
        beat()
        if tidying:
            ray.wait(tidying, num_returns=len(tidying), timeout=30)
        if stopped():
            reporter.say("Stopped. What is done is kept; the same command goes on from there.")
            return False, heard.records()
    if heard.rows:
        reporter.record(heard.records())
    if failed:
        name, why = next(iter(failed.items()))
        runs, all_runs = (sum(p.runs for p in parts if p.name in some) for some in (failed, sent))
        raise ClusterError(
            f"{runs} of {all_runs} runs failed; the first of them, {name}: {why.rstrip('.')}. What is done is kept, and the same "
            "command goes on from there"
        )
    return finished, heard.records()


def leave_gpus() -> None:
    """Have JAX take no more of this machine's GPUs than it needs, for tasks may want them; before its first array."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def _tidy(ray: Any, outcome: Outcome) -> Any:
    """Remove what a task had on its machine; nobody minds if that is lost by now."""
    there = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(outcome.node, soft=False)
    return ray.remote(discard).options(num_cpus=0, max_retries=0, scheduling_strategy=there).remote(outcome.folder)


def _remotely(
    part: Part, place: Place, board: Any, attempt: int, files: dict[str, bytes] | None, kept: bool
) -> Outcome:
    """On a machine of the cluster. A board that does not answer is no reason to stop."""
    import ray

    def tell(message: TaskNews) -> Reply | None:
        try:
            return Reply(*ray.get(board.tell.remote(message), timeout=30))
        except ray.exceptions.RayError:
            return None

    outcome = compute(part, place, tell, attempt, files, kept)
    return outcome._replace(node=ray.get_runtime_context().get_node_id())
