"""Nested values as JSON and back: arrays, tuples and random generators' states included, and the objects that settings hold.

What a file may name is a fixed table of ours: kernels, trunks and explorations by their names, with numbers that are numbers.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import math
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from ...mev.kernels import KERNELS, Kernel
from ...untrusted import ContentError, mapping, number, several, take, text, truth, whole
from ..checks import AgentError
from ..exploration import EXPLORATIONS, Exploration
from ..networks import Trunk
from ..policy import describe_trunk, described_trunk
from .errors import HostError

T = TypeVar("T")

_KIND = "__kind__"
_KERNELS = {kind.__name__: kind for kind in KERNELS.values()}
_EXPLORATIONS = {kind.__name__: kind for kind in EXPLORATIONS.values()}
_TYPES = {kind.str: kind for code in "?bBhHiIlLqQefdFD" for kind in (np.dtype(code), np.dtype(code).newbyteorder())}
"""What an array may be made of: truth values and numbers, in either byte order."""


def pack(value: Any) -> Any:
    """``value`` in what JSON has."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [pack(each) for each in value]
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise HostError("a state cannot be saved: the keys of its dicts must be texts")
        if _KIND in value:
            raise HostError(f"a state cannot be saved: a dict of it has the key {_KIND!r}, which files use themselves")
        return {name: pack(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return {_KIND: "tuple", "items": [pack(each) for each in value]}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.str in _TYPES:
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        scalar = isinstance(value, np.generic)
        return {_KIND: "array", "type": value.dtype.str, "shape": list(value.shape), "data": data, "scalar": scalar}
    if isinstance(value, Exploration):
        if _EXPLORATIONS.get(type(value).__name__) is not type(value):
            return {_KIND: "unknown", "type": type(value).__name__}
        return {_KIND: "exploration", "name": type(value).__name__, "numbers": _numbers(value)}
    if isinstance(value, Kernel):
        if _KERNELS.get(type(value).__name__) is not type(value):
            return {_KIND: "unknown", "type": type(value).__name__}
        return {_KIND: "kernel", "name": type(value).__name__, "numbers": _numbers(value)}
    if isinstance(value, Trunk):
        try:
            return {_KIND: "trunk", "trunk": pack(describe_trunk(value))}
        except AgentError:
            return {_KIND: "unknown", "type": type(value).__name__}
    raise HostError(
        f"a {type(value).__name__} cannot be saved: arrays, numbers, texts, None, and dicts, lists and tuples of them can"
    )


def unpack(value: Any) -> Any:
    """What :func:`pack` made JSON of; :class:`ContentError` where it cannot have."""
    if isinstance(value, list):
        return [unpack(each) for each in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(_KIND)
    if kind is None:
        return {name: unpack(each) for name, each in value.items()}
    match kind:
        case "tuple":
            return tuple(unpack(each) for each in take(value, "items", several(lambda each: each)))
        case "array":
            return _array(value)
        case "epsilon":  # as 0.1 wrote it
            names = ("initial", "final", "steps")
            return _made("exploration", _EXPLORATIONS, "EpsilonGreedy", {name: value.get(name) for name in names})
        case "exploration":
            return _named("exploration", _EXPLORATIONS, value)  # settings look at its numbers again
        case "kernel":
            return _named("kernel", _KERNELS, value)
        case "trunk":
            return described_trunk(mapping(unpack(take(value, "trunk", mapping))))
    raise ContentError(f"it names a kind of value that there is not: {kind!r:.60}")


def settings(given: dict[str, Any]) -> dict[str, Any]:
    """Settings that :func:`pack` made JSON of."""
    for name, value in given.items():
        if isinstance(value, dict) and value.get(_KIND) == "unknown":
            raise ContentError(
                f"its {name}, a {take(value, 'type', text)}, is not in the file: give it again as {name}="
            )
    return {name: unpack(value) for name, value in given.items()}


def _numbers(value: Any) -> dict[str, float]:
    """The numbers that an object is made of, of whatever library they are."""
    return {name: each if isinstance(each, int | float) else float(each) for name, each in vars(value).items()}


def _array(value: dict[str, Any]) -> Any:
    kind, shape = take(value, "type", text), take(value, "shape", several(whole(0), 0, 32))
    if kind not in _TYPES:
        raise ContentError(f"it holds an array of the type {kind!r:.60}")
    try:
        data = base64.b64decode(take(value, "data", text), validate=True)
    except (binascii.Error, ValueError):
        raise ContentError("the numbers of an array in it are no base64") from None
    if len(data) != math.prod(shape) * _TYPES[kind].itemsize:
        raise ContentError(f"an array in it has {len(data)} bytes, which do not fill the shape {list(shape)}")
    array = np.frombuffer(data, _TYPES[kind]).reshape(shape).copy()
    return array[()] if take(value, "scalar", truth) else array


def _named(what: str, kinds: Mapping[str, type[T]], value: dict[str, Any]) -> T:
    """One of the objects that a file may name, with its numbers."""
    return _made(what, kinds, take(value, "name", text), take(value, "numbers", mapping))


def _made(what: str, kinds: Mapping[str, type[T]], name: str, numbers: dict[str, Any]) -> T:
    if name not in kinds:
        raise ContentError(f"it names {'an' if what == 'exploration' else 'a'} {what} that there is not: {name!r:.60}")
    kind = kinds[name]
    known = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    if set(numbers) != set(known):
        raise ContentError(f"the {what} {name} in it has other parameters than {', '.join(known) or 'none'}")
    return kind(**{each: take(numbers, each, number) for each in known})
