"""Tables from files: CSV or Parquet, from a path or standard input, as a stream of Arrow record batches."""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
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
        if sys.stdin is None:
            raise DataError("standard input is closed")
        yield from _stream(_patient(sys.stdin.buffer), "standard input", None, progress)
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
        if path.is_file():
            yield from _stream(handle, repr(source), size, progress)
        else:
            yield from _stream(_patient(handle), repr(source), None, progress)


def _patient(pipe: IO[bytes]) -> io.BufferedReader:
    """A pipe hands over what it has, be it one byte; behind a second buffer, a look ahead waits for more."""
    return io.BufferedReader(pipe)  # type: ignore[arg-type]


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
        for batch in _csv(handle, name):
            yield batch
            if size:
                progress(min(handle.tell() / size, 1.0))
    except UnicodeDecodeError:
        raise DataError(f"{name} is not UTF-8 text: a table is a CSV file in UTF-8, or Parquet") from None
    except (pa.ArrowException, OSError) as error:
        said = str(error).partition("\n")[0]
        foreign = re.search(r"Row #(\d+): .*invalid UTF8", said)
        if foreign is not None:
            raise DataError(f"row {foreign[1]}: {name} is not UTF-8 text there") from None
        raise DataError(f"cannot read {name} as a table: {said}") from None


def _csv(handle: io.BufferedReader, name: str) -> Iterator[pa.RecordBatch]:
    """The header is read here, so that every column can be asked for as text: guessed types vary between blocks.

    One thread: only then does the parser know the number of a row that it refuses.
    """
    names, delimiter = _header(handle, name)
    if not handle.peek(1):
        yield pa.RecordBatch.from_arrays([pa.array([], pa.string()) for _ in names], names=names)
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


def _header(handle: io.BufferedReader, name: str) -> tuple[list[str], str]:
    """The names of the columns, and what separates them."""
    header = handle.readline()
    while header and not header.removeprefix(codecs.BOM_UTF8).strip():
        header = handle.readline()
    if not header:
        raise DataError(f"{name} is empty")
    lines, quotes, size = [header], header.count(b'"'), 0
    while quotes % 2:  # a quoted name may hold line breaks
        lines.append(handle.readline())
        quotes, size = quotes + lines[-1].count(b'"'), size + len(lines[-1])
        if not lines[-1] or size > _BLOCK:
            raise DataError(f"a quotation mark in the first line of {name} is never closed")
    text = b"".join(lines).decode("utf-8-sig")
    bare = re.sub(r'"[^"]*"', "", text)
    if "\r" in bare.rstrip("\r\n"):
        raise DataError(f"the lines of {name} end in carriage returns alone; save it with line feeds")
    delimiter = max(",;\t", key=bare.count)
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)), delimiter
    except csv.Error as error:
        raise DataError(f"cannot read the first line of {name}: {error}") from None


def check_figure(path: str) -> str:
    """The kind of picture that ``path`` asks for, if its folder exists."""
    target = Path(path)
    kind = target.suffix.lstrip(".").lower()
    if kind not in FIGURES:
        raise DataError(f"a picture ends in .{', .'.join(FIGURES)}, not {target.name!r}")
    if not target.parent.is_dir():
        raise DataError(f"there is no folder {str(target.parent)!r} to write {target.name!r} to")
    return kind
