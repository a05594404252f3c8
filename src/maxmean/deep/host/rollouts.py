"""Roll-outs in a second environment: test returns, the bias of Q (the paper's Algorithm 3), and the adaptation.

They begin in states of the training where the environment can be put there, and at the environment's own start else; which of the
two it was is said. Their luck comes from the agent's seed and the step, so that it depends on nothing that happened before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from ..core.measuring import QUANTILES, BiasSummary, jackknife, summary
from ..core.run import Purpose, Run
from ..core.traits import adapted
from . import states
from .adapters import EnvAdapter, View
from .errors import HostError
from .program import QUICKLY, HostProgram

LIMIT = 10_000
"""Steps after which a roll-out is cut off, as one that is truncated."""
STATES, RESETS, NONE = "stored states", "reset states", "not measured"


@dataclass(frozen=True)
class Bias:
    """How much larger Q is than what the greedy policy then gets: positive where values are overestimated."""

    value: float
    """The mean over all visited pairs of state and action; for heads, the mean of the heads' means."""
    error: float
    """Its standard error, with episodes as the units, by leaving out one at a time; nan for a single episode."""
    heads: tuple[float, ...]
    """Each head's own; one entry for agents without heads."""
    how: str
    """Where the roll-outs began: ``stored states`` or ``reset states``."""
    pairs: int
    """Visited pairs."""
    episodes: int
    values: tuple[float, ...] = ()
    """Mean predicted value in each fifth of the pairs, from the smallest predictions to the largest."""
    fifths: tuple[float, ...] = ()
    """The bias in each fifth; nan in one without a pair."""
    predicted: float = np.nan
    """Mean of Q over all visited pairs."""
    interval: tuple[float, float] = (np.nan, np.nan)
    """95% interval: the value give or take its error times Student's quantile, with few degrees of freedom where few episodes
    say most. docs/measure.md says how many episodes it needs, and when it fails. nan for a single episode."""

    def plot(self, path: str | Path) -> None:
        """Draw the bias by fifths of the predicted value, and write it to ``path`` (.png, .pdf or .svg)."""
        from .picture import draw_bias

        draw_bias(self, path)


class PlayedEpisode(NamedTuple):
    """A played episode."""

    values: NDArray[np.float32]
    """Q of each pair at the time."""
    returns: NDArray[np.float32]
    """What came of it, discounted."""

    @classmethod
    def of(
        cls,
        values: Sequence[float],
        rewards: Sequence[float],
        tail: float,
        discount: float,
        ends: Collection[int] = (),
    ) -> PlayedEpisode:
        """From the values and rewards of its steps, and the value of the state in which it was cut off, or 0.

        ``ends`` are steps after which nothing counts, though the game goes on: a life was lost.
        """
        returns = np.zeros(len(rewards), np.float32)
        for i in reversed(range(len(rewards))):
            tail = rewards[i] + discount * (0.0 if i in ends else tail)
            returns[i] = tail
        return cls(np.asarray(values, np.float32), returns)


def compared(played: Sequence[PlayedEpisode], heads: int, how: str) -> tuple[BiasSummary, Bias]:
    """The bias in episodes that belong to the heads in equal shares, one head's after the other's."""
    longest = max(len(each.values) for each in played)
    shape = (max(512, 1 << (longest - 1).bit_length()), len(played))  # few shapes, few compilations
    values, returns, visited = np.zeros(shape, np.float32), np.zeros(shape, np.float32), np.zeros(shape, bool)
    for i, each in enumerate(played):
        length = len(each.values)
        values[:length, i], returns[:length, i], visited[:length, i] = each.values, each.returns, True
    found: BiasSummary = jax.tree.map(np.asarray, _summary(values, returns, visited, heads))
    of_heads, by_value, fifths = (tuple(map(float, each)) for each in (found.heads, found.values, found.quantiles))
    predicted = float(np.mean(values, where=visited, dtype=float))
    pairs, episodes = int(found.pairs), len(played)
    sums = np.array([np.sum(each.values - each.returns, dtype=float) for each in played]).reshape(heads, -1)
    counts = np.array([float(len(each.values)) for each in played]).reshape(heads, -1)
    value, (error, freedom) = float(found.mean), jackknife(sums, counts)
    half = float(stdtrit(freedom, 0.975)) * error
    interval = (value - half, value + half)
    return found, Bias(value, error, of_heads, how, pairs, episodes, by_value, fifths, predicted, interval)


_summary = jax.jit(summary, static_argnums=3, compiler_options=QUICKLY)


