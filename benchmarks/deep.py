"""Deep training on one core beside Stable-Baselines3's DQN and a straightforward PyTorch bootstrapped DQN, in one run.

    DEEP_PYTHON=path/to/python make benchmark

names an interpreter that has stable-baselines3, torch, minatar and our own dependencies (CONTRIBUTING.md has the recipe); without
it, or without one of them, that peer is left out. All play MinAtar Breakout with one update a step: batch 32, one convolution of
16 filters, 128 hidden units, Adam, a replay of 100,000. Everything is included: environment, replay, acting, update. Each is
measured in turn, several times, in a process of its own on one core, and the best counts; a second is one of the core's time, so
that a machine with other work tells the same.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from turns import in_turns, take

REPEATS = 5
HEADS = 10


def ours(agent_name: str, steps: int) -> float:
    """Steps a second of one run."""
    from maxmean import deep, envs
    from maxmean.deep.device.block import make_blocks
    from maxmean.deep.device.plan import TrainingPlan

    plan = TrainingPlan.of(envs.make("minatar/breakout"), deep.AGENTS[agent_name](), 1, None, deep.Settings())
    (block,) = make_blocks(plan, batched=False)
    block.create()
    block.advance(block.settings.warmup + 20, lambda: False)
    begin = time.process_time()
    block.advance(block.step + steps, lambda: False)
    return steps / (time.process_time() - begin)


def stable_baselines(steps: int) -> float:
    """Steps a second of Stable-Baselines3's DQN with the same network."""
    import gymnasium as gym
    import stable_baselines3 as sb3
    import torch
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    torch.set_num_threads(1)

    class Features(BaseFeaturesExtractor):  # type: ignore[misc]
        def __init__(self, observation_space: gym.spaces.Box) -> None:
            super().__init__(observation_space, 1024)
            self.net = torch.nn.Sequential(
                torch.nn.Conv2d(observation_space.shape[0], 16, 3), torch.nn.ReLU(), torch.nn.Flatten()
            )

        def forward(self, observations: torch.Tensor) -> torch.Tensor:
            return self.net(observations)

    agent = sb3.DQN(
        "CnnPolicy",
        _MinAtarGym(),
        learning_rate=3e-5,
        buffer_size=100_000,
        learning_starts=500,
        batch_size=32,
        train_freq=1,
        gradient_steps=1,
        target_update_interval=1_000,
        policy_kwargs={
            "features_extractor_class": Features,
            "net_arch": [128],
            "normalize_images": False,
            "optimizer_class": torch.optim.Adam,
        },
        device="cpu",
    )
    agent.learn(520)
    begin = time.process_time()
    agent.learn(steps, reset_num_timesteps=False)
    return steps / (time.process_time() - begin)


