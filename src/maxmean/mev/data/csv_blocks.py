"""CSV as a stream of Arrow record batches: blocks of whole rows are cut here and parsed one by one.

Arrow can read a file by itself, but it reads ahead in a thread of its own. That thread calls Python for every block, also after
the reader has given up: if Python exits meanwhile, it aborts or hangs. Here nothing is read ahead.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.csv

from ..errors import DataError
from .limits import LONGEST_ROW, MOST_COLUMNS

_MEGABYTES = f"{LONGEST_ROW >> 20} MB"


def stream_csv(handle: io.BufferedReader, name: str) -> Iterator[pa.RecordBatch]:
    """Batches of the table behind ``handle``, which messages call ``name``; every column is text.

    The header is read here, so that every column can be asked for as text: guessed types vary between blocks.
    """
    names, delimiter = _header(handle, name)
    rows = _rows(delimiter)
    rest, done = b"", 0
    while piece := handle.read(LONGEST_ROW):
        block = rest + piece
        end = _last_end(block, rows)
        if not end and len(block) > LONGEST_ROW:
            why = ": is a quotation mark never closed?" if b'"' in block else "; no table about options needs that"
            raise DataError(f"row {done + 1} of {name} is longer than {_MEGABYTES}{why}")
        rest = block[end:]
        if end:
            batch = _parsed(block[:end], names, delimiter, name, done)
            done += batch.num_rows
            yield batch
    yield _parsed(rest, names, delimiter, name, done)


def _parsed(block: bytes, names: list[str], delimiter: str, name: str, done: int) -> pa.RecordBatch:
    """The rows of ``block``; ``done`` rows came before it. One thread: only then does the parser know the row it refuses."""
    if not block:
        return pa.RecordBatch.from_arrays([pa.array([], pa.string()) for _ in names], names=names)
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(block),
            pyarrow.csv.ReadOptions(block_size=len(block), column_names=names, use_threads=False),
            pyarrow.csv.ParseOptions(newlines_in_values=True, delimiter=delimiter),
            pyarrow.csv.ConvertOptions(
                column_types={name: pa.string() for name in names},
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        # Arrow would call a function with the ragged row, but only if that row is UTF-8.
        ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
        if ragged is not None:
            raise DataError(f"row {done + int(ragged[1])} has {ragged[3]} columns, the header {ragged[2]}") from None
        foreign = re.search(r"Row #(\d+): .*invalid UTF8", str(error))
        if foreign is not None:
            raise DataError(f"row {done + int(foreign[1])}: {name} is not UTF-8 text there") from None
        raise
    return pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], names=names)


def _last_end(block: bytes, rows: re.Pattern[bytes]) -> int:
    """Where the last row that is whole ends, in a block that begins with a row; 0 if none is."""
    end = max(block.rfind(b"\n"), block.rfind(b"\r", 0, -1)) + 1  # to a \r at the very end, a \n may still belong
    if block.find(b'"', 0, end) < 0:
        return end
    whole = rows.match(block)
    return whole.end() if whole else 0


def _rows(delimiter: str) -> re.Pattern[bytes]:
    """As many whole rows as there are, read as Arrow does: a quotation mark opens a field or is one like any character."""
    field = rb'(?:"[^"]*+(?:""[^"]*+)*+"|(?!"))[^%b\r\n]*+' % delimiter.encode()
    return re.compile(rb"(?:%b(?:%b%b)*+(?:\r\n|\n|\r(?=[^\n])))*+" % (field, delimiter.encode(), field))


def _header(handle: io.BufferedReader, name: str) -> tuple[list[str], str]:
    """The names of the columns, and what separates them."""
    header, blank = handle.readline(LONGEST_ROW), 0
    while header and not header.removeprefix(codecs.BOM_UTF8).strip():
        blank += len(header)
        if blank > LONGEST_ROW:
            raise DataError(f"{name} begins with more than {_MEGABYTES} of blank lines")
        header = handle.readline(LONGEST_ROW)
    if not header:
        raise DataError(f"{name} is empty")
    lines, quotes, size = [header], header.count(b'"'), 0
    while quotes % 2:  # a quoted name may hold line breaks
        lines.append(handle.readline(LONGEST_ROW))
        quotes, size = quotes + lines[-1].count(b'"'), size + len(lines[-1])
        if not lines[-1] or size > LONGEST_ROW:
            raise DataError(f"a quotation mark in the first line of {name} is never closed")
    text = _decoded(b"".join(lines))
    bare = re.sub(r'"[^"]*"', "", text)
    if "\r" in bare.rstrip("\r\n"):
        raise DataError(f"the lines of {name} end in carriage returns alone; save it with line feeds")
    if len(lines[-1]) == LONGEST_ROW:
        raise DataError(f"the first line of {name} is longer than {_MEGABYTES}: that is no table about options")
    delimiter = max(",;\t", key=bare.count)
    columns = bare.count(delimiter) + 1
    if columns > MOST_COLUMNS:
        raise DataError(f"{name} has {columns:,} columns; up to {MOST_COLUMNS:,} are read")
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)), delimiter
    except csv.Error as error:
        raise DataError(f"cannot read the first line of {name}: {error}") from None


def _decoded(header: bytes) -> str:
    """The header as text; what was cut off at the longest row may end inside a character."""
    return header.decode("utf-8-sig", "strict" if len(header) < LONGEST_ROW else "ignore")
