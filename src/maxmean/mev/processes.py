"""Simulated data: the processes of the paper's sections 4 and 7.1, vectorised over repetitions.

The Gaussian processes are drawn as noise around zero. Sample means move with mu and everything else stays, so one set
of noise serves every mu: ``summarise(noise, rng).shifted([mu1, mu2])``.
"""

from __future__ import annotations

import numpy as np

from .data import Counts, Samples
from .errors import ArgumentError


def independent_gaussians(
    rng: np.random.Generator, *, options: int = 2, sigma: float = 10.0, n: int = 100, repetitions: int = 1
) -> Samples:
    """Independent Gaussian noise with standard deviation ``sigma`` (section 4.1), ``repetitions`` problems at once.

    >>> independent_gaussians(np.random.default_rng(0), options=3, repetitions=5).means.shape
    (5, 3)
    """
    noise = sigma * rng.standard_normal((options, repetitions, n))
    return Samples(tuple(noise))


def autocorrelated(
    rng: np.random.Generator,
    *,
    rho: float,
    options: int = 2,
    sigma: float = 10.0,
    n: int = 100,
    repetitions: int = 1,
) -> Samples:
    r"""Stationary AR(1) noise within each option, independent across options (section 4.2).

    .. math:: X_t = \rho X_{t-1} + \varepsilon_t, \quad \varepsilon_t \sim N(0, (1 - \rho^2) \sigma^2)

    with X_0 ~ N(0, sigma²). The sample is :math:`X_1, \ldots, X_n`; every X_t has standard deviation ``sigma``.

    >>> autocorrelated(np.random.default_rng(0), rho=0.5).means.shape
    (1, 2)
    """
    if not 0 <= rho < 1:
        raise ArgumentError(f"rho must lie in [0, 1), not {rho}")
    from scipy.signal import lfilter

    shocks = sigma * np.sqrt(1 - rho**2) * rng.standard_normal((options, repetitions, n))
    start = sigma * rng.standard_normal((options, repetitions, 1))
    noise, _ = lfilter([1.0], [1.0, -rho], shocks, axis=-1, zi=rho * start)
    return Samples(tuple(noise))


def correlated_pair(
    rng: np.random.Generator, *, rho: float, sigma: float = 10.0, n: int = 100, repetitions: int = 1
) -> Samples:
    """Two paired Gaussian samples with correlation ``rho`` between them (section 4.3).

    >>> bool(correlated_pair(np.random.default_rng(0), rho=0.9, n=1000).covariances[0, 0, 1] > 0)
    True
    """
    if not -1 <= rho <= 1:
        raise ArgumentError(f"rho must lie in [-1, 1], not {rho}")
    first, second = sigma * rng.standard_normal((2, repetitions, n))
    return Samples((first, rho * first + np.sqrt(1 - rho**2) * second), paired=True)


def bernoulli_ads(
    rng: np.random.Generator,
    *,
    ads: int,
    customers: int,
    lowest: float = 0.02,
    highest: float = 0.05,
    rates: np.ndarray | None = None,
    repetitions: int = 1,
) -> Counts:
    """Clicks on ads with rates equally spaced in [lowest, highest], each shown to ``customers / ads`` people (7.1).

    Only the number of clicks is drawn: a binomial. Half-samples follow from it by the hypergeometric law. Other true ``rates``
    than these have the shape ``(ads,)``, or ``(repetitions, ads)``.

    >>> int(bernoulli_ads(np.random.default_rng(0), ads=10, customers=30_000).trials)
    3000
    """
    if customers % ads:
        raise ArgumentError(f"{customers} customers cannot be shared equally among {ads} ads")
    impressions = customers // ads
    rates = click_rates(ads, lowest, highest) if rates is None else rates
    return Counts(rng.binomial(impressions, rates, (repetitions, ads)), np.array(impressions))


def click_rates(ads: int, lowest: float = 0.02, highest: float = 0.05) -> np.ndarray:
    """The true click rates of :func:`bernoulli_ads`."""
    return np.linspace(lowest, highest, ads)
