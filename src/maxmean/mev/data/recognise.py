"""What the columns of a table mean: long, wide, counts or summaries, as the user says or as names and types suggest."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

import pyarrow as pa

from ...errors import unknown
from ..errors import ArgumentError, DataError
from .aliases import alias, error_of, labels_rows, limits_of
from .columns import kind_of
from .layout import LAYOUTS, Columns, Layout, Reading, listed
from .limits import MOST_OPTIONS, TOO_MANY
from .notation import is_number
from .options import repeated
from .row_labels import RowLabels, left_out, row_labels

INDEX = b"maxmean.index"
"""Metadata key of a column that was the index of a DataFrame: it names the options if no other column does."""

_ROLES: dict[str, tuple[str, ...]] = {
    "long": ("by", "value", "unit"),
    "wide": ("by", "unit"),
    "counts": ("by", "successes", "trials", "rate"),
    "summaries": ("by", "mean", "se", "sd", "n", "lower", "upper"),
}
"""The roles that columns play in each layout; in a wide table ``by`` and ``unit`` tell the rows apart, and are left out."""


@dataclass(frozen=True)
class _Table:
    """The columns that are looked at, by kind; ``free`` ones play no role yet."""

    batch: pa.RecordBatch
    said: Mapping[str, str]
    kinds: dict[str, str] = field(default_factory=dict)
    index: str | None = None

    @classmethod
    def of(cls, batch: pa.RecordBatch, said: Mapping[str, str]) -> _Table:
        index = next((each.name for each in batch.schema if INDEX in (each.metadata or {})), None)
        # A column without a name is a saved index, or what follows a comma at the end of a line.
        names = [name for name in batch.schema.names if (name.strip() and name != index) or name in said.values()]
        kinds = {name: kind_of(batch.column(name), batch.schema.field(name)) for name in names}
        return cls(batch, said, kinds, None if index in said.values() else index)

    @property
    def names(self) -> list[str]:
        return list(self.kinds)

    def of_kind(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind in kinds and name not in self.said.values()]

    @property
    def numeric(self) -> list[str]:
        return self.of_kind("number")


def recognise(batch: pa.RecordBatch, columns: Columns, reading: Reading = Reading()) -> Layout:  # noqa: B008  (frozen)
    """The layout of a table, from what the user said, then from the columns' names, then from their types."""
    said = {f.name: name for f in fields(columns) if (name := getattr(columns, f.name)) is not None}
    said.pop("layout", None)
    covaries = said.pop("covariance", None) is not None
    _check_names(batch.schema.names, said)
    table = _Table.of(batch, said)
    kind = columns.layout
    if kind is None:
        kind = "summaries" if covaries else _kind(table, reading)
    _check_roles(kind, said)
    if covaries and kind != "summaries":
        raise ArgumentError(f"a covariance matrix belongs to means (--mean), not to the layout {kind!r}")
    if kind == "wide":
        return _wide(table, reading, columns.layout is not None)
    roles, level, remarks = _roles(kind, table, covaries)
    return Layout(
        kind,
        roles,
        covariance=columns.covariance,
        level=reading.limits_level or level or 0.95,
        remarks=remarks,
    )


def _check_roles(kind: str, said: Mapping[str, str]) -> None:
    if kind not in LAYOUTS:
        raise ArgumentError(unknown("unknown layout", kind, LAYOUTS))
    odd = next((role for role in said if role not in _ROLES[kind]), None)
    if odd is not None:
        raise ArgumentError(f"{odd} (--{odd}, column {said[odd]!r}) does not belong to the layout {kind!r}")


def _check_names(names: Sequence[str], said: Mapping[str, str]) -> None:
    if (twice := repeated(filter(str.strip, names))) is not None:
        raise DataError(f"column {twice!r} appears twice")
    taken: dict[str, str] = {}
    for role, name in said.items():
        check_column(name, names)
        if name in taken:
            raise DataError(f"column {name!r} cannot be both {taken[name]} and {role}")
        taken[name] = role


def check_column(name: str, names: Sequence[str]) -> None:
    """Refuse a name that no column has."""
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else f" (there are {listed(names)})"
        raise DataError(f"there is no column {name!r}{hint}")


def _kind(table: _Table, reading: Reading) -> str:
    said, numeric = table.said, table.numeric
    if {"successes", "trials", "rate"} & set(said):
        return "counts"
    if {"mean", "se", "sd", "lower", "upper"} & set(said):
        return "summaries"
    if "value" in said:
        return "long"
    if reading.options and set(reading.options) <= set(table.names):
        return "wide"
    if alias("successes", numeric) and alias("trials", numeric):
        return "counts"
    spread = alias("se", numeric) or alias("sd", numeric) or limits_of(numeric) or error_of(numeric)
    if spread and (alias("mean", numeric) or error_of(numeric) or alias("rate", numeric) or alias("value", numeric)):
        return "summaries"
    if alias("rate", numeric) and alias("trials", numeric):
        return "counts"
    return _of_observations(table)


