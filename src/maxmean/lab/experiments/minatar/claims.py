"""The paper's claims about MinAtar (D1-D7), judged from what was measured in the last tenth of training.

A claim about several games has its margins in every game that was run. Where a claim needs a game or a learning rate that
was not run, it stays undecided and says so. An interval is over all seeds that a variant was run with, and variants may have
different ones; where several variants are averaged, which goes seed by seed, it is over those that all of them have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ...claims import Claim, Finding, Measured
from .variants import ADAPTIVE, ALPHAS, MIDDLE_RATE, SLOWLY_ADAPTIVE, SMALLEST_RATE, VARIANTS, middle_rate, power

if TYPE_CHECKING:
    import pandas as pd

    from ...experiment import Results

UNBIASED = 0.1
"""A bias counts as near zero when it is below this share of the mean predicted value."""
COMPARABLE = 0.15
"""Returns count as comparable when they differ by less than this share of the game's best."""
ROBUST = 1 - 2 * COMPARABLE
"""An agent counts as robust when it keeps this share of the best return everywhere."""
ROBUST_AGENTS = ("ke-bdqn", ADAPTIVE)
"""Those that the paper says are."""


class NotRunError(Exception):
    """A claim speaks of something that the study at hand does not have."""


class Ends:
    """One number a seed: what a column was in the last tenth of the training, for the paper's variants."""

    def __init__(self, results: Results[Any]) -> None:
        self.settings = results.settings
        late = results.table[results.table["step"] > 0.9 * results.settings.steps]
        self.means = (
            late[late["variant"].isin(VARIANTS)]
            .groupby(["game", "learning_rate", "variant", "seed"])[["test_return", "bias", "value", "alpha"]]
            .mean()
        )

    @property
    def games(self) -> Sequence[str]:
        return [str(game) for game in self.settings.games]

    def variants(self, game: str, rate: float | None = None) -> list[str]:
        """The paper's variants that were run on this game, with the rate that is judged unless another is given."""
        here = self.rate if rate is None else rate
        return [name for name in VARIANTS if (game, here, name) in self._run]

    def rates(self, game: str) -> list[float]:
        """The learning rates that some variant was run with on this game, the smallest first."""
        return sorted({rate for own, rate, _ in self._run if own == game})

    @cached_property
    def _run(self) -> set[tuple[str, float, str]]:
        return {*self.means.index.droplevel("seed")}

    @property
    def rate(self) -> float:
        return middle_rate(self.settings.learning_rates)

    def __call__(self, column: str, game: str, variant: str, rate: float | None = None) -> np.ndarray:
        found = self.means.loc[(game, self.rate if rate is None else rate, variant)]
        return np.asarray(found[column], dtype=float)

    def shares(self, column: str, *variants: str) -> list[np.ndarray]:
        """For each game the mean over the variants, by seed, in units of the game's best variant."""
        found = []
        for game in self.games:
            best = max(self(column, game, name).mean() for name in self.variants(game))
            if not best > 0:
                raise NotRunError(f"No variant has a return above zero on {game}.")
            columns = [self.means.loc[(game, self.rate, name)][column] for name in variants]
            if not (seeds := sorted(set.intersection(*({*each.index} for each in columns)))):
                raise NotRunError(f"No seed was run with all of {_listed(variants)} on {game}.")
            found.append(np.mean([each.loc[seeds] for each in columns], axis=0) / best)
        return found

    def seeds_note(self, names: Sequence[str], games: Sequence[str] = ()) -> str:
        """Which of these variants have other numbers of seeds than the study, as a sentence; with the rate that is judged."""
        rows = self.means.reset_index()
        rows = rows[rows["variant"].isin(names) & rows["game"].isin(games or self.games)]
        others = other_seeds(rows[rows["learning_rate"] == self.rate], self.settings.seeds)
        return f" Over {self.settings.seeds} seeds; with {power(self.rate)}, {others}." if others else ""


