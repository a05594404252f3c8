"""The tables of the note on the MinAtar study: what was run, and what its verdicts rest on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from agent_tables import bias_table, return_table
from page_parts import as_table, game_title, with_interval

from maxmean.lab.claims import MARGIN, NOT_JUDGED, Measured, Verdict, as_markdown
from maxmean.lab.experiment import Results
from maxmean.lab.experiments import EXPERIMENTS
from maxmean.lab.experiments.minatar.beyond import PLAIN_KE, PLAIN_TE
from maxmean.lab.experiments.minatar.ends import Ends
from maxmean.lab.experiments.minatar.parts import near_zero
from maxmean.lab.experiments.minatar.study import Settings
from maxmean.lab.experiments.minatar.variants import ADAPTIVE, LABELS, PAIRED, PAPERS, power

COMPARED = {
    "D1": [("breakout", "dqn", "ddqn"), ("seaquest", "dqn", "ddqn")],
    "D2": [("breakout", "te-bdqn(0.2)", "te-bdqn(0.1)"), ("asterix", "te-bdqn(0.4)", "te-bdqn(0.3)")],
}
"""The differences of bias for which the study has more seeds than for the others, by the claim that they are margins of."""
BEST_OF_OTHERS = re.compile(r"(?P<what>.*the best of \d+ others?) \((?P<name>.*)\)")
"""A part that compares with the best of several agents, and which that was."""
FIFTH = 200_000
"""Steps of a fifth of the first million."""
WITH_PAIRED = (PLAIN_KE, PLAIN_TE, ADAPTIVE, *(LABELS[name] for name in PAIRED))
"""The agents beyond the paper, and those of the paper that they are compared with."""
CLOSEST = ("scdqn(2)", "scdqn(3)", "te-bdqn(0.2)", "te-bdqn(0.3)")
"""The agents without adaptation whose bias is nearest to zero."""


def note_tables(study: Results[Any], judged: Sequence[Verdict]) -> dict[str, str]:
    """The note's tables, by the names of their marks."""
    ends = Ends(study)
    verdicts = {verdict.id: verdict for verdict in judged}
    return {
        "run": run_table(study.settings, EXPERIMENTS["minatar"].settings("paper")),
        "groups": group_table(study.settings),
        "seeds": seeds_table(study),
        "beyond": beyond_table(judged),
        "paired biases": bias_table(study, ends, WITH_PAIRED),
        "paired returns": return_table(ends, WITH_PAIRED),
        "judged": judged_table(judged, study.settings.steps),
        "longer": longer_table(study),
        "devices": devices_table(study),
        "dqn": margin_table(verdicts["D1"], "DQN's bias is larger", ends.games),
        "adapted": adapted_table(study, ends),
        "closest": closest_table(ends),
    }


def run_table(study: Settings, paper: Settings) -> str:
    """How much the study has of what the paper ran."""
    own, whole = _runs(study), _runs(paper)
    beyond = sum(_runs(study, beyond=True).values())
    agents = len(paper.single + paper.maxmin + paper.heads)
    more = max(max(group.seeds_among(study.seeds)) + 1 for group in study.groups)
    runs = ", ".join(f"{count} of {steps:,} steps" for steps, count in sorted(own.items()))
    together = sum(steps * count for steps, count in (own + _runs(study, beyond=True)).items())
    rows = [
        ["games", str(len(paper.games)), f"the same {len(study.games)}"],
        [
            "agents",
            f"{agents} variants",
            f"the same {len(study.single + study.maxmin + study.heads)}; {len(PAIRED)} beyond the paper",
        ],
        ["steps", f"{paper.steps:,}", f"{study.steps:,}; {max(own):,} for the groups that say so"],
        ["seeds", str(paper.seeds), f"{study.seeds}; {more} for the groups that say so"],
        ["learning rates", *(", ".join(map(power, each.learning_rates)) for each in (paper, study))],
        ["runs", f"{sum(whole.values()):,}", f"{runs}; {beyond} beyond the paper"],
        [
            "steps of all runs together",
            f"{paper.steps * sum(whole.values()) / 1e9:g} billion",
            f"{together / 1e6:g} million",
        ],
    ]
    return as_table(["", "the paper", "the scale `study`"], rows, right=False)


