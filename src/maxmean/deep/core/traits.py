"""Traits: the numbers by which the runs of one program differ."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ..agent import Adaptation

Array = jax.Array


class Traits(NamedTuple):
    """What a run has of its own inside a program that it may share with others."""

    learning_rate: Array
    members: Array
    """int32: how many of the program's members it uses."""
    rule: Array
    """int32: which of the family's rules it follows."""
    parameter: Array
    """The rule's parameter: a scalar, or [members] where each head has its own."""
    adaptation_rate: Array
    """Step size of the parameter's adaptation, or zero."""


def adapted(adaptation: Adaptation, traits: Traits, excess: Array, size: Array) -> Traits:
    """The traits with the parameter moved towards the bias that is wanted.

    ``excess`` is what the heads' returns exceed their values by, ``size`` the values' size, summed over the roll-outs: [heads].
    """
    if adaptation.level:
        excess = excess + adaptation.level * size
    difference = excess if adaptation.per_head else jnp.mean(excess)
    moved = traits.parameter + adaptation.direction * traits.adaptation_rate * difference
    moved = jnp.clip(moved, adaptation.low, adaptation.high)
    return traits._replace(parameter=jnp.where(traits.adaptation_rate > 0.0, moved, traits.parameter))
