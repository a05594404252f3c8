"""Tables from files: CSV or Parquet, from a path or standard input, as a stream of Arrow record batches."""

from __future__ import annotations

import csv
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from .data import DataError

FIGURES = ("png", "pdf", "svg")
_PARQUET_MAGIC = b"PAR1"
_BLOCK = 4 << 20  # bytes of CSV parsed at once


def stream_table(source: str, progress: Callable[[float], object] = lambda done: None) -> Iterator[pa.RecordBatch]:
    """Record batches of the table at ``source``, a path or ``-``; CSV columns come as text, whatever they hold.

    ``progress`` hears what share of the file has been read, where that is known.
    """
    if source == "-":
        yield from _stream(io.BufferedReader(sys.stdin.buffer), "standard input", None, progress)  # type: ignore[arg-type]
        return
    path = Path(source)
    try:
        size = path.stat().st_size
        handle = path.open("rb")
    except FileNotFoundError:
        raise DataError(f"there is no file {source!r}") from None
    except OSError as error:
        raise DataError(f"cannot read {source!r}: {error.strerror}") from None
    with handle:
        yield from _stream(handle, repr(source), size if path.is_file() else None, progress)


def _stream(
    handle: io.BufferedReader, name: str, size: int | None, progress: Callable[[float], object]
) -> Iterator[pa.RecordBatch]:
    try:
        start = handle.peek(len(_PARQUET_MAGIC))[: len(_PARQUET_MAGIC)]
        if not start:
            raise DataError(f"{name} is empty")
        if start == _PARQUET_MAGIC:
            source = handle if size is not None else io.BytesIO(handle.read())
            yield from pyarrow.parquet.ParquetFile(source).iter_batches()
            return
        for batch in _csv(handle):
            yield batch
            if size:
                progress(min(handle.tell() / size, 1.0))
    except UnicodeDecodeError:
        raise DataError(f"{name} is not UTF-8 text") from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"cannot read {name} as a table: {str(error).splitlines()[0]}") from None


def _csv(handle: io.BufferedReader) -> Iterator[pa.RecordBatch]:
    """The header is read here, so that every column can be asked for as text: guessed types vary between blocks.

    One thread: only then does the parser know the number of a row that it refuses.
    """
    header = handle.readline()
    while header.count(b'"') % 2:  # a quoted name may hold line breaks
        more = handle.readline()
        if not more:
            break
        header += more
    text = header.decode("utf-8-sig")
    delimiter = max(",;\t", key=text.count)
    names = next(csv.reader(io.StringIO(text), delimiter=delimiter), [])
    if not handle.peek(1):
        yield pa.RecordBatch.from_pydict({name: pa.array([], pa.string()) for name in names})
        return

    def refuse(row: pyarrow.csv.InvalidRow) -> str:
        ragged.append(row)
        return "error"

    ragged: list[pyarrow.csv.InvalidRow] = []
    try:
        yield from pyarrow.csv.open_csv(
            handle,
            pyarrow.csv.ReadOptions(block_size=_BLOCK, column_names=names, use_threads=False),
            pyarrow.csv.ParseOptions(newlines_in_values=True, delimiter=delimiter, invalid_row_handler=refuse),
            pyarrow.csv.ConvertOptions(
                column_types={name: pa.string() for name in names},
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid:
        if not ragged:
            raise
        row = ragged[0]
        raise DataError(
            f"row {row.number} has {row.actual_columns} columns, the header {row.expected_columns}"
        ) from None


def check_figure(path: str) -> str:
    """The kind of picture that ``path`` asks for, if its folder exists."""
    target = Path(path)
    kind = target.suffix.lstrip(".").lower()
    if kind not in FIGURES:
        raise DataError(f"a picture ends in .{', .'.join(FIGURES)}, not {target.name!r}")
    if not target.parent.is_dir():
        raise DataError(f"there is no folder {str(target.parent)!r} to write {target.name!r} to")
    return kind


def write_whole(path: str, write: Callable[[IO[bytes], str], object]) -> None:
    """Let ``write(handle, kind)`` make a file that appears at ``path`` whole or not at all; kind is its extension."""
    target, kind = Path(path), check_figure(path)
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as handle:
            try:
                write(handle, kind)
                handle.flush()
                os.fsync(handle.fileno())
                os.chmod(handle.name, 0o666 & ~_umask())
                os.replace(handle.name, target)
            except BaseException:
                os.unlink(handle.name)
                raise
    except OSError as error:
        raise DataError(f"cannot write {path!r}: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
