"""Where an answer is written: checked before anything is computed, and written whole."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..storage import write_whole
from .errors import ArgumentError


def check_target(path: str | os.PathLike[str], kinds: Sequence[str], what: str) -> str:
    """The kind of file that ``path`` asks for by its ending, if one can be written there; ``what`` it is to be."""
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"{what} needs a path, not {path!r}")
    target = Path(path)
    kind = target.suffix.lstrip(".").lower()
    if kind not in kinds:
        raise ArgumentError(f"{what}'s name must end in .{', .'.join(kinds)}, not {target.name!r}")
    if "\0" in str(target):
        raise ArgumentError(f"cannot write {str(target)!r}: a path cannot contain a null character")
    if not target.parent.is_dir():
        raise ArgumentError(f"there is no folder {str(target.parent)!r} to write {target.name!r} to")
    if target.exists() and not target.is_file():
        what_it_is = "a folder" if target.is_dir() else "not a file"
        raise ArgumentError(f"cannot write {str(target)!r}: it is {what_it_is}; choose another name")
    return kind


def write_target(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file, whole or not at all."""
    try:
        write_whole(Path(path), data)
    except OSError as error:
        raise ArgumentError(f"cannot write {str(path)!r}: {error.strerror}") from None
