"""Adam's step on a large matrix in one pass over a GPU's memory.

A hidden layer is most of a network, and a batch is small: an update moves bytes more than it computes. Written as usual, the
gradient goes out to memory and comes back. Here a kernel computes it for a tile of the matrix, in registers, and takes the
tile's step with it: nine transfers a weight and update instead of eleven. The numbers are those of the usual way.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from .optimizers import Corrections, adam_moments

Array = jax.Array

ROWS, COLUMNS = 32, 64
"""A tile."""
WARPS = 4
"""Groups of 32 threads that share a program's work."""
LEAST_BATCH = 16
"""The shortest sums that a GPU's matrix units take."""


class Matrix(NamedTuple):
    """A weight matrix [R, F] and its two moments."""

    weights: Array
    mean: Array
    square: Array


@cache
def available(batch: int) -> bool:
    """Whether the device has such kernels for batches of this size. It is tried once: not every GPU does, and not every JAX."""
    if jax.default_backend() != "gpu":
        return False
    tile, thin, wide, number = (_shape(*shape) for shape in ((ROWS, COLUMNS), (ROWS, batch), (batch, COLUMNS), ()))
    try:
        jax.jit(adam_step).lower(Matrix(tile, tile, tile), thin, wide, number, Corrections(number, number)).compile()
    except Exception:  # whatever is missing: the usual way needs none of it
        return False
    return True


def fits(rows: int, columns: int, batch: int) -> bool:
    """Whether a matrix can be cut into tiles, and a batch has a length that the kernel takes: a power of two."""
    return rows % ROWS == 0 and columns % COLUMNS == 0 and batch >= LEAST_BATCH and batch & (batch - 1) == 0


def adam_step(
    matrix: Matrix, outer: Array, inputs: Array, learning_rate: Array, corrections: Corrections
) -> tuple[Matrix, Array]:
    """A step of Adam along the gradient ``outer @ inputs``, and what the layer hands back to its inputs.

    Parameters
    ----------
    matrix
        W and its moments; their memory is used again for the results.
    outer
        [R, B]: the gradient at W @ inputs.T.
    inputs
        [B, F].
    learning_rate
        The step's size.
    corrections
        Adam's, for this step.

    Returns
    -------
    The matrix after the step, and outer.T @ W, [B, F], with W as it was before.
    """
    rows, columns = matrix.weights.shape
    batch = inputs.shape[0]
    back = outer.T @ matrix.weights
    tile = pl.BlockSpec((ROWS, COLUMNS), lambda i, j: (j, i))
    after = pl.pallas_call(
        _improve,
        grid=(columns // COLUMNS, rows // ROWS),
        in_specs=[
            pl.BlockSpec((4,), lambda i, j: (0,)),
            pl.BlockSpec((1, 1), lambda i, j: (0, 0)),
            pl.BlockSpec((ROWS, batch), lambda i, j: (j, 0)),
            pl.BlockSpec((batch, COLUMNS), lambda i, j: (0, i)),
            tile,
            tile,
            tile,
        ],
        out_specs=[tile, tile, tile],
        out_shape=[_shape(rows, columns)] * 3,
        input_output_aliases={4: 0, 5: 1, 6: 2},
        **_compilation(),
    )(jnp.stack([learning_rate, *corrections, jnp.float32(0)]), back, outer, inputs, *matrix)
    return Matrix(*after), back


def _shape(*axes: int) -> Any:
    return jax.ShapeDtypeStruct(axes, jnp.float32)  # type: ignore[no-untyped-call]


def _compilation() -> dict[str, Any]:
    """For a GPU; elsewhere the kernel is interpreted, which is slow and serves tests."""
    if jax.default_backend() != "gpu":
        return {"interpret": True}
    from jax.experimental.pallas import triton

    return {"compiler_params": triton.CompilerParams(num_warps=WARPS, num_stages=1)}


def _product(outer: Array, inputs: Array) -> Array:
    """A tile of the gradient. `benchmarks/fused_update.py` compares ways to write it: they decide how a GPU's threads hold it."""
    return outer @ inputs


def _improve(
    numbers: Any,
    earlier: Any,
    outer: Any,
    inputs: Any,
    weights: Any,
    mean: Any,
    square: Any,
    new_weights: Any,
    new_mean: Any,
    new_square: Any,
) -> None:
    """One program: one tile. The arguments are references to its blocks.

    ``earlier`` is not looked at: it makes the program wait for what reads the weights that it writes over.
    """
    # The gradient first, then all that is read of memory: so that there may be one wait for memory instead of three.
    gradient = _product(outer[...], inputs[...])
    learning_rate, corrections = numbers[0], Corrections(numbers[1], numbers[2])
    before = weights[...]
    m, v, direction = adam_moments(mean[...], square[...], gradient, corrections)
    new_mean[...], new_square[...], new_weights[...] = m, v, before - learning_rate * direction
