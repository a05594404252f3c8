"""Files as a stranger might send them: changed by hand, with a checksum that is right."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from maxmean.deep import policy
from maxmean.deep.host import saving

NASTY: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**30,
    1.5,
    float("nan"),
    float("inf"),
    "x",
    "",
    [],
    [1, "x"],
    {},
    {"a": {}},
)
"""Values that stand where something else should."""


def forge_agent(
    path: Path, change: Callable[[dict[str, Any]], Any], arrays: dict[str, np.ndarray | None] | None = None
) -> None:
    """Change what a saved agent says, and some of its arrays; None takes one away."""
    with safe_open(path, "numpy") as file:
        text = json.loads(file.metadata()["maxmean"])
    changed = change(text)
    text = text if changed is None else changed
    found = {name: each for name, each in (load_file(path) | (arrays or {})).items() if each is not None}
    said = text if isinstance(text, str) else json.dumps(text)
    save_file(found, path, {"maxmean": said, "sha256": saving.checksum(said, saving.in_memory(found))})


def forge_policy(
    path: Path, change: Callable[[dict[str, Any]], Any], arrays: dict[str, np.ndarray | None] | None = None
) -> None:
    """The same for a policy, whose text is beside it."""
    beside = path.with_suffix(".json")
    text = json.loads(beside.read_text())
    changed = change(text)
    text = text if changed is None else changed
    if arrays:
        save_file({name: each for name, each in (load_file(path) | arrays).items() if each is not None}, path)
    if isinstance(text, dict):
        text.pop("sha256", None)
        text["sha256"] = policy._checksum(path.read_bytes(), text)
    beside.write_text(text if isinstance(text, str) else json.dumps(text))


def put(where: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Puts a value into nested dicts and lists, at a path such as ``about/world/shape``."""

    def change(text: dict[str, Any]) -> None:
        *way, last = where.split("/")
        here: Any = text
        for name in way:
            here = here[int(name)] if isinstance(here, list) else here[name]
        here[int(last) if isinstance(here, list) else last] = value

    return change


def drop(where: str) -> Callable[[dict[str, Any]], None]:
    """Takes the entry at such a path away."""

    def change(text: dict[str, Any]) -> None:
        *way, last = where.split("/")
        here: Any = text
        for name in way:
            here = here[int(name)] if isinstance(here, list) else here[name]
        del here[int(last) if isinstance(here, list) else last]

    return change


def entries(text: Any, where: str = "") -> Iterator[str]:
    """The paths of all entries of a JSON text; of a list, its first."""
    inner = text.items() if isinstance(text, dict) else enumerate(text[:1]) if isinstance(text, list) else ()
    for name, value in inner:
        yield f"{where}{name}"
        yield from entries(value, f"{where}{name}/")


BEGIN = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork")
"""What Python says when a process begins."""
_heard: list[str] | None = None


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if _heard is not None and event in BEGIN:
        _heard.append(f"{event} {arguments[0]}")


sys.addaudithook(_hear)  # it cannot be taken away again, and says nothing unless somebody listens


@contextmanager
def nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails if a module is imported, be it one that lies in wait in the working directory, a process begun or a file written.

    What reading a file needs must have been imported before: read one that is in order first.
    """
    global _heard
    trap = tmp_path / "trap"
    trap.mkdir()
    for name in ("evil", "conftest", "test_evil", "sitecustomize"):
        (trap / f"{name}.py").write_text("from pathlib import Path\nPath(__file__).with_suffix('.sprung').touch()\n")
    monkeypatch.chdir(trap)
    monkeypatch.syspath_prepend(str(trap))
    modules, files, _heard = set(sys.modules), sorted(tmp_path.rglob("*")), []
    try:
        yield
        heard = _heard
    finally:
        _heard = None
    assert set(sys.modules) == modules
    assert sorted(tmp_path.rglob("*")) == files
    assert heard == []


def linked(files: Iterable[Path], aside: Path) -> dict[Path, tuple[bytes, int]]:
    """Put links in the place of files, to copies that lie in a new folder aside; what those hold, and who may read them."""
    aside.mkdir()
    found = {}
    for i, path in enumerate(sorted(files)):
        copy = aside / f"{i}-{path.name}"
        path.rename(copy)
        path.symlink_to(copy)
        copy.chmod(0o640)
        found[copy] = copy.read_bytes(), copy.stat().st_mode
    return found


def untouched(found: dict[Path, tuple[bytes, int]]) -> bool:
    """Whether what :func:`linked` put aside is as it was."""
    return {path: (path.read_bytes(), path.stat().st_mode) for path in found} == found
