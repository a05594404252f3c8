"""Figures that look the same wherever they are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


@contextmanager
def own_style(style: Mapping[str, Any]) -> Iterator[None]:
    """Matplotlib's defaults with ``style``, and nothing of what anybody else has set.

    Matplotlib reads a file ``matplotlibrc`` from the working directory, which may be a stranger's, and with ``text.usetex`` it
    has LaTeX run a text of that file.
    """
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(style)  # type: ignore[arg-type]
        yield
