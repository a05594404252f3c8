"""Spaces: how what an environment shows becomes an array that a network sees, and which network that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import NDArray

from ..networks import Trunk, fitting_trunk, kind_of
from .errors import HostError

MAX_ACTIONS = 256
"""An action is one byte in the replay."""
MASK = "action_mask"
"""The entry of a Dict observation, or of ``info``, that says which actions are legal."""
LEAST_PICTURE = 3
"""Rows and columns of the smallest picture that a 3 x 3 filter fits in."""


@dataclass(frozen=True)
class Sight:
    """What is seen of an observation space: arrays of one shape and type."""

    shape: tuple[int, ...]
    dtype: np.dtype
    one: Callable[[Any], NDArray[Any]]
    """One observation as an array of that shape."""
    many: Callable[[Any], NDArray[Any]]
    """A batch of observations, as a vector environment gives them, as an array [n, ...]."""
    units: tuple[float, ...] = ()
    """How large each number of a vector can be by the bounds of its space, 1 where there are none; none for other kinds."""

    @property
    def trunk(self) -> Trunk:
        """The network's trunk for it: a convolution for small pictures, Nature's for frames, 128 units for all else."""
        return fitting_trunk(self.shape)

    @property
    def kind(self) -> str:
        """What it is, in a word: vector, picture or frames."""
        return kind_of(self.shape)


def sight(space: spaces.Space) -> Sight:
    """How to see the observations of ``space``; an error for spaces that cannot be seen.

    A mask of illegal actions is not seen, and what stands alone beside it is seen as it is.
    """
    if isinstance(space, spaces.Dict) and MASK in space.spaces:
        return _beside_mask(space)
    if isinstance(space, spaces.Box):
        return _box(space)
    if isinstance(space, spaces.Discrete):
        return _one_hot(space)
    if isinstance(space, spaces.MultiBinary):
        shape = tuple(int(size) for size in space.shape)
        return _alike(shape, np.dtype(bool), lambda seen: np.asarray(seen, bool))
    if isinstance(space, spaces.Dict | spaces.Tuple | spaces.MultiDiscrete):
        return _flattened(space)
    raise HostError(
        f"observations of {type(space).__name__} do not fit: Box, Discrete, MultiBinary, MultiDiscrete, and Dict and Tuple of "
        "these do; a gymnasium.ObservationWrapper can turn yours into one of them"
    )


def batched(space: spaces.Space, observation: Any) -> bool:
    """Whether an observation of ``space`` is many of them; an error if it is neither."""
    part: Any = space
    seen = observation
    if isinstance(seen, tuple) and len(seen) == 2 and isinstance(seen[1], dict) and not isinstance(space, spaces.Tuple):
        raise HostError("env.reset() gives a pair, the observation and a dict: give the observation alone")
    while isinstance(part, spaces.Dict | spaces.Tuple):  # the first part tells it of all; a mask may be left out
        names = (each for each in part if each != MASK or part is not space) if isinstance(part, spaces.Dict) else (0,)
        name: Any = next(iter(names))
        try:
            part, seen = part[name], seen[name]
        except (TypeError, KeyError, IndexError):
            raise HostError(f"this agent sees observations of {space}, not {type(observation).__name__}") from None
    try:
        shape, inner = np.shape(seen), tuple(part.shape or ())
    except ValueError:
        raise HostError(f"this agent sees observations of {space}, not {observation!r}") from None
    if shape != inner and shape[1:] != inner:
        raise HostError(f"this agent sees observations of shape {inner}, or many of them, not of shape {shape}")
    return len(shape) > len(inner)


def visible(found: NDArray[Any], dtype: np.dtype) -> NDArray[Any]:
    """What was found, in the type that the network sees; an error if that would be something else, or cannot be learned from."""
    if found.dtype.kind not in "biuf":
        raise HostError("only numbers can be learned from")
    with np.errstate(over="ignore", invalid="ignore"):
        cast = found.astype(dtype, copy=False)
    if dtype.kind == "f":
        if not np.isfinite(cast).all():  # one nan in the replay, and all weights are nan in the end
            raise HostError(
                "only finite numbers can be learned from" + (", of float32" if np.isfinite(found).all() else "")
            )
    elif cast is not found and not np.array_equal(cast, found):
        raise HostError(f"the observation_space says {dtype.name}, and these are others")
    return cast


def count_actions(space: spaces.Space) -> int:
    """How many actions there are; an error where they are not a list of choices."""
    if not isinstance(space, spaces.Discrete):
        raise HostError(
            f"actions of {type(space).__name__} do not fit: these agents choose among Discrete(n) actions; a "
            "gymnasium.ActionWrapper can offer a few of yours"
        )
    if space.n > MAX_ACTIONS:
        raise HostError(f"there are {space.n} actions, and these agents choose among {MAX_ACTIONS} at most")
    return int(space.n)


def _alike(shape: tuple[int, ...], dtype: np.dtype, see: Callable[[Any], NDArray[Any]]) -> Sight:
    """One and many are seen by the same function."""
    return Sight(shape, dtype, see, see)


def _one_hot(space: spaces.Discrete) -> Sight:
    n, start = int(space.n), int(space.start)
    codes = np.eye(n, dtype=bool)

    def see(seen: Any) -> NDArray[Any]:
        found = np.asarray(seen)
        places = found.astype(np.int64) - start if found.dtype.kind in "biu" else np.array(-1)
        if ((places < 0) | (places >= n)).any():  # a negative one would count from the end
            raise HostError(
                f"an observation of {space} is a whole number from {start} to {start + n - 1}, not {seen!r}"
            )
        return codes[places]

    return _alike((n,), np.dtype(bool), see)


def _box(space: spaces.Box) -> Sight:
    shape = tuple(int(size) for size in space.shape)
    dtype = np.dtype(space.dtype) if space.dtype in (np.bool_, np.uint8) else np.dtype(np.float32)
    units = _largest(space) if dtype.kind == "f" else ()
    if not shape:
        return Sight((1,), dtype, lambda seen: np.reshape(seen, 1), lambda seen: np.reshape(seen, (-1, 1)), units)
    if 0 in shape:
        raise HostError(f"observations of shape {shape} have nothing to see")
    if len(shape) == 2 and dtype == np.uint8:  # one grey picture
        return _picture((*shape, 1), dtype, lambda seen: np.asarray(seen)[..., None])
    if len(shape) == 3:
        if shape[0] < min(shape[1:]):  # channels, or stacked frames, come first
            turned = (*shape[1:], shape[0])
            return _picture(turned, dtype, lambda seen: np.moveaxis(np.asarray(seen), -3, -1))
        return _picture(shape, dtype, np.asarray)
    return replace(_alike(shape, dtype, np.asarray), units=units)


MOST = 1e6
"""Larger bounds are those of a number's type, and say nothing."""


