"""What benchmarks/zoo.py says of its runs: a score for each, the interquartile mean of each agent's, learning curves."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from zoo_runs import COLUMNS, PEER, RECOMMENDED

from maxmean.deep.directory import read_plan
from maxmean.deep.records import read_table
from maxmean.deep.registry import REGISTRY
from maxmean.lab.aggregate import band
from maxmean.lab.figures import GREY, INK, canvas, caption, colour_of, line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAST = 0.9
"""A run's score is the mean of its tests after this share of its steps: the last two of twenty."""

ABOUT = f"""\
The score of a run is its mean greedy test return over the last tenth of its steps. IQM: interquartile mean over the seeds,
with a 95% bootstrap interval. Mean Q and bias are means over the same tests. Seconds: training one run on one core, tests not
counted, by the clock and in CPU time. `{PEER}` is Stable-Baselines3's DQN with the hyper-parameters of rl-baselines3-zoo,
`{RECOMMENDED}` is `maxmean.agent(env)`.
"""

COMPARED = {PEER: INK, RECOMMENDED: colour_of("ke")}
"""What is compared, in these colours."""
OTHERS = "our other agents, with their defaults"

_ORDER = [PEER, RECOMMENDED, *(each.name for each in REGISTRY)]
_KEYS = ["environment", "agent", "seed"]


def read_runs(folder: Path, seeds: Collection[int]) -> pd.DataFrame:
    """The records of the runs that benchmarks/zoo.py has finished, for these seeds."""
    found = [pd.read_parquet(path) for seed in seeds for path in folder.glob(f"*/*/seed-{seed}.parquet")]
    return _tidy(pd.concat(found) if found else pd.DataFrame())


def read_training(folder: Path) -> pd.DataFrame:
    """The same, of a directory that ``maxmean train`` or ``deep.train(out=...)`` has left, which keep no time; or of a file
    that was written here.
    """
    if folder.suffix == ".parquet":
        return _tidy(pd.read_parquet(folder))
    environment = read_plan(folder)["environment"]
    name = environment["name"] if isinstance(environment, dict) else environment
    records = read_table(folder / "records.parquet")
    label = records["variant"]
    if records["learning_rate"].nunique() > 1:
        label = label + records["learning_rate"].map(" learning_rate={:.3g}".format)
    return _tidy(records.assign(environment=name, agent=label))


def _tidy(records: pd.DataFrame) -> pd.DataFrame:
    """Records with their columns alone, in the order of the registry; Stable-Baselines3 comes first."""
    found = pd.DataFrame(records, columns=list(COLUMNS)).astype(COLUMNS)
    rank = {agent: place for place, agent in enumerate(sorted(found["agent"].unique(), key=_rank))}
    return found.sort_values(
        [*_KEYS, "step"], key=lambda column: column.map(rank) if column.name == "agent" else column, ignore_index=True
    )


def _rank(agent: str) -> tuple[int, str]:
    name = agent.partition("(")[0].partition(" ")[0]
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), agent)


def scores(records: pd.DataFrame) -> pd.DataFrame:
    """One row a run: its score, mean Q and bias in the last tenth, its time, and where it diverged."""
    runs = records.groupby(_KEYS, sort=False)
    late = records[records["step"] > LAST * runs["step"].transform("max")].groupby(_KEYS, sort=False)
    ends = runs[["step", "seconds", "cpu_seconds", "diverged"]].max().rename(columns={"step": "steps"})
    means = late[["test_return", "value", "bias"]].mean().rename(columns={"test_return": "score"})
    return means.join(ends).reset_index()


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """One row an agent and environment: the IQM over the seeds with its interval, and means of all else."""
    return pd.DataFrame(
        [
            {
                "environment": environment,
                "agent": agent,
                "steps": runs["steps"].min(),
                "seeds": len(runs),
                **dict(zip(("iqm", "low", "high"), map(float, _interval(runs["score"].to_numpy())), strict=True)),
                **runs[["value", "bias", "seconds", "cpu_seconds"]].mean().to_dict(),
                "diverged": int((runs["diverged"] >= 0).sum()),
            }
            for (environment, agent), runs in found.groupby(["environment", "agent"], sort=False)
        ]
    )


def _interval(values: np.ndarray) -> tuple[Any, Any, Any]:
    """The IQM along the first axis, over the seeds, with its 95% interval."""
    return band([values], np.random.default_rng(0))


