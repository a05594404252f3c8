"""Rows of Python values, as a spreadsheet or a database has them, as record batches of text."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

Row = Sequence[Any]


def text_batch(rows: Sequence[Row], names: Sequence[str]) -> pa.RecordBatch:
    """A record batch with a column of text for each name; rows that are too short are filled up with nothing."""
    padded = [(*row, *[None] * (len(names) - len(row))) for row in rows]
    columns = [pa.array([cell_text(row[k]) for row in padded], pa.string()) for k in range(len(names))]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def cell_text(cell: Any) -> str | None:
    """A value as a CSV file would have it.

    >>> cell_text(0.1), cell_text(datetime.datetime(2024, 1, 31)), cell_text(None)
    ('0.1', '2024-01-31', None)
    """
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, datetime.datetime):
        return str(cell if cell.time() != datetime.time() else cell.date())
    return repr(cell) if isinstance(cell, float) else str(cell)
