"""What was measured in several settings: errors and squared errors, one number a block of runs, and intervals from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...claims import Measured
from ...experiment import Results
from .settings import REGION, Cell, Settings

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Blocks:
    """Errors and squared errors, shape ``(settings, estimators, blocks)``; estimators had the same data, block by block."""

    settings: Sequence[str | Cell]
    estimators: Sequence[str]
    errors: np.ndarray
    squares: np.ndarray

    @classmethod
    def of_six(cls, results: Results[Settings]) -> Blocks:
        """The six settings, without the centre."""
        names = list(results.settings.problems())[1:]
        return cls._of(results.table[results.table["problem"].isin(names)], ["problem"], names)

    @classmethod
    def of_region(cls, results: Results[Settings]) -> Blocks:
        """Every setting of the region."""
        return cls._of(results.rows(problem=REGION), [*Cell._fields], results.settings.region())

    @classmethod
    def _of(cls, rows: pd.DataFrame, keys: list[str], settings: Sequence[str | Cell]) -> Blocks:
        import pandas as pd

        estimators = list(rows["estimator"].unique())
        index = pd.MultiIndex.from_tuples([each if isinstance(each, Cell) else (each,) for each in settings])
        wide = rows.assign(block=rows.groupby([*keys, "estimator"], sort=False).cumcount())
        wide = wide.pivot(index=keys, columns=["estimator", "block"], values=["error", "squared"])
        wide = wide.reindex(index if len(keys) > 1 else index.get_level_values(0))
        shape = (len(settings), len(estimators), -1)
        arrays = (wide[column][estimators].to_numpy(dtype=float).reshape(shape) for column in ("error", "squared"))
        return cls(settings, estimators, *arrays)

    def bias(self, name: str) -> list[Measured]:
        """The bias of an estimator in its own standard deviations."""
        errors, squares = self._of_estimator(name)
        spread = np.sqrt(squares.mean(axis=-1) - errors.mean(axis=-1) ** 2)
        return [Measured.mean(each) for each in errors / spread[:, None]]

    def saved(self, worse: str, better: str) -> list[Measured]:
        """MSE of one estimator minus that of another on the same runs, over ME's."""
        (_, lost), (_, kept), (_, unit) = (self._of_estimator(name) for name in (worse, better, "me"))
        return [Measured.mean(each) for each in (lost - kept) / unit.mean(axis=-1, keepdims=True)]

    def varies_more(self, more: str, less: str) -> list[Measured]:
        """Variance of one estimator minus another's, over ME's, with intervals by the jackknife over blocks."""
        gaps, count = self._gaps(more, less, left_out=False)[:, 0], self.errors.shape[-1]
        without = self._gaps(more, less, left_out=True)
        errors = np.sqrt((count - 1) * without.var(axis=-1))
        return [Measured.around(gap, error, count - 1) for gap, error in zip(gaps, errors, strict=True)]

    def _gaps(self, more: str, less: str, *, left_out: bool) -> np.ndarray:
        """Over all blocks, or one number for each that is left out."""
        first, second, unit = (self._variances(name, left_out=left_out) for name in (more, less, "me"))
        return np.asarray((first - second) / unit)

    def _variances(self, name: str, *, left_out: bool) -> np.ndarray:
        means = []
        for each in self._of_estimator(name):
            total = each.sum(axis=-1, keepdims=True)
            means.append((total - each) / (each.shape[-1] - 1) if left_out else total / each.shape[-1])
        return np.asarray(means[1] - means[0] ** 2)

    def _of_estimator(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        place = self.estimators.index(name)
        return self.errors[:, place], self.squares[:, place]
