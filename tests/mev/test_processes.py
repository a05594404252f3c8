"""Facts about the simulated data, and the paper's section 4 seen through it."""

from __future__ import annotations

import numpy as np
import pytest

from maxmean.mev import theory
from maxmean.mev.data import Samples, Summaries, summarise
from maxmean.mev.methods import evaluate
from maxmean.mev.processes import autocorrelated, bernoulli_ads, click_rates, correlated_pair, independent_gaussians

REPETITIONS = 20_000


def drawn(process: Samples) -> Summaries:
    return summarise(process, rng=1)


def test_gaussian_noise_reproduces_the_exact_bias_of_every_method() -> None:
    """Section 4.1 by simulation: 5 standard errors, plus the t-statistic's 1/n effect of unknown variances (0.01)."""
    noise = drawn(independent_gaussians(np.random.default_rng(0), repetitions=REPETITIONS))
    for mu in (0.0, 1.0, 3.0):
        problems = noise.shifted(np.array([mu, 0.0]))
        for method in ("me", "ae", "de", "cve", "we", "mme", "te", "ke"):
            values = evaluate(method, problems).value
            exact = theory.gaussian_pair(method, mu=(mu, 0.0))
            allowed = 5 * np.sqrt(float(exact.variance) / REPETITIONS) + 0.01
            assert abs(values.mean() - mu - float(exact.bias)) < allowed, (method, mu)
            np.testing.assert_allclose(values.var(), exact.variance, rtol=0.06)


@pytest.mark.parametrize("rho", [0.0, 0.25, 0.75])
def test_ar1_noise_is_stationary_with_the_right_autocorrelation(rho: float) -> None:
    values = autocorrelated(np.random.default_rng(0), rho=rho, repetitions=REPETITIONS, n=20).values[0]
    tolerance = 5 / np.sqrt(REPETITIONS)
    np.testing.assert_allclose(values.std(axis=0), 10, rtol=tolerance)
    for lag in (1, 2, 5):
        assert abs(np.mean(values[:, lag] * values[:, 0]) / 100 - rho**lag) < 2 * tolerance
    # Var(mean) = sigma²/n² * sum of rho^|s-t|
    steps = np.arange(20)
    expected = 100 / 400 * (rho ** np.abs(steps[:, None] - steps)).sum()
    np.testing.assert_allclose(values.mean(axis=1).var(), expected, rtol=0.06)


def test_in_sample_correlation_raises_bias_and_variance() -> None:
    """S12 in small: at equal means |bias| and variance of me, cve and ke grow with rho, and me stays the highest."""
    found = {}
    for rho in (0.0, 0.5):
        noise = drawn(autocorrelated(np.random.default_rng(3), rho=rho, repetitions=REPETITIONS))
        found[rho] = {m: evaluate(m, noise).value for m in ("me", "cve", "ke")}
    for method in ("me", "ke"):
        assert found[0.5][method].var() > 1.5 * found[0.0][method].var()
    assert found[0.5]["me"].mean() > 1.3 * found[0.0]["me"].mean() > 0
    assert found[0.5]["me"].mean() > found[0.5]["ke"].mean() > found[0.5]["cve"].mean()


def test_a_pair_is_correlated_as_asked() -> None:
    for rho in (-0.5, 0.0, 0.9, 1.0):
        first, second = correlated_pair(np.random.default_rng(0), rho=rho, repetitions=200, n=100).values
        assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1] - rho) < 5 / np.sqrt(20_000)


def test_correlation_makes_te_and_ke_underestimate_and_the_correction_repairs_it() -> None:
    """S13: at equal means and rho_G = 0.75, plain te and ke lie below their corrected versions."""
    pairs = drawn(correlated_pair(np.random.default_rng(5), rho=0.75, repetitions=REPETITIONS))
    for plain, corrected in (("te", "te*"), ("ke", "ke*")):
        difference = evaluate(corrected, pairs).value - evaluate(plain, pairs).value
        assert difference.mean() > 10 * difference.std() / np.sqrt(REPETITIONS)
        exact = theory.gaussian_pair(corrected, mu=(0.0, 0.0), correlation=0.75)
        found = evaluate(corrected, pairs).value
        assert abs(found.mean() - float(exact.bias)) < 5 * found.std() / np.sqrt(REPETITIONS) + 0.01


def test_without_correlation_the_corrected_versions_agree_up_to_noise() -> None:
    """S13: rho_G = 0, the sample covariance is noise around zero, and so is the difference."""
    pairs = drawn(correlated_pair(np.random.default_rng(6), rho=0.0, repetitions=REPETITIONS))
    for plain, corrected in (("te", "te*"), ("ke", "ke*")):
        difference = evaluate(corrected, pairs).value - evaluate(plain, pairs).value
        assert abs(difference.mean()) < 0.01
        assert difference.std() < 0.1 * evaluate(plain, pairs).value.std() + 0.12


def test_ads_have_binomial_clicks_at_equally_spaced_rates() -> None:
    ads = bernoulli_ads(np.random.default_rng(0), ads=6, customers=6_000, repetitions=5_000)
    rates = click_rates(6)
    np.testing.assert_allclose(np.diff(rates), 0.006)
    np.testing.assert_allclose(ads.means.mean(0), rates, atol=5 * np.sqrt(0.05 / 1000 / 5000))
    np.testing.assert_allclose(ads.variances.mean(0), rates * (1 - rates) / 1000, rtol=0.02)


def test_bad_settings_are_named() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"rho must lie in \[0, 1\), not 1"):
        autocorrelated(rng, rho=1)
    with pytest.raises(ValueError, match=r"rho must lie in \[-1, 1\], not 2"):
        correlated_pair(rng, rho=2)
    with pytest.raises(ValueError, match="10 customers cannot be shared equally among 3 ads"):
        bernoulli_ads(rng, ads=3, customers=10)
