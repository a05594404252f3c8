"""Acting: the values that an agent acts on, the action it explores with, and its best one."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from ..exploration import best_action, masked, votes
from ..networks import Ensemble
from .family import Family
from .run import Run

Array = jax.Array


def vote(q: Array, legal: Array | None = None) -> Array:
    """The heads' majority vote, from their values [..., heads, actions]; in a draw the lowest action wins.

    Where some actions are not ``legal`` (bool [..., actions]), each head votes for the best legal one.

    >>> int(vote(jnp.array([[1.0, 0.0], [0.0, 2.0], [0.0, 1.0]])))
    1
    """
    return best_action(votes(masked(q, _for_all(legal))), legal)


def greedy_action(q: Array, *, bootstrapped: bool, legal: Array | None = None) -> Array:
    """The action of an agent that no longer explores, from its members' values [..., members, actions].

    Heads vote; others act on the smallest of their values. Where some actions are not ``legal`` (bool [..., actions]), it is the
    best of those that are.

    >>> values = jnp.array([[3.0, 2.0], [0.0, 1.0], [5.0, 4.0]])
    >>> int(greedy_action(values, bootstrapped=True)), int(greedy_action(values, bootstrapped=False))
    (0, 1)
    """
    return vote(q, legal) if bootstrapped else best_action(jnp.min(q, axis=-2), legal)


@dataclass(frozen=True)
class Actor:
    """How the agents of a family act on what they see.

    ``legal`` always says which actions are legal, bool [..., actions], where some may not be: the values of the others are -inf.
    """

    family: Family
    network: Ensemble

    def values(self, run: Run, seen: Array, member: Array | int = 0, legal: Array | None = None) -> Array:
        """The values that it acts on, for observations [batch, ...]: [batch, actions].

        They are those of the head ``member`` where heads act in turn, and the smallest that the members give each action else.
        """
        if self.family.bootstrapped:
            q = self.network.member_values(run.learner.weights, seen, jnp.asarray(member))
        else:
            q = self.network.values(run.learner.weights, seen)
            q = jnp.min(self.family.in_use(q, run.traits.members), axis=1)
        return masked(q, legal)

    def own_values(self, run: Run, seen: Array, legal: Array | None = None) -> Array:
        """As ``values``, for observations [lanes, ...] that belong to the heads in equal shares, by their own head."""
        if not self.family.bootstrapped:
            return self.values(run, seen, legal=legal)
        heads, lanes = self.family.members, seen.shape[0]
        shares = seen.reshape(heads, lanes // heads, *seen.shape[1:])
        return masked(self.network.own_values(run.learner.weights, shares).reshape(lanes, -1), legal)

    def explore(
        self, run: Run, seen: Array, member: Array, step: Array, words: Array, legal: Array | None = None
    ) -> Array:
        """The action of a learning agent on one observation; ``member`` is the episode's head, ``words`` are two random words."""
        exploration, heads = self.family.exploration, self.family.members
        if self.family.bootstrapped and not exploration.alone:
            q = exploration.values(masked(self.network.values(run.learner.weights, seen[None])[0], legal))
        else:
            q = self.values(run, seen[None], exploration.head(member, heads, words[1]))[0]
        return exploration.act(q, step, words) if legal is None else exploration.act(q, step, words, legal)

    def greedy(self, run: Run, seen: Array, legal: Array | None = None) -> Array:
        """The actions of the agent that no longer explores, for observations [batch, ...]: [batch]."""
        q, heads = self.network.values(run.learner.weights, seen), self.family.bootstrapped
        q = q if heads else self.family.in_use(q, run.traits.members)
        return greedy_action(q, bootstrapped=heads, legal=legal)


def _for_all(legal: Array | None) -> Array | None:
    """What is legal, for members [..., 1, actions]."""
    return None if legal is None else legal[..., None, :]
