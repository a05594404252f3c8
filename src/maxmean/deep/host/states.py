"""Environment states: kept and put back, where the environment can do that.

An environment can if it, or one of its wrappers, has two methods:

- ``get_state()`` gives all that its future depends on, its random generator included, as nested dicts, lists and tuples of
  arrays, numbers, texts and None;
- ``set_state(state)`` puts it there.

Gymnasium's classic control and toy text environments have no such methods, but their states are known here; and so is what
``gymnasium.make`` wraps around an environment.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import SyncVectorEnv

from ...envs.generators import generator_at
from .errors import HostError


def _numbers(n: int) -> Callable[[Any], bool]:
    """Whether it is a vector of so many numbers, as an array or a tuple."""

    def fits(value: Any) -> bool:
        try:
            array = np.asarray(value) if isinstance(value, tuple | np.ndarray) else None
        except ValueError:  # parts of different lengths
            array = None
        return array is not None and array.dtype.kind in "if" and array.shape == (n,)

    return fits


def _count(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= int(value) < 2**31


def _count_or_none(value: Any) -> bool:
    return value is None or _count(value)


def _flag(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _yes(value: Any) -> bool:
    """Whether it says that an episode is under way, as one is wherever a state is kept."""
    return _flag(value) and bool(value)


def _hand(value: Any) -> bool:
    """Whether it is a hand of Blackjack, whose last card at most was drawn beyond 21."""
    cards = (
        isinstance(value, list) and 2 <= len(value) < 100 and all(_count(card) and 1 <= card <= 10 for card in value)
    )
    return cards and sum(value[:-1]) <= 21


def _label(value: Any) -> bool:
    return isinstance(value, str) and len(value) < 10


_CHECKER = "gymnasium.wrappers.common.PassiveEnvChecker"
"""It looks at the first steps of an environment, and compares each with the one before. The future does not depend on it."""
_CHECKS = ("checked_reset", "checked_step", "checked_data_reuse")
"""What it has looked at; the last one since Gymnasium 1.4."""

_ATTRIBUTES: dict[str, dict[str, Callable[[Any], bool]]] = {
    "gymnasium.envs.classic_control.cartpole.CartPoleEnv": {
        "state": _numbers(4),
        "steps_beyond_terminated": _count_or_none,
    },
    "gymnasium.envs.classic_control.acrobot.AcrobotEnv": {"state": _numbers(4)},
    "gymnasium.envs.classic_control.mountain_car.MountainCarEnv": {"state": _numbers(2)},
    "gymnasium.envs.toy_text.blackjack.BlackjackEnv": {
        "player": _hand,
        "dealer": _hand,
        "dealer_top_card_suit": _label,
        "dealer_top_card_value_str": _label,
    },
    "gymnasium.envs.toy_text.frozen_lake.FrozenLakeEnv": {"s": _count, "lastaction": _count_or_none},
    "gymnasium.envs.toy_text.cliffwalking.CliffWalkingEnv": {"s": _count, "lastaction": _count_or_none},
    "gymnasium.envs.toy_text.taxi.TaxiEnv": {
        "s": _count,
        "lastaction": _count_or_none,
        "taxi_orientation": _count,
        "fickle_step": _flag,
    },
    "gymnasium.wrappers.common.TimeLimit": {"_elapsed_steps": _count},
    "gymnasium.wrappers.common.OrderEnforcing": {"_has_reset": _yes},
    _CHECKER: {"checked_reset": _flag, "checked_step": _flag},
}
"""What the state of environments and wrappers without the two methods is made of, and what each part can be."""


def obstacle(env: Any) -> str | None:
    """Why the state of an environment cannot be kept, in a few words; nothing if it can."""
    if isinstance(env, SyncVectorEnv):
        return next((why for each in env.envs if (why := obstacle(each))), None)
    if isinstance(env, gymnasium.vector.VectorEnv):
        return f"{type(env).__name__} does not show its environments"
    for layer in _layers(env):
        if _has_methods(layer):
            return None
        if _kind(layer) not in _ATTRIBUTES:
            return f"{type(layer).__name__} has no methods get_state and set_state"
    return None


def alike(env: Any, other: Any) -> bool:
    """Whether a state of ``env`` (or of one of its environments) can be put into ``other``."""
    if obstacle(env) is not None or obstacle(other) is not None:
        return False
    one = env.envs[0] if isinstance(env, SyncVectorEnv) else env
    return [_kind(layer) for layer in _layers(one)] == [_kind(layer) for layer in _layers(other)]


def layers(env: Any) -> list[Any]:
    """What an environment, or each of a vector environment's, is made of: a state of one fits others that are made so.

    Without the names of modules: the same class is in another one when it is run as a script.
    """
    if isinstance(env, SyncVectorEnv):
        return [layers(each) for each in env.envs]
    return [type(layer).__qualname__ for layer in _layers(env)]


def get_state(env: Any) -> list[Any]:
    """The state of an environment, or of each of a vector environment's; a copy."""
    if isinstance(env, SyncVectorEnv):
        return [get_state(each) for each in env.envs]
    return [copy.deepcopy(_get(layer)) for layer in _layers(env)]


