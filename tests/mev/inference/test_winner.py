"""Inference on the winner, against high-precision arithmetic, hand-derived equations and simulation."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from scipy.integrate import quad
from scipy.special import expit, ndtr, ndtri, stdtr, stdtrit
from scipy.stats import binom, kstest

from maxmean.mev.inference.simultaneous import max_quantile
from maxmean.mev.inference.truncated import student_log_odds, truncated_log_odds
from maxmean.mev.inference.winner import Winner, WinnerMean, infer_winner
from seldom import mostly_slow, slow

# c_j = 0.5, 1.6 and -0.2 for the first option: it is truncated on both sides.
BOTH_SIDES = np.array([[1.0, 0.5, 1.6, -0.2], [0.5, 1.0, 0.8, 0.0], [1.6, 0.8, 4.0, 0.0], [-0.2, 0.0, 0.0, 2.0]])


def mass(low: Any, high: Any) -> Any:
    """P(low < N(0, 1) < high) with mpmath; the difference is always taken in one tail."""
    if low > 0:
        low, high = -high, -low
    return (mpmath.erfc(-high / mpmath.sqrt(2)) - mpmath.erfc(-low / mpmath.sqrt(2))) / 2


def exact_log_odds(offset: float, below: float, above: float) -> Any:
    with mpmath.workdps(80):
        t, a, b = mpmath.mpf(offset), mpmath.mpf(below), mpmath.mpf(above)
        return mpmath.log(mass(t - a, t)) - mpmath.log(mass(t, t + b))


def exact_cdf(means: Any, covariance: Any, mu: float, reach: tuple[float, float]) -> float:
    """F(X_0; mu) of the truncated normal after option 0 has won, by the definitions; it lies at most ``reach`` from mu."""
    with mpmath.workdps(80):
        x, *others = (mpmath.mpf(v) for v in means)
        variance, *row = (mpmath.mpf(float(v)) for v in (covariance if np.ndim(covariance) == 1 else covariance[0]))
        row = [mpmath.mpf(0)] * len(others) if np.ndim(covariance) == 1 else row
        low, high, s = -mpmath.inf, mpmath.inf, mpmath.sqrt(variance)
        for other, shared in zip(others, row, strict=True):
            # The other option is z + c x with z fixed; the two are level at x = z / (1 - c).
            c = shared / variance
            level = (other - c * x) / (1 - c)
            low, high = (max(low, level), high) if c < 1 else (low, min(high, level))
        low, high = max(low, mu - mpmath.mpf(reach[0])), min(high, mu + mpmath.mpf(reach[1]))
        return float(mass((low - mu) / s, (x - mu) / s) / mass((low - mu) / s, (high - mu) / s))


def ends(answer: WinnerMean) -> np.ndarray:
    return np.array([answer.interval[0], answer.value, answer.interval[1]])


# ------------------------------------------------------------------------------------------ the truncated normal


@pytest.mark.parametrize("offset", [0.0, 1e-3, -0.7, 3.0, -9.0, 40.0, -40.0, 1e3, -1e3])
@pytest.mark.parametrize("below", [1e-12, 1e-6, 0.3, 2.0, 50.0, 1e3, math.inf])
@pytest.mark.parametrize("above", [1e-9, 0.01, 1.5, 9.0, 2e3, math.inf])
def test_truncated_normal_matches_high_precision(offset: float, below: float, above: float) -> None:
    exact = exact_log_odds(offset, below, above)
    error = abs(truncated_log_odds(offset, below, above) - exact)
    # An absolute error of the log-odds is a relative error of F and of 1 - F. Far out (odds of e^500,000) rounding of
    # the log-odds itself is all that is left.
    assert error < 2e-14 + 4e-16 * abs(exact)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(-3, 3).map(lambda e: 10**e),
    st.sampled_from([-1, 1]),
    st.floats(-14, 4).map(lambda e: 10**e),
    st.floats(-14, 4).map(lambda e: 10**e),
)
def test_truncated_normal_matches_high_precision_anywhere(size: float, sign: int, below: float, above: float) -> None:
    exact = exact_log_odds(sign * size, below, above)
    assert abs(truncated_log_odds(sign * size, below, above) - exact) < 2e-14 + 4e-16 * abs(exact)


def test_truncated_normal_is_antisymmetric_and_increases_in_the_offset() -> None:
    offsets = np.linspace(-60, 60, 2401)
    odds = np.array([truncated_log_odds(t, 0.7, 3.0) for t in offsets])
    assert np.all(np.diff(odds) > 0)
    np.testing.assert_allclose(odds, [-truncated_log_odds(-t, 3.0, 0.7) for t in offsets], rtol=1e-14)


# --------------------------------------------------------------------------------- Student's t, given the selection


def exact_student_log_odds(
    offset: float, below: float, above: float, freedom: int, reach: tuple[float, float]
) -> float:
    """By the definition, in 40 digits: the angle's density is cos^(f-1), bounded where its sine and where its tangent are."""
    with mpmath.workdps(40):
        t, f = mpmath.mpf(offset), mpmath.mpf(freedom)
        size = mpmath.sqrt(f + t * t)
        low = max(mpmath.asin(max((t - below) / size, -1)), -mpmath.atan(reach[0] / mpmath.sqrt(f)))
        high = min(mpmath.asin(min((t + above) / size, 1)), mpmath.atan(reach[1] / mpmath.sqrt(f)))
        here = mpmath.atan(t / mpmath.sqrt(f))
        parts = [mpmath.quad(lambda a: mpmath.cos(a) ** (f - 1), [low, here]), 0]
        parts[1] = mpmath.quad(lambda a: mpmath.cos(a) ** (f - 1), [here, high])
        return float(mpmath.log(parts[0]) - mpmath.log(parts[1]))


