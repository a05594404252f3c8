"""How good is the best one, really?

Estimators of the maximum expected value. ``maxmean.estimate(data)`` is the front door, :mod:`maxmean.mev` the statistics behind
it, :mod:`maxmean.tabular` the learners on finite MDPs, :mod:`maxmean.envs` environments in JAX, :mod:`maxmean.deep` deep
learners there, :mod:`maxmean.host` the same in Gymnasium's environments, :mod:`maxmean.lab` the laboratory that checks them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import mev
    from .host.algorithms import BDQN, DDQN, DQN, KEBDQN, SCDQN, TEBDQN, AdaKEBDQN, AdaTEBDQN, MaxMinDQN
    from .mev.compare import Comparison, compare
    from .mev.data import DataError
    from .mev.estimate import Estimate, estimate

__version__ = "0.1.0"

__all__ = [
    "BDQN",
    "DDQN",
    "DQN",
    "KEBDQN",
    "SCDQN",
    "TEBDQN",
    "AdaKEBDQN",
    "AdaTEBDQN",
    "Comparison",
    "DataError",
    "Estimate",
    "MaxMinDQN",
    "compare",
    "estimate",
    "mev",
]

_ROOMS = ("deep", "envs", "host", "lab", "mev", "tabular")

_AGENTS = ("BDQN", "DDQN", "DQN", "KEBDQN", "SCDQN", "TEBDQN", "AdaKEBDQN", "AdaTEBDQN", "MaxMinDQN")

_HOME = {
    "Comparison": "mev.compare",
    "compare": "mev.compare",
    "DataError": "mev.data",
    "Estimate": "mev.estimate",
    "estimate": "mev.estimate",
} | dict.fromkeys(_AGENTS, "host")


def __getattr__(name: str) -> Any:
    """Import on first use: ``import maxmean`` alone stays quick."""
    if name in _ROOMS:
        return importlib.import_module(f".{name}", __name__)
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    from .errors import no_attribute

    raise AttributeError(no_attribute(__name__, name, __all__), name=name)


def __dir__() -> list[str]:
    return sorted(__all__)
