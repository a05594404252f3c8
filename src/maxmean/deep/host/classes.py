"""A class for each agent of the registry. What each is made of is said in :mod:`maxmean.deep.agents`; how they are used, in
:class:`HostAgent`.
"""

from __future__ import annotations

from collections.abc import Callable

from ..agent import Agent
from ..agents import AGENTS
from ..registry import REGISTRY
from .agent import HostAgent


def _class(make: Callable[..., Agent]) -> type[HostAgent]:
    members = {"__doc__": make.__doc__, "__module__": __name__, "make": staticmethod(make)}
    return type(make.__name__, (HostAgent,), members)


HOST_AGENTS: dict[str, type[HostAgent]] = {each.name: _class(AGENTS[each.name]) for each in REGISTRY if not each.paired}
"""By the names that tables and the command line use; for those with a star, ``paired=True`` is a setting."""

globals().update({kind.__name__: kind for kind in HOST_AGENTS.values()})
