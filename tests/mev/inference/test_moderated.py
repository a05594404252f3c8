"""Variances drawn towards each other: limits, invariances, and that they are nearer to the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import linalg, stats
from scipy.special import polygamma

import maxmean as mm
from maxmean.mev.inference.moderated import (
    _own_variances,
    _trigamma_inverse,
    differences_from_average,
    moderated_covariances,
    moderated_variances,
    widening,
)


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


def test_covariances_from_few_rows_keep_their_size_and_take_no_difference_for_certain() -> None:
    sample = np.cov(np.random.default_rng(1).normal(size=(6, 9)).T)
    found = moderated_covariances(sample, 5.0)
    np.testing.assert_allclose(moderated_covariances(sample + 7.0, 5.0), found + 7.0, atol=1e-12)
    np.testing.assert_allclose(moderated_covariances(100 * sample, 5.0), 100 * found)
    weights = 1 / _own_variances(differences_from_average(sample), 5.0)
    assert weights @ found @ weights == pytest.approx(weights @ sample @ weights)
    before, after = differences_from_average(sample), differences_from_average(found)
    np.testing.assert_allclose(after.sum(axis=0), 0.0, atol=1e-12)
    assert np.linalg.eigvalsh(before)[3] < 1e-12
    assert np.linalg.eigvalsh(after)[1] > 0.1  # only the average is without doubt


@pytest.mark.parametrize("spread", [1.0, 30.0])
def test_covariances_are_moderated_in_any_coordinates_of_the_differences(spread: float) -> None:
    """The share of Chen and others, for M - 1 orthonormal contrasts (Helmert's) in units of the options' own variances."""
    rng, rows, options = np.random.default_rng(4), 12, 5
    sample = np.cov(rng.normal(size=(rows, options)).T * np.geomspace(1, spread, options)[:, None]) / rows
    turn, p, n = linalg.helmert(options), options - 1, rows - 1
    own = _own_variances(differences_from_average(sample), n)
    assert np.ptp(own) == pytest.approx(0.0, abs=1e-12) if spread == 1.0 else np.ptp(own) > 0
    target = turn @ np.diag(own) @ turn.T
    root = linalg.inv(linalg.sqrtm(target))
    apart = root @ turn @ sample @ turn.T @ root
    squares, trace = np.trace(apart @ apart), np.trace(apart)
    share = min(1.0, ((1 - 2 / p) * squares + trace**2) / ((n + 1 - 2 / p) * (squares - trace**2 / p)))
    found = root @ turn @ moderated_covariances(sample, n) @ turn.T @ root
    np.testing.assert_allclose(found, (1 - share) * apart + share * trace / p * np.eye(p), rtol=1e-8, atol=1e-10)


def test_a_wild_option_does_not_make_the_others_unsure() -> None:
    """Three options of which one varies a hundred times as much, in 20 rows that share something: the others stay as sure."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(20, 4)) * [1, 1, 1, 100] + 10 * rng.normal(size=(20, 1))
    calm = differences_from_average(np.cov(rows[:, :3].T)).diagonal()
    found = moderated_covariances(np.cov(rows.T), 19.0)
    np.testing.assert_allclose(differences_from_average(found[:3, :3]).diagonal(), calm, rtol=0.5)
    assert found[3, 3] > 2000


def test_covariances_from_many_rows_two_options_and_certain_ones_stay() -> None:
    sample = np.cov(np.random.default_rng(2).normal(size=(20, 4)).T)
    np.testing.assert_allclose(moderated_covariances(sample, 1e9), sample, rtol=1e-5)
    assert moderated_covariances(sample, math.inf) is sample
    two = np.array([[1.0, 0.5], [0.5, 9.0]])
    np.testing.assert_allclose(moderated_covariances(two, 3.0), two)
    certain = np.zeros((5, 5))
    certain[:4, :4] = sample
    found = moderated_covariances(certain, 5.0)
    assert not found[4].any()
    np.testing.assert_allclose(found[:4, :4], moderated_covariances(sample, 5.0))


def test_few_paired_rows_do_not_throw_means_out_of_their_range() -> None:
    # Twenty equal options in five rows: with the sample covariances, values lay beyond the means by up to 0.3 of their range.
    rng = np.random.default_rng(0)
    for _ in range(20):
        table = rng.normal(size=(5, 20)) + rng.normal(size=(5, 1))
        means, values = table.mean(axis=0), mm.estimate(table).shrinkage()["value"]
        assert means.min() <= values.min()
        assert values.max() <= means.max()


def test_widened_quartiles_are_students() -> None:
    wide = math.sqrt(float(widening(np.asarray(4.0))))
    assert stats.norm(scale=wide).cdf(stats.t(4).ppf(0.75)) == pytest.approx(0.75)
