"""The agents: one line each. A new one is a function in :mod:`maxmean.deep.agents` and a line here.

The rest follows: ``maxmean.deep.KEBDQN`` is the function, ``maxmean.KEBDQN`` the class for Gymnasium that is made of it, and
the command line, the tables and the figures know the name. Nothing is imported here, so that help needs no JAX.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple


class Listed(NamedTuple):
    """An agent on the list."""

    name: str
    """In tables and on the command line."""
    function: str
    """In :mod:`maxmean.deep.agents`."""
    takes: str = ""
    """What may follow the name on the command line, after a colon: the function's first argument."""

    @property
    def paired(self) -> bool:
        """Whether the statistic is the paired one, T*, which the star in the name stands for: the function's ``paired=True``."""
        return "*" in self.name

    @property
    def unpaired(self) -> str:
        """The name without the star, which the agent's class and its page share."""
        return self.name.replace("*", "")

    @property
    def usage(self) -> str:
        """As one types it."""
        return f"{self.name}:{self.takes}" if self.takes else self.name


REGISTRY = (
    Listed("dqn", "DQN"),
    Listed("ddqn", "DDQN"),
    Listed("scdqn", "SCDQN", "BETA"),
    Listed("maxmin-dqn", "MaxMinDQN", "N"),
    Listed("bdqn", "BDQN", "HEADS"),
    Listed("te-bdqn", "TEBDQN", "ALPHA"),
    Listed("ke-bdqn", "KEBDQN", "KERNEL"),
    Listed("ada-te-bdqn", "AdaTEBDQN", "STEP"),
    Listed("ada-ke-bdqn", "AdaKEBDQN", "STEP"),
    Listed("te*-bdqn", "TEBDQN", "ALPHA"),
    Listed("ke*-bdqn", "KEBDQN", "KERNEL"),
    Listed("ada-te*-bdqn", "AdaTEBDQN", "STEP"),
    Listed("ada-ke*-bdqn", "AdaKEBDQN", "STEP"),
)
FUNCTIONS = list(dict.fromkeys(each.function for each in REGISTRY))
"""Their names in Python."""

USAGE = ", ".join(each.usage for each in REGISTRY)
"""Their names on the command line."""


def sentences() -> dict[str, str]:
    """What each agent is, by its name: the first line of its function's docstring, which is read but not imported.

    >>> sentences()["ddqn"]
    'Double DQN (van Hasselt et al., 2016): one network chooses the action, the other values it.'
    """
    module = ast.parse(Path(__file__).with_name("agents.py").read_text(encoding="utf-8"))
    said = {node.name: ast.get_docstring(node) or "" for node in module.body if isinstance(node, ast.FunctionDef)}
    plain = {name: re.sub(r"(?::\w+:)?`+([^`]*)`+", r"\1", text.partition("\n")[0]) for name, text in said.items()}
    return {
        each.name: f"{each.unpaired} with the paired statistic T*." if each.paired else plain[each.function]
        for each in REGISTRY
    }
