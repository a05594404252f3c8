"""The columns that a layout needs, gathered from a table batch by batch: numbers, and numbers for names; nothing else is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import DataError
from .columns import CODE, Rows, comma_means, decoded, has_semicolons, refuse_nested
from .filtering import chosen_rows
from .layout import Columns, Layout, Reading
from .limits import TOO_LARGE
from .missing import Missing
from .name_column import Names
from .number_column import Numbers, refuse_two_marks
from .recognise import recognise
from .searches import RECAST, recast

_COUNTED = ("successes", "trials", "n")

Numbered = tuple[Rows, pa.RecordBatch]


@dataclass
class Gathered:
    """What a table says: of every row that counts, the option, the unit and the numbers."""

    names: Names
    units: Names | None
    codes: np.ndarray
    """The option of every row, or nothing for a wide table."""
    unit_codes: np.ndarray
    values: dict[str, np.ndarray]
    """By role; by column, for a wide table; nan where a wide table has no value."""
    rows: Sequence[int]
    """The number of every row in the table."""
    missing: Missing
    remarks: list[str]


def gather(
    batches: Iterable[pa.RecordBatch], columns: Columns, reading: Reading, most: float
) -> tuple[Layout, Gathered]:
    """Recognise the layout from the first rows, then gather the columns that it needs, up to ``most`` values."""
    stream = chosen_rows(_numbered(map(decoded, batches)), reading)
    first = next(stream, None)
    if first is None:
        raise DataError("the table has no rows")
    layout = recognise(first[1], columns, reading)
    rows: Iterable[Numbered] = chain([first], stream)
    if layout.kind in RECAST:
        layout, first = recast(layout, rows, reading)
        rows = [first]
    for name in (*layout.roles.values(), *layout.options):
        refuse_nested(first[1].schema.field(name))
    return layout, _Gatherer(layout, reading, first[1].schema).all(_bounded(rows, layout, most))


def _numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[Numbered]:
    """Batches that have rows, with the numbers of these, the first row of the table being 1."""
    row = 1
    for batch in batches:
        if batch.num_rows:
            yield range(row, row + batch.num_rows), batch
        row += batch.num_rows


def _bounded(stream: Iterable[Numbered], layout: Layout, most: float) -> Iterator[Numbered]:
    kept, count = len(layout.options) or len(layout.roles.keys() - {"by"}), 0
    for rows, batch in stream:
        count += batch.num_rows
        if count * kept > most:
            raise DataError(TOO_LARGE)
        yield rows, batch


class _Gatherer:
    """One pass over the rows."""

    def __init__(self, layout: Layout, reading: Reading, schema: pa.Schema) -> None:
        self.kind = layout.kind
        self.by, unit = layout.roles.get("by"), layout.roles.get("unit", layout.roles.get("cluster"))
        self.names = Names(self.by or "", only=reading.options)
        self.units = None if unit is None else Names(unit, most=None)
        chosen = {name: name for name in layout.options} or {
            role: name for role, name in layout.roles.items() if role not in ("by", "unit", "cluster")
        }
        separated, semicolons = comma_means(schema), has_semicolons(schema)
        self.numbers = {
            role: Numbers(name, reading.decimal, "." if role in _COUNTED else separated, semicolons)
            for role, name in chosen.items()
        }
        self.missing = Missing(naming=self.by)
        self.codes: list[np.ndarray] = []
        self.unit_codes: list[np.ndarray] = []
        self.values: dict[str, list[np.ndarray]] = {role: [] for role in self.numbers}
        self.rows: list[Rows] = []

    def all(self, stream: Iterable[Numbered]) -> Gathered:
        for rows, batch in stream:
            self._add(rows, batch)
        refuse_two_marks(self.numbers.values())
        return Gathered(
            self.names,
            self.units,
            _joined(self.codes),
            _joined(self.unit_codes),
            {role: _joined(self.values.pop(role)) for role in self.numbers},
            RowNumbers(self.rows),
            self.missing,
            [remark for numbers in self.numbers.values() if (remark := numbers.remark)],
        )

    def _add(self, rows: Rows, batch: pa.RecordBatch) -> None:
        """Keep what a batch has; rows of other options, and rows that lack something, are left out."""
        codes = self._options(rows, batch)
        if codes is not None and codes.min() < -1:
            chosen = codes > -2
            rows, batch, codes = np.asarray(rows)[chosen], batch.filter(pa.array(chosen)), codes[chosen]
        units = None if self.units is None else self.units.read(batch.column(self.units.column))
        values = {role: numbers.read(batch.column(numbers.column), rows) for role, numbers in self.numbers.items()}
        lacking = {self.by: codes < 0} if self.by and codes is not None else {}
        lacking |= {self.units.column: units < 0} if self.units and units is not None else {}
        if self.kind != "wide":  # whose columns may end early
            lacking |= {self.numbers[role].column: np.isnan(column) for role, column in values.items()}
        self.missing.of += len(rows)
        if any(where.any() for where in lacking.values()):
            for name, where in lacking.items():
                self.missing.note(str(name), np.asarray(rows)[where])
            kept = ~np.logical_or.reduce(list(lacking.values()))
            self.missing.rows += len(rows) - int(kept.sum())
            rows = np.asarray(rows)[kept]
            codes, units = (None if each is None else each[kept] for each in (codes, units))
            values = {role: column[kept] for role, column in values.items()}
        self.codes += [] if codes is None else [codes.astype(CODE)]
        self.unit_codes += [] if units is None else [units]
        for role, column in values.items():
            self.values[role].append(column)
        self.rows.append(rows)

    def _options(self, rows: Rows, batch: pa.RecordBatch) -> np.ndarray | None:
        if self.by:
            return self.names.read(batch.column(self.by))
        if self.kind == "wide":
            return None
        return np.array([self.names.add(f"row {row}") for row in rows], dtype=np.int32)


class RowNumbers(Sequence[int]):
    """The number of every row that was kept, from the pieces it came in.

    >>> RowNumbers([range(1, 4), np.array([6, 9])])[3]
    6
    """

    def __init__(self, pieces: Sequence[Rows]) -> None:
        self.pieces = pieces
        self.ends = np.cumsum([len(piece) for piece in pieces])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, k: Any) -> Any:
        piece = int(np.searchsorted(self.ends, k, side="right"))
        return int(self.pieces[piece][int(k) - (int(self.ends[piece - 1]) if piece else 0)])


def _joined(pieces: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(pieces) if pieces else np.array([])
