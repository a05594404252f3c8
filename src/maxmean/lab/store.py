"""Where results live: a directory of Parquet tables, each with a JSON manifest, written whole or not at all.

``DIR/EXPERIMENT/KEY.parquet`` is a shard's table and ``KEY.json`` its manifest: content, versions and the table's checksum.
The manifest is written last, so a shard exists once its manifest does. ``DIR/EXPERIMENT/SCALE-SEED.plan.json`` lists the
shards of a run at that scale from that seed, and ``DIR/EXPERIMENT/KEY.state`` is where a long shard keeps checkpoints on its
way. Files only ever appear whole, so any number of processes may work on one directory;
a shard that keeps checkpoints on its way is trained by one of them at a time.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..storage import half_written, refuse_links, sha256, sweep
from .experiment import Shard
from .files import LARGEST_JSON, DamagedError, StoreError, read_bytes, read_object, said, unwritable, write_file
from .tables import TableError, TableLayout, read_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DamagedError", "Store", "StoreError", "StudyPlan", "holds_results", "software"]

FORMAT = 1
MOST_HELD = 1 << 30
"""How many bytes of tables are held between finding that they are there and using them."""
_MARKER = "maxmean-results.json"
_LONGEST = 1e12
"""More seconds than a shard can have taken."""
_MOST_RUNS = 1 << 53
"""More runs than a directory can have seen."""


@dataclass(frozen=True)
class StudyPlan:
    """What makes up an experiment at a scale from a seed: all its settings, and its shards."""

    settings: dict[str, Any]
    shards: list[Shard]


def _refuse_others(root: Path) -> None:
    """Refuse a directory that holds other files than ours, or is none."""
    try:
        if all(half_written(path) for path in root.iterdir()):
            return
    except OSError as error:
        raise StoreError(f"cannot use {str(root)!r}: {said(error)}") from None
    raise StoreError(f"{str(root)!r} holds other files: choose an empty or a new directory with --out")


class Store:
    """A directory of results."""

    def __init__(self, root: Path | str, *, create: bool = True) -> None:
        self.root = Path(root)
        self._held: dict[str, tuple[pd.DataFrame, dict[str, Any]]] = {}
        self._room = MOST_HELD
        try:
            if create:
                self.root.mkdir(parents=True, exist_ok=True)
            self._check_format(create)
        except OSError as error:
            raise StoreError(f"cannot use {str(self.root)!r}: {said(error)}") from None

    @classmethod
    def found(cls, root: Path | str) -> Store | None:
        """The results in a directory, which is left as it is; None if there are none yet and it could be used for them."""
        if os.path.lexists(Path(root) / _MARKER):
            return cls(root, create=False)
        if os.path.lexists(root):
            _refuse_others(Path(root))
        return None

    def _check_format(self, create: bool) -> None:
        marker = self.root / _MARKER
        if os.path.lexists(marker):
            found = read_object(marker).get("format")
            if found != FORMAT:
                theirs = found if isinstance(found, int) else "unknown"
                raise StoreError(
                    f"{str(self.root)!r} was made by another version of maxmean (format {theirs}, this one writes {FORMAT}): "
                    "choose another directory with --out"
                )
        elif not create:
            raise StoreError(
                f"there are no results in {str(self.root)!r}: make some with 'maxmean reproduce --out DIR'"
            )
        else:
            _refuse_others(self.root)
            write_file(marker, _json({"format": FORMAT, "maxmean": __version__}), self.root)
        if create:
            for folder in (
                self.root,
                *(path for path in self.root.iterdir() if path.is_dir() and not path.is_symlink()),
            ):
                sweep(folder)

    def has(self, shard: Shard, layout: TableLayout | None = None) -> bool:
        """Whether the shard is there and can be used; raises :class:`DamagedError` if it is there and cannot.

        To know that, it is read: the table is held until somebody wants it, as far as there is room for it.
        """
        found = self.find(shard, layout)
        if found is None:
            return False
        size = _memory(found[0])
        if size <= self._room:
            self._held[shard.key] = found
            self._room -= size
        return True

    def find(self, shard: Shard, layout: TableLayout | None = None) -> tuple[pd.DataFrame, dict[str, Any]] | None:
        """As ``read``, or None if the shard is not there."""
        held = self._let_go(shard)
        if held is not None:
            return held
        return self.read(shard, layout) if os.path.lexists(self._path(shard, "json")) else None

    def _let_go(self, shard: Shard) -> tuple[pd.DataFrame, dict[str, Any]] | None:
        held = self._held.pop(shard.key, None)
        if held is not None:
            self._room += _memory(held[0])
        return held

    def write(self, shard: Shard, table: bytes, seconds: float, packages: Sequence[str] = ()) -> None:
        """Keep a shard's table, with the versions of the core and of ``packages``."""
        self._let_go(shard)
        manifest = {
            **asdict(shard),
            "sha256": sha256([table]),
            "seconds": round(seconds, 3),
            "versions": software(packages),
        }
        write_file(self._path(shard, "parquet"), table, self.root)
        write_file(self._path(shard, "json"), _json(manifest), self.root)

    def read(self, shard: Shard, layout: TableLayout | None = None) -> tuple[pd.DataFrame, dict[str, Any]]:
        """A shard's table, as its layout wants it, and its manifest."""
        table, manifest = self._verified(shard)
        try:
            return read_table(table, layout, shard.part), manifest
        except TableError as error:
            raise DamagedError(f"{str(self._path(shard, 'parquet'))!r} cannot be used: {error}") from None

    def remove(self, shard: Shard) -> None:
        """Forget a shard. The manifest goes first: without it the table does not count."""
        self._let_go(shard)
        for kind in ("json", "parquet"):
            path = self._path(shard, kind)
            try:
                refuse_links(path.parent, self.root)
                path.unlink(missing_ok=True)
            except OSError as error:
                raise unwritable(error, path) from None

    def write_plan(self, experiment: str, scale: str, plan: StudyPlan) -> None:
        """Note which shards make up an experiment at a scale from a seed."""
        seed = plan.shards[0].seed
        content = _json({"scale": scale, "seed": seed, "run": self._next_run(experiment, scale, seed), **asdict(plan)})
        if len(content) > LARGEST_JSON:
            raise StoreError(
                f"{experiment} has too many shards for one plan, {len(plan.shards):,}: choose fewer settings"
            )
        write_file(self.plan_path(experiment, scale, seed), content, self.root)

    def read_plan(self, experiment: str, scale: str, seed: int) -> StudyPlan | None:
        """What makes up an experiment at a scale from a seed; None if it was never run here."""
        path = self.plan_path(experiment, scale, seed)
        if not os.path.lexists(path):
            return None
        content = read_object(path)
        settings, shards = content.get("settings"), content.get("shards")
        if not isinstance(settings, dict) or not isinstance(shards, list) or not shards:
            raise DamagedError(f"{str(path)!r} is damaged: it is no list of shards")
        if not all(_is_shard(shard, experiment, seed) for shard in shards):
            raise DamagedError(
                f"{str(path)!r} is damaged: not all it lists are shards of {experiment} from seed {seed}"
            )
        return StudyPlan(settings, [Shard(**shard) for shard in shards])

    def seeds(self, experiment: str, scale: str) -> list[int]:
        """The seeds that an experiment was run from at a scale, the latest run first.

        Plans are numbered as they are written: what the clock said then does not matter.
        """
        return sorted(self._planned(experiment, scale), key=lambda seed: (-self._run(experiment, scale, seed), seed))

    def _planned(self, experiment: str, scale: str) -> set[int]:
        """The seeds of the plans at a scale, whatever is in them."""
        folder = self.root / experiment
        try:
            names = [re.fullmatch(rf"{scale}-(0|[1-9][0-9]*)\.plan\.json", name) for name in os.listdir(folder)]
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise DamagedError(f"{str(folder)!r} cannot be read: {said(error)}") from None
        return {int(name[1]) for name in names if name}

    def _next_run(self, experiment: str, scale: str, seed: int) -> int:
        """The number that makes a plan the latest, which is its own if it is that already."""
        with suppress(DamagedError):  # of a folder that is none, which cannot be written to either
            others = [self._run(experiment, scale, each) for each in self._planned(experiment, scale) - {seed}]
            return max(self._run(experiment, scale, seed), 1 + max(others, default=0))
        return 1

    def _run(self, experiment: str, scale: str, seed: int) -> int:
        """The number of a plan: the larger, the later; 0 if there is none, or none in it."""
        try:
            run = read_object(self.plan_path(experiment, scale, seed)).get("run")
        except DamagedError:
            return 0
        return run if isinstance(run, int) and 0 < run < _MOST_RUNS else 0

    def plan_path(self, experiment: str, scale: str, seed: int) -> Path:
        """Where the shards of an experiment at a scale from a seed are listed."""
        return self.root / experiment / f"{scale}-{seed}.plan.json"

    def folder(self, shard: Shard) -> Path:
        """Where a long shard keeps its state while it is under way; nothing is there before and after."""
        path = self.root / shard.experiment / f"{shard.key}.state"
        try:
            if path.is_symlink():  # a stranger's: it could lead to any training of the user's
                path.unlink()
        except OSError as error:
            raise unwritable(error, path) from None
        return path

    def _path(self, shard: Shard, kind: str) -> Path:
        return self.root / shard.experiment / f"{shard.key}.{kind}"

    def _verified(self, shard: Shard) -> tuple[bytes, dict[str, Any]]:
        path = self._path(shard, "parquet")
        manifest = read_object(self._path(shard, "json"))
        if not _is_manifest(manifest):
            raise DamagedError(f"{str(self._path(shard, 'json'))!r} is damaged: it is no manifest")
        own = json.loads(json.dumps(asdict(shard)))
        if {name: manifest.get(name) for name in own} != own:
            raise DamagedError(f"{str(self._path(shard, 'json'))!r} is damaged: it is another shard's")
        if not os.path.lexists(path):
            raise DamagedError(f"{str(path)!r} is missing beside its manifest")
        table = read_bytes(path)
        if sha256([table]) != manifest.get("sha256"):
            raise DamagedError(f"{str(path)!r} is damaged: its checksum is not the one in its manifest")
        return table, manifest


