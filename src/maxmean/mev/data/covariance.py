"""Covariance matrices of means that are given instead of observations: from Python or a CSV file, checked against the options."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError
from .limits import LONGEST_ROW, MOST_PAIRED, TOO_MANY_PAIRED
from .options import repeated

_SLACK = 1e-3  # of a correlation: what numbers that are written with three or four digits may be off by


@dataclass(frozen=True)
class Covariances:
    """A covariance matrix of means, with the names of its options where it has any.

    >>> Covariances.of([[1.0, 0.5], [0.5, 2.0]]).among(["a", "b"]).tolist()
    [[1.0, 0.5], [0.5, 2.0]]
    """

    values: np.ndarray
    """Shape ``(M, M)``."""
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, given: Any) -> Covariances:
        """From a square array, a DataFrame, or a mapping of mappings, whose labels are the options' names."""
        if isinstance(given, Covariances):
            return given
        rows: Sequence[str] | None = None
        names: tuple[str, ...] | None = None
        if isinstance(given, Mapping):
            rows = [str(name) for name in given]
            names = tuple(rows)
            lookup = {str(name): {str(key): value for key, value in dict(row).items()} for name, row in given.items()}
            missing = next(((a, b) for a in names for b in names if b not in lookup[a]), None)
            if missing is not None:
                raise DataError(f"covariance has no entry for {missing[0]!r} with {missing[1]!r}")
            given = [[lookup[a][b] for b in names] for a in names]
        elif hasattr(given, "columns") and hasattr(given, "index"):
            columns, rows = ([str(name) for name in labels] for labels in (given.columns, given.index))
            numbered = [str(k) for k in range(len(columns))]
            names, given = (None if columns == rows == numbered else tuple(columns)), given.to_numpy()
        try:
            values = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            hint = "; of a file, give pandas.read_csv(path, index_col=0)" if isinstance(given, str | Path) else ""
            raise DataError(f"covariance cannot be read as a matrix of numbers{hint}") from None
        if values.ndim != 2 or values.shape[0] != values.shape[1]:
            raise DataError(f"covariance must be a square matrix, one row and one column an option, not {values.shape}")
        if names is None or rows is None:
            return cls(values)
        return cls(values[_order(names, rows, "row")], names)

    def among(self, names: Sequence[str]) -> np.ndarray:
        """The matrix in the order of these options, shape ``(M, M)``; refuses what is no covariance matrix of theirs."""
        if self.names is None and len(self.values) != len(names):
            raise DataError(f"covariance has {len(self.values)} rows for {len(names)} options")
        order = np.arange(len(names)) if self.names is None else _order(names, self.names, "column")
        if len(names) > MOST_PAIRED:
            raise DataError(TOO_MANY_PAIRED)
        return _checked(self.values[np.ix_(order, order)], names)


def read_covariances(path: str) -> Covariances:
    """A covariance matrix from a CSV file: with the options' names in the first row and column, or numbers alone."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            lines = []
            for line in csv.reader(file):
                if line and any(cell.strip() for cell in line):
                    lines.append([cell.strip() for cell in line])
                if len(lines) > MOST_PAIRED + 1 or len(line) > MOST_PAIRED + 1:
                    raise DataError(f"{path!r}: {TOO_MANY_PAIRED}")
    except FileNotFoundError:
        raise DataError(f"there is no file {path!r}") from None
    except UnicodeDecodeError:
        raise DataError(f"{path!r} is not UTF-8 text: a covariance matrix is a CSV file") from None
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"cannot read {path!r}: {getattr(error, 'strerror', None) or error}") from None
    if not lines:
        raise DataError(f"{path!r} is empty")
    names = None if _is_number(lines[0][0]) else tuple(lines[0][1:])
    body = lines if names is None else lines[1:]
    if not body:
        raise DataError(f"{path!r} has a line of names and no numbers: a covariance matrix has a row for each option")
    width = len(body) + (names is not None)
    for row, line in enumerate(body, start=1):
        if len(line) != width:
            what = f"row {row} of {path!r} has {len(line)} cells where {width} are expected"
            raise DataError(f"{what}: a square matrix, or one with names in the first row and column")
        for column, cell in enumerate(line[names is not None :], start=1):
            if not _is_number(cell):
                raise DataError(f"row {row} of {path!r}: number {column} is {cell!r}, not a number")
    values = np.array([[float(cell) for cell in line[names is not None :]] for line in body])
    if names is None:
        return Covariances(values)
    return Covariances(values[_order(names, [line[0] for line in body], "row")], names)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return len(text) < LONGEST_ROW


def _order(names: Sequence[str], labels: Sequence[str], what: str) -> np.ndarray:
    """Where each name is among the labels of a matrix."""
    if (twice := repeated(labels)) is not None:
        raise DataError(f"covariance has two {what}s for option {twice!r}")
    place = {label: k for k, label in enumerate(labels)}
    missing = next((name for name in names if name not in place), None)
    if missing is not None:
        near = difflib.get_close_matches(missing, labels, n=1, cutoff=0.5)
        raise DataError(f"covariance has no {what} for option {missing!r}" + (f"; is it {near[0]!r}?" if near else ""))
    if len(labels) > len(names):
        extra = next(label for label in labels if label not in set(names))
        raise DataError(f"covariance has a {what} for {extra!r}, and there is no such option")
    return np.array([place[name] for name in names])


def _checked(matrix: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """A symmetric matrix without negative eigenvalues, if rounding explains why it was none."""
    wrong = np.argwhere(~np.isfinite(matrix))
    if wrong.size:
        i, j = (int(k) for k in wrong[0])
        raise DataError(f"the covariance of {names[i]!r} and {names[j]!r} is {matrix[i, j]}, not a finite number")
    variances = matrix.diagonal()
    if variances.min() < 0:
        raise DataError(f"the variance of {names[int(variances.argmin())]!r} is negative ({variances.min():g})")
    errors = np.sqrt(variances)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        scales = errors[:, None] * errors
        correlations = np.where(matrix == 0, 0.0, matrix / np.where(scales > 0, scales, np.finfo(float).tiny))
    apart = np.abs(correlations - correlations.T)
    if apart.max() > _SLACK:
        i, j = (int(k) for k in np.unravel_index(apart.argmax(), apart.shape))
        raise DataError(
            f"covariance is not symmetric: {matrix[i, j]:g} for {names[i]!r} with {names[j]!r}, but {matrix[j, i]:g} for "
            f"{names[j]!r} with {names[i]!r}"
        )
    if np.abs(correlations).max() > 1 + _SLACK:
        i, j = (int(k) for k in np.unravel_index(np.abs(correlations).argmax(), correlations.shape))
        raise DataError(
            f"the covariance of {names[i]!r} and {names[j]!r}, {matrix[i, j]:g}, is too large for their variances, "
            f"{variances[i]:g} and {variances[j]:g}"
        )
    symmetric = (correlations + correlations.T) / 2
    spectrum, vectors = np.linalg.eigh(symmetric)
    if spectrum[0] < -_SLACK:
        raise DataError(
            f"covariance is no covariance matrix: some combination of the means would have a negative variance (the "
            f"smallest eigenvalue of the correlations is {spectrum[0]:.3g})"
        )
    if spectrum[0] >= 0:
        return (matrix + matrix.T) / 2
    nearest = (vectors * np.maximum(spectrum, 0.0)) @ vectors.T
    return (nearest + nearest.T) / 2 * scales
