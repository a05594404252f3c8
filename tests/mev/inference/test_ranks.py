"""The set of the best and the ranks: hand-computed limits, a second calculation, and how often they hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from maxmean import estimate
from maxmean.mev import ArgumentError
from maxmean.mev.inference import best_set, maximum_interval, rank_intervals
from maxmean.mev.inference.exact import Rates, fisher_score, sign_score
from maxmean.mev.inference.ranks import _Pairs, _range_quantile
from maxmean.mev.inference.tails import difference_freedom

LATER = 0.045
"""Of 5%, what the first step leaves to the second."""


def test_of_two_the_one_behind_stays_until_the_difference_is_significant() -> None:
    limit = math.sqrt(0.5) * stats.norm.isf(0.05)
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


@pytest.mark.parametrize(
    ("degrees", "freedom"),
    [
        ((4.0, 4.0), 0.4**2 / (0.01 / 4 + 0.09 / 4)),
        ((4.0, 8.0), 0.4**2 / (0.01 / 4 + 0.09 / 8 + 0.03 / 8 * (1 + 1 / 16))),
    ],
    ids=["Welch's", "unequal sizes"],
)
def test_few_observations_are_judged_by_their_degrees_of_freedom(degrees: tuple[float, float], freedom: float) -> None:
    scores, _ = _Pairs.of([1.0, 0.0], [0.1, 0.3], degrees).against(np.arange(2))
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


def test_equally_many_trials_are_compared_as_normal_means() -> None:
    rates, everyone = np.array([0.30, 0.22, 0.25, 0.25]), np.arange(4)
    spread = rates * (1 - rates) / 1000
    scores, without = (_Pairs.of(rates, spread, math.inf, each).against(everyone)[0] for each in (1000, None))
    assert scores == pytest.approx(without, abs=1e-9)


def _scores(n: int, m: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Scores that the first of two rates is larger, and the probabilities of the outcomes if both are equal."""
    won, other = (np.arange(stats.binom.ppf(1e-9, k, rate), stats.binom.isf(1e-9, k, rate) + 1) for k in (n, m))
    k, tried = np.concatenate([won, other]), np.repeat([float(n), float(m)], [len(won), len(other)])
    smoothed = (k + 0.5) / (tried + 1)
    pair = np.arange(len(won))[:, None], len(won) + np.arange(len(other))
    scores = Rates(k, tried, smoothed * (1 - smoothed) / tried).scores(*pair)
    return scores, stats.binom(n, rate).pmf(won)[:, None] * stats.binom(m, rate).pmf(other)


@pytest.mark.parametrize(
    ("n", "m"), [(2, 200), (5, 5000), (20, 2000), (50, 2000), (100, 1000), (400, 600), (400, 4000)]
)
@pytest.mark.parametrize("rate", [0.05, 0.3, 0.5, 0.9])
def test_with_unequal_trials_either_may_wrongly_seem_better_as_often_as_is_asked(n: int, m: int, rate: float) -> None:
    """All outcomes added up, at the levels of one and of a hundred comparisons; with unpooled variances it was up to seven times
    as often beside 20 expected successes. A tenth more is what the steps of the counts do.
    """
    scores, probability = _scores(n, m, rate)
    for level in (0.05, 0.025, 0.005, 0.0005):
        for side in (1, -1):
            assert probability[side * scores > stats.norm.isf(level)].sum() <= 1.1 * level


def test_a_large_partner_does_not_make_up_for_a_small_sample() -> None:
    """None of five beside 30% of 5,000: nearly 0.7 to the fifth power, which is nothing unusual."""
    est = estimate(successes=[0, 1500], trials=[5, 5000])
    assert len(est.best_set()) == 2
    assert (est.ranks().to_numpy() == [1, 2]).all()
    (score,) = Rates(np.array([1500.0, 0.0]), np.array([5000.0, 5.0]), np.ones(2)).scores(np.array([0]), np.array([1]))
    table = np.array([[1500, 3500], [0, 5]])
    assert stats.norm.sf(score) == pytest.approx(stats.fisher_exact(table, alternative="greater").pvalue, rel=1e-9)


