"""Illegal actions in rules, updates and acting, against numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from deep_toys import CORRIDOR, QUICK, SMALL, Place, Table, differences, holding, program_of, short_run, start
from maxmean import deep, envs, mev
from maxmean.deep import targets
from maxmean.deep.agent import Agent
from maxmean.deep.agents import BDQN, DQN, KEBDQN, SCDQN, AdaTEBDQN, MaxMinDQN
from maxmean.deep.core.acting import greedy_action, vote
from maxmean.deep.core.run import Run
from maxmean.deep.core.update import Batch, Learner
from maxmean.deep.device import rollouts
from maxmean.deep.exploration import EpsilonGreedy, Exploration, Optimistic, best_action, random_action
from maxmean.deep.networks import Perceptron
from maxmean.deep.targets import NextValues

TARGET = np.array([[1.0, 3.0, 2.0], [4.0, 0.0, 2.0]], np.float32)
ONLINE = np.array([[5.0, 1.0, 4.0], [0.0, 1.0, 1.5]], np.float32)
HEADS = np.array([[0.0, 5.0, 1.0], [2.0, 3.0, 1.0], [4.0, 1.0, 1.0]], np.float32)
FIRST_TWO, WITHOUT_SECOND, LAST_TWO = [True, True, False], [True, False, True], [False, True, True]


def values(rule: targets.Rule, legal: Any, parameter: Any = 0.0, target: Any = TARGET, online: Any = ONLINE) -> Any:
    """A rule's values, given what an update gives it: -inf for what is illegal."""
    mask = jnp.asarray(legal)
    lagging, learning = (jnp.where(mask, jnp.asarray(each), -jnp.inf) for each in (target, online))
    return np.asarray(rule(NextValues(lagging, learning, mask), jnp.asarray(parameter, jnp.float32)))


@pytest.mark.parametrize(
    ("rule", "parameter", "legal", "expected"),
    [
        (targets.maximum, 0.0, WITHOUT_SECOND, [2.0, 4.0]),
        (targets.maximum, 0.0, LAST_TWO, [3.0, 2.0]),
        (targets.double, 0.0, WITHOUT_SECOND, [1.0, 2.0]),  # online prefers 0 (5 to 4), and 2 (1.5 to 0)
        (targets.double, 0.0, LAST_TWO, [2.0, 2.0]),  # online prefers 2 (4 to 1), and 2 (1.5 to 1)
        # 3 online - 2 target: -3 and 8 for the first member, 3 and 0.5 for the second.
        (targets.self_correcting, 3.0, LAST_TWO, [2.0, 0.0]),
        (targets.self_correcting, 0.0, LAST_TWO, [3.0, 2.0]),
        (targets.self_correcting, [0.0, 3.0], WITHOUT_SECOND, [2.0, 2.0]),  # 1 and 2; -8 and 0.5
        (targets.maxmin, 0.0, FIRST_TWO, [1.0, 1.0]),  # of the smallest values 1 and 0
        (targets.maxmin, 0.0, WITHOUT_SECOND, [2.0, 2.0]),  # of 1 and 2
    ],
)
def test_rules_of_one_network_look_at_legal_actions_alone(
    rule: targets.Rule, parameter: Any, legal: list[bool], expected: list[float]
) -> None:
    assert values(rule, legal, parameter).tolist() == expected


# Without the second action the heads hold 0 and 1, 2 and 1, 4 and 1; the variances across them are 4 and 0, and T is
# -1/2, -1/2 and -3/2 for the worse one, with or without covariances, which are zero.
T = np.array([[-0.5, 0.0], [0.0, -0.5], [0.0, -1.5]])


@pytest.mark.parametrize("covariance", [False, True])
def test_rules_of_heads_race_among_legal_actions_alone(covariance: bool) -> None:
    # At 0.1 the quantile is -1.2816: the last head's worse action is left out.
    found = values(targets.LevelBased(covariance), WITHOUT_SECOND, 0.1, HEADS)
    np.testing.assert_allclose(found, [0.5, 1.5, 4.0], rtol=1e-6)
    weights = stats.norm.cdf(T)
    expected = (weights * HEADS[:, [0, 2]]).sum(1) / weights.sum(1)
    for rule in (targets.KernelBased(mev.Gaussian(), covariance), targets.GaussianBased(covariance)):
        np.testing.assert_allclose(values(rule, WITHOUT_SECOND, 1.0, HEADS), expected, rtol=1e-5)


def test_one_legal_action_is_worth_what_it_is_worth() -> None:
    rules = (targets.LevelBased(), targets.KernelBased(), targets.GaussianBased(), targets.maximum, targets.double)
    for rule in rules:
        for action in range(3):
            found = values(rule, np.eye(3, dtype=bool)[action], 0.5, HEADS, HEADS)
            np.testing.assert_array_equal(found, HEADS[:, action])


# One state with three actions, which all lead back to it.
HERE = Table(next=((0, 0, 0),), reward=((0.0, 0.0, 0.0),))


