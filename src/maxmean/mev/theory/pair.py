r"""What the estimators do on average: exact bias, variance and MSE for Gaussian means, and general bounds.

Two Gaussian means reduce every estimator of the form :math:`\hat\mu_2 + w(D) D`, with D the difference of the means,
to one dimension. With :math:`b = (v_2 - c) / \operatorname{Var} D` the sum :math:`A = \hat\mu_2 + b D` is independent
of D, so that

.. math:: \hat\mu = A + g(D), \quad g(D) = D\,(w(D) - b), \qquad
    \operatorname{Var} \hat\mu = \operatorname{Var} A + \operatorname{Var} g(D)

and what is left is an integral over D. It is cut where the weight w jumps or bends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.special import ndtr

from ..data.parts import part_sizes
from ..errors import ArgumentError
from ..kernels import Gaussian, Indicator, Kernel, as_kernel
from ..methods import METHODS
from .closed import CLOSED
from .gaussians import Pair
from .quadrature import FINEST, NODES, REACH, WEIGHTS, density, panel_edges, resolve

KernelLike: TypeAlias = Kernel | Callable[[Any], Any]


@dataclass(frozen=True)
class Moments:
    """Bias, variance and mean squared error of an estimator of the largest mean: numbers, or arrays over a curve."""

    expectation: Any
    bias: Any
    """Expectation minus the largest true mean."""
    variance: Any

    @property
    def mse(self) -> Any:
        """Squared bias plus variance."""
        return self.bias**2 + self.variance


def gaussian_pair(
    method: str,
    mu: tuple[Any, Any] = (1.0, 0.0),
    sigma: float | tuple[float, float] = 10.0,
    n: int | tuple[int, int] = 100,
    *,
    alpha: float = 0.1,
    kernel: KernelLike = Gaussian(),  # noqa: B008  (frozen)
    correlation: float = 0.0,
    parts: int = 2,
) -> Moments:
    r"""Exact moments of an estimator for two Gaussian options whose variances are known (appendix A, generalised).

    Parameters
    ----------
    method
        One of ``me ae de cve we mme te ke te* ke*``.
    mu
        The two true means. Each may be an array; they broadcast, and the moments have their shape.
    sigma, n
        Standard deviation of one observation and number of observations: one value, or one for each option.
    alpha
        Level of ``te`` and ``te*``.
    kernel
        Kernel of ``ke`` and ``ke*``: it need be smooth only between its ``kinks``.
    correlation
        Correlation between the options within a pair of observations; the samples are then paired, so of equal size.
        ``te``, ``ke`` and ``we`` ignore it, as the estimators do; ``te*`` and ``ke*`` know it.
    parts
        Number of parts of ``mme``.

    Notes
    -----
    The absolute error is below 1e-8 standard errors of the means (1e-8 squared standard errors for the variance).
    Closed forms serve ``me``, ``ae``, ``de`` and ``cve``. ``de`` selects on the first half and evaluates on the
    second; where n is odd the first half (for ``mme``: the first parts) has the extra observation, and then DE and
    CVE differ a little in expectation. Splits keep pairs together.

    Examples
    --------
    Two equal means: the maximum overestimates by :math:`1/\sqrt\pi` here, the T-Estimator by far less.

    >>> round(gaussian_pair("me", mu=(0.0, 0.0)).bias, 6)
    0.56419
    >>> gaussian_pair("te", mu=([0.0, 1.0, 5.0], 0.0), alpha=0.1).bias.round(4)
    array([ 0.2482, -0.092 , -0.008 ])
    """
    if method not in METHODS:
        raise ArgumentError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    problem = Pair.make(mu, sigma, n, correlation)
    if method == "mme":
        bias, variance = _maxmin(problem, parts)
    elif method in CLOSED:
        bias, variance = CLOSED[method](problem)
    else:
        bias, variance = _by_quadrature(problem, *_weight(method, problem, alpha, kernel))
    expectation = np.maximum(*problem.mu) + bias
    if np.ndim(expectation) == 0:
        return Moments(float(expectation), float(bias), float(variance))
    return Moments(expectation, bias, variance)


def _weight(method: str, pair: Pair, alpha: float, kernel: KernelLike) -> tuple[Callable, tuple[float, ...]]:
    """The first option's weight as a function of D, and the D > 0 where it is not smooth."""
    spread = pair.spread()
    scale = spread.theta if method.endswith("*") else math.sqrt(spread.v1 + spread.v2)

    def statistic(difference: np.ndarray) -> np.ndarray:
        if scale > 0:
            return difference / scale
        return np.where(difference == 0, 0.0, np.copysign(np.inf, difference))

    if method == "we":
        return lambda difference: ndtr(statistic(difference)), ()
    kappa = as_kernel(kernel) if method.startswith("ke") else Indicator(alpha)
    top = kappa(np.zeros(1))[0]

    def weight(difference: np.ndarray) -> np.ndarray:
        other = kappa(-np.abs(statistic(difference)))
        return np.where(difference > 0, top, other) / (top + other)

    return weight, tuple(-kink * scale for kink in kappa.kinks)


