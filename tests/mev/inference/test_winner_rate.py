"""The winner's success rate from counts: against sums of binomial probabilities, and coverage by adding up all outcomes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from maxmean.mev.errors import ArgumentError
from maxmean.mev.inference import Winner, infer_winner, infer_winner_rate


def test_one_option_has_clopper_and_pearsons_interval() -> None:
    for successes, trials in ((0, 20), (3, 20), (20, 20), (517, 2_000)):
        winner = infer_winner_rate([successes], [trials])
        expected = binomtest(successes, trials).proportion_ci(0.95, method="exact")
        for interval in (
            winner.naive.interval,
            winner.conditional.interval,
            winner.hybrid.interval,
            winner.bounds,
        ):
            np.testing.assert_allclose(interval, (expected.low, expected.high), atol=1e-9)
    assert infer_winner_rate([0], [20]).bounds[1] == pytest.approx(1 - 0.025 ** (1 / 20))


def test_the_conditional_ends_by_adding_up_probabilities() -> None:
    # 7 of 20 beat 5 of 20: given that, K >= 6.
    winner = infer_winner_rate([5, 7, 1], 20)
    assert winner.index == 1
    assert winner.truncation == (6 / 20, 1.0)
    counts = np.arange(6, 21)

    def shares(rate: float) -> tuple[float, float, float]:
        weights = binom.pmf(counts, 20, rate)
        weights = weights / weights.sum()
        return tuple(float(weights[part].sum()) for part in (counts >= 7, counts <= 7, counts > 7))  # type: ignore[return-value]

    low, high = winner.conditional.interval
    assert shares(low)[0] == pytest.approx(0.025, rel=1e-9)
    assert shares(high)[1] == pytest.approx(0.025, rel=1e-9)
    at_least, _, above = shares(winner.conditional.value)
    assert (at_least + above) / 2 == pytest.approx(0.5, rel=1e-9)
    assert low < winner.hybrid.interval[0] < winner.hybrid.interval[1] < high + 0.02


def test_second_place_is_bounded_from_both_sides() -> None:
    second = infer_winner_rate([5, 7, 1], [20, 40, 10], rank=2)
    # 0.25, 0.175 and 0.1: the count of the second, of 40, could have been 5 to 9.
    assert second.index == 1
    assert second.truncation == (5 / 40, 9 / 40)
    assert second.bounds[0] <= 0.175 <= second.bounds[1]


def test_one_success_ahead_of_none_says_little() -> None:
    """If all rates are 0.001, one of ten options has the only success of 20 trials each in one of six data sets."""
    winner = infer_winner_rate([0, 1, *[0] * 8], 20)
    assert (winner.index, winner.truncation[0]) == (1, 1 / 20)
    assert winner.conditional.interval[0] == 0
    assert winner.hybrid.interval[0] < 1e-4
    tied = infer_winner_rate([1, 1, *[0] * 8], 20)
    assert tied.truncation[0] == 1 / 20  # known to have reached one, not to have exceeded it


def test_many_trials_are_as_normal_ones() -> None:
    successes, trials = np.array([5_000, 5_060, 4_900]), 10_000
    exact = infer_winner_rate(successes, trials)
    rates = successes / trials
    normal = infer_winner(rates, rates * (1 - rates) / trials)
    for kind in ("naive", "conditional", "hybrid"):
        np.testing.assert_allclose(getattr(exact, kind).interval, getattr(normal, kind).interval, atol=4e-4)
    np.testing.assert_allclose(exact.bounds, normal.bounds, atol=4e-4)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=4), st.permutations(range(4)))
def test_what_holds_for_any_counts(pairs: list[tuple[int, int]], order: list[int]) -> None:
    k, n = (np.array(each) for each in zip(*[(a, a + b + 1) for a, b in pairs], strict=True))
    winner = infer_winner_rate(k, n)
    for interval in (winner.conditional.interval, winner.hybrid.interval, winner.bounds):
        assert 0 <= interval[0] < interval[1] <= 1
    assert winner.bounds[0] <= winner.naive.value <= winner.bounds[1]
    moved = [i for i in order if i < len(k)]
    again = infer_winner_rate(k[moved], n[moved])
    assert again.naive.value == winner.naive.value
    if not winner.tied:
        assert moved[again.index] == winner.index
        assert again.hybrid == winner.hybrid
    else:
        assert {moved[i]: ends for i, ends in again.tied.items()} == winner.tied


@pytest.mark.parametrize(
    ("trials", "rates"),
    [
        ((6, 6), ((0.02, 0.02), (0.1, 0.4), (0.5, 0.5))),
        ((2, 25), ((0.05, 0.05), (0.5, 0.5), (0.2, 0.3), (0.3, 0.2))),
        pytest.param((20, 20), ((0.001, 0.001), (0.05, 0.05), (0.5, 0.5), (0.2, 0.3)), marks=pytest.mark.slow),
        pytest.param((9, 14), ((0.05, 0.05), (0.5, 0.5), (0.2, 0.3)), marks=pytest.mark.slow),
        pytest.param((6, 6, 6), ((0.05, 0.05, 0.05), (0.3, 0.4, 0.5)), marks=pytest.mark.slow),
    ],
)
def test_it_covers_whatever_the_rates(trials: tuple[int, ...], rates: tuple[tuple[float, ...], ...]) -> None:
    outcomes = list(itertools.product(*[range(n + 1) for n in trials]))
    found = {outcome: infer_winner_rate(outcome, trials) for outcome in outcomes}
    for truth in rates:
        chances = {o: math.prod(binom.pmf(k, n, p) for k, n, p in zip(o, trials, truth, strict=True)) for o in outcomes}
        assert sum(chances.values()) == pytest.approx(1)

        def missed(winner: Winner, kind: str, truth: tuple[float, ...] = truth) -> bool:
            low, high = winner.bounds if kind == "bounds" else getattr(winner, kind).interval
            return not low - 1e-9 <= truth[winner.index] <= high + 1e-9

        def all_held(winner: Winner, truth: tuple[float, ...] = truth) -> bool:
            each = winner.tied or {winner.index: winner.bounds}
            return all(low - 1e-9 <= truth[i] <= high + 1e-9 for i, (low, high) in each.items())

        # Whenever an option wins, alone or tied; the first of tied ones is looked at where it is the winner.
        for kind in ("bounds", "hybrid", "conditional"):
            failing = sum(chance for o, chance in chances.items() if missed(found[o], kind))
            assert failing <= 0.05 + 1e-9, (truth, kind)
        assert sum(chance for o, chance in chances.items() if not all_held(found[o])) <= 0.05 + 1e-9


def test_refusals() -> None:
    with pytest.raises(ArgumentError, match="rank must be from 1 to 2, the number of options, not 0"):
        infer_winner_rate([1, 2], 3, rank=0)
    with pytest.raises(ArgumentError, match="successes and trials must be whole numbers"):
        infer_winner_rate([4], 3)
    with pytest.raises(ArgumentError, match=r"beta must lie in \[0, 1 - level\)"):
        infer_winner_rate([1], 3, beta=0.5)


def test_values_further_down_have_as_much_probability_above_as_below() -> None:
    """The hybrid of a second place truncates counts on both sides; its value was the upper end where the grid was too coarse."""
    for n, p in ((1_000, 0.03), (10_000, 0.05)):
        rng = np.random.default_rng(11)
        for _ in range(20):
            found = infer_winner_rate(rng.binomial(n, p, 5), n, rank=2)
            low, high = found.hybrid.interval
            assert low <= found.hybrid.value < high
