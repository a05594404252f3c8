"""Random generators of NumPy, put back to where they were: only into states that their kind can have."""

from __future__ import annotations

from typing import Any

import numpy as np

from .environment import EnvError

_KINDS: dict[str, type[np.random.BitGenerator]] = {
    kind.__name__: kind
    for kind in (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)
}
_MOST = {"pos": 624, "buffer_pos": 4, "has_uint32": 1, "uinteger": 2**32 - 1}
"""The largest values of some parts. NumPy takes ``pos`` and ``buffer_pos`` for places in its memory without looking at them."""


def generator_at(state: Any) -> np.random.Generator:
    """A random generator in the state that another of its kind was in.

    >>> first = np.random.default_rng(0)
    >>> second = generator_at(first.bit_generator.state)
    >>> bool(first.integers(1000) == second.integers(1000))
    True
    """
    name = state.get("bit_generator") if isinstance(state, dict) else None
    if not isinstance(name, str) or name not in _KINDS:
        raise EnvError(f"the state of a random generator names its kind, one of {', '.join(_KINDS)}, not {name!r:.60}")
    kind = _KINDS[name]()
    if not _fits(state, kind.state):
        raise EnvError(f"that is no state of the random generator {name}")
    kind.state = state
    return np.random.Generator(kind)


def _fits(given: Any, own: Any, name: str = "") -> bool:
    """Whether a part of a state has the form of the generator's own one, and a value that it can have."""
    if isinstance(own, dict):
        same = isinstance(given, dict) and set(given) == set(own)
        return same and all(_fits(given[key], own[key], key) for key in own)
    if isinstance(own, np.ndarray):
        return isinstance(given, np.ndarray) and (given.dtype, given.shape) == (own.dtype, own.shape)
    if isinstance(own, str):
        return bool(given == own)
    whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
    return whole and 0 <= given <= _MOST.get(name, 2**128 - 1)
