"""Zeros and ones, one by one, are rates: they have the answers of their counts, whichever direction is better."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import maxmean as mm

TWENTY = {"a": 7, "b": 4, "c": 10}


def rows(successes: int, trials: int) -> list[float]:
    return [1.0] * successes + [0.0] * (trials - successes)


@pytest.mark.parametrize(
    ("lower_is_better", "anytime", "kind"), [(False, False, float), (True, False, bool), (True, True, float)]
)
def test_zeros_and_ones_have_the_answers_of_their_counts(lower_is_better: bool, anytime: bool, kind: Any) -> None:
    how: dict[str, Any] = {"lower_is_better": lower_is_better, "anytime": anytime, "control": "c"}
    one_by_one = mm.estimate({name: np.array(rows(k, 20), kind) for name, k in TWENTY.items()}, **how)
    counted = mm.estimate(successes=TWENTY, trials=20, **how)
    assert one_by_one.value == pytest.approx(counted.value)
    assert one_by_one.naive == pytest.approx(counted.naive)
    assert one_by_one.interval() == pytest.approx(counted.interval())
    assert one_by_one.best_set() == counted.best_set()
    assert one_by_one.shrinkage().to_numpy() == pytest.approx(counted.shrinkage().to_numpy())
    for rank in (1, 2):
        one, other = (est.winner(rank=rank) for est in (one_by_one, counted))
        assert one.option == other.option
        for kind_of in ("recommended", "hybrid", "conditional"):
            assert getattr(one, kind_of).value == pytest.approx(getattr(other, kind_of).value)
            assert getattr(one, kind_of).interval == pytest.approx(getattr(other, kind_of).interval)
    first, second = (est.top(2).recommended for est in (one_by_one, counted))
    assert (first.value, *first.interval) == pytest.approx((second.value, *second.interval))
    first_lift, second_lift = (est.lift().table().to_numpy(float) for est in (one_by_one, counted))
    assert first_lift == pytest.approx(second_lift)


def test_paired_columns_have_intervals_of_their_counts_too() -> None:
    """None of 20 may be a sixth, and 30 of 30 less than all: (a/2)^(1/n) for one option, a/(2M) for the best of M."""
    none = mm.estimate(np.zeros((20, 3)))
    assert none.interval() == pytest.approx((0.0, 1 - 0.025 ** (1 / 20)))
    assert none.winner().recommended.interval == pytest.approx((0.0, 1 - 0.025 ** (1 / 20)))
    table = np.column_stack([rows(k, 30) for k in (30, 28, 24)])
    for lower_is_better in (False, True):
        est = mm.estimate(1 - table if lower_is_better else table, lower_is_better=lower_is_better)
        ends = [1 - end if lower_is_better else end for end in ((0.025 / 3) ** (1 / 30), 1.0)]
        for interval in (est.interval(), est.winner().hybrid.interval, est.winner().recommended.interval):
            assert interval == pytest.approx(tuple(sorted(ends)))
        low, high = est.winner().recommended.interval
        assert low <= est.winner().recommended.value <= high
        assert ((est.shrinkage() >= 0) & (est.shrinkage() <= 1)).all(axis=None)
        assert mm.estimate(table, anytime=True).interval()[0] < (0.025 / 3) ** (1 / 30)


def test_differences_of_paired_columns_are_told_by_the_pairs() -> None:
    """The one is right wherever the other is, and in 10 of 200 rows more: clear in pairs, and chance without them."""
    table = np.column_stack([rows(105, 200), rows(95, 200)])
    paired, unpaired = mm.estimate(table, names=["a", "b"]), mm.estimate(table, names=["a", "b"], paired=False)
    assert (paired.best_set(), unpaired.best_set()) == (("a",), ("a", "b"))
    assert paired.ranks().to_numpy().tolist() == [[1, 1], [2, 2]]
    given = paired.winner()  # enough of both for normal means: the pairs say that the race was not close
    assert given.hybrid.interval[0] > paired.interval()[0]
    copies = mm.estimate(np.column_stack([rows(3, 20), rows(3, 20)]))
    assert copies.probability_best().tolist() == [0.5, 0.5]


def test_columns_that_move_together_one_to_one_are_certain_about_the_best() -> None:
    steps = np.random.default_rng(0).normal(size=10).round(2)
    est = mm.estimate(np.column_stack([steps, steps + 1, steps + 2]))
    assert est.probability_best().tolist() == [0.0, 0.0, 1.0]
