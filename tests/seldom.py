"""Facts that hold in many combinations: the tests check a few of them, and ``make test-slow`` all."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """Parameters of which a test has enough without them."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def mostly_slow(values: Iterable[Any], few: Collection[Any]) -> list[Any]:
    """All parameters in their order; those that are not among the ``few`` are for the longer checks."""
    return [value if value in few else slow(value)[0] for value in values]
