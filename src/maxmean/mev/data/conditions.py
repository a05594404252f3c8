"""Conditions that rows must fulfil, as a user writes them: ``country = DE``, ``ad != Total``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .columns import is_text
from .notation import PLAIN, Notation

_CODE = "^[+-]?0[0-9]"  # 007 is a name
_EXACT = 2**53  # beyond, floating point does not tell neighbours apart


@dataclass(frozen=True)
class Condition:
    """A column that must hold a value, or must not.

    >>> Condition.of("ad != Total")
    Condition(column='ad', value='Total', equal=False, quoted=False)
    """

    column: str
    value: str
    equal: bool = True
    quoted: bool = False
    """Whether the value stood in quotation marks: it is a text then, even if it looks like a number."""

    @classmethod
    def of(cls, text: str) -> Condition:
        found = re.fullmatch(r"\s*(.*?[^\s!=])\s*(!=|==?)\s*(.*?)\s*", str(text), re.DOTALL)
        if found is None:
            raise ArgumentError(f"where is a column, = or !=, and a value, as in 'country = DE', not {text!r}")
        column, value = (re.sub(r"""\A(["'])(.*)\1\Z""", r"\2", part) for part in (found[1], found[3]))
        return cls(column, value, found[2] != "!=", value != found[3])

    def found(self, column: Any, decimal: str | None) -> np.ndarray:
        """Which rows of an Arrow array have the value; blanks around a text do not count, and a missing value equals nothing.

        A number equals another however the two are written, with the mark that decimals have in the table.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_boolean(column.type) or pa.types.is_temporal(column.type) or pa.types.is_null(column.type):
            column = pc.cast(column, pa.string())
        if not is_text(column.type):
            return _filled(self._typed(column))
        texts = pc.utf8_trim_whitespace(column)
        if self.value.lower() in ("true", "false"):
            return _filled(pc.equal(pc.utf8_lower(texts), self.value.lower()))
        same = _filled(pc.equal(texts, self.value))
        number = None if self.quoted else _number(self.value, decimal)
        if number is None:
            return same
        for way in _ways(decimal):
            written = np.flatnonzero(_filled(way.fits(texts)) & ~_filled(pc.match_substring_regex(texts, _CODE)))
            same[written] |= way.read(texts.take(pa.array(written))) == number
        return same

    def _typed(self, column: Any) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            return pc.equal(pc.cast(column, pa.float64(), safe=False), float(self.value))
        except (pa.ArrowException, ValueError):
            raise ArgumentError(
                f"where: column {self.column!r} holds values of type {column.type}, which {self.value!r} is none of"
            ) from None

    def __str__(self) -> str:
        return f"{self.column} {'=' if self.equal else '!='} {self.value}"


def _filled(found: Any) -> np.ndarray:
    """Truths as NumPy has them, False where there is none."""
    import pyarrow.compute as pc

    if isinstance(found, np.ndarray):
        return np.equal(found, True)  # None is not
    return pc.fill_null(found, False).to_numpy(zero_copy_only=False).astype(bool)


def _ways(decimal: str | None) -> tuple[Notation, ...]:
    """How numbers may be written, if decimals have this mark; with None, which says nothing of commas, plainly."""
    return {".": (PLAIN, Notation(".", ",")), ",": (Notation(",", "."),)}.get(decimal or "", (PLAIN,))


def _number(text: str, decimal: str | None) -> float | None:
    """The number that a value is: its decimals have a point or the table's mark; none where floating point is not exact.

    >>> _number("1000.0", None), _number("1,5", ","), _number("007", None), _number("v2", None)
    (1000.0, 1.5, None, None)
    """
    if re.match(_CODE, text):
        return None
    way = next((way for way in (*_ways(decimal), PLAIN) if re.fullmatch(way.pattern, text)), None)
    number = None if way is None else way.value(text)
    return number if number is not None and abs(number) < _EXACT else None


def conditions(given: str | Iterable[str] | None) -> tuple[Condition, ...]:
    """From one text or several."""
    return tuple(map(Condition.of, [given] if isinstance(given, str) else given or ()))
