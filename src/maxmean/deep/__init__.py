"""Deep Q-learning with controlled bias, in JAX: everything on the device, runs in parallel.

>>> from maxmean import deep
>>> deep.KEBDQN().members, deep.TEBDQN(alpha=0.2).label
(10, 'te-bdqn(0.2)')
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..errors import missing, no_attribute

if TYPE_CHECKING:
    from .agents import (
        AGENTS,
        BDQN,
        DDQN,
        DQN,
        KEBDQN,
        SCDQN,
        TEBDQN,
        AdaKEBDQN,
        Adaptation,
        AdaTEBDQN,
        Agent,
        AgentError,
        MaxMinDQN,
    )
    from .checkpoint import CheckpointError
    from .exploration import EpsilonGreedy, HeadPerEpisode
    from .policy import Policy, load
    from .settings import Settings
    from .targets import NextValues
    from .training import Training, train

__all__ = [
    "AGENTS",
    "BDQN",
    "DDQN",
    "DQN",
    "KEBDQN",
    "SCDQN",
    "TEBDQN",
    "AdaKEBDQN",
    "AdaTEBDQN",
    "Adaptation",
    "Agent",
    "AgentError",
    "CheckpointError",
    "EpsilonGreedy",
    "HeadPerEpisode",
    "MaxMinDQN",
    "NextValues",
    "Policy",
    "Settings",
    "Training",
    "load",
    "train",
]

_HOME = {
    "AGENTS": "agents",
    "BDQN": "agents",
    "DDQN": "agents",
    "DQN": "agents",
    "KEBDQN": "agents",
    "SCDQN": "agents",
    "TEBDQN": "agents",
    "Adaptation": "agents",
    "AdaKEBDQN": "agents",
    "AdaTEBDQN": "agents",
    "Agent": "agents",
    "AgentError": "agents",
    "MaxMinDQN": "agents",
    "CheckpointError": "checkpoint",
    "EpsilonGreedy": "exploration",
    "HeadPerEpisode": "exploration",
    "Policy": "policy",
    "load": "policy",
    "Settings": "settings",
    "NextValues": "targets",
    "Training": "training",
    "train": "training",
}


PACKAGES = ("jax", "optax", "safetensors")
"""What the extra ``deep`` brings."""


def __getattr__(name: str) -> Any:
    """Import on first use: the command line's help needs no JAX."""
    if name in _HOME:
        try:
            value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
        except ModuleNotFoundError as error:
            if error.name not in PACKAGES:
                raise
            raise ModuleNotFoundError(missing(__name__, error.name, extra="deep"), name=error.name) from None
        globals()[name] = value
        return value
    raise AttributeError(no_attribute(__name__, name, __all__), name=name)


def __dir__() -> list[str]:
    return sorted(__all__)
