"""Frames that are stored once: batches are those of a memory that stores whole observations, and no old frame is in a stack."""

from __future__ import annotations

import inspect
import shutil
import warnings
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FrameStackObservation, NormalizeObservation
from hypothesis import given, settings
from hypothesis import strategies as st

import inside
from host_toys import Counter, small
from maxmean import DQN, KEBDQN
from maxmean.deep.core import frames as core
from maxmean.deep.core.frames import FrameStore, Stack
from maxmean.deep.core.run import Purpose
from maxmean.deep.host import HostAgent, HostError, plain, training
from maxmean.deep.host.adapters import adapter_of
from maxmean.deep.host.driver import Driver
from maxmean.deep.host.frames import stack_of
from maxmean.deep.host.making import make_training
from maxmean.deep.host.program import HostProgram
from maxmean.deep.host.spaces import sight
from strangers import drop, forge_agent, put

SIDE = 3
End = tuple[int, bool]
"""Steps of an episode, and whether it terminates; else it is truncated."""


class Film(gymnasium.Env):
    """Shows frames of chance, now and then the same twice; its episodes are as long as it is told, one after the other."""

    observation_space: spaces.Space = spaces.Box(0, 255, (SIDE, SIDE), np.uint8)
    action_space = spaces.Discrete(3)

    def __init__(self, ends: Sequence[End] = ((4, True), (7, False)), seed: int = 0) -> None:
        self.ends, self.episode, self.time = ends, -1, 0
        self.luck = np.random.default_rng(seed)
        self.frame = np.zeros((SIDE, SIDE), np.uint8)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode, self.time = self.episode + 1, 0
        return self._see(), {"action_mask": np.array([1, self.time % 2, 1])}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        length, terminates = self.ends[self.episode % len(self.ends)]
        over, reward = self.time >= length, float(self.luck.normal())
        info = {"action_mask": np.array([1, self.time % 2, 1])}
        return self._see(), reward, over and terminates, over and not terminates, info

    def _see(self) -> Any:
        if self.luck.random() < 0.7:
            self.frame = self.luck.integers(256, size=(SIDE, SIDE), dtype=np.uint8)
        return self.frame.copy()


class Reel(Film):
    """A film that stacks its three last frames itself, behind all others, and can be put where it was."""

    observation_space = spaces.Box(0, 255, (SIDE, SIDE, 3), np.uint8)
    stack = np.zeros((SIDE, SIDE, 3), np.uint8)

    def _see(self) -> Any:
        self.stack = np.concatenate([self.stack[..., 1:] * (self.time > 0), super()._see()[..., None]], axis=-1)
        return self.stack

    def get_state(self) -> dict[str, Any]:
        known = {"episode": self.episode, "time": self.time, "frame": self.frame, "stack": self.stack}
        return {**known, "luck": self.luck.bit_generator.state}

    def set_state(self, state: dict[str, Any]) -> None:
        self.episode, self.time, self.frame, self.stack = (state[k] for k in ("episode", "time", "frame", "stack"))
        self.luck.bit_generator.state = state["luck"]


STORED: tuple[dict[str, Any], ...] = {}, {"frames": 1}
"""Settings that store each frame once, and whole observations."""


def pair(env: Callable[[], Any], kind: type[HostAgent] = DQN, **own: Any) -> list[HostAgent]:
    """An agent that stores frames once, and the same one that stores whole observations; both have begun."""
    changes = small(replay_capacity=20, warmup=10_000, **own)
    agents = [kind(env(), eval_env=FrameStackObservation(Film(), 2), **changes, **frames) for frames in STORED]
    assert [agent.driver.program.frames is None for agent in agents] == [False, True]
    for agent in agents:
        agent.driver.begin()
    return agents


@cache
def reader(program: HostProgram) -> Any:
    return jax.jit(program.learning.at)


def rows(agent: HostAgent, which: Any) -> Any:
    return jax.tree.map(np.asarray, reader(agent.driver.program)(agent.driver.run, np.asarray(which)))


def assert_same(ours: Any, theirs: Any) -> None:
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