def _of_observations(table: _Table) -> str:
    """Long or wide, where nothing but names and types of columns tells which."""
    if "by" in table.said:
        return "long"
    numbers = table.of_kind("number", "truth")
    by = alias("by", [name for name in table.names if name not in table.said.values()])
    text = table.of_kind("text")
    if by and alias("value", [name for name in numbers if name != by] + text):
        return "long"
    if by and len(table.of_kind("number", "truth", "text")) == 2 and set(numbers) - {by}:
        return "long"  # options may be numbered
    if by and len([name for name in numbers if name != by and not labels_rows(name)]) == 1:
        return "long"
    if _is_headless(table, text):
        raise DataError(f"the first line holds numbers ({listed(table.numeric)}) where column names are expected")
    if len(text) == 1 and len(numbers) == 1:
        return "long"
    truths = table.of_kind("truth")
    if not text and len(truths) == len(table.numeric) == 1:
        return "long"
    if not text and table.index and len(numbers) == 1:
        return "long"
    revealed = [name for name in numbers if len(name) > 1 and name == alias("value", [name])]
    if not text and len(numbers) > 1 and not revealed and not (truths and table.numeric):
        return "wide"
    raise DataError(_doubt(table, text, numbers, revealed))


def _doubt(table: _Table, text: Sequence[str], numbers: Sequence[str], revealed: Sequence[str]) -> str:
    """What to type, where the columns do not tell what they are."""
    what = f"cannot tell what the columns ({listed(table.names)}) are: "
    if not numbers:
        return what + "none of them holds numbers in most rows; name the columns (--by, --value)"
    value = revealed[0] if revealed else numbers[0]
    if len(numbers) == 1 and not text:
        return what + f"{numbers[0]!r} has values, but no column tells the options apart (--by)"
    if len(text) == 1:
        return (
            what
            + f"if {text[0]!r} names the options, say which column has the values (--by {_quoted(text[0])} --value "
            f"{_quoted(value)}); if it tells the rows apart and the others are the options, --unit {_quoted(text[0])}"
        )
    first = text[0] if text else next(name for name in numbers if name != value)
    wide = "" if text else ", or say that each column is an option (--layout wide)"
    return (
        what + f"name the options' column with by and the values' with value (such as --by {_quoted(first)} --value "
        f"{_quoted(value)}){wide}"
    )


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name else name


def _is_headless(table: _Table, text: Sequence[str]) -> bool:
    """Whether the first line holds numbers; options may well be called 2023 and 2024."""
    numeric = table.numeric
    years = not text and all(name.strip("-").isdigit() for name in numeric)
    return bool(numeric) and all(is_number(name) and any(map(str.isdigit, name)) for name in numeric) and not years


def _wide(table: _Table, reading: Reading, said: bool) -> Layout:
    roles = {"unit": table.said["unit"]} if "unit" in table.said else {}
    if reading.options:
        for name in reading.options:
            check_column(name, table.names)
        return Layout("wide", roles, reading.options)
    found = row_labels(table.batch, table.numeric)
    labels = dict.fromkeys(found.labels, "numbers the rows")
    labels |= dict.fromkeys(table.of_kind("date"), "dates the rows") | dict.fromkeys(table.of_kind("empty"), "is empty")
    options = tuple(name for name in table.names if name not in (*labels, *table.said.values()))
    if not said:
        _refuse_doubtful(found, options, labels)
    if len(options) > MOST_OPTIONS:
        raise DataError(TOO_MANY)
    text = table.of_kind("text")
    if text and len(text) < len(options):
        raise DataError(
            f"column {text[0]!r} holds text, not numbers: if it tells the rows apart, --unit {_quoted(text[0])} leaves it out"
        )
    return Layout("wide", roles, options, remarks=left_out(labels))


def _refuse_doubtful(found: RowLabels, options: Sequence[str], labels: Mapping[str, str]) -> None:
    if len(options) == 1 and labels:
        label = next(iter(labels))
        raise DataError(
            f"only column {options[0]!r} has values, since {label!r} {labels[label]}: name the column that tells the options "
            f"apart with by (--by), or every option with options (--options {_quoted(label)},{_quoted(options[0])})"
        )
    for name, why in (
        (found.doubtful, "has a different whole number in every row"),
        (found.repeating, "has the name of an id or a time"),
    ):
        if name is not None:
            raise DataError(
                f"column {name!r} {why}: leave it out if it tells the rows apart (--unit {_quoted(name)}), name it if its "
                f"numbers are the options (--by {_quoted(name)}), or say that each column is an option (--layout wide)"
            )


