"""Atari through ale-py, where it is installed: the usual wrappers, what the network sees, and all that an agent can do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from maxmean import DQN, KEBDQN
from maxmean.deep.core.frames import Stack
from maxmean.deep.host import HostError
from maxmean.deep.host.making import make_env, make_training
from maxmean.deep.networks import Nature

PONG, BREAKOUT = "ALE/Pong-v5", "ALE/Breakout-v5"
TINY: dict[str, Any] = {
    "warmup": 20,
    "replay_capacity": 100,
    "batch_size": 4,
    "hidden": 8,
    "test_interval": 40,
    "test_episodes": 1,
    "measure_bias": False,
}


@pytest.fixture(autouse=True)
def _ale() -> None:
    pytest.importorskip("ale_py")
    pytest.importorskip("cv2")


def test_an_atari_game_is_played_with_the_usual_wrappers() -> None:
    """Four grey frames of 84 x 84 in bytes, four frames of the game a step, sticky actions, no end at a lost life."""
    env = make_env(BREAKOUT)
    assert env.observation_space == gymnasium.spaces.Box(0, 255, (4, 84, 84), np.uint8)
    env.reset(seed=0)
    frames = env.unwrapped.ale.getEpisodeFrameNumber()
    info: dict[str, Any] = {"lives": 5}
    while info["lives"] == 5:
        _, _, terminated, _, info = env.step(1)
        assert env.unwrapped.ale.getEpisodeFrameNumber() == frames + 4
        frames += 4
    assert not terminated
    assert env.unwrapped.ale.getFloat("repeat_action_probability") == 0.25


def test_the_network_sees_the_frames_and_the_newest_comes_last() -> None:
    """What is stored is [rows, columns, frames] in bytes, three frames of the next state are this one's; Q is of bytes / 255."""
    agent = DQN(PONG, **TINY).learn(40)
    driver = agent.driver
    network = driver.program.network
    assert network.trunk == Nature()
    assert agent.host.train_every == 4
    stored = driver.program.learning.at(driver.run, jnp.arange(40))
    assert (stored.state.shape, stored.state.dtype) == ((40, 84, 84, 4), np.uint8)
    np.testing.assert_array_equal(stored.state[..., 1:], stored.next_state[..., :-1])
    assert int(stored.state.max()) > 100
    seen = np.moveaxis(np.asarray(stored.state[-1]), -1, 0)  # as the environment shows it
    q = network.values(driver.run.learner.weights, stored.state[-1:].astype(np.float32) / 255)
    assert agent.predict(seen)[0] == np.argmax(q)
    np.testing.assert_allclose(driver.program.values(driver.run, stored.state[-1:]), q, rtol=1e-5)


def test_an_atari_agent_is_saved_loaded_and_measured(tmp_path: Path) -> None:
    agent = KEBDQN(PONG, k=2, **TINY).learn(40)
    with pytest.warns(UserWarning, match="everything is restored but the environment's state"):
        loaded = KEBDQN.load(agent.save(tmp_path / "agent"), PONG)
    ours, theirs = (each.driver.program.learning.at(each.driver.run, jnp.arange(40)) for each in (loaded, agent))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)
    seen = np.random.default_rng(0).integers(256, size=(5, 4, 84, 84), dtype=np.uint8)
    np.testing.assert_array_equal(loaded.predict(seen)[0], agent.predict(seen)[0])
    bias = loaded.learn(20).bias(1)
    assert (bias.how, bias.episodes) == ("reset states", 2)
    assert np.isfinite(bias.value)


