"""Our environments in Gymnasium: they pass its own checks, and nothing is lost on the way."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from maxmean import envs
from maxmean.envs.minatar import LEFT
from seldom import mostly_slow

GAMES = envs.list()
Transition = tuple[Any, float, bool, bool]


def play(env: gymnasium.Env[Any, Any], seed: int | None, steps: int = 200) -> list[Transition]:
    """Random play over the ends of episodes."""
    rng = np.random.default_rng(1)
    found: list[Transition] = [(env.reset(seed=seed)[0], 0.0, False, False)]
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(rng.integers(6))
        found.append((observation, float(reward), terminated, truncated))
        if terminated or truncated:
            found.append((env.reset()[0], 0.0, False, False))
    return found


def same(one: list[Transition], two: list[Transition]) -> bool:
    return len(one) == len(two) and all(
        np.array_equal(a[0], b[0]) and a[1:] == b[1:] for a, b in zip(one, two, strict=True)
    )


FEW = ("minatar/breakout", "minatar/seaquest")
"""The least game and the largest."""


@pytest.mark.parametrize("game", mostly_slow(GAMES, FEW))
def test_gymnasium_finds_nothing_wrong(game: str) -> None:
    """Not even something to warn about: pytest makes errors of warnings."""
    check_env(envs.to_gymnasium(envs.make(game)), skip_render_check=True)
    (gymnasium_id,) = (i for i in envs.register_gymnasium() if i.lower() == f"maxmean/{game[8:].replace('_', '')}-v0")
    check_env(gymnasium.make(gymnasium_id, render_mode="rgb_array").unwrapped)


@pytest.mark.parametrize("game", mostly_slow(GAMES, FEW))
def test_the_same_seed_is_the_same_play_whatever_was_played_before(game: str) -> None:
    env = envs.to_gymnasium(envs.make(game))
    first = play(env, 7)
    assert same(first, play(env, 7))
    assert same(first, play(envs.to_gymnasium(envs.make(game)), 7))
    assert not same(first, play(env, 8))
    assert not same(play(env, None), play(env, None))


def test_the_spaces_are_those_of_minatar_itself() -> None:
    """Either wrapper can stand in for the other."""
    from minatar.gym import BaseEnv

    for game in GAMES:
        mine, theirs = envs.to_gymnasium(envs.make(game)), BaseEnv(game.removeprefix("minatar/"))
        assert mine.observation_space == theirs.observation_space
        assert mine.action_space == theirs.action_space


def test_what_it_gives_is_the_callers_own_and_plain() -> None:
    env = envs.to_gymnasium(envs.make("minatar/breakout"))
    observation, _ = env.reset(seed=0)
    observation[:] = False  # writable, and no window into the game
    again, reward, terminated, truncated, info = env.step(np.int64(0))
    assert again.any()
    assert [type(x) for x in (reward, terminated, truncated, info)] == [float, bool, bool, dict]


def test_games_stay_on_the_host_wherever_jax_computes_by_default() -> None:
    """A committed array binds what is computed from it to its device."""
    env = envs.to_gymnasium(envs.make("minatar/breakout"))
    env.reset(seed=0)
    for go_on in (lambda: env.step(0), env.reset, lambda: env.set_state(env.get_state())):
        go_on()
        assert all(leaf.committed and leaf.devices() == {jax.devices("cpu")[0]} for leaf in jax.tree.leaves(env.state))


def test_the_last_action_survives_a_reset_but_not_a_new_seed() -> None:
    env = envs.to_gymnasium(envs.make("minatar/breakout", step_limit=1))
    env.reset(seed=0)
    env.step(LEFT)
    env.reset()
    assert env.state.last_action == LEFT
    env.reset(seed=0)
    assert env.state.last_action == 0


def test_the_step_limit_truncates() -> None:
    env = envs.to_gymnasium(envs.make("minatar/space_invaders", step_limit=3))
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]


def test_gymnasium_makes_them_with_their_options() -> None:
    ids = envs.register_gymnasium()
    assert ids == envs.register_gymnasium()  # a second time does no harm
    assert len(ids) == 5
    env = gymnasium.make("maxmean/Breakout-v0", sticky=0.0, minimal_actions=True)
    assert env.unwrapped.env == envs.Breakout(sticky=0.0, minimal_actions=True)  # type: ignore[attr-defined]
    with pytest.raises(envs.EnvError, match="no option 'stiky'"):
        gymnasium.make("maxmean/Breakout-v0", stiky=0.0)
    with pytest.raises(envs.EnvError, match="minatar/breakout has no option 'name'"):
        gymnasium.make("maxmean/Breakout-v0", name="minatar/asterix")


def test_what_gymnasium_makes_can_be_written_down_and_made_again() -> None:
    envs.register_gymnasium()
    spec = gymnasium.make("maxmean/Breakout-v0", sticky=0.0).spec
    assert spec is not None
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(spec.to_json()))
    assert again.unwrapped.env == envs.Breakout(sticky=0.0)  # type: ignore[attr-defined]


def test_gymnasiums_own_wrappers_show_a_game_in_other_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    envs.register_gymnasium()
    env = gymnasium.make("maxmean/Breakout-v0", render_mode="rgb_array_list")
    env.reset(seed=0)
    env.step(0)
    pictures: Any = env.render()
    assert [picture.shape for picture in pictures] == [(160, 160, 3)] * 2
    monkeypatch.setitem(sys.modules, "pygame", None)
    with (
        pytest.warns(UserWarning, match="doesn't natively support it"),
        pytest.raises(gymnasium.error.DependencyNotInstalled, match="pygame"),
    ):
        gymnasium.make("maxmean/Breakout-v0", render_mode="human").reset()


def test_gymnasium_steps_several_at_once() -> None:
    envs.register_gymnasium()
    several = gymnasium.make_vec("maxmean/Asterix-v0", num_envs=3, vectorization_mode="sync")
    several.reset(seed=0)
    assert several.step(np.array([0, 1, 2]))[0].shape == (3, 10, 10, 4)


class Counter(envs.Environment):
    """An environment whose observation is of a given type: it counts."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    name = "counter"
    n_actions = 2

    def reset(self, key: jax.Array, previous: Any = None) -> tuple[Any, jax.Array]:
        return jnp.int32(0), self.observe(jnp.int32(0))

    def step(self, key: jax.Array, state: Any, action: jax.Array) -> envs.Step:
        state = state + action
        return envs.Step(state, self.observe(state), jnp.float32(action), state > 2, jnp.bool_(False))

    def observe(self, state: Any) -> jax.Array:
        return jnp.full((2,), state, self.dtype)


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
def test_any_environment_of_ours_works(dtype: str) -> None:
    env = envs.to_gymnasium(Counter(dtype))
    assert env.observation_space.dtype == dtype
    if dtype != "float32":  # of an endless range Gymnasium warns, rightly
        check_env(env, skip_render_check=True)
    env.reset(seed=0)
    assert env.step(1)[0].tolist() == [1, 1]


def test_mistakes_get_one_sentence() -> None:
    game = envs.make("minatar/breakout")
    with pytest.raises(envs.EnvError, match="render_mode must be None or 'rgb_array', not 'human'"):
        envs.to_gymnasium(game, render_mode="human")
    with pytest.raises(envs.EnvError, match="takes an environment"):
        envs.to_gymnasium("minatar/breakout")  # type: ignore[arg-type]
    env = envs.to_gymnasium(game, render_mode="rgb_array")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.render()
    env.reset(seed=0)
    with pytest.raises(envs.EnvError, match="action 6 is out of range: there are 6 actions, 0 to 5"):
        env.step(6)
    with pytest.raises(envs.EnvError, match=r"an action is an integer from 0 to 5, not 0\.5"):
        env.step(0.5)


def test_an_episode_that_is_over_is_not_stepped_on() -> None:
    env = envs.to_gymnasium(envs.make("minatar/breakout", step_limit=1))
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
