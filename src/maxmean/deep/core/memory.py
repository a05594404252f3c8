"""How much memory a training takes, said before it begins."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

import jax

from ..checks import AgentError
from ..networks import Ensemble
from ..settings import LearningSettings
from .frames import FrameStore
from .replay import RowLayout

FULL = 0.95
"""Share of the device's memory that a training may need."""
COPIES = 5
"""Arrays of the size of the weights: they, the target's, the gradient and the optimiser's two moments."""


class TooLargeError(AgentError):
    """A training for which the device has not enough memory."""


class Need(NamedTuple):
    """Bytes of one training."""

    replay: int
    networks: int
    """Weights, target weights, gradients and the optimiser's two moments."""
    rollouts: int
    """What the bias estimation keeps of its longest possible episodes, and what tests and adaptations play at once; blocks
    take turns on a GPU. And the snapshots of all blocks that wait for their tests.
    """
    updates: int
    """What an update looks at: at least its minibatch, and what the heads make of it."""

    @property
    def total(self) -> int:
        return sum(self)

    def __str__(self) -> str:
        parts = zip(("replay", "networks", "roll-outs", "updates"), self, strict=True)
        return f"{size(self.total)} ({', '.join(f'{name} {size(n)}' for name, n in parts if n)})"

    @property
    def cure(self) -> str:
        """What would make it smaller."""
        cures = (
            "a smaller replay_capacity",
            "a smaller hidden",
            "fewer test_episodes and bias_episodes",
            "a smaller batch_size",
        )
        return max(zip(self, cures, strict=True))[1]


@lru_cache(maxsize=32)
def need_of(network: Ensemble, settings: LearningSettings, layout: RowLayout, frames: FrameStore | None = None) -> Need:
    """What one run needs, roll-outs aside."""
    weights = jax.eval_shape(network.create, jax.random.key(0))
    parameters = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(weights))
    row, heads = layout.words * 4, network.members * (network.hidden + network.n_actions) * 4
    updates = settings.batch_size * (row + 2 * bytes_seen(network) + heads)
    stored = settings.replay_capacity * row + (0 if frames is None else frames.bytes)
    return Need(stored, parameters * 4 * COPIES, 0, updates)


def bytes_seen(network: Ensemble) -> int:
    """Bytes of an observation, as the network takes it."""
    return 4 * math.prod(network.shape)


def available() -> int | None:
    """Bytes that the device has for us, where that can be known."""
    device = jax.devices()[0]
    if device.platform == "cpu":
        try:
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, ValueError, OSError):
            return None
    stats = device.memory_stats() or {}
    return stats.get("bytes_limit")


def fits(needed: Need, there: int | None) -> bool:
    """Whether so many bytes are enough, where they are known."""
    return there is None or needed.total <= FULL * there


def refuse_too_much(needed: Need) -> None:
    """Say no to what cannot fit, before anything is computed."""
    there = available()
    if there is not None and not fits(needed, there):
        raise TooLargeError(
            f"this training needs {needed}, but there are {size(there)}; use fewer seeds or {needed.cure}"
        )


@contextmanager
def fitting(needed: Need) -> Iterator[None]:
    """Where the device finds out only now that it has no room for it."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        said = str(error)
        if isinstance(error, jax.errors.JaxRuntimeError) and not (
            "RESOURCE_EXHAUSTED" in said or "Out of memory" in said
        ):
            raise
        raise TooLargeError(
            f"the device has not enough memory left for this training, which needs {needed} or more; use fewer seeds or "
            f"{needed.cure}"
        ) from None


def size(n: int) -> str:
    """Bytes in words.

    >>> size(1536), size(3 * 2**30)
    ('1.5 KiB', '3.0 GiB')
    """
    value, unit = float(n), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.1f} {unit}"
