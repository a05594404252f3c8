"""Whether the kernels of a round, which a GPU launches as one graph, wait for each other where they touch the same memory.

    python benchmarks/kernel_order.py [AGENT,AGENT,...:RUNS:GAME ...]

It takes no GPU, but an interpreter that has JAX's CUDA plugin, as `kernels.py` does. XLA compiles a round for an H200, logs which
kernel waits for which, and dumps where in memory each reads and writes. Two kernels of a step touch the same memory if one
writes what the other reads or writes: the later one must wait, for the earlier one itself or for one that does. Kernels of
different steps are not in the log: XLA has the first kernels of a step wait for the last ones of the step before. The last
columns are the kernels of a step, those of the longest chain in which each waits for the one before, the pairs that are ordered
of those that touch the same memory, and those of them with the fused update.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

CASES = ("ke-bdqn:5:breakout", "ada-te-bdqn:1e-4:5:seaquest", "dqn:10:breakout", "maxmin-dqn:2:5:space_invaders")


class Slice(NamedTuple):
    """Bytes of one of the program's allocations."""

    allocation: int
    begin: int
    end: int

    def meets(self, other: Slice) -> bool:
        return self.allocation == other.allocation and self.begin < other.end and other.begin < self.end


@dataclass
class Step:
    """The kernels of a step, in the order in which they would run one after the other, and what is known of each."""

    names: list[str]
    waits: set[tuple[int, int]]
    """Pairs of places in that order: the second waits for the first."""
    reads: dict[str, list[Slice]] = field(default_factory=lambda: defaultdict(list))
    writes: dict[str, list[Slice]] = field(default_factory=lambda: defaultdict(list))

    def touching(self) -> list[tuple[int, int]]:
        """Pairs of kernels of which one writes what the other reads or writes."""

        def meet(some: list[Slice], others: list[Slice]) -> bool:
            return any(one.meets(other) for one in some for other in others)

        found = []
        for i, j in combinations(range(len(self.names)), 2):
            first, later = self.names[i], self.names[j]
            written, rewritten = self.writes[first], self.writes[later]
            if meet(written, self.reads[later] + rewritten) or meet(self.reads[first], rewritten):
                found.append((i, j))
        return found

    def ordered(self) -> set[tuple[int, int]]:
        """Pairs of which the second waits for the first, or for one that waits for it."""
        after: dict[int, set[int]] = {i: set() for i in range(len(self.names))}
        for i in reversed(range(len(self.names))):
            for first, second in self.waits:
                if first == i:
                    after[i] |= {second} | after[second]
        return {(i, j) for i, later in after.items() for j in later}

    def longest_chain(self) -> int:
        """Kernels of the longest chain of which each waits for the one before."""
        length = [1] * len(self.names)
        for first, second in sorted(self.waits):
            length[second] = max(length[second], length[first] + 1)
        return max(length)

    def fused_updates(self) -> set[int]:
        """The kernels that overwrite the weights and moments of hidden layers (`maxmean.deep.core.fused`)."""
        return {i for i, name in enumerate(self.names) if name.startswith("pallas_call")}


def read_step(sequence: str, log: str, metadata: str, allocations: str, values: str) -> Step:
    """The step from what XLA tells: its kernels, what they wait for, their names, and where in memory values are."""
    named = {int(i): name for name, i in re.findall(r'profile_annotation: "([^"]*)"\s*thunk_id: (\d+)', metadata)}
    lines = sequence.partition("body:")[2].splitlines()[1:]
    depth = len(lines[0]) - len(lines[0].lstrip())
    names = []
    for line in lines:
        found = re.match(r"(\s+)(\d+): ", line)
        if not found or len(found[1]) < depth:
            break
        names.append(named[int(found[2])])
    step = Step(names, _find_waits(log, len(names)))
    _find_memory(step, allocations, values)
    return step


