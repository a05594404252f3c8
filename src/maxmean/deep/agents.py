"""Agents: what the algorithms are made of.

An :class:`Agent` is a frozen description: how many estimates of Q there are, the rule that makes their targets, how it explores,
and whether it adapts. The functions named after the algorithms fill it in; none of them has code of its own.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .. import mev
from ..errors import unknown
from ..mev.kernels import as_kernel
from ..mev.methods import parse_kernel
from . import targets
from .checks import LARGEST, AgentError, real_number, truth, whole_number
from .exploration import EpsilonGreedy, Exploration, HeadPerEpisode
from .registry import REGISTRY


@dataclass(frozen=True)
class Adaptation:
    """Turns the rule's parameter towards zero bias after each target copy: Ada-TE's update.

    The greedy policy of each head plays ``horizon`` steps from a state of the replay. Where its n-step returns exceed its values,
    the values are too small and the parameter moves up, by ``step_size`` times their summed difference, averaged over the heads.
    """

    step_size: float = 1e-4
    horizon: int = 32
    low: float = 1e-6
    high: float = 0.5
    direction: int = 1
    """1 where a larger parameter gives larger values (alpha), -1 where it gives smaller ones (a kernel's scale)."""
    per_head: bool = False
    """Whether each head has a parameter of its own."""

    def __post_init__(self) -> None:
        for name in ("step_size", "low", "high"):
            object.__setattr__(self, name, real_number(f"{name} of the adaptation", getattr(self, name)))
        if not self.step_size >= 0.0:
            raise AgentError(f"step_size of the adaptation must not be negative, not {self.step_size}")
        object.__setattr__(self, "horizon", whole_number("horizon of the adaptation", self.horizon))
        if self.direction not in (-1, 1):
            raise AgentError(f"direction of the adaptation must be 1 or -1, not {self.direction!r}")
        truth("per_head", self.per_head)


@dataclass(frozen=True)
class Agent:
    """A deep Q-learning algorithm."""

    name: str
    rule: targets.Rule
    """What the next state is worth, see :mod:`maxmean.deep.targets`."""
    exploration: Exploration = EpsilonGreedy()  # noqa: RUF009  (frozen)
    parameter: float = 0.0
    """The number that the rule is given. Several values of it can train in one program."""
    parameter_name: str = ""
    """What the number is called: alpha, beta, scale; nothing where the rule needs none."""
    members: int = 1
    """Estimates of Q."""
    shared: bool = True
    """Whether the members are heads on one trunk (all learn at each step), or whole networks (one learns at each step)."""
    online: bool = False
    """Whether the rule looks at the online network's values of the next state."""
    mask: float = 1.0
    """Probability p with which a head learns from a transition."""
    adaptation: Adaptation | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not callable(self.rule):
            raise AgentError(
                f"an agent has a name and a rule, which is a function, not {self.name!r} and {self.rule!r}"
            )
        if not isinstance(self.exploration, Exploration):
            raise AgentError(f"exploration must be a maxmean.deep.EpsilonGreedy, not {self.exploration!r}")
        if isinstance(self.exploration, EpsilonGreedy):
            _check_epsilon(self.exploration)
        if not (self.adaptation is None or isinstance(self.adaptation, Adaptation)):
            raise AgentError(f"adaptation must be a maxmean.deep.Adaptation or None, not {self.adaptation!r}")
        object.__setattr__(self, "parameter", real_number(self.parameter_name or "parameter", self.parameter))
        object.__setattr__(self, "members", whole_number("the number of members", self.members))
        if not 1 <= self.members <= 32:
            raise AgentError(f"an agent has 1 to 32 members, not {self.members}")
        truth("shared", self.shared)
        truth("online", self.online)
        object.__setattr__(self, "mask", real_number("the mask's probability", self.mask))
        if not 0.0 < self.mask <= 1.0:
            raise AgentError(f"the mask's probability must be in (0, 1], not {self.mask}")

    @property
    def bootstrapped(self) -> bool:
        """Whether the members are heads that act in turn and vote."""
        return isinstance(self.exploration, HeadPerEpisode)

    @property
    def label(self) -> str:
        """The name with what sets it apart from its siblings, as tables and figures show it."""
        if self.adaptation is not None:
            return f"{self.name}({self.adaptation.step_size:g})"
        if self.parameter_name:
            return f"{self.name}({self.parameter:g})"
        if isinstance(self.rule, targets.KernelBased) and self.rule.kernel != mev.Gaussian():
            return f"{self.name}({_plain(self.rule.kernel)})"
        return f"{self.name}({self.members})" if self.members > 1 and not self.shared else self.name

    def describe(self) -> dict[str, Any]:
        """All that defines the agent, as plain values."""
        return {
            "name": self.name,
            "rule": _plain(self.rule),
            "exploration": _plain(self.exploration),
            self.parameter_name or "parameter": self.parameter,
            "members": self.members,
            "shared": self.shared,
            "online": self.online,
            "mask": self.mask,
            "adaptation": None if self.adaptation is None else _plain(self.adaptation),
        }


def DQN(exploration: EpsilonGreedy = EpsilonGreedy()) -> Agent:  # noqa: N802, B008
    """Deep Q-network (Mnih et al., 2015): the target is the largest value, and too large."""
    return Agent("dqn", targets.maximum, exploration)


def DDQN(exploration: EpsilonGreedy = EpsilonGreedy()) -> Agent:  # noqa: N802, B008
    """Double DQN (van Hasselt et al., 2016): one network chooses the action, the other values it."""
    return Agent("ddqn", targets.double, exploration, online=True)


def SCDQN(beta: float = 3.0, exploration: EpsilonGreedy = EpsilonGreedy()) -> Agent:  # noqa: N802, B008
    """Self-correcting DQN (Zhu and Rigotti, 2021): ``beta`` 1 is Double DQN, more corrects further."""
    if not real_number("beta", beta) >= 0.0:
        raise AgentError(f"beta must not be negative, not {beta}")
    return Agent("scdqn", targets.self_correcting, exploration, beta, "beta", online=True)


def MaxMinDQN(n: int = 2, exploration: EpsilonGreedy = EpsilonGreedy()) -> Agent:  # noqa: N802, B008
    """MaxMin DQN (Lan et al., 2020): ``n`` networks, the largest of their smallest values; 1 is DQN."""
    return Agent("maxmin-dqn", targets.maxmin, exploration, members=n, shared=False)


def BDQN(k: int = 10, mask: float = 1.0) -> Agent:  # noqa: N802
    """Bootstrapped DQN (Osband et al., 2016): ``k`` heads that explore in turn, with Double DQN's targets for each."""
    return Agent("bdqn", targets.double, HeadPerEpisode(), members=_heads(k, 1), online=True, mask=mask)


def TEBDQN(alpha: float = 0.1, k: int = 10, mask: float = 1.0, covariance: bool = False) -> Agent:  # noqa: N802
    """Bootstrapped DQN whose targets are T-estimates at level ``alpha``; 0.5 is the maximum of each head."""
    if not 0.0 < real_number("alpha", alpha) <= 0.5:
        raise AgentError(f"alpha must be in (0, 0.5], not {alpha}")
    rule = targets.LevelBased(truth("covariance", covariance))
    return Agent("te-bdqn", rule, HeadPerEpisode(), alpha, "alpha", members=_heads(k, 2), mask=mask)


def KEBDQN(  # noqa: N802
    kernel: mev.Kernel = mev.Gaussian(),  # noqa: B008
    k: int = 10,
    mask: float = 1.0,
    covariance: bool = False,
) -> Agent:
    """Bootstrapped DQN whose targets are K-estimates with ``kernel``."""
    rule = targets.KernelBased(as_kernel(kernel), truth("covariance", covariance))
    return Agent("ke-bdqn", rule, HeadPerEpisode(), members=_heads(k, 2), mask=mask)


def AdaTEBDQN(  # noqa: N802
    step_size: float = 1e-4,
    horizon: int = 32,
    alpha: float = 0.25,
    k: int = 10,
    mask: float = 1.0,
    covariance: bool = False,
    per_head: bool = False,
) -> Agent:
    """TE-BDQN that turns its alpha towards zero bias, see :class:`Adaptation`.

    After each target copy every head plays ``horizon`` steps: with ten heads and 32 steps that is 320 for every ``target_period``
    updates, which on the host, where they are taken one by one in ``eval_env``, takes time. A longer ``target_period`` or a
    shorter ``horizon`` makes it cheaper.
    """
    agent = TEBDQN(alpha, k, mask, covariance)
    return replace(agent, name="ada-te-bdqn", adaptation=Adaptation(step_size, horizon, per_head=per_head))


def AdaKEBDQN(  # noqa: N802
    step_size: float = 1e-4,
    horizon: int = 32,
    scale: float = 1.0,
    k: int = 10,
    mask: float = 1.0,
    per_head: bool = False,
) -> Agent:
    """KE-BDQN that turns the scale of its Gaussian kernel towards zero bias, as :func:`AdaTEBDQN` does; beyond the paper."""
    if not real_number("the kernel's scale", scale) > 0.0:
        raise AgentError(f"the kernel's scale must be positive, not {scale}")
    adaptation = Adaptation(step_size, horizon, low=1e-3, high=1e3, direction=-1, per_head=per_head)
    agent = Agent("ada-ke-bdqn", targets.GaussianBased(), HeadPerEpisode(), scale, "scale", _heads(k, 2), mask=mask)
    return replace(agent, adaptation=adaptation)


AGENTS: dict[str, Callable[..., Agent]] = {each.name: globals()[each.function] for each in REGISTRY}
"""The algorithms by the names that tables and the command line use."""


def _heads(k: int, least: int) -> int:
    k = whole_number("the number of heads", k, least=-LARGEST)
    if k < least:
        raise AgentError(f"this agent needs at least {least} head{'s' * (least > 1)}, not {k}")
    return k


def _check_epsilon(exploration: EpsilonGreedy) -> None:
    for name in ("initial", "final"):
        value = real_number(f"EpsilonGreedy's {name}", getattr(exploration, name))
        if not 0.0 <= value <= 1.0:
            raise AgentError(f"EpsilonGreedy's {name} is a probability, from 0 to 1, not {value}")
    if whole_number("EpsilonGreedy's steps", exploration.steps, least=-LARGEST, most=10**18) < 0:
        raise AgentError(f"EpsilonGreedy's steps must not be negative, not {exploration.steps}")


def _plain(part: Any) -> str:
    """A part in words that are the same in another process, and in the directories that trainings of 0.1 have written."""
    words = getattr(part, "__name__", None) or re.sub(" at 0x[0-9a-f]+", "", repr(part))
    return re.sub("^LevelBased", "TestBased", words)


def parse_agent(text: str, **common: Any) -> Agent:
    """An agent from its name and, after a colon, the number (or kernel) that it takes first.

    ``common`` are further arguments, handed to those agents that have them.

    >>> parse_agent("te-bdqn:0.2").label, parse_agent("maxmin-dqn:3").members, parse_agent("ke-bdqn:beta:2,0.5").rule
    ('te-bdqn(0.2)', 3, KernelBased(kernel=Beta(a=2.0, b=0.5), covariance=False))
    """
    name, arguments = parse_arguments(text, **common)
    return AGENTS[name](**arguments)


def parse_arguments(text: str, **common: Any) -> tuple[str, dict[str, Any]]:
    """The name in such a text, and what its agent is made with."""
    name, _, value = text.strip().lower().partition(":")
    if name not in AGENTS:
        raise AgentError(unknown("unknown agent", name, AGENTS))
    takes = inspect.signature(AGENTS[name]).parameters
    arguments = {key: each for key, each in common.items() if key in takes and each is not None}
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
