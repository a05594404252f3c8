"""The training of one run as pure functions: act, step, store, sample, update. Many runs at once are ``jax.vmap``'s business.

Random numbers come from the run's key and the step's number, so a run has no generator whose state could be lost, and the same
run gives the same numbers however it is cut into pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...envs import Environment
from ...envs.random import below, chance, threefry, word_array
from ..core import replay
from ..core.family import Family
from ..core.replay import Layout, Transition
from ..core.update import Batch, Learner, Update
from ..networks import Ensemble, Trunk, Weights, fitting_trunk
from ..settings import Settings

Array = jax.Array


class Tally(NamedTuple):
    """Sums since the last record."""

    loss: Array
    value: Array
    updates: Array
    episodes: Array
    returns: Array
    """Sum of the returns of the training episodes that ended."""

    @classmethod
    def zero(cls) -> Tally:
        none, nothing = jnp.zeros((), jnp.int32), jnp.zeros((), jnp.float32)
        return cls(nothing, nothing, none, none, nothing)


class Run(NamedTuple):
    """Everything about a run that changes, and its own settings."""

    key: Array
    """uint32 [2]."""
    learning_rate: Array
    members: Array
    """int32: how many of the program's members it uses."""
    rule: Array
    """int32: which of the family's rules it follows."""
    parameter: Array
    """The rule's parameter: a scalar, or [members] where each head has its own."""
    adaptation_rate: Array
    """Step size of the parameter's adaptation, or zero."""
    learner: Learner
    replay: Array
    """uint32 [capacity, words]."""
    state: Any
    """The environment's."""
    member: Array
    """The head that acts in this episode."""
    episode_return: Array
    tally: Tally
    diverged: Array
    """int32: the step at which the loss stopped being finite, or -1."""


class Purpose:
    """Streams of random words that must not meet; the steps of the training itself have the run's own key."""

    CREATE, TEST, BIAS, ADAPT, HEAD = range(1, 6)


