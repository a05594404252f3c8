"""Directories of results as a stranger may send them: each way to damage one, or to make it odd, is a function by name.

All of them harm one shard of ``convergence`` at the quick scale, or its plan, its folder, or the directory itself.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from maxmean.lab.experiments import EXPERIMENTS

VICTIM = EXPERIMENTS["convergence"]
SHARD = next(shard for shard in VICTIM.shards(VICTIM.settings("quick"), 0) if shard.part["algorithm"] == "te-q(0.05)")
ESCAPE = "\x1b[31mred\u202e\r\n"
KEEPSAKE = "keepsake"
"""A file beside the directory, which is not the stranger's."""
DEEP = '{"a":' + "[" * 100_000 + "]" * 100_000 + "}"

Outcome = Literal["left out", "harmless", "refused"]
"""What becomes of the experiment: it is left out, or nothing happens to it, or the whole directory is refused."""


@dataclass(frozen=True)
class Place:
    """The files of a directory of results that are damaged."""

    root: Path

    @property
    def folder(self) -> Path:
        return self.root / VICTIM.name

    @property
    def manifest(self) -> Path:
        return self.folder / f"{SHARD.key}.json"

    @property
    def table(self) -> Path:
        return self.folder / f"{SHARD.key}.parquet"

    @property
    def plan(self) -> Path:
        return self.folder / "quick-0.plan.json"

    @property
    def marker(self) -> Path:
        return self.root / "maxmean-results.json"

    def forge(self, data: bytes) -> None:
        """Another table, with a right checksum: anyone can compute one."""
        self.table.write_bytes(data)
        edit(self.manifest, sha256=hashlib.sha256(data).hexdigest())

    def retable(self, change: Callable[[pa.Table], pa.Table]) -> None:
        self.forge(as_bytes(change(pyarrow.parquet.read_table(self.table))))


@dataclass(frozen=True)
class Damage:
    """A way to damage a directory, and what is to come of it."""

    name: str
    do: Callable[[Place], object]
    outcome: Outcome = "left out"
    heals: bool = True
    """Whether ``reproduce`` puts it right; otherwise it says what is in the way."""


def edit(path: Path, drop: str = "", **changes: Any) -> None:
    """Change or drop keys of a JSON object."""
    content = json.loads(path.read_text()) | changes
    content.pop(drop, None)
    path.write_text(json.dumps(content))


def as_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink)
    return bytes(sink.getvalue())


