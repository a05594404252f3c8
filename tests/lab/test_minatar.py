"""Facts about the MinAtar study: how it splits, what it keeps, how it is judged and what it foretells."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count, product
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy.stats import trim_mean

from inside import maxmean
from maxmean import deep
from maxmean.deep.checkpoint import OTHER_SHAPE
from maxmean.deep.core import memory
from maxmean.deep.directory import OtherShapeError
from maxmean.lab.calibration import Calibration
from maxmean.lab.change import change
from maxmean.lab.claims import MARGIN, Measured, judge
from maxmean.lab.engines import make_engine
from maxmean.lab.errors import LabError
from maxmean.lab.experiment import Results, Shard, plain
from maxmean.lab.experiments import EXPERIMENTS
from maxmean.lab.experiments.minatar import forecast, hours, parts, study, trial
from maxmean.lab.experiments.minatar.ends import mean_over_games
from maxmean.lab.experiments.minatar.figures import fifths_figure, game_figure, long_figure, paired_figure
from maxmean.lab.experiments.minatar.forecast import Cost
from maxmean.lab.experiments.minatar.groups import Group
from maxmean.lab.experiments.minatar.study import GAMES, LONGER, Settings, make_agent, training_settings
from maxmean.lab.experiments.minatar.trial import Trial, Trials
from maxmean.lab.experiments.minatar.variants import (
    ADAPTIVE,
    COLUMNS,
    HEADS,
    LABELS,
    MAXMIN,
    MIDDLE_RATE,
    PAIRED,
    SINGLE,
    VARIANTS,
    middle_rate,
)
from maxmean.lab.figures import colour_of
from maxmean.lab.gpu import Gpu, Load, Sharing
from maxmean.lab.progress import Silent, make_reporter
from maxmean.lab.run import SHIPPED, ExperimentJob, left_to_do, load, reproduce
from maxmean.lab.store import DamagedError, Store, StudyPlan
from maxmean.lab.tables import read_table
from maxmean.lab.tasks import Task, compute
from maxmean.storage import as_parquet

MINATAR = EXPERIMENTS["minatar"]
ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "maxmean.cli", "reproduce", "minatar"]
TINY = Settings(
    games=("breakout",),
    single=("dqn",),
    maxmin=(),
    heads=(),
    steps=300,
    seeds=2,
    learning_rates=(1e-4,),
    warmup=100,
    test_interval=100,
    together=True,
)


@pytest.fixture
def small_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings whose numbers nobody looks at have few weights, and few episodes in their tests."""
    usual = study.training_settings

    def small(settings: Settings) -> deep.Settings:
        return replace(usual(settings), hidden=8, replay_capacity=400, test_episodes=2, bias_episodes=2)

    monkeypatch.setattr(study, "training_settings", small)


STEPS = MINATAR.settings("study").steps
"""As few as it takes to judge."""


def test_it_splits_into_runs_for_cores_and_into_groups_for_a_gpu() -> None:
    quick, paper = (MINATAR.parts(MINATAR.settings(scale)) for scale in ("quick", "paper"))
    assert [(part["agents"], part["seeds"]) for part in quick] == [
        ([agent], [seed]) for agent in ("dqn", "te-bdqn:0.1", "ke-bdqn") for seed in (0, 1)
    ]
    # five games, three groups; fifteen agents of ten seeds with three learning rates each
    assert len(paper) == 5 * 3
    runs = [len(part["agents"]) * len(part["seeds"]) * len(part["learning_rate"]) for part in paper]
    assert sum(runs) == 5 * 15 * 10 * 3
    assert [MINATAR.on_gpu(MINATAR.settings(scale)) is None for scale in MINATAR.scales] == [True, False, False]


def test_learning_rates_are_in_one_shard_or_each_in_its_own() -> None:
    """A single one is written as before there could be several, so that shards of then are known."""
    settings = replace(TINY, learning_rates=(1e-5, 1e-4), besides=("breakout@10^-3@1e-2 ddqn",))
    apart = replace(settings, rates_apart=True)
    for each in (settings, apart):
        MINATAR.check(each)
    assert [part["learning_rate"] for part in MINATAR.parts(settings)] == [[1e-5, 1e-4], [1e-3, 1e-2]]
    assert [part["learning_rate"] for part in MINATAR.parts(apart)] == [1e-5, 1e-4, 1e-3, 1e-2]
    assert [MINATAR.brief(part) for part in MINATAR.parts(settings)] == [
        "breakout@10^-5@10^-4 dqn",
        "breakout@10^-3@10^-2 ddqn",
    ]
    for rate, shard in zip(settings.learning_rates, MINATAR.shards(apart, 0), strict=False):
        (alone,) = MINATAR.shards(replace(TINY, learning_rates=(rate,)), 0)
        assert alone == shard
    turned = replace(settings, learning_rates=(1e-4, 1e-5))
    assert [shard.key for shard in MINATAR.shards(turned, 0)] == [shard.key for shard in MINATAR.shards(settings, 0)]
    cores = MINATAR.parts(replace(settings, together=False))
    assert [(part["learning_rate"], part["seeds"]) for part in cores[:4]] == [
        (rate, [seed]) for rate in (1e-5, 1e-4) for seed in (0, 1)
    ]
    with pytest.raises(
        LabError,
        match=r"breakout with the learning rate 10\^-4 has the agent dqn twice with the seed 0; .* is run anyway",
    ):
        MINATAR.check(replace(settings, besides=("breakout@1e-3@1e-4 dqn",)))
    with pytest.raises(LabError, match="a group is written as GAME@LEARNING_RATE"):
        replace(settings, besides=("breakout@1e-3@ dqn",))


@pytest.mark.usefixtures("small_networks")
def test_runs_are_the_same_with_other_learning_rates_beside_them() -> None:
    """Bit for bit, on a CPU. Where they share one program, that is a fact about trainings, which have tests of their own."""
    settings = replace(TINY, learning_rates=(1e-4, 1e-2), seeds=1)
    ((whole,), apart) = (MINATAR.parts(each) for each in (settings, replace(settings, rates_apart=True)))
    together, *alone = (MINATAR.compute(settings, part, np.random.default_rng(0)) for part in (whole, *apart))
    keys = ["learning_rate", "step"]
    joined = pd.concat(alone).sort_values(keys, ignore_index=True)
    pd.testing.assert_frame_equal(together.sort_values(keys, ignore_index=True), joined, check_exact=True)
    assert joined.groupby("learning_rate")["value"].last().nunique() == 2
    layout = MINATAR.layout(settings, whole)
    assert layout is not None
    read_table(as_parquet(together), layout, whole)


def test_a_shard_that_does_not_fit_says_how_it_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 10_000)
    several = replace(TINY, learning_rates=(1e-5, 1e-4))
    with pytest.raises(LabError, match=r"there are 9.8 KiB; use fewer seeds .*; --set rates_apart=true trains one .*$"):
        MINATAR.compute(several, MINATAR.parts(several)[0], np.random.default_rng(0))
    with pytest.raises(deep.AgentError, match=r"there are 9.8 KiB; use fewer seeds or [a-z_ ]*$"):
        MINATAR.compute(TINY, MINATAR.parts(TINY)[0], np.random.default_rng(0))


def test_a_shard_has_no_more_runs_than_a_training() -> None:
    """417 seeds of eight agents with three learning rates are eight more."""
    paper = MINATAR.settings("paper")
    MINATAR.check(replace(paper, seeds=416))
    with pytest.raises(LabError, match=r"^runs of asterix@.* bdqn and 7 more must be at most 10,000, not 10,008$"):
        MINATAR.check(replace(paper, seeds=417))
    MINATAR.check(replace(paper, seeds=417, rates_apart=True))


def test_the_examples_of_the_pages_can_be_run() -> None:
    pages = "\n".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    groups = {text for text in re.findall(r"`([a-z_]+@[^`]*)`", pages) if text.count(" ") >= 1 and "..." not in text}
    groups |= set(re.findall(r'--set "?besides="?([a-z_]+@[^"]*)"', pages))
    assert {"breakout@10^-5@10^-4.5 ke-bdqn steps=5000000", "seaquest@10^-4.5 ke-bdqn seeds=5-19"} <= groups
    for text in groups - {*MINATAR.settings("study").besides}:
        ExperimentJob.of(MINATAR, "study", [f"besides={text}"])


def test_what_is_chosen_beside_a_shard_does_not_change_it() -> None:
    """So a study can be run game by game into one directory, and grow."""
    study = MINATAR.settings("study")
    whole = {shard.key for shard in MINATAR.shards(study, 0)}
    for game in study.games:
        assert {shard.key for shard in MINATAR.shards(replace(study, games=(game,)), 0)} <= whole
    assert not whole & {shard.key for shard in MINATAR.shards(replace(study, steps=2_000_000, besides=()), 0)}
    assert not whole & {shard.key for shard in MINATAR.shards(replace(study, seeds=6, besides=()), 0)}
    assert not whole & {shard.key for shard in MINATAR.shards(replace(study, learning_rates=(1e-3,), besides=()), 0)}


def test_a_group_may_have_seeds_of_its_own() -> None:
    """The same ones, however many the study has; another seed of the study moves them all."""
    text = "breakout@10^-4.5 dqn ddqn seeds=5-7"
    group = Group.parse(text)
    assert (str(group), group.seeds) == (text, range(5, 8))
    assert Group.parse("breakout@10^-4.5 dqn seeds=5-7 ddqn") == group
    for seeds, together in product((2, 5), (True, False)):
        settings = replace(TINY, besides=(text,), seeds=seeds, together=together)
        MINATAR.check(settings)
        own = [shard.part for shard in MINATAR.shards(settings, 0) if "ddqn" in shard.part["agents"]]
        assert sorted(seed for part in own for seed in part["seeds"]) == [5, 6, 7]
        moved = [shard.part for shard in MINATAR.shards(settings, 2) if "ddqn" in shard.part["agents"]]
        assert sorted(seed for part in moved for seed in part["seeds"]) == [2005, 2006, 2007]
        assert len(own) == (1 if together else 3)


def test_more_seeds_of_a_variant_are_shards_beside_those_it_has() -> None:
    """So that what was run stays as it is."""
    few, more = (replace(TINY, besides=besides) for besides in ((), ("breakout@1e-4 dqn seeds=2-4",)))
    MINATAR.check(more)
    before, after = ([shard.key for shard in MINATAR.shards(settings, 0)] for settings in (few, more))
    assert after[:-1] == before
    with pytest.raises(
        LabError, match=r"breakout with .* has the agent dqn twice with the seed 1; .* must be other runs than"
    ):
        ExperimentJob.of(MINATAR, "quick", ["besides=breakout@1e-3 dqn seeds=1-4"])
    with pytest.raises(LabError, match=r"has the agent te-bdqn:0.1 twice with the seed 5; .*--set besides= leaves"):
        ExperimentJob.of(MINATAR, "study", ["seeds=10", "games=breakout"])


def test_a_group_may_have_a_number_of_steps_of_its_own() -> None:
    text = "space_invaders@10^-4.5 ke-bdqn seeds=0-4 steps=5000000"
    group = Group.parse(text)
    assert (str(group), group.steps, group.seeds) == (text, 5_000_000, range(5))
    assert Group.parse("space_invaders@10^-4.5 steps=5000000 ke-bdqn seeds=0-4") == group
    settings = replace(TINY, besides=("breakout@1e-4 dqn steps=500", "breakout@1e-4 ddqn"))
    MINATAR.check(settings)  # the same seeds of the same agent, but other runs
    shards = MINATAR.shards(settings, 0)
    assert [(shard.part["agents"], shard.settings["steps"]) for shard in shards] == [
        (["dqn"], 300),
        (["dqn"], 500),
        (["ddqn"], 300),
    ]
    assert [MINATAR.settings_of(settings, shard).steps for shard in shards] == [300, 500, 300]
    (long,) = MINATAR.shards(replace(TINY, steps=500), 0)
    assert shards[1] == long
    with pytest.raises(LabError, match=r"has the agent ke-bdqn twice with the seed 0; .*--set besides= leaves"):
        ExperimentJob.of(MINATAR, "study", ["steps=5000000"])


