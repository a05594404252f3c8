"""The root of a function between two points; SciPy's module for it takes a quarter of a second to import."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

_MOST = 200  # steps; bisection of all floating point numbers takes fewer than 2,100, and this method a dozen as a rule
_EPSILON = 4 * sys.float_info.epsilon


def find_root(function: Callable[[float], float], low: float, high: float, xtol: float = 2e-12) -> float:
    """Where ``function`` is zero, to ``xtol`` or four units in the last place, by Chandrupatla's method (1997).

    It steps by inverse quadratic interpolation where the last three points say that this is safe, and halves the bracket where
    they do not. The function's signs at the ends must differ.

    >>> round(find_root(lambda x: x * x - 2, 0.0, 2.0), 12)
    1.414213562373
    """
    a, b = high, low
    at_a, at_b = function(a), function(b)
    if at_a == 0 or at_b == 0:
        return a if at_a == 0 else b
    if (at_a > 0) == (at_b > 0):
        raise ValueError(f"the function has the same sign at {low} and at {high}")
    share = 0.5
    for _ in range(_MOST):
        middle = a + share * (b - a)
        at_middle = function(middle)
        if (at_middle > 0) == (at_a > 0):
            c, at_c = a, at_a
        else:
            c, b, at_c, at_b = b, a, at_b, at_a
        a, at_a = middle, at_middle
        best, at_best = (a, at_a) if abs(at_a) < abs(at_b) else (b, at_b)
        limit = (xtol + _EPSILON * abs(best)) / (2 * abs(b - a)) if b != a else math.inf
        if at_best == 0 or limit > 0.5:
            return best
        share = _interpolated(a, b, c, at_a, at_b, at_c)
        share = min(max(share, limit), 1 - limit)
    return best


def _interpolated(a: float, b: float, c: float, at_a: float, at_b: float, at_c: float) -> float:
    """Where between a and b to look next, as a share of the way."""
    place, height = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b) if at_c != at_b else 0.0
    if not (height * height < place and (1 - height) ** 2 < 1 - place):
        return 0.5
    return at_a / (at_b - at_a) * at_c / (at_b - at_c) + (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