ENDS = st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=6)


@settings(max_examples=5, deadline=None, derandomize=True)
@given(ends=ENDS, padding=st.sampled_from(["reset", "zero"]), seed=st.integers(0, 99))
def test_one_environments_batches_are_those_of_whole_observations(ends: list[End], padding: str, seed: int) -> None:
    """Of three steps, with illegal actions, around the end of the memory; whatever the episodes and however they begin."""
    agents = pair(lambda: FrameStackObservation(Film(ends, seed), 2, padding_type=padding), n_step=3)
    compare(agents, steps=45)


@settings(max_examples=5, deadline=None, derandomize=True)
@given(ends=ENDS, mode=st.sampled_from([AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP]), seed=st.integers(0, 99))
def test_several_environments_batches_are_those_of_whole_observations(
    ends: list[End], mode: AutoresetMode, seed: int
) -> None:
    """Their frames lie among each other's; heads learn from half of the transitions."""

    def env() -> Any:
        def film(i: int) -> Any:
            turned = [*ends[i % len(ends) :], *ends[: i % len(ends)]]
            return FrameStackObservation(Film(turned, seed + i), 2)

        return SyncVectorEnv([partial(film, i) for i in range(3)], autoreset_mode=mode)

    compare(pair(env, KEBDQN, k=2, mask=0.5), steps=20)


def compare(agents: Sequence[HostAgent], steps: int) -> None:
    ours, theirs = (agent.driver for agent in agents)
    for number in range(steps):
        for agent in agents:
            agent.driver.step()
        if number % 5 == 0 or number == steps - 1:
            filled = np.arange(20) % min(20, ours.clock.stored)
            assert_same(rows(agents[0], filled), rows(agents[1], filled))
    assert ours.clock == theirs.clock
    assert ours.frames is not None
    assert ours.frames.first == max(0, ours.clock.stored - 20)  # nothing is missing
    words = jnp.asarray(np.random.default_rng(0).integers(2**32, size=20, dtype=np.uint32))
    drawn = [agent.driver.program.learning.stored(agent.driver.run, jnp.int32(20), words) for agent in agents]
    assert_same(*drawn)


@pytest.mark.slow
def test_a_training_is_that_of_whole_observations() -> None:
    def env() -> Any:
        return FrameStackObservation(Film(), 2)

    ours, theirs = (
        KEBDQN(env(), eval_env=env(), k=2, **small(replay_capacity=60, n_step=3), **frames).learn(150)
        for frames in STORED
    )
    assert ours.table.equals(theirs.table)
    assert_same(ours.driver.run.learner, theirs.driver.run.learner)


def walk(driver: Driver, steps: int) -> None:
    for _ in range(steps):
        driver.step()


def test_a_frame_that_is_overwritten_is_in_no_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """With episodes so short that the frames do not fit, the memory is that of fewer transitions: the last ones, all whole."""
    monkeypatch.setattr(core, "LEAST_SPARE", 0)
    ends = [(1, True), (2, False), (3, True)]
    agents = [
        DQN(
            FrameStackObservation(Film(ends), 2, padding_type="zero"),
            eval_env=FrameStackObservation(Film(), 2),
            **small(replay_capacity=101, warmup=10_000),
            **frames,
        )
        for frames in STORED
    ]
    ours, theirs = (agent.driver for agent in agents)
    for driver in (ours, theirs):
        driver.begin()
    with pytest.warns(UserWarning, match=r"holds [\d,]+ of [\d,]+ transitions: in short episodes .*frames=1") as caught:
        walk(ours, 250)
    assert len(caught) == 1
    walk(theirs, 250)
    assert ours.frames is not None
    held = ours.clock.stored - ours.frames.first
    assert 30 < held < 101
    last = np.arange(ours.frames.first, ours.clock.stored) % 101
    assert_same(rows(agents[0], last), rows(agents[1], last))
    words = jnp.asarray(np.random.default_rng(0).integers(2**32, size=5_000, dtype=np.uint32))
    learning = ours.program.learning
    assert learning.frames is not None
    drawn = learning.frames.draw(ours.run.replay, jnp.int32(101), words)
    assert set(np.asarray(drawn).tolist()) == set(last.tolist())  # none is missed, but with probability e^-40 at most


