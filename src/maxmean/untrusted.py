"""What a file from anybody says, looked at before it is used: JSON of bounded size, and values of the kind that is expected.

A check is a function that gives the value back, or raises :class:`MisfitError` with what it should have been.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from .errors import LARGEST, MaxmeanError, brief

T = TypeVar("T")
Check = Callable[[Any], T]

MOST_VALUES = 4_000_000
"""Values in one JSON text. Python takes about a hundred bytes for each, however short it is written."""


class ContentError(MaxmeanError):
    """Content that cannot be used; the message goes on where the file's name stood: "its entry 'step' is missing"."""


class MisfitError(MaxmeanError):
    """What a value should have been: "a whole number from 1 to 32"."""


def contents(path: Path, most: int) -> bytes:
    """What is in a file of at most so many bytes; no directory, pipe or device, none of which ends as a file does."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise ContentError(f"{path.name} is no file")
        if about.st_size > most:
            raise ContentError(f"{path.name} is too large: {about.st_size:,} bytes, of at most {most:,}")
        return file.read(about.st_size + 1)


def read_json(path: Path, most: int = 2**26) -> Any:
    """What a JSON file of bounded size holds; :class:`ContentError` if it is missing or cannot be read, too."""
    try:
        return value_of(contents(path, most))
    except OSError as error:
        raise ContentError(f"{path.name} cannot be read: {error.strerror}") from None


def parse(text: str | bytes, *, finite: bool = False) -> dict[str, Any]:
    """The object that a JSON text holds; on request without nan and infinities, which strict JSON does not have.

    >>> parse('{"step": 3}')
    {'step': 3}
    >>> parse('[' * 100_000)
    Traceback (most recent call last):
    maxmean.untrusted.ContentError: its JSON is nested too deeply
    """
    found = value_of(text, finite=finite)
    if not isinstance(found, dict):
        raise ContentError(f"it holds no JSON object, but a {type(found).__name__}")
    return found


def value_of(text: str | bytes, *, finite: bool = False, most: int = MOST_VALUES) -> Any:
    """What a JSON text of at most so many values holds, an object or not."""
    try:
        text = text if isinstance(text, str) else text.decode()
    except UnicodeDecodeError:
        raise ContentError("it is not UTF-8 text") from None
    if not few_enough(text, most):
        raise ContentError(f"its JSON holds more than {most:,} values")
    try:
        return json.loads(text, parse_constant=_refuse if finite else None)
    except ContentError:
        raise
    except RecursionError:
        raise ContentError("its JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ContentError(f"it is not JSON (line {error.lineno}, column {error.colno}: {error.msg})") from None
    except ValueError:  # a number of more digits than Python converts
        raise ContentError("its JSON holds a number with thousands of digits") from None


def _refuse(constant: str) -> NoReturn:
    raise ContentError(f"it holds {constant}, which is no JSON")


def few_enough(text: str, most: int = MOST_VALUES) -> bool:
    """Whether a JSON text has no more values than :func:`parse` reads; commas and brackets inside texts count too."""
    return sum(text.count(mark) for mark in ",[{") <= most


def take(where: Mapping[str, Any], name: str, check: Check[T]) -> T:
    """The entry of that name, if the check accepts it.

    >>> take({"members": "ten"}, "members", whole(1, 32))
    Traceback (most recent call last):
    maxmean.untrusted.ContentError: its entry 'members' must be a whole number from 1 to 32, not 'ten'
    """
    if name not in where:
        raise ContentError(f"its entry {name!r} is missing")
    try:
        return check(where[name])
    except MisfitError as wanted:
        raise ContentError(f"its entry {name!r} must be {wanted}, not {brief(where[name])}") from None


def whole(least: int = 0, most: int = LARGEST) -> Check[int]:
    """A whole number in a range."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise MisfitError(f"a whole number from {least} to {most}")
        return value

    return check


def number(value: Any) -> float:
    """A finite number, whole or not."""
    try:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise MisfitError("a finite number")
    except OverflowError:  # a whole number that is larger than any other kind can be
        raise MisfitError("a finite number") from None
    return value


def real(value: Any) -> float:
    """A number, or one of nan and the infinities."""
    return value if isinstance(value, float) else number(value)


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise MisfitError("a text")
    return value


def truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise MisfitError("true or false")
    return value


def mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MisfitError("an object")
    return value


def one_of(known: Collection[str]) -> Check[str]:
    """One of some names."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise MisfitError(f"one of {', '.join(known)}")
        return value

    return check


def several(check: Check[T], least: int = 0, most: int = LARGEST) -> Check[tuple[T, ...]]:
    """A list, each part of which another check accepts."""

    def checked(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list | tuple) or not least <= len(value) <= most:
            raise MisfitError("a list" if not least else f"a list of {least} to {most} parts")
        try:
            return tuple(check(each) for each in value)
        except MisfitError as wanted:
            raise MisfitError(f"a list, each part {wanted}") from None

    return checked


def optional(check: Check[T]) -> Check[T | None]:
    """None, or what another check accepts."""

    def checked(value: Any) -> T | None:
        if value is None:
            return None
        try:
            return check(value)
        except MisfitError as wanted:
            raise MisfitError(f"{wanted}, or nothing") from None

    return checked
