"""Tables of searches and leaderboards: trials of Optuna, cross-validation of scikit-learn, a row a model and a column a question.

Each is read as long rows: an option is a setting of the parameters, or a model; a unit is a fold, or a question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import DataError
from .columns import Rows, comma_means, has_semicolons
from .layout import Columns, Layout, Reading, listed
from .limits import MOST_UNPACKED, MOST_VALUES, TOO_LARGE
from .missing import Missing
from .number_column import Numbers, refuse_two_marks
from .options import repeated
from .parameters import parameter_names

RECAST = ("trials", "folds", "transposed")
"""Layouts that become long ones."""
STEPS = b"maxmean.steps"
"""Metadata key of trials that have a row for each of their intermediate values."""
HALVING = ("iter", "n_resources")
"""Columns of a search by successive halving: the iteration of each row, and how much its fits were given."""
PARAMETERS = "parameters"
"""The column that names the options of a search."""

_SPLIT = re.compile("split([0-9]+)_test_(.+)")
_SHOWN = {"PRUNED": "pruned", "FAIL": "failed", "RUNNING": "still running", "WAITING": "still waiting"}

Numbered = tuple[Rows, pa.RecordBatch]


def search_of(names: Sequence[str], columns: Columns) -> Layout | None:
    """The layout of a table whose columns are those of a search, unless the user has said what they are."""
    if columns.layout is not None or columns.by is not None:
        return None
    if {"number", "state"} <= set(names) and any(name.startswith("params_") for name in names):
        return Layout("trials", {"value": _objective(names, columns.value)})
    splits = [name for name in names if _SPLIT.fullmatch(name)]
    if len(splits) > 1 and any(name == "params" or name.startswith("param_") for name in names):
        score = _score(splits, columns.value)
        return Layout("folds", {"value": score}, tuple(name for name in splits if name.endswith(f"_test_{score}")))
    return None


def _objective(names: Sequence[str], said: str | None) -> str:
    found = [name for name in names if name == "value" or re.fullmatch("values_.+", name)]
    if said is not None and said not in found:
        raise DataError(f"the trials have no objective {said!r} (there are {listed(found)})")
    if said is None and len(found) != 1:
        raise DataError(
            f"the trials have {len(found)} objectives, {listed(found)}: options are compared by one, so choose it with value "
            f"(--value {found[0]})"
            if found
            else "the trials have no column 'value'"
        )
    return said or found[0]


def _score(splits: Sequence[str], said: str | None) -> str:
    found = list(dict.fromkeys(match[2] for name in splits if (match := _SPLIT.fullmatch(name))))
    if said is not None and said not in found:
        raise DataError(f"there is no score {said!r} (there are {listed(found)})")
    if said is None and len(found) > 1:
        raise DataError(f"the splits have several scores, {listed(found)}: choose one with value (--value {found[0]})")
    return said or found[0]


def recast(layout: Layout, stream: Iterable[Numbered], reading: Reading) -> tuple[Layout, Numbered]:
    """The long layout of a search or of a transposed table, and its rows."""
    rows, batch = _whole(stream)
    if (twice := repeated(filter(str.strip, batch.schema.names))) is not None:
        raise DataError(f"column {twice!r} appears twice")
    if layout.kind == "trials":
        return _trials(layout, rows, batch, reading)
    return _across(layout, rows, batch, reading)


def _whole(stream: Iterable[Numbered]) -> Numbered:
    """All rows at once, up to what is read of a table."""
    kept, size, cells = [], 0, 0
    for rows, batch in stream:
        size, cells = size + batch.nbytes, cells + batch.num_rows * batch.num_columns
        if size > MOST_UNPACKED or cells > MOST_VALUES:
            raise DataError(TOO_LARGE)
        kept.append((rows, batch))
    table = pa.Table.from_batches([batch for _, batch in kept]).combine_chunks()
    return np.concatenate([np.asarray(rows) for rows, _ in kept]), table.to_batches()[0]


def _trials(layout: Layout, rows: Rows, batch: pa.RecordBatch, reading: Reading) -> tuple[Layout, Numbered]:
    """Trials of a search that were completed, those with the same parameters as observations of one option."""
    states = [str(state).rpartition(".")[2].upper() for state in batch.column("state").to_pylist()]
    kept = np.array([state == "COMPLETE" for state in states])
    trials = dict(
        zip(batch.column("number").to_pylist() if _has_steps(batch) else range(len(states)), states, strict=True)
    )
    others = Counter(state for state in trials.values() if state != "COMPLETE")
    said = ", ".join(f"{count:,} {_SHOWN.get(state, repr(state))}" for state, count in others.items())
    if not kept.any():
        raise DataError(f"no trial is complete ({said})")
    remarks = [f"{sum(others.values()):,} of {len(trials):,} trials were left out: {said}"] if others else []
    rows, batch = np.asarray(rows)[kept], batch.filter(pa.array(kept))
    names = parameter_names(batch, "params_")
    column = layout.roles["value"]
    fields = {PARAMETERS: pa.array(names), column: batch.column(column)}
    roles = {"by": PARAMETERS, "value": column}
    if _has_steps(batch):
        fields["step"], roles["unit"] = batch.column("step"), "step"
        many = len(set(fields["step"].to_pylist()))
        read_as = f"trials of a search: {len(set(names)):,} parameter sets, each with {many} intermediate values, paired by step"
        remark = f"every trial's value is the mean of its {many} intermediate values, which are taken for observations"
        folds = f"; if they are folds, test_size=1/{many} allows for the training data that they share"
        remarks.append(remark + folds * (reading.test_size is None))
    else:
        if layout.error is None:
            _refuse_single(names, _numbers(column, batch, reading).read(batch.column(column), rows))
        read_as = (
            f"trials of a search: {len(names):,} trials of {len(set(names)):,} parameter sets, values in {column!r}"
        )
    long = replace(layout, kind="long", roles=roles, remarks=tuple(remarks), origin=layout, read_as=read_as)
    return long, (rows, pa.RecordBatch.from_pydict(fields, metadata=batch.schema.metadata))


def _has_steps(batch: pa.RecordBatch) -> bool:
    return STEPS in (batch.schema.metadata or {})


def _refuse_single(names: Sequence[str], values: np.ndarray) -> None:
    """Refuse parameter sets that were tried once, and say what the repeated ones tell about chance."""
    counts = Counter(names)
    single = sum(count == 1 for count in counts.values())
    if not single:
        return
    hint = "0.01"
    if single < len(counts) and not np.isnan(values).any():
        again = {name: values[[each == name for each in names]] for name, count in counts.items() if count > 1}
        within = sum(float(((each - each.mean()) ** 2).sum()) for each in again.values())
        freedom = sum(len(each) - 1 for each in again.values())
        hint = f"{(within / freedom) ** 0.5:.2g}, by those that were tried more often"
    raise DataError(
        f"{single:,} of {len(counts):,} parameter sets were tried once, which does not show how far chance moves a score: "
        f"give the standard error of one evaluation with se (--se {hint}), or try the best ones again"
    )


def _across(layout: Layout, rows: Rows, batch: pa.RecordBatch, reading: Reading) -> tuple[Layout, Numbered]:
    """A row an option and a column a unit: as long rows, and options of the same name averaged in a search."""
    rows, batch, halved = _last_iteration(rows, batch, reading) if layout.kind == "folds" else (rows, batch, [])
    numbers = {name: _numbers(name, batch, reading) for name in layout.options}
    table = np.column_stack([each.read(batch.column(name), rows) for name, each in numbers.items()])
    refuse_two_marks(numbers.values())
    rows, folds = np.asarray(rows), layout.kind == "folds"
    by, unit = layout.roles.get("by", PARAMETERS), "split" if folds else "column"
    remarks = [*layout.remarks, *halved, *(each.remark for each in numbers.values() if each.remark)]
    if folds:
        names: list[Any] = parameter_names(batch, "param_")
        first = list(dict.fromkeys(names))
        if len(first) < len(names):
            where = {name: np.array([each == name for each in names]) for name in first}
            table = np.stack([table[where[name]].mean(axis=0) for name in first])
            rows = np.array([rows[where[name]][0] for name in first])
            remarks.append(f"{len(names) - len(first):,} settings were repeated: their scores are averaged")
            names = first
    else:
        names = [None if name is None else str(name) for name in batch.column(by).to_pylist()]
    if reading.options:
        chosen = np.array([name is not None and name.strip() in reading.options for name in names], dtype=bool)
        table, rows, names = (
            table[chosen],
            rows[chosen],
            [name for name, kept in zip(names, chosen, strict=True) if kept],
        )
    scored = ~np.isnan(table).all(axis=1)
    if not scored.all():
        failed = f"{int((~scored).sum()):,} of {len(scored):,} {'settings' if folds else 'options'} have no score"
        if not reading.drop_missing:
            raise DataError(f"{failed}: leave them out with drop_missing (--drop-missing)")
        remarks.append(f"{failed} and were left out")
        table, rows, names = (
            table[scored],
            rows[scored],
            [name for name, kept in zip(names, scored, strict=True) if kept],
        )
    columns = list(layout.options)
    if (unnamed := np.array([not (name or "").strip() for name in names], dtype=bool)).any():
        missing = Missing(rows=int(unnamed.sum()), of=len(names), naming=by)
        missing.note(by, np.asarray(rows)[unnamed])
        if not reading.drop_missing:
            missing.refuse()
        remarks.append(missing.remark)
        table, rows, names = (
            table[~unnamed],
            np.asarray(rows)[~unnamed],
            [name for name in names if (name or "").strip()],
        )
    if (holes := np.isnan(table)).any():
        row, column = np.argwhere(holes)[0]
        lacking = int(holes.any(axis=0).sum())
        if not reading.drop_missing:
            raise DataError(
                f"row {rows[row]}: column {columns[column]!r} is empty, and {lacking:,} of {len(columns):,} columns lack the "
                "value of some option: fill it in, or leave such columns out with drop_missing (--drop-missing)"
            )
        if lacking == len(columns):
            raise DataError(f"every column lacks the value of some option, the first of them {columns[column]!r}")
        verb = "were" if lacking > 1 else "was"
        remarks.append(
            f"{lacking:,} of {len(columns):,} columns {verb} left out, since a value is missing there ({columns[column]!r})"
        )
        table, columns = (
            table[:, ~holes.any(axis=0)],
            [name for name, out in zip(columns, holes.any(axis=0), strict=True) if not out],
        )
    across = len(columns)
    units = [f"split {match[1]}" if (match := _SPLIT.fullmatch(name)) else name for name in columns]
    long = {
        by: pa.array(np.repeat(np.array(names, dtype=object), across), pa.string()),
        unit: pa.array(units * len(names), pa.string()),
        "value": pa.array(table.ravel(), from_pandas=True),
    }
    read_as = f"transposed: one row an option, named in {by!r}, and {across:,} columns, paired: {listed(columns)}"
    if folds:
        read_as = (
            f"cross-validation: {len(names):,} settings, paired by {across:,} splits, {layout.roles['value']!r} of each"
        )
    roles = {"by": by, "value": "value", "unit": unit}
    found = replace(
        layout, kind="long", roles=roles, options=(), remarks=tuple(remarks), origin=layout, read_as=read_as
    )
    return found, (np.repeat(rows, across), pa.RecordBatch.from_pydict(long))


def _last_iteration(rows: Rows, batch: pa.RecordBatch, reading: Reading) -> tuple[Rows, pa.RecordBatch, list[str]]:
    """Of a search by successive halving, the rows of its last iteration, whose fits were given most; and that in words."""
    if not set(HALVING) <= set(batch.schema.names):
        return rows, batch, []
    iteration, given = (_numbers(name, batch, reading).read(batch.column(name), rows) for name in HALVING)
    for name, values in zip(HALVING, (iteration, given), strict=True):
        if np.isnan(values).any():
            raise DataError(f"column {name!r} is empty in {int(np.isnan(values).sum()):,} of {len(values):,} rows")
    last = iteration == iteration.max()
    if last.all():
        return rows, batch, []
    if last.sum() == 1:
        before = iteration[~last].max()
        raise DataError(
            f"one setting is in the last iteration of the halving search, so there is nothing to compare: "
            f'--where "iter = {before:g}" compares those of the one before'
        )
    said = (
        f"of the {len(np.unique(iteration)):,} iterations of a halving search, the last is compared: {int(last.sum()):,} "
        f"settings, with {given[last].max():g} of the resources each"
    )
    return np.asarray(rows)[last], batch.filter(pa.array(last)), [said]


def _numbers(name: str, batch: pa.RecordBatch, reading: Reading) -> Numbers:
    return Numbers(name, reading.decimal, comma_means(batch.schema), has_semicolons(batch.schema))