def mean_over_games(shares: Sequence[np.ndarray], minus: Sequence[np.ndarray] = ()) -> Measured:
    """The mean over games of what was measured by seed in each, less another such mean, with Welch's interval.

    Runs on two games are independent, and each game may have its own number of seeds.
    """
    parts = [(sign / len(each), values) for sign, each in ((1, shares), (-1, minus)) for values in each]
    value = sum(weight * values.mean() for weight, values in parts)
    if min(len(values) for _, values in parts) < 2:
        return Measured(float(value), -math.inf, math.inf)
    squares = [weight**2 * values.var(ddof=1) / len(values) for weight, values in parts]
    if sum(squares) == 0:
        return Measured.exact(value)
    freedom = sum(squares) ** 2 / sum(s * s / (len(v) - 1) for s, (_, v) in zip(squares, parts, strict=True))
    return Measured.around(value, math.sqrt(sum(squares)), freedom)


def other_seeds(table: pd.DataFrame, usual: int) -> str:
    """Which variants of a table have other numbers of seeds than the usual one, in words."""
    found: dict[tuple[int, str], list[str]] = {}
    for (game, _, name), runs in table.groupby(["game", "learning_rate", "variant"]):
        if (count := runs["seed"].nunique()) != usual:
            found.setdefault((count, game), []).append(name)
    return "; ".join(
        f"{count} of {_listed([*dict.fromkeys(names)])} on {game}" for (count, game), names in found.items()
    )


def near_zero(bias: np.ndarray, scale: float) -> Measured:
    """How far the mean bias is inside a tenth of ``scale``; negative when it is outside."""
    found, allowed = Measured.mean(bias), UNBIASED * abs(scale)
    least = 0.0 if found.low <= 0 <= found.high else min(abs(found.low), abs(found.high))
    most = max(abs(found.low), abs(found.high))
    return Measured(allowed - abs(found.value), allowed - most, allowed - least)


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


@_from_what_was_run
def _d4(ends: Ends) -> Finding:
    margins, numbers = {}, {}
    fixed = [name for name in ends.variants(ends.games[0]) if not name.startswith("ada")]
    for name in fixed:
        outside = {}
        for game in ends.games:
            numbers[f"{game}: bias of {name}"] = Measured.mean(ends("bias", game, name))
            inside = near_zero(ends("bias", game, name), ends("value", game, name).mean())
            outside[game] = Measured(-inside.value, -inside.high, -inside.low)
        # One game where that is clear is enough; without one, the game that may be it decides.
        clear = {game: found.value for game, found in outside.items() if found.low > 0}
        possible = {game: found.high for game, found in outside.items()}
        worst = max(clear or possible, key=lambda game: (clear or possible)[game])
        margins[f"{name} is outside {UNBIASED:.0%} of its mean Q in some game ({worst})"] = outside[worst]
    note = f"Measured on {_listed(ends.games)}: with fewer games, an algorithm has fewer chances to be far from zero."
    return Finding(margins, numbers, note + ends.seeds_note(fixed))


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
    note = f"Measured on {_listed(ends.games)}."
    if few:
        note += f" Fewer than three learning rates on {_listed(few)}: robustness across them is not measured there."
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


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


CLAIMS = (
    Claim("D1", "DQN overestimates massively, DDQN less but still positively", "7.4", _d1),
    Claim("D2", "TE-BDQN: larger alpha, larger bias", "7.4", _d2),
    Claim(
        "D3",
        "Ada-TE-BDQN with step size 1e-4 is approximately unbiased; its alpha mostly rises and stays within [0.2, 0.4]",
        "7.4",
        _d3,
    ),
    Claim("D4", "no algorithm without adaptation converges reliably to zero bias", "7.4", _d4),
    Claim(
        "D5",
        "agents with heads are comparable to MaxMin DQN and above DQN, DDQN and SCDQN; KE-BDQN and Ada-TE-BDQN are robust",
        "7.4",
        _d5,
    ),
    Claim(
        "D6",
        "Space Invaders: KE-BDQN has the best return with negative bias; TE-BDQN(0.1) is lower in both",
        "7.4",
        _d6,
    ),
    Claim("D7", "Breakout: the smallest learning rate learns impractically slowly", "8", _d7),
)
