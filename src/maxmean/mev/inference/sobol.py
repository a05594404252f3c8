"""Sobol's quasi-random points in few dimensions, bit for bit those of SciPy, whose module takes half a second to import."""

from __future__ import annotations

import numpy as np

_BITS = 30

# A primitive polynomial over the integers modulo 2, as the bits of a number, and the first direction numbers of every dimension
# but the first: Joe and Kuo (2008), Constructing Sobol sequences with better two-dimensional projections, SISC 30.
_DIRECTIONS: tuple[tuple[int, tuple[int, ...]], ...] = (
    (3, (1,)), (7, (1, 3)), (11, (1, 3, 1)), (13, (1, 1, 1)), (19, (1, 1, 3, 3)), (25, (1, 3, 5, 13)), (37, (1, 1, 5, 5, 17)),
    (41, (1, 1, 5, 5, 5)), (47, (1, 1, 7, 11, 19)), (55, (1, 1, 5, 1, 1)), (59, (1, 1, 1, 3, 11)), (61, (1, 3, 5, 5, 31)),
    (67, (1, 3, 3, 9, 7, 49)), (91, (1, 1, 1, 15, 21, 21)), (97, (1, 3, 1, 13, 27, 49)), (103, (1, 1, 1, 15, 7, 5)),
    (109, (1, 3, 1, 15, 13, 25)), (115, (1, 1, 5, 5, 19, 61)), (131, (1, 3, 7, 11, 23, 15, 103)),
    (137, (1, 3, 7, 13, 13, 15, 69)), (143, (1, 1, 3, 13, 7, 35, 63)), (145, (1, 3, 5, 9, 1, 25, 53)),
    (157, (1, 3, 1, 13, 9, 35, 107)),
)  # fmt: skip


def sobol_points(dimensions: int, log2_draws: int) -> np.ndarray:
    """The first ``2**log2_draws`` points of Sobol's sequence in the unit cube, in Gray code order, [draws, dimensions].

    >>> sobol_points(2, 2).tolist()
    [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    """
    if dimensions > len(_DIRECTIONS) + 1:
        from scipy.stats import qmc

        return np.asarray(qmc.Sobol(dimensions, scramble=False).random_base2(log2_draws))
    index = np.arange(1 << log2_draws)
    gray = index ^ (index >> 1)
    points = np.zeros((len(index), dimensions), dtype=np.int64)
    directions = np.array([_directions(k, log2_draws) for k in range(dimensions)])
    for bit in range(log2_draws):
        points[(gray >> bit) & 1 == 1] ^= directions[:, bit]
    return points / (1 << _BITS)


def _directions(dimension: int, count: int) -> list[int]:
    """The directions of one dimension, by the recurrence of its polynomial."""
    if dimension == 0:
        return [1 << (_BITS - 1 - k) for k in range(count)]
    polynomial, first = _DIRECTIONS[dimension - 1]
    degree = len(first)
    found = [number << (_BITS - 1 - k) for k, number in enumerate(first)]
    for k in range(degree, count):
        new = found[k - degree] ^ (found[k - degree] >> degree)
        for j in range(1, degree):
            if polynomial >> (degree - j) & 1:
                new ^= found[k - j]
        found.append(new)
    return found[:count]
