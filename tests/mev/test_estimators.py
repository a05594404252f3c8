"""The estimators: identities, invariances, limits, independent oracles, gradients and extremes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from maxmean import mev
from maxmean.mev.estimators import random_argmax

# One shape for all property tests, so that JAX compiles once. Whole means and variances in powers of four make sums,
# differences and scalings exact, so that a test's rounding never moves an option over the T-estimator's step.
SHAPE = (3, 4)
whole_means = arrays(np.float64, SHAPE, elements=st.integers(-6, 6).map(float))
exact_variances = arrays(np.float64, SHAPE, elements=st.sampled_from([0.0, 0.25, 1.0, 4.0, 16.0]))
any_means = arrays(
    np.float64, SHAPE, elements=st.one_of(st.sampled_from([-1.0, 0.0, 0.1, 2.0]), st.floats(-1e4, 1e4, width=32))
).map(lambda a: a.astype(np.float32).astype(np.float64))
any_variances = arrays(np.float64, SHAPE, elements=st.one_of(st.just(0.0), st.floats(2**-20, 2**20, width=32)))

Estimator = Callable[[Any, Any], Any]
ESTIMATORS: dict[str, Estimator] = {
    "me": lambda means, _variances: mev.maximum_estimate(means),
    "ae": lambda means, _variances: mev.average_estimate(means),
    "te": lambda means, variances: mev.t_estimate(means, variances, 0.1),
    "ke": mev.kernel_estimate,
    "we": mev.weighted_estimate,
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def reach(means: Any) -> float:
    return float(np.abs(means).max()) + 1


# --- kinds -------------------------------------------------------------------------------------------------------------


@every_estimator
@given(means=whole_means, variances=exact_variances)
@settings(max_examples=15)
def test_every_kind_agrees_with_numpy_in_float64(kind: Any, name: str, means: Any, variances: Any) -> None:
    ours = kind.call(ESTIMATORS[name], means, variances)
    assert ours.shape == SHAPE[:-1]
    lost = 400 if name == "we" else 40
    np.testing.assert_allclose(ours, ESTIMATORS[name](means, variances), rtol=0, atol=lost * kind.eps * reach(means))


def test_one_program_maps_over_data_and_kernels() -> None:
    means = np.array([[0.0, 1.0, 3.0], [2.0, 2.0, -1.0]], dtype=np.float32)
    variances = np.array([1.0, 2.0, 0.5], dtype=np.float32)

    def each(kernel: Any) -> Any:
        return jax.vmap(lambda m: mev.kernel_estimate(m, variances, kernel))(jnp.asarray(means))

    families: list[tuple[Any, list[float]]] = [(mev.Indicator, [0.01, 0.1, 0.5]), (mev.Gaussian, [0.1, 1.0, 10.0])]
    for family, parameters in families:
        together = jax.jit(jax.vmap(each))(family(jnp.asarray(parameters)))
        expected = [mev.kernel_estimate(means.astype(float), variances, family(p)) for p in parameters]
        np.testing.assert_allclose(together, expected, atol=1e-6)


@every_estimator
def test_lists_give_numpy(name: str) -> None:
    result = ESTIMATORS[name]([1, 4, 2], [1, 1, 1])
    assert isinstance(result, (np.ndarray, np.generic))
    assert result.dtype == np.float64


# --- the T- and the K-estimator ------------------------------------------------------------------------------------------


@given(means=any_means, variances=any_variances)
def test_te_at_one_half_is_the_maximum_bit_for_bit(kind: Any, means: Any, variances: Any) -> None:
    expected = kind.call(mev.maximum_estimate, means)
    assert np.array_equal(kind.call(mev.t_estimate, means, variances, 0.5), expected)
    with kind.scope():
        half = kind.array(0.5)
    assert np.array_equal(kind.call(mev.t_estimate, means, variances, half), expected)


@given(means=any_means, variance=st.sampled_from([0.0, 1.0, 100.0]))
@settings(max_examples=20)
def test_with_equal_variances_te_grows_with_alpha_up_to_the_maximum(kind: Any, means: Any, variance: float) -> None:
    alphas = [np.array(alpha) for alpha in (1e-12, 1e-3, 0.05, 0.15, 0.3, 0.49, 0.5)]
    curve = np.stack([kind.call(mev.t_estimate, means, variance, alpha) for alpha in alphas])
    assert np.all(np.diff(curve, axis=0) >= -4 * kind.eps * reach(means))
    assert np.all(curve <= means.max(axis=-1))


@given(means=any_means, variances=any_variances)
@settings(max_examples=8)
def test_no_k_estimate_leaves_the_range_of_the_means(kind: Any, kernel: mev.Kernel, means: Any, variances: Any) -> None:
    ours = kind.call(mev.kernel_estimate, means, variances, kernel)
    assert np.all((means.min(axis=-1) <= ours) & (ours <= means.max(axis=-1)))


def test_the_range_holds_where_rounding_would_leave_it() -> None:
    steps = np.array([2 * 5e-324] + [0.0] * 19)
    assert mev.kernel_estimate(steps, np.ones(20), mev.Epanechnikov()) >= 0
    crowd = np.array([0.3] + [0.1] * 70)
    assert mev.weighted_estimate(crowd, np.array([1e-8] + [1e4] * 70)) >= 0.1


@given(means=whole_means, variances=exact_variances)
@settings(max_examples=15)
def test_without_covariance_the_corrected_estimates_are_the_plain_ones_bit_for_bit(
    kind: Any, means: Any, variances: Any
) -> None:
    for kernel in (mev.Indicator(0.1), mev.Gaussian()):
        plain = kind.call(mev.kernel_estimate, means, variances, kernel)
        starred = kind.call(mev.kernel_estimate, means, variances, kernel, covariances=np.zeros((4, 4)))
        assert np.array_equal(plain, starred)


def test_covariances_by_hand(kind: Any) -> None:
    """Variances 9 and 16 with covariance 8: T* = -1, where the plain T = -0.6."""
    arguments: tuple[Any, Any] = np.array([1.0, 4.0]), np.array([9.0, 16.0])
    matrix = np.array([[9.0, 8.0], [8.0, 16.0]])
    alpha = float(scipy.stats.norm.cdf(-0.8))
    assert kind.call(mev.t_estimate, *arguments, alpha) == 2.5
    assert kind.call(mev.t_estimate, *arguments, alpha, covariances=matrix) == 4.0
    low, high = (float(scipy.stats.norm.cdf(t)) for t in (-1.0, 0.0))
    expected = (low * 1 + high * 4) / (low + high)
    assert kind.call(mev.kernel_estimate, *arguments, covariances=matrix) == pytest.approx(expected, rel=8 * kind.eps)


@given(means=whole_means, variances=exact_variances)
@settings(max_examples=20)
def test_weights_are_non_negative_add_up_to_one_and_make_the_estimate(kind: Any, means: Any, variances: Any) -> None:
    cases: list[list[Any]] = [
        [mev.kernel_weights, mev.kernel_estimate, mev.Gaussian(0.5)],
        [mev.best_probabilities, mev.weighted_estimate],
    ]
    for weigh, estimate, *kernel in cases:
        weights = kind.call(weigh, means, variances, *kernel)
        assert np.all(weights >= 0)
        np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=8 * kind.eps)
        ours = kind.call(estimate, means, variances, *kernel)
        np.testing.assert_allclose(ours, (weights * means).sum(axis=-1), rtol=0, atol=40 * kind.eps * reach(means))


# --- invariances --------------------------------------------------------------------------------------------------------


@every_estimator
@given(means=whole_means, variances=exact_variances, shift=st.integers(-99, 99), order=st.permutations(range(4)))
@settings(max_examples=12)
def test_shift_scale_and_order(kind: Any, name: str, means: Any, variances: Any, shift: int, order: list[int]) -> None:
    estimate = partial(kind.call, ESTIMATORS[name])
    base = estimate(means, variances)
    close = partial(
        np.testing.assert_allclose, rtol=0, atol=(400 if name == "we" else 20) * kind.eps * (reach(means) + 99)
    )
    close(estimate(means + shift, variances), base + shift)
    close(estimate(means * 4, variances * 16) / 4, base)
    close(estimate(means[:, order], variances[:, order]), base)


@pytest.mark.parametrize("name", ["me", "ae", "te", "ke"])
@given(means=whole_means, variances=exact_variances)
@settings(max_examples=20)
def test_counting_every_option_twice_changes_nothing(kind64: Any, name: str, means: Any, variances: Any) -> None:
    twice = kind64.call(ESTIMATORS[name], np.tile(means, 2), np.tile(variances, 2))
    once = kind64.call(ESTIMATORS[name], means, variances)
    np.testing.assert_allclose(twice, once, rtol=0, atol=8 * kind64.eps * reach(means))


def test_counting_options_twice_in_the_split_estimators_changes_nothing(kind64: Any) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 9, (2, 50, 4)).astype(float)
    first += [0, 0.1, 0.2, 0.3]  # no ties but those of an option with its copy
    second += [0, 0.1, 0.2, 0.3]
    for estimate in (mev.double_estimate, mev.cross_validation_estimate):
        once = kind64.call(estimate, first, second)
        assert np.array_equal(kind64.call(estimate, np.tile(first, 2), np.tile(second, 2)), once)
    parts = np.stack([first, second])
    assert np.array_equal(kind64.call(mev.maxmin_estimate, np.tile(parts, 2)), kind64.call(mev.maxmin_estimate, parts))


def test_a_copy_is_a_rival_in_the_weighted_estimator_unless_it_is_certain(kind64: Any) -> None:
    """Two copies have the distribution function F² and share its weight; a step's square is the step itself."""
    means, variances = np.array([0.0, 0.4, 1.0]), np.array([2.0, 1.0, 0.0])
    twice = kind64.call(mev.best_probabilities, np.tile(means, 2), np.tile(variances, 2))
    np.testing.assert_allclose(twice[:3], twice[3:], atol=1e-14)
    np.testing.assert_allclose(twice, best_by_quadrature(np.tile(means, 2), np.tile(variances, 2)), atol=1e-10)
    once = kind64.call(mev.best_probabilities, means, variances)
    certain_twice = kind64.call(mev.best_probabilities, means[[0, 1, 2, 2]], variances[[0, 1, 2, 2]])
    np.testing.assert_allclose(certain_twice, [once[0], once[1], once[2] / 2, once[2] / 2], atol=1e-12)
    assert np.abs(twice[:3] * 2 - once).max() > 0.01


