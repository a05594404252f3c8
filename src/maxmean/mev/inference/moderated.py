r"""Variances estimated from few observations, drawn towards each other.

Options with few observations look much surer or much less sure than they are, one by luck more than another. Where nothing is
promised for each of them, as of the probability of being the best, the variances of all may inform each other's.
"""

from __future__ import annotations

import math

import numpy as np

from .tails import upper_quantile


def moderated_variances(variances: np.ndarray, freedom: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Variances of observations, drawn towards each other by as much as chance explains their spread; and their new freedom.

    With :math:`1/\sigma_i^2 \sim \chi^2_{d_0} / (d_0 s_0^2)`, of which :math:`d_0` and :math:`s_0^2` follow from the mean and the
    variance of the logarithms (Smyth, "Linear models and empirical Bayes methods", 2004), the posterior has
    :math:`\tilde s_i^2 = (d_0 s_0^2 + d_i s_i^2) / (d_0 + d_i)` with :math:`d_0 + d_i` degrees of freedom. Zeros stay.

    >>> found, freedom = moderated_variances(np.array([1.0, 1.1, 0.9]), np.array([4.0, 4.0, 4.0]))
    >>> found.round(6).tolist(), freedom.tolist()
    ([1.0, 1.0, 1.0], [inf, inf, inf])
    """
    from scipy.special import digamma, polygamma

    known = (variances > 0) & np.isfinite(freedom)
    if np.count_nonzero(known) < 2:
        return variances, freedom
    s, d = variances[known], freedom[known]
    logs = np.log(s) - digamma(d / 2) + np.log(d / 2)
    excess = float(np.var(logs, ddof=1) - np.mean(polygamma(1, d / 2)))
    found, degrees = variances.copy(), np.array(freedom, float)
    if excess <= 0:
        found[known], degrees[known] = float(d @ s / d.sum()), math.inf
        return found, degrees
    prior = 2 * _trigamma_inverse(excess)
    usual = math.exp(float(np.mean(logs)) + float(digamma(prior / 2)) - math.log(prior / 2))
    found[known], degrees[known] = (prior * usual + d * s) / (prior + d), prior + d
    return found, degrees


def _trigamma_inverse(value: float) -> float:
    """The x with trigamma(x) = value, by Newton's method on 1/trigamma, which is nearly linear."""
    from scipy.special import polygamma

    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if abs(step) < 1e-10 * x:
            break
    return x


def moderated_covariances(covariances: np.ndarray, freedom: float) -> np.ndarray:
    r"""Covariances from few rows, drawn towards those of options that share what a row does to all, and vary on their own beside.

    The target is :math:`T = s D + c\,11'`. D has each option's own variance on its diagonal, from its differences to those others
    that are most like it, drawn towards each other (:func:`moderated_variances`). With w its inverse,
    :math:`P = \mathrm{diag}(w) - ww'/1'w` the inverse among differences and p = M - 1, the scale is
    :math:`s = \mathrm{tr}(P\Sigma)/p`, and c is such that the average with weights w keeps its variance. The result is
    :math:`(1 - \rho)\,\Sigma + \rho\,T`, where :math:`\rho` is the oracle-approximating share (Chen, Wiesel, Eldar and Hero, IEEE
    Transactions on Signal Processing 58, 2010) for differences in units of D. It goes to zero as the rows become many. A matrix
    from fewer rows than options takes some differences for certain; this one does not. Options without variance stay as they
    are, and so do two, whose difference has one variance.

    >>> moderated_covariances(np.array([[2.0, 1.0], [1.0, 2.0]]), 4.0).tolist()
    [[2.0, 1.0], [1.0, 2.0]]
    >>> moderated_covariances(np.diag([1.0, 1.0, 4.0]), 4.0).round(1).tolist()
    [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
    """
    doubtful = np.flatnonzero(covariances.diagonal() > 0)
    among, options = covariances[np.ix_(doubtful, doubtful)], len(doubtful)
    if options < 3 or not math.isfinite(freedom):
        return covariances
    apart, dimensions = differences_from_average(among), options - 1
    if not apart.any():
        return covariances
    own = _own_variances(apart, freedom)
    weights = 1 / own
    scaled = weights[:, None] * (apart - weights @ apart / weights.sum())  # P times the covariances
    trace, squares = float(np.trace(scaled)), float((scaled * scaled.T).sum())
    uneven = squares - trace**2 / dimensions
    if uneven <= 1e-12 * squares:  # nothing to draw in
        return covariances
    share = ((1 - 2 / dimensions) * squares + trace**2) / ((freedom + 1 - 2 / dimensions) * uneven)
    share = min(max(share, 0.0), 1.0)
    own *= trace / dimensions
    weights /= weights.sum()
    common = float(weights @ among @ weights) - 1 / float((1 / own).sum())
    found = covariances.copy()
    found[np.ix_(doubtful, doubtful)] = (1 - share) * among + share * (np.diag(own) + common)
    return found


def _own_variances(apart: np.ndarray, freedom: float) -> np.ndarray:
    """How much each option varies on its own, from its difference to the last of the quarter of others that are most like it.

    Half the variance of that difference, if the other varies as much; what the other does not explain, if it varies less.
    """
    options, variances = len(apart), apart.diagonal()
    gaps = variances[:, None] + variances - 2 * apart
    np.fill_diagonal(gaps, math.inf)
    last = np.argpartition(gaps, (options - 2) // 4, axis=1)[:, (options - 2) // 4]
    halves = gaps[np.arange(options), last] / 2
    if not (halves > 1e-13 * variances.max()).all():  # some go up and down together one to one
        return np.full(options, float(variances.mean()))
    own = np.maximum(halves, 2 * halves - halves[last])
    return moderated_variances(own, np.full(options, freedom))[0]


def differences_from_average(covariances: np.ndarray) -> np.ndarray:
    """Covariances of the options' differences from their average.

    >>> differences_from_average(np.array([[2.0, 1.0], [1.0, 2.0]])).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """
    centring = np.eye(len(covariances)) - 1 / len(covariances)
    found = centring @ covariances @ centring
    nothing = found.diagonal() <= 1e-13 * covariances.diagonal().max()  # rounding: they move together one to one
    found[nothing], found[:, nothing] = 0.0, 0.0
    return np.asarray(found)


def with_variances(covariances: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """The same correlations with other variances; what had none is independent of the rest.

    >>> with_variances(np.array([[4.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 0.0]]), np.array([1.0, 1.0, 1.0])).tolist()
    [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    errors = np.sqrt(covariances.diagonal())
    factors = np.sqrt(variances) / np.where(errors > 0, errors, 1.0)
    found = covariances * factors * factors[:, None]
    np.fill_diagonal(found, variances)
    return found


def widening(freedom: np.ndarray) -> np.ndarray:
    """What variances are multiplied by so that normal quartiles are Student's: half of all draws lie as far out as they should.

    >>> widening(np.array([4.0, math.inf])).round(3).tolist()
    [1.206, 1.0]
    """
    return np.square(upper_quantile(0.25, freedom) / upper_quantile(0.25, np.asarray(math.inf)))
