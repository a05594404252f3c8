"""What is said of a user's mistake: one base class, and the sentences that all rooms share.

Every room has its own subclass of :class:`MaxmeanError`. The command line catches the base class, prints the sentence and ends
with status 2; any other exception is a fault of ours.
"""

from __future__ import annotations

import difflib
import importlib.util
import math
import sys
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np

LARGEST = 2**63 - 1
"""The largest whole number that is written out in a message."""


class MaxmeanError(ValueError):
    """A mistake of the caller's; the message is one sentence that names what is wrong and, where it can, what would be right."""


def whole_number(
    what: str,
    value: Any,
    least: int | None = None,
    most: int | None = None,
    *,
    floats: bool = False,
    error: type[Exception] = MaxmeanError,
) -> int:
    """``value`` if it is a whole number within the bounds; with ``floats`` also one written as a float, such as 1e6.

    >>> whole_number("runs", 3)
    3
    >>> whole_number("runs", 3.5)
    Traceback (most recent call last):
    maxmean.errors.MaxmeanError: runs must be a whole number, not 3.5
    >>> whole_number("runs", 0, 1)
    Traceback (most recent call last):
    maxmean.errors.MaxmeanError: runs must be at least 1, not 0
    """
    whole = isinstance(value, Integral) or (floats and isinstance(value, Real) and float(value).is_integer())
    if isinstance(value, bool) or not whole:
        raise error(f"{what} must be a whole number, not {brief(value)}")
    if least is not None and value < least:
        raise error(f"{what} must be at least {least}, not {brief(value)}")
    if most is not None and value > most:
        raise error(f"{what} must be at most {most:,}, not {brief(value)}")
    return int(value)


def real_number(what: str, value: Any, *, error: type[Exception] = MaxmeanError) -> float:
    """``value`` if it is a real number; nan and the infinities are.

    >>> real_number("the discount", "high")
    Traceback (most recent call last):
    maxmean.errors.MaxmeanError: the discount must be a number, not 'high'
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise error(f"{what} must be a number, not {brief(value)}")
    if isinstance(value, int) and abs(value) > sys.float_info.max:
        return math.inf if value > 0 else -math.inf
    return float(value)


def truth(what: str, value: Any, *, error: type[Exception] = MaxmeanError) -> bool:
    """``value`` if it is true or false, NumPy's or Python's: a text such as "no" would count as true.

    >>> truth("paired", "no")
    Traceback (most recent call last):
    maxmean.errors.MaxmeanError: paired must be True or False, not 'no'
    """
    if not isinstance(value, bool | np.bool_):
        raise error(f"{what} must be True or False, not {brief(value)}")
    return bool(value)


def unknown(what: str, name: object, known: Iterable[str], *, more: str = "", cutoff: float = 0.3) -> str:
    """A sentence that says which name is meant, where one is close, and which ones there are.

    >>> unknown("breakout has no option", "stiky", ["sticky", "ramping"])
    "breakout has no option 'stiky'; did you mean 'sticky'? (there are sticky, ramping)"
    """
    names = {other.lower(): other for other in known}
    near = difflib.get_close_matches(str(name).lower(), names, n=1, cutoff=cutoff)
    hint = f"; did you mean {names[near[0]]!r}?" if near else ""
    return f"{what} {name!r}{hint} (there are {', '.join(names.values())}{more})"


def no_attribute(module: str, name: str, known: Iterable[str]) -> str:
    """What Python says of a name that a module does not have, with the one that may be meant.

    >>> no_attribute("colours", "rde", ["red", "blue"])
    "module 'colours' has no attribute 'rde'; did you mean 'red'?"
    """
    return unknown(f"module {module!r} has no attribute", name, known, cutoff=0.6).partition(" (there are")[0]


def missing(what: str, *packages: str, extra: str | None = None, pip: str | None = None) -> str:
    """A sentence that names the extra which brings ``packages``; it has the first one's name unless it is given.

    ``pip`` is what is installed instead, where no extra of ours brings them.

    >>> missing("drawing", "crayons")
    "drawing needs the package crayons, which is not installed: pip install 'maxmean[crayons]'"
    >>> missing("drawing", "crayons", pip="crayons-py")
    'drawing needs the package crayons, which is not installed: pip install crayons-py'
    """
    names, are = ("package", "is") if len(packages) == 1 else ("packages", "are")
    name = pip or f"'maxmean[{extra or packages[0]}]'"
    return f"{what} needs the {names} {', '.join(packages)}, which {are} not installed: pip install {name}"


def need(
    what: str,
    *packages: str,
    extra: str | None = None,
    pip: str | None = None,
    error: type[Exception] = MaxmeanError,
) -> None:
    """Refuse to begin ``what`` where one of its packages is not installed; none of them is imported.

    >>> need("drawing", "math", "crayons", "easels", extra="studio")
    Traceback (most recent call last):
    maxmean.errors.MaxmeanError: drawing needs the packages crayons, easels, which are not installed: ...
    """
    absent = [package for package in packages if importlib.util.find_spec(package) is None]
    if absent:
        raise error(missing(what, *absent, extra=extra, pip=pip))


def brief(value: Any) -> str:
    """A value in few characters, however long it is.

    >>> brief(12), brief(10**5000), brief([1, 2]), brief("x" * 100)[-5:], brief(np.ones((3, 2)))
    ('12', 'about 10^5000', 'a list of 2', 'xx...', 'an array of shape (3, 2)')
    """
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, dict | list | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and abs(value) > LARGEST:
        return f"about {'-' * (value < 0)}10^{round(value.bit_length() * math.log10(2))}"
    shown = repr(value[:70]) if isinstance(value, str) else repr(value)
    return shown if len(shown) <= 70 else f"{shown[:67]}..."
