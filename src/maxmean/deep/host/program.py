"""The host's program: what runs on the device while the environment steps on the host.

It acts and learns by the core, as the device's program does. There the environment is a part of the compiled loop; here the host
tells the device, once a step, what has happened, in one array (a :class:`Message`), and two compiled calls follow it. ``act``
chooses the next actions and is short; ``learn`` stores the transitions and updates, and nobody waits for it: the environment
steps meanwhile. So an action is chosen with the weights *before* the update of the same step, always, on every machine.

Random numbers come from the run's key and the number of the step, as in deep: there is no generator whose state could be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...envs.random import below, word_array
from ..core import replay
from ..core.acting import Actor
from ..core.family import Family
from ..core.frames import FrameStore, News, Stack
from ..core.learning import Learning
from ..core.replay import RowLayout, Transition
from ..core.run import Purpose, Run, derive, first_weights
from ..core.traits import Traits
from ..core.update import Learner, Update
from ..exploration import best_action, random_action
from ..networks import Ensemble, Nature, Weights
from ..settings import LearningSettings

Array = jax.Array

QUICKLY = {"xla_backend_optimization_level": 0}
"""How to compile what seldom runs."""


class Message(NamedTuple):
    """What the host tells the device of one environment after a step."""

    transition: Transition
    seen: Array
    """What to act on next; where frames are stored once, as frames [k, *frame]."""
    counts: Array
    """bool: whether the transition is one; a vector environment may only have begun anew."""
    call: Array
    """uint32: how many messages there were before, from which come three streams of random words."""
    stored: Array
    """int32: transitions stored before."""
    episode: Array
    """uint32: the number of the episode under way, which draws the head that acts in it."""
    earlier: Array
    """int32 [n_step - 1]: the numbers of the episode's transitions that this step lengthens, or -1."""
    legal: Any = ()
    """bool [actions]: which actions are legal next; nothing where all always are."""
    news: Any = ()
    """The frames of stacked observations, where each is stored once: then states are the places of their newest frames."""


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
    "earlier",
)
"""The leaves of a message in their order, as the host calls them."""
MASKED_FIELDS = (*FIELDS[: FIELDS.index("seen")], "next_legal", *FIELDS[FIELDS.index("seen") :], "legal")
"""The same where actions may be illegal."""
FRAME_FIELDS = News._fields
"""What follows where frames are stored once."""


_first_weights = jax.jit(first_weights, static_argnums=0, compiler_options=QUICKLY)


class Stream:
    """Streams of random words of one message, which has this many of them."""

    ACT, LEARN, MASK = range(3)
    NUMBER = 3

    @classmethod
    def words(cls, key: Array, call: Array, stream: int, n: int) -> Array:
        """The first ``n`` words of a stream of the message number ``call``, in the run with this key."""
        return word_array(key, cls.NUMBER * call + stream, n)


