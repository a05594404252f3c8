"""The engine: what runs on the device while the environment steps on the host.

It is the device's program with another driver. There the environment is a part of the compiled loop; here the host tells the device, once a step, what has happened, in one array (a :class:`Message`), and two compiled calls
follow it. ``act`` chooses the next actions and is short; ``learn`` stores the transitions and updates, and nobody waits for it:
the environment takes its step meanwhile. So an action is chosen with the weights *before* the update of the same step, always, on
every machine.

Random numbers come from the run's key and the number of the step, as in deep: there is no generator whose state could be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...envs import EnvError, Environment, Step
from ...envs.random import below, word_array
from ..core import replay
from ..core.replay import Layout, Transition
from ..device.program import Program, Purpose, Run, derive, first_weights
from ..device.rollouts import Bias, summary
from ..exploration import vote
from ..networks import Weights

Array = jax.Array

QUICKLY = {"xla_backend_optimization_level": 0}
"""How to compile what seldom runs."""


@dataclass(frozen=True)
class Outside(Environment):
    """An environment that steps on the host: all that a program knows of its state is what is seen of it."""

    shape: tuple[int, ...]
    dtype: str
    actions: int

    @property
    def name(self) -> str:
        return "outside"

    @property
    def n_actions(self) -> int:
        return self.actions

    def reset(self, key: Array, previous: Any = None) -> tuple[Array, Array]:
        nothing = jnp.zeros(self.shape, self.dtype)
        return nothing, nothing

    def step(self, key: Array, state: Any, action: Array) -> Step:
        raise EnvError("this environment steps on the host")

    def observe(self, state: Array) -> Array:
        return state


class Message(NamedTuple):
    """What the host tells the device of one environment after a step."""

    transition: Transition
    seen: Array
    """What to act on next."""
    counts: Array
    """bool: whether the transition is one; a vector environment may only have begun anew."""
    call: Array
    """uint32: how many messages there were before, from which come three streams of random words."""
    stored: Array
    """int32: transitions stored before."""
    episode: Array
    """uint32: the number of the episode under way, which draws the head that acts in it."""


FIELDS = (
    "state",
    "action",
    "reward",
    "terminated",
    "next_state",
    "mask",
    "seen",
    "counts",
    "call",
    "stored",
    "episode",
)
"""The leaves of a message in their order, as the host calls them."""


_first_weights = jax.jit(first_weights, static_argnums=0, compiler_options=QUICKLY)


@dataclass(frozen=True)
class Engine:
    """The compiled functions of one agent in ``n`` environments of one kind."""

    program: Program
    n: int
    gradient_steps: int

    @cached_property
    def layout(self) -> Layout:
        """How a message is written."""

        def example(key: Array) -> Message:
            seen, _ = self.program.environment.reset(key)
            transition = Transition(seen, jnp.uint8(0), jnp.float32(0), jnp.bool_(False), seen, jnp.uint32(0))
            return Message(transition, seen, jnp.bool_(True), jnp.uint32(0), jnp.int32(0), jnp.uint32(0))

        return Layout.of(jax.eval_shape(example, jnp.zeros(2, jnp.uint32)))

    @cached_property
    def message(self) -> np.dtype:
        """The same for the host: a NumPy record with :data:`FIELDS`, byte for byte what the layout reads."""
        parts: list[Any] = [
            (name, leaf.dtype, leaf.shape) for name, leaf in zip(FIELDS, self.layout.leaves, strict=True)
        ]
        padding = 4 * self.layout.words - np.dtype(parts).itemsize
        return np.dtype([*parts, ("padding", np.uint8, padding)])

    @cached_property
    def create(self) -> Callable[..., Run]:
        """A run at its beginning. It is called once, so it had better be compiled quickly than well.

        Most of that is for the weights, which therefore are compiled once for all programs with the same network.
        """

        def rest(weights: Weights, *own: Any) -> Run:
            return self.program.create(*own, weights=weights)._replace(state=())

        compiled = jax.jit(rest, compiler_options=QUICKLY)
        return lambda key, *own: compiled(_first_weights(self.program.network, key), key, *own)

    @cached_property
    def act(self) -> Callable[[Run, Any], Array]:
        """The next actions, [n]: random ones until the warm-up is over."""

        def act(run: Run, rows: Array) -> Array:
            messages = jax.vmap(self.layout.unpack)(rows)
            words = word_array(run.key, 3 * messages.call[0], 2 * self.n).reshape(self.n, 2)
            step = messages.stored[0] + jnp.sum(messages.counts)

            def one(seen: Array, episode: Array, words: Array) -> Array:
                word = derive(run.key, Purpose.HEAD, episode)[0]
                action = self.program.act(run, seen, below(word, self.program.family.members), step, words)
                return jnp.where(step < self.program.settings.warmup, below(words[1], self.n_actions), action)

            return jax.vmap(one)(messages.seen, messages.episode, words)

        return jax.jit(act)

    @cached_property
    def store(self) -> Callable[[Run, Any], Run]:
        """Store the transitions."""
        return jax.jit(lambda run, rows: self._store(run, rows)[0], donate_argnums=0)

    @cached_property
    def learn(self) -> Callable[[Run, Any], Run]:
        """Store the transitions and update, ``gradient_steps`` times."""

        def learn(run: Run, rows: Array) -> Run:
            run, call, step = self._store(run, rows)
            size, times = self.program.settings.batch_size, self.gradient_steps
            words = word_array(run.key, 3 * call + 1, times * (size + 1)).reshape(times, -1)
            filled = jnp.minimum(step, self.program.settings.replay_capacity)

            def improve(i: Array | int, run: Run) -> Run:
                return self.program.improve(run, step, filled, words[i, 1:], words[i, 0])

            return improve(0, run) if times == 1 else jax.lax.fori_loop(0, times, improve, run)

        return jax.jit(learn, donate_argnums=0)

    def _store(self, run: Run, rows: Array) -> tuple[Run, Array, Array]:
        """The run with the transitions in its replay, the message's number, and how many transitions there have been."""
        messages = jax.vmap(self.layout.unpack)(rows)
        call, transitions = messages.call[0], messages.transition
        if self._masked:
            words = word_array(run.key, 3 * call + 2, self._masked).reshape(self.n, -1)
            transitions = transitions._replace(mask=jax.vmap(self.program.draw_mask)(words))
        packed = jax.vmap(self.program.layout.pack)(transitions)
        first = messages.stored[0]
        places = first + jnp.cumsum(messages.counts) - messages.counts

        def put(i: Array | int, memory: Array) -> Array:
            there = memory[places[i] % memory.shape[0]]
            return replay.write(memory, places[i], jnp.where(messages.counts[i], packed[i], there))

        memory = put(0, run.replay) if self.n == 1 else jax.lax.fori_loop(0, self.n, put, run.replay)
        return run._replace(replay=memory), call, first + jnp.sum(messages.counts)

    def __reduce__(self) -> Any:
        """Compiled functions are not pickled: an agent that is finds those of its new process."""
        return engine_of, (self.program, self.n, self.gradient_steps)

    @property
    def _masked(self) -> int:
        """Random words that the masks of a message need."""
        return self.n * self.program.family.members if self.program.family.mask < 1.0 else 0

    @property
    def n_actions(self) -> int:
        return self.program.environment.n_actions

    @cached_property
    def values(self) -> Callable[[Run, Any], Array]:
        """Q by every member for observations [batch, ...]: [batch, members, actions]."""
        return jax.jit(lambda run, seen: self.program.network.values(run.learner.weights, seen))

    @cached_property
    def greedy(self) -> Callable[[Run, Any], Array]:
        """The actions of the agent that no longer explores, [batch]: by vote of the heads, or on the smallest values."""

        def greedy(run: Run, seen: Array) -> Array:
            if self.program.family.bootstrapped:
                return vote(self.program.network.values(run.learner.weights, seen))
            return jnp.argmax(self.program.smallest_values(run, seen), axis=-1)

        return jax.jit(greedy)

    @cached_property
    def own(self) -> Callable[[Run, Any, Any], tuple[Array, Array]]:
        """The action that one head (or the agent, if it has none) thinks best on one observation, and its value."""

        def own(run: Run, seen: Array, head: Array) -> tuple[Array, Array]:
            if self.program.family.bootstrapped:
                q = self.program.network.member_values(run.learner.weights, seen[None], head)[0]
            else:
                q = self.program.smallest_values(run, seen[None])[0]
            return jnp.argmax(q), jnp.max(q)

        return jax.jit(own)

    @cached_property
    def summary(self) -> Callable[..., Bias]:
        """Deep's summary of visited pairs."""
        return jax.jit(summary, static_argnums=3, compiler_options=QUICKLY)


@lru_cache(maxsize=32)
def engine_of(program: Program, n: int, gradient_steps: int) -> Engine:
    """The same engine is compiled once, however many agents of a process use it."""
    return Engine(program, n, gradient_steps)
