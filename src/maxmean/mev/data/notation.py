"""How the numbers of a text column are written: 1234.5, 1,234.5, 1.234,5, 12%, $3, yes and no; one way for a whole column."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MISSING = ("", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none", "-", "--", ".", "?")
"""What stands for a missing number, in lower case."""

_TRUTHS = (("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"))
"""Words for 0 and 1."""

_SIGN = "[+\u2212-]?"  # a minus sign may be Unicode's
_PLAIN = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_GAPS = " \u00a0\u202f'\u2019"  # what else may stand between groups of three digits


@dataclass(frozen=True)
class Notation:
    """One way of writing numbers.

    >>> Notation(groups=",").value("1,796.30"), Notation(",", ".").value("1.796,30"), Notation(sign="%").value("17.96%")
    (1796.3, 1796.3, 0.1796)
    """

    decimal: str = "."
    groups: str = ""
    """What may stand between groups of three digits: a comma, a point, or any of several blanks."""
    sign: str = ""
    """A percent sign, or that of a currency, before or after each number."""
    words: tuple[str, str] | None = None
    """The words for 0 and 1, if they stand in the place of numbers."""

    @cached_property
    def pattern(self) -> str:
        """What a number in this notation looks like: a regular expression for Python and for Arrow."""
        if self.words:
            return f"(?i:{self.words[0]}|{self.words[1]})"
        fraction = f"(?:{re.escape(self.decimal)}[0-9]+)?"
        grouped = f"(?:[0-9]+|[1-9][0-9]{{0,2}}(?:[{self.groups}][0-9]{{3}})+){fraction}" if self.groups else ""
        number = grouped or (_PLAIN if self.decimal == "." else f"[0-9]+{fraction}")
        if not self.sign:
            return f"{_SIGN}{number}"
        sign = re.escape(self.sign)
        after = f"{_SIGN}{number}\\s*{sign}"
        before = f"{_SIGN}{sign}\\s*{number}|{sign}\\s*{_SIGN}{number}"
        return after if self.sign == "%" else f"(?:{before}|{after})"

    def fits(self, texts: pa.Array) -> np.ndarray:
        """Which of the texts are numbers in this notation."""
        return pc.match_substring_regex(texts, f"^(?:{self.pattern})$").to_numpy(zero_copy_only=False)

    def read(self, texts: pa.Array) -> np.ndarray:
        """The numbers of texts that all fit."""
        if self.words:
            return pc.equal(pc.utf8_lower(texts), self.words[1]).to_numpy(zero_copy_only=False).astype(np.float64)
        digits = pc.replace_substring(texts, "\u2212", "-")
        if self.sign or self.groups:
            digits = pc.replace_substring_regex(digits, f"[\\s{self.groups}{re.escape(self.sign)}]", "")
        if self.decimal != ".":
            digits = pc.replace_substring(digits, self.decimal, ".")
        values = pc.cast(digits, pa.float64()).to_numpy(zero_copy_only=False)
        return values / 100 if self.sign == "%" else values

    def value(self, text: str) -> float:
        """The number of one text that fits."""
        return float(self.read(pa.array([text]))[0])


PLAIN = Notation()


def find_notation(texts: pa.Array, decimal: str | None, comma_means: str | None) -> Notation | None:
    """The notation that all ``texts`` fit, or most of them if there is none for all; None where that is a matter of opinion.

    1,234 may be a thousand or little more than one: ``decimal``, a point or a comma, is what the user says of it, and
    ``comma_means`` what the rest of the table does.

    >>> find_notation(pa.array(["1,5", "2"]), None, None)
    Notation(decimal=',', groups='.', sign='', words=None)
    >>> find_notation(pa.array(["1,234", "987"]), None, None)
    >>> find_notation(pa.array(["1,234", "987"]), ".", None).value("1,234")
    1234.0
    """
    lower = pc.utf8_lower(texts)
    for words in _TRUTHS:
        if 2 * pc.sum(pc.is_in(lower, pa.array(words, texts.type))).as_py() > len(texts):
            return Notation(words=words)
    sign = _common_sign(texts)
    gaps = _GAPS if pc.any(pc.match_substring_regex(texts, f"[0-9][{_GAPS}][0-9]{{3}}")).as_py() else ""
    ways = {".": Notation(".", "," + gaps, sign), ",": Notation(",", "." + gaps, sign)}
    plain = Notation(sign=sign)
    fitting = {notation: int(notation.fits(texts).sum()) for notation in (plain, *ways.values())}
    if decimal is not None:
        return plain if decimal == "." and fitting[plain] == len(texts) else ways[decimal]
    most = max(fitting.values())
    if fitting[plain] == most:
        return plain
    if fitting[ways["."]] == fitting[ways[","]] and pc.any(pc.match_substring(texts, ",")).as_py():
        return ways[comma_means] if comma_means else None
    return max(ways.values(), key=lambda way: fitting[way])


def _common_sign(texts: pa.Array) -> str:
    """The sign of percent or of a currency that the texts have, if any has one."""
    signed = texts.filter(pc.match_substring_regex(texts, r"[%\p{Sc}]"))
    if not len(signed):
        return ""
    found = re.search("%|[^0-9.,'\\s\u2212+-]", signed[0].as_py())
    return found[0] if found else ""


def is_number(text: str) -> bool:
    """Whether a text, alone, is a number in any notation.

    >>> [is_number(text) for text in ("1,234.5", "12 %", "-€3", "yes", "v2", "2024-01-02", "1.2.3")]
    [True, True, True, False, False, False, False]
    """
    return _ANY.fullmatch(text) is not None


def is_truth(text: str) -> bool:
    """Whether a text is a word for 0 or 1."""
    return any(text.lower() in words for words in _TRUTHS)


_BARE = "|".join(Notation(decimal, groups + _GAPS).pattern for decimal, groups in ((".", ","), (",", ".")))
_CURRENCY = "[$€£¥₹₩₽₺฿₴₫]"
_ANY = re.compile(
    f"(?i:{_SIGN}{_PLAIN}|(?:{_BARE})(?:\\s*(?:%|{_CURRENCY}))?|{_SIGN}{_CURRENCY}\\s*(?:{_BARE})"
    f"|{_SIGN}{_PLAIN}\\s*%|[+-]?(?:inf|infinity))"
)
