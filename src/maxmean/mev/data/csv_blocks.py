"""CSV as a stream of Arrow record batches: blocks of whole rows are cut here and parsed one by one.

Arrow can read a file by itself, but it reads ahead in a thread of its own. That thread calls Python for every block, also after
the reader has given up: if Python exits meanwhile, it aborts or hangs. Here nothing is read ahead.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ..errors import DataError
from .columns import SEPARATOR
from .csv_header import Header, read_header
from .limits import LONGEST_ROW

_MEGABYTES = f"{LONGEST_ROW >> 20} MB"


TO_UTF8 = (
    "save it as UTF-8 (in Excel, 'CSV UTF-8'), or, if it was written on Windows, iconv -f cp1252 -t utf-8 converts it"
)
"""What to do about a file in another encoding."""


def stream_csv(handle: io.BufferedReader, name: str) -> Iterator[pa.RecordBatch]:
    """Batches of the table behind ``handle``, which messages call ``name``; every column is text.

    The header is read here, so that every column can be asked for as text: guessed types vary between blocks.
    """
    header = read_header(handle, name, LONGEST_ROW)
    rows = _rows(header.delimiter)
    rest, done = header.rest, 0
    while piece := handle.read(LONGEST_ROW):
        block = rest + piece
        end = _last_end(block, rows)
        if not end and len(block) > LONGEST_ROW:
            why = ": is a quotation mark never closed?" if b'"' in block else "; no table about options needs that"
            raise DataError(f"row {done + 1} of {name} is longer than {_MEGABYTES}{why}")
        rest = block[end:]
        if end:
            batch = _parsed(block[:end], header, name, done)
            done += batch.num_rows
            yield batch
    if b'"' in rest and rows.fullmatch(rest + b"\n") is None:
        raise DataError(f"a quotation mark of {name} is never closed; it stands after row {done}")
    yield _parsed(rest, header, name, done)


def _parsed(block: bytes, header: Header, name: str, done: int) -> pa.RecordBatch:
    """The rows of ``block``; ``done`` rows came before it. One thread: only then does the parser know the row it refuses."""
    names, delimiter = header.names, header.delimiter
    schema = pa.schema([(name, pa.string()) for name in names], metadata={SEPARATOR: delimiter.encode()})
    if not block:
        return pa.RecordBatch.from_arrays([pa.nulls(0, pa.string()) for _ in names], schema=schema)
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
        if ragged is not None and ragged[3] == "1" and (bare := _without_comments(block, delimiter)) != block:
            return _parsed(bare, header, name, done)
        if ragged is not None:
            raise DataError(f"row {done + int(ragged[1])} has {ragged[3]} columns, the header {ragged[2]}") from None
        foreign = re.search(r"Row #(\d+): .*invalid UTF8", str(error))
        if foreign is not None:
            raise DataError(f"row {done + int(foreign[1])}: {name} is not UTF-8 text there: {TO_UTF8}") from None
        raise
    batch = pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], schema=schema)
    if header.comments and (odd := pc.starts_with(batch.column(0), "#").index(True).as_py()) >= 0:
        raise DataError(
            f"row {done + 1 + odd} begins with '#', as the comments above the header do: is it one, or a name?"
        )
    return batch


def _without_comments(block: bytes, delimiter: str) -> bytes:
    """The block without lines that begin with # and have but one column, if no quotation mark can hide a line break."""
    line = rb"(?m)^#[^%b\r\n]*(?:\r?\n|\Z)" % re.escape(delimiter.encode())
    return block if b'"' in block else re.sub(line, b"", block)


def _last_end(block: bytes, rows: re.Pattern[bytes]) -> int:
    """Where the last row that is whole ends, in a block that begins with a row; 0 if none is."""
    end = max(block.rfind(b"\n"), block.rfind(b"\r", 0, -1)) + 1  # to a \r at the very end, a \n may still belong
    if block.find(b'"', 0, end) < 0:
        return end
    whole = rows.match(block)
    return whole.end() if whole else 0


def _rows(delimiter: str) -> re.Pattern[bytes]:
    """As many whole rows as there are, read as Arrow does: a quotation mark opens a field or is one like any character."""
    mark = re.escape(delimiter.encode())
    field = rb'(?:"[^"]*+(?:""[^"]*+)*+"|(?!"))[^%b\r\n]*+' % mark
    return re.compile(rb"(?:%b(?:%b%b)*+(?:\r\n|\n|\r(?=[^\n])))*+" % (field, mark, field))
