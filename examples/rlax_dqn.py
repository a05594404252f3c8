"""Bootstrapped DQN with rlax, optax and plain JAX, in one file, with a target of ours in the place of the maximum.

    pip install '.[deep,gymnasium]' rlax && python examples/rlax_dqn.py --steps 20000

rlax's functions see one transition and one head; `vmap` does the rest. `rlax.q_learning` takes the largest of the next state's
values: here it is given a single one, the K-estimate of each head.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import optax
import rlax
from gymnasium.spaces import Box, Discrete

from maxmean import mev
from maxmean.mev.methods import parse_kernel

Array = jax.Array
Layer = tuple[Array, Array]


class Parameters(NamedTuple):
    """A trunk with heads; the heads' layers have a leading axis."""

    trunk: Layer
    hidden: Layer
    out: Layer


class Batch(NamedTuple):
    """Transitions. A truncated episode is not over: only a terminated one has the discount zero."""

    s_tm1: Any
    a_tm1: Any
    r_t: Any
    discount_t: Any
    s_t: Any


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The settings, from the command line."""
    parser = argparse.ArgumentParser(
        description="Bootstrapped DQN with K-estimates as targets, made of rlax's parts.",
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


def create(key: Array, size: int, actions: int, heads: int, hidden: int) -> Parameters:
    """Random weights; each head has its own."""
    first, second, third = jax.random.split(key, 3)
    draw = jax.nn.initializers.he_normal(batch_axis=0)
    return Parameters(
        (draw(first, (1, size, hidden))[0], jnp.zeros(hidden)),
        (draw(second, (heads, hidden, hidden)), jnp.zeros((heads, hidden))),
        (draw(third, (heads, hidden, actions)), jnp.zeros((heads, actions))),
    )


def values(parameters: Parameters, observation: Array) -> Array:
    """Q of one observation, [heads, actions]."""
    (w0, b0), (w1, b1), (w2, b2) = parameters
    features = jax.nn.relu(observation @ w0 + b0)
    hidden = jax.nn.relu(jnp.einsum("i,kij->kj", features, w1) + b1)
    return jnp.einsum("ki,kij->kj", hidden, w2) + b2


def errors(parameters: Parameters, target: Parameters, kernel: mev.Kernel, transition: Batch) -> Array:
    """Temporal differences of one transition, one for each head: here are the three lines of ours."""
    q_tm1 = values(parameters, transition.s_tm1)
    q_target_heads = values(target, transition.s_t)
    next_values = mev.ensemble_target(q_target_heads, kernel)
    td = jax.vmap(rlax.q_learning, in_axes=(0, None, None, None, 0))
    return td(q_tm1, transition.a_tm1, transition.r_t, transition.discount_t, next_values[:, None])


@partial(jax.jit, static_argnames=("kernel", "optimizer"))
def update(
    parameters: Parameters,
    target: Parameters,
    moments: Any,
    batch: Batch,
    kernel: mev.Kernel,
    optimizer: optax.GradientTransformation,
) -> tuple[Parameters, Any]:
    """One step of the optimiser."""

    def loss(parameters: Parameters) -> Array:
        each = jax.vmap(errors, in_axes=(None, None, None, 0))(parameters, target, kernel, batch)
        return 2.0 * jnp.sum(jnp.mean(rlax.l2_loss(each), axis=0))  # rlax's has a factor 1/2

    direction, moments = optimizer.update(jax.grad(loss)(parameters), moments)
    return optax.apply_updates(parameters, direction), moments


@jax.jit
def act(parameters: Parameters, observation: Array, head: Array) -> Array:
    """The greedy action of a head; of head -1, the action that most heads prefer."""
    preferred = jnp.argmax(values(parameters, observation), axis=-1)
    votes = jnp.bincount(preferred, length=parameters.out[1].shape[-1])
    return jnp.where(head < 0, jnp.argmax(votes), preferred[head])


def train(args: argparse.Namespace) -> Parameters:
    """Learn in the environment."""
    rng = np.random.default_rng(args.seed)
    env = gymnasium.make(args.env)
    assert isinstance(env.observation_space, Box)
    assert isinstance(env.action_space, Discrete)
    size, actions = int(np.prod(env.observation_space.shape)), int(env.action_space.n)
    parameters = target = create(jax.random.key(args.seed), size, actions, args.heads, args.hidden)
    optimizer, kernel = optax.adam(args.learning_rate), parse_kernel(args.kernel)
    moments = optimizer.init(parameters)
    n = args.capacity
    replay = Batch(*(np.zeros((n, *shape), np.float32) for shape in ((size,), (), (), (), (size,))))
    replay = replay._replace(a_tm1=np.zeros(n, np.int32))

    recent: deque[float] = deque(maxlen=20)
    observation, _ = env.reset(seed=args.seed)
    total, head, updates = 0.0, int(rng.integers(args.heads)), 0
    for step in range(1, args.steps + 1):
        learns = step > args.warmup
        action = int(act(parameters, observation, head)) if learns else int(rng.integers(actions))
        reached, reward, terminated, truncated, _ = env.step(action)
        transition = (observation, action, reward, 0.0 if terminated else args.discount, reached)
        for column, value in zip(replay, transition, strict=True):
            column[(step - 1) % n] = value
        observation, total = reached, total + float(reward)
        if terminated or truncated:
            recent.append(total)
            observation, _ = env.reset()
            total, head = 0.0, int(rng.integers(args.heads))
        if learns:
            rows = rng.integers(min(step, n), size=args.batch_size)
            batch = Batch(*(column[rows] for column in replay))
            parameters, moments = update(parameters, target, moments, batch, kernel, optimizer)
            updates += 1
            target = parameters if updates % args.target_period == 0 else target
        if step % args.report_every == 0 and recent:
            print(f"step {step:>7,}  mean return of the last {len(recent)} episodes {np.mean(recent):7.1f}", flush=True)
    env.close()
    return parameters


def play(env_id: str, parameters: Parameters, episodes: int, seed: int) -> float:
    """The mean return of greedy episodes."""
    env, total = gymnasium.make(env_id), 0.0
    for episode in range(episodes):
        observation, _ = env.reset(seed=seed + episode)
        over = False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(int(act(parameters, observation, -1)))
            total, over = total + float(reward), terminated or truncated
    env.close()
    return total / episodes


def main(argv: Sequence[str] | None = None) -> float:
    """Train, play, and say how well; gives the mean return of ten greedy episodes."""
    args = arguments(argv)
    score = play(args.env, train(args), episodes=10, seed=10_000 + args.seed)
    print(f"greedy, ten episodes: {score:.1f}")
    return score


if __name__ == "__main__":
    main()
