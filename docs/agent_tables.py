"""Tables of MinAtar's agents for several pages: returns, biases, and how both change with alpha and the learning rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from page_parts import as_table, game_title, with_interval

from maxmean.lab.experiment import Results
from maxmean.lab.experiments.minatar.ends import Ends, mean_over_games
from maxmean.lab.experiments.minatar.parts import UNBIASED
from maxmean.lab.experiments.minatar.variants import ADAPTIVE, ALPHAS, VARIANTS, power


def agent_table(study: Results[Any], ends: Ends) -> str:
    """Every agent in one line: what it gets, how far its values are off, and how often they are right."""
    near = often_near_zero(study, ends.rate)
    shares = {name: mean_over_games(ends.shares("test_return", name)) for name in VARIANTS}
    rows = [
        [f"`{name}`", with_interval(shares[name], "share"), _range(ends, name), f"{near[name]:.0%}"]
        for name in sorted(VARIANTS, key=lambda name: -shares[name].value)
    ]
    return as_table(["agent", "return, share of the best", "bias, share of mean Q", "near zero"], rows)


def _range(ends: Ends, name: str) -> str:
    """The bias as a share of the mean value in the game where it is lowest, and where it is highest."""
    shares = [ends("bias", game, name).mean() / ends("value", game, name).mean() for game in ends.games]
    return f"{min(shares):+.0%} to {max(shares):+.0%}"


def alpha_table(ends: Ends) -> str:
    """TE-BDQN's bias by alpha, and BDQN's, whose heads have Double DQN's target."""
    names = [*(f"te-bdqn({alpha})" for alpha in ALPHAS), "bdqn"]
    rows = [
        [game_title(game), *(with_interval(ends("bias", game, name), "bias") for name in names)] for game in ends.games
    ]
    return as_table(["bias", f"alpha {ALPHAS[0]}", *map(str, ALPHAS[1:]), "BDQN"], rows)


def alphas_table(ends: Ends) -> str:
    """TE-BDQN's mean value and return by alpha, and BDQN's."""
    names = [*(f"te-bdqn({alpha})" for alpha in ALPHAS), "bdqn"]
    rows = []
    for game in ends.games:
        for title, column in (("mean Q", "value"), ("return", "test_return")):
            rows.append(
                [f"{game_title(game)}, {title}", *(with_interval(ends(column, game, name), column) for name in names)]
            )
    return as_table(["TE-BDQN", f"alpha {ALPHAS[0]}", *map(str, ALPHAS[1:]), "BDQN"], rows)


def return_table(ends: Ends, names: Sequence[str] = VARIANTS) -> str:
    """The agents' returns, the best on average first; the best of a game is that of the paper's."""
    shares = {name: mean_over_games(ends.shares("test_return", name)) for name in names}
    rows = [
        [
            f"`{name}`",
            *(with_interval(ends("test_return", game, name), "test_return") for game in ends.games),
            with_interval(shares[name], "share"),
        ]
        for name in sorted(names, key=lambda name: -shares[name].value)
    ]
    return as_table(["return", *map(game_title, ends.games), "of the best"], rows)


def bias_table(study: Results[Any], ends: Ends, names: Sequence[str] = VARIANTS) -> str:
    """The agents' biases, and how often they are near zero: the one that is most often so first."""
    near = often_near_zero(study, ends.rate)
    rows = [
        [f"`{name}`", *(with_interval(ends("bias", game, name), "bias") for game in ends.games), f"{near[name]:.0%}"]
        for name in sorted(names, key=lambda name: -near[name])
    ]
    return as_table(["bias", *map(game_title, ends.games), "near zero"], rows)


def rate_table(ends: Ends) -> str:
    """Return and bias by learning rate of the agents that were run with several, and the alpha that Ada-TE ended with."""
    rates = sorted({rate for game in ends.games for rate in ends.rates(game)})
    rows = []
    for game in ends.games:
        run = {rate: ends.variants(game, rate) for rate in ends.rates(game)}
        several = [name for name in VARIANTS if sum(name in names for names in run.values()) > 1]
        adaptive = [name for name in several if name == ADAPTIVE]
        for title, column, names in (
            ("return", "test_return", several),
            ("bias", "bias", several),
            ("alpha", "alpha", adaptive),
        ):
            for name in names:
                cells = [
                    with_interval(ends(column, game, name, rate), column) if name in run.get(rate, ()) else ""
                    for rate in rates
                ]
                rows.append([f"{game_title(game)}, {title} of `{name}`", *cells])
    return as_table(["learning rate", *map(power, rates)], rows)


def often_near_zero(study: Results[Any], rate: float) -> dict[str, float]:
    """By agent, the share of the tenths of its runs in which the bias is small beside the mean value; each game counts alike."""
    table = study.table[study.table["learning_rate"] == rate]
    tenth = np.ceil(10 * table["step"] / study.settings.steps)
    means = table.assign(tenth=tenth).groupby(["variant", "game", "seed", "tenth"])[["bias", "value"]].mean()
    near = means["bias"].abs() < UNBIASED * means["value"].abs()
    by_game = near.groupby(["variant", "game"]).mean()
    return {str(name): float(share) for name, share in by_game.groupby("variant").mean().items()}
