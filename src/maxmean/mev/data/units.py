"""Long tables whose rows belong to units: one value of every option for each user, day or question."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import DataError
from .gather import Gathered
from .layout import Reading
from .samples import Samples


def pair_up(names: Sequence[str], found: Gathered, reading: Reading) -> Samples:
    """Paired samples, a row a unit; units without a value of every option are refused, or left out."""
    assert found.units is not None
    value, units = found.values["value"], list(found.units.number)
    place = found.unit_codes.astype(np.int64) * len(names) + found.codes
    order = np.argsort(place, kind="stable")
    twice = np.flatnonzero(np.diff(place[order]) == 0)
    if twice.size:
        first, second = order[twice[0]], order[twice[0] + 1]
        raise DataError(
            f"row {found.rows[second]}: {found.units.column} {units[found.unit_codes[second]]!r} has a value of option "
            f"{names[found.codes[second]]!r} in row {found.rows[first]} already: average them first"
        )
    count = np.bincount(found.unit_codes, minlength=len(units))
    whole = count == len(names)
    if not whole.all():
        some = units[int(np.argmin(whole))]
        lacking = int((~whole).sum())
        if not reading.drop_missing:
            raise DataError(
                f"{lacking:,} of {len(units):,} units lack a value of some option, the first of them {some!r} (column "
                f"{found.units.column!r}): leave such units out with drop_missing (--drop-missing)"
            )
        found.remarks.append(
            f"{lacking:,} of {len(units):,} units were left out, since they lack a value of some option"
        )
    kept = order[whole[found.unit_codes[order]]]
    table = value[kept].reshape(-1, len(names))
    return Samples(tuple(np.ascontiguousarray(column) for column in table.T), paired=True)