@pytest.mark.parametrize("mode", [None, *AutoresetMode])
def test_observations_that_are_no_stacks_are_called_so(
    mode: AutoresetMode | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three numbers that change at will, in episodes of a thousand steps; and the same in stacks."""
    monkeypatch.setattr(core, "LEAST_SPARE", 0)

    class Numbers(Film):
        observation_space = spaces.Box(0, 255, (3,), np.uint8)

        def _see(self) -> Any:
            return self.luck.integers(256, size=3, dtype=np.uint8)

    long = partial(Numbers, [(1_000, True)])
    env: Any = long() if mode is None else SyncVectorEnv([long], autoreset_mode=mode)
    driver = DQN(env, eval_env=long(), **small(replay_capacity=101, warmup=10_000, frames=3)).driver
    driver.begin()
    said = r"^the replay holds \d+ of \d+ transitions: consecutive observations are not shifted .*: leave frames=3 out$"
    with pytest.warns(UserWarning, match=said) as caught:
        walk(driver, 250)
    assert len(caught) == 1


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_stacks_have_no_jumps_however_their_episodes_begin(mode: AutoresetMode) -> None:
    def stacked() -> Any:
        return FrameStackObservation(Film(), 2)

    env = SyncVectorEnv([stacked] * 2, autoreset_mode=mode)
    driver = DQN(env, eval_env=stacked(), **small(warmup=10_000)).driver
    driver.begin()
    walk(driver, 40)
    assert driver.frames is not None
    assert (driver.frames.steps, driver.frames.jumps) == (driver.clock.stored, 0)


@pytest.mark.parametrize("frames", [0, -1])
def test_a_stack_has_a_frame_at_least(frames: int) -> None:
    with pytest.raises(HostError, match=f"^frames must be at least 1, not {frames}; leave it out"):
        DQN(Reel(), **small(frames=frames))


def test_files_of_before_may_say_that_there_are_no_frames(tmp_path: Path) -> None:
    """Which meant what the environment says."""
    path = DQN(Reel(), eval_env=Reel(), **small()).learn(30).save(tmp_path / "agent")
    forge_agent(path, put("given/frames", 0))
    again = DQN.load(path, Reel(), eval_env=Reel())
    assert again.host.frames == 0
    assert again.num_timesteps == 30


def test_a_training_goes_on_where_it_was_kept(tmp_path: Path) -> None:
    """In the middle of an episode, with transitions that still grow: the same records and the same memory."""
    changes = {**small(n_step=3, replay_capacity=30, frames=3), "test_interval": 37}
    whole = DQN(Reel(), eval_env=Reel(), **changes).learn(74)
    part = DQN(Reel(), eval_env=Reel(), **changes).learn(37)
    assert part.driver.program.frames is not None
    again = DQN.load(part.save(tmp_path / "part"), Reel(), eval_env=Reel()).learn(37)
    for name in ("loss", "value", "train_return", "episodes"):
        np.testing.assert_array_equal(again.table[name], whole.table[name])
    assert_same(again.driver.run, whole.driver.run)
    with pytest.raises(HostError, match="frames cannot be changed here: it is 3 there"):
        DQN.load(tmp_path / "part", Reel(), frames=1)


@pytest.mark.parametrize("n", [1, 2])
def test_a_new_episode_after_loading_leaves_the_memory_alone(n: int, tmp_path: Path) -> None:
    """With transitions that still grew when it was saved; and what follows is that of whole observations."""

    def env() -> Any:
        return SyncVectorEnv([partial(stacked, i) for i in range(n)], autoreset_mode=AutoresetMode.SAME_STEP)

    def stacked(i: int) -> Any:
        return FrameStackObservation(Film(seed=i), 2)

    agents = pair(env, n_step=3)
    for agent in agents:
        walk(agent.driver, 9)
    loaded = []
    for number, agent in enumerate(agents):
        path = agent.save(tmp_path / f"agent{number}")
        with pytest.warns(UserWarning, match="a new episode begins"):
            loaded.append(DQN.load(path, env(), eval_env=stacked(0)))
        assert_same(rows(loaded[-1], np.arange(9 * n)), rows(agent, np.arange(9 * n)))
    compare(loaded, steps=20)


@pytest.mark.parametrize(
    ("change", "arrays", "said"),
    [
        (put("frames/first", 99), {}, "name frames that there are not"),
        (put("frames/written", 1), {}, "run.replay.frames is missing or has another shape"),
        (put("frames/count", 2), {}, "frames=2 does not fit"),
        (drop("frames"), {}, "run.replay is missing"),
        (lambda text: None, {"frames.numbers": np.full((1, 3), 10**6)}, "name frames that there are not"),
        (lambda text: None, {"frames.oldest": np.full(30, -1)}, "name frames that there are not"),
        (lambda text: None, {"frames.oldest": None}, "frames.oldest is missing or has another shape"),
        (lambda text: None, {"run.replay.links": np.zeros(3, np.int32)}, "run.replay.links is missing or has another"),
    ],
)
def test_frames_in_a_strangers_file_are_looked_at(
    change: Any, arrays: dict[str, Any], said: str, saved: Path, tmp_path: Path
) -> None:
    forge_agent(path := Path(shutil.copy(saved, tmp_path)), change, arrays)
    with pytest.raises(HostError, match=f"cannot be used: .*{said}"):
        DQN.load(path, Reel(), eval_env=Reel())


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    agent = DQN(Reel(), eval_env=Reel(), **small(n_step=3, replay_capacity=30, frames=3, warmup=1_000))
    for _ in range(200):
        agent.driver.begin()
        agent.driver.step()
    return agent.save(tmp_path_factory.mktemp("saved") / "agent")


def test_what_was_stored_whole_goes_on_whole(tmp_path: Path) -> None:
    """Files of before have no frames, whatever the environment says."""

    def env() -> Any:
        return FrameStackObservation(Film(), 2)

    before = DQN(env(), eval_env=env(), **small(frames=1)).learn(50)
    before.given.pop("frames")
    path = before.save(tmp_path / "before")
    with pytest.warns(UserWarning, match="a new episode begins"):
        after = DQN.load(path, env(), eval_env=env())
    assert after.driver.program.frames is None
    np.testing.assert_array_equal(after.driver.run.replay, before.driver.run.replay)
    assert DQN(env(), eval_env=env(), **small()).driver.program.frames is not None


def test_the_memory_is_written_in_place() -> None:
    agent = DQN(
        FrameStackObservation(Film(), 2), eval_env=FrameStackObservation(Film(), 2), **small(replay_capacity=9_999)
    )
    driver = agent.driver
    driver.begin()
    message = np.zeros((1, driver.program.layout.words), np.uint32)
    memory = driver.program.learn.lower(driver.run, message).compile().memory_analysis()  # type: ignore[attr-defined]
    there = sum(leaf.nbytes for leaf in driver.run.replay)
    assert driver.need.replay == there - 8  # two numbers aside
    assert memory.temp_size_in_bytes < there / 10
    assert memory.alias_size_in_bytes >= there


def test_a_million_atari_transitions_fit_in_8_gb() -> None:
    """One frame of 84 x 84 bytes each, one more for every 32, and 24 bytes of links and row."""
    store = FrameStore.of(Stack((84, 84, 4), 4, 2), "uint8", 1_000_000, n=8, n_step=1)
    assert 84 * 84 * 1.031e6 < store.bytes < 7.3e9


@pytest.mark.parametrize(
    ("shape", "count", "axis"), [((4, 5, 6), 3, 2), ((4, 5, 6), 4, 0), ((6,), 2, 0), ((3, 8), 3, 0)]
)
def test_frames_are_taken_apart_and_put_together(shape: tuple[int, ...], count: int, axis: int) -> None:
    stack, seen = Stack(shape, count, axis), np.arange(2 * np.prod(shape)).reshape(2, *shape)
    frames = stack.split(seen)
    assert frames.shape == (2, count, *stack.frame)
    np.testing.assert_array_equal(frames[:, -1], np.split(seen, count, axis=1 + axis)[-1])
    np.testing.assert_array_equal(stack.join(frames), seen)


def test_stacks_are_found_where_the_environment_says_so() -> None:
    """Whichever way they are turned for the network; not behind a wrapper that changes what was shown."""

    def found(env: Any, count: int = 0) -> Stack | None:
        single = getattr(env, "single_observation_space", env.observation_space)
        return stack_of(env, sight(single), count)

    class Large(Film):
        observation_space = spaces.Box(0, 255, (40, 40), np.uint8)

    assert found(FrameStackObservation(Film(), 2)) == Stack((SIDE, SIDE, 2), 2, 2)
    assert found(FrameStackObservation(Film(), SIDE)) == Stack((SIDE, SIDE, SIDE), SIDE, 0)
    assert found(FrameStackObservation(Large(), 4)) == Stack((40, 40, 4), 4, 2)
    assert found(gymnasium.wrappers.TimeLimit(FrameStackObservation(Large(), 4), 9)) == Stack((40, 40, 4), 4, 2)
    assert found(FrameStackObservation(gymnasium.make("CartPole-v1"), 3)) == Stack((3, 4), 3, 0)
    assert found(SyncVectorEnv([lambda: FrameStackObservation(Film(), 2)] * 2)) == Stack((SIDE, SIDE, 2), 2, 2)
    assert found(NormalizeObservation(FrameStackObservation(Film(), 2))) is None
    assert found(FrameStackObservation(Film(), 1)) is None
    assert found(Reel()) is None
    assert found(Reel(), 3) == Stack((SIDE, SIDE, 3), 3, 2)
    assert found(FrameStackObservation(Film(), 2), 1) is None
    with pytest.raises(HostError, match=r"frames=4 does not fit observations that the network sees as \[3, 3, 3\]"):
        DQN(Reel(), **small(frames=4))


def test_a_wrapper_that_may_change_what_it_shows_hides_a_stack() -> None:
    """Even in the same space: frames that do not roll would be stored several times."""

    def turned() -> Any:
        env = FrameStackObservation(Film(), 2)
        return gymnasium.wrappers.TransformObservation(env, lambda seen: seen[::-1], env.observation_space)

    for env in (turned(), SyncVectorEnv([turned])):
        assert stack_of(env, sight(turned().observation_space)) is None


def apart(make: Callable[[], Any]) -> Any:
    """An environment of which nothing is in this process."""
    return AsyncVectorEnv([make], context="spawn")


def test_in_another_process_the_outermost_wrapper_must_stack() -> None:
    normalised = apart(lambda: NormalizeObservation(FrameStackObservation(Counter(), 3)))
    stacked = apart(lambda: FrameStackObservation(Counter(), 3))
    bare = apart(Counter)
    found = [stack_of(env, sight(env.single_observation_space)) for env in (normalised, stacked, bare)]
    assert found == [None, Stack((3, 2), 3, 0), None]
    for env in (normalised, stacked, bare):
        env.close()


class Lives(gymnasium.Env):
    """Two lives of two steps each, with rewards 5, -3, 0 and 2."""

    observation_space = spaces.Box(0, 9, (1,), np.float32)
    action_space = spaces.Discrete(2)
    REWARDS = (5.0, -3.0, 0.0, 2.0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.time = 0
        return np.zeros(1, np.float32), {"lives": 2}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        lives = 2 - self.time // 2
        return np.full(1, self.time, np.float32), self.REWARDS[self.time - 1], lives == 0, False, {"lives": lives}


USUAL = {"clip_reward": True, "terminal_on_life_loss": True}


@pytest.mark.parametrize("several", [False, True])
def test_a_lost_life_ends_the_episode_for_the_agent_alone(several: bool) -> None:
    """Signs are learned from, and sums of several steps do not reach across a life; the return is the game's own."""
    env = SyncVectorEnv([Lives, Lives]) if several else Lives()
    agent = DQN(env, eval_env=Lives(), **small(n_step=2, discount=0.5, test_interval=40), **USUAL).learn(40)
    found = agent.driver.program.learning.at(agent.driver.run, jnp.arange(32))
    time = np.asarray(found.state)[:, 0].astype(int)
    np.testing.assert_array_equal(found.reward, np.array([1 - 0.5, -1.0, 0.5, 1.0])[time])
    np.testing.assert_array_equal(found.next_state[:, 0], np.array([2, 2, 4, 4])[time])
    assert np.asarray(found.terminated).all()  # after two steps, every transition has reached an end
    row = agent.table.iloc[-1]
    assert row["train_return"] == row["test_return"] == 4.0


def test_the_bias_is_that_of_what_was_learned_from() -> None:
    """All weights zero, so the bias is minus the mean return: of signs, and of each life by itself."""
    agent = DQN(Lives(), eval_env=Lives(), **small(discount=0.5), **USUAL)
    agent.driver.begin()
    run = agent.driver.run
    weights = jax.tree.map(jnp.zeros_like, run.learner.weights)
    agent.driver.run = run._replace(learner=run.learner._replace(weights=weights))
    assert agent.bias(2).value == pytest.approx(-np.mean([1 - 0.5, -1.0, 0.5, 1.0]))


class LastingLives(Lives):
    """The same, and it can be put where it was."""

    def get_state(self) -> dict[str, Any]:
        return {"time": self.time}

    def set_state(self, state: dict[str, Any]) -> None:
        self.time = state["time"]


@pytest.mark.parametrize("mode", [None, *AutoresetMode], ids=lambda mode: "alone" if mode is None else mode.name)
def test_lives_go_on_where_they_were_kept(mode: AutoresetMode | None, tmp_path: Path) -> None:
    """Whenever it is saved, a life is lost after the same steps."""

    def agent() -> HostAgent:
        return DQN(env(), eval_env=LastingLives(), **small(warmup=10_000), **USUAL)

    def env() -> Any:
        return LastingLives() if mode is None else SyncVectorEnv([LastingLives] * 2, autoreset_mode=mode)

    whole = agent()
    whole.driver.begin()
    walk(whole.driver, 16)
    for saved in range(7, 12):
        part = agent()
        part.driver.begin()
        walk(part.driver, saved)
        again = DQN.load(part.save(tmp_path / "part"), env(), eval_env=LastingLives())
        walk(again.driver, 16 - saved)
        assert_same(again.driver.run, whole.driver.run)


RETURNS = (1 - 0.5, -1.0, 0.5, 1.0)
"""Of a life, by the time in a game, with signs of rewards and a discount of a half."""


def test_roll_outs_from_kept_states_have_the_lives_of_then(tmp_path: Path) -> None:
    """The first return is that of the life that is lived in the state."""
    agent = with_lives()
    first_returns(agent)
    first_returns(DQN.load(agent.save(tmp_path / "agent"), LastingLives(), eval_env=LastingLives()))


def test_a_training_without_lives_may_go_on_with_them_and_back(tmp_path: Path) -> None:
    agent = with_lives(terminal_on_life_loss=False)
    for counts in (True, False):
        path = agent.save(tmp_path / "agent")
        own = {"eval_env": LastingLives(), "terminal_on_life_loss": counts}
        agent = DQN.load(path, LastingLives(), **own).learn(10)
        assert (agent.driver.world.lives is not None) == counts
        assert agent.bias(4).how == "stored states"


def with_lives(**changes: Any) -> HostAgent:
    settings = {**small(discount=0.5, replay_capacity=32, test_interval=40), **USUAL, **changes}
    return DQN(LastingLives(), eval_env=LastingLives(), **settings).learn(40)


def first_returns(agent: HostAgent) -> None:
    player = agent.driver.player()
    assert player is not None
    assert player.how == "stored states"
    begun = set()
    for number in range(30):
        view = player._begin(Purpose.BIAS, 0, number)
        begun.add(time := int(view.seen[0, 0]))
        assert player._play(agent.driver.run, 0, view).returns[0] == RETURNS[time]
    assert begun == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("change", "arrays", "said"),
    [
        (lambda text: None, {"lives": np.zeros(2, np.int64)}, "its array lives is missing or has another shape"),
        (lambda text: None, {"lives": np.zeros(1)}, "its array lives is missing or has another shape"),
        (put("kept/0/items/2", 3), {}, "a state that it keeps for roll-outs has another form"),
        (put("kept/0/items/2", plain.pack(np.zeros(1))), {}, "a state that it keeps for roll-outs has another form"),
    ],
)
def test_lives_in_a_strangers_file_are_looked_at(
    change: Any, arrays: dict[str, Any], said: str, tmp_path: Path
) -> None:
    agent = DQN(LastingLives(), eval_env=LastingLives(), **small(), **USUAL)
    agent.driver.begin()
    walk(agent.driver, 5)
    forge_agent(path := agent.save(tmp_path / "agent"), change, arrays)
    with pytest.raises(HostError, match=f"cannot be used: .*{said}"):
        DQN.load(path, LastingLives(), eval_env=LastingLives())


