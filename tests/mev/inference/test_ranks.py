"""The set of the best and the ranks: hand-computed limits, a second calculation, and how often they hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from maxmean.mev.inference import best_set, maximum_interval, rank_intervals
from maxmean.mev.inference.ranks import _Pairs, _range_quantile, fisher_score

LATER = 0.045
"""Of 5%, what the first step leaves to the second."""


def test_of_two_the_one_behind_stays_until_the_difference_is_significant() -> None:
    limit = math.sqrt(0.5) * stats.norm.isf(LATER)
    for gap, stays in ((limit - 1e-6, True), (limit + 1e-6, False)):
        assert best_set([gap, 0.0], [0.25, 0.25]).tolist() == [True, stays]


def test_of_equally_wide_options_the_limit_is_that_of_dunnett() -> None:
    """One of ten against nine others, none of which is clearly worse: the quantile of the largest of nine differences."""
    limit = math.sqrt(2) * _largest_difference(9, LATER)
    for gap, stays in ((limit - 0.01, True), (limit + 0.01, False)):
        x = np.array([gap, *np.full(8, gap / 2), 0.0])
        assert best_set(x, np.ones(10))[-1] == stays


def _largest_difference(others: int, tail: float) -> float:
    """What the largest of (W_j - W)/sqrt(2) exceeds with this probability, by SciPy's quadrature."""
    from scipy.integrate import quad
    from scipy.optimize import brentq

    def surplus(q: float) -> float:
        inside, _ = quad(lambda w: stats.norm.pdf(w) * stats.norm.cdf(math.sqrt(2) * q + w) ** others, -9, 9)
        return float(1 - inside - tail)

    return float(brentq(surplus, 0.1, 6.0))


problems = st.lists(st.tuples(st.floats(-3, 3), st.floats(0.05, 2)), min_size=2, max_size=6)


@given(problems, st.floats(-5, 5), st.floats(0.1, 10))
def test_units_origin_and_order_do_not_matter(problem: list[tuple[float, float]], by: float, unit: float) -> None:
    x, s = (np.array(each).round(3) for each in zip(*problem, strict=True))
    there = best_set(x, s**2)
    assert there[x.argmax()]
    assert (
        best_set(unit * x + by, (unit * s) ** 2)[::-1] == best_set((unit * x + by)[::-1], (unit * s[::-1]) ** 2)
    ).all()
    ranks = rank_intervals(x, s**2)
    assert (ranks[:, 0] <= ranks[:, 1]).all()
    assert ranks[x.argmax(), 0] == 1
    assert ranks[x.argmin(), 1] == len(x)


def test_a_difference_of_pairs_is_judged_by_its_own_variance() -> None:
    """Correlated at 0.99, a difference of 0.3 is three of its standard errors; alone it is nothing."""
    covariance = 0.5 * (np.full((2, 2), 0.99) + 0.01 * np.eye(2))
    assert best_set([0.3, 0.0], covariance).tolist() == [True, False]
    assert best_set([0.3, 0.0], [0.5, 0.5]).all()
    assert rank_intervals([0.3, 0.0], covariance).tolist() == [[1, 1], [2, 2]]


def test_few_observations_are_judged_by_welch() -> None:
    scores, _ = _Pairs.of([1.0, 0.0], [0.1, 0.3], [4.0, 7.0]).against(np.arange(2))
    freedom = 0.4**2 / (0.01 / 4 + 0.09 / 7)
    assert scores[0, 1] == pytest.approx(stats.norm.isf(stats.t(freedom).sf(1 / math.sqrt(0.4))), abs=1e-9)
    assert scores[1, 0] == -scores[0, 1]


@pytest.mark.parametrize("options", [2, 10, 500])
def test_the_quantile_of_the_range_is_tukeys(options: int) -> None:
    assert _range_quantile(options, 0.05) == pytest.approx(stats.studentized_range.isf(0.05, options, np.inf), abs=1e-6)


def test_many_options_are_judged_at_once() -> None:
    """Seventy, of which the first ten are far ahead, and the last is far behind."""
    x = np.array([*np.full(10, 30.0), *np.zeros(59), -30.0])
    ranks = rank_intervals(x, np.ones(70))
    assert ranks[0].tolist() == [1, 10]
    assert ranks[20].tolist() == [11, 69]
    assert ranks[-1].tolist() == [70, 70]


def test_stepping_down_never_takes_back() -> None:
    """What Tukey's test of all pairs finds is found, and more: here a difference that counts once the others are settled."""
    x = np.array([20.0, 10.0, 3.5, 0.0])
    quantile = _range_quantile(4, 0.05) / math.sqrt(2)
    assert (x[2] - x[3]) / math.sqrt(2) < quantile
    assert rank_intervals(x, np.ones(4)).tolist() == [[1, 1], [2, 2], [3, 3], [4, 4]]


@pytest.mark.parametrize("means", [np.zeros(5), np.array([2.0, 2.0, 0.0, 0.0, -2.0])], ids=["equal", "apart"])
def test_they_hold(means: np.ndarray) -> None:
    """200 data sets of six observations: were each right in 95%, fewer than 182 would come of one in 100 such tests."""
    rng = np.random.default_rng(1)
    data = rng.normal((means / math.sqrt(6))[:, None], 1.0, (200, 5, 6))
    better, worse = (np.array([np.sum(side(means, mean)) for mean in means]) for side in (np.greater, np.less))
    best = ranks = 0
    for x, variance in zip(data.mean(axis=-1), data.var(axis=-1, ddof=1) / 6, strict=True):
        best += best_set(x, variance, freedom=5)[0]
        found = rank_intervals(x, variance, freedom=5)
        ranks += bool(((found[:, 0] <= 1 + better) & (found[:, 1] >= 5 - worse)).all())
    assert best >= 182
    assert ranks >= 182