def torch_bootstrapped(steps: int, heads: int = HEADS) -> float:
    """KE-BDQN as one writes it in PyTorch: one module a head on a shared convolution, lists of heads, Adam."""
    import copy

    import torch
    from torch import nn

    torch.set_num_threads(1)
    game = _MinAtarGym()
    channels = game.observation_space.shape[0]

    class Bootstrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.core = nn.Sequential(nn.Conv2d(channels, 16, 3), nn.ReLU(), nn.Flatten())
            self.heads = nn.ModuleList(
                nn.Sequential(nn.Linear(1024, 128), nn.ReLU(), nn.Linear(128, 6)) for _ in range(heads)
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            features = self.core(x)
            return torch.stack([head(features) for head in self.heads], dim=1)

    online = Bootstrapped()
    target = copy.deepcopy(online)
    optimizer = torch.optim.Adam(online.parameters(), lr=3e-5)
    normal = torch.distributions.Normal(0.0, 1.0)
    rng = np.random.default_rng(0)
    capacity = 100_000
    seen = np.zeros((capacity, channels, 10, 10), np.float32)
    following = np.zeros_like(seen)
    actions, rewards, ends = (np.zeros(capacity, t) for t in (np.int64, np.float32, np.float32))
    observation, _ = game.reset()
    head, filled, begin = 0, 0, 0.0
    for step in range(520 + steps):
        if step == 520:
            begin = time.process_time()
        with torch.no_grad():
            q = online.heads[head](online.core(torch.from_numpy(observation)[None]))
        action = int(q.argmax()) if step >= 500 else int(rng.integers(6))
        after, reward, terminated, truncated, _ = game.step(action)
        at = step % capacity
        seen[at], following[at], actions[at], rewards[at], ends[at] = observation, after, action, reward, terminated
        filled = min(filled + 1, capacity)
        observation = after
        if terminated or truncated:
            observation, _ = game.reset()
            head = int(rng.integers(heads))
        if step < 500:
            continue
        rows = rng.integers(filled, size=32)
        a = torch.from_numpy(actions[rows])
        with torch.no_grad():
            ahead = target(torch.from_numpy(following[rows]))
            best, winner = ahead.max(dim=2, keepdim=True)
            variance = ahead.var(dim=1, keepdim=True).expand_as(ahead)
            spread = variance + variance.gather(2, winner)
            weight = normal.cdf((ahead - best) / spread.sqrt())  # type: ignore[no-untyped-call]
            value = (weight * ahead).sum(dim=2) / weight.sum(dim=2)
            y = torch.from_numpy(rewards[rows])[:, None] + 0.99 * (1 - torch.from_numpy(ends[rows]))[:, None] * value
        q = online(torch.from_numpy(seen[rows])).gather(2, a[:, None, None].expand(-1, heads, 1))[..., 0]
        loss = sum(nn.functional.mse_loss(q[:, k], y[:, k]) for k in range(heads))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[union-attr]
        for parameter in online.core.parameters():
            assert parameter.grad is not None
            parameter.grad /= heads
        optimizer.step()
        if step % 1_000 == 0:
            target.load_state_dict(online.state_dict())
    return steps / (time.process_time() - begin)


def _MinAtarGym() -> Any:  # noqa: N802
    """MinAtar's own Breakout, channels first, as both PyTorch peers want it."""
    import gymnasium as gym
    from minatar import Environment

    class Breakout(gym.Env):
        observation_space = gym.spaces.Box(0.0, 1.0, (4, 10, 10), np.float32)
        action_space = gym.spaces.Discrete(6)

        def __init__(self) -> None:
            self.game = Environment("breakout", sticky_action_prob=0.1)

        def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
            super().reset(seed=seed)
            self.game.reset()
            return self._see(), {}

        def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
            reward, terminal = self.game.act(int(action))
            return self._see(), float(reward), bool(terminal), False, {}

        def _see(self) -> np.ndarray:
            return np.moveaxis(self.game.state(), -1, 0).astype(np.float32)

    return Breakout()


def matmul_ceiling() -> float:
    """GFLOP/s of a large float32 product on this core."""
    import jax
    import jax.numpy as jnp

    n = 2048
    product = jax.jit(lambda a: a @ a)
    a = jnp.ones((n, n), jnp.float32)
    product(a).block_until_ready()
    best = np.inf
    for _ in range(5):
        begin = time.process_time()
        product(a).block_until_ready()
        best = min(best, time.process_time() - begin)
    return 2 * n**3 / best / 1e9


def megaflops(heads: int, batch: int = 32, channels: int = 4, actions: int = 6) -> float:
    """Floating-point operations of a step: the update's two forward passes and one backward pass, and acting on one head."""
    trunk = 2 * 64 * 9 * channels * 16
    head = 2 * (1024 * 128 + 128 * actions)
    forward = batch * (trunk + heads * head)
    backward = batch * (trunk + 2 * heads * head)  # the trunk's inputs need no gradient
    return (2 * forward + backward + trunk + head) / 1e6


CASES: dict[str, Callable[[], float]] = {
    "dqn": lambda: ours("dqn", 3_000),
    "ke-bdqn": lambda: ours("ke-bdqn", 600),
    "ke*-bdqn": lambda: ours("ke*-bdqn", 600),
    "Stable-Baselines3 DQN": lambda: stable_baselines(1_000),
    "PyTorch KE-BDQN": lambda: torch_bootstrapped(300),
    "matmul ceiling": matmul_ceiling,
}


def main() -> None:
    best = in_turns(__file__, CASES, os.environ.get("DEEP_PYTHON", sys.executable), REPEATS)
    for name, rate in best.items():
        print(f"{name:24} {rate:10,.1f} {'GFLOP/s' if name == 'matmul ceiling' else 'steps/s'}")
    pairs = (("dqn", "Stable-Baselines3 DQN", 4), ("ke-bdqn", "PyTorch KE-BDQN", 3), ("ke*-bdqn", "ke-bdqn", 0.95))
    for mine, peer, target in pairs:
        if mine in best and peer in best:
            print(f"{mine} / {peer}: {best[mine] / best[peer]:.3g} (target {target})")
    for name, heads in (("dqn", 1), ("ke-bdqn", HEADS)):
        if {name, "matmul ceiling"} <= set(best):
            speed = best[name] * megaflops(heads) / 1e3
            share = speed / best["matmul ceiling"]
            print(
                f"{name}: {megaflops(heads):.0f} MFLOP a step, {speed:.0f} GFLOP/s, {share:.0%} of the core's matmul ceiling"
            )


if __name__ == "__main__":
    take(CASES, main)
