"""A shard of the MinAtar study, tried for a little while: what it needs, how fast it is alone, and how fast beside others."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax

from .... import envs
from ....deep import Settings as TrainingSettings
from ....deep.core.memory import Need
from ....deep.device.block import ROUND, Block, make_blocks
from ....deep.device.memory import how_many_tests, need
from ....deep.device.plan import TrainingPlan
from ...gpu import Load
from .groups import rates_of
from .study import Settings, make_agent, training_settings

TIMED = 200
"""Steps that are timed at once."""
A_STEP, BANDWIDTH = 1e-4, 1.5e12
"""Seconds that a step takes on an H200 whatever it computes, and bytes of networks a second beyond that, by the table in
docs/notes/speed.md. For the order of the shards, which need not be exact."""
FULL = 4.0
"""A shard whose steps move networks for so many times as long as they take anyway leaves little of a GPU to another such. It is
0.4 to 3.2 times without heads, at the scales of the study and of the paper. With heads it is 0.9 times for 5 runs, 2.6 for 15,
5.3 for 30, 7 for 40 and 42 for the 240 of the paper."""
SETTLING = 5 * ROUND
"""Steps that are taken before others are timed. By XLA's source, a GPU's launches of a round are made anew after other programs
were compiled, which takes two rounds, and again if arrays have moved."""
TURNS = 3
"""How often steps are timed; the best counts."""


@dataclass
class Trial:
    """The runs of a shard, which learn from a replay that is hardly filled."""

    blocks: list[Block]
    settings: TrainingSettings

    @classmethod
    def of(cls, settings: Settings, part: Mapping[str, Any], *, batched: bool) -> Trial:
        trying = replace(training_settings(settings), warmup=TIMED)
        agents = [make_agent(name) for name in part["agents"]]
        world = envs.make(f"minatar/{part['game']}")
        plan = TrainingPlan.of(world, agents, part["seeds"], rates_of(part), trying)
        tests = how_many_tests(plan, batched, settings.checkpoint_interval // settings.test_interval)
        return cls(make_blocks(plan, batched=batched, tests=tests), trying)

    @property
    def runs(self) -> int:
        return sum(len(block.runs) for block in self.blocks)

    @property
    def need(self) -> Need:
        return need(self.blocks)

    def speed(self, seconds: float) -> float:
        """Steps a second of all runs, over so many seconds. The first call compiles before the clock runs.

        Adaptations too: they follow the copies of the target, of which a trial may not have had one yet.
        """
        new = [block for block in self.blocks if block.state is None]
        for block in new:
            block.create()
            block.advance(self.settings.warmup + TIMED, _never)
            block.copy_target()
        for block in new:
            self._settle(block)
        begin, steps = time.perf_counter(), 0
        while (passed := time.perf_counter() - begin) < seconds or not steps:
            for block in self.blocks:
                block.advance(block.step + TIMED, _never)
            steps += TIMED
        return self.runs * steps / passed

    def step_seconds(self, block: Block) -> float:
        """What a step of all runs of a block takes, with its share of target copies, adaptations, tests and bias estimates."""
        block.create()
        block.advance(self.settings.warmup + TIMED, _never)
        block.copy_target()
        self._measuring(block)
        self._settle(block)
        turns = [_timed(lambda: block.advance(block.step + TIMED, _never), block) for _ in range(TURNS)]
        learning = min(turns) / TIMED
        copying = _timed(block.copy_target, block) / self.settings.target_period
        return learning + copying + self._measuring(block) / (block.tests * self.settings.test_interval)

    def _settle(self, block: Block) -> None:
        """Take the steps after which others can be timed."""
        block.advance(block.step + SETTLING, _never)

    def _measuring(self, block: Block) -> float:
        """Seconds that as many tests take as are run at once."""
        for _ in range(block.tests):
            block.look()
        return _timed(block.measure, block)


@dataclass(frozen=True)
class Trials:
    """The shards of these settings, tried on a GPU."""

    settings: Settings

    def load(self, part: Mapping[str, Any]) -> Load:
        """What a shard takes of it."""
        needed = Trial.of(self.settings, part, batched=True).need
        moving = needed.networks / BANDWIDTH
        return Load(needed.total, self.settings.steps * (A_STEP + moving), full=moving > FULL * A_STEP)

    def trial(self, part: Mapping[str, Any]) -> Callable[[float], float]:
        """A shard, compiled: its steps a second, over so many seconds."""
        trial = Trial.of(self.settings, part, batched=True)
        trial.speed(0.0)
        return trial.speed


def _timed(work: Any, block: Block) -> float:
    begin = time.perf_counter()
    work()
    jax.tree.map(lambda leaf: leaf.block_until_ready(), block.state)
    return time.perf_counter() - begin


def _never() -> bool:
    return False
