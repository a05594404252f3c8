"""Stacked frames, each stored once: an observation of the last k frames shares k - 1 of them with the one before it.

A state is stored as the place of its newest frame. Each frame knows the place of the one before it, and one that stands for all
the padding of an episode's first stack is its own; so k - 1 links lead from the newest frame to the oldest, across the frames of
other environments that lie between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from . import replay
from .replay import RowLayout, Transition

Array = jax.Array

SPARE = 32
"""There is room for one frame more in so many transitions: the first of each episode is no transition's next one."""
LEAST_SPARE = 10_000
"""But for so many at least, or for all that there could be."""


class FrameMemory(NamedTuple):
    """A replay whose observations are stacks of frames."""

    rows: Array
    """uint32 [capacity, words]: the transitions, with the places of their states' newest frames."""
    frames: Array
    """uint32 [places, words]."""
    links: Array
    """int32 [places]: the place of the frame before."""
    first: Array
    """int32: the row of the oldest transition all of whose frames are still there."""
    held: Array
    """int32: how many transitions there are from that one on."""


class News(NamedTuple):
    """What the host says of the frames of one environment after a step."""

    reached: Array
    """The frames of the observation that the step led to, [k, *frame]."""
    places: Array
    """int32 [2k]: where the frames of ``reached`` and of what is seen next belong; past the end where they are known already."""
    links: Array
    """int32 [2k]: the places of the frames before them."""
    first: Array
    held: Array
    """The memory's window after this step; the same from every environment."""


@dataclass(frozen=True)
class Stack:
    """Where the frames of an observation are: one after the other along an axis, the oldest first."""

    shape: tuple[int, ...]
    """Of the observation."""
    count: int
    axis: int

    @property
    def frame(self) -> tuple[int, ...]:
        """The shape of a frame.

        >>> Stack((84, 84, 4), 4, 2).frame, Stack((84, 84, 12), 4, 2).frame, Stack((2, 5), 2, 0).frame
        ((84, 84, 1), (84, 84, 3), (1, 5))
        """
        sizes = list(self.shape)
        sizes[self.axis] //= self.count
        return tuple(sizes)

    def split(self, seen: Any) -> Any:
        """The frames [n, count, *frame] of observations [n, *shape]; of NumPy or JAX, as they are."""
        before, after = self.frame[: self.axis], self.frame[self.axis :]
        apart = seen.reshape(seen.shape[0], *before, self.count, *after)
        axes = list(range(apart.ndim))
        axes.insert(1, axes.pop(1 + self.axis))
        return apart.transpose(axes)

    def join(self, frames: Any) -> Any:
        """The observations of their frames: the inverse of :meth:`split`."""
        axes = list(range(frames.ndim))
        axes.insert(1 + self.axis, axes.pop(1))
        return frames.transpose(axes).reshape(frames.shape[0], *self.shape)


@dataclass(frozen=True)
class FrameStore:
    """How frames are written and read."""

    stack: Stack
    dtype: str
    capacity: int
    """Transitions."""
    places: int
    """Frames."""

    @classmethod
    def of(cls, stack: Stack, dtype: str, capacity: int, n: int, n_step: int) -> FrameStore:
        """With room for the transitions of ``n`` environments side by side.

        It is enough for ``capacity`` transitions of episodes of :data:`SPARE` steps on average, however short they are where the
        replay is small; and for what the environments are doing now in any case, even if no two stacks share a frame.
        """
        spare = max(capacity // SPARE, min(stack.count * capacity, LEAST_SPARE))
        now = 2 * stack.count * n * (stack.count + n_step)
        return cls(stack, dtype, capacity, capacity + spare + now)

    @cached_property
    def layout(self) -> RowLayout:
        """Of a frame."""
        return RowLayout.of(replay.form(self.dtype, self.stack.frame))

    @property
    def bytes(self) -> int:
        """What frames and links take."""
        return self.places * 4 * (self.layout.words + 1)

    def empty(self, layout: RowLayout) -> FrameMemory:
        """A memory without transitions, whose rows have that layout."""
        none = jnp.int32(0)
        links = jnp.zeros(self.places, jnp.int32)
        return FrameMemory(
            replay.empty(self.capacity, layout), replay.empty(self.places, self.layout), links, none, none
        )

    def write(self, memory: FrameMemory, news: News, seen: Array) -> FrameMemory:
        """The memory with the new frames of all environments, which see these frames [n, k, *frame] next."""
        frames = jnp.concatenate([news.reached, seen], axis=1)
        rows = jax.vmap(self.layout.pack)(frames.reshape(-1, *self.stack.frame))
        where = news.places.reshape(-1)
        return memory._replace(
            frames=memory.frames.at[where].set(rows, mode="drop"),
            links=memory.links.at[where].set(news.links.reshape(-1), mode="drop"),
            first=news.first[0],
            held=news.held[0],
        )

    def draw(self, memory: FrameMemory, filled: Array, words: Array) -> Array:
        """A row for each random word, uniformly from those whose frames are there, with replacement.

        They are the first ``filled`` ones as a rule, and then the words choose the rows that they would without frames.
        """
        drawn = replay.places(words, jnp.minimum(filled, memory.held))
        return jnp.where(memory.held < filled, (memory.first + drawn) % self.capacity, drawn)

    def read(self, memory: FrameMemory, rows: Array, layout: RowLayout) -> Transition:
        """The transitions in these rows, which have that layout."""
        found: Transition = jax.vmap(layout.unpack)(memory.rows[rows])
        return found._replace(state=self.seen(memory, found.state), next_state=self.seen(memory, found.next_state))

    def seen(self, memory: FrameMemory, newest: Array) -> Array:
        """The observations [n, *shape] with these newest frames."""
        places = [newest]
        for _ in range(self.stack.count - 1):
            places.insert(0, memory.links[places[0]])
        chosen = jnp.stack(places, axis=1)
        frames = jax.vmap(self.layout.unpack)(memory.frames[chosen.reshape(-1)])
        return self.stack.join(frames.reshape(*chosen.shape, *self.stack.frame))
