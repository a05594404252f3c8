"""The bias of anybody's agent: known values, an independent loop, every kind of agent, every mistake."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

import maxmean
from host_toys import LENGTH, Counter, Walk, small
from maxmean.deep.host import HostError, states
from maxmean.deep.host.rollouts import Bias

DISCOUNT = 0.9


def true_value(seen: Any) -> float:
    """What a counter's rewards, which are the time, sum up to from here to the end of the episode."""
    time = int(seen[1])
    return sum(DISCOUNT ** (later - time) * later for later in range(time, LENGTH))


def exact(seen: Any, _action: Any) -> float:
    """The value function of a counter whose episodes all terminate: their rewards do not depend on the action."""
    return true_value(seen)


class Ending(Counter):
    """A counter whose episodes all terminate."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        seen, reward, terminated, truncated, info = super().step(action)
        return seen, reward, terminated or truncated, False, info


def left(_seen: Any) -> int:
    return 0


def test_the_true_values_have_no_bias() -> None:
    found = maxmean.measure_bias((left, exact), Ending(), discount=DISCOUNT, episodes=4)
    assert abs(found.value) < 1e-6
    assert abs(found.error) < 1e-6
    assert (found.pairs, found.episodes, found.how) == (4 * LENGTH, 4, "reset states")


def test_what_is_added_to_all_values_is_the_bias() -> None:
    found = maxmean.measure_bias((left, lambda *asked: exact(*asked) + 0.7), Ending(), discount=DISCOUNT, episodes=4)
    assert found.value == pytest.approx(0.7, abs=1e-6)
    np.testing.assert_allclose(found.fifths, 0.7, atol=1e-6)
    assert sorted(found.values) == list(found.values)


def test_a_truncated_episode_goes_on_with_the_value_of_its_last_state() -> None:
    """By hand: all is worth 1, and odd episodes of a counter are truncated after the rewards 0, 1, 2, 3 and 4."""
    found = maxmean.measure_bias((left, lambda *_: 1.0), Counter(first=1), discount=0.5, episodes=1)
    returns, later = [], 1.0
    for reward in (4.0, 3.0, 2.0, 1.0, 0.0):
        later = reward + 0.5 * later
        returns.append(later)
    assert found.value == pytest.approx(1.0 - np.mean(returns), abs=1e-6)
    cut = maxmean.measure_bias((left, lambda *_: 1.0), Counter(), discount=0.5, episodes=1, limit=2)
    assert cut.value == pytest.approx(1.0 - np.mean([1.0 + 0.5, 0.0 + 0.5 * 1.5]), abs=1e-6)
    assert cut.pairs == 2


def by_hand(values: Any, episodes: int, seed: int) -> float:
    """The same in a loop of its own, in CartPole."""
    env, differences = gymnasium.make("CartPole-v1"), []
    for word in np.random.SeedSequence(seed).generate_state(episodes):
        seen, _ = env.reset(seed=int(word >> 1))
        predicted, rewards, terminated, truncated = [], [], False, False
        while not (terminated or truncated):
            q = values(seen)
            predicted.append(q.max())
            seen, reward, terminated, truncated, _ = env.step(int(q.argmax()))
            rewards.append(float(reward))
        later = 0.0 if terminated else values(seen).max()
        for q, reward in zip(reversed(predicted), reversed(rewards), strict=True):
            later = reward + 0.99 * later
            differences.append(q - later)
    return float(np.mean(differences))


def test_modules_functions_and_models_are_asked_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """A PyTorch module, the function that it computes, the pair of what it does and thinks, and a model that has it as q_net."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))

    def values(seen: Any) -> Any:
        with torch.no_grad():
            return module(torch.as_tensor(seen, dtype=torch.float32)[None])[0].numpy()

    class DQN:
        """Has what Stable-Baselines3's has."""

        q_net, gamma = module, 0.99
        policy = SimpleNamespace(obs_to_tensor=lambda seen: (torch.as_tensor(seen, dtype=torch.float32)[None], False))

        def predict(self, seen: Any, deterministic: bool) -> tuple[Any, None]:
            assert deterministic
            return np.int64(values(seen).argmax()), None

    DQN.__module__ = "stable_baselines3.dqn.dqn"
    pair = (lambda seen: int(values(seen).argmax()), lambda seen, action: values(seen)[action])
    expected = by_hand(values, 3, seed=5)
    for agent in (module, values, pair):
        found = maxmean.measure_bias(agent, "CartPole-v1", discount=0.99, episodes=3, seed=5)
        assert found.value == pytest.approx(expected, rel=1e-5)
    assert maxmean.measure_bias(DQN(), "CartPole-v1", episodes=3, seed=5).value == pytest.approx(expected, rel=1e-5)


