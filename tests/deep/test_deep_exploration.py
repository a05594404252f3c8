"""How agents explore, and how heads vote."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from maxmean.deep.core.acting import vote
from maxmean.deep.exploration import EpsilonGreedy, HeadPerEpisode

Q = jnp.array([0.5, 2.0, 2.0, -1.0])


@pytest.mark.parametrize(
    ("step", "epsilon"), [(0, 1.0), (25_000, 0.775), (50_000, 0.55), (100_000, 0.1), (5_000_000, 0.1)]
)
def test_epsilon_falls_linearly_and_then_stays(step: int, epsilon: float) -> None:
    assert float(EpsilonGreedy().epsilon(jnp.int32(step))) == pytest.approx(epsilon, rel=1e-6)
    assert float(HeadPerEpisode().epsilon(jnp.int32(step))) == 0.0


def test_epsilon_may_be_constant() -> None:
    assert float(EpsilonGreedy(0.2, 0.2, 0).epsilon(jnp.int32(3))) == pytest.approx(0.2)


def test_a_random_action_is_taken_with_probability_epsilon() -> None:
    """10,000 actions at epsilon 0.55, a quarter of the random ones being the best one; chi-square, wrong once in a thousand."""
    words = jax.random.bits(jax.random.key(0), (10_000, 2), jnp.uint32)
    act = jax.jit(jax.vmap(lambda w: EpsilonGreedy().act(Q, jnp.int32(50_000), w)))
    counts = np.bincount(act(words), minlength=4)
    p = 0.55 / 4
    assert stats.chisquare(counts, 10_000 * np.array([p, 0.45 + p, p, p])).pvalue > 0.001


def test_without_exploration_the_first_best_action_is_taken() -> None:
    extremes = jnp.array([0, 2**32 - 1], jnp.uint32)
    for words in (extremes, extremes[::-1]):
        assert int(EpsilonGreedy(0.0, 0.0, 1).act(Q, jnp.int32(0), words)) == 1
        assert int(HeadPerEpisode().act(Q, jnp.int32(0), words)) == 1


def test_at_epsilon_one_every_action_is_random() -> None:
    largest = jnp.uint32(2**32 - 1)
    assert int(EpsilonGreedy(1.0, 1.0, 1).act(Q, jnp.int32(0), jnp.array([largest, largest]))) == 3


def test_the_majority_wins_and_in_a_draw_the_lowest_action() -> None:
    heads = np.array(
        [
            [[0.0, 0.0, 1.0], [0.0, 9.0, 1.0], [0.0, 0.0, 1.0], [5.0, 0.0, 1.0]],  # votes 0: 1, 1: 1, 2: 2
            [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],  # a draw between 1 and 2
            [
                [0.0, 0.0, 0.0],
                [0.0, 0.0, 1.0],
                [0.0, 1.0, 0.0],
                [0.0, 0.0, 0.0],
            ],  # an undecided head votes for the first
        ]
    )
    assert vote(jnp.asarray(heads)).tolist() == [2, 1, 0]
