"""Agents that learn in environments which step on the host: Gymnasium's, yours.

They act and learn by the same core as those on the device; only the environment is elsewhere.

>>> import maxmean
>>> agent = maxmean.KEBDQN("CartPole-v1", k=3, warmup=50, test_interval=100, test_episodes=1, bias_episodes_per_head=1)
>>> agent.learn(100).num_timesteps
100
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazily
from ..registry import FUNCTIONS
from .errors import HostError as HostError
from .making import need_gymnasium

if TYPE_CHECKING:
    from .agent import HostAgent as HostAgent
    from .callback import bias_callback as bias_callback
    from .classes import HOST_AGENTS as HOST_AGENTS
    from .measure import measure_bias as measure_bias
    from .rollouts import Bias as Bias

_HOME = {
    "HOST_AGENTS": "classes",
    "HostAgent": "agent",
    "Bias": "rollouts",
    "bias_callback": "callback",
    "measure_bias": "measure",
}
_HOME |= dict.fromkeys(FUNCTIONS, "classes")

__all__ = sorted(["HostError", *_HOME])

if TYPE_CHECKING:

    def __getattr__(name: str) -> type[HostAgent]: ...  # the agents of the registry; all else is named above

else:
    __getattr__, __dir__ = lazily(__name__, _HOME, before=need_gymnasium)
