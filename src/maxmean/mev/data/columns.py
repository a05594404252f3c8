"""One column of a table: what it holds, as numbers or as names of options, and what to say where it holds neither."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ..errors import DataError
from .notation import MISSING, is_number, is_truth

NESTED = b"maxmean.nested"
"""Metadata key of a field that stands for a nested column, which is not read; its value is the column's type."""

SEPARATOR = b"maxmean.separator"
"""Metadata key of a table: what separated its columns, if it was text."""

CODE = np.uint16
"""The type of an option's number: few bytes, and quick to sort by."""

_SAMPLE = 1000  # rows from which a column's kind is judged
_DATE = re.compile(
    r"[0-9]{4}[-/.][0-9]{1,2}([-/.][0-9]{1,2}([T ].*)?)?|[0-9]{1,2}([-/.])[0-9]{1,2}\3[0-9]{2,4}( .*)?"
    r"|([0-9]{1,2}[ -])?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[ ,.-]+([0-9]{1,2}[ ,]+)?[0-9]{2,4}",
    re.IGNORECASE,
)

Rows = Sequence[int] | np.ndarray
"""The numbers of some rows in the table, the first one being 1."""


def is_nested(kind: pa.DataType) -> bool:
    """Whether a column of this type holds lists, structures or mappings where a number or a name belongs."""
    if isinstance(kind, pa.BaseExtensionType):
        return is_nested(kind.storage_type)
    return is_nested(kind.value_type) if pa.types.is_dictionary(kind) else bool(pa.types.is_nested(kind))


def refuse_nested(field: pa.Field) -> None:
    """Refuse a column that holds more than one value a row."""
    kind = (field.metadata or {}).get(NESTED, b"").decode() or (str(field.type) if is_nested(field.type) else "")
    if kind:
        raise DataError(f"column {field.name!r} is nested ({kind}): one number or one name a row is needed")


def comma_means(schema: pa.Schema) -> str | None:
    """The decimal mark of a table whose columns commas separate: a point, since commas then separate no decimals."""
    return "." if (schema.metadata or {}).get(SEPARATOR) == b"," else None


def has_semicolons(schema: pa.Schema) -> bool:
    """Whether semicolons separate the columns, as where decimals have a comma: points may then separate thousands."""
    return bool((schema.metadata or {}).get(SEPARATOR) == b";")


def plain_array(numbers: pa.Array) -> np.ndarray:
    """Numbers as NumPy has them; by DLPack where none is null, since Arrow imports pandas for its own way."""
    return numbers.to_numpy(zero_copy_only=False) if numbers.null_count else np.from_dlpack(numbers)


def decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with dictionary-encoded columns and views of text written out; what is nested stays as it is."""
    columns, fields = list(batch.columns), list(batch.schema)
    for k, (column, kind) in enumerate(zip(columns, fields, strict=True)):
        if pa.types.is_dictionary(column.type) and not is_nested(column.type):
            labels = _without_views(column.dictionary)
            columns[k] = pa.DictionaryArray.from_arrays(column.indices, labels).dictionary_decode()
        columns[k] = _without_views(columns[k])
        fields[k] = pa.field(kind.name, columns[k].type, metadata=kind.metadata)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields, metadata=batch.schema.metadata))


def _without_views(column: pa.Array) -> pa.Array:
    return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def kind_of(column: pa.Array, about: pa.Field | None = None) -> str:
    """What most of a column's first rows are: number, truth, date, text, or empty.

    One stray word is a mistake to report, not a column of names.

    >>> [kind_of(pa.array(texts)) for texts in (["1", "x", "$2"], ["yes", "no"], ["2024-01-31"], ["a", "1"], ["", "NA"])]
    ['number', 'truth', 'date', 'text', 'empty']
    """
    kind = column.type
    if about is not None and NESTED in (about.metadata or {}):
        return "text"
    if not is_text(kind):
        if column.null_count == len(column):
            return "empty"
        if pa.types.is_boolean(kind):
            return "truth"
        if pa.types.is_temporal(kind):
            return "date"
        return (
            "number" if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) else "text"
        )
    shown = [text.strip() for text in column.slice(0, _SAMPLE).to_pylist() if text is not None]
    texts = [text for text in shown if text.lower() not in MISSING]
    if not texts:
        return "empty"
    for name, belongs in (("truth", is_truth), ("number", is_number), ("date", _DATE.fullmatch)):
        if 2 * sum(bool(belongs(text)) for text in texts) > len(texts):
            return name
    return "text"
