"""Checkpoints: the whole state of a training, written whole or not at all, with a checksum for every file.

Reading one believes nothing that it says of itself: what is read are the arrays that this training has, in their shapes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from ..storage import PREFIX, flush, refuse_links, sha256_of, write_whole
from ..untrusted import ContentError, read_json
from .core.memory import size
from .directory import CheckpointError, OtherShapeError, clear, system_error, writing
from .records import Records
from .runs import RunId
from .settings import Settings

__all__ = ["KEPT", "CheckpointError", "checkpoints", "restore", "save"]

STATE = "state.safetensors"
SUMS = "checksums.json"
KEPT = 2
"""Checkpoints that are kept; an older one serves when a newer one is damaged."""


class Advancing(Protocol):
    """What is kept of a training: a pytree of arrays, and how far it is."""

    step: int
    state: Any
    runs: list[RunId]
    settings: Settings

    def most_rows(self, step: int) -> int:
        """Rows that a table of its records can have by then."""


class Checkpoint(NamedTuple):
    """One of a folder's checkpoints; a larger one is newer. No clock has a part in that: clocks are set back."""

    step: int
    """Of the run that is least far."""
    number: int
    """Larger than those of all that were there when it was written. (It was a time once, which is a large number too.)"""
    path: Path


def checkpoints(folder: Path) -> list[Path]:
    """All checkpoints, the newest first."""
    return [each.path for each in _found(folder)]


def _found(folder: Path) -> list[Checkpoint]:
    if not folder.is_dir():
        return []
    named = [(path, re.fullmatch(r"(\d{12,20})-(\d{20})", path.name, re.ASCII)) for path in folder.iterdir()]
    found = [Checkpoint(int(name[1]), int(name[2]), path) for path, name in named if name]
    return sorted((each for each in found if each.path.is_dir()), reverse=True)


def save(folder: Path, blocks: Sequence[Advancing], records: Records) -> None:
    """Keep the state of all blocks and their records; then drop all but the last two checkpoints."""
    with writing(folder):
        refuse_links(folder, folder.parent)
        folder.mkdir(exist_ok=True)  # but not what it lies in: if that is gone, somebody has taken the training away
        clear(folder)
        arrays = _arrays(blocks)
        _need_room(folder, arrays)
        step, number = min(block.step for block in blocks), 1 + max((each.number for each in _found(folder)), default=0)
        path = folder / f"{step:012d}-{number:020d}"
        beside = folder / f"{PREFIX}{os.getpid()}-{path.name}"
        beside.mkdir()
        try:
            _write(beside, arrays, [block.step for block in blocks], records)
            os.replace(beside, path)
            flush(folder)
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
    # Those that claim to be as far or further were passed over for their damage, or are the same.
    kept = {path, *(each.path for each in [each for each in _found(folder) if each.step < step][: KEPT - 1])}
    for old in set(checkpoints(folder)) - kept:
        shutil.rmtree(old, ignore_errors=True)


def _write(folder: Path, arrays: dict[str, np.ndarray], steps: list[int], records: Records) -> None:
    try:
        save_file(arrays, folder / STATE)
    except SafetensorError as error:
        raise system_error(error) from None
    records.write(folder)
    write_whole(folder / "steps.json", json.dumps(steps).encode(), within=folder)
    sums = {name: sha256_of(folder / name) for name in _files(folder)}
    write_whole(folder / SUMS, json.dumps(sums, indent=1, sort_keys=True).encode(), within=folder)
    for name in _files(folder):
        flush(folder / name)


def _need_room(folder: Path, arrays: Any) -> None:
    """Refuse to begin what may not fit: it would take long to find that out."""
    most, free = sum(array.nbytes for array in jax.tree.leaves(arrays)), shutil.disk_usage(folder).free
    if most > free:
        raise CheckpointError(
            f"a checkpoint may take {size(most)}, and the disk of {folder} has {size(free)} left; what is kept there is whole: "
            "make room, and the same command goes on from it"
        )


def restore(folder: Path, blocks: Sequence[Advancing], goal: int, say: Callable[[str], None]) -> Records | None:
    """Put the blocks where the newest sound checkpoint has them, and give its records; nothing if there is none.

    ``goal`` is the last step of this training. A checkpoint may be further, as one is that was trained for longer before.
    """
    there = checkpoints(folder)
    for path in there:
        try:
            _check(path, sum(leaf.nbytes for _, leaf in _named(blocks)) + _BESIDE)
            steps, arrays = _steps(path, blocks), _read(path, blocks)
            records = _records(path, blocks, steps, goal)
        except ContentError as fault:
            before = "going back to the one before" if path != there[-1] else "there is none before it: starting anew"
            say(f"The checkpoint {path.name} is damaged ({fault}); {before}.")
            continue
        for block, step, leaves in zip(blocks, steps, arrays, strict=True):
            block.state = jax.tree.unflatten(jax.tree.structure(block.state), map(jax.device_put, leaves))
            block.step = step
        return records
    return None


_BESIDE = 2**30
"""Bytes that a checkpoint can have beside its arrays, for its records and their checksums."""


def _check(path: Path, most: int) -> None:
    """See that a checkpoint's files are those that were written; no other is opened, whatever the list of checksums names.

    They have at most so many bytes together: a file of nothing but holes can have terabytes, which take hours to read.
    """
    sums = read_json(path / SUMS)
    if not isinstance(sums, dict) or "steps.json" not in sums or not any(name.startswith("state") for name in sums):
        raise ContentError("its list of checksums is not whole")
    there = _files(path)
    if sum((path / name).stat().st_size for name in there) > most:
        raise ContentError("its files are larger than this training's can be")
    for name in {**sums, **dict.fromkeys(there)}:
        if name not in there:
            raise ContentError(f"{name} is missing")
        if name not in sums:
            raise ContentError(f"{name} is not in its list of checksums")
        try:
            changed = sha256_of(path / name) != sums[name]
        except OSError as error:
            raise ContentError(f"{name} cannot be read: {error.strerror}") from None
        if changed:
            raise ContentError(f"{name} has changed")


