"""The host's program does what the core does: the same update on the rows that its words choose, the same roll-outs."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

from host_toys import Counter, Walk, small
from maxmean import DQN, KEBDQN, AdaTEBDQN, MaxMinDQN
from maxmean.deep.core import replay
from maxmean.deep.core.run import Purpose, derive
from maxmean.deep.host import HostAgent
from maxmean.deep.host.program import HostProgram
from maxmean.envs.random import below, word_array

AGENTS: list[Any] = [
    (DQN, {}),
    (KEBDQN, {"k": 3, "mask": 0.5}),
    pytest.param(MaxMinDQN, {"n": 2}, marks=pytest.mark.slow),
]


def trained(kind: type[HostAgent], steps: int, **settings: Any) -> HostAgent:
    return kind(Walk(), eval_env=Walk(), **small(**settings)).learn(steps)


class Bounded(Walk):
    """Its numbers are at most 8 and 4 in size: what is divided by powers of two stays exact."""

    observation_space = spaces.Box(np.array([0, -4], np.float32), np.array([8, 2], np.float32))


def test_scaled_observations_are_those_of_an_environment_that_divides_them() -> None:
    def divided() -> gymnasium.Env:
        space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        return gymnasium.wrappers.TransformObservation(
            Bounded(), lambda seen: seen / np.array([8, 4], np.float32), space
        )

    ours = DQN(Bounded(), eval_env=Bounded(), scale_observations=True, **small()).learn(100)
    theirs = DQN(divided(), eval_env=divided(), **small()).learn(100)
    assert ours.table.equals(theirs.table)
    assert not ours.table.equals(DQN(Bounded(), eval_env=Bounded(), **small()).learn(100).table)
    assert ours.predict(np.array([3.0, 2.0]))[0] == theirs.predict(np.array([3.0, 2.0]) / [8, 4])[0]


@pytest.mark.parametrize(("kind", "own"), AGENTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_step_is_one_of_deeps_updates(kind: type[HostAgent], own: dict[str, Any]) -> None:
    """A training of 41 steps is one of 40 and deep's update on the batch that the 41st step's words choose."""
    before, after = (trained(kind, steps, test_interval=1_000, **own).driver for steps in (40, 41))
    learning, settings = after.program.learning, after.choice.settings
    call = before.clock.calls
    words = word_array(before.run.key, jnp.uint32(3 * call + 1), settings.batch_size + 1)
    batch = learning.batch(learning.at(after.run, replay.places(words[1:], jnp.int32(41))))
    run = before.run
    learner, _ = jax.jit(learning.update)(run.learner, batch, run.traits, words[0])
    for ours, deeps in zip(jax.tree.leaves(after.run.learner), jax.tree.leaves(learner), strict=True):
        np.testing.assert_allclose(ours, deeps, rtol=1e-5, atol=1e-7)


def test_actions_are_chosen_with_the_weights_before_the_update() -> None:
    """Each action is the one that the episode's head preferred on what was seen, before the step's update."""
    driver = trained(KEBDQN, 40, k=5, test_interval=1_000, learning_rate=0.1).driver
    network, chosen = driver.program.network, []
    for _ in range(40):
        weights = jax.tree.map(np.array, driver.run.learner.weights)
        driver.step()
        head = below(derive(driver.run.key, Purpose.HEAD, driver.lanes.episode[0])[0], 5)
        q = network.member_values(weights, jnp.asarray(driver.lanes.seen), head)
        assert int(driver.pending[0]) == int(jnp.argmax(q))
        chosen.append(int(driver.pending[0]))
    assert set(chosen) == {0, 1}


def test_updates_that_never_come_are_said() -> None:
    with pytest.warns(UserWarning, match=r"the first 5 steps .*, and an update comes every 100 steps \(train_every\)"):
        DQN("CartPole-v1", **small(warmup=5, train_every=100)).learn(60)


def test_warm_up_steps_are_random_and_nothing_is_learned() -> None:
    with pytest.warns(UserWarning, match="nothing is learned yet: the first 20 steps are random ones"):
        agent = trained(DQN, 20)
    actions = jax.vmap(agent.driver.program.learning.layout.unpack)(agent.driver.run.replay[:20]).action
    assert 3 < int(np.sum(actions)) < 17
    assert agent.driver.clock.updates == 0
    assert np.isnan(agent.table["loss"]).all()


def test_training_less_often_updates_less_often() -> None:
    often, seldom = trained(DQN, 60), trained(DQN, 60, train_every=4, gradient_steps=2)
    assert often.driver.clock.updates == 40
    assert seldom.driver.clock.updates == 20
    assert int(np.asarray(seldom.driver.run.learner.moments.count)) == 20


def test_the_target_is_a_copy_every_period() -> None:
    agent = trained(DQN, 40)  # 20 updates, period 10: copied by the last of them
    learner = agent.driver.run.learner
    for weights, target in zip(jax.tree.leaves(learner.weights), jax.tree.leaves(learner.target), strict=True):
        np.testing.assert_array_equal(weights, target)
    learner = agent.learn(1).driver.run.learner
    assert (np.asarray(learner.weights.hidden.weights) != np.asarray(learner.target.hidden.weights)).any()


@pytest.mark.parametrize("n", [1, 3])
def test_the_replay_is_written_in_place(n: int) -> None:
    """A hundred thousand transitions are not copied for some more: the call's temporary memory is a small part of them."""
    env = Counter() if n == 1 else SyncVectorEnv([Counter] * n)
    agent = DQN(env, eval_env=Counter(), **small(replay_capacity=100_000))
    driver = agent.driver
    driver.begin()
    rows = np.zeros((n, driver.program.layout.words), np.uint32)
    memory = driver.program.learn.lower(driver.run, rows).compile().memory_analysis()  # type: ignore[attr-defined]
    assert memory.temp_size_in_bytes < driver.run.replay.nbytes / 10
    assert memory.alias_size_in_bytes >= driver.run.replay.nbytes