def test_quantiles_are_averaged_and_the_smallest_critic_counts() -> None:
    class Model:
        """Has what both of Stable-Baselines3's families have, in turn."""

        gamma, device = 0.5, "cpu"
        policy = SimpleNamespace(obs_to_tensor=lambda seen: (torch.zeros(1), False), scale_action=lambda action: action)

        def predict(self, seen: Any, deterministic: bool) -> tuple[Any, None]:
            return np.array(1), None

    Model.__module__ = "sb3_contrib.some"
    quantile, critics, quantiles = Model(), Model(), Model()
    quantile.quantile_net = lambda seen: torch.tensor([[[0.0, 1.0], [0.0, 3.0]]])  # type: ignore[attr-defined]
    critics.critic = lambda seen, action: (torch.tensor([[5.0]]), torch.tensor([[2.0]]))  # type: ignore[attr-defined]
    quantiles.critic = lambda seen, action: torch.tensor([[[1.0, 2.0], [2.0, 3.0]]])  # type: ignore[attr-defined]
    for model in (quantile, critics, quantiles):
        found = maxmean.measure_bias(model, Ending(), episodes=1)
        assert np.mean(found.values) == pytest.approx(2.0)


def test_our_own_agents_are_measured_as_they_measure_themselves() -> None:
    agent = maxmean.DQN("CartPole-v1", **small())
    assert maxmean.measure_bias(agent, None, episodes=3) == agent.bias(3)


def test_episodes_begin_where_they_are_told() -> None:
    world = Walk()
    world.reset(seed=0)
    for _ in range(3):
        seen, *_ = world.step(0)
    starts = [(seen, states.get_state(world))]
    found = maxmean.measure_bias((left, lambda *_: 0.0), Walk(), discount=1.0, starts=starts, episodes=2)
    assert found.how == "stored states"
    assert found.pairs == 2 * (LENGTH - 3)


def test_a_bias_is_drawn(tmp_path: Path) -> None:
    bias = Bias(1.0, 0.1, (1.0,), "reset states", 100, 10, (0.0, 1.0, 2.0, 3.0, 4.0), (0.5, 0.8, 1.0, 1.2, 1.5))
    bias.plot(tmp_path / "bias.svg")
    assert "Bias +1" in (tmp_path / "bias.svg").read_text()
    with pytest.raises(HostError, match=r"a picture's name must end in \.png, \.pdf, \.svg, not 'bias.gif'"):
        bias.plot(tmp_path / "bias.gif")


@pytest.mark.parametrize(
    ("agent", "settings", "said"),
    [
        (3, {}, "the bias of a int cannot be measured: give a model of Stable-Baselines3"),
        (lambda seen: [0.0, 1.0], {}, "has no discount factor of its own: give discount=0.99"),
        (lambda seen: [0.0, 1.0], {"discount": 2.0}, "discount must be from 0 to 1, not 2.0"),
        (lambda seen: 1.0, {"discount": 0.9}, r"gives the values of all actions, \[actions\], not \(\)"),
        (lambda seen: seen["x"], {"discount": 0.9}, "the agent was asked about what the environment shows, and said: "),
        ((left, exact), {"discount": 0.9, "episodes": 0}, "episodes must be at least 1, not 0"),
        ((left, exact), {"discount": 0.9, "env": "Nowhere-v9"}, "Gymnasium has no environment"),
        ((left, exact), {"discount": 0.9, "env": "vector"}, "env must be one environment, not a vector environment"),
    ],
    ids=["number", "no discount", "discount", "one value", "confused", "no episodes", "unknown", "vector"],
)
def test_mistakes_are_said_in_one_sentence(agent: Any, settings: dict[str, Any], said: str) -> None:
    env = settings.pop("env", Ending())
    if env == "vector":
        env = gymnasium.vector.SyncVectorEnv([Ending, Ending])
    with pytest.raises(HostError, match=said):
        maxmean.measure_bias(agent, env, **settings)


def test_a_model_without_values_is_named() -> None:
    class PPO:
        def predict(self, *_: Any) -> None: ...

    PPO.__module__ = "stable_baselines3.ppo.ppo"
    with pytest.raises(HostError, match="PPO learns no values of actions, and so has no bias of them"):
        maxmean.measure_bias(PPO(), "CartPole-v1")
