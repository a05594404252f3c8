"""The kernel for a GPU, interpreted on a CPU, computes what the usual way computes."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from deep_toys import random_weights
from maxmean import envs
from maxmean.deep.agent import Agent
from maxmean.deep.agents import BDQN, DQN, KEBDQN, MaxMinDQN
from maxmean.deep.core import fused
from maxmean.deep.core.family import Family
from maxmean.deep.core.optimizers import Corrections
from maxmean.deep.core.update import Batch, Update
from maxmean.deep.networks import Convolution, Ensemble
from maxmean.deep.settings import Settings

RATE, FIRST, SECOND = 0.01, 1.7, 2.5


def arguments(rng: np.random.Generator, rows: int, columns: int, batch: int) -> list[np.ndarray]:
    """W, m, v, outer and inputs in double precision."""
    w, m = rng.normal(size=(2, rows, columns))
    return [w, m, rng.random((rows, columns)), rng.normal(size=(rows, batch)), rng.normal(size=(batch, columns))]


def by_hand(w: np.ndarray, m: np.ndarray, v: np.ndarray, outer: np.ndarray, inputs: np.ndarray) -> list[np.ndarray]:
    """Adam's formula in NumPy, and what goes back."""
    g = outer @ inputs
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
    return [w - RATE * FIRST * m / (SECOND * np.sqrt(v) + 1e-8), m, v, outer.T @ w]


def by_kernel(w: jax.Array, m: jax.Array, v: jax.Array, outer: jax.Array, inputs: jax.Array) -> list[jax.Array]:
    corrections = Corrections(jnp.float32(FIRST), jnp.float32(SECOND))
    matrix, back = fused.adam_step(fused.Matrix(w, m, v), outer, inputs, jnp.float32(RATE), corrections)
    return [*matrix, back]


@pytest.mark.parametrize(
    ("rows", "columns", "batch"),
    [
        pytest.param(32, 64, 16, id="one tile", marks=pytest.mark.slow),
        pytest.param(96, 64, 32, id="tiles below each other", marks=pytest.mark.slow),
        pytest.param(32, 192, 32, id="side by side", marks=pytest.mark.slow),
        pytest.param(768, 128, 16, id="both"),
    ],
)
def test_a_step_is_adams(rows: int, columns: int, batch: int) -> None:
    """Against the formula in double precision; relative to the largest entry, single precision errs below 1e-5."""
    each = arguments(np.random.default_rng(0), rows, columns, batch)
    found = by_kernel(*(jnp.asarray(a, jnp.float32) for a in each))
    for ours, theirs in zip(found, by_hand(*each), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * np.abs(theirs).max())


def test_many_runs_at_once_are_each_alone() -> None:
    rng = np.random.default_rng(1)
    runs = [arguments(rng, 128, 64, 16) for _ in range(3)]
    together = jax.vmap(by_kernel)(*(jnp.asarray(a, jnp.float32) for a in map(np.stack, zip(*runs, strict=True))))
    for i, each in enumerate(runs):
        for ours, theirs in zip(together, by_hand(*each), strict=True):
            np.testing.assert_allclose(ours[i], theirs, rtol=0, atol=1e-5 * np.abs(theirs).max())


@pytest.mark.parametrize(
    ("rows", "columns", "batch", "answer"),
    [
        (1280, 1024, 32, True),
        (128, 1024, 16, True),
        (1280, 1024, 8, False),
        (1280, 1024, 24, False),
        (1280, 1000, 32, False),
        (100, 1024, 32, False),
        (16, 1024, 32, False),
    ],
)
def test_what_can_be_cut_into_tiles(rows: int, columns: int, batch: int, answer: bool) -> None:
    assert fused.fits(rows, columns, batch) is answer


def test_a_cpu_has_no_such_kernels() -> None:
    assert jax.default_backend() != "cpu" or not fused.available(32)


