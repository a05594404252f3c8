"""The figures of the MinAtar study: the paper's for each game, and where the bias sits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from ...aggregate import band
from ...figures import GREY, canvas, caption, colour_of, legend_below, line, logarithmic
from .ends import at_the_end, other_seeds
from .parts import ALPHA_RANGE
from .variants import COLUMNS, LABELS, PAIRED, middle_rate, power

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ...experiment import Results
    from .study import Settings

APART = 1.04
"""So far apart are the marks of two variants at one learning rate, as a factor."""
WIDTH = 11 / 3
"""Of a column, in inches."""
POINTS = 50
"""So many points a curve of longer runs has at most: single tests would hide one agent behind another."""
STYLES = ("-", "--", "-.")
"""Of longer runs, by learning rate and number of steps."""


def game_figure(results: Results[Settings], game: str) -> Figure:
    """The paper's figure of a game: final return by learning rate, then return, bias and alpha over time."""
    table = results.table[results.table["game"] == game]
    rates = sorted(table["learning_rate"].unique())
    middle = middle_rate(results.settings.learning_rates)
    columns = _columns(table)
    figure, axes = canvas(4, len(columns), width=WIDTH * len(columns), height=2.4, sharey="row")
    rng = np.random.default_rng(0)
    for column, labels in zip(axes.T, columns, strict=True):
        if labels:
            _final_returns(column[0], table, labels, rates, rng)
        else:
            column[0].set_axis_off()
        _over_time(column[1:], table[table["learning_rate"] == middle], labels, middle, rng)
    figure.suptitle(_title(results, table), fontsize=10)
    return figure


def rates_figure(results: Results[Settings], game: str) -> Figure:
    """The paper's figure of a game with the other learning rates: return, bias and alpha over time with each."""
    table = results.table[results.table["game"] == game]
    rates = sorted({*table["learning_rate"]} - {middle_rate(results.settings.learning_rates)})
    columns = _columns(table[table["learning_rate"].isin(rates)])
    figure, axes = canvas(3 * len(rates), len(columns), width=WIDTH * len(columns), height=2.4, sharey="row")
    rng = np.random.default_rng(0)
    for row, rate in enumerate(rates):
        for column, labels in zip(axes[3 * row : 3 * row + 3].T, columns, strict=True):
            _over_time(column, table[table["learning_rate"] == rate], labels, rate, rng)
    figure.suptitle(_title(results, table[table["learning_rate"].isin(rates)]), fontsize=10)
    return figure


