"""The paper's claims about MinAtar (D1-D7), judged from what was measured in the last tenth of training.

A claim about several games has its margins in every game that was run. Where a claim needs a game or a learning rate that
was not run, it stays undecided and says so. An interval is over all seeds that a variant was run with, and variants may have
different ones; where several variants are averaged, which goes seed by seed, it is over those that all of them have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ...claims import Finding, Measured
from .ends import Ends, NotRunError, listed, mean_over_games
from .study import MinAtarStudy
from .variants import ADAPTIVE, ALPHAS, MIDDLE_RATE, SLOWLY_ADAPTIVE, SMALLEST_RATE, VARIANTS, power

if TYPE_CHECKING:
    from ...experiment import Results

UNBIASED = 0.1
"""A bias counts as near zero when it is below this share of the mean predicted value."""
COMPARABLE = 0.15
"""Returns count as comparable when they differ by less than this share of the game's best."""
ROBUST = 1 - 2 * COMPARABLE
"""An agent counts as robust when it keeps this share of the best return everywhere."""
ROBUST_AGENTS = ("ke-bdqn", ADAPTIVE)
"""Those that the paper says are."""


def near_zero(bias: np.ndarray, scale: float) -> Measured:
    """How far the mean bias is inside a tenth of ``scale``; negative when it is outside."""
    found, allowed = Measured.mean(bias), UNBIASED * abs(scale)
    least = 0.0 if found.low <= 0 <= found.high else min(abs(found.low), abs(found.high))
    most = max(abs(found.low), abs(found.high))
    return Measured(allowed - abs(found.value), allowed - most, allowed - least, found.freedom)


def _from_what_was_run(judge: Callable[[Ends], Finding]) -> Callable[[Results[Any]], Finding]:
    """A judge of results, which stays undecided and says why where something was not run."""

    def judged(results: Results[Any]) -> Finding:
        try:
            ends = Ends(results)
            run = min(len(ends.variants(game)) for game in ends.games)
            if run < len(VARIANTS):
                raise NotRunError(f"{run} of the paper's {len(VARIANTS)} variants were run with {power(ends.rate)}.")
            return judge(ends)
        except NotRunError as error:
            return Finding({}, note=str(error))

    return judged


@MinAtarStudy.claim("D1", "DQN overestimates massively, DDQN less but still positively", "7.4")
@_from_what_was_run
def _d1(ends: Ends) -> Finding:
    margins, numbers = {}, {}
    for game in ends.games:
        dqn, ddqn = (ends("bias", game, name) for name in ("dqn", "ddqn"))
        margins[f"{game}: bias of DQN is positive"] = Measured.mean(dqn)
        margins[f"{game}: bias of DDQN is positive"] = Measured.mean(ddqn)
        margins[f"{game}: DQN's bias is larger"] = Measured.difference(dqn, ddqn)
        for name in ("dqn", "ddqn"):
            share = ends("bias", game, name) / ends("value", game, name)
            numbers[f"{game}: bias of {name} as a share of its mean Q"] = Measured.mean(share)
    return Finding(margins, numbers, ends.seeds_note(("dqn", "ddqn")).strip())


@MinAtarStudy.claim("D2", "TE-BDQN: larger alpha, larger bias", "7.4")
@_from_what_was_run
def _d2(ends: Ends) -> Finding:
    margins, numbers = {}, {}
    for game in ends.games:
        biases = {alpha: ends("bias", game, f"te-bdqn({alpha})") for alpha in ALPHAS}
        for alpha, values in biases.items():
            numbers[f"{game}: bias of TE-BDQN({alpha})"] = Measured.mean(values)
        for low, high in pairwise(ALPHAS):
            margins[f"{game}: alpha {high} above alpha {low}"] = Measured.difference(biases[high], biases[low])
    return Finding(margins, numbers, ends.seeds_note([f"te-bdqn({alpha})" for alpha in ALPHAS]).strip())


