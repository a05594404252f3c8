"""What a setting may be: true or false, a whole number, a number. Everything else is refused in one sentence that names it."""

from __future__ import annotations

import numpy as np

from .errors import ArgumentError


def check_truth(what: str, value: object, *, error: type[ValueError] = ArgumentError) -> None:
    """Refuse what is neither true nor false: a text such as "no" would count as true.

    >>> check_truth("paired", "no")
    Traceback (most recent call last):
    maxmean.mev.errors.ArgumentError: paired must be True or False, not 'no'
    """
    if not isinstance(value, (bool, np.bool_)):
        raise error(f"{what} must be True or False, not {value!r}")


def check_whole(
    what: str,
    value: object,
    least: int | None = None,
    most: int | None = None,
    *,
    error: type[ValueError] = ArgumentError,
) -> None:
    """Refuse what is no whole number, or one below ``least`` or above ``most``.

    >>> check_whole("runs", 3.5)
    Traceback (most recent call last):
    maxmean.mev.errors.ArgumentError: runs must be a whole number, not 3.5
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise error(f"{what} must be a whole number, not {value!r}")
    if (least is not None and value < least) or (most is not None and value > most):
        bounds = (
            f"{least} or more"
            if most is None
            else f"at most {most:,}"
            if least is None
            else f"from {least} to {most:,}"
        )
        raise error(f"{what} must be {bounds}, not {_shown(int(value))}")


def _shown(value: int) -> str:
    """A whole number, unless Python refuses to write so many digits."""
    return str(value) if value.bit_length() < 1000 else "a number of hundreds of digits"


def check_number(what: str, value: object, *, error: type[ValueError] = ArgumentError) -> None:
    """Refuse what is no real number; nan and infinities are.

    >>> check_number("the discount", "high")
    Traceback (most recent call last):
    maxmean.mev.errors.ArgumentError: the discount must be a number, not 'high'
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise error(f"{what} must be a number, not {value!r}")


def check_level(level: float) -> None:
    """Refuse what is no confidence level."""
    check_number("level", level)
    if not 0 < level < 1:
        raise ArgumentError(f"level must lie between 0 and 1, not {level}")
