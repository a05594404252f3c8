"""What pandas and its like hand over: tables, series with labels, groups of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ArgumentError, DataError
from .layout import listed


def is_frame(data: Any) -> bool:
    """Whether it is a table: has columns, or offers Arrow's or the dataframe protocol; a pandas Series with labels, too."""
    if is_series(data):
        return labels_of(data) is not None
    if is_lazy(data) or hasattr(data, "columns"):
        return True
    return not hasattr(data, "dtype") and (hasattr(data, "__arrow_c_stream__") or hasattr(data, "__dataframe__"))


def is_lazy(data: Any) -> bool:
    """Whether it is a query of polars that has not run yet."""
    return hasattr(data, "collect_schema") and hasattr(data, "collect")


def is_series(data: Any) -> bool:
    """Whether it is a pandas Series, or one of its look-alikes."""
    return hasattr(data, "index") and hasattr(data, "iloc") and not hasattr(data, "columns")


def is_grouped(data: Any) -> bool:
    """Whether it is what ``groupby`` gives."""
    return hasattr(data, "get_group") and hasattr(data, "ngroups")


def labels_of(data: Any) -> list[str] | None:
    """The labels of a pandas index as text, or None where rows are only numbered.

    >>> import pandas as pd
    >>> labels_of(pd.Series([3, 5], index=["red", "blue"])), labels_of(pd.Series([3, 5]))
    (['red', 'blue'], None)
    """
    index = data.index
    if all(name is None for name in index.names) and getattr(index.dtype, "kind", "O") in "iu":
        return None
    return [name_of(label) for label in index]


def name_of(label: Any) -> str:
    """A label as a name: the parts of one that has several, separated by commas.

    >>> name_of(("red", 2)), name_of(7)
    ('red, 2', '7')
    """
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label).strip()


def aligned(given: dict[str, Any]) -> dict[str, Any]:
    """Series whose rows are only numbered, in one order, as pandas matches them: by their labels; refuses others.

    Beside names, which the labels of one of the others are, a Series must have these labels or count its rows from 0.

    >>> import pandas as pd
    >>> won, tried = pd.Series([3, 5], index=[0, 1]), pd.Series([90, 70], index=[1, 0])
    >>> aligned({"successes": won, "trials": tried})["trials"].tolist()
    [70, 90]
    """
    numbered = {role: values for role, values in given.items() if is_series(values) and labels_of(values) is None}
    named = next((role for role, values in given.items() if isinstance(values, Mapping)), None)
    if not numbered or (named is None and len(numbered) == 1):
        return given
    first = named or next(iter(numbered))
    order = list(map(str, given[first] if named else numbered[first].index))
    found = dict(given)
    for role, values in numbered.items():
        labels = list(map(str, values.index))
        if labels == order or (named and labels == list(map(str, range(len(labels))))):
            continue
        place = {label: k for k, label in enumerate(labels)}
        if len(place) < len(labels) or len(labels) != len(order) or place.keys() != set(order):
            raise DataError(
                f"{first} and {role} are Series with different labels, or labels that occur twice, so it is not known which of "
                "their values belong together: give columns of one DataFrame, or arrays in the same order"
            )
        found[role] = values.iloc[[place[label] for label in order]]
    return found


def groups(data: Any, value: Any) -> tuple[list[str], list[Any]]:
    """The names and the values of the groups of a pandas GroupBy; of one with several columns, ``value`` says which.

    >>> import pandas as pd
    >>> rows = pd.DataFrame({"ad": ["x", "y", "x"], "eur": [1.0, 2.0, 3.0]})
    >>> names, values = groups(rows.groupby("ad"), None)
    >>> names, [each.tolist() for each in values]
    (['x', 'y'], [[1.0, 3.0], [2.0]])
    """
    if data.ndim == 2:
        data = data[_grouped_column(data, value)]
    elif value is not None:
        raise ArgumentError("value names a column, and these groups have but one")
    pairs = [(name_of(label), values) for label, values in data]
    return [name for name, _ in pairs], [values for _, values in pairs]


def ungrouped(data: Any) -> str:
    """A sentence on rows that a pandas GroupBy leaves out, since their key is missing; empty if there are none."""
    rows, kept = len(data.obj), int(data.size().sum())
    if kept >= rows:
        return ""
    return f"{rows - kept:,} of {rows:,} rows {'were' if rows - kept > 1 else 'was'} left out, since they name no group"


def _grouped_column(data: Any, value: Any) -> Any:
    frame, keys = data.obj, data.keys if isinstance(data.keys, list) else [data.keys]
    if value is not None:
        if value not in frame.columns:
            raise DataError(f"there is no column {value!r} (there are {listed([str(name) for name in frame.columns])})")
        return value
    columns = [name for name in frame.select_dtypes(["number", "bool"]).columns if name not in keys]
    if len(columns) != 1:
        raise DataError(f"the groups have the columns {listed([str(name) for name in columns])}: name one with value")
    return columns[0]
