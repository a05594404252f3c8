"""Environments from their ids: what is made and not kept is closed, and which are Atari's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

import maxmean
from host_toys import Arcade, Counter, small
from maxmean import DQN
from maxmean.deep.host import HostError, watch
from maxmean.deep.host.making import is_atari, make_training


class Closing(Counter):
    """Knows all of its kind that are open. The second that is made has another action."""

    open: list[Closing]
    made: int

    def __init__(self) -> None:
        super().__init__()
        Closing.open.append(self)
        Closing.made += 1
        if Closing.made == 2:
            self.action_space = gymnasium.spaces.Discrete(3)

    def close(self) -> None:
        if self in Closing.open:
            Closing.open.remove(self)


@pytest.fixture
def closing() -> Iterator[str]:
    Closing.open, Closing.made = [], 0
    gymnasium.register("tests/Closing-v0", lambda **_: Closing())
    yield "tests/Closing-v0"
    del gymnasium.registry["tests/Closing-v0"]


def test_several_environments_of_an_id_are_all_that_is_open(closing: str) -> None:
    Closing.made = 10
    env = make_training(closing, 2)
    assert [each.unwrapped for each in env.envs] == Closing.open


def test_a_second_environment_that_does_not_fit_is_closed(closing: str) -> None:
    agent = DQN(closing, **small())
    assert agent.driver.eval_world is None
    assert [agent.env.unwrapped] == Closing.open


@pytest.mark.parametrize("fails", [False, True])
def test_an_environment_is_closed_after_the_measurement_it_was_made_for(fails: bool, closing: str) -> None:
    discount = 2.0 if fails else 0.9
    try:
        maxmean.measure_bias(lambda seen: [1.0, 0.0], closing, episodes=1, discount=discount)
        assert not fails
    except HostError:
        assert fails
    assert (Closing.made, Closing.open) == (1, [])


def test_an_environment_of_ones_own_stays_open(closing: str) -> None:
    env = gymnasium.make(closing)
    maxmean.measure_bias(lambda seen: [1.0, 0.0], env, episodes=1, discount=0.9)
    assert [env.unwrapped] == Closing.open


def test_an_environment_that_cannot_be_drawn_is_closed(closing: str) -> None:
    with pytest.raises(HostError, match="cannot be watched"):
        watch._drawing(closing)
    assert (Closing.made, Closing.open) == (1, [])


@pytest.mark.parametrize("env", [Arcade, Counter])
def test_an_atari_game_in_another_process_is_one(env: Any) -> None:
    several = AsyncVectorEnv([env], context="spawn")
    assert is_atari(several) == (env is Arcade)
    several.close()
    assert not is_atari(SyncVectorEnv([Counter]))
