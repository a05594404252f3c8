"""What the tests of the host share: environments whose every step is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

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


class Arcade(Counter):
    """Has what tells an environment of Atari's from others where its class cannot be seen."""

    ale = None


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


class Gated(Walk):
    """A walk with four actions of which some are illegal, and raise. At a terminated end all are."""

    action_space = spaces.Discrete(4)

    def legal(self) -> Sequence[int]:
        """Between one and three actions, by episode and time; nothing can be done at a terminated end."""
        if self.time == LENGTH and self.episode % 2 == 0:
            return [0, 0, 0, 0]
        turn = (3 * self.episode + self.time) % 4
        return [int((a - turn) % 4 <= (self.episode + 2 * self.time) % 3) for a in range(4)]

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not self.legal()[action]:
            raise AssertionError(f"action {action} is illegal")
        seen, reward, terminated, truncated, info = super().step(action)
        return seen, reward + 0.5 * int(action), terminated, truncated, info


class GatedByMethod(Gated):
    """As sb3-contrib has it."""

    def action_masks(self) -> Any:
        return np.array(self.legal(), bool)


class GatedByInfo(Gated):
    """As Gymnasium's Taxi has it."""

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        seen, info = super().reset(**options)
        return seen, {**info, "action_mask": np.array(self.legal(), np.int8)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        seen, reward, terminated, truncated, info = super().step(action)
        return seen, reward, terminated, truncated, {**info, "action_mask": np.array(self.legal(), np.int8)}


class GatedByObservation(Gated):
    """As PettingZoo has it."""

    observation_space: Any = spaces.Dict({"observation": Walk.observation_space, "action_mask": spaces.MultiBinary(4)})

    def _see(self) -> Any:
        return {"observation": super()._see(), "action_mask": np.array(self.legal(), np.int8)}


class FakeModel:
    """Has what a model of Stable-Baselines3 has, without it."""

    gamma, device = 0.5, "cpu"
    normaliser: Any = None
    """The ``VecNormalize`` that it learns in."""
    _last_obs: Any = "where it was"

    def __init__(self, env: Any, act: Callable[[Any], Any]) -> None:
        import torch

        class Policy(torch.nn.Module):
            def obs_to_tensor(self, seen: Any) -> tuple[Any, bool]:
                return torch.as_tensor(np.asarray(seen), dtype=torch.float32)[None], False

            def scale_action(self, action: Any) -> Any:
                return action

        self.env, self.act, self.policy = env, act, Policy()
        self.observation_space, self.action_space = env.observation_space, env.action_space

    if TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None: ...  # its networks are given afterwards

    def predict(self, seen: Any, deterministic: bool) -> tuple[Any, None]:
        assert deterministic
        return np.asarray(self.act(seen)), None

    def get_env(self) -> Any:
        return self.env

    def get_vec_normalize_env(self) -> Any:
        return self.normaliser


FakeModel.__module__ = "stable_baselines3.fake"


GATED: dict[str, type[Gated]] = {"method": GatedByMethod, "info": GatedByInfo, "observation": GatedByObservation}
"""One environment, and the three ways of saying what is legal."""
