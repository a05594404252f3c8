"""Save, stop, load, go on."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
import time
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
import pandas as pd
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from host_toys import Counter, Walk, small
from maxmean import DQN, KEBDQN, TEBDQN, AdaTEBDQN, envs, mev
from maxmean.deep import EpsilonGreedy, HeadPerEpisode, Optimistic
from maxmean.deep.host import HostAgent, HostError, plain
from maxmean.deep.networks import Perceptron
from seldom import mostly_slow, slow


def same(first: HostAgent, second: HostAgent) -> None:
    """Weights, optimiser, replay, counters, pending actions and records are the same, bit for bit."""
    a, b = first.driver, second.driver
    for x, y in zip(jax.tree.leaves((a.run, a.pending)), jax.tree.leaves((b.run, b.pending)), strict=True):
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes()
    assert a.clock == b.clock
    pd.testing.assert_frame_equal(first.table, second.table)
    pd.testing.assert_frame_equal(first.records.frame("heads"), second.records.frame("heads"))


def walks(mode: AutoresetMode) -> Any:
    return SyncVectorEnv([partial(Walk, i) for i in range(2)], autoreset_mode=mode)


def breakout() -> Any:
    return envs.to_gymnasium(envs.make("minatar/breakout"))


WORLDS = {
    "walk": Walk,
    "cartpole": lambda: gymnasium.make("CartPole-v1"),
    "blackjack": lambda: gymnasium.make("Blackjack-v1"),
    "next-step": lambda: walks(AutoresetMode.NEXT_STEP),
    "same-step": lambda: walks(AutoresetMode.SAME_STEP),
    "breakout": breakout,
}


@pytest.mark.parametrize("world", mostly_slow(WORLDS, ["blackjack", "same-step"]))
def test_what_was_saved_and_loaded_goes_on_as_if_never_stopped(world: str, tmp_path: Path) -> None:
    make = WORLDS[world]
    single = Walk if world in ("next-step", "same-step") else make
    kind: type[HostAgent] = DQN if world == "breakout" else AdaTEBDQN
    own = {} if kind is DQN else {"k": 2, "horizon": 3, "mask": 0.7}
    settings = small(measure_bias=True, bias_episodes=2, bias_episodes_per_head=1, test_episodes=1, **own)
    whole = kind(make(), eval_env=single(), **settings)
    saved: list[Path] = []

    def save(row: dict[str, Any]) -> None:
        if row["step"] >= 50 and not saved:
            saved.append(whole.save(tmp_path / "half"))

    whole.learn(130, callback=save)
    loaded = kind.load(saved[0], make(), eval_env=single())
    loaded.learn(130 - loaded.num_timesteps)
    same(whole, loaded)


def test_where_the_environment_cannot_be_restored_it_says_so_and_the_rest_is_there(tmp_path: Path) -> None:
    agent = DQN(Counter(), eval_env=Counter(), **small()).learn(60)
    agent.save(tmp_path / "agent")
    with pytest.warns(UserWarning, match="everything is restored but the environment's state.*get_state") as said:
        loaded = DQN.load(tmp_path / "agent", Counter(), eval_env=Counter())
    assert [each.filename for each in said] == [__file__]  # it points at the line that loads
    assert loaded.num_timesteps == 60
    np.testing.assert_array_equal(loaded.driver.run.replay, agent.driver.run.replay)
    loaded.learn(30)
    pd.testing.assert_frame_equal(loaded.table.head(len(agent.table)), agent.table)


def test_an_environment_that_shows_its_arrays_turned_is_saved_as_it_is(tmp_path: Path) -> None:
    """CartPole's own vector environment gives a transposed array, which safetensors would write as it lies in memory."""
    agent = DQN(gymnasium.make_vec("CartPole-v1", 2), **small()).learn(50)
    assert agent.driver.lanes.seen.flags.f_contiguous
    path = agent.save(tmp_path / "agent")
    with pytest.warns(UserWarning, match="CartPoleVectorEnv does not show its environments"):
        loaded = DQN.load(path, gymnasium.make_vec("CartPole-v1", 2))
    np.testing.assert_array_equal(loaded.driver.run.replay, agent.driver.run.replay)


