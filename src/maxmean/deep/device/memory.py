"""How much memory the blocks of a training take together."""

from __future__ import annotations

from collections.abc import Sequence

import jax

from ..core.memory import COPIES, Need, available, bytes_seen, fits, need_of
from .block import Block, make_blocks
from .plan import TrainingPlan

KEPT_OF_A_STEP = 4 * 6
"""Bytes that the bias estimation takes for a step of an episode: six float32 numbers, with what sorting them needs."""

MEASURED_AT_ONCE = 128
"""Tests times runs: with more of them a GPU waits for their weights rather than for the next kernel, and nothing is gained."""
MOST_TESTS = 10
"""More would leave whoever watches a training without news for too long."""
SHARE = 0.1
"""Largest share of a GPU's memory that running several tests at once may take."""


def how_many_tests(plan: TrainingPlan, batched: bool | None, between: int) -> int:
    """How many tests of a training to run at once: at most ``between``, which is how many lie between two checkpoints.

    On a CPU one at a time: its cores gain nothing from more.
    """
    if jax.default_backend() == "cpu" or batched is False:
        return 1
    most = min(MOST_TESTS, MEASURED_AT_ONCE // max(map(len, plan.groups())))
    there, alone = available(), need(make_blocks(plan, batched=True)).total
    for tests in range(min(most, between), 1, -1):
        needed = need(make_blocks(plan, batched=True, tests=tests))
        if there is None or (needed.total - alone <= SHARE * there and fits(needed, there)):
            return tests
    return 1


def need(blocks: Sequence[Block]) -> Need:
    """What the blocks need together."""
    total, waiting = Need(0, 0, 0, 0), 0
    for block in blocks:
        program, runs = block.compiled.program, len(block.runs)
        family = program.family
        horizon = 0 if family.adaptation is None else family.adaptation.horizon
        played = program.measuring.test_episodes + family.members * horizon
        one = runs * (
            program.lanes * (block.compiled.limit + 1) * KEPT_OF_A_STEP + played * bytes_seen(program.network)
        )
        each = need_of(program.network, program.settings, program.learning.layout)
        # A snapshot that waits is held twice when its turn comes: by itself, and stacked with the others.
        snapshots = block.tests * runs * each.networks // COPIES if block.tests > 1 else 0
        one, waiting = block.tests * one + snapshots, waiting + snapshots
        total = Need(
            total.replay + runs * each.replay,
            total.networks + runs * each.networks,
            max(total.rollouts, one) if block.compiled.batched else total.rollouts + one,
            max(total.updates, runs * each.updates) if block.compiled.batched else total.updates + each.updates,
        )
    return total._replace(rollouts=total.rollouts + waiting)