def test_the_studys_longer_runs_are_those_of_the_papers_scale() -> None:
    """A shard is known by its content, whichever study it was trained for."""
    own = []
    for group in map(Group.parse, LONGER):
        kinds = {"single": SINGLE, "maxmin": MAXMIN, "heads": HEADS}
        agents = [f"{kind}={','.join(name for name in group.agents if name in names)}" for kind, names in kinds.items()]
        where = [f"games={group.game}", f"learning_rates={','.join(map(str, group.learning_rates))}", "seeds=5"]
        (shard,) = MINATAR.shards(ExperimentJob.of(MINATAR, "paper", [*where, *agents]).settings, 0)
        own.append(replace(shard, part=shard.part | {"seeds": [*group.seeds_among(5)]}))
    study = [shard for shard in MINATAR.shards(MINATAR.settings("study"), 0) if shard.settings["steps"] > STEPS]
    assert [shard.key for shard in study] == [shard.key for shard in own]
    assert own[0].key == "5b0d2655cb66dc3124b8"


@pytest.mark.usefixtures("small_networks")
def test_runs_of_other_lengths_are_kept_apart(tmp_path: Path) -> None:
    """They are computed with their own number of steps, and the study's table does not have them."""
    settings = replace(TINY, seeds=1, besides=("breakout@1e-4 dqn steps=200",))
    store, usual = Store(tmp_path / "both"), Store(tmp_path / "usual")
    for where, job in ((store, settings), (usual, replace(settings, besides=()))):
        summary = reproduce(
            [ExperimentJob(MINATAR, "custom", job)], where, make_engine("inline", None, None), 0, Silent()
        )
        assert not summary.failed
    found, without = (load(where, MINATAR, "custom", 0) for where in (store, usual))
    assert found is not None
    assert without is not None
    pd.testing.assert_frame_equal(found.table, without.table)
    ((own, table),) = found.apart.items()
    assert (own.steps, table["step"].tolist(), found.table["step"].tolist()) == (200, [100, 200], [100, 200, 300])
    assert set(MINATAR.figures(found)) == {"breakout", "breakout-long", "fifths"}


@pytest.fixture(scope="module")
def shipped() -> Results[Settings]:
    """The study that comes with the package. Its figures are among those of the report, which has a slow test of all."""
    found = load(Store(SHIPPED, create=False), MINATAR, "study", 0)
    assert found is not None
    return found


def test_the_shipped_longer_runs_are_there_and_drawn(shipped: Results[Settings]) -> None:
    """All of them, with every seed, beside those of the same agents that are not longer."""
    ((own, table),) = shipped.apart.items()
    groups = [Group.parse(text) for text in LONGER]
    run = {(each.game, rate, LABELS[name]) for each in groups for rate in each.learning_rates for name in each.agents}
    assert {*table.groupby(["game", "learning_rate", "variant"]).groups} == run
    assert (own.steps, len(table)) == (5_000_000, len(run) * 5 * 500)
    assert shipped.table["step"].max() == STEPS
    figure = long_figure(shipped, "space_invaders")
    middles = {str(line.get_label()): np.asarray(line.get_xdata())[-1] for line in figure.axes[0].lines}
    for name in ("dqn", "ke-bdqn"):
        assert middles[f"{name}: 5 seeds, 5 million"] == 5_000_000 - 45_000
        assert middles[f"{name}: 5 seeds, 1 million"] == 1_000_000 - 45_000
    for game in ("breakout", "space_invaders"):
        lines = long_figure(shipped, game).axes[0].lines
        assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == len(lines)
    rates = [line.get_label() for line in long_figure(shipped, "breakout").axes[0].lines]
    assert {"dqn with 10^-5: 5 seeds, 5 million", "dqn: 5 seeds, 5 million", "dqn: 20 seeds, 1 million"} <= {*rates}


def test_panels_of_longer_runs_show_what_they_say(shipped: Results[Settings]) -> None:
    """The middle of five seeds' means over ten tests is between the least and the greatest; grey lines are where they belong."""
    ((own, table),) = shipped.apart.items()
    figure = long_figure(shipped, "space_invaders")
    assert "IQM, means of 10 tests," in figure.get_suptitle()
    runs = table[(table["game"] == "space_invaders") & (table["variant"] == ADAPTIVE)]
    points = (runs["step"] - 1) // 100_000
    for ax, column, grey in zip(figure.axes, ("test_return", "bias", "alpha"), ([], [0.0], [0.2, 0.4]), strict=True):
        lines = {str(line.get_label()): np.asarray(line.get_ydata(), dtype=float) for line in ax.lines}
        assert [y[0] for name, y in lines.items() if name.startswith("_")] == grey
        each = runs.groupby([runs["step"] if column == "alpha" else points, "seed"])[column].mean().groupby(level=0)
        curve = lines["ada-te-bdqn(0.0001): 5 seeds, 5 million"]
        assert np.all((each.min() - 1e-4 <= curve) & (curve <= each.max() + 1e-4))
    named = {name for name in lines if not name.startswith("_")}
    assert named == {
        f"ada-te-bdqn(0.0001): 5 seeds, {millions} million" for millions in (1, 5)
    }  # the others adapt nothing
    without = replace(shipped, apart={own: table[table["variant"] != ADAPTIVE]})
    assert len(long_figure(without, "space_invaders").axes) == 2


def test_points_of_longer_runs_are_as_many_tests_each(shipped: Results[Settings]) -> None:
    """Tests that do not fill a point are left out at the beginning; runs of few tests are drawn test by test."""
    ((own, table),) = shipped.apart.items()
    told = table.assign(test_return=table["step"].astype(float))  # which any mean over successive tests keeps
    cut = replace(shipped, apart={own: told[told["step"] > 70_000]})  # 493 tests: ten a point, and three left
    curve = long_figure(cut, "asterix").axes[0].lines[0]
    assert [*np.asarray(curve.get_xdata())] == [*range(155_000, 5_000_000, 100_000)]
    assert np.asarray(curve.get_ydata()) == pytest.approx(np.asarray(curve.get_xdata()))
    few = replace(shipped, apart={replace(own, steps=60_000): table[table["step"] <= 60_000]}, table=shipped.table[:0])
    figure = long_figure(few, "asterix")
    assert [*np.asarray(figure.axes[0].lines[0].get_xdata())] == [*range(10_000, 60_001, 10_000)]
    assert "means" not in figure.get_suptitle()


def test_runs_of_several_longer_lengths_are_drawn_beside_the_same_shorter_ones(shipped: Results[Settings]) -> None:
    ((own, table),) = shipped.apart.items()
    halves = {replace(own, steps=2_500_000): table[table["step"] <= 2_500_000], own: table}
    lines = long_figure(replace(shipped, apart=halves), "asterix").axes[0].lines
    told = {str(line.get_label()): (len(np.asarray(line.get_xdata())), line.get_linestyle()) for line in lines}
    assert {*told} == {f"ada-te-bdqn(0.0001): 5 seeds, {millions} million" for millions in (2.5, 1, 5)}
    assert sorted(points for points, _ in told.values()) == [10, 25, 50]
    assert len({style for _, style in told.values()}) == 3


def test_short_runs_beside_long_ones_are_at_least_a_point(shipped: Results[Settings]) -> None:
    ((own, table),) = shipped.apart.items()
    one = table[(table["step"] <= 60_000) & (table["seed"] == 0)]
    figure = long_figure(replace(shipped, apart={replace(own, steps=60_000): one, own: table}), "asterix")
    (short,) = (line for line in figure.axes[0].lines if "0.06 million" in str(line.get_label()))
    assert short.get_label() == "ada-te-bdqn(0.0001): 1 seed, 0.06 million"
    assert [*np.asarray(short.get_xdata())] == [35_000]
    with pytest.raises(ValueError, match="no runs of 'chess'"):
        long_figure(shipped, "chess")


def test_the_shipped_longer_runs_are_judged_where_they_are_complete(shipped: Results[Settings]) -> None:
    """From the tables by hand: DQN on Breakout has both learning rates, and KE-BDQN's bias needs no other agent."""
    found = {verdict.id: verdict.measured for verdict in judge(MINATAR, shipped)}
    (table,) = shipped.apart.values()
    late = table[table["step"] > 4_500_000]
    means = late.groupby(["game", "variant", "learning_rate", "seed"])[["test_return", "bias"]].mean()
    slowly, usual = (means.loc["breakout", "dqn", rate]["test_return"] for rate in (1e-5, MIDDLE_RATE))
    half = found["D7"][f"{MARGIN}dqn: less than half of the return at 10^-4.5, 5,000,000 steps"]
    assert half.value == pytest.approx(0.5 * usual.mean() - slowly.mean(), rel=1e-4)
    bias = means.loc["space_invaders", "ke-bdqn", MIDDLE_RATE]["bias"]
    assert str(found["D6"][f"{MARGIN}KE-BDQN's bias is negative, 5,000,000 steps"]) == str(Measured.mean(-bias))
    # parts whose runs are not all there yet stay where they were
    without = {verdict.id: verdict.measured for verdict in judge(MINATAR, replace(shipped, apart={}))}
    same = [name for name in found["D7"] if name.startswith(MARGIN) and name in without["D7"]]
    assert all(found["D7"][name] == without["D7"][name] for name in same)
    assert {name: found[name] for name in ("D1", "D2", "D4")} == {name: without[name] for name in ("D1", "D2", "D4")}


def test_claims_beyond_the_paper_compare_what_was_run(shipped: Results[Settings]) -> None:
    """From the tables by hand: the means of the last tenth in every game, all of which have all agents."""
    found = {verdict.id: verdict for verdict in judge(MINATAR, shipped) if verdict.beyond}
    assert {*found} == {"X1", "X2", "X3", "X4", "X5"}
    late = shipped.table[(shipped.table["step"] > 900_000) & (shipped.table["learning_rate"] == MIDDLE_RATE)]
    means = late.groupby(["game", "variant"])[["test_return", "bias", "value", "alpha"]].mean()
    for game in GAMES:
        of = means.loc[game].to_dict("index")
        ke, te, ada = (of[name] for name in ("ke-bdqn", "te-bdqn(0.1)", "ada-te-bdqn(0.0001)"))
        paired_ke, paired_te, paired_ada_te, paired_ada_ke = (of[LABELS[name]] for name in PAIRED)
        by_hand = {
            "X1": {"return of KE*-BDQN above KE-BDQN's": paired_ke["test_return"] - ke["test_return"]},
            "X2": {"|bias| of KE*-BDQN below KE-BDQN's": abs(ke["bias"]) - abs(paired_ke["bias"])},
            "X3": {"bias of TE*-BDQN(0.1) above TE-BDQN(0.1)'s": paired_te["bias"] - te["bias"]},
            "X4": {
                "|bias| of Ada-TE*-BDQN below 10% of its mean Q": 0.1 * paired_ada_te["value"]
                - abs(paired_ada_te["bias"]),
                "alpha of Ada-TE*-BDQN ends below Ada-TE-BDQN's": ada["alpha"] - paired_ada_te["alpha"],
            },
            "X5": {"|bias| of Ada-KE*-BDQN below KE*-BDQN's": abs(paired_ke["bias"]) - abs(paired_ada_ke["bias"])},
        }
        for claim, expected in by_hand.items():
            margins = {name: each.value for name, each in found[claim].measured.items() if name.startswith(MARGIN)}
            own = {name: value for name, value in margins.items() if name.startswith(f"{MARGIN}{game}: ")}
            assert own == pytest.approx(
                {f"{MARGIN}{game}: {name}": value for name, value in expected.items()}, rel=2e-3
            )
            assert len(margins) == len(GAMES) * len(own)


