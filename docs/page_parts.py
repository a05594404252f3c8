"""What the tables of the pages are made of: Markdown, and numbers as the pages have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from maxmean.lab.claims import Measured


def as_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: bool = True, texts: int = 1) -> str:
    """A table in Markdown, with numbers to the right of the first columns, which are texts, or with texts alone."""
    lines = [head, [*["---"] * texts, *["--:" if right else "---"] * (len(head) - texts)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def game_title(game: str) -> str:
    """A game's name as one reads it."""
    return game.replace("_", " ").title()


def with_interval(runs: np.ndarray | Measured, column: str) -> str:
    """The mean of the runs, or what was measured of them, with half of its interval."""
    found = runs if isinstance(runs, Measured) else Measured.mean(runs)
    digits = {"bias": 2, "value": 1, "share": 2, "alpha": 2}.get(column, 0 if found.value >= 100 else 1)
    return f"{found.value:.{digits}f} ± {found.high - found.value:.{digits}f}"


def between_marks(text: str, parts: Mapping[str, str]) -> str:
    """A page with something else between its marks ``<!-- NAME -->`` and ``<!-- end of NAME -->``."""
    for name, part in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"a page has no marks for '{name}'")
        text = before + begin + part + end + after
    return text
