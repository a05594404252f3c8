"""The bias of real models of Stable-Baselines3 and sb3-contrib, where they are installed (see CONTRIBUTING.md)."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import maxmean
from maxmean.deep.host import HostError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(each) is None for each in ("stable_baselines3", "sb3_contrib")),
        reason="needs stable-baselines3 and sb3-contrib",
    ),
    pytest.mark.filterwarnings("ignore"),
]

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
QUICK = {"learning_starts": 50, "buffer_size": 1_000, "seed": 0, "device": "cpu"}


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("measure")


@pytest.mark.parametrize("name", ["DQN (Stable-Baselines3), CartPole-v1", "QR-DQN (sb3-contrib), CartPole-v1"])
def test_values_of_all_actions_are_those_of_an_independent_loop(name: str, benchmark: Any) -> None:
    """In the same episodes but for rounding; in others within four standard errors, but for once in 10,000 seeds."""
    _compared(benchmark, name, 2_000)


@pytest.mark.parametrize("kind", ["SAC", "TD3", "TQC"])
def test_critics_are_those_of_an_independent_loop(kind: str, benchmark: Any) -> None:
    library = "sb3-contrib" if kind == "TQC" else "Stable-Baselines3"
    _compared(benchmark, f"{kind} ({library}), Pendulum-v1", 1_200)


def _compared(benchmark: Any, name: str, steps: int) -> None:
    found = benchmark.measure(benchmark.CASES[name]._replace(steps=steps), 20)
    assert found["same"] == pytest.approx(found["ours"], rel=1e-4)
    assert benchmark.apart(found) < 4.0


def test_tensorboard_has_what_the_callback_measured(tmp_path: Path) -> None:
    from stable_baselines3 import DQN

    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    callback = maxmean.bias_callback("CartPole-v1", every=200)
    unchanged = {**QUICK, "learning_starts": 1_000}  # an update after the last measurement would change it
    model = DQN("MlpPolicy", "CartPole-v1", tensorboard_log=str(tmp_path), **unchanged)
    model.learn(600, callback=callback)
    (folder,) = tmp_path.iterdir()
    log = events.EventAccumulator(str(folder))
    log.Reload()
    for name in ("mean", "error", "value"):
        logged = log.Scalars(f"bias/{name}")
        assert [each.step for each in logged] == [200, 400, 600]
        np.testing.assert_allclose([each.value for each in logged], [row[name] for row in callback.table], rtol=1e-6)
    last = maxmean.measure_bias(model, "CartPole-v1", episodes=5)
    assert callback.table[-1]["mean"] == pytest.approx(last.value, rel=1e-6)


def test_a_model_learns_the_same_with_the_callback() -> None:
    import torch
    from stable_baselines3 import DQN

    callbacks = (maxmean.bias_callback("CartPole-v1", every=50), None)
    with_it, without = (DQN("MlpPolicy", "CartPole-v1", **QUICK).learn(300, callback=each) for each in callbacks)
    assert all(
        torch.equal(*pair) for pair in zip(with_it.policy.parameters(), without.policy.parameters(), strict=True)
    )


SEEDED = """
import sys, warnings
warnings.simplefilter("ignore")
from stable_baselines3 import DQN
import maxmean
from maxmean.deep.host import HostError
model = DQN("MlpPolicy", "CartPole-v1", learning_starts=50, buffer_size=1_000, seed=0, device="cpu")
callback = maxmean.bias_callback("CartPole-v1", every=50) if sys.argv[1] == "with" else None
model.learn(300, callback=callback)
assert ("jax" in sys.modules) == (callback is not None)
print(sum(float(each.double().abs().sum()) for each in model.policy.parameters()))
"""


def test_the_first_measurement_of_a_process_does_not_change_a_seeded_training() -> None:
    """What it imports draws from the global generators that the model was seeded by."""
    with_it, without = (
        subprocess.run([sys.executable, "-c", SEEDED, each], capture_output=True, text=True, check=True).stdout
        for each in ("with", "without")
    )
    assert with_it == without


def test_a_monitor_around_a_normalised_world_changes_nothing() -> None:
    from stable_baselines3 import DQN
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

    own = VecNormalize(make_vec_env("CartPole-v1", 1))
    model = DQN("MlpPolicy", VecMonitor(own), **QUICK).learn(200)
    seen, mean = own.obs_rms.count, own.obs_rms.mean.copy()
    worlds = (model.get_env(), VecMonitor(VecNormalize(make_vec_env("CartPole-v1", 1))), "CartPole-v1")
    first, *others = (maxmean.measure_bias(model, world).value for world in worlds)
    np.testing.assert_allclose(others, first, rtol=1e-5)
    assert (own.obs_rms.count, own.training) == (seen, True)
    np.testing.assert_array_equal(own.obs_rms.mean, mean)


def test_normalised_and_stacked_worlds_give_the_same_bias_however_they_are_given() -> None:
    from stable_baselines3 import DQN
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecFrameStack, VecNormalize

    own = VecNormalize(make_vec_env("CartPole-v1", 1))
    model = DQN("MlpPolicy", own, **QUICK).learn(200)
    seen = own.obs_rms.count
    fresh = VecNormalize(make_vec_env("CartPole-v1", 1), norm_reward=False)
    worlds = (own, fresh, "CartPole-v1", Monitor(gymnasium.make("CartPole-v1")), make_vec_env("CartPole-v1", 1))
    first, *others = (maxmean.measure_bias(model, world).value for world in worlds)
    np.testing.assert_allclose(others, first, rtol=1e-5)
    assert (own.obs_rms.count, own.training, fresh.norm_reward) == (seen, True, False)
    stacked = VecFrameStack(make_vec_env("CartPole-v1", 1), 2)
    model = DQN("MlpPolicy", stacked, **QUICK).learn(100)
    assert np.isfinite(maxmean.measure_bias(model, stacked).value)
    with pytest.raises(HostError, match=r"observations Box\(8,\), and those of env are Box\(4,\)"):
        maxmean.measure_bias(model, "CartPole-v1")


@pytest.mark.parametrize("kind", ["SAC", "TD3"])
def test_actions_of_another_type_than_the_critics_are_measured(kind: str) -> None:
    import stable_baselines3

    def make() -> Any:
        space = gymnasium.spaces.Box(-2.0, 2.0, (1,), np.float64)
        return gymnasium.wrappers.TransformAction(gymnasium.make("Pendulum-v1"), np.float32, space)

    model = getattr(stable_baselines3, kind)("MlpPolicy", make(), **QUICK).learn(60)
    assert np.isfinite(maxmean.measure_bias(model, make(), episodes=2).value)


def test_a_model_without_values_of_actions_is_told_so() -> None:
    from sb3_contrib import ARS

    with pytest.raises(HostError, match="ARS learns no values of actions, and so has no bias of them"):
        maxmean.measure_bias(ARS("LinearPolicy", "CartPole-v1"), "CartPole-v1")


def test_a_model_of_an_atari_game_is_measured_in_its_own_wrappers() -> None:
    """As the guide has it: rewards are clipped, and a lost life ends an episode."""
    for package in ("ale_py", "cv2"):
        pytest.importorskip(package)
    from stable_baselines3 import DQN
    from stable_baselines3.common.env_util import make_atari_env
    from stable_baselines3.common.vec_env import VecFrameStack

    own, env = (VecFrameStack(make_atari_env("BreakoutNoFrameskip-v4", n_envs=1), n_stack=4) for _ in range(2))
    model = DQN("CnnPolicy", own, **QUICK).learn(60)
    found = maxmean.measure_bias(model, env, episodes=2, limit=100)
    assert np.isfinite(found.value)
    with pytest.raises(HostError, match="make_atari_env"):
        maxmean.measure_bias(model, "BreakoutNoFrameskip-v4")


class Pictures(gymnasium.Env):
    """Eight pictures of noise an episode, channels last."""

    observation_space = gymnasium.spaces.Box(0, 255, (36, 36, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        return self._see(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return self._see(), float(action), self.time == 8, False, {}

    def _see(self) -> Any:
        return self.np_random.integers(0, 256, (36, 36, 3), dtype=np.uint8)


def test_pictures_are_seen_as_the_model_learned_to_see_them() -> None:
    from stable_baselines3 import DQN

    model = DQN("CnnPolicy", Pictures(), **QUICK).learn(60)
    own, second = (maxmean.measure_bias(model, env) for env in (model.get_env(), Pictures()))
    assert own.value == pytest.approx(second.value, rel=1e-6)


def test_numbered_states_and_models_without_an_environment_can_be_measured(tmp_path: Path) -> None:
    from stable_baselines3 import DQN

    model = DQN("MlpPolicy", "FrozenLake-v1", **QUICK).learn(60)
    model.save(tmp_path / "model")
    again = DQN.load(tmp_path / "model")
    assert again.get_env() is None
    assert maxmean.measure_bias(again, "FrozenLake-v1") == maxmean.measure_bias(model, "FrozenLake-v1")
