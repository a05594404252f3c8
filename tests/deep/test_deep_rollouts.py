"""Roll-outs on a problem whose values are known: against numbers worked out by hand, and against plain loops in Python."""

from __future__ import annotations

import operator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deep_toys import QUICK, SMALL, Place, Table, Toy, differences, filled_with, holding, program_of, start, with_traits
from maxmean.deep.agent import Agent
from maxmean.deep.agents import BDQN, DQN, AdaKEBDQN, AdaTEBDQN, MaxMinDQN
from maxmean.deep.core.measuring import BiasSummary, summary
from maxmean.deep.core.run import Purpose, Run, derive
from maxmean.deep.device import rollouts
from maxmean.deep.device.program import Program
from maxmean.deep.networks import Perceptron
from maxmean.envs.random import word_array

WALK = Table(
    # forward, back; the walk is over in place 3
    next=((1, 0), (2, 0), (3, 1), (3, 3)),
    reward=((1.0, 0.5), (2.0, 0.0), (4.0, -1.0), (0.0, 0.0)),
    terminal=(3,),
    step_limit=6,
)
DISCOUNT = 0.5
# Forward is greedy in both tables A and B. The returns of walking forward are 4 from place 2, 2 + 4/2 = 4 from place 1 and
# 1 + 4/2 = 3 from place 0. A's bias is 0.5 in place 0, 1 in place 1 and 0 in place 2: 0.5 on the whole walk.
A = [[3.5, 0.0], [5.0, 0.0], [4.0, 1.0], [0.0, 0.0]]
# B promises too little: its bias is -2 in place 0, -1 in place 1 and -3 in place 2.
B = [[1.0, 0.0], [3.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
# C goes back from place 1, to and fro until the walk is cut off.
C = [[1.0, 0.0], [0.0, 2.0], [3.0, 0.0], [0.0, 0.0]]


def program(agent: Agent) -> Toy:
    settings = replace(SMALL, discount=DISCOUNT, hidden=4, replay_capacity=12)
    return program_of(agent, environment=WALK, settings=settings, trunk=Perceptron(()))


def run_of(agent: Agent, tables: Any, places: list[tuple[int, int]], seed: int = 1) -> Run:
    """A run whose members hold these tables, and whose replay begins in these (place, time)."""
    prog = program(agent)
    run = start(prog, agent, seed)
    weights = holding(prog, tables)
    states = [Place(jnp.int8(p), jnp.uint16(t), jnp.uint16(0)) for p, t in places]
    return filled_with(prog, run._replace(learner=run.learner._replace(weights=weights)), states)


@partial(jax.jit, static_argnums=(0, 4), compiler_options=QUICK)
def bias_of(prog: Program, run: Run, number: int, filled: int, limit: int) -> BiasSummary:
    states = rollouts.replayed(prog, run, jnp.int32(number), jnp.int32(filled))
    return rollouts.estimate_bias(prog, run, jnp.int32(number), states, limit)


@partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def adapted(prog: Program, run: Run, number: int, filled: int) -> Run:
    return rollouts.adapt(prog, run, jnp.int32(number), jnp.int32(filled))


@partial(jax.jit, static_argnums=(0, 3), compiler_options=QUICK)
def return_of(prog: Program, run: Run, number: int, limit: int) -> jax.Array:
    return rollouts.greedy_return(prog, run, jnp.int32(number), limit)


class Pair(NamedTuple):
    value: float
    returned: float


def walk(table: Any, place: int, time: int, limit: int) -> list[Pair]:
    """A greedy episode: the value and the return of each visited pair."""
    values, rewards = [], []
    later = None
    while later is None:
        action = int(np.argmax(table[place]))
        values.append(float(table[place][action]))
        rewards.append(WALK.reward[place][action])
        place, time = WALK.next[place][action], time + 1
        if place in WALK.terminal:
            later = 0.0
        elif time == WALK.step_limit or len(values) == limit:
            later = max(table[place])
    pairs = []
    for value, reward in zip(reversed(values), reversed(rewards), strict=True):
        later = reward + DISCOUNT * later
        pairs.append(Pair(value, later))
    return pairs[::-1]


@partial(jax.jit, static_argnums=(0, 2, 5), compiler_options=QUICK)
def stored_states(prog: Program, run: Run, purpose: int, number: int, filled: int, lanes: int) -> Place:
    words = word_array(derive(run.key, purpose, number), jnp.uint32(0xFFFFFFFF), lanes)
    return prog.learning.stored(run, jnp.int32(filled), words).state


def begins(prog: Program, run: Run, purpose: int, number: int, filled: int, lanes: int) -> list[tuple[int, int]]:
    """The stored (place, time) from which the lanes of a roll-out start."""
    states = stored_states(prog, run, purpose, number, filled, lanes)
    return [(int(p), int(t)) for p, t in zip(states.place, states.time, strict=True)]


def test_the_bias_of_one_network_is_known() -> None:
    run = run_of(DQN(), [A], [(0, 0)] * 3)
    found = bias_of(program(DQN()), run, 0, 3, 30)
    assert float(found.mean) == 0.5
    assert float(found.error) == 0.0  # all four episodes are the same
    assert found.heads.tolist() == [0.5]
    assert int(found.pairs) == 12
    # Twelve pairs in fifths of 2, 2, 3, 2 and 3, by values: 3.5 four times (bias 0.5), 4 four times (0), 5 four times (1).
    np.testing.assert_allclose(found.values, [3.5, 3.5, 4.0, (4 + 5) / 2, 5.0], rtol=1e-6)
    np.testing.assert_allclose(found.quantiles, [0.5, 0.5, 0.0, (0 + 1) / 2, 1.0], rtol=1e-6)


def test_its_standard_error_is_that_of_a_ratio() -> None:
    """Episodes are the units. From place 0 they have three pairs whose biases add up to 1.5, from place 2 one without bias."""
    run = run_of(DQN(), [A], [(0, 0), (2, 0)])
    prog = program(DQN())
    number = next(n for n in range(20) if [p for p, _ in begins(prog, run, Purpose.BIAS, n, 2, 4)].count(0) == 1)
    found = bias_of(prog, run, number, 2, 30)
    # One long episode and three short ones: the mean is 1.5 / 6 = 1/4. The episodes' sums less 1/4 for each of their pairs are
    # 3/4, -1/4, -1/4, -1/4; their squares add up to 12/16, times 4/3 is 1, and its root over 6 pairs is 1/6.
    assert int(found.pairs) == 6
    assert float(found.mean) == pytest.approx(1 / 4, rel=1e-6)
    assert float(found.error) == pytest.approx(1 / 6, rel=1e-6)


@pytest.mark.parametrize("limit", [30, 3])
def test_the_bias_of_heads_is_each_ones_own(limit: int) -> None:
    """Heads that walk forward or to and fro, from places and times all over: against a loop in Python.

    Episodes end at place 3, are cut off at time 6 or after ``limit`` steps, and then go on with the value of their last state.
    """
    run = run_of(BDQN(3), [A, B, C], [(0, 0), (0, 3), (1, 5), (2, 0), (1, 2)])
    prog = program(BDQN(3))
    found = bias_of(prog, run, 7, 5, limit)
    starts = begins(prog, run, Purpose.BIAS, 7, 5, 9)
    assert len(set(starts)) > 2
    heads = [[walk(table, *s, limit) for s in starts[3 * k : 3 * k + 3]] for k, table in enumerate((A, B, C))]
    means, variances = [], []
    for episodes in heads:
        sums = np.array([sum(p.value - p.returned for p in pairs) for pairs in episodes])
        counts = np.array([len(pairs) for pairs in episodes])
        means.append(sums.sum() / counts.sum())
        variances.append(((sums - means[-1] * counts) ** 2).sum() * 3 / 2 / counts.sum() ** 2)
    np.testing.assert_allclose(found.heads, means, rtol=1e-5)
    np.testing.assert_allclose(found.mean, np.mean(means), rtol=1e-5)
    np.testing.assert_allclose(found.error, np.sqrt(np.sum(variances)) / 3, rtol=1e-5)
    pairs = [pair for episodes in heads for episode in episodes for pair in episode]
    assert int(found.pairs) == len(pairs)
    # Pairs of the same value may lie on either side of a fifth's edge; their values do not tell them apart.
    values = sorted(pair.value for pair in pairs)
    edges = [i * len(pairs) // 5 for i in range(6)]
    fifths = [values[a:b] for a, b in pairwise(edges)]
    np.testing.assert_allclose(found.values, [np.mean(f) for f in fifths], rtol=1e-5)
    sizes = [len(f) for f in fifths]
    total = sum(pair.value - pair.returned for pair in pairs)
    np.testing.assert_allclose(np.dot(found.quantiles, sizes), total, rtol=1e-4)


def test_by_hand_a_cut_episode_goes_on_with_its_last_value() -> None:
    # Head C is at place 1 one step before the time is up: it gets 0 for going back to place 0, whose value is 1, so that the
    # return is 1/2 and the bias 2 - 1/2. From place 0 it gets 1 on the way to place 1, which is worth 2: 1 - (1 + 2/2) = -1.
    for place, bias in ((1, 1.5), (0, -1.0)):
        found = bias_of(program(DQN()), run_of(DQN(), [C], [(place, 5)] * 3), 0, 3, 30)
        assert (int(found.pairs), float(found.mean)) == (4, bias)


def test_runs_that_are_measured_together_are_the_runs_alone() -> None:
    """Episodes of one, three and six steps (cut off) side by side: whoever is done waits, and nothing of it changes."""
    prog = program(DQN())
    runs = [run_of(DQN(), [A], [(2, 0)]), run_of(DQN(), [A], [(0, 0)]), run_of(DQN(), [C], [(0, 0)])]

    @partial(jax.jit, compiler_options=QUICK)
    def together(runs: Run) -> tuple[BiasSummary, jax.Array]:
        def measured(run: Run) -> tuple[BiasSummary, jax.Array]:
            states = rollouts.replayed(prog, run, jnp.int32(0), jnp.int32(1))
            bias = rollouts.estimate_bias(prog, run, jnp.int32(0), states, 30, ("runs",))
            return bias, rollouts.greedy_return(prog, run, jnp.int32(0), 30, ("runs",))

        return jax.vmap(measured, axis_name="runs")(runs)

    bias, returned = together(jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs))
    assert bias.pairs.tolist() == [4 * 1, 4 * 3, 4 * 6]
    for i, run in enumerate(runs):
        alone = bias_of(prog, run, 0, 1, 30)
        assert differences(jax.tree.map(operator.itemgetter(i), bias), alone) == []
        assert float(returned[i]) == float(return_of(prog, run, 0, 30))


def test_networks_act_on_their_smallest_values() -> None:
    # The smallest values of A and B are B's in places 0 to 2.
    run = run_of(MaxMinDQN(2), [A, B], [(0, 0)] * 3)
    found = bias_of(program(MaxMinDQN(2)), run, 0, 3, 30)
    assert float(found.mean) == (-2 - 1 - 3) / 3


def test_test_episodes_are_played_by_the_majority() -> None:
    # Two heads go forward: 1 + 2 + 4. Two go to and fro: 1 + 0 + 1 + 0 + 1 + 0 until the time is up. Nothing is discounted.
    prog = program(BDQN(3))
    for tables, returned in (([A, B, C], 7.0), ([C, A, C], 3.0)):
        assert float(return_of(prog, run_of(BDQN(3), tables, [(0, 0)]), 0, 30)) == returned
    assert float(return_of(prog, run_of(BDQN(3), [A, B, C], [(0, 0)]), 0, 2)) == 3.0  # no longer than the limit


def expected_differences(prog: Program, run: Run, tables: Any, number: int, filled: int, horizon: int) -> list[float]:
    """For each head the sum of its returns less its values, in ``horizon`` steps from stored states."""
    heads = len(tables)
    states = begins(prog, run, Purpose.ADAPT, number, filled, heads * (horizon + 1))
    sums = []
    for k, table in enumerate(tables):
        place, time = states[k]
        steps = []  # value, reward, whether it ended, what follows then
        for t in range(horizon):
            action = int(np.argmax(table[place]))
            value, reward = table[place][action], WALK.reward[place][action]
            place, time = WALK.next[place][action], time + 1
            terminated, truncated = place in WALK.terminal, time == WALK.step_limit
            steps.append((value, reward, terminated or truncated, 0.0 if terminated else max(table[place])))
            if terminated or truncated:
                place, time = states[heads * (t + 1) + k]
        later, total = steps[-1][3], 0.0
        for value, reward, ended, follows in reversed(steps):
            later = reward + DISCOUNT * (follows if ended else later)
            total += later - value
        sums.append(total)
    return sums


PLACES = [(0, 0), (0, 3), (1, 5), (2, 0), (1, 2)]


@pytest.mark.parametrize(
    ("agent", "direction"),
    [
        (AdaTEBDQN(1e-3, horizon=7, alpha=0.25, k=3), 1),
        (AdaTEBDQN(1e-3, horizon=4, alpha=0.25, k=3, per_head=True), 1),
        (AdaKEBDQN(1e-2, horizon=7, k=3), -1),
    ],
    ids=["ada-te", "ada-te per head", "ada-ke"],
)
def test_the_parameter_moves_by_the_summed_differences(agent: Agent, direction: int) -> None:
    assert agent.adaptation is not None
    prog, run = program(agent), run_of(agent, [A, B, C], PLACES)
    for number in (0, 1):
        sums = expected_differences(prog, run, [A, B, C], number, 5, agent.adaptation.horizon)
        move = np.array(sums) if agent.adaptation.per_head else np.mean(sums)
        after = adapted(prog, run, number, 5)
        expected = agent.parameter + direction * agent.adaptation.step_size * move
        np.testing.assert_allclose(after.traits.parameter, np.float32(expected), rtol=1e-5)
        assert not np.any(np.isclose(after.traits.parameter, agent.parameter, rtol=1e-4))
        assert after.traits.parameter.shape == ((3,) if agent.adaptation.per_head else ())
        assert differences(with_traits(after, parameter=run.traits.parameter), run) == []


def test_by_hand_values_that_promise_too_little_raise_alpha() -> None:
    """From place 2, each step of B ends the walk: it gets 4 for a promised 1, seven times over."""
    agent = AdaTEBDQN(1e-3, horizon=7, alpha=0.25, k=3)
    prog, run = program(agent), run_of(agent, [B] * 3, [(2, 0)])
    assert float(adapted(prog, run, 0, 1).traits.parameter) == pytest.approx(0.25 + 1e-3 * 7 * 3, rel=1e-6)
    # A knows that it will get 4: nothing moves.
    assert float(adapted(prog, run_of(agent, [A] * 3, [(2, 0)]), 0, 1).traits.parameter) == 0.25


@pytest.mark.parametrize(("level", "move"), [(-0.5, 3 - 0.5), (0.25, 3 + 0.25), (0.0, 3)])
def test_by_hand_a_level_asks_for_values_that_are_too_small_or_too_large(level: float, move: float) -> None:
    """As above, 4 for a promised 1: at -0.5 the values shall stay half their size below, so that alpha rises less."""
    agent = AdaTEBDQN(1e-3, horizon=7, alpha=0.25, k=3, level=level)
    prog, run = program(agent), run_of(agent, [B] * 3, [(2, 0)])
    assert float(adapted(prog, run, 0, 1).traits.parameter) == pytest.approx(0.25 + 1e-3 * 7 * move, rel=1e-6)


def test_alpha_stays_within_its_bounds_and_only_where_it_adapts() -> None:
    agent = AdaTEBDQN(1e-3, horizon=7, alpha=0.25, k=3)
    prog, low = program(agent), run_of(agent, [B] * 3, [(2, 0)])
    high = run_of(agent, [[[9.0, 0.0]] * 4] * 3, [(2, 0)])
    for run, bound in ((low, 0.5), (high, 1e-6)):
        assert float(
            adapted(prog, with_traits(run, adaptation_rate=jnp.float32(1.0)), 0, 1).traits.parameter
        ) == np.float32(bound)
        still = with_traits(run, adaptation_rate=jnp.float32(0.0), parameter=jnp.float32(0.7))
        assert float(adapted(prog, still, 0, 1).traits.parameter) == np.float32(0.7)


def test_an_agent_that_does_not_adapt_is_left_alone() -> None:
    run = run_of(DQN(), [A], [(0, 0)])
    assert rollouts.adapt(program(DQN()), run, jnp.int32(0), jnp.int32(1)) is run


def test_roll_outs_leave_the_run_as_it_is() -> None:
    agent = AdaTEBDQN(1e-3, horizon=7, alpha=0.25, k=3)
    prog, run = program(agent), run_of(agent, [A, B, C], PLACES)
    before = jax.tree.map(lambda leaf: np.array(leaf), run)
    bias_of(prog, run, 3, 5, 30)
    return_of(prog, run, 3, 30)
    adapted(prog, run, 3, 5)
    assert differences(run, before) == []


def test_roll_outs_start_only_where_the_run_has_been() -> None:
    """Of the rows beyond the filled ones nothing is seen."""
    run = run_of(DQN(), [A], [(0, 0)] * 2 + [(2, 0)] * 10)
    assert float(bias_of(program(DQN()), run, 5, 2, 30).mean) == 0.5


@pytest.mark.parametrize("lost", [jnp.nan, jnp.inf])
def test_values_that_are_no_numbers_have_no_fifths(lost: float) -> None:
    """A run that has diverged shows it everywhere, and does not look unbiased in any fifth."""
    values, returns, visited = jnp.ones((4, 2)), jnp.zeros((4, 2)), jnp.ones((4, 2), bool)
    sound = summary(values, returns, visited, 1)
    np.testing.assert_array_equal(sound.quantiles, 1.0)
    broken = summary(values.at[1, 1].set(lost), returns, visited, 1)
    assert not jnp.isfinite(broken.mean)
    assert jnp.all(jnp.isnan(broken.quantiles))
    assert jnp.all(jnp.isnan(broken.values))
