"""What the tests of the host share: environments whose every step is known."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

LENGTH = 5
"""Steps of a counter's episode."""


def small(**changes: Any) -> dict[str, Any]:
    """Settings with which a training takes no time."""
    return {
        "warmup": 20,
        "replay_capacity": 200,
        "batch_size": 8,
        "hidden": 8,
        "target_period": 10,
        "test_interval": 50,
        "test_episodes": 2,
        "measure_bias": False,
        **changes,
    }


class Counter(gymnasium.Env):
    """Shows its episode's number and the time in it; the reward is the time. Even episodes terminate, odd ones are truncated."""

    observation_space = spaces.Box(-1.0, 1e6, (2,), np.float32)
    action_space: spaces.Discrete = spaces.Discrete(2)

    def __init__(self, first: int = 0, reuse: bool = False) -> None:
        self.episode, self.time = first - 1, 0
        self.array = np.zeros(2, np.float32) if reuse else None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode, self.time = self.episode + 1, 0
        return self._see(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = float(self.time)
        self.time += 1
        over = self.time == LENGTH
        return self._see(), reward, over and self.episode % 2 == 0, over and self.episode % 2 == 1, {}

    def _see(self) -> Any:
        if self.array is None:
            return np.array([self.episode, self.time], np.float32)
        self.array[:] = self.episode, self.time
        return self.array


class Walk(Counter):
    """A counter with chance in it, and the two methods that make it restorable."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        seen, reward, terminated, truncated, info = super().step(action)
        return seen, reward + float(self.np_random.normal()), terminated, truncated, info

    def get_state(self) -> dict[str, Any]:
        return {"episode": self.episode, "time": self.time, "random": self.np_random.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        self.episode, self.time = state["episode"], state["time"]
        self.np_random.bit_generator.state = state["random"]