def holds_results(folder: str) -> bool:
    """Whether a directory is a store."""
    return os.path.lexists(os.path.join(folder, _MARKER))


def software(packages: Sequence[str] = ()) -> dict[str, str]:
    """The versions that a result may depend on: the core's, and those of some packages."""
    names = ("numpy", "scipy", "pandas", "pyarrow", *packages)
    return {"maxmean": __version__, "python": platform.python_version(), **{name: version(name) for name in names}}


def _memory(table: pd.DataFrame) -> int:
    """The bytes that a table takes, texts by their addresses."""
    return int(table.memory_usage().sum())


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


def _is_shard(content: Any, experiment: str, seed: int) -> bool:
    """Whether it describes a shard of this experiment from this seed: nothing else leads to a file."""
    kinds = {"experiment": str, "version": int, "settings": dict, "part": dict, "seed": int}
    if not isinstance(content, dict) or set(content) != set(kinds):
        return False
    if not all(isinstance(content[name], kind) for name, kind in kinds.items()):
        return False
    return bool(content["experiment"] == experiment and content["seed"] == seed)


def _is_manifest(content: dict[str, Any]) -> bool:
    seconds, versions = content.get("seconds"), content.get("versions")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= _LONGEST:
        return False
    return isinstance(versions, dict) and all(isinstance(number, str) for number in versions.values())
