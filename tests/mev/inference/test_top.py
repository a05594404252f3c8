"""The average of the leading options: hand values, invariances, and coverage by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtri, stdtrit
from scipy.stats import binom

from maxmean.mev.errors import ArgumentError
from maxmean.mev.inference import infer_top, infer_top_rate, infer_winner


def test_all_options_are_picked_by_nobody() -> None:
    # The average of four independent means has the standard error sqrt(1 + 4 + 9 + 16)/4; quantiles are good to 0.5%.
    top = infer_top([3.0, 1.0, 2.0, 0.0], [1.0, 4.0, 9.0, 16.0], 4)
    assert top.indices == (0, 2, 1, 3)
    assert top.naive == 1.5
    reach = -ndtri(0.025) * math.sqrt(30) / 4
    np.testing.assert_allclose(top.bounds, (1.5 - reach, 1.5 + reach), atol=0.02 * reach)


def test_one_option_has_simultaneous_bounds() -> None:
    top, winner = infer_top([1.0, 0.7, -1.0], [0.25] * 3, 1), infer_winner([1.0, 0.7, -1.0], [0.25] * 3)
    assert top.naive == winner.naive.value
    np.testing.assert_allclose(top.bounds, (1 + 0.5 * ndtri(1 - 0.975 ** (1 / 3)), winner.bounds[1]), atol=0.02)
    few = infer_top([1.0], [0.25], 1, freedom=3)
    np.testing.assert_allclose(few.bounds, 1 + 0.5 * stdtrit(3, [0.025, 0.975]), atol=0.03)


def test_shift_scale_and_order_do_not_matter() -> None:
    means, variances = np.array([1.0, 0.4, -0.3, 0.9]), np.array([0.3, 0.2, 0.5, 0.1])
    base = infer_top(means, variances, 2, freedom=6)
    moved = infer_top(8 * means + 3, 64 * variances, 2, freedom=6)
    np.testing.assert_allclose(moved.bounds, 8 * np.array(base.bounds) + 3)
    order = [2, 0, 3, 1]
    other = infer_top(means[order], variances[order], 2, freedom=6)
    assert {order[i] for i in other.indices} == set(base.indices)
    np.testing.assert_allclose(other.bounds, base.bounds, rtol=1e-12)


def test_options_without_variance_are_certain() -> None:
    assert infer_top([1.0, 2.0, 3.0], [0.0, 0.0, 0.0], 2).bounds == (2.5, 2.5)
    low, high = infer_top([1.0, 2.0, 3.0], [0.0, 0.0, 1.0], 2).bounds
    np.testing.assert_allclose((low, high), 2.5 + ndtri([0.025, 0.975]) / 2, atol=0.02)


@pytest.mark.parametrize(("correlation", "shape"), [(0.0, "equal"), (0.0, "apart"), (0.6, "equal")])
def test_it_covers(correlation: float, shape: str) -> None:
    # Known variances, so that the distances to the ends are the same in all 4,000 data sets. A wrong alarm: 1e-5.
    truth = np.zeros(10) if shape == "equal" else np.linspace(0.0, 3.0, 10)
    covariance = (1 - correlation) * np.eye(10) + correlation
    data = np.random.default_rng(5).multivariate_normal(truth, covariance, size=4_000)
    low, high = infer_top(np.zeros(10), covariance, 3).bounds
    picked = np.argsort(-data, axis=-1)[:, :3]
    errors = np.take_along_axis(data, picked, -1).mean(-1) - truth[picked].mean(-1)
    held = int(np.count_nonzero((errors <= -low) & (errors >= -high)))
    assert held >= binom.ppf(1e-5, 4_000, 0.95)
    assert shape == "apart" or held <= binom.isf(1e-5, 4_000, 0.99)


def test_rates_cover_with_few_successes() -> None:
    rng = np.random.default_rng(6)
    truth = np.array([0.02, 0.02, 0.05, 0.1])
    held = 0
    for _ in range(1_000):
        top = infer_top_rate(rng.binomial(20, truth), 20, 2)
        held += top.bounds[0] <= truth[list(top.indices)].mean() <= top.bounds[1]
    assert held >= binom.ppf(1e-5, 1_000, 0.95)
    np.testing.assert_allclose(infer_top_rate([0], 20, 1).bounds, (0.0, 1 - 0.025 ** (1 / 20)))


def test_refusals() -> None:
    for k in (0, 3):
        with pytest.raises(ArgumentError, match=f"k must be from 1 to 2, the number of options, not {k}"):
            infer_top([1.0, 2.0], [1.0, 1.0], k)
