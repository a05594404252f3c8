"""What the columns of a table mean: long, wide, counts or summaries, as the user says or as names and types suggest."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from ...errors import unknown
from ..errors import ArgumentError, DataError
from .columns import COMMA, is_number, is_text, looks_numeric
from .covariance import Covariances
from .limits import MOST_OPTIONS, TOO_MANY
from .options import repeated

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
"""Column names that reveal a role, in lower case."""

_ROLES: dict[str, tuple[str, ...]] = {
    "long": ("by", "value"),
    "wide": ("by",),
    "counts": ("by", "successes", "trials"),
    "summaries": ("by", "mean", "se", "sd", "n"),
}
"""The roles that columns play in each layout; in a wide table ``by`` numbers the rows, and is left out."""

_NEEDED: dict[str, tuple[str, ...]] = {"long": ("value",), "counts": ("successes", "trials"), "summaries": ("mean",)}
"""The roles that each layout requires."""


@dataclass(frozen=True)
class Columns:
    """Which column plays which role, as far as the user has said."""

    by: str | None = None
    value: str | None = None
    successes: str | None = None
    trials: str | None = None
    mean: str | None = None
    se: str | None = None
    sd: str | None = None
    n: str | None = None
    layout: str | None = None
    covariance: Any = None
    """Of the means, :class:`Covariances`, if given beside the table, which then has means and needs no standard errors."""


@dataclass(frozen=True)
class Layout:
    """The layout that a table was read as."""

    kind: str
    roles: dict[str, str]
    """Column by role; for a wide table only the options' columns matter."""
    options: tuple[str, ...] = ()
    """Columns that are options, in a wide table."""
    covariance: Covariances | None = None
    """Of the means, with summaries."""

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
                if self.covariance is not None:
                    return f"summaries: {by}, means in {names['mean']}, with a covariance matrix"
                spread = names["se"] if "se" in names else f"{names['sd']} / sqrt({names['n']})"
                return f"summaries: {by}, means in {names['mean']}, standard errors {spread}"


def recognise(batch: pa.RecordBatch, columns: Columns) -> Layout:
    """The layout of a table, from what the user said, then from the columns' names, then from their types."""
    said = {f.name: name for f in fields(columns) if (name := getattr(columns, f.name)) is not None}
    said.pop("layout", None)
    covaries = said.pop("covariance", None) is not None
    _check_names(batch.schema.names, said)
    # A column without a name is a saved index, or what follows a comma at the end of a line.
    names = [name for name in batch.schema.names if name.strip() or name in said.values()]
    numeric = [name for name in names if looks_numeric(batch.column(name))]
    try:
        kind = ("summaries" if covaries else _kind(names, numeric, said)) if columns.layout is None else columns.layout
    except DataError:
        _refuse_decimal_commas(batch, names)
        raise
    _check_roles(kind, said)
    if covaries and kind != "summaries":
        raise ArgumentError(f"a covariance matrix belongs to means (--mean), not to the layout {kind!r}")
    if kind != "wide":
        return Layout(kind, _roles(kind, names, numeric, said, covaries), covariance=columns.covariance)
    options = tuple(name for name in names if name != columns.by)
    if len(options) > MOST_OPTIONS:
        raise DataError(TOO_MANY)
    return Layout("wide", {}, options)


def _roles(
    kind: str, names: Sequence[str], numeric: Sequence[str], said: Mapping[str, str], covaries: bool
) -> dict[str, str]:
    """The column of every role that the layout needs: what the user has not said is guessed from names and types."""
    roles = dict(said)
    if kind == "long" and "by" not in roles and (by := _guess_by(names, numeric, set(roles.values()))):
        roles["by"] = by  # first, so that numbered options are not mistaken for the values
    for role in _NEEDED[kind]:
        if role not in roles:
            roles[role] = _guess(role, names, numeric, roles)
    if covaries:
        se = None if "sd" in roles else _alias("se", [name for name in numeric if name not in roles.values()])
        roles |= {"se": se} if se and "se" not in roles else {}
    elif kind == "summaries" and "se" not in roles and not {"sd", "n"} <= set(roles):
        se = None if {"sd", "n"} & set(roles) else _alias("se", names)
        roles |= {"se": se} if se else {r: roles.get(r) or _guess(r, names, numeric, roles) for r in ("sd", "n")}
    if kind == "summaries" and "n" in names and "n" not in (*roles, *roles.values()):
        roles["n"] = "n"
    if "by" not in roles:
        by = _guess_by(names, numeric, set(roles.values()))
        if by is None and kind == "long":
            raise DataError("no column tells the options apart: name it with by (--by)")
        roles |= {"by": by} if by else {}
    return roles


def _refuse_decimal_commas(batch: pa.RecordBatch, names: Sequence[str]) -> None:
    for name in names:
        texts = batch.column(name).drop_null() if is_text(batch.schema.field(name).type) else []
        first = texts[0].as_py().strip() if len(texts) else ""
        if COMMA.fullmatch(first):
            raise DataError(f"column {name!r} holds {first!r}: decimals are written with a point") from None


def _check_roles(kind: str, said: Mapping[str, str]) -> None:
    if kind not in LAYOUTS:
        raise ArgumentError(unknown("unknown layout", kind, LAYOUTS))
    odd = next((role for role in said if role not in _ROLES[kind]), None)
    if odd is not None:
        raise ArgumentError(f"{odd} (--{odd}, column {said[odd]!r}) does not belong to the layout {kind!r}")


def _check_names(names: Sequence[str], said: Mapping[str, str]) -> None:
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


def _kind(names: Sequence[str], numeric: Sequence[str], said: Mapping[str, str]) -> str:
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
        raise DataError(f"the first line holds numbers ({_listed(numeric)}) where column names are expected")
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
