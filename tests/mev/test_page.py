"""Facts about the page to send: one file with everything in it, whose numbers are the answer's and whose names are only text."""

from __future__ import annotations

import json
import os
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmean as mm
from browser import BROWSER, browse
from inside import maxmean
from maxmean.mev.charts import Scale
from maxmean.mev.compare import Comparison
from maxmean.mev.page import page
from maxmean.mev.show import decimals_for, number, percent, signed, visible

ODD = [
    "<script>alert(1)</script>",
    "</style></svg></table>",
    "\"onload='x'&amp;",
    "\u202egnp.exe\u2068\x1b[31m\x00",
    "日本語",
    "مرحبا",
    "http\u200b",
    "L" * 500,
    " ",
]
RNG = np.random.default_rng(0)
VALUES = [RNG.normal(0.3 * k, 1.0, 12).tolist() for k in range(len(ODD))]


class Page(HTMLParser):
    """Its tags with their attributes, its text, and the rows of its tables by their headings."""

    def __init__(self, written: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.heading: str | None = None
        self.within: list[str] = []
        self.feed(written)
        self.close()
        assert self.within == []  # what was opened was closed

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link"):
            self.within.append(tag)
        if tag == "h3":
            self.heading = ""
        elif tag == "tr" and self.heading is not None:
            self.tables.setdefault(self.heading, []).append([])
        elif tag in ("td", "th") and self.heading in self.tables:
            self.tables[self.heading][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.within.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.within:
            return
        self.words.append(data)
        if "h3" in self.within:
            self.heading = bare((self.heading or "") + data)
        elif {"td", "th"} & {*self.within} and self.heading in self.tables:
            self.tables[self.heading][-1][-1] += bare(data)


def bare(text: str) -> str:
    """Without the marks that keep names from turning what follows, and with plain blanks."""
    return text.replace("\u2068", "").replace("\u2069", "").replace("\xa0", " ")


def read(comparison: Comparison) -> Page:
    return Page(page(comparison))


def odd(**how: Any) -> Comparison:
    return mm.compare(dict(zip(ODD, VALUES, strict=True)), ["me", "ke"], resamples=5, **how)


def test_names_are_text_and_never_markup() -> None:
    """The page has the same elements as with plain names, in the same order, and every name as text."""
    plain = [f"v{k}" for k in range(len(ODD))]
    expected = read(mm.compare(dict(zip(plain, VALUES, strict=True)), ["me", "ke"], resamples=5, control="v3"))
    found = read(odd(control=ODD[3]))
    assert found.tags == expected.tags
    assert "script" not in {tag for tag, _ in found.tags}
    rows = found.tables["The options"]
    assert {row[0] for row in rows[1:]} == {visible(name, 120) for name in ODD}
    words = bare("".join(found.words))
    assert all(character.isprintable() or character == "\n" for character in words)


def test_nothing_is_fetched_and_nothing_runs() -> None:
    written = page(odd(control=ODD[0]))
    for _, attributes in Page(written).tags:
        assert not any(name.startswith("on") for name in attributes)
        assert all((attributes.get(name) or "data:").startswith("data:") for name in ("src", "href", "xlink:href"))
    assert not re.search(r"https?:|url\(|@import|<script", written)
    assert "default-src 'none'" in written


@pytest.mark.parametrize("lower", [False, True])
def test_numbers_are_those_of_the_answer(lower: bool) -> None:
    data = {"a": VALUES[0], "b": VALUES[3], "c": VALUES[6]}
    comparison = mm.compare(data, ["me", "te", "ke"], resamples=5, control="b", lower_is_better=lower)
    answer, tables = comparison.to_dict(), read(comparison).tables
    places = decimals_for([each["se"] for each in answer["options"]])

    def ends(interval: list[float]) -> list[str]:
        return [number(interval[0], places), "to", number(interval[1], places)]

    best_first = sorted(answer["options"], key=lambda each: each["mean"], reverse=not lower)
    for row, each in zip(tables["The options"][1:], best_first, strict=True):
        name, rank = each["name"], answer["ranks"][each["name"]]
        assert row[:4] == [name, "12", number(each["mean"], places), number(each["se"], places + 1)]
        assert row[4] == number(answer["shrinkage"][name]["value"], places)
        assert row[5] == f"{answer['probability_best'][name]:.1%}"
        assert row[6] == f"{rank['low']}"
        assert row[8] == (f"{rank['high']}" if rank["high"] > rank["low"] else "")
        assert row[9] == ("maybe" if name in answer["best_set"] else "")
    for row in tables["How good is the best one?"][1:]:
        assert row[2] == number(answer["estimates"][row[0]]["value"], places)
    winner = answer["winner"]
    *_, planned = tables[f"The winner, {winner['option']}"]
    assert planned[1:] == [number(winner["recommended"]["value"], places), *ends(winner["recommended"]["interval"])]
    for row in tables["Lift over b"][1:]:
        each = answer["lift"]["options"][row[0]]
        assert row[1] == signed(each["difference"], places)
        assert row[5] == percent(each["relative"])
        assert row[-1] == ("yes" if each["beats"] else "")
    words = bare("".join(read(comparison).words))
    assert comparison.sentence() in words
    assert all(visible(note, 300) in words for note in answer["notes"])
    assert {*re.findall(r"(largest|smallest) (?:true |sample )?mean", words)} == {"smallest" if lower else "largest"}


def test_points_stand_where_their_means_are() -> None:
    """Places are a linear function of the means, the larger to the right, and intervals have their points in the middle."""
    comparison = mm.compare(mean={"a": 1.0, "b": 3.0, "c": 2.0, "d": -4.0}, se=[0.5, 1.0, 0.2, 0.1], methods=["ke"])
    tags = read(comparison).tags
    points = [float((each["cx"] or "").rstrip("%")) for tag, each in tags if tag == "circle"][:4]
    lines = [each for tag, each in tags if tag == "line" and each["class"] == "interval"][:4]
    slope = (points[0] - points[3]) / (3 - -4)
    assert slope > 0
    assert points == pytest.approx([points[3] + slope * (mean - -4) for mean in (3, 2, 1, -4)], abs=0.02)
    for point, line, se in zip(points, lines, (1.0, 0.2, 0.5, 0.1), strict=True):
        low, high = (float((line[end] or "").rstrip("%")) for end in ("x1", "x2"))
        assert [low, high] == pytest.approx([point - 1.96 * se * slope, point + 1.96 * se * slope], abs=0.02)


@pytest.mark.parametrize("span", [1e-300, 0.031, 1.0, 77.0, 1e300])
def test_a_scale_has_few_round_numbers(span: float) -> None:
    for start in (-0.5, 0.0, 0.123, 30.0):
        scale = Scale(start * span, (start + 1) * span)
        ticks = [at for at, _ in scale.ticks()]
        assert 2 <= len(ticks) <= 6
        assert all(scale.low <= at <= scale.high for at in ticks)
        step = (ticks[-1] - ticks[0]) / (len(ticks) - 1)
        assert float(f"{step:.9e}"[0]) in (1, 2, 5)
        assert np.diff(ticks) == pytest.approx(step)


def test_many_options_are_folded() -> None:
    """Of five hundred, thirty in the picture, twenty in the table, and the others to be unfolded."""
    found = read(mm.compare(mean=RNG.normal(size=500), se=1.0, methods=["me"], resamples=2))
    assert [tag for tag, _ in found.tags].count("details") == 1
    assert "480 more" in found.words
    names = {row[0] for row in found.tables["The options"]}
    assert {f"option {k}" for k in range(1, 501)} <= names
    assert len([tag for tag, attributes in found.tags if attributes.get("class") == "interval"]) == 30 + 2
    assert "470 further options are in the table" in "".join(found.words)


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e300])
def test_extreme_numbers(scale: float) -> None:
    written = page(mm.compare({"a": [scale, 2 * scale], "b": [3 * scale, scale]}, ["me", "ke"], resamples=2))
    assert not re.search(r'"(nan|inf|-inf)%"', written)