@pytest.mark.parametrize("freedom", [1, 2, 4, 19])
@pytest.mark.parametrize("offset", [-6.0, -0.3, 0.0, 2.5])
@pytest.mark.parametrize(("below", "above"), [(1e-9, 1e6), (0.7, 2.0), (1e6, 0.1)])
@pytest.mark.parametrize("reach", [(1e6, 9.0), (7.0, 8.0)])
def test_truncated_student_matches_quadrature(
    freedom: int, offset: float, below: float, above: float, reach: tuple[float, float]
) -> None:
    found = student_log_odds(offset, below, above, float(freedom), reach=reach)
    assert found == pytest.approx(exact_student_log_odds(offset, below, above, freedom, reach), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("freedom", [1.0, 2.5, 7.0, 400.0])
def test_without_selection_it_is_students_distribution(freedom: float) -> None:
    offsets = np.array([-20.0, -1.0, 0.0, 0.4, 3.0])
    found = [student_log_odds(t, math.inf, math.inf, freedom) for t in offsets]
    # The power series of a cosine to a broken power ends at the right angle: nine digits are left there.
    np.testing.assert_allclose(found, np.log(stdtr(freedom, offsets) / stdtr(freedom, -offsets)), rtol=1e-7, atol=1e-12)


def test_with_many_degrees_of_freedom_it_is_the_truncated_normal() -> None:
    for offset, below, above in ((0.7, 0.4, 3.0), (-2.0, 1e-6, math.inf), (5.0, 2.0, 0.3)):
        assert student_log_odds(offset, below, above, 1e10) == pytest.approx(
            truncated_log_odds(offset, below, above), rel=1e-6
        )


@pytest.mark.parametrize(
    ("n", "mean", "reach"), [(2, -0.5, math.inf), (3, -1.0, 12.0), (5, 0.5, 4.0), (5, -0.7, math.inf)]
)
def test_its_distribution_function_is_uniform_whatever_the_true_standard_error(
    n: int, mean: float, reach: float
) -> None:
    # Means of n normal observations that were selected for being positive. The limit fails with probability 1e-5.
    rng = np.random.default_rng(7)
    x, s = rng.normal(mean, 1.3 / math.sqrt(n), 60_000), 1.3 * np.sqrt(rng.chisquare(n - 1, 60_000) / (n - 1) / n)
    kept = np.flatnonzero((x > 0) & (x - mean <= reach * s))[:2_000]
    odds = np.array(
        [student_log_odds((x[i] - mean) / s[i], x[i] / s[i], math.inf, n - 1.0, reach=(math.inf, reach)) for i in kept]
    )
    assert len(odds) == 2_000
    assert kstest(expit(odds), "uniform").pvalue > 1e-5


# -------------------------------------------------------------------------------------------- the answers solved


@pytest.mark.parametrize(
    ("means", "covariance"),
    [
        ([0.0, -0.4], [1.0, 1.0]),
        ([0.0, -1e-3, -2.0], [1.0, 0.5, 3.0]),
        ([0.0, -0.01, -0.3, -1.0], BOTH_SIDES),
        ([0.0, -1.0, -0.002, -1.0], BOTH_SIDES),
        ([7.0, 6.9, 6.9999, 3.0], 0.01 * BOTH_SIDES),
        ([5.0, -5.0], [[1.0, 0.9], [0.9, 1.0]]),
    ],
)
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_the_distribution_function_at_the_answers_is_what_it_should_be(
    means: Any, covariance: Any, level: float
) -> None:
    winner = infer_winner(means, covariance, level=level)
    assert winner.index == 0
    alpha = 1 - level
    projected = winner.projection[1] - means[0], means[0] - winner.projection[0]
    for answer, reach, tail in (
        (winner.conditional, (math.inf, math.inf), alpha / 2),
        (winner.hybrid, projected, (alpha - winner.beta) / (1 - winner.beta) / 2),
    ):
        found = [exact_cdf(means, covariance, mu, reach) for mu in ends(answer)]
        # What is left is the rounding of the answers, against a distance to a truncation point of 1e-4 and less.
        np.testing.assert_allclose(found, [1 - tail, 0.5, tail], rtol=2e-8 if means[0] else 1e-9)


@pytest.mark.parametrize("gap", [1e-5, 1e-12, 1e-100, 1e-300])
def test_after_the_closest_races_the_conditional_answer_is_far_away_but_right(gap: float) -> None:
    # The other option, at 0, truncates: F = P(0 < Y < gap)/P(Y > 0). For mu far below zero Y is exponential with rate
    # -mu, so that F = 1 - exp(mu gap) up to a relative 1/mu² and gap/mu.
    answer = infer_winner([gap, 0.0], [1.0, 1.0]).conditional
    np.testing.assert_allclose(ends(answer), np.log([0.025, 0.5, 0.975]) / gap, rtol=max(1e-12, 1e3 * gap**2, 3 * gap))


def test_two_independent_options_by_hand() -> None:
    # X = (1.3, 0.5), variances 4 and 9: c = 0, so that Y ~ N(mu, 4) given Y > 0.5, and the answers solve
    # (Phi((1.3 - mu)/2) - Phi((0.5 - mu)/2)) / Phi((mu - 0.5)/2) = 0.95, 0.5, 0.05.
    answer = infer_winner([1.3, 0.5], [4.0, 9.0], level=0.9).conditional
    with mpmath.workdps(40):

        def solution(probability: float, start: float) -> float:
            def equation(mu: Any) -> Any:
                upper = mpmath.ncdf((mu - mpmath.mpf(1) / 2) / 2)
                return (upper - mpmath.ncdf((mu - mpmath.mpf("1.3")) / 2)) / upper - mpmath.mpf(probability)

            return float(mpmath.findroot(equation, (start, start + 1), tol=1e-30))

        expected = [solution(p, s) for p, s in (("0.95", -12.0), ("0.5", -2.0), ("0.05", 4.0))]  # type: ignore[arg-type]
    np.testing.assert_allclose(ends(answer), expected, rtol=1e-13)


@pytest.mark.parametrize("covariance", [[0.25, 1.0, 2.0], np.diag([0.25, 1.0, 2.0])])
def test_a_winner_far_ahead_gets_the_ordinary_interval(covariance: Any) -> None:
    winner = infer_winner([100.0, 1.0, 2.0], covariance)
    ordinary = 100 + 0.5 * ndtri([0.025, 0.5, 0.975])
    np.testing.assert_allclose(ends(winner.naive), ordinary, rtol=1e-15)
    np.testing.assert_allclose(ends(winner.conditional), ordinary, rtol=1e-14)
    # The hybrid truncates at c_beta above: Phi(t) = Phi(c) a for a = alpha_H/2, 1/2 and 1 - alpha_H/2, slightly wider.
    c = -ndtri(1 - 0.995 ** (1 / 3))
    a = 0.045 / 0.995 / 2
    wider = -ndtri(ndtr(c) * np.array([1 - a, 0.5, a]))
    assert np.ptp(wider) < 2 * 2.01
    np.testing.assert_allclose(ends(winner.hybrid), 100 + 0.5 * wider, rtol=1e-14)


def test_a_single_option_gets_the_ordinary_interval_from_all_three() -> None:
    winner = infer_winner([3.0], [4.0])
    np.testing.assert_allclose(ends(winner.conditional), ends(winner.naive), rtol=1e-13)
    np.testing.assert_allclose(ends(winner.hybrid), ends(winner.naive), rtol=1e-13)


def test_few_observations_widen_by_students_quantile_when_one_is_far_ahead() -> None:
    winner = infer_winner([1e6, 1.0, 2.0], [0.25, 1.0, 2.0], freedom=[4, 9, 2])
    np.testing.assert_allclose(ends(winner.conditional), 1e6 + 0.5 * stdtrit(4, [0.025, 0.5, 0.975]), rtol=1e-12)
    np.testing.assert_allclose(winner.conditional.interval, winner.naive.interval, rtol=1e-12)
    assert winner.beta == pytest.approx(0.05 * (0.1 + 1 / 4))
    assert winner.projection[0] == pytest.approx(1e6 + 0.5 * stdtrit(4, 1 - (1 - winner.beta) ** (1 / 3)), rel=1e-12)


def test_bounds_by_hand() -> None:
    one = infer_winner([3.0], [4.0], freedom=4)
    np.testing.assert_allclose(one.bounds, 3 + 2 * stdtrit(4, [0.025, 0.975]))
    # Tied, nothing is known from below but the projection, at half of the tail; from above, its own bound.
    tied = infer_winner([2.0, 2.0, 0.0], [1.0, 4.0, 1.0])
    share = 1 - (1 - 0.0125) ** (1 / 3)
    z = -ndtri(0.025)
    np.testing.assert_allclose(tied.bounds, (2 + ndtri(share), 2 + z))
    assert list(tied.tied) == [0, 1]
    np.testing.assert_allclose(
        [tied.tied[0], tied.tied[1]], [(2 + ndtri(share), 2 + z), (2 + 2 * ndtri(share), 2 + 2 * z)]
    )
    # In second place they are those that hold for all options.
    second = infer_winner([2.0, 1.0, 0.0], [1.0, 4.0, 1.0], rank=2)
    share = 1 - (1 - 0.025) ** (1 / 3)
    np.testing.assert_allclose(second.bounds, (1 + 2 * ndtri(share), 1 - 2 * ndtri(share)))


@pytest.mark.parametrize("ratio", [0.1, 0.5, 1.0, 4.0])
def test_the_upper_bound_of_whoever_wins_holds(ratio: float) -> None:
    """Two options with known standard errors, 1 and ``ratio``: how probable the failure of the winner's own bound is."""
    z = -ndtri(0.025)
    fails = []
    for gap in (0.0, 0.3, 1.0, 3.0, 40.0):
        for a, b, s, t in ((0.0, gap, 1.0, ratio), (gap, 0.0, 1.0, ratio)):
            first, second = stats.norm(a, s), stats.norm(b, t)
            fails.append(
                quad(lambda x, f=first, g=second: f.pdf(x) * g.cdf(x), a - 12 * s, a - z * s)[0]
                + quad(lambda x, f=first, g=second: g.pdf(x) * f.cdf(x), b - 12 * t, b - z * t)[0]
            )
    assert max(fails) <= 0.025 + 1e-9
    assert max(fails) > 0.0249  # one far ahead wins always
    assert infer_winner([0.0, 1.0], [1.0, ratio**2]).bounds[1] == pytest.approx(1 + z * ratio)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=6), st.sampled_from([1.0, 4.0, math.inf]), st.data())
