"""A training's directory: whose it is, that one process at a time trains in it, and what is said when it cannot be written.

Both drivers use it, the one on the device and the one on the host.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from ..errors import MaxmeanError
from ..mev.show import shortened
from ..storage import PREFIX, half_written, refuse_links, write_whole
from ..untrusted import ContentError, read_json

LOCK = f"{PREFIX}lock"
PLAN = "plan.json"
Kind = Literal["device training", "host training", "agent", "benchmark"]
"""What a plan describes: the runs of one of the two drivers, one agent that learns in a Gymnasium environment, or one agent and
environment of `benchmarks/zoo.py`.
"""
_ONLY: dict[str, Kind] = {"trainings": "host training", "algorithm": "agent", "about": "benchmark"}
"""What tells the kind of a plan that 0.1 wrote, which does not say it."""
FOLDERS = ("checkpoints", "policies", "runs")
"""What a training writes to in its directory, on the device or on the host."""


class CheckpointError(MaxmeanError):
    """A directory that cannot be gone on with; the message says why and what to do."""


class BusyError(CheckpointError):
    """Another process trains in the directory."""


class OtherShapeError(CheckpointError):
    """The directory is of another training, or of the same one on another kind of device."""


def check_name(folder: Path) -> None:
    """Refuse a name that not all can write who write there."""
    try:
        bad = "\0" in str(folder) or not str(folder).encode()
    except UnicodeEncodeError:
        bad = True
    if bad:
        raise CheckpointError(f"the name of the directory {str(folder)!r} is not UTF-8; choose another directory")


@contextmanager
def held(folder: Path, kind: Kind, text: dict[str, Any]) -> Iterator[Path]:
    """The directory of the training that ``text`` describes, made or found to be that, while no other process trains in it."""
    check_name(folder)
    with _usable(folder):
        _look(folder, kind, text)  # before there is a lock in what may be somebody else's
        folder.mkdir(parents=True, exist_ok=True)
    with alone(folder):
        with _usable(folder):
            for name in FOLDERS:  # now, not after hours of training
                refuse_links(folder / name, folder)
            if not _look(folder, kind, text):
                write_plan(folder, kind, text)
        yield folder


def write_plan(folder: Path, kind: Kind, text: dict[str, Any]) -> None:
    """Write down what is trained in a directory."""
    write_whole(folder / PLAN, json.dumps({"kind": kind, **text}, indent=1).encode(), within=folder)


def read_plan(folder: Path) -> dict[str, Any]:
    """What is trained in a directory, and which ``kind`` that is; :class:`ContentError` if nothing there says it."""
    found = read_json(folder / PLAN)
    if not isinstance(found, dict):
        raise ContentError("it is no training's plan")
    kind = next((kind for name, kind in _ONLY.items() if name in found), "device training")
    return {"kind": kind, **found}


def _look(folder: Path, kind: Kind, text: dict[str, Any]) -> bool:
    """Whether a directory holds the training that ``text`` describes; an error if it holds something else."""
    path = folder / PLAN
    if not os.path.lexists(path):
        if folder.exists() and not all(half_written(each) for each in folder.iterdir()):
            raise CheckpointError(f"{folder} is not empty and holds no training; choose another directory")
        return False
    try:
        found = difference(read_plan(folder), {"kind": kind, **json.loads(json.dumps(text))})
    except (ContentError, RecursionError) as fault:
        raise CheckpointError(
            f"{path} cannot be used: {shortened(str(fault), 100)}; choose another directory"
        ) from None
    if found:
        raise CheckpointError(f"{folder} holds another training: {shortened(found, 300)}; choose another directory")
    return True


@contextmanager
def _usable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CheckpointError(f"cannot use {folder}: {error.strerror}") from None


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a directory, so that no other process trains in it; the hold ends with the process, however it ends.

    What a killed one has left half-written there goes: whoever holds the directory knows that nobody is still writing it.
    """
    with _usable(folder):
        # Neither emptied nor followed: in a stranger's directory it may be a link to anything, or a pipe.
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        lock = os.fdopen(os.open(folder / LOCK, flags, 0o666), "r+b", buffering=0)
    with lock:
        if not _lock(lock.fileno()):
            raise BusyError(
                f"another process is training in {folder}; wait until it has ended, or choose another directory"
            )
        clear(folder)
        yield


def _lock(handle: int) -> bool:
    """Whether the lock is ours now; on a system or a disk without locks it is."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            raise
    return True


def clear(folder: Path) -> None:
    """Remove what was left half-written in a directory that is held; age says nothing, for clocks are set back and forth."""
    for left in folder.glob(f"{PREFIX}*"):
        if left.name == LOCK:
            continue
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns a failure to write ``path`` into one sentence; what was there before is whole, for files appear whole."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(unwritten(path, error)) from None


_CURES = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.EFBIG: "allow larger files (ulimit -f)",
    errno.EROFS: "make it writable",
    errno.EACCES: "make it writable",
    errno.EPERM: "make it writable",
}


def unwritten(path: Path, error: OSError) -> str:
    """Why a training cannot write, and what to do.

    >>> unwritten(Path("a/b"), OSError(28, "No space left on device"))
    'cannot write a/b: No space left on device; what was kept is whole: make room, and the same command goes on from it'
    """
    if error.errno in (errno.ENOENT, errno.ENOTDIR) and not path.parent.is_dir():
        return f"cannot write {path}: its directory is gone; was it moved or removed while the training was under way?"
    cure = _CURES.get(error.errno or 0, "mend that")
    return (
        f"cannot write {path}: {error.strerror}; what was kept is whole: {cure}, and the same command goes on from it"
    )


def system_error(error: Exception) -> OSError:
    """What the system said, out of a library's words for it.

    >>> system_error(ValueError("While writing: No space left on device (os error 28)")).strerror
    'No space left on device'
    """
    said = str(error)
    code = next((code for code in (*_CURES, errno.ENOENT, errno.ENOTDIR, errno.EIO) if os.strerror(code) in said), None)
    return OSError(code or 0, " ".join(said.split())[:100] if code is None else os.strerror(code))


def difference(old: dict[str, Any], new: dict[str, Any], where: str = "") -> str | None:
    """The first thing in which two descriptions differ, in words; nothing if they are equal."""
    for name in {**old, **new}:
        if name not in old or name not in new:
            return f"{where}{name} is {'there, but not here' if name in old else 'here, but not there'}"
        before, after = old[name], new[name]
        if isinstance(before, dict) and isinstance(after, dict):
            found = difference(before, after, f"{where}{name}.")
            if found:
                return found
            if list(before) != list(after):
                return f"{where}{name} come in another order"
        elif _dicts(before) and _dicts(after):
            if len(before) != len(after):
                return f"there are {len(before)} {where}{name} there and {len(after)} here"
            for i, (one, other) in enumerate(zip(before, after, strict=True), 1):
                found = difference(one, other, f"{where}{name} {i}: ")
                if found:
                    return found
        elif before != after:
            return f"{where}{name} is {before!r} there and {after!r} here"
    return None


def _dicts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(part, dict) for part in value)
