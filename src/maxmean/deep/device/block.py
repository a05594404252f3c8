"""Blocks: runs that one compiled program advances together.

On a GPU a block holds all runs of a family, because one run leaves the device idle. On a CPU a block holds one run, because a
core is busy with it, and blocks run on threads beside each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..agent import Agent
from ..core.family import Family
from ..core.in_place import overwritten
from ..core.measuring import QUANTILES, Measurement
from ..core.run import Run
from ..core.update import copy_target
from ..runs import RunId
from ..settings import Settings
from . import rollouts
from .launching import launching
from .plan import TrainingPlan
from .program import Program
from .rollouts import Snapshot

Array = jax.Array

ROUND = 100
"""Steps in a loop whose length the compiler knows. In another loop a GPU asks the host after every step whether to go on, and its
kernels wait for the answer. All kernels of a round are launched at once: :mod:`.launching`."""
Advance = Callable[[Run, Array, int], tuple[Run, Array]]
"""From runs, the number of their next step and how many to take, to the runs and the number after them."""
IN_PLACE: Any = {"donate_argnums": (0, 1)}
"""A round's arguments stay where they are, the number too: else the launches that are kept would have to be changed each time.
So what is written between rounds is written in place (:mod:`..core.in_place`)."""
RUNS, TESTS = "runs", "tests"
"""The axis of the runs that advance together, and that of their tests that are run at once."""


@dataclass(frozen=True)
class Compiled:
    """The program's functions, compiled: for one run, or for many at once."""

    program: Program
    batched: bool
    limit: int

    def _many(self, function: Callable[..., Any], arguments: int) -> Callable[..., Any]:
        """For all runs at once, with the same further arguments."""
        return jax.vmap(function, (0,) + (None,) * arguments, axis_name=RUNS) if self.batched else function

    def _jit(self, function: Callable[..., Any], arguments: int, *, donate: bool = False) -> Callable[..., Any]:
        return jax.jit(self._many(function, arguments), donate_argnums=0 if donate else ())

    @cached_property
    def create(self) -> Callable[..., Run]:
        return jax.jit(jax.vmap(self.program.create) if self.batched else self.program.create)

    @cached_property
    def collect(self) -> Advance:
        """Takes so many steps from a first one on: in rounds of :data:`ROUND` on a GPU, and the rest one at a time."""
        return self._in_rounds(self.program.collect)

    @cached_property
    def learn(self) -> Advance:
        """The same with updates."""
        return self._in_rounds(self.program.learn)

    def _in_rounds(self, function: Callable[..., Run]) -> Advance:
        several = self._jit(function, 2, donate=True)
        if not self.batched:
            return lambda state, first, steps: (several(state, first, steps), first + steps)
        one_round, length = jax.jit(self.round_of(function), compiler_options=launching(), **IN_PLACE), ROUND

        def take(state: Run, first: Array, steps: int) -> tuple[Run, Array]:
            rounds, rest = divmod(steps, length)
            for _ in range(rounds):
                state, first = one_round(state, first)
            return (several(state, first, rest), first + rest) if rest else (state, first)

        return take

    def round_of(self, function: Callable[..., Run]) -> Callable[[Run, Array], tuple[Run, Array]]:
        """:data:`ROUND` steps of all runs, and the number of the step after them."""
        length = ROUND

        def take(state: Run, first: Array) -> tuple[Run, Array]:
            return self._many(partial(function, steps=length), 1)(state, first), first + length

        return take

    @cached_property
    def adapt(self) -> Callable[..., jax.Array]:
        """The rule's parameter after an adaptation."""

        def adapt(run: Run, step: jax.Array, filled: jax.Array) -> jax.Array:
            return rollouts.adapt(self.program, run, step, filled).traits.parameter

        return self._jit(adapt, 2)

    @cached_property
    def look(self) -> Callable[..., Snapshot]:
        """The runs as they are, to be measured later."""
        return self._jit(partial(rollouts.snapshot, self.program), 2)

    @cached_property
    def measure(self) -> Callable[..., Measurement]:
        """What is measured of each of several snapshots; the entries have the snapshots as their first axis, and the runs as
        their second.
        """
        together = (TESTS, RUNS) if self.batched else ()

        def measure(seen: Snapshot) -> Measurement:
            run, step = seen.run, seen.step
            returned = rollouts.greedy_return(self.program, run, step, self.limit, together)
            bias = rollouts.estimate_bias(self.program, run, step, seen.states, self.limit, together)
            return Measurement(returned, bias, run.tally, run.traits.parameter, run.diverged)

        if not self.batched:  # then there is one snapshot of one run
            return jax.jit(lambda seen: jax.tree.map(lambda leaf: leaf[None, None], measure(seen)))
        at_once = jax.vmap(jax.vmap(measure, axis_name=RUNS), axis_name=TESTS)
        return jax.jit(lambda *seen: at_once(jax.tree.map(lambda *leaves: jnp.stack(leaves), *seen)))