def test_further_groups_belong_to_the_games_that_are_chosen() -> None:
    settings = replace(
        MINATAR.settings("quick"), together=True, besides=("freeway@1e-5 dqn bdqn", "breakout@1e-4 ddqn")
    )
    by_game = {
        games: [
            (part["game"], part["learning_rate"], part["agents"])
            for part in MINATAR.parts(replace(settings, games=games))
        ]
        for games in (("breakout",), ("breakout", "freeway"))
    }
    grid = [("breakout", 1e-3, ["dqn"]), ("breakout", 1e-3, ["te-bdqn:0.1", "ke-bdqn"])]
    assert by_game["breakout",] == [*grid, ("breakout", 1e-4, ["ddqn"])]
    assert by_game["breakout", "freeway"][-2:] == [("freeway", 1e-5, ["dqn", "bdqn"]), ("breakout", 1e-4, ["ddqn"])]


@pytest.mark.usefixtures("small_networks")
def test_a_shard_is_a_tidy_table_and_becomes_figures(tmp_path: Path) -> None:
    (part,) = MINATAR.parts(TINY)
    table = MINATAR.resume(TINY, part, np.random.default_rng(0), tmp_path / "state")
    assert len(table) == 2 * 3
    assert set(table["game"]) == {"breakout"}
    assert {"test_return", "bias", "bias_error", "alpha", "bias_fifth_0", "value_fifth_4"} <= set(table.columns)
    layout = MINATAR.layout(TINY, part)
    assert layout is not None
    assert sorted((*layout.numbers, *layout.gaps, *layout.texts)) == sorted(table.columns)
    pd.testing.assert_frame_equal(read_table(as_parquet(table), layout, part), table, check_dtype=False)
    figures = MINATAR.figures(Results("minatar", "quick", TINY, 0, table))
    assert set(figures) == {"breakout", "fifths"}
    # what it left is a finished training: the same table comes of it without another step
    again = MINATAR.resume(TINY, part, np.random.default_rng(1), tmp_path / "state")
    pd.testing.assert_frame_equal(again, table)


@pytest.mark.usefixtures("small_networks")
@pytest.mark.parametrize("terminal", [True, False])
def test_a_long_shard_says_how_far_it_is(tmp_path: Path, terminal: bool) -> None:
    """Beside the number of shards, on the same console; on a terminal both are lines that change."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=120)
    with make_reporter(console, quiet=False) as reporter:
        job = ExperimentJob(MINATAR, "custom", TINY)
        summary = reproduce([job], Store(tmp_path), make_engine("inline", None, None, console), 0, reporter)
    assert summary.computed == 1
    said = text.getvalue()
    assert "2 runs of minatar/breakout" in said
    for part in ("0/1", "0 of 300 steps (0%)") if terminal else ("0 of 1 shards done", "300 of 300 steps (100%)"):
        assert part in said


@pytest.mark.usefixtures("small_networks")
def test_a_long_shard_is_silent_when_asked(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (task,) = [Task(MINATAR, TINY, shard, tmp_path / "state") for shard in MINATAR.shards(TINY, 0)]
    assert all(outcome.table for outcome in make_engine("inline", None, None).run([task]))
    assert "".join(capfd.readouterr()) == ""


def results(**biases: float) -> Results[Any]:
    """A study of one test and five seeds whose numbers are plain; biases by the beginning of a variant's name."""
    labels = [make_agent(name).label for name in (*SINGLE, *MAXMIN, *HEADS)]
    rows = []
    for game in ("breakout", "space_invaders"):
        for label in labels:
            bias = next((value for name, value in biases.items() if label.startswith(name.replace("_", "-"))), 0.0)
            if label.startswith("te-bdqn("):
                bias += 10 * float(label[8:-1])
            for seed in range(5):
                noise = 0.01 * seed
                rows.append((game, label, seed, STEPS, 10.0 + noise, bias + noise, 10.0, 0.3 + noise / 10))
    columns = ["game", "variant", "seed", "step", "test_return", "bias", "value", "alpha"]
    table = pd.DataFrame(rows, columns=columns).assign(learning_rate=10**-4.5)
    settings = Settings(games=("breakout", "space_invaders"), steps=STEPS, seeds=5, learning_rates=(10**-4.5,))
    return Results("minatar", "study", settings, 0, table)


def verdict(found: Results[Any], name: str) -> str:
    """The verdict on one claim; the others are not judged."""
    claims = tuple(claim for claim in MINATAR.claims if claim.id == name)
    (alone,) = judge(type("Alone", (type(MINATAR),), {"claims": claims})(), found)
    return alone.verdict


def refuted(found: Results[Any], name: str) -> bool:
    """Whether some part of the claim fails."""
    return verdict(found, name) in ("fails", "holds in part")


def test_the_judges_see_what_is_there() -> None:
    """Each claim on a study made so that it holds, and on one made so that it does not."""
    good = results(dqn=5.0, ddqn=2.0)
    assert verdict(good, "D1") == "holds"
    assert refuted(results(dqn=2.0, ddqn=5.0), "D1")
    assert refuted(results(dqn=5.0, ddqn=-2.0), "D1")
    assert verdict(good, "D2") == "holds"
    upside_down = good.table.assign(bias=-good.table["bias"])
    assert refuted(replace(good, table=upside_down), "D2")
    assert verdict(good, "D3") == "holds"
    assert refuted(results(ada=3.0), "D3")
    assert refuted(replace(good, table=good.table.assign(alpha=good.table["alpha"] - 0.2)), "D3")
    everywhere = results(dqn=5, ddqn=2, scdqn=2, maxmin=-2, bdqn=2, ke=-2, te=3)
    assert verdict(everywhere, "D4") == "holds"
    assert refuted(good, "D4")
    # one game that is clear is enough, even if in another the seeds spread further out
    spread = 2.0 * (everywhere.table["game"] == "breakout") * (everywhere.table["seed"] - 1)
    assert (
        verdict(replace(everywhere, table=everywhere.table.assign(bias=everywhere.table["bias"] + spread)), "D4")
        == "holds"
    )
    better = good.table.assign(test_return=good.table["test_return"] + 2.0 * good.table["variant"].str.contains("bdqn"))
    assert verdict(replace(good, table=better), "D5") == "holds"
    worse = good.table.assign(test_return=good.table["test_return"] - 2.0 * good.table["variant"].str.contains("bdqn"))
    assert refuted(replace(good, table=worse), "D5")
    ke = good.table.assign(test_return=good.table["test_return"] + 2.0 * (good.table["variant"] == "ke-bdqn"))
    low = ke.assign(bias=ke["bias"] - 4.0 * (ke["variant"] == "te-bdqn(0.1)") - 2.0 * (ke["variant"] == "ke-bdqn"))
    assert verdict(replace(good, table=low), "D6") == "holds"
    assert refuted(good, "D6")
    assert verdict(good, "D7") == "undecided"
    rates = (1e-5, 10**-4.5, 1e-4)
    slow = pd.concat(
        [
            good.table.assign(learning_rate=rate, test_return=good.table["test_return"] * (0.1 + (rate > 2e-5)))
            for rate in rates
        ]
    )
    assert verdict(replace(good, table=slow, settings=replace(good.settings, learning_rates=rates)), "D7") == "holds"


BIASES = {
    "dqn": 5,
    "ddqn": 2,
    "scdqn(2)": 2,
    "scdqn(3)": 2,
    "scdqn(4)": 2,
    "maxmin-dqn(2)": -2,
    "maxmin-dqn(3)": -2,
    "bdqn": 2,
    "ke-bdqn": -2,
    "te-bdqn(0.1)": -5,
    "te-bdqn(0.2)": -2,
    "te-bdqn(0.3)": 2,
    "te-bdqn(0.4)": 5,
    "ada-te-bdqn(0.0001)": 0,
    "ada-te-bdqn(1e-05)": 0,
}
SLOW = 1e-5


BEYOND: dict[str, dict[str, float]] = {
    "ke*-bdqn": {"test_return": 15.0, "bias": 1.0},
    "te*-bdqn(0.1)": {"bias": 1.0},
    "ada-te*-bdqn(0.0001)": {"bias": 0.0, "alpha": 0.1},
    "ada-ke*-bdqn(0.0001)": {"bias": -0.5},
}
"""What the agents beyond the paper have where the claims about them hold."""


