"""MinAtar (section 7.4): test returns, the bias of Q and Ada-TE's alpha over training, for fifteen agents on five games."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import unknown
from ...errors import LabError
from ...experiment import Experiment, Results, Shard
from ...settings import limited
from ...tables import TableLayout
from ...tasks import Task
from .figures import fifths_figure, game_figure, long_figure, paired_figure, paired_games, rates_figure
from .groups import LARGEST, SEEDS_APART, Group, place, rates_of
from .variants import HEADS, LABELS, MAXMIN, MIDDLE_RATE, PAIRED, SINGLE, power

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from rich.console import Console

    from ....deep import Agent
    from ....deep import Settings as TrainingSettings
    from ...gpu import GpuWork

GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
OTHER_RATES = (
    f"breakout@1e-5 {' '.join(SINGLE)}",
    "breakout@1e-5 bdqn ke-bdqn ada-te-bdqn:1e-4",
    "breakout@1e-4 dqn",
    "breakout@1e-4 bdqn ke-bdqn ada-te-bdqn:1e-4",
)
"""What the study has of the paper's two other learning rates: one game, and the agents that answer most."""
MORE_SEEDS = (
    "breakout@10^-4.5 te-bdqn:0.1 te-bdqn:0.2 seeds=5-19",
    "asterix@10^-4.5 te-bdqn:0.3 te-bdqn:0.4 seeds=5-19",
    "breakout@10^-4.5 dqn ddqn seeds=5-19",
    "seaquest@10^-4.5 dqn ddqn seeds=5-19",
)
"""Twenty seeds in all where five left D1 and D2 undecided; how many was fixed before any of them was run."""
LONGER = (
    "space_invaders@10^-4.5 ke-bdqn steps=5000000",
    "space_invaders@10^-4.5 te-bdqn:0.1 steps=5000000",
    "space_invaders@10^-4.5 maxmin-dqn:2 steps=5000000",
    "space_invaders@10^-4.5 dqn steps=5000000",
    "breakout@10^-4.5 dqn steps=5000000",
    "breakout@1e-5 dqn steps=5000000",
    "breakout@10^-4.5 ada-te-bdqn:1e-4 steps=5000000",
    "asterix@10^-4.5 ada-te-bdqn:1e-4 steps=5000000",
    "freeway@10^-4.5 ada-te-bdqn:1e-4 steps=5000000",
    "space_invaders@10^-4.5 ada-te-bdqn:1e-4 steps=5000000",
    "breakout@10^-5@10^-4.5 ke-bdqn steps=5000000",
    "seaquest@10^-4.5 ada-te-bdqn:1e-4 steps=5000000",
)
"""What the study has of the paper's five million steps. A part of a claim is judged on them as soon as all runs that it compares
are among them: :mod:`.lengths` has the rule."""
NEW_AGENTS = tuple(f"{game}@10^-4.5 {agents}" for agents in (PAIRED[0], " ".join(PAIRED[1:])) for game in GAMES)
"""Agents that the paper does not have: KE*-BDQN, and those that were run after it. A shard is known by its agents' order."""
FIFTHS = tuple(f"{name}_fifth_{fifth}" for name in ("value", "bias") for fifth in range(5))
COUNTED = ("epsilon", "episodes", "bias_pairs", "diverged")
MEASURED = ("test_return", "bias", "bias_error", "alpha", "scale", "loss", "value", "train_return", *FIFTHS)
"""Columns that may have gaps: not every agent has an alpha, and before the first update there is no loss."""
TEXTS = ("agent", "variant", "game")
SMALLER = "--set rates_apart=true trains one learning rate at a time"
"""What to do where a shard with several learning rates is too large."""
_OTHERS = (
    "what a further group has must be other runs than those there are: every agent on every game is run anyway "
    "(--set besides= leaves all further groups out)"
)


