"""Learning in Gymnasium's environments on one GPU, beside PyTorch on the same GPU: steps per second of the environment.

    PYTHONPATH=src python benchmarks/host_gpu.py --out host_gpu.json
    PYTHONPATH=src python benchmarks/host_gpu.py profile    # where the time of our steps goes
    PYTHONPATH=src python benchmarks/host_gpu.py trials     # changes of which only a GPU can tell whether they help
    PYTHONPATH=src python benchmarks/host_gpu.py compare profile trials     # all of it, which takes less than one after the other

MinAtar's Breakout has one update a step, Atari's games one in four steps; and both are played by eight environments side by side,
with as many updates a transition as one has. All sides have the same environment, network, batch of 32, replay and updates; ours
stores each Atari frame once. Peers are Stable-Baselines3's DQN, where it is installed, and a loop as CleanRL's scripts have it.
Every case stands ready in a process of its own, and they take turns. ``--quick`` is for a CPU: small sizes, to see that it runs.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from host_ours import CHANGES, advancing, host_agent
from host_peers import Advance, Load, stable_baselines, torch_loop
from host_profile import Parts, parts_table
from host_worlds import source
from standing import STAND, calls_in, in_turns, stand

WHAT = ("compare", "profile", "trials")
PACKAGES = ("jax", "torch", "stable-baselines3", "gymnasium", "ale-py", "minatar", "numpy")


class Case(NamedTuple):
    """A side of a comparison, or what else is measured of it."""

    side: str
    load: Load
    what: str = "compare"
    flags: str = ""
    """XLA's, for a trial of ours."""
    change: str = ""
    """A change of our engine that is tried."""

    @property
    def place(self) -> str:
        """World, environments, and how many updates there are in how many steps of all of them together."""
        load = self.load
        return f"{load.world} x {load.environments}, {load.gradient_steps} in {load.train_every}"

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (self.what, self.place, self.side, self.change or self.flags)))


LOADS = (
    Load("minatar", 1, 1, 1),
    Load("minatar", 8, 1, 8),
    Load("Breakout", 1, 4, 1),
    Load("Breakout", 8, 4, 1),
    Load("Breakout", 8, 4, 8),
)
TRIED = (LOADS[0], LOADS[1], LOADS[3], LOADS[4])
"""Those on which changes are tried and parts are measured."""
QUICK = (Load("minatar", 1, 1, 1, 2_000, 40), Load("Breakout", 2, 4, 1, 2_000, 40))
OURS = ("dqn", "ke-bdqn")
PEERS = {"Stable-Baselines3": stable_baselines, "PyTorch loop": torch_loop}
GRAPHS = ("--xla_gpu_enable_command_buffer=", "--xla_gpu_graph_min_graph_size=1")
"""XLA's flags: without command buffers (CUDA's graphs), and with ones of any length."""
LOOPS = ("--xla_gpu_enable_command_buffer=+WHILE",)
"""With loops in command buffers."""


def trials(load: Load) -> Iterator[Case]:
    """Our DQN as it is, and with what may help it: another way of several updates where there are several, else all else."""
    several = load.gradient_steps > 1
    yield Case("dqn", load, "trials")
    yield from (Case("dqn", load, "trials", flags=flags) for flags in (LOOPS if several else GRAPHS))
    yield from (Case("dqn", load, "trials", change=change) for change in CHANGES if ("loop" in change) == several)


def cases(args: argparse.Namespace) -> Iterator[Case]:
    """What is measured, in this order."""
    loads, tried = (QUICK, QUICK) if args.quick else (LOADS, TRIED)
    if "compare" in args.what:
        yield from (Case(side, load) for load in loads for side in (*OURS, *PEERS))
    if "profile" in args.what:
        yield from (Case(side, load, "profile") for load in tried for side in OURS)
    if "trials" in args.what:
        yield from (case for load in tried for case in trials(load))


def side(case: Case, device: str) -> tuple[Advance, str]:
    """How a case advances, and on what device."""
    if case.side in PEERS:
        import torch

        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        return PEERS[case.side](case.load, device), torch.cuda.get_device_name() if device == "cuda" else device
    import jax

    return advancing(host_agent(case.side, case.load), case.change), jax.devices()[0].device_kind