def fifths_figure(results: Results[Settings]) -> Figure:
    """Where the bias sits: its mean at the end of training, by fifths of the predicted value."""
    games = results.settings.games
    last = at_the_end(results)
    last = last[last["learning_rate"] == middle_rate(results.settings.learning_rates)]
    columns = _columns(last)
    figure, axes = canvas(len(games), len(columns), width=WIDTH * len(columns), height=3.0, sharey="row")
    for row, game in enumerate(games):
        means = last[last["game"] == game].groupby("variant")[[f"bias_fifth_{i}" for i in range(5)]].mean()
        for ax, column in zip(axes[row], columns, strict=True):
            labels = [label for label in column if label in means.index]
            if not labels:
                ax.set_axis_off()
                continue
            for k, label in enumerate(labels):
                line(ax, range(1, 6), means.loc[label], label, k)
            ax.axhline(0, color=GREY, lw=0.8)
            ax.set_xticks(range(1, 6))
            caption(ax, f"{game}: bias", "fifth of the pairs, by predicted value")
            if row == len(games) - 1:  # below, where no line is
                ax.legend(frameon=False, fontsize=7, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return figure


def paired_figure(results: Results[Settings]) -> Figure:
    """The agents with the paired statistic, dashed, beside those without it: return, bias, and what is adapted over time.

    A point of return and bias is the mean of five successive tests.
    """
    table = results.table[results.table["learning_rate"] == middle_rate(results.settings.learning_rates)]
    paired = [LABELS[name] for name in PAIRED]
    labels = [label for star in paired for label in (star.replace("*", ""), star) if label in {*table["variant"]}]
    table = table[table["variant"].isin(labels)]
    games = paired_games(results)
    titles = {"test_return": "test return", "bias": "bias of Q", "alpha": "alpha", "scale": "scale of the kernel"}
    figure, axes = canvas(len(games), len(titles), width=13, height=2.4)
    rng = np.random.default_rng(0)
    for row, game in zip(axes, games, strict=True):
        for ax, (column, title) in zip(row, titles.items(), strict=True):
            adapted = column in ("alpha", "scale")
            for label in labels:
                own = table[(table["game"] == game) & (table["variant"] == label)]
                if len(own) and (not adapted or _adapts(own, column)):
                    steps, values = _curves(own, column, 1 if adapted else 5)
                    value, low, high = band([values], rng)
                    line(ax, steps, value, label, low=low, high=high)
            if column == "bias":
                ax.axhline(0, color=GREY, lw=0.8)
            caption(ax, f"{game}: {title}", "step" if game == games[-1] else "")
    legend_below(figure, max(axes[:, 0], key=lambda ax: len(ax.lines)), columns=4)
    figure.suptitle(
        "IQM, means of 5 tests, 95% bootstrap bands; dashed: with the covariances of the heads", fontsize=10
    )
    return figure


def paired_games(results: Results[Settings]) -> list[str]:
    """The games on which agents with the paired statistic were run with the learning rate that is judged."""
    judged = results.table["learning_rate"] == middle_rate(results.settings.learning_rates)
    own = results.table[judged & results.table["variant"].isin([LABELS[name] for name in PAIRED])]
    return [game for game in results.settings.games if game in {*own["game"]}]


def long_figure(results: Results[Settings], game: str) -> Figure:
    """Return, bias and alpha over the runs of a game that have another number of steps, beside the same agents' that do not.

    The curves of another learning rate or of a second length are dashed, and those with the usual number of steps dotted. A point
    of return and bias is the mean of several successive tests. Alpha, which hardly varies from test to test, has a panel where it
    is adapted, with the range that D3 speaks of.
    """
    shown = _longer_runs(results, game)
    if not shown:
        raise ValueError(f"no runs of {game!r} have another number of steps than the others")
    tests = math.ceil(max(runs["step"].nunique() for _, runs, _, _ in shown) / POINTS)
    least, most = ALPHA_RANGE
    titles = {"test_return": "test return", "bias": "bias of Q", "alpha": f"alpha (D3: {least} to {most})"}
    if not any(_adapts(runs) for _, runs, _, _ in shown):
        del titles["alpha"]
    figure, axes = canvas(1, len(titles), width=11, height=4.0)
    rng = np.random.default_rng(0)
    for ax, (column, title) in zip(axes[0], titles.items(), strict=True):
        for label, runs, name, style in shown:
            if column == "alpha" and not _adapts(runs):
                continue
            x, values = _curves(runs, column, 1 if column == "alpha" else tests)
            value, low, high = band([values], rng)
            line(ax, x, value, name, low=low, high=high, colour=colour_of(label), style=style)
        for level in {"bias": [0.0], "alpha": ALPHA_RANGE}.get(column, []):
            ax.axhline(level, color=GREY, lw=0.8)
        caption(ax, f"{game}: {title}", "step")
    legend_below(figure, axes[0, 0], columns=3)
    judged = "parts of claims are judged on the longest runs that all agents they compare have"
    points = f", means of {tests} tests" if tests > 1 else ""
    figure.suptitle(f"{game}: IQM{points}, 95% bootstrap bands; {judged}", fontsize=10)
    return figure


def _longer_runs(results: Results[Settings], game: str) -> list[tuple[str, pd.DataFrame, str, str]]:
    """What a figure of longer runs shows: for each curve its variant, its runs, its name and its style. None is shown twice."""
    rate = middle_rate(results.settings.learning_rates)
    usual = results.table[(results.table["game"] == game) & (results.table["learning_rate"] == rate)]
    found = {}
    styles = cycle(STYLES)
    for settings, table in results.apart.items():
        own = table[table["game"] == game]
        rates = sorted({*own["learning_rate"]}, key=lambda each: (each != rate, each))  # the usual one first
        style_of = {each: next(styles) for each in rates}
        for (label, other), runs in own.groupby(["variant", "learning_rate"]):
            beside = usual[usual["variant"] == label] if other == rate else usual[:0]
            where = "" if other == rate else f" with {power(other)}"
            for steps, each, style in ((settings.steps, runs, style_of[other]), (results.settings.steps, beside, ":")):
                if len(each):
                    seeds = each["seed"].nunique()
                    name = f"{label}{where}: {seeds} seed{'s' * (seeds > 1)}, {steps / 1e6:g} million"
                    found[name] = (label, each, name, style)
    return [*found.values()]


def _adapts(runs: pd.DataFrame, column: str = "alpha") -> bool:
    """Whether the runs of a variant adapt their alpha, or the scale of their kernel."""
    return bool(runs[column].nunique() > 1)


def _columns(table: pd.DataFrame) -> list[list[str]]:
    """The labels of each column: the paper's three, and one of what is not the paper's, if anything is."""
    known = sorted(table["variant"].unique())
    columns = [[label for label in known if label in own] for own in COLUMNS]
    beyond = [label for label in known if not any(label in own for own in COLUMNS)]
    return [*columns, beyond] if beyond else columns


def _title(results: Results[Settings], shown: pd.DataFrame) -> str:
    """The game of what is shown, and how many seeds it has."""
    others = other_seeds(shown, results.settings.seeds)
    several = f"{results.settings.seeds} seeds" + (f" ({others})" if others else "")
    return f"{shown['game'].iloc[0]}: IQM of {several}, 95% bootstrap bands"


def _final_returns(
    ax: Axes, table: pd.DataFrame, labels: Sequence[str], rates: Sequence[float], rng: np.random.Generator
) -> None:
    """The mean of the last ten tests with its interval: over the learning rates, or side by side if there is but one."""
    for k, label in enumerate(labels):
        finals = {
            rate: band([_curves(own, "test_return")[1][:, -10:].mean(axis=1)], rng)
            for rate, own in table[table["variant"] == label].groupby("learning_rate")
        }
        value, low, high = (np.array(part, dtype=float) for part in zip(*finals.values(), strict=True))
        beside = APART ** (k - (len(labels) - 1) / 2)
        ax.errorbar(
            [rate * beside for rate in finals] if len(rates) > 1 else [k],
            value,
            [value - low, high - value],
            color=colour_of(label, k),
            marker="o",
            ms=4,
            capsize=3,
            label=label,
        )
    if len(rates) > 1:
        logarithmic(ax.xaxis)
        ax.set_xticks(rates, [f"{rate:.2g}" for rate in rates])
        ax.legend(frameon=False, fontsize=7)
        caption(ax, "final return", "learning rate")
    else:
        ax.set_xticks(range(len(labels)), labels, rotation=40, ha="right", rotation_mode="anchor", fontsize=7)
        caption(ax, "final return")


def _over_time(
    axes: Sequence[Axes], table: pd.DataFrame, labels: Sequence[str], rate: float, rng: np.random.Generator
) -> None:
    """Return, bias and alpha of the labels that were run with a learning rate, each in its panel; empty ones are left out."""
    titles = {"test_return": f"test return, learning rate {rate:.2g}", "bias": "bias of Q", "alpha": "alpha"}
    for ax, (column, title) in zip(axes, titles.items(), strict=True):
        for k, label in enumerate(labels):
            own = table[table["variant"] == label]
            if own.empty or (column == "alpha" and not _adapts(own)):
                continue
            steps, values = _curves(own, column)
            value, low, high = band([values], rng)
            line(ax, steps, value, label, k, low=low, high=high)
        if not ax.lines:
            ax.set_axis_off()
            continue
        caption(ax, title, "step")
        if column == "test_return":
            ax.legend(frameon=False, fontsize=7)
        elif column == "bias":
            ax.axhline(0, color=GREY, lw=0.8)
        else:
            ax.tick_params(labelleft=True)  # no panel to the left has them


def _curves(table: pd.DataFrame, column: str, tests: int = 1) -> tuple[Any, Any]:
    """Steps, and the column's values [seeds, steps] of one variant; of several tests, the means of both.

    The tests are counted from the end, and those at the beginning that are too few for a point are left out. A curve that has
    fewer than a point of them all the same is one point.
    """
    wide = table.pivot(index="seed", columns="step", values=column)
    tests = min(tests, wide.shape[1])
    wide = wide.iloc[:, wide.shape[1] % tests :]
    points = np.arange(wide.shape[1]) // tests
    steps = wide.columns.to_series().groupby(points).mean()
    return steps.to_numpy(), wide.T.groupby(points).mean().T.to_numpy()
