"""Lift over a control: textbook intervals as special cases, published numbers, and mirror images."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import brentq

from maxmean.mev.errors import ArgumentError
from maxmean.mev.inference import infer_lift, infer_winner
from maxmean.mev.inference.lift_rate import difference_bounds, ratio_bounds

Z = 1.959963984540054


def test_of_two_the_interval_is_welchs() -> None:
    rng = np.random.default_rng(0)
    control, option = rng.normal(10.0, 1.0, 6), rng.normal(11.0, 3.0, 6)
    means, variances = zip(*((each.mean(), each.var(ddof=1) / len(each)) for each in (control, option)), strict=True)
    lift = infer_lift(means, variances, 0, freedom=np.array([5.0, 5.0]))
    welch = stats.ttest_ind(option, control, equal_var=False).confidence_interval(0.95)
    assert lift.interval[0] == pytest.approx(welch, abs=1e-9)
    assert lift.best.bounds == pytest.approx(welch, abs=1e-9)  # nothing was picked


def test_of_unequal_sizes_the_interval_is_a_little_wider_than_welchs() -> None:
    """Three observations beside 200: not as wide as if both had the degrees of freedom of the three."""
    lift = infer_lift([0.0, 1.0], [1.0, 0.5], 0, freedom=np.array([199.0, 2.0]))
    welch = 1.5**2 / (1.0 / 199 + 0.25 / 2)
    freedom = 1.5**2 / (1.0 / 199 + 0.25 / 2 + 4 * 0.5 * (1 / 2 - 1 / 199) * (1 / 2 + 1 / 8))
    assert 2.0 < freedom < welch
    reach = stats.t(freedom).isf(0.025) * math.sqrt(1.5)
    assert lift.interval[0] == pytest.approx([1 - reach, 1 + reach], rel=1e-9)


def test_beating_the_control_is_tested_as_the_set_of_the_best_is() -> None:
    """None of 5 loses to 30% of 5,000 by a normal approximation, and not by Fisher's test."""
    rates, trials = np.array([0.0, 0.3]), np.array([5, 5000])
    smoothed = (rates * trials + 0.5) / (trials + 1)
    assert not infer_lift(rates, smoothed * (1 - smoothed) / trials, 0, trials=trials).beats.any()


@pytest.mark.parametrize(("options", "variance"), [(3, 1.0), (9, 1.0), (4, 0.25)])
def test_the_quantile_is_dunnetts(options: int, variance: float) -> None:
    """Known variances: the quantile of max |W_i - W_c| / s, by SciPy's quadrature over W_c; ours is simulated, to 0.005."""
    s = math.sqrt(variance + 1.0)

    def surplus(q: float) -> float:
        def inside(w: float) -> float:
            ends = stats.norm.cdf((np.array([-q, q]) * s + w) / math.sqrt(variance))
            return float(stats.norm.pdf(w) * (ends[1] - ends[0]) ** options)

        return float(quad(inside, -9, 9)[0]) - 0.95

    lift = infer_lift(np.zeros(options + 1), np.array([1.0, *np.full(options, variance)]), 0)
    assert lift.interval[:, 1] == pytest.approx(float(brentq(surplus, 1.0, 5.0)) * s, abs=0.005 * s)


def test_at_the_ends_of_fiellers_interval_the_contrast_is_as_far_from_zero_as_is_allowed() -> None:
    x, covariance = np.array([10.0, 12.0]), np.array([[0.5, 0.2], [0.2, 0.8]])
    lift = infer_lift(x, covariance, 0)
    for share in lift.relative_interval[0]:
        ratio = 1 + share
        spread = covariance[1, 1] - 2 * ratio * covariance[0, 1] + ratio**2 * covariance[0, 0]
        assert abs(x[1] - ratio * x[0]) / math.sqrt(spread) == pytest.approx(Z, abs=1e-9)
    assert lift.relative_interval[0, 0] < lift.relative[0] < lift.relative_interval[0, 1]
    assert lift.relative[0] == pytest.approx(0.2)


def test_a_share_of_what_may_be_zero_may_be_anything() -> None:
    lift = infer_lift([1.0, 2.0], [0.3, 0.3], 0)  # 1.8 standard errors from zero
    assert lift.relative_interval.tolist() == [[-math.inf, math.inf]]
    assert lift.best_relative == (-math.inf, math.inf)
    assert math.isnan(infer_lift([0.0, 2.0], [0.3, 0.3], 0).relative[0])


def test_shares_have_the_sign_of_their_difference() -> None:
    """A loss of 10 that becomes one of 8 is an improvement by 20%."""
    lift = infer_lift([-10.0, -8.0], [0.01, 0.01], 0)
    assert lift.relative[0] == pytest.approx(0.2)
    assert 0.15 < lift.relative_interval[0, 0] < 0.2 < lift.relative_interval[0, 1] < 0.25


def test_where_less_is_better_all_is_mirrored() -> None:
    x, v = np.array([3.0, 4.0, 4.5, 2.9]), np.array([0.1, 0.05, 0.2, 0.1])
    up, down = infer_lift(x, v, 0, freedom=9.0), infer_lift(-x, v, 0, freedom=9.0, lower_is_better=True)
    assert down.interval == pytest.approx(-up.interval[:, ::-1])
    assert (down.beats == up.beats).all()
    assert down.best.bounds == up.best.bounds
    assert down.best_value == pytest.approx(-up.best_value)
    # The shares of -3 are those of 3, mirrored.
    assert down.relative_interval == pytest.approx(-up.relative_interval[:, ::-1])
    assert down.best_relative == pytest.approx((-up.best_relative[1], -up.best_relative[0]))


