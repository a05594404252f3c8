"""What was measured at the end of training, by game, learning rate, variant and seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...claims import Measured
from .variants import VARIANTS, middle_rate, power

if TYPE_CHECKING:
    import pandas as pd

    from ...experiment import Results

LAST = 0.1
"""The share of the training that counts as its end."""


def at_the_end(results: Results[Any]) -> pd.DataFrame:
    """The rows of the last tenth of the training."""
    return results.table[results.table["step"] > (1 - LAST) * results.settings.steps]


class NotRunError(Exception):
    """A claim speaks of something that the study at hand does not have."""


class Ends:
    """One number a seed: what a column was in the last tenth of the training. Lists of variants are of the paper's.

    All runs have the study's number of steps. Those of each larger number are ``longer``, the most steps first; there, a variant
    counts as run once it has as many seeds as the study.
    """

    def __init__(self, results: Results[Any], least_seeds: int = 1) -> None:
        self.settings = results.settings
        self.least_seeds = least_seeds
        late = at_the_end(results)
        self.means = late.groupby(["game", "learning_rate", "variant", "seed"])[
            ["test_return", "bias", "value", "alpha"]
        ].mean()
        self.longer = [
            Ends(replace(results, settings=own, table=table, apart={}), self.settings.seeds)
            for own, table in sorted(results.apart.items(), key=lambda each: -each[0].steps)
            if own.steps > self.settings.steps
        ]

    @property
    def lengths(self) -> Sequence[Ends]:
        """What was measured at the end of runs of each length, the longest first; the last is the study's own."""
        return [*self.longer, self]

    @property
    def games(self) -> Sequence[str]:
        return [str(game) for game in self.settings.games]

    def variants(self, game: str, rate: float | None = None) -> list[str]:
        """The paper's variants that were run on this game, with the rate that is judged unless another is given."""
        here = self.rate if rate is None else rate
        return [name for name in VARIANTS if (game, here, name) in self._run]

    def rates(self, game: str) -> list[float]:
        """The learning rates that some variant was run with on this game, the smallest first."""
        return sorted({rate for own, rate, name in self._run if own == game and name in VARIANTS})

    def games_with(self, *names: str) -> list[str]:
        """The games that all of these, the paper's or not, were run on with the rate that is judged."""
        return [game for game in self.games if all((game, self.rate, name) in self._run for name in names)]

    @cached_property
    def _run(self) -> dict[tuple[str, float, str], pd.DataFrame]:
        """The means of each game, learning rate and variant that was run, by seed."""
        keys = ["game", "learning_rate", "variant"]
        return {
            run: rows.droplevel(keys) for run, rows in self.means.groupby(level=keys) if len(rows) >= self.least_seeds
        }

    @property
    def rate(self) -> float:
        return middle_rate(self.settings.learning_rates)

    def __call__(self, column: str, game: str, variant: str, rate: float | None = None) -> np.ndarray:
        where = game, self.rate if rate is None else rate, variant
        if where not in self._run:
            raise NotRunError(
                f"{variant} was not run on {game} with {power(where[1])} for {self.settings.steps:,} steps."
            )
        return np.asarray(self._run[where][column], dtype=float)

    def shares(self, column: str, *variants: str) -> list[np.ndarray]:
        """For each game the mean over the variants, by seed, in units of the best of all fifteen."""
        found = []
        for game in self.games:
            if (run := len(self.variants(game))) < len(VARIANTS):
                raise NotRunError(f"{run} of the paper's {len(VARIANTS)} variants were run on {game}.")
            best = max(self(column, game, name).mean() for name in self.variants(game))
            if not best > 0:
                raise NotRunError(f"No variant has a return above zero on {game}.")
            columns = [self._run[game, self.rate, name][column] for name in variants]
            if not (seeds := sorted(set.intersection(*({*each.index} for each in columns)))):
                raise NotRunError(f"No seed was run with all of {listed(variants)} on {game}.")
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
        f"{count} of {listed([*dict.fromkeys(names)])} on {game}" for (count, game), names in found.items()
    )


def listed(names: Sequence[str]) -> str:
    return ", ".join(names)