def set_state(env: Any, state: list[Any], generator: np.random.Generator | None = None, *, over: Any = False) -> None:
    """Put an environment where another of its kind was. With a ``generator`` it has its own luck from there on.

    ``over`` says whether the episode has ended there; of a vector environment, in which of its environments.
    """
    parts = env.envs if isinstance(env, SyncVectorEnv) else _layers(env)
    if not isinstance(state, list) or len(state) != len(parts):
        raise HostError(f"that is no state of this environment, which is made of {len(parts)} parts")
    if isinstance(env, SyncVectorEnv):
        for each, own, ended in zip(parts, state, np.broadcast_to(over, len(parts)), strict=True):
            set_state(each, own, over=ended)
        return  # which of them begin anew in the next step, the world knows
    for layer, own in zip(parts, state, strict=True):
        _set(layer, copy.deepcopy(own), bool(over))
    if generator is not None:
        env.unwrapped.np_random = generator


def _layers(env: Any) -> list[Any]:
    """The environment and its wrappers, from the outermost to the first that answers for all below it."""
    layers = [env]
    while not _has_methods(layers[-1]) and isinstance(layers[-1], gymnasium.Wrapper):
        layers.append(layers[-1].env)
    return layers


def _has_methods(layer: Any) -> bool:
    return callable(getattr(layer, "get_state", None)) and callable(getattr(layer, "set_state", None))


def _kind(layer: Any) -> str:
    return f"{type(layer).__module__}.{type(layer).__qualname__}"


def _get(layer: Any) -> Any:
    if _has_methods(layer):
        return layer.get_state()
    if _kind(layer) == _CHECKER:  # however far it is: the same state is the same file
        return dict.fromkeys(_ATTRIBUTES[_CHECKER], True)
    state = {name: getattr(layer, name) for name in _ATTRIBUTES[_kind(layer)] if hasattr(layer, name)}
    return state if isinstance(layer, gymnasium.Wrapper) else {**state, "random": layer.np_random.bit_generator.state}


def _set(layer: Any, state: Any, over: bool) -> None:
    if _has_methods(layer):
        layer.set_state(state)
        return
    if not isinstance(state, dict):
        raise HostError(f"that is no state of {type(layer).__name__}")
    if not isinstance(layer, gymnasium.Wrapper):
        layer.np_random = generator_at(state.pop("random", None))
    known = _ATTRIBUTES[_kind(layer)]
    missing = [name for name in known if hasattr(layer, name) and name not in state]
    if missing:
        raise HostError(f"that is no state of {type(layer).__name__}: {missing[0]!r} is missing")
    for name, value in state.items():
        if name not in known or not known[name](value) or not _inside(layer, name, value, over):
            raise HostError(f"that is no state of {type(layer).__name__}: {name!r:.60} is {value!r:.60}")
        setattr(layer, name, value)
    if _kind(layer) == _CHECKER:  # what it would compare the next step with was seen elsewhere
        for name in _CHECKS:
            if hasattr(layer, name):
                setattr(layer, name, True)


def _inside(layer: Any, name: str, value: Any, over: bool) -> bool:
    """Whether a numbered state is one that the environment has, and a player of Blackjack can play on."""
    if name == "player":
        return over or sum(value) <= 21
    return name != "s" or value < layer.observation_space.n