def _find_waits(log: str, kernels: int) -> set[tuple[int, int]]:
    """From the graph of the step, which is the only one with so many kernels: others are of the loop's end and of the round."""
    graphs = re.findall(rf"ExecutionGraph: {kernels} nodes, .*\n((?:node \d+ .*\n)+)", log)
    if len(graphs) != 1:
        sys.exit(f"XLA logged {len(graphs)} graphs of {kernels} kernels, not one: it may log in other words now")
    nodes = re.findall(r"node (\d+) .*: in=\[(.*?)\] out=", graphs[0])
    return {
        (int(first), int(later)) for later, edges in nodes for first in re.findall(r"kind: execution, id: (\d+)", edges)
    }


def _find_memory(step: Step, allocations: str, values: str) -> None:
    slices: dict[str, Slice] = {}
    for part in re.split(r"^allocation (?=\d)", allocations, flags=re.MULTILINE)[1:]:
        where = int(part.partition(":")[0])
        for value, size, offset in re.findall(r" value: <(\d+) .*? @\d+> \(size=(\d+),offset=(\d+)\)", part):
            slices[value] = Slice(where, int(offset), int(offset) + int(size))
    for part in re.split(r"^<(?=\d)", values, flags=re.MULTILINE)[1:]:
        number, named = part.partition(" @")[0].split(" ", 1)
        if number not in slices:
            continue
        if not named.endswith("(phi)"):  # of which it is not one kernel that writes it
            step.writes[re.sub(r"\{[\d,]*\}$", "", named)].append(slices[number])
        for user in re.findall(r"^  (\S+), operand \d+$", part, flags=re.MULTILINE):
            step.reads[user].append(slices[number])


def measure(case: str, dumps: Path) -> str:
    """A line of the table. XLA dumps what it compiles to ``dumps``."""
    from kernels import compiled

    from maxmean.deep.device.launching import OPTIONS

    names, runs, game = case.rsplit(":", 2)
    dumps.mkdir()
    with _standard_error_in(dumps / "log.txt"):
        compiled(names.split(","), int(runs), game, OPTIONS)
    kinds = (
        "thunk_sequence_after_thunk_passes",
        "thunk_metadata",
        "gpu_after_optimizations-buffer-assignment",
        "gpu_after_optimizations-buffer-assignment-values",
    )
    sequence, *others = (next(dumps.glob(f"*{kind}.txt")).read_text() for kind in kinds)
    log = (dumps / "log.txt").read_text()
    shutil.rmtree(dumps)
    one_graph = sequence.lstrip().startswith("000: kCommandBuffer") and sequence.count("kCommandBuffer") == 1
    step = read_step(sequence, log, *others)
    touching, ordered, fused = step.touching(), step.ordered(), step.fused_updates()
    updating = [pair for pair in touching if fused & {*pair}]
    seen, seen_updating = (sum(pair in ordered for pair in pairs) for pairs in (touching, updating))
    graph = "yes" if one_graph else "no"
    of_updates = f"{seen_updating} of {len(updating)}" if fused else "has none"
    return (
        f"| {names} | {runs} | {game} | {graph} | {len(step.names)} | {step.longest_chain()} | {seen} of {len(touching)} | "
        f"{of_updates} |"
    )


@contextmanager
def _standard_error_in(path: Path) -> Iterator[None]:
    """What the process says on standard error goes to this file, libraries in C++ included."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def main(arguments: list[str]) -> None:
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "0", "TF_CPP_VMODULE": "command_executor=3"}  # logs the graphs
    os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")  # which asks for libraries that only a GPU needs
    print("| agents | runs | game | one graph | kernels | in a chain | pairs ordered | of the update |")
    print("|---|--:|---|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        dumps = Path(folder) / "dumps"
        os.environ["XLA_FLAGS"] = f"--xla_dump_to={dumps} --xla_dump_hlo_as_text {os.environ.get('XLA_FLAGS', '')}"
        for case in arguments or CASES:
            print(measure(case, dumps), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
