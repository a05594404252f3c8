"""Refusals in this room's own words: see :mod:`maxmean.errors`. Settings are read without JAX, so nothing here needs it."""

from __future__ import annotations

from functools import partial
from typing import Any

from .. import errors


class AgentError(errors.MaxmeanError):
    """An agent or a setting that makes no sense; the message is one sentence that names the value and says what would."""


LARGEST = 2**31 - 1
"""What is counted on the device is counted in 32 bits."""


def whole_number(name: str, value: Any, *, least: int = 1, most: int = LARGEST) -> int:
    """A whole number from ``least`` to ``most``, also from a float such as 1e6; one sentence for anything else."""
    return errors.whole_number(name, value, least, most, floats=True, error=AgentError)


def real_number(name: str, value: Any) -> float:
    """A finite number that a float32 can hold; one sentence for anything else."""
    found = errors.real_number(name, value, error=AgentError)
    if not abs(found) < 3.4e38:  # nor if it is nan
        raise AgentError(f"{name} must be a finite number, not {errors.brief(value)}")
    return found


truth = partial(errors.truth, error=AgentError)