def test_bounds_always_hold_the_estimate(means: list[float], freedom: float, data: Any) -> None:
    rank = data.draw(st.integers(1, len(means)))
    winner = infer_winner(means, [1.0] * len(means), freedom=freedom, rank=rank)
    assert winner.naive.value == sorted(means)[-rank]
    assert winner.bounds[0] <= winner.naive.value <= winner.bounds[1]
    assert bool(winner.tied) == (means.count(winner.naive.value) > 1)


@pytest.mark.parametrize("freedom", [3.0, math.inf])
def test_the_last_is_the_first_of_the_negated_ones(freedom: float) -> None:
    means, variances = np.array([1.0, 0.2, 0.35, -0.4]), [1.0, 0.5, 2.0, 0.7]
    last, first = (
        infer_winner(sign * means, variances, freedom=freedom, rank=rank) for sign, rank in ((1, 4), (-1, 1))
    )
    assert last.index == first.index == 3
    np.testing.assert_allclose(ends(last.conditional), -ends(first.conditional)[::-1], rtol=1e-9)
    np.testing.assert_allclose(ends(last.hybrid), -ends(first.hybrid)[::-1], rtol=1e-9)


def test_upper_truncation_by_an_option_that_moves_more_than_the_winner() -> None:
    # c = 2: raising the winner by 1 raises the other one by 2, so that it would catch up a gap of 0.3 after 0.3.
    winner = infer_winner([1.0, 0.7], [[1.0, 2.0], [2.0, 5.0]])
    np.testing.assert_allclose(winner.truncation, (-math.inf, 1.3))
    assert winner.conditional.value > winner.naive.value


