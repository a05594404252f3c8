"""One column of a table: what it holds, as numbers or as names of options, and what to say where it holds neither."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError
from .limits import MOST_OPTIONS, TOO_MANY
from .notation import MISSING, PLAIN, Notation, find_notation, is_number, is_truth

NESTED = b"maxmean.nested"
"""Metadata key of a field that stands for a nested column, which is not read; its value is the column's type."""

SEPARATOR = b"maxmean.separator"
"""Metadata key of a table: what separated its columns, if it was text."""

CODE = np.uint16
"""The type of an option's number: few bytes, and quick to sort by."""

MOST_COUNTED = 2**53
"""Beyond this, floating point no longer counts every whole number."""

_SAMPLE = 1000  # rows from which a column's kind is judged
_DATE = re.compile(
    r"[0-9]{4}[-/.][0-9]{1,2}([-/.][0-9]{1,2}([T ].*)?)?|[0-9]{1,2}([-/.])[0-9]{1,2}\3[0-9]{2,4}( .*)?"
    r"|([0-9]{1,2}[ -])?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[ -,]+[0-9]{2,4}",
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


@dataclass
class Names:
    """A column of names, read batch by batch: each becomes a number, in order of first appearance; blanks around it go."""

    column: str
    most: int | None = MOST_OPTIONS
    only: Collection[str] = ()
    """The names that count; none: all."""
    number: dict[str, int] = field(default_factory=dict)
    spaced: dict[str, str] = field(default_factory=dict)
    """Names as they were written, with blanks around them, by what was made of them."""
    exact: set[str] = field(default_factory=set)
    """Names that were also written without."""

    def read(self, column: pa.Array) -> np.ndarray:
        """Their numbers; -1 where there is no name, -2 where it does not count."""
        kind = column.type
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
            raise DataError(f"column {self.column!r} holds bytes ({kind}), which name no option; store them as text")
        try:
            encoded = column.dictionary_encode()  # its labels come in order of appearance
            labels = [None if label is None else str(label) for label in encoded.dictionary.to_pylist()]
        except (pa.ArrowException, ValueError, OverflowError):  # a date before our calendar, for instance
            raise DataError(
                f"column {self.column!r} holds values of type {kind} that name no option; store them as text"
            ) from None
        lookup = np.array([self._code(label) for label in labels], dtype=np.int32)
        if not encoded.null_count:
            return lookup[_plain_array(encoded.indices)]
        places = pc.fill_null(encoded.indices, len(labels)).to_numpy(zero_copy_only=False)
        return np.append(lookup, np.int32(-1))[places]

    def _code(self, label: str | None) -> int:
        name = "" if label is None else label.strip()
        if not name:
            return -1
        if self.only and name not in self.only:
            return -2
        if name == label:
            self.exact.add(name)
        else:
            self.spaced.setdefault(name, str(label))
        return self.add(name)

    def add(self, name: str) -> int:
        code = self.number.setdefault(name, len(self.number))
        if self.most is not None and code >= self.most:
            raise DataError(TOO_MANY)
        return code

    def refuse_repeated(self, codes: np.ndarray, rows: Rows) -> None:
        """Refuse a name that two rows have."""
        order = np.argsort(codes, kind="stable")
        for k in np.flatnonzero(np.diff(codes[order]) == 0)[:1]:
            first, second = order[k], order[k + 1]
            name = list(self.number)[codes[second]]
            raise DataError(f"row {rows[second]}: {self.column} {name!r} was in row {rows[first]} already")


@dataclass
class Numbers:
    """A column of numbers, read batch by batch: the first one tells how they are written."""

    column: str
    decimal: str | None = None
    """The decimal mark, if the user has said it."""
    comma_means: str | None = None
    """What a comma in a number is if it may be either: that of decimals or, if this is a point, of thousands."""
    notation: Notation | None = None
    example: str = ""
    """A number that is not written plainly."""
    mark: str = ""
    """The decimal mark that was seen, if one was looked for."""

    def read(self, column: pa.Array, rows: Rows) -> np.ndarray:
        """Numbers, nan where one is missing; what is neither is named with its row."""
        values = self._texts(column, rows) if is_text(column.type) else self._typed(column, rows)
        wrong = np.flatnonzero(np.isinf(values))
        if wrong.size:
            raise DataError(f"row {rows[wrong[0]]}: column {self.column!r} is {values[wrong[0]]}, not a finite number")
        return values

    def _typed(self, column: pa.Array, rows: Rows) -> np.ndarray:
        try:
            return _plain_array(pc.cast(column, pa.float64(), safe=False))
        except pa.ArrowException:
            if pa.types.is_null(column.type):
                return np.full(len(column), np.nan)
            raise DataError(f"row {rows[0]}: column {self.column!r} holds a {column.type}, not a number") from None

    def _texts(self, column: pa.Array, rows: Rows) -> np.ndarray:
        if self.notation in (None, PLAIN) and self.decimal != ",":
            try:
                values = _plain_array(pc.cast(column, pa.float64()))
            except pa.ArrowException:
                pass
            else:
                if self.notation is None and pc.any(pc.match_substring(column.slice(0, _SAMPLE), ".")).as_py():
                    self.mark = "."
                self.notation = PLAIN
                return values
        texts = pc.utf8_trim_whitespace(column)
        missing = pc.fill_null(pc.is_in(pc.utf8_lower(texts), pa.array(MISSING, texts.type)), True)
        filled = np.flatnonzero(~missing.to_numpy(zero_copy_only=False))
        values = np.full(len(column), np.nan)
        if filled.size:
            values[filled] = self._filled(texts.take(filled), rows, filled)
        return values

    def _filled(self, texts: pa.Array, rows: Rows, places: np.ndarray) -> np.ndarray:
        if self.notation is None:
            self._decide(texts)
        assert self.notation is not None
        fits = self.notation.fits(texts)
        if not fits.all():
            endless = pc.match_substring_regex(texts, "^(?i:[+-]?inf(inity)?)$").to_numpy(zero_copy_only=False)
            k = int(np.argmin(fits))
            if endless[k]:
                raise DataError(f"row {rows[places[k]]}: column {self.column!r} is {texts[k]}, not a finite number")
            others = f"; the others are written as {self.example!r} is" if self.example else ""
            raise DataError(
                f"row {rows[places[k]]}: column {self.column!r} holds {texts[k].as_py()!r}, not a number{others}"
            )
        return self.notation.read(texts)

    def _decide(self, texts: pa.Array) -> None:
        found = find_notation(texts, self.decimal, self.comma_means)
        if found is None:
            example = texts.filter(pc.match_substring(texts, ","))[0].as_py()
            raise DataError(
                f"column {self.column!r} holds {example!r}, of which the comma may separate thousands or decimals: say which "
                "mark decimals have with decimal (--decimal . or --decimal ,)"
            )
        self.notation = found
        unusual = ~PLAIN.fits(texts) & found.fits(texts)
        if unusual.any():
            telling = unusual & pc.match_substring(texts, ",").to_numpy(zero_copy_only=False)
            self.example = texts[int(np.argmax(telling if telling.any() else unusual))].as_py()
        if not found.words and pc.any(pc.match_substring(texts, found.decimal)).as_py():
            self.mark = found.decimal

    @property
    def remark(self) -> str | None:
        """How an unusual notation was read."""
        if not self.example or self.notation is None or self.notation.words:
            return None
        value = f"{self.notation.value(self.example):.15g}"
        return f"column {self.column!r}: {self.example!r} was read as {value}"


def _plain_array(numbers: pa.Array) -> np.ndarray:
    """Numbers as NumPy has them; by DLPack where none is null, since Arrow imports pandas for its own way."""
    return numbers.to_numpy(zero_copy_only=False) if numbers.null_count else np.from_dlpack(numbers)


def refuse_fractions(values: np.ndarray, column: str, row_of: Rows) -> None:
    """Refuse what is no count."""
    wrong = np.flatnonzero((values < 0) | (values != np.rint(values)))
    if wrong.size:
        k = wrong[0]
        raise DataError(f"row {row_of[k]}: column {column!r} must hold whole numbers, not {values[k]:g}")
    large = np.flatnonzero(values > MOST_COUNTED)
    if large.size:
        k = large[0]
        raise DataError(f"row {row_of[k]}: column {column!r} holds {values[k]:g}, too large for an exact count")


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
