"""Runs by name: which agent, with which learning rate, with which seed."""

from __future__ import annotations

from typing import NamedTuple

from .agents import Agent

MOST_RUNS = 10_000
"""Of one training."""


class Variant(NamedTuple):
    """An agent with its learning rate."""

    agent: Agent
    learning_rate: float

    @property
    def label(self) -> str:
        return self.agent.label


class RunId(NamedTuple):
    """One run of a training."""

    variant: Variant
    seed: int
