r"""Shrinkage of independent means under a prior whose tails are as heavy as the data ask for.

Under a normal prior a single option far ahead of many is drawn in as if it were one of them. Here a mean lies
:math:`\tau \lambda_i z_i` from the centre, z normal: with :math:`\lambda_i = 1` the prior is normal, with
:math:`\lambda_i^{-2}` exponentially distributed it is Student's with two degrees of freedom. Both are equally probable before
the data are seen.

Given a scale :math:`g = \tau\lambda` and the centre, everything is normal. The scales are on a geometric grid on which
:math:`\tau` and :math:`\lambda` lie as well, so that each estimate is looked at once for every scale and centre; the centres are
nodes that close in on where the evidence is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

_STEP = 0.4
"""Between the logarithms of neighbouring scales: sums over such a grid are integrals to five digits and more."""
_LEAST, _MOST = 1 / 64, 32.0
"""The smallest spread, in standard errors, and the largest beyond them and the range of the estimates."""
_FAR = 8.0
"""How much further scales reach than spreads."""
_FIRST, _NODES = 64, 48
"""Centres among which is looked for where the evidence is, and centres that are integrated over."""
_CROWD, _FEWER = 1_000, 4
"""Options that leave so little doubt about the centre that a quarter of these is enough."""
_ROUNDS = 4
_HELD = 4_000_000  # numbers worked on at once
NOTHING = -25.0  # logarithm of what is nothing beside the largest evidence
NEGLIGIBLE = 1e-12  # of a posterior
TINY = 1e-300


def tailed_posterior(x: np.ndarray, variances: np.ndarray, usual: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each mean's posterior as a mixture of normal distributions: weights, expectations and standard deviations, [K, M].

    ``usual`` is a variance, in which the prior of the spread is told; see :func:`maxmean.mev.inference.shrink`.
    """
    scales, mixing, prior = _scales(math.sqrt(usual), float(np.ptp(x)))
    squares = np.square(scales)

    def evidence(centres: np.ndarray) -> np.ndarray:
        """Of every centre and every prior, [C, T], as a logarithm."""
        found = np.broadcast_to(prior, (len(centres), len(prior))).copy()
        for some in blocks(len(x), len(centres) * max(len(scales), len(prior))):
            each = _densities(x[some], variances[some], centres, squares) @ mixing.T
            found += np.log(np.maximum(each, TINY)).sum(axis=0)
        return found

    fewer = _FEWER if len(x) > _CROWD else 1
    first, nodes = _FIRST // fewer, _NODES // fewer
    # Evenly, where the estimates are, and beyond them, for few options leave the centre open.
    size = math.sqrt(usual) + float(np.ptp(x))
    beyond = size * np.exp2(np.arange(-2.0, 8.0))
    even, there = np.linspace(x.min(), x.max(), first), np.quantile(x, np.linspace(0, 1, first))
    centres = np.unique(np.concatenate([even, there, x.min() - beyond, x.max() + beyond]))
    for wanted in (first,) * (_ROUNDS - 1) + (nodes,):
        centres = closing_in(centres, np.logaddexp.reduce(evidence(centres), axis=1), wanted)
    each = evidence(centres)
    weights = np.exp(each - each.max()) * np.gradient(centres)[:, None]
    weights /= weights.sum()
    shape = len(centres), len(scales), len(x)
    parts, means, errors = np.empty(shape), np.empty(shape), np.empty(shape)
    for some in blocks(len(x), len(centres) * max(len(scales), len(prior))):
        densities = _densities(x[some], variances[some], centres, squares)
        shares = weights / np.maximum(densities @ mixing.T, TINY)
        inward = (variances[some][:, None] / (variances[some][:, None] + squares)).T  # [L, M]
        parts[:, :, some] = np.moveaxis((shares @ mixing) * densities, 0, -1)
        means[:, :, some] = x[some] - inward * (x[some] - centres[:, None])[:, None, :]
        errors[:, :, some] = np.sqrt(variances[some] * (1 - inward))
    parts /= parts.sum(axis=(0, 1))
    there = parts.max(axis=-1) > NEGLIGIBLE  # [C, L]
    return parts[there], means[there], errors[there]


def _scales(unit: float, reach: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scales [L]; how probable each is under every prior, [T, L]; and how probable each of these is, as a logarithm, [T]."""
    low, high = math.floor(math.log(_LEAST) / _STEP), math.ceil(math.log(_MOST * (1 + reach / unit)) / _STEP)
    further = math.ceil(math.log(_FAR) / _STEP)
    around = np.arange(-math.ceil(1.2 / _STEP), high - low + further)
    every = np.arange(low + around[0], high + further + 1)
    spreads = np.arange(low, high + 1)
    inverse = np.exp(-2 * _STEP * around)  # of lambda squared, exponentially distributed
    chances = inverse * np.exp(-inverse)
    chances /= chances.sum()
    normal, student = np.zeros((2, len(spreads), len(every)))
    for k, spread in enumerate(spreads):
        normal[k, spread - every[0]] = 1.0
        np.add.at(student[k], np.minimum(spread + around - every[0], len(every) - 1), chances)
    logs = 2 * _STEP * spreads
    share = logs - 1.5 * np.logaddexp(0.0, logs)  # of the share 1/(1 + tau^2)
    return unit * np.exp(_STEP * every), np.concatenate([normal, student]), np.concatenate([share, share])


def _densities(x: np.ndarray, variances: np.ndarray, centres: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Of the estimates, for every centre and every squared scale, [M, C, L]."""
    total = (variances[:, None] + squares)[:, None, :]
    return np.asarray(np.exp(-0.5 * np.square(x[:, None] - centres)[:, :, None] / total) / np.sqrt(total))


def closing_in(centres: np.ndarray, logs: np.ndarray, nodes: int) -> np.ndarray:
    """So many centres, denser where the evidence is: with thrice its variance, where it is normal."""
    there = np.flatnonzero(logs > logs.max() + NOTHING)
    kept = slice(max(there[0] - 1, 0), there[-1] + 2)
    centres, heights = centres[kept], np.exp((logs[kept] - logs.max()) / 3)
    reached = np.concatenate([[0.0], np.cumsum(np.diff(centres) * (heights[1:] + heights[:-1]) / 2)])
    return np.unique(np.interp(np.linspace(0, reached[-1], nodes), reached, centres))


def blocks(options: int, width: int) -> Iterator[np.ndarray]:
    step = max(1, _HELD // width)
    yield from (np.arange(k, min(k + step, options)) for k in range(0, options, step))
