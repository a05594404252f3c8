"""The ensemble's target: definition, invariances, and the same numbers in NumPy, JAX, PyTorch and the deep engine."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from maxmean import mev
from maxmean.deep import targets
from seldom import slow

SHAPE = (3, 4, 2)  # states, heads, actions
# Whole values: sums and differences are exact, so that rounding moves no action over the T-estimator's step.
whole_heads = arrays(np.float64, SHAPE, elements=st.integers(-6, 6).map(float))


def by_definition(heads: Any, kernel: mev.Kernel, covariance: bool = False) -> Any:
    """One state and one head after the other, from the scalar formula's parts."""
    found = np.empty(heads.shape[:-1])
    for index in np.ndindex(*heads.shape[:-2]):
        matrix = np.cov(heads[index], rowvar=False)
        for k, values in enumerate(heads[index]):
            found[(*index, k)] = mev.kernel_estimate(
                values, np.diag(matrix), kernel, covariances=matrix if covariance else None
            )
    return found


@pytest.mark.parametrize("covariance", [False, True])
@given(heads=whole_heads)
@settings(max_examples=10)
def test_every_kind_agrees_with_the_definition(kind: Any, covariance: bool, heads: Any) -> None:
    for kernel in (mev.Gaussian(0.84), mev.Triangle()):
        found = kind.call(mev.ensemble_target, heads, kernel, covariance=covariance)
        assert found.shape == SHAPE[:-1]
        np.testing.assert_allclose(found, by_definition(heads, kernel, covariance), rtol=0, atol=200 * kind.eps)


@given(heads=whole_heads)
@settings(max_examples=10)
def test_it_stays_between_a_heads_own_values(kind: Any, heads: Any) -> None:
    found = kind.call(mev.ensemble_target, heads, mev.Indicator(0.1))
    assert (found >= heads.min(axis=-1)).all()
    assert (found <= heads.max(axis=-1)).all()


@given(heads=whole_heads, order=st.permutations(range(SHAPE[1])), turned=st.booleans())
@settings(max_examples=10)
def test_the_order_of_heads_and_actions_does_not_matter(kind: Any, heads: Any, order: list[int], turned: bool) -> None:
    found = kind.call(mev.ensemble_target, heads, mev.Gaussian())
    shuffled = heads[:, order, :: -1 if turned else 1].copy()
    np.testing.assert_allclose(
        kind.call(mev.ensemble_target, shuffled, mev.Gaussian()), found[:, order], atol=200 * kind.eps
    )


@given(heads=whole_heads)
@settings(max_examples=10)
def test_level_one_half_is_the_maximum_and_heads_that_agree_too(kind: Any, heads: Any) -> None:
    assert (kind.call(mev.ensemble_target, heads, mev.Indicator(0.5)) == heads.max(axis=-1)).all()
    agreed = np.broadcast_to(heads[:, :1], heads.shape).copy()  # no variance: no doubt which action is best
    assert (kind.call(mev.ensemble_target, agreed, mev.Gaussian()) == agreed.max(axis=-1)).all()


@pytest.mark.parametrize("covariance", [False, *slow(True)])
def test_it_is_the_deep_engines_rule(kernel: mev.Kernel, covariance: bool) -> None:
    heads = jnp.asarray(np.random.default_rng(0).normal(size=(16, 5, 3)), jnp.float32)
    rule = targets.KernelBased(kernel, covariance)
    engine = jax.vmap(lambda each: rule(targets.NextValues(each, each), jnp.float32(0)))(heads)
    assert (mev.ensemble_target(heads, kernel, covariance=covariance) == engine).all()


def test_each_head_may_have_a_level_of_its_own() -> None:
    heads = np.random.default_rng(1).normal(size=(20, 3, 4))
    own = mev.ensemble_target(heads, mev.Indicator(np.array([[0.5], [0.2], [0.05]])))
    for k, alpha in enumerate((0.5, 0.2, 0.05)):
        np.testing.assert_array_equal(own[:, k], mev.ensemble_target(heads, mev.Indicator(alpha))[:, k])


def test_in_pytorch_it_has_gradients_and_stays_on_its_device() -> None:
    heads = torch.randn(4, 3, 2, generator=torch.Generator().manual_seed(0), requires_grad=True)
    mev.ensemble_target(heads, mev.Gaussian()).sum().backward()
    assert heads.grad is not None
    # A constant added to all values comes out as it went in.
    assert float(heads.grad.sum()) == pytest.approx(4 * 3, rel=1e-5)


@pytest.mark.parametrize("covariance", [False, True])
@pytest.mark.parametrize("kernel", [mev.Gaussian(), *slow(mev.Indicator(0.1))])
@pytest.mark.parametrize("scale", [*slow(1.0), 1_000.0])
def test_halves_are_computed_with_in_full(scale: float, kernel: mev.Kernel, covariance: bool) -> None:
    """The result is that of float32, rounded: also where the squares of half numbers would overflow."""
    values = scale * np.random.default_rng(0).normal(size=(64, 5, 4))
    for half in (torch.float16, torch.bfloat16):
        heads = torch.asarray(values).to(half)
        target = mev.ensemble_target(heads, kernel, covariance=covariance)
        assert torch.equal(target, mev.ensemble_target(heads.float(), kernel, covariance=covariance).to(half))
    narrow = jnp.asarray(values, jnp.bfloat16)
    target = mev.ensemble_target(narrow, kernel, covariance=covariance)
    full = mev.ensemble_target(narrow.astype(jnp.float32), kernel, covariance=covariance)
    assert target.dtype == jnp.bfloat16
    np.testing.assert_array_equal(target, full.astype(jnp.bfloat16))
    assert mev.ensemble_target(values.astype(np.float16), kernel, covariance=covariance).dtype == np.float16


@pytest.mark.parametrize("shape", [(3,), (1, 3), (5, 1, 3)])
def test_one_head_cannot_say_how_sure_it_is(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="two heads at least, not"):
        mev.ensemble_target(np.zeros(shape))
