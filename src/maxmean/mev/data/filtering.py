"""The rows of a table that fulfil conditions, and what is said of conditions that tell nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import DataError
from .columns import Rows, comma_means
from .conditions import Condition
from .first_look import check_column
from .layout import Reading, listed

_SHOWN = 8  # values

Numbered = tuple[Rows, pa.RecordBatch]


def chosen_rows(stream: Iterator[Numbered], reading: Reading) -> Iterator[Numbered]:
    """The rows that fulfil every condition; says where none does, and where a value never occurs."""
    if not reading.where:
        yield from stream
        return
    any_row, seen = False, [SeenValues(condition) for condition in reading.where]
    rows: Rows = ()
    for rows, batch in stream:
        kept = np.ones(batch.num_rows, dtype=bool)
        decimal = reading.decimal or comma_means(batch.schema)
        for each in seen:
            check_column(each.condition.column, batch.schema.names)
            kept &= each.holds(batch.column(each.condition.column), decimal)
        if kept.any():
            any_row = True
            yield np.asarray(rows)[kept], batch.filter(pa.array(kept))
    if not len(rows):
        return
    for each in seen:
        each.refuse_doubts()
    if not any_row:
        raise DataError(f"no row fulfils {' and '.join(map(str, reading.where))}")


@dataclass
class SeenValues:
    """What the rows so far have shown of a condition."""

    condition: Condition
    held: dict[str, None] = field(default_factory=dict)
    """Some of the values that the column has."""
    matched: dict[str, None] = field(default_factory=dict)
    """Ways in which the value was written."""

    def holds(self, column: Any, decimal: str | None) -> np.ndarray:
        """For which rows the condition holds."""
        found = self.condition.found(column, decimal)
        if len(self.held) < _SHOWN:
            self.held |= dict.fromkeys(map(str, column.unique()[:_SHOWN].to_pylist()))
        if found.any() and (len(self.matched) < _SHOWN):
            self.matched |= dict.fromkeys(
                str(text).strip() for text in column.filter(found).unique()[:_SHOWN].to_pylist()
            )
        return found if self.condition.equal else ~found

    def refuse_doubts(self) -> None:
        """Refuse a value that no row has, and versions such as 1.1 and 1.10, which as numbers are the same."""
        name, value = self.condition.column, self.condition.value
        if not self.matched:
            shown = listed(list(self.held)[:_SHOWN])
            raise DataError(f"no row fulfils {name} = {value}: column {name!r} holds {shown}")
        versions = [text for text in self.matched if "." in text]
        if len(versions) > 1 and not self.condition.quoted:
            raise DataError(
                f"column {name!r} holds {listed(versions)}, which are the same number: if they are names, put the one that is "
                f"meant in quotation marks ({name} {'=' if self.condition.equal else '!='} '{versions[0]}')"
            )
