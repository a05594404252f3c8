"""From the columns of a table to data about options, batch by batch; only numbers are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from ..errors import DataError
from .columns import MOST_COUNTED, blank_to_null, coded, counted, decoded, numbers, refuse_nested, whole_numbers
from .counts import Counts
from .limits import MOST_VALUES, TOO_LARGE
from .options import Options
from .recognise import Columns, Layout, recognise
from .samples import Samples
from .summaries import Summaries


def read_options(batches: Iterable[pa.RecordBatch], columns: Columns, *, most: float = MOST_VALUES) -> Options:
    """Recognise the layout from the first batch, then collect the data of all of them, up to ``most`` values."""
    stream = map(decoded, batches)
    first = next((batch for batch in stream if batch.num_rows), None)
    if first is None:
        raise DataError("the table has no rows")
    layout = recognise(first, columns)
    for name in (*layout.roles.values(), *layout.options):
        refuse_nested(first.schema.field(name))
    rows = _bounded(chain([first], stream), layout, most)
    names, data = _COLLECT[layout.kind](layout, rows)
    return Options(tuple(names), data, str(layout), pairable=isinstance(data, Samples) and data.paired)


def _bounded(batches: Iterable[pa.RecordBatch], layout: Layout, most: float) -> Iterator[pa.RecordBatch]:
    kept, rows = len(layout.options) or len(layout.roles.keys() - {"by"}), 0
    for batch in batches:
        rows += batch.num_rows
        if rows * kept > most:
            raise DataError(TOO_LARGE)
        yield batch


def _long(layout: Layout, batches: Iterable[pa.RecordBatch]) -> tuple[list[str], Samples]:
    number: dict[str, int] = {}
    codes, values = [], []
    for row, batch in _numbered(batches):
        codes.append(coded(batch.column(layout.roles["by"]), layout.roles["by"], row, number))
        values.append(numbers(batch.column(layout.roles["value"]), layout.roles["value"], row))
    code, value = np.concatenate(codes), np.concatenate(values)
    codes.clear()
    values.clear()  # there may be millions
    edges = np.cumsum(np.bincount(code, minlength=len(number)))[:-1]
    return list(number), Samples(tuple(np.split(value[np.argsort(code, kind="stable")], edges)))


def _wide(layout: Layout, batches: Iterable[pa.RecordBatch]) -> tuple[list[str], Samples]:
    """Columns may end early, but must not have holes; without either, the rows are taken as paired."""
    pieces: dict[str, list[np.ndarray]] = {name: [] for name in layout.options}
    ended: dict[str, int] = {}
    for row, batch in _numbered(batches):
        for name in layout.options:
            column = blank_to_null(batch.column(name))
            filled = len(column) - column.null_count
            if filled and name in ended:
                raise DataError(f"row {ended[name]}: column {name!r} is empty there but goes on later")
            if column.null_count:
                hole = int(np.argmin(column.is_valid().to_numpy(zero_copy_only=False)))
                if hole < filled:
                    raise DataError(f"row {row + hole}: column {name!r} is empty there but goes on later")
                ended.setdefault(name, row + hole)
            pieces[name].append(numbers(column.slice(0, filled), name, row))
    values = tuple(np.concatenate(pieces[name]) for name in layout.options)
    return list(layout.options), Samples(values, paired=len({len(v) for v in values}) == 1)


def _counts(layout: Layout, batches: Iterable[pa.RecordBatch]) -> tuple[list[str], Counts]:
    """Rows of the same option add up."""
    number: dict[str, int] = {}
    codes, successes, trials = [], [], []
    for row, batch in _numbered(batches):
        codes.append(_option_codes(layout, batch, row, number))
        successes.append(whole_numbers(batch, layout.roles["successes"], row))
        trials.append(whole_numbers(batch, layout.roles["trials"], row))
        wrong = np.flatnonzero(successes[-1] > trials[-1])
        if wrong.size:
            k = wrong[0]
            raise DataError(f"row {row + k}: {successes[-1][k]:g} successes out of {trials[-1][k]:g} trials")
    code = np.concatenate(codes)
    won, tried = (np.bincount(code, np.concatenate(column), len(number)) for column in (successes, trials))
    if tried.max() > MOST_COUNTED:
        name = list(number)[tried.argmax()]
        raise DataError(f"option {name!r}: its trials add up to {tried.max():g}, too many to count exactly")
    return list(number), Counts(won.astype(np.int64), tried.astype(np.int64))


def _summaries(layout: Layout, batches: Iterable[pa.RecordBatch]) -> tuple[list[str], Summaries]:
    number: dict[str, int] = {}
    codes = []
    columns: dict[str, list[np.ndarray]] = {role: [] for role in layout.roles if role != "by"}
    for row, batch in _numbered(batches):
        codes.append(_option_codes(layout, batch, row, number))
        for role, pieces in columns.items():
            name = layout.roles[role]
            pieces.append(whole_numbers(batch, name, row) if role == "n" else numbers(batch.column(name), name, row))
            negative = np.flatnonzero(pieces[-1] < 0) if role != "mean" else np.array([])
            if negative.size:
                raise DataError(f"row {row + negative[0]}: column {name!r} is negative ({pieces[-1][negative[0]]:g})")
    _check_unique(np.concatenate(codes), list(number))
    joined = {role: np.concatenate(pieces) for role, pieces in columns.items()}
    names = list(number)
    matrix = None if layout.covariance is None else layout.covariance.among(names)
    found = Summaries.of(joined["mean"], joined.get("se"), joined.get("sd"), joined.get("n"), names, matrix)
    return names, found


_COLLECT: dict[str, Callable[[Layout, Iterable[pa.RecordBatch]], tuple[list[str], Samples | Counts | Summaries]]] = {
    "long": _long,
    "wide": _wide,
    "counts": _counts,
    "summaries": _summaries,
}


def _check_unique(codes: np.ndarray, names: Sequence[str]) -> None:
    rows: dict[int, int] = {}
    for row, code in enumerate(codes.tolist(), start=1):
        if code in rows:
            raise DataError(f"row {row}: option {names[code]!r} was summarised in row {rows[code]} already")
        rows[code] = row


def _numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches with the number of their first row, the first row of the table being 1."""
    row = 1
    for batch in batches:
        if batch.num_rows:
            yield row, batch
        row += batch.num_rows


def _option_codes(layout: Layout, batch: pa.RecordBatch, row: int, number: dict[str, int]) -> np.ndarray:
    if "by" in layout.roles:
        return coded(batch.column(layout.roles["by"]), layout.roles["by"], row, number)
    return counted(row, batch.num_rows, number)
