"""Parquet as a stream of Arrow record batches, once it is known how much memory that takes.

What a Parquet file says of itself, a stranger has written: few bytes may stand for any number of rows, and a page that is small
in the file for one that fills the memory. The pages' own headers, which the reader obeys, are therefore looked at first; where
the pages are is read from the file's footer here, for PyArrow ends the process when it is asked for a damaged description of one.
Arrow reads from the file itself or from memory, never through Python, whose end its threads would not notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from ..errors import DataError
from .columns import NESTED, is_nested, is_text
from .limits import MOST_COLUMNS, MOST_PAGES, MOST_TEXT, MOST_UNPACKED, MOST_VALUES, TOO_LARGE
from .options import repeated

MAGIC = b"PAR1"

_ROWS = 65_536  # in a batch of a table with few columns
_CELLS = 4_000_000  # in a batch of a table with many
_LONGEST_HEADER = 1 << 20  # of a page
_LONGEST_FOOTER = 1 << 25
_DEEPEST = 12  # structures and lists inside each other; a footer has seven


def stream_parquet(source: bytes, name: str, *, content: bool = False) -> Iterator[pa.RecordBatch]:
    """Batches of the file at the path ``source``, or of that ``content`` itself; messages call it ``name``."""
    with pa.BufferReader(source) if content else pa.OSFile(source) as native:
        file = pyarrow.parquet.ParquetFile(native, pre_buffer=False)
        schema, columns, rows = file.schema_arrow, file.metadata.num_columns, file.metadata.num_rows
        if columns > MOST_COLUMNS:
            raise DataError(f"{name} has {columns:,} columns; up to {MOST_COLUMNS:,} are read")
        if rows > MOST_VALUES:
            raise DataError(f"{name} has {rows:,} rows: {TOO_LARGE}")
        if (twice := repeated(schema.names)) is not None:
            raise DataError(f"column {twice!r} appears twice")
        groups = _check_pages(native, columns, name)
        flat = [field.name for field in schema if not is_nested(field.type)]
        text = [field.name for field in schema if is_text(field.type)]
        # Text stays encoded at first: one long text may stand in every row.
        file = pyarrow.parquet.ParquetFile(native, pre_buffer=False, read_dictionary=text)
        size = min(_ROWS, max(1, _CELLS // max(len(flat), 1)))
        for batch in file.iter_batches(size, row_groups=groups, columns=flat, use_threads=False):
            yield _completed(batch, schema)


def _completed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with its text written out, and with a column of nothing for each nested one."""
    columns, fields = [], []
    for field in schema:
        if is_nested(field.type):
            columns.append(pa.nulls(batch.num_rows))
            fields.append(pa.field(field.name, pa.null(), metadata={NESTED: str(field.type).encode()}))
        else:
            columns.append(_written_out(batch.column(field.name), field.name))
            fields.append(pa.field(field.name, columns[-1].type))
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _written_out(column: pa.Array, name: str) -> pa.Array:
    """A column whose values are what its type says, with the texts that its rows point to."""
    column.validate(full=True)
    if not pa.types.is_dictionary(column.type):
        return column
    if is_text(column.type.value_type) or pa.types.is_binary(column.type.value_type):
        size = pc.sum(pc.binary_length(column.dictionary).take(column.indices)).as_py() or 0
        if size > MOST_TEXT:
            raise DataError(
                f"column {name!r} holds {size >> 20:,} MB of text in {len(column):,} rows; up to {MOST_TEXT >> 20} MB are read"
            )
    return column.dictionary_decode()


