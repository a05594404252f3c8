"""Appendix C (claim S11): the parameters that minimise the squared bias over mu1 in [0, 5]."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from scipy.special import ndtri

import mev_pairs
from maxmean import mev
from maxmean.mev.tuning import GaussianPairs, Tuned, tune
from mev_pairs import squared_bias


@cache
def best_te() -> Tuned:
    return tune(mev.Indicator)


@cache
def best_beta(largest: float) -> Tuned:
    return tune(mev.Beta, bounds=[(0.1, largest)] * 2)


@cache
def best_ke() -> Tuned:
    return tune(mev.Gaussian)


def step(best: Tuned) -> tuple[float, float]:
    """Where the beta kernel steps and how wide the step is: mean and standard deviation of the beta law on [-5, 0]."""
    a, b = best.parameters
    return 5 * (a / (a + b) - 1), 5 * math.sqrt(a * b / (a + b + 1)) / (a + b)


def optimum(kernel: Callable[[float], Any], gaps: np.ndarray, bounds: tuple[float, float]) -> tuple[float, float]:
    """The best parameter and its loss, by an integral and a minimiser that the package has no part in."""
    found = optimize.minimize_scalar(
        lambda x: squared_bias(kernel(x), gaps), bounds=bounds, method="bounded", options={"xatol": 1e-8}
    )
    return float(found.x), float(found.fun)


GRIDS = [np.linspace(0, 5, count) for count in (51, 101, 501)]


@pytest.mark.parametrize("gaps", GRIDS, ids=len)
def test_the_tuned_parameter_is_the_minimum_of_another_integral(gaps: np.ndarray) -> None:
    problems = GaussianPairs(gaps=tuple(gaps))
    for family, kernel, bounds in (
        (mev.Gaussian, mev_pairs.gaussian, (0.4, 1.6)),
        (mev.Indicator, mev_pairs.indicator, (0.05, 0.3)),
    ):
        best, (parameter, loss) = tune(family, problems=problems), optimum(kernel, gaps, bounds)
        assert best.parameters == pytest.approx([parameter], abs=1e-5)
        assert best.loss == pytest.approx(loss, rel=1e-9)
        assert best.interior


def test_s11_gaussian_scale_is_0_84() -> None:
    assert round(best_ke().parameters[0], 2) == 0.84
    assert best_ke().interior
    assert isinstance(best_ke().kernel, mev.Gaussian)


def test_s11_te_level_is_0_14() -> None:
    assert round(best_te().parameters[0], 2) == 0.14
    assert best_te().interior


def test_s11_both_optima_move_in_the_second_digit_with_the_grid_of_gaps() -> None:
    # The paper does not give its grid; a fine one rounds to other digits than the paper's.
    middle, fine = (GaussianPairs(gaps=tuple(gaps)) for gaps in GRIDS[1:])
    assert [round(tune(mev.Indicator, problems=p).parameters[0], 2) for p in (middle, fine)] == [0.14, 0.15]
    assert [round(tune(mev.Gaussian, problems=p).parameters[0], 2) for p in (middle, fine)] == [0.84, 0.83]


def test_s11_the_best_te_has_less_squared_bias_than_the_best_gaussian_ke() -> None:
    assert best_te().loss < best_ke().loss


@pytest.mark.slow
def test_s11_the_best_beta_kernel_degenerates_to_the_step_of_the_best_te() -> None:
    found = [best_beta(top) for top in (10.0, 1e2, 1e3, 1e4)]
    # However large the parameters may grow, they grow to the bound: there is no best beta kernel, only a limit.
    assert all(best.at_bound == (True, False) for best in found)
    places, widths = np.array([step(best) for best in found]).T
    threshold = ndtri(best_te().parameters[0])
    for best in found:
        a, b = best.parameters
        again = mev_pairs.beta(a, b, cuts=(threshold - 0.3, threshold, threshold + 0.3))
        assert best.loss == pytest.approx(squared_bias(again, GRIDS[0]), rel=1e-9)
    # What is lost falls as 1 / parameters, the step's width as 1 / sqrt(parameters): ever closer to 10 and sqrt(10) a decade.
    excess = np.array([best.loss / best_te().loss - 1 for best in found])
    assert np.all(excess > 0)
    for fall, limit in ((excess[:-1] / excess[1:], 10), (widths[:-1] / widths[1:], math.sqrt(10))):
        assert np.all(np.diff(np.abs(fall - limit)) < 0)
        assert fall[-1] == pytest.approx(limit, rel=0.01)
    # The step lies within its own width of the best test's threshold, and ever closer to it.
    assert np.all(np.abs(places - threshold) < widths)
    assert np.all(np.diff(np.abs(places - threshold)) < 0)


@pytest.mark.parametrize("start", [(2.0, 0.5), (5.0, 50.0)])
def test_s11_every_start_ends_in_the_same_degenerate_beta_kernel(start: tuple[float, float]) -> None:
    best = tune(mev.Beta, bounds=[(0.1, 1e3)] * 2, start=start)
    assert best.loss == pytest.approx(best_beta(1e3).loss, rel=1e-6)


def test_an_optimum_on_the_bound_says_so() -> None:
    # Student's t has heavier tails than the Gaussian and wants to lose them.
    best = tune(mev.StudentT, bounds=[(1.0, 50.0)])
    assert best.parameters == (50.0,)
    assert best.at_bound == (True,)
    assert not best.interior


def test_the_grid_escapes_a_local_minimum() -> None:
    class Wavy:
        def bias(self, kernel: mev.Kernel) -> np.ndarray:
            x = np.log(kernel.scale)  # type: ignore[attr-defined]
            return np.array([0.2 * (x - 1.0) ** 2 + 1 - math.cos(6 * (x - 1.0))])

    assert tune(mev.Gaussian, problems=Wavy()).parameters == pytest.approx([math.e], rel=1e-3)


def test_units_do_not_matter() -> None:
    big = GaussianPairs(gaps=tuple(np.linspace(0, 500, 51)), sigma=1000.0)
    assert tune(mev.Gaussian, problems=big).parameters == pytest.approx(tune(mev.Gaussian).parameters, rel=1e-5)


def test_the_corrected_statistic_has_its_own_optimum_under_correlation() -> None:
    gaps = GaussianPairs(correlation=0.5, corrected=True)
    unit = math.sqrt(0.5)
    same = GaussianPairs(gaps=tuple(gap / unit for gap in gaps.gaps))
    found, expected = (tune(mev.Indicator, problems=problems).parameters for problems in (gaps, same))
    assert found == pytest.approx(expected, rel=1e-4)


def test_a_family_is_any_function_to_a_kernel() -> None:
    def power(exponent: float) -> mev.Kernel:
        return mev.Custom(lambda t: np.exp(-(np.abs(t) ** exponent)))

    best = tune(power, bounds=[(0.5, 8.0)])
    assert best.loss < tune(mev.Gaussian).loss


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"family": mev.Softmax}, "bounds must be given for Softmax"),
        ({"family": mev.Gaussian, "bounds": [(0.0, 1.0)]}, "0 < low < high"),
        ({"family": mev.Gaussian, "bounds": []}, "0 < low < high"),
        ({"family": mev.Gaussian, "start": (100.0,)}, "start must lie within"),
        ({"family": mev.Beta, "start": (1.0,)}, "start must lie within"),
    ],
)
def test_bad_input_gets_one_clear_sentence(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tune(**options)
