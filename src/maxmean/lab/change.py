"""Settings changed by hand: ``steps=5000`` for ``maxmean reproduce --set``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..errors import unknown
from .errors import LabError

S = TypeVar("S")


def change(settings: S, texts: Sequence[str]) -> S:
    """Frozen settings with some fields replaced, each read as the kind of value that it replaces.

    >>> from maxmean.lab.experiments.minatar.study import Settings
    >>> changed = change(Settings(), ["steps=5000", "games=breakout,freeway"])
    >>> changed.steps, changed.games
    (5000, ('breakout', 'freeway'))
    """
    known = vars(settings)
    changes: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise LabError(f"a setting is changed with NAME=VALUE, not {text!r}")
        if name not in known:
            raise LabError(unknown("unknown setting", name, known))
        if name in changes:
            raise LabError(f"{name} is set twice; several values go into one, with commas between them")
        try:
            changes[name] = _read(known[name], value)
        except ValueError:
            raise LabError(f"{name} is now {known[name]!r}, and {value!r} is {_no_such(known[name])}") from None
    return replace(settings, **changes)  # type: ignore[type-var]


def differences(settings: S, other: S) -> list[str]:
    """The texts that change ``other`` into ``settings``.

    >>> from maxmean.lab.experiments.minatar.study import Settings
    >>> differences(Settings(steps=5000, games=("breakout", "freeway")), Settings())
    ['games=breakout,freeway', 'steps=5000']
    """
    texts = []
    for name, value in vars(settings).items():
        if value != vars(other)[name]:
            written = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            texts.append(f"{name}={written}")
    return texts


def _read(now: Any, text: str) -> Any:
    """Text as a value of the kind that is there now."""
    if isinstance(now, tuple):
        kind = now[0] if now else ""
        return tuple(_read(kind, part.strip()) for part in text.split(",") if part.strip())
    if isinstance(now, bool):
        if text.lower() not in ("true", "false"):
            raise ValueError
        return text.lower() == "true"
    return number(text) if isinstance(now, float) else type(now)(text)


def number(text: str) -> float:
    """A number, which may be written as a power of ten.

    >>> number("2.5"), number("1e-5"), number("10^-4.5") == 10**-4.5
    (2.5, 1e-05, True)
    """
    if not text.startswith("10^"):
        return float(text)
    exponent = float(text.removeprefix("10^"))
    if not abs(exponent) <= sys.float_info.max_10_exp:
        raise ValueError(f"{text} is beyond what a number can hold")
    return float(10.0**exponent)


def _no_such(now: Any) -> str:
    """What a text is not that cannot be read as the kind that is there now."""
    if isinstance(now, bool):
        return "neither true nor false"
    kind = {int: "whole number", float: "number"}
    if isinstance(now, tuple):
        return f"no list of {kind.get(type(now[0]) if now else str, 'name')}s"
    return f"no {kind.get(type(now), 'such value')}"
