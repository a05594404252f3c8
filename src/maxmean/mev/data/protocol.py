"""What every shape of data offers to the estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ..arrays import Array, Rng


class Data(Protocol):
    """What every shape of data offers. The last axis runs over the options."""

    @property
    def means(self) -> Array: ...
    @property
    def variances(self) -> Array: ...
    @property
    def covariances(self) -> Array | None: ...
    def split(self, parts: int, rng: Rng) -> Array:
        """Means of ``parts`` disjoint random parts of each option's data, shape ``(parts, ..., M)``."""
        ...

    def resample(self, size: int, rng: np.random.Generator, parts: Sequence[int] = (), *, pairs: bool = True) -> Data:
        """``size`` bootstrap copies, on a new leading axis; ``parts`` are the splits that will be asked for.

        ``pairs`` says whether the copies' covariances will be: of thousands of options, they take most of the time.
        """
        ...

    def scaled(self, factor: float) -> Data:
        """The same data in other units."""
        ...
