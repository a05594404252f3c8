"""From the columns of a table to data about options: long, wide, counts or summaries, named or recognised.

Tables arrive as a stream of Arrow record batches, from a file of any size or from a DataFrame. Only numbers are kept.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain

import numpy as np
import pyarrow as pa

from .columns import (
    COMMA,
    MOST_COUNTED,
    blank_to_null,
    coded,
    counted,
    decoded,
    is_number,
    is_text,
    looks_numeric,
    numbers,
    refuse_nested,
)
from .columns import whole_numbers as whole
from .data import Counts, DataError, Samples, Summaries, repeated, unit_for
from .limits import MOST_OPTIONS, MOST_VALUES, TOO_LARGE, TOO_MANY

LAYOUTS = ("long", "wide", "counts", "summaries")

_ALIASES: dict[str, tuple[str, ...]] = {
    "by": ("option", "options", "variant", "arm", "group", "ad", "action", "treatment", "name", "version", "label"),
    "value": ("value", "values", "y", "reward", "outcome", "score", "result", "return", "response", "metric"),
    "successes": ("successes", "success", "clicks", "conversions", "converted", "wins", "hits", "orders"),
    "trials": ("trials", "impressions", "views", "visitors", "visits", "customers", "users", "shown", "total", "n"),
    "mean": ("mean", "average", "avg", "estimate"),
    "se": ("se", "stderr", "std_error", "standard_error", "sem"),
    "sd": ("sd", "std", "stdev", "std_dev", "standard_deviation"),
    "n": ("n", "count", "size", "observations", "trials"),
}
"""Column names that give a role away, in lower case."""

_ROLES: dict[str, tuple[str, ...]] = {
    "long": ("by", "value"),
    "wide": ("by",),
    "counts": ("by", "successes", "trials"),
    "summaries": ("by", "mean", "se", "sd", "n"),
}
"""The roles that columns play in each layout; in a wide table ``by`` numbers the rows, and is left out."""


@dataclass(frozen=True)
class Columns:
    """Which column plays which role, as far as the user says so."""

    by: str | None = None
    value: str | None = None
    successes: str | None = None
    trials: str | None = None
    mean: str | None = None
    se: str | None = None
    sd: str | None = None
    n: str | None = None
    layout: str | None = None


@dataclass(frozen=True)
class Layout:
    """What a table was taken for."""

    kind: str
    roles: dict[str, str]
    """Column by role; for a wide table only the options' columns matter."""
    options: tuple[str, ...] = ()
    """Columns that are options, in a wide table."""

    def __str__(self) -> str:
        names = {role: repr(name) for role, name in self.roles.items()}
        by = f"options in {names['by']}" if "by" in names else "one option a row"
        match self.kind:
            case "long":
                return f"long: one observation a row, {by}, values in {names['value']}"
            case "wide":
                return f"wide: {len(self.options)} columns, one an option: {_listed(self.options)}"
            case "counts":
                return f"counts: {by}, {names['successes']} successes out of {names['trials']} trials"
            case _:
                spread = names["se"] if "se" in names else f"{names['sd']} / sqrt({names['n']})"
                return f"summaries: {by}, means in {names['mean']}, standard errors {spread}"


@dataclass(frozen=True)
class Options:
    """Named options and their data."""

    names: tuple[str, ...]
    data: Samples | Counts | Summaries
    taken_for: str = ""
    """What the input was taken for, in words."""
    pairable: bool = False
    """Whether observations line up, so that somebody who asks for ``te*`` may mean them as pairs."""

    def unpaired(self) -> Options:
        """The same options, their rows not belonging together."""
        data = replace(self.data, paired=False) if isinstance(self.data, Samples) else self.data
        return replace(self, data=data, pairable=False)


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