def agreeing(
    wrong: tuple[str, str, float, str] | None = None,
    slow: float = 0.4,
    beyond: Mapping[str, Mapping[str, float]] | None = None,
) -> Results[Any]:
    """A study in which all claims hold, at its end alone: before it everything is the other way round.

    ``wrong`` is what is different: a variant, a column, its value, and the game or all; ``slow`` the share of the return that
    the smallest learning rate brings; ``beyond`` what agents have that are not the paper's.
    """
    rows = []
    more = beyond or {}
    variants = (*BIASES, *more)
    for game, rate, label, seed in product(("breakout", "space_invaders"), (SLOW, 10**-4.5), variants, range(5)):
        row = {
            "test_return": 14.0 if label == "ke-bdqn" else 12.0 if "bdqn" in label else 10.0,
            "bias": float(BIASES.get(label, 0)),
            "alpha": 0.3,
            **more.get(label, {}),
        }
        if wrong is not None and label == wrong[0] and wrong[3] in (game, "all"):
            row[wrong[1]] = wrong[2]
        row["test_return"] *= slow if rate == SLOW else 1.0
        noisy = {name: value + 0.01 * seed for name, value in row.items()}
        about = {"game": game, "learning_rate": rate, "variant": label, "seed": seed, "value": 10.0}
        rows.append(about | noisy | {"step": STEPS})
        rows.append(about | {name: -value for name, value in noisy.items()} | {"step": 9 * STEPS // 10})
    settings = Settings(games=("breakout", "space_invaders"), steps=STEPS, seeds=5, learning_rates=(SLOW, 10**-4.5))
    return Results("minatar", "study", settings, 0, pd.DataFrame(rows))


def test_all_claims_hold_where_all_is_as_the_paper_says() -> None:
    found = judge(MINATAR, agreeing())
    assert {each.id: each.verdict for each in found if not each.beyond} == {f"D{i}": "holds" for i in range(1, 8)}
    assert {each.id: each.note for each in found if each.beyond} == {
        "X1": "No game was run with both ke*-bdqn and ke-bdqn.",
        "X2": "No game was run with both ke*-bdqn and ke-bdqn.",
        "X3": "No game was run with both te*-bdqn(0.1) and te-bdqn(0.1).",
        "X4": "No game was run with both ada-te*-bdqn(0.0001) and ada-te-bdqn(0.0001).",
        "X5": "No game was run with both ada-ke*-bdqn(0.0001) and ke*-bdqn.",
    }


def test_all_claims_beyond_the_paper_hold_where_all_is_as_they_say() -> None:
    """And the paper's too, which these agents have no part in. A game without them is named, and the other one decides."""
    study = agreeing(beyond=BEYOND)
    found = judge(MINATAR, study)
    assert {each.verdict for each in found} == {"holds"}
    one = study.table[(study.table["game"] == "breakout") | study.table["variant"].isin(BIASES)]
    notes = {each.id: each.note for each in judge(MINATAR, replace(study, table=one)) if each.beyond}
    assert notes["X3"] == "Not run with both te*-bdqn(0.1) and te-bdqn(0.1): space_invaders."
    assert {each.verdict for each in judge(MINATAR, replace(study, table=one))} == {"holds"}


@pytest.mark.parametrize(
    ("claim", "wrong"),
    [
        ("X1", ("ke*-bdqn", "test_return", 13, "breakout")),
        ("X2", ("ke*-bdqn", "bias", 3, "space_invaders")),
        ("X2", ("ke*-bdqn", "bias", -3, "breakout")),
        ("X3", ("te*-bdqn(0.1)", "bias", -6, "space_invaders")),
        ("X4", ("ada-te*-bdqn(0.0001)", "bias", 1.5, "breakout")),
        ("X4", ("ada-te*-bdqn(0.0001)", "bias", -1.5, "space_invaders")),
        ("X4", ("ada-te*-bdqn(0.0001)", "alpha", 0.35, "breakout")),
        ("X5", ("ada-ke*-bdqn(0.0001)", "bias", -1.5, "breakout")),
        ("X5", ("ada-ke*-bdqn(0.0001)", "bias", 1.5, "space_invaders")),
    ],
    ids=str,
)
def test_each_part_of_a_claim_beyond_the_paper_can_fail(claim: str, wrong: tuple[str, str, float, str]) -> None:
    assert refuted(agreeing(wrong, beyond=BEYOND), claim)


@pytest.mark.parametrize(
    ("claim", "wrong"),
    [
        ("D1", ("ddqn", "bias", -2, "breakout")),
        ("D1", ("ddqn", "bias", 6, "space_invaders")),
        ("D2", ("te-bdqn(0.2)", "bias", -6, "breakout")),
        ("D2", ("te-bdqn(0.3)", "bias", -3, "breakout")),
        ("D2", ("te-bdqn(0.4)", "bias", 1.5, "space_invaders")),
        ("D3", ("ada-te-bdqn(0.0001)", "bias", 1.5, "breakout")),
        ("D3", ("ada-te-bdqn(0.0001)", "bias", -1.5, "space_invaders")),
        ("D3", ("ada-te-bdqn(0.0001)", "alpha", 0.17, "breakout")),
        ("D3", ("ada-te-bdqn(0.0001)", "alpha", 0.45, "space_invaders")),
        *(("D4", (name, "bias", 0, "all")) for name in BIASES if not name.startswith("ada")),
        *(("D5", (name, "test_return", 13, "all")) for name in ("dqn", "ddqn", "scdqn(2)", "scdqn(3)", "scdqn(4)")),
        ("D5", ("ke-bdqn", "test_return", 5, "breakout")),
        ("D5", ("ada-te-bdqn(0.0001)", "test_return", 5, "space_invaders")),
        ("D6", ("ada-te-bdqn(0.0001)", "test_return", 15, "space_invaders")),
        ("D6", ("ke-bdqn", "bias", 1, "space_invaders")),
        ("D6", ("te-bdqn(0.1)", "bias", -1.5, "space_invaders")),
        ("D6", ("te-bdqn(0.1)", "test_return", 15, "space_invaders")),
    ],
    ids=str,
)
def test_each_part_of_a_claim_can_fail(claim: str, wrong: tuple[str, str, float, str]) -> None:
    assert refuted(agreeing(wrong), claim)


def test_heads_far_below_maxmin_are_not_comparable() -> None:
    study = agreeing()
    maxmin = study.table["variant"].str.startswith("maxmin") & (study.table["step"] == STEPS)
    table = study.table.assign(test_return=study.table["test_return"] + 5.0 * maxmin)
    assert refuted(replace(study, table=table), "D5")


def test_learning_is_impractically_slow_below_half_of_the_return() -> None:
    assert verdict(agreeing(slow=0.45), "D7") == "holds"
    assert refuted(agreeing(slow=0.55), "D7")


def with_some_at_the_smallest_rate(study: Results[Any], names: list[str]) -> Results[Any]:
    """The study with these variants alone at the smallest learning rate, on Breakout."""
    table = study.table
    some = (table["game"] == "breakout") & table["variant"].isin(names)
    return replace(study, table=table[(table["learning_rate"] != SLOW) | some])


def test_other_learning_rates_are_judged_by_the_variants_that_have_them() -> None:
    """And the notes say how many those are."""
    found = {each.id: each for each in judge(MINATAR, with_some_at_the_smallest_rate(agreeing(), ["dqn", "ke-bdqn"]))}
    assert {each.verdict for each in found.values() if not each.beyond} == {"holds"}
    half = "less than half of the return at 10^-4.5"
    assert [name for name in found["D7"].measured if name.startswith(MARGIN)] == [
        f"{MARGIN}dqn: {half}",
        f"{MARGIN}ke-bdqn: {half}",
    ]
    assert found["D7"].note == "With 10^-5, 2 of 15 variants were run on breakout."
    assert found["D7"].note in found["D5"].note
    assert "Fewer than three learning rates on breakout, space_invaders" in found["D5"].note
    none = with_some_at_the_smallest_rate(agreeing(), [])
    assert verdict(none, "D7") == "undecided"


def test_agents_that_are_not_the_papers_change_no_verdict() -> None:
    """Not even where only one game has them, or a learning rate has no others."""
    study = agreeing()
    alone = study.table[(study.table["variant"] == "dqn") & (study.table["game"] == "breakout")]
    more = [alone.assign(variant="ada-ke-bdqn", learning_rate=rate, test_return=99.0) for rate in (10**-4.5, 1e-6)]
    found = judge(MINATAR, replace(study, table=pd.concat([study.table, *more])))
    assert found == judge(MINATAR, study)


def test_the_smallest_learning_rate_is_the_papers() -> None:
    """Not one that lies nearer to the middle, and not one below that nobody else has."""
    study = agreeing()
    for other in (3e-5, 1e-6):
        table = study.table.assign(learning_rate=study.table["learning_rate"].replace(SLOW, other))
        assert verdict(replace(study, table=table), "D7") == "undecided"
    near = study.table.assign(learning_rate=study.table["learning_rate"].replace(SLOW, 1.001e-5))
    assert verdict(replace(study, table=near), "D7") == "holds"
    elsewhere = replace(study, table=study.table[study.table["game"] != "breakout"])
    elsewhere = replace(elsewhere, settings=replace(study.settings, games=("space_invaders",)))
    assert verdict(elsewhere, "D7") == "undecided"
    table = study.table.assign(learning_rate=study.table["learning_rate"].replace(10**-4.5, 8e-5))
    faster = replace(study, table=table, settings=replace(study.settings, learning_rates=(SLOW, 8e-5)))
    assert verdict(faster, "D7") == "undecided"


def test_a_game_that_lacks_a_variant_leaves_claims_undecided() -> None:
    study = agreeing()
    lacking = (study.table["game"] == "space_invaders") & (study.table["variant"] == "ke-bdqn")
    assert {each.verdict for each in judge(MINATAR, replace(study, table=study.table[~lacking]))} == {"undecided"}


def with_more_seeds(study: Results[Any], variant: str, game: str, **changed: float) -> Results[Any]:
    """The study with fifteen more seeds of a variant on a game, where some columns are moved at the end of training."""
    table = study.table
    last = (table["variant"] == variant) & (table["game"] == game) & (table["step"] == STEPS)
    own = table[last & (table["learning_rate"] == 10**-4.5)]
    more = [own.assign(seed=own["seed"] + 5 * i) for i in (1, 2, 3)]
    moved = [rows.assign(**{name: rows[name] + by for name, by in changed.items()}) for rows in more]
    return replace(study, table=pd.concat([table, *moved]))


def test_an_interval_is_over_all_seeds_that_a_variant_has() -> None:
    """Twenty of one beside five of another, as Welch's interval has it; and the note says so."""
    study = with_more_seeds(agreeing(), "dqn", "breakout", bias=0.04)
    (d1,) = [each for each in judge(MINATAR, study) if each.id == "D1"]
    five = 0.01 * np.arange(5)
    dqn, ddqn = np.concatenate([5 + five, *[5.04 + five] * 3]), 2 + five
    assert str(d1.measured[f"{MARGIN}breakout: DQN's bias is larger"]) == str(Measured.difference(dqn, ddqn))
    assert str(d1.measured[f"{MARGIN}breakout: bias of DQN is positive"]) == str(Measured.mean(dqn))
    assert d1.note == "Over 5 seeds; with 10^-4.5, 20 of dqn on breakout."
    assert d1.verdict == "holds"


def test_more_seeds_may_turn_a_verdict() -> None:
    assert refuted(with_more_seeds(agreeing(), "ddqn", "space_invaders", bias=12.0), "D1")
    assert refuted(with_more_seeds(agreeing(), "te-bdqn(0.2)", "breakout", bias=-9.0), "D2")
    assert refuted(with_more_seeds(agreeing(), "ke-bdqn", "breakout", test_return=-30.0), "D5")
    assert refuted(with_more_seeds(agreeing(), "dqn", "breakout", test_return=-9.0), "D7")


def test_a_mean_over_games_has_all_seeds_of_each() -> None:
    """Worked out by hand: twenty seeds on one game and five on the other, whose best have 14.02 on average."""
    study = with_more_seeds(agreeing(), "dqn", "breakout", test_return=1.0)
    (d5,) = [each for each in judge(MINATAR, study) if each.id == "D5"]
    five = 10 + 0.01 * np.arange(5)
    games = [np.concatenate([five, *[five + 1.0] * 3]) / 14.02, five / 14.02]
    parts = [values.var(ddof=1) / len(values) / 4 for values in games]
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 19 + parts[1] ** 2 / 4)
    by_hand = Measured.around(np.mean([values.mean() for values in games]), np.sqrt(sum(parts)), freedom)
    assert str(d5.measured["return of dqn, mean share of each game's best"]) == str(by_hand)
    assert d5.note.endswith(" Over 5 seeds; with 10^-4.5, 20 of dqn on breakout.")


def test_variants_are_averaged_over_the_seeds_that_all_of_them_have() -> None:
    """Fifteen more of one of the heads change nothing where all heads are put together, but what is compared with them does."""
    study = agreeing()
    name = f"{MARGIN}heads, on average, above dqn"
    one, head, other = (
        d5.measured[name]
        for found in (
            study,
            with_more_seeds(study, "bdqn", "breakout", test_return=-9.0),
            with_more_seeds(study, "dqn", "breakout", test_return=-9.0),
        )
        for d5 in judge(MINATAR, found)
        if d5.id == "D5"
    )
    assert one == head
    assert other.value > one.value + 0.1


def test_without_a_common_seed_there_is_no_mean_of_variants() -> None:
    study = agreeing()
    apart = study.table.assign(seed=study.table["seed"] + 5 * (study.table["variant"] == "maxmin-dqn(3)"))
    (d5,) = [each for each in judge(MINATAR, replace(study, table=apart)) if each.id == "D5"]
    assert d5.verdict == "undecided"
    assert d5.note == "No seed was run with all of maxmin-dqn(2), maxmin-dqn(3) on breakout."


def test_the_best_of_the_others_may_be_another_than_the_one_that_looks_it() -> None:
    """A rival that varies may be the best although its mean is not: nothing is clearly above both."""
    returns = {"ke-bdqn": [10.0, 10.1, 9.9], "dqn": [9.0, 9.1, 8.9], "ddqn": [0.0, 20.0, 4.0]}
    ends: Any = SimpleEnds(returns)
    (alone,) = parts.above(ends, ["dqn"]).values()
    (both,) = parts.above(ends, ["dqn", "ddqn"]).values()
    assert alone.low > 0 > both.low
    assert both.value == alone.value
    ((name, kept),) = parts.robust(ends, "breakout", MIDDLE_RATE, "ke-bdqn", ["dqn", "ddqn"]).items()
    assert name == "breakout: ke-bdqn keeps 70% of the best of 2 others (dqn)"
    assert kept.low < 0 < kept.value


@dataclass
class SimpleEnds:
    """The same returns in all games and with all learning rates."""

    returns: dict[str, list[float]]
    rate: float = MIDDLE_RATE

    def __call__(self, column: str, game: str, name: str, rate: float | None = None) -> np.ndarray:
        return np.array(self.returns[name])


def test_the_worst_of_five_games_has_to_be_clearer_than_one_named_in_advance() -> None:
    inside = Measured.around(-1.0, 0.35, freedom=4)
    assert (-Measured.least([inside] * 5)).low < 0 < (-inside).low


def test_a_mean_over_games_is_as_sure_as_its_seeds() -> None:
    """Of one game it is Student's or Welch's interval; of one seed it has none, and what does not vary is exact."""
    first, second = np.array([1.0, 2.0, 4.0]), np.array([0.0, 1.0, 0.5, 0.25])
    assert str(mean_over_games([first])) == str(Measured.mean(first))
    assert str(mean_over_games([first], [second])) == str(Measured.difference(first, second))
    unsure = mean_over_games([first, np.ones(1)])
    assert unsure.value == pytest.approx(5 / 3)
    assert (unsure.low, unsure.high) == (-np.inf, np.inf)
    assert mean_over_games([np.ones(3), np.zeros(2)]) == Measured.exact(0.5)


def test_an_agent_is_not_robust_by_its_own_return() -> None:
    (d5,) = [
        each
        for each in judge(MINATAR, with_some_at_the_smallest_rate(agreeing(), ["ke-bdqn", "ada-te-bdqn(0.0001)"]))
        if each.id == "D5"
    ]
    assert not [name for name in d5.measured if "10^-5" in name]


def test_games_without_any_return_are_not_compared() -> None:
    study = agreeing()
    (d5,) = [
        each for each in judge(MINATAR, replace(study, table=study.table.assign(test_return=0.0))) if each.id == "D5"
    ]
    assert d5.verdict == "undecided"
    assert d5.note == "No variant has a return above zero on breakout."


def test_the_middle_rate_is_the_nearest_by_factor() -> None:
    assert middle_rate([1e-5, 8e-5]) == 8e-5
    assert middle_rate([1.5e-5, 8e-5]) == 1.5e-5


def test_three_learning_rates_of_the_agents_that_are_said_to_be_robust_are_enough() -> None:
    study = agreeing()
    fast = study.table[study.table["learning_rate"] == SLOW].assign(learning_rate=1e-4)
    some = fast[(fast["game"] == "breakout") & (fast["variant"].isin(["dqn", "ke-bdqn", "ada-te-bdqn(0.0001)"]))]
    (d5,) = [each for each in judge(MINATAR, replace(study, table=pd.concat([study.table, some]))) if each.id == "D5"]
    assert "Fewer than three learning rates on space_invaders:" in d5.note


def test_an_agent_that_fails_with_one_learning_rate_is_not_robust() -> None:
    study = with_some_at_the_smallest_rate(agreeing(), ["dqn", "ke-bdqn"])
    low = (study.table["learning_rate"] == SLOW) & (study.table["variant"] == "ke-bdqn")
    table = study.table.assign(test_return=study.table["test_return"].where(~low, 1.0))
    (d5,) = [each for each in judge(MINATAR, replace(study, table=table)) if each.id == "D5"]
    assert d5.parts.fail
    assert "breakout with 10^-5: ke-bdqn keeps 70% of the best of 1 other (dqn)" in d5.why


def test_a_study_without_some_agents_leaves_claims_undecided_and_says_so() -> None:
    """As the quick scale does, which has three of the fifteen."""
    few = results()
    few = replace(few, table=few.table[few.table["variant"].isin(["dqn", "te-bdqn(0.1)", "ke-bdqn"])])
    for found in judge(MINATAR, few):
        assert found.verdict == "undecided"
        assert found.note == "3 of the paper's 15 variants were run with 10^-4.5."


def test_fifteen_agents_that_are_not_the_papers_leave_claims_undecided() -> None:
    other = results()
    other = replace(other, table=other.table.replace("te-bdqn(0.4)", "te-bdqn(0.05)"))
    assert {found.note for found in judge(MINATAR, other)} == {"14 of the paper's 15 variants were run with 10^-4.5."}


def test_an_algorithm_that_may_be_off_in_one_game_is_not_near_zero_in_all() -> None:
    """TE-BDQN(0.2) is at 0.2 of 10, but in one game nobody knows: all others are far off everywhere."""
    study = results(dqn=5, ddqn=2, scdqn=2, maxmin=-2, bdqn=2, ke=-2, te=3)
    table = study.table.assign(bias=study.table["bias"] - 4.8 * (study.table["variant"] == "te-bdqn(0.2)"))
    assert refuted(replace(study, table=table), "D4")
    open_ = (table["variant"] == "te-bdqn(0.2)") & (table["game"] == "breakout")
    assert verdict(
        replace(study, table=table.assign(bias=table["bias"] + 3.0 * open_ * (table["seed"] - 2))), "D4"
    ) == ("undecided")


def test_near_zero_is_a_margin() -> None:
    inside, outside = (
        parts.near_zero(np.array([0.1, -0.1, 0.0]), 10.0),
        parts.near_zero(np.array([3.1, 2.9, 3.0]), 10.0),
    )
    assert inside.value == pytest.approx(1.0)
    assert 0 < inside.low < inside.value <= inside.high == 1.0
    assert outside.high < 0


def test_claims_say_why_they_are_not_judged(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED / "minatar", tmp_path / "minatar")
    shutil.copy(SHIPPED / "maxmean-results.json", tmp_path)
    usual = replace(MINATAR.settings("study"), besides=())
    Store(tmp_path).write_plan("minatar", "study", StudyPlan(plain(usual), MINATAR.shards(usual, 0)))
    whole = maxmean("claims", "--from", tmp_path).stdout
    assert whole.count("No variant was run on Breakout with both 10^-4.5 and 10^-5.") == 1
    assert "damaged" not in whole
    with (tmp_path / "minatar" / f"{MINATAR.shards(usual, 0)[0].key}.parquet").open("ab") as file:
        file.write(b"x")
    damaged = maxmean("claims", "--from", tmp_path)
    assert damaged.returncode == 2
    assert "its checksum is not the one in its manifest (study scale, seed 0)" in damaged.stderr


def edited(table: pd.DataFrame, **columns: Any) -> pd.DataFrame:
    """The table with another value in the first row of some columns."""
    return table.assign(**{name: [value, *table[name].tolist()[1:]] for name, value in columns.items()})


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda t: t.iloc[1:], "it has 2,999 rows, and its settings make 3,000"),
        (lambda t: edited(t, game="freeway"), "its column 'game' holds 'freeway', and it should be of 'asterix'"),
        (lambda t: edited(t, episodes=float("inf")), "its column 'episodes' holds numbers that are not finite"),
        (lambda t: edited(t, step=20_000), "it has two rows with the same step, variant, learning_rate, seed"),
        *(
            pytest.param(change, why, marks=pytest.mark.slow)
            for change, why in (
                (lambda t: t.drop(columns="bias"), "it has no column 'bias'"),
                (lambda t: t.assign(more=1.0), "it has a column 'more', which is not known"),
                (lambda t: t.assign(bias="x"), "its column 'bias' does not hold numbers"),
                (
                    lambda t: edited(t, variant="bdqn"),
                    "its column 'variant' holds 'bdqn', which its settings do not make",
                ),
                (lambda t: edited(t, step=10_001), "its column 'step' holds 10001, which its settings do not make"),
                (lambda t: edited(t, seed=4), "its column 'seed' holds 4, which its settings do not make"),
                (lambda t: edited(t, learning_rate=1e-5), "its column 'learning_rate' holds 1e-05, which its settings"),
            )
        ),
    ],
)
def test_a_strangers_table_that_cannot_be_used_is_named(
    tmp_path: Path, change: Callable[[pd.DataFrame], pd.DataFrame], why: str
) -> None:
    """The file, not the folder: its checksum is right, since anyone can compute one."""
    shutil.copytree(SHIPPED / "minatar", tmp_path / "minatar")
    shutil.copy(SHIPPED / "maxmean-results.json", tmp_path)
    store, settings = Store(tmp_path), MINATAR.settings("study")
    (shard,) = [
        each for each in MINATAR.shards(settings, 0) if each.part["game"] == "asterix" and 5 in each.part["seeds"]
    ]
    table, manifest = store.read(shard)
    store.write(shard, as_parquet(change(table)), manifest["seconds"])
    answer = maxmean("claims", "--json", "--from", tmp_path)
    assert answer.returncode == 2
    assert f"/minatar/{shard.key}.parquet' cannot be used: {why}" in answer.stderr