def _runs(settings: Settings, *, beyond: bool = False) -> Counter[int]:
    """How many runs of the paper's agents, or of others, there are by their number of steps."""
    found: Counter[int] = Counter()
    for group in settings.groups:
        agents = [name for name in group.agents if (name not in PAPERS) == beyond]
        each = len(group.learning_rates) * len(group.seeds_among(settings.seeds))
        found[group.steps_among(settings.steps)] += len(agents) * each
    return +found


def group_table(study: Settings) -> str:
    """What was run besides every agent on every game."""
    rows = []
    for group in study.added:
        seeds, steps = group.seeds_among(study.seeds), group.steps_among(study.steps)
        rates = ", ".join(map(power, group.learning_rates))
        agents = ", ".join(f"`{name}`" for name in group.agents)
        rows.append([game_title(group.game), rates, agents, f"{seeds[0]} to {seeds[-1]}", f"{steps:,}"])
    return as_table(["game", "learning rate", "agents", "seeds", "steps"], rows, right=False)


def seeds_table(study: Results[Any]) -> str:
    """The margins with more seeds: over those that all have, over the further ones alone, and over all, which is judged."""
    new = study.table["seed"] >= study.settings.seeds
    looks = [Ends(replace(study, table=study.table[rows])) for rows in (~new, new, new | ~new)]
    few, more, every = (len(ends("bias", *COMPARED["D1"][0][:2])) for ends in looks)
    rows = [
        [
            f"{claim}, {game_title(game)}: bias of `{higher}` above `{lower}`'s",
            *(str(Measured.difference(ends("bias", game, higher), ends("bias", game, lower))) for ends in looks),
        ]
        for claim, compared in COMPARED.items()
        for game, higher, lower in compared
    ]
    return as_table(
        ["margin [95% interval]", f"first {few} seeds", f"{more} further ones", f"all {every}, judged"], rows
    )


def beyond_table(judged: Sequence[Verdict]) -> str:
    """The claims beyond the paper about MinAtar's agents."""
    own = [verdict for verdict in judged if verdict.beyond and verdict.experiment == "minatar"]
    rows = [[verdict.id, as_markdown(verdict.statement), f"**{verdict.label}**"] for verdict in own]
    return as_table(["claim", "says", "verdict"], rows, right=False)


def judged_table(judged: Sequence[Verdict], usual: int) -> str:
    """The parts of claims that are judged on longer runs than the study's, with the same part after as many steps as those.

    The best of several agents may be another one after as many steps: it stands below each margin.
    """
    rows: list[list[str]] = []
    for verdict in judged:
        for name, found in verdict.measured.items():
            part, comma, steps = name.removeprefix(MARGIN).removeprefix(NOT_JUDGED).rpartition(", ")
            said = str(found)
            if best := BEST_OF_OTHERS.fullmatch(part):
                part, said = best["what"], f"{found}<br>`{best['name']}`"
            if name.startswith(MARGIN) and comma and steps.endswith(" steps"):
                rows.append([verdict.id, as_markdown(part), "", said, steps.removesuffix(" steps")])
            elif name.startswith(NOT_JUDGED) and steps == f"{usual:,} steps":
                rows[-1][2] = said  # it follows the margin that it stands beside
    head = ["claim", "margin [95% interval]", f"after {usual:,} steps", "judged", "on steps"]
    return as_table(head, rows, texts=2)


