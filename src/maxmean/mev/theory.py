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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import ndtr

from .estimators import kernel_estimate
from .kernels import Gaussian, Indicator, Kernel, as_kernel

METHODS = ("me", "ae", "de", "cve", "we", "mme", "te", "ke", "te*", "ke*")
"""The estimators by name; a star marks the statistic that is corrected for covariance."""

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
        One of :data:`METHODS`.
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
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    problem = _Pair.make(mu, sigma, n, correlation)
    if method == "mme":
        bias, variance = _maxmin(problem, parts)
    elif method in _CLOSED:
        bias, variance = _CLOSED[method](problem)
    else:
        bias, variance = _by_quadrature(problem, *_weight(method, problem, alpha, kernel))
    expectation = np.maximum(*problem.mu) + bias
    if np.ndim(expectation) == 0:
        return Moments(float(expectation), float(bias), float(variance))
    return Moments(expectation, bias, variance)


@dataclass(frozen=True)
class _Pair:
    """Two Gaussian options; ``spread`` holds the moments of their means, ``halves`` those of the two halves' means."""

    mu: tuple[np.ndarray, np.ndarray]
    sigma: tuple[float, float]
    n: tuple[int, int]
    correlation: float

    @staticmethod
    def make(mu: tuple[Any, Any], sigma: Any, n: Any, correlation: float) -> _Pair:
        first, second = np.broadcast_arrays(*(np.asarray(m, dtype=float) for m in mu))
        sigmas = tuple(float(s) for s in np.broadcast_to(sigma, 2))
        sizes = tuple(int(size) for size in np.broadcast_to(n, 2))
        if not (np.all(np.isfinite(first)) and np.all(np.isfinite(second))):
            raise ValueError("mu must be finite")
        if not all(0 <= s < math.inf for s in sigmas):
            raise ValueError(f"sigma must be finite and not negative, not {sigma}")
        if not np.array_equal(np.broadcast_to(n, 2), sizes) or min(sizes) < 1:
            raise ValueError(f"n must be a whole number of at least 1, not {n}")
        if not -1 <= correlation <= 1:
            raise ValueError(f"correlation must lie in [-1, 1], not {correlation}")
        if correlation and sizes[0] != sizes[1]:
            raise ValueError(f"correlated samples are paired and so of equal size, not {sizes[0]} and {sizes[1]}")
        return _Pair((first, second), (sigmas[0], sigmas[1]), (sizes[0], sizes[1]), float(correlation))

    @property
    def gap(self) -> np.ndarray:
        return self.mu[0] - self.mu[1]

    def spread(self) -> _Spread:
        return _Spread.make(self.sigma, self.n, self.correlation)

    def halves(self) -> tuple[_Spread, _Spread]:
        if min(self.n) < 2:
            raise ValueError(f"two halves need n of at least 2, not {min(self.n)}")
        sizes = [part_sizes(size, 2) for size in self.n]
        first, second = zip(*sizes, strict=True)
        return _Spread.make(self.sigma, first, self.correlation), _Spread.make(self.sigma, second, self.correlation)


