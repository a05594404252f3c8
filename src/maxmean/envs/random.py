"""Random words for the games: Threefry-2x32 with 20 rounds (Salmon et al., 2011), unrolled.

JAX's own generator is the same one, but on a CPU it is compiled into a loop of small kernels that costs more than a whole step
of a game. Unrolled, it melts into the game's arithmetic. A test compares it with JAX's.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def words(key: jax.Array, n: int) -> tuple[jax.Array, ...]:
    """``n`` independent uniform uint32 words for ``key``; each is a scalar."""
    data = key_words(key)
    first, second = data[..., 0], data[..., 1]
    blocks = [threefry(first, second, jnp.uint32(i), jnp.uint32(0)) for i in range((n + 1) // 2)]
    return tuple(word for block in blocks for word in block)[:n]


def word_array(key: jax.Array, counter: jax.Array, n: int) -> jax.Array:
    """``n`` independent uniform words for ``key`` and ``counter`` (uint32) as one array [n]: a stream that needs no state."""
    data = key_words(key)
    half = (n + 1) // 2
    block = threefry(data[0], data[1], jnp.arange(half, dtype=jnp.uint32), jnp.asarray(counter, jnp.uint32))
    return jnp.concatenate(block)[:n]


def key_words(key: jax.Array) -> jax.Array:
    """The uint32 words of a key, be it typed (``jax.random.key``) or raw (``jax.random.PRNGKey``)."""
    return key if key.dtype == jnp.uint32 else jax.random.key_data(key)


def threefry(k0: jax.Array, k1: jax.Array, x0: jax.Array, x1: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One block: the counter (x0, x1) encrypted with the key (k0, k1)."""
    keys = (k0, k1, k0 ^ k1 ^ jnp.uint32(_PARITY))
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = (x1 << rotation) | (x1 >> (32 - rotation))
            x1 = x1 ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + jnp.uint32(group + 1)
    return x0, x1


def chance(word: jax.Array, probability: float) -> jax.Array:
    """True with ``probability``, to 2^-32."""
    if probability >= 1.0:
        return jnp.ones_like(word, dtype=bool)
    return word < jnp.uint32(min(round(probability * 2.0**32), 2**32 - 1))


def below(word: jax.Array, n: int | jax.Array) -> jax.Array:
    """A uniform integer from 0 to n - 1 (int32), for n up to 1,000: its probabilities are right to n / 2^16 of themselves."""
    return ((word >> 16) * jnp.asarray(n, jnp.uint32) >> 16).astype(jnp.int32)


def coin(word: jax.Array, bit: int) -> jax.Array:
    """One bit of a word as a fair coin."""
    return (word >> bit) & 1 != 0
