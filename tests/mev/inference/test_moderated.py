"""Variances drawn towards each other: limits, invariances, and that they are nearer to the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import polygamma

from maxmean.mev.inference.moderated import _trigamma_inverse, moderated_covariances, moderated_variances, widening


@pytest.mark.parametrize("x", [0.01, 0.5, 3.0, 400.0])
def test_the_inverse_of_trigamma(x: float) -> None:
    assert _trigamma_inverse(float(polygamma(1, x))) == pytest.approx(x, rel=1e-8)


def test_variances_from_many_observations_stay_as_they_are() -> None:
    variances, freedom = np.array([1.0, 4.0, 9.0]), np.full(3, 1e6)
    np.testing.assert_allclose(moderated_variances(variances, freedom)[0], variances, rtol=1e-4)
    same, degrees = moderated_variances(variances, np.full(3, math.inf))
    assert same.tolist() == variances.tolist()
    assert np.isinf(degrees).all()


def test_units_do_not_matter_and_zeros_stay() -> None:
    variances, freedom = np.array([0.3, 2.0, 0.0, 5.0, 0.01]), np.array([4.0, 5.0, 4.0, 9.0, 3.0])
    found, degrees = moderated_variances(variances, freedom)
    np.testing.assert_allclose(moderated_variances(1e6 * variances, freedom)[0], 1e6 * found)
    assert found[2] == 0
    assert (degrees >= freedom).all()
    inside = variances > 0
    assert found[inside].min() > variances[inside].min()
    assert found[inside].max() < variances[inside].max()


def test_they_are_nearer_to_the_truth_equal_or_not() -> None:
    """The logarithms of 200 variances from five observations each; the gain is many standard errors of the difference."""
    rng = np.random.default_rng(0)
    for true in (np.ones(200), 4 / rng.chisquare(4, 200)):
        estimated = true * rng.chisquare(4, 200) / 4
        found, _ = moderated_variances(estimated, np.full(200, 4.0))
        assert np.mean(np.log(found / true) ** 2) < 0.8 * np.mean(np.log(estimated / true) ** 2)


def test_covariances_of_differences_lose_what_all_share_and_keep_their_size() -> None:
    rows = np.random.default_rng(1).normal(size=(6, 9))
    sample = np.cov(rows.T)
    found = moderated_covariances(sample, 5.0)
    np.testing.assert_allclose(moderated_covariances(sample + 7.0, 5.0), found, atol=1e-12)
    centring = np.eye(9) - 1 / 9
    assert np.trace(found) == pytest.approx(np.trace(centring @ sample @ centring))
    np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=1e-12)
    assert np.linalg.eigvalsh(found)[1] > 0.1  # only the average is without doubt
    assert np.linalg.eigvalsh(centring @ sample @ centring)[3] < 1e-12


def test_widened_quartiles_are_students() -> None:
    wide = math.sqrt(float(widening(np.asarray(4.0))))
    assert stats.norm(scale=wide).cdf(stats.t(4).ppf(0.75)) == pytest.approx(0.75)
