"""Roll-outs of the greedy policy: test returns, the bias of Q (the paper's Algorithm 3), and Ada-TE's adaptation.

All of them play many episodes side by side until the last has ended. Where they start from states of the replay, they play on
copies: the replay stays as it is. A truncated episode is not over, so its return goes on with the value of its last state.

Runs that are measured at once (``jax.vmap`` over axes with names) share their loops: all play until the last episode of all
runs has ended. Else each run would have a clock of its own, and every step would copy all that was recorded before it.

A test need not be run at its step: a :class:`Snapshot` has all that it takes, so that several can be run at once. A GPU
that plays few episodes mostly waits for the next kernel.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...envs.random import word_array
from ..core.measuring import BiasSummary, summary
from ..core.run import Purpose, Run, derive
from ..core.traits import adapted
from ..exploration import best_action
from ..targets import value_of
from .program import Program

Array = jax.Array

BEGIN = 0xFFFFFFFF
"""The number of the words that roll-outs begin with; those of their steps have the steps' numbers."""


Axes = tuple[str, ...]
"""Names of the axes of the runs that are measured at once."""


class Snapshot(NamedTuple):
    """A run as it was at a step, for tests and bias estimates: it may learn on meanwhile."""

    run: Run
    """Without what only learning needs: replay, target network, moments and the episode under way."""
    step: Array
    states: Any
    """[lanes]: states of the replay, with which the episodes of the bias estimation begin."""


def snapshot(program: Program, run: Run, step: Array, filled: Array) -> Snapshot:
    """The run as it is now, in buffers of its own, because the next update donates those of its weights."""
    nothing = jax.tree.map(lambda _: None, run.learner.target)
    learner = run.learner._replace(target=nothing, moments=())
    kept = run._replace(learner=learner, replay=(), episode=())
    return jax.tree.map(jnp.copy, Snapshot(kept, jnp.int32(step), replayed(program, run, step, filled)))


def replayed(program: Program, run: Run, number: Array, filled: Array) -> Any:
    """States of the replay, one for each episode of the bias estimation: [lanes]."""
    words = word_array(derive(run.key, Purpose.BIAS, number), jnp.uint32(BEGIN), program.lanes)
    return program.learning.stored(run, filled, words).state


