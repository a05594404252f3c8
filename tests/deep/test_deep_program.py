"""Whole short runs: what is stored, what is the same as what bit for bit, and what a run costs in memory."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from deep_toys import (
    CORRIDOR,
    QUICK,
    Table,
    Toy,
    apart,
    collect,
    differences,
    learn,
    program_of,
    short,
    short_run,
    short_runs,
    start,
    structure,
    together,
    with_traits,
)
from maxmean.deep import targets
from maxmean.deep.agent import Agent
from maxmean.deep.agents import BDQN, DDQN, DQN, SCDQN, TEBDQN, AdaTEBDQN, MaxMinDQN
from maxmean.deep.core.family import Family
from maxmean.deep.core.replay import Transition
from maxmean.deep.core.run import Run
from maxmean.deep.core.update import Batch, Update
from maxmean.deep.device import block
from maxmean.deep.device.program import Program
from maxmean.deep.exploration import HeadPerEpisode
from maxmean.deep.settings import Settings
from maxmean.deep.targets import value_of
from maxmean.envs import Breakout, Environment

MAX_HEADS = Agent("max-heads", targets.maximum, HeadPerEpisode(), members=3)
PLAIN = [DQN(), DDQN(), SCDQN(1.0), MaxMinDQN(1)]
HEADS = [BDQN(3), TEBDQN(0.5, 3), MAX_HEADS]
RATES = [1e-3, 2e-3, 1e-3, 5e-4]
ENVIRONMENTS = [
    pytest.param(CORRIDOR, id="corridor"),
    pytest.param(Breakout(), id="breakout", marks=pytest.mark.slow),  # each program takes seconds to compile
]


def stored(program: Program, run: Run, begin: int, end: int) -> Transition:
    return jax.tree.map(np.asarray, unpacked(program, np.asarray(run.replay)[begin:end]))


@partial(jax.jit, static_argnums=0)
def unpacked(program: Program, rows: jax.Array) -> Transition:
    return jax.vmap(program.learning.layout.unpack)(rows)


def unlike(a: Run, b: Run) -> list[str]:
    """Where two runs differ, other than in the names of what they follow."""
    return differences(a, with_traits(b, rule=a.traits.rule, parameter=a.traits.parameter))


def finished(agent: Agent, program: Toy) -> Run:
    return short_run(program, start(program, agent))


# What is the same, bit for bit.


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_special_cases_are_the_same_run(environment: Environment) -> None:
    """Weights, moments, replay and tally after 250 steps."""

    def in_family(agent: Agent, family: list[Agent]) -> Run:
        return finished(agent, program_of(*family, environment=environment))

    def alone(agent: Agent) -> Run:
        return in_family(agent, [agent])

    dqn, ddqn = alone(DQN()), in_family(DDQN(), PLAIN)
    assert int(dqn.tally.updates) == 200
    assert int(dqn.tally.episodes) > 10
    assert unlike(alone(MaxMinDQN(1)), dqn) == []
    assert unlike(in_family(SCDQN(1.0), PLAIN), ddqn) == []
    assert unlike(in_family(TEBDQN(0.5, 3), HEADS), in_family(MAX_HEADS, HEADS)) == []
    assert unlike(dqn, ddqn) != []


@dataclass(frozen=True)
class UnmaskedUpdate(Update):
    """The loss of heads that know of no masks."""

    def loss(
        self, values: jax.Array, batch: Batch, targets: jax.Array, masks: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        q = value_of(values, batch.actions[:, None])
        return jnp.sum(jnp.mean(jnp.square(q - targets), axis=0)), jnp.mean(q)


@dataclass(frozen=True)
class Unmasked(Toy):
    @cached_property
    def update(self) -> Update:
        return UnmaskedUpdate(self.family, self.network, self.settings)


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_masks_with_probability_one_are_no_masks(environment: Environment) -> None:
    heads = program_of(*HEADS, environment=environment)
    without = Unmasked(*(getattr(heads, field.name) for field in fields(heads)))
    assert differences(finished(BDQN(3), heads), finished(BDQN(3), without)) == []


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_an_agent_in_company_is_the_agent_alone(environment: Environment) -> None:
    """A program with several rules gives each run what a program with its rule alone does.

    Only the sum of the losses, which nothing depends on, may have another last bit: the compiler makes a loop of its own for each
    rule, and adds up the batch in another order in some of them.
    """
    beside = finished(DQN(), program_of(*PLAIN, environment=environment))
    alone = finished(DQN(), program_of(DQN(), environment=environment))
    np.testing.assert_allclose(beside.tally.loss, alone.tally.loss, rtol=1e-6)
    assert unlike(beside, alone._replace(tally=alone.tally._replace(loss=beside.tally.loss))) == []


def test_runs_side_by_side_are_the_runs_alone() -> None:
    """Four variants in one program are four programs, up to rounding.

    Side by side XLA adds up the batch in another order (the biases' gradients differ first), so that the last bits differ, and
    only they: 50 updates later the weights agree to four digits, and the same has been done and stored.
    """
    program = program_of(*PLAIN)
    runs = [start(program, agent, seed, rate) for seed, (agent, rate) in enumerate(zip(PLAIN, RATES, strict=True))]
    four = short_runs(program, together(runs), 1)
    for i, run in enumerate(runs):
        alone, beside = short_run(program, run, 1), apart(four, i)
        assert differences(alone.replay, beside.replay) == []
        for x, y in zip(jax.tree.leaves(alone.learner), jax.tree.leaves(beside.learner), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def test_a_run_does_not_notice_its_neighbours() -> None:
    """In one program, bit for bit, whatever their agents, seeds and learning rates are; they may even diverge."""
    program = program_of(*PLAIN)
    runs = [start(program, agent, seed, rate) for seed, (agent, rate) in enumerate(zip(PLAIN, RATES, strict=True))]
    well = short_runs(program, together(runs))
    others = [start(program, SCDQN(1.0), 8, 1e-2), start(program, DQN(), 9, 1e6)]
    beside = short_runs(program, together([runs[0], *others, runs[3]]))
    assert int(beside.diverged[2]) >= 50
    assert beside.diverged.tolist()[:2] == [-1, -1]
    for i in (0, 3):
        assert differences(apart(well, i), apart(beside, i)) == []


@pytest.mark.slow
def test_runs_one_after_the_other_are_the_runs_alone() -> None:
    program = program_of(*PLAIN)
    runs = [start(program, agent, seed) for seed, agent in enumerate(PLAIN)]
    mapped = jax.jit(lambda runs: jax.lax.map(lambda run: short(program, run), runs))(together(runs))
    for i, run in enumerate(runs):
        assert differences(apart(mapped, i), short_run(program, run)) == []


def test_a_run_cut_into_pieces_is_the_same_run() -> None:
    agent = BDQN(3)
    program = program_of(agent)
    begin = collect(program, start(program, agent), 0, 50)
    whole, pieces = learn(program, begin, 50, 60), begin
    for step in range(50, 110, 20):
        pieces = learn(program, pieces, step, 20)
    assert differences(whole, pieces) == []


def test_steps_in_rounds_are_the_same_steps() -> None:
    """Two rounds of twenty, whose length is compiled, or rounds of seven, and what is left over one at a time."""
    agent = BDQN(3)
    program = program_of(agent)
    begin = together([collect(program, start(program, agent, seed), 0, 50) for seed in range(2)])
    found = []
    for length in (1, 7, 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(block, "ROUND", length)
            take = block.Compiled(program, batched=True, limit=100).learn
        after, number = take(jax.tree.map(jnp.copy, begin), jnp.int32(50), 40)
        assert number == 90
        found.append(after)
    assert differences(found[0], found[1]) == differences(found[0], found[2]) == []


def test_a_run_begins_as_its_key_says() -> None:
    program = program_of(TEBDQN(0.2, 3), AdaTEBDQN(k=3))
    traits = program.family.traits(TEBDQN(0.2, 3), 0.01)
    create = jax.jit(program.create, compiler_options=QUICK)
    run, again, other = (create(jnp.array([0, seed], jnp.uint32), traits) for seed in (1, 1, 2))
    assert differences(run, again) == []
    assert not np.allclose(run.learner.weights.hidden.weights, other.learner.weights.hidden.weights)
    assert differences(run.learner.weights, run.learner.target) == []
    assert not np.any(run.replay)
    assert [run.traits.parameter, run.traits.adaptation_rate, run.diverged] == [np.float32(0.2), 0.0, -1]
    assert structure(run) == structure(start(program, AdaTEBDQN(k=3)))
    assert float(program.family.traits(AdaTEBDQN(k=3), 0.01).adaptation_rate) == np.float32(1e-4)


# What is stored.

LOOP = Table(
    # Either action goes on; the second one leaves from the last place.
    next=((1, 0), (2, 1), (0, 3), (3, 3)),
    reward=((1.0, 2.0), (3.0, 4.0), (5.0, 6.0), (0.0, 0.0)),
    terminal=(3,),
    step_limit=5,
)


@pytest.fixture(scope="module")
def looped() -> tuple[Program, Transition]:
    program = program_of(BDQN(3, mask=0.5), environment=LOOP)
    return program, stored(program, collect(program, start(program, BDQN(3, mask=0.5)), 0, 400), 0, 400)


def test_transitions_are_those_of_the_environment(looped: tuple[Program, Transition]) -> None:
    """Each follows from the one before, and what follows an end is a new episode, not part of the old one."""
    _, t = looped
    ends = truncations = 0
    for i in range(400):
        place, action = t.state.place[i], t.action[i]
        assert t.next_state.place[i] == LOOP.next[place][action]
        assert t.reward[i] == LOOP.reward[place][action]
        assert t.terminated[i] == (t.next_state.place[i] == 3)
        assert t.next_state.time[i] == t.state.time[i] + 1
        assert t.next_state.episode[i] == t.state.episode[i]
        truncated = t.next_state.time[i] == 5 and not t.terminated[i]
        ends, truncations = ends + bool(t.terminated[i]), truncations + bool(truncated)
        if i + 1 < 400:
            new = t.terminated[i] or truncated
            expected = (0, 0, t.state.episode[i] + 1) if new else [leaf[i] for leaf in t.next_state]
            assert [leaf[i + 1] for leaf in t.state] == list(expected)
    assert ends > 10
    assert truncations > 10


def test_only_terminated_transitions_have_no_future(looped: tuple[Program, Transition]) -> None:
    program, transitions = looped
    batch = jax.jit(program.learning.batch)(transitions)
    assert np.array_equal(batch.discounts, np.where(transitions.terminated, np.float32(0), np.float32(0.9)))
    assert np.array_equal(np.argmax(batch.next_observations, axis=1), transitions.next_state.place)
    assert np.array_equal(np.argmax(batch.observations, axis=1), transitions.state.place)


def test_masks_and_random_actions_have_their_probabilities(looped: tuple[Program, Transition]) -> None:
    """400 x 3 masks with p = 1/2, of which pairs of heads are independent; 400 even actions. Five tests, each at level 0.001."""
    program, transitions = looped
    masks = np.asarray(jax.jit(program.learning.batch)(transitions).masks)
    assert masks.shape == (400, 3)
    assert stats.binomtest(int(masks.sum()), 1200, 0.5).pvalue > 1e-3
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert stats.binomtest(int((masks[:, a] & masks[:, b]).sum()), 400, 0.25).pvalue > 1e-3
    assert stats.binomtest(int(transitions.action.sum()), 400, 0.5).pvalue > 1e-3


def test_the_replay_wraps_around() -> None:
    """After 550 steps the first 50 of 500 rows are new, and the others are as they were after 450."""
    program = program_of(DQN())
    run = start(program, DQN())
    before, after = short_run(program, run, 8), short_run(program, run, 10)
    old, new = np.asarray(before.replay), np.asarray(after.replay)
    assert np.array_equal(old[50:450], new[50:450])
    assert not np.any(old[450:])
    assert np.any(new[450:], axis=1).all()
    assert (old[:50] != new[:50]).any(axis=1).all()


def test_learning_reads_only_what_is_stored() -> None:
    """Rows beyond the filled ones may hold anything."""
    agent = BDQN(3)
    program = program_of(agent)
    run = collect(program, start(program, agent), 0, 50)
    rows = np.array(run.replay)
    rows[110:] = 0x7FC00000  # not a number
    strange = run._replace(replay=rows)
    one, other = learn(program, run, 50, 60), learn(program, strange, 50, 60)
    assert differences(one._replace(replay=None), other._replace(replay=None)) == []


# How it acts.


def test_a_head_acts_for_a_whole_episode() -> None:
    """It is drawn anew at an end only, acts greedily by its own values, and in 120 steps each of three gets its turn."""
    agent = BDQN(3)
    program = program_of(agent)
    run = collect(program, start(program, agent), 0, 50)
    values = jax.jit(program.network.values)
    seen = set()
    for step in range(50, 170):
        before, run = run, learn(program, run, step, 1)
        if int(run.tally.episodes) == int(before.tally.episodes):
            assert int(run.episode.member) == int(before.episode.member)
        seen.add(int(run.episode.member))
        sight = np.eye(5, dtype=np.float32)[[before.episode.state.place]]
        q = values(before.learner.weights, sight)[0, int(before.episode.member)]
        taken = int(stored(program, run, step, step + 1).action[0])
        assert float(q[taken]) >= float(q.max()) - 1e-6
    assert seen == {0, 1, 2}


# What goes wrong.


def test_divergence_is_noted_when_it_happens() -> None:
    agent = BDQN(3)
    program = program_of(agent)
    run = collect(program, start(program, agent, learning_rate=1e6), 0, 50)
    losses = []
    for step in range(50, 90):
        run = learn(program, run._replace(tally=jax.tree.map(jnp.zeros_like, run.tally)), step, 1)
        losses.append(float(run.tally.loss))
    first = int(np.argmin(np.isfinite(losses)))
    assert not np.isfinite(losses[first])
    assert first > 0
    assert int(run.diverged) == 50 + first


# What it costs.


def test_the_replay_is_never_copied() -> None:
    """With the paper's settings, learning needs far less room than the replay, and gives its memory back in place."""
    program = Program.of(Breakout(), Family.of([DQN()]), Settings())
    run = jax.eval_shape(program.create, jnp.zeros(2, jnp.uint32), program.family.traits(DQN(), 0.0))
    size = run.replay.size * 4
    assert size == 100_000 * program.learning.layout.words * 4
    number = jnp.int32(0)
    memory: Any = jax.jit(program.learn, donate_argnums=0).lower(run, number, number).compile().memory_analysis()
    assert memory.temp_size_in_bytes < size / 2
    everything = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(run))
    assert memory.alias_size_in_bytes >= 0.99 * everything
