"""Options that are not there: the estimate of the others, whatever stands in their places."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from maxmean import mev

OPTIONS, HEADS = 5, 3
numbers = arrays(np.float64, (2, OPTIONS), elements=st.integers(-6, 6).map(float))
spreads = arrays(np.float64, (2, OPTIONS), elements=st.sampled_from([0.25, 1.0, 4.0]))
some_there = arrays(np.bool_, OPTIONS).filter(lambda mask: bool(mask.any()))


def matrices(variances: Any) -> Any:
    """Covariance matrices with these diagonals and a correlation of one half."""
    deviations = np.sqrt(variances)
    return 0.5 * deviations[..., None] * deviations[..., None, :] + 0.5 * np.eye(OPTIONS) * variances[..., None]


@given(means=numbers, variances=spreads, there=some_there, paired=st.booleans())
@settings(max_examples=6)
def test_a_masked_estimate_is_that_of_the_options_that_are_there(
    kind64: Any, kernel: mev.Kernel, means: Any, variances: Any, there: Any, paired: bool
) -> None:
    """Also where the others hold no numbers at all."""
    covariances = matrices(variances)
    apart = mev.kernel_estimate(
        means[:, there],
        variances[:, there],
        kernel,
        covariances=covariances[:, there][:, :, there] if paired else None,
    )
    means, variances = np.where(there, means, np.nan), np.where(there, variances, -1.0)
    both = there[:, None] & there

    def estimate(means: Any, variances: Any, covariances: Any) -> Any:
        return mev.kernel_estimate(means, variances, kernel, covariances=covariances if paired else None, where=there)

    ours = kind64.call(estimate, means, variances, np.where(both, covariances, np.nan))
    np.testing.assert_allclose(ours, apart, rtol=0, atol=1e-12)


@given(means=numbers, variances=spreads)
@settings(max_examples=10)
def test_a_mask_of_all_changes_no_bit(kind: Any, means: Any, variances: Any) -> None:
    kernel = mev.Gaussian()
    whole = kind.call(lambda m, v: mev.kernel_estimate(m, v, kernel), means, variances)
    masked = kind.call(lambda m, v: mev.kernel_estimate(m, v, kernel, where=np.ones(OPTIONS, bool)), means, variances)
    np.testing.assert_array_equal(whole, masked)


def test_where_nothing_is_there_the_estimate_is_nan(kind: Any) -> None:
    there = np.array([[True, False], [False, False]])
    ours = kind.call(lambda m, v: mev.t_estimate(m, v, 0.1, where=there), np.ones((2, 2)), np.ones((2, 2)))
    np.testing.assert_array_equal(ours, [1.0, np.nan])


@pytest.mark.parametrize("paired", [False, True])
def test_targets_look_at_legal_actions_alone(kind64: Any, paired: bool) -> None:
    """One mask for each of four next states; against the same heads without the illegal actions, whose values are no numbers."""
    rng = np.random.default_rng(0)
    heads, legal = rng.normal(size=(4, HEADS, OPTIONS)), rng.random((4, OPTIONS)) < 0.5
    legal[:, 0] = True
    holes = np.where(legal[:, None], heads, np.array([np.nan, -np.inf, np.inf])[:, None])
    ours = kind64.call(lambda q: mev.ensemble_target(q, mev.Gaussian(), covariance=paired, where=legal), holes)
    for i, mask in enumerate(legal):
        alone = mev.ensemble_target(heads[i][:, mask], mev.Gaussian(), covariance=paired)
        np.testing.assert_allclose(ours[i], alone, rtol=0, atol=1e-12)


def test_gradients_are_finite_beside_what_is_not_there(differentiable: Any) -> None:
    means, there = np.array([1.0, 5.0, 2.0]), np.array([True, False, True])

    def estimate(means: Any) -> Any:
        return mev.kernel_estimate(means, np.ones(3), mev.Gaussian(), where=there)

    (slope,) = differentiable.gradients(estimate, means)
    assert np.isfinite(slope).all()
    assert slope[1] == 0.0
    assert slope.sum() == pytest.approx(1.0, abs=1e-5)


def test_a_mask_of_numbers_is_refused() -> None:
    with pytest.raises(
        mev.ArgumentError, match="a mask says True or False of each option, and this one has the type int64"
    ):
        mev.kernel_estimate([1.0, 2.0], [1.0, 1.0], where=[1, 0])
    with pytest.raises(mev.ArgumentError, match="this one has the type float32"):
        mev.ensemble_target(jnp.ones((2, 3)), where=jnp.ones(3))


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ([True, True], "there are 3, and where has 2"),
        (np.ones((4, 3), bool), r"these shapes do not broadcast: where \(4, 3\), "),
        ([[True], [True, False]], "a mask says True or False of each option, and this one"),
        ("yes", "a mask says True or False of each option, and this one"),
        ([None, True, True], "a mask says True or False of each option, and this one"),
    ],
)
def test_a_mask_of_another_shape_is_refused(kind: Any, where: Any, said: str) -> None:
    with pytest.raises(mev.ArgumentError, match=said):
        kind.call(lambda m: mev.kernel_estimate(m, np.ones(3), where=where), np.ones((2, 3)))
    with pytest.raises(mev.ArgumentError, match=said):
        kind.call(lambda q: mev.ensemble_target(q, where=where), np.ones((2, 5, 3)))


def test_one_word_for_all_actions_is_refused_in_an_ensemble(kind: Any) -> None:
    with pytest.raises(mev.ArgumentError, match="where must say True or False of each of the 3 actions"):
        kind.call(lambda q: mev.ensemble_target(q, where=True), np.ones((5, 3)))


def test_a_mask_may_be_of_another_library_than_the_values() -> None:
    torch = pytest.importorskip("torch")
    for where in (jnp.array([True, False]), torch.tensor([True, False])):
        found = mev.ensemble_target(np.array([[0.0, 4.0], [2.0, 2.0]]), mev.Indicator(0.5), where=where)
        np.testing.assert_array_equal(np.asarray(found), [0.0, 2.0])
