"""The recommended agent: what ``maxmean.agent(env)`` and ``maxmean train`` without ``--agent`` give.

There is one for each kind of observation, and not one for each environment. docs/notes/agents.md has what was measured for it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from .agents import parse_arguments
from .networks import kind_of
from .settings import AgentOptions, Settings


@dataclass(frozen=True)
class Recommendation:
    """An agent and its settings."""

    agent: str
    """As the command line writes it."""
    settings: dict[str, Any]
    """Of the agent, its training and the host, where they differ from the defaults for such observations."""

    @property
    def arguments(self) -> tuple[str, dict[str, Any]]:
        """The agent's name, and all of its settings together."""
        name, own = parse_arguments(self.agent)
        return name, {**self.settings, **own}

    @property
    def on_device(self) -> Recommendation:
        """The same without the settings that only a host has."""
        known = {field.name for kind in (AgentOptions, Settings) for field in fields(kind)}
        return replace(self, settings={name: each for name, each in self.settings.items() if name in known})


RECOMMENDED = {
    "vector": Recommendation(
        "ke*-bdqn",
        {
            "layer_norm": True,
            "scale_observations": True,
            "exploration": "heads:0.05",
            "hidden": 64,
            "loss": "huber",
            "learning_rate": 5e-4,
            "replay_capacity": 50_000,
            "target_period": 250,
            "n_step": 5,
            "train_every": 4,
            "gradient_steps": 4,
        },
    ),
    "picture": Recommendation("ke*-bdqn:gaussian:2", {}),
    "frames": Recommendation("ke*-bdqn", {}),
}
"""By kind of observation."""


def recommended(shape: tuple[int, ...]) -> Recommendation:
    """The recommendation for observations of this shape.

    >>> recommended((8,)).agent
    'ke*-bdqn'
    """
    return RECOMMENDED[kind_of(shape)]