# --- limits -------------------------------------------------------------------------------------------------------------


@given(means=whole_means, variances=exact_variances)
@settings(max_examples=15)
def test_limits_of_the_parameters(kind: Any, means: Any, variances: Any) -> None:
    variances = variances + 1  # all T finite
    estimate = partial(kind.call, mev.kernel_estimate, means, variances)
    average, largest = kind.call(mev.average_estimate, means), kind.call(mev.maximum_estimate, means)
    close = partial(np.testing.assert_allclose, rtol=0, atol=8 * kind.eps * reach(means))
    close(estimate(mev.Gaussian(1e20)), average)
    close(estimate(mev.Indicator(1e-300)), average)
    assert np.array_equal(estimate(mev.Gaussian(1e-20)), largest)


NO_DOUBT = np.array([[1.0, 4.0, 4.0, 2.0], [0.0, -3.0, -1.0, -2.0], [5.0, 5.0, 5.0, 5.0]])


def test_without_variance_every_k_estimate_is_the_maximum(kind: Any, kernel: mev.Kernel) -> None:
    assert np.array_equal(kind.call(mev.kernel_estimate, NO_DOUBT, np.zeros(SHAPE), kernel), [4.0, 0.0, 5.0])


def test_without_variance_the_weighted_estimate_is_the_maximum(kind: Any) -> None:
    assert np.array_equal(kind.call(mev.weighted_estimate, NO_DOUBT, np.zeros(SHAPE)), [4.0, 0.0, 5.0])
    assert np.array_equal(kind.call(mev.best_probabilities, NO_DOUBT, np.zeros(SHAPE))[0], [0.0, 0.5, 0.5, 0.0])


