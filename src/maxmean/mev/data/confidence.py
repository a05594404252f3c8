"""Standard errors from confidence limits."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from ..errors import DataError

_SLACK = 0.05  # of half the width: limits are written with few digits


def standard_errors(
    means: np.ndarray, lower: np.ndarray, upper: np.ndarray, level: float, names: Sequence[str]
) -> np.ndarray:
    r"""Half the width of a symmetric interval, in units of the normal quantile.

    .. math:: s_i = \frac{u_i - l_i}{2\, z_{(1 + \gamma) / 2}}

    >>> standard_errors(np.array([1.0]), np.array([0.02]), np.array([1.98]), 0.95, ["a"]).round(3)
    array([0.5])
    """
    half = (upper - lower) / 2
    for k in np.flatnonzero((lower > means) | (means > upper))[:1]:
        raise DataError(
            f"option {names[k]!r}: its mean {means[k]:g} is not between its limits, {lower[k]:g} and {upper[k]:g}"
        )
    for k in np.flatnonzero(np.abs((lower + upper) / 2 - means) > _SLACK * half)[:1]:
        raise DataError(
            f"option {names[k]!r}: its limits {lower[k]:g} and {upper[k]:g} are not symmetric about its mean {means[k]:g} and "
            "tell no standard error: give that (--se), or use a scale on which they are symmetric, such as logarithms"
        )
    return half / NormalDist().inv_cdf((1 + level) / 2)
