# mypy: disable-error-code="arg-type,assignment"
"""The inner loop: one run of tabular Q-learning, compiled. It reads like the paper's Algorithm 1.

Each algorithm has a compiled loop of its own, without the branches and the arrays of the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from .kernels import CompiledKernel
from .random import normal, uniform
from .targets import (
    DOUBLE,
    KERNEL,
    MAXMIN,
    SELF_CORRECTING,
    WEIGHTED,
    acting_value,
    corrected_target,
    double_target,
    greedy,
    kernel_target,
    survey,
    update_moments,
    weighted_target,
)


class World(NamedTuple):
    """An MDP as arrays; the outcomes of pair p are ``offsets[p]:offsets[p + 1]``."""

    offsets: np.ndarray
    next_states: np.ndarray
    cumulative: np.ndarray
    rewards: np.ndarray
    noise: np.ndarray
    actions: np.ndarray
    terminal: np.ndarray
    start_cumulative: np.ndarray
    width: int
    """Largest number of actions: pair = state * width + action."""
    discount: float


class Method(NamedTuple):
    """The parameters of an algorithm and its schedules as plain numbers."""

    tables: int
    kernel: CompiledKernel
    variance: float
    omega: float
    omega_squared: float
    beta: float
    by_step: bool
    draws: int
    rate: tuple[float, float, float]
    epsilon: tuple[float, float, float]
    initial: float
    max_steps: int


class Watch(NamedTuple):
    """What to record in every episode."""

    pairs: np.ndarray
    """Pairs whose value is recorded."""
    states: np.ndarray
    """States whose largest value is recorded."""
    chosen: np.ndarray
    """Pairs whose choice is counted, against all choices in their state; so is the number of means averaged for them."""
    optimum: np.ndarray
    """Q* for every pair, or empty: then no bias is recorded."""


@njit(cache=True, error_model="numpy", inline="always")
def _rate(schedule: tuple[float, float, float], n: int) -> float:
    scale, delay, power = schedule
    if power == 0.0:
        return scale
    if power == 1.0:
        return scale * (delay + 1.0) / (delay + n)
    if power == 0.5:  # a root is many times faster than a power
        return scale * math.sqrt((delay + 1.0) / (delay + n))
    return scale * ((delay + 1.0) / (delay + n)) ** power


@njit(cache=True, error_model="numpy", inline="always")
def record(sums: np.ndarray, row: int, episode: int, value: float) -> None:
    sums[row, episode] += value
    sums[row + 1, episode] += value * value


@njit(cache=True, error_model="numpy", inline="always")
def largest(code: int, q: np.ndarray, first: int, count: int) -> float:
    """The largest value of a state; for Double Q the mean of both tables' largest values, as the paper reports it."""
    if code == DOUBLE:
        return 0.5 * (survey(KERNEL, q[:1], first, count).best + survey(KERNEL, q[1:], first, count).best)
    return survey(code, q, first, count).best


