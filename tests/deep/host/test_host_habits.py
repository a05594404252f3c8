"""What newcomers write out of habit: it works, or one sentence says what to write instead."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import maxmean
from host_toys import Counter, small
from maxmean import DQN, KEBDQN
from maxmean.deep import EpsilonGreedy
from maxmean.deep.host import HostError
from maxmean.deep.networks import Perceptron


def agent(**settings: Any) -> Any:
    return DQN(Counter(), eval_env=Counter(), **small(**settings))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"buffer_size": 1_000}, "it is called replay_capacity here"),
        ({"learning_starts": 100}, "it is called warmup here"),
        ({"train_freq": 4}, "it is called train_every here"),
        ({"gamma": 0.9}, "it is called discount here"),
        ({"lr": 1e-3}, "it is called learning_rate here"),
        ({"target_update_interval": 100}, "it is called target_period here, and counts updates"),
        ({"exploration_fraction": 0.1}, r"exploration=maxmean\.deep\.EpsilonGreedy\(initial, final, steps\)"),
        ({"exploration_final_eps": 0.1}, r"exploration=maxmean\.deep\.EpsilonGreedy"),
        ({"policy": "MlpPolicy"}, "network= gives another"),
        ({"policy_kwargs": {"net_arch": [64]}}, r"such as Perceptron\(\(64, 64\)\), and hidden= its last layer"),
        ({"tensorboard_log": "runs"}, r"learn\(\.\.\., out='folder', tensorboard=True\)"),
        ({"verbose": 1}, r"learn\(\.\.\., progress_bar=True\)"),
        ({"device": "cuda"}, "JAX takes the GPU"),
        ({"tau": 0.5}, "every target_period updates"),
        ({"alpha": 0.1}, "TEBDQN and AdaTEBDQN have it"),
        ({"kernel": None}, "KEBDQN has it"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_setting_of_stable_baselines_is_told_its_name_here(theirs: dict[str, Any], ours: str) -> None:
    with pytest.raises(HostError, match=f"DQN has no setting '{next(iter(theirs))}': .*{ours}") as error:
        DQN("CartPole-v1", **theirs)
    assert "\n" not in str(error.value)


def test_what_other_agents_call_otherwise_is_told_where_it_is_true() -> None:
    with pytest.raises(HostError, match="KEBDQN has no setting 'heads': it is called k here"):
        KEBDQN("CartPole-v1", heads=3)
    with pytest.raises(HostError, match=r"give exploration=maxmean\.deep\.HeadPerEpisode\(initial, final, steps\)"):
        KEBDQN("CartPole-v1", exploration_fraction=0.1)
    with pytest.raises(HostError, match="KEBDQN has no setting 'covariance': it is called paired here"):
        KEBDQN("CartPole-v1", covariance=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda env: DQN("MlpPolicy", env),  # type: ignore[call-arg]
        lambda env: DQN("MlpPolicy", env=env),  # type: ignore[misc]
        lambda env: DQN("CnnPolicy", "CartPole-v1", verbose=1),  # type: ignore[call-arg]
    ],
)
def test_a_policy_as_the_first_argument(call: Callable[[Any], Any]) -> None:
    with pytest.raises(
        HostError, match=r"DQN takes the environment alone without a name.* not a policy: the network is"
    ):
        call(Counter())


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ({"log_interval": 4}, "learn takes no log_interval: there is a record every test_interval steps"),
        ({"tb_log_name": "x"}, "learn takes no tb_log_name: say learn"),
        ({"reset_num_timesteps": False}, "learn goes on counting"),
        ({"callback": [print]}, "callback must be a function of a record"),
        ({"nonsense": 1}, "DQN.learn: got an unexpected keyword argument 'nonsense'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_learn_says_what_it_takes_instead(named: dict[str, Any], sentence: str) -> None:
    with pytest.raises(HostError, match=sentence):
        agent().learn(10, **named)


def test_a_whole_number_may_be_written_as_a_float_and_the_callback_without_its_name() -> None:
    rows: list[Any] = []
    trained = agent(batch_size=1e1).learn(5e1, rows.append)
    assert (trained.num_timesteps, len(rows), trained.settings.batch_size) == (50, 1, 10)
    with pytest.raises(HostError, match=r"total_timesteps must be a whole number, not 1\.5"):
        trained.learn(1.5)
    with pytest.raises(HostError, match="episodes must be a whole number, not 'two'"):
        trained.bias("two")


def test_a_mistake_inside_is_not_taken_for_one_of_the_call() -> None:
    def broken(record: Any) -> None:
        raise TypeError("of the callback's own")

    with pytest.raises(TypeError, match="of the callback's own"):
        agent().learn(50, broken)


def test_the_signature_is_still_there_to_read() -> None:
    assert list(inspect.signature(DQN).parameters) == ["env", "eval_env", "settings"]
    assert list(inspect.signature(DQN.learn).parameters)[:3] == ["self", "total_timesteps", "callback"]


def test_predict_as_evaluation_code_calls_it() -> None:
    """Stable-Baselines3's evaluate_policy hands over the state and where episodes begin."""
    seen = np.zeros((1, 2), np.float32)
    actions, state = agent().predict(seen, state=None, episode_start=np.ones(1, bool), deterministic=True)
    assert (actions.shape, state) == ((1,), None)


