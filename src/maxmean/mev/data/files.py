"""Tables from files: CSV or Parquet, from a path or standard input, as a stream of Arrow record batches."""

from __future__ import annotations

import io
import os
import select
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa

from ..errors import DataError
from .csv_blocks import stream_csv
from .parquet_pages import MAGIC, stream_parquet

_LONGEST_PIPE = 256 << 20  # bytes of a Parquet file that is piped: it can only be read once all of it is there

_PATIENCE = 2.0  # seconds that a named pipe may be without anybody who writes to it before that is said


def stream_table(source: str, progress: Callable[[float], object] = lambda done: None) -> Iterator[pa.RecordBatch]:
    """Record batches of the table at ``source``, a path or ``-``; all CSV columns are text.

    ``progress`` is called with the share of the file read so far, if its size is known.
    """
    if source == "-":
        if sys.stdin is None:
            raise DataError("standard input is closed")
        yield from _stream(_patient(sys.stdin.buffer), "standard input", None, progress)
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
            yield from _stream(handle, repr(source), size, progress)
        else:
            if path.is_fifo():
                _await(handle, source)
            yield from _stream(_patient(handle), repr(source), None, progress)


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
    handle: io.BufferedReader, name: str, size: int | None, progress: Callable[[float], object]
) -> Iterator[pa.RecordBatch]:
    try:
        start = handle.peek(len(MAGIC))[: len(MAGIC)]
        if not start:
            raise DataError(f"{name} is empty")
        if start == MAGIC:
            yield from _parquet(handle, name, size)
            return
        for batch in stream_csv(handle, name):
            yield batch
            if size:
                progress(min(handle.tell() / size, 1.0))
    except UnicodeDecodeError:
        raise DataError(f"{name} is not UTF-8 text: a table is a CSV file in UTF-8, or Parquet") from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"cannot read {name} as a table: {str(error).partition(chr(10))[0]}") from None


def _parquet(handle: io.BufferedReader, name: str, size: int | None) -> Iterator[pa.RecordBatch]:
    if size is not None:
        return stream_parquet(os.fsencode(handle.name), name)
    content = handle.read(_LONGEST_PIPE + 1)
    if len(content) > _LONGEST_PIPE:
        raise DataError(
            f"{name} is a Parquet file of more than {_LONGEST_PIPE >> 20} MB: give its path instead of a pipe"
        )
    return stream_parquet(content, name, content=True)
