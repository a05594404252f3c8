"""Frozen dataclasses as JAX pytrees, without ever importing JAX: they are registered as soon as other code imports it."""

from __future__ import annotations

import sys
from dataclasses import fields
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_registered: set[type] = set()


def register(cls: Any) -> None:
    """Make a dataclass a pytree, once, if JAX is there. Its fields are leaves, unless ``cls.static`` says otherwise."""
    jax = sys.modules.get("jax")
    if jax is None or not hasattr(jax, "tree_util") or cls in _registered:
        return
    _registered.add(cls)
    names = [f.name for f in fields(cls)]

    def flatten(instance: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        values = tuple(getattr(instance, name) for name in names)
        return ((), values) if cls.static else (values, ())

    def unflatten(constants: tuple[Any, ...], leaves: tuple[Any, ...]) -> Any:
        instance = object.__new__(cls)  # no checks here: leaves may be tracers or placeholders
        for name, value in zip(names, constants if cls.static else leaves, strict=True):
            object.__setattr__(instance, name, value)
        return instance

    jax.tree_util.register_pytree_node(cls, flatten, unflatten)


def register_family(base: type) -> None:
    """Register every subclass of ``base``, now if JAX is there, else right after it is imported."""
    if "jax" in sys.modules:
        _register_subclasses(base)
    else:
        sys.meta_path.insert(0, _WhenJaxArrives(base))


def _register_subclasses(base: Any) -> None:
    for cls in base.__subclasses__():
        register(cls)


class _WhenJaxArrives(MetaPathFinder):
    """Stands first in the way of imports until JAX comes by, lets it load as usual, and registers the family then."""

    def __init__(self, base: type) -> None:
        self.base = base

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != "jax":
            return None
        sys.meta_path.remove(self)
        spec = find_spec("jax")
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def load_and_register(module: ModuleType) -> None:
            load(module)
            _register_subclasses(self.base)

        spec.loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec
