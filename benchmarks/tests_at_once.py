"""Tests and bias estimates on one GPU: seconds per test, run one at a time and ten at once.

    python benchmarks/tests_at_once.py [AGENT:RUNS ...]

On Freeway, where every episode lasts 2,500 steps whatever an agent has learned, so that none needs to be trained.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

CASES = ("te-bdqn:5", "te-bdqn:10", "te-bdqn:40", "dqn:10")
TESTS = 10


def seconds(agent_name: str, runs: int, tests: int, limit: int = 10_000) -> float:
    """Seconds per test, ``tests`` at once: the better of two turns, after one that compiles."""
    from maxmean import deep, envs
    from maxmean.deep.device.block import make_blocks
    from maxmean.deep.device.plan import TrainingPlan

    settings = replace(deep.Settings(), warmup=200)
    plan = TrainingPlan.of(envs.make("minatar/freeway"), deep.AGENTS[agent_name](), runs, None, settings)
    (block,) = make_blocks(plan, batched=True, limit=limit, tests=tests)
    block.create()
    block.advance(block.settings.warmup, lambda: False)
    taken = []
    for _ in range(3):
        for _ in range(tests):
            block.look()
        begin = time.perf_counter()
        block.measure()
        taken.append((time.perf_counter() - begin) / tests)
    return min(taken[1:])


def main(cases: list[str]) -> None:
    print(f"| agent | runs | s a test | s a test, {TESTS} at once | ratio |")
    print("|---|--:|--:|--:|--:|")
    for case in cases:
        name, runs = case.split(":")
        alone, together = (seconds(name, int(runs), tests) for tests in (1, TESTS))
        print(f"| {name} | {runs} | {alone:.3f} | {together:.3f} | {alone / together:.1f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(CASES))
