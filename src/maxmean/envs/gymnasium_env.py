"""The class behind :func:`maxmean.envs.to_gymnasium`; apart from it, so that Gymnasium is imported by those who use it."""

from __future__ import annotations

from functools import cache, partial
from typing import Any, SupportsInt

import gymnasium
import jax
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from .environment import EnvError, Environment, Step, check_action
from .generators import generator_at
from .minatar import GAMES
from .pictures import FPS, render
from .registry import make


class GymnasiumEnv(gymnasium.Env[NDArray[Any], SupportsInt]):
    """One of our environments, stepped as Gymnasium steps: on the host, where Gymnasium's environments are.

    On a GPU a step of one small game is slower, and it would wait there for whatever the agent computes.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": FPS}  # noqa: RUF012  (Gymnasium has it as an attribute)

    def __init__(self, env: Environment, render_mode: str | None = None) -> None:
        if render_mode not in (None, "rgb_array"):
            raise EnvError(f"render_mode must be None or 'rgb_array', not {render_mode!r}")
        self.env = env
        self.render_mode = render_mode
        self.observation_space = _box(env.observation)
        self.action_space = spaces.Discrete(env.n_actions)
        self.state: Any = None
        self._over = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        super().reset(seed=seed)
        previous = self.state if seed is None else None
        self.state, observation = _reset(self.env, jax.device_put(self._words(), _host()), previous)
        self._over = False
        return np.array(observation), self._info()

    def step(self, action: SupportsInt) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        if self.state is None or self._over:
            raise gymnasium.error.ResetNeeded("an episode begins with reset()")
        check_action(action, self.env.n_actions)
        step = _step(self.env, self._words(), self.state, int(action))
        self.state = step.state
        terminated, truncated = bool(step.terminated), bool(step.truncated)
        self._over = terminated or truncated
        return np.array(step.observation), float(step.reward), terminated, truncated, self._info()

    def render(self) -> NDArray[np.uint8] | None:
        if self.render_mode is None:
            return None
        if self.state is None:
            raise gymnasium.error.ResetNeeded("there is nothing to draw before the first reset()")
        return render(self.env, self.state)

    def get_state(self) -> dict[str, Any]:
        """All that the future depends on: plain arrays, and the random generator's state."""
        leaves = None if self.state is None else [np.array(leaf) for leaf in jax.tree.leaves(self.state)]
        return {"state": leaves, "over": self._over, "random": self.np_random.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from where :meth:`get_state` was called, of this environment or of another of its kind."""
        if not isinstance(state, dict) or set(state) != {"state", "over", "random"}:
            raise EnvError(f"that is no state of {self.env.name}: it has the entries state, over and random")
        generator, leaves = generator_at(state["random"]), state["state"]
        shapes, tree = jax.tree.flatten(_form(self.env))
        if leaves is not None:
            here = [(leaf.shape, leaf.dtype) for leaf in shapes]
            there = [
                (leaf.shape, leaf.dtype) for leaf in leaves if isinstance(leaf, np.ndarray | np.generic | jax.Array)
            ]
            if not isinstance(leaves, list) or len(there) != len(leaves) or here != there:
                raise EnvError(f"that is no state of {self.env.name}: its arrays have other shapes or types")
        self.state = None if leaves is None else jax.device_put(jax.tree.unflatten(tree, leaves), _host())
        self._over = bool(state["over"])
        self.np_random = generator

    def _info(self) -> dict[str, Any]:
        """Which actions are legal, where some may not be."""
        legal = self.env.legal(self.state)
        return {} if legal is None else {"action_mask": np.array(legal, np.int8)}

    def _words(self) -> NDArray[np.uint32]:
        """What a key is made of. All chance comes from Gymnasium's generator, which ``reset(seed=...)`` seeds."""
        return self.np_random.integers(1 << 32, size=2, dtype=np.uint32)


class Creator:
    """What ``gymnasium.make`` calls to make a game; it looks for ``metadata`` here to know what can be shown."""

    metadata = GymnasiumEnv.metadata

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, render_mode: str | None = None, **options: Any) -> GymnasiumEnv:
        return GymnasiumEnv(make(self.name, **options), render_mode)


# Gymnasium finds a creator as an attribute of a module: here it has the game's name.
globals().update({name: Creator(name) for name in GAMES})


@cache
def _host() -> jax.Device | None:
    """The host as JAX has it, unless it was told to do without. What is computed from arrays there is computed there."""
    try:
        return jax.devices("cpu")[0]
    except RuntimeError:
        return None


@cache
def _form(env: Environment) -> Any:
    """Shapes and types of a state."""
    return jax.eval_shape(lambda key: env.reset(key)[0], np.zeros(2, np.uint32))


@partial(jax.jit, static_argnums=0)
def _reset(env: Environment, words: jax.Array, previous: Any) -> tuple[Any, jax.Array]:
    return env.reset(jax.random.wrap_key_data(words, impl="threefry2x32"), previous)


@partial(jax.jit, static_argnums=0)
def _step(env: Environment, words: jax.Array, state: Any, action: jax.Array) -> Step:
    return env.step(jax.random.wrap_key_data(words, impl="threefry2x32"), state, action)


def _box(observation: jax.ShapeDtypeStruct) -> spaces.Box:
    """All that an observation of that type can be."""
    kind = np.dtype(observation.dtype)
    if kind == np.bool_:
        ends: tuple[float, float] = (0, 1)
    elif np.issubdtype(kind, np.integer):
        ends = (np.iinfo(kind).min, np.iinfo(kind).max)
    else:
        ends = (-np.inf, np.inf)
    return spaces.Box(*ends, observation.shape, kind.type)