_SPAN = 8.0
"""Gaps within this many standard deviations of each other share one set of nodes."""


def _by_quadrature(pair: Pair, weight: Callable, kinks: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    spread, theta = pair.spread(), pair.spread().theta
    gaps = pair.gap.ravel()
    if theta == 0:
        bias = gaps * (weight(gaps) - (gaps > 0))
        return bias.reshape(pair.gap.shape), np.full_like(pair.gap, spread.rest)

    def finest(centre: np.ndarray) -> np.ndarray:
        return FINEST * theta / np.clip(np.abs(centre) / theta, 1e-6, 1.0)  # the weight counts times D: less so near 0

    bias, variance = np.empty_like(gaps), np.empty_like(gaps)
    order = np.argsort(gaps)
    while order.size:
        near = gaps[order] <= gaps[order[0]] + _SPAN * theta
        group, order = order[near], order[~near]
        # The nodes are measured from the smallest gap, and values from the better option: a large gap costs no digits.
        origin = gaps[group].min()
        gap = gaps[group, None] - origin
        points = [point - origin for point in (0.0, *kinks, *(-k for k in kinks))]
        edges = panel_edges(-REACH * theta, gap.max() + REACH * theta, theta, points)
        nodes, measure, share = resolve(partial(_from, origin, weight), edges, partial(_from, origin, finest))
        mass = measure * density((nodes - gap) / theta) / theta
        upper = gap + origin > 0
        excess = (origin + nodes) * (share - upper)
        bias[group] = np.sum(mass * excess, axis=-1)
        deviation = excess + (nodes - gap) * (upper - spread.share) - bias[group, None]
        variance[group] = spread.rest + np.sum(mass * deviation**2, axis=-1)
    return bias.reshape(pair.gap.shape), variance.reshape(pair.gap.shape)


def _from(origin: float, function: Callable, nodes: np.ndarray) -> np.ndarray:
    return function(origin + nodes)


def _maxmin(pair: Pair, parts: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Moments of the larger of two smallest part means, from its distribution function :math:`F = F_1 F_2`."""
    if pair.correlation:
        raise ArgumentError("the exact moments of mme need independent options: correlation must be 0")
    if not 1 <= parts <= min(pair.n):
        raise ArgumentError(f"parts must lie between 1 and the sample size {min(pair.n)}, not {parts}")
    errors = [s / np.sqrt(part_sizes(size, parts)) for s, size in zip(pair.sigma, pair.n, strict=True)]
    gap = pair.gap.ravel()
    # Both means relative to the larger one, which is thereby 0: the point that the moments are taken about.
    centres = [np.minimum(gap, 0.0), np.minimum(-gap, 0.0)]
    steps = np.linspace(-REACH, REACH, 13)
    edges = np.concatenate([c[:, None] + e.max() * steps for c, e in zip(centres, errors, strict=True)], axis=-1)
    edges = np.sort(np.concatenate([edges, np.zeros((gap.size, 1))], axis=-1), axis=-1)
    half = np.diff(edges)[..., None] / 2
    x = (edges[:, :-1, None] + half) + half * NODES
    cdf = np.ones_like(x)
    for centre, error in zip(centres, errors, strict=True):
        survival = np.ones_like(x)
        for e in error:
            below = centre[:, None, None] - x
            survival *= ndtr(below / e) if e > 0 else below >= 0
        cdf *= 1 - survival
    tail = half * WEIGHTS * np.where(x > 0, 1 - cdf, -cdf)
    bias = tail.sum(axis=(-2, -1))
    variance = 2 * (x * tail).sum(axis=(-2, -1)) - bias**2
    return bias.reshape(pair.gap.shape), variance.reshape(pair.gap.shape)
