"""Kernels: their values, the three requirements, their parameters, and functions that users bring."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from maxmean import mev
from maxmean.mev.errors import KernelError
from maxmean.mev.kernel_checks import check_kernel
from maxmean.mev.kernels import KERNELS, Custom, as_kernel

# One number of points for most tests: JAX compiles the beta function anew for every shape.
GRID = np.array([-60.0, -9.0, -5.5, -4.75, -3.0, -2.0, -1.5, -1.0, -0.75, -0.25, -(2.0**-10), 0.0])
PARAMETRIC = {mev.Gaussian: "scale", mev.StudentT: "df", mev.Indicator: "alpha", mev.Beta: "a"}


def exact_normal(t: float, scale: float = 1.0) -> Any:
    return mpmath.ncdf(mpmath.mpf(t) / scale)


def exact_student(t: float, df: float) -> Any:
    """The integral of the density itself, not the beta function that the kernel uses."""
    norm = mpmath.gamma((df + 1) / 2) / (mpmath.sqrt(df * mpmath.pi) * mpmath.gamma(df / 2))
    return mpmath.mpf(1) / 2 - norm * mpmath.quad(lambda x: (1 + x * x / df) ** (-(df + 1) / 2), [0, -t / 2, -t])


def exact_beta(t: float, a: float, b: float) -> Any:
    if t <= -5:
        return mpmath.mpf(0)
    return mpmath.betainc(a, b, 0, 1 + mpmath.mpf(t) / 5, regularized=True)


VALUES: list[tuple[mev.Kernel, Callable[[float], Any]]] = [
    (mev.Indicator(0.1), lambda t: mpmath.ncdf(t) >= 0.1),
    (mev.Indicator(1e-300), lambda t: mpmath.ncdf(t) >= 1e-300),
    (mev.Indicator(0.5), lambda t: t == 0),
    (mev.Gaussian(), exact_normal),
    (mev.Gaussian(0.84), lambda t: exact_normal(t, 0.84)),
    (mev.StudentT(1.0), lambda t: mpmath.mpf(1) / 2 + mpmath.atan(t) / mpmath.pi),
    (mev.StudentT(0.7), lambda t: exact_student(t, 0.7)),
    (mev.StudentT(5), lambda t: exact_student(t, 5)),
    (mev.StudentT(200.0), lambda t: exact_student(t, 200.0)),
    (mev.Epanechnikov(), lambda t: 0.75 * max(0, 1 - t * t)),
    (mev.Triangle(), lambda t: max(0, 1 - abs(t))),
    (mev.Softmax(), mpmath.exp),
    (mev.Beta(), lambda t: exact_beta(t, 2.0, 0.5)),
    (mev.Beta(0.3, 4.0), lambda t: exact_beta(t, 0.3, 4.0)),
    (mev.Beta(1, 1), lambda t: max(0, 1 + t / 5)),
]


@pytest.mark.parametrize(
    ("kernel", "exact"), VALUES, ids=lambda value: repr(value) if isinstance(value, mev.Kernel) else ""
)
def test_values_agree_with_the_formula_to_rounding(
    kind: Any, kernel: mev.Kernel, exact: Callable[[float], Any]
) -> None:
    expected = np.array([float(exact(t)) for t in GRID])
    lost = 200 if kernel == mev.StudentT(200.0) else 40  # the beta function of JAX in float32 is 1.5e-5 off at df = 200
    np.testing.assert_allclose(kind.call(kernel, GRID), expected, rtol=0, atol=lost * kind.eps)


def test_kernels_are_non_negative_increasing_and_vanish(kind: Any, kernel: mev.Kernel) -> None:
    far = [-np.inf, -1e200 if kind.dtype == "float64" else -1e30, -1e3]
    near = -np.geomspace(300, 1e-6, 500 if kind.library != "jax" else 8)
    values = kind.call(kernel, np.concatenate([far, near, [0.0]]))
    assert values[0] == 0
    assert values[1] <= 1e-60 * values[-1]
    assert values[2] <= 1e-12 * values[-1]
    assert np.all(values >= 0)
    assert np.all(np.diff(values) >= -8 * kind.eps * values[-1])
    assert values[-1] > 0


@pytest.mark.parametrize("extreme", [mev.StudentT(0.05), mev.StudentT(1e6), mev.Gaussian(1e30), mev.Gaussian(1e-30)])
def test_certainty_leaves_no_weight_whatever_the_parameter(kind: Any, extreme: mev.Kernel) -> None:
    values = kind.call(extreme, np.concatenate([[-np.inf, -1e30], -np.geomspace(1e3, 1e-30, 9), [0.0]]))
    assert values[0] == 0
    assert np.all(np.isfinite(values))
    assert np.all(np.diff(values) >= 0)


def test_kinks_are_where_the_kernel_jumps_or_bends(kernel: mev.Kernel) -> None:
    """Second differences: large beside a kink, and everywhere else of the order of the squared step."""
    step = 1e-4
    t = -np.arange(1, 70_000) * step
    values = kernel(t)
    bend = np.abs(values[2:] - 2 * values[1:-1] + values[:-2]) / kernel(0.0)
    away = np.ones(bend.shape, dtype=bool)
    for kink in kernel.kinks:
        beside = np.abs(t[1:-1] - kink) < 2 * step
        away &= ~(np.abs(t[1:-1] - kink) < 0.05)
        slope = max(bend[beside]) / step
        assert slope > 1e-3 or isinstance(
            kernel, mev.Beta
        )  # a beta kernel with a > 1 only bends in a higher derivative
    away &= t[1:-1] < -0.05  # some beta kernels are infinitely steep at 0, which is the end and no kink
    assert bend[away].max() < 100 * step**2


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (mev.Indicator(0.5), ()),
        (mev.Indicator(0.1), (-1.2815515655446004,)),
        (mev.Beta(), (-5.0,)),
        (mev.Gaussian(), ()),
        (Custom(lambda t: (t > -2.0) * 1.0, kinks_at=(-2.0,)), (-2.0,)),
    ],
)
def test_kinks_by_hand(kernel: mev.Kernel, expected: tuple[float, ...]) -> None:
    assert kernel.kinks == pytest.approx(expected)


@pytest.mark.parametrize(
    ("cls", "name", "values"),
    [
        (mev.Indicator, "alpha", (0, -0.1, 0.50001, 1)),
        (mev.Gaussian, "scale", (0.0, -1, math.inf)),
        (mev.StudentT, "df", (0.0, -2.0, math.inf)),
        (mev.Beta, "a", (0.0, -1.0, math.inf)),
        (mev.Beta, "b", (0.0, -1.0, math.inf)),
    ],
)
def test_parameters_out_of_range_are_refused_by_name_and_value(
    cls: Callable[..., mev.Kernel], name: str, values: tuple[float, ...]
) -> None:
    for value in (*values, math.nan):
        for given_value in (value, np.array([0.2, value]), torch.tensor(value), jnp.asarray(value)):
            with pytest.raises(KernelError, match=rf"^{name} must .*, not {re.escape(f'{given_value}')}$"):
                cls(**{name: given_value})


@pytest.mark.parametrize("value", ["0.1", None, True, 1j])
def test_parameters_that_are_no_numbers_are_refused(value: object) -> None:
    with pytest.raises(KernelError, match=r"alpha must lie in \(0, 0.5\], not"):
        mev.Indicator(value)


@pytest.mark.parametrize(("cls", "name"), PARAMETRIC.items(), ids=lambda value: getattr(value, "__name__", value))
def test_array_parameters_broadcast_and_keep_the_type_of_the_statistic(kind: Any, cls: Any, name: str) -> None:
    parameters = [0.1, 0.3]
    t = np.array([-2.0, -1.0, -0.75, -0.5, -0.25, 0.0])
    expected = np.stack([cls(**{name: p})(t) for p in parameters])
    with kind.scope():
        column = [np.array(parameters)[:, None], kind.array(parameters)[:, None]]
    for parameter in column:
        ours = kind.call(lambda x, parameter=parameter: cls(**{name: parameter})(x), t)
        np.testing.assert_allclose(ours, expected, rtol=0, atol=40 * kind.eps)
    scalar = kind.call(lambda x: cls(**{name: np.float64(0.3)})(x), t)
    np.testing.assert_allclose(scalar, expected[1], rtol=0, atol=40 * kind.eps)


def test_a_list_of_statistics_gives_numpy(kernel: mev.Kernel) -> None:
    values = kernel([-1.0, 0])
    assert isinstance(values, np.ndarray)
    assert values.dtype == np.float64


def test_every_kernel_is_found_by_its_name() -> None:
    assert {name: cls.name for name, cls in KERNELS.items()} == {name: name for name in KERNELS}
    assert all(isinstance(cls(), mev.Kernel) for cls in KERNELS.values())


@pytest.mark.parametrize(("cls", "name"), PARAMETRIC.items(), ids=lambda value: getattr(value, "__name__", value))
def test_jax_maps_over_kernels_in_one_compiled_program(cls: Any, name: str) -> None:
    parameters = jnp.asarray([0.05, 0.2, 0.4])
    t = jnp.asarray([-2.0, -1.0, 0.0])
    mapped = {field.name: jnp.full(3, getattr(cls(), field.name)) for field in fields(cls)} | {name: parameters}
    together = jax.jit(jax.vmap(lambda kernel: kernel(t)))(cls(**mapped))
    each = [cls(**{name: float(p)})(np.asarray(t, dtype=float)) for p in parameters]
    np.testing.assert_allclose(together, each, atol=4e-6)


def test_kernels_survive_jax_trees(kernel: mev.Kernel) -> None:
    leaves, tree = jax.tree_util.tree_flatten(kernel)
    assert jax.tree_util.tree_unflatten(tree, leaves) == kernel
    custom = Custom(jnp.exp, label="exp")
    assert jax.tree_util.tree_leaves(custom) == []
    assert jax.jit(lambda k, t: k(t))(custom, jnp.asarray(0.0)) == 1


@given(st.floats(0.05, 20), st.floats(0.05, 20))
def test_a_wider_gaussian_kernel_gives_more_weight(one: float, other: float) -> None:
    t = -np.geomspace(1e-3, 30, 40)
    narrow, wide = sorted((one, other))
    assert np.all(mev.Gaussian(narrow)(t) <= mev.Gaussian(wide)(t))


GOOD: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda t: np.exp(2 * t),
    "numpy step": lambda t: np.where(t > -2, 1.0, 0.0),
    "heavy tail": lambda t: 1 / (1 - t),
    "not defined at -inf": lambda t: np.exp(t) * (1 - t),
    "jax": lambda t: jnp.exp(2 * t),
    "jax cdf": jax.scipy.stats.norm.cdf,
    "torch": lambda t: torch.exp(2 * t),
    "torch method": lambda t: t.clamp(min=-1.0) + 1,
}


@pytest.mark.parametrize("name", GOOD)
def test_good_functions_pass(name: str) -> None:
    check_kernel(GOOD[name])
    kernel = as_kernel(GOOD[name])
    t = torch.tensor([-math.inf, -0.5, 0.0]) if "torch" in name else np.array([-math.inf, -0.5, 0.0], dtype=np.float32)
    assert kernel(t)[0] == 0
    assert 0 < kernel(t)[1] < kernel(t)[2] or "step" in name


def test_a_function_is_checked_while_jax_traces() -> None:
    traced = jax.jit(lambda m: mev.kernel_estimate(m, jnp.ones(2), lambda t: jnp.exp(2 * t)))
    expected = mev.kernel_estimate([0.0, 1.0], [1.0, 1.0], lambda t: np.exp(2 * t))
    assert float(traced(jnp.asarray([0.0, 1.0]))) == pytest.approx(float(expected), rel=1e-6)


def failing(_t: Any) -> Any:
    raise RuntimeError("no such table")


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda t: np.exp(t) - 0.1, "must not be negative, but is -0.1 at T = "),
        (lambda t: np.exp(-((t + 1) ** 2)), "must increase on (-inf, 0], but falls after T = "),
        (lambda t: 0 * t + 1, "must tend to 0 as T goes to -inf, but is 1 at T = -1e+12 (1 at T = 0)"),
        (lambda t: np.exp(t)[:-1], "must return one weight for each T, but gave shape (1201,) for (1202,)"),
        (lambda t: 1.0, "must return one weight for each T, but gave shape () for (1202,)"),
        (lambda t: np.where(t < -1e6, np.nan, np.exp(t)), "must be finite, but is not at T = -1e+12"),
        (lambda t: np.where(t < 0, np.exp(t), np.inf), "must be finite, but is not at T = 0"),
        (lambda t: 0 * t, "must be positive at T = 0"),
        (failing, "cannot be evaluated on an array of T: no such table"),
    ],
)
def test_bad_functions_are_told_which_requirement_they_break(function: Callable[[Any], Any], sentence: str) -> None:
    with pytest.raises(KernelError, match=re.escape(sentence)):
        mev.kernel_estimate([0.0, 1.0], [1.0, 1.0], function)


@pytest.mark.parametrize("value", ["gaussian", 3.0, None])
def test_what_cannot_be_called_is_no_kernel(value: Any) -> None:
    with pytest.raises(KernelError, match=re.escape(f"such as maxmean.mev.Gaussian(), not {value!r}")):
        as_kernel(value)


def slope_by_differences(function: Callable[[Any], Any], x: Any, step: float = 1e-6) -> Any:
    return (function(x + step) - function(x - step)) / (2 * step)


def test_slopes_agree_with_differences_and_are_finite_everywhere(differentiable: Any, kernel: mev.Kernel) -> None:
    generic = np.array([-60.0, -6.0, -4.6, -3.0, -2.0, -1.5, -0.9, -0.7, -0.3, -0.1, -0.05, -0.01])
    far = 1e200 if differentiable.dtype == "float64" else 1e30
    ends = np.array([-np.inf, -far, -1e3, -40.0, *kernel.kinks, -1e-6, -1e-9, -1e-30, 0.0])
    (slopes,) = differentiable.gradients(kernel, np.concatenate([generic, ends]))
    assert np.all(np.isfinite(slopes))
    np.testing.assert_allclose(slopes[: len(generic)], slope_by_differences(kernel, generic), rtol=1e-4, atol=1e-6)
    assert np.all(np.abs(slopes[len(generic) :][:3]) < 1e-12)


def test_the_slope_in_the_scale_agrees_with_differences(differentiable: Any) -> None:
    t = np.array([-3.0, -1.0, -0.1])
    for scale in (0.3, 1.0, 4.0):
        (slope,) = differentiable.gradients(lambda s: mev.Gaussian(s)(differentiable.array(t)), np.array(scale))
        expected = slope_by_differences(lambda s: mev.Gaussian(s)(t).sum(), scale)
        assert slope == pytest.approx(expected, rel=1e-4)


def test_the_slope_in_the_scale_is_finite_far_out(differentiable: Any) -> None:
    t = np.array([-np.inf, -1e30, -1e3, -1e-30, 0.0])
    for scale in (1e-3, 1.0, 1e3):
        slopes = differentiable.gradients(lambda x, s: mev.Gaussian(s)(x), t, np.array(scale))
        assert all(np.all(np.isfinite(slope)) for slope in slopes)


def test_the_step_has_no_slope(differentiable: Any) -> None:
    """A jump has no useful derivative: JAX says 0, PyTorch leaves the result without a graph."""
    t = np.array([-1.0, 0.0])
    slopes = differentiable.gradients(lambda x, a: mev.Indicator(a)(x), t, np.array(0.1))
    assert all(np.all(slope == 0) for slope in slopes)


@pytest.mark.parametrize("make", [mev.StudentT, mev.Beta, lambda b: mev.Beta(2.0, b)], ids=["df", "a", "b"])
def test_a_slope_in_a_beta_parameter_is_refused_and_not_taken_for_zero(differentiable: Any, make: Any) -> None:
    with pytest.raises(ValueError, match="gradient with respect to a and b"):
        differentiable.gradients(lambda p: make(p)(differentiable.array([-1.0, 0.0])), np.array(2.0))
