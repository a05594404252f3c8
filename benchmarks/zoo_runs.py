"""One run of benchmarks/zoo.py: an agent learns in an environment and is tested on the way.

A test is the mean return of greedy episodes in a second environment; the clock of the training stands still meanwhile.
benchmarks/zoo.py calls this file for each run, as a process of its own on one core:

    python benchmarks/zoo_runs.py '["dqn", "CartPole-v1", 50000, 0]' FILE CORE
"""

from __future__ import annotations

import ast
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

TESTS = 20
"""Tests of a run, evenly spaced; the last one is at the last step."""
EPISODES = 20
"""Episodes of a test."""

PEER = "sb3-dqn"
"""Stable-Baselines3's DQN with the hyper-parameters of rl-baselines3-zoo."""
RECOMMENDED = "recommended"
"""What ``maxmean.agent(env)`` gives."""

UNITS = [256, 256]
"""Its hidden layers, in all environments."""

_LANDER: dict[str, Any] = {
    "learning_rate": 6.3e-4,
    "batch_size": 128,
    "buffer_size": 50_000,
    "learning_starts": 0,
    "gamma": 0.99,
    "target_update_interval": 250,
    "train_freq": 4,
    "gradient_steps": -1,  # as many as there were steps
    "exploration_fraction": 0.12,
    "exploration_final_eps": 0.1,
}
ZOO: dict[str, dict[str, Any]] = {
    "CartPole-v1": {
        "learning_rate": 2.3e-3,
        "batch_size": 64,
        "buffer_size": 100_000,
        "learning_starts": 1_000,
        "gamma": 0.99,
        "target_update_interval": 10,
        "train_freq": 256,
        "gradient_steps": 128,
        "exploration_fraction": 0.16,
        "exploration_final_eps": 0.04,
    },
    "Acrobot-v1": _LANDER,
    "MountainCar-v0": {
        "learning_rate": 4e-3,
        "batch_size": 128,
        "buffer_size": 10_000,
        "learning_starts": 1_000,
        "gamma": 0.98,
        "target_update_interval": 600,
        "train_freq": 16,
        "gradient_steps": 8,
        "exploration_fraction": 0.2,
        "exploration_final_eps": 0.07,
    },
    "LunarLander-v3": _LANDER,
}
"""``hyperparams/dqn.yml`` of rl-baselines3-zoo, at commit 22e3ff2."""

COLUMNS = {
    "environment": "str",
    "agent": "str",
    "seed": "int64",
    "step": "int64",
    "test_return": "float64",
    "value": "float64",
    "bias": "float64",
    "seconds": "float64",
    "cpu_seconds": "float64",
    "diverged": "int64",
}
"""Of a run's records, a row for each test: ``value`` is the mean Q, ``seconds`` are those of the training so far, ``diverged`` is
the step at which the loss or the weights were found not to be finite, or -1.
"""

Row = dict[str, Any]
Keep = Callable[[Row], None]


class Run(NamedTuple):
    """What is trained where."""

    agent: str
    """:data:`PEER`, or :data:`RECOMMENDED`, or one of ours as ``maxmean train`` names it; settings may follow:
    ``te-bdqn:0.2 learning_rate=3e-4``.
    """
    environment: str
    steps: int
    seed: int = 0

    @property
    def interval(self) -> int:
        """Steps from one test to the next."""
        return self.steps // TESTS


class Stopwatch:
    """Wall and CPU time of a training, without its tests."""

    def __init__(self) -> None:
        self.begin = self._now()

    def read(self) -> Row:
        seconds, cpu_seconds = self._now() - self.begin
        return {"seconds": seconds, "cpu_seconds": cpu_seconds}

    @contextmanager
    def paused(self) -> Iterator[None]:
        stopped = self._now()
        yield
        self.begin += self._now() - stopped

    @staticmethod
    def _now() -> Any:
        return np.array([time.perf_counter(), time.process_time()])


