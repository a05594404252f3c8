"""Tail probabilities and quantiles, against forty digits and against sums of binomial probabilities."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from maxmean.mev.inference.tails import at_least, largest_rate, smallest_rate, tail_probability, upper_quantile


def student_tail(t: float, freedom: float) -> float:
    """P(T > t) for t > 0 in forty digits, by the incomplete beta function."""
    with mpmath.workdps(40):
        if math.isinf(freedom):
            return float(mpmath.ncdf(-t))
        share = mpmath.mpf(freedom) / (freedom + mpmath.mpf(t) ** 2)
        return float(mpmath.betainc(mpmath.mpf(freedom) / 2, 0.5, 0, share, regularized=True) / 2)


@pytest.mark.parametrize("freedom", [1.0, 2.5, 4.0, 19.0, 300.0, math.inf])
@pytest.mark.parametrize("t", [1e-3, 0.7, 2.0, 6.0])
def test_student_tails_and_quantiles(freedom: float, t: float) -> None:
    tail = student_tail(t, freedom)
    assert tail_probability(np.array(t), np.array(freedom)) == pytest.approx(tail, rel=1e-10)
    assert tail_probability(np.array(-t), np.array(freedom)) == pytest.approx(1 - tail, rel=1e-12)
    assert upper_quantile(tail, np.array(freedom)) == pytest.approx(t, rel=1e-7, abs=1e-9)


def binomial_tail(count: int, trials: int, rate: Fraction) -> Fraction:
    """P(K >= count), exactly."""
    return sum(
        (math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(count, trials + 1)), Fraction(0)
    )


@pytest.mark.parametrize(("count", "trials"), [(0, 5), (1, 5), (5, 5), (3, 40), (39, 40)])
@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1, 20), Fraction(1, 2)])
def test_binomial_tails(count: int, trials: int, rate: Fraction) -> None:
    found = at_least(np.array(float(count)), np.array(float(trials)), np.array(float(rate)))
    assert found == pytest.approx(float(binomial_tail(count, trials, rate)), rel=1e-10)


@pytest.mark.parametrize(("count", "trials"), [(0, 20), (1, 20), (7, 20), (20, 20)])
@pytest.mark.parametrize("tail", [0.025, 0.001])
def test_bounds_of_a_rate_leave_their_tail(count: int, trials: int, tail: float) -> None:
    """At Clopper and Pearson's ends, so many successes or more, or fewer, have exactly that probability."""
    k, n = np.array([float(count)]), np.array([float(trials)])
    low, high = float(smallest_rate(k, n, tail)[0]), float(largest_rate(k, n, tail)[0])
    assert 0.0 <= low < high <= 1.0
    if count:
        assert float(binomial_tail(count, trials, Fraction(low))) == pytest.approx(tail, rel=1e-9)
    else:
        assert low == 0.0
    if count < trials:
        assert 1 - float(binomial_tail(count + 1, trials, Fraction(high))) == pytest.approx(tail, rel=1e-9)
    else:
        assert high == 1.0
