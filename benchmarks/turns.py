"""Cases measured in turns, several times, each in a process of its own on one core: the best of each counts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ONE = "--one"
ALONE = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OMP_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "PYTHONPATH": str(Path(__file__).parents[1] / "src"),
}


def take(cases: Mapping[str, Callable[[], float]], main: Callable[[], None]) -> None:
    """A script's entry: one case, when :func:`in_turns` asks for it, or all of ``main``."""
    if sys.argv[1:2] == [ONE]:
        print(cases[sys.argv[2]]())
    else:
        main()


def in_turns(script: str, cases: Mapping[str, Callable[[], float]], python: str, repeats: int) -> dict[str, float]:
    """The best of each case. One that fails is named, with its last line, and left out."""
    core = {min(os.sched_getaffinity(0))}
    best: dict[str, float] = {}
    for _ in range(repeats):
        for name in cases:
            found = subprocess.run(
                [python, script, ONE, name],
                capture_output=True,
                text=True,
                env={**os.environ, **ALONE},
                preexec_fn=lambda: os.sched_setaffinity(0, core),
            )
            if found.returncode:
                print(f"left out: {name} ({found.stderr.strip().splitlines()[-1]})", file=sys.stderr)
                continue
            best[name] = max(best.get(name, 0.0), float(found.stdout.split()[-1]))
    return best