def test_the_best_is_the_winner_of_the_differences() -> None:
    x, v = np.array([1.0, 1.4, 1.5, 9.0]), np.array([0.04, 0.04, 0.04, 0.04])
    lift = infer_lift(x, v, 3)  # the control is far ahead, and takes no part in the race
    expected = infer_winner(x[:3] - 9.0, np.diag(v[:3]) + 0.04)
    assert lift.options[lift.best.index] == 2
    assert lift.best == expected
    assert lift.best.bounds[0] <= lift.best_value <= lift.best.bounds[1]
    assert not lift.beats.any()


def test_options_that_are_rejected_stop_counting() -> None:
    """The second is too close to the control for a test of both, and not for a test of it alone."""
    both, alone = 1.92, 1.645  # normal quantiles: of the larger of two, correlated by 1/2, and of one
    step = math.sqrt(2) * (both + alone) / 2
    assert infer_lift([0.0, 9.0, step], np.ones(3), 0).beats.tolist() == [True, True]
    assert infer_lift([0.0, 0.1, step], np.ones(3), 0).beats.tolist() == [False, False]


def test_a_copy_of_the_control_has_no_lift() -> None:
    rows = np.random.default_rng(1).normal(5.0, 1.0, (30, 3))
    rows[:, 2] = rows[:, 0]
    lift = infer_lift(rows.mean(axis=0), np.cov(rows.T) / 30, 0, freedom=29)
    assert lift.interval[1] == pytest.approx([0.0, 0.0], abs=1e-12)
    assert not lift.beats[1]
    assert infer_lift([1.0, 2.0], [0.0, 0.0], 0).beats.tolist() == [True]


@pytest.mark.parametrize(
    ("counts", "ends"),
    [
        ((56, 70, 48, 80), (0.0528, 0.3382)),
        ((9, 10, 3, 10), (0.1700, 0.8406)),
        ((6, 7, 2, 7), (0.0342, 0.8534)),
        ((5, 56, 0, 29), (-0.0326, 0.1933)),
        ((0, 10, 0, 20), (-0.1658, 0.2844)),
        ((10, 10, 0, 10), (0.6636, 1.0)),
    ],
)
def test_differences_of_rates_are_those_of_the_literature(counts: tuple[int, ...], ends: tuple[float, float]) -> None:
    """Newcombe, Statistics in Medicine 17 (1998), 873-890, method 6 (Miettinen and Nurminen's)."""
    k, n, k0, n0 = (float(each) for each in counts)
    found = difference_bounds(np.array([k]), np.array([n]), k0, n0, Z)[0]
    assert found == pytest.approx(ends, abs=6e-5)
    mirrored = difference_bounds(np.array([k0]), np.array([n0]), k, n, Z)[0]
    assert mirrored == pytest.approx(-found[::-1], abs=1e-9)


@pytest.mark.parametrize("counts", [(36, 1000, 30, 1000), (7, 20, 3, 25), (2, 200, 1, 150), (50, 50, 40, 50)])
def test_at_the_ends_of_a_ratios_interval_the_score_is_as_large_as_is_allowed(counts: tuple[int, ...]) -> None:
    """The likeliest rates under the ratio are found here by a search over the likelihood, not by a formula."""
    from scipy.optimize import minimize_scalar

    k, n, k0, n0 = (float(each) for each in counts)
    for ratio in ratio_bounds(np.array([k]), np.array([n]), k0, n0, Z)[0]:

        def unlikely(p: float, ratio: float = float(ratio)) -> float:
            rates = ((k, n, ratio * p), (k0, n0, p))
            return -sum(a * math.log(q) + (b - a) * math.log1p(-q) for a, b, q in rates)

        most = min(1.0, 1 / float(ratio)) * (1 - 1e-9)
        p = float(minimize_scalar(unlikely, bounds=(1e-9, most), method="bounded", options={"xatol": 1e-12}).x)
        variance = ratio * p * (1 - ratio * p) / n + ratio**2 * p * (1 - p) / n0
        score = (k / n - ratio * k0 / n0) / math.sqrt(variance * (n + n0) / (n + n0 - 1))
        assert abs(score) == pytest.approx(Z, abs=2e-4)


def test_rates_without_successes_leave_all_open() -> None:
    assert ratio_bounds(np.array([0.0]), np.array([20.0]), 0.0, 20.0, Z).tolist() == [[0.0, math.inf]]
    lift = infer_lift([0.0, 1.0], [0.01, 0.01], 0, trials=2)  # two of two against none: one of six ways
    assert not lift.beats[0]
    assert lift.relative_interval[0, 1] == math.inf


def test_what_cannot_be_a_control_is_refused() -> None:
    with pytest.raises(ArgumentError, match="control must be from 0 to 1"):
        infer_lift([1.0, 2.0], [1.0, 1.0], 2)
    with pytest.raises(ArgumentError, match="beside the control"):
        infer_lift([1.0], [1.0], 0)


def test_few_paired_rows_do_not_know_their_correlations() -> None:
    """Bonferroni's reach with Student's quantile, whatever the correlations say; and his limit for what beats the control."""
    for rho in (0.1, 0.8):
        covariance = 0.5 / (1 - rho) * (rho + (1 - rho) * np.eye(10))  # a difference has the standard error 1
        limit = stats.t(4).isf(0.05 / 9)
        lift = infer_lift([0.0, 0.999 * limit, *np.zeros(8)], covariance, 0, freedom=4)
        assert np.diff(lift.interval)[:, 0] == pytest.approx(np.full(9, 2 * stats.t(4).isf(0.025 / 9)))
        assert not lift.beats.any()
        assert infer_lift([0.0, 1.001 * limit, *np.zeros(8)], covariance, 0, freedom=4).beats[0]
