"""What the MinAtar study will take on the device at hand: memory, and hours from a short calibration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from ...calibration import Calibration, calibrate
from ...children import Child, LostError, stop
from ...errors import LabError
from ...gpu import Sharing, has_gpu, shared_gpu
from ...tasks import Task
from .groups import SEEDS_APART, rates_of
from .hours import makespan, on_game, side_by_side

if TYPE_CHECKING:
    from .study import Settings

Kind = tuple[tuple[str, ...], int, int]
"""Agents, a number of runs of each and one of steps: what decides how long a shard takes on a game."""
Parts = Sequence[tuple[Mapping[str, Any], int]]
"""Parts of the study that are left to do, and their numbers of steps."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Cost:
    """What a shard of one group of agents takes."""

    agents: tuple[str, ...]
    runs: int
    memory: str
    rate: float
    """Run-steps a second."""
    seconds: float
    """At this rate, on the game that was tried."""


def forecast(settings: Settings, tasks: Sequence[Task], say: Say, workers: int | None = None) -> str:
    """What these tasks take, in words. One shard of each group is tried for some hundred steps, on the first game.

    On a GPU that is done by other processes, as the shards themselves are; then several are tried side by side.
    """
    parts = [(_own(task.shard.part), task.settings.steps) for task in tasks]
    if has_gpu():
        with shared_gpu(tasks, say) as sharing:
            if sharing.gpu is not None:
                _refuse_too_large(tasks, sharing)
                costs = _costs_on_gpu(settings, parts, sharing, say)
                order = sharing.mixed(tasks)
                together = calibrate(order, sharing, say, workers)
                full, tried = ([sharing.full(task) for task in some] for some in (tasks, order))
                return _in_words(settings, parts, costs, sharing.gpu.name, together, full, tried)
    import jax

    batched = jax.default_backend() != "cpu"
    costs = dict(_costs(settings, parts, say, batched=batched))
    return _in_words(settings, parts, costs, jax.devices()[0].device_kind, Calibration(1) if batched else None)


def _refuse_too_large(tasks: Sequence[Task], sharing: Sharing) -> None:
    """Say no before a trial of what the GPU has no room for."""
    from ....deep.core.memory import size
    from .study import SMALLER

    for task in tasks:
        if not sharing.fits([task]) and sharing.gpu is not None and sharing.gpu.memory is not None:
            needed, there = size(sharing.loads[task.shard.key].memory), size(sharing.gpu.memory)
            cure = f"; {SMALLER}" if len(rates_of(task.shard.part)) > 1 else ""
            raise LabError(f"{task.experiment.brief(task.shard.part)} needs {needed}, but there are {there}{cure}")


def _in_words(
    settings: Settings,
    parts: Parts,
    costs: Mapping[Kind, Cost],
    device: str,
    together: Calibration | None,
    full: Sequence[bool] = (),
    tried: Sequence[bool] = (),
) -> str:
    """``together`` says how many shards a GPU has at once; without, they are on the machine's cores. Some fill it alone: ``full``
    says which, and ``tried`` the same in the order in which they were tried.
    """
    from ....cluster import cores

    kinds = Counter(_kind(*part) for part in parts)
    runs: Counter[int] = Counter()
    for (agents, each, steps), count in kinds.items():
        runs[steps] += count * len(agents) * each

    def hours(part: Mapping[str, Any], steps: int) -> float:
        cost = costs[_kind(part, steps)]
        seconds = cost.seconds
        if together is not None:
            seconds = on_game(seconds, part["game"], settings.games[0], cost.agents)
        return seconds / 3600

    several = " and ".join(f"{count:,} runs of {steps:,} steps" for steps, count in runs.items())
    lines = [
        f"minatar: {len(parts)} shards, {several}, {sum(steps * count for steps, count in runs.items()):,} run-steps "
        f"on {device}",
        "",
        f"{'shards':>6} {'runs each':>9} {'run-steps each':>14} {'run-steps/s':>11} {'hours each':>10}  memory each, agents",
    ]
    for kind, count in kinds.items():
        cost, (_, _, steps) = costs[kind], kind
        own = sorted(hours(*part) for part in parts if _kind(*part) == kind)
        lines.append(
            f"{count:>6} {cost.runs:>9} {cost.runs * steps:>14,} {cost.rate:>11,.0f} {_range(own[0], own[-1]):>10}  "
            f"{cost.memory}, {' '.join(cost.agents)}"
        )
    slots = 1 if together is not None or settings.together else cores()
    added = []
    for group in settings.added:
        its = settings.parts_of(group)
        if own := [hours(*part) for part in parts if part in its]:
            added.append(f"  {_time(makespan(own, slots))} for {group}")
    if added:
        lines += ["", "Of that, the groups besides every agent on every game:", *added]
    every = [hours(*part) for part in parts]
    lines += ["", *_total(every, slots, together, full, tried)]
    lines += [f"  {n:>2}: {_time(makespan(every, n * slots))}" for n in (2, 4, 8) if n <= len(parts)]
    return "\n".join([*lines, *_remarks(settings, together)])


