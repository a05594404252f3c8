"""Target rules: what the next state is worth.

A rule is a small pure function from the values of the next state's actions to one value per member. It sees one transition;
a batch is ``jax.vmap``'s business. To write a new algorithm is to write such a function, and to hand it to
:class:`maxmean.deep.Agent`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from .. import mev

Array = jax.Array


class NextValues(NamedTuple):
    """Q of the next state's actions, by both networks: [members, actions]."""

    target: Array
    """By the target network, which lags behind."""
    online: Array
    """By the network that learns."""
    legal: Array | None = None
    """bool [actions]: which actions are legal, where some may not be; both networks' values of the others are -inf."""


Rule = Callable[[NextValues, Array], Array]
"""A target rule: (next values, the algorithm's parameter) -> the next state's value for each member, [members]."""


def maximum(q: NextValues, parameter: Array) -> Array:
    """DQN (Mnih et al., 2015): the largest target value.

    >>> maximum(NextValues(jnp.array([[1.0, 3.0]]), jnp.array([[9.0, 0.0]])), 0.0).tolist()
    [3.0]
    """
    return jnp.max(q.target, axis=-1)


def double(q: NextValues, parameter: Array) -> Array:
    """Double DQN (van Hasselt et al., 2016): the target value of the action that the online network prefers.

    >>> double(NextValues(jnp.array([[1.0, 3.0]]), jnp.array([[9.0, 0.0]])), 0.0).tolist()
    [1.0]
    """
    return value_of(q.target, jnp.argmax(q.online, axis=-1))


def self_correcting(q: NextValues, parameter: Array) -> Array:
    r"""Self-correcting DQN (Zhu and Rigotti, 2021): the action maximises :math:`(1 - \beta) Q^- + \beta Q`; 1 is Double DQN.

    >>> values = NextValues(jnp.array([[1.0, 3.0]]), jnp.array([[3.5, 3.0]]))
    >>> self_correcting(values, 3.0).tolist()
    [1.0]
    """
    beta = jnp.asarray(parameter, q.target.dtype)[..., None]  # one for all, or one a member
    corrected = (1.0 - beta) * q.target + beta * q.online
    if q.legal is not None:  # of two infinities
        corrected = jnp.where(q.legal, corrected, -jnp.inf)
    return value_of(q.target, jnp.argmax(corrected, axis=-1))


def maxmin(q: NextValues, parameter: Array) -> Array:
    """MaxMin DQN (Lan et al., 2020): the largest of the members' smallest values, for all of them.

    >>> maxmin(NextValues(jnp.array([[1.0, 3.0], [2.0, 0.0]]), jnp.zeros((2, 2))), 0.0).tolist()
    [1.0, 1.0]
    """
    return jnp.broadcast_to(mev.maxmin_estimate(q.target), q.target.shape[:1])


@dataclass(frozen=True)
class LevelBased:
    """TE-BDQN: each head's T-estimate at level alpha (the parameter, one for all or one a head), :func:`mev.ensemble_target`.

    >>> heads = jnp.array([[0.0, 4.0], [2.0, 2.0]])
    >>> LevelBased()(NextValues(heads, heads), 0.01).tolist()
    [2.0, 2.0]
    """

    covariance: bool = False
    """Whether the statistic is corrected by the covariances of the actions' values across the heads."""

    def __call__(self, q: NextValues, parameter: Array) -> Array:
        kernel = mev.Indicator(jnp.asarray(parameter)[..., None])
        return mev.ensemble_target(q.target, kernel, covariance=self.covariance, where=q.legal)


@dataclass(frozen=True)
class KernelBased:
    """KE-BDQN: each head's K-estimate with a fixed kernel, :func:`mev.ensemble_target`; the parameter is not used."""

    kernel: mev.Kernel = mev.Gaussian()  # noqa: RUF009  (frozen)
    covariance: bool = False

    def __call__(self, q: NextValues, parameter: Array) -> Array:
        return mev.ensemble_target(q.target, self.kernel, covariance=self.covariance, where=q.legal)


@dataclass(frozen=True)
class GaussianBased:
    """KE-BDQN with the Gaussian kernel whose scale is the parameter, so that it can be adapted."""

    covariance: bool = False

    def __call__(self, q: NextValues, parameter: Array) -> Array:
        kernel = mev.Gaussian(jnp.asarray(parameter)[..., None])
        return mev.ensemble_target(q.target, kernel, covariance=self.covariance, where=q.legal)


def value_of(values: Array, actions: Array) -> Array:
    """The values [..., A] of the chosen actions [...]; without a gather, for there are few actions."""
    chosen = actions[..., None] == jnp.arange(values.shape[-1])
    return jnp.sum(jnp.where(chosen, values, 0.0), axis=-1)
