"""How much memory a training takes, said before it begins."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from .agents import AgentError
from .block import Block
from .program import Program


class Need(NamedTuple):
    """Bytes of one training."""

    replay: int
    networks: int
    """Weights, target weights, gradients and the optimiser's two moments."""
    rollouts: int
    """What the bias estimation keeps of its longest possible episodes; blocks take turns on a GPU."""

    @property
    def total(self) -> int:
        return sum(self)

    def __str__(self) -> str:
        parts = {"replay": self.replay, "networks": self.networks, "roll-outs": self.rollouts}
        return f"{size(self.total)} ({', '.join(f'{name} {size(n)}' for name, n in parts.items() if n)})"


def need(blocks: Sequence[Block]) -> Need:
    """What the blocks need together."""
    replay = networks = 0
    rollouts = 0
    for block in blocks:
        program, runs = block.compiled.program, len(block.runs)
        settings, family = program.settings, program.family
        lanes = family.members * settings.bias_episodes_per_head if family.bootstrapped else settings.bias_episodes
        replay += runs * need_of(program).replay
        networks += runs * need_of(program).networks
        one = runs * lanes * (block.compiled.limit + 1) * 4 * 6
        rollouts = max(rollouts, one) if block.compiled.batched else rollouts + one
    return Need(replay, networks, rollouts)


def need_of(program: Program) -> Need:
    """What one run needs, roll-outs aside."""
    weights = jax.eval_shape(program.network.create, jax.random.key(0))
    parameters = sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(weights))
    return Need(program.settings.replay_capacity * program.layout.words * 4, parameters * 4 * 5, 0)


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


def refuse_too_much(needed: Need) -> None:
    """Say no to what cannot fit, before anything is computed."""
    there = available()
    if there is not None and needed.total > 0.95 * there:
        raise AgentError(
            f"this training needs {needed}, but there are {size(there)}; use fewer seeds or a smaller replay_capacity"
        )


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