class Block:
    """Some runs on their way."""

    def __init__(self, compiled: Compiled, runs: Sequence[RunId], settings: Settings, tests: int = 1) -> None:
        self.compiled, self.runs, self.settings, self.step = compiled, list(runs), settings, 0
        self.tests = tests
        """How many tests are run at once."""
        self.state: Run | None = None
        self.waiting: list[tuple[int, Snapshot]] = []
        """Steps whose tests have not been run yet."""
        self._next: tuple[int, Array] | None = None
        """A step, and its number on the device."""

    def create(self) -> None:
        """Put the runs at their beginning. Runs with the same seed start with the same weights and the same luck."""
        family = self.compiled.program.family
        own = [
            (jnp.array([0, run.seed], jnp.uint32), family.traits(run.variant.agent, run.variant.learning_rate))
            for run in self.runs
        ]
        arguments = jax.tree.map(lambda *leaves: jnp.stack(leaves), *own) if self.compiled.batched else own[0]
        self.state = self.compiled.create(*arguments)

    def advance(self, end: int, stopped: Callable[[], bool]) -> None:
        """Train until step ``end``, or until ``stopped``, which is looked at after each piece."""
        settings = self.settings
        while self.step < end and not stopped():
            if self.step < settings.warmup:
                self._take(self.compiled.collect, min(end, settings.warmup))
            else:
                updates = self.step - settings.warmup
                self._take(
                    self.compiled.learn, min(end, self.step + settings.target_period - updates % settings.target_period)
                )
            if self.step > settings.warmup and (self.step - settings.warmup) % settings.target_period == 0:
                self.copy_target()
            jax.tree.map(lambda leaf: leaf.block_until_ready(), self.state)

    def _take(self, advance: Advance, stop: int) -> None:
        assert self.state is not None
        number = self._next[1] if self._next and self._next[0] == self.step else jnp.int32(self.step)
        self.state, number = advance(self.state, number, stop - self.step)
        self.step, self._next = stop, (stop, number)

    def copy_target(self) -> None:
        """The target network becomes a copy of the one that learns; then those that adapt do."""
        assert self.state is not None
        self.state = self.state._replace(learner=copy_target(self.state.learner))
        if self.compiled.program.family.adaptation is not None:
            traits = self.state.traits
            parameter = overwritten(traits.parameter, self.compiled.adapt(self.state, self.step, self.filled))
            self.state = self.state._replace(traits=traits._replace(parameter=parameter))

    def look(self) -> None:
        """Take a snapshot of all runs for a test at this step; their tallies start anew."""
        assert self.state is not None
        self.waiting.append((self.step, self.compiled.look(self.state, self.step, self.filled)))
        nothing = jax.tree.map(jnp.zeros_like, self.state.tally)
        self.state = self.state._replace(tally=overwritten(self.state.tally, nothing))

    @property
    def has_all(self) -> bool:
        """Whether as many tests wait as are run at once."""
        return len(self.waiting) >= self.tests

    def measure(self) -> list[tuple[int, Measurement]]:
        """Test returns, bias and tallies of all runs at each step whose test waits.

        It is always the same program that computes them: where fewer tests wait, the last snapshot fills their places.
        """
        found = []
        while self.waiting:
            steps, seen = zip(*self.waiting[: self.tests], strict=True)
            measured = self.compiled.measure(*seen, *seen[-1:] * (self.tests - len(seen)))
            measured = jax.tree.map(np.asarray, measured)
            found += [(step, jax.tree.map(lambda leaf, i=i: leaf[i], measured)) for i, step in enumerate(steps)]
            self.waiting = self.waiting[self.tests :]
        return found

    @property
    def filled(self) -> jax.Array:
        return jnp.int32(min(self.step, self.settings.replay_capacity))

    def most_rows(self, step: int) -> int:
        """Rows that a table of the records can have by then: a test every interval, and at the end of every time that the
        training was gone on with.
        """
        rows = max(QUANTILES, self.compiled.program.family.members)
        return rows * (step // self.settings.test_interval + 10_000) * len(self.runs)

    def run_weights(self, index: int) -> Any:
        """The weights of one of the runs, as NumPy arrays."""
        assert self.state is not None
        take = (lambda leaf: np.asarray(leaf[index])) if self.compiled.batched else np.asarray
        return jax.tree.map(take, self.state.learner.weights)


def make_blocks(plan: TrainingPlan, *, batched: bool | None = None, limit: int = 10_000, tests: int = 1) -> list[Block]:
    """The plan's runs in blocks, by default as suits the device; ``tests`` of a block are run at once."""
    if batched is None:
        batched = jax.default_backend() != "cpu"
    groups = plan.groups()
    if not batched:  # then nothing is gained by computing the rules of others
        groups = [[run] for group in groups for run in group]
    compiled: dict[tuple[Agent, ...], Compiled] = {}  # one for all seeds, of which there may be thousands
    blocks = []
    for group in groups:
        agents = tuple(dict.fromkeys(run.variant.agent for run in group))
        if agents not in compiled:
            program = Program.of(plan.environment, Family.of(agents), plan.settings)
            compiled[agents] = _compiled(program, batched, limit)
        blocks.append(Block(compiled[agents], group, plan.settings, tests))
    return blocks


@lru_cache(maxsize=32)
def _compiled(program: Program, batched: bool, limit: int) -> Compiled:
    """The same program is compiled once, however many trainings of a process use it."""
    return Compiled(program, batched, limit)