def soft(q: NextValues, parameter: Any) -> Any:
    """A user's rule, which knows nothing of masks: the mean with weights that grow with the value."""
    weights = jnp.exp(q.target) / jnp.sum(jnp.exp(q.target), axis=-1, keepdims=True)
    return jnp.sum(jnp.where(weights > 0, weights * q.target, 0.0), axis=-1)


def target_of(agent: Agent, target: Any, online: Any, legal: Any) -> Any:
    """What an update makes of two transitions into the state, of which the second terminates."""
    program = program_of(agent, environment=HERE, settings=replace(SMALL, hidden=1), trunk=Perceptron(()))
    weights, lagging = (holding(program, np.asarray(each)[:, None]) for each in (online, target))
    seen, no = jnp.ones((2, 1)), jnp.zeros(2)
    masks = jnp.ones((2, len(target)), bool)
    batch = Batch(seen, no.astype(jnp.int32), no + 1.0, jnp.array([0.5, 0.0]), seen, masks, jnp.asarray(legal))
    return program.update.targets(Learner(weights, lagging, ()), batch, program.family.traits(agent, 1e-3))


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        (DQN(), [3.0]),
        (SCDQN(3.0), [2.0]),
        (MaxMinDQN(2), [2.0, 2.0]),
        (BDQN(2), [2.0, 2.0]),
        (Agent("soft", soft), [(3 * np.exp(3) + 2 * np.exp(2)) / (np.exp(3) + np.exp(2))]),
    ],
    ids=lambda each: each.name if isinstance(each, Agent) else "",
)
def test_an_update_gives_rules_what_is_legal(agent: Agent, expected: list[float]) -> None:
    """Y = 1 + value / 2 among the last two actions, and 1 where nothing follows, whatever is legal there."""
    n = agent.members
    found = target_of(agent, TARGET[:n], ONLINE[:n], [LAST_TWO, [True] * 3])
    np.testing.assert_allclose(found, [1.0 + 0.5 * np.asarray(expected), np.ones(n)], rtol=1e-6)


def test_heads_vote_for_their_best_legal_action() -> None:
    heads = jnp.array([[3.0, 1.0, 0.0], [3.0, 0.0, 1.0], [3.0, 0.0, 1.0]])
    assert int(vote(heads)) == 0
    assert int(vote(heads, jnp.asarray(LAST_TWO))) == 2
    # Their smallest values are 3, 0 and 0, of which the lowest action wins.
    assert int(greedy_action(heads, bootstrapped=False, legal=jnp.asarray(LAST_TWO))) == 1
    both = greedy_action(jnp.stack([heads] * 2), bootstrapped=True, legal=jnp.asarray([LAST_TWO, FIRST_TWO]))
    assert both.tolist() == [2, 0]


@pytest.mark.parametrize("strange", [np.nan, -np.inf, np.inf])
def test_an_agent_that_has_diverged_takes_legal_actions_too(strange: float) -> None:
    for legal in (LAST_TWO, WITHOUT_SECOND, [False, True, False]):
        mask = jnp.asarray(legal)
        assert legal[int(best_action(jnp.full(3, strange), mask))]
        for bootstrapped in (True, False):
            assert legal[int(greedy_action(jnp.full((2, 3), strange), bootstrapped=bootstrapped, legal=mask))]


@pytest.mark.parametrize("exploration", [EpsilonGreedy(0.0, 0.0, 1), Optimistic(bonus=5.0)], ids=repr)
def test_all_heads_explore_among_legal_actions(exploration: Exploration) -> None:
    """The illegal action is the best of every head, and the most doubtful."""
    agent = KEBDQN(k=3, exploration=exploration)
    program = program_of(agent, environment=HERE, settings=replace(SMALL, hidden=1), trunk=Perceptron(()))
    heads = np.array([[9.0, 1.0, 2.0], [5.0, 2.0, 1.0], [30.0, 1.0, 2.0]])
    learner = Learner(holding(program, heads[:, None]), (), ())  # type: ignore[arg-type]
    run: Any = type("Run", (), {"learner": learner, "traits": program.family.traits(agent, 1e-3)})
    seen, words = jnp.ones(1), jnp.zeros(2, jnp.uint32)
    explore = program.actor.explore
    assert int(explore(run, seen, jnp.int32(0), jnp.int32(0), words)) == 0
    # The votes of two heads for the last; their mean is larger too, and the spread is the same.
    assert int(explore(run, seen, jnp.int32(0), jnp.int32(0), words, jnp.asarray(LAST_TWO))) == 2


def test_random_actions_with_all_legal_are_those_without_masks() -> None:
    words = jnp.asarray(np.random.default_rng(0).integers(2**32, size=1_000, dtype=np.uint32))
    drawn = random_action(words[:, None], 7)[:, 0]
    masked = [int(random_action(word, 7, jnp.ones(7, bool))) for word in words[:50]]
    assert masked == drawn[:50].tolist()
    only = {int(random_action(word, 7, jnp.arange(7) == 4)) for word in words[:20]}
    assert only == {4}


