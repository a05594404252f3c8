"""What makes a function a kernel, and a number one of its parameters."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import Array, is_torch
from .errors import KernelError


def check_kernel(function: Callable[[Array], Array]) -> None:
    """Check the paper's three requirements on a grid of T from -1e12 to 0; raise :class:`KernelError` if one fails."""
    grid = np.concatenate([-np.geomspace(1e12, 1e-6, 1201), [0.0]])
    try:
        values = _evaluate(function, grid)
    except KernelError:
        raise
    except Exception as error:
        raise KernelError(f"the kernel cannot be evaluated on an array of T: {error}") from error
    if values.shape != grid.shape:
        raise KernelError(
            f"the kernel must return one weight for each T, but gave shape {values.shape} for {grid.shape}"
        )
    if not np.all(np.isfinite(values)):
        raise KernelError(f"the kernel must be finite, but is not at T = {grid[~np.isfinite(values)][0]:g}")
    top, slack = values[-1], 1e-6 * abs(values[-1])
    if np.any(values < 0):
        raise KernelError(f"the kernel must not be negative, but is {values.min():g} at T = {grid[values.argmin()]:g}")
    if np.any(np.diff(values) < -slack):
        raise KernelError(
            f"the kernel must increase on (-inf, 0], but falls after T = {grid[np.diff(values).argmin()]:g}"
        )
    if not top > 0:
        raise KernelError("the kernel must be positive at T = 0")
    if values[0] > 0.1 * top:
        raise KernelError(
            f"the kernel must tend to 0 as T goes to -inf, but is {values[0]:g} at T = {grid[0]:g} ({top:g} at T = 0)"
        )


def _evaluate(function: Callable[[Array], Array], grid: np.ndarray) -> np.ndarray:
    """Values of ``function`` on ``grid`` as NumPy numbers, whichever array library it is written for."""
    jax, torch = sys.modules.get("jax"), sys.modules.get("torch")
    try:
        if jax is None:
            return np.asarray(function(grid), dtype=float)
        with jax.ensure_compile_time_eval():
            return np.asarray(function(grid), dtype=float)
    except (TypeError, AttributeError):
        if torch is None:
            raise
        return function(torch.as_tensor(grid)).detach().cpu().numpy()


def require(value: Any, condition: Callable[[Any], Any], sentence: str) -> None:
    """Check a parameter whose value is known; a traced one is the caller's responsibility."""
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(value, jax.core.Tracer):
        return
    numbers = value.detach().cpu().numpy() if is_torch(value) else np.asarray(value)
    if numbers.dtype.kind not in "fiu" or not np.all(condition(numbers)):
        raise KernelError(f"{sentence}, not {value}")