@pytest.mark.parametrize("name", ["me", "te", "ke", "we"])
def test_an_option_far_below_changes_nothing(kind64: Any, name: str) -> None:
    means, variances = np.array([1.0, 1.5, 2.0, 0.0]), np.array([1.0, 0.5, 0.25, 0.0])
    base = kind64.call(ESTIMATORS[name], means[:3], variances[:3])
    for far in (-1e3, -1e30):
        means[3] = far
        assert kind64.call(ESTIMATORS[name], means, variances) == pytest.approx(base, rel=8 * kind64.eps)


# --- the weighted estimator -----------------------------------------------------------------------------------------------


def best_by_quadrature(means: Any, variances: Any) -> Any:
    """P(option is the largest), one adaptive integral an option in that option's own standard errors."""
    return _best_by_quadrature(tuple(means), tuple(variances))


@cache
def _best_by_quadrature(given_means: tuple[float, ...], variances: tuple[float, ...]) -> Any:
    """A certain option is a step: it bounds the integral from below, and its own weight needs none. Certain ties share."""
    means, errors = np.array(given_means), np.sqrt(variances)

    def others(i: int, x: float) -> float:
        return math.prod(
            float(scipy.stats.norm.cdf((x - means[j]) / errors[j]))
            for j in range(len(means))
            if j != i and errors[j] > 0
        )

    floor = max((m for m, e in zip(means, errors, strict=True) if e == 0), default=-math.inf)
    weights = np.zeros(len(means))
    for i, (m, e) in enumerate(zip(means, errors, strict=True)):
        if e == 0:
            weights[i] = others(i, m) / np.sum((means == floor) & (errors == 0)) if m == floor else 0
            continue
        low, high = max(-9.0, (floor - m) / e), 9.0
        if low >= high:
            continue
        cuts = [(means[j] + k * errors[j] - m) / e for j in range(len(means)) for k in (-6, 0, 6)]
        edges = [low, *sorted(c for c in cuts if low < c < high), high]
        weights[i] = sum(
            scipy.integrate.quad(
                lambda z, i=i, m=m, e=e: math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * others(i, m + e * z),
                start, stop, epsabs=1e-13, epsrel=1e-10, limit=200,
            )[0]
            for start, stop in itertools.pairwise(edges)
        )  # fmt: skip
    return weights


