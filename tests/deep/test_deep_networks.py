"""Networks against PyTorch's layers, and against themselves: all members at once, and one at a time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from deep_toys import QUICK, SMALL, holding, program_of, random_weights, same
from maxmean.deep.agent import Agent
from maxmean.deep.agents import BDQN, MaxMinDQN
from maxmean.deep.networks import Convolution, Dense, Ensemble, Perceptron, Weights

SHAPE = (5, 4, 2)
SEEN = np.random.default_rng(0).random((20, *SHAPE)) < 0.5
KEY = jnp.zeros(2, jnp.uint32)


@partial(jax.jit, static_argnums=0, compiler_options=QUICK)
def values(net: Ensemble, weights: Weights, seen: jax.Array) -> jax.Array:
    return net.values(weights, seen)


def network(members: int, *, shared: bool, shape: tuple[int, ...] = SHAPE) -> Ensemble:
    return Ensemble(Convolution(3) if len(shape) == 3 else Perceptron((6,)), shape, 4, members, shared, hidden=8)


def test_the_convolution_is_pytorchs() -> None:
    rng = np.random.default_rng(0)
    filters, bias = rng.normal(size=(3, 3, 3, 2)).astype(np.float32), rng.normal(size=3).astype(np.float32)
    # Ours has the places of a filter first and its channels last, PyTorch's the channels first.
    layer = Dense(jnp.asarray(filters.reshape(3, -1)), jnp.asarray(bias))
    ours = jax.jit(Convolution(3).apply)(layer, jnp.asarray(SEEN))
    images = torch.as_tensor(SEEN.transpose(0, 3, 1, 2), dtype=torch.float32)
    theirs = torch.relu(
        torch.nn.functional.conv2d(images, torch.as_tensor(filters.transpose(0, 3, 1, 2)), torch.as_tensor(bias))
    )
    assert ours.shape == (20, Convolution(3).features(SHAPE)) == (20, 3 * 2 * 3)
    np.testing.assert_allclose(ours.reshape(20, 3, 2, 3), theirs.permute(0, 2, 3, 1).numpy(), rtol=1e-5, atol=1e-6)


def test_layers_start_uniformly_within_one_over_the_root_of_their_inputs() -> None:
    weights = jax.jit(Ensemble(Convolution(16), (10, 10, 4), 6, 3, hidden=16).create, compiler_options=QUICK)(
        jax.random.key(0)
    )
    for layer, inputs in ((weights.trunk, 36), (weights.hidden, 1024), (weights.output, 16)):
        for leaf in layer:
            assert np.abs(leaf).max() <= inputs**-0.5
    hidden = np.abs(weights.hidden.weights)
    assert hidden.max() > 0.99 / 32
    # The mean size is half the bound; that of 49,152 weights is further than five standard errors off once in a million times.
    assert abs(hidden.mean() * 32 - 0.5) < 5 * 12**-0.5 * hidden.size**-0.5
    assert len(np.unique(hidden)) > 0.9 * hidden.size


@pytest.mark.parametrize("shared", [True, False], ids=["heads", "networks"])
def test_one_member_alone_values_as_it_does_among_all(shared: bool) -> None:
    net = network(3, shared=shared)

    @partial(jax.jit, compiler_options=QUICK)
    def ways(weights: Weights, seen: jax.Array) -> list[jax.Array]:
        among = jnp.stack([net.values(weights, seen[m])[:, m] for m in range(3)])
        alone = jnp.stack([net.member_values(weights, seen[m], jnp.int32(m)) for m in range(3)])
        return [among, alone, net.own_values(weights, seen)]

    among, alone, own = ways(random_weights(net, 1), SEEN[:18].reshape(3, 6, *SHAPE))
    assert among.shape == alone.shape == own.shape == (3, 6, 4)
    np.testing.assert_allclose(alone, among, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(own, among, rtol=1e-5, atol=1e-6)


def test_heads_share_their_trunk_and_networks_share_nothing() -> None:
    heads = jax.eval_shape(network(3, shared=True).create, KEY)
    assert heads.trunk.weights.shape == (3, 18)
    assert heads.hidden.weights.shape == (3 * 8, 18)

    net = network(3, shared=False)
    weights = random_weights(net, 3)
    assert weights.trunk.weights.shape == (3, 3, 18)
    quarter = np.array([0.0, 0.25, 0.0], np.float32)
    before = values(net, weights, SEEN)
    after = values(net, jax.tree.map(lambda leaf: leaf + quarter.reshape(3, *(1,) * (leaf.ndim - 1)), weights), SEEN)
    assert same(before[:, 0], after[:, 0])
    assert same(before[:, 2], after[:, 2])
    assert not np.allclose(before[:, 1], after[:, 1])


def test_one_network_is_the_same_shared_or_not() -> None:
    shared, separate = network(1, shared=True), network(1, shared=False)
    weights = random_weights(shared, 4)
    assert jax.eval_shape(shared.create, KEY) == jax.eval_shape(separate.create, KEY)
    assert same(values(shared, weights, SEEN), values(separate, weights, SEEN))


def test_a_perceptron_is_its_layers_one_after_the_other() -> None:
    trunk = Perceptron((3, 2))
    assert trunk.features((2, 2)) == 2
    shapes = jax.eval_shape(partial(trunk.create, shape=(2, 2)), KEY)
    assert [layer.weights.shape for layer in shapes] == [(3, 4), (2, 3)]
    rng = np.random.default_rng(5)
    parameters = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape), jnp.float32), shapes)
    x = np.array([[1.0, -2.0, 3.0, 0.5]], np.float32)
    expected = x
    for layer in parameters:
        expected = np.maximum(expected @ np.asarray(layer.weights).T + np.asarray(layer.bias), 0.0)
    found = jax.jit(trunk.apply)(parameters, jnp.asarray(x.reshape(1, 2, 2)))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert same(Perceptron(()).apply((), jnp.asarray(x)), x)


@pytest.mark.parametrize("agent", [BDQN(2), MaxMinDQN(2)], ids=lambda agent: agent.name)
def test_a_network_can_hold_any_table_exactly(agent: Agent) -> None:
    """The other tests rely on it for values that are known to the last bit."""
    program = program_of(agent, settings=replace(SMALL, hidden=5), trunk=Perceptron(()))
    tables = np.random.default_rng(6).normal(size=(2, 5, 3)).astype(np.float32)
    found = values(program.network, holding(program, tables), np.eye(5, dtype=np.float32))
    assert same(found, tables.transpose(1, 0, 2))
