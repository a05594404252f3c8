"""Training on one GPU, its kernels launched step by step and a whole round of steps at once.

    python benchmarks/launching.py [AGENT:RUNS:GAME ...] [--rows N]

The two take turns in one process, and begin with the same runs: the last column says whether their states are still the same,
bit for bit, after as many steps. ``--rows`` gives the tiles of the fused update another height.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest import mock

CASES = (
    "te-bdqn:1:space_invaders",
    "te-bdqn:5:space_invaders",
    "ke-bdqn:10:breakout",
    "ke-bdqn:40:breakout",
    "dqn:10:breakout",
    "maxmin-dqn:5:space_invaders",
)
STEPS, SECONDS, TURNS = 1_000, 1.0, 3


class Training:
    """Runs whose rounds are compiled with these options."""

    def __init__(self, agent: str, runs: int, game: str, options: Mapping[str, str | bool]) -> None:
        from maxmean import deep, envs
        from maxmean.deep.device import block
        from maxmean.deep.device.plan import TrainingPlan

        plan = TrainingPlan.of(envs.make(f"minatar/{game}"), deep.AGENTS[agent](), runs, None, deep.Settings())
        (self.block,) = block.make_blocks(plan, batched=True)
        # Equal trainings of a process share what is compiled, which then has the options of the first.
        self.block.compiled = replace(self.block.compiled)
        self.block.create()
        with mock.patch.object(block, "launching", return_value=options) as asked:
            self.advance(self.block.settings.warmup)
            begin = time.perf_counter()
            self.advance(STEPS)
            self.compiling = time.perf_counter() - begin
        if not asked.called:
            raise RuntimeError("the rounds were compiled before, with other options")

    def advance(self, steps: int) -> None:
        self.block.advance(self.block.step + steps, lambda: False)

    def turn(self, steps: int) -> float:
        """Microseconds a step."""
        begin = time.perf_counter()
        self.advance(steps)
        return (time.perf_counter() - begin) / steps * 1e6

    @property
    def state(self) -> Any:
        return self.block.state


def same(first: Training, second: Training) -> bool:
    import jax
    import numpy as np

    leaves = zip(jax.tree.leaves(first.state), jax.tree.leaves(second.state), strict=True)
    return all(np.array_equal(one, other, equal_nan=one.dtype.kind == "f") for one, other in leaves)


def measure(case: str) -> str:
    """A line of the table: the best of the turns."""
    from maxmean.deep.device.launching import launching

    agent, runs, game = case.split(":")
    pair = [Training(agent, int(runs), game, options) for options in ({}, launching())]
    steps = max(1, round(SECONDS * 1e6 / pair[0].turn(STEPS) / STEPS)) * STEPS
    pair[1].turn(STEPS)
    turns = [[each.turn(steps) for each in pair] for _ in range(TURNS)]
    before, now = (min(turn[i] for turn in turns) for i in (0, 1))
    compiling = " and ".join(f"{each.compiling:.0f}" for each in pair)
    told = "yes" if same(*pair) else "no"
    return f"| {agent} | {runs} | {game} | {before:.1f} | {now:.1f} | {before / now:.2f} | {compiling} | {told} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", default=CASES, metavar="AGENT:RUNS:GAME")
    parser.add_argument("--rows", type=int, help="rows of a tile of the fused update")
    asked = parser.parse_args()
    if asked.rows:
        from maxmean.deep.core import fused

        vars(fused)["ROWS"] = asked.rows
    print("| agent | runs | game | us a step | whole rounds | ratio | s to compile | the same |")
    print("|---|--:|---|--:|--:|--:|--:|---|")
    for case in asked.cases:
        print(measure(case), flush=True)


if __name__ == "__main__":
    main()