def test_the_hybrid_without_beta_is_the_conditional_answer() -> None:
    winner = infer_winner([1.0, 0.9, 0.0, 0.0], BOTH_SIDES, beta=0.0)
    assert winner.hybrid == winner.conditional
    assert winner.projection == (-math.inf, math.inf)


# -------------------------------------------------------------------------------------------------------- c_beta


def reach(covariance: Any, beta: float, sides: int = 2) -> float:
    return max_quantile(np.asarray(covariance, float), beta, sides)


@pytest.mark.parametrize(("options", "tolerance"), [(2, 1e-3), (5, 2e-3), (30, 6e-3)])
@pytest.mark.parametrize("rho", [0.2, 0.6, 0.9])
@pytest.mark.parametrize("beta", [0.005, 0.1])
@pytest.mark.parametrize("sides", [1, 2])
def test_c_beta_of_equally_correlated_options(
    options: int, tolerance: float, rho: float, beta: float, sides: int
) -> None:
    # Given the common factor g the options are independent: one integral over g.
    g = np.linspace(-9, 9, 4001)
    weights = np.exp(-g * g / 2) / np.exp(-g * g / 2).sum()
    shift, scale = math.sqrt(rho) * g, math.sqrt(1 - rho)

    def surplus(c: float) -> float:
        inside = ndtr((c - shift) / scale) - (ndtr((-c - shift) / scale) if sides == 2 else 0.0)
        return 1 - beta - float(weights @ inside**options)

    exact = optimize.brentq(surplus, 0.1, 8.0)
    found = reach(np.full((options, options), rho) + (1 - rho) * np.eye(options), beta, sides)
    assert found == pytest.approx(exact, abs=tolerance)


