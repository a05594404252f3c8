"""The agents: a function for each algorithm, which fills in an :class:`~maxmean.deep.Agent`; none of them has code of its own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from typing import Any

from .. import mev
from ..errors import unknown
from ..mev.kernels import as_kernel
from ..mev.methods import parse_kernel
from . import targets
from .agent import Adaptation, Agent
from .checks import LARGEST, AgentError, real_number, truth, whole_number
from .exploration import EpsilonGreedy, Exploration, HeadPerEpisode, as_exploration
from .registry import REGISTRY, Listed


def DQN(exploration: Exploration | str = EpsilonGreedy(), layer_norm: bool = False) -> Agent:  # noqa: N802, B008
    """Deep Q-network (Mnih et al., 2015): the target is the largest value, and too large."""
    return Agent("dqn", targets.maximum, _epsilon_greedy(exploration), layer_norm=layer_norm)


def DDQN(exploration: Exploration | str = EpsilonGreedy(), layer_norm: bool = False) -> Agent:  # noqa: N802, B008
    """Double DQN (van Hasselt et al., 2016): one network chooses the action, the other values it."""
    return Agent("ddqn", targets.double, _epsilon_greedy(exploration), online=True, layer_norm=layer_norm)


def SCDQN(beta: float = 3.0, exploration: Exploration | str = EpsilonGreedy(), layer_norm: bool = False) -> Agent:  # noqa: N802, B008
    """Self-correcting DQN (Zhu and Rigotti, 2021): ``beta`` 1 is Double DQN, more corrects further."""
    if not real_number("beta", beta) >= 0.0:
        raise AgentError(f"beta must not be negative, not {beta}")
    return Agent(
        "scdqn", targets.self_correcting, _epsilon_greedy(exploration), beta, "beta", online=True, layer_norm=layer_norm
    )


def MaxMinDQN(n: int = 2, exploration: Exploration | str = EpsilonGreedy(), layer_norm: bool = False) -> Agent:  # noqa: N802, B008
    """MaxMin DQN (Lan et al., 2020): ``n`` networks, the largest of their smallest values; 1 is DQN."""
    return Agent(
        "maxmin-dqn", targets.maxmin, _epsilon_greedy(exploration), members=n, shared=False, layer_norm=layer_norm
    )


def BDQN(  # noqa: N802
    k: int = 10,
    mask: float = 1.0,
    exploration: Exploration | str = HeadPerEpisode(),  # noqa: B008
    ensemble: str = "heads",
    prior: float = 0.0,
    layer_norm: bool = False,
) -> Agent:
    """Bootstrapped DQN (Osband et al., 2016): ``k`` heads that explore in turn, with Double DQN's targets for each.

    All agents with heads take ``exploration`` (see :mod:`maxmean.deep.exploration`), ``ensemble``, which says what the members
    are (``heads`` on one trunk, whole ``networks``, or one network with ``dropout``), and the size of a ``prior``. ``layer_norm``
    normalises the layers of any agent's networks.
    """
    agent = Agent("bdqn", targets.double, HeadPerEpisode(), members=_heads(k, 1), online=True, mask=mask)
    return _ensemble(agent, exploration, ensemble, prior, layer_norm)


def TEBDQN(  # noqa: N802
    alpha: float = 0.1,
    k: int = 10,
    mask: float = 1.0,
    paired: bool = False,
    exploration: Exploration | str = HeadPerEpisode(),  # noqa: B008
    ensemble: str = "heads",
    prior: float = 0.0,
    layer_norm: bool = False,
) -> Agent:
    """Bootstrapped DQN whose targets are T-estimates at level ``alpha``; 0.5 is the maximum of each head.

    ``paired`` uses the covariances of the actions' values across the heads in the statistic, T*; the agent is then te*-bdqn.
    """
    if not 0.0 < real_number("alpha", alpha) <= 0.5:
        raise AgentError(f"alpha must be in (0, 0.5], not {alpha}")
    agent = Agent(
        _starred("te-bdqn", paired),
        targets.LevelBased(paired),
        HeadPerEpisode(),
        alpha,
        "alpha",
        members=_heads(k, 2),
        mask=mask,
    )
    return _ensemble(agent, exploration, ensemble, prior, layer_norm)


def KEBDQN(  # noqa: N802
    kernel: mev.Kernel = mev.Gaussian(),  # noqa: B008
    k: int = 10,
    mask: float = 1.0,
    paired: bool = False,
    exploration: Exploration | str = HeadPerEpisode(),  # noqa: B008
    ensemble: str = "heads",
    prior: float = 0.0,
    layer_norm: bool = False,
) -> Agent:
    """Bootstrapped DQN whose targets are K-estimates with ``kernel``.

    ``paired`` makes it ke*-bdqn, as in :func:`TEBDQN`.
    """
    rule, name = targets.KernelBased(as_kernel(kernel), truth("paired", paired)), _starred("ke-bdqn", paired)
    return _ensemble(
        Agent(name, rule, HeadPerEpisode(), members=_heads(k, 2), mask=mask), exploration, ensemble, prior, layer_norm
    )


def AdaTEBDQN(  # noqa: N802
    step_size: float = 1e-4,
    horizon: int = 32,
    alpha: float = 0.25,
    k: int = 10,
    mask: float = 1.0,
    paired: bool = False,
    per_head: bool = False,
    level: float = 0.0,
    exploration: Exploration | str = HeadPerEpisode(),  # noqa: B008
    ensemble: str = "heads",
    prior: float = 0.0,
    layer_norm: bool = False,
) -> Agent:
    """TE-BDQN that turns its alpha towards zero bias, or to another level.

    How is said in :class:`Adaptation`, whose ``step_size``, ``horizon``, ``per_head`` and ``level`` it takes.
    After each target copy every head plays ``horizon`` steps: with ten heads and 32 steps that is 320 for every ``target_period``
    updates, which on the host, where they are taken one by one in ``eval_env``, takes time. A longer ``target_period`` or a
    shorter ``horizon`` makes it cheaper.
    """
    agent = TEBDQN(alpha, k, mask, paired, exploration, ensemble, prior, layer_norm)
    adaptation = Adaptation(step_size, horizon, per_head=per_head, level=level)
    return replace(agent, name=_starred("ada-te-bdqn", paired), adaptation=adaptation)


def AdaKEBDQN(  # noqa: N802
    step_size: float = 1e-4,
    horizon: int = 32,
    scale: float = 1.0,
    k: int = 10,
    mask: float = 1.0,
    paired: bool = False,
    per_head: bool = False,
    level: float = 0.0,
    exploration: Exploration | str = HeadPerEpisode(),  # noqa: B008
    ensemble: str = "heads",
    prior: float = 0.0,
    layer_norm: bool = False,
) -> Agent:
    """KE-BDQN that turns the scale of its Gaussian kernel towards zero bias, as :func:`AdaTEBDQN` does; beyond the paper."""
    if not real_number("the kernel's scale", scale) > 0.0:
        raise AgentError(f"the kernel's scale must be positive, not {scale}")
    adaptation = Adaptation(step_size, horizon, low=1e-3, high=1e3, direction=-1, per_head=per_head, level=level)
    rule, name = targets.GaussianBased(truth("paired", paired)), _starred("ada-ke-bdqn", paired)
    agent = Agent(name, rule, HeadPerEpisode(), scale, "scale", _heads(k, 2), mask=mask, adaptation=adaptation)
    return _ensemble(agent, exploration, ensemble, prior, layer_norm)


def _made_by(listed: Listed) -> Callable[..., Agent]:
    make: Callable[..., Agent] = globals()[listed.function]
    return wraps(make)(partial(make, paired=True)) if listed.paired else make


AGENTS: dict[str, Callable[..., Agent]] = {each.name: _made_by(each) for each in REGISTRY}
"""The algorithms by the names that tables and the command line use."""


ENSEMBLES = ("heads", "networks", "dropout")
"""What the members of an agent can be; see :func:`BDQN`."""
DROPOUT = 0.5
"""The share of hidden units that a member goes without, where members are one network."""


def _ensemble(agent: Agent, exploration: Exploration | str, ensemble: str, prior: float, layer_norm: bool) -> Agent:
    """An agent with heads that explores so, with these members."""
    if ensemble not in ENSEMBLES:
        raise AgentError(unknown("unknown ensemble", str(ensemble), ENSEMBLES))
    explores = as_exploration(exploration)
    return replace(
        agent,
        exploration=explores,
        shared=ensemble != "networks",
        dropout=DROPOUT if ensemble == "dropout" else 0.0,
        votes=None if explores.alone else True,
        prior=prior,
        layer_norm=layer_norm,
    )


def _epsilon_greedy(exploration: Exploration | str) -> EpsilonGreedy:
    """The exploration of an agent without heads."""
    explores = as_exploration(exploration)
    if not isinstance(explores, EpsilonGreedy):
        raise AgentError(f"an agent without heads explores by a maxmean.deep.EpsilonGreedy, not by {explores!r}")
    return explores


def _starred(name: str, paired: bool) -> str:
    """The name of an agent whose statistic is paired: te*-bdqn for te-bdqn."""
    return re.sub("(te|ke)-", r"\1*-", name) if truth("paired", paired) else name


def _heads(k: int, least: int) -> int:
    k = whole_number("the number of heads", k, least=-LARGEST)
    if k < least:
        raise AgentError(f"this agent needs at least {least} head{'s' * (least > 1)}, not {k}")
    return k


def parse_agent(text: str, **common: Any) -> Agent:
    """An agent from its name and, after a colon, the number (or kernel) that it takes first.

    ``common`` are further arguments, handed to those agents that have them.

    >>> parse_agent("te*-bdqn:0.2").label, parse_agent("maxmin-dqn:3").members, parse_agent("ke-bdqn:beta:2,0.5").rule
    ('te*-bdqn(0.2)', 3, KernelBased(kernel=Beta(a=2.0, b=0.5), covariance=False))
    """
    name, arguments = parse_arguments(text, **common)
    return AGENTS[name](**arguments)


def parse_arguments(text: str, **common: Any) -> tuple[str, dict[str, Any]]:
    """The name in such a text, and what its agent is made with; a star in it is one of these things."""
    name, _, value = text.strip().lower().partition(":")
    if name not in AGENTS:
        raise AgentError(unknown("unknown agent", name, AGENTS))
    takes = inspect.signature(AGENTS[name]).parameters
    arguments = {key: each for key, each in common.items() if key in takes and each is not None}
    if "*" in name:
        name, arguments["paired"] = name.replace("*", ""), True
    if value:
        first = next(iter(takes.values()))
        if isinstance(first.default, mev.Kernel):
            arguments[first.name] = parse_kernel(value)
        elif isinstance(first.default, int | float):
            arguments[first.name] = _number(name, value, whole=isinstance(first.default, int))
        else:
            raise AgentError(f"agent {name!r} takes no number, but has {value!r} after the colon")
    return name, arguments


def _number(name: str, value: str, *, whole: bool) -> float:
    try:
        return int(value) if whole else float(value)
    except ValueError:
        kind = "a whole number" if whole else "a number"
        raise AgentError(f"agent {name!r} takes {kind} after the colon, not {value!r}") from None
