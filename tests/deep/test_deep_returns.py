"""Returns over several steps: what is stored of an episode, against the sums written down from its rewards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import maxmean
from deep_toys import SMALL, collect, differences, program_of, short_run, start
from host_toys import small
from maxmean.deep import DQN, KEBDQN, AgentError, Settings
from maxmean.deep.core.replay import Transition
from maxmean.deep.host import HostError
from maxmean.envs import Environment, Step
from seldom import slow

Array = jax.Array

LENGTHS = (1, 2, 3, 4, 5)
DISCOUNT = 0.9


class Moment(NamedTuple):
    """Where a scripted episode is."""

    time: Array
    episode: Array


def reward_at(episode: Any, time: Any) -> Any:
    """No two sums of these are alike."""
    return 1.0 + 3.0 * time + 0.5 * episode


def length_of(episode: Any) -> Any:
    """1, 1, 2, 2, ..., 5, 5, and again from 1: the first of two ends in a terminal state, the second is truncated."""
    return 1 + (episode // 2) % len(LENGTHS)


@dataclass(frozen=True)
class Script(Environment):
    """Episodes of every length from 1 to 5, terminated and truncated, whatever the actions are."""

    n_actions = 2

    @property
    def name(self) -> str:
        return "script"

    def reset(self, key: Array, previous: Moment | None = None) -> tuple[Moment, Array]:
        state = Moment(jnp.int32(0), jnp.int32(0) if previous is None else previous.episode + 1)
        return state, self.observe(state)

    def step(self, key: Array, state: Moment, action: Array) -> Step:
        after = Moment(state.time + 1, state.episode)
        over, own = after.time >= length_of(state.episode), state.episode % 2 == 0
        reward = jnp.float32(reward_at(state.episode, state.time))
        return Step(after, self.observe(after), reward, over & own, over & ~own)

    def observe(self, state: Moment) -> Array:
        return jnp.stack([state.episode, state.time]).astype(jnp.float32)


class HostScript(gymnasium.Env):
    """The same for the host; ``first`` is the number of its first episode."""

    observation_space = spaces.Box(-1.0, 1e6, (2,), np.float32)
    action_space: spaces.Discrete = spaces.Discrete(2)

    def __init__(self, first: int = 0) -> None:
        self.episode, self.time = first - 1, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode, self.time = self.episode + 1, 0
        return np.array([self.episode, 0], np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward, self.time = reward_at(self.episode, self.time), self.time + 1
        over = self.time >= length_of(self.episode)
        seen = np.array([self.episode, self.time], np.float32)
        return seen, reward, over and self.episode % 2 == 0, over and self.episode % 2 == 1, {}

    def get_state(self) -> dict[str, Any]:
        return {"episode": self.episode, "time": self.time, "random": self.np_random.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        self.episode, self.time = state["episode"], state["time"]
        self.np_random.bit_generator.state = state["random"]


class Expected(NamedTuple):
    """A transition as the definition has it: (episode, time), its return, whether it terminates, where it leads, steps."""

    begin: tuple[int, int]
    reward: float
    terminated: bool
    end: tuple[int, int]
    steps: int


def expected(n: int, episode: int, time: int, taken: int) -> Expected:
    """Of an episode in which ``taken`` steps have been taken, what the step at ``time`` has become."""
    k = min(n, taken - time)
    total = sum(DISCOUNT**i * reward_at(episode, time + i) for i in range(k))
    over = time + k == length_of(episode) and episode % 2 == 0
    return Expected((episode, time), total, over, (episode, time + k), k)


def trajectory(steps: int, first: int = 0) -> list[tuple[int, int, int]]:
    """Episode, time, and how many steps of the episode have been taken in all, for each of the steps."""
    places: list[tuple[int, int]] = []
    episode = first
    while len(places) < steps:
        places += [(episode, time) for time in range(length_of(episode))]
        episode += 1
    places = places[:steps]
    taken = {episode: 1 + max(t for e, t in places if e == episode) for episode, _ in places}
    return [(episode, time, taken[episode]) for episode, time in places]


def check(found: Transition, begins: Any, ends: Any, wanted: Sequence[Expected]) -> None:
    for i, each in enumerate(wanted):
        assert tuple(int(x) for x in begins[i]) == each.begin
        assert tuple(int(x) for x in ends[i]) == each.end
        assert bool(found.terminated[i]) == each.terminated
        assert int(found.steps[i]) == each.steps
        assert float(found.reward[i]) == pytest.approx(each.reward, rel=1e-6)


@pytest.mark.parametrize("n", [2, 5, *slow(3, 7)])
@pytest.mark.parametrize("steps", [7, 40, *slow(1)])
def test_what_the_device_stores_is_the_definition(n: int, steps: int) -> None:
    """Whenever one looks: transitions whose episode goes on have grown as far as it has come."""
    settings = replace(SMALL, n_step=n, discount=DISCOUNT)
    program = program_of(DQN(), environment=Script(), settings=settings)
    run = collect(program, start(program, DQN()), 0, steps)
    found = jax.vmap(program.learning.layout.unpack)(run.replay[:steps])
    begins, ends = (np.column_stack([each.episode, each.time]) for each in (found.state, found.next_state))
    check(found, begins, ends, [expected(n, *each) for each in trajectory(steps)])


@pytest.mark.parametrize("n", [1, 3, *slow(2, 4, 5, 7)])
def test_targets_are_rlaxs(n: int) -> None:
    """In episodes of length 1 to 5, terminated and truncated: what is stored, with any value of where it leads."""
    rlax: Any = pytest.importorskip("rlax", exc_type=ImportError)
    program = program_of(DQN(), environment=Script(), settings=replace(SMALL, n_step=n, discount=DISCOUNT))
    batch = program.learning.batch(
        jax.vmap(program.learning.layout.unpack)(collect(program, start(program, DQN()), 0, 30).replay[:30])
    )

    def value(seen: Any) -> Any:
        """Of (episode, time)."""
        return 7.0 + np.sin(seen[..., 0]) - 2.0 * np.cos(seen[..., 1])

    found = np.asarray(batch.rewards) + np.asarray(batch.discounts) * value(np.asarray(batch.next_observations))
    at = 0
    for episode in range(2 * len(LENGTHS)):
        times = np.arange(length_of(episode))
        discounts = np.full(len(times), DISCOUNT)
        discounts[-1] *= episode % 2  # nothing follows a terminal state
        after = np.column_stack([np.full(len(times), episode), times + 1])
        rewards = reward_at(episode, times)
        wanted = rlax.n_step_bootstrapped_returns(
            *(jnp.asarray(each) for each in (rewards, discounts, value(after))), n
        )
        np.testing.assert_allclose(found[at : at + len(times)], wanted, rtol=1e-5)
        at += len(times)
    assert at == 30


def test_a_replay_that_wraps_around_forgets_the_oldest_and_lengthens_the_rest() -> None:
    settings = replace(SMALL, n_step=3, discount=DISCOUNT, replay_capacity=10)
    program = program_of(DQN(), environment=Script(), settings=settings)
    run = collect(program, start(program, DQN()), 0, 37)
    order = np.arange(27, 37) % 10
    found = jax.vmap(program.learning.layout.unpack)(run.replay[order])
    begins, ends = (np.column_stack([each.episode, each.time]) for each in (found.state, found.next_state))
    check(found, begins, ends, [expected(3, *each) for each in trajectory(37)[27:]])


@pytest.mark.parametrize("n", [3, *slow(2, 5)])
@pytest.mark.parametrize("mode", ["next_step", "same_step", "alone"])
def test_what_the_host_stores_is_the_definition(n: int, mode: str) -> None:
    """In one environment and in three, which end their episodes at different times and begin anew in either of two ways."""
    if mode == "alone":
        env: Any = HostScript()
    else:
        kind = gymnasium.vector.AutoresetMode[mode.upper()]
        makers = [lambda first=2 * i: HostScript(first) for i in range(3)]
        env = gymnasium.vector.SyncVectorEnv(makers, autoreset_mode=kind)
    agent = maxmean.DQN(env, eval_env=HostScript(), n_step=n, discount=DISCOUNT, **small(warmup=1_000))
    with pytest.warns(UserWarning, match="nothing is learned yet"):
        agent.learn(60)
    stored = agent.driver.clock.stored
    found = jax.vmap(agent.driver.program.learning.layout.unpack)(agent.driver.run.replay[:stored])
    assert stored >= 60
    for i in range(stored):
        one = jax.tree.map(lambda leaf, i=i: np.asarray(leaf)[[i]], found)
        (episode, time), steps = map(int, one.state[0]), int(one.steps[0])
        check(one, one.state, one.next_state, [expected(n, episode, time, time + steps)])
        ended = time + steps == length_of(episode)
        assert steps == n or ended or i in agent.driver.lanes.earlier  # which is still growing


def test_targets_discount_by_the_steps_that_were_taken() -> None:
    """By hand: rewards of 4, 2 and 1 with a discount of 1/2 sum up to 4 + 1 + 1/4, and the value after them counts 1/8."""
    settings = replace(SMALL, n_step=3, discount=0.5)
    learning = program_of(DQN(), environment=Script(), settings=settings).learning
    moments = [Moment(jnp.int32(time), jnp.int32(0)) for time in range(4)]
    memory = jnp.zeros((4, learning.layout.words), jnp.uint32)
    for number, reward in enumerate((4.0, 2.0, 1.0)):
        step = Transition(
            moments[number], jnp.uint8(0), jnp.float32(reward), jnp.bool_(False), moments[number + 1], jnp.uint32(1)
        )
        earlier = jnp.array([number - 1, number - 2])
        memory = learning.lengthen(memory, earlier, earlier >= 0, step)
        memory = learning.remember(memory, jnp.int32(number), step)
    batch = learning.batch(jax.vmap(learning.layout.unpack)(memory[:3]))
    np.testing.assert_array_equal(batch.rewards, [5.25, 2.5, 1.0])
    np.testing.assert_array_equal(batch.discounts, [0.125, 0.25, 0.5])
    np.testing.assert_array_equal(batch.next_observations, [[0.0, 3.0]] * 3)


def test_one_step_is_what_it_was() -> None:
    """The same numbers, and the same leaves in the same order: checkpoints of before go on."""
    one, before = (program_of(KEBDQN(k=3), settings=each) for each in (replace(SMALL, n_step=1), SMALL))
    assert one == before
    run = start(one, KEBDQN(k=3))
    assert run.episode.growing == ()
    assert "n_step" not in Settings().describe()
    assert Settings(n_step=3).describe()["n_step"] == 3


def test_values_come_from_afar_in_one_update() -> None:
    """A reward at the end of a corridor is in the target of a state three steps before it, whose next value is still unknown."""
    settings = replace(SMALL, n_step=3)
    program = program_of(DQN(), environment=Script(), settings=settings)
    run = short_run(program, start(program, DQN()), 2)
    assert np.isfinite(float(run.tally.loss))
    other = short_run(program, start(program, DQN()), 2)
    assert differences(run, other) == []


def test_a_training_goes_on_where_it_was_kept(tmp_path: Any) -> None:
    """In the middle of an episode, whose transitions are still growing."""
    settings = {**small(n_step=3, k=3), "test_interval": 34}
    whole = maxmean.KEBDQN(HostScript(), eval_env=HostScript(), **settings).learn(102)
    part = maxmean.KEBDQN(HostScript(), eval_env=HostScript(), **settings).learn(68)
    assert (part.driver.lanes.earlier >= 0).any()
    again = maxmean.KEBDQN.load(part.save(tmp_path / "part"), HostScript(), eval_env=HostScript()).learn(34)
    for name in ("loss", "value", "train_return", "episodes"):
        np.testing.assert_array_equal(again.table[name], whole.table[name])
    np.testing.assert_array_equal(again.driver.run.replay, whole.driver.run.replay)
    with pytest.raises(HostError, match="n_step cannot be changed here: it is 3 there and 1 here"):
        maxmean.KEBDQN.load(tmp_path / "part", HostScript(), n_step=1)


def test_mistakes_are_said() -> None:
    with pytest.raises(AgentError, match="n_step must be"):
        Settings(n_step=0)
    with pytest.raises(AgentError, match="n_step must be at most 255, not 300"):
        Settings(n_step=300)
    with pytest.raises(AgentError, match="n_step must be at most replay_capacity, 10, not 20"):
        Settings(n_step=20, replay_capacity=10)
    three = gymnasium.vector.SyncVectorEnv([HostScript] * 3)
    with pytest.raises(HostError, match="with 3 environments and n_step=5 replay_capacity must be at least 15, not 10"):
        maxmean.DQN(three, eval_env=HostScript(), **small(n_step=5, replay_capacity=10))


def test_the_replay_is_not_copied_for_the_transitions_that_grow() -> None:
    program = program_of(DQN(), environment=Script(), settings=replace(SMALL, n_step=5, replay_capacity=100_000))
    run = jax.eval_shape(program.create, jnp.zeros(2, jnp.uint32), program.family.traits(DQN(), 0.0))
    memory: Any = jax.jit(program.learn, donate_argnums=0).lower(run, 0, 0).compile().memory_analysis()
    assert memory.temp_size_in_bytes < run.replay.size * 4 / 10
