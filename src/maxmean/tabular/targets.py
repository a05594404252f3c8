# mypy: disable-error-code="arg-type,assignment"
"""What the agent sees in a state, and the value that each algorithm puts for it in its targets; compiled.

Functions that the loop calls in every step are put in its place (``inline="always"``): called, they cost a quarter of its speed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit, uint64
from scipy.special import ndtri

from .kernels import GAUSSIAN, CompiledKernel, kernel_value, phi
from .random import after, uniform

MAXIMUM, DOUBLE, WEIGHTED, SELF_CORRECTING, MAXMIN, KERNEL = range(6)


class Seen(NamedTuple):
    """A state, and the largest of the values that the agent acts on there."""

    first: int
    """Its first pair."""
    count: int
    """How many actions it has."""
    best: float
    ties: int
    """How many actions have the largest value."""
    action: int
    """The first of them."""


@njit(cache=True, error_model="numpy", inline="always")
def acting_value(code: int, q: np.ndarray, pair: int) -> float:
    """The value that the agent acts on and that is reported: Q, the mean of both tables, or the smallest table."""
    value = q[0, pair]
    if code == DOUBLE:
        value = 0.5 * (value + q[1, pair])
    elif code == MAXMIN:
        for k in range(1, q.shape[0]):
            value = min(value, q[k, pair])
    return value


@njit(cache=True, error_model="numpy", inline="always")
def survey(code: int, q: np.ndarray, first: int, count: int) -> Seen:
    """The state whose first pair is ``first``, as the agent sees it."""
    best, ties, action = acting_value(code, q, first), 1, 0
    for a in range(1, count):
        value = acting_value(code, q, first + a)
        if value > best:
            best, ties, action = value, 1, a
        elif value == best:
            ties += 1
    return Seen(first, count, best, ties, action)


@njit(cache=True, error_model="numpy", inline="always")
def greedy(code: int, q: np.ndarray, seen: Seen, rng: np.ndarray) -> int:
    """An action with the largest value; ties are broken at random."""
    a = seen.action
    if seen.ties > 1:
        skip = int(uniform(rng) * seen.ties)
        while skip > 0:
            a += 1
            if acting_value(code, q, seen.first + a) == seen.best:
                skip -= 1
    return a


@njit(cache=True, error_model="numpy", inline="always")
def kernel_target(kernel: CompiledKernel, q: np.ndarray, variance: np.ndarray, seen: Seen) -> tuple[float, int]:
    """The K-estimate of the largest value, and how many values count at all; as in ``mev.kernel_estimate``."""
    first, count, best, ties = seen.first, seen.count, seen.best, seen.ties
    tied_variance = variance[first + seen.action]
    if ties > 1:
        for a in range(seen.action + 1, count):
            if q[first + a] == best:
                tied_variance += variance[first + a]
        tied_variance /= ties
    total, shortfall, used = ties * kernel.top, 0.0, ties
    for a in range(count):
        gap = q[first + a] - best
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


@njit(cache=True, error_model="numpy", inline="always")
def double_target(q: np.ndarray, table: int, seen: Seen, rng: np.ndarray) -> float:
    """What the other table says of the action that is best in this one; ties are broken at random."""
    best, ties, winner = q[table, seen.first], 1, 0
    for a in range(1, seen.count):
        value = q[table, seen.first + a]
        if value > best:
            best, ties, winner = value, 1, a
        elif value == best:
            ties += 1
            if uniform(rng) * ties < 1.0:
                winner = a
    return q[1 - table, seen.first + winner]


@njit(cache=True, error_model="numpy", inline="always")
def corrected_target(
    q: np.ndarray, previous: np.ndarray, last_pair: int, beta: float, by_step: bool, seen: Seen
) -> float:
    """Q of the action that maximises Q - beta (Q - Q_prev)."""
    best, winner = -math.inf, 0
    for a in range(seen.count):
        pair = seen.first + a
        before = previous[pair]
        if by_step and pair != last_pair:
            before = q[pair]
        value = q[pair] - beta * (q[pair] - before)
        if value > best or (value == best and q[pair] > q[seen.first + winner]):
            best, winner = value, a
    return q[seen.first + winner]


_BITS = 12
_QUANTILES = ndtri((np.arange(1 << _BITS) + 0.5) / (1 << _BITS))
"""Standard normals for Weighted Q, five from one random word: probabilities are off by 1e-4, its 100 draws by 5e-2."""


_PLACES = 2.0 ** (13 * np.arange(4))
"""Worth of a win to each of four options: a sum of fewer than 8,192 of them is exact, and says how often each has won."""


@njit(cache=True, error_model="numpy")
def weighted_target(q: np.ndarray, errors: np.ndarray, seen: Seen, draws: int, rng: np.ndarray) -> float:
    """The mean of the values, weighted by how often each wins among ``draws`` Gaussian draws."""
    first, count = seen.first, seen.count
    if count == 4 and draws < 8192:  # as on every grid: the compiler unrolls a contest of four, twice as fast
        tally = int(_contest(q, errors, first, 4, draws, rng, _PLACES))
        total = 0.0
        for a in range(4):
            total += float((tally >> (13 * a)) & 8191) * q[first + a]
    else:
        total = _contest(q, errors, first, count, draws, rng, q[first : first + count])
    return total / draws


@njit(cache=True, error_model="numpy", inline="always")
def _contest(
    q: np.ndarray, errors: np.ndarray, first: int, count: int, draws: int, rng: np.ndarray, prizes: np.ndarray
) -> float:
    """The sum of the winners' prizes. To carry the prize, and not the index, of the leader needs no branch to be guessed."""
    total, word, left = 0.0, uint64(0), 0
    state = rng[0], rng[1], rng[2], rng[3]  # in registers: by way of memory it takes a quarter longer
    for _ in range(draws):
        best, prize = -math.inf, 0.0
        for a in range(count):
            if left == 0:
                word, state = after(state)
                left = 5
            value = q[first + a] + errors[first + a] * _QUANTILES[word & uint64((1 << _BITS) - 1)]
            word >>= uint64(_BITS)
            left -= 1
            prize = prizes[a] if value > best else prize
            best = value if value > best else best
        total += prize
    rng[0], rng[1], rng[2], rng[3] = state
    return total


@njit(cache=True, error_model="numpy", inline="always")
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