def test_settings_come_back_as_they_were(tmp_path: Path) -> None:
    agent = KEBDQN(
        Walk(), eval_env=Walk(), kernel=mev.Beta(2.0, 0.5), k=2, network=Perceptron((4, 3)), seed=7, **small()
    )
    loaded = KEBDQN.load(agent.save(tmp_path / "agent"), Walk(), eval_env=Walk())
    assert loaded.choice == agent.choice
    dqn = DQN(Walk(), exploration=EpsilonGreedy(0.5, 0.1, 10), eval_env=Walk(), **small())
    assert DQN.load(dqn.save(tmp_path / "dqn"), Walk(), eval_env=Walk()).choice == dqn.choice


def test_what_a_training_says_of_itself_is_what_those_of_before_have_written() -> None:
    said = DQN(Walk(), eval_env=Walk(), seed=3, measure_bias=False).describe()["host"]
    own = {"seed": 3, "train_every": 1, "gradient_steps": 1, "measure_bias": False}
    assert said == {**own, "network": "Perceptron(widths=(128,))"}
    assert DQN(Walk(), eval_env=Walk(), scale_observations=True).describe()["host"]["scale_observations"] is True


@pytest.mark.parametrize("own", [*slow({"prior": 1.0}), {"hidden": 9}], ids=str)
def test_another_network_than_the_one_in_the_file_is_named(own: dict[str, Any], tmp_path: Path) -> None:
    path = KEBDQN(Walk(), eval_env=Walk(), k=2, **small()).learn(30).save(tmp_path / "agent")
    with pytest.raises(HostError, match=f"{next(iter(own))} cannot be changed here: the network"):
        KEBDQN.load(path, Walk(), eval_env=Walk(), **own)


def test_an_agent_of_other_parts_goes_on_as_if_it_had_never_stopped(tmp_path: Path) -> None:
    own: dict[str, Any] = {
        "ensemble": "networks",
        "prior": 1.0,
        "paired": True,
        "k": 2,
        "layer_norm": True,
        "scale_observations": True,
    }
    for explores in (HeadPerEpisode(0.2, 0.1, 10), Optimistic(bonus=0.5), "heads:0.1"):
        assert plain.unpack(plain.pack(explores)) == explores
    agent = KEBDQN(Walk(), eval_env=Walk(), exploration=Optimistic(bonus=0.5), **{**small(), **own}).learn(40)
    again = KEBDQN.load(agent.save(tmp_path / "agent"), Walk(), eval_env=Walk())
    assert again.choice == agent.choice
    assert again.learn(20).table.equals(agent.learn(20).table)


class Other(Walk):
    """Has the same spaces, and states of another kind."""

    def get_state(self) -> dict[str, Any]:
        return {"when": self.time}

    def set_state(self, state: dict[str, Any]) -> None:
        self.time = state["when"]


@pytest.mark.parametrize("env", [Other, lambda: gymnasium.wrappers.TimeLimit(Walk(), 9)], ids=["other", "wrapped"])
def test_another_environments_state_is_not_put_into_this_one(env: Any, tmp_path: Path) -> None:
    """Nor those that were kept for roll-outs."""
    settings = small(measure_bias=True, bias_episodes=1)
    path = DQN(Walk(), eval_env=Walk(), **settings).learn(33).save(tmp_path / "agent")
    with pytest.warns(UserWarning, match=r"\(it is made otherwise than the one that was saved\): a new episode begins"):
        loaded = DQN.load(path, env(), eval_env=env())
    assert loaded.learn(10).num_timesteps == 43


