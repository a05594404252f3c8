"""Learning: from rows of the replay to the next weights. What a stored state looks like, only the driver knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ...envs.random import chance
from ..networks import Weights
from ..settings import LearningSettings
from . import replay
from .family import Family
from .frames import FrameStore
from .replay import RowLayout, Transition
from .run import Run, Tally, first_weights
from .traits import Traits
from .update import Batch, Update

Array = jax.Array


def as_it_is(state: Any) -> Any:
    """Where what is stored is what was seen."""
    return state


def unknown(state: Any) -> None:
    """Where what is stored does not say which actions are legal."""
    return


@dataclass(frozen=True)
class Learning:
    """How the agents of a family learn from what is stored."""

    update: Update
    layout: RowLayout
    """How a transition is stored."""
    observe: Callable[[Any], Array] = as_it_is
    """What is seen of a stored state."""
    legal: Callable[[Any], Array | None] = unknown
    """Which actions are legal in a stored state, where that can be seen from it; else a transition has it, or all are."""
    frames: FrameStore | None = None
    """Where the frames of stacked observations are, if each is stored once."""

    @property
    def family(self) -> Family:
        return self.update.family

    @property
    def settings(self) -> LearningSettings:
        return self.update.settings

    @cached_property
    def _observe(self) -> Callable[[Any], Array]:
        return jax.vmap(self.observe)

    def create(self, key: Array, traits: Traits, episode: Any = (), weights: Weights | None = None) -> Run:
        """A run at its beginning, with the first weights of its key unless they are given."""
        return Run(
            key=key,
            traits=traits,
            learner=self.update.begin(first_weights(self.update.network, key) if weights is None else weights),
            replay=self._empty(),
            episode=episode,
            tally=Tally.zero(),
            diverged=jnp.int32(-1),
        )

    def improve(self, run: Run, step: Array, filled: Array, *, rows: Array, network: Array) -> Run:
        """One update. The random words ``rows`` choose among the first ``filled`` transitions, one word for each of the batch;
        the word ``network`` chooses the network that learns, where only one does.
        """
        batch = self.batch(self.stored(run, filled, rows))
        learner, losses = self.update(run.learner, batch, run.traits, network)
        lost, tally = (run.diverged < 0) & ~jnp.isfinite(losses.loss), run.tally
        return run._replace(
            learner=learner,
            tally=tally._replace(
                loss=tally.loss + losses.loss, value=tally.value + losses.value, updates=tally.updates + 1
            ),
            diverged=jnp.where(lost, step, run.diverged),
        )

    def stored(self, run: Run, filled: Array, words: Array) -> Transition:
        """Transitions from the replay, one for each random word: copies, the replay stays as it is."""
        if self.frames is not None:
            return self.at(run, self.frames.draw(run.replay, filled, words))
        return self.at(run, replay.places(words, filled))

    def at(self, run: Run, rows: Array) -> Transition:
        """The transitions in these rows of the replay."""
        if self.frames is not None:
            return self.frames.read(run.replay, rows, self.layout)
        transitions: Transition = jax.vmap(self.layout.unpack)(run.replay[rows])
        return transitions

    def _empty(self) -> Any:
        if self.frames is not None:
            return self.frames.empty(self.layout)
        return replay.empty(self.settings.replay_capacity, self.layout)

    def batch(self, transitions: Transition) -> Batch:
        """Stored transitions as the update wants them."""
        ahead = jnp.asarray(self._powers)[transitions.steps] if self.settings.n_step > 1 else self.settings.discount
        discounts = jnp.where(transitions.terminated, 0.0, ahead).astype(jnp.float32)
        bits = jnp.arange(self.family.members, dtype=jnp.uint32)
        return Batch(
            self._observe(transitions.state),
            transitions.action.astype(jnp.int32),
            transitions.reward,
            discounts,
            self._observe(transitions.next_state),
            (transitions.mask[:, None] >> bits) & 1 != 0,
            self._next_legal(transitions),
        )

    def _next_legal(self, transitions: Transition) -> Array | None:
        """Which actions are legal in the next states, [B, actions], and all where nothing follows; None where all always are."""
        legal: Array | None = jax.vmap(self.legal)(transitions.next_state)
        if legal is None and not isinstance(transitions.next_legal, tuple):
            legal = transitions.next_legal
        return None if legal is None else legal | transitions.terminated[:, None]

    def remember(self, memory: Array, number: Array, step: Transition, counts: Array | None = None) -> Array:
        """The replay with a step as its ``number``-th transition, in the place of the oldest, where the step counts."""
        if self.settings.n_step > 1:
            step = step._replace(steps=jnp.uint8(1))
        row = self.layout.pack(step)
        if counts is not None:
            row = jnp.where(counts, row, memory[number % memory.shape[0]])
        return replay.write(memory, number, row)

    def remember_all(self, memory: Array, numbers: Array, steps: Transition, counts: Array) -> Array:
        """The same with several transitions of one step each, those that count: at once, which a GPU does in one kernel."""
        places = jnp.where(counts, numbers % memory.shape[0], memory.shape[0])
        return memory.at[places].set(jax.vmap(self.layout.pack)(steps), mode="drop")

    def lengthen(self, memory: Array, numbers: Array, goes_on: Array, step: Transition) -> Array:
        """The replay with the transitions of these numbers lengthened by the step that followed them, where ``goes_on`` says so.

        They are the last ``n_step - 1`` of the episode: each grows with every step, and whatever is drawn is whole. With k
        steps it has r_1 + discount r_2 + ... + discount^(k-1) r_k, and the state that they led to, which an update discounts by
        discount^k. It stops growing where the episode ends, terminated or truncated.
        """

        def one(i: Array | int, memory: Array) -> Array:
            row = memory[numbers[i] % memory.shape[0]]
            before: Transition = self.layout.unpack(row)
            longer = before._replace(
                reward=before.reward + jnp.asarray(self._powers)[before.steps] * step.reward,
                terminated=step.terminated,
                next_state=step.next_state,
                steps=before.steps + jnp.uint8(1),
                next_legal=step.next_legal,
            )
            return replay.write(memory, numbers[i], jnp.where(goes_on[i], self.layout.pack(longer), row))

        # In a loop, XLA reads and writes one after the other, in place; written out, it would copy the replay.
        return jax.lax.fori_loop(0, self.settings.n_step - 1, one, memory)

    @cached_property
    def _powers(self) -> NDArray[np.float32]:
        """Of the discount factor, from the zeroth to the ``n_step``-th."""
        return np.asarray(self.settings.discount ** np.arange(self.settings.n_step + 1), np.float32)

    def draw_mask(self, words: Array) -> Array:
        """Which members learn from a transition, as bits; there are ``family.mask_words`` random words."""
        if not self.family.mask_words:
            return jnp.uint32(0xFFFFFFFF)
        learns = chance(words, self.family.mask)
        return jnp.sum(learns.astype(jnp.uint32) << jnp.arange(self.family.members, dtype=jnp.uint32))