def _check_pages(native: pa.NativeFile, columns: int, name: str) -> list[int]:
    """Refuse a file whose pages take more memory than they may, or cannot be determined; returns the groups that have rows."""
    count, size, kept = 0, native.size(), []
    for number, group in enumerate(_groups(native, name)):
        unpacked = 0
        if not _int(group, 3):  # num_rows
            continue
        kept.append(number)
        chunks = group.get(1)
        if not isinstance(chunks, list) or len(chunks) != columns:
            raise DataError(f"cannot read {name} as a table: it names pages that it does not have")
        for chunk in chunks:
            about = chunk.get(3) if isinstance(chunk, dict) else None  # meta_data
            if not isinstance(about, dict):
                raise DataError(f"cannot read {name} as a table: it does not say where a column is")
            data_page, dictionary_page = _int(about, 9), _int(about, 11)
            start = min(dictionary_page, data_page) if dictionary_page else data_page
            end = start + _int(about, 7)  # total_compressed_size
            if not 0 <= start <= end <= size:
                raise DataError(f"cannot read {name} as a table: it names pages that it does not have")
            largest = 0
            while start < end:
                length, packed, raw = _page(native, start, name)
                start, largest, count = start + length + packed, max(largest, raw), count + 1
                if count > MOST_PAGES:
                    raise DataError(f"{name} is cut into more than {MOST_PAGES:,} pages; write it with larger ones")
            unpacked += largest
        if unpacked > MOST_UNPACKED:
            raise DataError(
                f"the pages of {name} unpack to {unpacked >> 20:,} MB at once; up to {MOST_UNPACKED >> 20} MB are read"
            )
    return kept


def _groups(native: pa.NativeFile, name: str) -> list[dict[int, Any]]:
    """The groups of rows as the file's footer describes them, by the numbers of Parquet's fields."""
    end = native.size() - 8
    length = int.from_bytes(native.read_at(4, end), "little")
    if not 0 < length <= min(end, _LONGEST_FOOTER):
        raise DataError(f"cannot read {name} as a table: its footer has {length:,} bytes")
    try:
        footer, _ = _struct(native.read_at(length, end - length), 0, _DEEPEST)
    except (IndexError, ValueError):
        raise DataError(f"cannot read {name} as a table: its footer is damaged") from None
    groups = footer.get(4, [])
    if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        raise DataError(f"cannot read {name} as a table: its footer is damaged")
    return groups


def _int(fields: dict[int, Any], number: int) -> int:
    """A whole number among a structure's fields; 0 if there is none."""
    value = fields.get(number)
    return value if isinstance(value, int) else 0


def _page(native: pa.NativeFile, start: int, name: str) -> tuple[int, int, int]:
    """Bytes that the header of the page at ``start`` takes, the page as it is stored, and the page unpacked."""
    want = 128
    while want <= _LONGEST_HEADER:
        data = native.read_at(want, start)
        try:
            fields, length = _struct(data, 0, _DEEPEST)
            raw, packed = fields.get(2), fields.get(3)  # uncompressed_page_size, compressed_page_size
            if isinstance(raw, int) and isinstance(packed, int) and raw >= 0 and packed >= 0:
                return length, packed, raw
            break
        except IndexError:  # the header goes on
            if len(data) < want:
                break
            want *= 4
        except ValueError:
            break
    raise DataError(f"cannot read {name} as a table: the page at byte {start:,} has no header")


def _struct(data: bytes, at: int, deepest: int) -> tuple[dict[int, Any], int]:
    """A structure of Thrift's compact protocol, its fields by their number, and where it ends."""
    number, fields = 0, {}
    while head := data[at]:
        at, kind = at + 1, head & 15
        if head >> 4:
            number += head >> 4
        else:
            number, at = _whole(data, at)
        fields[number], at = _value(data, at, kind, deepest)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, deepest: int) -> tuple[Any, int]:
    """The value that begins at ``at``, and where it ends; None for what is not needed: booleans, doubles, bytes."""
    if not deepest:
        raise ValueError("structures too deep inside each other")
    match kind:
        case 1 | 2:  # true, false
            return None, at
        case 3:  # a byte
            return None, at + 1
        case 4 | 5 | 6:
            return _whole(data, at)
        case 7:  # a double
            return None, at + 8
        case 8:  # bytes
            size, at = _varint(data, at)
            return None, at + size
        case 9 | 10:  # a list, a set
            kind, size, at = data[at] & 15, data[at] >> 4, at + 1
            if size == 15:
                size, at = _varint(data, at)
            if at + size > len(data):  # every entry takes a byte at least
                raise IndexError
            entries = []
            for _ in range(size):
                entry, at = _value(data, at, 3 if kind in (1, 2) else kind, deepest - 1)
                entries.append(entry)
            return entries, at
        case 12:
            return _struct(data, at, deepest - 1)
        case _:  # there are no maps in a Parquet file
            raise ValueError(f"there is no type {kind}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 128:
        value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
        if shift > 63:
            raise ValueError("a number of more than 64 bits")
    return value | data[at] << shift, at + 1


def _whole(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return value >> 1 ^ -(value & 1), at
