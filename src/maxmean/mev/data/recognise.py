"""What the columns of a table mean: long, wide, counts or summaries, as the user says or as names and types suggest."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import pyarrow as pa

from ...errors import unknown
from ..errors import ArgumentError, DataError
from .aliases import alias, error_of, labels_rows, limits_of
from .delta import DELTA
from .first_look import FirstLook, check_column, check_names
from .layout import LAYOUTS, Columns, Layout, Reading, listed, quoted
from .limits import MOST_OPTIONS, TOO_MANY
from .notation import is_number
from .roles import roles_of
from .row_labels import RowLabels, left_out, row_labels
from .searches import search_of
from .transposed import is_transposed, transposed

_ROLES: dict[str, tuple[str, ...]] = {
    "long": ("by", "value", "unit", *DELTA),
    "wide": ("by", "unit"),
    "counts": ("by", "successes", "trials", "rate"),
    "summaries": ("by", "mean", "se", "sd", "n", "lower", "upper"),
    "transposed": ("by",),
    "trials": ("value",),
    "folds": ("value",),
}
"""The roles that columns play in each layout; in a wide table ``by`` and ``unit`` tell the rows apart, and are left out."""


def recognise(batch: pa.RecordBatch, columns: Columns, reading: Reading = Reading()) -> Layout:  # noqa: B008  (frozen)
    """The layout of a table, from what the user said, then from the columns' names, then from their types."""
    said = {f.name: name for f in fields(columns) if (name := getattr(columns, f.name)) is not None}
    said.pop("layout", None)
    covaries = said.pop("covariance", None) is not None
    error = _known_error(columns.se, batch.schema.names)
    if error is not None:
        del said["se"]
    if (search := search_of(batch.schema.names, columns)) is not None:
        _check_roles(search.kind, said)
        return replace(search, error=error)
    check_names(batch.schema.names, said)
    _take_ratio(said)
    table = FirstLook.of(batch, said)
    kind = columns.layout
    if kind is not None and kind not in LAYOUTS:
        raise ArgumentError(unknown("unknown layout", kind, LAYOUTS))
    if kind is None:
        kind = "summaries" if covaries or error is not None else _kind(table, reading)
    _check_roles(kind, said)
    if covaries and kind != "summaries":
        raise ArgumentError(f"a covariance matrix belongs to means (--mean), not to the layout {kind!r}")
    if error is not None and kind != "summaries":
        raise ArgumentError(
            f"a standard error of every row (--se) belongs to summaries and searches, not to the layout {kind!r}"
        )
    if kind == "wide":
        return _wide(table, reading, columns.layout is not None)
    if kind == "transposed":
        return transposed(table, reading)
    roles, level, remarks = roles_of(kind, table, covaries or error is not None)
    if error is not None:
        roles.pop("se", None)
    if "lower" in roles and reading.limits_level is None and level is None:
        remarks = (*remarks, "the confidence limits are taken for those of level 0.95; --limits-level says another one")
    return Layout(
        kind,
        roles,
        covariance=columns.covariance,
        level=reading.limits_level or level or 0.95,
        remarks=remarks,
        error=error,
    )


def _known_error(se: str | float | None, names: Sequence[str]) -> float | None:
    """A standard error that was given as a number, not as the name of a column."""
    if se is None or se in names:
        return None
    try:
        error = float(se)
    except ValueError:
        return None
    if not 0 < error < math.inf:
        raise ArgumentError(f"a standard error must be a positive number, not {se}")
    return error


def _take_ratio(said: dict[str, str]) -> None:
    """A numerator is a value whose sum is divided by that of the denominator."""
    for there, missing in (("numerator", "denominator"), ("denominator", "numerator")):
        if there in said and missing not in said:
            raise ArgumentError(f"a ratio needs a {missing} (--{missing}) beside the {there}")
    if {"numerator", "value"} <= set(said):
        raise ArgumentError("value (--value) and numerator (--numerator) are the same thing: give one")
    if {"unit", "cluster"} <= set(said):
        raise ArgumentError(
            "unit (--unit) pairs rows of which a unit has one for each option, cluster (--cluster) is for any number: give one"
        )
    if "numerator" in said:
        said["value"] = said.pop("numerator")


def _check_roles(kind: str, said: Mapping[str, str]) -> None:
    odd = next((role for role in said if role not in _ROLES[kind]), None)
    if odd is not None:
        raise ArgumentError(f"{odd} (--{odd}, column {said[odd]!r}) does not belong to the layout {kind!r}")


def _kind(table: FirstLook, reading: Reading) -> str:
    said, numeric = table.said, table.numeric
    if {"successes", "trials", "rate"} & set(said):
        return "counts"
    if {"mean", "se", "sd", "lower", "upper"} & set(said):
        return "summaries"
    if "value" in said or set(DELTA) & set(said):
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
    if is_transposed(table):
        return "transposed"
    return _of_observations(table)


def _of_observations(table: FirstLook) -> str:
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
    measured = [name for name in numbers if name != by and not labels_rows(name)]
    if (by or len(text) == 1) and len(measured) == 1 and not _is_headless(table, text):
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
        _refuse_half_a_header(numbers)
        return "wide"
    raise DataError(_doubt(table, text, numbers, revealed))