@MinAtarStudy.claim(
    "D3",
    "Ada-TE-BDQN with step size 1e-4 is approximately unbiased; its alpha mostly rises and stays within [0.2, 0.4]",
    "7.4",
)
@_from_what_was_run
def _d3(ends: Ends) -> Finding:
    margins, numbers = {}, {}
    for game in ends.games:
        bias, value, alpha = (ends(name, game, ADAPTIVE) for name in ("bias", "value", "alpha"))
        margins[f"{game}: |bias| below {UNBIASED:.0%} of the mean Q"] = near_zero(bias, value.mean())
        margins[f"{game}: alpha ends above its start of 0.25"] = Measured.mean(alpha - 0.25)
        margins[f"{game}: alpha ends above 0.2"] = Measured.mean(alpha - 0.2)
        margins[f"{game}: alpha ends below 0.4"] = Measured.mean(0.4 - alpha)
        numbers[f"{game}: bias"] = Measured.mean(bias)
        numbers[f"{game}: bias with step size 1e-5"] = Measured.mean(ends("bias", game, SLOWLY_ADAPTIVE))
        numbers[f"{game}: final alpha"] = Measured.mean(alpha)
    return Finding(margins, numbers)


@MinAtarStudy.claim("D4", "no algorithm without adaptation converges reliably to zero bias", "7.4")
@_from_what_was_run
def _d4(ends: Ends) -> Finding:
    margins, numbers = {}, {}
    fixed = [name for name in ends.variants(ends.games[0]) if not name.startswith("ada")]
    for name in fixed:
        outside = {}
        for game in ends.games:
            numbers[f"{game}: bias of {name}"] = Measured.mean(ends("bias", game, name))
            inside = near_zero(ends("bias", game, name), ends("value", game, name).mean())
            outside[game] = Measured(-inside.value, -inside.high, -inside.low, inside.freedom)
        # One game where that is clear is enough; without one, the game that may be it decides.
        clear = {game: found.value for game, found in outside.items() if found.low > 0}
        possible = {game: found.high for game, found in outside.items()}
        worst = max(clear or possible, key=lambda game: (clear or possible)[game])
        margins[f"{name} is outside {UNBIASED:.0%} of its mean Q in some game ({worst})"] = outside[worst]
    note = f"Measured on {listed(ends.games)}: with fewer games, an algorithm has fewer chances to be far from zero."
    return Finding(margins, numbers, note + ends.seeds_note(fixed))


@MinAtarStudy.claim(
    "D5",
    "agents with heads are comparable to MaxMin DQN and above DQN, DDQN and SCDQN; KE-BDQN and Ada-TE-BDQN are robust",
    "7.4",
)
@_from_what_was_run
def _d5(ends: Ends) -> Finding:
    names = ends.variants(ends.games[0])
    score = {name: ends.shares("test_return", name) for name in names}
    numbers = {f"return of {name}, mean share of each game's best": mean_over_games(score[name]) for name in names}
    heads = ends.shares("test_return", *(name for name in names if "bdqn" in name))
    maxmin = ends.shares("test_return", *(name for name in names if name.startswith("maxmin")))
    margins = {
        f"heads, on average, above {name}": mean_over_games(heads, score[name])
        for name in names
        if "bdqn" not in name and not name.startswith("maxmin")
    }
    margins[f"heads at most {COMPARABLE} below MaxMin"] = _moved(mean_over_games(heads, maxmin), COMPARABLE)
    few = []
    for game in ends.games:
        found = [_robust(ends, game, rate) for rate in ends.rates(game)]
        margins |= {name: margin for each in found for name, margin in each.items()}
        if sum(len(each) == len(ROBUST_AGENTS) for each in found) < 3:
            few.append(game)
    note = f"Measured on {listed(ends.games)}."
    if few:
        note += f" Fewer than three learning rates on {listed(few)}: robustness across them is not measured there."
    for game in ends.games:
        note += _fewer(ends, game, ends.rates(game))
    return Finding(margins, numbers, note + ends.seeds_note(names))


