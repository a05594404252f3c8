"""DQN in PyTorch for ``host_gpu.py``: Stable-Baselines3's, and a loop as CleanRL's scripts have it, with the same settings.

Both may round products as our matrix products are rounded on a GPU (TF32), which PyTorch leaves off unless it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from host_worlds import make
from numpy.typing import NDArray

EPSILON = 0.1
"""The share of random actions, from the first step on."""
DISCOUNT = 0.99
LEARNING_RATE = 1e-4
BATCH = 32


@dataclass(frozen=True)
class Load:
    """What every side does."""

    world: str
    """``minatar``, or a game of Atari's such as Breakout."""
    environments: int
    train_every: int
    """Steps of all environments together from one learning to the next."""
    gradient_steps: int
    """Updates each time."""
    capacity: int = 100_000
    warmup: int = 1_000
    """Steps of all environments together before the first update."""

    @property
    def picture(self) -> bool:
        """Whether it is MinAtar's small picture: one convolution and 128 units; else Nature's network."""
        return self.world == "minatar"


Advance = Callable[[int], None]
"""Take so many steps of all environments together, learn from them, and come back when all is done."""


def torch_of(device: str) -> Any:
    import torch

    torch.set_float32_matmul_precision("high")
    if device == "cpu":
        torch.set_num_threads(1)
    return torch


def network(torch: Any, picture: bool, actions: int | None) -> Any:
    """The layers; without the last one, if no number of actions is given."""
    nn = torch.nn
    layers = (
        [nn.Conv2d(4, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 128), nn.ReLU()]
        if picture
        else [
            *(nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU()),
            *(nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU()),
        ]
    )
    return (
        nn.Sequential(*layers)
        if actions is None
        else nn.Sequential(*layers, nn.Linear(128 if picture else 512, actions))
    )


def stable_baselines(load: Load, device: str) -> Advance:
    """Stable-Baselines3's DQN."""
    torch = torch_of(device)
    import stable_baselines3 as sb3
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from stable_baselines3.common.vec_env import VecEnv

    class Features(BaseFeaturesExtractor):  # type: ignore[misc]
        def __init__(self, observation_space: Any) -> None:
            super().__init__(observation_space, 128 if load.picture else 512)
            self.net = network(torch, load.picture, None)

        def forward(self, observations: Any) -> Any:
            return self.net(observations)

    class Bridge(VecEnv):  # type: ignore[misc]
        """A vector environment of Gymnasium's, which begins anew in the same step, as Stable-Baselines3 wants it."""

        def __init__(self, env: Any) -> None:
            self.env, self.render_mode = env, None
            super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

        def reset(self) -> Any:
            return self.env.reset()[0]

        def step_async(self, actions: Any) -> None:
            self.actions = actions

        def step_wait(self) -> Any:
            seen, rewards, terminated, truncated, info = self.env.step(self.actions)
            over = terminated | truncated
            infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
            for i in np.flatnonzero(over):
                infos[i] = {"terminal_observation": info["final_obs"][i], "TimeLimit.truncated": not terminated[i]}
            return seen, rewards, over, infos

        def close(self) -> None:
            self.env.close()

        def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
            return [getattr(self, attr_name, None)] * self.num_envs

        def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None: ...
        def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
            return []

        def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
            return [False] * self.num_envs

    env = make(load.world, load.environments)
    agent = sb3.DQN(
        "CnnPolicy",
        Bridge(env) if isinstance(env, gymnasium.vector.VectorEnv) else env,
        learning_rate=LEARNING_RATE,
        buffer_size=load.capacity,
        learning_starts=load.warmup,
        batch_size=BATCH,
        gamma=DISCOUNT,
        train_freq=load.train_every,
        gradient_steps=load.gradient_steps,
        target_update_interval=10_000,
        exploration_initial_eps=EPSILON,
        exploration_final_eps=EPSILON,
        policy_kwargs={
            "features_extractor_class": Features,
            "net_arch": [],
            "normalize_images": not load.picture,
        },
        device=device,
    )

    def advance(steps: int) -> None:
        agent.learn(steps * load.environments, reset_num_timesteps=False)
        if device != "cpu":
            torch.cuda.synchronize()

    return advance


