"""Networks: a trunk that sees the observation, and members that value the actions.

A member is one estimate of Q. An agent has one, or several heads on one trunk (bootstrapped), or several whole networks (MaxMin).
The heads' hidden layers are one matrix, because ten small products cost more than one large one; it is kept transposed,
[members * hidden, features], so that one head's part is a contiguous block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array


class Dense(NamedTuple):
    """A layer: ``weights`` [outputs, inputs] and ``bias`` [outputs]."""

    weights: Array
    bias: Array


class Trunk(ABC):
    """The part of a network that all heads share."""

    @abstractmethod
    def features(self, shape: tuple[int, ...]) -> int:
        """How many features it makes of an observation of this shape."""

    @abstractmethod
    def create(self, key: Array, shape: tuple[int, ...]) -> Any:
        """Random parameters."""

    @abstractmethod
    def apply(self, parameters: Any, observations: Array) -> Array:
        """The features of observations [batch, ...]: float32 [batch, features]."""


@dataclass(frozen=True)
class Convolution(Trunk):
    """One convolution with 3 x 3 filters, stride 1, no padding, ReLU: MinAtar's (Young and Tian, 2019)."""

    LEAST: ClassVar[int] = 3
    """Rows and columns of the smallest picture that it sees."""
    filters: int = 16

    def features(self, shape: tuple[int, ...]) -> int:
        rows, columns, _ = shape
        return (rows - 2) * (columns - 2) * self.filters

    def create(self, key: Array, shape: tuple[int, ...]) -> Dense:
        return dense(key, 9 * shape[-1], self.filters)

    def apply(self, parameters: Dense, observations: Array) -> Array:
        """As one product with all patches (im2col): a convolution inside a loop is four times slower on a CPU."""
        batch, rows, columns, channels = observations.shape
        rows, columns = rows - 2, columns - 2
        seen = floats(observations)  # now, not the nine times larger patches
        shifted = [seen[:, i : i + rows, j : j + columns] for i in range(3) for j in range(3)]
        patches = jnp.concatenate(shifted, axis=-1).reshape(-1, 9 * channels)
        return jax.nn.relu(linear(parameters, patches)).reshape(batch, -1)


@dataclass(frozen=True)
class Perceptron(Trunk):
    """Fully connected ReLU layers, for observations that are vectors."""

    widths: tuple[int, ...] = (128,)
    units: tuple[float, ...] = ()
    """What each number of an observation is divided by, if it is not seen as it is."""

    def features(self, shape: tuple[int, ...]) -> int:
        return self.widths[-1] if self.widths else int(np.prod(shape))

    def create(self, key: Array, shape: tuple[int, ...]) -> tuple[Dense, ...]:
        sizes = (int(np.prod(shape)), *self.widths)
        keys = jax.random.split(key, len(self.widths)) if self.widths else ()
        return tuple(dense(k, n, m) for k, n, m in zip(keys, sizes[:-1], sizes[1:], strict=True))

    def apply(self, parameters: tuple[Dense, ...], observations: Array) -> Array:
        features = floats(observations.reshape(observations.shape[0], -1))
        if self.units:
            features = features / jnp.asarray(self.units, jnp.float32)
        for layer in parameters:
            features = jax.nn.relu(linear(layer, features))
        return features


@dataclass(frozen=True)
class Nature(Trunk):
    """Three convolutions for frames of a video game, [rows, columns, channels] with 36 rows and columns at least.

    The trunk of Mnih et al. (2015): 32 filters of 8 x 8 with stride 4, 64 of 4 x 4 with stride 2, 64 of 3 x 3; no padding, ReLU.
    """

    LAYERS: ClassVar[tuple[tuple[int, int, int], ...]] = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
    """Filters, their side, their stride."""
    LEAST: ClassVar[int] = 36
    """Rows and columns with which one row and one column are left at the end."""

    def features(self, shape: tuple[int, ...]) -> int:
        rows, columns, _ = shape
        for _, side, stride in self.LAYERS:
            rows, columns = (rows - side) // stride + 1, (columns - side) // stride + 1
        return rows * columns * self.LAYERS[-1][0]

    def create(self, key: Array, shape: tuple[int, ...]) -> tuple[Dense, ...]:
        """Filters as [filters, side * side * channels], like a dense layer's weights."""
        channels = (shape[-1], *(filters for filters, _, _ in self.LAYERS[:-1]))
        keys = jax.random.split(key, len(self.LAYERS))
        return tuple(
            dense(k, side * side * c, filters)
            for k, c, (filters, side, _) in zip(keys, channels, self.LAYERS, strict=True)
        )

    def apply(self, parameters: tuple[Dense, ...], observations: Array) -> Array:
        features = floats(observations)
        for layer, (filters, side, stride) in zip(parameters, self.LAYERS, strict=True):
            kernel = layer.weights.reshape(filters, side, side, -1)
            features = jax.lax.conv_general_dilated(
                features, kernel, (stride, stride), "VALID", dimension_numbers=("NHWC", "OHWI", "NHWC")
            )
            features = jax.nn.relu(features + layer.bias)
        return features.reshape(features.shape[0], -1)


