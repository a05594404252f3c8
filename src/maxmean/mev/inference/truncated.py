"""The truncated normal distribution: its log-odds, and the mean that gives an observation the log-odds asked for."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..arrays import special

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(14)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2
_ROOT_HALF, _MILLS_AT_ZERO = math.sqrt(0.5), math.sqrt(math.pi / 2)


def truncated_log_odds(offset: float, below: float, above: float) -> float:
    r"""Log-odds log F/(1 - F) at a point of a truncated standard normal, accurate to rounding however far out.

    The point is ``offset``, the normal is truncated to [offset - below, offset + above]. F/(1 - F) is the mass below
    the point over the mass above it; both carry the factor phi(offset), and without it

    .. math:: \log\frac{F}{1 - F} = \log\int_0^{below} e^{t u - u^2/2}\,du - \log\int_0^{above} e^{-t u - u^2/2}\,du,
              \qquad t = offset.

    Distances, not ends, go in: an interval much smaller than the rounding of ``offset`` keeps its digits.

    >>> truncated_log_odds(0.0, 2.0, 2.0)
    0.0
    >>> round(truncated_log_odds(1e9, 1e-9, math.inf), 12) == round(math.log(math.e - 1), 12)
    True
    """
    return _log_integral(-offset, below) - _log_integral(offset, above)


def _log_integral(t: float, width: float) -> float:
    """Logarithm of the integral of exp(-t u - u²/2) over u from 0 to ``width``; no close numbers are subtracted."""
    if width == 0:
        return -math.inf
    end = t + width
    if t < 0 and end <= 0:  # all before the mode: the same integral read from its other end
        return -width * (t + width / 2) + _log_integral(-end, width)
    if t < 0:  # the mode is inside, and the parts on its two sides add up
        return t * t / 2 + math.log(_MILLS_AT_ZERO * (math.erf(-t * _ROOT_HALF) + math.erf(end * _ROOT_HALF)))
    fall = width * (t + width / 2)
    if fall < 1:  # the integrand hardly moves: Gauss-Legendre is exact to rounding
        return math.log(width) + math.log(float(_WEIGHTS @ np.exp(-width * _NODES * (t + width / 2 * _NODES))))
    erfcx = special(np).erfcx
    return math.log(_MILLS_AT_ZERO * float(erfcx(t * _ROOT_HALF) - math.exp(-fall) * erfcx(end * _ROOT_HALF)))


def solve_offset(log_odds: float, below: float, above: float, reach: float) -> float:
    """The (X_w - mu)/s at which X_w has these log-odds in its truncated law; in [-reach, reach]."""
    if below == 0 and above == 0:
        return math.copysign(reach, log_odds) if log_odds else 0.0
    if below == 0 or above == 0:
        return reach if below == 0 else -reach

    def excess(offset: float) -> float:
        odds = truncated_log_odds(offset, min(below, reach + offset), min(above, reach - offset))
        return min(max(odds - log_odds, -1e3), 1e3)  # infinite at ±reach; the solver wants numbers

    low, high = (-reach, reach) if math.isfinite(reach) else _bracket(excess)
    if math.isinf(low) or math.isinf(high):
        return low if math.isinf(low) else high
    from scipy.optimize import brentq

    return float(brentq(excess, low, high, xtol=1e-15, rtol=4 * np.finfo(float).eps))


def _bracket(increasing: Callable[[float], float]) -> tuple[float, float]:
    """Two points around the root of an increasing function; one is infinite if the root lies beyond all floats."""
    sign = 1.0 if increasing(0.0) < 0 else -1.0
    inner, outer = 0.0, sign
    while math.isfinite(outer) and increasing(outer) * sign < 0:
        inner, outer = outer, 8 * outer
    return min(inner, outer), max(inner, outer)
