"""Figures that look the same wherever they are drawn."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .untrusted import ContentError, contents

RC = "matplotlibrc"
"""Matplotlib reads a file of this name in the working directory, which may be a stranger's, as soon as it is imported."""


def check_matplotlibrc() -> None:
    """Refuse such a file if Matplotlib cannot import with it: it waits for a pipe, and fails if there is no text."""
    if "matplotlib" in sys.modules or not os.path.exists(RC) or os.path.isdir(RC):
        return  # it has read its settings, or finds others
    try:
        contents(Path(RC), 2**20).decode()
    except UnicodeDecodeError:
        why = f"{RC} is not UTF-8 text"
    except OSError as error:
        why = f"{RC} cannot be read: {error.strerror}"
    except ContentError as error:
        why = str(error)
    else:
        return
    raise ContentError(
        f"{why}, and Matplotlib reads it in the working directory: remove it, or work in another directory"
    )


def matplotlib() -> Any:
    """Matplotlib, imported where that can be done."""
    check_matplotlibrc()
    import matplotlib as mpl

    return mpl


@contextmanager
def own_style(style: Mapping[str, Any]) -> Iterator[None]:
    """Matplotlib's defaults with ``style``, and nothing of what anybody else has set.

    With ``text.usetex`` in a stranger's settings Matplotlib has LaTeX run a text of theirs.
    """
    mpl = matplotlib()
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(style)
        yield