def update_of(agent: Agent, **changes: object) -> Update:
    """The update of an agent on Breakout, with a small hidden layer that can be cut into tiles."""
    settings = Settings(**{"hidden": 64, "batch_size": 16, **changes})  # type: ignore[arg-type]
    family = Family.of([agent])
    network = family.network(Convolution(), (10, 10, 4), 6, settings.hidden)
    return Update(family, network, settings.learning)


def some_batch(rng: np.random.Generator, size: int, members: int) -> Batch:
    seen = rng.random((2, size, 10, 10, 4)) < 0.1
    return Batch(
        jnp.asarray(seen[0]),
        jnp.asarray(rng.integers(6, size=size)),
        jnp.asarray(rng.normal(size=size), jnp.float32),
        jnp.asarray(0.99 * (rng.random(size) < 0.9), jnp.float32),
        jnp.asarray(seen[1]),
        jnp.asarray(rng.random((size, members)) < 0.7),
    )


@pytest.fixture
def with_kernels(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    def change(there: bool) -> None:
        monkeypatch.setattr(fused, "available", lambda batch: there)

    return change


@pytest.mark.parametrize(
    ("agent", "changes", "size"),
    [
        pytest.param(DQN(), {}, 2e-6, id="dqn", marks=pytest.mark.slow),
        pytest.param(BDQN(3), {}, 2e-6, id="bdqn, which looks at the learning network too"),
        pytest.param(KEBDQN(k=3, prior=1.0), {"loss": "huber"}, 2e-6, id="ke-bdqn with a prior and huber"),
        pytest.param(KEBDQN(k=3, layer_norm=True), {}, 5e-4, id="ke-bdqn with layer norm", marks=pytest.mark.slow),
    ],
)
def test_an_update_with_kernels_is_one_without(
    agent: Agent, changes: dict[str, object], size: float, with_kernels: Callable[[bool], None]
) -> None:
    """Three updates, each way: weights, moments, losses. Rounding, made larger by Adam's root, stays below 2e-6.

    With layer norm some gradients are zero but for rounding, which Adam makes steps of: each may be 1e-3 long.
    """
    update, rng = update_of(agent, **changes), np.random.default_rng(2)
    start = update.begin(update.network.create(jax.random.key(0)))
    start = start._replace(target=random_weights(update.network, 1))
    batches = [some_batch(rng, update.settings.batch_size, agent.members) for _ in range(3)]
    ends = []
    for there in (True, False):
        with_kernels(there)
        assert update.one_kernel is there
        step, learner, losses = jax.jit(lambda *each: update(*each)), start, None
        for batch in batches:
            learner, losses = step(learner, batch, update.family.traits(agent, 1e-3), jnp.uint32(0))
        ends.append((learner, losses))
    for ours, theirs in zip(*map(jax.tree.leaves, ends), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=size)
    moved = jax.tree.map(lambda a, b: bool(jnp.any(a != b)), start.weights.learned, ends[0][0].weights.learned)
    assert all(jax.tree.leaves(moved))


@pytest.mark.parametrize(
    ("agent", "changes"),
    [(DQN(), {"optimizer": "rmsprop"}), (DQN(), {"batch_size": 24}), (DQN(), {"hidden": 50}), (MaxMinDQN(2), {})],
    ids=["rmsprop", "batch", "hidden", "whole networks"],
)
def test_what_does_not_fit_goes_the_usual_way(
    agent: Agent, changes: dict[str, object], with_kernels: Callable[[bool], None]
) -> None:
    with_kernels(True)
    assert not update_of(agent, **changes).one_kernel


def test_the_study_would_use_it(with_kernels: Callable[[bool], None]) -> None:
    """The paper's settings on each of its games."""
    with_kernels(True)
    for game in ("asterix", "breakout", "freeway", "seaquest", "space_invaders"):
        seen = envs.make(f"minatar/{game}").observation
        family = Family.of([KEBDQN()])
        network = Ensemble(Convolution(), seen.shape, 6, family.members, family.shared)
        assert Update(family, network, Settings().learning).one_kernel
