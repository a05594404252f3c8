"""Target rules against numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from deep_toys import QUICK, same
from maxmean import mev
from maxmean.deep import targets
from maxmean.deep.targets import NextValues

# Two members, three actions.
TARGET = np.array([[1.0, 3.0, 2.0], [4.0, 0.0, 2.0]], np.float32)
ONLINE = np.array([[5.0, 1.0, 4.0], [0.0, 1.0, 1.5]], np.float32)

# Three heads, three actions. Across the heads the actions' values have
#   action 0: 0, 2, 4: mean 2, variance (4 + 0 + 4) / 2 = 4
#   action 1: 5, 3, 1: mean 3, variance (4 + 0 + 4) / 2 = 4, covariance with action 0: (-4 + 0 - 4) / 2 = -4
#   action 2: 1, 1, 1: variance 0, no covariance.
HEADS = np.array([[0.0, 5.0, 1.0], [2.0, 3.0, 1.0], [4.0, 1.0, 1.0]], np.float32)
# Statistics of each head, T = (value - best) / sqrt(variance + variance of the best):
#   head 0, best is action 1: -5 / sqrt(8) = -1.7678,   0,                  -4 / sqrt(4) = -2
#   head 1, best is action 1: -1 / sqrt(8) = -0.3536,   0,                  -2 / sqrt(4) = -1
#   head 2, best is action 0:  0,                      -3 / sqrt(8) = -1.0607, -3 / sqrt(4) = -1.5
T = np.array([[-5 / 8**0.5, 0, -2], [-1 / 8**0.5, 0, -1], [0, -3 / 8**0.5, -1.5]])


def values(rule: targets.Rule, parameter: Any = 0.0, target: Any = TARGET, online: Any = ONLINE) -> Any:
    q = NextValues(jnp.asarray(target), jnp.asarray(online))
    return np.asarray(jax.jit(rule, compiler_options=QUICK)(q, jnp.asarray(parameter, jnp.float32)))


def test_maximum_is_each_members_largest_target_value() -> None:
    assert values(targets.maximum).tolist() == [3.0, 4.0]


def test_double_values_the_online_choice_by_the_target() -> None:
    # The online network prefers action 0 for the first member and action 2 for the second.
    assert values(targets.double).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("beta", "expected"),
    [
        (0.0, [3.0, 4.0]),  # the target's own choice: the maximum
        (0.5, [1.0, 4.0]),  # halves: [3, 2, 3] draws and the first wins, [2, 0.5, 1.75]
        (1.0, [1.0, 2.0]),  # the online choice: Double DQN
        (3.0, [1.0, 0.0]),  # 3 online - 2 target: [13, -3, 8] and [-8, 3, 0.5]; the target's values of those actions
    ],
)
def test_self_correcting_looks_beyond_the_online_values(beta: float, expected: list[float]) -> None:
    assert values(targets.self_correcting, beta).tolist() == expected


def test_self_correcting_may_have_a_beta_for_each_member() -> None:
    assert values(targets.self_correcting, [0.0, 1.0]).tolist() == [3.0, 2.0]
    # Also where there are as many members as actions, so that nothing would complain about the wrong axis.
    assert values(targets.self_correcting, [0.0, 1.0], TARGET[:, :2], ONLINE[:, 1:]).tolist() == [3.0, 0.0]


def test_maxmin_is_the_best_of_the_worst() -> None:
    # The smallest values of the actions are 1, 0, 2.
    assert values(targets.maxmin).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("alpha", "expected"),
    [
        # The quantiles are -1.2816, -0.6745, -1.6449: T below is left out.
        (0.1, [5.0, (2 + 3 + 1) / 3, (4 + 1) / 2]),
        (0.25, [5.0, (2 + 3) / 2, 4.0]),
        (0.05, [5.0, 2.0, (4 + 1 + 1) / 3]),
        (0.03, [(0 + 5) / 2, 2.0, 2.0]),  # -1.8808 lets -1.7678 pass
        (0.5, [5.0, 3.0, 4.0]),
        ([0.5, 0.25, 0.1], [5.0, 2.5, 2.5]),  # each head its own
    ],
)
def test_test_based_averages_what_the_test_does_not_reject(alpha: Any, expected: list[float]) -> None:
    np.testing.assert_allclose(values(targets.LevelBased(), alpha, HEADS), expected, rtol=1e-6)


def test_with_covariances_the_statistic_knows_that_the_heads_move_apart() -> None:
    # Actions 0 and 1 have covariance -4, so their difference has the variance 4 + 4 + 8 = 16: T is -5/4, -1/4 and -3/4;
    # the third action's statistics stay -2, -1 and -1.5. At 0.1 the quantile is -1.2816.
    expected = [(0 + 5) / 2, 2.0, (4 + 1) / 2]
    np.testing.assert_allclose(values(targets.LevelBased(covariance=True), 0.1, HEADS), expected, rtol=1e-6)
    # And as Gaussian weights:
    weights = np.asarray(stats.norm.cdf([[-1.25, 0, -2], [-0.25, 0, -1], [0, -0.75, -1.5]]))
    expected = ((weights * HEADS).sum(1) / weights.sum(1)).tolist()
    np.testing.assert_allclose(values(targets.KernelBased(covariance=True), 0.0, HEADS), expected, rtol=1e-5)
    np.testing.assert_allclose(values(targets.GaussianBased(covariance=True), 1.0, HEADS), expected, rtol=1e-5)


def test_heads_whose_actions_do_not_vary_together_need_no_pairing() -> None:
    """With sample covariances of exactly zero, and of nearly zero for many independent heads: T* is T."""
    apart = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], np.float32)  # orthogonal columns
    heads = apart * np.array([2.0, 0.5, 1.0], np.float32) + np.array([0.0, 1.0, 0.5], np.float32)
    for rule in (targets.LevelBased, targets.GaussianBased):
        for parameter in (0.1, 0.3):
            both = [values(rule(covariance), parameter, heads) for covariance in (False, True)]
            np.testing.assert_allclose(both[0], both[1], rtol=1e-6)
    gaps = []
    for k in (10, 100, 10_000):
        heads = np.random.default_rng(k).normal(size=(k, 4)).astype(np.float32)
        apart, paired = (values(targets.GaussianBased(covariance), 1.0, heads, heads) for covariance in (False, True))
        gaps.append(np.abs(apart - paired).max())
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.02  # covariances of 0.01 change a variance of 2 by a percent, and T by half of that


def test_what_heads_share_counts_only_where_they_are_not_paired() -> None:
    """Heads that agree on every difference between the actions: the paired statistic knows the best one, the other does not."""
    shared = np.linspace(-10, 10, 5, dtype=np.float32)[:, None] + np.array([0.0, 1.0, 0.5], np.float32)
    np.testing.assert_allclose(values(targets.LevelBased(True), 0.1, shared), shared.max(axis=1), rtol=1e-6)
    np.testing.assert_allclose(values(targets.LevelBased(False), 0.1, shared), shared.mean(axis=1), atol=1e-6)


def test_the_gaussian_kernel_weights_by_the_normal_distribution() -> None:
    for scale in (1.0, 0.5):
        weights = stats.norm.cdf(T / scale)
        expected = (weights * HEADS).sum(1) / weights.sum(1)
        found = values(targets.KernelBased(mev.Gaussian(scale)), 0.0, HEADS)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        np.testing.assert_allclose(values(targets.GaussianBased(), scale, HEADS), expected, rtol=1e-5)
    own = values(targets.GaussianBased(), [1.0, 0.5, 1.0], HEADS)
    one, half = (values(targets.GaussianBased(), scale, HEADS) for scale in (1.0, 0.5))
    np.testing.assert_allclose(own, [one[0], half[1], one[2]], rtol=1e-6)


def test_every_kernel_stays_between_the_least_and_the_largest_value(kernel: mev.Kernel) -> None:
    rng = np.random.default_rng(0)
    heads = rng.normal(size=(50, 10, 6)).astype(np.float32)
    heads *= 10.0 ** rng.integers(-6, 7, size=(50, 1, 1))
    heads[0] = 0.0  # no value, no variance
    heads[1] = 3.5  # one value for all
    heads[2, :, 1:] = heads[2, :, :1]  # actions that do the same
    heads[3] = heads[3, :1]  # heads that agree
    heads[4] += 1e6
    rule = targets.KernelBased(kernel, covariance=isinstance(kernel, (mev.Indicator, mev.Gaussian)))
    found = jax.jit(jax.vmap(lambda h: rule(NextValues(h, h), jnp.float32(0))), compiler_options=QUICK)(heads)
    assert found.shape == (50, 10)
    assert np.isfinite(found).all()
    slack = 4e-7 * np.abs(heads).max(axis=-1)
    assert (found >= heads.min(axis=-1) - slack).all()
    assert (found <= heads.max(axis=-1) + slack).all()


def test_alpha_one_half_is_the_maximum_bit_for_bit() -> None:
    heads = np.random.default_rng(1).normal(size=(200, 5, 6)).astype(np.float32)
    heads[:50, :, 1] = heads[:50].max(axis=-1)  # with ties
    for rule in (targets.LevelBased(), targets.LevelBased(covariance=True)):
        found = jax.jit(jax.vmap(lambda h, rule=rule: rule(NextValues(h, h), jnp.float32(0.5))))(heads)
        assert same(found, heads.max(axis=-1))


def test_value_of_takes_the_chosen_actions() -> None:
    chosen = targets.value_of(jnp.asarray(HEADS), jnp.array([1, 0, 2]))
    assert chosen.tolist() == [5.0, 2.0, 1.0]
    strange = jnp.array([[jnp.nan, 1.0, jnp.inf]])
    assert targets.value_of(strange, jnp.array([1])).tolist() == [1.0]  # the others do not matter
