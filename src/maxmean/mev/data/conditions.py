"""Conditions that rows must fulfil, as a user writes them: ``country = DE``, ``ad != Total``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError


@dataclass(frozen=True)
class Condition:
    """A column that must hold a value, or must not.

    >>> Condition.of("ad != 'Total'")
    Condition(column='ad', value='Total', equal=False)
    """

    column: str
    value: str
    equal: bool = True

    @classmethod
    def of(cls, text: str) -> Condition:
        found = re.fullmatch(r"\s*(.*?[^\s!=])\s*(!=|==?)\s*(.*?)\s*", str(text), re.DOTALL)
        if found is None:
            raise ArgumentError(f"where is a column, = or !=, and a value, as in 'country = DE', not {text!r}")
        column, value = (re.sub(r"""\A(["'])(.*)\1\Z""", r"\2", part) for part in (found[1], found[3]))
        return cls(column, value, found[2] != "!=")

    def holds(self, column: Any) -> np.ndarray:
        """For which rows of an Arrow array it holds; blanks around a text do not count, and a missing value equals nothing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if pa.types.is_boolean(column.type) or pa.types.is_temporal(column.type) or pa.types.is_null(column.type):
            column = pc.cast(column, pa.string())
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            same = pc.equal(pc.utf8_trim_whitespace(column), self.value)
            if self.value.lower() in ("true", "false"):
                same = pc.equal(pc.utf8_lower(pc.utf8_trim_whitespace(column)), self.value.lower())
        else:
            same = self._numbers(column)
        found = pc.fill_null(same, False).to_numpy(zero_copy_only=False).astype(bool)
        return found if self.equal else ~found

    def _numbers(self, column: Any) -> Any:
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


def conditions(given: str | Iterable[str] | None) -> tuple[Condition, ...]:
    """From one text or several."""
    return tuple(map(Condition.of, [given] if isinstance(given, str) else given or ()))
