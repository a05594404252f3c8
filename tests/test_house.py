"""The rooms of the house, and which of them may know which: imports point downwards."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import maxmean

ROOT = Path(maxmean.__file__).parent

FLOORS = (
    ("errors",),
    ("drawing", "lazy", "storage", "untrusted"),
    ("mev",),
    ("envs", "tabular"),
    ("deep",),
    ("lab",),
    ("commands",),
    ("cli",),
)
"""From the ground up. A room knows those below it, and none beside or above it."""

DEEP = (
    ("checks", "registry"),
    ("exploration", "networks", "settings", "targets"),
    ("agents",),
    ("core",),
    ("device", "host"),
)
"""The same inside ``deep``. What stays of a training (records, policies, checkpoints) stands beside them, on no floor."""


def imports(path: Path) -> set[tuple[str, ...]]:
    """The modules of ours that a file imports, as paths below the package; imports for type checkers alone do not count."""
    here = path.relative_to(ROOT).with_suffix("").parts
    found = set()
    tree = ast.parse(path.read_text())
    for block in ast.walk(tree):
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            block.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here[: len(here) - node.level] + tuple((node.module or "").split(".") if node.module else ())
            found |= {(*base, alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("maxmean."):
            found |= {(*str(node.module).split(".")[1:], alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {tuple(alias.name.split(".")[1:]) for alias in node.names if alias.name.startswith("maxmean.")}
    return found


def floor(floors: tuple[tuple[str, ...], ...], room: str) -> int | None:
    return next((height for height, rooms in enumerate(floors) if room in rooms), None)


def rising(floors: tuple[tuple[str, ...], ...], below: tuple[str, ...] = ()) -> list[str]:
    """What is imported from above or from beside, in words."""
    found = []
    for path in sorted(ROOT.joinpath(*below).rglob("*.py")):
        here = path.relative_to(ROOT).with_suffix("").parts
        own = floor(floors, here[len(below)])
        for there in imports(path):
            if own is None or there[: len(below)] != below or len(there) <= len(below):
                continue
            other = floor(floors, there[len(below)])
            if other is not None and there[len(below)] != here[len(below)] and other >= own:
                found.append(f"{'/'.join(here)} imports {'.'.join(there)}")
    return found


@pytest.mark.parametrize(("floors", "below"), [(FLOORS, ()), (DEEP, ("deep",))], ids=["the house", "deep"])
def test_imports_point_downwards(floors: tuple[tuple[str, ...], ...], below: tuple[str, ...]) -> None:
    assert rising(floors, below) == []


def test_every_room_has_its_floor() -> None:
    rooms = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert rooms - {"__init__", "__pycache__"} == {room for rooms in FLOORS for room in rooms}


def test_no_two_classes_share_a_name() -> None:
    """A name means one thing; experiments' ``Settings`` and games' ``Outcomes`` are told by where they stand."""
    seen: dict[str, list[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                seen.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    twice = {name: places for name, places in seen.items() if len(places) > 1}
    assert {name: places for name, places in twice.items() if name not in ("Settings", "Outcomes")} == {}