class Careless(Lives):
    """Loses one of nine lives with every step, and is truncated after so many."""

    def __init__(self, length: int) -> None:
        self.length = length

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        return super().reset(**options)[0], {"lives": 9}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return np.full(1, self.time, np.float32), 0.0, False, self.time == self.length, {"lives": 9 - self.time}


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
def test_a_life_that_is_lost_with_the_first_step_is_one_in_every_autoreset_mode(mode: AutoresetMode) -> None:
    """Also while the other environment has just begun anew."""
    world = adapter_of(SyncVectorEnv([partial(Careless, 2), partial(Careless, 3)], autoreset_mode=mode))
    world.teach(clip_reward=False, terminal_on_life_loss=True)
    world.reset(0)
    for _ in range(12):
        after = world.step(np.zeros(2, int))
        np.testing.assert_array_equal(after.lost, after.counts & ~after.over)


def test_without_lives_there_is_a_sentence() -> None:
    with pytest.raises(
        HostError, match=r"terminal_on_life_loss needs the lives in info\['lives'\].* there is None at reset"
    ):
        DQN("CartPole-v1", **small(), **USUAL).learn(30)
    with pytest.raises(HostError, match="clip_reward must be True or False, not 3"):
        DQN("CartPole-v1", clip_reward=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert DQN("CartPole-v1", **small()).host.clip_reward is False


def test_the_command_line_has_the_usual_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, Any] = {}
    signature = inspect.signature(training.train)

    def train(*arguments: Any, **named: Any) -> tuple[Any, bool]:
        told.update(signature.bind(*arguments, **named).arguments)
        return None, True

    monkeypatch.setattr(training, "train", train)
    usual = ["--no-clip-reward", "--terminal-on-life-loss", "--frames", "4", "--num-envs", "8"]
    command = ["train", "--agent", "dqn", "--out", tmp_path, "--quiet", *usual]
    assert inside.maxmean(*command, "--env", "ALE/Pong-v5").returncode in (None, 0)
    assert told["given"] == {"clip_reward": False, "terminal_on_life_loss": True, "frames": 4}
    assert told["num_envs"] == 8
    refused = inside.maxmean(*command, "--env", "minatar/breakout")
    assert refused.returncode == 2
    assert "is for Gymnasium's environments, not for minatar/breakout" in refused.stderr
    none = inside.maxmean("train", "--out", tmp_path, "--env", "ALE/Pong-v5", "--frames", "0")
    assert none.returncode == 2
    assert "--frames must be at least 1, not 0" in none.stderr


def test_several_environments_of_an_id_are_one_vector_environment() -> None:
    agent = DQN(make_training("CartPole-v1", 2), **small())
    assert (agent.num_timesteps, agent.env.num_envs, agent.env.spec.id) == (0, 2, "CartPole-v1")
    assert agent.driver.keeps
    assert agent.driver.program.frames is None
