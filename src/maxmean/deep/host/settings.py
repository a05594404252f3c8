"""Settings: one flat list of names, sorted into the agent's own, the training's, and the host's."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

from ...errors import brief, unknown
from ..agent import Agent
from ..agents import AGENTS
from ..checks import AgentError, whole_number
from ..exploration import EpsilonGreedy
from ..networks import Convolution, Nature, Perceptron, Trunk
from ..settings import Settings
from .errors import HostError
from .habits import setting
from .spaces import Sight


@dataclass(frozen=True)
class Preset:
    """Settings that suit a kind of observation; whatever is given replaces them."""

    settings: Settings
    exploration: EpsilonGreedy
    train_every: int = 1


PRESETS = {
    "vector": Preset(
        Settings(
            learning_rate=1e-3,
            batch_size=64,
            replay_capacity=10_000,
            warmup=1_000,
            target_period=100,
            bias_episodes_per_head=2,
        ),
        EpsilonGreedy(1.0, 0.05, 5_000),
    ),
    "picture": Preset(Settings(bias_episodes_per_head=2), EpsilonGreedy()),
    "frames": Preset(
        Settings(
            learning_rate=1e-4,
            loss="huber",
            warmup=20_000,
            target_period=2_500,
            hidden=512,
            test_interval=100_000,
            bias_episodes=3,
            bias_episodes_per_head=1,
        ),
        EpsilonGreedy(1.0, 0.05, 250_000),
        train_every=4,
    ),
}
"""By kind of observation: ``vector`` for classic control, ``picture`` the paper's for MinAtar, ``frames`` as usual for Atari."""


@dataclass(frozen=True)
class Host:
    """Settings that deep's own training has no need of."""

    seed: int = 0
    """Of weights, exploration, sampling and the environment's first reset."""
    train_every: int = 1
    """Steps of the environment (of all environments together) from one learning to the next."""
    gradient_steps: int = 1
    """Updates each time."""
    measure_bias: bool = True
    """Whether the records have the bias, for which the agent plays more episodes in ``eval_env``."""
    scale_observations: bool = False
    """Whether the numbers of a vector are divided by how large they can be, where the observation space has bounds."""
    clip_reward: bool | None = None
    """Whether the agent learns from the rewards' signs, -1, 0 and 1; by default in Atari's games. Returns are not clipped."""
    terminal_on_life_loss: bool = False
    """Whether a lost life ends the episode for the agent that learns, though not the game; lives are in ``info["lives"]``."""
    frames: int = 0
    """Frames that an observation is a stack of, 1 to 255, each of which is stored once; 1 stores whole observations. Left out,
    as 0 says here, it is what the environment says.
    """
    network: Trunk | None = None
    """The network's trunk; by default the one that fits the observations."""

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**32:
            raise HostError(f"seed must be from 0 to 2^32 - 1, not {self.seed}")
        for name in ("train_every", "gradient_steps"):
            whole_number(name, getattr(self, name))
        whole_number("frames", self.frames, least=0, most=255)
        if self.clip_reward not in (None, True, False):
            raise HostError(f"clip_reward must be True or False, not {self.clip_reward!r}")
        if self.network is not None and not isinstance(self.network, Trunk):
            raise HostError(
                f"network must be a maxmean.deep.networks.Trunk, such as Perceptron((64, 64)), not {self.network!r}"
            )
        if isinstance(self.network, Perceptron) and not isinstance(self.network.widths, tuple):
            raise HostError(
                f"a Perceptron's widths are a tuple, such as (64, 64) or (64,), not {self.network.widths!r}"
            )


class Choice(NamedTuple):
    """All settings of an agent."""

    agent: Agent
    settings: Settings
    host: Host


