"""The table of learning results: what counts as a score, that no seed is left out, that only what is missing runs."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import maxmean
from maxmean import envs
from maxmean.deep import Settings
from maxmean.deep.agents import parse_arguments
from maxmean.deep.device.plan import TrainingPlan
from maxmean.deep.directory import write_plan
from maxmean.deep.host import HOST_AGENTS
from maxmean.deep.records import RECORD_COLUMNS
from maxmean.storage import as_parquet, write_whole

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
PAGE = Path(__file__).parents[1] / "docs" / "agents.md"


@pytest.fixture
def zoo(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("zoo")


@pytest.fixture
def table(zoo: Any) -> Any:
    return zoo.zoo_table


@pytest.fixture
def runs(zoo: Any) -> Any:
    return importlib.import_module("zoo_runs")


@pytest.fixture
def device(zoo: Any) -> Any:
    return importlib.import_module("zoo_device")


def made(agent: str, seed: int, last: tuple[float, float], diverged: int = -1) -> pd.DataFrame:
    """Twenty tests of a run of 2,000 steps: 0, and the last two as given."""
    return pd.DataFrame(
        {
            "environment": "CartPole-v1",
            "agent": agent,
            "seed": seed,
            "step": np.arange(100, 2001, 100),
            "test_return": [0.0] * 18 + list(last),
            "value": [np.nan] * 18 + [4.0, 6.0],
            "bias": [9.0] * 18 + [1.0, 2.0],
            "seconds": np.linspace(1.0, 20.0, 20),
            "cpu_seconds": np.linspace(0.5, 10.0, 20),
            "diverged": diverged,
        }
    )


def test_a_score_is_the_mean_of_the_last_two_of_twenty_tests(table: Any) -> None:
    (score,) = table.scores(made("dqn", 3, (10.0, 30.0))).to_dict("records")
    assert score == {
        "environment": "CartPole-v1",
        "agent": "dqn",
        "seed": 3,
        "score": 20.0,
        "value": 5.0,
        "bias": 1.5,
        "steps": 2000,
        "seconds": 20.0,
        "cpu_seconds": 10.0,
        "diverged": -1,
    }


def test_the_iqm_of_five_seeds_is_the_mean_of_the_middle_three_and_all_seeds_are_shown(table: Any) -> None:
    returns = (1.0, 2.0, 3.0, 4.0, 500.0)
    records = pd.concat([made("dqn", seed, (each, each), diverged=seed - 1) for seed, each in enumerate(returns)])
    found = table.scores(records)
    (row,) = table.summary(found).to_dict("records")
    assert (row["iqm"], row["seeds"], row["diverged"]) == (3.0, 5, 4)
    assert 1.0 <= row["low"] < 3.0 < row["high"] <= 500.0
    text = table.markdown(found, table.summary(found))
    assert "| seed 0 | seed 1 | seed 2 | seed 3 | seed 4 |" in text
    assert "| 1.0 | 2.0 | 3.0 | 4.0 | 500.0 | 5.0 | +1.5 | 20 | 10 | 4 of 5 |" in text


def test_one_seed_is_its_own_interval_and_a_seed_that_is_not_there_is_seen_to_be_missing(table: Any) -> None:
    records = pd.concat([made("dqn", 0, (5.0, 7.0)), made("ddqn", 0, (1.0, 1.0)), made("ddqn", 1, (3.0, 3.0))])
    found = table.scores(records)
    text = table.markdown(found, table.summary(found))
    assert "| `dqn` | **6.0** [6.0, 6.0] | 6.0 | - |" in text
    assert "| `ddqn` | **2.0** [1.0, 3.0] | 1.0 | 3.0 |" in text


def test_there_is_a_panel_for_each_environment_with_the_two_that_are_compared_in_front(table: Any) -> None:
    records = pd.concat([made("sb3-dqn", 0, (5.0, 7.0)), made("dqn", 0, (1.0, 1.0)), made("dqn", 1, (3.0, 5.0))])
    other = records.assign(environment="Acrobot-v1")
    first, second = table.curves(pd.concat([records, other])).axes
    assert (first.get_title("left"), second.get_title("left")) == ("CartPole-v1", "Acrobot-v1")
    ours, peer = first.get_lines()
    assert (ours.get_label(), peer.get_label()) == (table.OTHERS, "sb3-dqn")
    assert ours.get_ydata()[-2:].tolist() == [2.0, 3.0]


def test_a_training_on_the_device_joins_the_table(table: Any, tmp_path: Path) -> None:
    plan = TrainingPlan.of(envs.make("minatar/breakout"), ["dqn", "te-bdqn:0.2"], 1, None, Settings())
    write_plan(tmp_path, "device training", plan.describe())
    columns = dict.fromkeys(RECORD_COLUMNS, 0.0) | {"agent": "", "variant": ["te-bdqn(0.2)", "dqn"] * 10}
    records = pd.DataFrame({**columns, "step": np.repeat(np.arange(1, 11) * 100, 2), "test_return": np.arange(20.0)})
    write_whole(tmp_path / "records.parquet", as_parquet(records.astype(RECORD_COLUMNS)))
    found = table.scores(table.read_training(tmp_path))
    assert found["environment"].unique().tolist() == ["minatar/breakout"]
    assert found["agent"].tolist() == ["dqn", "te-bdqn(0.2)"]  # in the registry's order
    assert found["score"].tolist() == [19.0, 18.0]  # of the last of ten tests
    assert found["seconds"].isna().all()


def test_only_what_is_missing_runs_and_results_of_other_settings_are_refused(
    zoo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def run_all(runs: Any, out: Path, workers: int) -> bool:
        asked.append(runs)
        return True

    monkeypatch.setattr(zoo, "run_all", run_all)
    pairs = [zoo.Run("dqn", "CartPole-v1", 2000), zoo.Run("te-bdqn:0.2", "CartPole-v1", 2000)]
    assert zoo.complete(pairs, [0, 1], tmp_path, 1)
    (tmp_path / "runs/CartPole-v1/te-bdqn-0.2/seed-0.parquet").touch()
    assert zoo.complete(pairs, [0, 1], tmp_path, 1)
    first, second = asked
    assert [(run.agent, run.seed) for run in first] == [("dqn", 0), ("te-bdqn:0.2", 0), ("dqn", 1), ("te-bdqn:0.2", 1)]
    assert [(run.agent, run.seed) for run in second] == [("dqn", 0), ("dqn", 1), ("te-bdqn:0.2", 1)]
    with pytest.raises(zoo.MaxmeanError, match="steps is 2000 there and 4000 here"):
        zoo.complete([zoo.Run("dqn", "CartPole-v1", 4000)], [0], tmp_path, 1)


def test_a_run_is_tested_twenty_times_and_its_file_has_the_columns(
    runs: Any, table: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "EPISODES", 1)
    folder = tmp_path / "CartPole-v1" / "dqn"
    folder.mkdir(parents=True)
    agent = "dqn warmup=100 measure_bias=False"
    runs.train(runs.Run(agent, "CartPole-v1", 300, 7), folder / "seed-7.parquet")
    records = table.read_runs(tmp_path, [7])
    assert records["step"].tolist() == list(range(15, 301, 15))
    assert records["agent"].unique().tolist() == [agent]
    assert records["test_return"].between(1.0, 500.0).all()
    assert records["seconds"].is_monotonic_increasing
    assert records["cpu_seconds"].iloc[-1] > 0.0
    assert len(capsys.readouterr().out.splitlines()) == 20
    assert table.read_runs(tmp_path, [0, 1]).empty


def test_the_recommended_agent_is_what_the_front_page_makes(runs: Any) -> None:
    label, agent = runs.our_agent(runs.Run("recommended", "CartPole-v1", 1000, 7))
    same = maxmean.agent("CartPole-v1", seed=7, test_interval=50, test_episodes=20)
    assert (label, agent.choice) == ("recommended", same.choice)


def test_seeds_are_written_as_one_writes_them(zoo: Any) -> None:
    assert zoo.whole_numbers("0-2,7") == [0, 1, 2, 7]


@pytest.fixture(scope="module")
def shipped() -> pd.DataFrame:
    return pd.read_parquet(PAGE.with_suffix(".parquet"))


def test_the_page_shows_what_was_measured(table: Any, shipped: pd.DataFrame) -> None:
    found = table.scores(shipped)
    page = PAGE.read_text()
    assert page == table.replaced(page, table.markdown(found, table.summary(found)))


def test_what_the_page_says_in_words_is_in_the_records(table: Any, shipped: pd.DataFrame) -> None:
    ours = shipped[shipped["agent"] == "recommended"]
    landed = ours[(ours["environment"] == "LunarLander-v3") & (ours["test_return"] >= 200.0)]
    assert sorted(landed.groupby("seed")["step"].min()) == [60_000, 65_000, 70_000, 80_000, 85_000]
    assert (ours["diverged"] == -1).all()
    agents = table.summary(table.scores(shipped)).set_index(["environment", "agent"])
    peer, own = (agents.xs(agent, level="agent") for agent in ("sb3-dqn", "recommended"))
    assert sorted(own.index[own["iqm"] > peer["iqm"]]) == ["CartPole-v1", "LunarLander-v3", "MountainCar-v0"]
    assert own.loc["Acrobot-v1", "high"] > peer.loc["Acrobot-v1", "low"]
    readme = (PAGE.parents[1] / "README.md").read_text()
    for name, row in own.iterrows():
        assert f"| {name} | {row['steps']:,.0f} | {peer.loc[name, 'iqm']:.0f} | {row['iqm']:.0f} |" in readme
    near = (own["bias"].abs() <= 0.1 * own["value"].abs()).drop("LunarLander-v3")
    assert near.all()
    assert own.loc["LunarLander-v3", ["value", "bias"]].round().tolist() == [22.0, -11.0]
    cost = (own["cpu_seconds"] / peer["cpu_seconds"]).round(2)
    assert cost.drop("CartPole-v1").agg(["min", "max"]).tolist() == [0.35, 0.76]
    assert 0.9 < cost["CartPole-v1"] < 1.1
    random_play = -185.0
    for name, low, high in (("ke-bdqn", -500, random_play), ("te-bdqn(0.1)", random_play, -100)):
        assert low < agents.loc[("LunarLander-v3", name), "iqm"] < high
    for name in ("ke*-bdqn", "te*-bdqn(0.1)"):
        assert -50 < agents.loc[("LunarLander-v3", name), "iqm"] < 100
    scores = table.scores(shipped[shipped["environment"] == "MountainCar-v0"])
    others = scores[~scores["agent"].isin(["sb3-dqn", "recommended"])]
    assert (len(others), int((others["score"] > -190.0).sum())) == (65, 1)


@pytest.mark.parametrize("name", ["ke-bdqn", "te-bdqn"])
def test_the_pages_of_the_algorithms_show_what_pairing_does(table: Any, shipped: pd.DataFrame, name: str) -> None:
    agents = table.summary(table.scores(shipped)).set_index(["environment", "agent"])["iqm"]
    page = (PAGE.parent / "algorithms" / f"{name}.md").read_text()
    order = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0", "LunarLander-v3")
    number = "(0.1)" if name == "te-bdqn" else ""
    for agent in (f"{name}{number}", f"{name.replace('-', '*-')}{number}"):
        cells = " | ".join(f"{agents[each, agent]:.0f}" for each in order)
        assert f"| `{agent}` | {cells} |" in page


@pytest.mark.parametrize("name", ["CartPole-v1", "MountainCar-v0", "Acrobot-v1"])
def test_classic_control_on_the_device_moves_as_gymnasium_does(device: Any, name: str) -> None:
    """From the same state each time, so that rounding does not add up; the cart falls a dozen times on the way."""
    ours = device.ENVIRONMENTS[name]
    theirs: Any = gymnasium.make(name).unwrapped
    step, rng = jax.jit(ours.step), np.random.default_rng(0)
    theirs.reset(seed=0)
    state = device.Moment(jnp.float32(theirs.state), jnp.int32(0))
    for action in rng.integers(ours.n_actions, size=199):
        theirs.state = np.float64(state.system)
        seen, reward, ended, _, _ = theirs.step(action)
        after = step(jax.random.key(0), state, action)
        np.testing.assert_allclose(after.observation, seen, rtol=1e-6, atol=1e-6)
        assert (float(after.reward), bool(after.terminated)) == (reward, ended)
        assert not after.truncated
        if ended:
            theirs.reset()
        state = device.Moment(jnp.float32(theirs.state), jnp.int32(0)) if ended else after.state
    late = state._replace(steps=jnp.int32(ours.limit - 1))
    assert bool(step(jax.random.key(0), late, 0).truncated)
    bounds = np.maximum(np.abs(theirs.observation_space.low), theirs.observation_space.high)
    np.testing.assert_allclose(ours.sizes, np.where(bounds < 1e30, bounds, 1.0), rtol=1e-6)


def test_agents_on_the_device_have_the_defaults_of_their_gymnasium_classes(device: Any) -> None:
    for text in ("dqn", "te*-bdqn:0.2", "ada-ke-bdqn"):
        name, own = parse_arguments(text)
        theirs = HOST_AGENTS[name]("CartPole-v1", **own)
        assert device.default_agent(text) == theirs.agent
        assert device.PRESETS["vector"].settings == theirs.settings
