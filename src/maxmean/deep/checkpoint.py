"""Checkpoints: the whole state of a training, written by Orbax, whole or not at all, with a checksum for every file."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..whole import PREFIX, half_written, write_whole
from .block import Block
from .memory import size
from .plan import difference
from .records import Records

KEPT = 2
"""Checkpoints that are kept; an older one serves when a newer one is damaged."""


class CheckpointError(ValueError):
    """A directory that cannot be gone on with; the message says why and what to do."""


def claim(folder: Path, text: dict[str, Any]) -> Path:
    """Make the directory that of the training which ``text`` describes, or see that it is."""
    path = folder / "plan.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists():
            there = json.loads(path.read_text())
            if not isinstance(there, dict):
                raise CheckpointError(f"{path} is no training's plan; choose another directory")
            found = difference(there, json.loads(json.dumps(text)))
            if found:
                raise CheckpointError(f"{folder} holds another training: {found}; choose another directory")
        elif not all(half_written(each) for each in folder.iterdir()):
            raise CheckpointError(f"{folder} is not empty and holds no training; choose another directory")
        else:
            write_whole(path, json.dumps(text, indent=1).encode())
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise CheckpointError(f"{path} cannot be read; choose another directory") from None
    except OSError as error:
        raise CheckpointError(f"cannot use {folder}: {error.strerror}") from None
    return folder


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a directory, so that no other process trains in it; the hold ends with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # a system without such locks
        yield
        return
    with open(folder / f"{PREFIX}lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CheckpointError(
                f"another process is training in {folder}; wait until it has ended, or choose another directory"
            ) from None
        yield


def save(folder: Path, blocks: Sequence[Block], records: Records) -> None:
    """Keep the state of all blocks and their records; then drop all but the last two checkpoints."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = _arrays(blocks)
    _need_room(folder, arrays)
    name = f"{min(block.step for block in blocks):012d}-{time.time_ns():020d}"
    beside = folder / f"{PREFIX}{os.getpid()}-{name}"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    try:
        _checkpointer().save((beside / "state").absolute(), arrays)
        records.write(beside)
        write_whole(beside / "steps.json", json.dumps([block.step for block in blocks]).encode())
        sums = {str(path.relative_to(beside)): _checksum(path) for path in _files(beside)}
        write_whole(beside / "checksums.json", json.dumps(sums, indent=1, sort_keys=True).encode())
        for path in _files(beside):
            _sync(path)
        os.replace(beside, folder / name)
        _sync(folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    for old in checkpoints(folder)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    for left in folder.glob(f"{PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)


def _need_room(folder: Path, arrays: Any) -> None:
    """Refuse to begin what may not fit: Orbax would tell it in hundreds of lines."""
    most, free = sum(array.nbytes for array in jax.tree.leaves(arrays)), shutil.disk_usage(folder).free
    if most > free:
        raise CheckpointError(
            f"a checkpoint may take {size(most)}, and the disk of {folder} has {size(free)} left; what is kept there is whole: "
            "make room, and the same command goes on from it"
        )


def restore(folder: Path, blocks: Sequence[Block], say: Callable[[str], None]) -> Records | None:
    """Put the blocks where the newest sound checkpoint has them, and give its records; nothing if there is none."""
    there = checkpoints(folder)
    for path in there:
        fault = _fault(path)
        if fault is not None:
            before = "going back to the one before" if path != there[-1] else "there is none before it: starting anew"
            say(f"The checkpoint {path.name} is damaged ({fault}); {before}.")
            continue
        arrays = _checkpointer().restore((path / "state").absolute())
        for i, (block, step) in enumerate(zip(blocks, json.loads((path / "steps.json").read_text()), strict=True)):
            _put(block, arrays[str(i)])
            block.step = int(step)
        return Records.read(path)
    return None


def checkpoints(folder: Path) -> list[Path]:
    """All checkpoints, the newest first."""
    found = [path for path in folder.glob("*-*") if not half_written(path)] if folder.is_dir() else []
    return sorted(found, key=lambda path: path.name.split("-")[-1], reverse=True)


def _fault(path: Path) -> str | None:
    """What is wrong with a checkpoint, or nothing."""
    try:
        sums = json.loads((path / "checksums.json").read_text())
    except (OSError, ValueError):
        return "its list of checksums cannot be read"
    if not isinstance(sums, dict) or "steps.json" not in sums or not any(name.startswith("state") for name in sums):
        return "its list of checksums is not whole"
    for name, expected in sums.items():
        file = path / name
        if not file.is_file():
            return f"{name} is missing"
        if _checksum(file) != expected:
            return f"{name} has changed"
    return None


def _arrays(blocks: Sequence[Block]) -> dict[str, dict[str, np.ndarray]]:
    return {
        str(i): {f"{j:03d}": np.asarray(leaf) for j, leaf in enumerate(jax.tree.leaves(block.state))}
        for i, block in enumerate(blocks)
    }


def _put(block: Block, arrays: dict[str, np.ndarray]) -> None:
    structure = jax.tree.structure(block.state)
    here = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(block.state)]
    leaves = [arrays[name] for name in sorted(arrays)]
    if [(leaf.shape, leaf.dtype) for leaf in leaves] != here:
        raise CheckpointError(
            "the checkpoint holds a training of another shape (a GPU's cannot go on on a CPU, nor the other way round): use "
            "another directory"
        )
    block.state = jax.tree.unflatten(structure, [jax.device_put(leaf) for leaf in leaves])


def _checkpointer() -> Any:
    import orbax.checkpoint as ocp

    logging.getLogger("absl").setLevel(logging.ERROR)
    return ocp.PyTreeCheckpointer()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
