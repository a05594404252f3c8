"""The training of one run as pure functions: act, step, store, sample, update. Many runs at once are ``jax.vmap``'s business."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...envs import Environment
from ...envs.random import below, word_array
from ..core.acting import Actor
from ..core.family import Family
from ..core.learning import Learning
from ..core.replay import RowLayout, Transition
from ..core.run import FirstWords, Run
from ..core.traits import Traits
from ..core.update import Update
from ..exploration import random_action
from ..networks import Ensemble, Trunk, fitting_trunk
from ..settings import LearningSettings, MeasuringSettings, Settings

Array = jax.Array


class Episode(NamedTuple):
    """The episode under way in a run's environment."""

    state: Any
    """The environment's."""
    member: Array
    """The head that acts in it."""
    total: Array
    """Its return so far."""
    growing: Any = ()
    """int32: how many of its transitions the next step lengthens; nothing where none ever is."""


class StepWords(NamedTuple):
    """The random words of one step, by what they decide."""

    step: Array
    """Two: the key of the environment's step."""
    reset: Array
    """Two: the key of its reset, where the episode has ended."""
    explore: Array
    """Two: whether the agent explores, and its random action."""
    head: Array
    """The head that acts in the next episode."""
    network: Array
    """The network that learns, where only one does."""
    mask: Array
    """Which members learn from the transition, where that is left to chance: one for each."""
    rows: Array
    """The transitions of the batch: one for each."""

    @classmethod
    def of(cls, key: Array, step: Array, masks: int, rows: int) -> StepWords:
        words = word_array(key, step, 8 + masks + rows)
        return cls(words[0:2], words[2:4], words[4:6], words[6], words[7], words[8 : 8 + masks], words[8 + masks :])


@dataclass(frozen=True)
class Program:
    """The training of a family of agents on an environment: all that is compiled, and nothing else."""

    environment: Environment
    family: Family
    network: Ensemble
    settings: LearningSettings
    measuring: MeasuringSettings

    @classmethod
    def of(cls, environment: Environment, family: Family, settings: Settings, trunk: Trunk | None = None) -> Program:
        """The program for these settings; the network has the trunk that fits the observation unless one is given."""
        shape = environment.observation.shape
        network = family.network(trunk or fitting_trunk(shape), shape, environment.n_actions, settings.hidden)
        return cls(environment, family, network, settings.learning, settings.measuring)

    @cached_property
    def actor(self) -> Actor:
        return Actor(self.family, self.network)

    @property
    def lanes(self) -> int:
        """Episodes that a bias estimation plays side by side: each head plays its own."""
        return self.family.heads * self.measuring.episodes(bootstrapped=self.family.bootstrapped)

    @cached_property
    def update(self) -> Update:
        return Update(self.family, self.network, self.settings)

    @cached_property
    def learning(self) -> Learning:
        state, _ = jax.eval_shape(self.environment.reset, jnp.zeros(2, jnp.uint32))
        layout, world = RowLayout.of_transitions(state, self.settings.n_step), self.environment
        return Learning(self.update, layout, world.observe, world.legal)

    def create(self, key: Array, traits: Traits) -> Run:
        """A run at its beginning."""
        words = FirstWords.of(key)
        state, _ = self.environment.reset(words.environment)
        growing = jnp.int32(0) if self.settings.n_step > 1 else ()
        episode = Episode(state, below(words.head, self.family.members), jnp.float32(0), growing)
        return self.learning.create(key, traits, episode)

    def collect(self, run: Run, begin: Array, steps: Array | int) -> Run:
        """Random steps that fill the replay, numbered from ``begin``. So many that it is known now make a round of them."""
        return self._loop(run, begin, steps, learning=False)

    def learn(self, run: Run, begin: Array, steps: Array | int) -> Run:
        """Steps with one update each."""
        return self._loop(run, begin, steps, learning=True)

    def _loop(self, run: Run, begin: Array, steps: Array | int, *, learning: bool) -> Run:
        def take(step: Array, run: Run) -> Run:
            return self._step(run, step, learning=learning)

        if not isinstance(steps, int):
            return jax.lax.fori_loop(begin, begin + steps, take, run)
        layout = RowLayout.of(_small(run))

        def one(i: Array, carried: tuple[Run, Array]) -> tuple[Run, Array]:
            run, row = carried
            return packed(take(begin + i, unpacked(run, row)))

        def packed(run: Run) -> tuple[Run, Array]:
            return _with_small(run, (), (), ()), layout.pack(_small(run))

        def unpacked(run: Run, row: Array) -> Run:
            return _with_small(run, *layout.unpack(row))

        return unpacked(*jax.lax.fori_loop(0, steps, one, packed(run)))

    def _step(self, run: Run, step: Array, *, learning: bool) -> Run:
        episode: Episode = run.episode
        batch_size = self.settings.batch_size if learning else 0
        words = StepWords.of(run.key, step, self.family.mask_words, batch_size)

        # Act.
        legal = self.environment.legal(episode.state)
        if learning:
            seen = self.environment.observe(episode.state)
            action = self.actor.explore(run, seen, episode.member, step, words.explore, legal)
        else:
            action = random_action(words.explore[1], self.environment.n_actions, legal)
        after = self.environment.step(words.step, episode.state, action)

        # Store.
        transition = Transition(
            episode.state,
            action.astype(jnp.uint8),
            after.reward,
            after.terminated,
            after.state,
            self.learning.draw_mask(words.mask),
        )
        memory, growing = run.replay, episode.growing
        if self.settings.n_step > 1:
            ago = jnp.arange(1, self.settings.n_step)
            memory = self.learning.lengthen(memory, step - ago, ago <= growing, transition)
        memory = self.learning.remember(memory, step, transition)

        # Begin a new episode where this one has ended.
        over = after.terminated | after.truncated
        fresh, _ = self.environment.reset(words.reset, after.state)
        state = jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh, after.state)
        member = jnp.where(over, below(words.head, self.family.members), episode.member)
        total = episode.total + after.reward
        tally = run.tally._replace(
            episodes=run.tally.episodes + over, returns=run.tally.returns + jnp.where(over, total, 0.0)
        )
        if self.settings.n_step > 1:
            growing = jnp.where(over, 0, jnp.minimum(growing + 1, self.settings.n_step - 1))
        episode = Episode(state, member, jnp.where(over, 0.0, total), growing)
        run = run._replace(replay=memory, episode=episode, tally=tally)
        if not learning:
            return run

        # Learn.
        filled = jnp.minimum(step + 1, self.settings.replay_capacity)
        return self.learning.improve(run, step, filled, rows=words.rows, network=words.network)


def _small(run: Run) -> tuple[Any, Any, Any]:
    """What changes with every step beside the replay and the learner: mostly a few numbers.

    Between the steps of a round these numbers are one row: a GPU's kernel that reads and writes many small arrays would have
    most of them copied first, each by a kernel of its own.
    """
    return run.episode, run.tally, run.diverged


def _with_small(run: Run, episode: Any, tally: Any, diverged: Any) -> Run:
    """The run with other such numbers, or with nothing in their places."""
    return run._replace(episode=episode, tally=tally, diverged=diverged)