@cache
def compiled_loop(code: int) -> Callable[..., Any]:
    """The loop of one algorithm: ``code`` is a constant in it, which takes the other algorithms out.

    Compiled as one function: Numba optimises what a compiled function calls anew for its caller, to its disadvantage. And
    written as one: to put something so long in the place of a call takes Numba longer than all the rest.
    """

    @njit(cache=True, error_model="numpy", nogil=True)
    def run_block(
        world: World,
        method: Method,
        watch: Watch,
        episodes: int,
        rngs: np.ndarray,
        sums: np.ndarray,
        finals: np.ndarray,
        every: np.ndarray,
        tables: np.ndarray,
    ) -> None:
        """Several runs, one after the other, added up in this order. Other threads work on other blocks meanwhile.

        Adds to ``sums`` (quantities x episodes) and ``finals``; fills ``every`` and ``tables`` unless they are empty.
        """
        pairs = world.offsets.size - 1
        width = world.width
        for run in range(rngs.shape[0]):
            rng = rngs[run]
            q = np.full((method.tables, pairs), method.initial)
            updates = np.zeros(pairs, np.int64)
            visits = np.zeros(world.terminal.size, np.int64)
            if code == KERNEL:  # process variance, omega, omega squared, and Var Q = v / n_eff
                process, omega, omega2 = (
                    np.full(pairs, method.variance),
                    np.full(pairs, method.omega),
                    np.full(pairs, method.omega_squared),
                )
                variance = process * omega2 / (omega * omega)
            if code == WEIGHTED:  # n, mean and mean square of targets, omega, standard error
                moments = np.zeros((5, pairs))
                moments[4] = 1e10
            if code == SELF_CORRECTING:
                previous, last_pair = q[0].copy(), -1
            for episode in range(episodes):
                s = np.searchsorted(world.start_cumulative, uniform(rng), side="right")
                here = survey(code, q, s * width, world.actions[s])
                total, discount, steps, bias = 0.0, 1.0, 0, 0.0
                while not world.terminal[s] and steps < method.max_steps:
                    # Choose action a from state s, epsilon-greedily.
                    visits[s] += 1
                    explores = uniform(rng) < _rate(method.epsilon, visits[s])
                    a = int(uniform(rng) * here.count) if explores else greedy(code, q, here, rng)
                    pair = here.first + a
                    # Take action a, observe reward r and next state s'.
                    k, end = world.offsets[pair], world.offsets[pair + 1]
                    if end - k > 1:
                        u = uniform(rng)
                        while world.cumulative[k] <= u:
                            k += 1
                    r, s_next = world.rewards[k], world.next_states[k]
                    if world.noise[k] > 0.0:
                        r += world.noise[k] * normal(rng)
                    there = survey(code, q, s_next * width, world.actions[s_next])
                    updates[pair] += 1
                    tau = _rate(method.rate, updates[pair])
                    # Calculate the target y, then update.
                    y, table, used = r, 0, 0
                    ends = world.terminal[s_next]
                    if code == KERNEL:
                        omega[pair] = (1.0 - tau) * omega[pair] + tau
                        omega2[pair] = (1.0 - tau) ** 2 * omega2[pair] + tau * tau
                        if not ends:
                            if s_next == s:  # then the target reads this pair too, with the new effective sample size
                                variance[pair] = process[pair] * omega2[pair] / (omega[pair] * omega[pair])
                            value, used = kernel_target(method.kernel, q[0], variance, there)
                            y += world.discount * value
                        error = y - q[0, pair]
                        process[pair] = (1.0 - tau) * (process[pair] + tau * error * error)
                        variance[pair] = process[pair] * omega2[pair] / (omega[pair] * omega[pair])
                    elif code == DOUBLE:
                        table = 1 if uniform(rng) < 0.5 else 0
                        if not ends:
                            y += world.discount * double_target(q, table, there, rng)
                    elif code == WEIGHTED:
                        if not ends:
                            y += world.discount * weighted_target(q[0], moments[4], there, method.draws, rng)
                        update_moments(moments, pair, y, tau)
                    elif code == SELF_CORRECTING:
                        if not ends:
                            y += world.discount * corrected_target(
                                q[0], previous, last_pair, method.beta, method.by_step, there
                            )
                        previous[pair], last_pair = q[0, pair], pair
                    else:
                        if code == MAXMIN and method.tables > 1:
                            table = int(uniform(rng) * method.tables)
                        if not ends:
                            y += world.discount * there.best
                    q[table, pair] += tau * (y - q[table, pair])
                    total += discount * r
                    discount *= world.discount
                    steps += 1
                    if watch.optimum.size:
                        bias += acting_value(code, q, pair) - watch.optimum[pair]
                    for w in range(watch.chosen.size):
                        if watch.chosen[w] // width == s:
                            row = 6 + 2 * (watch.pairs.size + watch.states.size) + 4 * w
                            sums[row, episode] += watch.chosen[w] == pair
                            sums[row + 1, episode] += 1.0
                            if watch.chosen[w] == pair and used > 0:
                                sums[row + 2, episode] += used
                                sums[row + 3, episode] += 1.0
                    # What was seen in s' still holds there, unless the update was in s' itself.
                    here = survey(code, q, there.first, there.count) if s_next == s else there
                    s = s_next
                record(sums, 0, episode, total)
                record(sums, 2, episode, float(steps))
                record(sums, 4, episode, bias / max(steps, 1))
                for w in range(watch.pairs.size):
                    record(sums, 6 + 2 * w, episode, acting_value(code, q, watch.pairs[w]))
                for w in range(watch.states.size):
                    first, count = watch.states[w] * width, world.actions[watch.states[w]]
                    record(sums, 6 + 2 * (watch.pairs.size + w), episode, largest(code, q, first, count))
                if every.size:
                    every[run, 0, episode] = total
                    every[run, 1, episode] = steps
            for pair in range(pairs):
                value = acting_value(code, q, pair)
                finals[0, pair] += value
                finals[1, pair] += value * value
                if tables.shape[0]:
                    tables[run, pair] = value

    return run_block
