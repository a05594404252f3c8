"""Agents that learn in environments which step on the host: Gymnasium's, yours.

The update is deep's, the same compiled function; only the environment is elsewhere.

>>> import maxmean
>>> agent = maxmean.KEBDQN("CartPole-v1", k=3, warmup=50, test_interval=100, test_episodes=1, bias_episodes_per_head=1)
>>> agent.learn(100).num_timesteps
100
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..errors import no_attribute
from .errors import HostError
from .making import need_gymnasium

if TYPE_CHECKING:
    from .algorithm import Algorithm
    from .algorithms import ALGORITHMS, BDQN, DDQN, DQN, KEBDQN, SCDQN, TEBDQN, AdaKEBDQN, AdaTEBDQN, MaxMinDQN
    from .rollouts import Bias

__all__ = [
    "ALGORITHMS",
    "BDQN",
    "DDQN",
    "DQN",
    "KEBDQN",
    "SCDQN",
    "TEBDQN",
    "AdaKEBDQN",
    "AdaTEBDQN",
    "Algorithm",
    "Bias",
    "HostError",
    "MaxMinDQN",
]

_HOME = {"Algorithm": "algorithm", "Bias": "rollouts"}


def __getattr__(name: str) -> Any:
    """Import on first use, and say what is missing where something is."""
    if name not in __all__:
        raise AttributeError(no_attribute(__name__, name, __all__), name=name)
    need_gymnasium()
    value = getattr(importlib.import_module(f".{_HOME.get(name, 'algorithms')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
