"""The K-estimate's expectation for any number of options (appendix B)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import ndtr

from ..errors import ArgumentError
from ..estimators import kernel_estimate
from ..kernels import Gaussian, Kernel, as_kernel
from .pair import KernelLike, gaussian_pair
from .quadrature import FINEST, REACH, composite, density, panel_edges, resolve


@dataclass(frozen=True)
class Expectation:
    """An expectation and how well it is known."""

    value: float
    error: float
    """Standard error of a simulated value; of an integrated one, the accuracy of the quadrature."""
    exact: bool
    """Whether the value comes from quadrature."""


def kernel_expectation(
    means: Any,
    variances: Any,
    kernel: KernelLike = Gaussian(),  # noqa: B008  (frozen)
    *,
    method: Literal["auto", "quadrature", "qmc"] = "auto",
    points: int = 2**13,
    scramblings: int = 16,
    seed: int = 0,
) -> Expectation:
    r"""Expectation of the K-estimate of any number of independent Gaussian means with known variances (appendix B).

    .. math:: \operatorname{E} \hat\mu = \operatorname{E} \max_i \hat\mu_i + \sum_i \int f_i(x) \int_0^\infty e^{-t}
        \sum_{j \ne i} c_{ij}(x, t) \prod_{k \ne i, j} a_{ik}(x, t) \,dt\,dx

    where x is the best value and, with :math:`\kappa` scaled to :math:`\kappa(0) = 1` and
    :math:`\kappa_{ij} = \kappa((y - x)/\theta_{ij})`,

    .. math:: a_{ij} = \int_{-\infty}^x e^{-t \kappa_{ij}} f_j(y)\,dy, \qquad
        c_{ij} = \int_{-\infty}^x e^{-t \kappa_{ij}} \kappa_{ij} (y - x) f_j(y)\,dy

    The paper's integral has M dimensions; writing the reciprocal of the sum of weights as :math:`\int_0^\infty
    e^{-tS} dt` makes the integrand a product, and leaves three dimensions whatever M is. The work grows with M², so
    this serves up to about ten options (``method="auto"``); more of them, or certain ones among uncertain ones,
    are left to randomised quasi-Monte Carlo with ``scramblings`` independent Sobol sequences of ``points`` points (a
    power of 2), whose spread gives the standard error.

    ``means`` and ``variances`` (*of the means*) have one entry for each option.

    >>> round(kernel_expectation([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]).value, 6)
    0.483441
    >>> kernel_expectation([0.0] * 50, [1.0] * 50, points=2**8).exact
    False
    """
    mu = np.atleast_1d(np.asarray(means, dtype=float))
    v = np.broadcast_to(np.asarray(variances, dtype=float), mu.shape)
    if method not in ("auto", "quadrature", "qmc"):
        raise ArgumentError(f"method must be 'auto', 'quadrature' or 'qmc', not {method!r}")
    if mu.ndim != 1:
        raise ArgumentError(f"means must have one axis, the options, not shape {mu.shape}")
    if not (np.all(np.isfinite(mu)) and np.all(np.isfinite(v)) and np.all(v >= 0)):
        raise ArgumentError("means and variances must be finite, and variances not negative")
    kappa, errors = as_kernel(kernel), np.sqrt(v)
    accuracy = 1e-9 * float(errors.max())
    if method == "auto" and mu.size == 2:
        pair = gaussian_pair("ke", (mu[0], mu[1]), (errors[0], errors[1]), 1, kernel=kappa)
        return Expectation(pair.expectation, accuracy, exact=True)
    if method == "auto" and errors.max() == 0:
        return Expectation(float(kernel_estimate(mu, v, kappa)), 0.0, exact=True)
    if method == "quadrature" and errors.min() == 0:
        raise ArgumentError("quadrature needs positive variances: use method='qmc'")
    # Nodes in x grow with M, pairs with M², and nodes in T with the ratio of the errors.
    affordable = errors.min() > 0 and mu.size**3 * errors.max() / errors.min() <= _MOST_WORK
    if method == "quadrature" or (method == "auto" and affordable):
        return Expectation(_factorised_expectation(mu, errors, kappa), accuracy, exact=True)
    value, error = _simulated_expectation(mu, errors, kappa, points, scramblings, seed)
    return Expectation(value, error, exact=False)


_MOST_WORK = 1_500.0
_STEPS = np.array([-9.0, -6.0, -4.0, -2.0, 0.0, 2.0, 4.0, 6.0, 9.0])
_T_EDGES = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 28.0, 40.0])


def _factorised_expectation(means: np.ndarray, errors: np.ndarray, kernel: Kernel) -> float:
    top = kernel(np.zeros(1))[0]

    def scaled(statistic: np.ndarray) -> np.ndarray:
        kappa = kernel(statistic) / top
        return np.stack([kappa, np.exp(-10 * kappa)])  # the second is what the integral over t makes of it

    options = range(means.size)
    reference = means.max()
    low = (means - REACH * errors).max()
    t, t_measure = composite(_T_EDGES)
    t_measure = t_measure * np.exp(-t)
    total = 0.0
    for i in options:
        bottom, high = max(low, means[i] - REACH * errors[i]), means[i] + REACH * errors[i]
        if bottom >= high:
            continue  # never the best
        edges = np.clip((means[:, None] + errors[:, None] * _STEPS).ravel(), bottom, high)
        x, x_measure = composite(np.unique(edges))
        x_measure = x_measure * density((x - means[i]) / errors[i]) / errors[i]
        below = np.prod([ndtr((x - means[j]) / errors[j]) for j in options if j != i], axis=0)
        total += np.sum(x_measure * (x - reference) * below)
        factors, shortfalls = [], []
        for j in (j for j in options if j != i):
            theta = math.hypot(errors[i], errors[j])
            span = (
                (means[j] - REACH * errors[j] - high) / theta,
                min(0.0, (means[j] + REACH * errors[j] - bottom) / theta),
            )
            grid = panel_edges(*span, errors[j] / theta, kernel.kinks)
            statistic, measure, (kappa, _) = resolve(scaled, grid, lambda _: FINEST)
            damping = np.exp(-t * kappa[:, None])
            mass = measure * density((x[:, None] + theta * statistic - means[j]) / errors[j]) * theta / errors[j]
            factors.append(mass @ damping)
            shortfalls.append((mass * (kappa * theta * statistic)) @ damping)
        for j, shortfall in enumerate(shortfalls):
            others = np.prod([f for k, f in enumerate(factors) if k != j], axis=0) if len(factors) > 1 else 1.0
            total += x_measure @ (shortfall * others) @ t_measure
    return float(reference + total)


def _simulated_expectation(
    means: np.ndarray, errors: np.ndarray, kernel: Kernel, points: int, scramblings: int, seed: int
) -> tuple[float, float]:
    from scipy.special import ndtri
    from scipy.stats import qmc

    if points < 1 or points & (points - 1):
        raise ArgumentError(f"points must be a power of 2, not {points}")
    if scramblings < 2:
        raise ArgumentError(f"scramblings must be at least 2 for a standard error, not {scramblings}")
    values = []
    for rng in np.random.default_rng(seed).spawn(scramblings):
        uniforms = qmc.Sobol(means.size, rng=rng).random(points)
        # Scrambled points are multiples of 2^-30 or finer and may be 0: half a step keeps the quantile finite.
        draws = means + errors * ndtri(np.clip(uniforms, 2.0**-33, 1 - 2.0**-33))
        values.append(float(np.mean(kernel_estimate(draws, errors**2, kernel))))
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(scramblings))
