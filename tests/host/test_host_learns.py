"""They learn: stated scores in stated steps."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from maxmean import DQN, KEBDQN
from maxmean.host import Algorithm


def best_return(kind: type[Algorithm], env: str, steps: int, score: float, **settings: Any) -> float:
    """The best test return in so many steps; it stops at the score."""
    agent = kind(env, measure_bias=False, **settings)
    agent.learn(steps, callback=lambda row: row["test_return"] < score)
    return float(agent.table["test_return"].max())


@pytest.mark.parametrize(("kind", "own"), [(DQN, {}), (KEBDQN, {"k": 3})], ids=["dqn", "ke-bdqn"])
def test_cartpole_stands_for_195_steps(kind: type[Algorithm], own: dict[str, Any]) -> None:
    """Ten test episodes of 195 steps on average, which was once called solved, within 10,000 steps."""
    assert best_return(kind, "CartPole-v1", 10_000, 195.0, test_interval=1_000, **own) >= 195.0


SCORES = {
    "CartPole-v1": (50_000, 475.0, {}),
    "Acrobot-v1": (50_000, -100.0, {}),
    "LunarLander-v3": (200_000, 200.0, {"replay_capacity": 100_000, "target_period": 500, "learning_rate": 5e-4}),
    "maxmean/Breakout-v0": (200_000, 4.0, {"test_interval": 20_000, "learning_rate": 1e-4}),
}
"""Steps, the test return to reach, and settings other than the defaults."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", [DQN, KEBDQN], ids=["dqn", "ke-bdqn"])
@pytest.mark.parametrize("env", SCORES)
def test_stated_scores_in_stated_steps(env: str, kind: type[Algorithm], seed: int) -> None:
    if env == "LunarLander-v3" and importlib.util.find_spec("Box2D") is None:
        pytest.skip("Box2D is not installed")
    steps, score, settings = SCORES[env]
    assert best_return(kind, env, steps, score, seed=seed, **{"test_interval": 2_500, **settings}) >= score
