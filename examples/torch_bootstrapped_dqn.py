"""Bootstrapped DQN in PyTorch, in one file, with a target of ours in the place of the maximum.

    pip install '.[torch,gymnasium]' && python examples/torch_bootstrapped_dqn.py --steps 20000
    python examples/torch_bootstrapped_dqn.py --kernel indicator:0.5      # the maximum of each head, to compare with

Several heads on one trunk learn from the same replay. An episode is played by one of them, drawn at its beginning, which is how
the agent explores; greedily, they vote. Only `bellman_targets` knows of maxmean.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from torch import Tensor, nn

from maxmean import mev
from maxmean.mev.methods import parse_kernel


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The settings, from the command line."""
    parser = argparse.ArgumentParser(
        description="Bootstrapped DQN with K-estimates as targets.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--env", default="CartPole-v1", help="a Gymnasium id with a vector to see and discrete actions")
    parser.add_argument("--steps", type=int, default=20_000, help="steps of the environment")
    parser.add_argument("--seed", type=int, default=0, help="of weights, exploration, replay and environment")
    parser.add_argument("--kernel", default="gaussian", help="weights of the target: gaussian:0.84, indicator:0.1, ...")
    parser.add_argument("--heads", type=int, default=10, help="heads on the trunk, at least two")
    parser.add_argument("--hidden", type=int, default=64, help="units of each layer")
    parser.add_argument("--learning-rate", type=float, default=1e-3, help="Adam's step size")
    parser.add_argument("--discount", type=float, default=0.99, help="discount factor")
    parser.add_argument("--batch-size", type=int, default=64, help="transitions of an update")
    parser.add_argument("--capacity", type=int, default=10_000, help="transitions in the replay")
    parser.add_argument("--warmup", type=int, default=1_000, help="steps before learning begins")
    parser.add_argument("--target-period", type=int, default=100, help="updates from one target copy to the next")
    parser.add_argument("--report-every", type=int, default=1_000, help="steps from one line of progress to the next")
    return parser.parse_args(argv)


class Network(nn.Module):
    """A trunk with heads: observations [batch, size] to values [batch, heads, actions]."""

    def __init__(self, size: int, actions: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(size, hidden), nn.ReLU())
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, actions)) for _ in range(heads)
        )

    def forward(self, observations: Tensor) -> Tensor:
        features = self.trunk(observations)
        return torch.stack([head(features) for head in self.heads], dim=1)


class Batch(NamedTuple):
    """Transitions. A truncated episode is not over: only a terminated one has the discount zero."""

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    discounts: Tensor
    next_observations: Tensor


class Replay:
    """The last transitions, in a ring."""

    def __init__(self, capacity: int, size: int) -> None:
        shapes = ((size,), (), (), (), (size,))
        types = (np.float32, np.int64, np.float32, np.float32, np.float32)
        self.columns = [np.zeros((capacity, *shape), kind) for shape, kind in zip(shapes, types, strict=True)]
        self.capacity, self.added = capacity, 0

    def add(self, *transition: object) -> None:
        """Add one, in the order of `Batch`; the oldest goes."""
        for column, value in zip(self.columns, transition, strict=True):
            column[self.added % self.capacity] = value
        self.added += 1

    def sample(self, rng: np.random.Generator, size: int) -> Batch:
        """Draw some, with replacement."""
        rows = rng.integers(min(self.added, self.capacity), size=size)
        return Batch(*(torch.from_numpy(column[rows]) for column in self.columns))


@torch.no_grad()
def bellman_targets(target_network: Callable[[Tensor], Tensor], batch: Batch, kernel: mev.Kernel) -> Tensor:
    """What the heads should have predicted, [batch, heads]: these are the three lines of ours."""
    q_target_heads = target_network(batch.next_observations)  # [batch, heads, actions]
    next_values = mev.ensemble_target(q_target_heads, kernel)  # instead of q_target_heads.max(dim=-1).values
    return batch.rewards[:, None] + batch.discounts[:, None] * next_values


def loss_of(network: Network, batch: Batch, targets: Tensor) -> Tensor:
    """The squared errors, their mean over the batch and their sum over the heads."""
    q = network(batch.observations)
    chosen = batch.actions[:, None, None].expand(-1, q.shape[1], 1)
    return (q.gather(-1, chosen).squeeze(-1) - targets).square().mean(dim=0).sum()


@torch.no_grad()
def vote(network: Network, observation: np.ndarray) -> int:
    """The action that most heads prefer."""
    preferred = network(torch.as_tensor(observation, dtype=torch.float32)[None])[0].argmax(dim=-1)
    return int(torch.bincount(preferred).argmax())


def train(args: argparse.Namespace) -> tuple[Network, list[float]]:
    """Learn; gives the network and the returns of the episodes that it played on the way."""
    torch.set_num_threads(1)  # such small products are quicker on one core
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    env = gymnasium.make(args.env)
    assert isinstance(env.observation_space, Box)
    assert isinstance(env.action_space, Discrete)
    size, actions = int(np.prod(env.observation_space.shape)), int(env.action_space.n)
    network, target = (Network(size, actions, args.heads, args.hidden) for _ in range(2))
    target.load_state_dict(network.state_dict())
    optimizer = torch.optim.Adam(network.parameters(), args.learning_rate)
    replay, kernel = Replay(args.capacity, size), parse_kernel(args.kernel)

    returns: list[float] = []
    recent: deque[float] = deque(maxlen=20)
    observation, _ = env.reset(seed=args.seed)
    total, head, updates = 0.0, int(rng.integers(args.heads)), 0
    for step in range(1, args.steps + 1):
        if step <= args.warmup:
            action = int(rng.integers(actions))
        else:
            with torch.no_grad():
                seen = torch.as_tensor(observation, dtype=torch.float32)[None]
                action = int(network.heads[head](network.trunk(seen)).argmax())
        reached, reward, terminated, truncated, _ = env.step(action)
        replay.add(observation, action, reward, 0.0 if terminated else args.discount, reached)
        observation, total = reached, total + float(reward)
        if terminated or truncated:
            returns.append(total)
            recent.append(total)
            observation, _ = env.reset()
            total, head = 0.0, int(rng.integers(args.heads))

        if step > args.warmup:
            batch = replay.sample(rng, args.batch_size)
            loss = loss_of(network, batch, bellman_targets(target, batch, kernel))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            updates += 1
            if updates % args.target_period == 0:
                target.load_state_dict(network.state_dict())
        if step % args.report_every == 0 and recent:
            print(f"step {step:>7,}  mean return of the last {len(recent)} episodes {np.mean(recent):7.1f}", flush=True)
    env.close()
    return network, returns


def play(env_id: str, network: Network, episodes: int, seed: int) -> float:
    """The mean return of greedy episodes."""
    env, total = gymnasium.make(env_id), 0.0
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed + episode)
        over = False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(vote(network, observation))
            total, over = total + float(reward), terminated or truncated
    env.close()
    return total / episodes


def main(argv: Sequence[str] | None = None) -> float:
    """Train, play, and say how well; gives the mean return of ten greedy episodes."""
    args = arguments(argv)
    network, _ = train(args)
    score = play(args.env, network, episodes=10, seed=10_000 + args.seed)
    print(f"greedy, ten episodes: {score:.1f}")
    return score


if __name__ == "__main__":
    main()
