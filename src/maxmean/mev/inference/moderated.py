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
    r"""Covariances of the differences from the options' average, drawn towards equal variances without correlation.

    With S the covariances of :math:`x - \bar x` and p = M - 1, :math:`(1 - \rho) S + \rho\,(\mathrm{tr} S/p)(I - 11'/M)`,
    where :math:`\rho` is the oracle-approximating share (Chen, Wiesel, Eldar and Hero, IEEE Transactions on Signal Processing 58,
    2010), which goes to zero as the observations become many. A matrix from fewer rows than options is no longer singular.

    >>> moderated_covariances(np.array([[2.0, 1.0], [1.0, 2.0]]), math.inf).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """
    options = len(covariances)
    centring = np.eye(options) - 1 / options
    apart = centring @ covariances @ centring
    dimensions, trace, squares = options - 1, float(np.trace(apart)), float(np.square(apart).sum())
    uneven = squares - trace**2 / max(dimensions, 1)
    if not math.isfinite(freedom) or uneven <= 1e-12 * squares:
        return apart
    share = ((1 - 2 / dimensions) * squares + trace**2) / ((freedom + 1 - 2 / dimensions) * uneven)
    share = min(max(share, 0.0), 1.0)
    return (1 - share) * apart + share * trace / dimensions * centring


def widening(freedom: np.ndarray) -> np.ndarray:
    """What variances are multiplied by so that normal quartiles are Student's: half of all draws lie as far out as they should.

    >>> widening(np.array([4.0, math.inf])).round(3).tolist()
    [1.206, 1.0]
    """
    return np.square(upper_quantile(0.25, freedom) / upper_quantile(0.25, np.asarray(math.inf)))