def our_agent(run: Run) -> tuple[str, Any]:
    """The agent of a run with its defaults, and its label."""
    import maxmean
    from maxmean.deep.agents import parse_arguments
    from maxmean.deep.host import HOST_AGENTS
    from maxmean.deep.host.making import make_env

    text, *others = run.agent.split()
    settings = {key: _value(text) for key, _, text in (each.partition("=") for each in others)}
    settings |= {"seed": run.seed, "test_interval": run.interval, "test_episodes": EPISODES}
    env = make_env(run.environment)
    if text == RECOMMENDED:
        return run.agent, maxmean.agent(env, **settings)
    name, own = parse_arguments(text)
    agent = HOST_AGENTS[name](env, **own, **settings)
    return " ".join([agent.agent.label, *others]), agent


def _value(text: str) -> Any:
    """What a setting's text means in Python; a bare word is itself, as in ``loss=huber``."""
    return text if text.isidentifier() and text not in ("True", "False", "None") else ast.literal_eval(text)


def ours(run: Run, keep: Keep) -> None:
    """Train one of our agents."""
    label, agent = our_agent(run)
    measure, watch = agent._record, Stopwatch()

    def record(sinks: Any) -> Row:
        np.asarray(agent.driver.run.tally.updates)  # an update under way belongs to the training
        with watch.paused():
            return measure(sinks)

    agent._record = record
    agent.learn(run.steps, callback=lambda row: keep({**row, **watch.read(), "agent": label}))


def stable_baselines(run: Run, keep: Keep) -> None:
    """Train Stable-Baselines3's DQN."""
    import stable_baselines3 as sb3
    import torch
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    torch.set_num_threads(1)
    settings = {**ZOO[run.environment], "policy_kwargs": {"net_arch": UNITS}}
    model = sb3.DQN("MlpPolicy", run.environment, seed=run.seed, device="cpu", **settings)
    second = make_vec_env(run.environment, seed=10_000 + run.seed)

    class Test(BaseCallback):  # type: ignore[misc]
        diverged = -1

        def _on_step(self) -> bool:
            step = self.num_timesteps
            if step % run.interval == 0:
                with watch.paused():
                    returned, _ = evaluate_policy(model, second, n_eval_episodes=EPISODES, deterministic=True)
                    if self.diverged < 0 and not all(each.isfinite().all() for each in model.policy.parameters()):
                        self.diverged = step
                keep(
                    {
                        "agent": PEER,
                        "step": step,
                        "test_return": returned,
                        "value": np.nan,
                        "bias": np.nan,
                        "diverged": self.diverged,
                        **watch.read(),
                    }
                )
            return bool(step < run.steps)

    watch = Stopwatch()
    model.learn(run.steps, callback=Test())


def plan(run: Run) -> Row:
    """All that decides what comes of a run, but for its seed."""
    about = _peer_plan(run) if run.agent == PEER else our_agent(run._replace(seed=0))[1].describe()
    return {"agent": run.agent, "environment": run.environment, "steps": run.steps, "about": about}


def _peer_plan(run: Run) -> Row:
    import stable_baselines3 as sb3

    from maxmean.deep.host.making import make_env

    make_env(run.environment).close()  # or it says what is missing
    return {"stable_baselines3": sb3.__version__, "net_arch": UNITS, **ZOO[run.environment]}


def train(run: Run, path: Path) -> None:
    """Train, print a line for each test, and write the records to a file, which appears when all is done."""
    import pandas as pd

    from maxmean.storage import as_parquet, write_whole

    rows: list[Row] = []

    def keep(row: Row) -> None:
        rows.append({**row, "environment": run.environment, "seed": run.seed})
        print(json.dumps({"step": row["step"], "test_return": row["test_return"]}), flush=True)

    (stable_baselines if run.agent == PEER else ours)(run, keep)
    write_whole(path, as_parquet(pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)))


if __name__ == "__main__":
    os.sched_setaffinity(0, {int(sys.argv[3])})  # before JAX and PyTorch start their threads
    train(Run(*json.loads(sys.argv[1])), Path(sys.argv[2]))
