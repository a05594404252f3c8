"""Tables from files: CSV, Parquet, Excel, databases, from a path or standard input, as a stream of Arrow record batches."""

from __future__ import annotations

import io
import os
import select
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa

from ..errors import DataError
from .csv_blocks import TO_UTF8, stream_csv
from .databases import is_database, stream_query
from .packed import DAMAGED, LONGEST_MAGIC, ZIP, only_member, unpacked
from .parquet_pages import MAGIC, stream_parquet
from .workbook import is_workbook, stream_workbook

_LONGEST_PIPE = 256 << 20  # bytes of a Parquet or zip file that is piped or packed: all of it must be there to read it

_PATIENCE = 2.0  # seconds that a named pipe may be without anybody who writes to it before that is said


def stream_table(
    source: str,
    progress: Callable[[float], object] = lambda done: None,
    sheet: str | None = None,
    query: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Record batches of the table at ``source``, a path or ``-``; all CSV and Excel columns are text.

    ``progress`` is called with the share of the file read so far, if its size is known; ``sheet`` is one of an Excel file,
    ``query`` is for a database.
    """
    if source == "-":
        if sys.stdin is None:
            raise DataError("standard input is closed")
        yield from _stream(_patient(sys.stdin.buffer), "standard input", sheet=sheet, query=query)
        return
    path = Path(source)
    try:
        size = path.stat().st_size
        handle = open(path, "rb", opener=_at_once if path.is_fifo() else None)  # noqa: SIM115  (closed below)
    except FileNotFoundError:
        raise DataError(f"there is no file {source!r}") from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        raise DataError(f"cannot read {source!r}: {getattr(error, 'strerror', error)}") from None
    with handle:
        if path.is_file():
            path_of = os.fsencode(handle.name)
            yield from _stream(
                handle, repr(source), path_of, lambda: progress(min(handle.tell() / max(size, 1), 1.0)), sheet, query
            )
        else:
            if path.is_fifo():
                _await(handle, source)
            yield from _stream(_patient(handle), repr(source), sheet=sheet, query=query)


def _at_once(path: str, flags: int) -> int:
    """Opens a pipe although nobody may write to it: else that waits, in silence."""
    return os.open(path, flags | os.O_NONBLOCK)


def _await(pipe: IO[bytes], source: str) -> None:
    """Wait for whoever writes to a pipe, and say so where nobody does."""
    if not select.select([pipe], [], [], _PATIENCE)[0]:
        warnings.warn(f"{source!r} is a pipe, and nothing has come yet: waiting for whoever writes to it", stacklevel=1)
        select.select([pipe], [], [])
    os.set_blocking(pipe.fileno(), True)


def _patient(pipe: IO[bytes]) -> io.BufferedReader:
    """A pipe hands over what it has, be it one byte; behind a second buffer, a look ahead waits for more."""
    return io.BufferedReader(pipe)  # type: ignore[arg-type]


def _stream(
    handle: io.BufferedReader,
    name: str,
    path: bytes | None = None,
    step: Callable[[], object] = lambda: None,
    sheet: str | None = None,
    query: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Batches of what ``handle`` holds; ``path`` is where it is, if that is a file, and ``step`` is called after each batch."""
    try:
        start = handle.peek(LONGEST_MAGIC)[:LONGEST_MAGIC]
        if not start:
            raise DataError(f"{name} is empty")
        if is_database(start):
            if path is None:
                raise DataError(f"{name} is a database: give the path of the file itself")
            yield from stream_query(os.fsdecode(path), start, query)
        elif query is not None:
            raise DataError(f"{name} is no database of SQLite or DuckDB, and so it takes no query")
        elif start.startswith(MAGIC):
            yield from stream_parquet(path or _content(handle, name), name, content=path is None)
        elif start.startswith(ZIP):
            yield from _zipped(handle, name, path is not None, step, sheet)
        elif (inside := unpacked(handle, name)) is not None:
            yield from _stream(inside, name, None, step, sheet)
        elif sheet is not None:
            raise DataError(f"{name} is no Excel file, and so it has no sheet {sheet!r}")
        else:
            for batch in stream_csv(handle, name):
                yield batch
                step()
    except UnicodeDecodeError:
        raise DataError(f"{name} is not UTF-8 text: a table is a CSV file in UTF-8, or Parquet; {TO_UTF8}") from None
    except (pa.ArrowException, OSError, *DAMAGED) as error:
        raise DataError(f"cannot read {name} as a table: {str(error).partition(chr(10))[0]}") from None


def _zipped(
    handle: io.BufferedReader, name: str, seekable: bool, step: Callable[[], object], sheet: str | None
) -> Iterator[pa.RecordBatch]:
    """A zip archive with one table in it, or an Excel file, which is one too."""
    file = handle if seekable else io.BytesIO(_content(handle, name))
    with zipfile.ZipFile(file) as archive:
        if is_workbook(archive):
            yield from stream_workbook(archive, file, name, sheet)
        else:
            yield from _stream(only_member(archive, name), name, None, step, sheet)


def _content(handle: io.BufferedReader, name: str) -> bytes:
    """All of what can only be read once all of it is there."""
    content = handle.read(_LONGEST_PIPE + 1)
    if len(content) > _LONGEST_PIPE:
        raise DataError(f"{name} holds more than {_LONGEST_PIPE >> 20} MB: give its path instead of a pipe")
    return content
