"""Our Adam is Adam."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from maxmean.deep.core.optimizers import adam
from seldom import slow


@pytest.mark.parametrize("scale", [1e-6, *slow(1.0, 1e3)])
def test_adam_takes_optaxs_steps(scale: float) -> None:
    """From the first step, whose corrections are largest, to where they have vanished; and where a gradient is zero."""
    rng = np.random.default_rng(0)
    weights = {"a": jnp.zeros((3, 5)), "b": jnp.zeros(4)}
    mine, other = adam().init(weights), optax.scale_by_adam().init(weights)
    ours, theirs = jax.jit(adam().update), jax.jit(optax.scale_by_adam().update)
    for step in range(3000):
        gradient = {
            name: jnp.asarray(scale * rng.normal(size=leaf.shape) * (rng.random(leaf.shape) < 0.7), jnp.float32)
            for name, leaf in weights.items()
        }
        mine_direction, mine = ours(gradient, mine)
        other_direction, other = theirs(gradient, other)
        if step < 10 or step % 500 == 0 or step == 2999:
            for name in weights:
                np.testing.assert_allclose(mine_direction[name], other_direction[name], rtol=2e-4, atol=1e-7)
                np.testing.assert_allclose(mine.mu[name], other.mu[name], rtol=1e-4, atol=1e-7 * scale)
                np.testing.assert_allclose(mine.nu[name], other.nu[name], rtol=1e-4, atol=1e-7 * scale**2)