def recognise(batch: pa.RecordBatch, columns: Columns) -> Layout:
    """The layout of a table, from what the user said, then from telling names, then from the columns' types."""
    said = {f.name: name for f in fields(columns) if (name := getattr(columns, f.name)) is not None}
    said.pop("layout", None)
    _check_names(batch.schema.names, said)
    # A column without a name is an index that somebody wrote along, or what follows a comma at the end of a line.
    names = [name for name in batch.schema.names if name.strip() or name in said.values()]
    numeric = [name for name in names if looks_numeric(batch.column(name))]
    try:
        kind = _kind(names, numeric, said) if columns.layout is None else columns.layout
    except DataError:
        for name in names:
            texts = batch.column(name).drop_null() if is_text(batch.schema.field(name).type) else []
            first = texts[0].as_py().strip() if len(texts) else ""
            if COMMA.fullmatch(first):
                raise DataError(f"column {name!r} holds {first!r}: decimals are written with a point") from None
        raise
    if kind not in LAYOUTS:
        near = difflib.get_close_matches(kind, LAYOUTS, n=1, cutoff=0.3)
        hint = f"; did you mean {near[0]!r}?" if near else f" (there are {', '.join(LAYOUTS)})"
        raise DataError(f"unknown layout {kind!r}{hint}")
    odd = next((role for role in said if role not in _ROLES[kind]), None)
    if odd is not None:
        raise DataError(f"{odd} (--{odd}, column {said[odd]!r}) has no place in the layout {kind!r}")
    if kind == "wide":
        options = tuple(name for name in names if name != columns.by)
        if len(options) > MOST_OPTIONS:
            raise DataError(TOO_MANY)
        return Layout("wide", {}, options)
    needed = {"long": ("value",), "counts": ("successes", "trials"), "summaries": ("mean",)}[kind]
    roles = dict(said)
    if kind == "long" and "by" not in roles and (by := _guess_by(names, numeric, set(roles.values()))):
        roles["by"] = by  # first, lest numbered options be taken for the values
    for role in needed:
        if role not in roles:
            roles[role] = _guess(role, names, numeric, roles)
    if kind == "summaries" and "se" not in roles and not {"sd", "n"} <= set(roles):
        se = None if {"sd", "n"} & set(roles) else _alias("se", names)
        roles |= {"se": se} if se else {r: roles.get(r) or _guess(r, names, numeric, roles) for r in ("sd", "n")}
    if kind == "summaries" and "n" in names and "n" not in (*roles, *roles.values()):
        roles["n"] = "n"
    if "by" not in roles:
        by = _guess_by(names, numeric, set(roles.values()))
        if by is None and kind == "long":
            raise DataError("no column tells the options apart: name it with by (--by)")
        roles |= {"by": by} if by else {}
    return Layout(kind, roles)


def _check_names(names: Sequence[str], said: dict[str, str]) -> None:
    if (twice := repeated(names)) is not None:
        raise DataError(f"column {twice!r} appears twice")
    taken: dict[str, str] = {}
    for role, name in said.items():
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else f" (there are {_listed(names)})"
            raise DataError(f"there is no column {name!r}{hint}")
        if name in taken:
            raise DataError(f"column {name!r} cannot be both {taken[name]} and {role}")
        taken[name] = role


def _kind(names: Sequence[str], numeric: Sequence[str], said: dict[str, str]) -> str:
    if {"successes", "trials"} & set(said):
        return "counts"
    if {"mean", "se", "sd"} & set(said):
        return "summaries"
    if {"by", "value"} & set(said):
        return "long"
    if _alias("successes", numeric) and _alias("trials", numeric):
        return "counts"
    if _alias("mean", numeric) and (_alias("se", numeric) or _alias("sd", numeric)):
        return "summaries"
    if _alias("by", names) and _alias("value", names):
        return "long"
    if _alias("by", names) and len(names) == 2 and len(set(numeric) - {_alias("by", names)}) == 1:
        return "long"  # options may be numbered
    text = [name for name in names if name not in numeric]
    years = not text and all(name.strip("-").isdigit() for name in numeric)  # options may well be called 2023 and 2024
    if numeric and all(is_number(name) and any(map(str.isdigit, name)) for name in numeric) and not years:
        raise DataError(f"the first line holds numbers ({_listed(numeric)}) where the names of the columns belong")
    if len(text) == 1 and len(numeric) == 1:
        return "long"
    if not text and numeric:
        return "wide"
    raise DataError(
        f"cannot tell what the columns ({_listed(names)}) are: name the options' column with by (--by) and the values' "
        "with value (--value), or set the layout (--layout)"
    )


