"""Random numbers inside compiled loops: xoshiro256++ (Blackman and Vigna, 2021), one stream a run.

The state is four 64-bit words in an array. A run's numbers depend on the seed and on the run's own number alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, uint64

_TO_UNIT = 1.0 / (1 << 53)


def streams(seed: int, runs: int, first: int = 0) -> np.ndarray:
    """Initial states of the generators of runs ``first`` to ``first + runs - 1``, shape ``(runs, 4)``.

    Four consecutive words of SplitMix64 for each run, as the authors of xoshiro recommend; the seed says where it begins.
    """
    begin = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is the point
        z = begin + np.uint64(0x9E3779B97F4A7C15) * np.arange(4 * first + 1, 4 * (first + runs) + 1, dtype=np.uint64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return (z ^ (z >> np.uint64(31))).reshape(runs, 4)


State = tuple[Any, Any, Any, Any]


@njit(cache=True, error_model="numpy", inline="always")
def after(state: State) -> tuple[Any, State]:
    """The next 64 random bits, and the state after them."""
    s0, s1, s2, s3 = state
    total = s0 + s3
    word = ((total << uint64(23)) | (total >> uint64(41))) + s0
    s2 ^= s0
    s3 ^= s1
    return word, (s0 ^ s3, s1 ^ s2, s2 ^ (s1 << uint64(17)), (s3 << uint64(45)) | (s3 >> uint64(19)))


@njit(cache=True, error_model="numpy", inline="always")
def next_word(state: np.ndarray) -> int:
    """The next 64 random bits; the state moves on."""
    word, (state[0], state[1], state[2], state[3]) = after((state[0], state[1], state[2], state[3]))
    return word


@njit(cache=True, error_model="numpy", inline="always")
def uniform(state: np.ndarray) -> float:
    """A uniform on [0, 1) with 53 random bits."""
    return (next_word(state) >> uint64(11)) * _TO_UNIT


_LAYERS = 256
_EDGE = 3.6541528853610088  # where the tail of the ziggurat of 256 layers begins (Marsaglia and Tsang, 2000)


def _ziggurat() -> tuple[np.ndarray, np.ndarray]:
    """Right edges x and heights f(x) of layers of equal area under exp(-x²/2)."""
    tail = math.sqrt(math.pi / 2) * math.erfc(_EDGE / math.sqrt(2))
    area = _EDGE * math.exp(-0.5 * _EDGE**2) + tail
    edges = np.zeros(_LAYERS + 1)
    edges[0] = area / math.exp(-0.5 * _EDGE**2)
    edges[1] = _EDGE
    for k in range(2, _LAYERS):
        edges[k] = math.sqrt(-2 * math.log(area / edges[k - 1] + math.exp(-0.5 * edges[k - 1] ** 2)))
    return edges, np.exp(-0.5 * edges**2)


_X, _F = _ziggurat()


@njit(cache=True, error_model="numpy")
def normal(state: np.ndarray) -> float:
    """A standard normal by the ziggurat method: one word in 99% of the cases."""
    while True:
        word = next_word(state)
        layer = word & uint64(_LAYERS - 1)
        sign = 1.0 if word & uint64(256) else -1.0
        x = (word >> uint64(11)) * _TO_UNIT * _X[layer]
        if x < _X[layer + uint64(1)]:
            return sign * x
        if layer == 0:
            while True:
                x = -math.log(1.0 - uniform(state)) / _EDGE
                y = -math.log(1.0 - uniform(state))
                if y + y > x * x:
                    return sign * (_EDGE + x)
        if _F[layer] + uniform(state) * (_F[layer + uint64(1)] - _F[layer]) < math.exp(-0.5 * x * x):
            return sign * x
