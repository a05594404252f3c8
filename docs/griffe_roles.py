"""An extension of Griffe, which reads the docstrings for the site: roles and formulas become Markdown."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))

from build_site import markdown_of


class Roles(griffe.Extension):
    """Rewrites each docstring as it is met."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called by Griffe for every object."""
        if obj.docstring is not None:
            obj.docstring.value = markdown_of(obj.docstring.value)
