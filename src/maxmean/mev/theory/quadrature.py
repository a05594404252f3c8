"""Gauss-Legendre quadrature on panels that refine themselves where a function is not smooth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
_TO_LEGENDRE = np.polynomial.legendre.legvander(NODES, 15) * WEIGHTS[:, None] * (np.arange(16) + 0.5)
_AT_ENDS = np.stack([(-1.0) ** np.arange(16), np.ones(16)], axis=-1)
_TOLERANCE = 1e-11
FINEST = 1e-12
_MOST_PANELS = 3_000

REACH = 9.0
"""Standard deviations beyond which a Gaussian (1e-19) is left out."""


def density(z: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


def panel_edges(low: float, high: float, width: float, points: Sequence[float]) -> np.ndarray:
    """Panel edges from ``low`` to ``high``, at most ``width`` apart, with ``points`` among them."""
    regular = np.linspace(low, high, math.ceil((high - low) / width) + 1)
    return np.unique(np.concatenate([regular, [p for p in points if low < p < high]]))


def resolve(function: Callable, edges: np.ndarray, finest: Callable) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes, their measure and the function there, on panels fine enough for ``function``.

    A panel is halved until the function is a polynomial of degree 15 on it, its ends included. The ends matter: the
    functions here are monotone, so that what hides between two nodes still shows there, even a jump that nobody
    announced. ``function`` may add leading axes; all of its values are then resolved. Refinement ends at 3,000 panels:
    a function that is rougher still keeps the accuracy it has then.
    """
    left, right = edges[:-1], edges[1:]
    found = []
    panels = left.size
    while left.size:
        centre, half = (left + right) / 2, (right - left) / 2
        points = centre[:, None] + half[:, None] * NODES
        values = function(points)
        modes = values @ _TO_LEGENDRE
        ends = function(np.stack([left, right], axis=-1))
        doubt = np.maximum(np.abs(modes[..., -2:]).max(axis=-1), np.abs(modes @ _AT_ENDS - ends).max(axis=-1))
        rough = (doubt > _TOLERANCE).reshape(-1, left.size).any(axis=0) & (half > finest(centre))
        panels += int(rough.sum())
        if panels > _MOST_PANELS:
            rough[:] = False
        found.append((points[~rough], (half[:, None] * WEIGHTS)[~rough], values[..., ~rough, :]))
        left, right = np.concatenate([left[rough], centre[rough]]), np.concatenate([centre[rough], right[rough]])
    points, measure, values = (np.concatenate(part, axis=-2) for part in zip(*found, strict=True))
    return points.ravel(), measure.ravel(), values.reshape(*values.shape[:-2], -1)


def composite(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half + half * NODES).ravel(), (half * WEIGHTS).ravel()