def markdown(found: pd.DataFrame, agents: pd.DataFrame) -> str:
    """One table of all environments for the two that are compared, and one of each environment for all agents, folded."""
    names = agents["environment"].unique()
    folded = (row for name in names for row in _folded(name, found, agents[agents["environment"] == name]))
    return "\n".join([ABOUT, *_beside(found, agents), "", *folded])


def replaced(page: str, tables: str) -> str:
    """The page with these tables between its marks."""
    before, begin, rest = page.partition("<!-- zoo -->\n")
    _, end, after = rest.partition("<!-- end of zoo -->")
    if not end:
        raise ValueError("the page has no marks <!-- zoo --> and <!-- end of zoo -->")
    return f"{before}{begin}{tables}{end}{after}"


def _beside(found: pd.DataFrame, agents: pd.DataFrame) -> Iterator[str]:
    shown = [agent for agent in COMPARED if agent in set(agents["agent"])]
    if not shown:
        return
    columns = ["", "steps", *(text for agent in shown for text in (f"`{agent}`, IQM", "each seed"))]
    yield from _head(columns)
    for name, rows in agents.groupby("environment", sort=False):
        cells = []
        for agent in shown:
            row, mine = rows[rows["agent"] == agent], found[(found["environment"] == name) & (found["agent"] == agent)]
            cells += [_iqm(row.iloc[0]), ", ".join(f"{each:.0f}" for each in mine["score"])] if len(row) else ["-", "-"]
        yield _cells([str(name), f"{rows['steps'].max():,}", *cells])


def _folded(environment: str, found: pd.DataFrame, rows: pd.DataFrame) -> Iterator[str]:
    mine = found[found["environment"] == environment]
    each, steps = mine.pivot(index="agent", columns="seed", values="score"), rows["steps"].max()
    yield f'<details markdown="1">\n<summary>{environment}, {steps:,} steps, all agents</summary>\n'
    seeds = [f"seed {seed}" for seed in each.columns]
    yield from _head(["agent", "IQM", *seeds, "mean Q", "bias", "wall s", "CPU s", "diverged"])
    for _, row in rows.iterrows():
        until = f" ({row.steps:,} steps)" if row.steps < steps else ""
        yield _cells(
            [
                f"`{row.agent}`{until}",
                _iqm(row),
                *(_number(score, ".1f") for score in each.loc[row.agent]),
                _number(row.value, ".1f"),
                _number(row.bias, "+.1f"),
                _number(row.seconds, ".0f"),
                _number(row.cpu_seconds, ".0f"),
                f"{row.diverged} of {row.seeds}",
            ]
        )
    yield "\n</details>\n"


def _head(columns: Collection[str]) -> Iterator[str]:
    yield _cells(columns)
    yield _cells(["---", *["--:"] * (len(columns) - 1)])


def _iqm(row: pd.Series) -> str:
    return f"**{row.iqm:.1f}** [{row.low:.1f}, {row.high:.1f}]"


def _cells(texts: Collection[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _number(value: float, form: str) -> str:
    return "-" if np.isnan(value) else format(value, form)


def curves(records: pd.DataFrame) -> Figure:
    """Test returns on the way, a panel for each environment: the IQM with its band for the two that are compared, and the IQM
    of all others as thin lines.
    """
    names = list(records["environment"].unique())
    figure, axes = canvas(math.ceil(len(names) / 2), min(len(names), 2), height=3.0)
    for panel in axes.flat[len(names) :]:
        panel.remove()
    for panel, name in zip(axes.flat, names, strict=False):
        mine = records[records["environment"] == name]
        for agent in sorted(mine["agent"].unique(), key=lambda agent: agent in COMPARED):
            returns = (
                mine[mine["agent"] == agent].pivot(index="seed", columns="step", values="test_return").dropna(axis=1)
            )
            value, low, high = _interval(returns.to_numpy())
            if agent in COMPARED:
                line(panel, returns.columns, value, agent, low=low, high=high, colour=COMPARED[agent])
            else:
                panel.plot(returns.columns, value, color=GREY, lw=0.7, alpha=0.7, label=OTHERS)
        caption(panel, name, "steps")
        panel.xaxis.set_major_formatter(lambda step, _: f"{step:,.0f}")
    handles = {
        text: handle for panel in axes.flat for handle, text in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles, loc="outside lower center", ncols=3, frameon=False)
    return figure
