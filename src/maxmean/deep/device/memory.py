"""How much memory the blocks of a training take together."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.memory import Need, bytes_seen, need_of
from .block import Block

KEPT_OF_A_STEP = 4 * 6
"""Bytes that the bias estimation takes for a step of an episode: six float32 numbers, with what sorting them needs."""


def need(blocks: Sequence[Block]) -> Need:
    """What the blocks need together."""
    total = Need(0, 0, 0, 0)
    for block in blocks:
        program, runs = block.compiled.program, len(block.runs)
        family, measuring = program.family, program.measuring
        lanes = family.heads * measuring.episodes(bootstrapped=family.bootstrapped)
        horizon = 0 if family.adaptation is None else family.adaptation.horizon
        played = measuring.test_episodes + family.members * horizon
        one = runs * (lanes * (block.compiled.limit + 1) * KEPT_OF_A_STEP + played * bytes_seen(program.network))
        each = need_of(program.network, program.settings, program.learning.layout)
        total = Need(
            total.replay + runs * each.replay,
            total.networks + runs * each.networks,
            max(total.rollouts, one) if block.compiled.batched else total.rollouts + one,
            max(total.updates, runs * each.updates) if block.compiled.batched else total.updates + each.updates,
        )
    return total
