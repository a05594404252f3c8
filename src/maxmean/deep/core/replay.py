"""The replay: transitions as rows of words, with the environment states that roll-outs start from.

An observation is a function of the state, and a state of a game is a few dozen bytes. So a row holds the two states and no
observation, and the replay of a hundred thousand transitions takes a few megabytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

Array = jax.Array


class Transition(NamedTuple):
    """One step of a run, or several: then ``reward`` is their discounted sum, and the next state is the last one's."""

    state: Any
    action: Array
    """uint8."""
    reward: Array
    """float32."""
    terminated: Array
    """bool: nothing follows, the next state has no value. A truncated episode is not terminated."""
    next_state: Any
    mask: Array
    """uint32: bit m says whether member m learns from this transition."""
    steps: Any = ()
    """uint8: how many steps; nothing where it always is one."""
    next_legal: Any = ()
    """bool [actions]: which actions are legal in the next state; nothing where all always are."""


@dataclass(frozen=True)
class RowLayout:
    """How a pytree of small arrays becomes a row of uint32 words, bit for bit, and back."""

    structure: Any
    leaves: tuple[jax.ShapeDtypeStruct, ...]

    @classmethod
    def of(cls, example: Any) -> RowLayout:
        """The layout of everything that has the shapes and types of ``example`` (arrays or ShapeDtypeStructs)."""
        leaves, structure = jax.tree.flatten(example)
        shapes = (jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves)  # type: ignore[no-untyped-call]
        return cls(structure, tuple(shapes))

    @classmethod
    def of_transitions(cls, state: Any, n_step: int = 1, masked: int = 0) -> RowLayout:
        """The layout of transitions of up to ``n_step`` steps, between states that have the shapes and types of ``state``.

        ``masked`` is the number of actions where some may be illegal, and 0 where all are legal everywhere.
        """
        action, reward, terminated, mask = map(form, (jnp.uint8, jnp.float32, jnp.bool_, jnp.uint32))
        steps = form(jnp.uint8) if n_step > 1 else ()
        next_legal = form(jnp.bool_, (masked,)) if masked else ()
        return cls.of(Transition(state, action, reward, terminated, state, mask, steps, next_legal))

    @property
    def words(self) -> int:
        """Words in a row."""
        return -(-sum(_bytes(leaf) for leaf in self.leaves) // 4)

    def pack(self, tree: Any) -> Array:
        """uint32 [words]. Other shapes or types than the layout's are a TypeError: they would be read as something else."""
        leaves = [jnp.asarray(leaf) for leaf in self.structure.flatten_up_to(tree)]
        for leaf, wanted in zip(leaves, self.leaves, strict=True):
            if (leaf.shape, leaf.dtype) != (wanted.shape, wanted.dtype):
                raise TypeError(f"a row has {_plain(wanted)} where {_plain(leaf)} was given")
        parts = [_to_bytes(leaf) for leaf in leaves]
        padding = 4 * self.words - sum(part.size for part in parts)
        return _joined(jnp.concatenate([*parts, jnp.zeros(padding, jnp.uint8)]).reshape(-1, 4))

    def unpack(self, row: Array) -> Any:
        """The pytree that was packed into this row."""
        row = jax.lax.bitcast_convert_type(row, jnp.uint8).reshape(-1)
        leaves, begin = [], 0
        for leaf in self.leaves:
            leaves.append(_from_bytes(row[begin : begin + _bytes(leaf)], leaf))
            begin += _bytes(leaf)
        return self.structure.unflatten(leaves)


def form(dtype: Any, shape: tuple[int, ...] = ()) -> Any:
    """What stands for an array of this type and shape in a layout's example."""
    return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype))  # type: ignore[no-untyped-call]


def empty(capacity: int, layout: RowLayout) -> Array:
    """A replay without transitions: uint32 [capacity, words]."""
    return jnp.zeros((capacity, layout.words), jnp.uint32)


def write(replay: Array, step: Array, row: Array) -> Array:
    """The replay with a row at the place of this step; the oldest one has to go."""
    place = (step % replay.shape[0]).astype(jnp.int32)
    return jax.lax.dynamic_update_slice(replay, row[None], (place, jnp.int32(0)))


def places(words: Array, n: Array) -> Array:
    """Uniform integers below n, from random words: the upper half of word * n, without 64-bit numbers."""
    high, low = words >> 16, words & 0xFFFF
    n = n.astype(jnp.uint32)
    n_high, n_low = n >> 16, n & 0xFFFF
    middle = high * n_low + ((low * n_low) >> 16)
    carry = ((middle & 0xFFFF) + low * n_high) >> 16
    return (high * n_high + (middle >> 16) + carry).astype(jnp.int32)


def _bytes(leaf: jax.ShapeDtypeStruct) -> int:
    return int(np.prod(leaf.shape)) * leaf.dtype.itemsize


def _plain(leaf: Any) -> str:
    return f"{leaf.dtype}{list(leaf.shape)}"


def _to_bytes(leaf: Array) -> Array:
    if leaf.dtype == jnp.bool_:
        leaf = leaf.astype(jnp.uint8)
    return _parted(jax.lax.bitcast_convert_type(leaf, f"uint{8 * leaf.dtype.itemsize}")).reshape(-1)


def _from_bytes(row: Array, leaf: jax.ShapeDtypeStruct) -> Array:
    if leaf.dtype == jnp.bool_:
        return row.reshape(leaf.shape) != 0
    return jax.lax.bitcast_convert_type(_joined(row.reshape(*leaf.shape, leaf.dtype.itemsize)), leaf.dtype)


# By shifts, which a GPU computes where they are used. ``bitcast_convert_type`` between leaves and bytes takes a kernel for every
# leaf, and a sum in place of ``or`` takes more of them too. Only for whole rows of words is a bitcast free.


def _parted(words: Array) -> Array:
    """The bytes of unsigned words, the lowest first, along a new last axis."""
    return (words[..., None] >> _shifts(words.dtype)).astype(jnp.uint8)


def _joined(parts: Array) -> Array:
    """The unsigned words with these bytes along the last axis."""
    word = np.dtype(f"uint{8 * parts.shape[-1]}")
    shifted = parts.astype(word) << _shifts(word)
    return reduce(or_, (shifted[..., i] for i in range(word.itemsize)))


def _shifts(word: Any) -> NDArray[Any]:
    """How far each byte of a word stands from its lowest one, in bits."""
    return np.arange(0, 8 * word.itemsize, 8).astype(word)
