"""What the claims about the end of training compare, each from runs of one length: D3, D5, D6 and D7, part by part.

A function here does not know which length it is given. It raises NotRunError where one of the runs that it compares is missing;
functions of numbers leave out what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...claims import Measured
from .ends import Ends, mean_over_games
from .variants import ADAPTIVE, SLOWLY_ADAPTIVE, VARIANTS, power

ALPHA_RANGE = (0.2, 0.4)
"""Where the paper's adaptive agents keep their alpha, by D3."""
UNBIASED = 0.1
"""A bias counts as near zero when it is below this share of the mean predicted value."""
COMPARABLE = 0.15
"""Returns count as comparable when they differ by less than this share of the game's best."""
ROBUST = 1 - 2 * COMPARABLE
"""An agent counts as robust when it keeps this share of the best return everywhere."""
INVADERS, BREAKOUT = "space_invaders", "breakout"
"""The games that D6 and D7 are about."""
LOWEST = "te-bdqn(0.1)"
"""Whose bias D6 says is lower than KE-BDQN's, and its return."""


def near_zero(bias: np.ndarray, scale: float) -> Measured:
    """How far the mean bias is inside a tenth of ``scale``; negative when it is outside."""
    found, allowed = Measured.mean(bias), UNBIASED * abs(scale)
    least = 0.0 if found.low <= 0 <= found.high else min(abs(found.low), abs(found.high))
    most = max(abs(found.low), abs(found.high))
    return Measured(allowed - abs(found.value), allowed - most, allowed - least, found.freedom)


def adapted(ends: Ends, game: str) -> dict[str, Measured]:
    """D3: how near to zero the bias is that alpha led to, and where alpha ends."""
    bias, value, alpha = (ends(name, game, ADAPTIVE) for name in ("bias", "value", "alpha"))
    least, most = ALPHA_RANGE
    return {
        f"{game}: |bias| below {UNBIASED:.0%} of the mean Q": near_zero(bias, value.mean()),
        f"{game}: alpha ends above its start of 0.25": Measured.mean(alpha - 0.25),
        f"{game}: alpha ends above {least}": Measured.mean(alpha - least),
        f"{game}: alpha ends below {most}": Measured.mean(most - alpha),
    }


def adaptive_numbers(ends: Ends) -> dict[str, Measured]:
    """D3: the bias with both step sizes, the mean Q that it is compared with, and alpha."""
    numbers = {}
    for game in ends.games:
        for name, said in ((ADAPTIVE, ""), (SLOWLY_ADAPTIVE, " with step size 1e-5")):
            if name in ends.variants(game):
                numbers[f"{game}: bias{said}"] = Measured.mean(ends("bias", game, name))
        if ADAPTIVE in ends.variants(game):
            numbers[f"{game}: mean Q"] = Measured.mean(ends("value", game, ADAPTIVE))
            numbers[f"{game}: final alpha"] = Measured.mean(ends("alpha", game, ADAPTIVE))
    return numbers


def heads_above(ends: Ends) -> dict[str, Measured]:
    """D5: how far the agents with heads are above the others on average, which takes all fifteen agents on all games."""
    heads = ends.shares("test_return", *(name for name in VARIANTS if "bdqn" in name))
    maxmin = ends.shares("test_return", *(name for name in VARIANTS if name.startswith("maxmin")))
    margins = {
        f"heads, on average, above {name}": mean_over_games(heads, ends.shares("test_return", name))
        for name in VARIANTS
        if "bdqn" not in name and not name.startswith("maxmin")
    }
    gap = mean_over_games(heads, maxmin)
    comparable = Measured(gap.value + COMPARABLE, gap.low + COMPARABLE, gap.high + COMPARABLE, gap.freedom)
    return margins | {f"heads at most {COMPARABLE} below MaxMin": comparable}


def mean_shares(ends: Ends) -> dict[str, Measured]:
    """D5: every agent's return beside the best of each game, which takes all of them too."""
    if any(len(ends.variants(game)) < len(VARIANTS) for game in ends.games):
        return {}
    return {
        f"return of {name}, mean share of each game's best": mean_over_games(ends.shares("test_return", name))
        for name in VARIANTS
    }


def robust(ends: Ends, game: str, rate: float, name: str, others: Sequence[str]) -> dict[str, Measured]:
    """D5: how far an agent that is said to be robust is from failing, beside the one of these others that comes nearest to it."""
    own, returns = (
        ends("test_return", game, name, rate),
        {each: ends("test_return", game, each, rate) for each in others},
    )
    best = max(returns, key=lambda each: returns[each].mean())
    where = game if rate == ends.rate else f"{game} with {power(rate)}"
    kept = f"{where}: {name} keeps {ROBUST:.0%} of the best of {_others(others)} ({best})"
    return {kept: Measured.least([Measured.difference(own, ROBUST * each) for each in returns.values()])}


def above(ends: Ends, others: Sequence[str]) -> dict[str, Measured]:
    """D6: how far KE-BDQN's return is above the best of these others'."""
    returns = {name: ends("test_return", INVADERS, name) for name in others}
    best = max(returns, key=lambda name: returns[name].mean())
    own = ends("test_return", INVADERS, "ke-bdqn")
    said = f"KE-BDQN's return above the best of {_others(others)} ({best})"
    return {said: Measured.least([Measured.difference(own, each) for each in returns.values()])}


def _others(names: Sequence[str]) -> str:
    return f"{len(names)} other{'s' * (len(names) > 1)}"


def negative_bias(ends: Ends) -> dict[str, Measured]:
    """D6: how far KE-BDQN's bias is below zero."""
    return {"KE-BDQN's bias is negative": Measured.mean(-ends("bias", INVADERS, "ke-bdqn"))}


def lower(ends: Ends) -> dict[str, Measured]:
    """D6: how far TE-BDQN(0.1) is below KE-BDQN, in both."""
    return {
        f"TE-BDQN(0.1)'s {said} is lower": Measured.difference(
            ends(column, INVADERS, "ke-bdqn"), ends(column, INVADERS, LOWEST)
        )
        for said, column in (("bias", "bias"), ("return", "test_return"))
    }


def invaders_numbers(ends: Ends) -> dict[str, Measured]:
    """D6: every agent's return, and the two biases."""
    run = ends.variants(INVADERS)
    numbers = {f"return of {name}": Measured.mean(ends("test_return", INVADERS, name)) for name in run}
    low = [name for name in ("ke-bdqn", LOWEST) if name in run]
    return numbers | {f"bias of {name}": Measured.mean(ends("bias", INVADERS, name)) for name in low}


def slower(ends: Ends, slow: float, name: str) -> dict[str, Measured]:
    """D7: how far an agent's return with the smallest rate is below half of its return with the middle one."""
    usual, slowly = (ends("test_return", BREAKOUT, name, rate) for rate in (ends.rate, slow))
    return {f"{name}: less than half of the return at 10^-4.5": Measured.difference(0.5 * usual, slowly)}


def rate_numbers(ends: Ends, slow: float, names: Sequence[str]) -> dict[str, Measured]:
    """D7: return and bias with both rates."""
    return {
        f"{name}: {said} at {power(rate)}": Measured.mean(ends(column, BREAKOUT, name, rate))
        for name in names
        for rate in (slow, ends.rate)
        for said, column in (("return", "test_return"), ("bias", "bias"))
        if name in ends.variants(BREAKOUT, rate)
    }
