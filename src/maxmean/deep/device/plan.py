"""A training's plan: which agents, learning rates and seeds, on what, for how long. A directory belongs to one plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from numbers import Real
from typing import Any

import jax
import numpy as np

from ...envs import Environment
from ..agent import Agent
from ..agents import parse_agent
from ..checks import AgentError, whole_number
from ..core.family import families
from ..runs import MOST_RUNS, RunId, Variant
from ..settings import Settings


@dataclass(frozen=True)
class TrainingPlan:
    """All runs of a training: every variant with every seed."""

    environment: Environment
    variants: tuple[Variant, ...]
    seeds: tuple[int, ...]
    settings: Settings

    @classmethod
    def of(
        cls,
        environment: Environment,
        agents: str | Agent | Sequence[str | Agent],
        seeds: int | Sequence[int],
        learning_rates: float | Sequence[float] | None,
        settings: Settings,
    ) -> TrainingPlan:
        chosen = [_agent(each) for each in _several(agents)]
        rates = [settings.learning_rate] if learning_rates is None else _several(learning_rates)
        if isinstance(seeds, Real):
            numbers = list(range(whole_number("seeds", seeds, least=0, most=MOST_RUNS)))
        else:
            numbers = [whole_number("a seed", seed, least=0, most=2**32 - 1) for seed in _several(seeds)]
        if environment.n_actions > 256:
            raise AgentError(f"an environment may have 256 actions at most, not {environment.n_actions}")
        _refuse_other_masks(environment)
        if not chosen or not rates or not numbers:
            raise AgentError("a training needs at least one agent, one learning rate and one seed")
        runs = len(chosen) * len(rates) * len(numbers)
        if runs > MOST_RUNS:
            raise AgentError(f"a training has at most {MOST_RUNS:,} runs, not {runs:,}: make several trainings of it")
        rates = [dataclasses.replace(settings, learning_rate=rate).learning_rate for rate in rates]  # which checks them
        if len(set(rates)) < len(rates):
            raise AgentError("a learning rate is named twice")
        if len(set(numbers)) < len(numbers):
            raise AgentError("a seed is named twice")
        labels = [agent.label for agent in chosen]
        if len(set(labels)) < len(labels):
            raise AgentError(
                f"two agents would both be called {_twice(labels)} in the records: train them in two trainings"
            )
        variants = tuple(Variant(agent, rate) for agent in chosen for rate in rates)
        return cls(environment, variants, tuple(numbers), settings)

    def groups(self) -> list[list[RunId]]:
        """The runs in as few programs as possible."""
        agents = list(dict.fromkeys(variant.agent for variant in self.variants))
        return [
            [RunId(variant, seed) for variant in self.variants if variant.agent in group for seed in self.seeds]
            for group in families(agents)
        ]

    def describe(self) -> dict[str, Any]:
        """The plan as plain values, for the training's directory."""
        return {
            "environment": describe_environment(self.environment),
            "agents": {variant.label: variant.agent.describe() for variant in self.variants},
            "learning_rates": list(dict.fromkeys(variant.learning_rate for variant in self.variants)),
            "seeds": list(self.seeds),
            "settings": self.settings.describe(),
        }


def describe_environment(environment: Environment) -> dict[str, Any]:
    """Name and options of an environment, from which :func:`maxmean.envs.make` makes it again."""
    options: dict[str, Any] = {}
    if dataclasses.is_dataclass(environment):
        values = {
            field.name: getattr(environment, field.name) for field in dataclasses.fields(environment) if field.init
        }
        options = {name: value for name, value in values.items() if isinstance(value, bool | int | float | str)}
    return {"name": environment.name, "options": options}


def _refuse_other_masks(environment: Environment) -> None:
    """Refuse what is no mask by its form; whether any action is legal is not known before the steps are taken."""
    state, _ = jax.eval_shape(environment.reset, np.zeros(2, np.uint32))  # which takes no device
    found, n = jax.eval_shape(environment.legal, state), environment.n_actions
    array = isinstance(found, jax.ShapeDtypeStruct)
    if found is None or (array and (found.shape, found.dtype) == ((n,), np.bool_)):
        return
    shown = f"{found.dtype} {list(found.shape)}" if array else type(found).__name__
    raise AgentError(
        f"legal(state) of {environment.name} must give a truth value for each action, bool [{n}], not {shown}"
        + (": give mask.astype(bool)" if array and found.shape == (n,) else "")
    )


def _agent(agent: str | Agent) -> Agent:
    if isinstance(agent, Agent):
        return agent
    if isinstance(agent, str):
        return parse_agent(agent)
    raise AgentError(f"an agent is a maxmean.deep.Agent, such as DQN(), or its name, not {agent!r}")


def _several(given: Any) -> list[Any]:
    return list(islice(given, MOST_RUNS + 1)) if isinstance(given, Iterable) and not isinstance(given, str) else [given]


def _twice(labels: Sequence[str]) -> str:
    return next(label for label in labels if labels.count(label) > 1)