def choose(make: Callable[..., Agent], sight: Sight, given: dict[str, Any]) -> Choice:
    """The settings for what is seen, with what is given in their place; one sentence for what does not fit."""
    preset = PRESETS[sight.kind]
    own = inspect.signature(make).parameters
    training = {field.name: field.default for field in dataclasses.fields(Settings)}
    host = {field.name: field.default for field in dataclasses.fields(Host)}
    defaults = {key: parameter.default for key, parameter in own.items()} | training | host
    for name in given:
        if name not in defaults:
            raise HostError(_unknown(make.__name__, name, defaults))
    given = {name: _checked(name, value, defaults[name]) for name, value in given.items()}
    agent = {name: value for name, value in given.items() if name in own}
    if isinstance(own["exploration"].default, EpsilonGreedy):
        agent.setdefault("exploration", preset.exploration)
    if agent.get("exploration") == "epsilon":  # without numbers: those for what is seen
        agent["exploration"] = preset.exploration
    if given.get("frames", 1) < 1:
        raise HostError(
            f"frames must be at least 1, not {given['frames']}; leave it out to stack as the environment says"
        )
    _refuse_network(given.get("network"), sight.shape, scaled=given.get("scale_observations", False))
    try:
        return Choice(
            make(**agent),
            dataclasses.replace(preset.settings, **{name: value for name, value in given.items() if name in training}),
            dataclasses.replace(
                Host(train_every=preset.train_every), **{name: value for name, value in given.items() if name in host}
            ),
        )
    except AgentError as error:
        raise HostError(str(error)) from None


def _refuse_network(trunk: Any, shape: tuple[int, ...], *, scaled: bool) -> None:
    """Refuse a network for pictures where there are none, or none so large; JAX would say so in its own words."""
    if scaled and not (trunk is None or isinstance(trunk, Perceptron)):
        raise HostError(f"scale_observations is for vectors, which a Perceptron sees, and not for {trunk!r}")
    if isinstance(trunk, Perceptron) and len(trunk.units) not in (0, size := math.prod(shape)):
        raise HostError(
            f"a Perceptron's units are one number for each of the {size} of an observation, not {len(trunk.units)}"
        )
    if isinstance(trunk, Convolution | Nature) and (len(shape) != 3 or min(shape[:2]) < trunk.LEAST):
        raise HostError(
            f"network={type(trunk).__name__} sees pictures, [rows, columns, channels] with {trunk.LEAST} rows and columns at "
            f"least, and the observations here have the shape {list(shape)}: give another, such as Perceptron((64, 64))"
        )


def _unknown(agent: str, name: str, known: Collection[str]) -> str:
    """What is said of a setting that the agent does not have."""
    if name == "eval_env":
        return f"{agent} has no setting 'eval_env': it is an environment, which no file gives: say load(path, env, eval_env=...)"
    having = (make.__name__ for make in AGENTS.values() if name in inspect.signature(make).parameters)
    others = list(dict.fromkeys(having))
    theirs = (
        f"{agent} has no setting {name!r}: {' and '.join(others)} {'has' if len(others) == 1 else 'have'} it"
        if others
        else None
    )
    return (
        setting(agent, name, known)
        or theirs
        or unknown(f"{agent} has no setting", name, [*known, "eval_env"], cutoff=0.7)
    )


def _checked(name: str, value: Any, default: Any) -> Any:
    """The value, if it is of the default's kind; a whole number may be written as 1e6."""
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise HostError(f"{name} must be True or False, not {value!r}")
    elif isinstance(default, int):
        if isinstance(value, bool) or not (
            isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
        ):
            raise HostError(f"{name} must be a whole number, not {value!r}")
        return int(value)
    elif isinstance(default, float):
        if isinstance(value, bool) or not isinstance(value, Real):
            raise HostError(f"{name} must be a number, not {value!r}")
        try:
            return float(value)
        except OverflowError:
            raise HostError(f"{name} must be a finite number, not {brief(value)}") from None
    elif isinstance(default, str) and not isinstance(value, str):
        raise HostError(f"{name} must be a text, not {value!r}")
    return value
