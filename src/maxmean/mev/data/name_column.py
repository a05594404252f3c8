"""A column of names: of options, or of the units that rows belong to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError
from .columns import Rows, plain_array
from .limits import MOST_OPTIONS, TOO_MANY


@dataclass
class Names:
    """A column of names, read batch by batch: each becomes a number, in order of first appearance; blanks around it go."""

    column: str
    most: int | None = MOST_OPTIONS
    only: Collection[str] = ()
    """The names that count; none: all."""
    number: dict[str, int] = field(default_factory=dict)
    spaced: dict[str, str] = field(default_factory=dict)
    """Names as they were written, with blanks around them, by what was made of them."""
    exact: set[str] = field(default_factory=set)
    """Names that were also written without."""

    def read(self, column: pa.Array) -> np.ndarray:
        """Their numbers; -1 where there is no name, -2 where it does not count."""
        kind = column.type
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
            raise DataError(f"column {self.column!r} holds bytes ({kind}), which name no option; store them as text")
        try:
            encoded = column.dictionary_encode()  # its labels come in order of appearance
            labels = [None if label is None else str(label) for label in encoded.dictionary.to_pylist()]
        except (pa.ArrowException, ValueError, OverflowError):  # a date before our calendar, for instance
            raise DataError(
                f"column {self.column!r} holds values of type {kind} that name no option; store them as text"
            ) from None
        lookup = np.array([self._code(label) for label in labels], dtype=np.int32)
        if not encoded.null_count:
            return lookup[plain_array(encoded.indices)]
        places = pc.fill_null(encoded.indices, len(labels)).to_numpy(zero_copy_only=False)
        return np.append(lookup, np.int32(-1))[places]

    def _code(self, label: str | None) -> int:
        name = "" if label is None else label.strip()
        if not name:
            return -1
        if self.only and name not in self.only:
            return -2
        if name == label:
            self.exact.add(name)
        else:
            self.spaced.setdefault(name, str(label))
        return self.add(name)

    def add(self, name: str) -> int:
        code = self.number.setdefault(name, len(self.number))
        if self.most is not None and code >= self.most:
            raise DataError(TOO_MANY)
        return code

    def refuse_repeated(self, codes: np.ndarray, rows: Rows) -> None:
        """Refuse a name that two rows have."""
        order = np.argsort(codes, kind="stable")
        for k in np.flatnonzero(np.diff(codes[order]) == 0)[:1]:
            first, second = order[k], order[k + 1]
            name = list(self.number)[codes[second]]
            raise DataError(
                f"row {rows[second]}: {self.column} {name!r} was in row {rows[first]} already: a unit has one row of a wide table"
            )
