"""Transposed tables: a row an option, such as a model, and a column a unit, such as a question."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ..errors import DataError
from .aliases import TOTALS, alias, plain
from .columns import comma_means
from .first_look import FirstLook
from .layout import Layout, Reading, listed
from .notation import MISSING
from .number_column import Numbers

_SOME_ANSWERS = 5  # columns; fewer may be anything
_ROUNDED = 0.0051  # means are given to two digits or more
_ANSWERS = {"0", "1", "0.0", "1.0", "true", "false", "yes", "no"}


def is_transposed(table: FirstLook) -> bool:
    """Whether each row is an option, named by a column called so, and all other columns hold zeros and ones, as answers are."""
    by, text = _row_names(table), table.of_kind("text")
    answers = [name for name in table.names if name != by and name not in table.said.values()]
    if (
        by is None
        or text not in ([], [by])
        or len(answers) < _SOME_ANSWERS
        or table.distinct(by) < table.batch.num_rows
    ):
        return False
    return all(_is_answers(table.batch.column(name)) for name in answers)


def _row_names(table: FirstLook) -> str | None:
    """The column that names the rows, if they are options: by what it is called, or the index."""
    return (
        table.said.get("by") or alias("by", table.of_kind("text")) or (None if table.of_kind("text") else table.index)
    )


def _is_answers(column: pa.Array) -> bool:
    if pa.types.is_boolean(column.type):
        return True
    texts = {str(value).strip().lower() for value in column.unique()[:10].to_pylist()}
    return texts - {"none"} - set(MISSING) <= _ANSWERS


def transposed(table: FirstLook, reading: Reading) -> Layout:
    """The layout of a table with a row an option and a column a unit."""
    by, text = _row_names(table), table.of_kind("text")
    if by is None and len(text) == 1:
        by = text[0]
    if by is None:
        raise DataError("no column names the options, one a row: name it with by (--by)")
    units = tuple(name for name in table.names if name != by and table.kinds[name] in ("number", "truth", "empty"))
    summed, remarks = _no_questions(table, units, reading)
    units = tuple(name for name in units if name not in summed)
    if len(units) < 2:
        raise DataError(
            f"beside {by!r}, a transposed table has two columns of numbers or more, one a unit (a question, a fold)"
        )
    odd = [name for name in table.names if name not in (by, *units, *summed)]
    why = dict.fromkeys(odd, "holds no numbers") | summed
    said = tuple(f"column {name!r} {each} and is no unit" for name, each in why.items())
    return Layout("transposed", {"by": by}, units, remarks=(*said, *remarks))


def _no_questions(table: FirstLook, units: Sequence[str], reading: Reading) -> tuple[dict[str, str], list[str]]:
    """Columns of a transposed table that are none of its questions, with the reason; and a sentence on those in doubt.

    A column sums the others up by its name, or by being their mean; or it has other numbers, where most are from 0 to 1.
    """
    found = {name: "sums the others up, by its name," for name in units if plain(name) in TOTALS}
    values = {name: each for name in units if (each := _read(table, name, reading)) is not None}
    shares = [name for name, each in values.items() if not ((each < 0) | (each > 1)).any()]
    answers = [
        name for name in shares if (np.isin(values[name], (0, 1)) | np.isnan(values[name])).all() and name not in found
    ]
    if 2 * len(shares) <= len(units):
        return found, []
    found |= {name: "holds other numbers than from 0 to 1" for name in values if name not in (*shares, *found)}
    if 2 * len(answers) <= len(units):
        return found, []
    given = np.stack([values[name] for name in answers])
    mean = np.nansum(given, axis=0) / np.maximum((~np.isnan(given)).sum(axis=0), 1)
    others = [name for name in shares if name not in (*answers, *found)]
    found |= {name: "is the mean of the others" for name in others if not (abs(values[name] - mean) > _ROUNDED).any()}
    kept = [name for name in others if name not in found]
    doubt = f"column {listed(kept)} counts as a unit, though not all of its values are 0 or 1, as those of most are"
    return found, [doubt] if kept else []


def _read(table: FirstLook, name: str, reading: Reading) -> np.ndarray | None:
    """A column's numbers; None where there is none or one cannot be read, which is said elsewhere."""
    numbers = Numbers(name, reading.decimal, comma_means(table.batch.schema))
    try:
        values = numbers.read(table.batch.column(name), range(table.batch.num_rows))
    except DataError:
        return None
    return None if np.isnan(values).all() else values
