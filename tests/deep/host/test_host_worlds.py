"""Where other people's agents are measured: a VecEnv, normalised worlds, the callback. Stand-ins have what the real ones have."""

from __future__ import annotations

import random
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

import maxmean
from host_toys import LENGTH, Counter, FakeModel
from maxmean.deep.host import HostError
from maxmean.deep.host.worlds import world_of

LIKE = "stable_baselines3.fake"


class FakeVec:
    """A ``VecEnv`` of one environment, which begins anew in the step in which its episode ends."""

    def __init__(self, env: Any, n: int = 1) -> None:
        self.envs, self.num_envs = [env], n
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.seeds: list[int] = []

    def seed(self, seed: int) -> None:
        self.seeds.append(seed)

    def reset(self) -> Any:
        seen, _ = self.envs[0].reset(seed=self.seeds[-1])
        return np.asarray(seen)[None]

    def step_async(self, actions: Any) -> None: ...

    def step(self, actions: Any) -> Any:
        seen, reward, terminated, truncated, info = self.envs[0].step(int(actions[0]))
        if over := terminated or truncated:
            info = {**info, "terminal_observation": seen, "TimeLimit.truncated": truncated and not terminated}
            seen, _ = self.envs[0].reset()
        return np.asarray(seen)[None], np.array([reward]), np.array([over]), [info]


class FakeNormalize(FakeVec):
    """A ``VecNormalize``: observations and rewards are divided by what it has seen, which goes on while it trains."""

    norm_obs = norm_reward = training = True

    def __init__(self, venv: FakeVec, seen: float) -> None:
        self.venv, self.num_envs = venv, venv.num_envs
        self.observation_space, self.action_space = venv.observation_space, venv.action_space
        self.obs_rms, self.ret_rms = SimpleNamespace(count=seen), SimpleNamespace(count=seen)

    def seed(self, seed: int) -> None:
        self.venv.seed(seed)

    def normalize_obs(self, seen: Any) -> Any:
        return seen / self.obs_rms.count if self.norm_obs else seen

    def normalize_reward(self, reward: Any) -> Any:
        return reward / self.ret_rms.count if self.norm_reward else reward

    def reset(self) -> Any:
        return self.normalize_obs(self.venv.reset())

    def step(self, actions: Any) -> Any:
        seen, reward, over, infos = self.venv.step(actions)
        if self.training:
            self.obs_rms.count += 1.0
        if over[0]:
            infos[0]["terminal_observation"] = self.normalize_obs(infos[0]["terminal_observation"])
        return self.normalize_obs(seen), self.normalize_reward(reward), over, infos


class FakeMonitor(FakeVec):
    """A ``VecMonitor``: it changes nothing, and has every attribute of what it wraps."""

    def __init__(self, venv: Any) -> None:
        self.venv, self.num_envs = venv, venv.num_envs
        self.observation_space, self.action_space = venv.observation_space, venv.action_space

    def __getattr__(self, name: str) -> Any:
        return getattr(self.venv, name)

    def seed(self, seed: int) -> None:
        self.venv.seed(seed)

    def reset(self) -> Any:
        return self.venv.reset()

    def step(self, actions: Any) -> Any:
        return self.venv.step(actions)


FakeVec.__module__ = FakeNormalize.__module__ = FakeMonitor.__module__ = LIKE


def model_in(env: Any, normaliser: Any = None) -> FakeModel:
    """A model that thinks that an action is worth the time, as it sees it."""
    model = FakeModel(env, lambda seen: 0)
    model.q_net = lambda seen: torch.stack([seen[:, 1]] * 2, dim=1)
    model.normaliser = normaliser
    return model


def values_and_returns(scale: float, *, truncated: bool) -> tuple[Any, Any]:
    """By hand, for a counter whose observations and rewards are divided by ``scale``, and a discount of 0.5."""
    values = np.arange(LENGTH) / scale
    later, returns = (LENGTH / scale if truncated else 0.0), []
    for reward in reversed(values):  # the reward is the time
        later = reward + 0.5 * later
        returns.append(later)
    return values, np.array(returns[::-1])