def test_agents_that_are_not_the_papers_may_have_any_label() -> None:
    """What they are called takes JAX to know, which whoever reads results may not have."""
    settings = replace(TINY, heads=("te-bdqn:0.05",))
    (own, other) = (MINATAR.layout(settings, part) for part in MINATAR.parts(settings))
    assert own is not None
    assert other is not None
    assert (own.keys["variant"], other.keys["variant"]) == (["dqn"], None)


def test_the_fifteen_variants_are_called_what_the_agents_say() -> None:
    assert {name: make_agent(name).label for name in LABELS} == LABELS
    papers = [label for name, label in LABELS.items() if name not in PAIRED]
    assert sorted(VARIANTS) == sorted(papers) == sorted(label for column in COLUMNS for label in column)
    assert len(set(VARIANTS)) == 15


def test_the_shipped_study_is_complete_and_of_the_present_settings(shipped: Results[Settings]) -> None:
    found = shipped
    assert found.missing == 0
    assert found.settings == MINATAR.settings("study")
    # the paper's 15 agents and 4 others on 5 games, 8 and 4 with other rates, with 5 seeds; 15 more seeds of 8; 100 tests
    assert len(found.table) == (((15 + 4) * 5 + 8 + 4) * 5 + 8 * 15) * 100
    assert not found.table.duplicated(["game", "learning_rate", "variant", "seed", "step"]).any()
    assert (found.table["diverged"] == -1).all()


def test_settings_are_changed_by_name() -> None:
    changed = change(Settings(), ["seeds=3", "learning_rates=1e-3,1e-4", "maxmin=", "together=false"])
    assert (changed.seeds, changed.learning_rates, changed.maxmin, changed.together) == (3, (1e-3, 1e-4), (), False)
    assert ExperimentJob.of(MINATAR, "study", ["seeds=3"]).scale == "custom"
    assert ExperimentJob.of(MINATAR, "study").scale == "study"
    for text, sentence in {
        "steps": "NAME=VALUE, not 'steps'",
        "step=3": "unknown setting 'step'; did you mean 'steps'",
        "steps=many": "steps is now 5000000, and 'many' is no whole number",
        "together=3": "together is now True, and '3' is neither true nor false",
        "games=pong": "unknown game 'pong'",
        "seeds=0": "seeds must be at least 1, not 0",
        "games=": "at least one game",
        "games=freeway,freeway": "games has an entry twice",
        "learning_rates=1e-3,1e-3": "learning_rates has an entry twice",
        "learning_rates=-1": "learning rates must be positive numbers, not -1.0",
        "learning_rates=nan": "learning rates must be positive numbers, not nan",
        "learning_rates=fast": "is no list of numbers",
        "besides=breakout dqn": "as GAME@LEARNING_RATE.* AGENT AGENT .*, not 'breakout dqn'",
        "besides=breakout@1e-5": "as GAME@LEARNING_RATE.* AGENT AGENT .*, not 'breakout@1e-5'",
        "besides=breakout@1e-5 seeds=5-19": "as GAME@LEARNING_RATE.* AGENT AGENT .*, not 'breakout@1e-5 seeds=5-19'",
        "besides=breakout@1e-5 dqn seeds=20": "seeds=FIRST-LAST, such as seeds=5-19, not 'seeds=20'",
        "besides=breakout@1e-5 dqn seeds=": "seeds=FIRST-LAST, such as seeds=5-19, not 'seeds='",
        "besides=breakout@1e-5 dqn seeds=-5-9": "seeds=FIRST-LAST, such as seeds=5-19, not 'seeds=-5-9'",
        "besides=breakout@1e-5 dqn seeds=5-²": "seeds=FIRST-LAST, such as seeds=5-19, not 'seeds=5-²'",
        f"besides=breakout@1e-5 dqn seeds=5-{'9' * 5000}": "seeds=FIRST-LAST, such as seeds=5-19, not 'seeds=5-9",
        "besides=breakout@1e-5 dqn seeds=9-5": "from a smaller to a larger number below 1000, .* not 'seeds=9-5'",
        "besides=breakout@1e-5 dqn seeds=5-1000": "from a smaller to a larger number below 1000, .* not 'seeds=5-1000'",
        "besides=breakout@1e-5 dqn seeds=5-6 seeds=7-8": "a group has its seeds once",
        "besides=breakout@1e-5 dqn steps=5 steps=6": "a group has its steps once",
        "besides=breakout@1e-5 steps=500": "as GAME@LEARNING_RATE.* AGENT AGENT .*, not 'breakout@1e-5 steps=500'",
        "besides=breakout@1e-5 dqn steps=": "whole number from 1 to 1,000,000,000, such as steps=5000000, not 'steps='",
        "besides=breakout@1e-5 dqn steps=0": "whole number from 1 to 1,000,000,000, such as steps=5000000, not 'steps=0'",
        "besides=breakout@1e-5 dqn steps=1e6": "such as steps=5000000, not 'steps=1e6'",
        f"besides=breakout@1e-5 dqn steps={'9' * 5000}": "such as steps=5000000, not 'steps=999",
        "test_interval=1": "steps over test_interval must be at most 100,000, not 5,000,000",
        "besides=pong@1e-5 dqn": "unknown game 'pong'",
        "besides=breakout@0 dqn": "learning rates must be positive numbers, not 0.0",
        "learning_rates=10^999": "is no list of numbers",
        "learning_rates=2^3": "is no list of numbers",
        "seeds=1001": "seeds must be at most 1000",
    }.items():
        with pytest.raises(LabError, match=sentence):
            change(Settings(), [text])


