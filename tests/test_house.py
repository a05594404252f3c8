"""The rooms of the house, and which of them may know which: imports point downwards."""

from __future__ import annotations

import ast
from pathlib import Path

import maxmean

ROOT = Path(maxmean.__file__).parent

FLOORS = (
    ("errors", "luck"),
    ("cluster", "lazy", "storage", "untrusted"),
    ("drawing",),
    ("mev",),
    ("envs", "tabular"),
    ("deep",),
    ("lab",),
    ("commands",),
    ("cli",),
)
"""From the ground up. A room knows those below it, and none beside or above it."""


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


def floor(room: str) -> int:
    return next(height for height, rooms in enumerate(FLOORS) if room in rooms)


def test_imports_point_downwards() -> None:
    """Between the rooms; what holds inside ``deep`` is in tests/deep/test_deep_rooms.py."""
    rising = []
    for path in sorted(ROOT.rglob("*.py")):
        here = path.relative_to(ROOT).with_suffix("").parts
        rooms = {there[0] for there in imports(path) if there} & {room for rooms in FLOORS for room in rooms}
        if here != ("__init__",):
            rising += [
                f"{'/'.join(here)} imports {room}" for room in rooms - {here[0]} if floor(room) >= floor(here[0])
            ]
    assert rising == []


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
