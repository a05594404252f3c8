"""Speed of the tabular learners beside peers on the same grid, in one run, on one core.

The peers are a hand-written NumPy loop and MushroomRL. MushroomRL needs an older NumPy than ours, so it lives in an
environment of its own: ``MUSHROOM_PYTHON=path/to/python make benchmark`` names its interpreter; without it that peer is
left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from maxmean import tabular

_PEER = """
import sys, time, numpy as np
from mushroom_rl.algorithms.value import DoubleQLearning, QLearning, WeightedQLearning
from mushroom_rl.core import Core
from mushroom_rl.environments import FiniteMDP
from mushroom_rl.policy import EpsGreedy
from mushroom_rl.utils.parameters import Parameter
arrays = np.load(sys.argv[1])
for name, kind in (("Q", QLearning), ("Double Q", DoubleQLearning), ("Weighted Q", WeightedQLearning)):
    mdp = FiniteMDP(arrays["p"], arrays["r"], arrays["mu"], gamma=1.0, horizon=1000)
    agent = kind(mdp.info, EpsGreedy(Parameter(0.1)), learning_rate=Parameter(0.1))
    core = Core(agent, mdp)
    core.learn(n_steps=200, n_steps_per_fit=1, quiet=True)
    begin = time.perf_counter()
    core.learn(n_steps=int(sys.argv[2]), n_steps_per_fit=1, quiet=True)
    print(name, int(sys.argv[2]) / (time.perf_counter() - begin), sep="=")
"""


def ours(algorithm: tabular.Algorithm, threads: int = 1, episodes: int = 3_000, runs: int = 200) -> float:
    """Steps a second, environment and update, after compilation."""
    world = tabular.cliff_walking()
    tabular.learn(world, algorithm, episodes=2, runs=2)
    begin = time.perf_counter()
    found = tabular.learn(
        world,
        algorithm,
        episodes=episodes,
        runs=runs,
        learning_rate=tabular.CLIFF_LEARNING_RATE,
        threads=threads,
    )
    return float(found.episodes["length"].sum() * runs / (time.perf_counter() - begin))


def hand_written(steps: int = 60_000) -> float:
    """KE-Q as one writes it in an afternoon: NumPy arrays of the next state's actions, a Python loop around them."""
    from scipy.special import ndtr

    world = tabular.cliff_walking()
    rng = np.random.default_rng(0)
    states, actions = world.n_states, world.n_actions
    q, process = np.zeros((states, actions)), np.ones((states, actions))
    omega, omega2, updates = np.ones((states, actions)), np.ones((states, actions)), np.zeros((states, actions))
    next_states, rewards = np.zeros((states, actions), dtype=int), np.zeros((states, actions))
    for pair in np.flatnonzero(np.diff(world.offsets)):
        next_states.flat[pair], rewards.flat[pair] = (
            world.next_states[world.offsets[pair]],
            world.rewards[world.offsets[pair]],
        )
    start = s = int(np.argmax(world.start))
    begin = time.perf_counter()
    for _ in range(steps):
        a = rng.integers(actions) if rng.random() < 0.1 else int(np.argmax(q[s]))
        s2, y = next_states[s, a], rewards[s, a]
        updates[s, a] += 1
        tau = 0.1 * 101 / (100 + updates[s, a])
        omega[s, a] = (1 - tau) * omega[s, a] + tau
        omega2[s, a] = (1 - tau) ** 2 * omega2[s, a] + tau**2
        if not world.terminal[s2]:
            variance = process[s2] * omega2[s2] / omega[s2] ** 2
            best = np.argmax(q[s2])
            weights = ndtr((q[s2] - q[s2, best]) / np.sqrt(variance + variance[best]))
            y += weights @ q[s2] / weights.sum()
        error = y - q[s, a]
        process[s, a] = (1 - tau) * (process[s, a] + tau * error**2)
        q[s, a] += tau * error
        s = start if world.terminal[s2] else s2
    return steps / (time.perf_counter() - begin)


def mushroom(python: str, steps: int = 20_000) -> dict[str, float]:
    """Steps a second of MushroomRL's tabular algorithms on the same grid."""
    world = tabular.cliff_walking()
    states, actions = world.n_states, world.n_actions
    p, r = np.zeros((states, actions, states)), np.zeros((states, actions, states))
    for pair in np.flatnonzero(np.diff(world.offsets)):
        k = world.offsets[pair]
        p[pair // actions, pair % actions, world.next_states[k]] = 1.0
        r[pair // actions, pair % actions, world.next_states[k]] = world.rewards[k]
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "mdp.npz", p=p, r=r, mu=world.start)
        command = [python, "-c", _PEER, str(Path(folder) / "mdp.npz"), str(steps)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    return {name: float(rate) for name, rate in (line.split("=") for line in run.stdout.splitlines() if "=" in line)}


def main() -> None:
    """Print steps a second and the ratios that matter."""
    algorithms = {
        "Q": tabular.Q(),
        "Double Q": tabular.DoubleQ(),
        "TE-Q": tabular.TEQ(alpha=0.1),
        "KE-Q": tabular.KEQ(),
    }
    rates = {name: ours(algorithm) for name, algorithm in algorithms.items()}
    rates["Weighted Q (100 draws)"] = ours(tabular.WeightedQ(), runs=20, episodes=1_000)
    for name, rate in rates.items():
        print(f"maxmean {name:<28} {rate / 1e6:8.2f} M steps/s", flush=True)
    one, two = (max(ours(tabular.KEQ(), threads=threads) for _ in range(3)) for threads in (1, 2))
    print(f"maxmean KE-Q on two threads / on one         {two / one:8.2f}")
    hand = hand_written()
    print(f"hand-written NumPy loop, KE-Q                {hand / 1e6:8.4f} M steps/s")
    print(f"KE-Q / hand-written                          {rates['KE-Q'] / hand:8.0f}   at least 200")
    python = os.environ.get("MUSHROOM_PYTHON")
    if python is None:
        print("MushroomRL: not measured (MUSHROOM_PYTHON is not set)", file=sys.stderr)
        return
    peers = mushroom(python)
    for name, rate in peers.items():
        print(f"MushroomRL {name:<25} {rate / 1e6:8.4f} M steps/s")
    print(f"KE-Q / MushroomRL's Weighted Q               {rates['KE-Q'] / peers['Weighted Q']:8.0f}   at least 2,000")


if __name__ == "__main__":
    main()
