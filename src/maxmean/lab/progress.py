"""Progress of a run: a live bar an experiment on a terminal, plain lines when piped, nothing when asked to be quiet."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class Reporter(Protocol):
    """Hears what happens in a run."""

    def begin(self, name: str, total: int, done: int) -> None:
        """An experiment starts, with ``done`` of its shards there already."""
        ...

    def advance(self, name: str) -> None:
        """One more of its shards is done."""
        ...

    def say(self, sentence: str) -> None:
        """Something that a person should know."""
        ...


class Silent:
    """Says nothing."""

    def begin(self, name: str, total: int, done: int) -> None: ...
    def advance(self, name: str) -> None: ...
    def say(self, sentence: str) -> None: ...
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to put away."""


class Bars(Silent):
    """Live bars with rate and time left."""

    def __init__(self, console: Console) -> None:
        self.progress = Progress(
            TextColumn("{task.fields[name]:<16}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}", markup=False),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
        )
        self.tasks: dict[str, tuple[TaskID, float, int]] = {}

    def begin(self, name: str, total: int, done: int) -> None:
        task = self.progress.add_task("", start=False, total=total, completed=done, name=name, rate="")
        self.tasks[name] = (task, 0.0, 0)

    def advance(self, name: str) -> None:
        task, begin, count = self.tasks[name]
        if count == 0:  # the clock of an experiment starts with its first shard, not with the first experiment
            begin = time.monotonic()
            self.progress.start_task(task)
        self.tasks[name] = (task, begin, count + 1)
        rate = f"{count / max(time.monotonic() - begin, 1e-9):.1f} shards/s" if count else ""
        self.progress.update(task, advance=1, rate=rate)

    def say(self, sentence: str) -> None:
        self.progress.console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()


class Lines(Silent):
    """A line when an experiment starts and ends, and at most one every few seconds between."""

    def __init__(self, console: Console, every: float = 5.0) -> None:
        self.console, self.every = console, every
        self.counts: dict[str, tuple[int, int, float]] = {}

    def begin(self, name: str, total: int, done: int) -> None:
        self.counts[name] = (done, total, time.monotonic())
        self.say(f"{name}: {done} of {total} shards done")

    def advance(self, name: str) -> None:
        done, total, last = self.counts[name]
        late = time.monotonic() - last >= self.every
        self.counts[name] = (done + 1, total, time.monotonic() if late else last)
        if late or done + 1 == total:
            self.say(f"{name}: {done + 1} of {total} shards done")

    def say(self, sentence: str) -> None:
        self.console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def make_reporter(console: Console, quiet: bool) -> Silent:
    """The reporter that fits where the output goes."""
    if quiet:
        return Silent()
    return Bars(console) if console.is_terminal else Lines(console)
