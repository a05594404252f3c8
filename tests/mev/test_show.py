"""How answers look: names are shown, never interpreted, and numbers say no more than is known."""

from __future__ import annotations

import io
import math
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from rich.console import Console

import maxmean as mm
from maxmean.mev import show

ODD = [
    "[red]x[/red]",
    "\x1b[31mx",
    "a\nb",
    "\u202ertl",
    "$x^2$",
    "<script>x</script>",
    "&amp;",
    ":smile:",
    "%s{}",
    "",
    " ",
]


def rendered(comparison: mm.mev.compare.Comparison, width: int) -> str:
    """The answer on a terminal that would interpret markup in plain strings."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(show.terminal(comparison))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("日本語", "日本語"),
        ("a\x1b[0m\n\t\x00\x9b", "a\\x1b[0m\\n\\t\\x00\\x9b"),
        ("\u202e\u2066\u200b\u2028\ufeff", "\\u202e\\u2066\\u200b\\u2028\\ufeff"),
        ("", "''"),
        (" a", "' a'"),
        ("\n", "'\\n'"),
        ("\ud800", "\\ud800"),
        ("x" * 41, "x" * 20 + "…" + "x" * 19),
        ("語" * 21, "語" * 10 + "…" + "語" * 9),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert show.visible(text) == shown


@pytest.mark.parametrize(
    ("value", "decimals", "shown"),
    [
        (0.0, None, "0.000"),
        (1234.5, None, "1,234"),
        (1e-5, None, "1.000e-05"),
        (math.nan, 2, "?"),
        (math.inf, 2, "∞"),
        (-1e-9, 2, "0.00"),
        (-0.0, 0, "0"),
        (2_000_000_337.0, 0, "2,000,000,337"),
        (1.00000209, 8, "1.00000209e+00"),
        (2.1634e-300, 302, "2.16e-300"),
        (0.0, 302, "0.0000000"),
        (1.8, -298, "2"),
    ],
)
def test_number(value: float, decimals: int | None, shown: str) -> None:
    assert show.number(value, decimals) == shown


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("scale", [1e-300, 1e-6, 1.0, 1e6, 1e300])
def test_numbers_are_never_cut(width: int, scale: float) -> None:
    """In any width from 80 columns on, each end of an interval stands whole on one line; nothing is wider than the page."""
    rng = np.random.default_rng(0)
    data = {name: scale * (mu + rng.normal(size=30)) for name, mu in (("a" * 60, 2.0), ("語" * 40, -2.2), ("c", 2.1))}
    comparison = mm.compare(data, ["me", "ke"], resamples=20)
    text = rendered(comparison, width)
    assert max(sum(2 if c == "語" else 1 for c in line) for line in text.splitlines()) <= width
    if width >= 80:
        places = show.decimals_for(comparison.problem.standard_errors)
        for low, high in (comparison.maximum, comparison.winner.hybrid.interval):
            assert f"{show.number(low, places)} to {show.number(high, places)} " in text


def test_only_the_leading_options_are_listed() -> None:
    comparison = mm.compare({f"v{k}": [k, k + 1.0] for k in range(50)}, ["me"], resamples=5)
    text = rendered(comparison, 80)
    assert "v49" in text
    assert "v10 " not in text
    assert "… and 30 more" in text


@pytest.mark.parametrize("name", ODD)
def test_terminal_and_notebook_do_not_interpret_names(name: str) -> None:
    data = {name: [5.0, 6.0, 5.5], "other": [1.0, 2.0, 5.0]}
    comparison = mm.compare(data, ["te"], resamples=20)
    shown = show.visible(name)
    text = rendered(comparison, 80)
    assert f"The winner, {shown}" in text
    assert comparison.sentence().startswith(f"{shown} has the largest mean, 5.5")
    assert all(c.isprintable() or c == "\n" for c in text)
    for view in (comparison._repr_html_(), comparison.estimates["te"]._repr_html_()):
        page = "".join(ElementTree.fromstring(f"<div>{re.sub('border=.1. ', '', view)}</div>").itertext())
        assert shown in page
        assert "<script>" not in view


def test_repr_is_readable() -> None:
    est = mm.estimate({"a": [1.0, 2.0, 3.0], "b": [2.0, 3.0, 4.0]}, "te")
    assert repr(est) == "Estimate(te: 2.5; largest mean 3; 2 of 2 options count; see its notes)"
    assert repr(mm.compare({"a": [1.0, 2.0], "b": [2.0, 3.0]}, ["me", "ke"], resamples=5)).count("\n") == 3
