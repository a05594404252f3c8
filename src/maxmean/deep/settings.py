"""Settings: every hyper-parameter of a training that is not the agent's, with the paper's value as the default."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .checks import AgentError, real_number, whole_number

OPTIMIZERS = ("adam", "rmsprop")
LOSSES = ("mse", "huber")
MOST_STEPS = 255
"""Of one transition."""


@dataclass(frozen=True)
class LearningSettings:
    """The part of :class:`Settings` that a compiled update holds; agents that differ in others share the program."""

    optimizer: str
    loss: str
    batch_size: int
    discount: float
    replay_capacity: int
    n_step: int = 1


@dataclass(frozen=True)
class MeasuringSettings:
    """The part of :class:`Settings` that compiled tests hold."""

    test_episodes: int
    bias_episodes: int
    bias_episodes_per_head: int

    def episodes(self, *, bootstrapped: bool) -> int:
        """Episodes of the bias estimation, for each head where there are heads."""
        return self.bias_episodes_per_head if bootstrapped else self.bias_episodes


@dataclass(frozen=True)
class Settings:
    """Appendix F of the paper."""

    learning_rate: float = 10**-4.5
    """Step size of the optimiser; several values can train in one program."""
    optimizer: str = "adam"
    """adam or rmsprop. Both with eps 1e-8, rmsprop with a decay of 0.99."""
    loss: str = "mse"
    """mse or huber. The mean squared error has no factor 1/2, so that huber's slope (threshold 1) is half as steep."""
    batch_size: int = 32
    """Transitions per update."""
    discount: float = 0.99
    """The discount factor."""
    replay_capacity: int = 100_000
    """Transitions kept in the replay."""
    warmup: int = 5_000
    """Random steps before learning begins."""
    target_period: int = 1_000
    """Updates between two copies of the network into the target network."""
    hidden: int = 128
    """Units of each member's hidden layer."""
    n_step: int = 1
    """Rewards that a target sums up before it looks at a value; fewer where an episode ends."""
    test_interval: int = 10_000
    """Steps between two tests and records. The bias is estimated then too."""
    test_episodes: int = 10
    """Episodes per test."""
    bias_episodes: int = 10
    """Episodes of the bias estimation for agents without heads."""
    bias_episodes_per_head: int = 3
    """Episodes of the bias estimation for each head of agents with heads."""

    def __post_init__(self) -> None:
        for name in ("learning_rate", "discount"):
            object.__setattr__(self, name, real_number(name, getattr(self, name)))
        if not self.learning_rate > 0.0:
            raise AgentError(f"learning_rate must be positive, not {self.learning_rate}")
        if not 0.0 <= self.discount <= 1.0:
            raise AgentError(f"discount must be from 0 to 1, not {self.discount}")
        if self.optimizer not in OPTIMIZERS:
            raise AgentError(f"unknown optimizer {self.optimizer!r} (there are {' and '.join(OPTIMIZERS)})")
        if self.loss not in LOSSES:
            raise AgentError(f"unknown loss {self.loss!r} (there are {' and '.join(LOSSES)})")
        for name in (
            "batch_size",
            "replay_capacity",
            "warmup",
            "target_period",
            "hidden",
            "test_interval",
            "test_episodes",
            "bias_episodes",
            "bias_episodes_per_head",
        ):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        object.__setattr__(self, "n_step", whole_number("n_step", self.n_step, most=MOST_STEPS))
        if self.n_step > self.replay_capacity:
            raise AgentError(f"n_step must be at most replay_capacity, {self.replay_capacity:,}, not {self.n_step}")

    def describe(self) -> dict[str, Any]:
        """The settings as plain values, in the words of the directories that trainings of 0.1 have written."""
        said = asdict(self)
        if self.n_step == 1:
            del said["n_step"]
        return said

    @property
    def learning(self) -> LearningSettings:
        """What is compiled into an update."""
        return LearningSettings(
            self.optimizer, self.loss, self.batch_size, self.discount, self.replay_capacity, self.n_step
        )

    @property
    def measuring(self) -> MeasuringSettings:
        """What is compiled into a test. All else the driver reads, or each run has as its own."""
        return MeasuringSettings(self.test_episodes, self.bias_episodes, self.bias_episodes_per_head)


@dataclass(frozen=True)
class AgentOptions:
    """What several agents on the command line can be told at once; the functions in :mod:`maxmean.deep.agents` have the same."""

    k: int = 10
    """Heads of the bootstrapped agents."""
    mask: float = 1.0
    """Probability that a head learns from a transition."""
    alpha: float = 0.25
    """Initial alpha of ada-te-bdqn."""
    horizon: int = 32
    """Steps of an adaptation's roll-outs."""
    per_head: bool = False
    """Adapt one parameter for each head."""
    level: float = 0.0
    """The bias that an adaptation turns to, as a share of the values' size."""
    exploration: str = "the agent's own"
    """How to explore: heads, epsilon, thompson or optimistic, with epsilon after a colon, such as heads:0.05 or
    epsilon:1,0.05,10000.
    """
    ensemble: str = "heads"
    """What the members of the bootstrapped agents are: heads, networks or dropout."""
    prior: float = 0.0
    """Size of the fixed random values that are added to each head's."""
    layer_norm: bool = False
    """Normalise the networks' layers."""
