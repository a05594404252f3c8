"""Fonts that have the characters of names, as far as this machine has any."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.ft2font import FT2Font

FIRST = "DejaVu Sans"
"""Comes with Matplotlib."""
_PREFERRED = ("Noto Sans CJK JP", "Hiragino Sans", "Yu Gothic", "Microsoft YaHei", "Noto Sans", "Noto Emoji")
_NEVER = ("LastResort", ".LastResort", "Noto Color Emoji", "Apple Color Emoji")
"""Have a box for every character, or pictures that Matplotlib cannot scale."""
_SUGGESTED = {
    "CJK": "Noto Sans CJK",
    "HIRAGANA": "Noto Sans CJK",
    "KATAKANA": "Noto Sans CJK",
    "HANGUL": "Noto Sans CJK",
    "IDEOGRAPHIC": "Noto Sans CJK",
    "FULLWIDTH": "Noto Sans CJK",
}
_SCRIPTS = ("ARABIC", "HEBREW", "DEVANAGARI", "BENGALI", "TAMIL", "TELUGU", "THAI", "KHMER", "MYANMAR", "ETHIOPIC")


class Found(NamedTuple):
    """Fonts to draw a text with."""

    families: list[str]
    """The first has most of it, those behind it what it lacks."""
    missing: str
    """Characters that no font has."""

    def sentence(self) -> str:
        """What is missing and what to do about it; empty if nothing is."""
        if not self.missing:
            return ""
        which = " ".join(self.missing[:10]) + (" …" if len(self.missing) > 10 else "")
        fonts = ", ".join(dict.fromkeys(map(_suggested, self.missing[:10])))
        return (
            f"no font on this machine has {which}, which the picture shows as boxes: install one that does, such as {fonts}, "
            "or write .svg or a report (.html), which are shown in their reader's fonts"
        )


def fonts_for(texts: Iterable[str]) -> Found:
    """Fonts of this machine that have all characters of ``texts`` between them, where there are such."""
    families, missing = [FIRST], _lacking(FIRST, "".join(sorted(set("".join(texts)))))
    if missing:
        for family in _others():
            left = _lacking(family, missing)
            if left != missing:
                families, missing = [*families, family], left
            if not missing:
                break
    return Found(families, missing)


@contextmanager
def quiet_search() -> Iterator[None]:
    """Matplotlib looks for fonts without a word meanwhile: which weights of a family are there is nothing to act on."""
    logger = logging.getLogger("matplotlib.font_manager")
    logger.addFilter(_is_no_search)
    try:
        yield
    finally:
        logger.removeFilter(_is_no_search)


def _is_no_search(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("findfont:")


@cache
def _others() -> tuple[str, ...]:
    """The other families, those first that are made for this."""
    from matplotlib.font_manager import fontManager

    there = sorted({entry.name for entry in fontManager.ttflist} - {FIRST})
    usable = [name for name in there if not name.startswith(_NEVER)]
    return tuple(sorted(usable, key=lambda name: _PREFERRED.index(name) if name in _PREFERRED else len(_PREFERRED)))


def _lacking(family: str, characters: str) -> str:
    """The characters that a family has no glyphs for."""
    font = _font(family)
    if font is None:
        return characters
    return "".join(each for each in characters if not font.get_char_index(ord(each)))


@cache
def _font(family: str) -> FT2Font | None:
    """A family as Matplotlib would draw it; None if it cannot."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    with quiet_search():
        try:
            font = get_font(findfont(FontProperties(family=[family]), fallback_to_default=False))
        except (OSError, RuntimeError, ValueError):
            return None
    return font if font.scalable else None


def _suggested(character: str) -> str:
    """A font that has a character, by the script in its Unicode name.

    >>> _suggested("語"), _suggested("ไ"), _suggested("😀")
    ('Noto Sans CJK', 'Noto Sans Thai', 'Noto Emoji')
    """
    script = unicodedata.name(character, "").partition(" ")[0].partition("-")[0]
    if script in _SUGGESTED:
        return _SUGGESTED[script]
    if script in _SCRIPTS:
        return f"Noto Sans {script.capitalize()}"
    return "Noto Emoji" if unicodedata.category(character) == "So" else "Noto Sans"
