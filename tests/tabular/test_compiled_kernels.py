"""The kernels and the K-estimate inside the compiled loop: the same as :mod:`maxmean.mev`, the one definition of truth."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numba import njit
from scipy.special import betainc, ndtr

from maxmean import mev
from maxmean.tabular.kernels import CompiledKernel, _beta_cdf, compile_kernel, kernel_value, phi
from maxmean.tabular.targets import KERNEL, kernel_target, survey

INF = math.inf
EXACT = (
    1e-12  # absolute, for Student's t and beta with parameters up to 1000; the others agree to the last bit or nearly
)
GAUSSIAN = (
    3e-8  # measured: 2.885e-8, at T = -1; a chord of length h misses by h² max|phi'| / 8 = 2.885e-8 for h = 1/1024
)

statistics = st.one_of(
    st.floats(-12.0, -1e-12), st.floats(-1e3, -1e-300), st.floats(max_value=-5e-324, allow_nan=False), st.just(-INF)
)
shapes = st.floats(0.02, 1000.0)


def value(kernel: mev.Kernel, t: float) -> float:
    return kernel_value(compile_kernel(kernel), t)


def truth(kernel: mev.Kernel, t: float) -> float:
    return float(kernel(np.array(t)))


@njit
def on_grid(kernel: CompiledKernel, statistics: np.ndarray) -> np.ndarray:
    out = np.empty(statistics.size)
    for i in range(statistics.size):
        out[i] = kernel_value(kernel, statistics[i])
    return out


@given(statistics)
def test_kernels_without_parameters(t: float) -> None:
    for kernel in (mev.Epanechnikov(), mev.Triangle()):
        assert value(kernel, t) == truth(kernel, t)
    assert value(mev.Softmax(), t) == pytest.approx(truth(mev.Softmax(), t), rel=1e-15, abs=5e-324)


@given(statistics, st.floats(1e-300, 0.5))
def test_indicator(t: float, alpha: float) -> None:
    assert value(mev.Indicator(alpha), t) == truth(mev.Indicator(alpha), t)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1, 0.25, 0.4])
def test_indicator_at_its_step(alpha: float) -> None:
    """The threshold itself counts, the next number below it does not."""
    (step,) = mev.Indicator(alpha).kinks
    assert value(mev.Indicator(alpha), step) == 1
    assert value(mev.Indicator(alpha), np.nextafter(step, -INF)) == 0


def test_indicator_at_one_half_counts_nothing_below_the_best() -> None:
    for t in (-5e-324, -1e-300, -1.0, -INF):
        assert value(mev.Indicator(0.5), t) == 0


@given(statistics, st.floats(1e-3, 1e3))
def test_gaussian(t: float, scale: float) -> None:
    assert abs(value(mev.Gaussian(scale), t) - truth(mev.Gaussian(scale), t)) < GAUSSIAN


def test_gaussian_on_a_fine_grid() -> None:
    """Four million points, 1e-7 being what is asked; and it never falls, so that a better option never counts less."""
    grid = np.linspace(-12.0, 0.0, 4_000_001)
    ours = on_grid(compile_kernel(mev.Gaussian()), grid)
    worst = np.abs(ours - ndtr(grid))
    assert worst.max() < GAUSSIAN
    assert worst.max() > 0.9 * GAUSSIAN  # the stated accuracy is what there is, not a generous bound
    assert abs(grid[worst.argmax()] + 1) < 0.05
    assert np.diff(ours).min() >= 0
    assert phi(0.0) == 0.5


@given(statistics, shapes)
@example(-1e200, 0.02)
@example(-1.3e154, 1000.0)
def test_student_t(t: float, df: float) -> None:
    assert abs(value(mev.StudentT(df), t) - truth(mev.StudentT(df), t)) < EXACT


@given(statistics, shapes, shapes)
@example(-4.999999999, 0.02, 1000.0)
@example(-1e-12, 2.0, 0.02)
def test_beta(t: float, a: float, b: float) -> None:
    assert abs(value(mev.Beta(a, b), t) - truth(mev.Beta(a, b), t)) < EXACT


def test_beta_where_both_sides_claim_to_be_short() -> None:
    """Rounding makes x lie above the switch for (a, b) and 1 - x above that for (b, a): it must end all the same."""
    rng = np.random.default_rng(0)
    tried = 0
    for a, b in rng.uniform(0, 5, (20_000, 2)):
        x = float(np.nextafter((a + 1) / (a + b + 2), 1))
        if 1 - x > (b + 1) / (b + a + 2):
            tried += 1
            assert abs(_beta_cdf(a, b, x) - betainc(a, b, x)) < EXACT
    assert tried > 100


@pytest.mark.parametrize(
    "kernel",
    [
        mev.Indicator(0.1),
        mev.Gaussian(0.84),
        mev.StudentT(3.0),
        mev.Epanechnikov(),
        mev.Triangle(),
        mev.Softmax(),
        mev.Beta(),
    ],
)
def test_ends(kernel: mev.Kernel) -> None:
    """No doubt, no weight; and ``top`` is the weight of the best."""
    assert value(kernel, -INF) == 0
    assert compile_kernel(kernel).top == truth(kernel, 0.0)


@pytest.mark.parametrize(
    ("function", "accuracy"),
    [
        (lambda t: np.exp(2 * t), 1e-6),  # second derivative 4: h² 4 / 8 = 5e-7 for h = 1/1024
        (lambda t: 1 / (1 + t * t), 3e-7),  # second derivative 2: 2.4e-7
        (lambda t: 1 / (1 - t), 3e-7),  # falls slowly: most of its table lies beyond T = -9
        (ndtr, GAUSSIAN),
    ],
)
def test_functions_of_the_users_own(function: Callable[[np.ndarray], np.ndarray], accuracy: float) -> None:
    """By linear interpolation in a table, with an absolute error of at most max|kappa''| / 8,000,000 near the best."""
    kernel = mev.kernels.as_kernel(function)
    grid = np.concatenate([-np.geomspace(1e11, 1e-9, 50_000), np.linspace(-12, 0, 100_000)])
    assert np.abs(on_grid(compile_kernel(kernel), grid) - function(grid)).max() < accuracy
    assert value(kernel, -INF) == 0
    assert compile_kernel(kernel).top == function(np.zeros(1))[0]


def test_a_jump_of_the_users_own_is_off_by_one_cell_at_most() -> None:
    kernel = mev.kernels.as_kernel(lambda t: np.where(t >= -0.7, 1.0, 0.0))
    assert value(kernel, -0.7 + 1 / 1024) == 1
    assert value(kernel, -0.7 - 1 / 1024) == 0


KERNELS = [
    mev.Indicator(0.5),
    mev.Indicator(0.25),
    mev.Indicator(0.01),
    mev.Epanechnikov(),
    mev.Triangle(),
    mev.Softmax(),
    mev.StudentT(2.5),
    mev.Beta(),
    mev.Beta(0.4, 3.0),
    mev.Gaussian(),
    mev.Gaussian(0.3),
]
# A few values often, so that ties, at the best and below it, are the rule; and others of all sizes.
numbers = st.one_of(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), st.floats(-1e3, 1e3), st.floats(-1e-3, 1e-3))
variances = st.one_of(st.sampled_from([0.0, 0.0, 1.0]), st.floats(0.0, 1e4), st.floats(1e-12, 1e-6))
options = st.lists(st.tuples(numbers, variances), min_size=1, max_size=9)


@njit
def survey_and_target(
    kernel: CompiledKernel, q: np.ndarray, variance: np.ndarray, first: int, count: int
) -> tuple[float, int]:
    return kernel_target(kernel, q[0], variance, survey(KERNEL, q, first, count))


def estimate(kernel: mev.Kernel, means: np.ndarray, variance: np.ndarray) -> tuple[float, int]:
    """The loop's estimate from the middle of a longer table, whose other entries must not matter."""
    around = [1e6, -1e6]
    q = np.concatenate([around, means, around])[None, :]
    return survey_and_target(compile_kernel(kernel), q, np.concatenate([around, variance, around]), 2, len(means))


