"""Files that appear whole or not at all, and what tells whether they are as they were written."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

PREFIX = ".maxmean-"


def write_whole(path: Path, data: bytes, *, within: Path | None = None) -> None:
    """Write ``data`` to ``path``, in one step; ``within`` as for :func:`appearing`."""
    with appearing(path, within=within) as beside:
        beside.write_bytes(data)


@contextmanager
def appearing(path: Path, *, within: Path | None = None) -> Iterator[Path]:
    """A file beside ``path`` to write to; then it is flushed to the disk and moved to ``path`` in one step.

    Whoever opens ``path`` sees the old file or the new one. Another process that writes the same path does no harm.

    A link that the user has named stays one: the file that it leads to is written. Files in a directory that a stranger may have
    filled are written ``within`` that directory: a link in the file's place goes, what it leads to stays as it is, and a folder
    on the way that is a link is an :class:`OSError`.
    """
    if within is None:
        path = Path(os.path.realpath(path))
    else:
        refuse_links(path.parent, within)
    beside = path.parent / f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    try:  # from here on: Ctrl-C may come as soon as there is a file
        os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        mode = beside.stat().st_mode
        yield beside
        beside.chmod(mode)  # a library may have put a file of its own there, which nobody else may read
        flush(beside)
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):  # the first error is the one to tell
            beside.unlink()
        raise
    flush(path.parent)


def make_folder(folder: Path, *, within: Path) -> None:
    """Make a folder ``within`` a directory, and those on the way, if they are not there; none of them may be a link."""
    refuse_links(folder, within)
    folder.mkdir(parents=True, exist_ok=True)


def refuse_links(folder: Path, within: Path) -> None:
    """An :class:`OSError` if a folder below the directory ``within``, or one on the way to it, is a link."""
    way = within
    for name in folder.relative_to(within).parts:
        way /= name
        if way.is_symlink():
            raise OSError(errno.ELOOP, f"the folder {way.name} is a link, which could lead anywhere", str(way))


def flush(path: Path) -> None:
    """Have the disk hold what was written to a file or a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256(parts: Iterable[bytes | memoryview]) -> str:
    """The checksum of some bytes, part after part.

    >>> sha256([b"max", b"mean"]) == sha256([b"maxmean"])
    True
    """
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def sha256_of(path: Path) -> str:
    """The checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def half_written(path: Path) -> bool:
    """Whether it is on its way to appear, or what a killed process left of that."""
    return path.name.startswith(PREFIX)


def sweep(folder: Path, age: float = 3600.0) -> None:
    """Remove what killed processes left half-written in ``folder`` more than ``age`` seconds ago.

    A clock that was set forward makes everything old: what a process of this machine may still be writing stays.
    """
    for left in folder.glob(f"{PREFIX}*"):
        try:
            if time.time() - left.stat().st_mtime > age and not _being_written(left):
                left.unlink()
        except OSError:  # another process was quicker, or it is not ours to remove
            continue


def _being_written(path: Path) -> bool:
    """Whether there is a process of the number that such a file bears, as far as can be known."""
    process, _, rest = path.name.removeprefix(PREFIX).partition("-")
    if os.name != "posix" or not process.isdecimal() or not rest:
        return False
    try:
        os.kill(int(process), 0)
    except PermissionError:  # there is, and it is another's
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def as_parquet(table: pd.DataFrame) -> bytes:
    """A table as the bytes of a Parquet file; the same table gives the same bytes.

    Floats of which more than half differ are stored byte by byte, all first bytes, then all second ones, and so on: signs and
    exponents are alike where digits are not, so they take up to a third less room than one after the other.
    """
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.parquet

    buffer = io.BytesIO()
    plain = pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(None)
    various = [
        field.name
        for field, column in zip(plain.schema, plain.columns, strict=True)
        if field.type in (pa.float32(), pa.float64())
        and plain.column_names.count(field.name) == 1
        and 2 * pyarrow.compute.count_distinct(column, mode="all").as_py() > plain.num_rows
    ]
    repeated = [name for name in plain.column_names if name not in various]
    pyarrow.parquet.write_table(
        plain, buffer, compression="zstd", use_dictionary=repeated, use_byte_stream_split=various
    )
    return buffer.getvalue()