def test_a_state_that_cannot_be_written_costs_only_itself(tmp_path: Path) -> None:
    class Strange(Walk):
        def get_state(self) -> Any:
            return {"seen": {1, 2}}

    agent = DQN(Strange(), eval_env=Strange(), **small()).learn(60)
    with pytest.warns(UserWarning, match=r"everything is saved but the environment's state \(a set cannot be saved"):
        path = agent.save(tmp_path / "agent")
    with pytest.warns(UserWarning, match=r"\(its state was not saved\): a new episode begins"):
        loaded = DQN.load(path, Strange(), eval_env=Strange())
    np.testing.assert_array_equal(loaded.driver.run.replay, agent.driver.run.replay)


def test_a_pickled_or_copied_agent_goes_on_as_the_first(tmp_path: Path) -> None:
    """As other libraries send agents to their workers."""
    agent = KEBDQN(Walk(), eval_env=Walk(), k=2, **small()).learn(60)
    pickled, copied = pickle.loads(pickle.dumps(agent)), copy.deepcopy(agent)
    agent.learn(60)
    same(pickled.learn(60), agent)
    same(copied.learn(60), agent)


def test_settings_that_are_given_anew_hold_from_there_on(tmp_path: Path) -> None:
    given = {"k": 2, **small()}
    path = TEBDQN(Walk(), eval_env=Walk(), alpha=0.1, **given).learn(40).save(tmp_path / "agent")
    changed = TEBDQN.load(path, Walk(), eval_env=Walk(), learning_rate=0.5, alpha=0.4, seed=3)
    run = changed.driver.run
    assert run.traits.learning_rate == 0.5
    assert run.traits.parameter == np.float32(0.4)
    assert np.asarray(run.key).tolist() == [0, 3]
    assert TEBDQN.load(path, Walk(), eval_env=Walk()).driver.run.traits.parameter == np.float32(0.1)


def test_what_has_adapted_stays_so_unless_it_is_given_anew(tmp_path: Path) -> None:
    agent = AdaTEBDQN(Walk(), eval_env=Walk(), k=2, step_size=1e-3, horizon=4, **small()).learn(60)
    path, adapted = agent.save(tmp_path / "agent"), np.asarray(agent.driver.run.traits.parameter)
    assert not (adapted == 0.25).any()
    other = AdaTEBDQN.load(path, Walk(), eval_env=Walk(), step_size=1e-5)
    np.testing.assert_array_equal(other.driver.run.traits.parameter, adapted)
    assert other.driver.run.traits.adaptation_rate == np.float32(1e-5)
    assert AdaTEBDQN.load(path, Walk(), eval_env=Walk(), alpha=0.5).driver.run.traits.parameter == 0.5


def test_a_replay_that_was_full_has_no_more_room(tmp_path: Path) -> None:
    """Where the oldest transitions have been written over, what lies beyond would be taken for some."""
    path = DQN(Walk(), eval_env=Walk(), **small(replay_capacity=30)).learn(40).save(tmp_path / "agent")
    for capacity in (20, 50):
        with pytest.raises(HostError, match="load it with replay_capacity=30"):
            DQN.load(path, Walk(), eval_env=Walk(), replay_capacity=capacity)
    path = DQN(Walk(), eval_env=Walk(), **small(replay_capacity=50)).learn(40).save(tmp_path / "agent")
    loaded = DQN.load(path, Walk(), eval_env=Walk(), replay_capacity=60)
    assert np.asarray(loaded.driver.run.replay)[:40].any(axis=1).all()


@pytest.mark.parametrize("damage", ["byte", "half", "other", "nothing"])
def test_a_damaged_file_is_refused(damage: str, tmp_path: Path) -> None:
    path = DQN(Walk(), eval_env=Walk(), **small()).save(tmp_path / "agent")
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    if damage == "byte":
        path.write_bytes(content)
    elif damage == "half":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "other":
        path.write_bytes(b"hello")
    else:
        path.unlink()
    with pytest.raises(HostError, match=r"agent\.safetensors"):
        DQN.load(path, Walk(), eval_env=Walk())


