"""One column of a table: what it holds, as numbers or as names of options, and what to say where it holds neither."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError
from .limits import MOST_OPTIONS, TOO_MANY

NESTED = b"maxmean.nested"
"""Metadata key of a field that stands for a nested column, which is not read; its value is the column's type."""

COMMA = re.compile(r"[+-]?\d+,\d+")
"""A number with the decimal comma of half of Europe."""

CODE = np.uint16
"""The type of an option's number: few bytes, and quick to sort by."""

MOST_COUNTED = 2**53
"""Beyond this, floating point no longer counts every whole number."""

_TRUTH = {"true": 1.0, "false": 0.0}


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


def coded(column: pa.Array, name: str, row: int, number: dict[str, int]) -> np.ndarray:
    """The options of a column as numbers, in order of first appearance over all batches."""
    filled = blank_to_null(column)
    if filled.null_count:
        hole = int(np.argmin(filled.is_valid().to_numpy(zero_copy_only=False)))
        raise DataError(f"row {row + hole}: column {name!r} names no option")
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        raise DataError(f"column {name!r} holds bytes ({kind}), which name no option; store them as text")
    try:
        encoded = column.dictionary_encode()  # its labels come in order of appearance
        labels = [str(label) for label in encoded.dictionary.to_pylist()]
    except (pa.ArrowException, ValueError, OverflowError):  # a date before our calendar, for instance
        raise DataError(
            f"column {name!r} holds values of type {kind} that name no option; store them as text"
        ) from None
    lookup = np.array([_code(label, number) for label in labels], dtype=CODE)
    return lookup[encoded.indices.to_numpy(zero_copy_only=False)]


def counted(row: int, rows: int, number: dict[str, int]) -> np.ndarray:
    """Codes for ``rows`` options without names of their own, from row ``row`` on."""
    return np.array([_code(f"row {row + k}", number) for k in range(rows)], dtype=CODE)


def _code(label: str, number: dict[str, int]) -> int:
    code = number.setdefault(label, len(number))
    if code >= MOST_OPTIONS:
        raise DataError(TOO_MANY)
    return code


def whole_numbers(batch: pa.RecordBatch, name: str, row: int) -> np.ndarray:
    values = numbers(batch.column(name), name, row)
    wrong = np.flatnonzero((values < 0) | (values != np.rint(values)))
    if wrong.size:
        raise DataError(f"row {row + wrong[0]}: column {name!r} must hold whole numbers, not {values[wrong[0]]:g}")
    large = np.flatnonzero(values > MOST_COUNTED)
    if large.size:
        raise DataError(
            f"row {row + large[0]}: column {name!r} holds {values[large[0]]:g}, too large for an exact count"
        )
    return values


def numbers(column: pa.Array, name: str, row: int) -> np.ndarray:
    """A column as finite float64 numbers; the first value that is none is named with its row."""
    column = blank_to_null(column)
    if column.null_count:
        hole = int(np.argmin(column.is_valid().to_numpy(zero_copy_only=False)))
        raise DataError(f"row {row + hole}: column {name!r} is empty; fill it, or leave the row out")
    try:
        values = pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowException:
        if not is_text(column.type) and not _is_numeric(column.type):
            raise DataError(f"row {row}: column {name!r} holds a {column.type}, not a number") from None
        # Whole numbers that floating point must round, too.
        values = np.array([number(text, name, row + k) for k, text in enumerate(column.to_pylist())])
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        raise DataError(f"row {row + wrong[0]}: column {name!r} is {values[wrong[0]]}, not a finite number")
    return values


def number(text: object, name: str, row: int) -> float:
    word = str(text).strip().lower()
    if word in _TRUTH:
        return _TRUTH[word]
    try:
        return float(word.replace("_", "?"))  # Python's digit separator is nobody else's
    except ValueError:
        comma = "; decimals are written with a point" if COMMA.fullmatch(word) else ""
        raise DataError(f"row {row}: column {name!r} holds {text!r}, not a number{comma}") from None


def decoded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with dictionary-encoded columns and views of text written out; what is nested stays as it is."""
    columns, fields = list(batch.columns), list(batch.schema)
    for k, (column, field) in enumerate(zip(columns, fields, strict=True)):
        if pa.types.is_dictionary(column.type) and not is_nested(column.type):
            columns[k] = column.dictionary_decode()
        if pa.types.is_string_view(columns[k].type):
            columns[k] = columns[k].cast(pa.large_string())
        fields[k] = pa.field(field.name, columns[k].type, metadata=field.metadata)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_numeric(kind: pa.DataType) -> bool:
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(is_kind(kind) for is_kind in kinds)


def blank_to_null(column: pa.Array) -> pa.Array:
    if not is_text(column.type):
        return column
    trimmed = pc.utf8_trim_whitespace(column)
    blank = pc.equal(trimmed, "")
    return pc.if_else(blank, pa.scalar(None, trimmed.type), trimmed) if pc.any(blank).as_py() else trimmed


def looks_numeric(column: pa.Array) -> bool:
    """Numbers, or text most of which reads as numbers: one stray word is a mistake to report, not a column of names."""
    if not is_text(column.type):
        return _is_numeric(column.type)
    texts = [text for text in blank_to_null(column.slice(0, 1000)).to_pylist() if text is not None]
    return 2 * sum(is_number(text) for text in texts) > len(texts)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text.strip().lower() in _TRUTH
    return True
