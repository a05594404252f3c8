"""One update: from a batch of transitions to new weights. The same function serves every agent and every kind of training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from ...envs.random import below
from ..networks import Ensemble, Weights
from ..settings import LearningSettings
from ..targets import NextValues, value_of
from . import fused
from .family import Family
from .fused import Matrix
from .in_place import overwritten
from .optimizers import Corrections, adam, rmsprop
from .traits import Traits

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
    next_legal: Array | None = None
    """bool [B, actions]: which actions are legal in the next state, where some may not be."""


class Learner(NamedTuple):
    """What an update changes, and the target network that it only reads."""

    weights: Weights
    target: Weights
    moments: Any
    """The optimiser's state."""


def copy_target(learner: Learner) -> Learner:
    """The learner with a target network that is a copy of the one that learns. It lies where the old one lay, which is gone."""
    return learner._replace(target=overwritten(learner.target, learner.weights))


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
    settings: LearningSettings

    @property
    def optimizer(self) -> optax.GradientTransformation:
        return adam() if self.settings.optimizer == "adam" else rmsprop()

    def begin(self, weights: Weights) -> Learner:
        """A learner with these weights; the target network starts as a copy."""
        start = jax.vmap(self.optimizer.init) if self.family.one_learns else self.optimizer.init
        return Learner(weights, jax.tree.map(jnp.copy, weights), start(weights.learned))

    def __call__(
        self,
        learner: Learner,
        batch: Batch,
        traits: Traits,
        word: Array,
    ) -> tuple[Learner, Losses]:
        """One step of the optimiser; ``word`` is a random word that chooses the network that learns, where only one does."""
        if self.one_kernel:
            return self._descend_in_one_kernel(learner, batch, traits)
        targets, learning_rate = self.targets(learner, batch, traits), traits.learning_rate
        if self.family.one_learns:
            return self._descend_with_one(learner, batch, targets, learning_rate, below(word, traits.members))
        gradient, losses = self._gradient(self.network, learner.weights, batch, targets, batch.masks)
        direction, moments = self.optimizer.update(gradient, learner.moments)
        weights = jax.tree.map(lambda w, d: w - learning_rate * d, learner.weights.learned, direction)
        return Learner(weights._replace(prior=learner.weights.prior), learner.target, moments), losses

    def targets(self, learner: Learner, batch: Batch, traits: Traits, online: Array | None = None) -> Array:
        """Y = r + discount * (the rule's value of the next state): [B, members].

        ``online`` are the learning network's values of the next states, if they are known already.
        """
        target = self.network.values(learner.target, batch.next_observations)
        if online is None:
            online = self.network.values(learner.weights, batch.next_observations) if self.family.online else target
        legal = batch.next_legal
        if legal is not None:
            target, online = (jnp.where(legal[:, None], q, -jnp.inf) for q in (target, online))
        target = self.family.in_use(target, traits.members)
        next_value = jax.vmap(self.family.next_value, in_axes=(None, 0, None))
        values = next_value(traits.rule, NextValues(target, online, legal), traits.parameter)
        return jax.lax.stop_gradient(batch.rewards[:, None] + batch.discounts[:, None] * values)

    def loss(self, values: Array, batch: Batch, targets: Array, masks: Array) -> tuple[Array, Array]:
        """The sum over the members of their mean losses over the transitions they learn from, and the mean of Q.

        ``values`` are the members' for the batch's observations, [B, members, actions].
        """
        q = value_of(values, batch.actions[:, None])
        error = q - targets
        each = jnp.square(error) if self.settings.loss == "mse" else optax.losses.huber_loss(error)
        count = jnp.maximum(jnp.sum(masks, axis=0), 1)
        return jnp.sum(jnp.sum(jnp.where(masks, each, 0.0), axis=0) / count), jnp.mean(q)

    def _gradient(
        self, network: Ensemble, weights: Weights, batch: Batch, targets: Array, masks: Array
    ) -> tuple[Weights, Losses]:
        """Of the loss at what the network learns."""

        def loss(learned: Weights) -> tuple[Array, Array]:
            values = network.values(learned._replace(prior=weights.prior), batch.observations)
            return self.loss(values, batch, targets, masks)

        (value, q), gradient = jax.value_and_grad(loss, has_aux=True)(weights.learned)
        return _mean_pull(network, gradient), Losses(value, q)

    def _descend_with_one(
        self, learner: Learner, batch: Batch, targets: Array, learning_rate: Array, chosen: Array
    ) -> tuple[Learner, Losses]:
        """Only the chosen network's weights and moments move: a gradient of zero would still move Adam's.

        The step is computed for every network and taken by one: so each weight is read and written in its own place, while a step
        for the chosen one alone would have all of them copied.
        """
        alone = jax.tree.map(lambda leaf: leaf[chosen], learner.weights)
        own, masks = (jnp.take(array, chosen, axis=1)[:, None] for array in (targets, batch.masks))
        gradient, losses = self._gradient(self.network.alone, alone, batch, own, masks)
        direction, moments = jax.vmap(self.optimizer.update, in_axes=(None, 0))(gradient, learner.moments)

        def take(new: Array, old: Array) -> Array:
            learns = jnp.arange(self.family.members) == chosen
            return jnp.where(learns.reshape(-1, *(1,) * (old.ndim - 1)), new, old)

        weights = jax.tree.map(lambda w, d: take(w - learning_rate * d, w), learner.weights.learned, direction)
        moments = jax.tree.map(take, moments, learner.moments)
        return Learner(weights._replace(prior=learner.weights.prior), learner.target, moments), losses

    @property
    def one_kernel(self) -> bool:
        """Whether the hidden layer's gradient, its moments and its step are one kernel's work."""
        network, batch = self.network, self.settings.batch_size
        if self.settings.optimizer != "adam" or network.separate:
            return False
        features = network.trunk.features(network.shape)
        return fused.fits(network.units, features, batch) and fused.available(batch)

    def _descend_in_one_kernel(self, learner: Learner, batch: Batch, traits: Traits) -> tuple[Learner, Losses]:
        """The step by the chain rule, cut at the products of the hidden layer's matrix, whose gradient is never written."""
        network, trio = self.network, (learner.weights.learned, learner.moments.mu, learner.moments.nu)
        prior, learning_rate = learner.weights.prior, traits.learning_rate
        matrix = Matrix(*(each.hidden.weights for each in trio))
        others, mean, square = (_with_matrix(each, None) for each in trio)
        features, pull = jax.vjp(lambda trunk: network.features(trunk, batch.observations), others.trunk)

        def values(others: Weights, products: Array, observations: Array) -> Array:
            return network.with_prior(network.read(others, products), prior, observations)

        if self.family.online:  # then both products are one, which reads the matrix once
            ahead = network.features(others.trunk, batch.next_observations)
            both = matrix.weights @ jnp.concatenate([features, ahead]).T
            products, products_ahead = jnp.split(both, 2, axis=1)
            online = values(others, products_ahead, batch.next_observations)
        else:
            products, online = matrix.weights @ features.T, None
        targets = self.targets(learner, batch, traits, online)

        def loss(others: Weights, products: Array) -> tuple[Array, Array]:
            return self.loss(values(others, products, batch.observations), batch, targets, batch.masks)

        slopes = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)
        (value, q), (gradient, outer) = slopes(others, products)
        corrections = Corrections.at(learner.moments.count + 1)
        matrix, back = fused.adam_step(matrix, outer, features, learning_rate, corrections)
        gradient = _mean_pull(network, gradient._replace(trunk=pull(back)[0]))
        direction, moments = self.optimizer.update(gradient, learner.moments._replace(mu=mean, nu=square))
        others = jax.tree.map(lambda w, d: w - learning_rate * d, others, direction)
        weights, mean, square = map(_with_matrix, (others, moments.mu, moments.nu), matrix)
        weights = weights._replace(prior=prior)
        return Learner(weights, learner.target, moments._replace(mu=mean, nu=square)), Losses(value, q)


def _mean_pull(network: Ensemble, gradient: Weights) -> Weights:
    """Each head pulls at the trunk: their mean does, not their sum. Networks of their own have a trunk each."""
    if network.members == 1 or network.separate:
        return gradient
    return gradient._replace(trunk=jax.tree.map(lambda leaf: leaf / network.members, gradient.trunk))


def _with_matrix(weights: Weights, matrix: Any) -> Weights:
    """The same with another matrix in the hidden layer; with None, all but the matrix."""
    return weights._replace(hidden=weights.hidden._replace(weights=matrix))