def test_a_learning_rate_may_be_a_power_of_ten() -> None:
    changed = change(Settings(), ["learning_rates=10^-4.5,10^-4", "besides=breakout@10^-5 dqn"])
    assert changed.learning_rates == (10**-4.5, 1e-4)
    assert changed.groups[-1] == Group("breakout", (1e-5,), ("dqn",))


def test_a_setting_is_changed_once() -> None:
    with pytest.raises(LabError, match="besides is set twice; several values go into one, with commas"):
        change(Settings(), ["besides=breakout@1e-5 dqn", "besides=breakout@1e-3 dqn"])


def test_blanks_between_names_are_nothing() -> None:
    assert change(Settings(), ["games=freeway, breakout"]).games == ("freeway", "breakout")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("single=foo", "unknown agent 'foo'"),
        ("heads=te-bdqn:0.7", "0.7"),
        ("single=dqn,dqn", "breakout with the learning rate 10.-3 has the agent dqn twice"),
        (
            "besides=breakout@1e-3 te-bdqn:0.10",
            "breakout with the learning rate 10.-3 has the agent te-bdqn:0.10 twice",
        ),
        ("besides=breakout@1.001e-3 dqn", "breakout with the learning rate 10.-3 has the agent dqn twice"),
        ("besides=breakout@1e-5 foo", "unknown agent 'foo'"),
        ("besides=freeway@1e-5 foo", "unknown agent 'foo'"),
    ],
)
def test_agents_that_cannot_train_are_refused_before_anything_is_run(text: str, sentence: str) -> None:
    with pytest.raises(LabError, match=sentence):
        ExperimentJob.of(MINATAR, "quick", [text])


def test_another_seed_of_the_study_has_other_runs() -> None:
    settings = MINATAR.settings("study")
    first, second = (MINATAR.shards(settings, seed) for seed in (0, 1))
    seeds = [{own for shard in shards for own in shard.part["seeds"]} for shards in (first, second)]
    assert seeds[0] == set(range(20))  # five, and for some variants fifteen more
    assert seeds[1] == {1000 + seed for seed in seeds[0]}


def test_figures_show_the_rate_that_is_judged_and_agents_that_are_not_the_papers() -> None:
    study = results()
    fifths = {f"bias_fifth_{i}": 1.0 for i in range(5)}
    two = pd.concat(
        [study.table.assign(learning_rate=rate, **dict.fromkeys(fifths, 1000 * rate)) for rate in (10**-4.5, 1e-4)]
    )
    two["variant"] = two["variant"].replace("te-bdqn(0.4)", "te-bdqn(0.05)")
    found = replace(study, table=two, settings=replace(study.settings, learning_rates=(10**-4.5, 1e-4)))
    axes = fifths_figure(found).axes
    lines = {line.get_label(): line for ax in axes for line in ax.lines}
    assert {*two["variant"]} <= {*lines}
    np.testing.assert_allclose(np.asarray(lines["te-bdqn(0.05)"].get_ydata(), float), 1000 * 10**-4.5)


def test_agents_that_are_not_the_papers_have_a_column_of_their_own() -> None:
    """Each in the colour of the agent without the star; a study without them has the paper's three columns."""
    study = agreeing(beyond=BEYOND)
    assert len(game_figure(agreeing(), "breakout").axes) == 4 * 3
    returns = game_figure(study, "breakout").axes[4:8]
    shown = [{*BEYOND} & {str(line.get_label()) for line in ax.lines} for ax in returns]
    assert shown == [set(), set(), set(), {*BEYOND}]
    for label in BEYOND:
        assert colour_of(label) == colour_of(label.replace("*", ""))


def test_agents_with_the_paired_statistic_are_drawn_beside_those_without(shipped: Results[Settings]) -> None:
    """In every game return and bias of all, alpha and scale where they are adapted. A study without them has no such figure."""
    axes = paired_figure(shipped).axes
    assert len(axes) == 4 * len(GAMES)
    plain = {"ke-bdqn", "te-bdqn(0.1)", "ada-te-bdqn(0.0001)"}
    kinds = [{*BEYOND} | plain] * 2 + [{"ada-te-bdqn(0.0001)", "ada-te*-bdqn(0.0001)"}, {"ada-ke*-bdqn(0.0001)"}]
    for k, ax in enumerate(axes):
        lines = {label: line for line in ax.lines if not (label := str(line.get_label())).startswith("_")}
        assert {*lines} == kinds[k % 4]
        assert {label: line.get_linestyle() for label, line in lines.items()} == {
            label: "--" if "*" in label else "-" for label in lines
        }
        points = {len(np.asarray(line.get_xdata())) for line in lines.values()}
        assert points == {20 if k % 4 < 2 else 100}
    freeway = shipped.table[(shipped.table["game"] == "freeway") | ~shipped.table["variant"].isin(BEYOND)]
    alone = paired_figure(replace(shipped, table=freeway))
    assert {ax.get_title(loc="left").partition(":")[0] for ax in alone.axes} == {"freeway"}
    study = in_three_rates()
    # not with the rate that is judged
    other = study.table[study.table["learning_rate"] == 1e-4].assign(variant="ke*-bdqn")
    assert "paired" not in MINATAR.figures(replace(study, table=pd.concat([study.table, other])))
    late = shipped.table[(shipped.table["game"] == "asterix") & (shipped.table["variant"] == "ada-ke*-bdqn(0.0001)")]
    five = late[(late["step"] > 950_000) & (late["learning_rate"] == MIDDLE_RATE)].groupby("seed")["bias"].mean()
    drawn = {str(line.get_label()): np.asarray(line.get_ydata(), float) for line in axes[1].lines}
    assert drawn["ada-ke*-bdqn(0.0001)"][-1] == pytest.approx(trim_mean(five, 0.25), rel=1e-4)


def in_three_rates() -> Results[Any]:
    """A study of two tests and two agents on Breakout, in which every number says where it belongs.

    The return is 1000, 2000 or 3000 for the learning rate, 100 for ke-bdqn, 10 for the second half of the training, and for
    the seeds 0, 1 and 5, whose mean is 2.
    """
    rows = [
        {
            "game": "breakout",
            "learning_rate": rate,
            "variant": label,
            "seed": seed,
            "step": step,
            "test_return": 1000.0 * (i + 1) + 100.0 * (label == "ke-bdqn") + 10.0 * (step > 100) + (0, 1, 5)[seed],
            "bias": -1000.0 * (i + 1),
            "alpha": float("nan") if label == "dqn" else 0.1 * (i + 1) + 0.001 * step,
            **{f"bias_fifth_{k}": 1000.0 * (i + 1) + k for k in range(5)},
        }
        for i, rate in enumerate((1e-5, 10**-4.5, 1e-4))
        for label in ("dqn", "ke-bdqn")
        for seed in range(3)
        for step in range(10, 201, 10)
        if not (rate == 1e-4 and label == "dqn")
    ]
    settings = Settings(games=("breakout",), steps=200, seeds=3, learning_rates=(10**-4.5,))
    return Results("minatar", "study", settings, 0, pd.DataFrame(rows))


def drawn(figure: Any) -> dict[tuple[str, int], dict[str, Any]]:
    """What each panel with curves over time shows: by title and how often it came before, labels and first values."""
    panels: dict[tuple[str, int], dict[str, Any]] = {}
    for ax in figure.axes:
        lines = {str(line.get_label()): line for line in ax.lines if not str(line.get_label()).startswith("_")}
        if lines and ax.get_xlabel() == "step":
            title = ax.get_title(loc="left")
            count = sum(known == title for known, _ in panels)
            panels[title, count] = {name: float(line.get_ydata()[0]) for name, line in lines.items()}
    return panels


def test_a_figure_of_several_learning_rates_shows_each_where_it_belongs() -> None:
    figures = MINATAR.figures(in_three_rates())
    assert set(figures) == {"breakout", "breakout-rates", "fifths"}
    assert drawn(figures["breakout"]) == {
        ("test return, learning rate 3.2e-05", 0): {"dqn": 2002.0},
        ("bias of Q", 0): {"dqn": -2000.0},
        ("test return, learning rate 3.2e-05", 1): {"ke-bdqn": 2102.0},
        ("bias of Q", 1): {"ke-bdqn": -2000.0},
        ("alpha", 0): {"ke-bdqn": pytest.approx(0.21)},
    }
    shown = drawn(figures["breakout-rates"])
    assert shown["test return, learning rate 1e-05", 0] == {"dqn": 1002.0}
    assert shown["test return, learning rate 1e-05", 1] == {"ke-bdqn": 1102.0}
    assert shown["test return, learning rate 0.0001", 0] == {"ke-bdqn": 3102.0}
    assert [shown["bias of Q", k] for k in range(3)] == [{"dqn": -1000.0}, {"ke-bdqn": -1000.0}, {"ke-bdqn": -3000.0}]
    assert [shown["alpha", k]["ke-bdqn"] for k in range(2)] == pytest.approx([0.11, 0.31])
    fifths = {line.get_label(): line for ax in figures["fifths"].axes for line in ax.lines}
    np.testing.assert_allclose(np.asarray(fifths["dqn"].get_ydata(), float), 2000.0 + np.arange(5))


def test_figures_say_how_many_seeds_they_show() -> None:
    study = in_three_rates()
    more = study.table[(study.table["variant"] == "dqn") & (study.table["learning_rate"] == 10**-4.5)]
    more = more[more["seed"] == 0]
    table = pd.concat([study.table, *(more.assign(seed=seed) for seed in (3, 4))])
    figures = MINATAR.figures(replace(study, table=table))
    titles = {name: figure.get_suptitle() for name, figure in figures.items()}
    assert titles["breakout"] == "breakout: IQM of 3 seeds (5 of dqn on breakout), 95% bootstrap bands"
    assert titles["breakout-rates"] == "breakout: IQM of 3 seeds, 95% bootstrap bands"


def test_final_returns_stand_over_their_learning_rates() -> None:
    """They are the means of the last ten tests, with intervals around them."""
    first, _, last = game_figure(in_three_rates(), "breakout").axes[:3]
    for ax, label, returns in ((first, "dqn", [1012, 2012]), (last, "ke-bdqn", [1112, 2112, 3112])):
        (marks,) = [each for each in ax.containers if each.get_label() == label]
        line, _, (bars,) = marks
        np.testing.assert_allclose(np.asarray(line.get_ydata(), float), returns)
        np.testing.assert_allclose(np.asarray(line.get_xdata(), float), [1e-5, 10**-4.5, 1e-4][: len(returns)])
        ends = np.array([segment[:, 1] for segment in bars.get_segments()])
        np.testing.assert_allclose(ends - np.array(returns)[:, None], [[-2, 3]] * len(returns))  # from seed to seed
        assert ax.get_xscale() == "log"
        assert [text.get_text() for text in ax.get_xticklabels()] == ["1e-05", "3.2e-05", "0.0001"]


def test_final_returns_with_one_learning_rate_stand_side_by_side_over_their_names() -> None:
    study = agreeing()
    study = replace(
        study,
        table=study.table[study.table["learning_rate"] == 10**-4.5].assign(
            **{f"bias_fifth_{i}": 1.0 for i in range(5)}
        ),
        settings=replace(study.settings, learning_rates=(10**-4.5,)),
    )
    ax = game_figure(study, "breakout").axes[2]
    places = {text.get_text(): place for text, place in zip(ax.get_xticklabels(), ax.get_xticks(), strict=True)}
    assert {str(marks.get_label()): float(marks[0].get_xdata()[0]) for marks in ax.containers} == places


