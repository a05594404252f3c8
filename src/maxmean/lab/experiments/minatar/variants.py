"""The paper's fifteen agents and those beyond it, by the names that make them and the labels of tables; its learning rates."""

from __future__ import annotations

import math
from collections.abc import Iterable

ALPHAS = (0.1, 0.2, 0.3, 0.4)
_TE = tuple(f"te-bdqn:{alpha}" for alpha in ALPHAS)
_ADA = ("ada-te-bdqn:1e-4", "ada-te-bdqn:1e-5")

SINGLE = ("dqn", "ddqn", "scdqn:2", "scdqn:3", "scdqn:4")
MAXMIN = ("maxmin-dqn:2", "maxmin-dqn:3")
HEADS = ("bdqn", *_TE, "ke-bdqn", *_ADA)
"""In three groups, each of which trains in one program on a GPU. Shards are known by the order of their agents."""


def _label(name: str) -> str:
    kind, colon, number = name.partition(":")
    return f"{kind}({float(number):g})" if colon else kind


PAPERS = (*SINGLE, *MAXMIN, *HEADS)
PAIRED = ("ke*-bdqn", "te*-bdqn:0.1", "ada-te*-bdqn:1e-4", "ada-ke*-bdqn:1e-4")
"""Beyond the paper: the same statistic with the covariances of the heads, which are trained on the same data."""
LABELS = {name: _label(name) for name in (*PAPERS, *PAIRED)}
"""How tables and figures call each of them: what :mod:`maxmean.deep` says, which takes JAX to ask."""
VARIANTS = tuple(LABELS[name] for name in (*SINGLE, *MAXMIN, "bdqn", "ke-bdqn", *_TE, *_ADA))
"""The paper's, in the order of the claims' numbers."""
COLUMNS = tuple(
    tuple(LABELS[name] for name in names)
    for names in (SINGLE, (*MAXMIN, "bdqn", *_TE[:2]), (*_TE[2:], "ke-bdqn", *_ADA))
)
"""The columns of the paper's figures."""
ADAPTIVE, SLOWLY_ADAPTIVE = (LABELS[name] for name in _ADA)
PAIRED_KE, PAIRED_TE, PAIRED_ADA_TE, PAIRED_ADA_KE = (LABELS[name] for name in PAIRED)

MIDDLE_RATE = 10**-4.5
"""The learning rate of the paper's curves."""
SMALLEST_RATE = 1e-5
"""The smallest of the paper's."""


def middle_rate(rates: Iterable[float]) -> float:
    """The one of several learning rates whose curves are shown and judged: that of the paper's, or the nearest."""
    return min(rates, key=lambda rate: abs(math.log(rate / MIDDLE_RATE)))


def power(rate: float) -> str:
    """A learning rate as a power of ten, with three digits: rates that read alike are taken for the same.

    >>> power(1e-5), power(MIDDLE_RATE), power(3.16e-5), power(3e-5)
    ('10^-5', '10^-4.5', '10^-4.5', '10^-4.52')
    """
    return f"10^{math.log10(rate):.3g}"
