"""The figures of the MinAtar study: the paper's for each game, and where the bias sits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...aggregate import band
from ...figures import canvas, caption, colour_of, line, logarithmic
from .claims import middle_rate

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ...experiment import Results
    from .study import Settings

COLUMNS = (
    ("dqn", "ddqn", "scdqn"),
    ("maxmin-dqn", "bdqn", "te-bdqn(0.1", "te-bdqn(0.2"),
    ("te-bdqn(0.3", "te-bdqn(0.4", "ke", "ada"),
)
"""The paper's columns of figures, by how the labels begin."""


def game_figure(results: Results[Settings], game: str) -> Figure:
    """The paper's figure of a game: final return by learning rate, then return, bias and alpha over time."""
    table = results.table[results.table["game"] == game]
    several = table["learning_rate"].nunique() > 1
    middle = middle_rate(results.settings.learning_rates)
    figure, axes = canvas(4, 3, width=11, height=2.4, sharey="row")
    rng = np.random.default_rng(0)
    for column, labels in enumerate(_columns(table)):
        if not labels:
            for ax in axes[:, column]:
                ax.set_axis_off()
            continue
        for k, label in enumerate(labels):
            own = table[table["variant"] == label]
            _final_return(axes[0, column], own, label, k, rng, by_rate=several)
            now = own[own["learning_rate"] == middle]
            if now.empty:
                continue
            _over_time(axes[1, column], now, "test_return", label, rng)
            _over_time(axes[2, column], now, "bias", label, rng)
            if now["alpha"].nunique() > 1:
                _over_time(axes[3, column], now, "alpha", label, rng)
        if several:
            logarithmic(axes[0, column].xaxis)
            axes[0, column].legend(frameon=False, fontsize=7)
        else:
            axes[0, column].set_xticks(range(len(labels)), labels, rotation=20, ha="right", fontsize=7)
        caption(axes[0, column], "final return", "learning rate" if several else "")
        _finish(axes[1, column], axes[2, column], middle)
        if axes[3, column].lines:
            axes[3, column].tick_params(labelleft=True)
            caption(axes[3, column], "alpha", "step")
        else:
            axes[3, column].set_axis_off()
    figure.suptitle(f"{game}: {_seeds(results)}", fontsize=10)
    return figure


def rates_figure(results: Results[Settings], game: str) -> Figure:
    """The paper's figure of a game with the other learning rates: return and bias over time with each."""
    table = results.table[results.table["game"] == game]
    rates = sorted({*table["learning_rate"]} - {middle_rate(results.settings.learning_rates)})
    figure, axes = canvas(2 * len(rates), 3, width=11, height=2.4, sharey="row")
    rng = np.random.default_rng(0)
    for row, rate in enumerate(rates):
        now = table[table["learning_rate"] == rate]
        for (returns, biases), labels in zip(axes[2 * row : 2 * row + 2].T, _columns(now), strict=True):
            for label in labels:
                own = now[now["variant"] == label]
                _over_time(returns, own, "test_return", label, rng)
                _over_time(biases, own, "bias", label, rng)
            _finish(returns, biases, rate)
    figure.suptitle(f"{game}: {_seeds(results)}", fontsize=10)
    return figure


def fifths_figure(results: Results[Settings]) -> Figure:
    """Where the bias sits: its mean at the end of training, by fifths of the predicted value."""
    games = results.settings.games
    figure, axes = canvas(len(games), 3, width=11, height=3.0, sharey="row")
    last = results.table[results.table["step"] > 0.9 * results.settings.steps]
    for row, game in enumerate(games):
        own = last[last["game"] == game]
        own = own[own["learning_rate"] == middle_rate(results.settings.learning_rates)]
        for ax, labels in zip(axes[row], _columns(own), strict=True):
            if not labels:
                ax.set_axis_off()
                continue
            means = own.groupby("variant")[[f"bias_fifth_{i}" for i in range(5)]].mean()
            for k, label in enumerate(labels):
                line(ax, range(1, 6), means.loc[label], label, k)
            ax.axhline(0, color="#8a8f98", lw=0.8)
            ax.set_xticks(range(1, 6))
            caption(ax, f"{game}: bias", "fifth of the pairs, by predicted value")
            if row == len(games) - 1:  # below, where no line is
                ax.legend(frameon=False, fontsize=7, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    return figure


def _columns(table: pd.DataFrame) -> list[list[str]]:
    """The labels of each column."""
    known = sorted(table["variant"].unique())
    columns = [[label for label in known if label.startswith(starts)] for starts in COLUMNS]
    columns[-1] += [label for label in known if not any(label in column for column in columns)]  # not the paper's
    return columns


def _seeds(results: Results[Settings]) -> str:
    return f"IQM of {results.settings.seeds} seeds, 95% bootstrap bands"


def _final_return(
    ax: Axes, own: pd.DataFrame, label: str, position: int, rng: np.random.Generator, *, by_rate: bool
) -> None:
    """The mean of the last ten tests with its interval: over the learning rates, or at its own position."""
    finals = {
        rate: band([_curves(at, "test_return")[1][:, -10:].mean(axis=1)], rng)
        for rate, at in own.groupby("learning_rate")
    }
    value, low, high = (np.array(part, dtype=float) for part in zip(*finals.values(), strict=True))
    ax.errorbar(
        [*finals] if by_rate else [position],
        value,
        [value - low, high - value],
        color=colour_of(label, position),
        marker="o",
        ms=4,
        capsize=3,
        label=label,
    )


def _finish(returns: Axes, biases: Axes, rate: float) -> None:
    """Name the two panels of curves with a learning rate, or leave them out where no variant has it."""
    if not returns.lines:
        returns.set_axis_off()
        biases.set_axis_off()
        return
    biases.axhline(0, color="#8a8f98", lw=0.8)
    caption(returns, f"test return, learning rate {rate:.2g}", "step")
    caption(biases, "bias of Q", "step")
    returns.legend(frameon=False, fontsize=7)


def _over_time(ax: Axes, own: pd.DataFrame, column: str, label: str, rng: np.random.Generator) -> None:
    steps, values = _curves(own, column)
    value, low, high = band([values], rng)
    line(ax, steps, value, label, low=low, high=high)


def _curves(table: pd.DataFrame, column: str) -> tuple[Any, Any]:
    """Steps, and the column's values [seeds, steps] of one variant."""
    wide = table.pivot(index="seed", columns="step", values=column)
    return wide.columns.to_numpy(), wide.to_numpy()