@pytest.mark.parametrize(
    ("observation", "deterministic", "sentence"),
    [
        ((np.zeros(2, np.float32), {}), True, r"env.reset\(\) gives a pair, the observation and a dict"),
        ([[0.0], [0.0, 1.0]], True, r"this agent sees observations of Box"),
        (np.zeros(2), None, "deterministic must be True or False, not None"),
        ([0.0, np.nan], True, r"predict was given \[0.0, nan\]; only finite numbers"),
        ([None, 1.0], True, "only numbers"),
    ],
)
def test_predict_says_what_it_sees(observation: Any, deterministic: Any, sentence: str) -> None:
    with pytest.raises(HostError, match=sentence):
        agent().predict(observation, deterministic)


def test_predict_of_no_observations_is_no_action() -> None:
    assert agent().predict(np.zeros((0, 2), np.float32))[0].tolist() == []


def test_load_without_an_environment_and_save_to_nowhere(tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"DQN\.load needs the environment to go on in: DQN\.load\(path, env\)"):
        DQN.load(agent().save(tmp_path / "x"))  # type: ignore[call-arg]
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match=r"cannot write .*y\.safetensors: "):
        agent().save(tmp_path / "file" / "y")
    with pytest.raises(HostError, match="'' names none"):
        agent().save("")


def test_methods_of_stable_baselines_say_what_does_their_work() -> None:
    with pytest.raises(
        AttributeError, match=r"no attribute 'set_env': load\(path, env\) goes on in another environment"
    ):
        agent().set_env(Counter())
    assert not hasattr(agent(), "logger")
    assert repr(agent().learn(50)) == "DQN(Counter, 50 steps)"
    assert repr(DQN("CartPole-v1")) == "DQN(CartPole-v1, 0 steps)"


class DummyVecEnv:
    __module__ = "stable_baselines3.common.vec_env"


@pytest.mark.parametrize(
    ("env", "sentence"),
    [
        (Counter, "not Counter: call it"),
        (DummyVecEnv(), r"not DummyVecEnv: gymnasium\.make_vec\(id, num_envs\) makes one that fits"),
        ("Pong-v4", r"no environment 'Pong-v4' \(.* another package are called package:id"),
        ("breakout", "did you mean 'maxmean/Breakout-v0'"),
        ("nowhere:Game-v0", "nowhere:Game-v0 needs the package nowhere, which is not installed"),
    ],
    ids=["class", "vectors of others", "none near", "part of a name", "package"],
)
def test_what_is_no_environment(env: Any, sentence: str) -> None:
    with pytest.raises(HostError, match=sentence):
        DQN(env)


def test_the_second_environment_is_another_one() -> None:
    env = gymnasium.make("CartPole-v1")
    with pytest.raises(HostError, match="eval_env must be a second environment"):
        DQN(env, eval_env=env)
    with pytest.raises(HostError, match="eval_env must be a second environment"):
        DQN(env, eval_env=gymnasium.wrappers.TimeLimit(env, 10))