CASES = {
    "ordinary": ([0.0, 0.5, 1.0, -0.3], [1.0, 2.0, 0.5, 3.0]),
    "wildly different variances": ([0.0, -3.0, 5.0, 1.0], [1e-8, 1e4, 1.0, 1e-3]),
    "narrow, far from the best": ([0.0, -123.456, -50.0], [1e4, 1e-8, 1e-4]),
    "one certain": ([0.0, -1.0, 0.5], [1.0, 0.0, 2.0]),
    "two certain": ([0.0, -1.0, 0.5, 0.2], [1.0, 0.0, 0.0, 4.0]),
    "two certain, nearly equal": ([0.0, -1.0, -1.0 + 1e-6], [1.0, 0.0, 0.0]),
    "certain at a break point of another": ([0.0, -2.5, 0.0], [1.0, 0.0, 1.0]),
    "certain ties": ([0.0, -1.0, -1.0], [1.0, 0.0, 0.0]),
    "on a high level": ([1e6, 1e6 + 0.5, 1e6 + 1], [1.0, 2.0, 0.0]),
}


@pytest.mark.parametrize("case", CASES)
def test_best_probabilities_are_exact_to_1e_10(kind: Any, case: str) -> None:
    """In float64, as promised; in float32 to 2e-5 (or what rounding the means to float32 has left)."""
    means, variances = (np.array(values) for values in CASES[case])
    if kind.dtype == "float32" and case in ("on a high level", "two certain, nearly equal"):
        means, variances = (a.astype(np.float32).astype(np.float64) for a in (means, variances))
    tolerance = 1e-10 if kind.dtype == "float64" else 2e-5
    ours = kind.call(mev.best_probabilities, means, variances)
    np.testing.assert_allclose(ours, best_by_quadrature(means, variances), rtol=0, atol=tolerance)


