"""What is said about a table, and what it was read as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError
from ..settings import check_level, check_truth
from .conditions import Condition, conditions
from .covariance import Covariances

LAYOUTS = ("long", "wide", "counts", "summaries", "transposed")


@dataclass(frozen=True)
class Columns:
    """Which column plays which role, as far as the user has said."""

    by: str | None = None
    value: str | None = None
    successes: str | None = None
    trials: str | None = None
    rate: str | None = None
    mean: str | None = None
    se: str | float | None = None
    """A column; or a number, the standard error of every row's value."""
    sd: str | None = None
    n: str | None = None
    lower: str | None = None
    upper: str | None = None
    unit: str | None = None
    numerator: str | None = None
    denominator: str | None = None
    cluster: str | None = None
    covariate: str | None = None
    layout: str | None = None
    covariance: Any = None
    """Of the means, :class:`Covariances`, if given beside the table, which then has means and needs no standard errors."""


@dataclass(frozen=True)
class Reading:
    """Which rows and options count, and how numbers are written, as far as the user has said."""

    options: tuple[str, ...] = ()
    """The options to compare, by name; none: all."""
    where: tuple[Condition, ...] = ()
    """What the rows must fulfil."""
    drop_missing: bool = False
    """Whether rows without a value are left out; units, if rows are paired."""
    paired: bool | None = None
    decimal: str | None = None
    """The decimal mark, a point or a comma."""
    limits_level: float | None = None
    """Of confidence limits in the table; None: what their names tell, or 0.95."""
    sheet: str | None = None
    """Of an Excel file."""
    query: str | None = None
    """Of a database file."""
    test_size: float | None = None
    """Share of the data in the test sets of cross-validation, if the observations are scores on its splits."""

    @classmethod
    def of(
        cls,
        *,
        options: Sequence[str] = (),
        where: str | Sequence[str] = (),
        drop_missing: bool = False,
        paired: bool | None = None,
        decimal: str | None = None,
        limits_level: float | None = None,
        sheet: str | None = None,
        query: str | None = None,
        test_size: float | None = None,
    ) -> Reading:
        """From what a caller gives, checked."""
        if isinstance(options, str) or not all(isinstance(name, str) for name in options):
            raise ArgumentError(f"options must be a list of names, not {options!r}")
        if decimal not in (None, ".", ","):
            raise ArgumentError(f"decimal must be a point or a comma, not {decimal!r}")
        if limits_level is not None:
            check_level(limits_level)
        check_truth("drop_missing", drop_missing)
        if test_size is not None and not (isinstance(test_size, int | float) and 0 <= test_size < 1):
            raise ArgumentError(f"test_size must be a share of the data from 0 up to 1, such as 0.2, not {test_size!r}")
        if query is not None and not (isinstance(query, str) and query.strip()):
            raise ArgumentError(f"query must be a statement such as 'select * from results', not {query!r}")
        chosen = tuple(options), conditions(where)
        return cls(*chosen, drop_missing, paired, decimal, limits_level, sheet, query, test_size)


@dataclass(frozen=True)
class Layout:
    """The layout that a table was read as."""

    kind: str
    roles: dict[str, str]
    """Column by role; of a wide table, the unit if it has one."""
    options: tuple[str, ...] = ()
    """Columns that are options, in a wide table."""
    labelled: bool = False
    """Whether a column tells the rows of a wide table apart, so that a row without a value lacks it wherever it stands."""
    covariance: Covariances | None = None
    """Of the means, with summaries."""
    level: float = 0.95
    """Of the confidence limits, if standard errors are made from them."""
    remarks: tuple[str, ...] = ()
    """What was guessed and changes the answer, a sentence each."""
    error: float | None = None
    """The standard error of every row's value, if it is known."""
    origin: Layout | None = None
    """What it was before it became a long one: a search, or a transposed table."""
    read_as: str = ""
    """The same in words."""

    def __str__(self) -> str:
        if self.read_as:
            return self.read_as + (f", each with a standard error of {self.error:g}" if self.error is not None else "")
        names = {role: repr(name) for role, name in self.roles.items()}
        by = f"options in {names['by']}" if "by" in names else "one option a row"
        unit = f", paired by {names['unit']}" if "unit" in names else ""
        match self.kind:
            case "long":
                return f"long: one observation a row, {by}, {_what(names)}{unit}"
            case "wide":
                return f"wide: {len(self.options)} columns, one an option: {listed(self.options)}{unit}"
            case "counts" if "rate" in names:
                return f"counts: {by}, rates in {names['rate']} of {names['trials']} trials"
            case "counts":
                return f"counts: {by}, {names['successes']} successes out of {names['trials']} trials"
            case _:
                if self.covariance is not None:
                    return f"summaries: {by}, means in {names['mean']}, with a covariance matrix"
                return f"summaries: {by}, means in {names['mean']}, standard errors {self._spread(names)}"

    def _spread(self, names: dict[str, str]) -> str:
        if self.error is not None:
            return f"all {self.error:g}"
        if "se" in names:
            return names["se"]
        if "sd" in names:
            return f"{names['sd']} / sqrt({names['n']})"
        return f"from the {self.level:.4g} confidence limits {names['lower']} and {names['upper']}"


def _what(names: dict[str, str]) -> str:
    """What is averaged in a long table."""
    value = f"values in {names['value']}"
    if "denominator" in names:
        value = f"the ratio of {names['value']} to {names['denominator']}"
    together = f", rows of one {names['cluster']} together" if "cluster" in names else ""
    return value + together + (f", adjusted for {names['covariate']}" if "covariate" in names else "")


def listed(names: Sequence[str]) -> str:
    """Names in quotation marks, the first eight of them.

    >>> listed("ab")
    "'a', 'b'"
    """
    shown = ", ".join(repr(name) for name in names[:8])
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def quoted(name: str) -> str:
    """A name as it is typed on a command line."""
    return f'"{name}"' if " " in name else name
