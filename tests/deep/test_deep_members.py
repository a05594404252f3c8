"""What the members of an agent can be: heads, whole networks, one network with dropout; and what a prior adds to them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deep_toys import CORRIDOR, QUICK, SMALL, differences, greedy_returns, program_of, same, short_runs, start, together
from maxmean.deep import targets
from maxmean.deep.agent import Agent
from maxmean.deep.agents import BDQN, DQN, KEBDQN
from maxmean.deep.checks import AgentError
from maxmean.deep.core.family import Family
from maxmean.deep.core.update import Batch, Learner, Update
from maxmean.deep.exploration import HeadPerEpisode
from maxmean.deep.networks import Ensemble, Perceptron
from seldom import slow

SEEN = jnp.asarray(np.random.default_rng(0).normal(size=(6, 4)), jnp.float32)
KEY = jax.random.key(3)


def network(**own: float | bool) -> Ensemble:
    return Ensemble(Perceptron((5,)), (4,), 3, 3, hidden=8, **own)  # type: ignore[arg-type]


def test_a_prior_is_a_fixed_network_whose_values_are_added() -> None:
    plain, none, one, two = (network(**own) for own in ({}, {"prior": 0.0}, {"prior": 1.0}, {"prior": 2.0}))
    assert differences(none.create(KEY), plain.create(KEY)) == []
    weights = one.create(KEY)
    assert differences(weights.learned, plain.create(KEY)) == []  # what learns begins as it would without
    learned = plain.values(weights.learned, SEEN)
    assert same(none.values(weights.learned, SEEN), learned)
    added = one.values(weights, SEEN) - learned
    np.testing.assert_allclose(two.values(weights, SEEN) - learned, 2 * added, rtol=1e-4, atol=1e-6)
    assert float(jnp.std(added, axis=1).min()) > 0.0  # each member has its own
    for member in range(3):
        np.testing.assert_allclose(
            one.member_values(weights, SEEN, jnp.int32(member)), one.values(weights, SEEN)[:, member], rtol=1e-5
        )


def test_a_mask_of_dropout_is_a_members_own_and_stays() -> None:
    net = network(dropout=0.5)
    weights, masks = net.create(KEY), np.asarray(net.masks)
    assert weights.hidden.weights.shape == (8, 5)  # one network for all
    assert set(np.unique(masks)) == {0.0, 2.0}
    assert len({tuple(row) for row in masks}) == 3
    features = net.trunk.apply(weights.trunk, SEEN)
    hidden = np.maximum(features @ weights.hidden.weights.T + weights.hidden.bias, 0.0)
    for member in range(3):
        expected = (hidden * masks[member]) @ weights.output.weights[0].T + weights.output.bias[0]
        np.testing.assert_allclose(net.values(weights, SEEN)[:, member], expected, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(net.member_values(weights, SEEN, jnp.int32(member)), expected, rtol=1e-4, atol=1e-6)


KINDS: list[dict[str, float | bool]] = [
    {"prior": 1.0},
    {"layer_norm": True},
    {"dropout": 0.5},
    {"shared": False, "prior": 1.0},
]


@pytest.mark.parametrize("own", KINDS, ids=str)
def test_members_value_their_own_observations_as_they_value_all(own: dict[str, float | bool]) -> None:
    """At once or one by one, with whatever is special about them; each sees two of the six observations."""
    net = network(**own)
    weights = net.create(KEY)
    found = net.own_values(weights, SEEN.reshape(3, 2, 4))
    every = net.values(weights, SEEN)
    assert found.shape == (3, 2, 3)
    for member in range(3):
        here = slice(2 * member, 2 * member + 2)
        np.testing.assert_allclose(found[member], every[here, member], rtol=1e-4, atol=1e-6)
        alone = net.member_values(weights, SEEN[here], jnp.int32(member))
        np.testing.assert_allclose(alone, every[here, member], rtol=1e-4, atol=1e-6)


def test_layer_norm_is_what_it_says() -> None:
    """The forward pass, written again: each observation's features and each member's hidden units have mean 0 and variance 1."""

    def norm(rows: np.ndarray) -> np.ndarray:
        return (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)

    for own in ({}, {"shared": False}, {"prior": 2.0}):
        net = network(layer_norm=True, **own)
        weights = net.create(KEY)
        for member in range(3):
            alone = net.member(weights, jnp.int32(member))
            features = norm(np.asarray(net.trunk.apply(alone.trunk, SEEN)))
            hidden = np.maximum(norm(features @ np.asarray(alone.hidden.weights).T + np.asarray(alone.hidden.bias)), 0)
            expected = hidden @ np.asarray(alone.output.weights[0]).T + np.asarray(alone.output.bias[0])
            learned = (
                net.values(weights, SEEN)[:, member]
                - net.with_prior(jnp.zeros((6, 3, 3)), weights.prior, SEEN)[:, member]
            )
            np.testing.assert_allclose(learned, expected, rtol=1e-4, atol=1e-5)


def test_with_layer_norm_large_weights_make_no_larger_values() -> None:
    net = network(layer_norm=True)
    weights = net.create(KEY)
    larger = weights._replace(hidden=jax.tree.map(lambda leaf: 1_000 * leaf, weights.hidden))
    np.testing.assert_allclose(net.values(larger, SEEN), net.values(weights, SEEN), rtol=0.01, atol=1e-3)
    assert differences(weights, network().create(KEY)) == []  # the same weights as without


def batch(members: int) -> Batch:
    rng = np.random.default_rng(1)
    return Batch(
        SEEN,
        jnp.asarray(rng.integers(3, size=6)),
        jnp.asarray(rng.normal(size=6), jnp.float32),
        jnp.full(6, 0.9, jnp.float32),
        jnp.asarray(rng.normal(size=(6, 4)), jnp.float32),
        jnp.ones((6, members), bool),
    )


def update_of(agent: Agent) -> Update:
    family = Family.of([agent])
    return Update(family, family.network(Perceptron((5,)), (4,), 3, 8), SMALL.learning)


def step(agent: Agent, learner: Learner | None = None) -> tuple[Learner, Learner]:
    update = update_of(agent)
    before = update.begin(update.network.create(KEY)) if learner is None else learner
    traits = update.family.traits(agent, 0.01)
    after, _ = jax.jit(update.__call__, compiler_options=QUICK)(before, batch(agent.members), traits, jnp.uint32(0))
    return before, after


def test_one_learns_that_vote_all_learn_each_as_if_it_were_alone() -> None:
    together = Agent("maxima", targets.maximum, HeadPerEpisode(), members=3, shared=False)
    before, after = step(together)
    for member in range(3):
        own = jax.tree.map(lambda leaf, member=member: leaf[member], (before.weights, before.target))
        _, alone = step(DQN(), update_of(DQN()).begin(own[0])._replace(target=own[1]))
        moved = jax.tree.map(lambda leaf, member=member: leaf[member], after.weights)
        for ours, theirs in zip(jax.tree.leaves(moved), jax.tree.leaves(alone.weights), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_an_update_leaves_the_prior_as_it_is() -> None:
    before, after = step(BDQN(3, prior=2.0))
    assert differences(before.weights.prior, after.weights.prior) == []
    assert len(differences(before.weights.learned, after.weights.learned)) == len(
        jax.tree.leaves(before.weights.learned)
    )


@pytest.mark.parametrize(
    "agent",
    [
        KEBDQN(k=3, ensemble="networks"),
        *slow(KEBDQN(k=3, ensemble="dropout"), KEBDQN(k=3, prior=1.0, layer_norm=True)),
    ],
)
def test_whatever_its_members_are_an_agent_learns(agent: Agent) -> None:
    """As in test_deep_learns: in 1,450 steps, two seeds each, to the larger reward of the corridor."""
    program = program_of(agent, environment=CORRIDOR)
    runs = together([start(program, agent, seed) for seed in (1, 2)])
    trained = short_runs(program, runs, 28, quick=True)
    assert greedy_returns(program, trained).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"ensemble": "trees"}, "unknown ensemble 'trees'"),
        ({"prior": -1.0}, "prior must not be negative, not -1.0"),
        ({"prior": "much"}, "prior must be a number"),
        ({"layer_norm": 1}, "layer_norm must be True or False"),
    ],
)
def test_members_that_make_no_sense_are_named(own: dict[str, str | float], said: str) -> None:
    with pytest.raises(AgentError, match=said):
        KEBDQN(**own)  # type: ignore[arg-type]
    with pytest.raises(AgentError, match="has no heads"):
        Agent("dqn", targets.maximum, prior=1.0)