@dataclass(frozen=True)
class _Spread:
    """Second moments of two means: variances, standard deviation of the difference, and the independent rest A."""

    v1: float
    v2: float
    theta: float
    share: float
    """b, the multiple of D in A."""
    rest: float
    """Variance of A."""

    @staticmethod
    def make(sigma: tuple[float, float], sizes: Sequence[int], correlation: float) -> _Spread:
        s1, s2 = (s / math.sqrt(size) for s, size in zip(sigma, sizes, strict=True))
        # Written so that nothing cancels when the two means are almost the same variable.
        theta = math.sqrt((s1 - s2) ** 2 + 2 * (1 - correlation) * s1 * s2)
        if theta == 0:
            return _Spread(s1 * s1, s2 * s2, 0.0, 0.0, s2 * s2)
        share = (s2 / theta) * ((s2 - s1) + (1 - correlation) * s1) / theta
        rest = (s1 / theta) ** 2 * s2**2 * (1 - correlation) * (1 + correlation)
        return _Spread(s1 * s1, s2 * s2, theta, share, rest)

    def select_first(self, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """P(D > 0), and theta times the standard normal density of gap/theta."""
        if self.theta == 0:
            return (1 + np.sign(gap)) / 2, np.zeros_like(gap)
        z = gap / self.theta
        return ndtr(z), self.theta * _density(z)


def part_sizes(n: int, parts: int) -> tuple[int, ...]:
    """Sizes of ``parts`` parts of n observations, as equal as can be; the first ones take the remainder.

    >>> part_sizes(7, 3)
    (3, 2, 2)
    """
    return tuple(n // parts + (j < n % parts) for j in range(parts))


def _maximum(pair: _Pair) -> tuple[np.ndarray, np.ndarray]:
    """Clark's moments of the larger of two Gaussians, about the larger mean."""
    spread, gap = pair.spread(), pair.gap
    size = np.abs(gap)
    miss, peak = spread.select_first(-size)
    bias = peak - size * miss
    better, worse = (np.where(gap >= 0, a, b) for a, b in ((spread.v1, spread.v2), (spread.v2, spread.v1)))
    second = better * (1 - miss) + (worse + size**2) * miss - size * peak
    return bias, second - bias**2


def _average(pair: _Pair) -> tuple[np.ndarray, np.ndarray]:
    spread, gap = pair.spread(), pair.gap
    covariance = (spread.v1 + spread.v2 - spread.theta**2) / 2
    return 0.0 - np.abs(gap) / 2, np.full_like(gap, (spread.v1 + spread.v2 + 2 * covariance) / 4)


def _double(pair: _Pair) -> tuple[np.ndarray, np.ndarray]:
    a, b = pair.halves()
    return _one_direction(a, b, pair.gap)


def _one_direction(select: _Spread, evaluate: _Spread, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    p, _ = select.select_first(gap)
    q = select.select_first(-gap)[0]
    bias = 0.0 - np.abs(gap) * np.where(gap > 0, q, p)
    return bias, p * evaluate.v1 + q * evaluate.v2 + p * q * gap**2


def _cross_validation(pair: _Pair) -> tuple[np.ndarray, np.ndarray]:
    r"""Both directions share the data: Cov = E[D_A^+] E[D_B^+] - gap (gap p_A p_B + b_A peak_A + b_B peak_B)."""
    a, b = pair.halves()
    gap = pair.gap
    # The covariance does not change when the options trade places; the smaller probabilities keep it from cancelling.
    size = np.abs(gap)
    (bias_a, variance_a), (bias_b, variance_b) = _one_direction(a, b, gap), _one_direction(b, a, gap)
    (p_a, peak_a), (p_b, peak_b) = a.select_first(-size), b.select_first(-size)
    share_a, share_b = (np.where(gap > 0, 1 - s.share, s.share) for s in (a, b))
    shortfall_a, shortfall_b = peak_a - size * p_a, peak_b - size * p_b
    covariance = shortfall_a * shortfall_b + size * (share_a * peak_a + share_b * peak_b) - size**2 * p_a * p_b
    return (bias_a + bias_b) / 2, (variance_a + variance_b + 2 * covariance) / 4


_CLOSED: dict[str, Callable[[_Pair], tuple[np.ndarray, np.ndarray]]] = {
    "me": _maximum,
    "ae": _average,
    "de": _double,
    "cve": _cross_validation,
}


def _weight(method: str, pair: _Pair, alpha: float, kernel: KernelLike) -> tuple[Callable, tuple[float, ...]]:
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


_REACH = 9.0
"""Standard deviations beyond which a Gaussian (1e-19) is left out."""
_SPAN = 8.0
"""Gaps that lie within so many standard deviations share one set of nodes."""


def _by_quadrature(pair: _Pair, weight: Callable, kinks: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    spread, theta = pair.spread(), pair.spread().theta
    gaps = pair.gap.ravel()
    if theta == 0:
        bias = gaps * (weight(gaps) - (gaps > 0))
        return bias.reshape(pair.gap.shape), np.full_like(pair.gap, spread.rest)

    def finest(centre: np.ndarray) -> np.ndarray:
        return _FINEST * theta / np.clip(np.abs(centre) / theta, 1e-6, 1.0)  # the weight counts times D: less so near 0

    bias, variance = np.empty_like(gaps), np.empty_like(gaps)
    order = np.argsort(gaps)
    while order.size:
        near = gaps[order] <= gaps[order[0]] + _SPAN * theta
        group, order = order[near], order[~near]
        gap = gaps[group, None]
        edges = _edges(
            gap.min() - _REACH * theta, gap.max() + _REACH * theta, theta, (0.0, *kinks, *(-k for k in kinks))
        )
        difference, measure, share = _resolve(weight, edges, finest)
        mass = measure * _density((difference - gap) / theta) / theta
        upper = gap > 0
        # Everything relative to the better option: a large gap then costs no digits.
        excess = difference * (share - upper)
        bias[group] = np.sum(mass * excess, axis=-1)
        deviation = excess + (difference - gap) * (upper - spread.share) - bias[group, None]
        variance[group] = spread.rest + np.sum(mass * deviation**2, axis=-1)
    return bias.reshape(pair.gap.shape), variance.reshape(pair.gap.shape)


def _maxmin(pair: _Pair, parts: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Moments of the larger of two smallest part means, from its distribution function :math:`F = F_1 F_2`."""
    if pair.correlation:
        raise ValueError("the exact moments of mme need independent options: correlation must be 0")
    if not 1 <= parts <= min(pair.n):
        raise ValueError(f"parts must lie between 1 and the sample size {min(pair.n)}, not {parts}")
    errors = [s / np.sqrt(part_sizes(size, parts)) for s, size in zip(pair.sigma, pair.n, strict=True)]
    gap = pair.gap.ravel()
    # Both means relative to the larger one, which is thereby 0: the point that the moments are taken about.
    centres = [np.minimum(gap, 0.0), np.minimum(-gap, 0.0)]
    steps = np.linspace(-_REACH, _REACH, 13)
    edges = np.concatenate([c[:, None] + e.max() * steps for c, e in zip(centres, errors, strict=True)], axis=-1)
    edges = np.sort(np.concatenate([edges, np.zeros((gap.size, 1))], axis=-1), axis=-1)
    half = np.diff(edges)[..., None] / 2
    x = (edges[:, :-1, None] + half) + half * _NODES
    cdf = np.ones_like(x)
    for centre, error in zip(centres, errors, strict=True):
        survival = np.ones_like(x)
        for e in error:
            below = centre[:, None, None] - x
            survival *= ndtr(below / e) if e > 0 else below >= 0
        cdf *= 1 - survival
    tail = half * _WEIGHTS * np.where(x > 0, 1 - cdf, -cdf)
    bias = tail.sum(axis=(-2, -1))
    variance = 2 * (x * tail).sum(axis=(-2, -1)) - bias**2
    return bias.reshape(pair.gap.shape), variance.reshape(pair.gap.shape)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_TO_LEGENDRE = np.polynomial.legendre.legvander(_NODES, 15) * _WEIGHTS[:, None] * (np.arange(16) + 0.5)
_AT_ENDS = np.stack([(-1.0) ** np.arange(16), np.ones(16)], axis=-1)
_TOLERANCE = 1e-11
_FINEST = 1e-12
_MOST_PANELS = 3_000


def _density(z: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


def _edges(low: float, high: float, width: float, points: Sequence[float]) -> np.ndarray:
    """Panel edges from ``low`` to ``high``, at most ``width`` apart, with ``points`` among them."""
    regular = np.linspace(low, high, math.ceil((high - low) / width) + 1)
    return np.unique(np.concatenate([regular, [p for p in points if low < p < high]]))


def _resolve(function: Callable, edges: np.ndarray, finest: Callable) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes, their measure and the function there, on panels fine enough for ``function``.

    A panel is halved until the function is a polynomial of degree 15 on it, its ends included. The ends matter: the
    functions here are monotone, so that what hides between two nodes still shows there, even a jump that nobody
    announced. ``function`` may add leading axes; all of its values are then resolved.
    """
    left, right = edges[:-1], edges[1:]
    found = []
    panels = left.size
    while left.size:
        centre, half = (left + right) / 2, (right - left) / 2
        points = centre[:, None] + half[:, None] * _NODES
        values = function(points)
        modes = values @ _TO_LEGENDRE
        ends = function(np.stack([left, right], axis=-1))
        doubt = np.maximum(np.abs(modes[..., -2:]).max(axis=-1), np.abs(modes @ _AT_ENDS - ends).max(axis=-1))
        rough = (doubt > _TOLERANCE).reshape(-1, left.size).any(axis=0) & (half > finest(centre))
        panels += int(rough.sum())
        if panels > _MOST_PANELS:
            rough[:] = False
        found.append((points[~rough], (half[:, None] * _WEIGHTS)[~rough], values[..., ~rough, :]))
        left, right = np.concatenate([left[rough], centre[rough]]), np.concatenate([centre[rough], right[rough]])
    points, measure, values = (np.concatenate(part, axis=-2) for part in zip(*found, strict=True))
    return points.ravel(), measure.ravel(), values.reshape(*values.shape[:-2], -1)


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
    this serves up to about a dozen options (``method="auto"``); more of them, or certain ones among uncertain ones,
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
    if mu.ndim != 1:
        raise ValueError(f"means must have one axis, the options, not shape {mu.shape}")
    if not (np.all(np.isfinite(mu)) and np.all(np.isfinite(v)) and np.all(v >= 0)):
        raise ValueError("means and variances must be finite, and variances not negative")
    kappa, errors = as_kernel(kernel), np.sqrt(v)
    accuracy = 1e-9 * float(errors.max())
    if method == "auto" and mu.size == 2:
        pair = gaussian_pair("ke", (mu[0], mu[1]), (errors[0], errors[1]), 1, kernel=kappa)
        return Expectation(pair.expectation, accuracy, exact=True)
    if method == "auto" and errors.max() == 0:
        return Expectation(float(kernel_estimate(mu, v, kappa)), 0.0, exact=True)
    if method == "quadrature" and errors.min() == 0:
        raise ValueError("quadrature needs positive variances: use method='qmc'")
    # Nodes in x grow with M, pairs with M², and nodes in T with the ratio of the errors.
    affordable = errors.min() > 0 and mu.size**3 * errors.max() / errors.min() <= _MOST_WORK
    if method == "quadrature" or (method == "auto" and affordable):
        return Expectation(_factorised_expectation(mu, errors, kappa), accuracy, exact=True)
    value, error = _simulated_expectation(mu, errors, kappa, points, scramblings, seed)
    return Expectation(value, error, exact=False)


_MOST_WORK = 4_000.0
_STEPS = np.array([-9.0, -6.0, -4.0, -2.0, 0.0, 2.0, 4.0, 6.0, 9.0])
_T_EDGES = np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 28.0, 40.0])


def _composite(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half + half * _NODES).ravel(), (half * _WEIGHTS).ravel()


def _factorised_expectation(means: np.ndarray, errors: np.ndarray, kernel: Kernel) -> float:
    top = kernel(np.zeros(1))[0]

    def scaled(statistic: np.ndarray) -> np.ndarray:
        kappa = kernel(statistic) / top
        return np.stack([kappa, np.exp(-10 * kappa)])  # the second is what the integral over t makes of it

    options = range(means.size)
    reference = means.max()
    low = (means - _REACH * errors).max()
    t, t_measure = _composite(_T_EDGES)
    t_measure = t_measure * np.exp(-t)
    total = 0.0
    for i in options:
        bottom, high = max(low, means[i] - _REACH * errors[i]), means[i] + _REACH * errors[i]
        if bottom >= high:
            continue  # never the best
        edges = np.clip((means[:, None] + errors[:, None] * _STEPS).ravel(), bottom, high)
        x, x_measure = _composite(np.unique(edges))
        x_measure = x_measure * _density((x - means[i]) / errors[i]) / errors[i]
        below = np.prod([ndtr((x - means[j]) / errors[j]) for j in options if j != i], axis=0)
        total += np.sum(x_measure * (x - reference) * below)
        factors, shortfalls = [], []
        for j in (j for j in options if j != i):
            theta = math.hypot(errors[i], errors[j])
            span = (
                (means[j] - _REACH * errors[j] - high) / theta,
                min(0.0, (means[j] + _REACH * errors[j] - bottom) / theta),
            )
            grid = _edges(*span, errors[j] / theta, kernel.kinks)
            statistic, measure, (kappa, _) = _resolve(scaled, grid, lambda _: _FINEST)
            damping = np.exp(-t * kappa[:, None])
            mass = measure * _density((x[:, None] + theta * statistic - means[j]) / errors[j]) * theta / errors[j]
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
        raise ValueError(f"points must be a power of 2, not {points}")
    if scramblings < 2:
        raise ValueError(f"scramblings must be at least 2 for a standard error, not {scramblings}")
    values = []
    for rng in np.random.default_rng(seed).spawn(scramblings):
        uniforms = qmc.Sobol(means.size, rng=rng).random(points)
        # Scrambled points are multiples of 2^-30 or finer and may be 0: half a step keeps the quantile finite.
        draws = means + errors * ndtri(np.clip(uniforms, 2.0**-33, 1 - 2.0**-33))
        values.append(float(np.mean(kernel_estimate(draws, errors**2, kernel))))
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(scramblings))


def bias_bounds(method: str, means: Any, variances: Any, *, sizes: Any = None, parts: int = 2) -> tuple[float, float]:
    r"""Lowest and highest bias that the method can have, for options with these true means and variances of the means.

    With Aven's :math:`B = \sqrt{\frac{M-1}{M} \sum_i v_i}`:

    ======================  =============================================================  =========================
    method                  bounds                                                         status
    ======================  =============================================================  =========================
    ``me``                  0, B                                                           proven (Aven, 1985)
    ``ae``                  both :math:`\overline\mu - \mu_*`                               exact
    ``de``, ``cve``         :math:`-\frac12(\sqrt{\sum v^A_i} + \sqrt{\sum v^B_i})`, 0      lower conjectured
                                                                                           (van Hasselt, 2013)
    ``we``                  those of DE and ME                                             lower conjectured
    ``te``, ``ke``,         :math:`\min\mu - \mu_* - B`, B                                 proven (Lemma 1 and its
    ``te*``, ``ke*``                                                                       corollary)
    ``mme``                 :math:`-\sqrt{N (N-1) v_*}`, B                                 proven; equal parts
    ======================  =============================================================  =========================

    B needs no independence and no Gaussians. Lemma 1 says more than B: the bias of TE and KE stays below that of the
    ME, which :func:`gaussian_pair` gives. DE and CVE need the variances of the halves' means: :math:`v^A_i = v_i n_i
    / n^A_i` from ``sizes``, the numbers of observations, or :math:`2 v_i` without. The paper has no bound for MME;
    this one is Aven's for the smallest of the N parts of the best option, and, from above, the smallest part mean
    being no more than the mean of all parts. That WE lies above DE holds for halves of equal size: where n is odd and
    the gap large, a DE that selects on the larger half comes out slightly above it.

    >>> low, high = bias_bounds("me", [0.0, 0.0], [1.0, 1.0])
    >>> low, high
    (0.0, 1.0)
    >>> bias_bounds("ae", [1.0, 0.0], [1.0, 1.0])
    (-0.5, -0.5)
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    mu, v = np.broadcast_arrays(np.asarray(means, dtype=float), np.asarray(variances, dtype=float))
    best = float(mu.max())
    upper = math.sqrt((mu.size - 1) / mu.size * float(v.sum()))
    if method == "me":
        return 0.0, upper
    if method == "ae":
        return float(mu.mean()) - best, float(mu.mean()) - best
    if method == "mme":
        # Every option that is truly best gives a valid bound; the steadiest one gives the tightest.
        return -math.sqrt(parts * (parts - 1) * float(v[mu == best].min())), upper
    if method in ("de", "cve", "we"):
        halves = 2.0, 2.0
        if sizes is not None:
            n = np.broadcast_to(np.asarray(sizes), mu.shape)
            halves = n / ((n + 1) // 2), n / (n // 2)
        lower = -0.5 * sum(math.sqrt(float(np.sum(v * half))) for half in halves)
        return lower, upper if method == "we" else 0.0
    return float(mu.min()) - best - upper, upper


def variance_bound(variances: Any, means: Any = None) -> float:
    r"""The paper's bound :math:`\sum_i v_i` on an estimator's variance, or with true ``means`` one that always holds.

    The bound without means is printed for ME, CVE, WE, TE and KE (Lemma 2 and its corollary). It is true of the ME,
    and of WE, TE and KE where the true means are equal, but **not in general**: weights that follow the data can move
    the estimate more than any one mean moves. :func:`gaussian_pair` shows it for an option beside a certain one
    (``sigma=(1, 0)``), where the variance reaches 1.07 times the bound for WE, 1.12 for KE (Gaussian), 1.19 for
    TE(0.1) and 1.48 for CVE; and with equal variances for TE at alpha below about 0.006.

    With ``means`` the bound is

    .. math:: \sum_i v_i + \sum_i (\mu_i - \overline\mu)^2

    proven for every estimate between the smallest and the largest mean (ME, AE, WE, TE, KE), however dependent the
    means: its square about any point c is at most :math:`\sum_i (\hat\mu_i - c)^2`.

    >>> variance_bound([1.0, 1.0])
    2.0
    >>> gaussian_pair("te", mu=(2.0, 0.0), sigma=(1.0, 0.0), n=1, alpha=0.1).variance > variance_bound([1.0, 0.0])
    True
    >>> variance_bound([1.0, 0.0], means=[2.0, 0.0])
    3.0
    """
    total = float(np.sum(np.asarray(variances, dtype=float)))
    if means is None:
        return total
    mu = np.asarray(means, dtype=float)
    return total + float(np.sum((mu - mu.mean()) ** 2))