def test_c_beta_of_singular_matrices() -> None:
    one = -float(ndtri(0.0025))
    two = -float(ndtri((1 - math.sqrt(0.995)) / 2))
    assert reach(np.ones((3, 3)), 0.005) == pytest.approx(one, rel=1e-8)  # three copies of one option
    assert reach(np.diag([1.0, 0.0, 0.0]), 0.005) == pytest.approx(one, rel=1e-12)  # two options without variance
    assert reach(np.kron(np.eye(2), np.ones((2, 2))), 0.005) == pytest.approx(two, abs=5e-4)  # two options, each twice
    signs = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 4.0]])
    assert reach(signs, 0.005) == pytest.approx(two, abs=5e-4)


@pytest.mark.slow
def test_a_thousand_options() -> None:
    means = np.random.default_rng(0).normal(size=1000)
    winner = infer_winner(means, np.ones(1000))
    assert winner.index == means.argmax()
    assert winner.truncation[0] == pytest.approx(np.sort(means)[-2])
    c = -float(ndtri(1 - 0.995**0.001))
    np.testing.assert_allclose(winner.projection, (means.max() - c, math.inf))
    correlated = infer_winner(means, 0.7 * np.eye(1000) + 0.3)
    assert c - 0.05 < means.max() - correlated.projection[0] < c


# ------------------------------------------------------------------------------------------------ long-run truth

REPETITIONS = 1500
DESIGNS: dict[str, tuple[list[float], Any]] = {
    "equal": ([0.0] * 5, np.ones(5)),
    "unequal": ([1.0, 0.5, 0.0, -0.5], np.array([1.0, 2.0, 0.5, 4.0])),
    "correlated": ([0.0, 0.2, -0.5, 0.3], BOTH_SIDES),
}


