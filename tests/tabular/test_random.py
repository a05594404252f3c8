"""The generator, its streams, and the uniforms and normals made from it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from numba import njit
from scipy import stats

from maxmean.tabular.random import next_word, normal, streams, uniform

MASK = (1 << 64) - 1
LEVEL = 1e-6  # error probability of every statistical test here; seeds are fixed
EDGE = 3.6541528853610088  # where the ziggurat's tail begins


def plain_splitmix64(state: int) -> Iterator[int]:
    """SplitMix64 from its definition, on Python's own integers."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def plain_xoshiro256pp(words: list[int]) -> Iterator[int]:
    """xoshiro256++ from its definition, on Python's own integers."""
    s = list(words)

    def rotated(x: int, k: int) -> int:
        return ((x << k) | (x >> (64 - k))) & MASK

    while True:
        yield (rotated((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotated(s[3], 45)


@njit
def many_words(state: np.ndarray, count: int) -> np.ndarray:
    out = np.empty(count, np.uint64)
    for i in range(count):
        out[i] = next_word(state)
    return out


@njit
def many_uniforms(state: np.ndarray, count: int) -> np.ndarray:
    out = np.empty(count)
    for i in range(count):
        out[i] = uniform(state)
    return out


@njit
def many_normals(state: np.ndarray, count: int) -> np.ndarray:
    out = np.empty(count)
    for i in range(count):
        out[i] = normal(state)
    return out


@pytest.fixture(scope="module")
def uniforms() -> np.ndarray:
    return many_uniforms(streams(20, 1)[0], 2_000_000)


@pytest.fixture(scope="module")
def normals() -> np.ndarray:
    return many_normals(streams(21, 1)[0], 8_000_000)


def test_splitmix64_by_known_words() -> None:
    """The plain version gives the words that are published for the seed 1234567."""
    words = plain_splitmix64(1234567)
    assert [next(words) for _ in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_xoshiro_by_known_words() -> None:
    """The plain version gives the words that are published for the state 1, 2, 3, 4."""
    words = plain_xoshiro256pp([1, 2, 3, 4])
    assert [next(words) for _ in range(4)] == [41943041, 58720359, 3588806011781223, 3591011842654386]


@pytest.mark.parametrize("state", [[1, 2, 3, 4], [MASK, MASK - 1, 1 << 63, 5]])
def test_words_are_those_of_the_definition(state: list[int]) -> None:
    ours = many_words(np.array(state, dtype=np.uint64), 10_000)
    theirs = plain_xoshiro256pp(state)
    assert ours.tolist() == [next(theirs) for _ in range(10_000)]


def test_words_of_a_seeded_stream_are_those_of_the_definition() -> None:
    state = streams(7, 3)[2]
    theirs = plain_xoshiro256pp(state.tolist())
    assert many_words(state, 10_000).tolist() == [next(theirs) for _ in range(10_000)]


@pytest.mark.parametrize("seed", [0, 1, 2**40])
def test_streams_are_consecutive_words_of_splitmix64(seed: int) -> None:
    words = plain_splitmix64(int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]))
    assert streams(seed, 50).ravel().tolist() == [next(words) for _ in range(200)]


def test_a_stream_depends_on_the_seed_and_the_run_alone() -> None:
    many = streams(3, 1000)
    assert many.dtype == np.uint64
    np.testing.assert_array_equal(streams(3, 10, first=500), many[500:510])
    np.testing.assert_array_equal(streams(3, 1, first=999), many[999:])
    np.testing.assert_array_equal(streams(3, 5), many[:5])


def test_streams_differ_between_runs_and_seeds() -> None:
    states = np.concatenate([streams(seed, 5000) for seed in range(4)])
    assert len(np.unique(states, axis=0)) == 20_000
    first = {int(many_words(state, 1)[0]) for state in states[:2000]}
    assert len(first) == 2000


def test_streams_of_neighbouring_runs_are_uncorrelated() -> None:
    """The first uniforms of 20,000 runs, and those of the next runs: under independence sqrt(n) r is nearly N(0, 1)."""
    first = np.array([many_uniforms(state, 1)[0] for state in streams(5, 20_000)])
    assert stats.kstest(first, "uniform").pvalue > LEVEL
    r = np.corrcoef(first[:-1], first[1:])[0, 1]
    assert abs(r) * math.sqrt(len(first)) < stats.norm.isf(LEVEL / 2)


def test_a_uniform_is_the_upper_53_bits() -> None:
    words = many_words(streams(1, 1)[0], 1000)
    np.testing.assert_array_equal(many_uniforms(streams(1, 1)[0], 1000), [(int(w) >> 11) / 2**53 for w in words])


def test_uniforms(uniforms: np.ndarray) -> None:
    """Range, moments and the Kolmogorov-Smirnov distance, each at level 1e-6."""
    assert uniforms.min() >= 0
    assert uniforms.max() < 1
    z = stats.norm.isf(LEVEL / 2)
    for power in range(1, 5):
        variance = 1 / (2 * power + 1) - 1 / (power + 1) ** 2
        assert abs(np.mean(uniforms**power) - 1 / (power + 1)) < z * math.sqrt(variance / len(uniforms))
    assert stats.kstest(uniforms, "uniform").pvalue > LEVEL


@pytest.mark.parametrize("lag", [1, 2, 3, 7])
def test_uniforms_are_serially_uncorrelated(uniforms: np.ndarray, lag: int) -> None:
    r = np.corrcoef(uniforms[:-lag], uniforms[lag:])[0, 1]
    assert abs(r) * math.sqrt(len(uniforms)) < stats.norm.isf(LEVEL / 2)


def test_moments_of_normals(normals: np.ndarray) -> None:
    """The first eight moments, each at level 1e-6: E Z^k = (k - 1)!! for even k, else 0."""
    z, powers = stats.norm.isf(LEVEL / 2), np.ones_like(normals)
    for power in range(1, 9):
        powers *= normals
        exact, square = stats.norm.moment(power), stats.norm.moment(2 * power)
        assert abs(powers.mean() - exact) < z * math.sqrt((square - exact**2) / len(normals))


def test_distribution_of_normals(normals: np.ndarray) -> None:
    assert stats.kstest(normals[:2_000_000], "norm").pvalue > LEVEL


def test_normals_fill_every_layer_evenly(normals: np.ndarray) -> None:
    """Chi-square over 2000 cells of equal probability: a wrong layer or wedge would stand out in a few of them."""
    counts = np.bincount((stats.norm.cdf(normals) * 2000).astype(int), minlength=2000)
    assert stats.chisquare(counts).pvalue > LEVEL


@pytest.mark.parametrize("edge", [EDGE, 4.0, 4.5])
def test_tails_of_normals(normals: np.ndarray, edge: float) -> None:
    """How often each side lies beyond the point where the ziggurat's tail begins, and farther out: binomial, level 1e-6."""
    for beyond in (normals > edge, normals < -edge):
        test = stats.binomtest(int(beyond.sum()), len(normals), stats.norm.sf(edge))
        assert test.pvalue > LEVEL


def test_shape_of_the_tail(normals: np.ndarray) -> None:
    tail = np.abs(normals[np.abs(normals) > EDGE])
    assert len(tail) > 1500  # about 2066 expected
    assert stats.kstest(stats.norm.sf(tail) / stats.norm.sf(EDGE), "uniform").pvalue > LEVEL


def test_normals_are_serially_uncorrelated(normals: np.ndarray) -> None:
    """Also their squares: a value's sign and size come from bits of the same word."""
    z = stats.norm.isf(LEVEL / 2)
    for series in (normals, normals**2, np.abs(normals)):
        assert abs(np.corrcoef(series[:-1], series[1:])[0, 1]) * math.sqrt(len(series)) < z
    assert abs(np.corrcoef(np.sign(normals), np.abs(normals))[0, 1]) * math.sqrt(len(normals)) < z
