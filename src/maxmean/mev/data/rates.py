"""Rates with the number of trials: the successes behind them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import DataError


def successes_of(
    rates: np.ndarray, trials: np.ndarray, column: str, rows: Sequence[int]
) -> tuple[np.ndarray, str | None]:
    """Rate times trials, a whole number up to the digits that the rates have; a sentence if several numbers would do.

    >>> successes_of(np.array([0.333]), np.array([9.0]), "rate", [1])
    (array([3.]), None)
    """
    outside = np.flatnonzero((rates < 0) | (rates > 1))
    if outside.size:
        k = outside[0]
        raise DataError(
            f"row {rows[k]}: column {column!r} holds {rates[k]:g}, and a rate lies between 0 and 1; write percent as 12.5%"
        )
    successes = np.rint(rates * trials)
    half = 0.5000001 * 10.0 ** -max(map(_digits, rates.tolist())) * trials
    wrong = np.flatnonzero(np.abs(rates * trials - successes) > half + 1e-6)
    if wrong.size:
        k = wrong[0]
        raise DataError(
            f"row {rows[k]}: {rates[k]:.12g} of {trials[k]:g} trials is no whole number of successes: if column {column!r} "
            "holds means, give their standard errors too (--mean, --se)"
        )
    rough = np.flatnonzero(half > 0.5)
    if not rough.size:
        return successes, None
    k = rough[0]
    about = f"{successes[k]:,.0f} successes, give or take {half[k]:,.0f}"
    return successes, f"{rates[k]:.12g} of {trials[k]:,.0f} was read as {about}"


def _digits(rate: float) -> int:
    """Decimal places that a number is written with.

    >>> [_digits(rate) for rate in (0.1796, 0.5, 1.0)]
    [4, 1, 0]
    """
    return len(f"{rate:.14f}".rstrip("0").partition(".")[2])
