"""The small environments of benchmarks/zoo.py on the device, where all seeds of every agent train at once.

    python benchmarks/zoo_device.py --env CartPole-v1 --out out/zoo-device/cartpole

CartPole, MountainCar and Acrobot are written in JAX here; tests/test_zoo.py holds their steps against Gymnasium's. Agents have
the defaults that they have in Gymnasium. `benchmarks/zoo.py --records DIRECTORY` adds what they learned to its table.
"""

from __future__ import annotations

import argparse
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from zoo import AGENTS, STEPS, whole_numbers
from zoo_runs import EPISODES, PEER, RECOMMENDED, TESTS

from maxmean import deep
from maxmean.deep.agents import AGENTS as FUNCTIONS
from maxmean.deep.agents import parse_agent
from maxmean.deep.exploration import EpsilonGreedy
from maxmean.deep.host.settings import PRESETS
from maxmean.deep.recommended import recommended
from maxmean.envs.environment import Environment, Step


class Moment(NamedTuple):
    """A state: where the system is, and for how many steps it has moved."""

    system: jax.Array
    steps: jax.Array


@dataclass(frozen=True)
class ClassicControl(Environment):
    """A system of Gymnasium's classic control: its start, its motion, and what is seen of it."""

    scaled: bool = False
    """Whether what is seen is divided by how large it can be, as ``scale_observations=True`` does."""

    limit = 500
    """Steps until an episode is truncated."""
    sizes: tuple[float, ...] = ()
    """How large each number that is seen can be; 1 where there is no bound."""

    @abstractmethod
    def start(self, key: jax.Array) -> jax.Array:
        """The system at the beginning of an episode."""

    @abstractmethod
    def move(self, system: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The system a step later, and whether that ends the episode."""

    @abstractmethod
    def reward(self, ended: jax.Array) -> jax.Array:
        """Of a step."""

    def see(self, system: jax.Array) -> jax.Array:
        """What Gymnasium's environment shows of it."""
        return system

    def observe(self, state: Moment) -> jax.Array:
        seen = self.see(state.system)
        return seen / jnp.array(self.sizes) if self.scaled else seen

    def reset(self, key: jax.Array, previous: Any = None) -> tuple[Moment, jax.Array]:
        state = Moment(self.start(key), jnp.int32(0))
        return state, self.observe(state)

    def step(self, key: jax.Array, state: Moment, action: jax.Array) -> Step:
        system, ended = self.move(state.system, action)
        after = Moment(system, state.steps + 1)
        return Step(after, self.observe(after), self.reward(ended), ended, (after.steps >= self.limit) & ~ended)


@dataclass(frozen=True)
class CartPole(ClassicControl):
    """A cart that balances a pole: Barto, Sutton and Anderson (1983)."""

    name = "CartPole-v1"
    n_actions = 2
    sizes: tuple[float, ...] = (4.8, 1.0, math.radians(24.0), 1.0)

    def start(self, key: jax.Array) -> jax.Array:
        return jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05)

    def move(self, system: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        _, speed, angle, turning = system
        push, cos, sin = jnp.where(action == 1, 10.0, -10.0), jnp.cos(angle), jnp.sin(angle)
        masses, half, heaviness = 1.1, 0.5, 0.05  # of cart and pole; half the pole's length; the pole's mass times that
        pull = (push + heaviness * turning**2 * sin) / masses
        swing = (9.8 * sin - cos * pull) / (half * (4 / 3 - 0.1 * cos**2 / masses))
        rates = jnp.stack([speed, pull - heaviness * swing * cos / masses, turning, swing])
        after = system + 0.02 * rates
        return after, (jnp.abs(after[0]) > 2.4) | (jnp.abs(after[2]) > math.radians(12.0))

    def reward(self, ended: jax.Array) -> jax.Array:
        return jnp.float32(1.0)


@dataclass(frozen=True)
class MountainCar(ClassicControl):
    """A car that has to swing up a hill: Moore (1990)."""

    name = "MountainCar-v0"
    n_actions = 3
    limit = 200
    sizes: tuple[float, ...] = (1.2, 0.07)

    def start(self, key: jax.Array) -> jax.Array:
        return jnp.stack([jax.random.uniform(key, (), minval=-0.6, maxval=-0.4), 0.0])

    def move(self, system: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        position, speed = system
        speed = jnp.clip(speed + (action - 1) * 0.001 - 0.0025 * jnp.cos(3 * position), -0.07, 0.07)
        position = jnp.clip(position + speed, -1.2, 0.6)
        speed = jnp.where((position <= -1.2) & (speed < 0.0), 0.0, speed)
        return jnp.stack([position, speed]), (position >= 0.5) & (speed >= 0.0)

    def reward(self, ended: jax.Array) -> jax.Array:
        return jnp.float32(-1.0)


@dataclass(frozen=True)
class Acrobot(ClassicControl):
    """Two links that have to swing up: Sutton (1996)."""

    name = "Acrobot-v1"
    n_actions = 3
    sizes: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0, 4 * math.pi, 9 * math.pi)

    def start(self, key: jax.Array) -> jax.Array:
        return jax.random.uniform(key, (4,), minval=-0.1, maxval=0.1)

    def see(self, system: jax.Array) -> jax.Array:
        first, second, *speeds = system
        return jnp.stack([jnp.cos(first), jnp.sin(first), jnp.cos(second), jnp.sin(second), *speeds])

    def move(self, system: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array]:
        torque, dt = action - 1.0, 0.2
        one = self._rates(system, torque)
        two = self._rates(system + dt / 2 * one, torque)
        three = self._rates(system + dt / 2 * two, torque)
        four = self._rates(system + dt * three, torque)
        first, second, *speeds = system + dt / 6 * (one + 2 * two + 2 * three + four)  # Runge and Kutta
        angles = [(angle + jnp.pi) % (2 * jnp.pi) - jnp.pi for angle in (first, second)]
        limits = (4 * jnp.pi, 9 * jnp.pi)
        after = jnp.stack([*angles, *(jnp.clip(each, -most, most) for each, most in zip(speeds, limits, strict=True))])
        return after, -jnp.cos(after[0]) - jnp.cos(after[0] + after[1]) > 1.0

    @staticmethod
    def _rates(system: jax.Array, torque: jax.Array) -> jax.Array:
        """How the angles and their speeds change; both links have length, mass and moment of inertia 1, and their centres in
        the middle.
        """
        first, second, speed, other = system
        cos, sin = jnp.cos(second), jnp.sin(second)
        d1, d2 = 3.5 + cos, 1.25 + 0.5 * cos
        hanging = 4.9 * jnp.sin(first + second)
        phi = -0.5 * other**2 * sin - other * speed * sin + 14.7 * jnp.sin(first) + hanging
        bend = (torque + d2 / d1 * phi - 0.5 * speed**2 * sin - hanging) / (1.25 - d2**2 / d1)
        return jnp.stack([speed, other, -(d2 * bend + phi) / d1, bend])

    def reward(self, ended: jax.Array) -> jax.Array:
        return jnp.where(ended, 0.0, -1.0)


ENVIRONMENTS = {each.name: each for each in (CartPole(), MountainCar(), Acrobot())}


def default_agent(text: str) -> deep.Agent:
    """An agent as the Gymnasium class of its name makes it."""
    agent = parse_agent(text)
    explores = isinstance(agent.exploration, EpsilonGreedy)
    return replace(agent, exploration=PRESETS["vector"].exploration) if explores else agent


def train(name: str, agents: Sequence[str], seeds: Sequence[int], out: Path, steps: int | None = None) -> None:
    """Train agents with the defaults for vectors, or what is recommended for them, which has an environment of its own."""
    environment, steps = ENVIRONMENTS[name], steps or STEPS[name]
    tests = {"test_interval": steps // TESTS, "test_episodes": EPISODES}
    others = [default_agent(text) for text in agents if text != RECOMMENDED]
    if others:
        settings = replace(PRESETS["vector"].settings, **tests)
        deep.train(environment, others, steps=steps, seeds=seeds, settings=settings, out=out, quiet=False)
    if RECOMMENDED in agents:
        text, own = recommended(environment.observation.shape).on_device.arguments
        known = {field.name for field in fields(deep.Settings)}
        settings = replace(PRESETS["vector"].settings, **{key: own.pop(key) for key in known & own.keys()}, **tests)
        agent = replace(FUNCTIONS[text](**own), name=RECOMMENDED)
        scaled = replace(environment, scaled=True)
        deep.train(scaled, agent, steps=steps, seeds=seeds, settings=settings, out=out / RECOMMENDED, quiet=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", choices=ENVIRONMENTS, required=True)
    parser.add_argument(
        "--agent", action="append", help=f"{RECOMMENDED}, dqn, te-bdqn:0.2, ...; all with their defaults"
    )
    parser.add_argument("--seeds", type=whole_numbers, default="0-4", help="such as 0-4 or 100,101 (%(default)s)")
    parser.add_argument("--steps", type=int, help="of every run, for a trial; else the environment's own")
    parser.add_argument("--out", type=Path, required=True, help="where trainings are kept")
    asked = parser.parse_args()
    agents = asked.agent or [agent for agent in AGENTS if agent != PEER]
    train(asked.env, agents, asked.seeds, asked.out, asked.steps)


if __name__ == "__main__":
    main()