def _roles(kind: str, table: _Table, covaries: bool) -> tuple[dict[str, str], float | None, tuple[str, ...]]:
    """The column of every role that the layout needs: what the user has not said is guessed from names and types."""
    roles, level = dict(table.said), None
    if kind == "long":
        roles |= _long_roles(table, roles)
    elif kind == "counts":
        if "successes" not in roles and "rate" not in roles:
            role = "successes" if alias("successes", _free(table, roles)) else "rate"
            roles[role] = _guess(role if alias(role, _free(table, roles)) else "successes", table, roles)
        if "trials" not in roles:
            roles["trials"] = _guess("trials", table, roles)
    else:
        level = _summary_roles(table, roles, covaries)
    if "by" not in roles and (by := _guess_by(table, roles)) is not None:
        roles["by"] = by
    if "by" not in roles and kind == "long":
        raise DataError("no column tells the options apart: name it with by (--by)")
    return roles, level, ()


def _free(table: _Table, roles: Mapping[str, str]) -> list[str]:
    return [name for name in table.names if name not in roles.values()]


def _long_roles(table: _Table, said: Mapping[str, str]) -> dict[str, str]:
    roles = dict(said)
    by = _guess_by(table, roles) if "by" not in roles else None
    if by is None and "by" not in roles:
        truths = table.of_kind("truth")
        by = truths[0] if len(truths) == 1 and len(table.numeric) == 1 else table.index
    roles |= {"by": by} if by else {}  # first, so that numbered options are not mistaken for the values
    if "value" not in roles:
        free = _free(table, roles)
        candidates = [name for name in free if table.kinds[name] in ("number", "truth")]
        measured = [name for name in candidates if not labels_rows(name)]
        found = alias("value", free) or next((each[0] for each in (candidates, measured) if len(each) == 1), None)
        if found is None:
            raise DataError(
                f"no column is known to hold the value: name it with value (--value); there are {listed(table.names)}"
            )
        roles["value"] = found
    return roles


def _summary_roles(table: _Table, roles: dict[str, str], covaries: bool) -> float | None:
    """Fill in the roles of summaries; returns the level of the confidence limits, if their names tell it."""
    free = [name for name in table.numeric if name not in roles.values()]
    level = None
    pair = error_of(free)
    if "mean" not in roles:
        if not alias("mean", free) and pair and "se" not in roles:
            roles["mean"] = pair[0]
        else:
            roles["mean"] = (
                alias("mean", free) or alias("rate", free) or alias("value", free) or _guess("mean", table, roles)
            )
    free = [name for name in free if name not in roles.values()]
    limits = limits_of(free)
    if covaries:
        se = None if "sd" in roles else alias("se", free)
        roles |= {"se": se} if se and "se" not in roles else {}
    elif not ({"se", "lower", "upper"} & set(roles) or {"sd", "n"} <= set(roles)):
        own = pair[1] if pair and pair[0] == roles["mean"] else None
        se = None if {"sd", "n"} & set(roles) else alias("se", free) or own
        if se:
            roles["se"] = se
        elif limits and not alias("sd", free) and "sd" not in roles:
            roles["lower"], roles["upper"], level = limits
        else:
            roles |= {role: roles.get(role) or _guess(role, table, roles) for role in ("sd", "n")}
    for role in ("lower", "upper"):
        if {"lower", "upper"} & set(roles) and role not in roles:
            roles[role] = _guess(role, table, roles)
    if "n" in table.names and "n" not in (*roles, *roles.values()):
        roles["n"] = "n"
    return level


def _guess(role: str, table: _Table, roles: Mapping[str, str]) -> str:
    free = _free(table, roles)
    found = alias(role, free)
    if found is None:
        hint = ""
        if role == "sd" and "mean" in roles and alias("trials", free):
            n = alias("trials", free)
            hint = f", or give --se; if {roles['mean']!r} is a share of {n!r}, --rate {_quoted(roles['mean'])}"
        raise DataError(
            f"no column is known to hold the {role}: name it with {role} (--{role}){hint}; there are {listed(table.names)}"
        )
    return found


def _guess_by(table: _Table, roles: Mapping[str, str]) -> str | None:
    free = _free(table, roles)
    text = [name for name in free if table.kinds[name] == "text"]
    return alias("by", free) or (text[0] if len(text) == 1 else None if text else table.index)
