r"""Truncated normal and Student distributions: their log-odds, and the mean that gives an observation the log-odds asked for.

With a known standard error s, an estimate x that is selected for lying between L and U is a truncated normal. If s is estimated,
with f degrees of freedom, then given :math:`V = f s^2 + (x - \mu)^2` the angle :math:`\theta` with
:math:`\tan\theta = (x - \mu)/(s\sqrt f)` has the density :math:`\cos^{f-1}\theta`, whatever the true standard error, and the
selection bounds :math:`\sin\theta = (x - \mu)/\sqrt V` by :math:`(L - \mu)/\sqrt V` and :math:`(U - \mu)/\sqrt V` (Fithian, Sun
and Taylor, "Optimal inference after model selection", 2014). Without selection this is Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..arrays import special
from .roots import find_root

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(14)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2
_ROOT_HALF, _MILLS_AT_ZERO = math.sqrt(0.5), math.sqrt(math.pi / 2)
_PANELS = np.concatenate([(k + _NODES) / 6 for k in range(6)])
_PANEL_WEIGHTS = np.tile(_WEIGHTS, 6) / 6
_OUT_OF_SIGHT = 1e100
"""Standard errors, whose squares are still numbers: with few data, an option that leads by next to nothing may be so far off."""
_NOTHING = 45.0  # e^-45 is less than what rounding leaves


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


def student_log_odds(
    offset: float,
    below: float,
    above: float,
    freedom: float,
    *,
    reach: tuple[float, float] = (math.inf, math.inf),
) -> float:
    r"""Log-odds of Student's t at ``offset``, the estimate being selected for lying in [x - below, x + above] standard errors.

    ``reach`` truncates t itself, to [-reach[0], reach[1]]. With the angle theta = arctan(offset/sqrt(freedom)) and the angles a
    and b from there to the nearest bounds,

    .. math:: \log\int_0^a \cos^{f-1}(\theta - u)\,du - \log\int_0^b \cos^{f-1}(\theta + u)\,du, \qquad f = freedom.

    >>> student_log_odds(0.0, 2.0, 2.0, 4.0)
    0.0
    >>> from scipy.special import logit, stdtr
    >>> round(student_log_odds(1.5, math.inf, math.inf, 4.0), 12) == round(float(logit(stdtr(4.0, 1.5))), 12)
    True
    """
    root = math.sqrt(freedom)
    left = min(_turn(-offset, below, root), _apart(-offset, reach[0], freedom))
    right = min(_turn(offset, above, root), _apart(offset, reach[1], freedom))
    slope = offset / root
    return _log_power(-slope, left, freedom - 1) - _log_power(slope, right, freedom - 1)


def _turn(offset: float, distance: float, root: float) -> float:
    """The angle from theta to where sin(theta) is larger by distance/sqrt(V), in standard errors; at most to pi/2."""
    size = math.hypot(root, offset)
    sine, cosine, step = offset / size, root / size, distance / size
    rest = cosine * cosine - step * (2 * sine + step)  # cos² there
    if rest <= 0 or sine + step >= 1:
        return math.atan2(root, offset)
    there = math.sqrt(rest)
    turned = sine * step * (2 * sine + step) / (there + cosine) + step * cosine
    return math.atan2(turned, cosine * there + sine * (sine + step))


def _apart(offset: float, reach: float, freedom: float) -> float:
    """The angle from theta to arctan(reach/sqrt(freedom))."""
    root = math.sqrt(freedom)
    if math.isinf(reach):
        return math.atan2(root, offset)
    return math.atan2((reach - offset) * root, freedom + reach * offset) if reach > offset else 0.0


def _log_power(slope: float, width: float, power: float) -> float:
    """Logarithm of the integral of (cos(theta + u)/cos(theta))^power over u from 0 to ``width``, slope = tan(theta)."""
    if width <= 0:
        return -math.inf
    if slope < 0 and math.atan(-slope) < width:  # the mode is inside, and the parts on its two sides add up
        mode = math.atan(-slope)
        parts = _log_power(0.0, mode, power), _log_power(0.0, width - mode, power)
        return power / 2 * math.log1p(slope * slope) + float(np.logaddexp(*parts))
    if slope < 0:  # all before the mode: the same integral read from its other end
        there = 2 * math.sin(width / 2) ** 2 + slope * math.sin(width)
        end = (slope + math.tan(width)) / (1 - slope * math.tan(width))
        return power * math.log1p(-there) + _log_power(max(-end, 0.0), width, power)
    # The integrand falls at least as fast as exp(-power (slope u + u²/2)).
    far = 2 * _NOTHING / max(power, 1e-300)
    width = min(width, far / (slope + math.sqrt(slope * slope + far)))
    u = width * _PANELS
    lost = np.minimum(2 * np.square(np.sin(u / 2)) + slope * np.sin(u), 1.0 - 1e-16)
    return math.log(width) + math.log(float(_PANEL_WEIGHTS @ np.exp(power * np.log1p(-lost))))


def solve_offset(
    log_odds: float,
    below: float,
    above: float,
    reach: float | tuple[float, float],
    freedom: float = math.inf,
) -> float:
    """The (X_w - mu)/s at which X_w has these log-odds in its truncated law; in [-reach, reach], or [-reach[0], reach[1]]."""
    most = (reach, reach) if isinstance(reach, int | float) else reach
    if below == 0 and above == 0:
        return 0.0 if log_odds == 0 else (-most[0] if log_odds < 0 else most[1])
    if below == 0 or above == 0:
        return most[1] if below == 0 else -most[0]

    def excess(offset: float) -> float:
        if math.isinf(freedom):
            odds = truncated_log_odds(offset, min(below, most[0] + offset), min(above, most[1] - offset))
        else:
            odds = student_log_odds(offset, below, above, freedom, reach=most)
        return min(max(odds - log_odds, -1e3), 1e3)  # infinite at the reach; the solver wants numbers

    far = math.inf if math.isinf(freedom) else _OUT_OF_SIGHT
    low, high = _bracket(excess, -most[0], most[1], far)
    if math.isinf(low) or math.isinf(high):
        return low if math.isinf(low) else high
    return find_root(excess, low, high, xtol=1e-15)


def _bracket(increasing: Callable[[float], float], low: float, high: float, far: float) -> tuple[float, float]:
    """Two points around the root of a function that increases from low to high; one is infinite if it lies beyond ``far``."""
    if math.isfinite(low) and math.isfinite(high):
        return low, high
    sign = 1.0 if increasing(0.0) < 0 else -1.0
    inner, outer = 0.0, sign
    while abs(outer) < far and low < outer < high and increasing(outer) * sign < 0:
        inner, outer = outer, 8 * outer
    outer = outer if abs(outer) < far else sign * math.inf
    outer = min(max(outer, low), high)
    return min(inner, outer), max(inner, outer)