class Odd(Counter):
    """A counter that gives, from its third step on, what it should not; it has no other manners of Gymnasium either."""

    def __init__(self, what: Callable[[tuple[Any, ...]], Any]) -> None:
        super().__init__()
        self.what = what

    def step(self, action: Any) -> Any:
        found = super().step(action)
        return self.what(found) if self.time > 2 else found


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        (lambda found: found[:4], "step gave 4 values, and an environment of Gymnasium gives 5"),
        (
            lambda found: (np.zeros(3), *found[1:]),
            r"observation of shape \(3,\), which is none of its observation_space",
        ),
        (lambda found: (None, *found[1:]), r"observation of shape \(\)"),
        (lambda found: (found[0] * np.nan, *found[1:]), r"gave the observation \[nan, nan\]; only finite numbers"),
        (
            lambda found: (found[0] + np.float64(1e300), *found[1:]),
            "only finite numbers can be learned from, of float32",
        ),
        (lambda found: (found[0], np.inf, *found[2:]), r"gave the reward \[inf\]; only finite numbers"),
        (lambda found: (found[0], "x", *found[2:]), "gave the reward 'x', which is not one number"),
        (lambda found: (found[0], [1.0, 2.0], *found[2:]), "which is not one number"),
    ],
)
def test_an_environment_that_gives_what_it_should_not(what: Callable[..., Any], sentence: str) -> None:
    with pytest.raises(HostError, match=sentence):
        DQN(Odd(what), **small()).learn(50)


@pytest.mark.parametrize("seen", [np.full(3, 0.5), np.array([300, 0, 0]), np.array([-1, 0, 0])], ids=str)
def test_an_environment_that_says_bytes_and_gives_others(seen: Any) -> None:
    """Cast to bytes, halves would be zeros and 300 would be 44."""
    env = Odd(lambda found: (seen, *found[1:]))
    env.observation_space = gymnasium.spaces.Box(0, 255, (3,), cast(Any, np.uint8))
    env._see = lambda: np.zeros(3, np.int64)  # type: ignore[method-assign]
    with pytest.raises(HostError, match="the observation_space says uint8, and these are others"):
        DQN(env, **small()).learn(50)


def test_a_reward_may_be_an_array_of_one_and_a_reset_must_be_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = DQN(Counter(), **small()).learn(50)
    boxed = DQN(Odd(lambda found: (found[0], np.array([found[1]]), *found[2:])), **small()).learn(50)
    np.testing.assert_array_equal(plain.driver.run.replay, boxed.driver.run.replay)
    monkeypatch.setattr(Counter, "reset", lambda self, **_: np.zeros(2, np.float32))
    with pytest.raises(HostError, match="reset gave ndarray, and an environment of Gymnasium gives a pair"):
        agent().learn(1)


def test_vector_environments_are_looked_at_too() -> None:
    env = gymnasium.vector.SyncVectorEnv([lambda: Odd(lambda found: (found[0], np.nan, *found[2:]))] * 2)
    with pytest.raises(HostError, match=r"gave the reward \[nan, nan\]"):
        DQN(env, **small()).learn(50)
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    last = [lambda: Odd(lambda found: (found[0] * (np.nan if found[2] else 1.0), *found[1:]))] * 2  # at an end
    with pytest.raises(HostError, match=r"gave the observation \[nan, nan\]"):
        DQN(gymnasium.vector.SyncVectorEnv(last, autoreset_mode=mode), **small()).learn(50)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"network": Perceptron(cast(Any, 64))},
            r"a Perceptron's widths are a tuple, such as \(64, 64\) or \(64,\), not 64",
        ),
        ({"exploration": EpsilonGreedy(2.0, 0.1, 10)}, "EpsilonGreedy's initial is a probability, from 0 to 1, not 2"),
        (
            {"exploration": EpsilonGreedy(1.0, 0.1, cast(Any, "x"))},
            "EpsilonGreedy's steps must be a whole number, not 'x'",
        ),
        ({"exploration": EpsilonGreedy(1.0, 0.1, -1)}, "EpsilonGreedy's steps must not be negative"),
    ],
)
def test_parts_that_do_not_fit(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(HostError, match=sentence):
        agent(**settings)


@pytest.mark.parametrize(
    ("name", "meant"), [("KEDQN", "KEBDQN"), ("DoubleDQN", "DDQN"), ("dqn", "DQN"), ("estimte", "estimate")]
)
def test_a_misspelled_name_of_the_package(name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'maxmean' has no attribute '{name}'; did you mean '{meant}'?"):
        getattr(maxmean, name)


def test_the_rooms_are_there_without_an_import_of_their_own() -> None:
    assert maxmean.tabular.KEQ is sys.modules["maxmean.tabular"].KEQ
    assert maxmean.deep.DQN().label == "dqn"
    assert spaces.Discrete(6) == maxmean.envs.to_gymnasium(maxmean.envs.make("minatar/breakout")).action_space
