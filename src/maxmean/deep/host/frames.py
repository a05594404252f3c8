"""Which frames the device has: the host numbers them, and says where each belongs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv, VectorObservationWrapper, VectorWrapper
from gymnasium.wrappers import FrameStackObservation
from numpy.typing import NDArray

from ..core.frames import FrameStore, Stack
from .adapters import EnvStep
from .errors import HostError
from .spaces import Sight


@dataclass
class Frames:
    """The frames of a training. They are numbered in the order in which they came; the place of a number is its remainder."""

    store: FrameStore
    n: int
    written: int = 0
    """How many frames there have been."""
    first: int = 0
    """The number of the oldest transition all of whose frames are still there."""
    steps: int = 0
    """Steps that were told here."""
    jumps: int = 0
    """Those that did not shift the frames by one, as every step of a stack does."""
    numbers: NDArray[np.int64] = field(init=False)
    """[n, k]: the frames of what each environment shows, the oldest first."""
    oldest: NDArray[np.int64] = field(init=False)
    """[capacity]: for each stored transition a frame that none of its own is older than; later ones have no older one."""

    def __post_init__(self) -> None:
        self.numbers = np.zeros((self.n, self.store.stack.count), np.int64)
        self.oldest = np.zeros(self.store.capacity, np.int64)

    @property
    def filled(self) -> int:
        """How many places have a frame."""
        return min(self.written, self.store.places)

    def enter(self, message: NDArray[Any], seen: NDArray[Any], stored: int) -> None:
        """Tell the device the first observations of all environments, after so many transitions."""
        self._clear(message)
        message["reached"] = message["seen"] = split = self.store.stack.split(seen)
        for lane, frames in enumerate(split):
            self._begin(message[lane], lane, frames, 0)
        self._look(message, stored, stored)

    def tell(self, message: NDArray[Any], seen: NDArray[Any], after: EnvStep, stored: int) -> None:
        """Tell the device which frames a step has brought, in environments that showed ``seen`` before it."""
        split, places, floor = self.store.stack.split, self.store.places, self.numbers.min()
        self._clear(message)
        message["state"] = self.numbers[:, -1] % places
        before, reached = split(seen), split(after.reached)
        message["reached"] = message["seen"] = reached
        rolled = (before[:, 1:] == reached[:, :-1]).reshape(self.n, -1).all(axis=1)
        for lane in range(self.n):
            if rolled[lane]:
                self._append(message[lane], lane)
            else:
                self._begin(message[lane], lane, reached[lane], 0)
                self.jumps += bool(after.counts[lane])  # one that only begins anew shifts nothing
        message["next_state"] = self.numbers[:, -1] % places
        if after.seen is not after.reached:
            message["seen"] = new = split(after.seen)
            for lane in np.flatnonzero(after.over).tolist():
                self._begin(message[lane], lane, new[lane], self.store.stack.count)
        numbers = stored + np.arange(int(after.counts.sum()))
        self.oldest[numbers % self.store.capacity] = floor
        self.steps += numbers.size
        self._look(message, stored, stored + numbers.size)

    def _clear(self, message: NDArray[Any]) -> None:
        message["places"], message["links"] = self.store.places, 0

    def _append(self, message: Any, lane: int) -> None:
        """One more frame, behind those that the environment has shown."""
        last, own = self.store.stack.count - 1, self.numbers[lane]
        message["places"][last], message["links"][last] = self._next(int(own[-1]))
        own[:-1] = own[1:].copy()
        own[-1] = self.written - 1

    def _begin(self, message: Any, lane: int, frames: NDArray[Any], begin: int) -> None:
        """All frames of an observation. If the oldest ones are the same, as padding is, one stands for them."""
        same = np.cumprod((frames == frames[0]).reshape(len(frames), -1).all(axis=1)).sum() - 1
        before = self.written  # the first is its own
        for i in range(int(same), len(frames)):
            message["places"][begin + i], message["links"][begin + i] = self._next(before)
            before = self.written - 1
            self.numbers[lane, i] = before
        self.numbers[lane, : int(same)] = self.numbers[lane, int(same)]

    def _next(self, before: int) -> tuple[int, int]:
        """The place of one more frame, and of the one before it."""
        self.written += 1
        return (self.written - 1) % self.store.places, before % self.store.places

    def _look(self, message: NDArray[Any], stored: int, after: int) -> None:
        """Tell which transitions have all their frames."""
        capacity, lost = self.store.capacity, self.written - self.store.places
        whole = max(0, after - capacity)
        first = max(self.first, whole)
        while first < after and self.oldest[first % capacity] < lost:
            first += 1
        if first > whole and self.first <= max(0, stored - capacity):
            held = f"the replay holds {after - first:,} of {min(after, capacity):,} transitions"
            if 2 * self.jumps > self.steps:
                k = self.store.stack.count
                why = f"consecutive observations are not shifted by a frame, so they are no stacks of {k}: leave frames={k} out"
            else:
                why = "in short episodes they have more frames than there is room for (frames=1 stores whole observations)"
            warnings.warn(f"{held}: {why}", UserWarning, stacklevel=4)
        self.first = first
        message["first"], message["held"] = first % capacity, after - first


def stack_of(env: Any, sight: Sight, count: int = 0) -> Stack | None:
    """The stack of frames that an environment shows, where it tells that or ``count`` does; None where there is none."""
    if count == 1:
        return None
    if count:
        return _given(sight, count)
    found = _stacked(env)
    if found is None:
        return None
    space, count = found
    marks = np.arange(count).reshape(-1, *[1] * (len(space.shape) - 1))
    seen = sight.one(np.broadcast_to(marks, space.shape).astype(sight.dtype))
    for axis, length in enumerate(seen.shape):
        along = np.moveaxis(seen, axis, -1)
        if length == count and (along == np.arange(count)).all():
            return Stack(sight.shape, count, axis)
    return None


def _given(sight: Sight, count: int) -> Stack:
    """The stack of so many frames: along the last axis of pictures, and along the first one of all else."""
    shape = sight.shape
    last = len(shape) - 1
    for axis in (last, 0) if len(shape) == 3 else (0, last):
        if shape[axis] == count or (axis == last and shape[axis] % count == 0):
            return Stack(shape, count, axis)
    raise HostError(
        f"frames={count} does not fit observations that the network sees as {list(shape)}: stacked frames lie along the first "
        "axis or, for pictures, along the last"
    )


def _stacked(env: Any) -> tuple[Any, int] | None:
    """The space of stacks with the frames as its first axis, and their number, if the environment says that it stacks them."""
    space = env.single_observation_space if isinstance(env, VectorEnv) else env.observation_space
    if not isinstance(space, gymnasium.spaces.Box) or not space.shape:
        return None
    inner = env
    while isinstance(inner, VectorWrapper | gymnasium.Wrapper) and not isinstance(inner, FrameStackObservation):
        if isinstance(inner, VectorObservationWrapper | gymnasium.ObservationWrapper):
            return None  # it may show something else than the stack in the same space
        inner = inner.env
    if isinstance(inner, SyncVectorEnv):
        below = _stacked(inner.envs[0])
    elif isinstance(inner, AsyncVectorEnv):
        below = (inner.single_observation_space, min(inner.get_attr("stack_size"))) if _all_stack(inner) else None
    elif isinstance(inner, FrameStackObservation):
        below = inner.observation_space, inner.stack_size
    elif type(inner).__module__ == "ale_py.vector_env":
        below = inner.single_observation_space, inner.single_observation_space.shape[0]
    else:
        below = None
    # A wrapper around it may show something else than the stack, or something else of it from step to step.
    return below if below is not None and below[0] == space and 1 < below[1] == space.shape[0] < 256 else None


def _all_stack(env: AsyncVectorEnv) -> bool:
    """Whether the outermost wrapper of every environment stacks frames. No more can be asked of another process."""
    wrapped = all(env.call("has_wrapper_attr", "class_name"))
    return wrapped and all(name == FrameStackObservation.__name__ for name in env.call("class_name"))
