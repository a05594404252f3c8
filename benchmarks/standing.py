"""Cases that stand ready in a process each and take turns: for those that take longer to prepare than to measure.

Each process imports and makes what it needs while the others do, and so all take their first turn at once: it compiles and warms
up, and does not count. After that one runs at a time. One that fails is named, with the last lines that it said, and left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

STAND = "--stand"
MARK = "turn "
"""How a line begins that is an answer: libraries print as well."""


@dataclass
class Standing:
    """A case in a process of its own."""

    name: str
    process: subprocess.Popen[str]
    errors: Any
    answers: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def start(cls, python: str, script: str, name: str, options: Sequence[str], env: Mapping[str, str]) -> Standing:
        errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  (it is open as long as the process)
        process = subprocess.Popen(
            [python, script, STAND, name, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **env},
        )
        return cls(name, process, errors)

    def go(self) -> None:
        """Have it take a turn, and do not wait for it."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # then it has no answer either
            print("go", file=self.process.stdin, flush=True)

    def answer(self) -> bool:
        """Wait until its turn is over; False if it could not take it."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith(MARK):
                self.answers.append(json.loads(line.removeprefix(MARK)))
                print(f"{self.name}: {self.answers[-1].get('rate')}", file=sys.stderr, flush=True)
                return True
        return self._left_out()

    def turn(self) -> bool:
        """Have it take a turn, and wait for it; False if it cannot."""
        self.go()
        return self.answer()

    def _left_out(self) -> bool:
        self.errors.seek(0)
        said = [line.strip() for line in self.errors if line.strip()] or ["it said nothing"]
        print(f"left out: {self.name}", *said[-3:], sep="\n    ", file=sys.stderr, flush=True)
        return False

    def dismiss(self) -> None:
        """Let it end: it does where there is nothing more to read."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()

    def wait(self) -> None:
        """Until it has ended, or has had time enough for that."""
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.errors.close()


def in_turns(
    script: str, cases: Mapping[str, Mapping[str, str]], options: Sequence[str], repeats: int
) -> dict[str, list[dict[str, Any]]]:
    """What each case answered in its turns; ``cases`` are names, and what a case has in its environment beside ours."""
    everyone = [Standing.start(sys.executable, script, name, options, env) for name, env in cases.items()]
    try:
        for each in everyone:
            each.go()
        left = [each for each in everyone if each.answer()]
        for _ in range(repeats):
            left = [each for each in left if each.turn()]
        return {each.name: each.answers[1:] for each in left}
    finally:
        for each in everyone:
            each.dismiss()
        for each in everyone:
            each.wait()


def stand(turn: Callable[[], Mapping[str, Any]]) -> None:
    """A case's own side: a turn for each line that is read, and its answer."""
    for _ in sys.stdin:
        print(MARK + json.dumps(dict(turn())), flush=True)


def calls_in(advance: Callable[[int], None], seconds: float, unit: int = 1) -> int:
    """How many calls fill so many seconds, in whole units, found with more and more of them."""
    calls = unit
    while True:
        begin = time.perf_counter()
        advance(calls)
        took = time.perf_counter() - begin
        if took > seconds / 8:
            return unit * max(1, round(calls / unit * seconds / took))
        calls *= 2