def test_storing_hands_over_the_replay_alone() -> None:
    driver = KEBDQN(Walk(), eval_env=Walk(), **small(k=3)).driver
    driver.begin()
    before, rows = driver.run, np.zeros((1, driver.program.layout.words), np.uint32)
    after = driver.program.store(before, rows)
    assert before.replay.is_deleted()
    assert all(
        old is new
        for old, new in zip(
            jax.tree.leaves(before._replace(replay=())), jax.tree.leaves(after._replace(replay=())), strict=True
        )
    )


class Screen(Walk):
    """A walk on a screen that Nature's network sees."""

    observation_space: Any = spaces.Box(0, 255, (36, 36, 1), np.uint8)

    def _see(self) -> Any:
        return np.full((36, 36, 1), 40 * self.time + self.episode % 40, np.uint8)


def test_updates_one_after_the_other_are_those_of_a_loop() -> None:
    driver = DQN(Screen(), eval_env=Screen(), **small(batch_size=2, gradient_steps=2)).driver
    driver.begin()
    for _ in range(6):
        driver.step()
    assert driver.program.unrolled
    rows = np.zeros((1, driver.program.layout.words), np.uint32)
    copy = jax.tree.map(jnp.copy, driver.run)
    found = driver.program.learn(driver.run, rows)
    loop = HostProgram(*driver.program.__reduce__()[1])
    loop.__dict__["unrolled"] = False
    assert int(found.tally.updates) == 2
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(loop.learn(copy, rows)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_on_a_gpu_actions_are_sent_before_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """And several updates are a loop: a CPU alone takes long to convolve in one."""
    driver = DQN(Screen(), eval_env=Screen(), **small(gradient_steps=2)).driver
    driver.begin()
    sent: list[Any] = []
    monkeypatch.setattr(type(driver.pending), "copy_to_host_async", lambda actions: sent.append(actions))
    driver.step()
    assert not sent
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    driver.step()
    (actions,) = sent
    assert actions is driver.pending
    assert not HostProgram(*driver.program.__reduce__()[1]).unrolled


def test_the_bias_of_a_constant_is_known() -> None:
    """With all weights zero Q is zero, so the bias is minus the mean discounted return, head by head, from the start."""
    agent = KEBDQN(Counter(), eval_env=Counter(), k=2, discount=0.5, **small(bias_episodes_per_head=4))
    agent.driver.begin()
    run = agent.driver.run
    weights = jax.tree.map(jnp.zeros_like, run.learner.weights)
    agent.driver.run = run._replace(learner=run.learner._replace(weights=weights))
    returns = [sum(0.5 ** (u - t) * u for u in range(t, 5)) for t in range(5)]
    found = agent.bias()
    assert found.value == pytest.approx(-np.mean(returns), rel=1e-6)
    assert found.heads == pytest.approx([found.value] * 2)
    assert found.error == pytest.approx(0.0, abs=1e-6)
    assert (found.how, found.pairs, found.episodes) == ("reset states", 40, 8)


def test_roll_outs_begin_in_stored_states_where_they_can() -> None:
    """From the middle of an episode fewer pairs are visited than from its start."""
    agent = trained(DQN, 60, measure_bias=True, bias_episodes=20)
    found = agent.bias()
    assert found.how == "stored states"
    assert 20 <= found.pairs < 20 * 5
    assert {seen[1] for seen, _ in agent.driver.kept} == set(range(5))


def test_roll_outs_leave_the_training_alone() -> None:
    with_bias, without = trained(DQN, 60, measure_bias=True, bias_episodes=2), trained(DQN, 60)
    np.testing.assert_array_equal(with_bias.driver.run.replay, without.driver.run.replay)


def test_asking_an_agent_leaves_the_environment_alone() -> None:
    """Its owner may be in the middle of an episode, before anything is learned."""
    env = Walk()
    agent = DQN(env, eval_env=Walk(), **small())
    observation, _ = env.reset(seed=1)
    env.step(0)
    agent.predict(observation)
    agent.bias(1)
    assert (env.episode, env.time) == (0, 1)


def test_an_environment_that_fails_at_its_first_reset_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = DQN(Walk(), eval_env=Walk(), **small())

    def fail(**_: Any) -> Any:
        raise OSError("the simulator does not answer")

    with monkeypatch.context() as broken:
        broken.setattr(agent.env, "reset", fail)
        with pytest.raises(OSError, match="does not answer"):
            agent.learn(30)
    assert agent.learn(30).num_timesteps == 30


def test_alpha_moves_as_deep_moves_it() -> None:
    """Zero weights, counters of five steps, horizon 4: the returns exceed the values by a sum that can be worked out."""
    agent = AdaTEBDQN(Counter(), eval_env=Counter(), k=2, step_size=1e-3, horizon=4, alpha=0.1, discount=0.5, **small())
    agent.driver.begin()
    run = agent.driver.run
    run = run._replace(learner=run.learner._replace(weights=jax.tree.map(jnp.zeros_like, run.learner.weights)))
    player = agent.driver.player()
    assert player is not None
    moved = player.adapt(run, 0)
    returns = [sum(0.5 ** (u - t) * u for u in range(t, 4)) for t in range(4)]  # nothing after the horizon: Q is zero
    assert float(moved.traits.parameter) == pytest.approx(0.1 + 1e-3 * sum(returns), rel=1e-5)


def test_an_agent_that_adapts_does() -> None:
    agent = trained(AdaTEBDQN, 100, k=2, horizon=4, step_size=1e-3)
    assert agent.table["alpha"].iloc[-1] != 0.25