@cache
def simulated(design: str) -> dict[str, tuple[int, int]]:
    """For each answer: how often the interval covered the winner's mean, and how often the value was above it."""
    truth, covariance = DESIGNS[design]
    matrix = covariance if covariance.ndim == 2 else np.diag(covariance)
    # Seeds fixed once, before any result was seen.
    data = np.random.default_rng(20240601).multivariate_normal(truth, matrix, size=REPETITIONS)
    counts = {name: [0, 0] for name in ("naive", "conditional", "hybrid")}
    for means in data:
        winner = infer_winner(means, covariance)
        target = truth[winner.index]
        for name, count in counts.items():
            answer: WinnerMean = getattr(winner, name)
            count[0] += answer.interval[0] <= target <= answer.interval[1]
            count[1] += answer.value > target
        low, high = winner.projection
        assert low <= winner.hybrid.interval[0] <= winner.hybrid.value <= winner.hybrid.interval[1] <= high
        assert winner.conditional.interval[0] < winner.conditional.value < winner.conditional.interval[1]
    return {name: (count[0], count[1]) for name, count in counts.items()}


def accepts(count: int, low: float, high: float) -> bool:
    """Is a binomial count compatible with a probability in [low, high]? A wrong "no" has probability 1e-5."""
    return bool(binom.ppf(5e-6, REPETITIONS, low) <= count <= binom.isf(5e-6, REPETITIONS, high))


@pytest.mark.parametrize("design", mostly_slow(DESIGNS, ["equal"]))
def test_the_conditional_interval_covers_exactly_and_its_value_is_median_unbiased(design: str) -> None:
    covered, above = simulated(design)["conditional"]
    assert accepts(covered, 0.95, 0.95)
    assert accepts(above, 0.5, 0.5)


@pytest.mark.parametrize("design", mostly_slow(DESIGNS, ["equal"]))
def test_the_hybrid_interval_covers_and_its_value_is_nearly_median_unbiased(design: str) -> None:
    covered, above = simulated(design)["hybrid"]
    assert accepts(covered, 0.95, 0.95 / 0.995)
    assert accepts(above, 0.5 - 0.005 / 2, 0.5 + 0.005 / 2)


@pytest.mark.parametrize(
    ("n", "repetitions", "rank"),
    [
        (3, 250, 1),
        (5, 250, 2),
        pytest.param(2, 3_000, 1, marks=pytest.mark.slow),
        pytest.param(3, 3_000, 1, marks=pytest.mark.slow),
        pytest.param(5, 3_000, 1, marks=pytest.mark.slow),
        pytest.param(5, 3_000, 3, marks=pytest.mark.slow),
    ],
)
def test_it_covers_with_few_observations(n: int, repetitions: int, rank: int) -> None:
    # Ten options, their means half a standard error apart, as many as are equal, and unequal variances. A wrong alarm: 1e-5.
    truth, sd = np.repeat([0.0, 0.5, 1.0], [4, 4, 2]) / math.sqrt(n), np.linspace(0.5, 2.0, 10)
    rng = np.random.default_rng([20240602, n, rank])
    held = np.zeros(3)
    for _ in range(repetitions):
        data = rng.normal(truth, sd, (n, 10))
        found = infer_winner(data.mean(0), data.var(0, ddof=1) / n, freedom=n - 1, rank=rank)
        answers = found.conditional.interval, found.hybrid.interval, found.bounds
        held += [low <= truth[found.index] <= high for low, high in answers]
    least, most = binom.ppf(5e-6, repetitions, 0.95), binom.isf(5e-6, repetitions, 0.95)
    assert least <= held[0] <= most
    assert least <= held[1]
    assert least <= held[2]


@pytest.mark.parametrize("design", ["equal", *slow("unequal")])
def test_the_naive_answer_shows_the_winners_curse(design: str) -> None:
    covered, above = simulated(design)["naive"]
    assert not accepts(above, 0.5, 0.5)
    assert above > 0.6 * REPETITIONS
    if design == "equal":  # P(-1.96 < max of five < 1.96) = 0.975^5 - 0.025^5 = 0.881
        exact = 0.975**5 - 0.025**5
        assert accepts(covered, exact, exact)
        assert not accepts(covered, 0.95, 1.0)


# --------------------------------------------------------------------------------------------------- invariances

problems = st.integers(2, 6).flatmap(
    lambda m: st.tuples(
        st.lists(st.floats(-5, 5).map(lambda x: round(x, 3)), min_size=m, max_size=m, unique=True),
        st.lists(st.floats(0.01, 9), min_size=m, max_size=m),
        st.permutations(range(m)),
    )
)


