"""Zeros and ones, one by one, are rates: they have the answers of their counts, whichever direction is better."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import maxmean as mm

TWENTY = {"a": 7, "b": 4, "c": 10}


def rows(successes: int, trials: int) -> list[float]:
    return [1.0] * successes + [0.0] * (trials - successes)


@pytest.mark.parametrize("lower_is_better", [False, True])
@pytest.mark.parametrize("anytime", [False, True])
@pytest.mark.parametrize("kind", [float, bool])
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
