"""A class for each agent of the registry. What each is made of is said in :mod:`maxmean.deep.agents`; how they are used, in
:class:`Algorithm`.
"""

from __future__ import annotations

from collections.abc import Callable

from ..agents import AGENTS, Agent
from .algorithm import Algorithm


def _class(make: Callable[..., Agent]) -> type[Algorithm]:
    members = {"__doc__": make.__doc__, "__module__": __name__, "make": staticmethod(make)}
    return type(make.__name__, (Algorithm,), members)


ALGORITHMS: dict[str, type[Algorithm]] = {name: _class(make) for name, make in AGENTS.items()}
"""By the names that tables and the command line use."""

globals().update({kind.__name__: kind for kind in ALGORITHMS.values()})
