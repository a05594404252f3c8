"""Estimators of the maximum expected value, as pure functions of arrays.

The last axis runs over the options, leading axes broadcast, and the result has the leading shape. ``variances`` are always those
*of the means*. An estimator that splits the data takes the means of the parts: :mod:`maxmean.mev.data` makes them from samples.
Every estimate is a weighted mean of means (of parts of the data, for ``de``, ``cve`` and ``mme``); those
weights add up to one, and :func:`maxmean.mev.evaluate` gives them with the value.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .arrays import Array, Rng, as_floats, as_truths, beside, constant, namespace, quiet, together, uniform
from .kernels import Gaussian, Indicator, Kernel, as_kernel
from .probabilities import best_probabilities
from .statistic import check_covariances, check_options, has_meaning, raw_statistic


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

    Ties in the choice are broken at random with ``rng``, never by position. Where a mean to choose by is nan, so is the result;
    a mean that was not chosen does not matter.

    >>> float(double_estimate([1.0, 3.0], [2.0, 2.5]))
    2.5
    """
    xp = namespace(selection_means, evaluation_means)
    selection_means, evaluation_means = as_floats(xp, selection_means, evaluation_means)
    chosen = random_argmax(selection_means, rng)
    value = xp.sum(xp.where(chosen, evaluation_means, xp.zeros_like(evaluation_means)), axis=-1)
    return xp.where(xp.any(xp.isnan(selection_means), axis=-1), xp.nan, value)


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
    float64) unless ``draws`` asks for Monte Carlo; the paper uses 100 draws. The result is nan where a mean or a variance is not
    finite, or a variance negative.

    >>> round(float(weighted_estimate([0.0, 1.0], [0.5, 0.5])), 12) == round(0.8413447460685429, 12)
    True
    """
    return weighted_mean(means, best_probabilities(means, variances, draws=draws, rng=rng))


def t_estimate(
    means: Array,
    variances: Array,
    alpha: Array = 0.1,
    *,
    covariances: Array | None = None,
    where: Array | None = None,
) -> Array:
    r"""T-estimate: the average of all means that a one-sided test at level alpha does not find smaller than the best.

    .. math:: \hat\mu = \sum_i 1\{T_i \ge z_\alpha\} \hat\mu_i \Big/ \sum_i 1\{T_i \ge z_\alpha\}

    alpha = 0.5 gives the maximum, bit for bit. With ``covariances`` this is TE*. It is nan where a mean, a variance or a
    covariance is, or a variance is negative. ``where`` is as in :func:`kernel_estimate`.

    >>> float(t_estimate([0.0, 1.0, 9.0], [1.0, 1.0, 1.0], alpha=0.1))
    9.0
    >>> float(t_estimate([8.0, 1.0, 9.0], [1.0, 1.0, 1.0], alpha=0.1))
    8.5
    """
    return kernel_estimate(means, variances, Indicator(alpha), covariances=covariances, where=where)


def kernel_estimate(
    means: Array,
    variances: Array,
    kernel: Kernel | Callable[[Array], Array] = Gaussian(),  # noqa: B008  (frozen)
    *,
    covariances: Array | None = None,
    where: Array | None = None,
) -> Array:
    r"""K-estimate of the largest mean: the means, weighted by a kernel of how far each lies below the best.

    .. math:: \hat\mu = \sum_i \kappa(T_i)\,\hat\mu_i \Big/ \sum_i \kappa(T_i)

    ``variances`` are those *of the means* (s²/n). The last axis runs over the options; leading axes broadcast. With
    ``covariances`` (of the means, shape ``(..., M, M)``, from paired samples) this is KE*. The result never leaves
    [smallest mean, largest mean]. It is nan where a mean, a variance or a covariance is, or a variance is
    negative.

    ``where``, true or false and broadcast to ``means``, says which options there are. The estimate is that of those alone,
    whatever stands in the places of the others; where there is none, it is nan.

    >>> round(float(kernel_estimate([0.0, 1.0], [1.0, 1.0])), 6)
    0.675904
    >>> round(float(kernel_estimate([0.0, 9.0, 1.0], [1.0, 1.0, 1.0], where=[True, False, True])), 6)
    0.675904
    """
    kernel = as_kernel(kernel)
    if where is not None:
        return _masked_estimate(means, variances, kernel, covariances, where)
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
    estimate = unchecked_estimate(means, variances, kernel, covariances)
    xp = namespace(estimate)
    return xp.where(beside(has_meaning(means, variances, covariances), estimate) > 0, estimate, xp.nan)


def _masked_estimate(means: Array, variances: Array, kernel: Kernel, covariances: Array | None, where: Array) -> Array:
    """What stands in the places of options that are not there is put aside first: it need not be a number."""
    xp = namespace(means, variances, covariances, where)
    means, variances = as_floats(xp, means, variances)
    check_options(means, variances)
    there = as_truths(xp, where, means)
    together(where=there.shape, means=means.shape, variances=variances.shape)
    there, means, variances = xp.broadcast_arrays(there, means, variances)
    means, variances = (xp.where(there, each, xp.zeros_like(each)) for each in (means, variances))
    if covariances is not None:
        (covariances,) = as_floats(xp, covariances)
        check_covariances(means, covariances)
        both = there[..., None] & there[..., None, :]
        covariances = xp.where(both, covariances, xp.zeros_like(covariances))
    estimate = unchecked_estimate(means, variances, kernel, covariances, there)
    sound = has_meaning(means, variances, covariances) & xp.any(there, axis=-1)
    return xp.where(beside(sound, estimate) > 0, estimate, xp.nan)


def unchecked_estimate(
    means: Array, variances: Array, kernel: Kernel, covariances: Array | None = None, where: Array | None = None
) -> Array:
    """The K-estimate of means and variances that are known to be numbers, and the variances not to be negative."""
    if where is None:
        return weighted_mean(means, kernel(raw_statistic(means, variances, covariances)))
    # One that is not there lies infinitely far below the best, has no weight, and does not bound the estimate.
    xp = namespace(means)
    weights = kernel(raw_statistic(xp.where(where, means, -xp.inf), variances, covariances))
    lowest = xp.min(xp.where(where, means, xp.inf), axis=-1, keepdims=True)
    return weighted_mean(xp.where(where, means, lowest), xp.where(where, weights, xp.zeros_like(weights)))


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
    with quiet(xp):
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
    weights = as_kernel(kernel)(raw_statistic(means, variances, covariances))
    xp = namespace(weights)
    sound = beside(has_meaning(means, variances, covariances), weights)[..., None] > 0
    with quiet(xp):
        return xp.where(sound, weights / xp.sum(weights, axis=-1, keepdims=True), xp.nan)


def random_argmax(values: Array, rng: Rng) -> Array:
    """Boolean array, true at one largest value of each row; ties are broken at random."""
    xp = namespace(values)
    tied = values == xp.max(values, axis=-1, keepdims=True)
    lottery = xp.where(tied, uniform(rng, tuple(values.shape), values), -xp.ones_like(values))
    winner = xp.argmax(lottery, axis=-1)[..., None]
    return winner == constant(np.arange(values.shape[-1]), winner)
