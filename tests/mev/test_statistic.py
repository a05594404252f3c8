"""The two-sample statistic T: by hand, at its limits, and its gradient."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from maxmean import mev
from maxmean.mev.statistic import t_statistic

SHAPE = (3, 4)
# Neither numbers nor differences of two below the normal range: JAX takes them for zero.
usual = st.floats(-1e3, 1e3, width=32).map(lambda x: x if abs(x) > 2.0**-100 else 0.0)
means_of = arrays(np.float64, SHAPE, elements=st.one_of(st.sampled_from([-1.0, 0.0, 2.0]), usual))
variances_of = arrays(np.float64, SHAPE, elements=st.one_of(st.just(0.0), st.floats(2**-10, 2**10, width=32)))


@pytest.mark.parametrize(
    ("means", "variances", "expected"),
    [
        ([1.0, 4.0], [9.0, 16.0], [-0.6, 0.0]),
        ([4.0, 1.0, -8.0], [16.0, 9.0, 128.0], [0.0, -0.6, -1.0]),
        ([5.0], [2.0], [0.0]),
        ([5.0, 5.0], [0.0, 0.0], [0.0, 0.0]),
        ([5.0, 4.0], [0.0, 0.0], [0.0, -math.inf]),
        ([5.0, 4.0], [0.0, 4.0], [0.0, -0.5]),
        # two tie for the best: their variances 3 and 13 are averaged
        ([5.0, 5.0, 2.0], [3.0, 13.0, 1.0], [0.0, 0.0, -1.0]),
        ([5.0, 2.0, 5.0], [13.0, 1.0, 3.0], [0.0, -1.0, 0.0]),
    ],
)
def test_by_hand(kind: Any, means: list[float], variances: list[float], expected: list[float]) -> None:
    ours = kind.call(t_statistic, np.array(means), np.array(variances))
    np.testing.assert_allclose(ours, expected, rtol=2 * kind.eps, atol=0)


@pytest.mark.parametrize(
    ("means", "covariances", "expected"),
    [
        ([1.0, 4.0], [[9.0, 8.0], [8.0, 16.0]], [-1.0, 0.0]),
        # a negative covariance makes the difference more uncertain
        ([1.0, 4.0], [[9.0, -5.5], [-5.5, 16.0]], [-0.5, 0.0]),
        # perfectly correlated: no doubt is left
        ([1.0, 4.0], [[9.0, 9.0], [9.0, 9.0]], [-math.inf, 0.0]),
        # two tie for the best: variances 2 and 4, covariances 1 and 3 with the third are averaged, 5 + 3 - 2 * 2 = 4
        ([6.0, 6.0, 2.0], [[2.0, 0.0, 1.0], [0.0, 4.0, 3.0], [1.0, 3.0, 5.0]], [0.0, 0.0, -2.0]),
    ],
)
def test_with_covariances_by_hand(kind: Any, means: Any, covariances: Any, expected: list[float]) -> None:
    matrix = np.array(covariances)
    ours = kind.call(t_statistic, np.array(means), np.diagonal(matrix).copy(), covariances=matrix)
    np.testing.assert_allclose(ours, expected, rtol=2 * kind.eps, atol=0)


@given(means=means_of, variances=variances_of)
def test_the_best_have_zero_and_the_rest_less(kind: Any, means: Any, variances: Any) -> None:
    t = kind.call(t_statistic, means, variances)
    best = means == means.max(axis=-1, keepdims=True)
    assert np.all(t[best] == 0)
    assert np.all(t[~best] < 0)


@given(means=means_of, variances=variances_of)
def test_all_kinds_agree_with_the_formula_in_float64(kind: Any, means: Any, variances: Any) -> None:
    best = means == means.max(axis=-1, keepdims=True)
    star = np.where(best, variances, 0).sum(-1, keepdims=True) / best.sum(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.where(best, 0.0, (means - means.max(axis=-1, keepdims=True)) / np.sqrt(variances + star))
    np.testing.assert_allclose(kind.call(t_statistic, means, variances), expected, rtol=8 * kind.eps)


@given(means=means_of, variances=variances_of)
def test_zero_covariances_change_no_bit(kind: Any, means: Any, variances: Any) -> None:
    plain = kind.call(t_statistic, means, variances)
    for matrix in (np.zeros((4, 4)), variances[..., None] * np.eye(4)):
        assert np.array_equal(kind.call(t_statistic, means, variances, covariances=matrix), plain)


def test_a_variance_that_rounding_made_negative_counts_as_zero(kind: Any) -> None:
    below = np.nextafter(np.float32(1.0), np.float32(2.0))
    matrix = np.array([[1.0, below], [below, 1.0]], dtype=np.float64)
    assert 1.0 + 1.0 - 2 * matrix[0, 1] < 0
    ours = kind.call(t_statistic, np.array([1.0, 0.0]), np.ones(2), covariances=matrix)
    assert ours.tolist() == [0.0, -math.inf]


def test_leading_axes_broadcast(kind64: Any) -> None:
    means, variances = np.arange(8.0).reshape(2, 1, 4), np.array([[1.0], [4.0], [9.0]])
    full = kind64.call(
        t_statistic, *(np.array(a) for a in np.broadcast_arrays(means, np.broadcast_to(variances, (3, 4))))
    )
    assert full.shape == (2, 3, 4)
    assert np.array_equal(kind64.call(t_statistic, means, variances), full)
    assert np.array_equal(
        kind64.call(t_statistic, means[0, 0], np.ones((3, 4)))[2], kind64.call(t_statistic, means[0, 0], 1.0)
    )
    matrix = np.ones((5, 1, 4, 4)) * 0.5
    assert kind64.call(t_statistic, means[0], np.ones(4), covariances=matrix).shape == (5, 1, 4)


@pytest.mark.parametrize(
    ("means", "variances", "covariances", "sentence"),
    [
        (np.float64(1.0), np.ones(1), None, "means must have at least one axis"),
        (np.ones((2, 0)), np.ones((2, 0)), None, "means must have at least one axis and one option"),
        (np.ones(3), np.ones(2), None, "means have 3 options on the last axis, variances 2"),
        (np.ones(3), np.ones(3), np.ones(3), r"covariances must have shape \(..., 3, 3\), not \(3,\)"),
        (np.ones(3), np.ones(3), np.ones((3, 2)), r"covariances must have shape \(..., 3, 3\), not \(3, 2\)"),
    ],
)
def test_wrong_shapes_are_named(means: Any, variances: Any, covariances: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        t_statistic(means, variances, covariances=covariances)


def test_an_infinite_variance_is_no_evidence_against_an_option(kind: Any) -> None:
    t = kind.call(t_statistic, np.array([3.0, 1.0, 0.0]), np.array([1.0, np.inf, 1.0]))
    assert -1e-30 < t[1] < 0
    assert t[2] == pytest.approx(-3 / math.sqrt(2))


@pytest.mark.parametrize(
    ("mean", "variance"), [(1.0, 1e-1), (1.0, 1e-100), (1e-100, 1e-300), (1e100, 1.0), (1e-100, 1e100)]
)
def test_the_scale_may_be_anything(kind: Any, mean: float, variance: float) -> None:
    """In float32 the exponents are a tenth. T is exact to rounding, or -inf where it or its slope would overflow."""
    tenth = 1.0 if kind.dtype == "float64" else 0.1
    mean, variance = mean**tenth, variance**tenth
    t = kind.call(t_statistic, np.array([0.0, mean]), np.array([variance, variance]))
    assert t[0] == pytest.approx(-mean / math.sqrt(2 * variance), rel=4 * kind.eps)


@pytest.mark.parametrize("mean", [1e-300, 1e300])
@pytest.mark.parametrize("variance", [0.0, 1e-300, 1e300])
def test_extremes_neither_overflow_nor_make_a_smaller_mean_a_tie(kind: Any, mean: float, variance: float) -> None:
    tenth = 1.0 if kind.dtype == "float64" else 0.1
    t = kind.call(t_statistic, np.array([0.0, mean**tenth]), np.array([variance**tenth] * 2))
    assert t[1] == 0
    assert t[0] < 0


def test_gradients_agree_with_differences(differentiable: Any) -> None:
    means, variances, step = np.array([1.0, 3.0, 2.5]), np.array([0.5, 2.0, 1.0]), 1e-6
    slopes = differentiable.gradients(t_statistic, means, variances)
    for which, slope in enumerate(slopes):
        for i in range(3):
            high, low = [means.copy(), variances.copy()], [means.copy(), variances.copy()]
            high[which][i] += step
            low[which][i] -= step
            expected = (t_statistic(*high).sum() - t_statistic(*low).sum()) / (2 * step)
            assert slope[i] == pytest.approx(expected, rel=1e-4)


def test_gradients_are_finite_at_ties_without_variance_and_at_infinity(differentiable: Any) -> None:
    """Through the softmax kernel: the statistic itself has no slope where it is -inf."""
    means = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0], [0.0, 1.0, 2.0], [0.0, 1e30, -1e30]])[:, None]
    variances = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    rows = [np.array(np.broadcast_to(a, (4, 3, 3))) for a in (means, variances)]
    slopes = differentiable.gradients(lambda m, v: mev.Softmax()(t_statistic(m, v)), *rows)
    assert all(np.all(np.isfinite(slope)) for slope in slopes)


def test_one_compiled_program_over_many_data_sets() -> None:
    means = np.array([[1.0, 4.0], [4.0, 4.0], [3.0, 0.0]], dtype=np.float32)
    variances = np.array([9.0, 16.0], dtype=np.float32)
    mapped = jax.jit(jax.vmap(t_statistic, in_axes=(0, None)))(means, variances)
    np.testing.assert_allclose(mapped, [[-0.6, 0.0], [0.0, 0.0], [0.0, -0.6]], rtol=1e-6)
