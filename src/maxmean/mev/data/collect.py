"""From the columns of a table to data about options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa

from ..errors import DataError
from .aliases import TOTALS, plain
from .confidence import standard_errors
from .counts import Counts
from .delta import DELTA, Rows, summarise_units
from .folds import allow_for_overlap
from .gather import Gathered, gather
from .layout import Columns, Layout, Reading
from .limits import MOST_VALUES
from .missing import whole_rows
from .number_column import MOST_COUNTED, refuse_fractions
from .options import Options, repeated
from .rates import successes_of
from .samples import Samples
from .summaries import Summaries
from .units import pair_up

_UNLIKE = 1_000


def read_options(
    batches: Iterable[pa.RecordBatch],
    columns: Columns,
    reading: Reading = Reading(),  # noqa: B008  (frozen)
    *,
    most: float = MOST_VALUES,
) -> Options:
    """Recognise the layout from the first batch, then collect the data of all of them, up to ``most`` values."""
    layout, found = gather(batches, columns, reading, most)
    if found.missing.rows and not reading.drop_missing:
        found.missing.refuse()
    names, data = _COLLECT[layout.kind](layout, found, reading)
    _refuse_totals(names, layout, reading)
    _refuse_unknown(names, reading)
    remarks = (*layout.remarks, *found.remarks, *filter(None, [found.missing.remark]), *_look_alikes(found, names))
    pairable = isinstance(data, Samples) and data.paired
    options = Options(tuple(names), data, str(layout), pairable=pairable, remarks=remarks)
    folds = layout.origin is not None and layout.origin.kind == "folds"
    if reading.test_size is None and (not folds or reading.paired is False):
        return options
    return allow_for_overlap(options, reading.test_size)


def _long(layout: Layout, found: Gathered, reading: Reading) -> tuple[list[str], Samples | Summaries]:
    names, value = list(found.names.number), found.values["value"]
    if layout.error is not None:
        n = np.bincount(found.codes, minlength=len(names))
        means = np.bincount(found.codes, value, len(names)) / n
        return names, Summaries.of(means, layout.error / np.sqrt(n), None, None, names)
    if set(DELTA) & set(layout.roles):
        return names, summarise_units(_rows(layout, found), tuple(names))
    if found.units is not None:
        return names, pair_up(names, found, reading)
    edges = np.cumsum(np.bincount(found.codes, minlength=len(names)))[:-1]
    return names, Samples(tuple(np.split(value[np.argsort(found.codes, kind="stable")], edges)))


def _rows(layout: Layout, found: Gathered) -> Rows:
    """What the delta method wants to know of every row."""
    denominator = found.values.get("denominator")
    negative = np.flatnonzero(denominator < 0) if denominator is not None else np.array([])
    if negative.size:
        raise DataError(f"row {found.rows[negative[0]]}: column {layout.roles['denominator']!r} is negative")
    cluster = found.unit_codes if "cluster" in layout.roles else None
    return Rows(found.codes, found.values["value"], denominator, cluster, found.values.get("covariate"))


def _wide(layout: Layout, found: Gathered, reading: Reading) -> tuple[list[str], Samples]:
    """Columns may end early if nothing tells the rows apart, but must not have holes; without either, the rows are paired."""
    columns = [found.values[name] for name in layout.options]
    names = [name.strip() for name in layout.options]
    if (twice := repeated(names)) is not None:
        raise DataError(f"column {twice!r} appears twice")
    if found.units is not None and len(found.units.number) < len(found.unit_codes):
        found.units.refuse_repeated(found.unit_codes, found.rows)
    filled = [~np.isnan(column) for column in columns]
    found.remarks += _unlike(names, columns)
    if all(each.all() for each in filled):
        return names, Samples(tuple(columns), paired=True)
    missing = found.missing
    for name, each in zip(layout.options, filled, strict=True):
        missing.note(name, np.array([found.rows[int(k)] for k in np.flatnonzero(~each)]))
    if reading.drop_missing and reading.paired is not False:
        whole = whole_rows(columns)
        missing.rows += int((~whole).sum())
        return names, Samples(tuple(column[whole] for column in columns), paired=True)
    values = tuple(column[each] for column, each in zip(columns, filled, strict=True))
    if reading.drop_missing:
        total = sum(int((~each).sum()) for each in filled)
        found.remarks.append(f"{total:,} missing {'values were' if total > 1 else 'value was'} left out")
        missing.rows = 0
        return names, Samples(values)
    if layout.labelled or any(each[int(np.argmin(each)) :].any() for each in filled if not each.all()):
        missing.refuse()
    missing.rows = 0
    n = [len(each) for each in values]
    if min(n) < max(n):
        short, long = (names[n.index(each)] for each in (min(n), max(n)))
        found.remarks.append(
            f"column {short!r} ends after {min(n):,} values and {long!r} after {max(n):,}, so that rows are not paired; if "
            "values are missing there, --drop-missing leaves such rows out and pairs the others"
        )
    return names, Samples(values, paired=min(n) == max(n))


def _unlike(names: Sequence[str], columns: Sequence[np.ndarray]) -> list[str]:
    """A sentence on columns that may not measure the same thing: the values of one spread a thousand times as much."""
    kept = {
        name: values for name, column in zip(names, columns, strict=True) if (values := column[~np.isnan(column)]).size
    }
    with np.errstate(over="ignore"):
        spread = {name: float(np.ptp(values)) for name, values in kept.items()}
    some = {name: each for name, each in spread.items() if 0 < each < np.inf}
    if not some or max(some.values()) < _UNLIKE * min(some.values()):
        return []
    wide, narrow = max(some, key=lambda name: some[name]), min(some, key=lambda name: some[name])
    return [
        f"the values of {wide!r} spread {_UNLIKE:,} times as much as those of {narrow!r} or more: options are compared if they "
        "measure the same thing (--options names those that do)"
    ]


def _counts(layout: Layout, found: Gathered, reading: Reading) -> tuple[list[str], Counts]:
    """Rows of the same option add up."""
    names, trials = list(found.names.number), found.values["trials"]
    refuse_fractions(trials, layout.roles["trials"], found.rows)
    if "rate" in found.values:
        successes, remark = successes_of(found.values["rate"], trials, layout.roles["rate"], found.rows)
        found.remarks += [remark] if remark else []
    else:
        successes = found.values["successes"]
        refuse_fractions(successes, layout.roles["successes"], found.rows)
    wrong = np.flatnonzero(successes > trials)
    if wrong.size:
        k = wrong[0]
        raise DataError(f"row {found.rows[k]}: {successes[k]:g} successes out of {trials[k]:g} trials")
    won, tried = (np.bincount(found.codes, column, len(names)) for column in (successes, trials))
    if tried.max() > MOST_COUNTED:
        name = names[tried.argmax()]
        raise DataError(f"option {name!r}: its trials add up to {tried.max():g}, too many to count exactly")
    return names, Counts(won.astype(np.int64), tried.astype(np.int64))


def _summaries(layout: Layout, found: Gathered, reading: Reading) -> tuple[list[str], Summaries]:
    names, values, rows = list(found.names.number), found.values, found.rows
    for role in set(values) - {"mean", "lower", "upper"}:
        negative = np.flatnonzero(values[role] < 0)
        if negative.size:
            k = negative[0]
            raise DataError(f"row {rows[k]}: column {layout.roles[role]!r} is negative ({values[role][k]:g})")
    if "n" in values:
        refuse_fractions(values["n"], layout.roles["n"], rows)
    _refuse_second_summaries(found.codes, names, rows)
    se = values.get("se")
    if "lower" in values:
        se = standard_errors(values["mean"], values["lower"], values["upper"], layout.level, names)
    if layout.error is not None:
        se = np.full(len(names), layout.error)
    matrix = None if layout.covariance is None else layout.covariance.among(names)
    return names, Summaries.of(values["mean"], se, values.get("sd"), values.get("n"), names, matrix)


_COLLECT: dict[str, Callable[[Layout, Gathered, Reading], tuple[list[str], Samples | Counts | Summaries]]] = {
    "long": _long,
    "wide": _wide,
    "counts": _counts,
    "summaries": _summaries,
}


def _refuse_second_summaries(codes: np.ndarray, names: Sequence[str], rows: Sequence[int]) -> None:
    first: dict[int, int] = {}
    for k, code in enumerate(codes.tolist()):
        if code in first:
            raise DataError(f"row {rows[k]}: option {names[code]!r} was summarised in row {rows[first[code]]} already")
        first[code] = k


def _refuse_totals(names: Sequence[str], layout: Layout, reading: Reading) -> None:
    """Ask about an option whose name says that it sums the others up."""
    name = next((name for name in names if plain(name) in TOTALS), None)
    if name is None or name in reading.options:
        return
    others = ",".join(each for each in names if each != name)
    out = f'--where "{layout.roles["by"]} != {name}"' if "by" in layout.roles else f"--options {others}"
    raise DataError(
        f"option {name!r} looks like a sum over the others: leave it out ({out[:200]}), or keep it by naming all "
        "options (--options)"
    )


def _refuse_unknown(names: Sequence[str], reading: Reading) -> None:
    absent = next((name for name in reading.options if name not in names), None)
    if absent is not None:
        raise DataError(f"there is no option {absent!r}")


def _look_alikes(found: Gathered, names: Sequence[str]) -> list[str]:
    """A sentence on names that differ in little."""
    said = []
    both = [name for name in found.names.spaced if name in found.names.exact]
    if both:
        said.append(
            f"{found.names.spaced[both[0]]!r} and {both[0]!r} count as one option: blanks around names are left out"
        )
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(" ".join(name.casefold().split()), name)
        if other != name:
            said.append(f"{other!r} and {name!r} count as two options, though only capitals or blanks differ")
            break
    return said