def test_figures_show_variants_that_have_another_learning_rate_alone() -> None:
    """The curves are still those of the grid's rate, however near the other is to the paper's."""
    study = agreeing()
    study = replace(
        study,
        table=study.table.assign(**{f"bias_fifth_{i}": 1.0 for i in range(5)}),
        settings=replace(study.settings, games=("breakout",), learning_rates=(SLOW,)),
    )
    alone = ~study.table["variant"].str.contains("bdqn|maxmin")
    figures = MINATAR.figures(
        replace(study, table=study.table[alone == (study.table["learning_rate"] == SLOW)])  # none has both
    )
    shown = {
        name: {str(line.get_label()) for ax in figures[name].axes for line in ax.lines if ax.get_xlabel() == "step"}
        for name in ("breakout", "breakout-rates")
    }
    assert "dqn" in shown["breakout"]
    assert "bdqn" not in shown["breakout"]
    assert "bdqn" in shown["breakout-rates"]
    assert "dqn" not in shown["breakout-rates"]


@pytest.mark.parametrize(("there", "usual"), [(True, "gpu"), (False, "inline")])
def test_a_gpu_is_shared_where_there_is_one(there: bool, usual: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[object] = []
    monkeypatch.setattr("maxmean.lab.gpu.has_gpu", lambda: there)
    monkeypatch.setattr("maxmean.lab.engines.make_engine", lambda *given: chosen.append(given[:2]))
    monkeypatch.setattr(MINATAR, "forecast", lambda settings, left, say, workers: f"with {workers}")
    assert maxmean("reproduce", "minatar", "--set", "together=true", "--workers", "3", "--dry-run").stdout == "with 3\n"
    maxmean("reproduce", "minatar", "--dry-run")  # a run is a shard
    together = ("reproduce", "minatar", "--set", "together=true", "--dry-run", "--engine")
    assert ("for --engine gpu" in maxmean(*together, "processes").stderr) == there
    assert maxmean(*together, "inline", "--workers", "3").stdout == "with 1\n"
    assert chosen == [(usual, 3), ("processes", None), ("processes", None), ("inline", 3)]


def test_what_runs_besides_and_what_does_not_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MINATAR, "forecast", lambda *_: "the plan")
    groups = "besides=freeway@1e-5 dqn bdqn,breakout@10^-4.5 ddqn seeds=5-19"
    said = maxmean("reproduce", "minatar", "--set", groups, "--dry-run")
    assert said.stdout == "the plan\n"
    assert " ".join(said.stderr.split()) == (
        "Besides every agent on every game: breakout@10^-4.5 ddqn seeds=5-19. --set besides= leaves that out. "
        "Left out, since freeway is not run: 1 further group."
    )
    assert maxmean("reproduce", "minatar", "--set", "besides=", "--dry-run").stderr == ""
    assert maxmean("reproduce", "minatar", "--set", groups, "--dry-run", "--quiet").stderr == ""


def foretold(settings: Settings) -> str:
    """What is said of a study of which nothing is there yet."""
    return MINATAR.forecast(settings, MINATAR.shards(settings, 0), print)


def test_only_what_is_left_is_foretold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One of three groups is there: of the others, each takes an hour. One that is damaged is left to do, and stays there."""
    monkeypatch.setattr(forecast, "has_gpu", lambda: False)
    monkeypatch.setattr(forecast, "cost_of", lambda agents, *_, **__: Cost(tuple(agents), 1, "1 MiB", 1.0, 3600.0))
    settings = replace(TINY, besides=("breakout@1e-4 ddqn", "breakout@1e-5 ddqn"))
    job, store = ExperimentJob(MINATAR, "custom", settings), Store(tmp_path)
    shards = MINATAR.shards(settings, seed=3)
    assert [each.key for each in left_to_do(job, store, 3)] == [each.key for each in shards]
    monkeypatch.setattr(Store, "has", lambda self, shard, layout: shard.key == shards[1].key)
    left = left_to_do(job, store, 3)
    assert [each.key for each in left] == [shards[0].key, shards[2].key]
    said = MINATAR.forecast(settings, left, print)
    assert "minatar: 2 shards, 4 runs" in said
    assert "2.0 hours on one" in said
    assert "every game:\n  1.0 hours for breakout@10^-5 ddqn\n\n" in said

    def damaged(self: Store, shard: Shard, layout: object) -> bool:
        raise DamagedError("it is damaged")

    monkeypatch.setattr(Store, "has", damaged)
    assert len(left_to_do(job, store, 3)) == 3
    assert len(left_to_do(job, None, 3)) == 3


def test_runs_on_cores_are_foretold_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six runs of an hour: two rounds on four cores, one on two such machines; a shard of all takes its time alone."""
    hour = Cost(("dqn",), 1, "1 MiB", 1.0, 3600.0)
    monkeypatch.setattr(forecast, "has_gpu", lambda: False)
    monkeypatch.setattr(forecast, "cost_of", lambda *_, **__: hour)
    monkeypatch.setattr("maxmean.cluster.cores", lambda: 4)
    apart = MINATAR.settings("quick")
    said = foretold(apart)
    assert "2.0 hours on one machine" in said
    assert "   2: 1.0 hours" in said
    assert "2.0 hours on one machine" in foretold(replace(apart, together=True))  # two shards