def _alias(role: str, names: Sequence[str]) -> str | None:
    lower = {name.strip().lower(): name for name in names}
    return next((lower[alias] for alias in _ALIASES[role] if alias in lower), None)


def _guess(role: str, names: Sequence[str], numeric: Sequence[str], roles: dict[str, str]) -> str:
    free = [name for name in names if name not in roles.values()]
    candidates = [name for name in numeric if name in free]
    found = _alias(role, free) or (candidates[0] if role == "value" and len(candidates) == 1 else None)
    if found is None:
        raise DataError(
            f"no column is known to hold the {role}: name it with {role} (--{role}); there are {_listed(names)}"
        )
    return found


def _guess_by(names: Sequence[str], numeric: Sequence[str], taken: set[str]) -> str | None:
    free = [name for name in names if name not in taken]
    text = [name for name in free if name not in numeric]
    return _alias("by", free) or (text[0] if len(text) == 1 else None)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "")


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
        successes.append(whole(batch, layout.roles["successes"], row))
        trials.append(whole(batch, layout.roles["trials"], row))
        wrong = np.flatnonzero(successes[-1] > trials[-1])
        if wrong.size:
            k = wrong[0]
            raise DataError(f"row {row + k}: {successes[-1][k]:g} successes out of {trials[-1][k]:g} trials")
    code = np.concatenate(codes)
    won, tried = (np.bincount(code, np.concatenate(column), len(number)) for column in (successes, trials))
    if tried.max() > MOST_COUNTED:
        name = list(number)[tried.argmax()]
        raise DataError(f"option {name!r}: its trials add up to {tried.max():g}, too many to be counted")
    return list(number), Counts(won.astype(np.int64), tried.astype(np.int64))


def _summaries(layout: Layout, batches: Iterable[pa.RecordBatch]) -> tuple[list[str], Summaries]:
    number: dict[str, int] = {}
    codes = []
    columns: dict[str, list[np.ndarray]] = {role: [] for role in layout.roles if role != "by"}
    for row, batch in _numbered(batches):
        codes.append(_option_codes(layout, batch, row, number))
        for role, pieces in columns.items():
            name = layout.roles[role]
            pieces.append(whole(batch, name, row) if role == "n" else numbers(batch.column(name), name, row))
            negative = np.flatnonzero(pieces[-1] < 0) if role != "mean" else np.array([])
            if negative.size:
                raise DataError(f"row {row + negative[0]}: column {name!r} is negative ({pieces[-1][negative[0]]:g})")
    _check_unique(np.concatenate(codes), list(number))
    joined = {role: np.concatenate(pieces) for role, pieces in columns.items()}
    return list(number), summaries(joined["mean"], joined.get("se"), joined.get("sd"), joined.get("n"), list(number))


_COLLECT: dict[str, Callable[[Layout, Iterable[pa.RecordBatch]], tuple[list[str], Samples | Counts | Summaries]]] = {
    "long": _long,
    "wide": _wide,
    "counts": _counts,
    "summaries": _summaries,
}


def summaries(
    mean: np.ndarray, se: np.ndarray | None, sd: np.ndarray | None, n: np.ndarray | None, names: Sequence[str]
) -> Summaries:
    """Summaries from means and standard errors, or standard deviations and numbers of observations."""
    broken = np.flatnonzero(n != np.rint(n)) if n is not None else np.array([])
    if n is not None and broken.size:
        raise DataError(f"option {names[broken[0]]!r}: n must be a whole number, not {n[broken[0]]:g}")
    if se is None:
        if sd is None or n is None:
            raise DataError("summaries need the mean and its standard error se, or the standard deviation sd and n")
        few = np.flatnonzero(n < 2)
        if few.size:
            raise DataError(f"option {names[few[0]]!r} has fewer than two values")
        se = sd / np.sqrt(n)
    unit = unit_for(mean, se)
    return Summaries(mean / unit, (se / unit) ** 2, None if n is None else tuple(int(k) for k in n), unit=unit)


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
