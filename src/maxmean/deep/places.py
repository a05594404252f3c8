"""Where the tasks of a spread training have their folders, what tells that it is spread, and how folders travel.

A task's folder is in the training's directory where the task can reach that; else it is on the task's machine, and the files come
back when the task ends.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..mev.show import shortened
from ..storage import PREFIX, flush, half_written, make_folder, refuse_links, write_whole
from ..untrusted import ContentError, MisfitError, read_json, take, truth, whole
from .directory import CheckpointError, writing

RUNS = "runs"
"""The folder of a training's directory in which tasks have theirs."""
MARK = "spread.json"
"""What tells in there that the training is spread, and a task that it has reached its training's own directory."""


@dataclass(frozen=True)
class Mark:
    """That a training is spread, and how its runs are shared out."""

    batched: bool = False
    """Whether in programs of many runs."""
    pieces: int = 1
    """In how many parts of each family."""
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    """What this mark says, and no other one."""


@dataclass(frozen=True)
class Place:
    """Where the folders of the tasks are."""

    out: Path
    """The training's directory, where one can reach it."""
    token: str
    """What the mark there says, and no other one."""

    @classmethod
    def of(cls, out: Path, mark: Mark) -> Place:
        """Mark a training's directory as one whose runs are spread."""
        with writing(out / RUNS / MARK):
            make_folder(out / RUNS, within=out)
            write_whole(out / RUNS / MARK, json.dumps(asdict(mark)).encode(), within=out)
        return cls(out.absolute(), mark.token)

    def reached(self) -> bool:
        """Whether this process sees the training's directory."""
        try:
            return _mark(self.out / RUNS / MARK).token == self.token
        except ContentError:
            return False

    def folder(self, part: str) -> Path:
        """The folder of a part, as this process has it."""
        if self.reached():
            return self.out / RUNS / part
        return Path(tempfile.gettempdir()) / f"maxmean-{self.token}" / part


def read_mark(out: Path) -> Mark | None:
    """What the mark in a directory says; None if there is none."""
    path = out / RUNS / MARK
    if not os.path.lexists(path):
        return None
    try:
        return _mark(path)
    except ContentError as fault:
        raise CheckpointError(
            f"{path} cannot be used: {shortened(str(fault), 100)}; choose another directory"
        ) from None


def refuse_spread(out: Path) -> None:
    """Refuse to train in one process what a cluster has begun."""
    if read_mark(out) is not None:
        raise CheckpointError(
            f'{out} was begun on a Ray cluster and is not finished: go on with engine="ray" (--engine ray), which one machine '
            "can do as well, or choose another directory"
        )


def _mark(path: Path) -> Mark:
    found = read_json(path)
    if not isinstance(found, dict):
        raise ContentError("it holds no JSON object")
    return Mark(take(found, "batched", truth), take(found, "pieces", whole(1)), take(found, "token", _token))


def _token(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch("[0-9a-f]{32}", value):
        raise MisfitError("32 hexadecimal digits")
    return value


def pack(folder: Path) -> dict[str, bytes]:
    """The files of a folder by their names."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not half_written(path))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def unpack(folder: Path, files: dict[str, bytes]) -> None:
    """A folder with these files and no others; killed in between, :func:`settle` has it be the old one or the new one."""
    settle(folder)
    refuse_links(folder, within=folder.parent)
    new, old = _beside(folder)
    make_folder(new, within=folder.parent)
    for name, content in files.items():
        make_folder((new / name).parent, within=new)
        write_whole(new / name, content, within=new)
    for each in (new, *(path for path in new.rglob("*") if path.is_dir())):
        flush(each)
    if folder.exists():
        os.replace(folder, old)
    os.replace(new, folder)
    flush(folder.parent)
    settle(folder)


def settle(folder: Path) -> None:
    """End what a killed process had begun to do to a folder."""
    new, old = _beside(folder)
    if old.exists() and new.exists() and not folder.exists():
        os.replace(new, folder)
    for left in (new, old):
        shutil.rmtree(left, ignore_errors=True)


def discard(folder: Path) -> None:
    """Remove a folder. It is there or not, never a part of it."""
    settle(folder)
    _, old = _beside(folder)
    os.replace(folder, old)
    shutil.rmtree(old, ignore_errors=True)


def _beside(folder: Path) -> tuple[Path, Path]:
    """Where a folder is before it is whole, and when it is no more."""
    return folder.with_name(f"{PREFIX}new-{folder.name}"), folder.with_name(f"{PREFIX}old-{folder.name}")