def _size(few: float, many: float, share: float, level: float) -> float:
    """How often a mean seems larger than an equal one, if the smaller sample has this share of the variance of the difference.

    The sum of two chi-squares is independent of the part that each has, which is beta distributed; a Student variable is left.
    """
    tail = 1 / (1 + np.exp(-np.linspace(-40, 40, 4001)))  # denser towards both ends
    weight = tail * tail[::-1]
    own, other = stats.beta(few / 2, many / 2).ppf(tail), stats.beta(many / 2, few / 2).ppf(tail[::-1])
    v, w = share * own / few, (1 - share) * other / many
    limit = stats.t(difference_freedom(v, w, few, many)).isf(level)
    return float(weight @ stats.t(few + many).sf(limit * np.sqrt((few + many) * (v + w))) / weight.sum())


@pytest.mark.parametrize("few", [1, 2, 3, 6])
@pytest.mark.parametrize("times", [2, 10, 1000])
def test_a_small_sample_beside_a_large_one_holds_its_level(few: int, times: int) -> None:
    """By quadrature: 5% are at most 5.2%, where Welch's degrees of freedom had up to 8.4%; where the small sample decides, and
    where it does not count, they are exact.
    """
    shares = (0.01, 0.2, 0.5, 0.8, 0.9, 0.95, 0.98)
    assert max(_size(few, times * few, share, 0.05) for share in shares) <= 0.052
    assert max(_size(few, times * few, share, 0.025) for share in shares) <= 0.0272
    for share in (0.0, 1.0):
        assert _size(few, times * few, share, 0.05) == pytest.approx(0.05, abs=1e-6)


def test_that_size_is_the_simulated_one() -> None:
    """400,000 draws, a standard error of 0.034 points; five of them."""
    rng = np.random.default_rng(0)
    v, w = 0.8 * rng.chisquare(2, 400_000) / 2, 0.2 * rng.chisquare(19, 400_000) / 19
    t = rng.standard_normal(400_000) / np.sqrt(v + w)
    found = np.mean(stats.t(difference_freedom(v, w, 2.0, 19.0)).sf(t) < 0.05)
    assert found == pytest.approx(_size(2, 19, 0.8, 0.05), abs=0.0017)


def test_a_score_of_the_same_rows_is_the_binomial_tests_probability() -> None:
    for alone, other in ((5, 0), (0, 5), (7, 3), (12, 12), (0, 0), (1, 0)):
        (score,) = sign_score(np.array([float(alone)]), np.array([float(other)]))
        if alone + other == 0:
            assert score == 0.0
            continue
        greater, less = (stats.binomtest(alone, alone + other, alternative=side).pvalue for side in ("greater", "less"))
        expected = stats.norm.isf(greater) if greater < 0.5 else -stats.norm.isf(less) if less < 0.5 else 0.0
        assert score == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("both", [0.1, 0.3, 0.45])
def test_paired_zeros_and_ones_hold_exactly(both: float) -> None:
    """Two options with rates of one half that succeed together with this probability, all outcomes of nine rows added up."""
    n, set_holds, ranks_hold = 9, 0.0, 0.0
    cells = np.array([both, 0.5 - both, 0.5 - both, both])
    for found in np.ndindex(*(n + 1,) * 3):
        if sum(found) > n:
            continue
        counts = np.array([*found, n - sum(found)])
        rows = np.repeat([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], counts, axis=0)
        est = estimate(rows)
        probability = float(stats.multinomial(n, cells).pmf(counts))
        set_holds += probability * (est.problem.names[0] in est.best_set())
        ranks_hold += probability * bool((est.ranks().to_numpy() == [1, 2]).all())
    assert set_holds >= 0.95
    assert ranks_hold >= 0.95


def test_rows_that_differ_often_are_compared_as_before() -> None:
    rng = np.random.default_rng(0)
    rows = (rng.random((400, 3)) < [0.6, 0.5, 0.4]).astype(float)
    covariance = np.cov(rows.T) / 400
    alone = rows.T @ (1 - rows)
    assert (alone + alone.T + 1000 * np.eye(3)).min() >= 40
    for answer in (best_set, rank_intervals):
        with_rows, without = (answer(rows.mean(0), covariance, freedom=399.0, alone=each) for each in (alone, None))
        assert (with_rows == without).all()


def test_what_alone_must_be() -> None:
    for alone, message in (([1, 2], "shape"), ([[0, 1.5], [0, 0]], "whole"), ([[0, -1], [0, 0]], "whole")):
        with pytest.raises(ArgumentError, match=message):
            best_set([0.5, 0.4], [0.01, 0.01], alone=alone)
