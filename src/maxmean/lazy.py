"""Packages whose names are imported on first use: ``import maxmean`` and the command line's help stay quick."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

from .luck import undisturbed


def lazily(
    package: str,
    homes: Mapping[str, str],
    *,
    modules: Collection[str] = (),
    needs: Collection[str] = (),
    extra: str | None = None,
    before: Callable[[], None] | None = None,
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package
        The package's ``__name__``.
    homes
        Its names, and the module below it that each is defined in.
    modules
        Modules below it that are attributes too, as in ``maxmean.deep``.
    needs
        Packages that may not be installed; the error then names the ``extra`` of maxmean that brings them.
    extra
        That extra.
    before
        Called before a name is imported, to say in a better way what is missing.

    Examples
    --------
    >>> __getattr__, __dir__ = lazily("json", {"JSONDecoder": "decoder"})
    >>> __getattr__("JSONDecoder").__name__
    'JSONDecoder'
    """

    def get(name: str) -> Any:
        if name in homes:
            if before is not None:
                before()
            try:
                with undisturbed():
                    value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
            except ModuleNotFoundError as error:
                if error.name is None or error.name not in needs:
                    raise
                from .errors import missing

                raise ModuleNotFoundError(missing(package, error.name, extra=extra), name=error.name) from None
            setattr(sys.modules[package], name, value)  # found without this function the next time
            return value
        if name in modules:
            with undisturbed():
                return importlib.import_module(f"{package}.{name}")
        from .errors import no_attribute

        raise AttributeError(no_attribute(package, name, [*homes, *modules]), name=name)

    return get, lambda: sorted(vars(sys.modules[package])["__all__"])
