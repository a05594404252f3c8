"""Where results live: a directory of Parquet tables, each with a JSON manifest, written whole or not at all.

``DIR/EXPERIMENT/KEY.parquet`` is a shard's table and ``KEY.json`` its manifest: content, versions and the table's checksum.
The manifest is written last, so a shard exists once its manifest does. ``DIR/EXPERIMENT/SCALE-SEED.plan.json`` lists the
shards of a run at that scale from that seed, and ``DIR/EXPERIMENT/KEY.state`` is where a long shard keeps checkpoints on its
way. Files only ever appear whole, so any number of processes may work on one directory;
a shard that keeps checkpoints on its way is trained by one of them at a time.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..whole import half_written, sweep, write_whole
from .experiment import Shard

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1
_MARKER = "maxmean-results.json"


class StoreError(Exception):
    """A directory that cannot be used as it is; the message says what to do."""


class DamagedError(StoreError):
    """A file that is not what its manifest says."""


@dataclass(frozen=True)
class Plan:
    """What makes up an experiment at a scale from a seed: all its settings, and its shards."""

    settings: dict[str, Any]
    shards: list[Shard]


class Store:
    """A directory of results."""

    def __init__(self, root: Path | str, *, create: bool = True) -> None:
        self.root = Path(root)
        try:
            if create:
                self.root.mkdir(parents=True, exist_ok=True)
            self._check_format(create)
        except OSError as error:
            raise _clear(error, self.root) from None

    def _check_format(self, create: bool) -> None:
        marker = self.root / _MARKER
        if marker.exists():
            found = _json(marker).get("format")
            if found != FORMAT:
                raise StoreError(
                    f"{str(self.root)!r} was made by another version of maxmean (format {found}, this one writes {FORMAT}): "
                    "choose another directory with --out"
                )
        elif not create:
            raise StoreError(
                f"there are no results in {str(self.root)!r}: make some with 'maxmean reproduce --out DIR'"
            )
        elif not all(half_written(path) for path in self.root.iterdir()):
            raise StoreError(f"{str(self.root)!r} holds other files: choose an empty or a new directory with --out")
        else:
            self._write(marker, {"format": FORMAT, "maxmean": __version__})
        if create:
            for folder in (self.root, *(path for path in self.root.iterdir() if path.is_dir())):
                sweep(folder)

    def has(self, shard: Shard) -> bool:
        """Whether the shard is there and undamaged; raises :class:`DamagedError` if it is there and damaged."""
        if not self._path(shard, "json").exists():
            return False
        self._verified(shard)
        return True

    def write(self, shard: Shard, table: bytes, seconds: float, packages: Sequence[str] = ()) -> None:
        """Keep a shard's table, with the versions of the core and of ``packages``."""
        manifest = {
            **asdict(shard),
            "sha256": hashlib.sha256(table).hexdigest(),
            "seconds": round(seconds, 3),
            "versions": software(packages),
        }
        try:
            self._path(shard, "parquet").parent.mkdir(exist_ok=True)
            write_whole(self._path(shard, "parquet"), table)
            self._write(self._path(shard, "json"), manifest)
        except OSError as error:
            raise _clear(error, self.root) from None

    def read(self, shard: Shard) -> tuple[pd.DataFrame, dict[str, Any]]:
        """A shard's table and manifest."""
        import pyarrow.parquet

        table, manifest = self._verified(shard)
        return pyarrow.parquet.read_table(io.BytesIO(table)).to_pandas(), manifest

    def remove(self, shard: Shard) -> None:
        """Forget a shard. The manifest goes first: without it the table does not count."""
        for kind in ("json", "parquet"):
            self._path(shard, kind).unlink(missing_ok=True)

    def write_plan(self, experiment: str, scale: str, plan: Plan) -> None:
        """Note which shards make up an experiment at a scale from a seed."""
        seed = plan.shards[0].seed
        try:
            (self.root / experiment).mkdir(exist_ok=True)
            self._write(
                self.root / experiment / f"{scale}-{seed}.plan.json", {"scale": scale, "seed": seed, **asdict(plan)}
            )
        except OSError as error:
            raise _clear(error, self.root) from None

    def read_plan(self, experiment: str, scale: str, seed: int) -> Plan | None:
        """What makes up an experiment at a scale from a seed; None if it was never run here."""
        path = self.root / experiment / f"{scale}-{seed}.plan.json"
        if not path.exists():
            return None
        content = _json(path)
        try:
            return Plan(dict(content["settings"]), [Shard(**shard) for shard in content["shards"]])
        except (KeyError, TypeError):
            raise DamagedError(f"{str(path)!r} is damaged: it is no list of shards") from None

    def seeds(self, experiment: str, scale: str) -> list[int]:
        """The seeds that an experiment was run from at a scale, the latest run first."""
        plans = sorted((self.root / experiment).glob(f"{scale}-*.plan.json"), key=lambda path: -path.stat().st_mtime)
        numbers = [path.name.removeprefix(f"{scale}-").removesuffix(".plan.json") for path in plans]
        return [int(number) for number in numbers if number.isdigit()]

    def folder(self, shard: Shard) -> Path:
        """Where a long shard keeps its state while it is under way; nothing is there before and after."""
        return self.root / shard.experiment / f"{shard.key}.state"

    def _path(self, shard: Shard, kind: str) -> Path:
        return self.root / shard.experiment / f"{shard.key}.{kind}"

    def _verified(self, shard: Shard) -> tuple[bytes, dict[str, Any]]:
        path = self._path(shard, "parquet")
        manifest = _json(self._path(shard, "json"))
        if not {"sha256", "versions"} <= set(manifest) or not isinstance(manifest.get("seconds"), int | float):
            raise DamagedError(f"{str(self._path(shard, 'json'))!r} is damaged: it is no manifest")
        own = json.loads(json.dumps(asdict(shard)))
        if {name: manifest.get(name) for name in own} != own:
            raise DamagedError(f"{str(self._path(shard, 'json'))!r} is damaged: it is another shard's")
        try:
            table = path.read_bytes()
        except FileNotFoundError:
            raise DamagedError(f"{str(path)!r} is missing beside its manifest") from None
        if hashlib.sha256(table).hexdigest() != manifest.get("sha256"):
            raise DamagedError(f"{str(path)!r} is damaged: its checksum is not the one in its manifest")
        return table, manifest

    @staticmethod
    def _write(path: Path, content: dict[str, Any]) -> None:
        write_whole(path, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode())


def software(packages: Sequence[str] = ()) -> dict[str, str]:
    """The versions that a result may depend on: the core's, and those of some packages."""
    names = ("numpy", "scipy", "pandas", "pyarrow", *packages)
    return {"maxmean": __version__, "python": platform.python_version(), **{name: version(name) for name in names}}


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (ValueError, OSError) as error:
        raise DamagedError(f"{str(path)!r} is damaged: {error}") from None
    if not isinstance(content, dict):
        raise DamagedError(f"{str(path)!r} is damaged: it holds no JSON object")
    return content


def _clear(error: OSError, root: Path) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreError(
            f"the disk of {str(root)!r} is full; what is finished is kept: make room and run the same command"
        )
    return StoreError(f"cannot use {str(root)!r}: {os.strerror(error.errno or 0)}")
