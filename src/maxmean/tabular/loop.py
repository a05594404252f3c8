# mypy: disable-error-code="arg-type,assignment"
"""The inner loop: one run of tabular Q-learning, compiled. It reads like the paper's Algorithm 1."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit, uint64
from scipy.special import ndtri

from .kernels import GAUSSIAN, CompiledKernel, kernel_value, phi
from .random import next_word, normal, uniform

Q_LEARNING, DOUBLE, WEIGHTED, SELF_CORRECTING, MAXMIN, KERNEL = range(6)


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
    """An algorithm with its schedules as plain numbers."""

    code: int
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
    return scale * ((delay + 1.0) / (delay + n)) ** power


@njit(cache=True, error_model="numpy")
def acting_value(method: Method, q: np.ndarray, pair: int) -> float:
    """The value that the agent acts on and that is reported: Q, the mean of both tables, or the smallest table."""
    if method.tables == 1:
        return q[0, pair]
    if method.code == DOUBLE:
        return 0.5 * (q[0, pair] + q[1, pair])
    value = q[0, pair]
    for k in range(1, method.tables):
        value = min(value, q[k, pair])
    return value


@njit(cache=True, error_model="numpy")
def greedy(method: Method, q: np.ndarray, first: int, count: int, rng: np.ndarray) -> int:
    """An action with the largest value; ties are broken at random."""
    best, ties, action = -math.inf, 0, 0
    for a in range(count):
        value = acting_value(method, q, first + a)
        if value > best:
            best, ties, action = value, 1, a
        elif value == best:
            ties += 1
    if ties == 1:
        return action
    skip = int(uniform(rng) * ties)
    for a in range(action, count):
        if acting_value(method, q, first + a) == best:
            if skip == 0:
                return a
            skip -= 1
    return action


@njit(cache=True, error_model="numpy")
def kernel_target(
    kernel: CompiledKernel, q: np.ndarray, variance: np.ndarray, first: int, count: int
) -> tuple[float, int]:
    """The K-estimate of the largest of ``count`` values, and how many of them count at all; as in ``mev.kernel_estimate``."""
    best, ties, tied_variance = -math.inf, 0, 0.0
    for a in range(count):
        value = q[0, first + a]
        if value > best:
            best, ties, tied_variance = value, 1, variance[first + a]
        elif value == best:
            ties += 1
            tied_variance += variance[first + a]
    if ties > 1:
        tied_variance /= ties
    total, shortfall, used = ties * kernel.top, 0.0, ties
    for a in range(count):
        gap = q[0, first + a] - best
        if gap < 0.0:
            spread = variance[first + a] + tied_variance
            if not spread > 0.0 or gap * gap >= kernel.reach * spread:
                continue  # so far below the best that it has no weight: the root is not needed
            t = gap / math.sqrt(spread)
            # The usual kernel here, where the compiler can inline it; the others behind a call.
            weight = phi(t / kernel.first) if kernel.code == GAUSSIAN else kernel_value(kernel, t)
            total += weight
            shortfall += weight * gap
            used += weight > 0.0
    return (best + shortfall / total if used > ties else best), used


_BITS = 12
_QUANTILES = ndtri((np.arange(1 << _BITS) + 0.5) / (1 << _BITS))
"""Standard normals for Weighted Q, five from one random word: probabilities are off by 1e-4, its 100 draws by 5e-2."""


@njit(cache=True, error_model="numpy")
def weighted_target(
    q: np.ndarray, moments: np.ndarray, first: int, count: int, draws: int, rng: np.ndarray, wins: np.ndarray
) -> float:
    """The mean of ``count`` values, weighted by how often each wins among ``draws`` Gaussian draws."""
    wins[:count] = 0.0
    word, left = uint64(0), 0
    for _ in range(draws):
        best, winner = -math.inf, 0
        for a in range(count):
            if left == 0:
                word, left = next_word(rng), 5
            value = q[0, first + a] + moments[4, first + a] * _QUANTILES[word & uint64((1 << _BITS) - 1)]
            word >>= uint64(_BITS)
            left -= 1
            if value > best:
                best, winner = value, a
        wins[winner] += 1.0
    total = 0.0
    for a in range(count):
        total += wins[a] * q[0, first + a]
    return total / draws


@njit(cache=True, error_model="numpy")
def run_once(
    world: World, method: Method, watch: Watch, episodes: int, rng: np.ndarray, sums: np.ndarray, every: np.ndarray
) -> np.ndarray:
    """One run. Adds to ``sums`` (quantities x episodes), fills ``every`` (2 x episodes) unless empty, returns the tables."""
    pairs = world.offsets.size - 1
    width = world.width
    q = np.full((method.tables, pairs), method.initial)
    updates = np.zeros(pairs, np.int64)
    visits = np.zeros(world.terminal.size, np.int64)
    # Process variance, omega, omega squared, and Var Q = v / n_eff.
    process, omega, omega2 = (
        np.full(pairs, method.variance),
        np.full(pairs, method.omega),
        np.full(pairs, method.omega_squared),
    )
    variance = process * omega2 / (omega * omega)
    previous = q[0].copy()
    moments = np.zeros((5, pairs))  # Weighted Q: n, mean and mean square of targets, omega, standard error
    moments[4] = 1e10
    wins = np.zeros(width)
    last_pair, last_value = -1, 0.0
    for episode in range(episodes):
        s = np.searchsorted(world.start_cumulative, uniform(rng), side="right")
        total, discount, steps, bias = 0.0, 1.0, 0, 0.0
        while not world.terminal[s] and steps < method.max_steps:
            first, count = s * width, world.actions[s]
            visits[s] += 1
            # Choose action a from state s, epsilon-greedily.
            if uniform(rng) < _rate(method.epsilon, visits[s]):
                a = int(uniform(rng) * count)
            else:
                a = greedy(method, q, first, count, rng)
            pair = first + a
            # Take action a, observe reward r and next state s'.
            k, end = world.offsets[pair], world.offsets[pair + 1]
            if end - k > 1:
                u = uniform(rng)
                while world.cumulative[k] <= u:
                    k += 1
            r, s_next = world.rewards[k], world.next_states[k]
            if world.noise[k] > 0.0:
                r += world.noise[k] * normal(rng)
            updates[pair] += 1
            tau = _rate(method.rate, updates[pair])
            first_next, count_next = s_next * width, world.actions[s_next]
            # Calculate the target y, then update.
            y, table, used = r, 0, 0
            if method.code == KERNEL:
                omega[pair] = (1.0 - tau) * omega[pair] + tau
                omega2[pair] = (1.0 - tau) ** 2 * omega2[pair] + tau * tau
                if not world.terminal[s_next]:
                    if s_next == s:  # then the target reads this pair too, with the new effective sample size
                        variance[pair] = process[pair] * omega2[pair] / (omega[pair] * omega[pair])
                    value, used = kernel_target(method.kernel, q, variance, first_next, count_next)
                    y += world.discount * value
                error = y - q[0, pair]
                process[pair] = (1.0 - tau) * (process[pair] + tau * error * error)
                variance[pair] = process[pair] * omega2[pair] / (omega[pair] * omega[pair])
            elif method.code == DOUBLE:
                table = 1 if uniform(rng) < 0.5 else 0
                if not world.terminal[s_next]:
                    y += world.discount * q[1 - table, first_next + argmax(q[table], first_next, count_next, rng)]
            elif method.code == WEIGHTED:
                if not world.terminal[s_next]:
                    y += world.discount * weighted_target(q, moments, first_next, count_next, method.draws, rng, wins)
                update_moments(moments, pair, y, tau)
            elif method.code == MAXMIN:
                if method.tables > 1:
                    table = int(uniform(rng) * method.tables)
                if not world.terminal[s_next]:
                    y += world.discount * largest(method, q, first_next, count_next)
            elif not world.terminal[s_next]:
                if method.code == SELF_CORRECTING:
                    y += world.discount * corrected(method, q, previous, last_pair, last_value, first_next, count_next)
                else:
                    y += world.discount * largest(method, q, first_next, count_next)
            last_pair, last_value = pair, q[table, pair]
            previous[pair] = q[table, pair]
            q[table, pair] += tau * (y - q[table, pair])
            total += discount * r
            discount *= world.discount
            steps += 1
            if watch.optimum.size:
                bias += acting_value(method, q, pair) - watch.optimum[pair]
            for w in range(watch.chosen.size):
                if watch.chosen[w] // width == s:
                    row = 6 + 2 * (watch.pairs.size + watch.states.size) + 4 * w
                    sums[row, episode] += watch.chosen[w] == pair
                    sums[row + 1, episode] += 1.0
                    if watch.chosen[w] == pair and used > 0:
                        sums[row + 2, episode] += used
                        sums[row + 3, episode] += 1.0
            s = s_next
        record(sums, 0, episode, total)
        record(sums, 2, episode, float(steps))
        record(sums, 4, episode, bias / max(steps, 1))
        for w in range(watch.pairs.size):
            record(sums, 6 + 2 * w, episode, acting_value(method, q, watch.pairs[w]))
        for w in range(watch.states.size):
            row = 6 + 2 * (watch.pairs.size + w)
            record(sums, row, episode, largest_each(method, q, watch.states[w] * width, world.actions[watch.states[w]]))
        if every.size:
            every[0, episode] = total
            every[1, episode] = steps
    return q


@njit(cache=True, error_model="numpy", inline="always")
def record(sums: np.ndarray, row: int, episode: int, value: float) -> None:
    sums[row, episode] += value
    sums[row + 1, episode] += value * value


@njit(cache=True, error_model="numpy")
def largest(method: Method, q: np.ndarray, first: int, count: int) -> float:
    best = acting_value(method, q, first)
    for a in range(1, count):
        best = max(best, acting_value(method, q, first + a))
    return best


@njit(cache=True, error_model="numpy")
def largest_each(method: Method, q: np.ndarray, first: int, count: int) -> float:
    """The largest value of a state; for Double Q the mean of both tables' largest values, as the paper reports it."""
    if method.code != DOUBLE:
        return largest(method, q, first, count)
    total = 0.0
    for table in range(2):
        best = q[table, first]
        for a in range(1, count):
            best = max(best, q[table, first + a])
        total += best
    return 0.5 * total


