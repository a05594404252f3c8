"""Deep Q-learning with controlled bias, in JAX: everything on the device, runs in parallel.

>>> from maxmean import deep
>>> deep.KEBDQN().members, deep.TEBDQN(alpha=0.2).label
(10, 'te-bdqn(0.2)')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazily
from .registry import FUNCTIONS

if TYPE_CHECKING:
    from .agent import Adaptation as Adaptation
    from .agent import Agent as Agent
    from .agents import *  # noqa: F403  the functions of the registry
    from .checkpoint import CheckpointError as CheckpointError
    from .checks import AgentError as AgentError
    from .device.training import Training as Training
    from .device.training import train as train
    from .exploration import EpsilonGreedy as EpsilonGreedy
    from .exploration import HeadPerEpisode as HeadPerEpisode
    from .exploration import Optimistic as Optimistic
    from .exploration import Thompson as Thompson
    from .policy import Policy as Policy
    from .policy import load as load
    from .settings import Settings as Settings
    from .targets import NextValues as NextValues

_HOME = {
    "AGENTS": "agents",
    "Adaptation": "agent",
    "Agent": "agent",
    "AgentError": "checks",
    "CheckpointError": "checkpoint",
    "EpsilonGreedy": "exploration",
    "HeadPerEpisode": "exploration",
    "NextValues": "targets",
    "Optimistic": "exploration",
    "Policy": "policy",
    "Settings": "settings",
    "Thompson": "exploration",
    "Training": "device.training",
    "load": "policy",
    "train": "device.training",
} | dict.fromkeys(FUNCTIONS, "agents")

__all__ = sorted(_HOME)

PACKAGES = ("jax", "optax", "safetensors")
"""What the extra ``deep`` brings."""

__getattr__, __dir__ = lazily(__name__, _HOME, needs=PACKAGES, extra="deep")
