"""Names for the settings of a search, made from their parameters."""

from __future__ import annotations

import pyarrow as pa

from ..errors import DataError
from .notation import MISSING


def parameter_names(batch: pa.RecordBatch, prefix: str) -> list[str]:
    """A name for each row: the parameters that differ between rows, numbers to four digits where that tells them apart.

    >>> tried = {"param_C": [0.1, 0.1234567, 10.0], "param_kernel": ["rbf"] * 3, "param_degree": [2, None, 2]}
    >>> parameter_names(pa.RecordBatch.from_pydict(tried), "param_")
    ['C=0.1, degree=2', 'C=0.1235', 'C=10, degree=2']
    """
    columns = {name: _texts(batch.column(name)) for name in batch.schema.names if name.startswith(prefix)}
    if not columns and "params" in batch.schema.names:
        return [str(text) for text in batch.column("params").to_pylist()]
    differing = {name.removeprefix(prefix): texts for name, texts in columns.items() if len(set(texts)) > 1}
    if not differing:
        raise DataError("all rows have the same parameters: there is one option, and the best of several is asked for")
    return [
        ", ".join(f"{name}={texts[k]}" for name, texts in differing.items() if texts[k] is not None) or "no parameters"
        for k in range(batch.num_rows)
    ]


def _texts(column: pa.Array) -> list[str | None]:
    """Values as text, None where a parameter has none."""
    texts = [None if value is None else str(value).strip() for value in column.to_pylist()]
    texts = [None if text is None or (text.lower() in MISSING and text != "None") else text for text in texts]
    numbers = {text: number for text in texts if text is not None and (number := _fraction(text)) is not None}
    short = {text: f"{number:.4g}" for text, number in numbers.items()}
    if len(set(short.values())) < len(set(numbers.values())):
        return texts
    return [None if text is None else short.get(text, text) for text in texts]


def _fraction(text: str) -> float | None:
    """The number that a text is, if it has decimals or an exponent."""
    try:
        return float(text) if {".", "e"} & set(text) else None
    except ValueError:
        return None