def longer_table(study: Results[Any]) -> str:
    """The runs that are longer than the study's, by million steps: means over the half million before."""
    rows = []
    every = pd.concat(study.apart.values())
    for (game, rate, variant), runs in every.groupby(["game", "learning_rate", "variant"]):
        for million in range(1, int(runs["step"].max() // 1_000_000) + 1):
            end = million * 1_000_000
            window = runs[(runs["step"] > end - 500_000) & (runs["step"] <= end)]
            means = window.groupby("seed")[["test_return", "bias", "value"]].mean()
            numbers = (with_interval(means[column].to_numpy(), column) for column in means)
            rows.append([game_title(game), f"`{variant}`", power(rate), str(million), *numbers])
    return as_table(["game", "agent", "learning rate", "million steps", "return", "bias", "mean Q"], rows, texts=2)


def devices_table(study: Results[Any]) -> str:
    """MaxMin DQN(2) on Space Invaders, by where it was trained, and with which code: the last two fifths of the first million."""
    rows = []
    for (device, code), runs in maxmin_by_device(study).items():
        fifths = ((runs["step"] - 1) // FIFTH).rename("fifth")
        means = runs.groupby([fifths, "seed"])[["test_return", "bias"]].mean()
        numbers = [with_interval(means[column][fifth].to_numpy(), column) for column in means for fifth in (3, 4)]
        rows.append([device, code, str(runs["seed"].nunique()), *numbers])
    head = [f"{what}, {which} fifth" for what in ("return", "bias") for which in ("4th", "last")]
    return as_table(["device", "code", "seeds", *head], rows, texts=2)


def maxmin_by_device(study: Results[Any]) -> dict[tuple[str, str], pd.DataFrame]:
    """The first million steps of all runs of MaxMin DQN(2) on Space Invaders, by where they were trained, and with which code."""
    (longer,) = study.apart.values()
    found = {("H200", "of 0.1, the study"): study.table, ("CPU", "of 18 November, five million steps"): longer}
    for name, table in found.items():
        own = (table["variant"] == "maxmin-dqn(2)") & (table["game"] == "space_invaders")
        found[name] = table[own & (table["step"] <= 5 * FIFTH)]
    again = pd.read_parquet(Path(__file__).parent / "notes" / "maxmin.parquet")
    return found | dict(iter(again.groupby(["device", "code"])))


def margin_table(verdict: Verdict, name: str, games: Sequence[str]) -> str:
    """One margin of a claim in every game."""
    found: Mapping[str, Measured] = {game: verdict.measured[f"{MARGIN}{game}: {name}"] for game in games}
    rows = [[name, *(f"{each.value:.2f} ({each.low:.2f} to {each.high:.2f})" for each in found.values())]]
    return as_table(["", *map(game_title, found)], rows)


def adapted_table(study: Results[Any], ends: Ends) -> str:
    """Where the mean alpha of the agents that adapt it goes in runs of each length: its highest and lowest value, its end."""
    tables = {study.settings.steps: study.table} | {own.steps: table for own, table in study.apart.items()}
    rows = []
    for game, own in product(ends.games, reversed(ends.lengths)):
        if ADAPTIVE in own.variants(game):
            runs = tables[own.settings.steps].query(
                "game == @game and variant == @ADAPTIVE and learning_rate == @own.rate"
            )
            alpha = runs.groupby("step")["alpha"].mean()
            ways = [f"{alpha[step]:.2f} at {step:,}" for step in (alpha.idxmax(), alpha.idxmin())]
            end = Measured.mean(own("alpha", game, ADAPTIVE))
            numbers = [f"{own.settings.steps:,}", *ways, f"{end.value:.3f} ({end.low:.3f} to {end.high:.3f})"]
            rows.append([game_title(game), *numbers])
    return as_table(["mean alpha", "steps", "highest", "lowest", "last tenth of training"], rows)


def closest_table(ends: Ends) -> str:
    """The bias as a share of the mean value of the agents that come closest to zero, bold where it is clearly far from it."""
    rows = []
    for name in CLOSEST:
        cells = []
        for game in ends.games:
            bias, scale = ends("bias", game, name), ends("value", game, name).mean()
            share = f"{bias.mean() / scale:+.0%}"
            cells.append(f"**{share}**" if near_zero(bias, scale).high < 0 else share)
        rows.append([f"`{name}`", *cells])
    return as_table(["bias, share of mean Q", *map(game_title, ends.games)], rows)
