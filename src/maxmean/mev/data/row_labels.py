"""Columns of a wide table that tell its rows apart: ids, dates, running numbers. They are no options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..errors import DataError
from .aliases import labels_rows
from .number_column import Numbers

_FEW = 3  # rows that count 1, 2, 3 do so on purpose; from another number on, more are needed
_SOME = 5
_MANY = 10  # rows whose whole numbers all differ may do so by chance, if they are fewer


@dataclass(frozen=True)
class RowLabels:
    """What the columns of numbers in a wide table are."""

    options: tuple[str, ...]
    labels: tuple[str, ...]
    """Columns that number or date the rows."""
    doubtful: str | None = None
    """An option that has a different whole number in every row, as no other option has."""
    repeating: str | None = None
    """An option that has the name of an id or a time, and the same whole number in several rows."""
    whole: tuple[str, ...] = ()
    """Columns of whole numbers."""


def row_labels(batch: pa.RecordBatch, numeric: Sequence[str]) -> RowLabels:
    """Sort the columns of numbers by their names, and by their values in the rows of ``batch``.

    >>> table = pa.record_batch({"question": [1, 2, 3], "gpt": [0, 1, 1], "claude": [1, 1, 0]})
    >>> row_labels(table, table.schema.names).labels
    ('question',)
    """
    whole = {name: values for name in numeric if (values := _whole(batch, name)) is not None}
    distinct = {name for name, values in whole.items() if len(np.unique(values)) == len(values)}
    running = {name for name in distinct if _counts_up(whole[name])}
    if len(running) == len(numeric):
        running = set()
    labels = [name for name in numeric if name in running or (name in distinct and labels_rows(name))]
    options = [name for name in numeric if name not in labels]
    odd = [name for name in options if name in distinct]
    return RowLabels(
        tuple(options),
        tuple(labels),
        doubtful=odd[0] if not labels and len(odd) == 1 < len(options) and batch.num_rows >= _MANY else None,
        repeating=next((name for name in options if name in whole and labels_rows(name)), None),
        whole=tuple(whole),
    )


def _counts_up(values: np.ndarray) -> bool:
    enough = _FEW if values[0] in (0, 1) else _SOME
    return len(values) >= enough and bool((np.diff(values) == 1).all())


def _whole(batch: pa.RecordBatch, name: str) -> np.ndarray | None:
    """A column's numbers if all of them are there and whole."""
    try:
        values = Numbers(name, decimal=".").read(batch.column(name), range(batch.num_rows))
    except DataError:
        return None
    return values if (values == np.rint(values)).all() else None


def left_out(labels: Mapping[str, str]) -> tuple[str, ...]:
    """A sentence for each column that is no option, with the reason.

    >>> left_out({"day": "dates the rows"})
    ("column 'day' dates the rows and is no option",)
    """
    return tuple(f"column {name!r} {why} and is no option" for name, why in labels.items())
