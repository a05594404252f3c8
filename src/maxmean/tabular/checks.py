"""Refusals in this room's own words: see :mod:`maxmean.errors`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .. import errors


class MDPError(errors.MaxmeanError):
    """A problem or a setting that makes no sense; the message is one sentence that names the state, the action or the value."""


check_number = partial(errors.real_number, error=MDPError)
check_truth = partial(errors.truth, error=MDPError)
check_whole = partial(errors.whole_number, error=MDPError)


def as_array(what: str, values: Any, kind: Any) -> np.ndarray:
    """A new array of ``values`` in the type ``kind``, if they are numbers of that kind."""
    try:
        found = np.asarray(values)
        with np.errstate(invalid="ignore"):
            made = np.array(found, dtype=kind)
    except (TypeError, ValueError, OverflowError):
        found = made = np.array("")
    exact = not np.issubdtype(kind, np.integer) or np.array_equal(found, made)
    if found.size and (found.dtype.kind not in "biuf" or not exact):
        raise MDPError(f"{what} must hold {'whole numbers' if np.issubdtype(kind, np.integer) else 'numbers'}")
    return made
