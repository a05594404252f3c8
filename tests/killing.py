"""Kills commands again and again, on a disk that is full from time to time and with a clock that jumps, and compares what they
end with, bit for bit, with what undisturbed ones end with.

    python tests/killing.py device 200       # or host, or reproduce: so many kills, and then the counts
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from maxmean.deep.checkpoint import checkpoints
from maxmean.storage import half_written

DAY = 86_400 * 10**9
"""In nanoseconds."""
COMMAND = [sys.executable, "-m", "maxmean.cli"]
TINY = [
    "--warmup",
    "60",
    "--replay-capacity",
    "400",
    "--target-period",
    "50",
    "--test-episodes",
    "2",
    "--hidden",
    "8",
    "--steps",
    "1500",
]


@dataclass(frozen=True)
class Victim:
    """A command that can be killed."""

    command: Callable[[int], list[str]]
    """All of it but the directory, of so many different ones."""
    results: tuple[str, ...]
    """Patterns of the files that must not differ in a bit."""
    progress: Callable[[Path], int]
    """How far it has got for good, by what is in its directory."""


def _device_step(out: Path) -> int:
    return max((int(path.name.partition("-")[0]) for path in checkpoints(out / "checkpoints")), default=0)


def _host_step(out: Path) -> int:
    from safetensors import safe_open

    done = 0
    for path in out.glob("runs/*/training.safetensors"):
        with safe_open(path, "numpy") as file:
            done += json.loads(file.metadata()["maxmean"])["clock"]["stored"]
    return done


def _rate(number: int) -> list[str]:
    return ["--learning-rate", str(1e-3 + 1e-5 * number)]


VICTIMS = {
    "device": Victim(
        lambda n: (
            [
                "train",
                "--env",
                "minatar/breakout",
                "--agent",
                "dqn",
                "--agent",
                "bdqn:2",
                *_rate(n),
                *TINY,
                "--test-interval",
                "100",
                "--checkpoint-interval",
                "100",
            ]
        ),
        ("*.parquet", "policies/*", "plan.json"),
        _device_step,
    ),
    "host": Victim(
        lambda n: (
            [
                "train",
                "--env",
                "CartPole-v1",
                "--agent",
                "te-bdqn:0.2",
                "--heads",
                "2",
                *_rate(n),
                *TINY,
                "--batch-size",
                "8",
                "--test-interval",
                "50",
                "--checkpoint-interval",
                "50",
                "--seeds",
                "2",
            ]
        ),
        ("*.parquet", "plan.json", "runs/*/*.parquet", "runs/*/training.safetensors", "runs/*/plan.json"),
        _host_step,
    ),
    "reproduce": Victim(
        lambda n: ["reproduce", "gaussian", "--scale", "quick", "--workers", "1", "--seed", str(n)],
        ("*/*.parquet",),
        lambda out: len(list(out.glob("*/*.parquet"))),
    ),
}


def content(path: Path) -> bytes:
    """What is in a file; of safetensors, which writes its texts in any order, what it says."""
    if path.suffix != ".safetensors":
        return path.read_bytes()
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        texts = repr(sorted((file.metadata() or {}).items())).encode()
        arrays = [(name, file.get_tensor(name)) for name in sorted(file.keys())]
    return texts + b"".join(repr((name, a.dtype, a.shape)).encode() + a.tobytes() for name, a in arrays)


def interrupted_elsewhere(errors: str) -> bool:
    """Whether this is what Python says of an interrupt outside of our code: while it imports, or in a library's callback, which
    loses it and goes on. No function of ours is in it."""
    ended = errors.rstrip(": \n").endswith("KeyboardInterrupt")
    return ended and not re.search(r"/maxmean/\S+\.py\", line \d+, in (?!<module>)", errors)


class Trouble:
    """What the disk and the clock do to a process; see killing.c."""

    def __init__(self, folder: Path) -> None:
        self.library, self.page, self.folder = folder / "killing.so", folder / "page", folder
        source = Path(__file__).with_name("killing.c")
        subprocess.run(["gcc", "-shared", "-fPIC", "-O2", "-o", self.library, source, "-ldl"], check=True)
        self.page.write_bytes(bytes(32))

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "LD_PRELOAD": str(self.library),
            "KILLING_PAGE": str(self.page),
            "KILLING_UNDER": str(self.folder / "out"),
        }

    def _set(self, index: int, value: int) -> None:
        with self.page.open("r+b", buffering=0) as page:
            page.seek(8 * index)
            page.write(struct.pack("q", value))

    def clock(self, ahead: int) -> None:
        self._set(0, ahead)

    def disk(self, full: bool) -> None:
        self._set(1, int(full))

    @property
    def failed_writes(self) -> int:
        return struct.unpack("4q", self.page.read_bytes())[2]


@dataclass
class Killing:
    """A victim's story."""

    victim: Victim
    folder: Path
    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    say: Callable[[Counter[str]], None] = lambda counts: None
    """Hears of every directory that has come to its end."""

    def __post_init__(self) -> None:
        self.chance, self.trouble = random.Random(self.seed), Trouble(self.folder)
        self.out = self.folder / "out"
        self.begin, self.whole = 1.0, 4.0
        """Seconds until an undisturbed process writes, and until it ends."""
        self.interrupted = False
        """Whether the last process was sent an interrupt."""

    def run(self, kills: int) -> Counter[str]:
        """One directory after the other, each through its kills to its end, until there were so many kills."""
        while self.counts["kills"] < kills:
            number = self.counts["directories"]
            expected = self._undisturbed(number)
            for _ in range(self.chance.randint(6, 20)):
                if self.counts["kills"] < kills and self._child(number, self._kill):
                    break
                if self.chance.random() < 0.15:
                    self._child(number, self._fill)
            assert self._child(number, lambda child: None), "it did not end well when it was let alone"
            found = self._results()
            assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
            differing = [name for name in expected if found[name] != expected[name]]
            assert not differing, f"differing bits in {differing} of directory {number}"
            left = [path for path in self.out.rglob("*") if half_written(path) and not path.name.endswith("lock")]
            assert self.victim is VICTIMS["reproduce"] or not left, left
            self.counts["directories"] += 1
            self.counts["files compared"] += len(expected)
            self.say(self.counts)
            shutil.rmtree(self.out)
        self.counts["writes failed on a full disk"] = self.trouble.failed_writes
        return self.counts

    def _undisturbed(self, number: int) -> dict[str, bytes]:
        self.trouble.clock(0)
        start = time.monotonic()
        with self._process(number) as child:
            while child.poll() is None and not (self.out.exists() and any(self.out.iterdir())):
                time.sleep(0.005)
            self.begin = time.monotonic() - start
            _, errors = child.communicate(timeout=600)
            assert child.returncode == 0, errors
        self.whole = time.monotonic() - start
        results = self._results()
        shutil.rmtree(self.out)
        return results

    def _process(self, number: int) -> subprocess.Popen[str]:
        command = [*COMMAND, *self.victim.command(number), "--out", str(self.out), "--quiet"]
        return subprocess.Popen(
            command, env=self.trouble.environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )

    def _results(self) -> dict[str, bytes]:
        found = sorted({path for pattern in self.victim.results for path in self.out.glob(pattern)})
        return {str(path.relative_to(self.out)): content(path) for path in found if not half_written(path)}

    def _child(self, number: int, disturb: Callable[[subprocess.Popen[str]], None]) -> bool:
        """One process, disturbed; whether it has come to its end all the same."""
        before = self.victim.progress(self.out)
        self.trouble.clock(self.chance.randint(-30 * DAY, 30 * DAY))
        self.counts["clock jumps"] += 1
        self.interrupted = False
        with self._process(number) as child:
            try:
                disturb(child)
                _, errors = child.communicate(timeout=300)
            finally:
                child.kill()
                self.trouble.disk(False)
        after = self.victim.progress(self.out)
        assert after >= before, f"it had got to {before}, and is at {after}"
        elsewhere = self.interrupted and interrupted_elsewhere(errors)
        assert elsewhere or "Traceback" not in errors, errors
        assert elsewhere or child.returncode in (0, 2, 130, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT), errors
        return child.returncode == 0

    def _wait(self, child: subprocess.Popen[str], seconds: float) -> None:
        """Wait; the clock may jump meanwhile."""
        end = time.monotonic() + seconds
        jump = time.monotonic() + self.chance.uniform(0, 3 * seconds)
        while child.poll() is None and time.monotonic() < end:
            if time.monotonic() > jump:
                self.trouble.clock(self.chance.randint(-30 * DAY, 30 * DAY))
                self.counts["clock jumps"] += 1
                jump = end + 1
            time.sleep(0.002)

    def _kill(self, child: subprocess.Popen[str]) -> None:
        """End a process while it starts, at any time, or while it writes."""
        how = self.chance.random()
        if how < 0.15:
            self._wait(child, self.chance.uniform(0, self.begin))
        elif how < 0.5:
            self._wait(child, self.begin + self.chance.uniform(0, 0.3) * (self.whole - self.begin))
        else:
            self._wait(child, self.begin * self.chance.random())
            self._wait(child, self.chance.uniform(0, 0.2) * (self.whole - self.begin))
            end = time.monotonic() + 4.0
            while child.poll() is None and time.monotonic() < end and not self._half(child):
                time.sleep(0.0005)
            time.sleep(self.chance.choice([0, 0, 0.001, 0.003, 0.01]))
        by = self.chance.choices((signal.SIGKILL, signal.SIGTERM, signal.SIGINT), (8, 1, 1))[0]
        begun = self.out.exists() and any(not half_written(path) for path in self.out.iterdir())
        self.interrupted = by is signal.SIGINT
        child.send_signal(by)
        child.wait(timeout=300)
        if child.returncode not in (-by, 130):
            return  # it had ended before
        half = self._half(child)
        self.counts["kills"] += 1
        self.counts[f"kills by {by.name}"] += 1
        self.counts["kills while it wrote" if half else "kills between writes" if begun else "kills at the start"] += 1

    def _half(self, child: subprocess.Popen[str]) -> bool:
        """Whether the process has something half-written."""
        mark = f".maxmean-{child.pid}-"
        folders = [self.out, *self.out.glob("checkpoints"), *self.out.glob("policies"), *self.out.glob("runs/*")]
        folders += self.out.glob("[a-z]*")
        try:
            return any(path.name.startswith(mark) for folder in folders if folder.is_dir() for path in folder.iterdir())
        except OSError:  # it was quicker
            return False

    def _fill(self, child: subprocess.Popen[str]) -> None:
        """Fill the disk at some time; the process must end by itself, with one sentence."""
        self._wait(child, self.chance.uniform(0, self.whole))
        failed = self.trouble.failed_writes
        self.trouble.disk(True)
        try:
            _, errors = child.communicate(timeout=300)
        finally:
            self.trouble.disk(False)
        if self.trouble.failed_writes > failed:
            assert child.returncode == 2, (child.returncode, errors)
            assert "No space left on device" in errors or "disk" in errors, errors
            self.counts["full disks"] += 1


def main() -> None:
    name, kills = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    with tempfile.TemporaryDirectory() as folder:
        killing = Killing(VICTIMS[name], Path(folder), seed, say=lambda counts: print(dict(counts), flush=True))
        try:
            killing.run(kills)
        finally:
            print(name, json.dumps(killing.counts, indent=1), flush=True)


if __name__ == "__main__":
    main()
