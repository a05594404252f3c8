"""The picture: every option and every method is drawn, and names are only text."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import maxmean as mm
from maxmean.mev import picture
from maxmean.mev.show import visible
from seldom import mostly_slow
from strangers import nothing_runs

RNG = np.random.default_rng(1)


def texts(path: Path) -> list[str]:
    """All text of an SVG file."""
    return [node.text or "" for node in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


ODD = [
    "$x^2$",
    "$\\frac",
    "\\$",
    "<script>x</script>",
    "--><b>",
    "a\nb",
    "\x1b[31m",
    "\u202ertl",
    "日本語",
    "😀",
    "",
    "L" * 500,
]


@pytest.mark.parametrize("name", mostly_slow(ODD, ["$\\frac", "<script>x</script>", "a\nb", "", "L" * 500]))
def test_names_are_text(name: str, tmp_path: Path) -> None:
    """Without a warning: pytest makes errors of them."""
    for k, values in enumerate(([5.0, 6.0, 5.5], [-5.0, -6.0, -4.0])):  # as the winner and as the other
        comparison = mm.compare({name: values, "other": [1.0, 2.0, 1.2]}, ["ke"], resamples=10)
        picture.plot(comparison, str(tmp_path / f"{k}.svg"))
        found = texts(tmp_path / f"{k}.svg")
        assert visible(name, 28) in found
        assert any(text.startswith(f"{visible((name, 'other')[k], 28)}'s own mean") for text in found)
    picture.plot(comparison, str(tmp_path / "x.png"))


@pytest.mark.parametrize(
    ("scale", "options", "lower"),
    [(1.0, 2, False), (-1.0, 10, True), (1e300, 3, False), (1e-300, 3, False), (0.0, 3, False), (1.0, 50, False)],
)
def test_everything_is_drawn(scale: float, options: int, lower: bool, tmp_path: Path) -> None:
    data = {f"v{k}": scale * (k + RNG.normal(size=8)) for k in range(options)}
    comparison = mm.compare(data, ["me", "te", "ke"], resamples=10, lower_is_better=lower)
    picture.plot(comparison, str(tmp_path / "x.svg"))
    found = texts(tmp_path / "x.svg")
    assert len([text for text in found if text in data]) == min(options, 30)
    assert [text.split()[0] for text in found if text.split()[0] in comparison.estimates] == ["me", "te", "ke"]
    assert any("20 further options" in text for text in found) == (options == 50)
    assert ("lower is better" in found) == lower


def test_the_style_of_others_is_left_alone(tmp_path: Path) -> None:
    mpl = pytest.importorskip("matplotlib")
    before = dict(mpl.rcParams)
    picture.plot(mm.compare({"a": [1.0, 2.0], "b": [2.0, 3.0]}, ["ke"], resamples=5), str(tmp_path / "x.pdf"))
    assert dict(mpl.rcParams) == before


def test_a_strangers_matplotlibrc_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the working directory it is read by Matplotlib, and ``text.usetex`` in it begins LaTeX."""
    mpl = pytest.importorskip("matplotlib")
    comparison = mm.compare({"a": [1.0, 2.0], "b": [2.0, 3.0]}, ["ke"], resamples=5)
    for kind in picture.FIGURES:
        picture.plot(comparison, str(tmp_path / f"x.{kind}"))
    with nothing_runs(tmp_path, monkeypatch), mpl.rc_context({"text.usetex": True}):
        for kind in picture.FIGURES:
            picture.plot(comparison, str(tmp_path / f"x.{kind}"))


@pytest.mark.parametrize("kind", ["png", "PDF", "svg"])
def test_figures_are_told_by_their_ending(kind: str, tmp_path: Path) -> None:
    assert picture.check_figure(str(tmp_path / f"a.b.{kind}")) == kind.lower()
