"""Python data in any usual shape -> named options: files, tables, groups, sequences, mappings, arrays, counts, summaries."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ..arrays import is_torch
from ..errors import ArgumentError, DataError
from ..settings import check_truth
from .confidence import standard_errors
from .counts import Counts
from .covariance import Covariances
from .delta import DELTA
from .folds import allow_for_overlap
from .frames import aligned, groups, is_frame, is_grouped, is_series, labels_of, ungrouped
from .layout import Columns, Reading
from .limits import MOST_VALUES
from .missing import whole_rows
from .options import Options, repeated
from .rates import successes_of
from .samples import Samples
from .search_objects import cross_validation_table, is_cross_validation, is_study, refuse_one_model, study_table
from .summaries import Summaries


def as_options(
    data: Any,
    columns: Mapping[str, Any],
    names: Sequence[str] | None,
    paired: bool | None,
    covariance: Any = None,
    reading: Reading = Reading(),  # noqa: B008  (frozen)
) -> Options:
    """Named options from ``data``, or, where that is None, from the arrays in ``columns``.

    With a table, ``columns`` holds column names by role (by, value, successes, ...); otherwise arrays. ``covariance`` is a
    matrix, that of the means.
    """
    matrix = None if covariance is None else Covariances.of(covariance)
    given = {role: value for role, value in columns.items() if value is not None}
    if paired is not None:
        check_truth("paired", paired)
    lower = None
    if is_study(data):
        data, lower = study_table(data, given.get("value"))
    elif is_cross_validation(data):
        data, share = cross_validation_table(data)
        reading = replace(reading, test_size=share if reading.test_size is None else reading.test_size)
    if isinstance(data, str | os.PathLike) or is_frame(data):
        from .collect import read_options

        chosen = replace(_column_names(given), covariance=matrix)
        most = MOST_VALUES if isinstance(data, str | os.PathLike) else math.inf  # a frame is in memory already
        options = read_options(_batches(data, reading), chosen, replace(reading, paired=paired), most=most)
        source = os.path.basename(os.fspath(data)) if isinstance(data, str | os.PathLike) else ""
        return replace(_named_and_paired(options, names, paired), source=source, lower_is_better=lower)
    if reading.where or reading.options or reading.decimal or reading.query or "layout" in given:
        raise ArgumentError("where, options, decimal, query and layout choose from a table: a file or a DataFrame")
    if data is None:
        return _named_and_paired(Options(*_from_arrays(given, matrix, names, reading)), names, paired)
    if matrix is not None:
        raise ArgumentError("covariance goes with means (mean=...); that of observations is computed from them")
    remark = ungrouped(data) if is_grouped(data) else ""
    if is_grouped(data):
        found, values = groups(data, given.pop("value", None))
        data = dict(zip(found, values, strict=True))
        if len(data) < len(values):
            raise DataError(f"option {repeated(found)!r} appears twice")
    if given:
        raise ArgumentError(f"{', '.join(given)} can only be given with a table, or without data")
    options = _without_missing(_named_and_paired(_from_samples(data), names, paired), reading.drop_missing)
    options = replace(options, remarks=(*filter(None, [remark]), *options.remarks))
    return options if reading.test_size is None else allow_for_overlap(options, reading.test_size)


def _batches(data: Any, reading: Reading) -> Iterable[Any]:
    if isinstance(data, str | os.PathLike):
        from .files import stream_table

        return stream_table(os.fspath(data), sheet=reading.sheet, query=reading.query)
    if reading.query is not None:
        raise ArgumentError("query is for the path of a database file; run it yourself and give what it finds")
    from .tables import as_table

    return as_table(data).to_batches()


def _without_missing(options: Options, drop: bool) -> Options:
    """The options without values that are missing, or without rows if they are paired; refuses them if not told to."""
    samples = options.data
    assert isinstance(samples, Samples)
    for name, values in zip(options.names, samples.values, strict=True):
        endless = np.flatnonzero(np.isinf(values))
        if endless.size:
            raise DataError(f"option {name!r}: value {endless[0] + 1} is {values[endless[0]]}, not a finite number")
        missing = np.flatnonzero(np.isnan(values))
        if missing.size and not drop:
            more = f" and {missing.size - 1:,} more are" if missing.size > 1 else " is"
            raise DataError(
                f"option {name!r}: value {missing[0] + 1}{more} missing ({values[missing[0]]}): drop_missing=True leaves such out"
            )
    lacking = sum(int(np.isnan(values).sum()) for values in samples.values)
    if not lacking:
        return options
    if samples.paired:
        whole = whole_rows(samples.values)
        count = int((~whole).sum())
        verb = "were" if count > 1 else "was"
        remark = f"{count:,} of {len(whole):,} rows {verb} left out, since a value is missing there"
        kept = tuple(values[whole] for values in samples.values)
    else:
        remark = f"{lacking:,} missing {'values were' if lacking > 1 else 'value was'} left out"
        kept = tuple(values[~np.isnan(values)] for values in samples.values)
    return replace(options, data=replace(samples, values=kept), remarks=(*options.remarks, remark))


def _named_and_paired(options: Options, names: Sequence[str] | None, paired: bool | None) -> Options:
    """The options with the names and the pairing that the caller asks for."""
    if paired is not None:
        options = replace(options, data=_paired(options.data, paired), pairable=paired)
    if names is None:
        return options
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ArgumentError(f"names must be a list of strings, not {names!r}")
    given_names = tuple(str(name) for name in names)
    if len(given_names) != len(options.names):
        raise ArgumentError(f"there are {len(options.names)} options, but {len(given_names)} names")
    return replace(options, names=given_names)


def _paired(data: Samples | Counts | Summaries, paired: bool) -> Samples | Counts | Summaries:
    if not isinstance(data, Samples):
        if paired:
            raise ArgumentError("only observations can be paired, not counts or summaries")
        return data
    if paired and len(set(data.n)) > 1:
        raise DataError("paired samples must have the same number of observations for every option")
    return replace(data, paired=paired)


def _column_names(given: dict[str, Any]) -> Columns:
    for role, name in given.items():
        if not isinstance(name, str) and not (role == "se" and isinstance(name, int | float)):
            raise ArgumentError(f"{role} names a column of the table, so it must be a string, not {name!r}")
    return Columns(**{f.name: given.get(f.name) for f in fields(Columns)})


def _from_arrays(
    given: dict[str, Any], matrix: Covariances | None, called: Sequence[str] | None, reading: Reading
) -> tuple[tuple[str, ...], Counts | Summaries, str]:
    if not given:
        raise DataError("no data: give samples, a DataFrame, successes and trials, or mean with se (or sd and n)")
    unknown = set(given) & {"by", "value", "unit", "numerator", *DELTA}
    if unknown:
        raise ArgumentError(f"{', '.join(sorted(unknown))} needs a table, a file or a DataFrame")
    given = aligned({role: _labelled(role, values) for role, values in given.items()})
    names = next((list(map(str, v)) for v in given.values() if isinstance(v, Mapping)), None)
    size = max(np.size(list(v.values()) if isinstance(v, Mapping) else v) for v in given.values())
    if names is None and matrix is not None:
        size = max(size, len(matrix.values))
        same = called is not None and not isinstance(called, str) and len(tuple(called)) == size
        names = [str(name) for name in called] if called is not None and same else list(matrix.names or ())
    names = names or default_names(size)
    if not names:
        raise DataError("there are no options")
    arrays = {role: _column(role, values, names) for role, values in given.items()}
    if matrix is not None and "mean" not in given:
        raise ArgumentError("covariance goes with means: give mean, one number per option")
    if {"successes", "trials", "rate"} & set(given):
        if set(given) == {"rate", "trials"}:
            arrays["successes"], _ = successes_of(arrays["rate"], arrays["trials"], "rate", range(1, len(names) + 1))
        elif set(given) != {"successes", "trials"}:
            raise DataError("counts need successes (or a rate) and trials, and nothing else")
        _check_counts(names, arrays["successes"], arrays["trials"])
        won, tried = (arrays[role].astype(np.int64) for role in ("successes", "trials"))
        return tuple(names), Counts(won, tried), "counts"
    if "mean" not in arrays:
        raise DataError("summaries need the mean of every option")
    for role in set(arrays) - {"mean", "lower", "upper"}:
        negative = np.flatnonzero(arrays[role] < 0)
        if negative.size:
            raise DataError(f"option {names[negative[0]]!r}: {role} is negative ({arrays[role][negative[0]]:g})")
    among = None if matrix is None else matrix.among(names)
    se = arrays.get("se")
    if {"lower", "upper"} & set(arrays):
        if se is not None or not {"lower", "upper"} <= set(arrays):
            raise DataError("confidence limits are lower and upper, and stand in the place of se")
        se = standard_errors(arrays["mean"], arrays["lower"], arrays["upper"], reading.limits_level or 0.95, names)
    found = Summaries.of(arrays["mean"], se, arrays.get("sd"), arrays.get("n"), names, among)
    return tuple(names), found, "summaries"


def _labelled(role: str, values: Any) -> Any:
    """A pandas Series whose index has labels as a mapping; anything else as it is."""
    labels = labels_of(values) if is_series(values) else None
    if labels is None:
        return values
    if (twice := repeated(labels)) is not None:
        raise DataError(f"option {twice!r} appears twice in {role}")
    return dict(zip(labels, values, strict=True))


def _column(role: str, values: Any, names: list[str]) -> np.ndarray:
    if isinstance(values, Mapping):
        lookup = {str(key): value for key, value in values.items()}
        missing = next((name for name in names if name not in lookup), None)
        if missing is not None:
            raise DataError(f"option {missing!r} has no {role}")
        extra = next((name for name in lookup if name not in names), None)
        if extra is not None:
            raise DataError(f"option {extra!r} appears only in {role}")
        values = [lookup[name] for name in names]
    array = _numbers(values, role)
    if array.ndim > 1 or array.size not in (1, len(names)):
        raise DataError(f"{role} has {array.size} values for {len(names)} options")
    array = np.broadcast_to(array, (len(names),))
    wrong = np.flatnonzero(~np.isfinite(array))
    if wrong.size:
        raise DataError(f"option {names[wrong[0]]!r}: {role} is {array[wrong[0]]}, not a finite number")
    return array


def _check_counts(names: list[str], successes: np.ndarray, trials: np.ndarray) -> None:
    for name, won, tried in zip(names, successes, trials, strict=True):
        if won != int(won) or tried != int(tried) or won < 0 or won > tried or tried > 2**53:
            raise DataError(f"option {name!r}: {won:g} successes out of {tried:g} trials")


def _from_samples(data: Any) -> Options:
    if isinstance(data, Mapping):
        refuse_one_model(data)
        names, samples = [str(key) for key in data], list(data.values())
    elif hasattr(data, "ndim") or hasattr(data, "__array__"):
        table = _numbers(data, "the data")
        if table.ndim != 2:
            raise DataError(f"an array needs two axes, observations and options, not {table.ndim}")
        taken_for = f"array: {table.shape[0]} observations of {table.shape[1]} options"
        return Options(tuple(default_names(table.shape[1])), Samples.of(table), taken_for, pairable=True)
    elif isinstance(data, Iterable) and not isinstance(data, (str, bytes)):
        samples = list(data)
        names = default_names(len(samples))
    else:
        raise DataError(
            f"samples are a list or mapping of arrays, a 2-D array, a table or the path of one, not {type(data).__name__}"
        )
    if not samples:
        raise DataError("there are no options")
    arrays = [_numbers(values, f"option {name!r}") for name, values in zip(names, samples, strict=True)]
    for name, array in zip(names, arrays, strict=True):
        if array.ndim != 1:
            raise DataError(f"option {name!r} needs a list of values, not an array with {array.ndim} axes")
    return Options(tuple(names), Samples(tuple(arrays)), f"samples of {len(names)} options", pairable=True)


def default_names(options: int) -> list[str]:
    return [f"option {k + 1}" for k in range(options)]


def _numbers(values: Any, what: str) -> np.ndarray:
    if is_torch(values):
        values = values.detach().cpu().numpy()
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)  # what is masked must not count
    dtype = getattr(values, "dtype", None)
    if getattr(dtype, "kind", None) in ("c", "m", "M"):  # NumPy would make real numbers of them
        raise DataError(f"{what} holds values of type {dtype}, not real numbers")
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        for k, value in enumerate(values if isinstance(values, Iterable) else ()):
            try:
                float(value)
            except (TypeError, ValueError):
                raise DataError(f"{what}: value {k + 1} is {value!r}, not a number") from None
        raise DataError(f"{what} cannot be read as numbers") from None
