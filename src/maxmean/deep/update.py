"""One update: from a batch of transitions to new weights. The same function serves every agent and every kind of training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from ..envs.random import below
from .family import Family
from .networks import Ensemble, Weights
from .optimizers import adam, rmsprop
from .settings import Settings
from .targets import NextValues, value_of

Array = jax.Array


class Batch(NamedTuple):
    """B transitions."""

    observations: Array
    """[B, ...]."""
    actions: Array
    """[B]."""
    rewards: Array
    """[B]."""
    discounts: Array
    """[B]: the discount factor, or zero where the episode has terminated."""
    next_observations: Array
    """[B, ...]."""
    masks: Array
    """bool [B, members]: which members learn from it."""


class Learner(NamedTuple):
    """What an update changes, and the target network that it only reads."""

    weights: Weights
    target: Weights
    moments: Any
    """The optimiser's state."""


@jax.jit
def _copied(weights: Weights) -> Weights:
    return jax.tree.map(jnp.copy, weights)


def copy_target(learner: Learner) -> Learner:
    """The target network becomes a copy of the one that learns, in memory of its own: an update gives its weights' away."""
    return learner._replace(target=_copied(learner.weights))


class Losses(NamedTuple):
    """What an update tells about itself."""

    loss: Array
    value: Array
    """Mean of Q over the batch's pairs and the members."""


@dataclass(frozen=True)
class Update:
    """The update of a family of agents."""

    family: Family
    network: Ensemble
    settings: Settings

    @property
    def optimizer(self) -> optax.GradientTransformation:
        return adam() if self.settings.optimizer == "adam" else rmsprop()

    def create(self, key: Array) -> Learner:
        """A learner with random weights; the target network starts as a copy."""
        weights = self.network.create(key)
        start = jax.vmap(self.optimizer.init) if self.family.whole_networks else self.optimizer.init
        return Learner(weights, jax.tree.map(jnp.copy, weights), start(weights))

    def __call__(
        self,
        learner: Learner,
        batch: Batch,
        members: Array,
        rule: Array,
        parameter: Array,
        learning_rate: Array,
        word: Array,
    ) -> tuple[Learner, Losses]:
        """One step of the optimiser.

        ``members`` (how many it uses), ``rule`` and ``parameter`` are the run's own; ``word`` is a random word that chooses the
        network that learns, where only one does.
        """
        targets = self.targets(learner, batch, members, rule, parameter)
        if not self.family.whole_networks:
            weights, moments, losses = self._descend(
                self.network, learner.weights, learner.moments, batch, targets, batch.masks, learning_rate
            )
            return Learner(weights, learner.target, moments), losses
        # One network learns, and only its weights and its moments move: a gradient of zero would still move Adam's.
        chosen = below(word, members)
        own, masks = (jnp.take(array, chosen, axis=1)[:, None] for array in (targets, batch.masks))
        weights, moments = (jax.tree.map(lambda leaf: leaf[chosen], t) for t in (learner.weights, learner.moments))
        weights, moments, losses = self._descend(self.network.alone, weights, moments, batch, own, masks, learning_rate)

        def put(whole: Array, part: Array) -> Array:
            here = (jnp.arange(self.family.members) == chosen).reshape(-1, *(1,) * part.ndim)
            return jnp.where(here, part, whole)

        return (
            Learner(
                jax.tree.map(put, learner.weights, weights),
                learner.target,
                jax.tree.map(put, learner.moments, moments),
            ),
            losses,
        )

    def targets(self, learner: Learner, batch: Batch, members: Array, rule: Array, parameter: Array) -> Array:
        """Y = r + discount * (the rule's value of the next state): [B, members]."""
        target = self.network.values(learner.target, batch.next_observations)
        online = self.network.values(learner.weights, batch.next_observations) if self.family.online else target
        target = self.family.in_use(target, members)
        values = jax.vmap(self.family.next_value, in_axes=(None, 0, None))(rule, NextValues(target, online), parameter)
        return jax.lax.stop_gradient(batch.rewards[:, None] + batch.discounts[:, None] * values)

    def loss(
        self, network: Ensemble, weights: Weights, batch: Batch, targets: Array, masks: Array
    ) -> tuple[Array, Array]:
        """The sum over the members of their mean losses over the transitions they learn from, and the mean of Q."""
        q = value_of(network.values(weights, batch.observations), batch.actions[:, None])
        error = q - targets
        each = jnp.square(error) if self.settings.loss == "mse" else optax.losses.huber_loss(error)
        count = jnp.maximum(jnp.sum(masks, axis=0), 1)
        return jnp.sum(jnp.sum(jnp.where(masks, each, 0.0), axis=0) / count), jnp.mean(q)

    def _descend(
        self,
        network: Ensemble,
        weights: Weights,
        moments: Any,
        batch: Batch,
        targets: Array,
        masks: Array,
        learning_rate: Array,
    ) -> tuple[Weights, Any, Losses]:
        loss = jax.value_and_grad(lambda w: self.loss(network, w, batch, targets, masks), has_aux=True)
        (value, q), gradient = loss(weights)
        if network.members > 1:  # each head pulls at the trunk: their mean does, not their sum
            gradient = gradient._replace(trunk=jax.tree.map(lambda leaf: leaf / network.members, gradient.trunk))
        direction, moments = self.optimizer.update(gradient, moments)
        weights = jax.tree.map(lambda w, d: w - learning_rate * d, weights, direction)
        return weights, moments, Losses(value, q)
