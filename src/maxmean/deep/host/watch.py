"""A trained agent at play in its Gymnasium environment, as the environment draws itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
from numpy.typing import NDArray

from ...untrusted import ContentError, mapping, number, optional, parse, several, take, whole
from ...untrusted import text as text_of
from ..core.family import Family
from ..directory import read_plan
from ..policy import Policy, all_finite, with_suffix
from ..watch import Moment, Panel, check_play
from . import plain
from .adapters import EnvAdapter
from .classes import HOST_AGENTS
from .driver import network_of
from .errors import HostError, sentence
from .loading import ALGORITHM, blaming, fitting_tree, read
from .making import is_known, make_env
from .settings import choose

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
    with suppress(ContentError):
        if read_plan(path)["kind"] == "agent":
            raise HostError(
                f"{path} has an agent's records but not the agent: write it with agent.save(path), and watch that"
            )
    return None


def load(path: Path, env: str | None = None) -> tuple[Policy, Any]:
    """The agent in a training's file, and its environment, which draws itself.

    The environment is the one that the file names, if Gymnasium knows it already. One that would have to be imported is made for
    a caller who names it as ``env``, never because a file does.
    """
    text, arrays = read(path, weights := "run.learner.weights.")
    with blaming(path):
        about = take(text, "about", mapping)
        kind = next(kind for kind in HOST_AGENTS.values() if kind.__name__ == take(about, "algorithm", ALGORITHM))
        given = plain.settings(take(text, "given", mapping))
        known, step = take(about, "world", mapping), take(take(text, "clock", mapping), "stored", whole())
        name = env or _named(about, path)
    made = _drawing(name)
    world = EnvAdapter(made)
    with blaming(path):
        agent, settings, host = choose(kind.make, world.sight, given)
    if any(world.describe()[part] != known.get(part) for part in ("shape", "type", "actions")):
        raise HostError(
            f"{path} was not trained in {name} as it is, but with wrappers that are not in the file: "
            f"load it with maxmean.{kind.__name__}.load(path, env)"
        )
    network = network_of(Family.of([agent]), world, settings, host)
    shapes = jax.eval_shape(network.create, jax.random.key(0))
    with blaming(path):
        values = fitting_tree(arrays, weights, shapes)
        if not all_finite(values):
            raise HostError("its weights are not finite numbers: the agent has diverged, and its actions mean nothing")
    said = {"environment": {"name": name}, "variant": agent.label, "step": step}
    return Policy(network, values, agent.bootstrapped, said), made


def _named(about: dict[str, Any], path: Path) -> str:
    """The environment that a file names, if it can be made without importing what it names."""
    name = take(about, "environment", optional(text_of))
    if name is None:
        raise HostError(f"{path} does not say in which environment it was trained: that had no id; name one with --env")
    if not is_known(name):
        raise HostError(
            f"{path} says that it was trained in {name!r:.100}, for which a package would have to be imported, and no file can "
            "ask for that: if you trust this environment, name it yourself with --env"
        )
    return name


def play(policy: Policy, env: Any, *, seed: int = 0, frames: int = 400) -> Iterator[Moment]:
    """One episode of the policy, at most ``frames`` long."""
    check_play(seed, frames)
    world = EnvAdapter(env)
    meanings = getattr(env.unwrapped, "get_action_meanings", None)
    names = meanings() if meanings else [str(world.first_action + a) for a in range(world.n_actions)]
    panel, total = Panel(policy.about["variant"], [name.lower() for name in names]), 0.0

    view = world.reset(seed)
    for _ in range(frames):
        seen, legal = view.seen[0], None if view.legal is None else view.legal[0]
        action = policy.act(seen, legal)
        yield Moment(panel.beside(_picture(env), policy.values(seen), action, total), total, False)
        after = world.advance(np.array([action]))
        total, view = total + float(after.rewards[0]), after.view
        if after.over[0]:
            yield Moment(panel.beside(_picture(env), policy.values(view.seen[0]), None, total), total, True)
            return


def frame_rate(env: Any) -> float:
    """Frames a second, as the environment would have it, within what a GIF can do."""
    return min(max(float(env.metadata.get("render_fps") or 15.0), 1.0), 50.0)


def _drawing(name: str) -> Any:
    """The environment with that id, made to be drawn."""
    env = make_env(name)
    env.close()
    modes = env.metadata.get("render_modes") or []
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

    if not path.is_file():  # but a pipe, say, which nobody may ever write to
        return None
    try:
        with safe_open(path, "numpy") as file:
            return parse((file.metadata() or {})["maxmean"])
    except ContentError:
        return {}  # it says that it is ours: reading it will say what is wrong
    except (OSError, SafetensorError, KeyError, ValueError):
        return None


def _score(path: Path) -> float:
    """The return of the last test; less than any where there was none."""
    try:
        rows = take(take(_header(path) or {}, "records", mapping), "records", several(mapping))
        return take(rows[-1], "test_return", number) if rows else -math.inf
    except ContentError:
        return -math.inf
