"""What is said about a name that nothing has."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from .environment import EnvError


def unknown(what: str, name: str, known: Iterable[str], more: str = "") -> EnvError:
    """An error that says which name is meant, where one is close, and which ones there are.

    >>> unknown("breakout has no option", "stiky", ["sticky", "ramping"])
    EnvError("breakout has no option 'stiky'; did you mean 'sticky'? (there are sticky, ramping)")
    """
    names = {other.lower(): other for other in known}
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    hint = f"; did you mean {names[near[0]]!r}?" if near else ""
    return EnvError(f"{what} {name!r}{hint} (there are {', '.join(names.values())}{more})")