@dataclass(frozen=True)
class HostProgram:
    """The compiled functions of one agent in ``n`` environments of one kind."""

    family: Family
    network: Ensemble
    settings: LearningSettings
    dtype: str
    """Of the observations, which are stored as they are."""
    n: int
    warmup: int
    gradient_steps: int
    masked: bool = False
    """Whether actions may be illegal: then transitions and messages have masks."""
    stack: Stack | None = None
    """The frames of an observation, where each is stored once."""

    @cached_property
    def actor(self) -> Actor:
        return Actor(self.family, self.network)

    @cached_property
    def learning(self) -> Learning:
        layout = RowLayout.of_transitions(self._state, self.settings.n_step, self._mask_length)
        return Learning(Update(self.family, self.network, self.settings), layout, frames=self.frames)

    @cached_property
    def frames(self) -> FrameStore | None:
        """Where frames are stored, if each is stored once."""
        if self.stack is None:
            return None
        return FrameStore.of(self.stack, self.dtype, self.settings.replay_capacity, self.n, self.settings.n_step)

    @property
    def _state(self) -> Any:
        """The form of a stored state."""
        return replay.form(self.dtype, self.network.shape) if self.stack is None else replay.form(jnp.int32)

    @cached_property
    def layout(self) -> RowLayout:
        """How a message is written."""
        step = RowLayout.of_transitions(self._state, masked=self._mask_length)
        transition = step.structure.unflatten(step.leaves)
        seen = transition.state
        news: Any = ()
        counts, call, stored, episode = map(replay.form, (jnp.bool_, jnp.uint32, jnp.int32, jnp.uint32))
        earlier = replay.form(jnp.int32, (self.settings.n_step - 1,))
        if self.stack is not None:
            seen = replay.form(self.dtype, (self.stack.count, *self.stack.frame))
            places = replay.form(jnp.int32, (2 * self.stack.count,))
            news = News(seen, places, places, stored, stored)
        return RowLayout.of(
            Message(transition, seen, counts, call, stored, episode, earlier, transition.next_legal, news)
        )

    @property
    def _mask_length(self) -> int:
        return self.network.n_actions if self.masked else 0

    @cached_property
    def message(self) -> np.dtype:
        """The same for the host: a NumPy record with :data:`FIELDS` or those with masks, byte for byte what the layout reads."""
        names = (*(MASKED_FIELDS if self.masked else FIELDS), *(() if self.stack is None else FRAME_FIELDS))
        parts: list[Any] = [
            (name, leaf.dtype, leaf.shape) for name, leaf in zip(names, self.layout.leaves, strict=True)
        ]
        padding = 4 * self.layout.words - np.dtype(parts).itemsize
        return np.dtype([*parts, ("padding", np.uint8, padding)])

    @cached_property
    def create(self) -> Callable[..., Run]:
        """A run at its beginning. It is called once: favour compile time.

        Most of that is for the weights, which therefore are compiled once for all programs with the same network.
        """

        def rest(weights: Weights, key: Array, traits: Traits) -> Run:
            return self.learning.create(key, traits, weights=weights)

        compiled = jax.jit(rest, compiler_options=QUICKLY)
        return lambda key, traits: compiled(_first_weights(self.network, key), key, traits)

    @cached_property
    def act(self) -> Callable[[Run, Any], Array]:
        """The next actions, [n]: random ones until the warm-up is over.

        Only what acts goes to the compiled function: handing over a run's dozens of arrays takes longer than acting.
        """

        def act(key: Array, traits: Traits, weights: Weights, rows: Array) -> Array:
            rest: Any = ()
            run = Run(key, traits, Learner(weights, rest, rest), rest, rest, rest, rest)
            messages = jax.vmap(self.layout.unpack)(rows)
            words = Stream.words(run.key, messages.call[0], Stream.ACT, 2 * self.n).reshape(self.n, 2)
            step = messages.stored[0] + jnp.sum(messages.counts)

            def one(seen: Array, episode: Array, words: Array, legal: Array | None) -> Array:
                word = derive(run.key, Purpose.HEAD, episode)[0]
                action = self.actor.explore(run, seen, below(word, self.family.members), step, words, legal)
                return jnp.where(step < self.warmup, random_action(words[1], self.network.n_actions, legal), action)

            legal = messages.legal if self.masked else None
            seen = messages.seen if self.stack is None else self.stack.join(messages.seen)
            return jax.vmap(one)(seen, messages.episode, words, legal)

        compiled = jax.jit(act)
        return lambda run, rows: compiled(run.key, run.traits, run.learner.weights, rows)

    @cached_property
    def store(self) -> Callable[[Run, Any], Run]:
        """Store the transitions.

        Only the replay goes to the compiled function and back: handing over a run's dozens of arrays takes longer than storing.
        """
        compiled = jax.jit(lambda memory, key, rows: self._store(memory, key, rows)[0], donate_argnums=0)
        return lambda run, rows: run._replace(replay=compiled(run.replay, run.key, rows))

    @cached_property
    def learn(self) -> Callable[[Run, Any], Run]:
        """Store the transitions and update, ``gradient_steps`` times."""

        def learn(run: Run, rows: Array) -> Run:
            memory, call, step = self._store(run.replay, run.key, rows)
            run = run._replace(replay=memory)
            size, times = self.settings.batch_size, self.gradient_steps
            words = Stream.words(run.key, call, Stream.LEARN, times * (1 + size)).reshape(times, -1)
            networks, places = words[:, 0], words[:, 1:]
            filled = jnp.minimum(step, self.settings.replay_capacity)

            def improve(i: Array | int, run: Run) -> Run:
                return self.learning.improve(run, step, filled, rows=places[i], network=networks[i])

            if times > 1 and not self.unrolled:
                return jax.lax.fori_loop(0, times, improve, run)
            for i in range(times):
                run = improve(i, run)
            return run

        return jax.jit(learn, donate_argnums=0)

    @cached_property
    def unrolled(self) -> bool:
        """Whether several updates are compiled one after the other: in a loop a CPU takes thirty times as long to convolve."""
        return isinstance(self.network.trunk, Nature) and jax.default_backend() == "cpu"

    def _store(self, memory: Any, key: Array, rows: Array) -> tuple[Any, Array, Array]:
        """The replay with the transitions in it, the message's number, and how many transitions there have been."""
        messages = jax.vmap(self.layout.unpack)(rows)
        call, transitions = messages.call[0], messages.transition
        if self.family.mask_words:
            words = Stream.words(key, call, Stream.MASK, self.n * self.family.mask_words).reshape(self.n, -1)
            transitions = transitions._replace(mask=jax.vmap(self.learning.draw_mask)(words))
        first = messages.stored[0]
        numbers = first + jnp.cumsum(messages.counts) - messages.counts

        def put(i: Array | int, rows: Array) -> Array:
            step: Transition = jax.tree.map(lambda leaf: leaf[i], transitions)
            if self.settings.n_step > 1:
                earlier = messages.earlier[i]
                rows = self.learning.lengthen(rows, earlier, earlier >= 0, step)
            return self.learning.remember(rows, numbers[i], step, messages.counts[i])

        rows = memory if self.frames is None else memory.rows
        if self.n == 1:
            rows = put(0, rows)
        elif self.settings.n_step == 1:
            rows = self.learning.remember_all(rows, numbers, transitions, messages.counts)
        else:  # in turns: the rows that a step lengthens are read before they are written
            rows = jax.lax.fori_loop(0, self.n, put, rows)
        memory = (
            rows if self.frames is None else self.frames.write(memory._replace(rows=rows), messages.news, messages.seen)
        )
        return memory, call, first + jnp.sum(messages.counts)

    def __reduce__(self) -> Any:
        """Compiled functions are not pickled: an agent that is finds those of its new process."""
        return host_program, tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def values(self) -> Callable[[Run, Any], Array]:
        """Q by every member for observations [batch, ...]: [batch, members, actions]."""
        return jax.jit(lambda run, seen: self.network.values(run.learner.weights, seen))

    @cached_property
    def greedy(self) -> Callable[[Run, Any, Any], Array]:
        """The actions of the agent that no longer explores, [batch], among those that are legal, [batch, actions] or None."""
        return jax.jit(self.actor.greedy)

    @cached_property
    def explore(self) -> Callable[[Run, Any, Any, Any, Any], Array]:
        """Actions as in training, [batch], each with its own three random words: two to explore, one that draws the head."""

        def explore(run: Run, seen: Array, step: Array, words: Array, legal: Array | None) -> Array:
            def one(seen: Array, words: Array, legal: Array | None) -> Array:
                return self.actor.explore(run, seen, below(words[2], self.family.members), step, words[:2], legal)

            return jax.vmap(one)(seen, words, legal)

        return jax.jit(explore)

    @cached_property
    def own(self) -> Callable[[Run, Any, Any, Any], tuple[Array, Array]]:
        """The action that one head (or the agent, if it has none) thinks best on one observation, and its value."""

        def own(run: Run, seen: Array, head: Array, legal: Array | None) -> tuple[Array, Array]:
            q = self.actor.values(run, seen[None], head, legal)[0]
            return best_action(q, legal), jnp.max(q)

        return jax.jit(own)


@lru_cache(maxsize=32)
def host_program(*own: Any) -> HostProgram:
    """The same program is compiled once, however many agents of a process use it."""
    return HostProgram(*own)