@given(st.floats(-8, 8), st.floats(-8, 8), st.floats(1e-8, 1e4), st.floats(1e-8, 1e4))
def test_two_options_have_a_closed_form(one: float, other: float, v: float, w: float) -> None:
    """P(the first is larger) = Phi(difference / sqrt(v + w))."""
    ours = mev.best_probabilities([one, other], [v, w])
    np.testing.assert_allclose(ours[0], scipy.stats.norm.cdf((one - other) / math.sqrt(v + w)), rtol=0, atol=1e-10)


def test_equal_options_share_equally(kind64: Any) -> None:
    for options in (1, 2, 30):
        ours = kind64.call(mev.best_probabilities, np.full(options, 2.5), np.full(options, 0.7))
        np.testing.assert_allclose(ours, 1 / options, rtol=8 * kind64.eps)


def test_many_options_agree_with_the_expected_maximum() -> None:
    """Integrated by parts: the derivative of E[max] in a mean is that option's probability of being the largest."""
    rng = np.random.default_rng(4)
    means, errors = rng.normal(size=60), rng.uniform(0.1, 2, size=60)

    def expected_maximum(shift: float) -> float:
        x = np.linspace(-20, 20, 20_001)
        shifted = means + np.eye(60)[7] * shift
        return float(20 - np.trapezoid(np.exp(scipy.stats.norm.logcdf((x[:, None] - shifted) / errors).sum(1)), x))

    slope = (expected_maximum(1e-3) - expected_maximum(-1e-3)) / 2e-3
    assert mev.best_probabilities(means, errors**2)[7] == pytest.approx(slope, abs=1e-8)


def test_a_large_batch_is_its_rows() -> None:
    rng = np.random.default_rng(5)
    means, variances = rng.normal(size=(2, 700, 3)), rng.uniform(0, 2, size=(700, 3))
    together = mev.best_probabilities(means, variances)
    for i, j in ((0, 0), (1, 350), (1, 699)):
        np.testing.assert_allclose(together[i, j], mev.best_probabilities(means[i, j], variances[j]), atol=1e-13)


def own_source(kind: Any) -> Any:
    generator = torch.Generator()
    generator.manual_seed(11)
    return {"numpy": 11, "jax": jax.random.key(11), "torch": generator}[kind.library]


@pytest.mark.parametrize("draws", [100, 2500])
def test_monte_carlo_converges_at_the_binomial_rate(kind64: Any, draws: int) -> None:
    """Over 400 independent data sets the squared errors follow chi-square: wrong once in a million fresh seeds."""
    means, variances, repeats = np.array([0.0, 1.0]), np.array([0.5, 0.5]), 400
    p = scipy.stats.norm.cdf(1.0)
    shares = kind64.call(
        mev.best_probabilities, np.tile(means, (repeats, 1)), np.tile(variances, (repeats, 1)), draws=draws,
        rng=own_source(kind64),
    )[:, 1]  # fmt: skip
    squares = np.sum((shares - p) ** 2) * draws / (p * (1 - p))
    low, high = scipy.stats.chi2(repeats).ppf([5e-7, 1 - 5e-7])
    assert low < squares < high


def test_monte_carlo_needs_a_draw() -> None:
    with pytest.raises(ValueError, match="draws must be at least 1, not 0"):
        mev.weighted_estimate([0.0, 1.0], [1.0, 1.0], draws=0)


# --- estimators that split the data -----------------------------------------------------------------------------------------


def test_double_and_cross_validation_by_hand(kind: Any) -> None:
    a, b = np.array([[1.0, 3.0, 2.0], [5.0, 0.0, 1.0]]), np.array([[2.0, 2.5, 4.0], [-1.0, 7.0, 0.0]])
    assert kind.call(mev.double_estimate, a, b).tolist() == [2.5, -1.0]
    assert kind.call(mev.double_estimate, b, a).tolist() == [2.0, 0.0]
    assert kind.call(mev.cross_validation_estimate, a, b).tolist() == [2.25, -0.5]
    assert kind.call(mev.cross_validation_estimate, a, b[0]).tolist() == [2.25, 1.5]
    assert kind.call(mev.double_estimate, a[0], b).tolist() == [2.5, 7.0]