def test_the_cost_of_each_further_group_is_foretold(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its own number of seeds and rates, also where others have the same agents: here a run of each takes an hour."""

    def cost_of(agents: tuple[str, ...], each: int, *_: object, **__: object) -> Cost:
        return Cost(agents, len(agents) * each, "1 MiB", 1.0, 3600.0 * each)

    monkeypatch.setattr(forecast, "has_gpu", lambda: False)
    monkeypatch.setattr(forecast, "cost_of", cost_of)
    groups = (
        "breakout@1e-4 dqn seeds=2-6",
        "freeway@1e-5 dqn",
        "breakout@10^-4.5 ddqn bdqn",
        "breakout@1e-5@1e-3 bdqn",
    )
    said = foretold(replace(TINY, besides=groups))
    assert "minatar: 4 shards, 15 runs" in said
    assert "13.0 hours on one" in said
    assert (
        "Of that, the groups besides every agent on every game:\n"
        "  5.0 hours for breakout@10^-4 dqn seeds=2-6\n"
        "  2.0 hours for breakout@10^-4.5 ddqn bdqn\n"
        "  4.0 hours for breakout@10^-5@10^-3 bdqn\n"
    ) in said
    assert "besides" not in foretold(TINY)


def test_groups_of_other_lengths_are_foretold_by_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a hundred steps take an hour, whatever the agents; those that differ in length alone are tried once."""
    tried: list[tuple[str, ...]] = []

    def cost_of(agents: tuple[str, ...], each: int, settings: Settings, *_: object, **__: object) -> Cost:
        tried.append(agents)
        return Cost(agents, len(agents) * each, "1 MiB", 1.0, 36.0 * settings.steps)

    monkeypatch.setattr(forecast, "has_gpu", lambda: False)
    monkeypatch.setattr(forecast, "cost_of", cost_of)
    said = foretold(replace(TINY, besides=("breakout@1e-4 dqn bdqn steps=500",)))
    assert "minatar: 2 shards, 2 runs of 300 steps and 4 runs of 500 steps, 2,600 run-steps" in said
    assert "  5.0 hours for breakout@10^-4 dqn bdqn steps=500\n" in said
    assert "8.0 hours on one" in said
    tried.clear()
    assert "8.0 hours on one" in foretold(replace(TINY, besides=("breakout@1e-4 dqn steps=500",)))
    assert tried == [("dqn",)]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Calibration:
    """A stand-in for a GPU that does half as much again with two shards at once; alone, a hundred steps take an hour there."""

    @contextmanager
    def shared_gpu(tasks: Sequence[Task], say: Callable[[str], None]) -> Iterator[Sharing]:
        yield Sharing(Gpu("stand-in", None), dict.fromkeys((task.shard.key for task in tasks), Load(0, 0.0)), {}, True)

    def costs(settings: Settings, *_: object) -> dict[object, Cost]:
        kinds = {forecast._kind(part, steps) for part, steps in settings.parts}
        return {kind: Cost(kind[0], 1, "1 MiB", 1.0, 36.0 * kind[2]) for kind in kinds}

    found = Calibration(2, ((1.0,), (0.75, 0.75), (0.5, 0.5, 0.5)), (100.0, 150.0, 150.0))
    monkeypatch.setattr(forecast, "has_gpu", lambda: True)
    monkeypatch.setattr(forecast, "shared_gpu", shared_gpu)
    monkeypatch.setattr(forecast, "_costs_on_gpu", costs)
    monkeypatch.setattr(forecast, "calibrate", lambda *_: found)
    monkeypatch.setattr(hours, "STARTING", 0.0)
    monkeypatch.setattr(hours, "TESTS", dict.fromkeys(hours.TESTS, 0.0))
    return found


def test_shards_side_by_side_are_foretold_side_by_side(gpu: Calibration) -> None:
    """Three shards of three hours each: two take four hours together, the third three alone, and seven is less than nine."""
    said = foretold(replace(TINY, besides=("breakout@1e-4 ddqn", "breakout@1e-5 ddqn")))
    assert "minatar: 3 shards, 6 runs of 300 steps, 1,800 run-steps on stand-in\n" in said
    assert "2: 150 run-steps/s (1.50 times the work of one); 3: " in said
    assert "7.0 hours on one GPU like this, 2 shards at once; 9.0 hours one after the other.\n" in said
    assert "  3.0 hours for breakout@10^-4 ddqn\n" in said
    assert "   2: 6.0 hours\n" in said


def test_what_does_not_fit_is_not_tried(monkeypatch: pytest.MonkeyPatch, gpu: Calibration) -> None:
    @contextmanager
    def small_gpu(tasks: Sequence[Task], say: Callable[[str], None]) -> Iterator[Sharing]:
        loads = {task.shard.key: Load(2**30 + len(task.shard.part["agents"]), 0.0) for task in tasks}
        yield Sharing(Gpu("stand-in", 2**30 + 1), loads, {}, True)

    monkeypatch.setattr(forecast, "shared_gpu", small_gpu)
    several = replace(TINY, learning_rates=(1e-5, 1e-4))
    assert "hours on one GPU" in foretold(several)
    with pytest.raises(
        LabError, match=r"^breakout@10\^-5@10\^-4 dqn and 1 more needs 1.0 GiB, .*; --set rates_apart=true trains"
    ):
        foretold(replace(several, single=("dqn", "ddqn")))
    with pytest.raises(LabError, match=r"^breakout@10\^-4 dqn and 1 more needs 1.0 GiB, but there are 1.0 GiB$"):
        foretold(replace(TINY, single=("dqn", "ddqn")))


def test_the_memory_that_is_foretold_is_that_of_the_largest_game() -> None:
    """Of Breakout and Seaquest, the one with more channels, whichever is tried."""
    settings = replace(TINY, games=("breakout", "seaquest"), seeds=1)
    needs = [Trial.of(settings, part, batched=False).need.total for part in MINATAR.parts(settings)]
    assert needs[0] < needs[1]
    ((_, cost),) = forecast._costs(settings, settings.parts, lambda _: None, batched=False)
    assert cost.memory == memory.size(needs[1])


def test_shards_that_fill_a_gpu_are_foretold_beside_others(gpu: Calibration, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three hours each that fill it, at four fifths of their speed beside another at two fifths of its own.

    The other one is as long, and is tried first. The first of the two is done after 3.75 hours; half of the other's work is left
    by then, which takes as long again, beside the second.
    """

    def full(self: Sharing, task: Task) -> bool:
        return "bdqn" in task.shard.part["agents"]

    monkeypatch.setattr(Sharing, "full", full)
    monkeypatch.setattr(forecast, "calibrate", lambda *_: Calibration(2, ((1.0,), (0.4, 0.8)), (100.0, 120.0)))
    said = foretold(replace(TINY, besides=("breakout@1e-4 bdqn", "breakout@1e-5 bdqn")))
    assert "7.5 hours on one GPU like this, 2 shards at once; 9.0 hours one after the other.\n" in said


def test_games_take_what_was_measured_of_them(gpu: Calibration, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three hours of DQN on Breakout are 4.11 on Seaquest, where its steps take 1.37 times as long."""
    said = foretold(replace(TINY, games=("breakout", "seaquest")))
    assert " 3.00-4.11  1 MiB, dqn" in said
    monkeypatch.setattr(hours, "TESTS", {"breakout": 0.25, "seaquest": 0.0})
    said = foretold(replace(TINY, games=("seaquest", "breakout")))  # tried on Seaquest
    assert f" {3.0 / 1.37 / 0.75:.2f}-3.00  1 MiB, dqn" in said


def test_games_of_the_study_have_their_share_of_tests() -> None:
    assert set(hours.TESTS) == set(study.GAMES)


def test_a_step_has_its_share_of_several_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all that is timed takes a second: a part of the steps timed at once, of a target copy, and of three tests at once."""

    def a_second(work: Callable[[], object], block: object) -> float:
        work()
        return 1.0

    monkeypatch.setattr(trial, "_timed", a_second)
    block, own = Mock(tests=3, step=0), training_settings(Settings())
    found = Trial([block], own).step_seconds(block)
    assert found == pytest.approx(1 / trial.TIMED + 1 / own.target_period + 1 / (3 * own.test_interval))
    assert block.look.call_count == 3 * block.measure.call_count


def test_what_a_shard_takes_of_a_gpu() -> None:
    """The memory is what the training itself asks for; groups with heads are the longest, and so are more steps."""
    plan = MINATAR.settings("study")
    loads = {
        (part["game"], tuple(part["agents"]), steps): Trials(replace(plan, steps=steps)).load(part)
        for part, steps in replace(plan, games=("breakout",), besides=study.LONGER).parts
    }
    heads, single = (loads["breakout", agents, 1_000_000] for agents in (HEADS, SINGLE))
    assert heads.seconds > single.seconds
    assert (heads.full, single.full) == (True, False)
    assert 1.2 * 2**30 < heads.memory < 2 * 2**30  # forty runs of 36 MiB
    (long,) = {load.seconds for (_, agents, steps), load in loads.items() if steps == 5_000_000 and agents == ("dqn",)}
    assert long > single.seconds


@pytest.mark.parametrize("scale", ["study", "paper"])
def test_shards_with_many_heads_fill_a_gpu(scale: str) -> None:
    """The others come beside them; so do further groups of few runs with heads."""
    plan = replace(MINATAR.settings(scale), games=("seaquest",), besides=())
    found = {tuple(part["agents"]): Trials(plan).load(part).full for part, _ in plan.parts}
    assert found == {SINGLE: False, MAXMIN: False, HEADS: True}
    for group, full in (
        ("seaquest@1e-4 te-bdqn:0.1 te-bdqn:0.2 seeds=5-19", True),
        ("seaquest@1e-4 bdqn ke-bdqn ada-te-bdqn:1e-4 seeds=5-9", False),
    ):
        (part, _) = replace(plan, besides=(group,)).parts[-1]
        assert Trials(plan).load(part).full is full


@pytest.mark.slow
@pytest.mark.usefixtures("small_networks")
def test_a_shard_is_tried_for_as_long_as_one_says() -> None:
    (part,) = MINATAR.parts(TINY)
    speed = Trials(TINY).trial(part)
    begin = time.perf_counter()
    assert speed(0.2) > 0.0
    assert time.perf_counter() - begin >= 0.2


class RecordedBlock:
    """A block that writes down what is asked of it."""

    def __init__(self, name: str, done: list[str]) -> None:
        self.name, self.done, self.state, self.step, self.runs, self.tests = name, done, None, 0, ("one", "two"), 1

    def say(self, what: str) -> None:
        self.done.append(f"{self.name} {what}")

    def create(self) -> None:
        self.say("is created")
        self.state = ()  # type: ignore[assignment]

    def advance(self, end: int, stopped: Callable[[], bool]) -> None:
        self.say(f"takes {end - self.step} steps")
        self.step = end

    def copy_target(self) -> None:
        self.say("copies")

    def look(self) -> None:
        self.say("looks")

    def measure(self) -> None:
        self.say("measures")


def test_all_is_compiled_before_a_trial_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an agent does after a copy of its target too. Whatever is compiled slows a GPU's next rounds: they are not timed."""
    done: list[str] = []
    seconds = count(step=0.001)

    def clock() -> float:
        done.append("the clock")
        return next(seconds)

    monkeypatch.setattr(trial, "time", Mock(perf_counter=clock))
    blocks = [RecordedBlock(name, done) for name in "AB"]
    tried = Trial(blocks, training_settings(replace(TINY, warmup=200)))  # type: ignore[arg-type]
    speed = 4 * 200 / 0.002  # both runs of both blocks, over two ticks of the clock
    assert tried.speed(0.0) == pytest.approx(speed)
    compiling = [f"{name} {does}" for name in "AB" for does in ("is created", "takes 400 steps", "copies")]
    settling, timed = ([f"{name} takes {steps} steps" for name in "AB"] for steps in (trial.SETTLING, 200))
    assert done == [*compiling, *settling, "the clock", "the clock", *timed, "the clock"]
    done.clear()
    assert tried.speed(0.0) == pytest.approx(speed)
    assert done == ["the clock", "the clock", *timed, "the clock"]


def test_a_step_is_timed_after_all_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests, too: rounds of steps come between whatever was compiled last and the steps that are timed."""
    done: list[str] = []

    def timed(work: Callable[[], object], block: object) -> float:
        done.append("timed:")
        work()
        return 1.0

    monkeypatch.setattr(trial, "_timed", timed)
    Trial([], training_settings(replace(TINY, warmup=200))).step_seconds(RecordedBlock("A", done))  # type: ignore[arg-type]
    said = [entry.removeprefix("A ") for entry in done]
    testing = ["looks", "timed:", "measures"]
    assert said == [
        *("is created", "takes 400 steps", "copies", *testing),
        f"takes {trial.SETTLING} steps",
        *["timed:", "takes 200 steps"] * trial.TURNS,
        *("timed:", "copies", *testing),
    ]


def test_the_best_turn_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that are timed for the steps, the first of which takes longer here; copies and tests take no time."""
    taken = iter([0.0, 9.0, *[2.0] * (trial.TURNS - 1), 0.0, 0.0])
    monkeypatch.setattr(trial, "_timed", lambda work, block: next(taken))
    own = training_settings(replace(TINY, warmup=200))
    assert Trial([], own).step_seconds(RecordedBlock("A", [])) == pytest.approx(2.0 / trial.TIMED)  # type: ignore[arg-type]


def test_who_hands_out_the_shards_asks_jax_for_no_device() -> None:
    """Its first question would take most of a GPU's memory, which the shards need."""
    program = (
        "from jax._src.xla_bridge import backends_are_initialized\n"
        "from maxmean.lab.engines import make_engine\n"
        "from maxmean.lab.experiments import EXPERIMENTS\n"
        "from maxmean.lab.run import ExperimentJob\n"
        "job = ExperimentJob.of(EXPERIMENTS['minatar'], 'study', ['besides=breakout@1e-4 ke*-bdqn'])\n"
        "for shard in job.experiment.shards(job.settings, 0):\n"
        "    job.experiment.layout(job.experiment.settings_of(job.settings, shard), shard.part)\n"
        "make_engine('gpu', None, None)\n"
        "assert not backends_are_initialized()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_shard_in_few_words() -> None:
    assert (
        MINATAR.brief({"game": "freeway", "learning_rate": 1e-5, "agents": ["dqn"], "seeds": [0]})
        == "freeway@10^-5 dqn"
    )
    several = {"game": "freeway", "learning_rate": MIDDLE_RATE, "agents": ["dqn", "ddqn", "bdqn"], "seeds": [0]}
    assert MINATAR.brief(several) == "freeway@10^-4.5 dqn and 2 more"


@pytest.mark.slow
def test_costs_on_a_gpu_are_found_by_another_process() -> None:
    """On a CPU, which does what it is told of many runs in one program."""
    some = Sharing(None, {}, {}, overlapping=False)
    said: list[str] = []
    ((kind, cost),) = forecast._costs_on_gpu(TINY, TINY.parts, some, said.append).items()
    assert kind == (("dqn",), 2, 300)
    assert cost.runs == 2
    assert cost.seconds == pytest.approx(2 * 300 / cost.rate)
    assert said == ["trying dqn with 2 runs each for some hundred steps ..."]


@pytest.mark.slow
def test_a_dry_run_says_what_it_will_take(tmp_path: Path) -> None:
    options = [
        "--scale",
        "paper",
        "--dry-run",
        "--set",
        "single=dqn",
        "--set",
        "maxmin=",
        "--set",
        "heads=",
        "--out",
        str(tmp_path),
    ]
    found = subprocess.run([*COMMAND, *options], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert "trying dqn with 30 runs each" in found.stderr
    assert "5 shards, 150 runs of 5,000,000 steps, 750,000,000 run-steps" in found.stdout
    assert "hours on one" in found.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_shard_on_ray_is_heard(tmp_path: Path) -> None:
    changes = "together=true heads= steps=400 seeds=1 warmup=100 test_interval=200"
    options = [*(word for text in changes.split() for word in ("--set", text)), "--engine", "ray", "--out"]
    found = subprocess.run([*COMMAND, *options, str(tmp_path / "aloud")], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert "(minatar pid=" in found.stderr
    assert "1 run of minatar/breakout on" in found.stderr
    quiet = subprocess.run([*COMMAND, *options, str(tmp_path / "quiet"), "--quiet"], capture_output=True, text=True)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    assert tables(tmp_path / "aloud") == tables(tmp_path / "quiet")


def test_a_checkpoint_of_another_device_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence without a trace: a folder that was begun on a GPU cannot go on on a CPU."""

    def refused(*_: Any, **__: Any) -> Any:
        raise OtherShapeError(OTHER_SHAPE)

    monkeypatch.setattr("maxmean.deep.checkpoint.restore", refused)
    (shard,) = MINATAR.shards(TINY, 0)
    outcome = compute(Task(MINATAR, TINY, shard, tmp_path / "key.state"))
    assert outcome.table is None
    assert outcome.error.startswith(OTHER_SHAPE)
    assert outcome.error.endswith(f"or remove '{tmp_path / 'key.state'}' to train this group from its beginning")
    assert len(outcome.error.splitlines()) == 1


@pytest.mark.slow
def test_killed_in_the_middle_of_a_shard_it_goes_on_and_yields_the_same_tables(tmp_path: Path) -> None:
    """Killed twice, each time right after a checkpoint: the tables are those of an undisturbed run, to the bit."""
    changes = "games=breakout single=dqn maxmin= heads=te-bdqn:0.1 steps=4000 seeds=2 warmup=500 test_interval=500"
    options = ["--scale", "study", *(word for text in changes.split() for word in ("--set", text))]
    options += ["--set", "besides=", "--set", "checkpoint_interval=500", "--out"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert subprocess.run([*COMMAND, *options, str(whole)], capture_output=True).returncode == 0
    for attempt in range(2):
        before = checkpoints(killed)
        process = subprocess.Popen([*COMMAND, *options, str(killed)], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 300
        while checkpoints(killed) <= before and time.monotonic() < deadline:
            assert process.poll() is None, f"it ended before it could be killed ({attempt})"
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    last = subprocess.run([*COMMAND, *options, str(killed)], capture_output=True, text=True)
    assert last.returncode == 0, last.stderr
    assert "Going on from step" in last.stderr
    assert tables(killed) == tables(whole)
    assert len(tables(whole)) == 2
    assert not list(killed.glob("*/*.state"))


def checkpoints(folder: Path) -> int:
    """The latest step of which a training's checkpoint is there."""
    return max((int(path.name.split("-")[0]) for path in folder.glob("minatar/*.state/checkpoints/[0-9]*")), default=0)


def tables(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("minatar/*.parquet")}