def test_few_paired_rows_do_not_know_their_correlations() -> None:
    """100 data sets of five rows and 30 equal options, correlated at 0.5: were each right in 95%, fewer than 89 would come of one
    in 80 such tests. Correlations taken as they are have ranks that hold in 37.
    """
    rng = np.random.default_rng(2)
    data = rng.normal(size=(100, 5, 30)) + rng.normal(size=(100, 5, 1))
    best = ranks = maximum = 0
    for rows in data:
        x, covariance = rows.mean(axis=0), np.cov(rows.T) / 5
        best += best_set(x, covariance, freedom=4)[0]
        ranks += bool((rank_intervals(x, covariance, freedom=4) == [1, 30]).all())
        low, high = maximum_interval(x, covariance, freedom=4)
        maximum += low <= 0 <= high
    assert min(best, ranks, maximum) >= 89


@pytest.mark.parametrize(("rows", "options"), [(5, 3), (14, 3), (5, 8), (39, 8)])
def test_ranks_of_few_paired_rows_are_holms(rows: int, options: int) -> None:
    """One ahead of the others, which are equal, by a little less and a little more than chance allows one of all comparisons."""
    covariance = 0.5 * (np.eye(options) + np.full((options, options), 0.2))  # a difference has the standard error 1
    limit = stats.t(rows - 1).isf(0.05 / (options * (options - 1)))
    for gap, first in ((0.999 * limit, options), (1.001 * limit, 1)):
        x = np.array([gap, *np.zeros(options - 1)])
        assert rank_intervals(x, covariance, freedom=rows - 1)[0].tolist() == [1, first]


def test_certain_options_are_ranked_as_they_are() -> None:
    assert best_set([2.0, 1.0, 2.0], [0.0, 0.0, 0.0]).tolist() == [True, False, True]
    assert rank_intervals([2.0, 1.0, 2.0], [0.0, 0.0, 0.0]).tolist() == [[1, 2], [3, 3], [1, 2]]
    assert rank_intervals([2.0], [1.0]).tolist() == [[1, 1]]


def test_two_certain_options_beside_a_doubtful_one_are_no_evidence_for_each_other() -> None:
    """The first is certainly not the best; that the third is better than the second has probability 4.7%, and 4.5% are asked."""
    data = [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [3.0, 5.0, 6.0]]
    x, variances = np.mean(data, axis=1), np.var(data, axis=1, ddof=1) / 3
    with np.errstate(all="raise"):
        assert best_set(x, variances, freedom=2).tolist() == [False, True, True]
        ranks = rank_intervals(x, variances, freedom=2)
    assert stats.t(2).sf((x[2] - x[1]) / math.sqrt(variances[2])) == pytest.approx(0.0471, abs=1e-4)
    assert ranks.tolist() == [[2, 3], [1, 2], [1, 3]]


@pytest.mark.parametrize("level", [0.01, 0.4, 0.5])
def test_with_little_confidence_the_leader_still_stays(level: float) -> None:
    assert best_set([7.0, 7.0], [0.0, 0.0], level=level).all()
    assert best_set([3.0, 1.0], [1.0, 1.0], level=level)[0]
    ranks = rank_intervals([0.3, 0.5], [0.02, 0.025], level=level)
    assert (ranks[:, 0] <= ranks[:, 1]).all()


def test_a_score_of_rates_is_fishers_probability() -> None:
    counts = np.array([[3, 3, 0, 3], [7, 20, 2, 15], [0, 9, 4, 9], [5, 8, 5, 8]], float)
    for won, tried, other, others in counts:
        (score,) = fisher_score(*(np.array([each]) for each in (won, tried, other, others)))
        table = np.array([[won, tried - won], [other, others - other]])
        greater, less = (stats.fisher_exact(table, alternative=side).pvalue for side in ("greater", "less"))
        expected = stats.norm.isf(greater) if greater < 0.5 else -stats.norm.isf(less) if less < 0.5 else 0.0
        assert score == pytest.approx(expected, abs=1e-9)
        (back,) = fisher_score(*(np.array([each]) for each in (other, others, won, tried)))
        assert back == pytest.approx(-score, abs=1e-9)


@pytest.mark.parametrize(("options", "n"), [(2, 3), (2, 10), (3, 3), (3, 5)])
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_with_tiny_counts_they_hold_exactly(options: int, n: int, rate: float) -> None:
    """Equal rates, the probabilities of all outcomes added up: at least 95%, where the normal approximation had 78 to 95%."""
    set_holds = ranks_hold = 0.0
    for found in np.ndindex(*(n + 1,) * options):
        probability = float(np.prod(stats.binom(n, rate).pmf(found)))
        rates, smoothed = np.array(found) / n, (np.array(found) + 0.5) / (n + 1)
        spread = smoothed * (1 - smoothed) / n
        set_holds += probability * best_set(rates, spread, trials=n)[0]
        ranks_hold += probability * bool((rank_intervals(rates, spread, trials=n) == [1, options]).all())
    assert set_holds >= 0.95
    assert ranks_hold >= 0.95


def test_many_trials_are_compared_as_before() -> None:
    rates, trials = np.array([0.30, 0.22, 0.25]), np.array([1000, 900, 1100])
    spread = rates * (1 - rates) / trials
    assert (best_set(rates, spread, trials=trials) == best_set(rates, spread)).all()
    assert (rank_intervals(rates, spread, trials=trials) == rank_intervals(rates, spread)).all()