def test_another_agents_file_or_another_world_is_refused(tmp_path: Path) -> None:
    path = DQN(Walk(), eval_env=Walk(), **small()).save(tmp_path / "agent")
    with pytest.raises(HostError, match=r"holds a DQN, not a KEBDQN: load it with maxmean\.DQN\.load"):
        KEBDQN.load(path, Walk())
    with pytest.raises(HostError, match=r"shape is \[2\] there and \[4\] here"):
        DQN.load(path, "CartPole-v1")


SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
from test_host_saving import run
run(Path(sys.argv[3]))
"""


def run(path: Path) -> Any:
    """A training that saves itself at each record, and goes on from what it finds."""
    agent = DQN.load(path, Walk(), eval_env=Walk()) if path.exists() else DQN(Walk(), eval_env=Walk(), **small())
    return agent.learn(400 - agent.num_timesteps, callback=lambda row: agent.save(path) and None)


def test_a_killed_training_ends_the_same(tmp_path: Path) -> None:
    here = Path(__file__).parent
    command = [sys.executable, "-c", SCRIPT, str(here), str(here.parents[1]), str(tmp_path / "killed.safetensors")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=os.environ.copy())
    deadline = time.monotonic() + 120
    while not (tmp_path / "killed.safetensors").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    _, said = process.communicate()
    assert (tmp_path / "killed.safetensors").exists(), said.decode()
    same(run(tmp_path / "whole.safetensors"), run(tmp_path / "killed.safetensors"))


def test_saving_takes_no_memory_and_leaves_a_file_that_others_may_read(tmp_path: Path) -> None:
    """A replay of 50 MB is written as it lies: a copy of it would be seen in what Python allocates."""
    agent = DQN("CartPole-v1", **small(replay_capacity=1_000_000, warmup=5)).learn(10)
    agent.driver.clock.stored = 1_000_000  # as if it were full
    (tmp_path / "plain").touch()
    tracemalloc.start()
    try:
        path = agent.save(tmp_path / "agent")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < agent.driver.run.replay.nbytes / 10 < path.stat().st_size / 9
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert sorted(os.listdir(tmp_path)) == [path.name, "plain"]


class Interrupted(Walk):
    """Presses Ctrl-C in the given step, as often as it is told to."""

    def __init__(self, at: int, times: int = 1) -> None:
        super().__init__()
        self.left, self.times = at, times

    def step(self, action: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            for _ in range(self.times):
                os.kill(os.getpid(), signal.SIGINT)
        return super().step(action)


@pytest.mark.parametrize("at", [49, 50, 51, 100])
def test_ctrl_c_loses_no_record_wherever_it_is_heard(at: int) -> None:
    """A test every 50 steps: in the step before it, in its own, in the one after, in the last of all."""
    agent = DQN(Interrupted(at), eval_env=Walk(), **small())
    with pytest.raises(KeyboardInterrupt):
        agent.learn(100)
    assert agent.num_timesteps == at
    if at < 100:
        agent.learn(100 - at)
    pd.testing.assert_frame_equal(agent.table, DQN(Walk(), eval_env=Walk(), **small()).learn(100).table)


def test_ctrl_c_during_the_last_test_is_heard() -> None:
    agent = DQN(Walk(), eval_env=Interrupted(1), **small())
    with pytest.raises(KeyboardInterrupt):
        agent.learn(50)
    assert agent.table["step"].tolist() == [50]


def test_a_second_ctrl_c_keeps_no_half_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stops anywhere, so that the command goes on from its last checkpoint; a first one is heard between two steps."""
    from maxmean.deep.host import making
    from maxmean.deep.host.training import train

    kept = tmp_path / "runs" / "dqn-seed0" / "training.safetensors"
    for times, there in [(2, False), (1, True)]:
        monkeypatch.setattr(making, "make_env", lambda name, times=times: Interrupted(30, times))
        monkeypatch.setattr(making, "make_like", lambda env: Walk())
        done = train("Walk", [("dqn", {})], 100, 1, None, small(), tmp_path, 50, False, False, True)[1]
        assert (done, kept.exists()) == (False, there)
