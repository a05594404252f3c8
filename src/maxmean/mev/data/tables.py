"""Tables in memory as Arrow tables: pandas, polars, DuckDB, PyArrow, and what else shows its columns by a protocol."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..errors import DataError
from .first_look import INDEX
from .frames import is_lazy, is_series, labels_of


def as_table(frame: Any) -> pa.Table:
    """The table behind an object, the index of a DataFrame as a column that is marked as such."""
    if is_series(frame):
        frame = frame.to_frame("value" if frame.name is None else frame.name)
    if hasattr(frame, "iloc"):
        return _from_pandas(frame)
    if is_lazy(frame):
        frame = frame.collect()
    if hasattr(frame, "__arrow_c_stream__") or isinstance(frame, pa.RecordBatch):
        return pa.table(frame)
    if hasattr(frame, "__dataframe__"):
        from pyarrow.interchange import from_dataframe

        return from_dataframe(frame)
    try:
        return pa.table(frame)
    except (TypeError, ValueError):
        raise DataError(f"a {type(frame).__name__} cannot be read as a table: turn it into a DataFrame first") from None


def _from_pandas(frame: Any) -> pa.Table:
    names = _column_names(frame.columns)
    columns = [_arrow(frame.iloc[:, k]) for k in range(frame.shape[1])]
    fields = [pa.field(name, column.type) for name, column in zip(names, columns, strict=True)]
    labels = labels_of(frame)
    if labels is not None:
        levels = [str(name) for name in frame.index.names if name is not None]
        name = ", ".join(levels) or "index"
        if name not in names:
            columns.append(pa.array(labels, pa.string()))
            fields.append(pa.field(name, pa.string(), metadata={INDEX: b"1"}))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _column_names(columns: Any) -> list[str]:
    """Names of columns; of those with several levels, as ``agg`` makes them, the levels that differ."""
    if columns.nlevels == 1:
        return [str(name) for name in columns]
    differing = [k for k in range(columns.nlevels) if len(set(columns.get_level_values(k))) > 1]
    return [" ".join(str(label[k]) for k in differing) for label in columns]


def _arrow(column: Any) -> Any:
    try:
        found = pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError):  # a mixture: as text, each value is judged in its row
        missing = column.isna()
        texts = [None if empty else str(value) for value, empty in zip(column, missing, strict=True)]
        return pa.array(texts, pa.string())
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
