"""Simulated settings whose results are kept, a file each: stop any time, and the same command computes what is missing."""

from __future__ import annotations

import argparse
import json
import sys
import time
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from maxmean.storage import write_whole


def arguments(about: str | None, repetitions: str, usual: int, folder: str) -> argparse.ArgumentParser:
    """What such a benchmark can be told; ``repetitions`` is what it calls its simulated data."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(f"--{repetitions}", type=int, default=usual, help="of each setting (%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="settings at once (%(default)s)")
    parser.add_argument("--only", default="", help="settings whose names contain this")
    parser.add_argument("--out", type=Path, default=Path(folder), help="where they are kept (%(default)s)")
    return parser


def file_of(out: Path, name: str, ending: str = ".json") -> Path:
    """Where the results of a setting are kept."""
    return out / f"{zlib.crc32(name.encode()):08x}{ending}"


def keep(found: dict[str, Any], out: Path, ending: str = ".json") -> None:
    """Keep what was found of a setting, which it names."""
    write_whole(file_of(out, found["setting"], ending), json.dumps(found, indent=1).encode())


def read(out: Path, names: Iterable[str], ending: str = ".json") -> dict[str, dict[str, Any]]:
    """What is there, by setting."""
    paths = {name: file_of(out, name, ending) for name in names}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def complete(
    compute: Callable[..., None], names: Iterable[str], asked: argparse.Namespace, *others: Any, ending: str = ".json"
) -> None:
    """Compute the settings that are missing: ``compute(name, *others)`` keeps each."""
    asked.out.mkdir(parents=True, exist_ok=True)
    missing = [name for name in names if asked.only in name and not file_of(asked.out, name, ending).exists()]
    begin = time.monotonic()
    with ProcessPoolExecutor(asked.workers) as pool:
        under_way = {pool.submit(compute, name, *others): name for name in missing}
        for done, each in enumerate(as_completed(under_way), start=1):
            each.result()
            left = (time.monotonic() - begin) / done * (len(missing) - done)
            said = f"[{done} of {len(missing)}, {left / 60:.0f} min left] {under_way[each]}"
            print(said, file=sys.stderr, flush=True)
