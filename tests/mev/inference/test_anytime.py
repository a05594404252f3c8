"""Confidence sequences: the Bayes factors behind them by another way, the published limit, and looking a thousand times."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

import maxmean as mm
from inside import maxmean
from maxmean.mev.errors import ArgumentError
from maxmean.mev.inference import Sequences, rate_sequence, sequence_reach
from maxmean.mev.inference.anytime import _mixture


@pytest.mark.parametrize(("n", "planned"), [(30, 100), (100, 100), (120, 50)])
def test_at_the_limit_the_bayes_factor_is_one_in_alpha(n: int, planned: int) -> None:
    """By integrating the noncentral t distribution over the mixture."""
    t, g = float(sequence_reach(n, n - 1, 0.05, planned)), _mixture(0.05, planned)

    def weighted(z: float) -> float:
        shift = math.sqrt(n * g) * z
        return float(stats.nct.pdf(t, n - 1, shift) * stats.norm.pdf(z))

    factor = quad(weighted, -8, 8, limit=200)[0] / stats.t.pdf(t, n - 1)
    assert factor == pytest.approx(20, rel=1e-4)


def test_with_known_variance_it_is_the_normal_mixture_of_howard_and_others() -> None:
    """Their radius with mixture parameter rho, in units of sigma / sqrt(n)."""
    n, rho = 250.0, _mixture(0.05, 1_000)
    radius = math.sqrt(2 * (n * rho + 1) / (n**2 * rho) * math.log(math.sqrt(n * rho + 1) / 0.05))
    assert float(sequence_reach(n, math.inf, 0.05, 1_000)) == pytest.approx(radius * math.sqrt(n))
    assert float(sequence_reach(n, 1e9, 0.05, 1_000)) == pytest.approx(radius * math.sqrt(n), rel=1e-6)


def test_intervals_are_shortest_at_the_planned_number() -> None:
    plans = np.array([500, 900, 990, 1_010, 1_100, 2_000])
    here = float(sequence_reach(1_000, math.inf, 0.05, 1_000))
    assert all(here < float(sequence_reach(1_000, math.inf, 0.05, plan)) for plan in plans)


@pytest.mark.parametrize(("k", "n"), [(0, 20), (3, 40), (30, 1_000), (997, 1_000), (500, 1_000)])
def test_a_rates_ends_are_where_its_counts_are_twenty_times_as_probable_under_the_mixture(k: int, n: int) -> None:
    low, high = rate_sequence([k], [n], 0.05, 200)[0]
    around = 1 / _mixture(0.05, 200)

    def factor(p: float) -> float:
        mixed = stats.betabinom.logpmf(k, n, around * p, around * (1 - p))
        return math.exp(min(float(mixed - stats.binom.logpmf(k, n, p)), 99.0))

    assert low <= k / n <= high
    for end in (low, high):
        if 0 < end < 1:
            assert factor(end) == pytest.approx(20, rel=1e-5)
    inside, outside = np.linspace(low, high, 30)[1:-1], [p for p in np.linspace(0.001, 0.999, 60) if not low < p < high]
    assert all(factor(p) < 20 for p in inside)
    assert all(factor(p) > 20 for p in outside)


def test_looking_again_and_again_does_no_harm() -> None:
    """400 experiments with a look at each of 500 observations. That more than 9% fail has probability below 0.001 if 5% do."""
    values = np.random.default_rng(0).normal(size=(400, 500))
    n = np.arange(1, 501)
    means = np.cumsum(values, axis=1) / n
    squares = np.cumsum(values**2, axis=1) / n
    errors = np.sqrt(np.maximum(squares - means**2, 0)[:, 1:] / (n[1:] - 1))
    t = np.abs(means[:, 1:]) / errors
    assert np.mean((t > sequence_reach(n[1:], n[1:] - 1, 0.05, 100)).any(axis=1)) < 0.09
    assert np.mean((t > stats.t.isf(0.025, n[1:] - 1)).any(axis=1)) > 0.4


SAMPLES = {name: np.random.default_rng(k).normal(9 + k / 4, 1.0, 300) for k, name in enumerate("abc")}


def test_every_answer_is_wider_than_for_one_look() -> None:
    one = mm.estimate(SAMPLES, control="a")
    always = mm.estimate(SAMPLES, control="a", anytime=True, planned=300)
    for (a, b), (c, d) in (
        (one.interval(), always.interval()),
        (one.winner().recommended.interval, always.winner().recommended.interval),
        (one.top(2).recommended.interval, always.top(2).recommended.interval),
        (one.lift().options[0].interval, always.lift().options[0].interval),
        (one.lift().best.relative.interval, always.lift().best.relative.interval),
    ):
        assert c < a < b < d
    assert set(one.best_set()) <= set(always.best_set())
    wider = always.ranks() - one.ranks()
    assert (wider["low"] <= 0).all()
    assert (wider["high"] >= 0).all()
    assert always.lift().beats == ("c",)


def test_where_less_is_better_all_is_mirrored() -> None:
    up = mm.estimate(SAMPLES, control="a", anytime=True, planned=300)
    mirrored = {name: -values for name, values in SAMPLES.items()}
    down = mm.estimate(mirrored, control="a", anytime=True, planned=300, lower_is_better=True)
    assert down.interval() == pytest.approx([-end for end in up.interval()[::-1]])
    assert down.best_set() == up.best_set()
    assert down.lift().beats == up.lift().beats
    assert down.lift().best.recommended.interval == pytest.approx(
        [-end for end in up.lift().best.recommended.interval[::-1]]
    )
    few = mm.estimate(successes=[3, 9], trials=40, anytime=True, lower_is_better=True)
    low, high = few.winner().recommended.interval
    assert (low, high) == pytest.approx(tuple(rate_sequence([3], [40], 0.025, 1_000)[0]))


def test_pairs_use_their_covariance() -> None:
    rows = np.random.default_rng(1).normal(size=(200, 1)) + np.random.default_rng(2).normal([0, 0.2], 0.3, (200, 2))
    apart, together = (mm.estimate(rows, paired=p, anytime=True, planned=200) for p in (False, True))
    assert together.best_set() == ("option 2",)
    assert apart.best_set() == ("option 1", "option 2")


def test_all_forms_say_it(tmp_path: Path) -> None:
    found = mm.compare(SAMPLES, ["ke"], anytime=True, planned=200, resamples=10)
    assert found.to_dict()["anytime"] == {"planned": 200}
    assert any("hold at every look, and are shortest at 200 observations" in note for note in found.notes)
    found.plot(str(tmp_path / "x.svg"))
    table = tmp_path / "x.csv"
    table.write_text("option,successes,trials\na,30,1000\nb,45,1000\n")
    answer = maxmean("estimate", table, "--anytime", "--json", "-m", "ke", "--resamples", "10", "-q")
    said = json.loads(answer.stdout)
    assert said["anytime"] == {"planned": 1_000}
    expected = Sequences.of([0.03, 0.045], [1e-5, 1e-5], 1_000, trials=[1_000, 1_000]).maximum()
    assert said["maximum"]["interval"] == pytest.approx(expected)


def test_what_is_missing_is_said() -> None:
    with pytest.raises(mm.DataError, match="give n"):
        mm.estimate(mean=[1.0, 2.0], se=0.1, anytime=True)
    with pytest.raises(mm.ArgumentError, match="planned must be at least 1"):
        mm.estimate(SAMPLES, anytime=True, planned=0)
    with pytest.raises(mm.ArgumentError, match="planned is about the intervals of anytime"):
        mm.estimate(SAMPLES, planned=300)
    with pytest.raises(mm.ArgumentError, match="have to be asked for"):
        mm.estimate(SAMPLES).problem.sequences()
    with pytest.raises(ArgumentError, match="planned must be a positive number"):
        sequence_reach(10, 9, 0.05, math.inf)
    with pytest.raises(ArgumentError, match="at least one observation"):
        Sequences.of([1.0, 2.0], [1.0, 1.0], 0)
