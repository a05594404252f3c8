"""Names of columns that reveal what they hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

ALIASES: Mapping[str, tuple[str, ...]] = {
    "by": (
        "option", "options", "variant", "variants", "variation", "arm", "group", "ad", "ads", "action", "treatment", "name",
        "version", "label", "model", "campaign", "creative", "experiment_group",
    ),
    "value": ("value", "values", "y", "reward", "outcome", "score", "result", "return", "response", "metric"),
    "successes": (
        "successes", "success", "clicks", "conversions", "converted", "wins", "won", "hits", "orders", "purchases",
        "signups", "sign_ups", "installs", "leads", "transactions", "opens", "correct", "passed", "positives",
    ),
    "trials": (
        "trials", "impressions", "views", "visitors", "visits", "customers", "users", "shown", "total", "n", "sessions", "sent",
        "delivered", "recipients", "exposures", "attempts", "questions", "pageviews", "page_views", "participants", "count",
    ),
    "rate": (
        "rate", "ctr", "cvr", "cr", "conversion_rate", "click_rate", "click_through_rate", "success_rate", "win_rate",
        "open_rate", "proportion", "share", "accuracy", "acc", "pass_rate",
    ),
    "mean": ("mean", "average", "avg", "estimate", "coef", "coefficient", "point_estimate"),
    "se": ("se", "stderr", "std_error", "std_err", "standard_error", "sem", "se_mean", "mean_se"),
    "sd": ("sd", "std", "stdev", "std_dev", "stddev", "standard_deviation"),
    "n": ("n", "count", "size", "observations", "trials", "nobs", "n_obs", "samples"),
    "lower": (
        "lower", "ci_low", "ci_lower", "ci_lo", "lower_ci", "low_ci", "conf_low", "lower_bound", "lower_limit", "lower_cl", "lcl",
        "lwr", "lb", "ll", "low", "lo", "2_5", "0_025",
    ),
    "upper": (
        "upper", "ci_high", "ci_upper", "ci_hi", "upper_ci", "high_ci", "conf_high", "upper_bound", "upper_limit", "upper_cl",
        "ucl", "upr", "ub", "ul", "high", "hi", "97_5", "0_975",
    ),
}  # fmt: skip
"""Names by role, as :func:`plain` writes them, the surest first."""

TOTALS = frozenset(
    (
        "total",
        "totals",
        "grand_total",
        "subtotal",
        "sub_total",
        "sum",
        "all",
        "overall",
        "average",
        "mean",
        "gesamt",
        "summe",
    )
)
"""Names of rows or columns that sum the others up."""

_ERRORS = ("stderr", "std_err", "std_error", "se", "sem")
_KEYS = frozenset(("id", "ids", "uid", "uuid", "guid", "index", "idx", "key"))
_UNITS = frozenset(
    ("customer", "fold", "individual", "item", "no", "nr", "number", "participant", "patient", "person", "question", "row", "run",
     "seed", "session", "store", "subject", "user")
)  # fmt: skip
_TIMES = frozenset(("date", "datetime", "timestamp", "day", "week", "month", "quarter", "year"))


def plain(name: str) -> str:
    """A name in lower case, its words joined by underscores.

    >>> plain("Std. Error "), plain("clickThroughRate"), plain("CI 95% low")
    ('std_error', 'click_through_rate', 'ci_95_low')
    """
    spaced = re.sub("([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub("[^0-9a-z]+", "_", spaced.lower()).strip("_")


def alias(role: str, names: Sequence[str]) -> str | None:
    """The first of these names that reveals the role.

    >>> alias("trials", ["Page", "Sessions"]), alias("trials", ["Page"])
    ('Sessions', None)
    """
    known = {plain(name): name for name in reversed(names)}
    return next((known[each] for each in ALIASES[role] if each in known), None)


def error_of(names: Sequence[str]) -> tuple[str, str] | None:
    """A column and the one with its standard errors, by a name such as ``acc_stderr`` beside ``acc``.

    >>> error_of(["task", "acc", "acc_stderr"])
    ('acc', 'acc_stderr')
    """
    known = {plain(name): name for name in names}
    pairs = ((known.get(base), known.get(f"{base}_{ending}")) for base in known for ending in _ERRORS)
    return next(((base, error) for base, error in pairs if base is not None and error is not None), None)


def limits_of(names: Sequence[str]) -> tuple[str, str, float | None] | None:
    """The columns of a lower and an upper confidence limit, and the level that their names tell.

    >>> limits_of(["est", "CI 90% low", "CI 90% high"]), limits_of(["mean", "lower", "upper"])
    (('CI 90% low', 'CI 90% high', 0.9), ('lower', 'upper', None))
    """
    bare = {re.sub("_?(80|90|95|99)(?![0-9])_?", lambda found: "_" * found[0].endswith("_"), plain(name)).strip("_"): name
            for name in names}  # fmt: skip
    low = alias("lower", names) or next((bare[each] for each in ALIASES["lower"] if each in bare), None)
    high = alias("upper", names) or next((bare[each] for each in ALIASES["upper"] if each in bare), None)
    if low is None or high is None:
        return None
    if plain(low) in ("2_5", "0_025"):
        return low, high, 0.95
    told = {found[0] for name in (low, high) for found in re.finditer("(?<![0-9])(80|90|95|99)(?![0-9])", name)}
    return low, high, int(told.pop()) / 100 if len(told) == 1 else None


def labels_rows(name: str) -> bool:
    """Whether a column of this name tells rows apart rather than options: an id, a time, or what is counted.

    >>> [labels_rows(name) for name in ("store_id", "Month", "userId", "question", "order_value", "paid")]
    [True, True, True, True, False, False]
    """
    return plain(name) in _UNITS or not (_KEYS | _TIMES).isdisjoint(plain(name).split("_"))
