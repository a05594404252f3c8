"""What a task of a spread training does: it trains some of the runs, in a folder of their own, and tells how far it is.

The folder is in the training's directory where the task can reach that; else it is on the task's machine, and the files come
back when the task ends. Either way it goes on from what is there.
"""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..errors import MaxmeanError
from ..storage import half_written, make_folder, write_whole
from ..untrusted import ContentError, read_json
from .directory import BusyError, CheckpointError, writing
from .progress import SilentReporter, stoppable
from .records import TABLES, Records

RUNS = "runs"
"""The folder of a training's directory in which tasks have theirs."""
MARK = "spread.json"
"""What tells in there that the training is spread, and a task that it has reached its training's own directory."""
PATIENCE = 60.0
"""Seconds that a task waits for its folder: a process whose machine is lost to the cluster may be in there for a while."""
BEAT = 1.0
"""Seconds between two messages of a task."""


class Part(Protocol):
    """Some runs of a training, which one task trains. It is sent to another process."""

    @property
    def name(self) -> str:
        """Its folder's."""

    @property
    def runs(self) -> int:
        """How many they are."""

    def train(self, folder: Path, teller: Teller) -> bool:
        """Train in a folder, from what is there to the end; False if it was stopped before."""


class TaskNews(NamedTuple):
    """What a task tells."""

    part: str
    attempt: int
    step: int
    begins: dict[str, int]
    """How many rows of each table come before those that are told."""
    rows: dict[str, list[dict[str, Any]]]
    restored: int
    """How many rows of the records were there when the task began."""
    sentences: list[str]


class Board:
    """Where tasks leave messages, and learn whether to stop. It is an actor: it has a process of its own."""

    def __init__(self) -> None:
        self.messages: list[TaskNews] = []
        self.stopping = False

    def tell(self, message: TaskNews) -> bool:
        """Leave a message; whether to stop."""
        self.messages.append(message)
        return self.stopping

    def take(self, stopping: bool) -> list[TaskNews]:
        """All messages that nobody has taken yet."""
        self.stopping = stopping
        taken, self.messages = self.messages, []
        return taken


Tell = Callable[[TaskNews], bool | None]
"""Leaves a message on the board; whether to stop, or None if the board does not answer."""


class Teller(SilentReporter):
    """Tells the board about a part, every now and then, from a thread beside the training."""

    def __init__(self, tell: Tell, part: str, attempt: int) -> None:
        self.part, self.attempt, self._tell = part, attempt, tell
        self.sentences: list[str] = []
        self._step: Callable[[], int] = lambda: 0
        self._records, self._told, self._restored = Records(), dict.fromkeys(TABLES, 0), 0
        self._stop, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def watch(self, step: Callable[[], int], records: Records) -> None:
        """Tell of this step and these records from now on."""
        self._restored, self._records, self._step = len(records.rows["records"]), records, step

    def say(self, sentence: str) -> None:
        """Tell something that a person should know; that it was stopped is told by whoever stopped it."""
        if not self.stopped():
            self.sentences.append(sentence)

    def stopped(self) -> bool:
        """Whether the board has asked to stop."""
        return self._stop.is_set()

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
        step, begins = self._step(), dict(self._told)
        rows = {table: self._records.rows[table][begin:] for table, begin in begins.items()}
        said = list(self.sentences)
        answer = self._tell(TaskNews(self.part, self.attempt, step, begins, rows, self._restored, said))
        if answer is None:
            return  # next time
        if answer:
            self._stop.set()
        del self.sentences[: len(said)]
        for table in TABLES:
            self._told[table] += len(rows[table])


@dataclass(frozen=True)
class Place:
    """Where the folders of the tasks are."""

    out: Path
    """The training's directory, where one can reach it."""
    token: str
    """What the mark there says, and no other one."""

    @classmethod
    def of(cls, out: Path, about: dict[str, Any]) -> Place:
        """Mark a training's directory as one whose runs are spread; ``about`` says how."""
        found = {"token": secrets.token_hex(16), **about}
        with writing(out / RUNS / MARK):
            make_folder(out / RUNS, within=out)
            write_whole(out / RUNS / MARK, json.dumps(found).encode(), within=out)
        return cls(out.absolute(), found["token"])

    def reached(self) -> bool:
        """Whether this process sees the training's directory."""
        return (read_mark(self.out) or {}).get("token") == self.token

    def folder(self, part: str) -> Path:
        """The folder of a part, as this process has it."""
        if self.reached():
            return self.out / RUNS / part
        return Path(tempfile.gettempdir()) / f"maxmean-{self.token}" / part


def read_mark(out: Path) -> dict[str, Any] | None:
    """What the mark in a directory says; None if there is none."""
    try:
        found = read_json(out / RUNS / MARK)
    except ContentError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("token"), str) else None


class Outcome(NamedTuple):
    """What came of a task."""

    finished: bool
    files: dict[str, bytes] | None = None
    """Of the part's folder, where they are not in the training's directory."""
    wanting: bool = False
    """Whether it has to be sent again, with the files that the training's directory has of it."""
    error: str = ""
    """A sentence, if it cannot be done."""


def compute(part: Part, place: Place, tell: Tell, attempt: int, files: dict[str, bytes] | None, kept: bool) -> Outcome:
    """What a task does. ``kept`` is whether the training's directory has files of the part, and ``files`` are these."""
    reached, folder = place.reached(), place.folder(part.name)
    if not reached and not folder.exists():
        if kept and files is None:
            return Outcome(False, wanting=True)
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        unpack(folder, files or {})
    began = time.monotonic()
    while True:
        try:
            with Teller(tell, part.name, attempt) as teller, stoppable(teller.stopped):
                finished = not teller.stopped() and part.train(folder, teller)
            break
        except BusyError as error:
            if time.monotonic() - began > PATIENCE:
                return Outcome(False, error=str(error))
            time.sleep(1.0)
        except MaxmeanError as error:
            return Outcome(False, error=str(error))
    if reached:
        return Outcome(finished)
    outcome = Outcome(finished, pack(folder))
    shutil.rmtree(folder, ignore_errors=True)
    return outcome


def pack(folder: Path) -> dict[str, bytes]:
    """The files of a folder by their names."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not half_written(path))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def unpack(folder: Path, files: dict[str, bytes]) -> None:
    """A folder with these files and no others."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        make_folder((folder / name).parent, within=folder)
        write_whole(folder / name, content, within=folder)


def refuse_spread(out: Path) -> None:
    """Refuse to train in one process what a cluster has begun."""
    if read_mark(out) is not None:
        raise CheckpointError(
            f"{out} was begun on a Ray cluster and is not finished: go on with --engine ray, or choose another directory"
        )
