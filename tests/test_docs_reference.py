"""The pages of the reference list what is public: all of every package's ``__all__``, and nothing that is not there."""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import maxmean
from maxmean.deep.registry import FUNCTIONS

PAGES = sorted((Path(__file__).parents[1] / "docs" / "api").glob("*.md"))
LISTED = [name for page in PAGES for name in re.findall(r"^::: (\S+)$", page.read_text(), flags=re.M)]
LISTED += [f"maxmean.{name}" for page in PAGES if "<!-- classes -->" in page.read_text() for name in FUNCTIONS]
ROOMS = ["maxmean", *(f"maxmean.{room.name}" for room in pkgutil.iter_modules(maxmean.__path__) if room.ispkg)]
PACKAGES = sorted({*ROOMS, *(name.rpartition(".")[0] for name in LISTED)})
"""The rooms, and whatever else a page takes a name from."""


@cache
def find(name: str) -> Any:
    """A module, or what a module calls so."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if not name.startswith(str(error.name)):
            raise
    package, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(package), attribute)


def public(package: str) -> list[str]:
    return [f"{package}.{name}" for name in getattr(importlib.import_module(package), "__all__", [])]


def shown(page_name: str) -> set[int]:
    """What stands on a page for an entry: itself and, of a module, what is defined there."""
    entry = find(page_name)
    if not isinstance(entry, ModuleType):
        return {id(entry)}
    return {id(value) for value in vars(entry).values() if getattr(value, "__module__", page_name) == page_name}


@pytest.mark.parametrize("package", [package for package in PACKAGES if public(package)])
def test_the_reference_lists_everything_public(package: str) -> None:
    """By this name, by another of the same thing, or with the module that it is defined in."""
    listed = set[int]().union(*map(shown, LISTED))
    missing = [
        name for name in public(package) if not isinstance(find(name), ModuleType) and id(find(name)) not in listed
    ]
    assert missing == []


def test_the_reference_lists_nothing_twice_and_nothing_private() -> None:
    assert len(LISTED) == len(set(LISTED))
    for name in LISTED:
        package = name.rpartition(".")[0]
        if not isinstance(find(name), ModuleType) and public(package):
            assert name in public(package)


def test_packages_are_listed_name_by_name() -> None:
    """A page of a whole package would show nothing of what the package only imports."""
    assert [name for name in LISTED if hasattr(find(name), "__path__")] == []