def _refuse_half_a_header(names: Sequence[str]) -> None:
    """Refuse a first line with numbers beside words, such as how many rows and columns follow."""
    odd = [name for name in names if is_number(name)]
    if odd and len(odd) < len(names):
        words = [name for name in names if name not in odd]
        raise DataError(
            f"the first line holds numbers ({listed(odd)}) beside names ({listed(words)}): if all of them name columns that are "
            "options, --layout wide"
        )


def _doubt(table: FirstLook, text: Sequence[str], numbers: Sequence[str], revealed: Sequence[str]) -> str:
    """What to type, where the columns do not tell what they are."""
    what = f"cannot tell what the columns ({listed(table.names)}) are: "
    if len(table.names) == 1 and len(table.names[0].split()) > 1:
        return (
            what + "there is one column, and blanks do not separate any: put commas, semicolons or tabs in their place"
        )
    if not numbers:
        return what + "none of them holds numbers in most rows; name the columns (--by, --value)"
    value = revealed[0] if revealed else _likely_value(table, numbers)
    if len(numbers) == 1 and not text:
        return what + f"{numbers[0]!r} has values, but no column tells the options apart (--by)"
    if len(text) == 1 and table.distinct(text[0]) == table.batch.num_rows:
        return (
            what + f"if {text[0]!r} names the options, say which column has the values (--by {quoted(text[0])} --value "
            f"{quoted(value)}); if it tells the rows apart and the others are the options, --unit {quoted(text[0])}; if each "
            "row is an option and the others are its questions or folds, --layout transposed"
        )
    first = min(text, key=table.distinct) if text else next(name for name in numbers if name != value)
    wide = "" if text else ", or say that each column is an option (--layout wide)"
    return (
        what + f"name the options' column with by and the values' with value (such as --by {quoted(first)} --value "
        f"{quoted(value)}){wide}"
    )


def _likely_value(table: FirstLook, numbers: Sequence[str]) -> str:
    """The first column that measures something, rather than counting or numbering it."""
    measured = [name for name in numbers if not labels_rows(name)] or numbers
    found = row_labels(table.batch, measured)
    return next((name for name in measured if name not in found.whole), measured[0])


def _is_headless(table: FirstLook, text: Sequence[str]) -> bool:
    """Whether the first line holds numbers; options may well be called 2023 and 2024."""
    numeric = table.numeric
    years = all(re.fullmatch("[12][0-9]{3}", name) for name in numeric)
    years = years or (not text and all(name.strip("-").isdigit() for name in numeric))
    return bool(numeric) and all(is_number(name) and any(map(str.isdigit, name)) for name in numeric) and not years


def _wide(table: FirstLook, reading: Reading, said: bool) -> Layout:
    roles = {"unit": table.said["unit"]} if "unit" in table.said else {}
    found = row_labels(table.batch, table.numeric)
    numbered, dated = (
        dict.fromkeys(names, why)
        for names, why in (
            (found.labels, "numbers the rows"),
            (table.of_kind("date"), "dates the rows"),
        )
    )
    told = bool(table.said) or table.index is not None or not (numbered | dated).keys() <= set(reading.options)
    if reading.options:
        for name in reading.options:
            check_column(name, table.names)
        return Layout("wide", roles, reading.options, labelled=told)
    labels = numbered | dated | dict.fromkeys(table.of_kind("empty"), "is empty")
    options = tuple(name for name in table.names if name not in (*labels, *table.said.values()))
    if not options:
        first, *others = labels
        raise DataError(
            f"every column tells the rows apart ({listed([first, *others])}): name the column with the options and that with the "
            f"values (such as --by {quoted(first)} --value {quoted(others[-1] if others else 'COLUMN')})"
        )
    if not said:
        _refuse_doubtful(found, options, labels)
    if len(options) > MOST_OPTIONS:
        raise DataError(TOO_MANY)
    text = table.of_kind("text")
    if text and len(text) < len(options):
        raise DataError(
            f"column {text[0]!r} holds text, not numbers: if it tells the rows apart, --unit {quoted(text[0])} leaves it out"
        )
    return Layout("wide", roles, options, labelled=told, remarks=left_out(labels))


def _refuse_doubtful(found: RowLabels, options: Sequence[str], labels: Mapping[str, str]) -> None:
    if len(options) == 1 and labels:
        label = next(iter(labels))
        raise DataError(
            f"only column {options[0]!r} has values, since {label!r} {labels[label]}: name the column that tells the options "
            f"apart with by (--by), or every option with options (--options {quoted(label)},{quoted(options[0])})"
        )
    for name, why in (
        (found.doubtful, "has a different whole number in every row"),
        (found.repeating, "has the name of an id or a time"),
    ):
        if name is not None:
            raise DataError(
                f"column {name!r} {why}: leave it out if it tells the rows apart (--unit {quoted(name)}), name it if its "
                f"numbers are the options (--by {quoted(name)}), or say that each column is an option (--layout wide)"
            )
