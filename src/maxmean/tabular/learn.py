"""Learning: many runs of an algorithm on an MDP, in parallel, summarised as tidy tables."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..mev import Gaussian
from .algorithms import KEQ, Algorithm, DoubleQ, MaxMinQ, SelfCorrectingQ, VarianceTracker, WeightedQ
from .checks import MDPError, check_number, check_truth, check_whole
from .kernels import compile_kernel
from .loop import Method, Watch, World, compiled_loop
from .masks import LegalFirst
from .mdp import MDP, check_problem
from .random import streams
from .schedules import Schedule, constant
from .solve import solve
from .targets import DOUBLE, KERNEL, MAXIMUM, MAXMIN, SELF_CORRECTING, WEIGHTED

if TYPE_CHECKING:
    import pandas as pd

MOST_STEPS = 10**15
"""Episodes, runs and steps: far beyond what ends, and within what 64 bits count."""
MOST_KEPT = 2**33
"""Numbers kept of all runs, 64 GB: more would be asked for by mistake."""
_BLOCKS = 32  # runs are added up in this many blocks, whatever the number of threads


@dataclass(frozen=True)
class Learned:
    """What came of many runs. Means and variances are over runs; variances have divisor runs - 1."""

    episodes: pd.DataFrame
    """One row an episode: mean and variance of ``return`` and ``length``, and of ``bias`` where it was asked for."""
    values: pd.DataFrame
    """One row an episode and watched pair or state: mean and variance of its value after the episode."""
    choices: pd.DataFrame
    """One row an episode and watched pair: share of choices in its state, and the number of means averaged for it."""
    q: np.ndarray
    """Mean final values, shape (states, actions); -inf where a state lacks the action."""
    q_variance: np.ndarray
    """Variance of the final values over runs."""
    every: np.ndarray
    """Return and length of every episode of every run, shape (runs, 2, episodes), if asked for; else empty."""
    tables: np.ndarray
    """Final values of every run, shape (runs, states, actions), if asked for; else empty."""
    runs: int


def learn(
    mdp: MDP,
    algorithm: Algorithm,
    *,
    episodes: int,
    runs: int = 1,
    seed: int = 0,
    first_run: int = 0,
    learning_rate: Schedule | float = 0.1,
    epsilon: Schedule | float = 0.1,
    initial: float = 0.0,
    max_steps: int = 100_000,
    legal: Any = None,
    watch_pairs: Sequence[tuple[int, int]] = (),
    watch_states: Sequence[int] = (),
    watch_choices: Sequence[tuple[int, int]] = (),
    bias: bool = False,
    every_run: bool = False,
    final_tables: bool = False,
    threads: int | None = None,
) -> Learned:
    """Train ``runs`` independent agents and summarise them; memory grows with what is asked for, not with runs x episodes.

    Parameters
    ----------
    mdp, algorithm
        The problem, and one of ``Q, DoubleQ, WeightedQ, SelfCorrectingQ, MaxMinQ, TEQ, KEQ``.
    episodes, runs, seed, first_run
        How long, how many, and from which seed. Run k depends on the seed and on k alone; ``first_run`` is the first k.
    learning_rate, epsilon
        Schedules, or numbers: by the updates of the pair, and by the visits of the state.
    initial
        Initial value of every pair.
    max_steps
        An episode that has not ended by then is cut off.
    legal
        Which actions may be taken, bool[S, A]; targets look at these alone. By default all that a state has.
    watch_pairs, watch_states, watch_choices
        Pairs (state, action) and states to record over time.
    bias
        Record Q - Q* averaged over the pairs that an episode visits; Q* is computed exactly.
    every_run, final_tables
        Keep each run's returns and lengths, or its final table.
    threads
        Threads to use; by default all. The numbers do not depend on it.

    Examples
    --------
    >>> from maxmean.tabular.problems import cliff_walking
    >>> found = learn(cliff_walking(), KEQ(), episodes=200, runs=20)
    >>> bool(found.episodes["return"].iloc[-1] > found.episodes["return"].iloc[0])
    True
    """
    check_problem(mdp)
    check_algorithm(algorithm)
    for what, value in (("episodes", episodes), ("runs", runs), ("max_steps", max_steps), ("threads", threads)):
        if value is not None:
            check_whole(what, value, most=MOST_STEPS)
            if value < 1:
                raise MDPError(f"{what} must be at least 1, not {value}")
    for what, value in (("seed", seed), ("first_run", first_run)):
        check_whole(what, value, most=None if what == "seed" else MOST_STEPS)
        if value < 0:
            raise MDPError(f"{what} must not be negative, not {value}")
    for what, flag in (("bias", bias), ("every_run", every_run), ("final_tables", final_tables)):
        check_truth(what, flag)
    check_number("the initial value", initial)
    if not math.isfinite(initial):
        raise MDPError(f"the initial value must be finite, not {initial}")
    if _schedule(learning_rate).scale == 0:
        raise MDPError("the learning rate must lie in (0, 1], not 0")
    fewer = LegalFirst.of(mdp, legal)
    mdp = fewer.mdp
    watch = _watch(fewer, watch_pairs, watch_states, watch_choices, bias)
    code, method = _method(algorithm, _schedule(learning_rate), _schedule(epsilon), initial, max_steps)
    edges = np.linspace(0, runs, min(runs, _BLOCKS) + 1).round().astype(np.int64)
    blocks, pairs = len(edges) - 1, mdp.n_pairs
    rows = 6 + 2 * (watch.pairs.size + watch.states.size) + 4 * watch.chosen.size
    kept = blocks * rows * episodes + runs * (2 * episodes * every_run + pairs * final_tables + 4) + 2 * blocks * pairs
    if kept > MOST_KEPT:
        raise MDPError(
            f"{runs:,} runs of {episodes:,} episodes keep {kept / 2**27:,.0f} GB: ask for fewer, or for less of each run"
        )
    sums = np.zeros((blocks, rows, episodes))
    finals = np.zeros((blocks, 2, pairs))
    every = np.zeros((runs, 2, episodes) if every_run else (0, 2, 0))
    tables = np.zeros((runs, pairs) if final_tables else (0, 0))
    world, rngs = _world(mdp), streams(seed, runs, first_run)

    run_block = compiled_loop(code)

    def work(block: int) -> None:
        part = slice(edges[block], edges[block + 1])
        run_block(world, method, watch, episodes, rngs[part], sums[block], finals[block], every[part], tables[part])

    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:  # the compiled loop does not hold Python's lock
        list(pool.map(work, range(blocks)))
    return _summarise(fewer, watch, sums.sum(axis=0), finals.sum(axis=0), every, tables, runs, bias)


def check_algorithm(algorithm: object) -> None:
    """Refuse what is no algorithm; a class is nearly one."""
    if isinstance(algorithm, type) and issubclass(algorithm, Algorithm):
        raise MDPError(f"the algorithm must be made from its class: {algorithm.__name__}(), not {algorithm.__name__}")
    if not isinstance(algorithm, Algorithm):
        raise MDPError(f"the algorithm must be one of this module's, such as KEQ(), not {algorithm!r:.200}")


def _world(mdp: MDP) -> World:
    return World(
        mdp.offsets,
        mdp.next_states,
        mdp.cumulative,
        mdp.rewards,
        mdp.noise,
        mdp.actions,
        mdp.terminal,
        mdp.start_cumulative,
        mdp.n_actions,
        mdp.discount,
    )


def _schedule(rate: Schedule | float) -> Schedule:
    if isinstance(rate, Schedule):
        return rate
    check_number("a rate", rate)
    return constant(float(rate))


def _method(
    algorithm: Algorithm, rate: Schedule, epsilon: Schedule, initial: float, max_steps: int
) -> tuple[int, Method]:
    kernel, tracker = Gaussian(), VarianceTracker()
    code, beta, by_step, draws = MAXIMUM, 0.0, False, 0
    match algorithm:
        case KEQ():
            code, kernel, tracker = KERNEL, algorithm.kernel, algorithm.tracker  # type: ignore[assignment]
        case DoubleQ():
            code = DOUBLE
        case WeightedQ():
            code, draws = WEIGHTED, algorithm.draws
        case SelfCorrectingQ():
            code, beta, by_step = SELF_CORRECTING, algorithm.beta, algorithm.previous == "step"
        case MaxMinQ():
            code = MAXMIN
    return code, Method(
        algorithm.tables,
        compile_kernel(kernel),
        float(tracker.variance),
        float(tracker.omega),
        float(tracker.omega_squared),
        float(beta),
        by_step,
        draws,
        (float(rate.scale), float(rate.delay), float(rate.power)),
        (float(epsilon.scale), float(epsilon.delay), float(epsilon.power)),
        float(initial),
        max_steps,
    )


def _watch(fewer: LegalFirst, pairs: Any, states: Any, choices: Any, bias: bool) -> Watch:
    mdp = fewer.mdp
    for what, watched in (("watch_pairs", pairs), ("watch_states", states), ("watch_choices", choices)):
        if not isinstance(watched, Iterable):
            raise MDPError(f"{what} must be a list, not {watched!r}")

    def index(pair: tuple[int, int]) -> int:
        try:
            state, action = pair
        except (TypeError, ValueError):
            raise MDPError(f"a pair to watch is (state, action), not {pair!r}") from None
        check_whole("a state", state)
        check_whole("an action", action)
        there = 0 <= state < mdp.n_states and 0 <= action < mdp.n_actions
        if not there or fewer.places[state, action] >= mdp.actions[state]:
            raise MDPError(f"there is no action {action} in state {state}")
        return int(state * mdp.n_actions + fewer.places[state, action])

    for state in states:
        check_whole("a state", state)
        if not 0 <= state < mdp.n_states or mdp.terminal[state]:
            raise MDPError(f"state {state} cannot be watched: it is terminal or does not exist")
    optimum = np.where(np.isfinite(q := solve(mdp).q), q, 0.0).ravel() if bias else np.zeros(0)
    return Watch(
        np.array([index(pair) for pair in pairs], dtype=np.int64),
        np.array(list(states), dtype=np.int64),
        np.array([index(pair) for pair in choices], dtype=np.int64),
        optimum,
    )


def _summarise(
    fewer: LegalFirst,
    watch: Watch,
    sums: np.ndarray,
    finals: np.ndarray,
    every: np.ndarray,
    tables: np.ndarray,
    runs: int,
    bias: bool,
) -> Learned:
    import pandas as pd

    mdp, episode = fewer.mdp, np.arange(1, sums.shape[1] + 1)

    def moments(row: int, name: str) -> dict[str, np.ndarray]:
        mean = sums[row] / runs
        variance = np.maximum(sums[row + 1] - runs * mean**2, 0.0) / max(runs - 1, 1)
        return {name: mean, f"{name}_variance": variance}

    table = {"episode": episode, **moments(0, "return"), **moments(2, "length"), **(moments(4, "bias") if bias else {})}
    width, row = mdp.n_actions, 6
    values = []
    for pair in watch.pairs:
        frame = pd.DataFrame({"episode": episode, **moments(row, "value")})
        values.append(frame.assign(state=pair // width, action=fewer.order.flat[pair]))
        row += 2
    for state in watch.states:
        values.append(pd.DataFrame({"episode": episode, **moments(row, "value")}).assign(state=state, action=-1))
        row += 2
    choices = []
    for pair in watch.chosen:
        chosen, visits, used, updates = sums[row : row + 4]
        with np.errstate(invalid="ignore"):
            columns = {"episode": episode, "share": chosen / visits, "visits": visits, "averaged": used / updates}
        choices.append(pd.DataFrame(columns).assign(state=pair // width, action=fewer.order.flat[pair]))
        row += 4
    shape = (mdp.n_states, width)
    exists = np.arange(width) < mdp.actions[:, None]
    mean = finals[0] / runs
    variance = np.maximum(finals[1] - runs * mean**2, 0.0) / max(runs - 1, 1)
    return Learned(
        pd.DataFrame(table),
        pd.concat(values, ignore_index=True) if values else pd.DataFrame(),
        pd.concat(choices, ignore_index=True) if choices else pd.DataFrame(),
        fewer.back(np.where(exists, mean.reshape(shape), -np.inf)),
        fewer.back(np.where(exists, variance.reshape(shape), 0.0)),
        every,
        fewer.back(np.where(exists, tables.reshape(-1, *shape), -np.inf)) if tables.size else tables,
        runs,
    )
