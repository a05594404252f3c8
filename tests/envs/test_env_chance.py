"""Chance that is drawn inside has the distribution of the rules: chi-square tests on what ``step`` and ``reset`` do.

All seeds are fixed. Each test has the error probability :data:`LEVEL`; there are 51 of them, so that a sound generator
would fail here with a probability of less than one in ten thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from maxmean.envs.minatar import LEFT, NOOP, RIGHT, UP, Asterix, Breakout, Freeway, MinAtar, Seaquest, State
from maxmean.envs.minatar.seaquest_crowd import Crowd

LEVEL = 1e-6
DRAWS = 12_000
KEYS = jax.random.split(jax.random.key(2024), DRAWS)


def check(values: Any, probabilities: Any) -> None:
    """Chi-square test of integer ``values`` against the probabilities of 0, 1, ..."""
    expected = np.asarray(probabilities, float)
    observed = np.bincount(np.asarray(values), minlength=len(expected))
    assert len(observed) == len(expected)
    result = stats.chisquare(observed, expected / expected.sum() * len(np.asarray(values)))
    print(f"p = {result.pvalue:.4f} ({len(expected)} classes)")
    assert result.pvalue > LEVEL


def stepped(env: MinAtar, action: int, last_action: int = NOOP, **changes: Any) -> Any:
    """The states after one step with each of the keys, all from a start in which ``changes`` were made."""
    start, _ = env.reset(jax.random.key(0))
    state = start._replace(game=start.game._replace(**changes), last_action=jnp.uint8(last_action))
    return jax.device_get(_steps(env, KEYS, state, jnp.int32(action)))


@partial(jax.jit, static_argnums=0)
def _steps(env: MinAtar, keys: jax.Array, state: State, action: jax.Array) -> State:
    return jax.vmap(lambda key: env.step(key, state, action).state)(keys)


@pytest.mark.parametrize("empty", [1, 2, 3, 5, 7, 8])
def test_asterix_newcomers(empty: int) -> None:
    """Direction, kind and lane together: 1/2, 1/3 and one in as many as are empty."""
    lanes = np.random.default_rng(empty).permutation(8)[:empty]
    x = jnp.full(8, 3, jnp.int8).at[lanes].set(-1)
    after = stepped(Asterix(), NOOP, x=x, spawn_timer=jnp.int8(0)).game
    new = (after.x >= 0) & (np.asarray(x) < 0)
    assert np.all(new.sum(axis=1) == 1)
    lane = np.searchsorted(np.sort(lanes), np.argmax(new, axis=1))
    right, gold = (np.sum(field * new, axis=1) for field in (after.right, after.gold))
    assert np.all(after.x[new] == np.where(right, 0, 9))
    check((lane * 2 + right) * 2 + gold, np.tile([2, 1], 2 * empty))


def test_breakout_starts() -> None:
    states, _ = jax.jit(jax.vmap(Breakout().reset))(KEYS)
    check(states.game.right.astype(int), [1, 1])


def cars(after: Any) -> np.ndarray:
    """Speeds as 0 to 9."""
    return np.where(after.speed > 0, after.speed + 4, -after.speed - 1)


def freeway_starts() -> Any:
    return jax.device_get(jax.jit(jax.vmap(Freeway().reset))(KEYS)[0].game)


def freeway_crossings() -> Any:
    after = stepped(Freeway(sticky=0.0), UP, chicken=jnp.int8(1), rest=jnp.int8(0)).game
    assert np.all(after.chicken == 9)
    return after


@pytest.mark.parametrize("make", [freeway_starts, freeway_crossings])
def test_freeway_cars(make: Callable[[], Any]) -> None:
    """Every lane's speed is one of ten, and those of two lanes next to each other are independent."""
    speed = cars(make())
    for lane in range(8):
        check(speed[:, lane], np.ones(10))
        check(10 * speed[:, lane] + speed[:, lane - 1], np.ones(100))


def test_freeway_speeds_and_directions_of_all_lanes() -> None:
    """All eight directions together; and how many of the eight have each speed, which is binomial."""
    after = freeway_crossings()
    check((after.speed < 0) @ (1 << np.arange(8)), np.ones(256))
    for pace in (1, 5):
        check(np.minimum(np.sum(np.abs(after.speed) == pace, axis=1), 6), _binomial(8, 1 / 5, top=6))


def _binomial(n: int, p: float, top: int) -> np.ndarray:
    shares = stats.binom.pmf(np.arange(n + 1), n, p)
    return np.append(shares[:top], shares[top:].sum())


def seaquest_newcomers() -> tuple[Any, Any]:
    after = stepped(Seaquest(), NOOP, spawn_timer=jnp.int8(0), diver_timer=jnp.int8(0)).game
    enemy = jax.tree.map(lambda field: np.asarray(field)[:, 0], Crowd.unpack(after.enemies))
    diver = jax.tree.map(lambda field: field[:, 0], after.divers)
    assert np.all(enemy.alive)
    assert np.all(enemy.x == np.where(enemy.right, 0, 9))
    assert np.all(diver.x == np.where(diver.right, 0, 9))
    return enemy, diver


@pytest.mark.slow
def test_seaquest_newcomers() -> None:
    """Direction, kind and row of an enemy; direction and row of a diver; and both rows together, as they are independent."""
    enemy, diver = seaquest_newcomers()
    check(((enemy.y - 1) * 2 + enemy.right) * 2 + enemy.submarine, np.tile([2, 1], 16))
    check((diver.y - 1) * 2 + diver.right, np.ones(16))
    check((diver.y - 1) * 8 + enemy.y - 1, np.ones(64))
    check((2 * enemy.right + diver.right) * 2 + enemy.submarine, np.tile([2, 1], 4))


@pytest.mark.parametrize("sticky", [0.01, 0.1, 0.35, 0.9])
def test_sticky_frames(sticky: float) -> None:
    """All games have their stickiness from the same place."""
    after = stepped(Breakout(sticky=sticky), RIGHT, LEFT)
    check(after.last_action == LEFT, [1 - sticky, sticky])
    assert np.all(after.game.paddle == np.where(after.last_action == LEFT, 3, 5))


@pytest.mark.parametrize(("sticky", "taken"), [(0.0, RIGHT), (1.0, LEFT)])
def test_never_and_always_sticky(sticky: float, taken: int) -> None:
    assert np.all(stepped(Breakout(sticky=sticky), RIGHT, LEFT).last_action == taken)


def test_stickiness_is_independent_of_newcomers() -> None:
    after = stepped(Asterix(sticky=0.25), RIGHT, LEFT, spawn_timer=jnp.int8(0))
    lane = np.argmax(after.game.x >= 0, axis=1)
    gold = np.any(after.game.gold, axis=1)
    shares = np.multiply.outer(np.multiply.outer(np.ones(8), [2, 1]), [3, 1]).ravel()
    check((lane * 2 + gold) * 2 + (after.last_action == LEFT), shares)