def greedy_return(program: Program, run: Run, number: Array, limit: int, together: Axes = ()) -> Array:
    """The mean return of ``measuring.test_episodes`` episodes from the environment's start; undiscounted."""
    episodes = program.measuring.test_episodes
    environment, key = program.environment, derive(run.key, Purpose.TEST, number)
    start = word_array(key, jnp.uint32(BEGIN), 2 * episodes).reshape(episodes, 2)
    states, seen = jax.vmap(environment.reset)(start)

    def play(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        t, _, states, seen, running, total = carry
        actions = program.actor.greedy(run, seen, jax.vmap(environment.legal)(states))
        keys = word_array(key, t.astype(jnp.uint32), 2 * episodes).reshape(episodes, 2)
        after = jax.vmap(environment.step)(keys, states, actions)
        total = total + jnp.where(running, after.reward, 0.0)
        running = running & ~after.terminated & ~after.truncated
        return t + 1, _anyone(running, together), after.state, after.observation, running, total

    begin = (jnp.int32(0), jnp.bool_(True), states, seen, jnp.ones(episodes, bool), jnp.zeros(episodes))
    *_, total = jax.lax.while_loop(lambda c: c[1] & (c[0] < limit), play, begin)
    return jnp.mean(total)


def estimate_bias(
    program: Program, run: Run, number: Array, states: Any, limit: int, together: Axes = ()
) -> BiasSummary:
    """Play greedy episodes from ``states`` to their end and compare each pair's Q with its Monte Carlo return.

    The states are those that :func:`replayed` draws for the same number, in equal shares for the heads.
    """
    heads, lanes = program.family.heads, program.lanes
    key = derive(run.key, Purpose.BIAS, number)

    def play(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        t, _, states, running, cut, tail, length, values, rewards = carry
        q, actions = _own_values(program, run, states)
        best = value_of(q, actions)
        keys = word_array(key, t.astype(jnp.uint32), 2 * lanes).reshape(lanes, 2)
        after = jax.vmap(program.environment.step)(keys, states, actions)
        tail = jnp.where(cut, best, tail)  # what a truncated episode's last state is worth
        values = jax.lax.dynamic_update_slice(values, jnp.where(running, best, 0.0)[None], (t, 0))
        rewards = jax.lax.dynamic_update_slice(rewards, jnp.where(running, after.reward, 0.0)[None], (t, 0))
        length = length + running
        out_of_time = (t + 1 >= limit) & running
        cut = running & ~after.terminated & (after.truncated | out_of_time)
        goes_on = running & ~after.terminated & ~cut
        anyone = _anyone(goes_on | cut, together)
        return t + 1, anyone, _where(running, after.state, states), goes_on, cut, tail, length, values, rewards

    none = jnp.zeros(lanes, bool)
    record = jnp.zeros((limit + 1, lanes), jnp.float32)
    length = jnp.zeros(lanes, jnp.int32)
    begin = (jnp.int32(0), jnp.bool_(True), states, ~none, none, jnp.zeros(lanes), length, record, record)
    t, *_, tail, length, values, rewards = jax.lax.while_loop(lambda c: c[1], play, begin)

    def back(i: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        later, returns = carry
        step = t - 1 - i
        row = jax.lax.dynamic_slice_in_dim(rewards, step, 1)[0]
        later = jnp.where(step < length, row + program.learning.settings.discount * later, later)
        return later, jax.lax.dynamic_update_slice(returns, later[None], (step, 0))

    _, returns = jax.lax.fori_loop(0, t, back, (tail, record))
    visited = jnp.arange(limit + 1)[:, None] < length
    return summary(values, returns, visited, heads)


def adapt(program: Program, run: Run, number: Array, filled: Array) -> Run:
    """Move the rule's parameter towards zero bias, as :class:`maxmean.deep.Adaptation` says."""
    adaptation = program.family.adaptation
    if adaptation is None:
        return run
    heads, horizon = program.family.members, adaptation.horizon
    key = derive(run.key, Purpose.ADAPT, number)
    begins = word_array(key, jnp.uint32(BEGIN), heads * (horizon + 1)).reshape(horizon + 1, heads)
    replayed = jax.vmap(lambda words: program.learning.stored(run, filled, words).state)(begins)
    first = jax.tree.map(lambda leaf: leaf[0], replayed)

    def play(states: Any, inputs: tuple[Array, Any]) -> tuple[Any, tuple[Array, Array, Array, Array]]:
        t, others = inputs
        q, actions = _own_values(program, run, states)
        keys = word_array(key, t.astype(jnp.uint32), 2 * heads).reshape(heads, 2)
        after = jax.vmap(program.environment.step)(keys, states, actions)
        ahead = jnp.max(_own_values(program, run, after.state)[0], axis=-1)
        ends = after.terminated | after.truncated
        # What follows this step: nothing, the value of the state where it was cut, or (below) the next step's return.
        outcome = (value_of(q, actions), after.reward, ends, jnp.where(after.terminated, 0.0, ahead))
        return _where(ends, others, after.state), outcome

    others = jax.tree.map(lambda leaf: leaf[1:], replayed)
    _, (values, rewards, ends, ahead) = jax.lax.scan(play, first, (jnp.arange(horizon), others))

    def back(later: Array, step: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        reward, over, cut_value = step
        returns = reward + program.learning.settings.discount * jnp.where(over, cut_value, later)
        return returns, returns

    _, returns = jax.lax.scan(back, ahead[-1], (rewards, ends, ahead), reverse=True)
    excess, size = jnp.sum(returns - values, axis=0), jnp.sum(jnp.abs(values), axis=0)
    return run._replace(traits=adapted(adaptation, run.traits, excess, size))


def _anyone(lanes: Array, together: Axes) -> Array:
    """Whether any of the lanes is true, of this run or of all those that are measured together."""
    here = jnp.any(lanes)
    if not together:
        return here
    anywhere: Array = jax.lax.pmax(here, together)  # type: ignore[no-untyped-call]
    return anywhere


def _where(lanes: Array, new: Any, old: Any) -> Any:
    """Of two pytrees of lanes, the new one's where ``lanes`` says so."""
    return jax.tree.map(lambda a, b: jnp.where(lanes.reshape((-1,) + (1,) * (a.ndim - 1)), a, b), new, old)


def _own_values(program: Program, run: Run, states: Any) -> tuple[Array, Array]:
    """Q in states [lanes] that belong to the heads in equal shares, by their own head: [lanes, actions]; and its best actions."""
    legal = jax.vmap(program.environment.legal)(states)
    q = program.actor.own_values(run, jax.vmap(program.environment.observe)(states), legal)
    return q, best_action(q, legal)
