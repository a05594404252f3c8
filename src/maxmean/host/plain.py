"""Nested values as JSON and back: arrays, tuples and random generators' states included, and the objects that settings hold."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from .. import mev
from ..deep.agents import AgentError
from ..deep.exploration import EpsilonGreedy
from ..deep.networks import Trunk
from ..deep.policy import describe_trunk, described_trunk
from .errors import HostError

_KIND = "__kind__"


def pack(value: Any) -> Any:
    """``value`` in what JSON has."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [pack(each) for each in value]
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise HostError("a state cannot be saved: the keys of its dicts must be texts")
        return {name: pack(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return {_KIND: "tuple", "items": [pack(each) for each in value]}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufc":
        data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
        scalar = isinstance(value, np.generic)
        return {_KIND: "array", "type": value.dtype.str, "shape": list(value.shape), "data": data, "scalar": scalar}
    if isinstance(value, EpsilonGreedy):
        return {_KIND: "epsilon", **vars(value)}
    if isinstance(value, mev.Kernel) and getattr(mev, type(value).__name__, None) is type(value):
        return {_KIND: "kernel", "name": type(value).__name__, "numbers": vars(value)}
    if isinstance(value, Trunk):
        try:
            return {_KIND: "trunk", "trunk": pack(describe_trunk(value))}
        except AgentError:
            return {_KIND: "unknown", "type": type(value).__name__}
    raise HostError(
        f"a {type(value).__name__} cannot be saved: arrays, numbers, texts, None, and dicts, lists and tuples of them can"
    )


def unpack(value: Any) -> Any:
    """What :func:`pack` made JSON of."""
    if isinstance(value, list):
        return [unpack(each) for each in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(_KIND)
    if kind is None:
        return {name: unpack(each) for name, each in value.items()}
    if kind == "tuple":
        return tuple(unpack(each) for each in value["items"])
    if kind == "array":
        data = np.frombuffer(base64.b64decode(value["data"]), np.dtype(value["type"]))
        array = data.reshape(value["shape"]).copy()
        return array[()] if value["scalar"] else array
    if kind == "epsilon":
        return EpsilonGreedy(value["initial"], value["final"], value["steps"])
    if kind == "kernel":
        return getattr(mev, value["name"])(**value["numbers"])
    if kind == "trunk":
        return described_trunk(unpack(value["trunk"]))
    raise HostError(f"the network, a {value.get('type')}, is not in the file: give it again as network=")