class Player:
    """Plays in the second environment."""

    def __init__(
        self, program: HostProgram, world: EnvAdapter, kept: Sequence[Any], seed: int, discount: float
    ) -> None:
        self.program, self.world, self.seed, self.discount = program, world, seed, discount
        self.ready = False
        self.kept = kept if states.obstacle(world.env) is None else ()

    @property
    def how(self) -> str:
        return STATES if len(self.kept) else RESETS

    def test_return(self, run: Run, step: int, episodes: int) -> float:
        """The mean undiscounted return of greedy episodes from the environment's start."""
        total = 0.0
        for number in range(episodes):
            view = self._reset(Purpose.TEST, step, number)
            for _ in range(LIMIT):
                after = self.world.step(np.asarray(self.program.greedy(run, *view)))
                total, view = total + float(after.rewards[0]), after.view
                if after.over[0]:
                    break
        return total / episodes

    def bias(self, run: Run, step: int, heads: int, episodes: int) -> tuple[BiasSummary, Bias]:
        """Play ``episodes`` greedy episodes of each head and compare each pair's Q with its return."""
        played = [
            self._play(run, head, self._begin(Purpose.BIAS, step, head * episodes + number))
            for head in range(heads)
            for number in range(episodes)
        ]
        return compared(played, heads, self.how)

    def adapt(self, run: Run, step: int) -> Run:
        """Turn the rule's parameter towards zero bias: each head plays ``horizon`` steps, from a new state after each end."""
        adaptation = self.program.family.adaptation
        assert adaptation is not None
        heads = self.program.family.members
        excess, size = np.zeros(heads), np.zeros(heads)
        for head in range(heads):
            left, number = adaptation.horizon, 0
            while left:
                begin = self._begin(Purpose.ADAPT, step, head * adaptation.horizon + number)
                part = self._play(run, head, begin, limit=left)
                excess[head] += np.sum(part.returns - part.values)
                size[head] += np.sum(np.abs(part.values))
                left, number = left - len(part.values), number + 1
        sums = (jnp.asarray(each, jnp.float32) for each in (excess, size))
        return run._replace(traits=adapted(adaptation, run.traits, *sums))

    def _play(self, run: Run, head: int, view: View, limit: int = LIMIT) -> PlayedEpisode:
        """One head's greedy episode. Where it is cut off it is not over, and the value of its last state follows."""
        values, rewards, ends, tail = [], [], set(), 0.0
        for number in range(limit):
            action, value = self._own(run, head, view)
            after = self.world.step(np.asarray(action)[None])
            values.append(float(value))
            rewards.append(float(self.world.learned(after)[0]))
            if after.lost[0]:
                ends.add(number)
            view = after.view
            if after.over[0]:
                last = View(after.reached, after.next_legal)
                tail = 0.0 if after.terminated[0] else float(self._own(run, head, last)[1])
                break
        else:
            tail = float(self._own(run, head, view)[1])
        return PlayedEpisode.of(values, rewards, tail, self.discount, ends)

    def _own(self, run: Run, head: int, view: View) -> tuple[Any, Any]:
        """A head's best action, and its value."""
        return self.program.own(run, view.seen[0], np.int32(head), None if view.legal is None else view.legal[0])

    def _begin(self, purpose: int, step: int, number: int) -> View:
        """Where a roll-out begins."""
        if not len(self.kept):
            return self._reset(purpose, step, number)
        luck = np.random.default_rng([self.seed, purpose, step, number])
        seen, state, *others = self.kept[int(luck.integers(len(self.kept)))]
        legal, lives = others[: self.program.masked], others[self.program.masked :]
        if not self.ready:  # some environments must have been reset once
            self._reset(purpose, 0, 0)
        states.set_state(self.world.env, state, luck)
        if self.world.lives is not None:
            self.world.lives = lives[0] if lives else self.world.no_lives()
        return View(np.asarray(seen)[None], np.asarray(legal) if legal else None)

    def _reset(self, purpose: int, step: int, number: int) -> View:
        self.ready = True
        words = np.random.SeedSequence([self.seed, purpose, step, number]).generate_state(1)
        view = self.world.reset(int(words[0] >> 1))
        if self.program.masked and view.legal is None:  # masks in info are known from here on
            raise HostError(
                "eval_env gives no mask of the legal actions at reset, and this training has masks: give an eval_env that has "
                "them too, in the same wrappers as env"
            )
        return view


def no_bias(heads: int) -> BiasSummary:
    """What stands in the records where the bias is not measured."""
    nan: Any = np.nan
    fifths: Any = np.full(QUANTILES, nan)
    each: Any = np.full(heads, nan)
    none: Any = 0
    return BiasSummary(nan, nan, each, fifths, fifths, none)