def test_ties_and_looks_have_their_words() -> None:
    tied = mm.compare({"a": [1.0, 2.0], "b": [2.0, 1.0], "c": [0.0, 0.5]}, ["ke"], resamples=2)
    assert "2 options share this mean" in "".join(read(tied).words)
    looks = mm.compare({"a": VALUES[0], "b": VALUES[1]}, ["ke"], resamples=2, anytime=True, planned=77)
    assert "shortest at 77 observations" in "".join(read(looks).words)


def test_a_notebook_shows_the_picture() -> None:
    """Well-formed, with the sentence, a point for every option and the names as text, for one estimate too."""
    comparison = odd()
    for shown in (comparison, comparison.estimates["ke"]):
        view = ElementTree.fromstring(shown._repr_html_())
        words = bare("".join(view.itertext()))
        assert shown.sentence() in words
        assert all(visible(name, 60) in words for name in ODD)
        assert len(list(view.iter("circle"))) >= len(ODD)


LONG = "option,value\n" + "".join(f"{name},{x}\n" for name, xs in zip("ab", VALUES, strict=False) for x in xs)
WIDE = "day,a,b\n" + "".join(f"d{k},{x},{y}\n" for k, (x, y) in enumerate(zip(*VALUES[:2], strict=True)))
COUNTS = "option,successes,trials\na,30,1000\nb,36,1000\n"
SUMMARIES = "option,mean,se\na,3,1\nb,2,1\n"


