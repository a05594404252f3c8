"""The games' random words: the generator is JAX's, and what is made of the words has the right chances."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry_2x32

from maxmean.envs.random import below, chance, coin, words

HALVES = jnp.arange(2**16, dtype=jnp.uint32) << 16
"""A word for each value of the upper half, all that ``below`` looks at."""


@pytest.mark.parametrize("n", [1, 4, 7])
def test_words_are_threefry_blocks(n: int) -> None:
    keys = jax.random.bits(jax.random.key(1), (200, 2), jnp.uint32)
    keys = jnp.concatenate([keys, jnp.array([[0, 0], [2**32 - 1, 2**32 - 1]], jnp.uint32)])
    got = jnp.stack(jax.jit(jax.vmap(lambda key: words(key, n)))(keys), axis=-1)
    blocks = (n + 1) // 2
    # JAX encrypts an array of counters whose first half holds the first words and whose second half holds the second.
    counters = jnp.concatenate([jnp.arange(blocks, dtype=jnp.uint32), jnp.zeros(blocks, jnp.uint32)])
    jaxs = jax.vmap(lambda key: threefry_2x32(key, counters).reshape(2, blocks).T.reshape(-1)[:n])(keys)
    np.testing.assert_array_equal(got, jaxs)


def test_words_of_the_published_example() -> None:
    """Threefry-2x32-20's known answers for zeros (Salmon et al., 2011, file kat_vectors of Random123)."""
    assert [int(word) for word in words(jnp.zeros(2, jnp.uint32), 2)] == [0x6B200159, 0x99BA4EFE]


def test_typed_and_raw_keys_give_the_same_words() -> None:
    for seed in range(5):
        raw = words(jax.random.PRNGKey(seed), 5)
        assert [int(w) for w in words(jax.random.key(seed), 5)] == [int(w) for w in raw]


def test_no_words_are_asked_for() -> None:
    assert words(jax.random.key(0), 0) == ()


@pytest.mark.parametrize("probability", [0.1, 1 / 3, 0.5, 0.999])
def test_chance_splits_the_words_at_the_probability(probability: float) -> None:
    edge = round(probability * 2**32)
    around = jnp.array([0, edge - 1, edge, 2**32 - 1], jnp.uint32)
    assert chance(around, probability).tolist() == [True, True, False, False]


def test_chance_is_certain_at_its_ends() -> None:
    ends = jnp.array([0, 2**31, 2**32 - 1], jnp.uint32)
    assert not chance(ends, 0.0).any()
    assert chance(ends, 1.0).all()


@pytest.mark.parametrize("n", [1, 2, 5, 8, 840, 1_000])
def test_below_is_even(n: int) -> None:
    """Counted over all words: no value differs from its share by a whole word in 2^16."""
    count = np.bincount(np.asarray(below(HALVES, n)), minlength=n)
    assert len(count) == n
    assert np.all(np.abs(count - 2**16 / n) < 1)


@pytest.mark.parametrize("lanes", range(1, 9))
def test_asterix_lanes_are_even(lanes: int) -> None:
    """Of 840 numbers modulo the number of empty lanes, each lane gets its share to 0.1 per cent."""
    count = np.bincount(np.asarray(below(HALVES, 840)) % lanes, minlength=lanes)
    np.testing.assert_allclose(count, 2**16 / lanes, rtol=1e-3)


@pytest.mark.parametrize("bit", [0, 7, 31])
def test_coin_is_one_bit(bit: int) -> None:
    assert bool(coin(jnp.uint32(1 << bit), bit))
    assert not bool(coin(jnp.uint32(~(1 << bit) & 0xFFFFFFFF), bit))
