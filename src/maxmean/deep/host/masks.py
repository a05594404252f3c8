"""Masks: which actions are legal, in the three ways in which environments say so.

- A method ``action_masks()`` of the environment or of one of its wrappers, as sb3-contrib has it.
- An entry ``"action_mask"`` of a ``Dict`` observation, as PettingZoo has it. It is not part of what the network sees.
- An entry ``"action_mask"`` of ``info`` at every reset and step, as Gymnasium's Taxi has it.

A mask has a number for each action: 1 where it is legal, 0 where it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv, VectorWrapper
from numpy.typing import NDArray

from .errors import HostError
from .spaces import MASK

METHOD = "action_masks"


class Way(Enum):
    """How an environment says which actions are legal."""

    OBSERVATION = auto()
    METHOD = auto()
    INFO = auto()
    NOT = auto()
    """It does not: all actions are legal."""
    UNKNOWN = auto()
    """The first reset will tell: by its ``info``, or not."""
    IGNORED = auto()
    """Nobody asks it, for the agent was trained without masks."""

    @property
    def masked(self) -> bool:
        return self in (Way.OBSERVATION, Way.METHOD, Way.INFO)

    @property
    def lacking(self) -> str:
        """What is said where there is None instead of a mask."""
        if self is Way.METHOD:
            return f"{METHOD}() gave None"
        where = f"the entry {MASK!r} of the observation" if self is Way.OBSERVATION else f"info[{MASK!r}]"
        return f"{where} is missing or None"


def way_of(env: Any, space: spaces.Space, n_actions: int) -> Way:
    """What is known before the first reset of an environment with observations of ``space``."""
    if isinstance(space, spaces.Dict) and MASK in space.spaces:
        if space[MASK].shape != (n_actions,):
            raise HostError(
                f"the entry {MASK!r} of an observation is {space[MASK]}, and a mask has {n_actions} zeros and ones, one for each "
                "action"
            )
        return Way.OBSERVATION
    return Way.METHOD if has_method(env) else Way.UNKNOWN


def has_method(env: Any) -> bool:
    """Whether an environment, or each of a vector environment's, has the method."""
    if not isinstance(env, VectorEnv):
        return env.has_wrapper_attr(METHOD) and callable(env.get_wrapper_attr(METHOD))
    inner = _inner(env)
    return inner is not None and all(inner.call("has_wrapper_attr", METHOD))


def by_method(env: Any) -> Sequence[Any]:
    """The masks that the method gives, one for each environment."""
    if not isinstance(env, VectorEnv):
        return [env.get_wrapper_attr(METHOD)()]
    inner = _inner(env)
    assert inner is not None
    return inner.call(METHOD)


def in_info(info: Any, n: int) -> Sequence[Any]:
    """The masks in the ``info`` of a vector environment, None where there is none."""
    if not isinstance(info, dict):  # one dict for each environment
        return [each.get(MASK) for each in info]
    found = info.get(MASK)
    if found is None:
        return [None] * n
    there = info.get(f"_{MASK}", np.ones(n, bool))
    return [mask if given else None for mask, given in zip(found, there, strict=True)]


def near_miss(env: Any, info: Any) -> str | None:
    """What is said where no mask was found at ``reset``, which gave ``info``, but something looks like one."""
    infos = [info] if isinstance(info, dict) else info if isinstance(info, list) else []
    if any(METHOD in each for each in infos):
        return f"info[{METHOD!r}] is ignored, and all actions count as legal: masks must be in info[{MASK!r}]"
    # Asked after the reset, for a property may need one. Gymnasium's vector environments read what they cannot call.
    if not isinstance(env, VectorEnv) and env.has_wrapper_attr(METHOD) and not has_method(env):
        return (
            f"the environment's {METHOD} is ignored, and all actions count as legal: it must be a method, {METHOD}(), not an "
            "attribute or a property"
        )
    return None


def mask_of(found: Any, n_actions: int) -> NDArray[np.bool_]:
    """A mask as truth values [actions]; one sentence for what is none."""
    try:
        mask = np.asarray(found)
        sound = mask.shape == (n_actions,) and mask.dtype.kind in "biuf" and bool(((mask == 0) | (mask == 1)).all())
    except ValueError:  # parts of different lengths
        sound = False
    if not sound:
        shown = " ".join(repr(found).split())
        raise HostError(f"a mask has {n_actions} zeros and ones, one for each action, and {shown:.200} is none")
    return mask.astype(bool)


def _inner(env: VectorEnv) -> SyncVectorEnv | AsyncVectorEnv | None:
    """The vector environment inside its wrappers, if its environments can be asked."""
    while isinstance(env, VectorWrapper):
        env = env.env
    return env if isinstance(env, SyncVectorEnv | AsyncVectorEnv) else None