def with_column(table: pa.Table, name: str, values: Any) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def many_rows(count: int) -> bytes:
    """A small file of very many rows."""
    sink = pa.BufferOutputStream()
    block = pa.table({"a": np.zeros(10**6, np.int8)})
    with pyarrow.parquet.ParquetWriter(sink, block.schema, compression="zstd") as writer:
        for _ in range(count // 10**6):
            writer.write_table(block)
    return bytes(sink.getvalue())


def replaced(path: Path, make: Callable[[Path], object]) -> None:
    """Something else in the place of a file or a folder."""
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    make(path)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def full(path: Path) -> None:
    path.mkdir()
    (path / "something").touch()


def link(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def elsewhere(path: Path) -> None:
    """A link to somebody's file outside, which nothing may write to."""
    path.symlink_to(next(parent for parent in path.parents if parent.name == "out").parent / KEEPSAKE)


INSTEAD: dict[str, Callable[[Path], object]] = {
    "directory": full,
    "loop": loop,
    "dangling link": link("nowhere"),
    "pipe": os.mkfifo,
    "link elsewhere": elsewhere,
    "unreadable": link("/proc/self/mem"),
}
"""What may be in the place of a file."""
NO_OBJECTS: dict[str, bytes] = {
    "empty": b"",
    "half": b'{"a": [1, ',
    "null": b"null",
    "list": b"[]",
    "number": b"3",
    "text": b'"x"',
    "nothing in it": b"{}",
    "nested": DEEP.encode(),
    "binary": bytes(range(256)),
    "utf-16": '{"a": 1}'.encode("utf-16"),
    "huge": b'{"a": "' + b"x" * (1 << 24) + b'"}',
    "long number": b'{"a": ' + b"9" * 10_000 + b"}",
}
"""What may be in a file that should hold a JSON object."""


Do = Callable[[Place], object]
Which = Callable[[Place], Path]


def holding(which: Which, content: bytes) -> Do:
    return lambda place: which(place).write_bytes(content)


def instead(which: Which, make: Callable[[Path], object]) -> Do:
    return lambda place: replaced(which(place), make)


def edited(which: Which, drop: str = "", **changes: Any) -> Do:
    return lambda place: edit(which(place), drop, **changes)


def retabled(change: Callable[[pa.Table], pa.Table]) -> Do:
    return lambda place: place.retable(change)


def forged(change: Callable[[bytes], bytes]) -> Do:
    return lambda place: place.forge(change(place.table.read_bytes()))


def wherever(name: str, which: Which, outcome: Outcome = "left out", contents: bool = True) -> list[Damage]:
    """What may happen to any file: something else in it, or something else in its place."""
    found = [
        Damage(f"{name}: {what}", instead(which, make), outcome, heals=what != "directory")
        for what, make in INSTEAD.items()
    ]
    if contents:
        found += [Damage(f"{name}: {what}", holding(which, data), outcome) for what, data in NO_OBJECTS.items()]
    return found


def manifests() -> list[Damage]:
    def manifest(place: Place) -> Path:
        return place.manifest

    keys = ("sha256", "seconds", "versions", "experiment", "version", "settings", "part", "seed")
    odd: dict[str, dict[str, Any]] = {
        "text for seconds": {"seconds": "abc"},
        "negative seconds": {"seconds": -1},
        "true seconds": {"seconds": True},
        "nan seconds": {"seconds": float("nan")},
        "infinite seconds": {"seconds": float("inf")},
        "endless seconds": {"seconds": 10**300},
        "list of versions": {"versions": ["numpy"]},
        "number for a version": {"versions": {"numpy": 2}},
        "another version": {"version": 99},
        "text for the version": {"version": "x"},
        "other settings": {"settings": {"states": 1}},
        "other part": {"part": {"algorithm": ESCAPE}},
        "wrong checksum": {"sha256": "0" * 64},
        "number for the checksum": {"sha256": 3},
        "list for the checksum": {"sha256": []},
        "experiment elsewhere": {"experiment": "../../elsewhere"},
    }
    return [
        *wherever("manifest", manifest),
        *(Damage(f"manifest: no {key}", edited(manifest, drop=key)) for key in keys),
        *(Damage(f"manifest: {name}", edited(manifest, **changes)) for name, changes in odd.items()),
        Damage("manifest: escapes", edited(manifest, versions={ESCAPE: ESCAPE, "<b>": "=1"}), "harmless"),
        Damage("manifest: lone surrogate", edited(manifest, versions={"\ud800": "\udfff"}), "harmless"),
        Damage("manifest: more keys", edited(manifest, drop="", **{ESCAPE: [1]}), "harmless"),
        Damage("manifest: missing", lambda place: place.manifest.unlink(), "harmless"),  # an unfinished run
    ]


def tables() -> list[Damage]:
    changes: dict[str, Callable[[pa.Table], pa.Table]] = {
        "no rows": lambda t: t.slice(0, 0),
        "half of the rows": lambda t: t.slice(0, 7),
        "rows twice": lambda t: pa.concat_tables([t, t]),
        "no columns": lambda t: t.select([]),
        "a column less": lambda t: t.drop_columns(["error"]),
        "a column more": lambda t: t.append_column(ESCAPE, t["error"]),
        "a column twice": lambda t: t.append_column("error", t["error"]),
        "columns renamed": lambda t: t.rename_columns([f"{name}{ESCAPE}" for name in t.column_names]),
        "text for numbers": lambda t: with_column(t, "error", ["=1+1"] * len(t)),
        "numbers for text": lambda t: with_column(t, "algorithm", [1.0] * len(t)),
        "truth for numbers": lambda t: with_column(t, "error", [True] * len(t)),
        "lists for numbers": lambda t: with_column(t, "error", [[1.0]] * len(t)),
        "structures for numbers": lambda t: with_column(t, "error", [{"a": {"b": [1]}}] * len(t)),
        "bytes for text": lambda t: with_column(t, "algorithm", [b"\xff"] * len(t)),
        "days for numbers": lambda t: with_column(t, "error", np.arange(len(t)).astype("datetime64[D]")),
        "decimals for numbers": lambda t: with_column(t, "error", pa.array([1] * len(t)).cast(pa.decimal128(20))),
        "categories for text": lambda t: with_column(
            t, "algorithm", t["algorithm"].combine_chunks().dictionary_encode()
        ),
        "nan": lambda t: with_column(t, "error", [float("nan")] * len(t)),
        "infinity": lambda t: with_column(t, "error", [float("inf")] * len(t)),
        "gaps in numbers": lambda t: with_column(t, "error", [None, *t["error"].to_pylist()[1:]]),
        "gaps in text": lambda t: with_column(t, "algorithm", [None, *t["algorithm"].to_pylist()[1:]]),
        "long labels": lambda t: with_column(t, "algorithm", ["x" * 10**6] * len(t)),
        "escapes": lambda t: with_column(t, "algorithm", [ESCAPE] * len(t)),
    }
    changes |= {
        "other labels": lambda t: with_column(t, "algorithm", ["you"] * len(t)),
        "another's frame": lambda t: with_column(t, "algorithm", ["="] * len(t)).replace_schema_metadata(
            {"pandas": "{"}
        ),
    }
    # As a table it could be ours, and nobody can know that it is this one which does not fit the others.
    unfit: Callable[[pa.Table], pa.Table] = lambda t: with_column(t, "steps", [7] * len(t))  # noqa: E731
    raw: dict[str, Callable[[bytes], bytes]] = {
        "empty": lambda data: b"",
        "text": lambda data: b"algorithm,error\nte,=1\n",
        "its magic alone": lambda data: b"PAR1PAR1",
        "a lying footer": lambda data: data[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1",
        "cut": lambda data: data[: len(data) // 2],
        "zeros in the middle": lambda data: data[:200] + bytes(200) + data[400:],
        "very many rows": lambda data: many_rows(200_000_000),
    }

    def table(place: Place) -> Path:
        return place.table

    def one_bit(place: Place) -> None:
        data = place.table.read_bytes()
        place.table.write_bytes(bytes([data[0] ^ 1]) + data[1:])

    return [
        *(Damage(f"table: {name}", retabled(change)) for name, change in changes.items()),
        *(Damage(f"table: {name}", forged(change)) for name, change in raw.items()),
        Damage("table: other steps", retabled(unfit), heals=False),
        Damage("table: missing", lambda place: place.table.unlink()),
        Damage("table: one bit", one_bit),
        Damage("table: more at the end", lambda place: place.table.write_bytes(place.table.read_bytes() + b"x")),
        *wherever("table", table, contents=False),
    ]


def plans() -> list[Damage]:
    def plan(place: Place) -> Path:
        return place.plan

    def settings(**changes: Any) -> Do:
        return lambda place: edit(place.plan, settings=json.loads(place.plan.read_text())["settings"] | changes)

    def shards(change: Callable[[list[Any]], Any]) -> Do:
        return lambda place: edit(place.plan, shards=change(json.loads(place.plan.read_text())["shards"]))

    def each(**changes: Any) -> Do:
        return shards(lambda found: [shard | changes for shard in found])

    odd: dict[str, Do] = {
        "no settings": edited(plan, drop="settings"),
        "no shards": edited(plan, drop="shards"),
        "list of settings": edited(plan, settings=[1]),
        "a setting more": settings(**{ESCAPE: 1}),
        "a setting less": edited(plan, settings={"states": 10}),
        "text for a number": settings(states="10"),
        "truth for a number": settings(states=True),
        "list for a number": settings(states=[10]),
        "object for a number": settings(states={"n": 1}),
        "infinite setting": settings(discount=float("inf")),
        "very large setting": settings(problems=10**30),
        "negative setting": settings(steps=[-1, 2]),
        "no entries": settings(steps=[]),
        "shards in an object": shards(lambda found: {"0": found[0]}),
        "shards empty": shards(lambda found: []),
        "shards of text": shards(lambda found: ["x"] * 3),
        "shards of something": shards(lambda found: [{"a": 1}]),
        "a shard less": shards(lambda found: found[1:]),
        "shards many times": shards(lambda found: found * 500),
        "shards of another experiment": each(experiment="ads"),
        "shards elsewhere": each(experiment="../../../elsewhere"),
        "shards of another version": each(version=9),
        "shards from another seed": each(seed=1),
        "shards of other parts": each(part={"algorithm": ESCAPE}),
        "shards with nan": each(settings={"a": float("nan")}),
    }
    return [*wherever("plan", plan), *(Damage(f"plan: {name}", do) for name, do in odd.items())]


def folders() -> list[Damage]:
    def folder(place: Place) -> Path:
        return place.folder

    def marker(place: Place) -> Path:
        return place.marker

    def beside(*names: str | bytes) -> Do:
        def add(place: Place) -> None:
            for name in names:
                (place.folder / os.fsdecode(name)).write_text("{}")

        return add

    escape = ESCAPE.strip()
    return [
        Damage("folder: a file", instead(folder, Path.touch), heals=False),
        Damage("folder: a loop", instead(folder, loop), heals=False),
        Damage("folder: missing", lambda place: shutil.rmtree(place.folder), "harmless"),
        Damage("folder: other files", beside("thesis.tex", escape, b"\xff\xfe", "a.parquet", "b.json"), "harmless"),
        Damage("folder: odd plans", beside("quick-²", "quick-².plan.json", "quick--1.plan.json"), "harmless"),
        Damage(
            "folder: odd seeds", beside("quick-007.plan.json", "quick-1_0.plan.json", "quick-.plan.json"), "harmless"
        ),
        Damage("folder: damaged plans", beside("paper-3.plan.json", f"paper-{'9' * 200}.plan.json")),
        Damage("root: other files", lambda place: (place.root / escape).mkdir(), "harmless"),
        Damage("marker: another format", holding(marker, b'{"format": 99}'), "refused"),
        Damage("marker: an odd format", edited(marker, format=ESCAPE * 100), "refused"),
        *wherever("marker", marker, "refused"),
    ]


DAMAGES = [*manifests(), *tables(), *plans(), *folders()]
