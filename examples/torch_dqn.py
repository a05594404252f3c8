"""DQN in PyTorch, in one file, with a module `QNetwork` as CleanRL's scripts have it, and three lines that show its bias.

    pip install '.[deep,gymnasium,torch]' && python examples/torch_dqn.py --steps 20000
    python examples/torch_dqn.py --logs runs/dqn          # also to TensorBoard, where it is installed

Only `measure_bias` is ours: everything else is an agent that knows nothing of maxmean.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box, Discrete
from torch import Tensor, nn

import maxmean
from maxmean.deep.host import Bias


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The settings, from the command line."""
    parser = argparse.ArgumentParser(
        description="DQN that measures its bias while it learns.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--env", default="CartPole-v1", help="a Gymnasium id with a vector to see and discrete actions")
    parser.add_argument("--steps", type=int, default=20_000, help="steps of the environment")
    parser.add_argument("--seed", type=int, default=0, help="of weights, exploration, replay and environment")
    parser.add_argument("--learning-rate", type=float, default=2.5e-4, help="Adam's step size")
    parser.add_argument("--gamma", type=float, default=0.99, help="discount factor")
    parser.add_argument("--batch-size", type=int, default=128, help="transitions of an update")
    parser.add_argument("--buffer-size", type=int, default=10_000, help="transitions in the replay")
    parser.add_argument("--learning-starts", type=int, default=1_000, help="steps before learning begins")
    parser.add_argument("--train-frequency", type=int, default=2, help="steps from one update to the next")
    parser.add_argument("--target-frequency", type=int, default=500, help="steps from one target copy to the next")
    parser.add_argument("--end-epsilon", type=float, default=0.05, help="of the steps that are random in the end")
    parser.add_argument("--exploration-fraction", type=float, default=0.5, help="of the steps, until epsilon is there")
    parser.add_argument("--bias-every", type=int, default=5_000, help="steps from one measurement to the next")
    parser.add_argument("--bias-episodes", type=int, default=10, help="episodes of a measurement")
    parser.add_argument("--logs", default="", help="a folder for TensorBoard")
    return parser.parse_args(argv)


class QNetwork(nn.Module):
    """Observations [batch, size] to the values of all actions [batch, actions]."""

    def __init__(self, size: int, actions: int) -> None:
        super().__init__()
        self.network = nn.Sequential(
            nn.Linear(size, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, actions)
        )

    def forward(self, x: Tensor) -> Tensor:
        values: Tensor = self.network(x)
        return values


def train(args: argparse.Namespace) -> tuple[QNetwork, list[Bias]]:
    """Learn; gives the network and the biases that were measured on the way."""
    torch.set_num_threads(1)  # such small products are quicker on one core
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    env, eval_env = gymnasium.make(args.env), gymnasium.make(args.env)
    assert isinstance(env.observation_space, Box)
    assert isinstance(env.action_space, Discrete)
    size, actions = int(np.prod(env.observation_space.shape)), int(env.action_space.n)
    q_network, target_network = QNetwork(size, actions), QNetwork(size, actions)
    target_network.load_state_dict(q_network.state_dict())
    optimizer = torch.optim.Adam(q_network.parameters(), args.learning_rate)
    kept = [np.zeros((args.buffer_size, *shape), np.float32) for shape in ((size,), (), (), (), (size,))]
    writer = None
    if args.logs:
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(args.logs)

    biases = []
    seen, _ = env.reset(seed=args.seed)
    for step in range(1, args.steps + 1):
        slope = (args.end_epsilon - 1.0) / (args.exploration_fraction * args.steps)
        if rng.random() < max(1.0 + slope * step, args.end_epsilon):
            action = int(rng.integers(actions))
        else:
            with torch.no_grad():
                action = int(q_network(torch.as_tensor(seen, dtype=torch.float32)[None]).argmax())
        reached, reward, terminated, truncated, _ = env.step(action)
        for column, value in zip(kept, (seen, action, reward, terminated, reached), strict=True):
            column[(step - 1) % args.buffer_size] = value
        seen = env.reset()[0] if terminated or truncated else reached

        if step > args.learning_starts and step % args.train_frequency == 0:
            rows = rng.integers(min(step, args.buffer_size), size=args.batch_size)
            s, a, r, done, t = (torch.from_numpy(column[rows]) for column in kept)
            with torch.no_grad():
                targets = r + args.gamma * target_network(t).max(dim=1).values * (1.0 - done)
            loss = nn.functional.mse_loss(q_network(s).gather(1, a.long()[:, None])[:, 0], targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if step % args.target_frequency == 0:
            target_network.load_state_dict(q_network.state_dict())

        if step % args.bias_every == 0:
            bias = maxmean.measure_bias(q_network, eval_env, discount=args.gamma, episodes=args.bias_episodes)
            biases.append(bias)
            print(f"step {step:7,}: bias {bias.value:+.2f} ± {bias.error:.2f}, values {bias.predicted:.2f}")
            if writer is not None:
                writer.add_scalar("bias/mean", bias.value, step)
    if writer is not None:
        writer.close()
    return q_network, biases


def main(argv: Sequence[str] | None = None) -> list[Bias]:
    """Learn, and say how large the bias is on the way."""
    return train(arguments(argv))[1]


if __name__ == "__main__":
    main()