def _largest(space: spaces.Box) -> tuple[float, ...]:
    """The largest size of each number by the bounds of its space, 1 where there are none."""
    bounds = np.maximum(np.abs(space.low.astype(float)), np.abs(space.high.astype(float))).reshape(-1)
    return tuple(np.where((bounds > 0.0) & (bounds <= MOST), bounds, 1.0).tolist())


def _picture(shape: tuple[int, ...], dtype: np.dtype, see: Callable[[Any], NDArray[Any]]) -> Sight:
    if min(shape[:2]) < LEAST_PICTURE:
        size = f"{shape[0]} x {shape[1]}"
        raise HostError(
            f"pictures of {size} pixels do not fit, 3 x 3 is the smallest; "
            "gymnasium.wrappers.FlattenObservation makes vectors of them"
        )
    return _alike(shape, dtype, see)


def _beside_mask(space: spaces.Dict) -> Sight:
    others = {name: part for name, part in space.spaces.items() if name != MASK}
    if not others:
        raise HostError(f"observations of {space} have nothing to see beside the mask")
    if len(others) > 1:
        return sight(spaces.Dict(others))
    ((name, part),) = others.items()
    inner = sight(part)

    def of(seen: Any) -> Any:
        if not isinstance(seen, dict) or name not in seen:
            raise HostError(f"an observation is one of {space}, not {seen!r}")
        return seen[name]

    return replace(inner, one=lambda seen: inner.one(of(seen)), many=lambda seen: inner.many(of(seen)))


def _flattened(space: spaces.Space) -> Sight:
    try:
        flat = spaces.flatten_space(space)
    except NotImplementedError:
        flat = None
    if not isinstance(flat, spaces.Box):
        raise HostError(
            f"observations of {space} cannot be flattened into one vector; Box, Discrete and MultiBinary parts can"
        )

    units = _units(space)

    def one(seen: Any) -> NDArray[Any]:
        try:
            found = np.asarray(spaces.flatten(space, seen), np.float32) if _in_range(space, seen) else None
        except (LookupError, TypeError, ValueError):
            found = None
        if found is None or found.shape != units.shape:
            raise HostError(f"an observation is one of {space}, not {seen!r}")
        return found / units

    batches: dict[int, spaces.Space] = {}

    def many(seen: Any) -> NDArray[Any]:
        n = len(next(iter(seen.values())) if isinstance(seen, dict) else seen[0] if isinstance(seen, tuple) else seen)
        batch = batches.setdefault(n, batch_space(space, n))
        try:
            rows = list(iterate(batch, seen))
        except (LookupError, TypeError, ValueError):
            raise HostError(f"these are not {n} observations of {space}: {seen!r}") from None
        return np.stack([one(each) for each in rows]) if rows else np.zeros((0, units.size), np.float32)

    largest = tuple(np.where(units > 1.0, 1.0, _largest(flat)).tolist())  # bytes are divided already
    return Sight(tuple(int(size) for size in flat.shape), np.dtype(np.float32), one, many, largest)


def _in_range(space: spaces.Space, seen: Any) -> bool:
    """Whether the choices in an observation are among those of the space: Gymnasium would flatten others into the wrong place."""
    if isinstance(space, spaces.Dict):
        return all(_in_range(part, seen[name]) for name, part in space.spaces.items())
    if isinstance(space, spaces.Tuple):
        return all(_in_range(part, each) for part, each in zip(space.spaces, seen, strict=True))
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete):
        found, n = np.asarray(seen), space.n if isinstance(space, spaces.Discrete) else space.nvec
        return found.dtype.kind in "biu" and bool(((found >= space.start) & (found < space.start + n)).all())
    return True


def _units(space: spaces.Space) -> NDArray[np.float32]:
    """What the numbers of a flattened observation are divided by: 255 where they are bytes, as the networks do with pictures."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces.values() if isinstance(space, spaces.Dict) else space.spaces
        return np.concatenate([_units(part) for part in parts])
    byte = isinstance(space, spaces.Box) and space.dtype == np.uint8
    return np.full(spaces.flatdim(space), 255.0 if byte else 1.0, np.float32)
