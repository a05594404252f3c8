"""Runs by name: which agent, with which learning rate, with which seed."""

from __future__ import annotations

from typing import NamedTuple

from .agent import Agent

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


def file_name(label: str) -> str:
    """A label as a file's name.

    >>> file_name("te-bdqn(0.1)"), file_name("ke*-bdqn:beta:2,0.5")
    ('te-bdqn-0.1', 'ke-paired-bdqn-beta-2-0.5')
    """
    return "".join(c if c.isalnum() or c in ".-_" else "-" for c in label.replace("*", "-paired")).strip("-")
