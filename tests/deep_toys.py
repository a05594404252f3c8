"""What the tests of deep learning share: problems whose values are known, networks that hold a given table, short runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from maxmean.deep.agent import Agent
from maxmean.deep.core.family import Family
from maxmean.deep.core.replay import Transition
from maxmean.deep.core.run import Run
from maxmean.deep.device import rollouts
from maxmean.deep.device.program import Program
from maxmean.deep.networks import Convolution, Dense, Ensemble, Perceptron, Trunk, Weights
from maxmean.deep.settings import Settings
from maxmean.envs import Environment, Step
from maxmean.envs.random import below, words

Array = jax.Array


QUICK = {"xla_backend_optimization_level": 0}
"""Compiles in half the time, for tests that do not look at the last bit."""


class Place(NamedTuple):
    """Where a table's episode is."""

    place: Array
    """int8."""
    time: Array
    """uint16: steps of this episode."""
    episode: Array
    """uint16: episodes before this one; it survives a reset."""


@dataclass(frozen=True)
class Table(Environment):
    """A deterministic problem, written down: what each action does in each state. It sees its state as a one-hot vector."""

    next: tuple[tuple[int, ...], ...]
    """[state][action]."""
    reward: tuple[tuple[float, ...], ...]
    terminal: tuple[int, ...] = ()
    """States in which an episode has terminated."""
    starts: tuple[int, ...] = (0,)
    """An episode starts in one of these, evenly."""
    step_limit: int = 50
    """Steps after which an episode is truncated."""

    @property
    def name(self) -> str:
        return "table"

    @property
    def n_states(self) -> int:
        return len(self.next)

    @property
    def n_actions(self) -> int:
        return len(self.next[0])

    def reset(self, key: Array, previous: Place | None = None) -> tuple[Place, Array]:
        start = jnp.asarray(self.starts, jnp.int8)[below(words(key, 1)[0], len(self.starts))]
        episode = jnp.uint16(0) if previous is None else previous.episode + jnp.uint16(1)
        state = Place(start, jnp.uint16(0), episode)
        return state, self.observe(state)

    def step(self, key: Array, state: Place, action: Array) -> Step:
        place = jnp.asarray(self.next, jnp.int8)[state.place, action]
        after = Place(place, state.time + jnp.uint16(1), state.episode)
        over = jnp.isin(place, jnp.asarray(self.terminal, jnp.int8))
        reward = jnp.asarray(self.reward, jnp.float32)[state.place, action]
        return Step(after, self.observe(after), reward, over, (after.time >= self.step_limit) & ~over)

    def observe(self, state: Place) -> Array:
        return (state.place == jnp.arange(self.n_states)).astype(jnp.float32)


CORRIDOR = Table(
    # left, right, stay
    next=((0, 0, 0), (0, 2, 1), (1, 3, 2), (2, 4, 3), (4, 4, 4)),
    reward=((0.0, 0.0, 0.0), (0.25, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 0.0)),
    terminal=(0, 4),
    starts=(1, 2),
    step_limit=20,
)
"""A little reward at the left end, a large one at the right: from everywhere the best return is 1."""

SMALL = Settings(
    learning_rate=1e-2,
    batch_size=16,
    discount=0.9,
    replay_capacity=500,
    warmup=50,
    target_period=50,
    hidden=8,
    test_episodes=4,
    bias_episodes=4,
    bias_episodes_per_head=3,
)


@dataclass(frozen=True)
class Toy(Program):
    """A program with the settings that its driver would read."""

    driver: Settings


def program_of(
    *agents: Agent, environment: Environment = CORRIDOR, settings: Settings = SMALL, trunk: Trunk | None = None
) -> Toy:
    """The program of these agents, with a small trunk."""
    fitting = Perceptron((8,)) if len(environment.observation.shape) == 1 else Convolution(2)
    made = Program.of(environment, Family.of(agents), settings, fitting if trunk is None else trunk)
    return Toy(made.environment, made.family, made.network, made.settings, made.measuring, settings)


def start(program: Toy, agent: Agent, seed: int = 1, learning_rate: float | None = None) -> Run:
    """A run of ``agent`` at its beginning, as ``program.create`` gives it but with weights from NumPy, which need no compiler."""
    rate = program.driver.learning_rate if learning_rate is None else learning_rate
    key, traits = np.array([seed, 7], np.uint32), program.family.traits(agent, rate)
    zeros = zeros_like(jax.eval_shape(program.create, key, traits))
    weights = random_weights(program.network, seed)
    return zeros._replace(
        key=key,
        traits=traits,
        learner=zeros.learner._replace(weights=weights, target=weights),
        episode=zeros.episode._replace(state=reset(program.environment, key)[0]),
        diverged=np.int32(-1),
    )


def with_traits(run: Run, **changes: Any) -> Run:
    """The run with some of its traits changed."""
    return run._replace(traits=run.traits._replace(**changes))