def test_maxmin_by_hand(kind: Any) -> None:
    parts = np.array([[[1.0, 3.0], [4.0, 9.0]], [[2.0, 0.0], [5.0, 1.0]], [[1.5, 8.0], [3.0, 2.0]]])
    assert kind.call(mev.maxmin_estimate, parts).tolist() == [1.0, 3.0]
    assert kind.call(mev.maxmin_estimate, parts[:1]).tolist() == [3.0, 9.0]


def test_an_estimate_does_not_see_what_was_not_chosen(kind: Any) -> None:
    evaluation = np.array([np.nan, 2.0, np.inf])
    assert kind.call(mev.double_estimate, np.array([0.0, 1.0, 0.5]), evaluation) == 2.0


@pytest.mark.parametrize("tied", [[0, 1, 2], [1, 3], [0, 3]])
def test_ties_are_broken_uniformly(kind: Any, tied: list[int]) -> None:
    """Chi-square over 9,000 rows: wrong once in a million fresh seeds."""
    selection = np.zeros((9000, 4))
    selection[:, tied] = 1.0
    chosen = kind.call(mev.double_estimate, selection, np.arange(4.0), own_source(kind))
    counts = np.bincount(chosen.astype(int), minlength=4)
    assert counts[tied].sum() == 9000
    assert scipy.stats.chisquare(counts[tied]).pvalue > 1e-6


def test_both_directions_of_a_cross_validation_break_their_ties_independently() -> None:
    """The estimate is the share of picks of the second option: 0, 1/2, 1 with 1/4, 1/2, 1/4 (5 standard errors)."""
    first, second = np.array([0.0, 1.0]), np.zeros((4000, 2))
    forward = mev.double_estimate(second, first, 3)
    assert abs(forward.mean() - 0.5) < 5 * 0.5 / math.sqrt(4000)
    chosen = random_argmax(np.zeros((2, 4000, 2)), 3)
    assert abs(np.mean(chosen[0, :, 0] == chosen[1, :, 0]) - 0.5) < 5 * 0.5 / math.sqrt(4000)


# --- gradients --------------------------------------------------------------------------------------------------------------


GENERIC = [([0.0, 1.0, 2.5], [1.0, 2.0, 0.5]), ([3.0, 2.8, 2.0], [0.4, 0.9, 0.3])]
SPECIAL = [
    ([1.0, 1.0, 0.5], [1.0, 1.0, 1.0]),  # ties
    ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]),  # nothing but ties
    ([1.0, 1.0, 0.5], [0.0, 0.0, 0.0]),  # ties and no variance
    ([2.0, 1.0, 0.5], [0.0, 0.0, 0.0]),  # T = -inf
    ([2.0, 1.0, 0.5], [0.0, 0.0, 1.0]),  # T = -inf for one
    ([2.0, 1.0, 0.5], [1e-30, 1e-30, 1.0]),  # T = -1e15
    ([1e30, 0.0, -1e30], [1e-30, 1e-30, 1e-30]),  # T overflows in float32
    ([1.0, 1.0 - 2**-20, 0.5], [1e20, 1e20, 1e20]),  # T = -1e-16
]


def slopes_by_differences(estimate: Estimator, means: Any, variances: Any, step: float = 1e-6) -> list[Any]:
    slopes = []
    for which in range(2):
        slope = np.zeros(means.shape)
        for i in range(means.shape[-1]):
            sides = []
            for sign in (1, -1):
                moved = [means.copy(), variances.copy()]
                moved[which][:, i] += sign * step
                sides.append(estimate(moved[0], moved[1]))
            slope[:, i] = (sides[0] - sides[1]) / (2 * step)
        slopes.append(slope)
    return slopes


def check_gradients(kind: Any, estimate: Estimator) -> None:
    """Right at generic points, by differences in NumPy; finite at all special ones."""
    means, variances = (np.array(rows) for rows in zip(*GENERIC, *SPECIAL, strict=True))
    ours = kind.gradients(estimate, means, variances)
    generic = len(GENERIC)
    for slope, expected in zip(
        ours, slopes_by_differences(estimate, means[:generic], variances[:generic]), strict=True
    ):
        assert np.all(np.isfinite(slope))
        np.testing.assert_allclose(slope[:generic], expected, atol=1e-4 if kind.dtype == "float32" else 1e-7)