def _steps(path: Path, blocks: Sequence[Advancing]) -> list[int]:
    steps = read_json(path / "steps.json")
    if not isinstance(steps, list) or not all(type(step) is int and 0 <= step < 2**31 for step in steps):
        raise ContentError("steps.json is no list of steps")
    if len(steps) != len(blocks):
        raise OtherShapeError(OTHER_SHAPE)
    return steps


def _records(path: Path, blocks: Sequence[Advancing], steps: list[int], goal: int) -> Records:
    """The records, if they are those of the way to these steps, which the file has chosen; an error if not.

    Such a checkpoint is not passed over: what is further would go when the next one is kept, and it is not for us to say that
    it is worth nothing.
    """
    most, asked = (sum(block.most_rows(step) for block in blocks) for step in (max(steps), goal))
    if most > 2 * asked:
        raise CheckpointError(
            f"the checkpoint {path} is at step {max(steps):,}, far beyond the {goal:,} steps that are asked for: ask for more "
            "steps, or remove it"
        )
    records = Records.read(path, most)
    # Who is ahead of another may stand at a test that waits for all.
    ways = [(run, step - (step > min(steps))) for block, step in zip(blocks, steps, strict=True) for run in block.runs]
    if not records.reach(ways, blocks[0].settings.test_interval):
        raise CheckpointError(
            f"the checkpoint {path} is at step {max(steps):,}, and its records do not reach there: remove it, and the same "
            "command goes on without it"
        )
    return records


OTHER_SHAPE = (
    "the checkpoint holds a training of another shape (a GPU's cannot go on on a CPU, nor the other way round): use another "
    "directory"
)


def _read(path: Path, blocks: Sequence[Advancing]) -> list[list[np.ndarray]]:
    """The arrays of each block's state."""
    named = dict(_named(blocks))
    try:
        found = _formerly(path, named) if (path / "state").is_dir() else _loaded(path / STATE, named)
    except (CheckpointError, ContentError):
        raise
    except (SafetensorError, ValueError, LookupError, NotImplementedError, OSError) as error:
        # What the readers make of a stranger's file.
        raise ContentError(f"its arrays cannot be read: {' '.join(str(error).split())[:100]}") from None
    arrays = iter(found)
    return [[next(arrays) for _ in jax.tree.leaves(block.state)] for block in blocks]


def _loaded(path: Path, named: dict[str, Any]) -> list[np.ndarray]:
    """The named arrays. A file's word on shapes and types is compared with ours before an array is read."""
    with safe_open(path, "numpy") as file:
        if sorted(file.keys()) != sorted(named):
            raise OtherShapeError(OTHER_SHAPE)
        for name, leaf in named.items():
            part = file.get_slice(name)
            if (tuple(part.get_shape()), part.get_dtype()) != (leaf.shape, _TYPES.get(np.dtype(leaf.dtype).name)):
                raise OtherShapeError(OTHER_SHAPE)
        return [file.get_tensor(name) for name in named]


_TYPES = {"bool": "BOOL", "float16": "F16", "float32": "F32", "float64": "F64", "bfloat16": "BF16"}
_TYPES |= {f"int{bits}": f"I{bits}" for bits in (8, 16, 32, 64)} | {
    f"uint{bits}": f"U{bits}" for bits in (8, 16, 32, 64)
}
"""What safetensors calls the types."""


def _formerly(path: Path, named: dict[str, Any]) -> list[np.ndarray]:
    """The named arrays as former versions wrote them, with Orbax: Zarr's arrays in an OCDBT database."""
    try:
        import tensorstore
    except ModuleNotFoundError:
        raise CheckpointError(
            f"{path} was written by maxmean 0.1: pip install tensorstore, and the same command goes on from it"
        ) from None
    stores = []
    base = {"driver": "file", "path": f"{(path / 'state').absolute()}/"}
    for name, leaf in named.items():
        spec = {"driver": "zarr", "kvstore": {"driver": "ocdbt", "base": base, "path": f"{name}/"}}
        store = tensorstore.open(spec, open=True, read=True).result()
        if (store.shape, store.dtype.numpy_dtype) != (leaf.shape, leaf.dtype):
            raise OtherShapeError(OTHER_SHAPE)
        parts = store.chunk_layout.read_chunk.shape or ()  # none for a single number
        if any(part > whole for part, whole in zip(parts, leaf.shape, strict=True)):
            raise ContentError(f"the parts of its array {name} are larger than the array")
        stores.append(store)
    return [store.read().result() for store in stores]


def _named(blocks: Sequence[Advancing]) -> list[tuple[str, Any]]:
    """All arrays of the blocks' states with what they are called in a checkpoint."""
    return [
        (f"{i}.{j:03d}", leaf) for i, block in enumerate(blocks) for j, leaf in enumerate(jax.tree.leaves(block.state))
    ]


def _arrays(blocks: Sequence[Advancing]) -> dict[str, np.ndarray]:
    """In the order of their axes: safetensors writes memory as it lies."""
    return {name: np.asarray(leaf, order="C") for name, leaf in _named(blocks)}


def _files(folder: Path) -> list[str]:
    """The names of all files below a folder. A link, or what is neither file nor folder, is never one of a checkpoint's."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise ContentError(f"{path.relative_to(folder)} is no file")
        if path.is_file() and path.name != SUMS:
            found.append(path.relative_to(folder).as_posix())
    return found
