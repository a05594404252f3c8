"""The estimators' bias and how far it is known: exact moments, limits, invariances, and that the range holds the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

import maxmean as mm
from maxmean.mev import theory
from maxmean.mev.data import Counts, Samples, Summaries
from maxmean.mev.inference import bias_range

ROWS = np.random.default_rng(0).normal([0.0, 0.1, 0.2], 1.0, size=(60, 3))


@pytest.mark.parametrize("gap", [0.0, 0.7, 3.0])
def test_at_given_means_it_is_the_exact_bias(gap: float) -> None:
    """Two Gaussians, of which theory knows the bias: 4,000 resamples have a standard error of 0.016 at most; five of these."""
    data = Summaries(np.array([9.0, -3.0]), np.ones(2))
    methods = ["me", "ae", "we", "te", "ke"]
    found = bias_range(data, methods, np.array([[gap, 0.0]]), resamples=4_000)
    for method in methods:
        exact = theory.gaussian_pair(method, mu=(gap, 0.0), sigma=1.0, n=1)
        enough = 5 * math.sqrt(float(exact.variance) / (320 if method == "we" else 4_000))
        assert found[method].value == pytest.approx(float(exact.bias), abs=enough), method
        assert found[method].interval == (found[method].value, found[method].value)


def test_halves_are_moved_along() -> None:
    """One half picks, the other estimates: for two equal options that is not biased, and nor is it for two far apart."""
    values = np.random.default_rng(2).normal(size=1000)
    data = Samples.of([values, values[::-1]])
    for gap in (0.0, 1.0):
        bias = bias_range(data, ["de", "cve"], np.array([[gap, 0.0]]))
        exact = theory.gaussian_pair("cve", mu=(gap, 0.0), sigma=1.0, n=1000)
        assert bias["cve"].value == pytest.approx(float(exact.bias), abs=5 * math.sqrt(float(exact.variance) / 1000))


def test_the_range_is_that_of_the_means() -> None:
    data, truths = Counts(np.array([3, 5]), np.array([40, 40])), np.array([[0.1, 0.1], [0.2, 0.1], [0.5, 0.1]])
    each = [bias_range(data, ["me"], truth[None])["me"].value for truth in truths]
    together = bias_range(data, ["me"], truths)["me"]
    assert together.interval == (min(each), max(each))
    assert together.value == pytest.approx(np.mean(each))
    assert each[0] > each[1] > each[2]


def test_no_success_is_noise_too() -> None:
    assert bias_range(Counts(np.array([0, 0]), np.array([20, 20])), ["me"], np.zeros((1, 2)))["me"].value > 0.005


def test_a_known_variance_replaces_that_of_the_data() -> None:
    data, equal = Samples.of(ROWS), np.zeros((1, 3))
    wide = bias_range(data, ["me"], equal, variances=np.full(3, 4.0))["me"].value
    assert wide == pytest.approx(2 * 0.846, abs=0.1)  # the largest of three standard normal numbers: 3 / (2 sqrt(pi))


def test_a_methods_bias_depends_on_the_seed_alone() -> None:
    for data in (Samples.of(ROWS), Samples.of(list(ROWS.T))):
        methods = ["me", "de", "mme", "we", "te", "ke"]
        together = bias_range(data, methods, ROWS[:3], resamples=50, seed=4)
        for method in methods:
            assert bias_range(data, [method], ROWS[:3], resamples=50, seed=4)[method] == together[method]
    assert bias_range(data, ["me"], ROWS[:3], resamples=50, seed=5)["me"] != together["me"]


def test_in_a_close_race_it_reaches_from_nothing_to_that_of_equal_options() -> None:
    """Ten means around zero that differ by as much as chance makes them: 1.54 standard errors if they are equal."""
    means = np.array([-1.5, -1.0, -0.7, -0.4, -0.1, 0.1, 0.4, 0.7, 1.0, 1.5])
    close = mm.estimate(mean=means, se=1.0, method="me").bias()
    assert close.interval[1] == pytest.approx(1.54, abs=0.05)
    assert 0.2 < close.interval[0] < close.value < close.interval[1]
    clear = mm.estimate(mean=[50.0, *means[:-1]], se=1.0, method="me").bias()
    assert max(abs(clear.interval[0]), clear.interval[1]) < 0.01
    alike = mm.estimate(mean=means, se=1.0, method="ae").bias()
    assert alike.interval[1] == pytest.approx(0.0, abs=0.01)


def test_nothing_is_biased_without_doubt() -> None:
    est = mm.estimate(mean=[1.0, 2.0, 2.0], se=0.0, method="ke")
    assert est.bias().value == 0
    assert est.bias().interval == (0.0, 0.0)


@pytest.mark.slow
def test_the_range_holds_the_true_bias() -> None:
    """100 data sets of ten options in four arrangements: in nine of ten at least. Were each range right in 97%, one in 2,000
    such tests would fail.
    """
    rng = np.random.default_rng(1)
    for means in (
        np.zeros(10),
        np.linspace(0, 3, 10),
        np.array([4.0, 4.0, *np.zeros(8)]),
        np.array([6.0, *np.zeros(9)]),
    ):
        many = Summaries(means + rng.standard_normal((40_000, 10)), np.ones(10))
        for method in ("me", "te", "ke"):
            true = float(np.mean(mm.mev.evaluate(method, many).value) - means.max())
            ranges = [
                mm.estimate(mean=means + rng.standard_normal(10), se=1.0, method=method).bias().interval
                for _ in range(100)
            ]
            assert sum(low - 0.03 <= true <= high + 0.03 for low, high in ranges) >= 90, (method, means)
