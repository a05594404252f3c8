"""Our games beside those of the ``minatar`` package, frame by frame.

A play of the package's game is recorded with everything that chance decided in it. Ours then goes through the same play in one
compiled scan, and every reward, ending, observation and state variable must be equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs.recording import CHUNK, Feed, Play, Record, Rules, Script, original, recorded
from maxmean.envs.environment import Step
from maxmean.envs.minatar import MinAtar, State

lengths = pytest.mark.parametrize(
    "times", [pytest.param(1, id="short"), pytest.param(20, id="long", marks=pytest.mark.slow)]
)
"""At least 5,000 frames a game, or 100,000."""


@partial(jax.jit, static_argnums=0)
def replay(env: MinAtar, state: State, feed: Feed) -> tuple[State, Step]:
    """Ours through the same play."""

    def one(state: State, given: Feed) -> tuple[State, Step]:
        state = jax.tree.map(lambda new, old: jnp.where(given.fresh, new, old), given.state, state)
        step = env.advance(state, given.action, given.stuck, given.outcomes)
        return step.state, step

    return jax.lax.scan(one, state, feed)


def prove(
    rules: Rules,
    plays: tuple[Play, ...],
    times: int,
    count: Callable[[Record], dict[str, int]],
    never: frozenset[str] = frozenset(),
) -> Counter[str]:
    """Compare all plays, each ``times`` as long as in the short suite; everything that ``count`` names must have happened."""
    seen: Counter[str] = Counter()
    for seed, play in enumerate(plays):
        for record in compare(rules, play, times * play.chunks, seed):
            seen.update({"frames": CHUNK, "ends": sum(record.terminal), **count(record)})
    print(f"{rules.env}: {dict(seen)}")
    missing = {name for name, n in seen.items() if n == 0} - never
    assert not missing, f"never happened: {missing}"
    assert not any(seen[name] for name in never)
    return seen


def prove_starts(rules: Rules, draws: Callable[[Any], list[Any]]) -> None:
    """Our starts are the package's, given the ``draws`` that make its start from ours."""
    states, observations = jax.device_get(jax.jit(jax.vmap(rules.env.reset))(jax.random.split(jax.random.key(0), 50)))
    ours = rules.decode(states.game, states.time)
    game = original(rules.env.game_name).env
    for i, observation in enumerate(observations):
        game.random = Script(draws(jax.tree.map(lambda leaf, i=i: leaf[i], states.game)))
        game.reset()
        assert not game.random.lines
        np.testing.assert_array_equal(observation, game.state())
        for name, value in rules.variables(game).items():
            np.testing.assert_array_equal(ours[name][i], value, err_msg=name)


def compare(rules: Rules, play: Play, chunks: int, seed: int) -> Iterator[Record]:
    """Fail at the first difference; give the records that were found equal."""
    state: Any = None
    for expected in recorded(rules, play, chunks, seed):
        feed = expected.feed()
        state = expected.starts[0] if state is None else state
        state, got = jax.device_get(replay(rules.env, state, feed))
        _equal("observation", got.observation, np.array(expected.observation))
        _equal("reward", got.reward, np.array(expected.reward))
        terminal, limit = np.array(expected.terminal), np.array(expected.time) >= rules.env.step_limit
        _equal("terminated", got.terminated, np.zeros(CHUNK, bool) if rules.timed else terminal)
        _equal("truncated", got.truncated, terminal if rules.timed else limit & ~terminal)
        _equal("last action", got.state.last_action, np.array(expected.taken))
        _equal("time", got.state.time, np.array(expected.time))
        ours = rules.decode(got.state.game, np.asarray(got.state.time))
        for name, value in expected.variables()[1].items():
            _equal(name, ours[name], value)
        yield expected


def _equal(name: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    assert np.shape(ours) == theirs.shape, f"{name}: {np.shape(ours)} is not {theirs.shape}"
    wrong = np.flatnonzero(np.any((ours != theirs).reshape(CHUNK, -1), axis=1))
    if len(wrong):
        t = wrong[0]
        raise AssertionError(f"{name} differs in frame {t} of the chunk: ours {ours[t]}, minatar's {theirs[t]}")
