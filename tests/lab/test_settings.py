"""Facts about settings: whatever is given, an experiment refuses it in one sentence or computes what its layout says."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from inside import maxmean
from maxmean.lab.errors import LabError
from maxmean.lab.experiment import Experiment
from maxmean.lab.experiments import EXPERIMENTS
from maxmean.lab.experiments.ads import Settings as Ads
from maxmean.lab.loading import load
from maxmean.lab.run import SHIPPED, ExperimentJob
from maxmean.lab.settings import SHARDS, Range, within
from maxmean.lab.store import Store
from maxmean.lab.tables import read_table
from maxmean.storage import as_parquet
from seldom import slow

NASTY = (
    *(
        "0",
        "1",
        "2",
        "3",
        "7",
        "-1",
        "1e30",
        "-1e30",
        "1e-300",
        "0.5",
        "1.5",
        "inf",
        "-inf",
        "nan",
        "10^-400",
        "10^400",
    ),
    *(
        "99999999999999999999",
        "9" * 5000,
        "abc",
        "",
        " ",
        ",",
        "0x10",
        "1,1",
        "1,2,3",
        "nan,inf",
        "true",
        "١٢",
        "\x1b[31m",
    ),
)
TINY: dict[str, list[str]] = {
    "gaussian": ["gaps=3", "random_problems=2", "random_data_sets=80"],
    "kernels": ["grids=5", "beta_bounds=10", "points=5"],
    "autocorrelation": ["rhos=0,0.5", "gaps=0,1", "repetitions=20", "runs=2", "runs_a_shard=2", "n=8"],
    "correlation": ["rhos=0,0.5", "gaps=0,1", "repetitions=20", "runs=2", "runs_a_shard=2", "n=8"],
    "ads": [
        "runs=4",
        "runs_a_shard=2",
        "runs_a_block=2",
        "customers=1200",
        "vary_customers=600,300",
        "ads=3",
        "vary_ads=2,4",
        "region_customers=120,600",
        "region_ads=2,3",
        "region_highest=0.01,0.1",
        "region_runs=4",
        "region_runs_a_block=2",
    ],
    "maximization-bias": ["runs=4", "blocks=2", "episodes=5", "other_runs=4", "other_variances=1", "other_omegas=1"],
    "cliff": ["runs=2", "blocks=2", "episodes=4", "window=2", "max_steps=50"],
    "cliff-rates": [
        *("rates=0.1,1", "interim_runs=2", "interim_episodes=2", "interim_blocks=2"),
        *("asymptotic_runs=2", "asymptotic_episodes=2", "max_steps=50"),
    ],
    "convergence": ["problems=1", "steps=10,20"],
    "which": ["options=2,3", "spreads=0,1", "observations=5", "problems=5", "runs=2"],
    "minatar": [],
}
COMPUTED = {"minatar": 0, "kernels": 1}
"""How many of the values that a setting accepts are computed with at most, where that takes long."""
ALL = list(EXPERIMENTS.values())
FIELDS = [(experiment, name) for experiment in ALL for name in vars(experiment.settings("quick"))]


def tiny(experiment: Experiment[Any], *changes: str) -> Any:
    """The settings of the smallest run there can be, with changes."""
    changed = {change.partition("=")[0] for change in changes}
    kept = [text for text in TINY[experiment.name] if text.partition("=")[0] not in changed]
    return ExperimentJob.of(experiment, "quick", [*kept, *changes]).settings


def affordable(settings: Any) -> bool:
    """Whether a shard takes but a moment."""
    numbers = [n for value in vars(settings).values() for n in (value if isinstance(value, tuple) else (value,))]
    return all(isinstance(n, str) or n <= 1_200 for n in numbers)


@pytest.mark.parametrize(("experiment", "field"), FIELDS, ids=lambda each: getattr(each, "name", each))
@pytest.mark.parametrize("computed", [1, *slow(len(NASTY))])
def test_any_value_of_any_setting_is_refused_in_a_sentence_or_runs(
    experiment: Experiment[Any], field: str, computed: int
) -> None:
    """Through the settings and their shards; and the first shard of each kind is computed, where that takes but a moment.

    Of the values that are accepted, with the first ones.
    """
    tiny(experiment)  # is not refused
    accepted, refused = 0, []
    for value in NASTY:
        tracemalloc.start()
        try:
            settings = tiny(experiment, f"{field}={value}")
            parts = experiment.parts(settings)
            shards = experiment.shards(settings, 0)
        except LabError as error:
            refused.append(str(error))
            continue
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 50e6, value
        accepted += 1
        assert 1 <= len(parts) <= SHARDS
        assert len({shard.key for shard in shards}) == len(shards)
        if accepted <= COMPUTED.get(experiment.name, computed) and affordable(settings):
            kinds = {part.get("what", part.get("family")): part for part in reversed(parts)}
            for part in kinds.values():
                shard = next(shard for shard in shards if shard.part == dict(part))
                table = experiment.compute(settings, part, shard.rng())
                read_table(as_parquet(table), experiment.layout(settings, part))
    assert accepted + len(refused) == len(NASTY)
    assert all(field in sentence for sentence in refused) or experiment.name in (
        "ads",
        "minatar",
    )  # fields hang together


@pytest.mark.parametrize("experiment", [e for e in ALL if e.name != "minatar"], ids=lambda e: e.name)
def test_every_number_has_a_range(experiment: Experiment[Any]) -> None:
    settings = experiment.settings("paper")
    for name, value in vars(settings).items():
        for worse in (10**30, -(10**30)):
            kind = type(value[0]) if isinstance(value, tuple) else type(value)
            bad = (kind(worse),) if isinstance(value, tuple) else kind(worse)
            with pytest.raises(LabError, match=name):
                replace(settings, **{name: bad})
        for other in ("abc", None, [1], {"a": 1}, True, b"1", (None,), ("x",), 1j):
            with pytest.raises(LabError, match=f"{name} must be a"):
                replace(settings, **{name: other})


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"runs": 0}, "runs must be a whole number from 2 to 10,000,000, not 0"),
        ({"highest": float("nan")}, "highest must be a number from 0 to 1, not nan"),
        ({"ads": 0}, "ads must be a whole number from 2 to 1,000, not 0"),
        ({"customers": 7}, "at least two for each: 7 cannot be shared among 30 (centre)"),
        ({"vary_ads": (10, 7)}, "300,000 cannot be shared among 7 (M = 7)"),
        ({"vary_ads": (10,)}, "vary_ads must have 2 entries, not 1"),
        ({"vary_ads": (10, 10)}, "vary_ads has an entry twice: (10, 10)"),
        ({"vary_highest": (0.03, 0.0300000001)}, "two entries of vary_highest read alike"),
        ({"region_highest": (0.03, 0.0300000001)}, "region_highest read alike"),
        ({"lowest": 0.05}, "highest must be above lowest, 0.05, not 0.05 (centre)"),
        ({"runs": 1_020}, "must be multiples of runs_a_block, 50"),
        ({"runs_a_shard": 10**6}, "runs_a_shard times ads must be at most 1,000,000, not 60,000,000"),
        ({"runs": 10**7, "runs_a_shard": 50}, "the number of shards must be at most 10,000, not 1,400,024"),
        ({"region_ads": (7,)}, "10,000 cannot be shared among 7 (N = 10,000, M = 7, in the region)"),
        (
            {"region_places": ("even", "odd")},
            "region_places must be among even, random, one ahead, tied top, each once",
        ),
        ({"region_runs": 300}, "region_runs must be a multiple of region_runs_a_block, 200, and at least twice"),
        ({"region_runs": 10**6}, "region_runs by region_runs_a_block, times the settings of a shard must be at most"),
    ],
)
def test_ads_say_what_they_need(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(LabError) as error:
        Ads(**changes)
    assert sentence in str(error.value)


@pytest.mark.parametrize("experiment", ALL, ids=lambda e: e.name)
def test_shipped_tables_are_as_their_layout_says(experiment: Experiment[Any]) -> None:
    results = load(Store(SHIPPED, create=False), experiment, "study" if experiment.name == "minatar" else "paper", 0)
    assert results is not None
    assert results.damage == ()
    for part in experiment.parts(results.settings):
        layout = experiment.layout(results.settings, part)
        assert experiment.name == "minatar" or layout is not None


@pytest.mark.parametrize("name", ["steps", "warmup", "test_interval", "checkpoint_interval"])
def test_a_study_ends(name: str) -> None:
    with pytest.raises(LabError, match=f"{name} must be at most 1,000,000,000, not 99,999,999,999,999,999,999"):
        tiny(EXPERIMENTS["minatar"], f"{name}=99999999999999999999")


def test_a_study_of_too_many_shards_is_refused() -> None:
    with pytest.raises(LabError, match="the number of shards must be at most 10,000, not 20,000"):
        tiny(
            EXPERIMENTS["minatar"],
            "seeds=1000",
            f"learning_rates={','.join(str(k) for k in range(1, 11))}",
            "single=",
            "heads=bdqn,dqn",
        )


def test_a_range_includes_its_ends_and_not_nan() -> None:
    assert all(number in Range(0, 1) for number in (0, 0.5, 1))
    assert not any(number in Range(0, 1) for number in (-1e-9, 1.1, float("nan"), float("inf"), 10**400))
    within(Ads(), highest=Range(0.05, 0.05))


@pytest.mark.parametrize(
    "text", ["runs=0", "highest=nan", "ads=0", "customers=7", "runs=99999999999999999999", "lowest=-1", "runs=1e30"]
)
def test_the_command_line_says_it_before_anything_is_written(tmp_path: Any, text: str) -> None:
    run = maxmean("reproduce", "ads", "--set", text, "--out", tmp_path / "out")
    assert run.returncode == 2
    assert len(run.stderr.splitlines()) == 1
    assert text.partition("=")[0] in run.stderr
    assert not (tmp_path / "out").exists()
