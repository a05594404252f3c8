"""Refusals in this room's own words: see :mod:`maxmean.errors`."""

from __future__ import annotations

from functools import partial

from .. import errors
from .data import DataError

check_number = partial(errors.real_number, error=DataError)
check_truth = partial(errors.truth, error=DataError)
check_whole = partial(errors.whole_number, error=DataError)
