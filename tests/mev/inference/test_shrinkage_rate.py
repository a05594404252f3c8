"""Shrinkage of rates: a second calculation by SciPy on a plain grid, limits and invariances, and what its numbers promise."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import maxmean as mm
from maxmean.mev.inference import ShrinkageRate, shrink, shrink_rate
from seldom import slow


def by_grid(k: np.ndarray, n: np.ndarray, x: np.ndarray, *, tails: bool) -> tuple[np.ndarray, np.ndarray, float]:
    """Posterior expectations, distributions at x, [options, x], and P(the first exceeds the second) if x is a fine grid.

    Brute force over the spread, the tails and the centre, evenly on the scale on which Jeffreys' prior is flat.
    """
    half = np.array([(1 / n[i] + np.mean(1 / np.delete(n, i))) / 2 for i in range(len(n))])
    usual = float(np.mean(1 / half))
    own = np.exp(np.linspace(-8, 2.4, 27))
    found, whole = np.zeros((len(k), 1 + len(x))), 0.0
    ahead = 0.0
    for factor in (np.ones(1), own) if tails else (np.ones(1),):
        chance = factor * np.exp(-factor) / np.sum(factor * np.exp(-factor))
        for m in np.sin((np.arange(60) + 0.5) / 60 * np.pi / 2) ** 2:
            c = np.exp(np.arange(-5, np.log(usual) + 8.4, 0.4))
            share = c / (c + usual)
            a, b = (m * c[:, None] * factor, (1 - m) * c[:, None] * factor)  # [spreads, tails]
            each = [chance * stats.betabinom.pmf(i, j, a, b) for i, j in zip(k, n, strict=True)]
            sums = [one.sum(axis=1) for one in each]
            weight = np.prod(sums, axis=0) * np.sqrt(share) * (1 - share)
            whole += weight.sum()
            below = []
            for i in range(len(k)):
                parts = each[i] / sums[i][:, None]
                p, q = a + k[i], b + n[i] - k[i]
                below.append((parts[..., None] * stats.beta.cdf(x, p[..., None], q[..., None])).sum(axis=1))
                found[i, 0] += weight @ (parts * p / (p + q)).sum(axis=1)
                found[i, 1:] += weight @ below[i]
            mass = np.diff(below[0], axis=1)
            ahead += weight @ (mass * (below[1][:, 1:] + below[1][:, :-1]) / 2).sum(axis=1)
    return found[:, 0] / whole, found[:, 1:] / whole, ahead / whole


@pytest.mark.parametrize("problem", [([3, 5], [10, 40]), *slow(([1, 2, 4], [5, 30, 60]), ([9, 9, 2], [10, 10, 10]))])
def test_it_is_the_integral_over_centre_spread_and_tails(problem: tuple[list[int], list[int]]) -> None:
    k, n = problem
    found = shrink_rate(k, n)
    ends = found.intervals(0.9).T
    values, below, _ = by_grid(np.array(k, float), np.array(n, float), ends.ravel(), tails=True)
    np.testing.assert_allclose(found.values, values, atol=2e-3)
    for held, share in zip(np.split(below, 2, axis=1), (0.025, 0.975), strict=True):
        np.testing.assert_allclose(held.diagonal(), share, atol=3e-3)


@pytest.mark.parametrize(("k", "n"), [([3, 5], [10, 40]), ([2, 1], [8, 9])])
def test_the_probability_that_one_of_two_is_best_is_an_integral(k: list[int], n: list[int]) -> None:
    """20,000 draws have a standard error of 0.0035 at most, and this allows four."""
    ahead = by_grid(np.array(k, float), np.array(n, float), np.linspace(0, 1, 401), tails=False)[2]
    assert shrink_rate(k, n).chances[0] == pytest.approx(ahead, abs=0.014)


counts = st.lists(
    st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=2, max_size=6
)


@settings(max_examples=20)
@given(counts)
def test_order_does_not_matter_and_failures_mirror_successes(problem: list[tuple[int, int]]) -> None:
    k, n = (np.array(each) for each in zip(*problem, strict=True))
    found = shrink_rate(k, n)
    order = np.random.default_rng(0).permutation(len(k))
    other, mirrored = shrink_rate(k[order], n[order]), shrink_rate(n - k, n)
    np.testing.assert_array_equal(other.values, found.values[order])
    np.testing.assert_array_equal(other.intervals(), found.intervals()[order])
    np.testing.assert_allclose(other.chances, found.chances[order], rtol=1e-12)
    np.testing.assert_allclose(1 - mirrored.values, found.values, atol=1e-9)
    np.testing.assert_allclose(1 - mirrored.intervals()[:, ::-1], found.intervals(), atol=1e-9)
    assert found.chances.sum() == pytest.approx(1.0)
    ends = found.intervals()
    assert ((ends[:, 0] >= 0) & (ends[:, 0] <= found.values) & (found.values <= ends[:, 1]) & (ends[:, 1] <= 1)).all()


def test_equal_counts_have_equal_answers() -> None:
    found = shrink_rate([3, 1, 3, 1], [20, 9, 20, 9])
    for each in (found.values, found.chances, *found.intervals().T):
        assert each[0] == each[2]
        assert each[1] == each[3]
    drawn = found.draw(50)
    assert drawn.shape == (50, 4)
    assert (drawn[:, 0] != drawn[:, 2]).all()
    np.testing.assert_array_equal(shrink_rate([1, 3, 1, 3], [9, 20, 9, 20]).draw(50)[:, 1], drawn[:, 0])


def test_few_trials_beside_many_leave_much_open() -> None:
    """Clopper and Pearson's 95% interval of 3 in 10 goes from 0.07 to 0.65, of 1 in 5 from 0.005 to 0.72."""
    low, high = mm.estimate(successes=[3, 5, 9], trials=[10, 1000, 1000]).shrinkage().loc["option 1", ["low", "high"]]
    assert low < 0.07 < 0.5 < high
    low, high = mm.estimate(successes=[1, 0], trials=[5, 5000]).shrinkage().loc["option 1", ["low", "high"]]
    assert low < 0.01 < 0.55 < high
    est = mm.estimate(successes=[1, 0, 0], trials=[5, 500, 5000])
    assert est.probability_best().iloc[0] > 0.95
    assert est.best_set() == ("option 1",)