@dataclass(frozen=True)
class Gated(Table):
    """A table in which some actions are illegal: [state][action]."""

    gates: tuple[tuple[bool, ...], ...] = ()

    def legal(self, state: Place) -> Any:
        return jnp.asarray(self.gates)[state.place]


OPEN = Gated(**vars(CORRIDOR), gates=((True,) * 3,) * 5)
"""The corridor, with masks of all ones."""
BAIT = replace(
    OPEN,
    reward=((0.0, 0.0, 0.0), (0.25, 0.0, 1e6), (1e6, 0.0, 1e6), (0.0, 1.0, 0.0), (0.0, 0.0, 0.0)),
    gates=((False,) * 3, (True, True, False), (False, True, False), (True, True, True), (False,) * 3),
)
"""In the first two places to stay, and in the second to go left, is illegal and pays a million. At the ends nothing is legal."""


@pytest.mark.slow
def test_masks_of_all_ones_change_no_bit_on_the_device() -> None:
    """On the host the same is asked every time."""
    agent = AdaTEBDQN(k=3, horizon=4)
    plain, masked = (program_of(agent, environment=each) for each in (CORRIDOR, OPEN))
    ours, theirs = (short_run(each, start(each, agent), 2) for each in (masked, plain))
    assert differences(ours, theirs) == []


@pytest.mark.slow
def test_no_illegal_action_is_taken_on_the_device() -> None:
    """Neither in the replay nor in roll-outs, and none is in a target: a million would be seen in all of them."""
    agent = AdaTEBDQN(k=3, horizon=4, exploration="epsilon:0.5")
    program = program_of(agent, environment=BAIT, settings=replace(SMALL, n_step=3))
    run = short_run(program, start(program, agent), 2)
    stored = jax.jit(jax.vmap(program.learning.layout.unpack))(run.replay[:150])
    taken = np.asarray(BAIT.gates)[np.asarray(stored.state.place), np.asarray(stored.action)]
    assert taken.all()
    assert set(np.asarray(stored.action)) == {0, 1, 2}
    assert np.abs(stored.reward).max() <= 1.0
    assert np.isfinite(float(run.tally.loss))
    assert np.abs(program.network.values(run.learner.weights, jnp.eye(5))).max() < 10

    def measure(run: Run) -> tuple[Any, Any]:
        bias = rollouts.estimate_bias(
            program, run, jnp.int32(0), rollouts.replayed(program, run, jnp.int32(0), jnp.int32(150)), 50
        )
        return rollouts.greedy_return(program, run, jnp.int32(0), 50), bias.mean

    greedy, bias = jax.jit(measure, compiler_options=QUICK)(run)
    assert 0.0 <= float(greedy) <= 1.0
    assert abs(float(bias)) < 10


@pytest.mark.parametrize(
    ("mask", "shown"),
    [
        (lambda: jnp.ones(2, bool), r"bool \[2\]$"),
        (lambda: jnp.ones((1, 3), bool), r"bool \[1, 3\]$"),
        (lambda: jnp.bool_(True), r"bool \[\]$"),
        (lambda: jnp.ones(3), r"float32 \[3\]: give mask.astype\(bool\)$"),
        (lambda: jnp.ones(3, jnp.int32), r"int32 \[3\]: give mask.astype\(bool\)$"),
        (lambda: [True] * 3, "list$"),
    ],
)
@pytest.mark.parametrize("agent", ["dqn", "ke-bdqn"])
def test_what_is_no_mask_is_refused_before_the_first_step(agent: str, mask: Callable[[], Any], shown: str) -> None:
    class Odd(Table):
        def legal(self, state: Place) -> Any:
            return mask()

    said = rf"^legal\(state\) of table must give a truth value for each action, bool \[3\], not {shown}"
    with pytest.raises(deep.AgentError, match=said):
        deep.train(Odd(**vars(CORRIDOR)), agent, steps=100)


def test_where_nothing_is_legal_the_first_action_is_taken() -> None:
    nothing = jnp.zeros(3, bool)
    assert int(best_action(jnp.array([1.0, 2.0, 3.0]), nothing)) == 0
    assert {int(random_action(jnp.uint32(word), 3, nothing)) for word in (0, 2**31, 2**32 - 1)} == {0}


@pytest.mark.slow
def test_a_run_that_meets_a_state_without_legal_actions_is_said_to_diverge() -> None:
    closed = replace(OPEN, gates=((True,) * 3, (True,) * 3, (False,) * 3, (True,) * 3, (True,) * 3))
    found = deep.train(closed, "dqn", steps=200, settings=replace(SMALL, test_interval=200))
    assert found.records["diverged"].item() >= SMALL.warmup


def test_gymnasium_hears_of_masks() -> None:
    env = envs.to_gymnasium(BAIT)
    _, info = env.reset(seed=0)
    place = int(env.unwrapped.state.place)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(info["action_mask"], BAIT.gates[place])
    *_, info = env.step(1)
    np.testing.assert_array_equal(info["action_mask"], BAIT.gates[place + 1])
    assert envs.to_gymnasium(CORRIDOR).reset(seed=0)[1] == {}