@dataclass(frozen=True)
class Program:
    """The training of a family of agents on an environment."""

    environment: Environment
    family: Family
    settings: Settings
    trunk: Trunk | None = None
    """The network's trunk; by default the one that fits the observation."""

    @cached_property
    def network(self) -> Ensemble:
        seen = self.environment.observation
        trunk = self.trunk or fitting_trunk(seen.shape)
        return Ensemble(
            trunk, seen.shape, self.environment.n_actions, self.family.members, self.family.shared, self.settings.hidden
        )

    @cached_property
    def update(self) -> Update:
        return Update(self.family, self.network, self.settings)

    @cached_property
    def layout(self) -> Layout:
        """How a transition is stored."""

        def example(key: Array) -> Transition:
            state, _ = self.environment.reset(key)
            return Transition(state, jnp.uint8(0), jnp.float32(0), jnp.bool_(False), state, jnp.uint32(0))

        return Layout.of(jax.eval_shape(example, jnp.zeros(2, jnp.uint32)))

    def create(
        self,
        key: Array,
        learning_rate: Array,
        members: Array,
        rule: Array,
        parameter: Array,
        adaptation_rate: Array,
        *,
        weights: Weights | None = None,
    ) -> Run:
        """A run at its beginning, with the first weights of its key unless they are given."""
        words = _first_words(key)
        state, _ = self.environment.reset(words[:2])
        return Run(
            key=key,
            learning_rate=learning_rate,
            members=members,
            rule=rule,
            parameter=parameter,
            adaptation_rate=adaptation_rate,
            learner=self.update.begin(first_weights(self.network, key) if weights is None else weights),
            replay=replay.empty(self.settings.replay_capacity, self.layout),
            state=state,
            member=below(words[4], self.family.members),
            episode_return=jnp.float32(0),
            tally=Tally.zero(),
            diverged=jnp.int32(-1),
        )

    def collect(self, run: Run, begin: Array, steps: Array) -> Run:
        """Random steps that fill the replay, numbered from ``begin``."""
        return self._loop(run, begin, steps, learning=False)

    def learn(self, run: Run, begin: Array, steps: Array) -> Run:
        """Steps with one update each."""
        return self._loop(run, begin, steps, learning=True)

    def _loop(self, run: Run, begin: Array, steps: Array, *, learning: bool) -> Run:
        return jax.lax.fori_loop(begin, begin + steps, lambda step, r: self._step(r, step, learning=learning), run)

    def _step(self, run: Run, step: Array, *, learning: bool) -> Run:
        members, batch_size = self.family.members, self.settings.batch_size
        masked = members if self.family.mask < 1.0 else 0
        words = word_array(run.key, step, 8 + masked + (batch_size if learning else 0))

        # Act.
        if learning:
            action = self.act(run, self.environment.observe(run.state), run.member, step, words[4:6])
        else:
            action = below(words[5], self.environment.n_actions)
        after = self.environment.step(words[0:2], run.state, action)

        # Store.
        transition = Transition(
            run.state,
            action.astype(jnp.uint8),
            after.reward,
            after.terminated,
            after.state,
            self.draw_mask(words[8 : 8 + masked]),
        )
        memory = replay.write(run.replay, step, self.layout.pack(transition))

        # Begin a new episode where this one has ended.
        over = after.terminated | after.truncated
        fresh, _ = self.environment.reset(words[2:4], after.state)
        state = jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh, after.state)
        member = jnp.where(over, below(words[6], members), run.member)
        total = run.episode_return + after.reward
        tally = run.tally._replace(
            episodes=run.tally.episodes + over, returns=run.tally.returns + jnp.where(over, total, 0.0)
        )
        run = run._replace(
            replay=memory,
            state=state,
            member=member,
            episode_return=jnp.where(over, 0.0, total),
            tally=tally,
        )
        if not learning:
            return run

        # Learn.
        filled = jnp.minimum(step + 1, self.settings.replay_capacity)
        return self.improve(run, step, filled, words[8 + masked :], words[7])

    def act(self, run: Run, seen: Array, member: Array, step: Array, words: Array) -> Array:
        """The action of a learning agent on one observation, by the head ``member`` where heads act in turn."""
        if self.family.bootstrapped:
            q = self.network.member_values(run.learner.weights, seen[None], member)[0]
        else:
            q = self.smallest_values(run, seen[None])[0]
        return self.family.exploration.act(q, step, words)

    def improve(self, run: Run, step: Array, filled: Array, words: Array, word: Array) -> Run:
        """One update on rows that ``words`` choose among the first ``filled``; ``word`` chooses the network that learns."""
        rows = replay.read(run.replay, filled, words)
        batch = self.batch(jax.vmap(self.layout.unpack)(rows))
        learner, losses = self.update(run.learner, batch, run.members, run.rule, run.parameter, run.learning_rate, word)
        lost, tally = (run.diverged < 0) & ~jnp.isfinite(losses.loss), run.tally
        return run._replace(
            learner=learner,
            tally=tally._replace(
                loss=tally.loss + losses.loss, value=tally.value + losses.value, updates=tally.updates + 1
            ),
            diverged=jnp.where(lost, step, run.diverged),
        )

    def smallest_values(self, run: Run, observations: Array) -> Array:
        """The smallest of the values that the run's members give each action: [batch, actions]."""
        q = self.network.values(run.learner.weights, observations)
        return jnp.min(self.family.in_use(q, run.members), axis=1)

    def batch(self, transitions: Transition) -> Batch:
        """Stored transitions as the update wants them."""
        observe = jax.vmap(self.environment.observe)
        discounts = jnp.where(transitions.terminated, 0.0, self.settings.discount).astype(jnp.float32)
        bits = jnp.arange(self.family.members, dtype=jnp.uint32)
        return Batch(
            observe(transitions.state),
            transitions.action.astype(jnp.int32),
            transitions.reward,
            discounts,
            observe(transitions.next_state),
            (transitions.mask[:, None] >> bits) & 1 != 0,
        )

    def stored_states(self, run: Run, filled: Array, words: Array) -> Any:
        """Environment states from the replay, one for each random word: copies, the replay stays as it is."""
        rows = replay.read(run.replay, filled, words)
        return jax.vmap(self.layout.unpack)(rows).state

    def draw_mask(self, words: Array) -> Array:
        """Which members learn from a transition, as bits; ``words`` are one for each member where that is left to chance."""
        if self.family.mask >= 1.0:
            return jnp.uint32(0xFFFFFFFF)
        learns = chance(words, self.family.mask)
        return jnp.sum(learns.astype(jnp.uint32) << jnp.arange(self.family.members, dtype=jnp.uint32))


def first_weights(network: Ensemble, key: Array) -> Weights:
    """The weights with which a run with this key begins."""
    return network.create(jax.random.wrap_key_data(_first_words(key)[2:4], impl="threefry2x32"))


def _first_words(key: Array) -> Array:
    """Random words for a run's beginning: two for the environment, two for the weights, one for the head that acts."""
    return word_array(derive(key, Purpose.CREATE, 0), jnp.uint32(0), 5)


def derive(key: Array, purpose: int, number: Array | int) -> Array:
    """A key for a purpose, from a run's key: uint32 [2]."""
    first, second = threefry(key[0], key[1], jnp.uint32(0x80000000 + purpose), jnp.asarray(number, jnp.uint32))
    return jnp.stack([first, second])
