"""Roots and quasi-random points of our own, beside SciPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize
from scipy.stats import qmc

from maxmean.mev.inference.roots import find_root
from maxmean.mev.inference.sobol import sobol_points


@pytest.mark.parametrize("dimensions", [1, 2, 24, 64, 65])
def test_points_are_those_of_scipy(dimensions: int) -> None:
    """64 dimensions are computed here, more of them by SciPy itself."""
    assert np.array_equal(sobol_points(dimensions, 9), qmc.Sobol(dimensions, scramble=False).random_base2(9))


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        (lambda x: math.cos(x) - x, 0.0, 1.0),
        (lambda x: x**9, -1.0, 4.0),
        (lambda x: math.exp(x) - 1e-8, -50.0, 3.0),
        (lambda x: math.atan(x - 1e6), -1e8, 1e8),
        (lambda x: -1.0 if x < 1 / 3 else 1.0, 0.0, 1.0),
        (lambda x: min(max(1e6 * (x - 0.1), -1e3), 1e3), -20.0, 9.0),
        (lambda x: x - 5.0, 5.0, 9.0),
    ],
    ids=["cosine", "flat", "exponential", "far", "step", "clipped", "at the end"],
)
def test_roots_are_those_of_brent(function: object, low: float, high: float) -> None:
    assert callable(function)
    calls = []

    def counted(x: float) -> float:
        calls.append(x)
        return float(function(x))

    found = find_root(counted, low, high, xtol=1e-12)
    assert found == pytest.approx(optimize.brentq(function, low, high, xtol=1e-13, maxiter=1000), abs=3e-12, rel=1e-14)
    assert len(calls) <= 120
    assert min(calls) >= low
    assert max(calls) <= high


def test_a_root_needs_a_change_of_sign() -> None:
    with pytest.raises(ValueError, match="the same sign"):
        find_root(lambda x: x * x + 1, -1.0, 1.0)
