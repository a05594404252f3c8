"""Estimators of the maximum expected value, as pure functions of arrays.

The last axis runs over the options, leading axes broadcast, and the result has the leading shape. ``variances`` are always those
*of the means*. An estimator that splits the data takes the means of the parts: :mod:`maxmean.mev.data` makes them from samples.
Every estimate is a weighted mean of means (of parts of the data, for ``de``, ``cve`` and ``mme``); those
weights add up to one, and :func:`maxmean.mev.evaluate` gives them with the value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial

import numpy as np

from .arrays import Array, Rng, as_floats, constant, namespace, normal, special, uniform
from .kernels import Gaussian, Indicator, Kernel, as_kernel
from .statistic import check_options, t_statistic


def maximum_estimate(means: Array) -> Array:
    r"""Maximum estimator ME, the largest sample mean. It overestimates.

    .. math:: \hat\mu = \max_i \hat\mu_i

    >>> float(maximum_estimate([1.0, 4.0, 2.0]))
    4.0
    """
    xp = namespace(means)
    (means,) = as_floats(xp, means)
    return xp.max(means, axis=-1)


def average_estimate(means: Array) -> Array:
    r"""Average estimator AE, the mean of all means: least variance, and the T-Estimator's limit for alpha to 0.

    .. math:: \hat\mu = \frac1M \sum_i \hat\mu_i

    >>> float(average_estimate([1.0, 4.0, 4.0]))
    3.0
    """
    xp = namespace(means)
    (means,) = as_floats(xp, means)
    return weighted_mean(means, xp.ones_like(means))


def double_estimate(selection_means: Array, evaluation_means: Array, rng: Rng = 0) -> Array:
    r"""Double estimator DE (van Hasselt, 2010): one half of the data picks the option, the other half says its mean.

    .. math:: \hat\mu = \hat\mu_{a}(S^B), \qquad a = \arg\max_i \hat\mu_i(S^A)

    Ties in the choice are broken at random with ``rng``, never by position.

    >>> float(double_estimate([1.0, 3.0], [2.0, 2.5]))
    2.5
    """
    xp = namespace(selection_means, evaluation_means)
    selection_means, evaluation_means = as_floats(xp, selection_means, evaluation_means)
    chosen = random_argmax(selection_means, rng)
    return xp.sum(xp.where(chosen, evaluation_means, xp.zeros_like(evaluation_means)), axis=-1)


def cross_validation_estimate(means_a: Array, means_b: Array, rng: Rng = 0) -> Array:
    r"""Two-fold cross-validation estimator CVE: the mean of the double estimates in both directions.

    .. math:: \hat\mu = \tfrac12 \left(\hat\mu_{a}(S^B) + \hat\mu_{b}(S^A)\right)

    >>> float(cross_validation_estimate([1.0, 3.0], [2.0, 2.5]))
    2.75
    """
    xp = namespace(means_a, means_b)
    means_a, means_b = xp.broadcast_arrays(*as_floats(xp, means_a, means_b))
    both = xp.stack([means_a, means_b])
    estimates = double_estimate(both, xp.flip(both, axis=0), rng)
    return 0.5 * estimates[0] + 0.5 * estimates[1]


def maxmin_estimate(part_means: Array) -> Array:
    r"""MaxMin estimator MME (Lan et al., 2020) of the means of N disjoint parts, shape ``(N, ..., M)``.

    .. math:: \hat\mu = \max_i \min_j \hat\mu(S_i^j)

    >>> float(maxmin_estimate([[1.0, 3.0], [2.0, 0.0]]))
    1.0
    """
    xp = namespace(part_means)
    (part_means,) = as_floats(xp, part_means)
    return xp.max(xp.min(part_means, axis=0), axis=-1)


def weighted_estimate(means: Array, variances: Array, *, draws: int | None = None, rng: Rng = 0) -> Array:
    r"""Weighted estimator WE (D'Eramo et al., 2016): each mean counts with the probability of being the largest.

    .. math:: \hat\mu = \sum_i w_i \hat\mu_i, \qquad w_i = \int f_i(x) \prod_{j \ne i} F_j(x)\,dx

    under independent Gaussians around the sample means. The integral is exact (quadrature, absolute error below 1e-10 in
    float64) unless ``draws`` asks for Monte Carlo; the paper uses 100 draws.

    >>> round(float(weighted_estimate([0.0, 1.0], [0.5, 0.5])), 12) == round(0.8413447460685429, 12)
    True
    """
    return weighted_mean(means, best_probabilities(means, variances, draws=draws, rng=rng))


def t_estimate(means: Array, variances: Array, alpha: Array = 0.1, *, covariances: Array | None = None) -> Array:
    r"""T-estimate: the average of all means that a one-sided test at level alpha does not find smaller than the best.

    .. math:: \hat\mu = \sum_i 1\{T_i \ge z_\alpha\} \hat\mu_i \Big/ \sum_i 1\{T_i \ge z_\alpha\}

    alpha = 0.5 gives the maximum, bit for bit. With ``covariances`` this is TE*.

    >>> float(t_estimate([0.0, 1.0, 9.0], [1.0, 1.0, 1.0], alpha=0.1))
    9.0
    >>> float(t_estimate([8.0, 1.0, 9.0], [1.0, 1.0, 1.0], alpha=0.1))
    8.5
    """
    return kernel_estimate(means, variances, Indicator(alpha), covariances=covariances)


def kernel_estimate(
    means: Array,
    variances: Array,
    kernel: Kernel | Callable[[Array], Array] = Gaussian(),  # noqa: B008  (frozen)
    *,
    covariances: Array | None = None,
) -> Array:
    r"""K-estimate of the largest mean: the means, weighted by a kernel of how far each lies below the best.

    .. math:: \hat\mu = \sum_i \kappa(T_i)\,\hat\mu_i \Big/ \sum_i \kappa(T_i)

    ``variances`` are those *of the means* (s²/n). The last axis runs over the options; leading axes broadcast. With
    ``covariances`` (of the means, shape ``(..., M, M)``, from paired samples) this is KE*. The result never leaves
    [smallest mean, largest mean].

    >>> round(float(kernel_estimate([0.0, 1.0], [1.0, 1.0])), 6)
    0.675904
    """
    kernel = as_kernel(kernel)
    if covariances is None and _many(means, variances, kernel):
        # Pieces that fit the processor's cache take two thirds of the time of passes over the whole.
        rows, row_variances = means.reshape(-1, means.shape[-1]), variances.reshape(-1, means.shape[-1])
        step = max(1, _PIECE // means.shape[-1])
        pieces = [slice(i, i + step) for i in range(0, len(rows), step)]
        return np.concatenate([_kernel_estimate(rows[p], row_variances[p], kernel) for p in pieces]).reshape(
            means.shape[:-1]
        )
    return _kernel_estimate(means, variances, kernel, covariances)


def _kernel_estimate(means: Array, variances: Array, kernel: Kernel, covariances: Array | None = None) -> Array:
    return weighted_mean(means, kernel(t_statistic(means, variances, covariances=covariances)))


_PIECE = 100_000  # means in a piece


def _many(means: Array, variances: Array, kernel: Kernel) -> bool:
    """Whether these are NumPy arrays of one shape, larger than a piece, and the kernel is the same for all of them."""
    arrays = isinstance(means, np.ndarray) and isinstance(variances, np.ndarray) and means.shape == variances.shape
    return arrays and means.size > _PIECE and all(np.ndim(value) == 0 for value in vars(kernel).values())


def weighted_mean(means: Array, weights: Array) -> Array:
    """Mean with non-negative weights over the last axis, taken relative to the largest mean.

    Relative, because then means that tie for the largest add exactly nothing: a weight on them alone returns the largest
    mean bit for bit, and no rounding carries the result above it. Below the smallest mean it is stopped.
    """
    xp = namespace(means, weights)
    means, weights = as_floats(xp, means, weights)
    best = xp.max(means, axis=-1, keepdims=True)
    shortfall = xp.vecdot(weights, means - best) / xp.sum(weights, axis=-1)
    smallest, mean = xp.min(means, axis=-1), best[..., 0] + shortfall
    return xp.where(mean < smallest, smallest, mean)


def kernel_weights(
    means: Array, variances: Array, kernel: Kernel | Callable[[Array], Array], *, covariances: Array | None = None
) -> Array:
    """The normalised weights of :func:`kernel_estimate`.

    >>> kernel_weights([8.0, 1.0, 9.0], [1.0, 1.0, 1.0], Indicator(0.1))
    array([0.5, 0. , 0.5])
    """
    weights = as_kernel(kernel)(t_statistic(means, variances, covariances=covariances))
    return weights / namespace(weights).sum(weights, axis=-1, keepdims=True)


def random_argmax(values: Array, rng: Rng) -> Array:
    """Boolean array, true at one largest value of each row; ties are broken at random."""
    xp = namespace(values)
    tied = values == xp.max(values, axis=-1, keepdims=True)
    lottery = xp.where(tied, uniform(rng, tuple(values.shape), values), -xp.ones_like(values))
    winner = xp.argmax(lottery, axis=-1)[..., None]
    return winner == constant(np.arange(values.shape[-1]), winner)


def best_probabilities(means: Array, variances: Array, *, draws: int | None = None, rng: Rng = 0) -> Array:
    r"""P(option is the largest) under independent Gaussians with these means and variances (of the means).

    Exact quadrature, or the share of ``draws`` Monte Carlo draws that an option wins.

    >>> best_probabilities([0.0, 1.0], [0.5, 0.5]).round(6)
    array([0.158655, 0.841345])
    """
    xp = namespace(means, variances)
    means, variances = as_floats(xp, means, variances)
    check_options(means, variances)
    means, variances = xp.broadcast_arrays(means, variances)
    if draws is not None:
        if draws < 1:
            raise ValueError(f"draws must be at least 1, not {draws}")
        return _drawn_probabilities(xp, means, variances, draws, rng)
    if xp is np:
        weights = _by_rows(means, variances)
    elif xp.__name__ == "jax.numpy":
        weights = _compiled_probabilities()(means, variances)
    else:
        weights = _integrated_probabilities(xp, means, variances)
    ties = xp.astype(means == xp.max(means, axis=-1, keepdims=True), means.dtype)
    certain = xp.max(variances, axis=-1, keepdims=True) == 0
    return xp.where(certain, ties / xp.sum(ties, axis=-1, keepdims=True), weights)


@cache
def _compiled_probabilities() -> Callable[..., Array]:
    """Compiled as a whole: JAX would compile each step of the integral on its own, seconds for every new shape."""
    import jax

    return jax.jit(partial(_integrated_probabilities, jax.numpy))


def _drawn_probabilities(xp: Array, means: Array, variances: Array, draws: int, rng: Rng) -> Array:
    values = means + xp.sqrt(variances) * normal(rng, (draws, *means.shape), means)
    won = xp.astype(values == xp.max(values, axis=-1, keepdims=True), means.dtype)
    return xp.mean(won / xp.sum(won, axis=-1, keepdims=True), axis=0)


_REACH = 8.5  # standard errors beyond which the Gaussian (1e-17) is nothing beside a probability
_BREAKS = (-_REACH, -5.0, -2.5, 0.0, 2.5, 5.0, _REACH)
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(12)
_FAR = 100.0  # widest standard errors below the best where an option may be put if it lies lower still
_NARROWEST = 1e-15  # widest standard errors: a certain option is one as narrow as this
_ALIKE = 0.2  # widest standard errors: options no narrower than this share equal panels
_BLOCK = 2_000  # means integrated at once: bounds the memory of a large batch


def _integrated_probabilities(xp: Array, means: Array, variances: Array) -> Array:
    gaps, errors = _standardised(xp, means, variances)
    return _weights(xp, gaps, errors, *_panels(xp, gaps, errors))


def _by_rows(means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """The same for NumPy: a block of rows at a time, those whose options are about as wide with cheaper panels."""
    options = means.shape[-1]
    gaps, errors = _standardised(np, means.reshape(-1, options), variances.reshape(-1, options))
    alike = errors.min(axis=-1, initial=1.0) > _ALIKE
    weights = np.empty_like(gaps)
    for group, panels in ((alike, _uniform_panels), (~alike, partial(_panels, np))):
        rows = np.flatnonzero(group)
        step = max(1, _BLOCK // max(options, 1))
        for block in (rows[i : i + step] for i in range(0, len(rows), step)):
            weights[block] = _weights(np, gaps[block], errors[block], *panels(gaps[block], errors[block]))
    return weights.reshape(means.shape)


def _standardised(xp: Array, means: Array, variances: Array) -> tuple[Array, Array]:
    """Means relative to the best and standard errors, both in units of the widest standard error.

    Certain options become very narrow ones. An option that ends below where another begins never wins: it is put far below,
    as wide as the widest, where it costs nothing. The inner `where`s keep derivatives finite where the outer ones discard them.
    """
    widest = xp.max(variances, axis=-1, keepdims=True)
    certain = widest == 0
    unit = xp.sqrt(xp.where(certain, 1.0, widest))
    narrow = variances <= _NARROWEST**2 * widest
    errors = xp.where(narrow, _NARROWEST, xp.sqrt(xp.where(narrow, 1.0, variances)) / unit)
    gaps = means - xp.max(means, axis=-1, keepdims=True)
    far = gaps < -_FAR * unit
    scaled = xp.where(far, 0.0, gaps) / unit
    hopeless = far | (
        scaled + _REACH * errors < xp.max(xp.where(far, -xp.inf, scaled - _REACH * errors), axis=-1, keepdims=True)
    )
    hopeless = hopeless | (certain & (gaps < 0))
    return xp.where(hopeless, -_FAR, scaled), xp.where(hopeless, 1.0, errors)


def _weights(xp: Array, gaps: Array, errors: Array, centres: Array, start: Array, half: Array) -> Array:
    """Gauss-Legendre on the panels. The integrand is f_i/F_i times the product of all F_j."""
    nodes, node_weights = (constant(values, gaps) for values in (_NODES, _NODE_WEIGHTS))
    offsets = (start[..., None] + half[..., None] * (1 + nodes))[..., None]  # (..., panels, nodes, 1)
    measure = (half[..., None] * node_weights)[..., None]
    z = ((centres[..., None] - gaps[..., None, :])[..., None, :] + offsets) / errors[..., None, None, :]
    log_cdf = special(xp).log_ndtr(z)
    log_density = -0.5 * z * z - xp.log(errors * math.sqrt(2 * math.pi))[..., None, None, :]
    integrand = xp.exp(log_density - log_cdf + xp.sum(log_cdf, axis=-1, keepdims=True))
    weights = xp.sum(measure * integrand, axis=(-3, -2))
    return weights / xp.sum(weights, axis=-1, keepdims=True)


def _uniform_panels(gaps: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Panels of equal width, in the form of :func:`_panels`. Where all densities are about as wide these are enough.

    Many options then cost a few panels and not a few for each of them.
    """
    low = (gaps - _REACH * errors).max(axis=-1, keepdims=True)
    high = (gaps + _REACH * errors).max(axis=-1, keepdims=True)
    panels = math.ceil((high - low).max() / (1.5 * errors.min()))
    half = np.broadcast_to((high - low) / (2 * panels), (*low.shape[:-1], panels))
    return np.zeros_like(half), low + 2 * half * np.arange(panels), half


def _panels(xp: Array, gaps: Array, errors: Array) -> tuple[Array, Array, Array]:
    """The panels between the break points: the mean that each is measured from, its start relative to that, its half width.

    Relative to a mean, because a panel inside a narrow density far from zero has no width in absolute floating-point numbers.
    """
    options = gaps.shape[-1]
    bottom, top = gaps - _REACH * errors, gaps + _REACH * errors
    owner = constant(np.tile(np.arange(options), len(_BREAKS)), xp.argmax(gaps, axis=-1))
    multiple = constant(np.repeat(_BREAKS, options), gaps)
    owner, multiple = (xp.broadcast_to(a, (*gaps.shape[:-1], a.shape[0])) for a in (owner, multiple))

    def of(values: Array, index: Array) -> Array:
        return xp.take_along_axis(values, index, axis=-1)

    def narrowest(among: Array) -> Array:
        return xp.argmin(xp.where(among, errors[..., None, :], xp.inf), axis=-1)

    # Inside a much narrower density, and below the lowest point that counts, a break point moves to the lower end there.
    point = (of(gaps, owner) + multiple * of(errors, owner))[..., None]
    inside = (bottom[..., None, :] < point) & (point < top[..., None, :])
    inside = inside & (errors[..., None, :] < 0.1 * of(errors, owner)[..., None])
    moved = xp.any(inside, axis=-1)
    owner, multiple = xp.where(moved, narrowest(inside), owner), xp.where(moved, -_REACH, multiple)
    lowest = xp.argmax(bottom, axis=-1)[..., None]
    moved = of(gaps, owner) + multiple * of(errors, owner) < of(bottom, lowest)
    owner, multiple = xp.where(moved, lowest, owner), xp.where(moved, -_REACH, multiple)

    # In order; points that only their offsets tell apart, by these.
    order = xp.argsort(multiple * of(errors, owner), axis=-1)
    owner, multiple = of(owner, order), of(multiple, order)
    order = xp.argsort(of(gaps, owner) + multiple * of(errors, owner), axis=-1, stable=True)
    owner, offset = of(owner, order), of(multiple * of(errors, owner), order)
    base = of(gaps, owner)
    point = (base + offset)[..., None]
    anchor = narrowest((bottom[..., None, :] <= point[..., :-1, :]) & (point[..., 1:, :] <= top[..., None, :]))
    centre = of(gaps, anchor)
    start, stop = (base[..., :-1] - centre) + offset[..., :-1], (base[..., 1:] - centre) + offset[..., 1:]
    return centre, start, (stop - start) / 2
