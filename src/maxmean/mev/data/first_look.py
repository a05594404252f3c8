"""A first look at a table: its columns, by what they hold."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ..errors import DataError
from .columns import kind_of
from .layout import listed
from .options import repeated

INDEX = b"maxmean.index"
"""Metadata key of a column that was the index of a DataFrame: it names the options if no other column does."""


@dataclass(frozen=True)
class FirstLook:
    """The columns that are looked at, by kind; ``free`` ones play no role yet."""

    batch: pa.RecordBatch
    said: Mapping[str, str]
    kinds: dict[str, str] = field(default_factory=dict)
    index: str | None = None

    @classmethod
    def of(cls, batch: pa.RecordBatch, said: Mapping[str, str]) -> FirstLook:
        index = next((each.name for each in batch.schema if INDEX in (each.metadata or {})), None)
        # A column without a name is a saved index, or what follows a comma at the end of a line.
        names = [name for name in batch.schema.names if (name.strip() and name != index) or name in said.values()]
        kinds = {name: kind_of(batch.column(name), batch.schema.field(name)) for name in names}
        return cls(batch, said, kinds, None if index in said.values() else index)

    @property
    def names(self) -> list[str]:
        return list(self.kinds)

    def of_kind(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind in kinds and name not in self.said.values()]

    def distinct(self, name: str) -> int:
        return len(self.batch.column(name).unique())

    @property
    def numeric(self) -> list[str]:
        return self.of_kind("number")


def check_names(names: Sequence[str], said: Mapping[str, str]) -> None:
    if (twice := repeated(filter(str.strip, names))) is not None:
        raise DataError(f"column {twice!r} appears twice")
    taken: dict[str, str] = {}
    for role, name in said.items():
        check_column(name, names)
        if name in taken:
            raise DataError(f"column {name!r} cannot be both {taken[name]} and {role}")
        taken[name] = role


def check_column(name: str, names: Sequence[str]) -> None:
    """Refuse a name that no column has."""
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else f" (there are {listed(names)})"
        raise DataError(f"there is no column {name!r}{hint}")