@pytest.mark.parametrize(
    ("table", "arguments", "expected"),
    [
        (LONG, [], "long"),
        (LONG, ["--json", "--quiet"], "long"),
        (LONG, ["--control", "a", "--anytime"], "Lift over a"),
        (WIDE, ["--unit", "day", "--lower-is-better"], "rows paired"),
        (COUNTS, ["--control", "b"], "counts"),
        (SUMMARIES, [], "the data do not say how many"),
    ],
)
def test_the_command_writes_it(table: str, arguments: list[str], expected: str, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    some = ["--resamples", "5", "-m", "me,ke", "--report", target, *arguments]
    answer = maxmean("estimate", "-", *some, stdin=table.encode())
    assert answer.returncode == 0, answer.stderr
    assert ("Report: " in answer.stderr) == ("--quiet" not in arguments)
    words = bare("".join(Page(target.read_text()).words))
    assert expected in words
    assert "standard input" in words
    assert os.listdir(tmp_path) == ["report.html"]
    if "--json" in arguments:
        assert json.loads(answer.stdout)["options"][0]["name"] == "a"


def test_the_page_names_the_file_and_not_its_folder(tmp_path: Path) -> None:
    (tmp_path / "clicks.csv").write_text(COUNTS)
    answer = maxmean("estimate", tmp_path / "clicks.csv", "--resamples", "5", "--report", tmp_path / "a.html")
    assert answer.returncode == 0
    mm.compare(tmp_path / "clicks.csv", resamples=5).report(tmp_path / "b.html")
    mm.estimate(tmp_path / "clicks.csv", resamples=5).report(tmp_path / "c.htm")
    a, b, c = ((tmp_path / name).read_text() for name in ("a.html", "b.html", "c.htm"))
    assert a == b
    assert "clicks.csv" in c
    assert str(tmp_path) not in a


@pytest.mark.parametrize("target", ["report.txt", "nowhere/report.html", "folder.html", "pipe.html", "\0.html"])
def test_what_cannot_be_written_is_refused_before_anything_is_read(target: str, tmp_path: Path) -> None:
    (tmp_path / "folder.html").mkdir()
    os.mkfifo(tmp_path / "pipe.html")
    answer = maxmean("estimate", "no such file.csv", "--report", str(tmp_path / target))
    assert answer.returncode == 2
    assert Path(target).name.replace("\0", "\\x00") in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert (tmp_path / "pipe.html").is_fifo()


def test_an_earlier_page_stays_if_there_is_no_answer(tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("earlier")
    assert maxmean("estimate", "-", "--report", target, stdin=b"option,value\na,1\na,2\n").returncode == 2
    assert target.read_text() == "earlier"
    assert os.listdir(tmp_path) == ["report.html"]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine; continuous integration installs one")
def test_a_real_browser_opens_it_without_errors_and_fetches_nothing(tmp_path: Path) -> None:
    odd(control=ODD[0]).report(tmp_path / "report.html")
    built, console = browse(tmp_path / "report.html", tmp_path)
    assert console == ""
    assert "<script" not in built
    assert built.count("<svg") == (tmp_path / "report.html").read_text().count("<svg")
