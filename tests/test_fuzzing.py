"""Ten thousand changed files: each is refused in one sentence, or acts as the original does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
MEMORY = 1024
"""MiB, JAX's own included."""
CASES = {"csv": 3000, "parquet": 2000, "agent": 1500, "policy": 1500, "plan": 500, "checkpoint": 500, "results": 1000}


def fuzzed(kind: str, cases: int, seed: int) -> dict[str, Any]:
    """What happened in a process of its own; it is stopped after a second for each case and some minutes for the start."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", HERE / "fuzzed.py", kind, str(cases), str(seed)],
        capture_output=True,
        text=True,
        timeout=300 + cases,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(HERE))))},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return {"kind": kind, **json.loads(done.stdout.splitlines()[-1])}


def check(found: dict[str, Any]) -> None:
    """A damaged checkpoint is passed over, not refused; of everything else, changes must have damaged something."""
    assert found["faults"] == []
    assert found["fault_count"] == 0
    assert found["memory_mib"] < MEMORY
    assert found["kind"] == "checkpoint" or found.get("refused", 0) > found["cases"] / 20, "nothing was damaged"


@pytest.mark.slow
@pytest.mark.parametrize("kind", CASES)
def test_no_changed_file_does_harm(kind: str) -> None:
    check(fuzzed(kind, CASES[kind], seed=0))


def test_a_hundred_changed_tables_do_no_harm() -> None:
    check(fuzzed("csv", 100, seed=1))