def fitting_trunk(shape: tuple[int, ...]) -> Trunk:
    """The trunk for observations of this shape: pictures are [rows, columns, channels], all else is taken for a vector."""
    if len(shape) != 3:
        return Perceptron()
    return Nature() if min(shape[:2]) >= Nature.LEAST else Convolution()


def kind_of(shape: tuple[int, ...]) -> str:
    """What observations of this shape are, in a word: vector, picture or frames.

    >>> kind_of((4,)), kind_of((10, 10, 4)), kind_of((84, 84, 4))
    ('vector', 'picture', 'frames')
    """
    if len(shape) != 3:
        return "vector"
    return "frames" if isinstance(fitting_trunk(shape), Nature) else "picture"


def floats(observations: Array) -> Array:
    """Observations as float32; bytes are taken for brightness and become 0 to 1."""
    return (
        observations.astype(jnp.float32) / 255.0
        if observations.dtype == jnp.uint8
        else observations.astype(jnp.float32)
    )


class Weights(NamedTuple):
    """All parameters of M members with A actions; for whole networks, each leaf has M as its first axis instead."""

    trunk: Any
    hidden: Dense
    """[M * hidden, features] and [M * hidden]."""
    output: Dense
    """[M, A, hidden] and [M, A]."""
    prior: Any = ()
    """The weights of the fixed networks whose values are added, where there are such."""

    @property
    def learned(self) -> Weights:
        """The part that an optimiser moves."""
        return self._replace(prior=())


