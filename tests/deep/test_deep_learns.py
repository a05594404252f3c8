"""Every agent learns a small problem to its known optimum."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import pytest

from deep_toys import CORRIDOR, QUICK, SMALL, program_of, short_runs, start, together
from maxmean.deep import rollouts
from maxmean.deep.agents import BDQN, DDQN, DQN, KEBDQN, SCDQN, TEBDQN, AdaKEBDQN, AdaTEBDQN, Agent, MaxMinDQN
from maxmean.deep.exploration import EpsilonGreedy
from maxmean.deep.program import Program, Run

EXPLORES = EpsilonGreedy(1.0, 0.1, 500)
FAMILIES = [
    [DQN(EXPLORES), DDQN(EXPLORES), SCDQN(3.0, EXPLORES), MaxMinDQN(2, EXPLORES)],
    [BDQN(3), TEBDQN(0.1, 3), KEBDQN(k=3), AdaTEBDQN(horizon=8, k=3)],
    [AdaKEBDQN(horizon=8, k=3)],
]
COPIES = 28
SEEDS = (1, 2)


@partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def returns(program: Program, runs: Run) -> jax.Array:
    return jax.vmap(lambda run: rollouts.greedy_return(program, run, jnp.int32(0), 30))(runs)


@pytest.mark.parametrize("agents", FAMILIES, ids=lambda agents: "+".join(agent.name for agent in agents))
def test_every_agent_finds_the_way_to_the_larger_reward(agents: list[Agent]) -> None:
    """In 50 + 28 x 50 = 1,450 steps, with two seeds each: all test episodes end at the right end of the corridor."""
    program = program_of(*agents, environment=CORRIDOR, settings=replace(SMALL, test_episodes=8))
    runs = together([start(program, agent, seed) for agent in agents for seed in SEEDS])
    trained = short_runs(program, runs, COPIES, quick=True)
    assert trained.diverged.tolist() == [-1] * len(agents) * len(SEEDS)
    assert returns(program, trained).tolist() == [1.0] * len(agents) * len(SEEDS)
