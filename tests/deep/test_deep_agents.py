"""Agents, families and settings: what makes sense, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from maxmean import mev
from maxmean.deep import targets
from maxmean.deep.agent import Adaptation, Agent
from maxmean.deep.agents import (
    AGENTS,
    BDQN,
    DDQN,
    DQN,
    KEBDQN,
    SCDQN,
    TEBDQN,
    AdaKEBDQN,
    AdaTEBDQN,
    MaxMinDQN,
    parse_agent,
)
from maxmean.deep.checks import AgentError
from maxmean.deep.core.family import Family, families
from maxmean.deep.exploration import EpsilonGreedy, HeadPerEpisode, Optimistic
from maxmean.deep.settings import Settings


def test_a_kernel_of_ones_own_is_called_the_same_in_another_process() -> None:
    """Its function lies elsewhere there, and the records of one run would have two names."""

    def kernel() -> mev.Custom:
        def mine(t: Any) -> Any:
            return mev.Gaussian(0.5)(t)

        return mev.Custom(mine)

    (one, other) = (KEBDQN(kernel=kernel()) for _ in range(2))
    assert one != other
    assert one.label == other.label


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_is_called_what_the_tables_call_it(name: str) -> None:
    make: Callable[[], Agent] = AGENTS[name]
    agent = make()
    assert agent.name == name
    assert agent == make()  # a description, nothing more
    assert agent.bootstrapped == name.endswith("bdqn")
    assert agent.members == (10 if agent.bootstrapped else 2 if name == "maxmin-dqn" else 1)


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (lambda: SCDQN(-1.0), "-1.0"),
        (lambda: SCDQN(float("nan")), "nan"),
        (lambda: MaxMinDQN(0), "0"),
        (lambda: BDQN(33), "33"),
        (lambda: BDQN(0), "0"),
        (lambda: TEBDQN(0.1, 1), "1"),
        (lambda: TEBDQN(0.0), "0.0"),
        (lambda: TEBDQN(0.6), "0.6"),
        (lambda: KEBDQN(k=1), "1"),
        (lambda: BDQN(mask=0.0), "0.0"),
        (lambda: BDQN(mask=1.5), "1.5"),
        (lambda: AdaTEBDQN(-1.0), "-1.0"),
        (lambda: AdaTEBDQN(horizon=0), "0"),
        (lambda: AdaKEBDQN(scale=0.0), "0.0"),
        (lambda: Adaptation(float("nan")), "nan"),
        (lambda: AdaTEBDQN(level=-1.0), "-1.0"),
        (lambda: Settings(learning_rate=0.0), "0.0"),
        (lambda: Settings(discount=1.5), "1.5"),
        (lambda: Settings(optimizer="sgd"), "sgd"),
        (lambda: Settings(loss="mae"), "mae"),
        (lambda: Settings(batch_size=0), "batch_size must be at least 1, not 0"),
        (lambda: Settings(target_period=-3), "target_period must be at least 1, not -3"),
    ],
)
def test_what_makes_no_sense_is_named(make: Callable[[], Any], value: str) -> None:
    with pytest.raises(AgentError) as error:
        make()
    assert value in str(error.value)


def test_a_kernel_may_be_any_function_that_is_one() -> None:
    assert isinstance(KEBDQN(lambda t: 2.0**t).rule, targets.KernelBased)  # type: ignore[arg-type]
    with pytest.raises(mev.KernelError):
        KEBDQN(lambda t: 0.0 * t)  # type: ignore[arg-type]


def test_agents_that_differ_in_numbers_and_rules_are_one_family() -> None:
    heads = [BDQN(3), TEBDQN(0.1, 3), TEBDQN(0.2, 3), KEBDQN(k=3), AdaTEBDQN(1e-3, k=3), AdaTEBDQN(1e-4, k=3)]
    family = Family.of(heads)
    assert len(family.rules) == 3
    assert family.bootstrapped
    assert family.online
    assert not family.one_learns
    traits = [family.traits(agent, 0.01) for agent in heads]
    assert [int(each.rule) for each in traits] == [0, 1, 1, 2, 1, 1]
    assert [float(each.adaptation_rate) for each in traits] == pytest.approx([0, 0, 0, 0, 1e-3, 1e-4])
    assert [float(each.parameter) for each in traits] == pytest.approx([0, 0.1, 0.2, 0, 0.25, 0.25])


def test_one_for_each_head_is_what_all_of_the_family_have() -> None:
    heads = [TEBDQN(0.1, 3), AdaTEBDQN(k=3, per_head=True)]
    family = Family.of(heads)
    assert [family.traits(agent, 0.01).parameter.shape for agent in heads] == [(3,), (3,)]


@pytest.mark.parametrize(
    "agents",
    [
        [DQN(), BDQN(1)],
        [BDQN(3), BDQN(4)],
        [BDQN(3), BDQN(3, mask=0.5)],
        [DQN(), DQN(EpsilonGreedy(1.0, 0.05))],
        [AdaTEBDQN(k=3), AdaKEBDQN(k=3)],
        [AdaTEBDQN(k=3), AdaTEBDQN(horizon=16, k=3)],
    ],
    ids=lambda agents: "+".join(agent.name for agent in agents),
)
def test_agents_that_are_built_differently_are_not(agents: list[Agent]) -> None:
    with pytest.raises(AgentError, match="built differently"):
        Family.of(agents)
    assert families(agents) == [[agents[0]], [agents[1]]]


def test_families_are_few_and_keep_their_order() -> None:
    plain, heads = [DQN(), DDQN(), SCDQN(2.0)], [BDQN(3), TEBDQN(0.1, 3)]
    mixed = [plain[0], heads[0], plain[1], heads[1], plain[2]]
    assert families(mixed) == [plain, heads]


def test_an_agent_tells_all_that_defines_it() -> None:
    told = AdaTEBDQN(k=3).describe()
    assert told["rule"] == "TestBased(covariance=False)"
    assert told["exploration"] == repr(HeadPerEpisode())
    assert told["members"] == 3
    assert "horizon=32" in told["adaptation"]
    assert DQN().describe()["rule"] == "maximum"


@pytest.mark.parametrize(
    ("agent", "label"),
    [
        (TEBDQN(0.2, paired=True), "te*-bdqn(0.2)"),
        (KEBDQN(paired=True), "ke*-bdqn"),
        (AdaTEBDQN(1e-4, paired=True, level=-0.05), "ada-te*-bdqn(0.0001, level -0.05)"),
        (AdaKEBDQN(paired=True), "ada-ke*-bdqn(0.0001)"),
        (KEBDQN(exploration="heads:0.05", prior=3), "ke-bdqn(heads:0.05, prior 3)"),
        (KEBDQN(layer_norm=True, paired=True), "ke*-bdqn(layer norm)"),
        (DQN(layer_norm=True), "dqn(layer norm)"),
        (BDQN(ensemble="networks"), "bdqn(networks)"),
        (TEBDQN(ensemble="dropout", exploration="epsilon"), "te-bdqn(0.1, epsilon:1,0.1,100000, dropout)"),
        (MaxMinDQN(3), "maxmin-dqn(3)"),
        (BDQN(exploration=Optimistic(bonus=0.5)), "bdqn(optimistic, bonus 0.5)"),
    ],
)
def test_a_label_says_what_sets_an_agent_apart(agent: Agent, label: str) -> None:
    assert agent.label == label


def test_a_star_is_the_paired_statistic() -> None:
    assert parse_agent("te*-bdqn:0.2", k=3) == TEBDQN(0.2, 3, paired=True)
    assert AGENTS["ada-ke*-bdqn"]() == AdaKEBDQN(paired=True)
    assert Family.of([KEBDQN(k=3), KEBDQN(k=3, paired=True)]).rules == (
        targets.KernelBased(),
        targets.KernelBased(covariance=True),
    )


def test_what_an_agent_tells_of_itself_is_what_trainings_of_before_have_written() -> None:
    assert AdaTEBDQN(k=3).describe() == {
        "name": "ada-te-bdqn",
        "rule": "TestBased(covariance=False)",
        "exploration": "HeadPerEpisode()",
        "alpha": 0.25,
        "members": 3,
        "shared": True,
        "online": False,
        "mask": 1.0,
        "adaptation": "Adaptation(step_size=0.0001, horizon=32, low=1e-06, high=0.5, direction=1, per_head=False)",
    }
    assert DQN().describe()["exploration"] == "EpsilonGreedy(initial=1.0, final=0.1, steps=100000)"
    told = KEBDQN(prior=1.0, exploration="epsilon:0.1", ensemble="dropout").describe()
    assert (told["prior"], told["dropout"]) == (1.0, 0.5)
    assert told["votes"] is True
