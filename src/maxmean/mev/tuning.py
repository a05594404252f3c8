r"""Kernels tuned to a family of problems: parameters that minimise the squared bias (appendix C).

.. math:: \min_\lambda \frac1P \sum_{p=1}^P \operatorname{Bias}\bigl(\hat\mu^{KE}(\kappa_\lambda); p\bigr)^2

The bias is exact (:mod:`maxmean.mev.theory`), so that the loss is a smooth function of the parameters and not a noisy
one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .errors import ArgumentError
from .kernels import Beta, Gaussian, Indicator, Kernel, StudentT
from .theory import gaussian_pair


class Problems(Protocol):
    """Any family of problems: it says what bias a kernel has on each of them."""

    def bias(self, kernel: Kernel) -> np.ndarray:
        """Bias of the K-Estimator with ``kernel`` on every problem of the family."""
        ...


@dataclass(frozen=True)
class GaussianPairs:
    """Two Gaussian options whose true means lie apart by each of ``gaps``; the defaults are the paper's family.

    The paper does not say how finely it divides [0, 5], and its optima move a little with it: the level is 0.142 for
    51 gaps, 0.144 for 101 and 0.145 in the limit, the Gaussian scale 0.842, 0.836 and 0.830.

    >>> GaussianPairs(gaps=(0.0, 5.0)).bias(Gaussian()).round(4)
    array([ 0.335 , -0.0246])
    """

    gaps: tuple[float, ...] = tuple(float(gap) for gap in np.linspace(0.0, 5.0, 51))
    """The true mean of the first option; the second one's is 0."""
    sigma: float | tuple[float, float] = 10.0
    n: int | tuple[int, int] = 100
    correlation: float = 0.0
    corrected: bool = False
    """Whether the statistic is corrected for the correlation (KE*)."""

    def bias(self, kernel: Kernel) -> np.ndarray:
        """Exact bias for every gap."""
        method = "ke*" if self.corrected else "ke"
        mu = (np.asarray(self.gaps), 0.0)
        return gaussian_pair(method, mu, self.sigma, self.n, kernel=kernel, correlation=self.correlation).bias


@dataclass(frozen=True)
class Tuned:
    """The best kernel that was found."""

    kernel: Kernel
    parameters: tuple[float, ...]
    loss: float
    """Mean squared bias over the problems."""
    at_bound: tuple[bool, ...]
    """For each parameter, whether it sits on a bound: the true optimum may then lie beyond."""
    evaluations: int = field(compare=False, default=0)

    @property
    def interior(self) -> bool:
        """Whether no parameter sits on its bound."""
        return not any(self.at_bound)


BOUNDS: dict[Any, tuple[tuple[float, float], ...]] = {
    Indicator: ((1e-4, 0.5),),
    Gaussian: ((0.02, 50.0),),
    StudentT: ((0.1, 1e3),),
    Beta: ((0.1, 1e4), (0.1, 1e4)),
}
"""Where :func:`tune` looks unless told otherwise."""

_GRID_1D = 25
_GRID_ND = 4
_STARTS = 3
_ON_BOUND = 1e-3


def tune(
    family: Callable[..., Kernel],
    *,
    problems: Problems = GaussianPairs(),  # noqa: B008  (frozen)
    bounds: Sequence[tuple[float, float]] | None = None,
    start: Sequence[float] | None = None,
    tolerance: float = 1e-6,
) -> Tuned:
    """Parameters of a kernel that minimise the mean squared bias over a family of problems.

    Parameters
    ----------
    family
        Makes a kernel from its parameters, all positive: a class such as :class:`~maxmean.mev.Gaussian`, or any
        function.
    problems
        The problems to average over; anything with a ``bias(kernel)`` method.
    bounds
        Lowest and highest value of each parameter; :data:`BOUNDS` has them for the parametrised kernels of this
        package.
    start
        Where to begin. Left out, a coarse grid over the bounds finds several places to begin from.
    tolerance
        Accuracy in the logarithm of the parameters.

    Notes
    -----
    The search runs in the logarithms of the parameters and is deterministic. One parameter: a grid brackets the
    minimum and Brent's method refines it. Several: Nelder-Mead from the best places of the grid. An optimum on the
    edge of the search shows in ``at_bound``.

    Examples
    --------
    >>> best = tune(Gaussian, problems=GaussianPairs(gaps=(0.0, 1.0, 2.0, 3.0)))
    >>> round(best.kernel.scale, 2), best.interior
    (0.97, True)
    """
    bounds = BOUNDS.get(family) if bounds is None else bounds
    if bounds is None:
        raise ArgumentError(f"bounds must be given for {getattr(family, '__name__', family)}")
    if not bounds or not all(0 < low < high < math.inf for low, high in bounds):
        raise ArgumentError(f"bounds must be pairs 0 < low < high, one for each parameter, not {bounds}")
    box = np.log(np.asarray(bounds, dtype=float))
    if start is not None:
        inside = len(start) == len(box) and all(low <= s <= high for s, (low, high) in zip(start, bounds, strict=True))
        if not inside:
            raise ArgumentError(f"start must lie within the bounds {bounds}, not {start}")

    count = 0

    def parameters(point: np.ndarray) -> tuple[float, ...]:
        # On a bound the bound itself, which exp(log(bound)) may miss by one rounding.
        limits = zip(point, box, bounds, strict=True)
        return tuple(low if x <= lx else high if x >= hx else math.exp(x) for x, (lx, hx), (low, high) in limits)

    def loss(point: np.ndarray) -> float:
        nonlocal count
        count += 1
        return float(np.mean(problems.bias(family(*parameters(point))) ** 2))

    search = _one_parameter if len(box) == 1 else _several_parameters
    point = search(loss, box, None if start is None else np.log(start), tolerance)
    near = _ON_BOUND * (box[:, 1] - box[:, 0])
    at_bound = tuple(bool(b) for b in (np.abs(box - point[:, None]) <= near[:, None]).any(axis=1))
    values = parameters(point)
    return Tuned(family(*values), values, loss(point), at_bound, count)


def _one_parameter(
    loss: Callable[[np.ndarray], float], box: np.ndarray, start: np.ndarray | None, tolerance: float
) -> np.ndarray:
    from scipy.optimize import minimize_scalar

    # The ends count as candidates themselves, for Brent's method never quite reaches them.
    grid = np.linspace(box[0, 0], box[0, 1], _GRID_1D)
    if start is not None:
        grid = np.unique(np.append(grid, start))
    losses = [loss(np.array([g])) for g in grid]
    best = int(np.argmin(losses))
    bracket = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(
        lambda g: loss(np.array([g])), bounds=bracket, method="bounded", options={"xatol": tolerance}
    )
    return np.array([found.x if found.fun < losses[best] else grid[best]])


def _several_parameters(
    loss: Callable[[np.ndarray], float], box: np.ndarray, start: np.ndarray | None, tolerance: float
) -> np.ndarray:
    from scipy.optimize import minimize

    if start is not None:
        starts = [start]
    else:
        # Cell centres: a simplex that starts on the edge is flat.
        axes = [low + (high - low) * (np.arange(_GRID_ND) + 0.5) / _GRID_ND for low, high in box]
        corners = [np.array(corner) for corner in itertools.product(*axes)]
        starts = sorted(corners, key=loss)[:_STARTS]
    found = [
        minimize(
            loss,
            begin,
            method="Nelder-Mead",
            bounds=[(float(low), float(high)) for low, high in box],
            options={"xatol": tolerance, "fatol": 1e-14, "maxfev": 400 * len(box)},
        )
        for begin in starts
    ]
    return min(found, key=lambda result: float(result.fun)).x