def test_the_second_environment_is_wrapped_as_the_first() -> None:
    """Rewards that are clipped in training are clipped in the roll-outs; and a bare game is tested bare."""
    clipped = gymnasium.wrappers.TransformReward(make_env(PONG), lambda reward: float(np.sign(float(reward))))
    second = DQN(clipped, **TINY).driver.eval_world
    assert second is not None
    assert isinstance(second.env, gymnasium.wrappers.TransformReward)
    second = DQN(gymnasium.make(PONG), **TINY).driver.eval_world
    assert second is not None
    assert second.sight.shape == (210, 160, 3)
    several = DQN(gymnasium.make_vec(PONG, 2), **TINY)
    assert several.driver.eval_world is not None
    assert several.learn(40).num_timesteps == 40


def test_the_vector_environment_shows_what_the_wrappers_do() -> None:
    """ale-py's own, in which agents train, and Gymnasium's wrappers, which can be watched: the same pictures and rewards."""
    own: dict[str, Any] = {"repeat_action_probability": 0.0}
    several = gymnasium.make_vec(BREAKOUT, 1, reward_clipping=False, use_fire_reset=False, noop_max=0, **own)
    game = gymnasium.wrappers.AtariPreprocessing(gymnasium.make(BREAKOUT, frameskip=1, **own), noop_max=0)
    alone = gymnasium.wrappers.FrameStackObservation(game, 4, padding_type="zero")
    seen = [several.reset(seed=0)[0][0], alone.reset(seed=0)[0]]
    for step in range(40):
        np.testing.assert_array_equal(*seen)
        action = (1, 3, 3, 2)[step % 4]
        there, here = several.step(np.array([action])), alone.step(action)
        assert (float(there[1][0]), bool(there[2][0])) == (float(here[1]), here[2])
        seen = [there[0][0], here[0]]


def test_an_id_is_trained_in_ale_pys_own_vector_environment() -> None:
    """With sticky actions, whole games and real scores; the agent learns from signs, and each frame is stored once."""
    agent = DQN(BREAKOUT, **TINY)
    assert type(agent.env).__name__ == "AtariVectorEnv"
    assert {
        **agent.env.spec.kwargs,
        "reward_clipping": False,
        "repeat_action_probability": 0.25,
    } == agent.env.spec.kwargs
    assert agent.host.clip_reward is True
    assert agent.driver.program.stack == Stack((84, 84, 4), 4, 2)
    assert (
        agent.driver.need.replay < 4 * 100 * 7_100 + 700 * 7_100
    )  # in a small memory every episode could be one step long
    second = agent.driver.eval_world
    assert second is not None
    assert second.clips
    assert make_training(PONG, 3).num_envs == 3
    assert DQN(make_env(PONG), **TINY).driver.program.stack == Stack((84, 84, 4), 4, 2)


@pytest.mark.parametrize("mode", ["vector_entry_point", "sync", "async"])
def test_every_vector_environment_is_learned_from_by_signs(mode: str) -> None:
    own: dict[str, Any] = {"vector_kwargs": {"context": "spawn"}} if mode == "async" else {}
    agent = DQN(gymnasium.make_vec(PONG, 2, vectorization_mode=mode, **own), **TINY)
    assert agent.host.clip_reward is True
    assert agent.driver.eval_world is not None
    agent.env.close()


def test_a_lost_life_is_an_end_for_the_agent_that_learns() -> None:
    agent = DQN(
        make_training(BREAKOUT, 2), **{**TINY, "warmup": 500, "replay_capacity": 500}, terminal_on_life_loss=True
    )
    driver, lost = agent.driver, 0
    driver.begin()
    while not lost:
        lives = np.array(driver.world.lives)
        driver.step()
        lost = int((np.array(driver.world.lives) < lives).sum())
    found = driver.program.learning.at(driver.run, jnp.arange(driver.clock.stored))
    assert int(np.sum(found.terminated)) == lost
    assert (driver.clock.ended, driver.lanes.episode.tolist()) == (0, [0, 1])  # the games go on


def test_a_game_that_is_none_gets_one_sentence() -> None:
    with pytest.raises(HostError, match=r"ALE/Pongg-v5 cannot be made: .* Did you mean: `Pong`"):
        DQN("ALE/Pongg-v5")
