"""One spelling for three array libraries: NumPy, JAX and PyTorch.

Everything in :mod:`maxmean.mev` is written once, against the array API standard. This file holds the little that the
standard does not cover: finding the library of an argument, the special functions, and random numbers.
JAX and PyTorch are only imported once one of their arrays is passed in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from ..errors import brief, missing
from .errors import ArgumentError

Array: TypeAlias = Any
"""An array of NumPy, JAX or PyTorch. The functions return the kind they were given."""

Rng: TypeAlias = Any
"""A source of random numbers: a seed, a ``numpy.random.Generator``, a JAX key or a ``torch.Generator``."""


def is_torch(value: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_jax(value: object) -> bool:
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(value, jax.Array)


def namespace(*values: object) -> ModuleType:
    """The array library that ``values`` belong to; NumPy where none of them is an array.

    >>> namespace([1.0, 2.0]).__name__
    'numpy'
    """
    torch_seen = any(is_torch(value) for value in values)
    jax_seen = any(is_jax(value) for value in values)
    if torch_seen and jax_seen:
        raise TypeError("PyTorch and JAX arrays cannot be mixed in one call; convert one of them first")
    if torch_seen:
        try:
            from array_api_compat import torch as torch_namespace
        except ImportError as error:
            raise ImportError(missing("an operation on PyTorch tensors", "array-api-compat", extra="torch")) from error
        return torch_namespace
    if jax_seen:
        import jax.numpy as jax_namespace

        return jax_namespace
    return np


def as_floats(xp: ModuleType, *values: Any) -> tuple[Array, ...]:
    """Arrays of ``values`` in one floating type and on one device.

    Numbers and lists take the type of the arrays that they meet; integers become the library's default float.
    """
    template = next((v for v in values if is_torch(v)), None)
    # A tensor is left alone: `torch.asarray` has detached it or warned about it, depending on the version.
    arrays = [v if is_torch(v) else xp.asarray(v, **_place(template)) for v in values]
    floats = [(v, a.dtype) for v, a in zip(values, arrays, strict=True) if xp.isdtype(a.dtype, "real floating")]
    dtypes = [dtype for v, dtype in floats if hasattr(v, "dtype")] or [dtype for _, dtype in floats]
    dtype = xp.result_type(*dtypes) if dtypes else xp.asarray(1.0).dtype
    return tuple(a if a.dtype == dtype else xp.astype(a, dtype) for a in arrays)


def as_truths(xp: ModuleType, value: Any, like: Array) -> Array:
    """``value`` as an array of true and false beside ``like``, to which it broadcasts; anything else than that is refused."""
    try:
        array = value if is_torch(value) else xp.asarray(value, **_place(like))
    except (TypeError, ValueError, RuntimeError):
        raise ArgumentError(f"a mask says True or False of each option, and this one is {brief(value)}") from None
    if not xp.isdtype(array.dtype, "bool"):
        raise ArgumentError(f"a mask says True or False of each option, and this one has the type {array.dtype}")
    shape, options = tuple(array.shape), tuple(like.shape)[-1:]
    if shape and shape[-1:] not in (options, (1,)):
        raise ArgumentError(
            f"a mask says True or False of each option: there are {options[0]}, and where has {shape[-1]}"
        )
    return array


def together(**shapes: tuple[int, ...]) -> None:
    """Refuse arrays whose leading axes do not broadcast."""
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        said = ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items())
        raise ArgumentError(f"these shapes do not broadcast: {said}") from None


def constant(values: np.ndarray, like: Array) -> Array:
    """``values`` as an array of the kind, type and device of ``like``."""
    return namespace(like).asarray(values, dtype=like.dtype, **_place(like))


def beside(parameter: Any, like: Array) -> Any:
    """``parameter`` in the kind, type and device of ``like``; a plain number stays one and takes the type by itself."""
    if type(parameter) in (int, float):
        return parameter
    xp = namespace(like)
    array = parameter if is_torch(parameter) else xp.asarray(parameter, **_place(like))
    return xp.astype(array, like.dtype)


def _place(like: Array) -> dict[str, Any]:
    """The device argument for a new array beside ``like``. Only PyTorch needs one."""
    return {"device": like.device} if is_torch(like) else {}


def special(xp: ModuleType) -> ModuleType:
    """The module with ``ndtr``, ``ndtri``, ``log_ndtr`` and ``betainc`` for the arrays of ``xp``."""
    if xp is np:
        import scipy.special

        return scipy.special
    if xp.__name__ == "jax.numpy":
        import jax.scipy.special

        return jax.scipy.special
    from . import torch_special

    return torch_special


def quiet(xp: ModuleType) -> AbstractContextManager[object]:
    """Silence NumPy where an infinite or vanishing quotient is the intended limit, or nan the answer; the others never warn."""
    return np.errstate(all="ignore") if xp is np else nullcontext()


def streams(rng: Rng, count: int) -> list[Rng]:
    """``count`` independent sources from one, each of which gives the same numbers whenever it is used.

    A JAX key is split; any other source gives as many integer seeds.
    """
    if is_jax(rng):
        import jax

        return list(jax.random.split(rng, count))
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(rng, torch.Generator):
        return torch.randint(2**62, (count,), generator=rng, device=rng.device).tolist()
    return np.random.default_rng(rng).integers(2**63, size=count).tolist()


def uniform(rng: Rng, shape: tuple[int, ...], like: Array) -> Array:
    """Independent uniforms on [0, 1) of the kind, type and device of ``like``."""
    return _draw(rng, shape, like, "uniform")


def normal(rng: Rng, shape: tuple[int, ...], like: Array) -> Array:
    """Independent standard normals of the kind, type and device of ``like``."""
    return _draw(rng, shape, like, "normal")


def _draw(rng: Rng, shape: tuple[int, ...], like: Array, law: str) -> Array:
    if is_jax(rng):
        import jax

        draw: Callable[..., Array] = jax.random.uniform if law == "uniform" else jax.random.normal
        return draw(rng, shape, dtype=like.dtype)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(rng, torch.Generator):
        draw = torch.rand if law == "uniform" else torch.randn
        return draw(shape, generator=rng, dtype=like.dtype, device=rng.device).to(like.device)
    generator = np.random.default_rng(rng)
    numbers = generator.random(shape) if law == "uniform" else generator.standard_normal(shape)
    return constant(numbers, like)
