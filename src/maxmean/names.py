"""What is said about a name that nothing has, and about a package that is not there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def unknown(what: str, name: object, known: Iterable[str], *, more: str = "", cutoff: float = 0.3) -> str:
    """A sentence that says which name is meant, where one is close, and which ones there are.

    >>> unknown("breakout has no option", "stiky", ["sticky", "ramping"])
    "breakout has no option 'stiky'; did you mean 'sticky'? (there are sticky, ramping)"
    """
    names = {other.lower(): other for other in known}
    near = difflib.get_close_matches(str(name).lower(), names, n=1, cutoff=cutoff)
    hint = f"; did you mean {names[near[0]]!r}?" if near else ""
    return f"{what} {name!r}{hint} (there are {', '.join(names.values())}{more})"


def missing(what: str, package: str, extra: str | None = None) -> str:
    """A sentence that names the extra which brings ``package``; it has the package's name unless it is given.

    >>> missing("drawing", "crayons")
    "drawing needs the package crayons, which is not installed: pip install 'maxmean[crayons]'"
    """
    return f"{what} needs the package {package}, which is not installed: pip install 'maxmean[{extra or package}]'"


def no_attribute(module: str, name: str, known: Iterable[str]) -> str:
    """What Python says of a name that a module does not have, with the one that may be meant.

    >>> no_attribute("colours", "rde", ["red", "blue"])
    "module 'colours' has no attribute 'rde'; did you mean 'red'?"
    """
    return unknown(f"module {module!r} has no attribute", name, known, cutoff=0.6).partition(" (there are")[0]