@pytest.mark.parametrize("truncated", [False, True])
def test_a_vecenv_of_one_is_stepped_to_its_last_observation(truncated: bool) -> None:
    env = FakeVec(Counter(first=int(truncated)))
    found = maxmean.measure_bias(model_in(Counter()), env, episodes=1)
    values, returns = values_and_returns(1.0, truncated=truncated)
    assert found.value == pytest.approx(float(np.mean(values - returns)))
    assert found.predicted == pytest.approx(values.mean())


def test_a_vecenv_of_two_is_refused() -> None:
    with pytest.raises(HostError, match=r"a VecEnv with one environment, not with 2: make_vec_env\(id, n_envs=1\)"):
        maxmean.measure_bias(model_in(Counter()), FakeVec(Counter(), 2))


@pytest.mark.parametrize("given", ["its own", "another", "without rewards", "an environment", "a VecEnv"])
def test_a_normalised_world_is_that_of_the_training(given: str) -> None:
    """Statistics and switches of the model's own ``VecNormalize`` count, which learns nothing meanwhile."""
    own = FakeNormalize(FakeVec(Counter()), 10.0)
    other = FakeNormalize(FakeVec(Counter()), 3.0)
    other.norm_reward = given != "without rewards"
    env: Any = {"its own": own, "an environment": Counter(), "a VecEnv": FakeVec(Counter())}.get(given, other)
    found = maxmean.measure_bias(model_in(own, own), env, episodes=1)
    values, returns = values_and_returns(10.0, truncated=False)
    assert found.value == pytest.approx(float(np.mean(values - returns)), rel=1e-5)
    assert (own.obs_rms.count, own.training) == (10.0, True)
    assert (other.obs_rms.count, other.training, other.norm_reward) == (3.0, True, given != "without rewards")


@pytest.mark.parametrize("given", ["its own", "another"])
def test_a_wrapper_around_a_normalised_world_is_not_taken_for_it(given: str) -> None:
    own, other = (FakeNormalize(FakeVec(Counter()), seen) for seen in (10.0, 3.0))
    env = FakeMonitor(FakeMonitor(own if given == "its own" else other))
    found = maxmean.measure_bias(model_in(env, own), env, episodes=1)
    values, returns = values_and_returns(10.0, truncated=False)
    assert found.value == pytest.approx(float(np.mean(values - returns)), rel=1e-5)
    assert (own.obs_rms.count, other.obs_rms.count) == (10.0, 3.0)
    assert own.training
    assert other.training
    assert not {"training", "obs_rms", "norm_obs"} & set(vars(env))


def test_what_a_models_statistics_do_not_fit_is_said_in_a_sentence() -> None:
    own = FakeNormalize(FakeVec(Counter()), 10.0)
    own.obs_rms.count = np.ones(5)
    with pytest.raises(
        HostError, match=r"VecNormalize cannot normalise what env shows .* in the wrappers of the training"
    ):
        maxmean.measure_bias(model_in(own, own), Counter())


def test_a_normalised_world_that_has_seen_nothing_is_refused_if_the_model_has_none() -> None:
    fresh = FakeNormalize(FakeVec(Counter()), 1e-4)
    with pytest.raises(HostError, match=r"a VecNormalize that has seen nothing: .*VecNormalize\.load\(path, venv\)"):
        maxmean.measure_bias(model_in(Counter()), fresh)
    with world_of(fresh, model_in(fresh, FakeNormalize(fresh.venv, 5.0))):
        assert fresh.obs_rms.count == 5.0


