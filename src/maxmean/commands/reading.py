"""How to read a table, for every command that reads one: the options, and what they say."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from .options import option

if TYPE_CHECKING:
    from ..mev.data.layout import Columns, Reading

PANEL = "How to read the table (default: recognised from the columns)"


def _option(
    name: str, words: str, metavar: str = "COLUMN", kind: Any = str, default: str | None = None
) -> inspect.Parameter:
    return option(name, kind, default, words, metavar=metavar, panel=PANEL)


COLUMNS = (
    _option("by", "Names of the options; in a wide table, a column to leave out."),
    _option("value", "Observations (long)."),
    _option("successes", "How many times it worked (counts)."),
    _option("trials", "How many times it was tried (counts)."),
    _option("rate", "Share of trials that worked (counts), 0.125 or 12.5%."),
    _option("mean", "Mean of each option (summaries)."),
    _option(
        "se",
        "Standard error of the mean; or a number, that of every row's value, such as one trial of a search.",
        "COLUMN|NUMBER",
    ),
    _option("sd", "Standard deviation; needs --n."),
    _option("n", "Number of observations."),
    _option("lower", "Lower confidence limit of the mean, instead of --se."),
    _option("upper", "Upper confidence limit."),
    _option("unit", "What rows belong to (a user, a day): pairs a long table by it; left out of a wide one."),
    _option("layout", "long, wide, counts, summaries or transposed.", "NAME"),
)
"""Which column plays which role."""
UNIT_COLUMNS = (
    _option(
        "numerator", "What is added up and divided by the sum of --denominator, instead of --value: revenue per order."
    ),
    _option("denominator", "What it is divided by."),
    _option("cluster", "Which rows (long) belong to one unit, such as a user."),
    _option("covariate", "Something known of each unit from before the experiment, to adjust for (long)."),
)
"""The same, where a unit has several rows, or a row several numbers."""
ROWS = (
    _option("limits_level", "Level of --lower and --upper.", "LEVEL", float, "as the columns say, or 0.95"),
    _option(
        "where",
        "Rows that count: 'country = DE', 'ad != Total'; if repeated, all must hold.",
        "CONDITION",
        list[str],
        "all",
    ),
    _option("drop_missing", "Leave out rows without a value; units, if they are paired.", kind=bool),
    _option("decimal", "Decimal mark of the numbers, . or , (a comma).", "MARK"),
    _option("sheet", "Sheet of an Excel file with several.", "NAME"),
    _option("query", "What to select from a database file: 'select ad, eur from sales'.", "SQL", str, "the only table"),
    _option(
        "test_size",
        "Of the data in each test set, for scores of cross-validation, whose splits share training data.",
        "SHARE",
        float,
        "as in k-fold",
    ),
)
"""Which rows count, and how they are written."""


def columns_of(given: dict[str, Any], covariance: Any = None) -> Columns:
    """What the options say about columns."""
    from ..mev.data.layout import Columns

    said = {each.name: given[each.name] for each in (*COLUMNS, *UNIT_COLUMNS) if each.name in given}
    return Columns(**said, covariance=covariance)


def reading_of(given: dict[str, Any], options: list[str], *, paired: bool | None = None) -> Reading:
    """What the options say about rows; ``options`` are the names to compare, each perhaps several with commas between them."""
    from ..mev.data.layout import Reading

    said = {each.name: given[each.name] for each in ROWS if each.name in given}
    return Reading.of(
        options=[name.strip() for entry in options for name in entry.split(",")],
        paired=paired,
        **said,
    )
