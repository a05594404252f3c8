"""What the tuning examples share: one training of TE-BDQN, and how far its values are from the truth on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import maxmean

ALPHA = (0.01, 0.5)
"""Where alpha is searched, on a logarithmic scale; 0.5 is the maximum of each head."""
LEARNING_RATE = (1e-4, 1e-2)
"""Where the learning rate is searched, on a logarithmic scale."""


@dataclass
class Progress:
    """What a training has shown so far."""

    returns: list[float] = field(default_factory=list)
    biases: list[float] = field(default_factory=list)

    @property
    def score(self) -> float:
        """What is maximised: the mean test return of the last three records."""
        return _recent(self.returns)

    @property
    def running_bias(self) -> float:
        """How far Q lies from what the agent then gets, over the last three records; whether above or below."""
        return abs(_recent(self.biases))


def _recent(values: list[float]) -> float:
    return sum(values[-3:]) / len(values[-3:])


def objective(
    alpha: float,
    learning_rate: float,
    *,
    steps: int,
    records: int = 10,
    seed: int = 0,
    hear: Callable[[int, Progress], None],
    **settings: Any,
) -> Progress:
    """Train TE-BDQN on CartPole-v1; ``hear(step, progress)`` is told of each record, and raises to give up."""
    progress = Progress()

    def callback(record: dict[str, Any]) -> None:
        progress.returns.append(record["test_return"])
        progress.biases.append(record["bias"])
        hear(record["step"], progress)

    agent = maxmean.TEBDQN(
        "CartPole-v1",
        alpha=alpha,
        learning_rate=learning_rate,
        seed=seed,
        test_interval=max(1, steps // records),
        **settings,
    )
    agent.learn(steps, callback=callback)
    return progress
