"""What the MinAtar study will take on the device at hand: memory, and hours from a short calibration."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .study import Settings

TIMED = 200
"""Steps that a calibration times."""


Kind = tuple[tuple[str, ...], int, int]
"""Agents, a number of seeds and one of steps: what decides how long a shard takes."""


@dataclass(frozen=True)
class Cost:
    """What a shard of one group of agents takes."""

    agents: tuple[str, ...]
    runs: int
    memory: str
    rate: float
    """Run-steps a second."""
    seconds: float


def forecast(settings: Settings, say: Callable[[str], None]) -> str:
    """The plan in words. One shard of each group is tried for some hundred steps, on the first game."""
    import jax

    from ...engines import cores

    parts = settings.parts
    kinds = Counter(_kind(*part) for part in parts)
    batched = jax.default_backend() != "cpu"
    costs: dict[Kind, Cost] = {}
    runs: Counter[int] = Counter()
    for (agents, seeds, steps), count in kinds.items():
        say(f"trying {', '.join(agents)} with {seeds} seed{'s' * (seeds > 1)} for {TIMED} steps ...")
        costs[agents, seeds, steps] = calibrate(agents, seeds, replace(settings, steps=steps), batched=batched)
        runs[steps] += count * len(agents) * seeds
    several = " and ".join(f"{count:,} runs of {steps:,} steps" for steps, count in runs.items())
    lines = [
        f"minatar: {len(parts)} shards, {several}, {sum(steps * count for steps, count in runs.items()):,} run-steps "
        f"on {jax.devices()[0].device_kind}",
        "",
        f"{'shards':>6} {'runs each':>9} {'run-steps each':>14} {'run-steps/s':>11} {'hours each':>10}  memory each, agents",
    ]
    for kind, count in kinds.items():
        cost, (_, _, steps) = costs[kind], kind
        lines.append(
            f"{count:>6} {cost.runs:>9} {cost.runs * steps:>14,} {cost.rate:>11,.0f} {cost.seconds / 3600:>10.2f}  "
            f"{cost.memory}, {' '.join(cost.agents)}"
        )
    hours = [costs[_kind(*part)].seconds / 3600 for part in parts]
    device = "GPU" if batched else "machine"
    side_by_side = 1 if batched or settings.together else cores()
    if settings.added:
        lines += ["", "Of that, the groups besides every agent on every game:"]
    for group in settings.added:
        steps = group.steps_among(settings.steps)
        own = [
            costs[_kind(part, steps)].seconds / 3600 for part in group.parts(settings.seeds, together=settings.together)
        ]
        lines.append(f"  {_time(makespan(own, side_by_side))} for {group}")
    lines += [
        "",
        f"{_time(makespan(hours, side_by_side))} on one {device} like this; "
        "split with Ray over several, longest shards first:",
    ]
    lines += [f"  {n:>2}: {_time(makespan(hours, n * side_by_side))}" for n in (2, 4, 8) if n <= len(parts)]
    lines += [
        "Tests and bias estimates are timed on untrained agents, whose episodes are short: trained ones take longer.",
        f"Other games than {settings.games[0]} are assumed to take the same; Seaquest takes an eighth more.",
        "On a cluster: the same command with --engine ray --address auto instead of --dry-run.",
    ]
    return "\n".join(lines)


def calibrate(agents: Sequence[str], seeds: int, settings: Settings, *, batched: bool) -> Cost:
    """Train one shard of these agents a little, and measure it once; on a CPU a single run of it, since each has its own core."""
    from .... import envs
    from ....deep.core.memory import size
    from ....deep.device.block import make_blocks
    from ....deep.device.memory import need
    from ....deep.device.plan import TrainingPlan
    from ...engines import cores
    from .study import make_agent, training_settings

    trying = replace(training_settings(settings), warmup=200)
    world = envs.make(f"minatar/{settings.games[0]}")
    plan = TrainingPlan.of(world, [make_agent(name) for name in agents], seeds, settings.learning_rates[0], trying)
    blocks = make_blocks(plan, batched=batched)
    runs = sum(len(block.runs) for block in blocks)
    seconds = measuring = 0.0
    tried = blocks if batched else blocks[-1:]
    for block in tried:
        block.create()
        block.advance(trying.warmup + TIMED, lambda: False)
        block.measure()
        begin = time.perf_counter()
        block.advance(block.step + TIMED, lambda: False)
        middle = time.perf_counter()
        block.measure()
        seconds += (middle - begin) / TIMED
        measuring += (time.perf_counter() - middle) / settings.test_interval
    step = seconds + measuring
    if not batched:
        step *= len(blocks) / min(cores(), len(blocks))
    return Cost(tuple(agents), runs, size(need(blocks).total), runs / step, step * settings.steps)


def _kind(part: Mapping[str, Any], steps: int) -> Kind:
    return tuple(part["agents"]), len(part["seeds"]), steps


def _time(hours: float) -> str:
    return f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.1f} minutes"


def makespan(hours: Sequence[float], machines: int) -> float:
    """When the last of them is done, if each takes the longest shard that is left.

    >>> makespan([3.0, 2.0, 2.0], 2)
    4.0
    """
    ends = [0.0] * machines
    for shard in sorted(hours, reverse=True):
        heapq.heapreplace(ends, ends[0] + shard)
    return max(ends)