@njit(cache=True, error_model="numpy")
def argmax(values: np.ndarray, first: int, count: int, rng: np.ndarray) -> int:
    """Position of the largest value; ties are broken at random."""
    best, ties, winner = values[first], 1, 0
    for a in range(1, count):
        if values[first + a] > best:
            best, ties, winner = values[first + a], 1, a
        elif values[first + a] == best:
            ties += 1
            if uniform(rng) * ties < 1.0:
                winner = a
    return winner


@njit(cache=True, error_model="numpy")
def corrected(
    method: Method, q: np.ndarray, previous: np.ndarray, last_pair: int, last_value: float, first: int, count: int
) -> float:
    """Q of the action that maximises Q - beta (Q - Q_prev)."""
    best, winner = -math.inf, 0
    for a in range(count):
        pair = first + a
        before = previous[pair]
        if method.by_step:
            before = last_value if pair == last_pair else q[0, pair]
        value = q[0, pair] - method.beta * (q[0, pair] - before)
        if value > best or (value == best and q[0, pair] > q[0, first + winner]):
            best, winner = value, a
    return q[0, first + winner]


@njit(cache=True, error_model="numpy")
def update_moments(moments: np.ndarray, pair: int, y: float, tau: float) -> None:
    """Running moments of the targets and the standard error that Weighted Q derives from them."""
    moments[0, pair] += 1.0
    n = moments[0, pair]
    moments[1, pair] += (y - moments[1, pair]) / n
    moments[2, pair] += (y * y - moments[2, pair]) / n
    moments[3, pair] = (1.0 - tau) ** 2 * moments[3, pair] + tau * tau
    if n > 1.0:
        spread = n / (n - 1.0) * (moments[2, pair] - moments[1, pair] ** 2) * moments[3, pair]
        moments[4, pair] = math.sqrt(max(spread, 1e-10))


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
    """Several runs, one after the other, added up in this order. Other threads work on other blocks meanwhile."""
    for run in range(rngs.shape[0]):
        kept = every[run] if every.shape[0] else np.empty((0, 0))
        q = run_once(world, method, watch, episodes, rngs[run], sums, kept)
        for pair in range(q.shape[1]):
            value = acting_value(method, q, pair)
            finals[0, pair] += value
            finals[1, pair] += value * value
            if tables.shape[0]:
                tables[run, pair] = value
