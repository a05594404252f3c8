"""Environments of gymnax (1.0 or newer) as ours."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import brief, missing, unknown
from .environment import EnvError, Environment, Step, check_action


class GymnaxState(NamedTuple):
    """A state of gymnax with what is seen of it: some of its environments draw their observations at random."""

    state: Any
    observation: jax.Array


@dataclasses.dataclass(frozen=True)
class Gymnax(Environment):
    """An environment of gymnax. Made by :func:`from_gymnax`.

    gymnax resets by itself when an episode ends; this does not. Two of these are equal, and compiled once, if they hold the same
    gymnax environment and equal parameters.
    """

    env: Any
    params: Any = dataclasses.field(compare=False)
    label: str
    """Its name at gymnax."""
    content: Hashable = dataclasses.field(init=False, repr=False)
    """The parameters as something that can be compared."""

    def __post_init__(self) -> None:
        leaves, tree = jax.tree.flatten(self.params)
        values = tuple((np.asarray(leaf).dtype.str, np.shape(leaf), np.asarray(leaf).tobytes()) for leaf in leaves)
        object.__setattr__(self, "content", (tree, values))
        if not hasattr(self.env.action_space(self.params), "n"):
            raise EnvError(f"{self.name} has continuous actions; only discrete ones work here")
        if not isinstance(self.observation, jax.ShapeDtypeStruct):
            raise EnvError(f"{self.name} observes more than one array; only one works here")

    @property
    def name(self) -> str:
        return f"gymnax/{self.label}"

    @property
    def n_actions(self) -> int:
        return int(self.env.action_space(self.params).n)

    def reset(self, key: jax.Array, previous: Any = None) -> tuple[GymnaxState, jax.Array]:
        """Start an episode; nothing is carried over from the ``previous`` one."""
        observation, state = _typed(self.env.reset_env(key, self._arrays()))
        return GymnaxState(state, observation), observation

    def step(self, key: jax.Array, state: GymnaxState, action: jax.Array) -> Step:
        """One step without a reset (``step_env``); ``truncated`` is its time limit, ``params.max_steps_in_episode``."""
        check_action(action, self.n_actions)
        params = self._arrays()
        observation, inner, reward, terminated, _ = self.env.step_env(key, state.state, jnp.asarray(action), params)
        observation, inner = _typed((observation, inner))
        terminated = jnp.asarray(terminated, bool)
        truncated = jnp.asarray(self.env.is_truncated(inner, params), bool) & ~terminated
        return Step(
            GymnaxState(inner, observation), observation, jnp.asarray(reward, jnp.float32), terminated, truncated
        )

    def observe(self, state: GymnaxState) -> jax.Array:
        return state.observation

    def _arrays(self) -> Any:
        """The parameters as gymnax sees them inside its own ``jit``."""
        return jax.tree.map(jnp.asarray, self.params)


def from_gymnax(env: Any, params: Any = None, **options: Any) -> Gymnax:
    """An environment of gymnax as ours: ``env`` is one, or the name of one.

    Its actions must be discrete. ``params`` are its parameters; left out, they are its default ones. ``options`` replace some of
    them by name (``max_steps_in_episode=200``) or, where ``env`` is a name, go to its class (``use_minimal_action_set=False``).

    An episode is ``truncated`` after the parameter ``max_steps_in_episode``; ``terminated`` is the environment's own end alone.

    >>> from_gymnax("CartPole-v1", max_steps_in_episode=200).n_actions  # doctest: +SKIP
    2
    """
    if isinstance(env, str):
        label = env
        env, options = _by_name(env, options)
    else:
        label = str(getattr(env, "name", type(env).__name__))
    for method in ("reset_env", "step_env", "is_truncated", "action_space"):
        if not hasattr(env, method):
            raise EnvError(f"{label} is no environment of gymnax 1.0 or newer: it has no method {method}")
    if params is None:
        params = env.default_params
    fields = [field.name for field in dataclasses.fields(params)]
    for option in options:
        if option not in fields:
            if option in _arguments(env):  # by name, its class has had it already
                raise EnvError(f"{option!r} goes to the class of gymnax/{label}: give its name instead of an object")
            raise EnvError(unknown(f"gymnax/{label} has no option", option, [*fields, *_arguments(env)], cutoff=0.5))
        _check_alike(f"{option} of gymnax/{label}", options[option], vars(params)[option])
    return Gymnax(env, dataclasses.replace(params, **options) if options else params, label)


def _check_alike(what: str, value: Any, default: Any) -> None:
    """Refuse what cannot stand where a number or an array of numbers does; whatever else a parameter is, gymnax knows."""
    shape, numeric = np.shape(default), np.asarray(default).dtype.kind in "biuf"
    try:
        found = np.asarray(value)
    except ValueError:  # parts of different lengths
        found = np.asarray(None)
    if numeric and (found.dtype.kind not in "biuf" or found.shape != shape):
        such = f"an array of numbers of the shape {shape}" if shape else f"a number, such as {default}"
        raise EnvError(f"{what} must be {such}, not {brief(value)}")


def _by_name(name: str, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The environment of that name, and the ``options`` that are left when its class has had its own."""
    try:
        import gymnax
    except ImportError:
        raise EnvError(missing(f"gymnax/{name}", "gymnax")) from None
    if name not in gymnax.registered_envs:
        raise EnvError(unknown("gymnax has no environment", name, gymnax.registered_envs, cutoff=0.5))
    own: dict[str, Any] = {}
    try:
        if options:
            own = {option: options[option] for option in options.keys() & _arguments(_make(name, ()))}
        rest = {option: value for option, value in options.items() if option not in own}
        return _make(name, tuple(sorted(own.items()))), rest
    except (TypeError, ValueError) as error:
        raise EnvError(f"gymnax cannot make {name} with {own}: {error}") from None
    except OSError as error:  # MNIST's pictures, for one
        why = getattr(error, "reason", error)
        raise EnvError(f"gymnax/{name} needs data that gymnax downloads, and the download failed: {why}") from None


@functools.cache
def _make(name: str, arguments: tuple[tuple[str, Any], ...]) -> Any:
    """The same object for the same name and arguments, so that what it does is compiled once."""
    import gymnax

    return gymnax.make(name, **dict(arguments))[0]


def _arguments(env: Any) -> list[str]:
    """What the class of ``env`` takes."""
    return list(inspect.signature(type(env)).parameters)


def _typed(tree: Any) -> Any:
    """All leaves as arrays of a definite type: gymnax's clocks start as Python numbers."""

    def typed(leaf: Any) -> jax.Array:
        array = jnp.asarray(leaf)
        return jax.lax.convert_element_type(array, array.dtype) if array.weak_type else array

    return jax.tree.map(typed, tree)
