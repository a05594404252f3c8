"""Files in a directory that a stranger may have filled: read if they are files of a bounded size, written in their own place.

A link there could lead anywhere. It may be read through, which shows nothing but results; it is never written through.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

from ..storage import make_folder, write_whole
from ..untrusted import ContentError, contents, parse
from .errors import LabError
from .tables import LARGEST

LARGEST_JSON = 1 << 24
"""How many bytes a plan or a manifest may have."""


class StoreError(LabError):
    """A directory that cannot be used as it is; the message says what to do."""


class DamagedError(StoreError):
    """A file that is not what it should be."""


def read_bytes(path: Path, most: int = LARGEST) -> bytes:
    """What is in a file; neither a directory nor a pipe nor a device, none of which ends as a file does."""
    try:
        return contents(path, most)
    except ContentError as error:
        raise DamagedError(f"{str(path)!r} cannot be used: {error}") from None
    except OSError as error:
        raise DamagedError(f"{str(path)!r} cannot be read: {said(error)}") from None


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    data = read_bytes(path, LARGEST_JSON)
    try:
        return parse(data, finite=True)
    except ContentError as error:
        raise DamagedError(f"{str(path)!r} is damaged: {error}") from None


def write_file(path: Path, content: bytes, within: Path) -> None:
    """Write a file of the directory ``within`` whole, with the folders that it needs, and through no link."""
    try:
        make_folder(path.parent, within=within)
        write_whole(path, content, within=within)
    except OSError as error:
        raise unwritable(error, path) from None


def said(error: OSError) -> str:
    """What the system says, in words."""
    return error.strerror or str(error)


def unwritable(error: OSError, path: Path) -> StoreError:
    """What is said when ``path`` could not be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(
            f"the disk of {str(path)!r} is full; what is finished is kept: make room and run the same command"
        )
    if error.errno in (errno.EISDIR, errno.EEXIST, errno.ENOTDIR, errno.ENOTEMPTY):
        thing = "a directory" if os.path.isdir(path) else "something that is no directory"
        return StoreError(f"cannot write {str(path)!r}: {thing} is in the way; move it elsewhere")
    return StoreError(f"cannot write {str(path)!r}: {said(error)}")