class Loop:
    """DQN as one file has it: a replay of NumPy arrays on the host, one batch to the device for each update."""

    def __init__(self, load: Load, device: str) -> None:
        self.load, self.device, self.torch = load, device, torch_of(device)
        self.env, self.n = make(load.world, load.environments), load.environments
        self.many = isinstance(self.env, gymnasium.vector.VectorEnv)
        space = self.env.single_observation_space if self.many else self.env.observation_space
        self.actions = int((self.env.single_action_space if self.many else self.env.action_space).n)
        self.q, self.target = (network(self.torch, load.picture, self.actions).to(device) for _ in range(2))
        self.target.load_state_dict(self.q.state_dict())
        self.optimizer = self.torch.optim.Adam(self.q.parameters(), LEARNING_RATE)
        kinds = (
            (space.shape, space.dtype),
            ((), np.int64),
            ((), np.float32),
            ((), np.float32),
            (space.shape, space.dtype),
        )
        self.kept = [np.zeros((load.capacity, *shape), kind) for shape, kind in kinds]
        self.rng = np.random.default_rng(0)
        first = self.env.reset(seed=0)[0]
        self.seen = first if self.many else first[None]
        self.calls = self.stored = 0

    def advance(self, steps: int) -> None:
        for _ in range(steps):
            self._step()
        if self.device != "cpu":
            self.torch.cuda.synchronize()

    def _step(self) -> None:
        load, rng = self.load, self.rng
        actions = self._act() if rng.random() >= EPSILON else rng.integers(self.actions, size=self.n)
        reached, rewards, terminated, fresh = self._play(actions)
        rows = (self.stored + np.arange(self.n)) % load.capacity
        for column, value in zip(self.kept, (self.seen, actions, rewards, terminated, reached), strict=True):
            column[rows] = value
        self.seen = fresh
        self.stored += self.n
        self.calls += 1
        if self.stored > load.warmup and self.calls % load.train_every == 0:
            for _ in range(load.gradient_steps):
                self._update()
        if self.stored % 10_000 < self.n:
            self.target.load_state_dict(self.q.state_dict())

    def _floats(self, seen: NDArray[Any]) -> Any:
        found = self.torch.from_numpy(seen).to(self.device)
        return found if self.load.picture else found.float() / 255.0

    def _act(self) -> NDArray[np.int64]:
        with self.torch.no_grad():
            found: NDArray[np.int64] = self.q(self._floats(self.seen)).argmax(dim=1).cpu().numpy()
        return found

    def _play(self, actions: NDArray[np.int64]) -> tuple[Any, Any, Any, Any]:
        """Where the step led, the rewards, the ends that nothing follows, and what is seen next."""
        if not self.many:
            reached, reward, terminated, truncated, _ = self.env.step(int(actions[0]))
            fresh = self.env.reset()[0] if terminated or truncated else reached
            return reached[None], reward, terminated, fresh[None]
        fresh, rewards, terminated, truncated, info = self.env.step(actions)
        reached = fresh
        if (over := terminated | truncated).any():
            reached = fresh.copy()
            for i in np.flatnonzero(over):
                reached[i] = info["final_obs"][i]
        return reached, rewards, terminated, fresh

    def _update(self) -> None:
        torch = self.torch
        rows = self.rng.integers(min(self.stored, self.load.capacity), size=BATCH)
        seen, actions, rewards, ends, reached = (column[rows] for column in self.kept)
        a, r, done = (torch.from_numpy(column).to(self.device) for column in (actions, rewards, ends))
        with torch.no_grad():
            targets = r + DISCOUNT * (1.0 - done) * self.target(self._floats(reached)).max(dim=1).values
        q = self.q(self._floats(seen)).gather(1, a[:, None])[:, 0]
        loss = torch.nn.functional.smooth_l1_loss(q, targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def torch_loop(load: Load, device: str) -> Advance:
    """The loop in PyTorch."""
    return Loop(load, device).advance
