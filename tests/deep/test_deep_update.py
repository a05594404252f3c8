"""One update of each algorithm against a transcription in plain PyTorch, and what an update must not touch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import deep_torch
from deep_toys import QUICK, apart, differences, random_weights, same, structure, zeros_like
from maxmean.deep import targets
from maxmean.deep.agent import Agent
from maxmean.deep.agents import BDQN, DDQN, DQN, KEBDQN, SCDQN, TEBDQN, AdaTEBDQN, MaxMinDQN
from maxmean.deep.core.family import Family
from maxmean.deep.core.traits import Traits
from maxmean.deep.core.update import Batch, Learner, Losses, Update
from maxmean.deep.exploration import EpsilonGreedy
from maxmean.deep.networks import Convolution, Ensemble, Weights
from maxmean.deep.settings import Settings

SHAPE, FILTERS, HIDDEN, ACTIONS, BATCH, DISCOUNT = (5, 6, 2), 3, 7, 4, 12, 0.9
ALPHAS = [0.05, 0.2, 0.4]


@dataclass
class Case:
    """An agent, and the rule that the transcription uses for it."""

    agent: Agent
    rule: deep_torch.Rule
    optimizer: str = "adam"
    loss: str = "mse"

    def __str__(self) -> str:
        return f"{self.agent.name}-{self.optimizer}-{self.loss}"


CASES = [
    Case(DQN(), deep_torch.dqn),
    Case(DDQN(), deep_torch.ddqn),
    Case(SCDQN(3.0), deep_torch.scdqn(3.0)),
    Case(MaxMinDQN(3), deep_torch.maxmin),
    Case(BDQN(3), deep_torch.ddqn),
    Case(TEBDQN(0.1, 3), deep_torch.te([0.1] * 3)),
    Case(KEBDQN(k=3), deep_torch.ke),
    Case(AdaTEBDQN(alpha=0.25, k=3), deep_torch.te([0.25] * 3)),
    Case(AdaTEBDQN(k=3, paired=True, per_head=True), deep_torch.te(ALPHAS, covariance=True)),
    Case(MaxMinDQN(2), deep_torch.maxmin, "rmsprop", "mse"),
    Case(BDQN(3), deep_torch.ddqn, "rmsprop", "huber"),
]
RATE = 0.003

WORDS = [0, 2**32 - 1, 2**32 - 1, 2**31, 12345, 2**32 - 1]
"""The words that choose the network: the first, the last, the last, the middle one or the second of two, ..."""


TOGETHER = [[DQN(), DDQN(), SCDQN(3.0)], [BDQN(3), TEBDQN(0.1, 3), KEBDQN(k=3), AdaTEBDQN(alpha=0.25, k=3)]]
"""Agents that are compiled together, because that is quicker; another test shows that it makes no difference."""


def update_of(agent: Agent, optimizer: str = "adam", loss: str = "mse") -> Update:
    family = Family.of(next((group for group in TOGETHER if agent in group), [agent]))
    network = Ensemble(Convolution(FILTERS), SHAPE, ACTIONS, family.members, family.shared, HIDDEN)
    return Update(family, network, Settings(optimizer=optimizer, loss=loss, discount=DISCOUNT).learning)


@partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def step(update: Update, *arguments: Any) -> tuple[Learner, Losses]:
    return update(*arguments)


def learner_of(update: Update, seed: int) -> Learner:
    weights, target = random_weights(update.network, seed), random_weights(update.network, seed + 1)
    moments = jax.eval_shape(update.begin, weights).moments
    return Learner(weights, target, zeros_like(moments))


def batches(members: int, seed: int = 0) -> list[tuple[Batch, deep_torch.Transitions]]:
    """The same transitions for both sides. In one batch nobody masks, in one the last member learns from nothing."""
    rng, masking = np.random.default_rng(seed), np.random.default_rng(seed + 100)
    found = []
    for i in range(len(WORDS)):
        seen, next_seen = rng.random((2, BATCH, *SHAPE)) < 0.4
        actions, rewards = rng.integers(0, ACTIONS, BATCH), rng.normal(0.0, 2.0, BATCH).astype(np.float32)
        terminated = rng.random(BATCH) < 0.3
        masks = masking.random((BATCH, members)) < 0.5
        masks[0] = True
        if i == 1:
            masks[:] = True
        if i == 2 and members > 1:
            masks[:, -1] = False
        discounts = np.where(terminated, 0.0, DISCOUNT).astype(np.float32)
        ours = Batch(*map(jnp.asarray, (seen, actions.astype(np.int32), rewards, discounts, next_seen, masks)))
        theirs = deep_torch.Transitions(
            image(seen),
            torch.as_tensor(actions),
            torch.as_tensor(rewards),
            torch.as_tensor(terminated),
            image(next_seen),
            torch.as_tensor(masks),
        )
        found.append((ours, theirs))
    return found


def image(seen: Any) -> torch.Tensor:
    return torch.as_tensor(seen.transpose(0, 3, 1, 2), dtype=torch.float32)


def own(update: Update, agent: Agent) -> Traits:
    traits = update.family.traits(agent, RATE)
    return traits._replace(parameter=jnp.array(ALPHAS, jnp.float32)) if traits.parameter.ndim else traits


def member(tree: Any, i: int, many: bool) -> Any:
    return apart(tree, i) if many else tree


def close(ours: Any, theirs: Any, size: float) -> None:
    """Equal but for float32's rounding, in numbers of about this size."""
    assert structure(ours) == structure(theirs)
    for (path, x), y in zip(jax.tree.leaves_with_path(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(x, y, rtol=3e-5, atol=3e-6 * size, err_msg=jax.tree_util.keystr(path))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_updates_are_those_of_the_transcription(case: Case) -> None:
    """Six updates in a row from the same weights, batches and optimiser state, with a target copy after the fourth."""
    update = update_of(case.agent, case.optimizer, case.loss)
    learner, many = learner_of(update, seed=3), update.family.one_learns
    heads = 1 if many else update.family.members
    networks = []
    for i in range(update.family.members if many else 1):
        network = deep_torch.Network(SHAPE, FILTERS, HIDDEN, ACTIONS, heads)
        network.load(member(learner.target, i, many))
        networks.append(network)
    trainer = deep_torch.Trainer(networks, case.rule, case.optimizer, case.loss, RATE, DISCOUNT)
    for i, network in enumerate(networks):
        network.load(member(learner.weights, i, many))

    for i, (ours, theirs) in enumerate(batches(update.family.members)):
        if i == 4:
            learner = learner._replace(target=learner.weights)
            trainer.copy()
        chosen = WORDS[i] * update.family.members >> 32 if many else 0
        learner, losses = step(update, learner, ours, own(update, case.agent), jnp.uint32(WORDS[i]))
        np.testing.assert_allclose(losses.loss, trainer.update(theirs, chosen), rtol=1e-5)
        for k, network in enumerate(networks):
            close(member(learner.weights, k, many), network.ours(), size=1.0)
    for k in range(len(networks)):
        if case.optimizer == "adam":
            close(member(learner.moments.mu, k, many), trainer.moments(k, "exp_avg"), size=1.0)
            close(member(learner.moments.nu, k, many), trainer.moments(k, "exp_avg_sq"), size=0.1)
        else:
            close(member(learner.moments.nu, k, many), trainer.moments(k, "square_avg"), size=0.1)


def one(agent: Agent, learner: Learner | None = None, word: int = 0, **changes: Any) -> tuple[Learner, Learner, Losses]:
    """A learner before and after one update with the first batch, changed in these fields."""
    update = update_of(agent)
    before = learner_of(update, seed=5) if learner is None else learner
    batch = batches(update.family.members, seed=1)[1][0]._replace(**changes)
    after, losses = step(update, before, batch, own(update, agent), jnp.uint32(word))
    return before, after, losses


@pytest.mark.parametrize(("word", "chosen"), [(0, 0), (2**31, 1), (2**32 - 1, 2)])
def test_maxmin_moves_only_the_chosen_network_and_its_moments(word: int, chosen: int) -> None:
    before, after, _ = one(MaxMinDQN(3), word=word)
    for i in range(3):
        for old, new in ((before.weights, after.weights), (before.moments, after.moments)):
            moved = differences(member(old, i, True), member(new, i, True))
            assert len(moved) == (len(jax.tree.leaves(old)) if i == chosen else 0)
    assert differences(before.target, after.target) == []


def test_networks_with_targets_of_their_own_learn_from_their_own() -> None:
    """Several whole networks, each with its own maximum: the chosen one learns as if it were alone."""
    agent = Agent("several", targets.maximum, EpsilonGreedy(), members=3, shared=False)
    masks = np.random.default_rng(2).random((BATCH, 3)) < 0.5
    before, after, losses = one(agent, word=2**32 - 1, masks=jnp.asarray(masks))
    alone = apart(before, 2)
    _, expected, loss = one(DQN(), alone, masks=jnp.asarray(masks[:, 2:]))
    close(apart(after, 2), expected, size=1.0)
    np.testing.assert_allclose(losses.loss, loss.loss, rtol=1e-5)


def test_what_lies_beyond_a_terminated_transition_does_not_matter() -> None:
    nothing = jnp.zeros(BATCH)
    _, one_end, _ = one(DQN(), discounts=nothing)
    _, other_end, _ = one(DQN(), discounts=nothing, next_observations=jnp.zeros((BATCH, *SHAPE), bool))
    assert differences(one_end, other_end) == []
    _, goes_on, _ = one(DQN())
    assert not same(goes_on.weights.output.bias, one_end.weights.output.bias)


def test_a_head_without_transitions_stays_as_it_is() -> None:
    masks = np.ones((BATCH, 3), bool)
    masks[:, 1] = False
    before, after, losses = one(BDQN(3), masks=jnp.asarray(masks))
    assert same(before.weights.output.weights[1], after.weights.output.weights[1])
    hidden = slice(HIDDEN, 2 * HIDDEN)
    assert same(before.weights.hidden.weights[hidden], after.weights.hidden.weights[hidden])
    assert np.isfinite(losses.loss)
    nobody = one(BDQN(3), masks=jnp.zeros((BATCH, 3), bool))
    assert differences(nobody[0].weights, nobody[1].weights) == []
    assert float(nobody[2].loss) == 0.0


def test_the_trunk_feels_the_mean_of_the_heads() -> None:
    """Three heads that are the same pull at the trunk as one of them would."""
    alone, three = update_of(BDQN(1)), update_of(BDQN(3))
    single = learner_of(alone, seed=7)

    def thrice(weights: Weights) -> Weights:
        hidden, output = jax.tree.map(lambda leaf: np.concatenate([leaf] * 3), (weights.hidden, weights.output))
        return Weights(weights.trunk, hidden, output)

    learner = Learner(thrice(single.weights), thrice(single.target), learner_of(three, seed=7).moments)
    batch = batches(1, seed=1)[1][0]
    after, _ = step(alone, single, batch, own(alone, BDQN(1)), jnp.uint32(0))
    three_after, _ = step(
        three, learner, batch._replace(masks=jnp.ones((BATCH, 3), bool)), own(three, BDQN(3)), jnp.uint32(0)
    )
    close(three_after.moments.mu.trunk, after.moments.mu.trunk, size=1.0)
    close(three_after.moments.mu.output.weights[1:2], after.moments.mu.output.weights, size=1.0)


def test_a_run_may_use_fewer_networks_than_its_program_has() -> None:
    """DQN as the first of three networks is DQN, and MaxMin with two of them leaves the third alone."""
    agents = [DQN(), MaxMinDQN(2), MaxMinDQN(3)]
    update = replace(update_of(MaxMinDQN(3)), family=Family.of(agents))
    before = learner_of(update, seed=9)
    before.target.output.bias[2] -= 5.0  # the third would decide, if it were asked
    batch = batches(3, seed=1)[1][0]
    dqn, two, three = (step(update, before, batch, own(update, agent), jnp.uint32(2**32 - 1))[0] for agent in agents)
    moved = [[bool(differences(apart(before, i), apart(after, i))) for i in range(3)] for after in (dqn, two, three)]
    assert moved == [
        [True, False, False],
        [False, True, False],
        [False, False, True],
    ]
    _, alone, _ = one(DQN(), apart(before, 0), masks=batch.masks[:, :1])
    close(apart(dqn, 0), alone, size=1.0)
    _, pair, _ = one(MaxMinDQN(2), jax.tree.map(lambda leaf: leaf[:2], before), 2**32 - 1, masks=batch.masks[:, :2])
    close(apart(two, 1), apart(pair, 1), size=1.0)
