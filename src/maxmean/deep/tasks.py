"""What a task of a spread training does: it trains some of the runs, in a folder of their own, from what is there."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple, Protocol

from ..errors import MaxmeanError
from .directory import BusyError
from .places import Place, pack, unpack
from .progress import stoppable
from .telling import TaskNews, Tell, Teller

PATIENCE = 60.0
"""Seconds that a task waits for its folder: a process whose machine is lost to the cluster may be in there for a while."""


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


class Outcome(NamedTuple):
    """What came of a task."""

    finished: bool
    news: TaskNews | None = None
    """All that it has to tell, whatever the board has heard."""
    files: dict[str, bytes] | None = None
    """Of the part's folder, where they are not in the training's directory."""
    folder: Path | None = None
    """Where they are, until they have come home,"""
    node: str = ""
    """and on which of the cluster's machines."""
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
        teller = Teller(tell, part.name, attempt)
        try:
            with teller, stoppable(teller.stopped):
                finished = not teller.stopped() and part.train(folder, teller)
            break
        except BusyError as error:
            if time.monotonic() - began > PATIENCE:
                return Outcome(False, teller.news(), error=str(error))
            time.sleep(1.0)
        except MaxmeanError as error:
            return Outcome(False, teller.news(), error=str(error))
    if reached:
        return Outcome(finished, teller.news())
    return Outcome(finished, teller.news(), pack(folder), folder)
