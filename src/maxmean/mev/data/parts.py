"""Disjoint random parts of the observations: how large they are, and what can be split at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import ArgumentError, DataError


def part_sizes(n: int, parts: int) -> list[int]:
    """Sizes of ``parts`` parts of ``n`` observations that differ by one at most, the larger ones first.

    >>> part_sizes(11, 3)
    [4, 4, 3]
    """
    return [n // parts + (k < n % parts) for k in range(parts)]


def part_means(drawn: np.ndarray, parts: Sequence[int], axis: int) -> dict[int, np.ndarray]:
    """Resampled rows come in random order: consecutive blocks of them are random parts."""
    n = drawn.shape[axis]
    edges = {p: np.cumsum(part_sizes(n, p))[:-1] for p in parts}
    return {p: np.stack([b.mean(axis=axis) for b in np.split(drawn, e, axis=axis)]) for p, e in edges.items()}


def check_parts(n: int, parts: int) -> None:
    if parts < 1:
        raise ArgumentError(f"data can be split into 1 or more parts, not {parts}")
    if n < parts:
        raise DataError(f"{parts} parts need at least {parts} observations of every option, and one has {n}")