def zeros_like(shapes: Any) -> Any:
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)


def random_weights(network: Ensemble, seed: int) -> Weights:
    """Weights within 1/2."""
    rng = np.random.default_rng(seed)
    return jax.tree.map(
        lambda leaf: rng.uniform(-0.5, 0.5, leaf.shape).astype(leaf.dtype),
        jax.eval_shape(network.create, jnp.zeros(2, jnp.uint32)),
    )


@partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def reset(environment: Environment, key: Array) -> tuple[Any, Array]:
    return environment.reset(key)


@partial(jax.jit, static_argnums=0)
def collect(program: Program, run: Run, begin: int, steps: int) -> Run:
    return program.collect(run, jnp.int32(begin), jnp.int32(steps))


@partial(jax.jit, static_argnums=0)
def learn(program: Program, run: Run, begin: int, steps: int) -> Run:
    return program.learn(run, jnp.int32(begin), jnp.int32(steps))


def short(program: Toy, run: Run, copies: Array | int = 4) -> Run:
    """A whole short run: the warm-up, then periods of updates, after each of which the target is copied and the agent adapts."""
    warmup, period = program.driver.warmup, program.driver.target_period
    run = program.collect(run, jnp.int32(0), jnp.int32(warmup))

    def between(i: Array, run: Run) -> Run:
        end = warmup + (i + 1) * period
        run = program.learn(run, end - period, jnp.int32(period))
        run = run._replace(learner=run.learner._replace(target=run.learner.weights))
        return rollouts.adapt(program, run, end, jnp.minimum(end, program.settings.replay_capacity))

    return jax.lax.fori_loop(0, copies, between, run)


def _side_by_side(program: Toy, runs: Run, copies: int) -> Run:
    return jax.vmap(partial(short, program), in_axes=(0, None))(runs, copies)


_short = jax.jit(short, static_argnums=0)
_shorts = jax.jit(_side_by_side, static_argnums=0)
_quick_shorts = jax.jit(_side_by_side, static_argnums=0, compiler_options=QUICK)


def short_run(program: Toy, run: Run, copies: int = 4) -> Run:
    return _short(program, run, copies)


def short_runs(program: Toy, runs: Run, copies: int = 4, *, quick: bool = False) -> Run:
    """Several short runs side by side: all leaves of ``runs`` have one more axis."""
    return (_quick_shorts if quick else _shorts)(program, runs, copies)


@partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def greedy_returns(program: Program, runs: Run) -> Array:
    """The mean return of test episodes of at most 30 steps, [runs]."""
    return jax.vmap(lambda run: rollouts.greedy_return(program, run, jnp.int32(0), 30))(runs)


def together(runs: Sequence[Run]) -> Run:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *runs)


def apart(runs: Any, i: int) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[i], runs)


def differences(a: Any, b: Any) -> list[str]:
    """The paths of the leaves in which two pytrees do not agree bit for bit."""
    assert structure(a) == structure(b)
    pairs = zip(jax.tree.leaves_with_path(a), jax.tree.leaves(b), strict=True)
    return [jax.tree_util.keystr(path) for (path, x), y in pairs if not same(x, y)]


def structure(tree: Any) -> Any:
    return jax.tree.structure(tree)


def same(x: Any, y: Any) -> bool:
    x, y = np.asarray(x), np.asarray(y)
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def holding(program: Program, tables: Any) -> Weights:
    """Weights with which member m's Q is exactly the table m [states, actions], for one-hot observations.

    A hidden unit for each state passes the one-hot vector on; the output layer is the table.
    """
    network = program.network
    tables = np.asarray(tables, np.float32)
    members, states, actions = tables.shape
    assert network.trunk == Perceptron(()), "the one-hot vector must reach the hidden layer"
    assert (members, network.hidden) == (network.members, states)
    pass_on, table = np.tile(np.eye(states, dtype=np.float32), (members, 1)), tables.transpose(0, 2, 1)
    leaves = [pass_on, np.zeros(members * states, np.float32), table, np.zeros((members, actions), np.float32)]
    if not network.shared and members > 1:  # whole networks: each with the shapes of one member
        own = [(states, states), (states,), (1, actions, states), (1, actions)]
        leaves = [leaf.reshape(members, *shape) for leaf, shape in zip(leaves, own, strict=True)]
    return Weights((), Dense(*leaves[:2]), Dense(*leaves[2:]))


def filled_with(program: Program, run: Run, states: Sequence[Place]) -> Run:
    """The run with a replay in which a transition begins in each of these states."""
    rows = np.array(run.replay)
    for i, state in enumerate(states):
        rows[i] = _row(program, state)
    return run._replace(replay=jnp.asarray(rows))


@partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def _row(program: Program, state: Place) -> Array:
    transition = Transition(state, jnp.uint8(0), jnp.float32(0), jnp.bool_(False), state, jnp.uint32(1))
    return program.learning.layout.pack(transition)
