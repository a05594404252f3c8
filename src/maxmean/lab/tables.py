"""Shards' tables as they are read back, and as a spreadsheet gets them.

A checksum says that a table is whole, not who wrote it: everything in it is checked.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..mev.show import escaped, shortened

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

LARGEST = 1 << 29
"""How many bytes a shard's table may have, unpacked."""

LONGEST = 200
"""How many characters a label may have."""


class TableError(Exception):
    """A table that cannot be used; the message says why, and not where."""


@dataclass(frozen=True)
class TableLayout:
    """What a table has: so many rows, columns of finite numbers and of texts, and ``gaps``: numbers that may be missing."""

    rows: int
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    gaps: tuple[str, ...] = ()
    keys: Mapping[str, Collection[Any] | None] = field(default_factory=dict)
    """What some of the columns may hold, None for anything; no two rows have the same in all of them."""


def read_table(
    data: bytes, layout: TableLayout | None = None, part: Mapping[str, Any] = MappingProxyType({})
) -> pd.DataFrame:
    """The table of a Parquet file; without a layout, any table of numbers and texts.

    Rows, columns and kinds are checked before anything is unpacked: a small file can hold a billion rows. A column that is named
    as a text of the shard's ``part`` holds nothing but that.
    """
    import pyarrow as pa
    import pyarrow.parquet

    try:
        # In this thread alone: what a thread of Arrow's still does with a damaged file, when another has given up, can end the
        # process.
        file = pyarrow.parquet.ParquetFile(io.BytesIO(data), pre_buffer=False)
        texts = _check_columns(file, layout)
        # A text that is repeated stays one text until it is known how long they are together.
        coded = pyarrow.parquet.ParquetFile(io.BytesIO(data), read_dictionary=texts, pre_buffer=False).read(
            use_threads=False
        )
        coded.validate(full=True)
        _check_texts(coded.select(texts), part)
        table = coded.cast(file.schema_arrow).replace_schema_metadata(None)
        if layout:
            _check_numbers(table.select([*layout.numbers]))
        found = table.to_pandas(use_threads=False)
        if layout and layout.keys:
            _check_keys(found, layout.keys)
        return found
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:  # what Arrow makes of a damaged file
        raise TableError(f"it is no table ({str(error).partition(chr(10))[0]})") from None


def _check_columns(file: ParquetFile, layout: TableLayout | None) -> list[str]:
    """Refuse what the file says of itself, if it is not what is wanted; returns the names of the columns of text."""
    import pyarrow.types as types

    schema, rows = file.schema_arrow, file.metadata.num_rows
    if len(set(schema.names)) < len(schema.names):
        raise TableError("it has two columns of one name")
    texts = [column.name for column in schema if types.is_string(column.type) or types.is_large_string(column.type)]
    numbers = [column.name for column in schema if types.is_integer(column.type) or types.is_floating(column.type)]
    for column in schema:
        if column.name not in {*texts, *numbers}:
            raise TableError(f"its column {column.name!r} holds neither numbers nor texts but {column.type}")
    if layout:
        _check_names(layout, texts, numbers)
        if rows != layout.rows:
            raise TableError(f"it has {rows:,} rows, and its settings make {layout.rows:,}")
    if not rows:
        raise TableError("it has no rows")
    unpacked = sum(file.metadata.row_group(k).total_byte_size for k in range(file.metadata.num_row_groups))
    if max(unpacked, 8 * rows * len(schema)) > LARGEST:
        raise TableError(f"with {rows:,} rows of {len(schema)} columns it is too large")
    return texts


def _check_names(layout: TableLayout, texts: list[str], numbers: list[str]) -> None:
    for name in (*layout.numbers, *layout.gaps, *layout.texts):
        kind, known = ("texts", texts) if name in layout.texts else ("numbers", numbers)
        if name in known:
            continue
        other = name in {*texts, *numbers}
        raise TableError(f"its column {name!r} does not hold {kind}" if other else f"it has no column {name!r}")
    for name in (*texts, *numbers):
        if name not in {*layout.numbers, *layout.gaps, *layout.texts}:
            raise TableError(f"it has a column {name!r}, which is not known")


def _check_texts(coded: pa.Table, part: Mapping[str, Any]) -> None:
    """Refuse labels that no experiment has, which could speak to a terminal, and those that are too long together."""
    import pyarrow.compute as pc

    length = 0
    for name, column in zip(coded.column_names, coded.columns, strict=True):
        if column.null_count:
            raise TableError(f"its column {name!r} has gaps")
        for chunk in column.chunks:
            for label in chunk.dictionary.to_pylist():
                if not (0 < len(label) <= LONGEST and label.isascii() and label.isprintable()):
                    raise TableError(f"its column {name!r} holds {shortened(repr(label), 60)}, which is no label")
                if label != part.get(name, label):
                    raise TableError(f"its column {name!r} holds {label!r}, and it should be of {part[name]!r}")
            length += pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0
    if length > LARGEST:
        raise TableError("its texts are too long")


def _check_numbers(table: pa.Table) -> None:
    """Refuse what is not finite."""
    import pyarrow.compute as pc

    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count or not pc.all(pc.is_finite(column)).as_py():
            raise TableError(f"its column {name!r} holds numbers that are not finite")


def _check_keys(table: pd.DataFrame, keys: Mapping[str, Collection[Any] | None]) -> None:
    """Refuse rows of something else than the settings make, and rows of the same thing."""
    for name, known in keys.items():
        strange = [] if known is None else table.loc[~table[name].isin(known), name].tolist()
        if strange:
            raise TableError(f"its column {name!r} holds {strange[0]!r}, which its settings do not make")
    if table.duplicated([*keys]).any():
        raise TableError(f"it has two rows with the same {', '.join(keys)}")


def as_csv(table: pd.DataFrame) -> bytes:
    """A table for a spreadsheet, which must not take a text for a formula: such a text gets an apostrophe before it.

    Control characters are spelt out.

    >>> import pandas as pd
    >>> as_csv(pd.DataFrame({"=a": ["=1+1", "-x", "te-q"], "b": [-0.5, 1.0, 2.0]})).decode().split()
    ["'=a,b", "'=1+1,-0.5", "'-x,1.0", 'te-q,2.0']
    """
    texts = table.select_dtypes(exclude="number")
    safe = table.assign(**{str(name): column.map(_inert, na_action="ignore") for name, column in texts.items()})
    return safe.rename(columns=_inert).to_csv(index=False).encode()


def _inert(text: object) -> str:
    shown = escaped(str(text))
    return f"'{shown}" if shown.startswith(("=", "+", "-", "@")) else shown