def _total(
    hours: Sequence[float], slots: int, together: Calibration | None, full: Sequence[bool], tried: Sequence[bool]
) -> list[str]:
    """How long all of them take on one device."""
    split = "split with Ray over several, longest shards first:"
    if together is None:
        return [f"{_time(makespan(hours, slots))} on one machine like this; {split}"]
    measured = [str(together)] if together.rates else []
    if together.number == 1:
        return [*measured, f"{_time(makespan(hours, 1))} on one GPU like this; {split}"]
    shares = together.shares[: together.number]
    return [
        *measured,
        f"{_time(side_by_side(hours, full, shares, tried))} on one GPU like this, {together.number} shards at once; "
        f"{_time(makespan(hours, 1))} one after the other.",
        "With Ray over several GPUs, one shard on each, longest shards first:",
    ]


def _remarks(settings: Settings, together: Calibration | None) -> list[str]:
    if together is not None:
        lines = [
            "Hours include compiling, tests of trained agents and that Seaquest takes longer, all three as measured on an H200.",
            "A group's own hours are those alone on the device.",
        ]
    else:
        lines = [
            "Tests and bias estimates are timed on untrained agents, whose episodes are short: trained ones take longer."
        ]
        if len({*settings.games}) > 1:
            first = settings.games[0]
            lines.append(
                f"Other games than {first} are counted as taking the same, though Seaquest takes an eighth more."
            )
    return [*lines, "On a cluster: the same command with --engine ray --address auto instead of --dry-run."]


def _costs(settings: Settings, parts: Parts, say: Say, *, batched: bool) -> Iterator[tuple[Kind, Cost]]:
    """What a shard of each kind takes on the first game; those that differ in their length alone are tried once."""
    tried: dict[tuple[tuple[str, ...], int], Cost] = {}
    games: dict[tuple[tuple[str, ...], int], dict[str, None]] = {}
    for part, steps in parts:
        games.setdefault(_kind(part, steps)[:2], {})[part["game"]] = None
    for agents, each, steps in dict.fromkeys(_kind(*part) for part in parts):
        if (agents, each) not in tried:
            say(f"trying {', '.join(agents)} with {each} run{'s' * (each > 1)} each for some hundred steps ...")
            tried[agents, each] = cost_of(agents, each, settings, [*games[agents, each]], batched=batched)
        cost = tried[agents, each]
        yield (agents, each, steps), replace(cost, seconds=cost.seconds * steps / settings.steps)


def _costs_on_gpu(settings: Settings, parts: Parts, sharing: Sharing, say: Say) -> dict[Kind, Cost]:
    """The same, from another process."""
    child = Child(_tell_costs, settings, parts, environment=sharing.environment)
    try:
        while isinstance(heard := child.hear(), str):
            say(heard)
    except LostError as lost:
        raise LabError(f"the calibration failed: {lost}") from None
    finally:
        stop([child])
    return dict(heard)


def _tell_costs(connection: Connection, settings: Settings, parts: Parts) -> None:
    connection.send(list(_costs(settings, parts, connection.send, batched=True)))


def cost_of(agents: Sequence[str], each: int, settings: Settings, games: Sequence[str], *, batched: bool) -> Cost:
    """Train one shard of so many runs of each of these agents a little, and measure it once. It takes no other time if some of
    them have other learning rates. On a CPU a single run of it is measured, since each has its own core. The memory is that of
    the one of these games that needs the most.
    """
    from ....cluster import cores
    from ....deep.core.memory import size
    from .trial import Trial

    part = {
        "game": settings.games[0],
        "learning_rate": settings.learning_rates[0],
        "agents": agents,
        "seeds": [*range(each)],
    }
    memory = max(Trial.of(settings, part | {"game": game}, batched=batched).need.total for game in games)
    trial = Trial.of(settings, part, batched=batched)
    step = sum(trial.step_seconds(block) for block in (trial.blocks if batched else trial.blocks[-1:]))
    if not batched:
        step *= len(trial.blocks) / min(cores(), len(trial.blocks))
    return Cost(tuple(agents), trial.runs, size(memory), trial.runs / step, step * settings.steps)


def _own(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """A shard's part as its group has it: with another seed of the study, its runs have other seeds."""
    return {**part, "seeds": [seed % SEEDS_APART for seed in part["seeds"]]}


def _kind(part: Mapping[str, Any], steps: int) -> Kind:
    return tuple(part["agents"]), len(rates_of(part)) * len(part["seeds"]), steps


def _range(least: float, most: float) -> str:
    low, high = f"{least:.2f}", f"{most:.2f}"
    return low if low == high else f"{low}-{high}"


def _time(hours: float) -> str:
    return f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.1f} minutes"
