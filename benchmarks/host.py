"""Learning in Gymnasium's environments on one core, beside Stable-Baselines3's DQN, in one run.

    HOST_PYTHON=path/to/python make benchmark

names an interpreter that has stable-baselines3, torch, minatar and our own dependencies; without it, or without one of them, the
peer is left out. Both learn in the same environments, CartPole-v1 and the package minatar's Breakout, with one update a step and
the same network: batch 32, Adam, a replay of 50,000; on CartPole two layers of 64 units, on Breakout a convolution of 16 filters
and 128 units. Everything is included: environment, replay, acting, update. Each is measured in turn, several times, in a process
of its own on one core, and the best counts.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from turns import in_turns, take

REPEATS = 3
WARMUP = 500


class Breakout(gymnasium.Env):
    """MinAtar's own Breakout; channels first, as PyTorch wants them (we take either)."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (4, 10, 10), np.float32)
    action_space = gymnasium.spaces.Discrete(6)

    def __init__(self) -> None:
        from minatar import Environment

        self.game = Environment("breakout", sticky_action_prob=0.1)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.game.reset()
        return self._see(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward, terminal = self.game.act(int(action))
        return self._see(), float(reward), bool(terminal), False, {}

    def _see(self) -> Any:
        return np.moveaxis(self.game.state(), -1, 0).astype(np.float32)


def world(name: str) -> Any:
    return Breakout() if name == "breakout" else gymnasium.make("CartPole-v1")


def ours(name: str, algorithm: str, steps: int) -> float:
    """Steps a second of one run."""
    import maxmean
    from maxmean.deep.networks import Convolution, Perceptron

    picture = name == "breakout"
    agent = getattr(maxmean, algorithm)(
        world(name),
        eval_env=world(name),
        network=Convolution() if picture else Perceptron((64,)),
        hidden=128 if picture else 64,
        batch_size=32,
        replay_capacity=50_000,
        warmup=WARMUP,
        target_period=1_000,
        test_interval=10**9,
        test_episodes=1,
        measure_bias=False,
    )
    agent.learn(WARMUP + 20)
    begin, at = time.perf_counter(), agent.num_timesteps
    while agent.num_timesteps < at + steps:  # without the test at the end of learn()
        agent.driver.step()
    np.asarray(agent.driver.run.tally.updates)  # the last update too
    return steps / (time.perf_counter() - begin)


def stable_baselines(name: str, steps: int) -> float:
    """Steps a second of Stable-Baselines3's DQN with the same network."""
    import stable_baselines3 as sb3
    import torch
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    torch.set_num_threads(1)

    class Features(BaseFeaturesExtractor):  # type: ignore[misc]
        def __init__(self, observation_space: Any) -> None:
            super().__init__(observation_space, 1024)
            self.net = torch.nn.Sequential(torch.nn.Conv2d(4, 16, 3), torch.nn.ReLU(), torch.nn.Flatten())

        def forward(self, observations: torch.Tensor) -> torch.Tensor:
            return self.net(observations)

    picture = {"features_extractor_class": Features, "net_arch": [128], "normalize_images": False}
    agent = sb3.DQN(
        "CnnPolicy" if name == "breakout" else "MlpPolicy",
        world(name),
        learning_rate=1e-4,
        buffer_size=50_000,
        learning_starts=WARMUP,
        batch_size=32,
        train_freq=1,
        gradient_steps=1,
        target_update_interval=1_000,
        policy_kwargs=picture if name == "breakout" else {"net_arch": [64, 64]},
        device="cpu",
    )
    agent.learn(WARMUP + 20)
    begin = time.perf_counter()
    agent.learn(steps, reset_num_timesteps=False)
    return steps / (time.perf_counter() - begin)


CASES: dict[str, Callable[[], float]] = {
    "CartPole, dqn": lambda: ours("cartpole", "DQN", 8_000),
    "CartPole, ke-bdqn": lambda: ours("cartpole", "KEBDQN", 4_000),
    "CartPole, Stable-Baselines3": lambda: stable_baselines("cartpole", 2_000),
    "Breakout, dqn": lambda: ours("breakout", "DQN", 3_000),
    "Breakout, ke-bdqn": lambda: ours("breakout", "KEBDQN", 500),
    "Breakout, Stable-Baselines3": lambda: stable_baselines("breakout", 1_000),
}


def main() -> None:
    best = in_turns(__file__, CASES, os.environ.get("HOST_PYTHON", sys.executable), REPEATS)
    for name, rate in best.items():
        print(f"{name:30} {rate:10,.1f} steps/s")
    for where in ("CartPole", "Breakout"):
        mine, peer = f"{where}, dqn", f"{where}, Stable-Baselines3"
        if mine in best and peer in best:
            print(f"{where}: dqn / Stable-Baselines3 DQN: {best[mine] / best[peer]:.1f} (target 2)")


if __name__ == "__main__":
    take(CASES, main)
