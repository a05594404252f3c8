"""Facts about the report: one page that needs nothing else, with everything in it and nothing interpreted."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from browser import BROWSER, browse
from maxmean.lab import report
from maxmean.lab.claims import Measured, Verdict
from maxmean.lab.experiments import EXPERIMENTS, find_experiments
from maxmean.lab.experiments.minatar import study
from maxmean.lab.experiments.minatar.figures import game_figure
from maxmean.lab.figures import canvas, inline_svg, line, save
from maxmean.lab.report import _claims_table, _page, write_report
from maxmean.lab.run import SHIPPED
from maxmean.lab.store import Store, StoreError
from seldom import slow

DRAWN = ("convergence", "gaussian")
"""Experiments whose own figures are on the page every time; of the others ``test_experiments`` draws them, on no page."""


@pytest.fixture(scope="module", params=[DRAWN, *slow(tuple(EXPERIMENTS))], ids=len)
def page(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The report of all that comes with the package.

    Its figures are drawn once each, for the page: laying them out and drawing them again for the files beside it takes most
    of the time. Those files as they are belong to the facts about the commands. The five games look alike: one is drawn.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, experiment in EXPERIMENTS.items():
            if name not in request.param:
                patch.setattr(type(experiment), "figures", lambda experiment, results: {"empty": canvas(1, 1)[0]})
        patch.setattr(report, "as_csv", lambda table: b"")
        patch.setattr(
            study,
            "game_figure",
            lambda results, game: game_figure(results, game) if game == "breakout" else canvas(1, 1)[0],
        )
        patch.setattr(report, "lay_out", lambda figure: figure.set_layout_engine(None))
        patch.setattr(report, "save", lambda figure, kind, stem: kind.encode())
        return write_report(Store(SHIPPED, create=False), tmp_path_factory.mktemp("report")).page


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_page_has_every_experiment_claim_and_figure(page: Path) -> None:
    text = page.read_text()
    for experiment in find_experiments([]):
        assert f'id="{experiment.name}"' in text
        assert f"maxmean reproduce {experiment.name} --scale paper --seed 0" in text
    for claim in (claim for experiment in EXPERIMENTS.values() for claim in experiment.claims):
        assert f"<b>{claim.id}</b>" in text
    assert text.count("<svg") == text.count("<figure>") == text.count('<g id="axes_1">') >= 8
    for kind in ("pdf", "png"):
        assert len(list(page.parent.glob(f"figures/*.{kind}"))) == text.count("<figure>")


def test_what_is_beyond_the_paper_has_a_heading_of_its_own() -> None:
    papers = Verdict("S1", "a", "2", "holds", {}, "paper", "gaussian")
    ours = Verdict("X1", "b", "nowhere", "holds", {}, "paper", "toy", beyond=True)
    text = _page(["<p>one</p>"], ["<p>two</p>"], [ours, papers])
    places = [
        text.index(part)
        for part in ("reproduced</h1>", ">S1</a>", "<p>one", "<h1>Beyond the paper", ">X1</a>", "<p>two")
    ]
    assert places == sorted(places)
    assert "Of 1 claim 1 holds" in text
    assert "Of 1 claim beyond the paper 1 holds" in text
    assert "Beyond the paper" not in _page(["<p>one</p>"], [], [papers])


def test_nothing_is_fetched_and_every_link_exists(page: Path) -> None:
    for tag, attributes in Tags(page.read_text()).found:
        for name in ("src", "href", "xlink:href"):
            target = attributes.get(name)
            if target is None or target.startswith(("#", "data:")):
                continue
            assert tag == "a", (tag, target)
            assert (page.parent / target).is_file(), target
    assert "@import" not in page.read_text()
    assert not re.search(r"url\((?!#)", page.read_text())


def test_names_are_shown_and_never_interpreted() -> None:
    nasty = '<script>alert("x")</script>'
    table = _claims_table([Verdict("S1", nasty, "2", "holds", {nasty: Measured.exact(1)}, "paper", "x", nasty)])
    assert "<script>" not in table
    assert table.count("&lt;script&gt;") == 3
    figure, axes = canvas(1, 1)
    line(axes[0, 0], [0, 1], [0, 1], "$x^2$ <b>&")
    axes[0, 0].legend()
    text = inline_svg(figure, "salt")
    assert "$x^2$ &lt;b&gt;&amp;" in text


def test_ink_follows_the_page_and_figures_repeat_to_the_byte() -> None:
    def draw() -> bytes:
        figure, axes = canvas(1, 2)
        line(axes[0, 0], [0, 1], [0, 1], "me")
        return save(figure, "svg", "salt") + inline_svg(figure, "salt").encode()

    assert draw() == draw()
    figure, _ = canvas(1, 1)
    text = inline_svg(figure, "salt")
    assert "currentColor" in text
    assert "#000000" not in text


def test_a_strangers_matplotlibrc_runs_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In the working directory it is read by Matplotlib, and ``text.usetex`` in it begins LaTeX."""
    mpl = pytest.importorskip("matplotlib")
    drawn: list[bool] = []

    def draw(*_: object) -> dict[str, object]:
        figure, axes = canvas(1, 1)
        axes[0, 0].text(0.5, 0.5, "a")
        drawn.extend(text.get_usetex() for text in figure.findobj(mpl.text.Text))
        return {"x": figure}

    monkeypatch.setattr(report, "_figures", draw)
    results = tmp_path / "results"  # of one experiment: to read and judge all of them takes seconds
    shutil.copytree(SHIPPED, results, ignore=lambda root, names: {*names} & {*EXPERIMENTS} - {"kernels"})
    with mpl.rc_context({"text.usetex": True}):
        write_report(Store(results, create=False), tmp_path / "report")
    assert drawn
    assert not any(drawn)


def test_identifiers_of_figures_do_not_collide(page: Path) -> None:
    ids = re.findall(r'<(?:clipPath|path|g|use)[^>]* id="([^"]+)"', page.read_text())
    clips = [name for name in ids if re.fullmatch(r"[pm][0-9a-f]{8,}", name)]
    assert len(clips) == len(set(clips))


def test_an_empty_store_has_no_report(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no experiment is complete"):
        write_report(Store(tmp_path / "out"), tmp_path / "report")


@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine; continuous integration installs one")
def test_a_real_browser_opens_it_without_errors_and_fetches_nothing(page: Path, tmp_path: Path) -> None:
    """The page's own policy forbids it to fetch anything, and the console would say so if it tried."""
    built, console = browse(page, tmp_path)
    assert built.count("<svg") == page.read_text().count("<svg")
    assert console == ""
    tempted = tmp_path / "tempted.html"
    tempted.write_text(page.read_text().replace("<main>", '<main><img src="http://127.0.0.1:9/x.png">'))
    assert "Content Security Policy" in browse(tempted, tmp_path)[1]
