"""Values that are not there: counted, and refused or left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..errors import DataError


@dataclass
class Missing:
    """How many rows have no value, and where the first one of each column is."""

    columns: dict[str, tuple[int, int]] = field(default_factory=dict)
    """How many are missing, and the first row, by column."""
    rows: int = 0
    """Rows that lack something."""
    of: int = 0
    """Rows that were looked at."""
    naming: str | None = None
    """The column that names the options."""

    def note(self, column: str, rows: np.ndarray) -> None:
        """The rows of a batch in which a column has nothing."""
        if rows.size:
            count, first = self.columns.get(column, (0, int(rows[0])))
            self.columns[column] = (count + rows.size, first)

    def refuse(self) -> None:
        """Refuse a table that lacks something, and say how to go on without it."""
        for column, (count, first) in self.columns.items():
            what = "names no option" if column == self.naming else "is empty"
            raise DataError(
                f"row {first}: column {column!r} {what}, in {count:,} of {self.of:,} rows: fill it in, or leave such rows out "
                "with drop_missing (--drop-missing)"
            )

    @property
    def remark(self) -> str:
        """What was left out; nothing, if nothing was.

        >>> Missing({"y": (2, 5)}, 2, 10).remark
        "2 of 10 rows were left out, since 'y' is empty there"
        """
        if not self.rows:
            return ""
        which = " or ".join(map(repr, self.columns))
        verb = "were" if self.rows > 1 else "was"
        return f"{self.rows:,} of {self.of:,} rows {verb} left out, since {which} is empty there"


def whole_rows(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Which rows have a value in every column.

    >>> whole_rows([np.array([1.0, np.nan]), np.array([2.0, 3.0])]).tolist()
    [True, False]
    """
    whole = np.ones(len(columns[0]), dtype=bool)
    for column in columns:
        whole &= ~np.isnan(column)
    return whole
