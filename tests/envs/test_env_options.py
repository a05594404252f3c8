"""Options, step limit, stickiness over resets, errors; and that it makes no difference how a game is run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.recording import original
from maxmean.envs.environment import EnvError
from maxmean.envs.minatar import GAMES, LEFT, NOOP, RIGHT, Asterix, Breakout, Freeway, MinAtar, SpaceInvaders
from maxmean.envs.pictures import render
from seldom import mostly_slow

games = pytest.mark.parametrize("game", [GAMES[name] for name in sorted(GAMES)])


def run(env: MinAtar, actions: Any, seed: int = 0) -> Any:
    """Steps in a row, compiled, also beyond an end; all of them with a leading axis."""

    def one(state: Any, given: tuple[Any, Any]) -> Any:
        step = env.step(given[0], state, given[1])
        return step.state, step

    def play() -> Any:
        keys = jax.random.split(jax.random.key(seed + 1), len(actions))
        return jax.lax.scan(one, env.reset(jax.random.key(seed))[0], (keys, jnp.asarray(actions)))[1]

    return jax.device_get(jax.jit(play)())


def same(a: Any, b: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, a, b)


@games
def test_minimal_actions_are_the_packages(game: type[MinAtar]) -> None:
    env = game(minimal_actions=True)
    package = original(env.game_name)
    assert list(env.actions) == package.minimal_action_set()
    assert env.n_actions == len(env.actions)
    assert game().n_actions == package.num_actions()
    assert list(env.channels) == [name.replace("guage", "gauge") for name in package.env.channels]
    assert list(env.observation.shape) == package.state_shape()


@pytest.mark.parametrize("game", mostly_slow(GAMES.values(), [Breakout, Freeway]))
def test_minimal_actions_are_played_as_full_ones(game: type[MinAtar]) -> None:
    env = game(minimal_actions=True, sticky=0.0)
    state, _ = env.reset(jax.random.key(0))
    taken = jax.jit(jax.vmap(lambda action: env.step(jax.random.key(1), state, action).state.last_action))
    assert taken(jnp.arange(env.n_actions)).tolist() == list(env.actions)


@games
def test_games_share_what_surrounds_them(game: type[MinAtar]) -> None:
    """Stickiness, step limit and last action are tested with one game, since all have them from the same place."""
    assert all(getattr(game, name) is getattr(MinAtar, name) for name in ("reset", "step", "advance", "observe"))


@pytest.mark.parametrize("game", [Breakout, Freeway])
def test_truncated_in_the_frame_of_the_step_limit(game: type[MinAtar]) -> None:
    steps = run(game(step_limit=7), np.full(7, NOOP))
    assert not steps.terminated.any()
    assert steps.truncated.tolist() == [False] * 6 + [True]
    assert steps.state.time.tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_never_both_terminated_and_truncated() -> None:
    """A ball that is lost in the very frame of the step limit has ended the game."""
    actions = np.full(50, LEFT)
    lost = int(np.flatnonzero(run(Breakout(), actions, seed=2).terminated)[0]) + 1
    for limit, truncated in ((lost - 1, True), (lost, False)):
        steps = run(Breakout(step_limit=limit), actions[:limit], seed=2)
        assert bool(steps.truncated[-1]) == truncated
        assert bool(steps.terminated[-1]) != truncated


def test_longest_step_limit() -> None:
    env = Freeway(step_limit=65_535)
    state, _ = env.reset(jax.random.key(0))
    step = env.step(jax.random.key(1), state._replace(time=jnp.uint16(65_534)), jnp.int32(NOOP))
    assert bool(step.truncated)


def test_freeway_is_truncated_where_the_packages_timer_ends_it() -> None:
    game = original("freeway")
    frames = 1
    while not game.act(NOOP)[1]:
        frames += 1
    assert frames == 2_501
    steps = run(Freeway(), np.full(frames, NOOP))
    assert np.flatnonzero(steps.truncated).tolist() == [frames - 1]
    assert not steps.terminated.any()


def test_last_action_survives_a_reset() -> None:
    """As in the package: a sticky first frame repeats what was done before the reset."""
    env = Breakout(sticky=0.0)
    state, _ = env.reset(jax.random.key(0))
    assert int(state.last_action) == NOOP
    state = env.step(jax.random.key(1), state, jnp.int32(RIGHT)).state
    again, _ = env.reset(jax.random.key(2), state)
    assert int(again.last_action) == RIGHT
    assert int(again.time) == 0
    stuck = replace(env, sticky=1.0).step(jax.random.key(3), again, jnp.int32(LEFT))
    same(stuck, env.step(jax.random.key(3), again, jnp.int32(RIGHT)))
    package = original(env.game_name, sticky=0.0)
    package.act(RIGHT)
    package.reset()
    package.sticky_action_prob = 1.1
    package.act(LEFT)
    assert package.last_action == RIGHT


@pytest.mark.parametrize("game", mostly_slow(GAMES.values(), [Breakout, Freeway]))
@pytest.mark.parametrize("plain", [pytest.param(0, id="short"), pytest.param(300, id="long", marks=pytest.mark.slow)])
def test_it_makes_no_difference_how_a_game_is_run(game: type[MinAtar], plain: int) -> None:
    """Four games at once or one by one; compiled or, for the first ``plain`` frames, not; with typed keys or raw ones."""
    env = game()
    plain = plain or 5 * (game in (Breakout, Freeway))  # Seaquest takes seconds for its first uncompiled frame
    starts = jax.random.split(jax.random.PRNGKey(4), 4)
    keys = jax.random.split(jax.random.key(3), (300, 4))
    actions = jnp.asarray(np.random.default_rng(1).integers(6, size=(300, 4)))

    def play(start: jax.Array, keys: jax.Array, actions: jax.Array) -> Any:
        def one(state: Any, given: Any) -> Any:
            step = env.step(given[0], state, given[1])
            return step.state, step

        return jax.lax.scan(one, env.reset(start)[0], (keys, actions))[1]

    together = jax.device_get(jax.jit(jax.vmap(play, (0, 1, 1), out_axes=1))(starts, keys, actions))
    alone = jax.jit(play)
    for i in range(4):
        same(jax.tree.map(lambda leaf, i=i: leaf[:, i], together), alone(starts[i], keys[:, i], actions[:, i]))

    state, _ = env.reset(jax.random.wrap_key_data(starts[0]))
    for t in range(plain):
        step = env.step(jax.random.key_data(keys[t, 0]), state, actions[t, 0])
        same(jax.tree.map(lambda leaf, t=t: leaf[t, 0], together), step)
        state = step.state


@games
def test_types_stay_what_they_are(game: type[MinAtar]) -> None:
    """A state can be carried through a scan; observation, reward and ends have the types that are promised."""
    env = game()
    key = jax.random.key(0)
    state, observation = jax.eval_shape(env.reset, key)
    step = jax.eval_shape(env.step, key, state, jnp.int32(0))
    for before, after in zip(jax.tree.leaves(state), jax.tree.leaves(step.state), strict=True):
        assert (before.shape, before.dtype) == (after.shape, after.dtype)
    cells = (10, 10, len(env.channels))
    assert env.observation.shape == observation.shape == step.observation.shape == cells
    types = [
        str(field.dtype) for field in (observation, step.observation, step.reward, step.terminated, step.truncated)
    ]
    assert types == ["bool", "bool", "float32", "bool", "bool"]
    assert step.reward.shape == step.terminated.shape == step.truncated.shape == ()


@pytest.mark.parametrize(("env", "action"), [(Asterix(), 6), (Asterix(), -1), (SpaceInvaders(minimal_actions=True), 4)])
def test_action_out_of_range(env: MinAtar, action: int) -> None:
    state, _ = env.reset(jax.random.key(0))
    message = f"^action {action} is out of range: there are {env.n_actions} actions, 0 to {env.n_actions - 1}$"
    with pytest.raises(EnvError, match=message):
        env.step(jax.random.key(1), state, jnp.int32(action))


@pytest.mark.parametrize(
    ("action", "shown"),
    [
        (0.5, r"0\.5"),
        (np.float32(2.7), r"np\.float32\(2\.7\)"),
        (jnp.float32(3.5), r"float32\[\]"),
        ("left", "'left'"),
        (None, "None"),
        (float("nan"), "nan"),
        ([1], r"\[1\]"),
        (np.array([1]), r"int64\[1\]"),
        (jnp.zeros((30, 30), int), r"int32\[30, 30\]"),
    ],
)
def test_action_that_is_no_integer(action: Any, shown: str) -> None:
    state, _ = Breakout().reset(jax.random.key(0))
    with pytest.raises(EnvError, match=f"^an action is an integer from 0 to 5, not {shown}$"):
        Breakout().step(jax.random.key(1), state, action)


@pytest.mark.parametrize(("action", "shown"), [(1.0, r"float32\[\]"), (jnp.arange(3), r"int32\[3\]")])
def test_inside_jit_an_action_is_known_by_its_type(action: Any, shown: str) -> None:
    state, _ = Breakout().reset(jax.random.key(0))
    with pytest.raises(EnvError, match=f"^an action is an integer from 0 to 5, not {shown}"):
        jax.jit(Breakout().step)(jax.random.key(1), state, action)


@pytest.mark.parametrize(
    "call",
    [
        lambda env, keys, states: env.reset(keys),
        lambda env, keys, states: env.reset(jax.random.key_data(keys)),
        lambda env, keys, states: env.reset(keys[0], states),
        lambda env, keys, states: env.step(keys, env.reset(keys[0])[0], 1),
        lambda env, keys, states: env.step(keys[0], states, 1),
        lambda env, keys, states: env.observe(states),
        lambda env, keys, states: render(env, states),
        lambda env, keys, states: jax.jit(env.observe)(states),
    ],
)
def test_many_at_once_are_sent_to_vmap(call: Any) -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    states, _ = jax.vmap(Breakout().reset)(keys)
    with pytest.raises(EnvError, match=r"^one (key|state) is expected, not \[3\] of them: jax\.vmap is there for many"):
        call(Breakout(), keys, states)


@pytest.mark.parametrize("sticky", [1.5, -0.1, float("nan")])
def test_stickiness_that_is_no_probability(sticky: float) -> None:
    with pytest.raises(EnvError, match=r"^sticky must be a probability from 0 to 1, not \S+$"):
        Asterix(sticky=sticky)


@pytest.mark.parametrize("limit", [0, -5, 65_536])
def test_step_limit_out_of_range(limit: int) -> None:
    with pytest.raises(EnvError, match=rf"^step_limit must be from 1 to 65,535, not {limit}$"):
        Breakout(step_limit=limit)


@games
def test_equal_options_are_one_static_argument(game: type[MinAtar]) -> None:
    assert game(sticky=0.2) == game(sticky=0.2)
    assert hash(game(sticky=0.2)) == hash(game(sticky=0.2))
    assert game() != game(sticky=0.2)
    assert RIGHT in range(game().n_actions)
