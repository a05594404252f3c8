"""How much memory the blocks of a training take together."""

from __future__ import annotations

from collections.abc import Sequence

import jax

from ..core.memory import COPIES, Need, available, bytes_seen, need_of
from .block import Block, make_blocks
from .plan import TrainingPlan

KEPT_OF_A_STEP = 4 * 6
"""Bytes that the bias estimation takes for a step of an episode: six float32 numbers, with what sorting them needs."""

MEASURED_AT_ONCE = 128
"""Tests times runs: with more of them a GPU waits for their weights rather than for the next kernel, and nothing is gained."""
MOST_TESTS = 10
"""Who watches a training wants to hear of it from time to time."""
SHARE = 0.25
"""Of a GPU's memory, which tests that wait for each other may take."""


def made_at_once(plan: TrainingPlan, batched: bool | None, between: int) -> int:
    """How many tests of a training had better be made at once, if there are so many between two checkpoints.

    On a CPU that is one: its cores gain nothing from more.
    """
    if jax.default_backend() == "cpu" or batched is False:
        return 1
    most = min(MOST_TESTS, MEASURED_AT_ONCE // max(map(len, plan.groups())))
    there = available()
    for tests in range(min(most, between), 1, -1):
        if there is None or need(make_blocks(plan, batched=True, tests=tests)).rollouts <= SHARE * there:
            return tests
    return 1


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
        # What waits has its weights twice: as it was kept, and beside the others.
        one = block.tests * (one + (2 * runs * each.networks // COPIES if block.tests > 1 else 0))
        total = Need(
            total.replay + runs * each.replay,
            total.networks + runs * each.networks,
            max(total.rollouts, one) if block.compiled.batched else total.rollouts + one,
            max(total.updates, runs * each.updates) if block.compiled.batched else total.updates + each.updates,
        )
    return total
