"""The recommended agent, in Python and on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import inside
import maxmean
from maxmean.deep.agents import parse_agent
from maxmean.deep.host import HostError
from maxmean.deep.networks import Perceptron
from maxmean.deep.recommended import RECOMMENDED, Recommendation

QUICK: dict[str, Any] = {
    "warmup": 50,
    "test_interval": 100,
    "test_episodes": 1,
    "bias_episodes_per_head": 1,
    "hidden": 8,
}


@pytest.fixture(params=[{}, {"learning_rate": 0.002, "batch_size": 16, "network": Perceptron((6,)), "prior": 1.0}])
def settings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is recommended for vectors besides the agent: now, and what might be."""
    monkeypatch.setitem(RECOMMENDED, "vector", Recommendation("ke*-bdqn", request.param))
    found: dict[str, Any] = request.param
    return found


def test_nothing_has_to_be_chosen(settings: dict[str, Any]) -> None:
    agent = maxmean.agent("CartPole-v1")
    assert agent.agent == parse_agent("ke*-bdqn", prior=settings.get("prior"))
    own = {**vars(agent.agent), **vars(agent.settings), **vars(agent.host)}
    assert {name: own[name] for name in settings} == settings


def test_a_device_has_no_use_for_what_only_a_host_has() -> None:
    given = {"learning_rate": 0.002, "network": Perceptron((6,)), "train_every": 4, "prior": 1.0}
    assert Recommendation("ke*-bdqn", given).on_device.settings == {"learning_rate": 0.002, "prior": 1.0}


def test_what_is_given_replaces_what_is_recommended(tmp_path: Path) -> None:
    env = gymnasium.make("CartPole-v1")
    agent = maxmean.agent(env, network=Perceptron((4,)), learning_rate=0.01, k=3, paired=False, **QUICK)
    assert agent.env is env
    assert (agent.agent.name, agent.settings.learning_rate, agent.host.network) == ("ke-bdqn", 0.01, Perceptron((4,)))
    agent.learn(120)
    again = type(agent).load(agent.save(tmp_path / "agent"), "CartPole-v1")
    assert again.choice == agent.choice
    assert again.predict(np.zeros(4)) == agent.predict(np.zeros(4))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: maxmean.agent("CartPole-v1", learning_rat=1.0), "KEBDQN has no setting 'learning_rat'; did you mean"),
        (lambda: maxmean.agent("MlpPolicy", "CartPole-v1"), "agent takes the environment alone without a name"),
        (lambda: maxmean.agent("Cartpol-v1"), "Gymnasium has no environment 'Cartpol-v1'"),
        (lambda: maxmean.agent(3), "env must be a Gymnasium environment, its id"),
    ],
)
def test_mistakes_get_a_sentence(call: Any, said: str) -> None:
    with pytest.raises(HostError, match=said):
        call()


@pytest.mark.parametrize(
    ("env", "agent", "more"),
    [
        ("CartPole-v1", "ke*-bdqn", ["--heads", "3"]),
        pytest.param(
            "minatar/breakout",
            "ke*-bdqn:gaussian:2",
            ["--heads", "3", "--replay-capacity", "200"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_command_line_trains_it_unless_an_agent_is_named(
    env: str, agent: str, more: list[str], tmp_path: Path
) -> None:
    small = [f"--{name.replace('_', '-')}={value}" for name, value in QUICK.items()]
    said = inside.maxmean("train", "--env", env, "--steps", "120", "--out", str(tmp_path / "out"), *small, *more)
    assert said.returncode == 0, said.stderr
    assert f"Training the recommended agent, {agent}; --agent NAME trains another." in said.stderr
    assert "ke*-bdqn" in said.stdout
    assert ("0.0005" if env == "CartPole-v1" else "3.16e-05") in said.stdout


@pytest.mark.parametrize(("one", "other"), [("bdqn:3", "bdqn:5"), ("te-bdqn:0.2", "te-bdqn:0.20")])
def test_agents_that_records_could_not_tell_apart_are_refused(one: str, other: str, tmp_path: Path) -> None:
    said = inside.maxmean(
        "train", "--env", "CartPole-v1", "--agent", one, "--agent", other, "--out", str(tmp_path / "out")
    )
    assert said.returncode == 2
    assert "two agents would both be called" in said.stderr
    assert not (tmp_path / "out").exists()