def test_with_many_trials_it_is_the_posterior_of_normal_means() -> None:
    rates = np.array([0.300, 0.302, 0.3015, 0.306])
    n = np.full(4, 100_000)
    found, normal = shrink_rate(rates * n, n), shrink(rates, rates * (1 - rates) / n)
    error = np.sqrt(0.21 / 100_000)
    np.testing.assert_allclose(found.values, normal.values, atol=0.03 * error)
    np.testing.assert_allclose(found.intervals(), normal.intervals(), atol=0.1 * error)


def test_equal_shares_are_pooled_and_distant_ones_left_alone() -> None:
    """Fifty times 5 in 100 are 250 in 5,000: an interval is shorter than half of that of 5 in 100 alone."""
    low, high = shrink_rate(np.full(50, 5), 100).intervals()[0]
    alone = stats.beta.ppf([0.0125, 0.9875], 5.5, 95.5)
    assert high - low < 0.5 * np.ptp(alone)
    assert shrink_rate(np.full(50, 5), 100).values[0] == pytest.approx(0.05, abs=1e-3)
    np.testing.assert_allclose(shrink_rate([1000, 5000, 9000], 10_000).values, [0.1, 0.5, 0.9], atol=1e-3)
    assert shrink_rate([3], [10]).chances.tolist() == [1.0]
    np.testing.assert_allclose(shrink_rate([3], [10]).intervals()[0], stats.beta.ppf([0.0125, 0.9875], 3.5, 7.5))


def test_one_far_ahead_of_many_is_left_where_it_is() -> None:
    """Eight standard errors ahead of 49 rates that are alike."""
    found = shrink_rate([180, *np.random.default_rng(0).binomial(2000, 0.05, 49)], 2000)
    assert 0.086 < found.values[0] < 0.09
    assert np.ptp(found.values[1:]) < 0.01
    assert found.intervals()[0, 0] < 0.08


def test_draws_have_the_moments_of_the_posterior() -> None:
    """Far apart the tails do not matter: 20,000 draws, to five standard errors."""
    found = shrink_rate([100, 500, 900], 1000)
    drawn = found.draw(20_000)
    np.testing.assert_allclose(drawn.mean(axis=0), found.values, atol=5 * 0.016 / 20_000**0.5 + 3e-4)
    np.testing.assert_allclose(drawn.std(axis=0), np.sqrt(np.array([0.09, 0.25, 0.09]) / 1000), rtol=0.03)