def _robust(ends: Ends, game: str, rate: float) -> dict[str, Measured]:
    """How far the agents that are said to be robust are from failing here, if there is another to compare them with."""
    if not {*ends.variants(game, rate)} - {*ROBUST_AGENTS}:
        return {}
    values = {name: ends("test_return", game, name, rate) for name in ends.variants(game, rate)}
    best = max(values, key=lambda name: values[name].mean())
    where = game if rate == ends.rate else f"{game} with {power(rate)}"
    return {
        f"{where}: {name} keeps {ROBUST:.0%} of the best return ({best})": Measured.difference(
            values[name], ROBUST * values[best]
        )
        for name in ROBUST_AGENTS
        if name in values
    }


@MinAtarStudy.claim(
    "D6", "Space Invaders: KE-BDQN has the best return with negative bias; TE-BDQN(0.1) is lower in both", "7.4"
)
@_from_what_was_run
def _d6(ends: Ends) -> Finding:
    game = "space_invaders"
    if game not in ends.games:
        raise NotRunError("Space Invaders is not among the games that were run.")
    returns = {name: ends("test_return", game, name) for name in ends.variants(game)}
    rival = max((name for name in returns if name != "ke-bdqn"), key=lambda name: returns[name].mean())
    biases = {name: ends("bias", game, name) for name in ("ke-bdqn", "te-bdqn(0.1)")}
    margins = {
        f"KE-BDQN's return above the best other's ({rival})": Measured.difference(returns["ke-bdqn"], returns[rival]),
        "KE-BDQN's bias is negative": Measured.mean(-biases["ke-bdqn"]),
        "TE-BDQN(0.1)'s bias is lower": Measured.difference(biases["ke-bdqn"], biases["te-bdqn(0.1)"]),
        "TE-BDQN(0.1)'s return is lower": Measured.difference(returns["ke-bdqn"], returns["te-bdqn(0.1)"]),
    }
    numbers = {f"return of {name}": Measured.mean(values) for name, values in returns.items()}
    return Finding(margins, numbers | {f"bias of {name}": Measured.mean(values) for name, values in biases.items()})


@MinAtarStudy.claim("D7", "Breakout: the smallest learning rate learns impractically slowly", "8")
@_from_what_was_run
def _d7(ends: Ends) -> Finding:
    game = "breakout"
    slow = next((rate for rate in ends.rates(game) if power(rate) == power(SMALLEST_RATE)), ends.rate)
    names = [name for name in ends.variants(game) if name in ends.variants(game, slow)]
    if slow == ends.rate or power(ends.rate) != power(MIDDLE_RATE) or not names:
        raise NotRunError("No variant was run on Breakout with both 10^-4.5 and 10^-5.")
    margins, numbers = {}, {}
    for name in names:
        usual, slowly = (ends("test_return", game, name, rate) for rate in (ends.rate, slow))
        margins[f"{name}: less than half of the return at 10^-4.5"] = Measured.difference(0.5 * usual, slowly)
        for rate, returns in ((slow, slowly), (ends.rate, usual)):
            numbers[f"{name}: return at {power(rate)}"] = Measured.mean(returns)
            numbers[f"{name}: bias at {power(rate)}"] = Measured.mean(ends("bias", game, name, rate))
    return Finding(margins, numbers, (_fewer(ends, game, [slow]) + ends.seeds_note(names, [game])).strip())


def _fewer(ends: Ends, game: str, rates: Iterable[float]) -> str:
    """With which learning rates only some of a game's variants were run, in words."""
    run = {rate: len(ends.variants(game, rate)) for rate in rates}
    return "".join(
        f" With {power(rate)}, {count} of {len(ends.variants(game))} variants were run on {game}."
        for rate, count in run.items()
        if count < len(ends.variants(game))
    )


def _moved(number: Measured, by: float) -> Measured:
    return Measured(number.value + by, number.low + by, number.high + by)
