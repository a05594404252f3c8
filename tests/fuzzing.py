"""Files of every kind that we read, changed at random: what reading them does, and must not do.

A kind makes an original in a folder, and uses what is in such a folder. Each case copies the original, changes one of its files
and uses it. It may be refused with one of the kind's own errors, in one line. It must not raise anything else, take longer than
``LONGEST`` seconds, import a module that reading the original did not need, begin a process, or write a file; and where the kind
has a checksum, what is accepted must act as the original does. It happens in a process of its own, whose memory is measured::

    python tests/fuzzed.py KIND CASES SEED       # prints what happened as JSON
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LONGEST = 20
"""Seconds for one case; the machine may be busy."""

Change = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Kind:
    """A kind of file."""

    make: Callable[[Path], None]
    """Writes the original into a folder."""
    use: Callable[[Path], Any]
    """Reads such a folder; what it gives is compared."""
    files: str = "**/*"
    """Which of the files are changed."""
    signed: bool = True
    """Whether a checksum protects it, so that what is accepted must act as the original."""
    forge: Callable[[Path, random.Random], None] | None = None
    """Changes one file and sets its checksum right, as an attacker would, in half of the cases."""


class HungError(BaseException):
    """A case that took too long."""


class Watch:
    """Hears of imports, processes and written files, by Python's audit events."""

    EVENTS = (
        "subprocess.Popen",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.fork",
        "socket.connect",
        "ctypes.dlopen",
    )

    def __init__(self) -> None:
        self.heard: list[str] | None = None
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.heard is None:
            return
        if event in self.EVENTS:
            self.heard.append(f"{event} {arguments[0]}")
        elif event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
            if os.environ.get("JAX_COMPILATION_CACHE_DIR", "-") in str(arguments[0]):
                return  # what JAX keeps of what it has compiled
            self.heard.append(f"written {arguments[0]}")


def mutate(data: bytes, luck: random.Random) -> bytes:
    """Change a few places of some bytes."""
    for _ in range(luck.choice((1, 1, 1, 2, 4))):
        data = luck.choice(CHANGES)(data, luck)
    return data


def _place(data: bytes, luck: random.Random) -> int:
    """Headers are worth more than what follows them."""
    return luck.randrange(min(len(data), luck.choice((64, 1024, len(data)))) or 1)


def _flip(data: bytes, luck: random.Random) -> bytes:
    place = _place(data, luck)
    return data[:place] + bytes([data[place] ^ (1 << luck.randrange(8))]) + data[place + 1 :] if data else b"\x00"


def _cut(data: bytes, luck: random.Random) -> bytes:
    return data[: _place(data, luck)]


def _remove(data: bytes, luck: random.Random) -> bytes:
    place = _place(data, luck)
    return data[:place] + data[place + luck.choice((1, 2, 8, 100)) :]


def _repeat(data: bytes, luck: random.Random) -> bytes:
    place, size = _place(data, luck), luck.choice((1, 3, 16, 200))
    return data[:place] + data[place : place + size] * luck.choice((2, 2, 10, 500)) + data[place + size :]


def _insert(data: bytes, luck: random.Random) -> bytes:
    place = _place(data, luck)
    return data[:place] + luck.choice((luck.randbytes(luck.choice((1, 4, 50))), *TOKENS)) + data[place:]


def _overwrite(data: bytes, luck: random.Random) -> bytes:
    place, token = _place(data, luck), luck.choice(TOKENS)
    return data[:place] + token + data[place + len(token) :]


def _number(data: bytes, luck: random.Random) -> bytes:
    """Another number in the place of a digit and those after it."""
    digits = [place for place in range(min(len(data), 20_000)) if 48 <= data[place] <= 57]
    if not digits:
        return _flip(data, luck)
    place = luck.choice(digits)
    end = place
    while end < len(data) and data[end] in b"0123456789.eE+-":
        end += 1
    return data[:place] + luck.choice(NUMBERS) + data[end:]


NUMBERS = (
    b"0",
    b"-1",
    b"1e400",
    b"NaN",
    b"Infinity",
    b"1e30",
    b"9" * 30,
    b"4294967296",
    b"0.5",
    b"true",
    b"null",
    b'"x"',
)
TOKENS = (
    *NUMBERS, b"{", b"}", b"[", b"]" * 50, b"[" * 2000, b'"', b",", b"\n", b"\r\n", b"\x00", b"\xff\xfe", b"\x1b[2J", b"\t", b"'",
    b"../../../../etc/passwd", b"__class__", b"os:system", b"\xe2\x80\xae", b"\xed\xa0\x80", b"PAR1", b"," * 3000,
    b"nan", b"=1+1",
)  # fmt: skip
CHANGES: tuple[Change, ...] = (_flip, _flip, _cut, _remove, _repeat, _insert, _overwrite, _number, _number)


VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 10**30, 2**31, 1.5, 1e300, float("nan"), float("inf"), "x", "", "__init__", "test", "os:x",
    [], [[]], [0] * 50, {}, {"__kind__": "kernel", "name": "__init__", "numbers": {"name": "evil"}},
)  # fmt: skip


def change_json(value: Any, luck: random.Random) -> Any:
    """A JSON value with one entry, wherever it is, taken away, put elsewhere or replaced."""
    if isinstance(value, dict) and value and luck.random() < 0.85:
        name = luck.choice(list(value))
        chance = luck.random()
        if chance < 0.1:
            return {key: each for key, each in value.items() if key != name}
        if chance < 0.15:
            return {**value, luck.choice(("__kind__", "x", name + " ")): value[name]}
        return {**value, name: change_json(value[name], luck)}
    if isinstance(value, list) and value and luck.random() < 0.85:
        place = luck.randrange(len(value))
        if luck.random() < 0.15:
            return value[:place] + value[place + 1 :]
        return [*value[:place], change_json(value[place], luck), *value[place + 1 :]]
    return luck.choice(VALUES)


def fuzz(kind: Kind, cases: int, seed: int) -> dict[str, Any]:
    """Change and use an original so many times; what happened, and what must not have."""
    luck, watch = random.Random(seed), Watch()
    here = Path(tempfile.mkdtemp(prefix="fuzz-"))
    trap = here / "trap"
    trap.mkdir()
    for name in ("evil", "os:x", "x", "conftest"):
        (trap / f"{name}.py").write_text("import pathlib; pathlib.Path(__file__).with_suffix('.sprung').touch()\n")
    os.chdir(trap)
    sys.path.insert(0, str(trap))
    signal.signal(signal.SIGALRM, _hung)
    original, changed = here / "original", here / "changed"
    original.mkdir()
    kind.make(original)
    expected = kind.use(original)
    targets = sorted(path.relative_to(original) for path in original.glob(kind.files) if path.is_file())
    counts: Counter[str] = Counter()
    faults: list[str] = []
    for _ in range(10):  # what errors need is imported by some first cases, which count as any other
        _case(kind, original, changed, targets, luck, expected, watch, counts, faults)
    modules = set(sys.modules)
    for _ in range(10, cases):
        _case(kind, original, changed, targets, luck, expected, watch, counts, faults)
        new = {name for name in set(sys.modules) - modules if not name.startswith(LIBRARIES)}
        if new:
            faults.append(f"imported {sorted(new)}")
            modules |= new
    if sorted(path.name for path in trap.glob("*.sprung")):
        faults.append("a module of the working directory was run")
    shutil.rmtree(here)
    # Not what resource.getrusage says: that begins with what the process had that started this one.
    memory = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024
    return {"cases": cases, "memory_mib": memory, **counts, "faults": faults[:20], "fault_count": len(faults)}


LIBRARIES = (
    "jax", "numpy", "pandas", "pyarrow", "scipy", "encodings", "maxmean", "safetensors", "gymnasium", "matplotlib",
    "PIL", "importlib", "email", "rich",
)  # fmt: skip
"""What may be imported late: libraries that this package names itself."""


def _hung(*_: Any) -> None:
    raise HungError


def _case(
    kind: Kind,
    original: Path,
    changed: Path,
    targets: list[Path],
    luck: random.Random,
    expected: Any,
    watch: Watch,
    counts: Counter[str],
    faults: list[str],
) -> None:
    shutil.rmtree(changed, ignore_errors=True)
    shutil.copytree(original, changed)
    target, trace = changed / luck.choice(targets), ""
    forged = kind.forge is not None and luck.random() < 0.5
    if forged:
        assert kind.forge is not None
        kind.forge(changed, luck)
    else:
        target.write_bytes(mutate(target.read_bytes(), luck))
    before = _listing(changed)
    watch.heard = []
    signal.alarm(LONGEST)
    try:
        found = kind.use(changed)
        happened = "accepted"
        if kind.signed and not forged and found != expected:
            happened = "changed"
    except HungError:
        happened = "hung"
    except BaseException as error:
        ours = type(error).__module__.startswith("maxmean.")
        happened = "refused" if ours and "\n" not in str(error) else "foreign"
        trace = traceback.format_exc(limit=-3)[-700:]
    finally:
        signal.alarm(0)
    heard, watch.heard = watch.heard, None
    counts[happened + (" (forged)" if forged else "")] += 1
    where = f"{target.relative_to(changed)} {'forged' if forged else 'mutated'}"
    if happened not in ("accepted", "refused"):
        faults.append(f"{happened}: {where}: {trace}")
    if heard:
        faults.append(f"{where}: {heard[:5]}")
    if _listing(changed) != before:
        faults.append(f"{where}: files were written or removed")


def _listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
