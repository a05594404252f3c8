"""What an experiment's settings may be: their kinds as their defaults have them, their ranges as the experiment says.

Settings come from the command line and from plans that a stranger may have written. Whatever cannot be computed, or would take
memory without bound, is refused in one sentence when the settings are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..mev.show import escaped, shortened
from .errors import LabError

SHARDS = 10_000
"""How many shards an experiment may split into."""


@dataclass(frozen=True)
class Range:
    """What a number may be, ends included; or each entry of a list, and how many entries the list may have."""

    low: float
    high: float
    entries: tuple[int, int] = (1, 100)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def within(settings: Any, **ranges: Range) -> None:
    """Refuse settings with a field of another kind than its default, or outside its range. Fields without a range may be any.

    >>> from maxmean.lab.experiments.ads import Settings
    >>> Settings(runs=0)
    Traceback (most recent call last):
    maxmean.lab.errors.LabError: runs must be a whole number from 2 to 10,000,000, not 0
    """
    check_kinds(type(settings), vars(settings))
    for name, allowed in ranges.items():
        value, (kind, listed) = vars(settings)[name], _kinds(type(settings))[name]
        if not listed:
            _check(name, value, allowed, kind)
            continue
        least, most = allowed.entries
        if not least <= len(value) <= most:
            count = f"{least}" if least == most else f"{least} to {most}"
            raise LabError(f"{name} must have {count} {'entry' if most == 1 else 'entries'}, not {len(value)}")
        for entry in value:
            _check(f"each entry of {name}", entry, allowed, kind)
        if len(set(value)) < len(value):
            raise LabError(f"{name} has an entry twice: {_shown(value)}")


def limited(what: str, number: float, most: float) -> None:
    """Refuse what follows from several settings together, where it is too large.

    >>> limited("repetitions times n", 10**12, 10**7)
    Traceback (most recent call last):
    maxmean.lab.errors.LabError: repetitions times n must be at most 10,000,000, not 1,000,000,000,000
    """
    if number > most:
        raise LabError(f"{what} must be at most {most:,}, not {number:,}")


def check_kinds(settings: type, values: Mapping[str, Any]) -> None:
    """Refuse values of another kind than the defaults of these settings: text for a number, a list for one number."""
    for name, (kind, listed) in _kinds(settings).items():
        value = values[name]
        if listed and not (isinstance(value, tuple) and all(_is(kind, entry) for entry in value)):
            raise LabError(f"{name} must be a list of {_NAMES[kind]}s, not {_shown(value)}")
        if not listed and not _is(kind, value):
            raise LabError(f"{name} must be a {_NAMES[kind]}, not {_shown(value)}")


_NAMES: dict[type, str] = {int: "whole number", float: "number", bool: "truth value", str: "text"}


def _kinds(settings: type) -> dict[str, tuple[type, bool]]:
    """By field: the kind of its default, and whether that is a list of them."""
    found = {}
    for field in fields(settings):
        default: Any = field.default
        listed = isinstance(default, tuple)
        found[field.name] = (type((*default, "")[0] if listed else default), listed)
    return found


def _is(kind: type, value: Any) -> bool:
    if isinstance(value, bool):  # which Python counts among the whole numbers
        return kind is bool
    return isinstance(value, int | float if kind is float else kind)


def _check(name: str, value: float, allowed: Range, kind: type) -> None:
    if value not in allowed:
        low, high = (f"{int(end):,}" if kind is int else f"{end:g}" for end in (allowed.low, allowed.high))
        raise LabError(f"{name} must be a {_NAMES[kind]} from {low} to {high}, not {_shown(value)}")


def _shown(value: Any) -> str:
    return shortened(escaped(repr(value)), 60)