def test_gradients_of_k_estimates(differentiable: Any, kernel: mev.Kernel) -> None:
    check_gradients(differentiable, partial(mev.kernel_estimate, kernel=kernel))


@pytest.mark.parametrize("name", ["me", "ae", "we"])
def test_gradients_of_the_others(differentiable: Any, name: str) -> None:
    check_gradients(differentiable, ESTIMATORS[name])


def test_gradients_in_the_scale(differentiable: Any) -> None:
    means, variances = (np.array(rows) for rows in zip(*GENERIC, *SPECIAL[:5], strict=True))

    def estimate(scale: Any) -> Any:
        return mev.kernel_estimate(differentiable.array(means), differentiable.array(variances), mev.Gaussian(scale))

    (slope,) = differentiable.gradients(estimate, np.array(0.7))
    high, low = (mev.kernel_estimate(means, variances, mev.Gaussian(0.7 + s)).sum() for s in (1e-6, -1e-6))
    assert slope == pytest.approx((high - low) / 2e-6, abs=1e-5)


def test_gradients_of_split_estimators_go_to_the_option_that_was_chosen(differentiable: Any) -> None:
    a, b = np.array([1.0, 3.0, 3.5]), np.array([2.0, 2.5, 4.0])
    assert [g.tolist() for g in differentiable.gradients(mev.double_estimate, a, b)] == [[0, 0, 0], [0, 0, 1]]
    slopes = differentiable.gradients(mev.cross_validation_estimate, a, b)
    assert [g.tolist() for g in slopes] == [[0, 0, 0.5], [0, 0, 0.5]]
    (slope,) = differentiable.gradients(mev.maxmin_estimate, np.stack([a, b]))
    assert slope.tolist() == [[0, 0, 1], [0, 0, 0]]


# --- extremes ---------------------------------------------------------------------------------------------------------------


def extremes(kind: Any) -> tuple[Any, Any]:
    """All means and variances of wildly different sizes; in float32 the exponents are a tenth."""
    tenth = 1.0 if kind.dtype == "float64" else 0.1
    sizes = np.array([1e-300, 1e-20, 1.0, 1e20, 1e300]) ** tenth
    values = np.concatenate([-sizes, [0.0], sizes])
    spreads = np.concatenate([[0.0], sizes])
    first, second, v, w = (a.ravel() for a in np.meshgrid(values, values, spreads, spreads, indexing="ij"))
    return np.stack([first, second, np.zeros_like(first)], -1), np.stack([v, w, v], -1)


def test_extremes_stay_inside_the_range(kind: Any, kernel: mev.Kernel) -> None:
    means, variances = extremes(kind)
    ours = kind.call(mev.kernel_estimate, means, variances, kernel)
    means = kind.call(lambda m: m, means)
    assert np.all((means.min(axis=-1) <= ours) & (ours <= means.max(axis=-1)))
    if kernel == mev.Gaussian():
        assert np.array_equal(kind.call(mev.t_estimate, means, variances, 0.5), means.max(axis=-1))


def test_extremes_of_the_weighted_estimator(kind: Any) -> None:
    means, variances = extremes(kind)
    means, variances = means[::5], variances[::5]
    ours = kind.call(mev.weighted_estimate, means, variances)
    means = kind.call(lambda m: m, means)
    assert np.all((means.min(axis=-1) <= ours) & (ours <= means.max(axis=-1)))


def test_a_large_batch_in_pieces_is_the_same_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    means, variances = rng.normal(size=(3, 9000, 5)), rng.gamma(1.0, size=(3, 9000, 5))
    for kernel in (mev.Gaussian(), mev.Indicator(0.2), mev.Gaussian(np.full((3, 9000, 1), 0.7))):
        whole = mev.kernel_estimate(means, variances, kernel)
        assert whole.shape == (3, 9000)
        some = (
            mev.Gaussian(kernel.scale[:, :10]) if isinstance(kernel, mev.Gaussian) and np.ndim(kernel.scale) else kernel
        )
        np.testing.assert_array_equal(whole[:, :10], mev.kernel_estimate(means[:, :10], variances[:, :10], some))


