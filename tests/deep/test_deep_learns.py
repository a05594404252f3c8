"""Every agent learns a small problem to its known optimum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from deep_toys import CORRIDOR, SMALL, greedy_returns, program_of, short_runs, start, together
from maxmean import envs
from maxmean.deep import Settings, train
from maxmean.deep.agent import Agent
from maxmean.deep.agents import AGENTS, BDQN, DDQN, DQN, KEBDQN, SCDQN, TEBDQN, AdaKEBDQN, AdaTEBDQN, MaxMinDQN
from maxmean.deep.exploration import EpsilonGreedy
from maxmean.envs import Environment
from seldom import slow

EXPLORES = EpsilonGreedy(1.0, 0.1, 500)
FAMILIES = [
    [DQN(EXPLORES), DDQN(EXPLORES), SCDQN(3.0, EXPLORES), MaxMinDQN(2, EXPLORES)],
    [BDQN(3), TEBDQN(0.1, 3), KEBDQN(k=3), AdaTEBDQN(horizon=8, k=3)],
    [AdaKEBDQN(horizon=8, k=3), AdaKEBDQN(horizon=8, k=3, paired=True)],
    [TEBDQN(0.1, 3, paired=True), KEBDQN(k=3, paired=True), AdaTEBDQN(horizon=8, k=3, paired=True)],
]
COPIES = 28
SEEDS = (1, 2)


def test_every_agent_of_the_registry_learns_here() -> None:
    assert {agent.name for family in FAMILIES for agent in family} == set(AGENTS)


@pytest.mark.parametrize(
    "agents", [*FAMILIES[:2], *slow(*FAMILIES[2:])], ids=lambda agents: "+".join(agent.name for agent in agents)
)
def test_every_agent_finds_the_way_to_the_larger_reward(agents: list[Agent]) -> None:
    """In 50 + 28 x 50 = 1,450 steps, with two seeds each: all test episodes end at the right end of the corridor."""
    program = program_of(*agents, environment=CORRIDOR, settings=replace(SMALL, test_episodes=8))
    runs = together([start(program, agent, seed) for agent in agents for seed in SEEDS])
    trained = short_runs(program, runs, COPIES, quick=True)
    assert trained.diverged.tolist() == [-1] * len(agents) * len(SEEDS)
    assert greedy_returns(program, trained).tolist() == [1.0] * len(agents) * len(SEEDS)


@pytest.mark.slow
def test_breakout_is_played_well_above_random() -> None:
    """DQN and KE-BDQN, 200,000 steps with the paper's settings: at the end, five times the return of random play."""
    game = envs.make("minatar/breakout")
    found = train(game, [DQN(), KEBDQN()], steps=200_000, settings=Settings(test_interval=20_000))
    last = found.records[found.records["step"] > 100_000]
    random = mean_random_return(game, episodes=500)
    assert 0.2 < random < 1.0
    assert (last.groupby("variant")["test_return"].mean() > 5 * random).all()


def mean_random_return(game: Environment, episodes: int) -> float:
    """The mean return of first episodes with random actions."""

    def episode(key: jax.Array) -> jax.Array:
        keys = jax.random.split(jax.random.fold_in(key, 1), 500)
        state, _ = game.reset(key)

        def step(carry: tuple[Any, jax.Array, jax.Array], key: jax.Array) -> tuple[Any, None]:
            state, alive, total = carry
            step_key, action_key = jax.random.split(key)
            out = game.step(step_key, state, jax.random.randint(action_key, (), 0, game.n_actions))
            over = out.terminated | out.truncated
            return (out.state, alive & ~over, total + jnp.where(alive, out.reward, 0.0)), None

        (_, _, total), _ = jax.lax.scan(step, (state, jnp.bool_(True), jnp.float32(0)), keys)
        return total

    return float(jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(0), episodes)).mean())