def everything(winner: Winner) -> np.ndarray:
    answers = [ends(a) for a in (winner.naive, winner.conditional, winner.hybrid)]
    return np.concatenate([*answers, winner.projection, winner.truncation])


@settings(max_examples=40, deadline=None)
@given(problems, st.floats(-1e3, 1e3), st.floats(-150, 150).map(lambda e: 10**e))
@example(([0.0, 1.0], [1.0, 1.0], [1, 0]), 0.0, 1e150)
@example(([0.0, 1.0], [1.0, 1.0], [1, 0]), 0.0, 1e-150)
def test_shift_scale_and_order_do_not_matter(problem: Any, shift: float, scale: float) -> None:
    means, variances, order = np.array(problem[0]), np.array(problem[1]), np.array(problem[2])
    base = infer_winner(means, variances)
    low, *_, high = ends(base.conditional)
    size = max(abs(low), abs(high), 10.0)

    shifted = infer_winner(means + shift, variances)
    gap = base.naive.value - base.truncation[0]
    # The shift rounds the means, and a close race passes that on enlarged.
    slack = 1e-12 * (size + abs(shift)) + 1e-15 * abs(shift) / gap * size * 10
    np.testing.assert_allclose(everything(shifted), everything(base) + shift, rtol=0, atol=slack)

    scaled = infer_winner(means * scale, variances * scale * scale)
    np.testing.assert_allclose(everything(scaled) / scale, everything(base), rtol=1e-10, atol=1e-10)

    permuted = infer_winner(means[order], variances[order])
    assert order[permuted.index] == base.index
    np.testing.assert_array_equal(everything(permuted), everything(base))


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(4)), st.integers(-400, 400))
def test_shift_scale_and_order_do_not_matter_with_correlations(order: list[int], exponent: int) -> None:
    means = np.array([1.0, 0.75, 0.5, 0.875])
    base = infer_winner(means, BOTH_SIDES)
    # By powers of two the scaling is exact, and so must be the answer.
    scaled = infer_winner(np.ldexp(means, exponent), np.ldexp(BOTH_SIDES, 2 * exponent))
    np.testing.assert_array_equal(everything(scaled), np.ldexp(everything(base), exponent))
    permuted = infer_winner(means[order], BOTH_SIDES[np.ix_(order, order)])
    assert order[permuted.index] == base.index
    np.testing.assert_allclose(ends(permuted.conditional), ends(base.conditional), rtol=1e-13)
    np.testing.assert_allclose(ends(permuted.hybrid), ends(base.hybrid), atol=2e-3)  # c_beta is good to about 0.001


def test_variances_and_a_diagonal_matrix_are_the_same() -> None:
    means, variances = [1.0, 0.8, 0.3], [1.0, 2.0, 0.5]
    assert infer_winner(means, variances) == infer_winner(means, np.diag(variances))