@dataclass(frozen=True)
class Settings:
    """The paper: 5,000,000 steps, ten seeds, three learning rates."""

    games: tuple[str, ...] = GAMES
    single: tuple[str, ...] = SINGLE
    maxmin: tuple[str, ...] = MAXMIN
    heads: tuple[str, ...] = HEADS
    """The agents, in three groups: each group trains in one program on a GPU."""
    besides: tuple[str, ...] = ()
    """Further groups, each as ``GAME@LEARNING_RATE[@LEARNING_RATE ...] AGENT AGENT ... [seeds=FIRST-LAST] [steps=NUMBER]``; those
    on games that are not run are left out."""
    steps: int = 5_000_000
    seeds: int = 10
    learning_rates: tuple[float, ...] = (1e-5, MIDDLE_RATE, 1e-4)
    warmup: int = 5_000
    test_interval: int = 10_000
    checkpoint_interval: int = 100_000
    together: bool = True
    """Whether a shard holds all runs of a group, for a GPU; else each run is a shard, for cores."""
    rates_apart: bool = False
    """Whether a shard for a GPU holds the runs of one learning rate instead of all. That takes less memory and can be spread over
    more GPUs, but one GPU takes longer."""

    def __post_init__(self) -> None:
        for game in (*self.games, *(group.game for group in self.further)):
            if game not in GAMES:
                raise LabError(unknown("unknown game", game, GAMES))
        if not self.games or not self.learning_rates or not (*self.single, *self.maxmin, *self.heads):
            raise LabError("the study needs at least one game, one agent and one learning rate")
        for name, rows in (("games", self.games), ("learning_rates", self.learning_rates)):
            if len(set(rows)) < len(rows):
                raise LabError(f"{name} has an entry twice: {', '.join(map(str, rows))}")
        for rate in (*self.learning_rates, *(rate for group in self.further for rate in group.learning_rates)):
            if not 0.0 < rate < math.inf:
                raise LabError(f"learning rates must be positive numbers, not {rate}")
        if self.seeds > SEEDS_APART:
            raise LabError(f"seeds must be at most {SEEDS_APART}, not {self.seeds}")
        for name in ("steps", "seeds", "warmup", "test_interval", "checkpoint_interval"):
            if vars(self)[name] < 1:
                raise LabError(f"{name} must be at least 1, not {vars(self)[name]}")
            limited(name, vars(self)[name], LARGEST)
        longest = max(group.steps_among(self.steps) for group in self.groups)
        limited("steps over test_interval", longest // self.test_interval, 10**5)

    @property
    def groups(self) -> list[Group]:
        """Every group on every game with every learning rate, and the further ones on these games."""
        grid = [
            Group(game, self.learning_rates, agents)
            for game in self.games
            for agents in (self.single, self.maxmin, self.heads)
            if agents
        ]
        return grid + self.added

    @property
    def parts(self) -> list[tuple[dict[str, Any], int]]:
        """What the groups split into, and how many steps each part is run for."""
        return [each for group in self.groups for each in self.parts_of(group)]

    def parts_of(self, group: Group) -> list[tuple[dict[str, Any], int]]:
        """What one group splits into, and how many steps each part is run for."""
        parts = group.parts(self.seeds, together=self.together, rates_apart=self.rates_apart)
        return [(part, group.steps_among(self.steps)) for part in parts]

    @property
    def added(self) -> list[Group]:
        """The further ones on these games."""
        return [group for group in self.further if group.game in self.games]

    @property
    def left_out(self) -> list[Group]:
        """The further ones on other games."""
        return [group for group in self.further if group.game not in self.games]

    @property
    def further(self) -> list[Group]:
        """What ``besides`` says."""
        return [Group.parse(text) for text in self.besides]


class MinAtarStudy(Experiment[Settings]):
    """Deep agents on MinAtar."""

    name = "minatar"
    title = "MinAtar: return and bias of deep agents"
    section = "7.4"
    needs = ("optax", "deep")
    packages = ("jax", "jaxlib", "optax")
    scales = ("quick", "study", "paper")
    judged_from = "study"
    size = ("steps", "seeds")
    selectors = ("games", "single", "maxmin", "heads", "besides", "seeds", "learning_rates", "rates_apart")
    only_by_name = True

    def settings(self, scale: str) -> Settings:
        if scale == "paper":
            return Settings()
        if scale == "study":
            return Settings(
                steps=1_000_000,
                seeds=5,
                learning_rates=(MIDDLE_RATE,),
                besides=OTHER_RATES + MORE_SEEDS + LONGER + NEW_AGENTS,
            )
        # Far too short to learn anything: it shows that everything runs, not what it leads to.
        return Settings(
            games=("breakout",),
            single=("dqn",),
            maxmin=(),
            heads=("te-bdqn:0.1", "ke-bdqn"),
            steps=6_000,
            seeds=2,
            learning_rates=(1e-3,),
            warmup=1_000,
            test_interval=1_000,
            together=False,
        )

    def parts(self, settings: Settings) -> Sequence[Mapping[str, Any]]:
        return [part for part, _ in settings.parts]

    def layout(self, settings: Settings, part: Mapping[str, Any]) -> TableLayout:
        tests = sorted({*range(settings.test_interval, settings.steps, settings.test_interval), settings.steps})
        known = all(name in LABELS for name in part["agents"])  # what others are called takes JAX to know
        keys = {
            "step": tests,
            "variant": [LABELS[name] for name in part["agents"]] if known else None,
            "learning_rate": rates_of(part),
            "seed": part["seeds"],
        }
        rows = len(tests) * len(part["agents"]) * len(rates_of(part)) * len(part["seeds"])
        return TableLayout(rows, ("step", "learning_rate", "seed", *COUNTED), TEXTS, MEASURED, keys)

    def check(self, settings: Settings) -> None:
        from ....deep.runs import MOST_RUNS

        for part, _ in settings.parts:
            runs = len(part["agents"]) * len(part["seeds"]) * len(rates_of(part))
            limited(f"runs of {self.brief(part)}", runs, MOST_RUNS)
        known: dict[tuple[str, str, str, int], set[int]] = {}
        further = settings.further
        for group in (*settings.groups, *settings.left_out):
            for name, rate in product(group.agents, group.learning_rates):
                try:
                    label = make_agent(name).label
                except ValueError as error:
                    raise LabError(str(error)) from None
                run = group.game, power(rate), label, group.steps_among(settings.steps)
                seeds, own = known.setdefault(run, set()), {*group.seeds_among(settings.seeds)}
                if twice := seeds & own:
                    where = f"{group.game} with the learning rate {run[1]} has the agent {name} twice"
                    raise LabError(f"{where} with the seed {min(twice)}; {_OTHERS}" if group in further else where)
                seeds |= own

    def remarks(self, settings: Settings) -> Sequence[str]:
        lines = []
        if added := ", ".join(map(str, settings.added)):
            lines.append(f"Besides every agent on every game: {added}. --set besides= leaves that out.")
        for game, count in Counter(group.game for group in settings.left_out).items():
            lines.append(f"Left out, since {game} is not run: {count} further group{'s' * (count > 1)}.")
        return lines

    def shards(self, settings: Settings, seed: int) -> list[Shard]:
        """From the seed 0 the runs' seeds are 0, 1, ...; from another one they are others. A group may have its own steps."""

        def moved(part: Mapping[str, Any]) -> dict[str, Any]:
            return {**part, "seeds": [SEEDS_APART * seed + own for own in part["seeds"]]}

        return [
            replace(shard, part=moved(shard.part), settings=shard.settings | {"steps": steps})
            for shard, (_, steps) in zip(super().shards(settings, seed), settings.parts, strict=True)
        ]

    def on_gpu(self, settings: Settings) -> GpuWork | None:
        if not settings.together:
            return None
        from .trial import Trials

        return Trials(settings)

    def brief(self, part: Mapping[str, Any]) -> str:
        first, *others = part["agents"]
        return f"{place(part['game'], rates_of(part))} {first}{f' and {len(others)} more' if others else ''}"

    def forecast(
        self, settings: Settings, left: Sequence[Shard], say: Callable[[str], None], workers: int | None = None
    ) -> str:
        from .forecast import forecast

        tasks = [Task(self, self.settings_of(settings, shard), shard, Path()) for shard in left]
        return forecast(settings, tasks, say, workers)

    def compute(self, settings: Settings, part: Mapping[str, Any], rng: np.random.Generator) -> pd.DataFrame:
        return self._train(settings, part, None, None)

    def resume(
        self,
        settings: Settings,
        part: Mapping[str, Any],
        rng: np.random.Generator,
        folder: Path,
        console: Console | None = None,
    ) -> pd.DataFrame:
        return self._train(settings, part, folder, console)

    def _train(
        self, settings: Settings, part: Mapping[str, Any], folder: Path | None, console: Console | None
    ) -> pd.DataFrame:
        """The seeds are the runs' own, so that all agents meet the same luck."""
        from .... import deep
        from ....deep.core.memory import TooLargeError
        from ....deep.directory import OtherShapeError

        rates = rates_of(part)
        try:
            found = deep.train(
                f"minatar/{part['game']}",
                [make_agent(name) for name in part["agents"]],
                steps=settings.steps,
                seeds=part["seeds"],
                learning_rates=rates,
                settings=training_settings(settings),
                out=folder,
                checkpoint_interval=settings.checkpoint_interval,
                workers=None if settings.together else 1,
                quiet=console is None,
                console=console,
            )
        except TooLargeError as error:
            if len(rates) == 1:
                raise
            raise LabError(f"{error}; {SMALLER}") from None
        except OtherShapeError as error:
            raise LabError(f"{error}, or remove {str(folder)!r} to train this group from its beginning") from None
        if not found.finished:
            raise KeyboardInterrupt
        keys = ["step", "variant", "learning_rate", "seed"]
        fifths = found.quantiles.pivot(index=keys, columns="fifth", values=["value", "bias"])
        fifths.columns = [f"{name}_fifth_{fifth}" for name, fifth in fifths.columns]
        table = found.records.merge(fifths.reset_index(), on=keys).assign(game=part["game"])
        # What was computed in single precision needs no more to be kept: the learning rate is the key that it was given as.
        measured = table.select_dtypes("float64").columns.drop("learning_rate")
        return table.astype(dict.fromkeys(measured, "float32"))

    def figures(self, results: Results[Settings]) -> dict[str, Figure]:
        found = {}
        for game in results.settings.games:
            found[game] = game_figure(results, game)
            if results.table.loc[results.table["game"] == game, "learning_rate"].nunique() > 1:
                found[f"{game}-rates"] = rates_figure(results, game)
        for game in dict.fromkeys(game for table in results.apart.values() for game in table["game"]):
            found[f"{game}-long"] = long_figure(results, game)
        if paired_games(results):
            found["paired"] = paired_figure(results)
        return found | {"fifths": fifths_figure(results)}


def training_settings(settings: Settings) -> TrainingSettings:
    """What the study changes of the paper's hyper-parameters: nothing, at the scale of the paper."""
    from ....deep import Settings as Training

    return Training(warmup=settings.warmup, test_interval=settings.test_interval)


def make_agent(name: str) -> Agent:
    """An agent from its name with the paper's settings."""
    from ....deep.agents import parse_agent

    return parse_agent(name)
