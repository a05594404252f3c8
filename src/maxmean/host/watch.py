"""A trained agent at play in its Gymnasium environment, as the environment draws itself."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..deep.policy import Policy, named_leaves, with_suffix
from ..deep.watch import Moment, Panel
from . import plain
from .algorithms import ALGORITHMS
from .errors import HostError, sentence
from .making import make_env
from .saving import read
from .worlds import World

LEAST_HEIGHT = 300
"""Pixels. Smaller pictures are enlarged."""


def training_at(path: str | Path) -> Path | None:
    """The training that is meant: this file, or the one of a directory whose last test was best; None if it is not the host's."""
    path = Path(path)
    if not path.is_dir():
        path = with_suffix(path)
        return path if _header(path) else None
    found = sorted([*path.glob("training.safetensors"), *path.glob("runs/*/training.safetensors")])
    if found:
        return max(found, key=_score)
    plan = path / "plan.json"
    if plan.is_file() and "algorithm" in json.loads(plan.read_text()):
        raise HostError(
            f"{path} has an agent's records but not the agent: write it with agent.save(path), and watch that"
        )
    return None


def load(path: Path) -> tuple[Policy, Any]:
    """The agent in a training's file, and its environment, which draws itself."""
    text, arrays = read(path, weights := "run.learner.weights.")
    about = text["about"]
    if about["environment"] is None:
        raise HostError(f"{path} does not say in which environment it was trained: that had no id")
    env = _drawing(about["environment"])
    given = {name: plain.unpack(value) for name, value in text["given"].items()}
    kind = next(kind for kind in ALGORITHMS.values() if kind.__name__ == about["algorithm"])
    agent = kind(env, **{**given, "replay_capacity": 1, "warmup": 1})  # it will not learn
    if any(agent.describe()["world"][name] != about["world"][name] for name in ("shape", "type", "actions")):
        raise HostError(
            f"{path} was trained in {about['environment']} with wrappers that are not in the file: "
            f"load it with maxmean.{about['algorithm']}.load(path, env)"
        )
    network = agent.learner.engine.program.network
    shapes = jax.eval_shape(network.create, jax.random.key(0))
    leaves = [jnp.asarray(arrays[weights + name]) for name, _ in named_leaves(shapes)]
    known = {
        "environment": {"name": about["environment"]},
        "variant": agent.agent.label,
        "step": text["clock"]["stored"],
    }
    return Policy(network, jax.tree.unflatten(jax.tree.structure(shapes), leaves), agent.agent.bootstrapped, known), env


def play(policy: Policy, env: Any, *, seed: int = 0, frames: int = 400) -> Iterator[Moment]:
    """One episode of the policy, at most ``frames`` long."""
    if frames < 1:
        raise HostError(f"frames must be at least 1, not {frames}")
    world = World(env)
    meanings = getattr(env.unwrapped, "get_action_meanings", None)
    names = meanings() if meanings else [str(world.first_action + a) for a in range(world.n_actions)]
    panel, total = Panel(policy.about["variant"], [name.lower() for name in names]), 0.0

    def see(observation: Any) -> NDArray[Any]:
        return np.asarray(world.sight.one(observation), world.sight.dtype)

    seen = see(env.reset(seed=seed)[0])
    for _ in range(frames):
        action = policy.act(seen)
        yield Moment(panel.beside(_picture(env), policy.values(seen), action, total), total, False)
        observation, reward, terminated, truncated, _ = env.step(action + world.first_action)
        total, seen = total + float(reward), see(observation)
        if terminated or truncated:
            yield Moment(panel.beside(_picture(env), policy.values(seen), None, total), total, True)
            return


def frame_rate(env: Any) -> float:
    """Frames a second, as the environment would have it, within what a GIF can do."""
    return min(max(float(env.metadata.get("render_fps") or 15.0), 1.0), 50.0)


def _drawing(name: str) -> Any:
    """The environment with that id, made to be drawn."""
    modes = make_env(name).metadata.get("render_modes") or []
    if "rgb_array" not in modes:
        raise HostError(f"{name} cannot be watched: it has no render mode 'rgb_array', which gives pictures")
    return make_env(name, render_mode="rgb_array")


def _picture(env: Any) -> NDArray[np.uint8]:
    try:
        picture = np.asarray(env.render(), np.uint8)
    except gymnasium.error.DependencyNotInstalled as error:
        raise HostError(f"{env.spec.id} cannot be drawn: {sentence(error)}") from None
    larger = -(-LEAST_HEIGHT // picture.shape[0])
    return picture.repeat(larger, axis=0).repeat(larger, axis=1)


def _header(path: Path) -> dict[str, Any] | None:
    """What a file says of itself, if it is one of ours."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy") as file:
            return json.loads((file.metadata() or {})["maxmean"])
    except (OSError, SafetensorError, KeyError, ValueError):
        return None


def _score(path: Path) -> float:
    """The return of the last test; less than any where there was none."""
    tests = [row["test_return"] for row in (_header(path) or {"records": {}})["records"].get("records", [])]
    return tests[-1] if tests and not math.isnan(tests[-1]) else -math.inf
