"""The arrays of a safetensors file, which take no memory before their form has been looked at.

The library's own reader maps the whole file into memory and copies each array. Anybody may have written the file, and a few
kilobytes on a disk may say that they are gigabytes.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...untrusted import MOST_VALUES, ContentError, mapping, one_of, several, take, text, value_of, whole
from ..core.memory import available, size

LONGEST_HEADER = 100_000_000
"""Bytes; safetensors opens no file with more."""
BLOCK = 2**20
"""Bytes that are read at a time for the checksum."""

_TYPES = {"BOOL": np.dtype(bool), "F16": np.dtype("<f2"), "F32": np.dtype("<f4"), "F64": np.dtype("<f8")}
_TYPES |= {f"{kind}{bits}": np.dtype(f"<{kind.lower()}{bits // 8}") for kind in "IU" for bits in (8, 16, 32, 64)}
"""What safetensors calls the types of our arrays."""


class OpenFile:
    """A file that is read here and there. It stays the same one if another takes its name meanwhile, as a training's does."""

    def __init__(self, path: Path) -> None:
        self.handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        about = os.fstat(self.handle)
        self.size = about.st_size
        if not stat.S_ISREG(about.st_mode):
            raise ContentError("it is no file")  # but a pipe, say, which nobody may ever write to

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            os.close(self.handle)

    def parts(self, begin: int, length: int) -> Iterator[bytes]:
        """Its bytes from one on, a block at a time."""
        for done in range(0, length, BLOCK):
            part = os.pread(self.handle, min(BLOCK, length - done), begin + done)
            if len(part) != min(BLOCK, length - done):
                raise ContentError("it ends before its arrays do")
            yield part


@dataclass(frozen=True)
class Stored:
    """An array in a file."""

    file: OpenFile
    begin: int
    length: int
    """Bytes in the file."""
    shape: tuple[int, ...]
    dtype: np.dtype

    def padded(self, rows: int) -> Stored:
        """The same array with more rows, of zeros."""
        return replace(self, shape=(rows, *self.shape[1:]))

    def parts(self) -> Iterator[bytes]:
        """Its bytes, a block at a time."""
        return self.file.parts(self.begin, self.length)

    def read(self) -> np.ndarray:
        """The array itself."""
        found = np.zeros(self.shape, self.dtype)
        there, done = found.reshape(-1).view(np.uint8), 0
        for part in self.parts():
            there[done : done + len(part)] = np.frombuffer(part, np.uint8)
            done += len(part)
        return found


def stored(path: Path) -> tuple[dict[str, Any], dict[str, Stored]]:
    """What a file's header says, and its arrays; :class:`ContentError` if the two do not fit each other, or the machine."""
    file = OpenFile(path)
    length = int.from_bytes(b"".join(file.parts(0, min(8, file.size))), "little")
    if not 2 <= length <= min(file.size - 8, LONGEST_HEADER):
        raise ContentError("it has no header of safetensors")
    # The header holds JSON as a text, which has a limit of its own; the arrays have the rest.
    header = mapping_of(value_of(b"".join(file.parts(8, length)), most=MOST_VALUES + 100_000))
    said = mapping_of(header.pop("__metadata__", {}))
    arrays = {name: _array(file, 8 + length, mapping_of(each)) for name, each in header.items()}
    end = 8 + length
    for each in sorted(arrays.values(), key=lambda each: (each.begin, each.length)):
        if each.begin != end:
            raise ContentError("its arrays do not lie one after the other")
        end += each.length
    if end != file.size:
        raise ContentError("its arrays do not fill it")
    there = available()
    if there is not None and file.size > there:
        raise ContentError(f"its arrays take {size(file.size)}, and this machine has {size(there)} of memory")
    return {name: take(said, name, text) for name in said}, arrays


def mapping_of(value: Any) -> dict[str, Any]:
    return take({"header": value}, "header", mapping)


def _array(file: OpenFile, data: int, said: Mapping[str, Any]) -> Stored:
    kind, shape = _TYPES[take(said, "dtype", one_of(_TYPES))], take(said, "shape", several(whole(), 0, 32))
    begin, end = take(said, "data_offsets", several(whole(), 2, 2))
    if end - begin != math.prod(shape) * kind.itemsize:
        raise ContentError(f"an array of the shape {list(shape)} does not have {end - begin:,} bytes")
    return Stored(file, data + begin, end - begin, shape, kind)