def test_a_copy_of_the_winner_changes_nothing_for_the_conditional_answer() -> None:
    alone = infer_winner([1.0, 0.5], [2.0, 3.0])
    doubled = infer_winner([1.0, 1.0, 0.5], [[2.0, 2.0, 0.0], [2.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
    assert (doubled.index, doubled.truncation) == (0, (0.5, math.inf))
    assert doubled.conditional == alone.conditional
    np.testing.assert_allclose(ends(doubled.hybrid), ends(alone.hybrid), atol=1e-3)


# ------------------------------------------------------------------------------------------------- special cases


def test_ties() -> None:
    tied = infer_winner([2.0, 2.0], [1.0, 1.0])
    assert tied.index == 0
    assert tied.conditional == WinnerMean(-math.inf, (-math.inf, -math.inf))
    low, high = tied.projection
    assert tied.hybrid == WinnerMean(low, (low, low))
    above = infer_winner([2.0, 2.0], [[1.0, 2.0], [2.0, 5.0]])
    assert above.conditional == WinnerMean(math.inf, (math.inf, math.inf))
    assert above.hybrid == WinnerMean(above.projection[1], (above.projection[1],) * 2)
    both = infer_winner([2.0, 2.0, 2.0], [[1.0, 0.0, 1.5], [0.0, 1.0, 0.0], [1.5, 0.0, 4.0]])
    assert both.conditional == WinnerMean(2.0, (-math.inf, math.inf))
    assert both.hybrid == WinnerMean(2.0, both.projection)
    # Nearly tied is nearly the same.
    near = infer_winner([2.0 + 1e-9, 2.0], [1.0, 1.0])
    np.testing.assert_allclose(ends(near.hybrid), low, atol=1e-7)
    assert low < high


def test_options_without_variance() -> None:
    certain = infer_winner([2.0, 1.0], [0.0, 1.0])
    for answer in (certain.naive, certain.conditional, certain.hybrid):
        assert answer == WinnerMean(2.0, (2.0, 2.0))
    assert certain.projection == (2.0, 2.0)
    assert infer_winner([1.0, 2.0], np.zeros((2, 2))).hybrid == WinnerMean(2.0, (2.0, 2.0))
    # A bar of known height truncates like any other option, and does not widen the projection.
    bar = infer_winner([0.5, 1.0], [0.0, 1.0])
    assert bar.truncation == (0.5, math.inf)
    np.testing.assert_allclose(bar.projection[0], 1 + ndtri(0.005))


def test_beta_is_a_tenth_of_alpha_unless_given() -> None:
    assert infer_winner([1.0, 0.0], [1.0, 1.0]).beta == 0.005
    assert infer_winner([1.0, 0.0], [1.0, 1.0], level=0.999).beta == 0.0001
    assert infer_winner([1.0, 0.0], [1.0, 1.0], beta=0.01).beta == 0.01


@pytest.mark.parametrize(
    ("means", "covariance", "options", "message"),
    [
        ([[1.0, 2.0]], [1.0, 1.0], {}, r"means must have shape \(options,\) with at least one option, not \(1, 2\)"),
        ([], [], {}, r"means must have shape \(options,\) with at least one option, not \(0,\)"),
        ([1.0, 2.0], [1.0], {}, r"covariance must have shape \(2, 2\) or \(2,\), not \(1,\)"),
        ([1.0, 2.0], np.eye(3), {}, r"covariance must have shape \(2, 2\) or \(2,\), not \(3, 3\)"),
        ([1.0, math.nan], [1.0, 1.0], {}, "means must be finite, but hold nan"),
        ([1.0, 2.0], [1.0, math.inf], {}, "covariance must be finite, but hold inf"),
        ([1.0, 2.0], [1.0, -0.5], {}, "variances must not be negative, but option 1 has -0.5"),
        ([1.0, 2.0], [[-2.0, 0.0], [0.0, 1.0]], {}, "variances must not be negative, but option 0 has -2"),
        ([1.0, 2.0], [[1.0, 0.5], [0.1, 1.0]], {}, "must be symmetric, but holds 0.5 and 0.1 for options 0 and 1"),
        (
            [1.0, 2.0],
            [[1.0, 2.0], [2.0, 1.0]],
            {},
            "positive semi-definite, but its correlation matrix has eigenvalue -1",
        ),
        ([1.0, 2.0], [[1e-300, 1e200], [1e200, 1.0]], {}, "positive semi-definite"),
        ([1.0, 2.0], [[0.0, 2.0], [2.0, 1.0]], {}, "positive semi-definite, but an option without variance covaries"),
        ([1.0, 2.0], [[1.0, 2.0], [2.0, 1.0]], {"beta": 0.0}, "positive semi-definite"),
        ([1.0, 2.0], [1.0, 1.0], {"level": 1.0}, "level must lie strictly between 0 and 1, not 1"),
        ([1.0, 2.0], [1.0, 1.0], {"level": 0.0}, "level must lie strictly between 0 and 1, not 0"),
        ([1.0, 2.0], [1.0, 1.0], {"level": math.nan}, "level must lie strictly between 0 and 1, not nan"),
        ([1.0, 2.0], [1.0, 1.0], {"beta": 0.05}, r"beta must lie in \[0, 1 - level\), here \[0, 0.05\), not 0.05"),
        ([1.0, 2.0], [1.0, 1.0], {"rank": 3}, "rank must be from 1 to 2, the number of options, not 3"),
        ([1.0, 2.0], [1.0, 1.0], {"freedom": 0}, "degrees of freedom must be positive, not 0"),
        ([1.0, 2.0], [1.0, 1.0], {"beta": -0.1}, r"beta must lie in \[0, 1 - level\), here \[0, 0.05\), not -0.1"),
    ],
)
def test_bad_input_gets_one_sentence(means: Any, covariance: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        infer_winner(means, covariance, **options)
