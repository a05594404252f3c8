"""Refusals in this room's own words: see :mod:`maxmean.errors`."""

from __future__ import annotations

from functools import partial
from typing import Any

from .. import errors
from .errors import ArgumentError

check_number = partial(errors.real_number, error=ArgumentError)
check_truth = partial(errors.truth, error=ArgumentError)
check_whole = partial(errors.whole_number, error=ArgumentError)


def check_level(level: Any) -> None:
    """Refuse what is no confidence level.

    >>> check_level(95)
    Traceback (most recent call last):
    maxmean.mev.errors.ArgumentError: level must lie between 0 and 1, not 95
    """
    check_number("level", level)
    if not 0 < level < 1:
        raise ArgumentError(f"level must lie between 0 and 1, not {level}")
