"""What a task tells of itself while it trains: to a board, from which the driver takes it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from .progress import SilentReporter
from .records import TABLES, Records

BEAT = 1.0
"""Seconds between two messages of a task."""


class TaskNews(NamedTuple):
    """What a task tells."""

    part: str
    attempt: int
    step: int
    begins: dict[str, int]
    """How many rows of each table come before those that are told."""
    rows: dict[str, list[dict[str, Any]]]
    sentences: list[str]
    begin: int | None = None
    """The step that the task began at, once it has begun."""
    restored: int = 0
    """How many rows of the records were there then."""


class Reply(NamedTuple):
    """What a task hears when it tells."""

    stop: bool = False
    again: bool = False
    """Whether to tell all rows from the first on, for some were lost."""


class Board:
    """Where tasks leave messages, and learn whether to stop. It is an actor: it has a process of its own, which may be lost."""

    def __init__(self) -> None:
        self.messages: list[TaskNews] = []
        self.stopping, self.torn = False, frozenset[str]()

    def tell(self, message: TaskNews) -> Reply:
        """Leave a message."""
        self.messages.append(message)
        return Reply(self.stopping, message.part in self.torn)

    def take(self, stopping: bool, torn: Collection[str]) -> list[TaskNews]:
        """All messages that nobody has taken yet; of the parts ``torn``, some got lost before."""
        self.stopping, self.torn = stopping, frozenset(torn)
        taken, self.messages = self.messages, []
        return taken


Tell = Callable[[TaskNews], Reply | None]
"""Leaves a message on the board; None if that does not answer."""


class _Watched(NamedTuple):
    """What a teller tells of: changed as one, for another thread reads it."""

    step: Callable[[], int]
    records: Records
    begin: int | None
    restored: int


class Teller(SilentReporter):
    """Tells the board about a part, every now and then, from a thread beside the training."""

    def __init__(self, tell: Tell, part: str, attempt: int) -> None:
        self.part, self.attempt, self._tell = part, attempt, tell
        self.sentences: list[str] = []
        self._watched = _Watched(lambda: 0, Records(), None, 0)
        self._told = dict.fromkeys(TABLES, 0)
        self._stop, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def watch(self, step: Callable[[], int], records: Records) -> None:
        """Tell of this step and these records from now on."""
        self._watched = _Watched(step, records, step(), len(records.rows["records"]))

    def say(self, sentence: str) -> None:
        """Tell something that a person should know; that it was stopped is told by whoever stopped it."""
        if not self.stopped():
            self.sentences.append(sentence)

    def stopped(self) -> bool:
        """Whether the board has asked to stop."""
        return self._stop.is_set()

    def news(self, begins: dict[str, int] | None = None) -> TaskNews:
        """How things stand, with the rows that come after so many; by default with all."""
        begins = begins or dict.fromkeys(TABLES, 0)
        step, records, begin, restored = self._watched
        at = step()
        rows = {table: records.rows[table][first:] for table, first in begins.items()}
        return TaskNews(self.part, self.attempt, at, begins, rows, list(self.sentences), begin, restored)

    def __enter__(self) -> Teller:
        self._once()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()
        self._once()

    def _beat(self) -> None:
        while not self._end.wait(BEAT):
            self._once()

    def _once(self) -> None:
        message = self.news(dict(self._told))
        reply = self._tell(message)
        if reply is None:
            return  # next time
        if reply.stop:
            self._stop.set()
        del self.sentences[: len(message.sentences)]
        self._told = {
            table: 0 if reply.again else first + len(message.rows[table]) for table, first in message.begins.items()
        }
