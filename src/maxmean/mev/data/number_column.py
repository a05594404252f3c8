"""A column of numbers, however they are written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError
from .columns import Rows, is_text, plain_array
from .notation import MISSING, PLAIN, Notation, find_notation

MOST_COUNTED = 2**53
"""Beyond this, floating point no longer counts every whole number."""

_SAMPLE = 1000  # rows in which a decimal point is looked for


@dataclass
class Numbers:
    """A column of numbers, read batch by batch: the first one tells how they are written."""

    column: str
    decimal: str | None = None
    """The decimal mark, if the user has said it."""
    comma_means: str | None = None
    """What a comma in a number is if it may be either: that of decimals or, if this is a point, of thousands."""
    semicolons: bool = False
    """Whether semicolons separate the columns, as where decimals have a comma."""
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
            return plain_array(pc.cast(column, pa.float64(), safe=False))
        except pa.ArrowException:
            if pa.types.is_null(column.type):
                return np.full(len(column), np.nan)
            raise DataError(f"row {rows[0]}: column {self.column!r} holds a {column.type}, not a number") from None

    def _texts(self, column: pa.Array, rows: Rows) -> np.ndarray:
        if self.notation in (None, PLAIN) and self.decimal != ",":
            try:
                values = plain_array(pc.cast(column, pa.float64()))
            except pa.ArrowException:
                pass
            else:
                if self.notation is None:
                    self._refuse_doubtful_points(column)
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
        if found.decimal == "." and not found.words:
            self._refuse_doubtful_points(texts)
        self.notation = found
        plain = PLAIN.fits(texts)
        if found.decimal == ",":
            plain &= ~pc.match_substring(texts, ".").to_numpy(zero_copy_only=False)  # a point that is none
        unusual = ~plain & found.fits(texts)
        if unusual.any():
            telling = unusual & pc.match_substring(texts, ",").to_numpy(zero_copy_only=False)
            self.example = texts[int(np.argmax(telling if telling.any() else unusual))].as_py()
        if not found.words and pc.any(pc.match_substring(texts, found.decimal)).as_py():
            self.mark = found.decimal

    def _refuse_doubtful_points(self, texts: pa.Array) -> None:
        """Ask about 1.234 beside 999 where columns are separated as they are in countries with decimal commas.

        Decimals that are sometimes three and else none are rare, thousands look so always: no group of four digits, no 0.123.
        """
        if not self.semicolons or self.decimal is not None:
            return
        bare = pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, r"[%\p{Sc}]", "")).drop_null()
        bare = bare.filter(pc.not_equal(bare, ""))
        pointed = bare.filter(pc.match_substring(bare, "."))
        whole = bare.filter(pc.invert(pc.match_substring(bare, ".")))
        if not len(pointed) or not len(whole):
            return
        if not pc.all(pc.match_substring_regex(pointed, r"^[+-]?[1-9][0-9]{0,2}\.[0-9]{3}$")).as_py():
            return
        if pc.all(pc.match_substring_regex(whole, "^[+-]?[0-9]{1,3}$")).as_py():
            raise DataError(
                f"column {self.column!r} holds {pointed[0].as_py()!r} beside {whole[0].as_py()!r}, and its point may separate "
                "thousands or decimals: say which mark decimals have with decimal (--decimal . or --decimal ,)"
            )

    @property
    def remark(self) -> str | None:
        """How an unusual notation was read."""
        if not self.example or self.notation is None or self.notation.words:
            return None
        value = f"{self.notation.value(self.example):.15g}"
        return f"column {self.column!r}: {self.example!r} was read as {value}"


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


def refuse_two_marks(columns: Iterable[Numbers]) -> None:
    """Refuse a table in which one column has decimal commas and another decimal points: one of them has thousands."""
    marks = {numbers.mark: numbers.column for numbers in columns if numbers.mark}
    if len(marks) > 1:
        raise DataError(
            f"decimals have a comma in column {marks[',']!r} and a point in {marks['.']!r}: say which mark they have with "
            "decimal (--decimal . or --decimal ,)"
        )
