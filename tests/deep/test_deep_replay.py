"""The replay: rows that give back what was packed, and places that are drawn evenly."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from deep_toys import QUICK, same, structure
from maxmean.deep.agents import DQN
from maxmean.deep.core import replay
from maxmean.deep.core.family import Family
from maxmean.deep.core.learning import Learning
from maxmean.deep.core.replay import RowLayout, Transition
from maxmean.deep.core.update import Update
from maxmean.deep.settings import Settings

TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float32")


@st.composite
def trees(draw: st.DrawFn) -> Any:
    """Pytrees of small arrays, with whatever bits: floats may be infinite or not a number."""

    def array(name: str, shape: tuple[int, ...]) -> np.ndarray:
        size = int(np.prod(shape)) * np.dtype(name).itemsize
        content = np.frombuffer(draw(st.binary(min_size=size, max_size=size)), np.uint8)
        return content.reshape(shape) % 2 != 0 if name == "bool" else content.view(name).reshape(shape)

    shapes = st.sampled_from([(), (1,), (3,), (2, 2), (0,)])
    leaves = st.tuples(st.sampled_from(TYPES), shapes).map(lambda leaf: array(*leaf))
    tree = draw(st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner), max_leaves=5))
    return {"tree": tree, "last": array("uint8", ())}


@settings(max_examples=20)  # each is compiled
@given(trees())
def test_a_row_gives_back_what_was_packed(tree: Any) -> None:
    layout = RowLayout.of(tree)
    row = jax.jit(layout.pack, compiler_options=QUICK)(tree)
    back = jax.jit(layout.unpack, compiler_options=QUICK)(row)
    assert row.shape == (layout.words,)
    assert row.dtype == jnp.uint32
    assert layout.words == -(-sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(tree)) // 4)
    assert structure(back) == structure(tree)
    assert all(same(x, y) for x, y in zip(jax.tree.leaves(back), jax.tree.leaves(tree), strict=True))


def test_words_hold_bytes_in_order() -> None:
    layout = RowLayout.of((jnp.uint8(0), jnp.int16(0), jnp.bool_(False), jnp.uint8(0)))
    # 1, then -2 as fe ff, then true; a second word is begun for the 7.
    row = layout.pack((jnp.uint8(1), jnp.int16(-2), jnp.bool_(True), jnp.uint8(7)))
    assert [hex(word) for word in row.tolist()] == ["0x1fffe01", "0x7"]


@pytest.mark.parametrize("wrong", [(jnp.int32(1),), (jnp.float32([1.0]),)], ids=["type", "shape"])
def test_what_does_not_fit_the_layout_is_refused(wrong: Any) -> None:
    """An integer reward would be stored as if its bits were a float's."""
    layout = RowLayout.of((jnp.float32(0),))
    with pytest.raises(TypeError, match=r"float32\[\]"):
        layout.pack(wrong)


@given(st.integers(0, 2**32 - 1), st.integers(1, 2**31 - 1))
def test_a_place_is_the_upper_half_of_the_product(word: int, n: int) -> None:
    assert int(replay.places(jnp.uint32(word), jnp.int32(n))) == word * n >> 32 < n


def test_places_at_every_edge() -> None:
    edges = sorted({e for k in (0, 8, 15, 16, 17, 24, 31, 32) for e in (2**k - 1, 2**k, 2**k + 1) if 0 <= e < 2**32})
    words = np.array(edges, np.uint64)
    for n in [e for e in edges if 1 <= e < 2**31]:
        found = replay.places(jnp.asarray(words, jnp.uint32), jnp.int32(n))
        assert found.tolist() == [int(word) * n >> 32 for word in edges]
        assert int(found.max()) == n - 1


@pytest.mark.parametrize("n", [7, 1_000, 65_537])
def test_places_are_uniform(n: int) -> None:
    """Chi-square in up to 100 cells; a uniform generator fails with probability 0.001."""
    words = jax.random.bits(jax.random.key(n), (200_000,), jnp.uint32)
    places = np.asarray(replay.places(words, jnp.int32(n)))
    assert places.min() >= 0
    assert places.max() < n
    cells = min(n, 100)
    counts = np.bincount(places * cells // n, minlength=cells)
    sizes = np.bincount(np.arange(n) * cells // n, minlength=cells)
    assert stats.chisquare(counts, 200_000 * sizes / n).pvalue > 0.001


def test_the_oldest_row_makes_room() -> None:
    memory = replay.empty(4, RowLayout.of(jnp.zeros(2, jnp.uint32)))
    assert memory.shape == (4, 2)
    for step in range(6):
        memory = replay.write(memory, jnp.int32(step), jnp.full(2, step + 10, jnp.uint32))
    assert memory[:, 0].tolist() == [14, 15, 12, 13]
    assert same(memory[:, 0], memory[:, 1])


def test_only_filled_rows_are_read_and_all_of_them() -> None:
    """Each of 5 rows is missed by 200 draws with probability 0.8^200 < 1e-19."""
    memory = jnp.arange(8, dtype=jnp.uint32)[:, None]
    words = jax.random.bits(jax.random.key(0), (200,), jnp.uint32)
    assert set(memory[replay.places(words, jnp.int32(5))][:, 0].tolist()) == {0, 1, 2, 3, 4}
    extremes = jnp.array([0, 2**32 - 1], jnp.uint32)
    assert memory[replay.places(extremes, jnp.int32(5))][:, 0].tolist() == [0, 4]
    assert memory[replay.places(extremes, jnp.int32(1))][:, 0].tolist() == [0, 0]


def test_several_rows_at_once_are_those_one_after_the_other() -> None:
    """Around the end of the replay, with some that do not count, which leave the rows as they are."""
    layout = RowLayout.of_transitions(replay.form(jnp.int32))
    learning = Learning(Update(Family.of([DQN()]), None, Settings().learning), layout)  # type: ignore[arg-type]
    counts = jnp.array([True, False, True, True, False])
    numbers, own = 5 + jnp.cumsum(counts) - counts, jnp.arange(5)
    columns = Transition(own, own, own / 2, own == 3, own + 1, own)
    forms = layout.structure.unflatten(layout.leaves)
    steps = jax.tree.map(lambda column, form: column.astype(form.dtype), columns, forms)
    before = jnp.arange(7 * layout.words, dtype=jnp.uint32).reshape(7, -1)
    after = before
    for i in range(5):
        after = learning.remember(after, numbers[i], jax.tree.map(lambda leaf, i=i: leaf[i], steps), counts[i])
    found = learning.remember_all(before, numbers, steps, counts)
    np.testing.assert_array_equal(found, after)
    assert [*np.flatnonzero((found != before).any(axis=1))] == [0, 5, 6]