@settings(max_examples=300)
@given(options, st.sampled_from(KERNELS))
@example([(1.0, 0.0), (1.0, 0.0), (0.5, 0.0)], mev.Gaussian())
@example([(1.0, 4.0), (1.0, 0.0), (0.0, 1.0)], mev.Indicator(0.25))
def test_the_target_is_the_k_estimate(pairs: list[tuple[float, float]], kernel: mev.Kernel) -> None:
    means, variance = np.array(pairs).T
    ours, used = estimate(kernel, means, variance)
    theirs = float(mev.kernel_estimate(means, variance, kernel))
    size = 1 + np.abs(means).max()
    assert abs(ours - theirs) <= (1e-6 if isinstance(kernel, mev.Gaussian) else 1e-11) * size
    assert means.min() <= ours <= means.max()
    t = mev.t_statistic(means, variance)
    weights = kernel(t)
    if isinstance(kernel, mev.Gaussian):  # its table ends at nine standard deviations, where the weight is 1e-19
        assume(np.abs(t + 9 * kernel.scale).min() > 1e-9)
        weights = np.where(t < -9 * kernel.scale, 0.0, weights)
    assert used == np.count_nonzero(weights)


@settings(max_examples=300)
@given(options)
@example([(5e-324, 4.0), (0.0, 4.0)])
@example([(1e-170, 1e-30), (0.0, 1e30)])
def test_at_one_half_the_target_is_the_maximum(pairs: list[tuple[float, float]]) -> None:
    means, variance = np.array(pairs).T
    ours, used = estimate(mev.Indicator(0.5), means, variance)
    assert ours == means.max()
    assert used == np.count_nonzero(means == means.max())


@given(st.floats(0.001, 0.499), st.floats(1e-6, 1e6), st.integers(-3, 3))
def test_at_the_step_of_the_indicator(alpha: float, variance: float, ulps: int) -> None:
    """Two options whose statistic lies within rounding of the threshold: still what ``mev`` says."""
    (step,) = mev.Indicator(alpha).kinks
    gap = step * math.sqrt(2 * variance)
    for _ in range(abs(ulps)):
        gap = float(np.nextafter(gap, -INF if ulps < 0 else 0.0))
    means, spread = np.array([0.0, gap]), np.array([variance, variance])
    ours, used = estimate(mev.Indicator(alpha), means, spread)
    assert used == np.count_nonzero(mev.Indicator(alpha)(mev.t_statistic(means, spread)))
    assert ours == pytest.approx(float(mev.kernel_estimate(means, spread, mev.Indicator(alpha))), rel=1e-14)


def test_the_order_of_the_options_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    means, variance = rng.normal(size=8).round(1), rng.exponential(size=8)
    means[3] = means[5] = means.max() + 0.5
    for kernel in KERNELS:
        first = estimate(kernel, means, variance)
        for _ in range(10):
            order = rng.permutation(8)
            again = estimate(kernel, means[order], variance[order])
            assert again[0] == pytest.approx(first[0], rel=1e-13)
            assert again[1] == first[1]