@pytest.mark.parametrize("big", [1, 10**9])
def test_any_counts_have_an_answer(big: int) -> None:
    for k, n in (([0, big], [big, big]), ([0, 0], [big, 3]), ([big, big], [big, big]), ([1, 1], [big, big])):
        found: ShrinkageRate = shrink_rate(k, n)
        assert np.isfinite(found.values).all()
        assert (np.diff(found.intervals(), axis=1) >= 0).all()
        assert found.chances.sum() == pytest.approx(1.0)


def test_many_options_do_not_lose_the_centre() -> None:
    """3,000 rates with a mean of 0.05: the shrunk ones are those under the true prior, and so is their error."""
    rng = np.random.default_rng(0)
    truth, n = rng.beta(5, 95, 3000), rng.integers(100, 1000, 3000)
    k = rng.binomial(n, truth)
    values, ideal = shrink_rate(k, n).values, (k + 5) / (n + 100)
    assert values.mean() == pytest.approx(ideal.mean(), rel=0.01)
    assert np.mean((values - truth) ** 2) < 1.03 * np.mean((ideal - truth) ** 2)


def test_paired_rates_are_never_surer_than_their_own_counts() -> None:
    """29 successes in 30 rows beside 15, and 1: no variance is below that of the rate with half a success more."""
    rows = (np.arange(30)[:, None] < [29, 15, 1]).astype(float)
    problem = mm.estimate(rows).problem
    rates = np.array([29.5, 15.5, 1.5]) / 31
    assert (problem._alike.diagonal() >= 0.999 * rates * (1 - rates) / 30).all()
    assert (problem._moderated[0].diagonal() >= 0.999 * rates * (1 - rates) / 30).all()


@pytest.mark.parametrize(
    "setting",
    [([0.3] * 5, [2, 2, 5, 50, 5000], 60), *slow(([0.05, 0.05, 0.08], [200] * 3, 400), ([0.2, 0.02], [20, 1000], 400))],
)
def test_intervals_hold_on_average_over_the_options_at_fixed_true_rates(
    setting: tuple[list[float], list[int], int],
) -> None:
    """93% at least; on another seed 99.3%, 98.7% and 95.5%, with standard errors of 0.8 points at most."""
    truth, trials, data_sets = np.array(setting[0]), setting[1], setting[2]
    rng, held = np.random.default_rng(7), 0.0
    for _ in range(data_sets):
        ends = shrink_rate(rng.binomial(trials, truth), trials).intervals()
        held += float(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1]))) / data_sets
    assert held >= 0.93


def test_many_options_without_success_exclude_no_rate_that_leaves_them_without() -> None:
    """99,000 trials without a success beside 400 of 1,000, and the mirror image; 3,000 options of which none has one."""
    none, some = [0] * 99 + [400], [1000] * 100
    most = 1 - 0.0125 ** (1 / 99_000)
    np.testing.assert_allclose(shrink_rate(none, some).intervals()[0], [0.0, most], rtol=1e-9, atol=1e-9)
    mirrored = shrink_rate([n - k for k, n in zip(none, some, strict=True)], some).intervals()[0]
    np.testing.assert_allclose(mirrored, [1 - most, 1.0], rtol=1e-9)
    assert shrink_rate([0] * 3000, 20).intervals()[0, 1] == pytest.approx(1 - 0.0125 ** (1 / 60_000))
    alone = shrink_rate([0, 45, 50, 55], [5, 1000, 1000, 1000]).intervals()[0, 1]
    assert alone < 0.2 < 1 - 0.0125 ** (1 / 5)  # the others tell more than five trials do


@pytest.mark.slow
def test_intervals_hold_where_most_options_have_no_success() -> None:
    """Two settings in which posterior intervals alone hold in 62% and 87%; 40 data sets each."""
    for truth, n in ((np.array([1e-5] * 99 + [0.4]), 1000), (np.full(200, 5e-4), 20)):
        rng, held = np.random.default_rng(8), 0.0
        for _ in range(40):
            ends = shrink_rate(rng.binomial(n, truth), n).intervals()
            held += float(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1]))) / 40
        assert held >= 0.95


@pytest.mark.slow
def test_the_leader_is_the_best_as_often_as_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six kinds of counts, 200 problems each: to six points in each, and three on average (their standard error is 0.3)."""
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "benchmarks")
    leader = importlib.import_module("leader")
    found = [leader.measure(setting, 200, seed=1) for setting in leader.rate_settings()]
    differences = np.array([each["said"] - each["true"] for each in found])
    assert (np.abs(differences) < 0.06).all()
    assert abs(differences.mean()) < 0.03
