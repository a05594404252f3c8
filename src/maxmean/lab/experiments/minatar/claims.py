"""The paper's claims about MinAtar (D1-D7), judged from what was measured in the last tenth of training.

A claim about several games has its margins in every game that was run. Where a claim needs a game or a learning rate that
was not run, it stays undecided and says so. An interval is over all seeds that a variant was run with, and variants may have
different ones; where several variants are averaged, which goes seed by seed, it is over those that all of them have.

D3, D5, D6 and D7 are about the end of training: :mod:`.parts` has their parts as functions of runs of one length, and
:mod:`.lengths` says on which length each is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ...claims import Finding, Measured
from . import parts
from .ends import Ends, NotRunError, listed
from .lengths import Compare, judged_by_length, rivals, run_at_some_length
from .study import MinAtarStudy
from .variants import ADAPTIVE, ALPHAS, MIDDLE_RATE, SMALLEST_RATE, VARIANTS, power

if TYPE_CHECKING:
    from ...experiment import Results

ROBUST_AGENTS = ("ke-bdqn", ADAPTIVE)
"""Those that the paper says are."""


def from_what_was_run(judge: Callable[[Ends], Finding]) -> Callable[[Results[Any]], Finding]:
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
@from_what_was_run
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
@from_what_was_run
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
@from_what_was_run
def _d3(ends: Ends) -> Finding:
    return judged_by_length(ends, [partial(parts.adapted, game=game) for game in ends.games], parts.adaptive_numbers)


@MinAtarStudy.claim("D4", "no algorithm without adaptation converges reliably to zero bias", "7.4")
@from_what_was_run
def _d4(ends: Ends) -> Finding:
    margins, numbers = {}, {}
    fixed = [name for name in ends.variants(ends.games[0]) if not name.startswith("ada")]
    for name in fixed:
        inside = {}
        for game in ends.games:
            numbers[f"{game}: bias of {name}"] = Measured.mean(ends("bias", game, name))
            inside[game] = parts.near_zero(ends("bias", game, name), ends("value", game, name).mean())
        worst = min(inside, key=lambda game: inside[game].value)
        outside = -Measured.least([*inside.values()])  # one game is enough, and was looked for
        margins[f"{name} is outside {parts.UNBIASED:.0%} of its mean Q in some game ({worst})"] = outside
    note = f"Measured on {listed(ends.games)}: with fewer games, an algorithm has fewer chances to be far from zero."
    return Finding(margins, numbers, note + ends.seeds_note(fixed))


@MinAtarStudy.claim(
    "D5",
    "agents with heads are comparable to MaxMin DQN and above DQN, DDQN and SCDQN; KE-BDQN and Ada-TE-BDQN are robust",
    "7.4",
)
@from_what_was_run
def _d5(ends: Ends) -> Finding:
    compared: list[Compare] = [parts.heads_above]
    note, few = f"Measured on {listed(ends.games)}.", []
    for game in ends.games:
        rates = sorted({rate for own in ends.lengths for rate in own.rates(game)})
        run = {rate: run_at_some_length(ends, game, rate) for rate in rates}
        for rate in rates:
            if run[rate] - {*ROBUST_AGENTS}:  # there is another to compare them with
                compared += _robust_parts(ends, game, rate)
        if sum({*ROBUST_AGENTS} < names for names in run.values()) < 3:
            few.append(game)
    if few:
        note += f" Fewer than three learning rates on {listed(few)}: robustness across them is not measured there."
    for game in ends.games:
        note += _fewer(ends, game, ends.rates(game))
    return judged_by_length(ends, compared, parts.mean_shares, note + ends.seeds_note(VARIANTS))


def _robust_parts(ends: Ends, game: str, rate: float) -> list[Compare]:
    return [
        partial(parts.robust, game=game, rate=rate, name=name, others=others)
        for name in ROBUST_AGENTS
        for others in rivals(ends, game, name, rate)
    ]


@MinAtarStudy.claim(
    "D6", "Space Invaders: KE-BDQN has the best return with negative bias; TE-BDQN(0.1) is lower in both", "7.4"
)
@from_what_was_run
def _d6(ends: Ends) -> Finding:
    if parts.INVADERS not in ends.games:
        raise NotRunError("Space Invaders is not among the games that were run.")
    above = [partial(parts.above, others=others) for others in rivals(ends, parts.INVADERS, "ke-bdqn")]
    return judged_by_length(ends, [*above, parts.negative_bias, parts.lower], parts.invaders_numbers)


@MinAtarStudy.claim("D7", "Breakout: the smallest learning rate learns impractically slowly", "8")
@from_what_was_run
def _d7(ends: Ends) -> Finding:
    rates = {power(rate): rate for own in ends.lengths for rate in own.rates(parts.BREAKOUT)}
    slow = rates.get(power(SMALLEST_RATE), ends.rate)
    names = [name for name in VARIANTS if any(_with_both(own, name, slow) for own in ends.lengths)]
    if slow == ends.rate or power(ends.rate) != power(MIDDLE_RATE) or not names:
        raise NotRunError("No variant was run on Breakout with both 10^-4.5 and 10^-5.")
    compared = [partial(parts.slower, slow=slow, name=name) for name in names]
    note = _fewer(ends, parts.BREAKOUT, [slow]) + ends.seeds_note(names, [parts.BREAKOUT])
    return judged_by_length(ends, compared, partial(parts.rate_numbers, slow=slow, names=names), note)


def _with_both(ends: Ends, name: str, slow: float) -> bool:
    return all(name in ends.variants(parts.BREAKOUT, rate) for rate in (slow, ends.rate))


def _fewer(ends: Ends, game: str, rates: Iterable[float]) -> str:
    """With which learning rates only some of a game's variants were run, in words."""
    run = {rate: len(ends.variants(game, rate)) for rate in rates}
    return "".join(
        f" With {power(rate)}, {count} of {len(ends.variants(game))} variants were run on {game}."
        for rate, count in run.items()
        if count < len(ends.variants(game))
    )
