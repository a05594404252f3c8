"""What benchmarks/zoo.py says of its runs: a score for each, the interquartile mean of each agent's, learning curves."""

from __future__ import annotations

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
from maxmean.lab.figures import INK, canvas, caption, legend_below, line

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

_ORDER = [PEER, RECOMMENDED, *(each.name for each in REGISTRY)]
_KEYS = ["environment", "agent", "seed"]


def read_runs(folder: Path, seeds: Collection[int]) -> pd.DataFrame:
    """The records of the runs that benchmarks/zoo.py has finished, for these seeds."""
    found = [pd.read_parquet(path) for seed in seeds for path in folder.glob(f"*/*/seed-{seed}.parquet")]
    return _tidy(pd.concat(found) if found else pd.DataFrame())


def read_training(folder: Path) -> pd.DataFrame:
    """The same, of a directory that ``maxmean train`` or ``deep.train(out=...)`` has left; these keep no time."""
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
    """The table of each environment, all seeds in it."""
    return "\n".join(
        [ABOUT, *(row for name in agents["environment"].unique() for row in _section(name, found, agents))]
    )


def _section(environment: str, found: pd.DataFrame, agents: pd.DataFrame) -> Iterator[str]:
    mine, rows = found[found["environment"] == environment], agents[agents["environment"] == environment]
    each, steps = mine.pivot(index="agent", columns="seed", values="score"), rows["steps"].max()
    columns = ["agent", "IQM [95% interval]", *(f"seed {seed}" for seed in each.columns)]
    columns += ["mean Q", "bias", "wall s", "CPU s", "diverged"]
    yield f"## {environment}, {steps:,} steps\n"
    yield _cells(columns)
    yield _cells(["---", *["--:"] * (len(columns) - 1)])
    for row in rows.itertuples():
        until = f" ({row.steps:,} steps)" if row.steps < steps else ""
        yield _cells(
            [
                f"`{row.agent}`{until}",
                f"**{row.iqm:.1f}** [{row.low:.1f}, {row.high:.1f}]",
                *(_number(score, ".1f") for score in each.loc[row.agent]),
                _number(row.value, ".1f"),
                _number(row.bias, "+.1f"),
                _number(row.seconds, ".0f"),
                _number(row.cpu_seconds, ".0f"),
                f"{row.diverged} of {row.seeds}",
            ]
        )
    yield ""


def _cells(texts: Collection[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _number(value: float, form: str) -> str:
    return "-" if np.isnan(value) else format(value, form)


def curves(records: pd.DataFrame) -> dict[str, Figure]:
    """A picture of each environment: the IQM of the test returns on the way, with bands."""
    return {str(name): _curves(str(name), mine) for name, mine in records.groupby("environment", sort=False)}


def _curves(environment: str, records: pd.DataFrame) -> Figure:
    figure, axes = canvas(1, 1, width=7.0, height=4.0)
    panel = axes[0, 0]
    for position, (agent, mine) in enumerate(records.groupby("agent", sort=False)):
        returns = mine.pivot(index="seed", columns="step", values="test_return").dropna(axis=1)
        value, low, high = _interval(returns.to_numpy())
        line(panel, returns.columns, value, agent, position, low=low, high=high, colour=INK if agent == PEER else "")
    caption(panel, f"{environment}: greedy test return, IQM over the seeds", "steps")
    panel.xaxis.set_major_formatter(lambda step, _: f"{step:,.0f}")
    legend_below(figure, panel, columns=4)
    return figure
