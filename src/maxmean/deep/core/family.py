"""Families: agents that differ only in numbers and rules train in one program, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

from ..agent import Adaptation, Agent
from ..checks import AgentError
from ..exploration import Exploration
from ..networks import Ensemble, Trunk
from ..targets import NextValues, Rule
from .traits import Traits

Array = jax.Array


@dataclass(frozen=True)
class Family:
    """What a program must know of its agents. Their parameters are not part of it: they are each run's own.

    A rule costs nothing beside the networks, so a program computes the values of all its rules and each run takes its own. Where
    the members are whole networks, a run may use fewer of them than the program has: DQN is one of MaxMin's three.
    """

    rules: tuple[Rule, ...]
    exploration: Exploration
    members: int
    """The most that a run uses."""
    mixed: bool
    """Whether some runs use fewer."""
    shared: bool
    online: bool
    mask: float
    adaptation: Adaptation | None
    """How those adapt that do; the step size is each run's own."""
    bootstrapped: bool = False
    """Whether the members all learn, and vote."""
    prior: float = 0.0
    dropout: float = 0.0
    layer_norm: bool = False

    @classmethod
    def of(cls, agents: Sequence[Agent]) -> Family:
        """The family of these agents; an error if they are not of one."""
        first = agents[0]
        members = max(agent.members for agent in agents)
        mixed = min(agent.members for agent in agents) < members
        adapting = {_kind(agent.adaptation) for agent in agents if agent.adaptation is not None}
        if len({_build(agent) for agent in agents}) > 1 or len(adapting) > 1:
            names = ", ".join(dict.fromkeys(agent.name for agent in agents))
            raise AgentError(f"these agents are built differently and cannot train in one program: {names}")
        rules = tuple(dict.fromkeys(agent.rule for agent in agents))
        online = any(agent.online for agent in agents)
        adaptation = next(iter(adapting), None)
        return cls(
            rules,
            first.exploration,
            members,
            mixed,
            _heads(first),
            online,
            first.mask,
            adaptation,
            first.bootstrapped,
            first.prior,
            first.dropout,
            first.layer_norm,
        )

    @property
    def one_learns(self) -> bool:
        """Whether the members are networks of which one learns at each step."""
        return not self.shared and not self.bootstrapped and self.members > 1

    @property
    def heads(self) -> int:
        """Heads that play roll-outs of their own; one stands for an agent without heads."""
        return self.members if self.bootstrapped else 1

    @property
    def mask_words(self) -> int:
        """Random words that decide which members learn from a transition; none where all do."""
        return self.members if self.mask < 1.0 else 0

    def network(self, trunk: Trunk, shape: tuple[int, ...], n_actions: int, hidden: int) -> Ensemble:
        """Its members, for observations of this shape."""
        built = self.prior, self.dropout, self.layer_norm
        return Ensemble(trunk, shape, n_actions, self.members, self.shared, hidden, *built)

    def in_use(self, q: Array, members: Array) -> Array:
        """Values [..., members, actions] as the run sees them: networks that it does not use never have the smallest one."""
        if not self.mixed:
            return q
        return jnp.where(jnp.arange(self.members)[:, None] < members, q, jnp.inf)

    def next_value(self, rule: Array, q: NextValues, parameter: Array) -> Array:
        """The next state's value for each member, by the run's own rule (its place in ``rules``)."""
        if not self.online:
            unseen: Any = _Unseen()
            q = q._replace(online=unseen)
        values = [each(q, parameter) for each in self.rules]
        for each, value in zip(self.rules, values, strict=True):
            if jnp.shape(value) != (self.members,):
                name = getattr(each, "__name__", repr(each))
                raise AgentError(
                    f"the rule {name} must give one value a member, [{self.members}], not {jnp.shape(value)}"
                )
        return values[0] if len(values) == 1 else jax.lax.select_n(rule, *values)

    def traits(self, agent: Agent, learning_rate: float) -> Traits:
        """What a run of this agent has of its own."""
        parameter = jnp.float32(agent.parameter)
        if self.adaptation is not None and self.adaptation.per_head:
            parameter = jnp.full(self.members, agent.parameter, jnp.float32)
        return Traits(
            learning_rate=jnp.float32(learning_rate),
            members=jnp.int32(agent.members),
            rule=jnp.int32(self.rules.index(agent.rule)),
            parameter=parameter,
            adaptation_rate=jnp.float32(0.0 if agent.adaptation is None else agent.adaptation.step_size),
        )


class _Unseen:
    """Stands for the online network's values where no agent has asked for them."""

    def __getattr__(self, name: str) -> Any:
        raise AgentError("the rule looks at q.online, so its agent must be made with online=True")


def families(agents: Sequence[Agent]) -> list[list[Agent]]:
    """The agents in as few families as possible, in their order."""
    groups: list[list[Agent]] = []
    for agent in agents:
        for group in groups:
            try:
                Family.of([*group, agent])
            except AgentError:
                continue
            group.append(agent)
            break
        else:
            groups.append([agent])
    return groups


def _build(agent: Agent) -> tuple[object, ...]:
    members = agent.members if agent.bootstrapped or _heads(agent) else None
    return agent.exploration, agent.mask, members, agent.bootstrapped, agent.prior, agent.dropout, agent.layer_norm


def _heads(agent: Agent) -> bool:
    """Whether the members are heads on one trunk. One member of its own is a whole network, unless it explores as heads do."""
    return agent.shared and (agent.members > 1 or agent.bootstrapped)


def _kind(adaptation: Adaptation | None) -> Adaptation | None:
    """An adaptation without its step size."""
    return None if adaptation is None else replace(adaptation, step_size=0.0)
