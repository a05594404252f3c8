"""What an agent is: a frozen description. It says how many estimates of Q there are, the rule that makes their targets, how it
explores, and whether it adapts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .. import mev
from . import targets
from .checks import AgentError, real_number, truth, whole_number
from .exploration import EpsilonGreedy, Exploration, HeadPerEpisode, checked


@dataclass(frozen=True)
class Adaptation:
    """Turns the rule's parameter towards zero bias, or another level, after each target copy: Ada-TE's update.

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
    level: float = 0.0
    """The bias that it turns to, as a share of the values' size: at -0.1 the values become 10% too small."""

    def __post_init__(self) -> None:
        for name in ("step_size", "low", "high", "level"):
            object.__setattr__(self, name, real_number(f"{name} of the adaptation", getattr(self, name)))
        if not self.step_size >= 0.0:
            raise AgentError(f"step_size of the adaptation must not be negative, not {self.step_size}")
        object.__setattr__(self, "horizon", whole_number("horizon of the adaptation", self.horizon))
        if self.direction not in (-1, 1):
            raise AgentError(f"direction of the adaptation must be 1 or -1, not {self.direction!r}")
        truth("per_head", self.per_head)
        if not -1.0 < self.level < 1.0:
            raise AgentError(f"level of the adaptation must be between -1 and 1, not {self.level}")


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
    """Whether the members are heads on one trunk, or whole networks, of which one learns at each step unless they vote."""
    online: bool = False
    """Whether the rule looks at the online network's values of the next state."""
    mask: float = 1.0
    """Probability p with which a head learns from a transition."""
    adaptation: Adaptation | None = None
    votes: bool | None = None
    """Whether the members all learn and vote, as heads do; by default those do of which one acts at a time."""
    prior: float = 0.0
    """The size of the fixed random values that are added to each member's, see :class:`maxmean.deep.networks.Ensemble`."""
    dropout: float = 0.0
    """The share of hidden units that each member goes without, where the members are one network."""
    layer_norm: bool = False
    """Whether the networks normalise their layers, see :class:`maxmean.deep.networks.Ensemble`."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not callable(self.rule):
            raise AgentError(
                f"an agent has a name and a rule, which is a function, not {self.name!r} and {self.rule!r}"
            )
        checked(self.exploration)
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
        if self.votes is not None:
            truth("votes", self.votes)
        truth("layer_norm", self.layer_norm)
        for name in ("prior", "dropout"):
            object.__setattr__(self, name, real_number(name, getattr(self, name)))
        if not self.prior >= 0.0:
            raise AgentError(f"prior must not be negative, not {self.prior}")
        if not 0.0 <= self.dropout < 1.0:
            raise AgentError(f"dropout must be from 0 to 1, and less than 1, not {self.dropout}")
        if (self.prior or self.dropout) and not self.bootstrapped:
            raise AgentError(f"{self.name} has no heads, so that it has no use for a prior or dropout")

    @property
    def bootstrapped(self) -> bool:
        """Whether the members are heads, or as many networks, that all learn, and vote."""
        return self.exploration.alone if self.votes is None else self.votes

    @property
    def label(self) -> str:
        """The name with what sets it apart from its siblings, as tables and figures show it."""
        apart = [*self._own_number(), *self._besides()]
        return f"{self.name}({', '.join(apart)})" if apart else self.name

    def _own_number(self) -> list[str]:
        if self.adaptation is not None:
            return [f"{self.adaptation.step_size:g}"]
        if self.parameter_name:
            return [f"{self.parameter:g}"]
        if isinstance(self.rule, targets.KernelBased) and self.rule.kernel != mev.Gaussian():
            return [_plain(self.rule.kernel)]
        return [str(self.members)] if self.members > 1 and not self.shared and not self.bootstrapped else []

    def _besides(self) -> list[str]:
        """How an agent differs from the paper's."""
        norm = ["layer norm"] if self.layer_norm else []
        if not self.bootstrapped:
            return norm
        level = 0.0 if self.adaptation is None else self.adaptation.level
        return [
            *([f"level {level:g}"] if level else []),
            *([self.exploration.text] if self.exploration != HeadPerEpisode() else []),
            *(["networks"] if self.members > 1 and not self.shared else ["dropout"] if self.dropout else []),
            *([f"prior {self.prior:g}"] if self.prior else []),
            *norm,
        ]

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
            **{
                name: getattr(self, name) for name in ("votes", "prior", "dropout", "layer_norm") if getattr(self, name)
            },
        }


def _plain(part: Any) -> str:
    """A part in words that are the same in another process, and in the directories that trainings of 0.1 have written."""
    words = getattr(part, "__name__", None) or re.sub(" at 0x[0-9a-f]+", "", repr(part))
    return re.sub("^LevelBased", "TestBased", words).replace(", level=0.0", "")