def table(answers: Mapping[Case, list[dict[str, Any]]]) -> str:
    """The median of each case's turns and their range, and how many times the best peer in the same place it is."""
    lines = [
        "| environments, updates in calls | side | steps/s | range | times the best peer | device |",
        "|---|---|--:|--:|--:|---|",
    ]
    rates = {case: [each["rate"] for each in found] for case, found in answers.items() if found}
    for case, found in rates.items():
        peers = [median(rates[other]) for other in rates if other.place == case.place and other.side in PEERS]
        times = f"{median(found) / max(peers):.2f}" if peers and case.side not in PEERS else ""
        who = ", ".join(filter(None, (case.side, case.change or case.flags)))
        lines.append(
            f"| {case.place} ({source(case.load.world)}) | {who} | {median(found):,.0f} | {min(found):,.0f} to {max(found):,.0f} "
            f"| {times} | {answers[case][0]['device']} |"
        )
    return "\n".join(lines)


def versions() -> dict[str, str]:
    """Of Python and of what is compared."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def environment(case: Case, device: str) -> dict[str, str]:
    """What a case's process has in its environment."""
    own = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "XLA_FLAGS": case.flags}
    return {**own, "JAX_PLATFORMS": "cpu"} if device == "cpu" else own


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Our host driver beside PyTorch, in steps per second.")
    parser.add_argument(
        "what",
        nargs="*",
        help="compare: beside PyTorch (the default); profile: where our steps' time goes; trials: changes of our DQN",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes and short turns, on a CPU")
    parser.add_argument("--only", default="", help="cases whose names have this part")
    parser.add_argument("--seconds", type=float, help="of a turn (2, and 0.5 with --quick)")
    parser.add_argument("--repeats", type=int, help="turns of each case (3, and 1 with --quick)")
    parser.add_argument("--device", default="", help="cpu or cuda; by default a GPU if there is one")
    parser.add_argument("--out", type=Path, help="a file for the numbers, JSON")
    parser.add_argument(STAND, help=argparse.SUPPRESS)
    found = parser.parse_args(argv)
    if wrong := {*found.what} - {*WHAT}:
        parser.error(f"what is measured is {', '.join(WHAT)}, not {', '.join(sorted(wrong))}")
    found.what = found.what or ["compare"]
    found.device = "cpu" if found.quick else found.device
    found.seconds = found.seconds or (0.5 if found.quick else 2.0)
    found.repeats = found.repeats or (1 if found.quick else 3)
    return found


def rate_of(case: Case, args: argparse.Namespace) -> Callable[[], dict[str, Any]]:
    """What a case does in its turns: it warms up in the first one, then so many calls that they fill the time."""
    advance, device = side(case, args.device)
    load, calls, warm = case.load, 0, False

    def turn() -> dict[str, Any]:
        nonlocal calls, warm
        if not warm:
            advance(2 * load.warmup // load.environments)
            warm = True
            return {}
        calls = calls or calls_in(advance, args.seconds, load.train_every)
        begin = time.perf_counter()
        advance(calls)
        took = time.perf_counter() - begin
        return {"rate": calls * load.environments / took, "device": device}

    return turn


def main(argv: Sequence[str] | None = None) -> None:
    args = arguments(argv)
    every = {case.name: case for case in cases(args)}
    if args.stand is not None:
        case = every[args.stand]
        stand(
            Parts(host_agent(case.side, case.load), args.seconds).turn
            if case.what == "profile"
            else rate_of(case, args)
        )
        return
    own = sys.argv[1:] if argv is None else list(argv)
    chosen = {name: environment(case, args.device) for name, case in every.items() if args.only in name}
    answers = {every[name]: found for name, found in in_turns(__file__, chosen, own, args.repeats).items()}
    about = versions()
    print(", ".join(f"{name} {number}" for name, number in about.items()))
    for what in args.what:
        own_answers = {case: found for case, found in answers.items() if case.what == what}
        print(parts_table(own_answers) if what == "profile" else table(own_answers))
    if args.out is not None:
        numbers = {case.name: found for case, found in answers.items()}
        args.out.write_text(json.dumps({"versions": about, "options": own, "turns": numbers}, indent=1))


if __name__ == "__main__":
    main()