# --- what has no meaning ---------------------------------------------------------------------------------------------

NO_MEANING = {
    "a mean": ([1.0, np.nan, 3.0], [1.0, 1.0, 1.0]),
    "the best's variance": ([1.0, 2.0, 3.0], [1.0, 1.0, np.nan]),
    "another variance": ([1.0, 2.0, 3.0], [1.0, np.nan, 1.0]),
    "a negative variance": ([1.0, 2.0, 3.0], [1.0, -1e-9, 1.0]),
    "the best's negative variance": ([1.0, 2.0, 3.0], [1.0, 1.0, -5.0]),
}


def test_what_has_no_meaning_is_nan_and_its_neighbours_are_not(kind: Any) -> None:
    """Rows with a nan or a negative variance, each above one without: its estimate is nan by every kernel, not the maximum."""
    means, variances = np.tile([1.0, 2.0, 3.0], (len(NO_MEANING), 2, 1)), np.ones((len(NO_MEANING), 2, 3))
    means[:, 0], variances[:, 0] = zip(*NO_MEANING.values(), strict=True)
    covariances = variances[..., None] * np.eye(3)
    estimators: dict[str, tuple[Any, ...]] = {
        "te": (mev.t_estimate,),
        "we": (mev.weighted_estimate,),
        "we with draws": (partial(mev.weighted_estimate, draws=10),),
        "T": (lambda m, v: mev.t_statistic(m, v)[..., 0],),
        "te*": (lambda m, v: mev.t_estimate(m, v, covariances=kind.array(covariances)),),
    }
    for name, kernel in mev.KERNELS.items():  # as arguments, so that JAX need not compile a program for each
        estimators[f"ke with {name}"] = (mev.kernel_estimate, kernel())
        estimators[f"weights with {name}"] = (lambda m, v, k: mev.kernel_weights(m, v, k)[..., 0], kernel())
    for estimator, (function, *kernels) in estimators.items():
        found = np.isnan(kind.call(function, means, variances, *kernels))
        for case, row in zip(NO_MEANING, found, strict=True):
            assert row.tolist() == [True, False], (estimator, case)


def test_a_kernel_of_the_users_own_need_not_know_about_nan() -> None:
    near = mev.Custom(lambda t: (t > -1) * 1.0)
    assert np.isnan(mev.kernel_estimate([1.0, 2.0], [np.nan, 1.0], near))
    assert mev.kernel_estimate([1.0, 2.0], [1.0, 1.0], near) == 1.5


def test_a_covariance_that_is_nan_makes_the_estimate_nan(kind: Any) -> None:
    covariances = np.eye(3)
    covariances[0, 2] = np.nan

    def estimate(means: Any, variances: Any) -> Any:
        return mev.t_estimate(means, variances, covariances=kind.array(covariances))

    assert np.isnan(kind.call(estimate, np.array([1.0, 2.0, 3.0]), np.ones(3)))


def test_nobody_chooses_by_a_mean_that_is_nan(kind: Any) -> None:
    means, known = np.array([[1.0, np.nan], [1.0, 2.0]]), np.ones((2, 2))
    assert np.isnan(kind.call(mev.double_estimate, means, known)).tolist() == [True, False]
    assert np.isnan(kind.call(mev.cross_validation_estimate, means, known)).tolist() == [True, False]


def test_the_integral_gives_the_same_bits_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    means, variances = rng.normal(size=(3, 30)), rng.uniform(1e-6, 1, size=(3, 30)) ** 2
    variances[2] = 1.0
    whole = mev.best_probabilities(means, variances)
    monkeypatch.setattr("maxmean.mev.probabilities._HELD", 5_000)
    np.testing.assert_array_equal(mev.best_probabilities(means, variances), whole)
    drawn = mev.best_probabilities(means, variances, draws=1000, rng=5)
    monkeypatch.setattr("maxmean.mev.probabilities._DRAWN", 700)
    np.testing.assert_allclose(mev.best_probabilities(means, variances, draws=1000, rng=5), drawn, rtol=1e-12)
