"""The front door as its users meet it: settings and their mistakes, predict, records, callbacks, sinks, the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pandas as pd
import pytest

import maxmean
from host_toys import Counter, Walk, small
from maxmean import BDQN, DDQN, DQN, KEBDQN, SCDQN, TEBDQN, AdaTEBDQN, MaxMinDQN, mev
from maxmean.deep.host import HostAgent, HostError
from maxmean.deep.host import sinks as sinks_module
from maxmean.deep.host.making import make_env
from maxmean.deep.networks import Convolution, Perceptron
from maxmean.deep.records import RECORD_COLUMNS
from seldom import mostly_slow

EIGHT: list[tuple[type[HostAgent], dict[str, Any]]] = [
    (DQN, {}),
    (DDQN, {}),
    (SCDQN, {"beta": 2.0}),
    (MaxMinDQN, {"n": 2}),
    (BDQN, {"k": 2}),
    (TEBDQN, {"k": 2, "alpha": 0.2}),
    (KEBDQN, {"k": 2, "kernel": mev.Epanechnikov()}),
    (AdaTEBDQN, {"k": 2, "horizon": 2}),
]


@pytest.mark.parametrize("which", mostly_slow(EIGHT, EIGHT[:1] + EIGHT[3::4]), ids=lambda which: which[0].__name__)
def test_each_of_the_eight_learns_and_predicts(which: tuple[type[HostAgent], dict[str, Any]]) -> None:
    kind, own = which
    agent = kind(Counter(), eval_env=Counter(), **own, **small()).learn(50)
    action, state = agent.predict(np.zeros(2, np.float32))
    assert (np.shape(action), state) == ((), None)
    assert agent.env.action_space.contains(action)
    many, _ = agent.predict(np.zeros((5, 2), np.float32), deterministic=False)
    assert many.shape == (5,)
    assert np.isfinite(agent.table["loss"]).all()


def test_predicting_explores_only_when_asked_to() -> None:
    agent = DQN(Counter(), eval_env=Counter(), **small())
    seen = np.ones((200, 2), np.float32)
    assert len(set(agent.predict(seen)[0].tolist())) == 1
    assert len(set(agent.predict(seen, deterministic=False)[0].tolist())) == 2


def test_the_same_seed_gives_the_same_and_another_does_not() -> None:
    replays = [
        np.asarray(DQN(Walk(), eval_env=Walk(), seed=seed, **small()).learn(60).driver.run.replay) for seed in (3, 3, 4)
    ]
    np.testing.assert_array_equal(replays[0], replays[1])
    assert (replays[0] != replays[2]).any()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"learning_rat": 1}, "DQN has no setting 'learning_rat'; did you mean 'learning_rate'"),
        ({"alpha": 0.1}, "DQN has no setting 'alpha'"),
        ({"batch_size": 1.5}, "batch_size must be a whole number, not 1.5"),
        ({"batch_size": 0}, "batch_size must be at least 1, not 0"),
        ({"learning_rate": "fast"}, "learning_rate must be a number, not 'fast'"),
        ({"seed": -1}, "seed must be from 0"),
        ({"network": "cnn"}, r"network must be a maxmean\.deep\.networks\.Trunk"),
        ({"network": Perceptron((4,), (1.0,))}, "units are one number for each of the 4 of an observation, not 1"),
        ({"network": Convolution(), "scale_observations": True}, "scale_observations is for vectors"),
        ({"exploration": 0.1}, r"exploration must be one of maxmean\.deep's .* such as EpsilonGreedy\(\), not 0\.1"),
        ({"exploration": "heads"}, r"an agent without heads explores by a maxmean\.deep\.EpsilonGreedy"),
        ({"train_every": 0}, "train_every must be at least 1"),
        ({"measure_bias": 1}, "measure_bias must be True or False"),
        ({"frames": 256}, "frames must be at most 255, not 256"),
        ({"eval_env": "Acrobot-v1"}, "eval_env has other observations or actions than env"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_setting_that_does_not_fit_gets_one_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as error:
        DQN("CartPole-v1", **settings)
    assert "\n" not in str(error.value)


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    agent = TEBDQN(
        Counter(), eval_env=Counter(), alpha=np.float32(0.25), k=np.int64(2), learning_rate=np.float32(0.5), **small()
    )
    assert (agent.agent.parameter, agent.agent.members, agent.settings.learning_rate) == (0.25, 2, 0.5)
    agent.learn(30, out=tmp_path).save(tmp_path / "agent")


def test_an_environment_that_is_none_gets_one_sentence() -> None:
    with pytest.raises(HostError, match="Gymnasium has no environment 'CartPol-v1'; did you mean 'CartPole-v1'"):
        DQN("CartPol-v1")
    with pytest.raises(HostError, match="must be a Gymnasium environment, its id, or a vector environment, not int"):
        DQN(3)
    with pytest.raises(HostError, match="actions of Box do not fit"):
        DQN("MountainCarContinuous-v0")
    with pytest.raises(HostError, match="total_timesteps must be at least 1, not 0"):
        DQN("CartPole-v1").learn(0)


@pytest.mark.parametrize(
    ("missing", "package", "use"),
    [("ale_py", "ale-py", DQN), ("ale_py", "ale-py", make_env), ("cv2", "opencv-python-headless", make_env)],
)
def test_atari_says_what_to_install(
    missing: str, package: str, use: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maxmean.deep.host.making.find_spec", lambda name: None if name == missing else name)
    sentence = rf"ALE/Pong-v5 needs the package {package}, which is not installed: pip install 'maxmean\[atari\]'"
    with pytest.raises(HostError, match=sentence):
        use("ALE/Pong-v5")


def test_ataris_old_names_lead_to_the_new_ones() -> None:
    with pytest.raises(HostError, match="PongNoFrameskip-v4 is an old name of Atari's: 'ALE/Pong-v5' comes with"):
        DQN("PongNoFrameskip-v4")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("minatar/breakout", "for Gymnasium it is called 'maxmean/Breakout-v0'"),
        ("gymnax/CartPole-v1", r"maxmean\.envs\.to_gymnasium\(maxmean\.envs\.make\('gymnax/CartPole-v1'\)\)"),
        ("brax/ant", "Brax's, whose actions are continuous"),
        ("jumanji/Snake-v1", "picks the array that the network sees"),
    ],
)
def test_where_the_environments_of_others_are_is_said(name: str, said: str) -> None:
    with pytest.raises(HostError, match=f"^{name} is .*{said}"):
        DQN(name)


def test_what_cannot_fit_into_memory_is_refused_before_it_begins() -> None:
    with pytest.raises(ValueError, match=r"this training needs .* use fewer seeds or a smaller replay_capacity"):
        DQN("CartPole-v1", replay_capacity=2 * 10**9)


def test_a_second_environment_is_made_only_where_it_is_the_same() -> None:
    """What is wrapped in a way that Gymnasium cannot repeat has none; the wrappers that it can are repeated."""
    flat = gymnasium.wrappers.FlattenObservation(gymnasium.make("FrozenLake-v1"))
    agent = DQN(flat, **small())
    assert agent.driver.eval_world is not None
    assert isinstance(agent.driver.eval_world.env, gymnasium.wrappers.FlattenObservation)
    vector = gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync", wrappers=[Doubled])
    assert DQN(vector, **small()).driver.eval_world is None


def test_the_second_of_a_vector_environment_has_its_options_or_there_is_none() -> None:
    mode = "vector_entry_point"
    vector = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode=mode, sutton_barto_reward=True)
    second = DQN(vector, **small()).driver.eval_world
    assert second is not None
    assert second.env.unwrapped._sutton_barto_reward
    watched = gymnasium.wrappers.vector.RecordEpisodeStatistics(vector)
    assert DQN(watched, **small()).driver.eval_world is not None
    assert DQN(gymnasium.wrappers.vector.NormalizeObservation(vector), **small()).driver.eval_world is None
    assert DQN(gymnasium.wrappers.vector.NormalizeReward(vector), **small()).driver.eval_world is None


def test_tests_see_what_the_training_has_normalised_by() -> None:
    seen = gymnasium.wrappers.NormalizeObservation(gymnasium.make("CartPole-v1"))
    env = gymnasium.wrappers.NormalizeReward(seen)
    agent = DQN(env, **small())
    agent.learn(100)
    assert agent.driver.eval_world is not None
    second = agent.driver.eval_world.env
    assert second.return_rms is env.return_rms
    assert second.env.obs_rms is seen.obs_rms
    count = seen.obs_rms.count
    agent.bias(2)
    assert seen.obs_rms.count == count


class Doubled(gymnasium.ObservationWrapper):
    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (8,), np.float32)

    def observation(self, observation: Any) -> Any:
        return np.tile(observation, 2)


def test_without_a_second_environment_there_is_no_test_and_an_adaptive_agent_says_so() -> None:
    agent = DQN(Counter(), **small()).learn(60)
    assert agent.table["test_return"].isna().all()
    with pytest.raises(HostError, match="give one as eval_env"):
        agent.bias()
    with pytest.raises(HostError, match="AdaTEBDQN adapts by playing in a second environment: give it one as eval_env"):
        AdaTEBDQN(Counter(), k=2, **small())


def test_records_are_written_and_handed_over_and_a_callback_stops(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []

    def stop(row: dict[str, Any]) -> bool:
        rows.append(row)
        return row["step"] < 100

    agent = KEBDQN(Walk(), eval_env=Walk(), k=2, **small(measure_bias=True, bias_episodes_per_head=2))
    agent.learn(500, callback=stop, out=tmp_path / "run")
    assert [row["step"] for row in rows] == [50, 100]
    assert agent.num_timesteps == 100
    written = pd.read_parquet(tmp_path / "run" / "records.parquet")
    assert list(written.columns) == list(RECORD_COLUMNS)
    assert written["bias"].tolist() == [row["bias"] for row in rows]
    assert {row["bias_from"] for row in rows} == {"stored states"}
    heads = pd.read_parquet(tmp_path / "run" / "heads.parquet")
    assert heads.groupby("step")["bias"].mean().tolist() == pytest.approx(written["bias"].tolist(), rel=1e-5)
    assert json.loads((tmp_path / "run" / "plan.json").read_text())["algorithm"] == "KEBDQN"


class Writer:
    """A SummaryWriter that remembers."""

    found: list[tuple[str, float, int]] = []  # noqa: RUF012

    def __init__(self, folder: str, filename_suffix: str) -> None:
        self.folder = folder

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.found.append((name, value, step))

    def flush(self) -> None: ...
    def close(self) -> None: ...


def test_tensorboard_gets_the_finite_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks_module, "_summary_writer", lambda: Writer)
    agent = DQN(Counter(), eval_env=Counter(), **small()).learn(50, out=tmp_path, tensorboard=True)
    names = {name for name, _, step in Writer.found if step == 50}
    assert {"test_return", "loss", "epsilon"} <= names
    assert "bias" not in names  # it was not measured
    with pytest.raises(HostError, match="give one as out"):
        agent.learn(1, tensorboard=True)


@pytest.mark.parametrize("library", ["tensorboard", "wandb"])
def test_a_missing_library_is_named(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tensorboardX", "torch.utils.tensorboard", "wandb"):
        monkeypatch.setitem(sys.modules, name, None)
    agent = DQN(Counter(), eval_env=Counter(), **small())
    with pytest.raises(HostError, match=rf"needs the package {library}.*pip install 'maxmean\[{library}\]'"):
        agent.learn(1, out=tmp_path, tensorboard=library == "tensorboard", wandb=library == "wandb")


BARE = """
import importlib.abc, sys
class Bare(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Bare())
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {missing} else find(name, package)
"""
"""A Python in which some packages are not installed."""


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            "import maxmean; maxmean.KEBDQN",
            "a Gymnasium agent needs the packages gymnasium, jax, optax, safetensors, "
            "which are not installed: pip install 'maxmean[deep,gymnasium]'",
        ),
        (
            "from maxmean import deep; deep.train",
            "maxmean.deep needs the package jax, which is not installed: pip install 'maxmean[deep]'",
        ),
        (
            "import maxmean; maxmean.tabular",
            "maxmean.tabular needs the package numba, which is not installed: pip install 'maxmean[tabular]'",
        ),
        (
            "import sys; sys.argv[1:] = 'train --env CartPole-v1 --agent dqn --out x'.split(); import maxmean.cli as c; c.main()",
            "maxmean: a Gymnasium agent needs the packages gymnasium, jax, optax, safetensors, "
            "which are not installed: pip install 'maxmean[deep,gymnasium]'",
        ),
        (
            "import sys; sys.argv[1:] = 'train --env minatar/x --agent dqn --out x'.split(); import maxmean.cli as c; c.main()",
            "maxmean: training needs the packages jax, optax, safetensors, which are not installed: pip install 'maxmean[deep]'",
        ),
    ],
    ids=["agent", "deep", "tabular", "train", "train on the device"],
)
def test_with_the_core_alone_it_says_what_to_install(code: str, sentence: str) -> None:
    missing = {"gymnasium", "jax", "numba", "optax", "safetensors"}
    program = BARE.format(missing=missing) + code
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stderr.splitlines()[-1].endswith(sentence)


def test_importing_maxmean_imports_none_of_it() -> None:
    code = "import sys, maxmean; dir(maxmean); print(sorted({'jax', 'gymnasium', 'pandas'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
    assert maxmean.KEBDQN is KEBDQN


def test_the_command_line_trains_stops_and_goes_on(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from maxmean.cli import app

    def train(steps: int, **more: str) -> Any:
        options = {"--env": "CartPole-v1", "--agent": "ke-bdqn", "--heads": "2", "--hidden": "8", "--warmup": "20"}
        options |= {
            "--steps": str(steps),
            "--test-interval": "50",
            "--test-episodes": "1",
            "--out": str(tmp_path),
            **more,
        }
        return CliRunner().invoke(app, ["train", *(part for pair in options.items() for part in pair), "--quiet"])

    assert train(50).exit_code == 0
    assert train(100).exit_code == 0
    records = pd.read_parquet(tmp_path / "records.parquet")
    assert records["step"].tolist() == [50, 100]
    other = str(train(150, **{"--warmup": "30"}).exception)
    assert "another training: trainings 1: settings.warmup is 20 there and 30 here; choose another directory" in other
    assert str(train(150, **{"--agent": "dqn"}).exception).startswith("--heads is for other agents")
    assert "can be set for minatar's games, not for CartPole-v1" in str(train(150, **{"--sticky": "0.2"}).exception)
    assert "--workers is for minatar and gymnax" in str(train(150, **{"--workers": "2"}).exception)


def test_a_warning_on_the_command_line_is_a_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "maxmean.cli", "train", "--env", "CartPole-v1", "--agent", "dqn", "--quiet"]
    command += ["--steps", "5", "--hidden", "8", "--test-episodes", "1", "--out", str(tmp_path / "run")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    sentence = "maxmean: nothing is learned yet: the first 1,000 steps are random ones (the setting warmup)\n"
    assert run.stderr == sentence


def test_an_agent_is_trained_once(tmp_path: Path) -> None:
    from maxmean.deep.host.training import train

    with pytest.raises(HostError, match=r"^dqn is named twice$"):
        train("CartPole-v1", [("dqn", {})] * 2, 10, 1, None, {}, tmp_path, 10, False, False, True)


def test_the_command_line_says_what_memory_a_training_takes(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from maxmean.cli import app

    options = ["--replay-capacity", "32768", "--hidden", "8", "--warmup", "50", "--test-episodes", "1"]
    run = CliRunner().invoke(
        app, ["train", "--env", "CartPole-v1", "--agent", "dqn", "--steps", "20", "--out", str(tmp_path), *options]
    )
    # Two observations of four floats, an action and an end in a byte each, reward and mask: 42 bytes in 11 words.
    assert "dqn-seed0: 1.4 MiB (replay 1.4 MiB, networks " in run.stderr


def test_the_command_line_says_where_an_environment_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from typer.testing import CliRunner

    from maxmean.cli import app

    spec = gymnasium.envs.registration.EnvSpec("Counter-v0", entry_point="host_toys:Counter")
    monkeypatch.setitem(gymnasium.registry, "Counter-v0", spec)
    options = ["--env", "Counter-v0", "--agent", "dqn", "--hidden", "8", "--warmup", "5", "--out", str(tmp_path)]
    run = CliRunner().invoke(app, ["train", "--steps", "10", *options])
    assert run.exit_code == 0, run.output
    with pytest.warns(UserWarning, match="everything is restored but the environment's state"):
        run = CliRunner().invoke(app, ["train", "--steps", "20", *options])
    assert "dqn-seed0, going on from step 10: " in run.stderr


def test_a_vector_environment_by_its_id() -> None:
    env = gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")
    agent = DQN(env, **small()).learn(120)
    assert agent.predict(np.zeros((3, 4), np.float32))[0].shape == (3,)
    assert agent.table["test_return"].notna().all()


def test_epsilon_without_numbers_is_that_of_the_observations() -> None:
    usual = DQN("CartPole-v1").agent.exploration
    assert DQN("CartPole-v1", exploration="epsilon").agent.exploration == usual
    assert KEBDQN("CartPole-v1", exploration="epsilon").agent.exploration == usual
