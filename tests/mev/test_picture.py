"""The picture: every option and every method is drawn, and names are only text."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

import maxmean as mm
from inside import maxmean
from maxmean.mev import PictureWarning, fonts, picture
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


@pytest.mark.parametrize("name", mostly_slow(ODD, ["$\\frac", "<script>x</script>", "L" * 500]))
def test_names_are_text(name: str, tmp_path: Path) -> None:
    """Without a warning of Matplotlib's: pytest makes errors of them."""
    for k, values in enumerate(([5.0, 6.0, 5.5], [-5.0, -6.0, -4.0])):  # as the winner and as the other
        comparison = mm.compare({name: values, "other": [1.0, 2.0, 1.2]}, ["ke"], resamples=10)
        picture.plot(comparison, str(tmp_path / f"{k}.svg"))
        found = texts(tmp_path / f"{k}.svg")
        assert visible(name, 28) in found
        assert any(text.startswith(f"{visible((name, 'other')[k], 28)}'s own mean") for text in found)
    with picture.told() as lacking:  # other machines have other fonts
        picture.plot(comparison, str(tmp_path / "x.png"))
    assert bool(lacking) == bool(fonts.fonts_for([visible(name, 28)]).missing)


def test_what_no_font_has_is_said_where_it_would_be_a_box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with no fonts but Matplotlib's own, which has no Japanese: in .png, and not in .svg, where text stays text."""
    monkeypatch.setattr(fonts, "_others", lambda: ())
    comparison = mm.compare({"日本": [1.0, 2.0], "b": [2.0, 3.0]}, ["ke"], resamples=5)
    with pytest.warns(PictureWarning, match="no font on this machine has 日 本, .* such as Noto Sans CJK, "):
        comparison.plot(tmp_path / "x.png")
    comparison.plot(tmp_path / "x.svg")
    table = tmp_path / "t.csv"
    table.write_text("option,mean,se\n日本,1,0.5\nb,2,0.5\n")
    answer = maxmean("estimate", table, "-m", "ke", "--resamples", "5", "--plot", tmp_path / "y.png")
    assert answer.returncode == 0
    assert "note: no font on this machine has 日 本," in answer.stderr


def test_a_font_that_has_no_bold_face_is_not_written_about(caplog: pytest.LogCaptureFixture) -> None:
    """STIXSizeOneSym has one weight, bold is not it: Matplotlib would say so, where nobody can do anything about it."""
    from matplotlib.font_manager import FontProperties, findfont

    family = "STIXSizeOneSym"
    for weight in (801, 802):  # what was found is remembered
        caplog.clear()
        with fonts.quiet_search() if weight == 802 else nullcontext():
            findfont(FontProperties(family=[family], weight=weight))
        assert bool(caplog.records) == (weight == 801)
    with picture.canvas((2, 2), ["a"], "png") as figure:
        figure.suptitle("A", family=family, weight=803)
        figure.draw_without_rendering()
    assert not [each for each in caplog.records if each.name.startswith("matplotlib")]


def test_fonts_have_the_characters_that_they_were_found_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A family is taken if it has a character that those before it lack, as DejaVu Serif has one that Sans Mono lacks."""
    monkeypatch.setattr(fonts, "FIRST", "DejaVu Sans Mono")
    monkeypatch.setattr(fonts, "_others", lambda: ("no such family", "STIXSizeOneSym", "DejaVu Serif"))
    found = fonts.fonts_for(["abc", "\N{MATHEMATICAL DOUBLE-STRUCK CAPITAL A}\ue000"])
    assert found.families == ["DejaVu Sans Mono", "DejaVu Serif"]
    assert found.missing == "\ue000"
    assert fonts.fonts_for(["abc"]) == (["DejaVu Sans Mono"], "")
    assert fonts.fonts_for(["abc"]).sentence() == ""


def test_words_beside_a_name_from_right_to_left_stay_in_their_places() -> None:
    """Digits after such a name would be set before it, were there no mark in between; other names need none."""
    name, mark = "\N{HEBREW LETTER SHIN}\N{HEBREW LETTER ALEF}", "\N{LEFT-TO-RIGHT MARK}"
    figure = mm.estimate(successes={name: 30, "b": 36}, trials=1000, control=name).plot()
    assert figure.axes[2].get_title("left").startswith(f"Lift over {mark}{name}{mark}, 95%")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["b", f"{mark}{name}{mark} (control)"]


def test_a_picture_without_a_path_is_a_figure() -> None:
    figure = mm.estimate({"a": [1.0, 2.0], "b": [2.0, 3.0]}).plot()
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["b", "a"]


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
