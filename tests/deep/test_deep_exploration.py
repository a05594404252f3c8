"""How agents explore, and how heads vote."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from deep_toys import CORRIDOR, differences, greedy_returns, program_of, short_runs, start, together
from maxmean.deep.agent import Agent
from maxmean.deep.agents import DQN, KEBDQN
from maxmean.deep.checks import AgentError
from maxmean.deep.core.acting import vote
from maxmean.deep.core.run import Run
from maxmean.deep.exploration import (
    EpsilonGreedy,
    Exploration,
    HeadPerEpisode,
    Optimistic,
    Thompson,
    as_exploration,
)
from seldom import slow

Q = jnp.array([0.5, 2.0, 2.0, -1.0])


@pytest.mark.parametrize(
    ("step", "epsilon"), [(0, 1.0), (25_000, 0.775), (50_000, 0.55), (100_000, 0.1), (5_000_000, 0.1)]
)
def test_epsilon_falls_linearly_and_then_stays(step: int, epsilon: float) -> None:
    assert float(EpsilonGreedy().epsilon(jnp.int32(step))) == pytest.approx(epsilon, rel=1e-6)
    assert float(HeadPerEpisode().epsilon(jnp.int32(step))) == 0.0


def test_epsilon_may_rise_and_stays_a_probability() -> None:
    rising = HeadPerEpisode(0.0, 0.5, 100)
    found = [float(rising.epsilon(jnp.int32(step))) for step in (0, 50, 100, 200, 10**6)]
    assert found == pytest.approx([0.0, 0.25, 0.5, 0.5, 0.5])


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


HEADS = jnp.array([[0.0, 3.0, 1.0], [0.0, 2.0, 9.0], [0.0, 5.0, 1.0]])


def test_epsilon_alone_follows_the_votes_of_the_heads() -> None:
    assert EpsilonGreedy().values(HEADS).tolist() == [0, 2, 1]
    assert int(vote(HEADS)) == 1


def test_optimism_adds_the_spread() -> None:
    """Means 0, 10/3, 11/3; standard deviations 0, sqrt(7/3), sqrt(64/3)."""
    for bonus, best in ((0.0, 2), (-1.0, 1), (1.0, 2)):
        expected = np.array([0, 10 / 3, 11 / 3]) + bonus * np.sqrt([0, 7 / 3, 64 / 3])
        values = Optimistic(bonus=bonus).values(HEADS)
        np.testing.assert_allclose(values, expected, rtol=1e-6)
        assert int(Optimistic(bonus=bonus).act(values, jnp.int32(0), jnp.zeros(2, jnp.uint32))) == best


def test_thompson_draws_a_head_for_each_step() -> None:
    """3,000 draws of three heads; chi-square, wrong once in a thousand."""
    words = jax.random.bits(jax.random.key(1), (3_000,), jnp.uint32)
    drawn = jax.vmap(lambda word: Thompson().head(jnp.int32(2), 3, word))(words)
    assert stats.chisquare(np.bincount(drawn, minlength=3)).pvalue > 0.001
    assert int(HeadPerEpisode().head(jnp.int32(2), 3, words[0])) == 2


def short_run(exploration: Exploration) -> Run:
    agent = KEBDQN(k=3, exploration=exploration)
    program = program_of(agent)
    return short_runs(program, together([start(program, agent, 1)]), 2)


@pytest.mark.slow
def test_without_epsilon_it_is_a_head_an_episode_bit_for_bit() -> None:
    """Whether it is left out, or compiled in and smaller than any random number but zero."""
    plain = short_run(HeadPerEpisode())
    assert differences(plain, short_run(HeadPerEpisode(1e-30, 1e-30))) == []
    assert differences(plain, short_run(HeadPerEpisode(0.5, 0.5))) != []


@pytest.mark.parametrize("exploration", ["optimistic", *slow("epsilon:1,0.1,500", "heads:0.1", "thompson")])
def test_an_agent_with_heads_finds_its_way_however_it_explores(exploration: str) -> None:
    """In 1,450 steps, two seeds each, to the larger reward of the corridor."""
    agent = KEBDQN(k=3, exploration=exploration)
    program = program_of(agent, environment=CORRIDOR)
    trained = short_runs(program, together([start(program, agent, seed) for seed in (1, 2)]), 28, quick=True)
    assert greedy_returns(program, trained).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("text", ["heads", "heads:0.05", "epsilon:1,0.05,10000", "thompson", "optimistic:0.1"])
def test_what_is_written_is_read_again(text: str) -> None:
    assert as_exploration(text).text == text
    assert as_exploration(as_exploration(text)) == as_exploration(text)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("head", "unknown exploration 'head'; did you mean 'heads'"),
        ("heads:x", "takes epsilon after the colon, such as heads:0.05.*not 'x'"),
        ("heads:0.1,0.2", "not '0.1,0.2'"),
        ("heads:nan", "not 'nan'"),
        ("heads:2", "HeadPerEpisode's initial is a probability, from 0 to 1, not 2.0"),
        (0.1, r"exploration must be one of maxmean.deep's \(HeadPerEpisode, EpsilonGreedy.*not 0.1"),
    ],
)
def test_explorations_that_make_no_sense_are_named(given: str, said: str) -> None:
    with pytest.raises(AgentError, match=said):
        KEBDQN(exploration=given)


def test_an_agent_without_heads_has_none_to_explore_with() -> None:
    with pytest.raises(AgentError, match="without heads"):
        DQN("heads")
    assert DQN("epsilon:0.1").exploration == EpsilonGreedy(0.1, 0.1)
    assert Agent("dqn", DQN().rule).exploration == EpsilonGreedy()


def test_a_probability_of_one_step_alone_is_a_mistake() -> None:
    with pytest.raises(AgentError, match=r"HeadPerEpisode\(0.05, 0.05\) goes on with them"):
        KEBDQN(exploration=HeadPerEpisode(0.05))
    assert KEBDQN(exploration=HeadPerEpisode(0.05, 0.0, 10)).exploration.final == 0.0