@dataclass(frozen=True)
class Ensemble:
    """``members`` estimates of Q for observations of one shape."""

    trunk: Trunk
    shape: tuple[int, ...]
    n_actions: int
    members: int = 1
    shared: bool = True
    """Whether the members are heads on one trunk; whole networks else."""
    hidden: int = 128
    prior: float = 0.0
    """What the values of a fixed random network, one for each member, are multiplied by before they are added to the learned
    ones (Osband et al., 2018): where nothing was learned the members keep apart.
    """
    dropout: float = 0.0
    """The share of hidden units that a member goes without, its own ones each; the members are then one network, with one output.
    """
    layer_norm: bool = False
    """Whether the trunk's features, and each member's hidden units before their ReLU, are normalised for every observation (Ba et
    al., 2016), without a gain and a shift to learn; it keeps values from running away.
    """

    def create(self, key: Array) -> Weights:
        """Random weights and biases, uniform within 1 / sqrt(inputs), as PyTorch's layers have them."""
        prior = self._prior.create(jax.random.fold_in(key, PRIOR)) if self.prior else ()
        return self._learned(key)._replace(prior=prior)

    def _learned(self, key: Array) -> Weights:
        if not self.shared:  # the first of three networks is the same as the first of one
            keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(self.members))
            return jax.vmap(self._bare.create)(keys) if self.separate else self._bare.create(keys[0])
        trunk, hidden, output = jax.random.split(key, 3)
        features, m = self.trunk.features(self.shape), 1 if self.dropout else self.members
        last = dense(output, self.hidden, m * self.n_actions)
        return Weights(
            self.trunk.create(trunk, self.shape),
            dense(hidden, features, m * self.hidden),
            Dense(last.weights.reshape(m, self.n_actions, self.hidden), last.bias.reshape(m, self.n_actions)),
        )

    def values(self, weights: Weights, observations: Array) -> Array:
        """Q of every member for observations [batch, ...]: [batch, members, actions]."""
        if self.separate:
            q = jax.vmap(self._bare.values, in_axes=(0, None), out_axes=1)(weights.learned, observations)[:, :, 0]
            return self.with_prior(q, weights.prior, observations)
        features = self.features(weights.trunk, observations)
        # The batch as the last axis: with the large matrix on the left a CPU's products are a third faster.
        q = self.read(weights, weights.hidden.weights @ features.T)
        return self.with_prior(q, weights.prior, observations)

    def features(self, trunk: Any, observations: Array) -> Array:
        """What the hidden layers see of observations [batch, ...]: [batch, features]."""
        features = self.trunk.apply(trunk, observations)
        return normalised(features, axis=-1) if self.layer_norm else features

    def read(self, weights: Weights, products: Array) -> Array:
        """What every member has learned, from the products of the hidden layer's matrix with the features, [units, batch]."""
        hidden = (products + weights.hidden.bias[:, None]).reshape(-1, self.hidden, products.shape[-1])
        hidden = jax.nn.relu(normalised(hidden, axis=1) if self.layer_norm else hidden)
        if self.dropout:
            hidden = hidden * self.masks[:, :, None]
        return (weights.output.weights @ hidden + weights.output.bias[:, :, None]).transpose(2, 0, 1)

    def with_prior(self, q: Array, prior: Any, observations: Array) -> Array:
        """Learned values [batch, members, actions] with those of the members' priors added, where there are such."""
        if not self.prior:
            return q
        return q + self.prior * jax.lax.stop_gradient(self._prior.values(prior, observations))

    def member_values(self, weights: Weights, observations: Array, member: Array) -> Array:
        """Q of one member alone, [batch, actions], reading only that member's weights."""
        if self.dropout:
            return jnp.take(self.values(weights, observations), member, axis=1)
        return self.alone.values(self.member(weights, member), observations)[:, 0]

    def own_values(self, weights: Weights, observations: Array) -> Array:
        """Q of member m for its own observations [members, batch, ...]: [members, batch, actions]."""
        if self.dropout:  # the members are one network, whose values have to be taken apart

            def of(member: Array, seen: Array) -> Array:
                return self.member_values(weights, seen, member)

            return jax.vmap(of)(jnp.arange(self.members), observations)

        def each(alone: Weights, seen: Array) -> Array:
            return self.alone.values(alone, seen)[:, 0]

        # All members at once, each where its weights lie: picked one by one, all of them would be copied.
        return jax.vmap(each, in_axes=(self._axes, 0))(self._apart(weights), observations)

    def member(self, weights: Weights, member: Array) -> Weights:
        """The weights of one member as a network of its own; not where members are one network with dropout."""
        if self.members == 1:
            return weights
        prior = self._prior.member(weights.prior, member) if self.prior else ()
        if self.separate:
            return jax.tree.map(lambda leaf: leaf[member], weights.learned)._replace(prior=prior)
        begin = member * self.hidden
        hidden = Dense(*(jax.lax.dynamic_slice_in_dim(leaf, begin, self.hidden) for leaf in weights.hidden))
        output = Dense(*(jax.lax.dynamic_slice_in_dim(leaf, member, 1) for leaf in weights.output))
        return Weights(weights.trunk, hidden, output, prior)

    def _apart(self, weights: Weights) -> Weights:
        """The members' weights as networks of their own, which have the axes ``_axes``."""
        prior = self._prior._apart(weights.prior) if self.prior else ()
        if self.separate:
            return weights._replace(prior=prior)
        hidden = Dense(*(leaf.reshape(self.members, self.hidden, *leaf.shape[1:]) for leaf in weights.hidden))
        return Weights(weights.trunk, hidden, Dense(*(leaf[:, None] for leaf in weights.output)), prior)

    @property
    def _axes(self) -> Weights:
        """Along which axis the members are in ``_apart``: none in a trunk that they share."""
        return Weights(0 if self.separate else None, 0, 0, self._prior._axes if self.prior else None)  # type: ignore[arg-type]

    @property
    def separate(self) -> bool:
        """Whether the members are several whole networks; each leaf of the weights then has them as its first axis."""
        return not self.shared and self.members > 1

    @property
    def units(self) -> int:
        """Rows of the hidden layer's matrix."""
        return self.hidden if self.dropout else self.members * self.hidden

    @property
    def masks(self) -> Array:
        """Which hidden units each member has, [members, hidden], the same ones for ever; larger where there are fewer."""
        kept = jax.random.bernoulli(jax.random.key(PRIOR), 1.0 - self.dropout, (self.members, self.hidden))
        return kept / (1.0 - self.dropout)

    @property
    def alone(self) -> Ensemble:
        """The network of one member."""
        return replace(self, members=1, shared=True)

    @property
    def _bare(self) -> Ensemble:
        """The same without its prior."""
        return replace(self.alone, prior=0.0)

    @property
    def _prior(self) -> Ensemble:
        """The fixed networks: heads on a random trunk, whatever it is that learns."""
        return replace(self, shared=True, prior=0.0, dropout=0.0)


PRIOR = 0x7072696F
"""Sets the random numbers of priors and masks apart from all others."""


def dense(key: Array, inputs: int, outputs: int) -> Dense:
    """A layer with uniform weights and biases within 1 / sqrt(inputs)."""
    bound = inputs**-0.5
    weights, bias = jax.random.split(key)
    return Dense(
        jax.random.uniform(weights, (outputs, inputs), jnp.float32, -bound, bound),
        jax.random.uniform(bias, (outputs,), jnp.float32, -bound, bound),
    )


def normalised(values: Array, axis: int) -> Array:
    """Values with mean 0 and variance 1 along an axis.

    >>> normalised(jnp.array([[1.0, 3.0], [-2.0, 2.0]]), axis=-1).round(3).tolist()
    [[-1.0, 1.0], [-1.0, 1.0]]
    """
    apart = values - jnp.mean(values, axis, keepdims=True)
    return apart * jax.lax.rsqrt(jnp.mean(jnp.square(apart), axis, keepdims=True) + 1e-5)


def linear(layer: Dense, inputs: Array) -> Array:
    return inputs @ layer.weights.T + layer.bias
