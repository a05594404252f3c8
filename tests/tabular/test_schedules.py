"""Schedules of learning rates and exploration."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmean.tabular.schedules import CLIFF_LEARNING_RATE, INVERSE_ROOT, Schedule, constant, polynomial


@pytest.mark.parametrize(("n", "rate"), [(1, 0.1), (2, 10.1 / 102), (100, 0.0505)])
def test_learning_rate_of_the_paper(n: int, rate: float) -> None:
    """0.1 (100 + 1) / (100 + n)."""
    assert CLIFF_LEARNING_RATE(n) == pytest.approx(rate, rel=1e-15)


@pytest.mark.parametrize(("n", "rate"), [(1, 1.0), (2, math.sqrt(0.5)), (100, 0.1)])
def test_exploration_of_the_paper(n: int, rate: float) -> None:
    assert INVERSE_ROOT(n) == pytest.approx(rate, rel=1e-15)


def test_constant_and_polynomial() -> None:
    assert [constant(0.3)(n) for n in (1, 10, 10**9)] == [0.3, 0.3, 0.3]
    assert polynomial(1.0)(4) == 0.25
    assert polynomial(0.75, scale=0.5)(16) == pytest.approx(0.5 / 8, rel=1e-15)


@given(st.floats(0, 1), st.floats(0, 1e6), st.floats(0, 3), st.integers(1, 10**6))
def test_a_schedule_begins_at_its_scale_and_never_rises(scale: float, delay: float, power: float, n: int) -> None:
    schedule = Schedule(scale, delay, power)
    assert schedule(1) == scale
    assert 0 <= schedule(n + 1) <= schedule(n) <= scale


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"scale": -0.1}, "a rate must lie in [0, 1], not -0.1"),
        ({"scale": 1.5}, "a rate must lie in [0, 1], not 1.5"),
        ({"scale": math.nan}, "a rate must lie in [0, 1], not nan"),
        ({"scale": 0.1, "delay": -1.0}, "delay must be finite and not negative, not -1.0"),
        ({"scale": 0.1, "delay": math.inf}, "delay must be finite and not negative, not inf"),
        ({"scale": 0.1, "power": -0.5}, "power must be finite and not negative, not -0.5"),
        ({"scale": 0.1, "power": math.nan}, "power must be finite and not negative, not nan"),
        ({"scale": "x"}, "a rate must be a number, not 'x'"),
        ({"scale": None}, "a rate must be a number, not None"),
        ({"scale": 0.1, "delay": True}, "delay must be a number, not True"),
        ({"scale": 0.1, "power": [1]}, "power must be a number, not a list of 1"),
    ],
)
def test_bad_schedules(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        Schedule(**arguments)
