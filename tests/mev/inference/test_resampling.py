"""Facts about the bootstrap of the estimators and about the probability of being best."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from maxmean.mev import theory
from maxmean.mev.data import Counts, Samples, Summaries
from maxmean.mev.inference import bootstrap, probability_best
from maxmean.mev.methods import METHODS, Settings

TABLE = np.random.default_rng(0).normal([0.0, 0.1, 0.2], 1.0, size=(60, 3))


def test_bias_in_the_gaussian_world_is_the_exact_one() -> None:
    """Resampling summaries draws two Gaussians whose true means are the estimates: theory knows that bias exactly."""
    n, sigma, mu = 100, 10.0, (0.5, 0.0)
    data = Summaries(np.array(mu), np.full(2, sigma**2 / n))
    methods = ["me", "ae", "we", "te", "ke"]
    found = bootstrap(data, methods, resamples=40_000, seed=1)
    for method in methods:
        exact = theory.gaussian_pair(method, mu=mu, sigma=sigma, n=n)
        error = np.sqrt(float(exact.variance) / 40_000)
        assert abs(found[method].bias - float(exact.bias)) < 5 * error, method  # false alarm: 6e-7 a method
        np.testing.assert_allclose(found[method].standard_error ** 2, exact.variance, rtol=0.05)


def test_splitting_methods_resample_the_halves_too() -> None:
    """Two equal options with many observations: CVE's bias is that of the exact form, and it varies less than DE."""
    rng = np.random.default_rng(2)
    values = rng.normal(size=1000)
    values = (values - values.mean()) / values.std()
    data = Samples.of([values, values[::-1] + 0.02])
    found = bootstrap(data, ["de", "cve", "mme"], resamples=4000, seed=3)
    for method in ("de", "cve", "mme"):
        exact = theory.gaussian_pair(method, mu=(0.02, 0.0), sigma=1.0, n=1000)
        assert abs(found[method].bias - float(exact.bias)) < 5 * np.sqrt(float(exact.variance) / 4000), method
    assert found["cve"].standard_error < found["de"].standard_error


@pytest.mark.parametrize("method", METHODS)
def test_a_methods_numbers_depend_on_the_seed_alone(method: str) -> None:
    data, settings = Samples.of(TABLE), Settings(parts=3)
    alone = bootstrap(data, [method], settings, resamples=50, seed=4)[method]
    together = bootstrap(data, list(METHODS), settings, resamples=50, seed=4)[method]
    np.testing.assert_array_equal(alone.errors, together.errors)
    assert alone.value == together.value
    assert not np.array_equal(alone.errors, bootstrap(data, [method], settings, resamples=50, seed=5)[method].errors)


def test_progress_counts_up_to_the_resamples() -> None:
    seen: list[int] = []
    bootstrap(Samples.of(np.random.default_rng(0).normal(size=(5000, 2))), ["me"], resamples=1000, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1000
    assert len(seen) > 1


def test_zero_variance_everywhere_has_no_bias_and_no_doubt() -> None:
    found = bootstrap(Samples.of([[1.0, 1.0], [2.0, 2.0, 2.0]]), [m for m in METHODS if "*" not in m], resamples=20)
    for method in ("me", "we", "te", "ke", "de", "cve", "mme"):
        assert (found[method].value, found[method].bias, found[method].standard_error) == (2.0, 0.0, 0.0)


def test_counts_and_their_rows_agree_in_law() -> None:
    """Same data, two representations, the same bootstrap law: two-sample Kolmogorov-Smirnov at level 1e-6."""
    counts = Counts(np.array([30, 35]), np.array([200, 200]))
    rows = Samples.of([[1] * 30 + [0] * 170, [1] * 35 + [0] * 165])
    one, other = (bootstrap(d, ["ke"], resamples=3000, seed=s)["ke"].errors for d, s in ((counts, 0), (rows, 1)))
    assert stats.ks_2samp(one, other).pvalue > 1e-6


def test_probability_best_of_two_is_a_normal_probability() -> None:
    data = Summaries(np.array([1.0, 0.0]), np.array([0.3, 0.7]))
    np.testing.assert_allclose(probability_best(data), [stats.norm.cdf(1), stats.norm.sf(1)], atol=1e-12)


def test_probability_best_of_a_pair_knows_the_correlation() -> None:
    """P(X1 > X2) = Phi(d / sd(X1 - X2)), within 5 standard errors of the draws."""
    covariance = np.array([[1.0, 0.9], [0.9, 1.0]])
    data = Summaries(np.array([0.3, 0.0]), np.ones(2), covariances=covariance)
    expected = stats.norm.cdf(0.3 / np.sqrt(0.2))
    np.testing.assert_allclose(probability_best(data)[0], expected, atol=5 * 0.5 / np.sqrt(200_000))


def test_probability_best_is_shared_by_certain_ties() -> None:
    data = Samples.of(np.array([[1.0, 1.0, 0.0]] * 3))
    np.testing.assert_array_equal(probability_best(data), [0.5, 0.5, 0.0])


def test_hundreds_of_unlike_options_are_drawn_and_agree_with_the_integral(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    data = Summaries(rng.normal(size=40), rng.uniform(0.01, 1, size=40) ** 2)
    exact = probability_best(data)
    monkeypatch.setattr("maxmean.mev.probabilities.MOST_INTEGRATED", 39)
    drawn = probability_best(data)
    assert not np.array_equal(drawn, exact)
    np.testing.assert_allclose(drawn, exact, atol=5 * 0.5 / np.sqrt(200_000))  # false alarm: 6e-7 an option
    alike = Summaries(data.means, np.ones(40))
    monkeypatch.setattr("maxmean.mev.inference.best._DRAWN", 1)
    np.testing.assert_allclose(probability_best(alike).sum(), 1)  # many, but about as wide
