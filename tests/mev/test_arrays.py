"""The few functions that make three array libraries one."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import torch

from maxmean import mev
from maxmean.mev import arrays


def test_lists_and_numbers_belong_to_numpy() -> None:
    assert arrays.namespace([1.0, 2.0], 3.0, None) is np
    assert isinstance(mev.t_statistic([1.0, 2.0], [1.0, 1.0]), np.ndarray)
    assert mev.maximum_estimate([1, 2]).dtype == np.float64


def test_numpy_beside_another_library_belongs_to_that_one() -> None:
    assert isinstance(mev.t_statistic(jnp.ones(2), np.ones(2)), jax.Array)
    assert isinstance(mev.t_statistic(np.ones(2), torch.ones(2)), torch.Tensor)


def test_pytorch_and_jax_in_one_call_are_refused_in_one_sentence() -> None:
    with pytest.raises(
        TypeError, match="PyTorch and JAX arrays cannot be mixed in one call; convert one of them first"
    ):
        mev.kernel_estimate(torch.ones(2), jnp.ones(2))
    with pytest.raises(TypeError, match="cannot be mixed"):
        mev.Gaussian(jnp.asarray(2.0))(torch.zeros(2))


def test_numbers_and_lists_take_the_type_of_the_array_they_meet(kind: Any) -> None:
    assert np.all(kind.call(mev.t_statistic, np.array([0.0, 3.0]), 4.5) == [-1.0, 0.0])
    assert np.all(kind.call(mev.t_statistic, np.array([0.0, 3.0]), [4.5, 4.5]) == [-1.0, 0.0])
    assert np.all(kind.call(mev.t_statistic, [0, 3], np.array([4.5, 4.5])) == [-1.0, 0.0])


def test_two_floating_types_give_the_wider_one() -> None:
    narrow, wide = np.ones(2, dtype=np.float32), np.ones(2)
    assert mev.t_statistic(narrow, wide).dtype == np.float64
    assert mev.t_statistic(torch.as_tensor(narrow), torch.as_tensor(wide)).dtype == torch.float64


@pytest.mark.parametrize(
    ("integers", "expected"),
    [(np.array([1, 3]), np.float64), (jnp.array([1, 3]), jnp.float32), (torch.tensor([1, 3]), torch.float32)],
)
def test_integers_become_the_default_float_of_their_library(integers: Any, expected: Any) -> None:
    result = mev.average_estimate(integers)
    assert result.dtype == expected
    assert float(result) == 2.0


def test_a_tensor_keeps_its_graph() -> None:
    means = torch.tensor([1.0, 2.0], requires_grad=True)
    (same,) = arrays.as_floats(arrays.namespace(means), means)
    assert same is means


def test_special_functions_agree_with_scipy(kind: Any) -> None:
    x = np.array([-8.0, -3.0, -0.5, 0.0, 2.0])
    p = np.array([1e-20, 0.01, 0.5, 0.75])
    for name, points in (("ndtr", x), ("log_ndtr", x), ("ndtri", p)):
        ours = kind.call(lambda a, name=name: getattr(arrays.special(arrays.namespace(a)), name)(a), points)
        np.testing.assert_allclose(ours, getattr(scipy.special, name)(points), rtol=100 * kind.eps, atol=0)


def sources(kind: Any) -> list[Any]:
    """A seed and a NumPy generator serve every library; JAX and PyTorch have a source of their own beside them."""
    generator = torch.Generator()
    generator.manual_seed(3)
    own: dict[str, list[Any]] = {"jax": [jax.random.key(3)], "torch": [generator], "numpy": []}
    return [7, np.random.default_rng(7), *own[kind.library]]


@pytest.mark.parametrize("law", ["uniform", "normal"])
def test_draws_have_the_right_kind_shape_and_moments(kind: Any, law: str) -> None:
    """The mean of 40,000 draws lies within 5 standard errors: wrong once in 1.7 million fresh seeds."""
    centre, spread = {"uniform": (0.5, 1 / np.sqrt(12)), "normal": (0.0, 1.0)}[law]
    for rng in sources(kind):
        numbers = kind.call(lambda like, rng=rng: getattr(arrays, law)(rng, (200, 200), like), np.zeros(1))
        assert numbers.shape == (200, 200)
        assert abs(numbers.mean() - centre) < 5 * spread / 200
        assert numbers.std() == pytest.approx(spread, rel=0.02)
        if law == "uniform":
            assert numbers.min() >= 0
            assert numbers.max() < 1 or kind.dtype == "float32"


def test_the_same_seed_gives_the_same_draws_and_a_generator_moves_on() -> None:
    like = np.zeros(1)
    generator = np.random.default_rng(1)
    assert np.array_equal(arrays.normal(1, (3,), like), arrays.normal(1, (3,), like))
    assert np.array_equal(arrays.normal(1, (3,), like), arrays.normal(generator, (3,), like))
    assert not np.array_equal(arrays.normal(1, (3,), like), arrays.normal(generator, (3,), like))


def test_streams_are_distinct_and_reproducible() -> None:
    for make in (lambda: 5, lambda: np.random.default_rng(5), lambda: torch.Generator().manual_seed(5)):
        first, second = arrays.streams(make(), 3), arrays.streams(make(), 3)
        assert first == second
        assert len(set(first)) == 3
    keys = jax.random.key_data(jnp.stack(arrays.streams(jax.random.key(5), 3)))
    assert len({tuple(np.asarray(key)) for key in keys}) == 3


FRESH = """
import sys
import maxmean.mev as mev
before = mev.Gaussian(2.0)
assert before([-1.0, 0.0])[1] == 0.5
assert "jax" not in sys.modules and "torch" not in sys.modules
import jax, jax.numpy as jnp
after = mev.Gaussian(jnp.asarray([1.0, 2.0]))
weights = jax.vmap(lambda kernel: kernel(jnp.asarray([-1.0, 0.0])))(after)
assert weights.shape == (2, 2)
for kernel in (before, mev.Gaussian(2.0)):
    assert jnp.allclose(jax.jit(lambda k, t: k(t))(kernel, jnp.asarray([-1.0, 0.0])), weights[1])
"""


def test_a_kernel_made_before_jax_arrives_is_a_pytree_once_it_has() -> None:
    code = """
from maxmean import mev
kernel, custom = mev.Gaussian(0.84), mev.Custom(lambda t: 1 / (1 - t))
import sys
assert "jax" not in sys.modules
import jax, jax.numpy as jnp
means, variances = jnp.array([0.0, 1.0]), jnp.array([1.0, 1.0])
assert jax.jit(mev.kernel_estimate)(means, variances, kernel) == mev.kernel_estimate(means, variances, kernel)
assert jax.tree_util.tree_leaves(kernel) == [0.84]
jax.jit(mev.kernel_estimate)(means, variances, custom)
import jax.numpy, importlib
importlib.import_module("jax.scipy.special")
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


def test_jax_is_not_imported_unasked_and_kernels_made_before_it_work_with_it() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", FRESH], check=True, timeout=60)
