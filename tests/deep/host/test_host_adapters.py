"""What is learned from: terminated and truncated, every way of beginning anew, and what lies in the replay afterwards."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from host_toys import LENGTH, Counter, small
from maxmean import DQN, KEBDQN
from maxmean.deep.host import HostAgent
from seldom import slow


def stored(agent: HostAgent) -> Any:
    """The transitions in the replay, oldest first."""
    driver = agent.driver
    rows = driver.run.replay[: driver.clock.stored]
    return jax.vmap(driver.program.learning.layout.unpack)(rows)


def check_counter(transitions: Any) -> None:
    """A counter shows (episode, time): time goes up by one, never across an episode, and only the right ends are ends."""
    begin, end = np.asarray(transitions.state), np.asarray(transitions.next_state)
    np.testing.assert_array_equal(end[:, 1], begin[:, 1] + 1)
    np.testing.assert_array_equal(end[:, 0], begin[:, 0])
    np.testing.assert_array_equal(transitions.reward, begin[:, 1])
    at_end = end[:, 1] == LENGTH
    np.testing.assert_array_equal(transitions.terminated, at_end & (begin[:, 0] % 2 == 0))
    assert at_end.any()


def test_terminated_cuts_the_bootstrap_and_truncated_does_not() -> None:
    """Every second episode of the counter is truncated: its last transition keeps its discount."""
    agent = DQN(Counter(), eval_env=Counter(), **small(replay_capacity=200)).learn(60)
    transitions = stored(agent)
    check_counter(transitions)
    batch = agent.driver.program.learning.batch(transitions)
    ended = np.asarray(transitions.next_state)[:, 1] == LENGTH
    even = np.asarray(transitions.state)[:, 0] % 2 == 0
    np.testing.assert_array_equal(batch.discounts == 0.0, ended & even)
    assert (ended & ~even).any()


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name.lower())
def test_every_way_of_beginning_anew_stores_the_same(mode: AutoresetMode) -> None:
    """Three counters of which each is a step behind the one before: all their steps are stored, and nothing else."""
    env = SyncVectorEnv([partial(Counter, i) for i in range(3)], autoreset_mode=mode)
    agent = KEBDQN(env, eval_env=Counter(), k=2, **small(replay_capacity=500)).learn(90)
    transitions = stored(agent)
    check_counter(transitions)
    # Every counter went through whole episodes: of each, all times before the last were seen equally often, within one.
    times = np.bincount(np.asarray(transitions.state)[:, 1].astype(int), minlength=LENGTH)
    assert times.max() - times.min() <= 3
    assert agent.num_timesteps == len(transitions.reward)


def test_what_only_began_anew_does_not_count() -> None:
    """In the next-step mode a call after an end is no step: fewer transitions than calls times environments."""
    env = SyncVectorEnv([Counter, Counter], autoreset_mode=AutoresetMode.NEXT_STEP)
    agent = DQN(env, eval_env=Counter(), **small()).learn(2 * LENGTH * 3)
    calls = agent.driver.clock.calls - 1  # one of them before the first step
    assert agent.num_timesteps == 2 * (calls - calls // (LENGTH + 1))


@pytest.mark.parametrize("n", [*slow(1), 2])
def test_a_full_replay_drops_the_oldest_and_keeps_whole_transitions(n: int) -> None:
    """Also right after a message of environments that only began anew."""
    env = SyncVectorEnv([partial(Counter, i) for i in range(n)], autoreset_mode=AutoresetMode.NEXT_STEP)
    agent = DQN(env, eval_env=Counter(), **small(replay_capacity=37)).learn(150)
    for _ in range(2 * LENGTH):  # after every step: what only began anew would lie there until the next one
        agent.driver.step()
        check_counter(jax.vmap(agent.driver.program.learning.layout.unpack)(agent.driver.run.replay))


def test_a_reused_array_does_no_harm() -> None:
    """An environment that writes every observation into the same array is learned from as one that does not."""
    agents = [DQN(env, eval_env=Counter(), **small()).learn(60) for env in (Counter(), Counter(reuse=True))]
    first, second = (np.asarray(agent.driver.run.replay) for agent in agents)
    np.testing.assert_array_equal(first, second)


def test_train_returns_are_those_of_whole_episodes() -> None:
    agent = DQN(Counter(), eval_env=Counter(), **small()).learn(10 * LENGTH)
    assert agent.table["train_return"].iloc[-1] == sum(range(LENGTH))
    assert agent.table["test_return"].iloc[-1] == sum(range(LENGTH))


def test_the_first_action_need_not_be_zero() -> None:
    class Shifted(Counter):
        action_space = gymnasium.spaces.Discrete(2, start=5)

        def step(self, action: Any) -> Any:
            assert action in (5, 6)
            return super().step(action)

    agent = DQN(Shifted(), eval_env=Shifted(), **small()).learn(40)
    assert agent.predict(np.zeros(2, np.float32))[0] in (5, 6)