def test_learning_goes_on_with_a_new_episode_after_measuring_in_the_models_own_environment() -> None:
    env = Counter()
    model = model_in(FakeVec(env))
    maxmean.measure_bias(model, Counter(), episodes=1)
    assert model._last_obs == "where it was"
    for own in (env, model.env, gymnasium.wrappers.TimeLimit(env, 3)):
        model._last_obs = "where it was"
        maxmean.measure_bias(model, own, episodes=1)
        assert model._last_obs is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"observation_space": gymnasium.spaces.Box(0, 1, (8,))},
            r"observations Box\(8,\), and those of env are Box\(2,\)",
        ),
        ({"action_space": gymnasium.spaces.Discrete(3)}, r"actions Discrete\(3\), and those of env are Discrete\(2\)"),
        ({"q_net": None}, "FakeModel learns no values of actions, and so has no bias of them"),
        ({"q_net": None, "gamma": None}, "FakeModel learns no values of actions, and so has no bias of them"),
        ({"get_env": None}, "give the model itself, such as a DQN, instead of its FakeModel"),
    ],
    ids=["observations", "actions", "no values", "neither values nor a discount", "policy"],
)
def test_a_model_that_does_not_fit_is_named(change: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_in(Counter())
    for name, value in change.items():
        if value is None:
            monkeypatch.delattr(FakeModel if hasattr(FakeModel, name) else model, name)
        else:
            setattr(model, name, value)
    with pytest.raises(HostError, match=said):
        maxmean.measure_bias(model, Counter())


@pytest.mark.parametrize("name", ["BreakoutNoFrameskip-v4", "ALE/Breakout-v5"])
@pytest.mark.usefixtures("library")
def test_a_model_of_an_atari_game_is_measured_by_the_rules_that_it_learned_by(name: str) -> None:
    said = rf"give env=VecFrameStack\(make_atari_env\('{name}', n_envs=1\), n_stack=4\), or whatever it learned in"
    with pytest.raises(HostError, match=said):
        maxmean.measure_bias(model_in(Counter()), name)
    with pytest.raises(HostError, match=said):
        maxmean.bias_callback(name)


def test_an_atari_game_without_wrappers_is_not_what_anybody_learned_in() -> None:
    with pytest.raises(
        HostError, match="BreakoutNoFrameskip-v4 comes without wrappers: give an environment in those of"
    ):
        maxmean.measure_bias(lambda seen: [0.0, 1.0], "BreakoutNoFrameskip-v4", discount=0.9)


def test_critics_are_given_actions_of_their_own_type() -> None:
    """Those of the environment may be float64, and its scaled actions too."""

    class Turning(Counter):
        action_space: Any = gymnasium.spaces.Box(-2.0, 2.0, (1,), np.float64)

        def step(self, action: Any) -> Any:
            return super().step(0)

    for kind in (torch.float32, torch.float64):
        layer = torch.nn.Linear(3, 1).to(kind)

        class Critic(torch.nn.Module):
            def __init__(self, layer: Any) -> None:
                super().__init__()
                self.layer = layer

            def forward(self, seen: Any, action: Any) -> Any:
                return (self.layer(torch.cat([seen.to(self.layer.weight.dtype), action], dim=1)),)

        model = FakeModel(Turning(), lambda seen: np.ones(1))
        model.critic = Critic(layer)
        assert np.isfinite(maxmean.measure_bias(model, Turning(), episodes=1).value)


def test_pictures_and_dicts_fit_with_their_channels_first_or_last() -> None:
    box, spaces = gymnasium.spaces.Box, gymnasium.spaces
    from maxmean.deep.host.readers import _alike

    assert _alike(box(0, 255, (3, 8, 9), np.uint8), box(0, 255, (8, 9, 3), np.uint8))
    assert _alike(box(0, 255, (8, 9, 3), np.uint8), box(0, 255, (8, 9, 3), np.uint8))
    assert not _alike(box(0, 255, (3, 8, 9), np.uint8), box(0, 255, (9, 3, 8), np.uint8))
    assert _alike(spaces.Dict(a=box(0, 1, (2,))), spaces.Dict(a=box(0, 9, (2,))))
    assert not _alike(spaces.Dict(a=box(0, 1, (2,))), spaces.Dict(b=box(0, 1, (2,))))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    """As much of Stable-Baselines3 as a callback needs."""

    class BaseCallback:
        model: Any = None
        num_timesteps = 0

        def __init__(self) -> None:
            self.logged: list[Any] = []
            self.logger = SimpleNamespace(
                record=lambda name, value, exclude=None: self.logged.append((name, value)),
                dump=lambda step: self.logged.append(step),
            )

    for name in ("stable_baselines3", "stable_baselines3.common", "stable_baselines3.common.callbacks"):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(module, "BaseCallback", BaseCallback, raising=False)


def learn(callback: Any, model: Any, begin: int, end: int) -> None:
    """As Stable-Baselines3 calls it."""
    callback.model, model.num_timesteps = model, begin
    callback._on_training_start()
    for step in range(begin + 1, end + 1):
        callback.num_timesteps = model.num_timesteps = step
        assert callback._on_step()
    callback._on_training_end()


@pytest.mark.usefixtures("library")
def test_the_callback_measures_after_so_many_steps_of_each_training() -> None:
    model, env = model_in(FakeVec(Counter())), Counter()
    callback = maxmean.bias_callback(env, every=4, episodes=2)
    for begin, end in ((0, 9), (0, 5), (5, 10)):  # three calls of learn, of which the last goes on counting
        learn(callback, model, begin, end)
    assert [row["step"] for row in callback.table] == [4, 8, 4, 9]
    env.episode = -1
    found = maxmean.measure_bias(model, env, episodes=2)
    row = callback.table[0]
    assert (row["mean"], row["error"], row["value"]) == (found.value, found.error, found.predicted)
    named = [("bias/mean", found.value), ("bias/error", found.error), ("bias/value", found.predicted)]
    assert callback.logged[:5] == [*named, ("time/total_timesteps", 4), 4]


@pytest.mark.usefixtures("library")
def test_a_training_of_fewer_steps_is_measured_at_its_end() -> None:
    callback = maxmean.bias_callback(Counter(), every=4, episodes=1)
    for begin, end in ((0, 3), (3, 3), (3, 6)):  # in the second call of learn no step is taken
        learn(callback, model_in(FakeVec(Counter())), begin, end)
    assert [row["step"] for row in callback.table] == [3, 6]


def test_without_stable_baselines_the_callback_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(HostError, match=r"needs the package stable_baselines3, .*: pip install stable-baselines3$"):
        maxmean.bias_callback("CartPole-v1")


@pytest.mark.usefixtures("library")
def test_the_callback_takes_environments_of_gymnasium_alone() -> None:
    with pytest.raises(
        HostError, match=r"maxmean\.envs\.to_gymnasium\(maxmean\.envs\.make\('gymnax/CartPole-v1'\)\) makes one"
    ):
        maxmean.bias_callback("gymnax/CartPole-v1")
    with pytest.raises(HostError, match=r"a Breakout is one of maxmean\.envs: give maxmean\.envs\.to_gymnasium\(env\)"):
        maxmean.bias_callback(maxmean.envs.make("minatar/breakout"))


class Careless(Counter):
    """A counter that draws from the generators which all share."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        random.random()
        np.random.random()  # noqa: NPY002
        torch.rand(1)
        return super().reset(seed=seed, options=options)


@pytest.mark.usefixtures("library")
def test_the_callback_leaves_the_global_generators_alone() -> None:
    model = model_in(FakeVec(Counter()))
    before = str(random.getstate()), np.random.get_state(legacy=False), torch.get_rng_state()  # noqa: NPY002
    learn(maxmean.bias_callback(Careless(), every=2, episodes=1), model, 0, 4)
    after = str(random.getstate()), np.random.get_state(legacy=False), torch.get_rng_state()  # noqa: NPY002
    assert before[0] == after[0]
    np.testing.assert_equal(after[1], before[1])
    assert torch.equal(before[2], after[2])


@pytest.mark.usefixtures("library")
def test_a_model_that_diverges_while_it_learns_has_no_bias_and_learns_on() -> None:
    model = model_in(FakeVec(Counter()))
    model.q_net = lambda seen: torch.full((1, 2), torch.nan)
    callback = maxmean.bias_callback(Counter(), every=4, episodes=1)
    with pytest.warns(UserWarning, match="the agent expects nan from the action 0, and only finite values have a bias"):
        learn(callback, model, 0, 4)
    assert np.isnan(callback.table[0]["mean"])


@pytest.mark.usefixtures("library")
def test_what_cannot_be_measured_is_said_before_the_first_step() -> None:
    model = model_in(FakeVec(Counter()))
    for env, said in ((model.env, "give a second"), ("Acrobot-v1", r"those of env are Box\(6,\)"), (3, "not a int")):
        with pytest.raises(HostError, match=said):
            learn(maxmean.bias_callback(env), model, 0, 0)
    with pytest.raises(HostError, match="every must be at least 1, not 0"):
        maxmean.bias_callback(Counter(), every=0)
