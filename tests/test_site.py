"""The documentation's build: what its hooks make of formulas, docstrings and the shipped study."""

from __future__ import annotations

import importlib.util
import inspect
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from maxmean import mev
from maxmean.deep.registry import REGISTRY
from maxmean.lab.claims import Measured, Verdict
from maxmean.lab.experiment import Results
from maxmean.lab.experiments.minatar.study import Settings
from maxmean.lab.experiments.minatar.variants import LABELS
from maxmean.lab.run import SHIPPED, verdicts
from maxmean.lab.store import Store
from seldom import slow

ROOT = Path(__file__).parents[1]
OTHERS = sorted({variant.partition(":")[0].replace("*", "") for variant in LABELS} - {"dqn", "bdqn"})
"""Agents of the study, but those whose curves other tests draw too."""


def script(name: str) -> ModuleType:
    """A module that stands beside the pages."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def build() -> ModuleType:
    return script("build_site")


def test_the_documented_numbers_are_those_of_the_shipped_results() -> None:
    fresh = script("write_results").pages()
    assert set(fresh) == {
        "bias.md",
        "estimators.md",
        "reproduction.md",
        *(f"notes/{name}.md" for name in ("ads", "bias", "minatar")),
    }
    for page, text in fresh.items():
        assert (ROOT / "docs" / page).read_text() == text


def test_every_claim_has_a_sentence_that_was_written_for_its_verdict() -> None:
    table = script("write_results").verdict_table
    verdict = Verdict("X1", "|bias| is small", "1", "holds", {"margin: room": Measured.exact(1.0)}, "paper", "ads")
    text = table([verdict], {"X1": {"verdict": "holds", "found": "It is."}})
    assert text.splitlines()[-1] == "| X1 | \\|bias\\| is small | **holds** | It is. |"
    with pytest.raises(ValueError, match="X1 holds, and its sentence was written for fails"):
        table([verdict], {"X1": {"verdict": "fails", "found": "It is not."}})
    with pytest.raises(ValueError, match="X1 holds, and its sentence was written for nothing"):
        table([verdict], {})
    with pytest.raises(ValueError, match="a sentence but no claim: Y1"):
        table([], {"Y1": {"verdict": "holds", "found": "It is."}})


def test_the_numbers_of_the_sentences_are_those_that_were_measured() -> None:
    judged = {verdict.id: verdict for verdict in verdicts(Store(SHIPPED, create=False))}
    found = {name: each["found"] for name, each in tomllib.loads((ROOT / "docs" / "verdicts.toml").read_text()).items()}

    def share(claim: str, what: str) -> str:
        return f"{judged[claim].measured[f'share of the region in which {what}'].value:.0%}"

    ke, te = (share("A1", f"{name} beats me, cve and we") for name in ("ke", "te"))
    assert f"KE beats all three in {ke}, TE(0.1) in {te}, both in {len(judged['A1'].parts.hold)}:" in found["A1"]
    wins = {
        name: sum(each.low > 0 for what, each in judged["A1"].measured.items() if f"saved by {name} against" in what)
        for name in ("ke", "te")
    }
    assert f"Of our first six settings, KE wins in {wins['ke']} and TE in {wins['te']}." in found["A1"]
    varies, biased, me, cve = (
        share("A2", what) for what in ("cve varies most", "me is biased upwards", "we beats me", "we beats cve")
    )
    every = f"all of it in {len(judged['A2'].parts.hold)}."
    assert (
        f"DE varies most in {varies}, ME's bias shows in {biased}, WE beats ME in {me} and DE in {cve}, {every}"
        in found["A2"]
    )
    excess = {
        name.removeprefix("largest excess of "): each.value
        for name, each in judged["E2"].measured.items()
        if name.startswith("largest excess")
    }
    assert f"The largest excess is about {excess['ke']:.0%}." in found["E1"]
    assert sorted(excess, key=lambda name: excess[name])[:2] == ["ke", "te"]
    assert f"is TE's, {excess['te']:.0%}; that of the largest mean is about {round(excess['me'], 1):.0%}" in found["E2"]
    equal, spread = (
        judged["E3"].measured[f"margin: next best error above that of {name}, least"] for name in ("ae", "me")
    )
    assert round(4 * equal.value) == 1
    assert round(200 * spread.value) == 1
    assert "by about a quarter at least; at eight standard errors by as little as half a percent" in found["E3"]


def test_claims_beyond_the_paper_have_a_table_and_a_count_of_their_own() -> None:
    results = script("write_results")
    papers = Verdict("S1", "a", "1", "holds", {}, "paper", "ads")
    ours = Verdict("X1", "b", "nowhere", "fails", {}, "paper", "toy", beyond=True)
    sentences = {"S1": {"verdict": "holds", "found": "It is."}, "X1": {"verdict": "fails", "found": "It is not."}}
    first, second = results.verdict_table([ours, papers], sentences).split("\n\n")
    assert first.splitlines()[0] == "| claim | the paper says | verdict | what we found |"
    assert second.splitlines()[0] == "| claim | beyond the paper | verdict | what we found |"
    assert second.splitlines()[-1] == "| X1 | b | **fails** | It is not. |"
    assert results.count([ours, papers]).splitlines() == [
        "Of 1 claim 1 holds, 0 hold in part, 0 fail and 0 are undecided.",
        "Of 1 claim beyond the paper 0 hold, 0 hold in part, 1 fails and 0 are undecided.",
    ]
    assert "(toy, paper scale, beyond the paper)" in results.numbers([ours])


def test_the_numbers_of_a_claim_are_folded_and_complete() -> None:
    measured = {"room": Measured(2.0, 1.0, 3.0), "margin: |room|": Measured.exact(1.5)}
    text = script("write_results").numbers([Verdict("X1", "small", "1", "holds", measured, "paper", "ads", "Roughly.")])
    assert text.startswith('<details markdown="1">\n<summary>X1 holds (ads, paper scale, section 1)</summary>\n')
    assert text.endswith("</details>\n")
    assert "\nRoughly.\n" in text
    assert "| room | 2 [1, 3] |\n| margin: \\|room\\| | 1.5 |\n" in text


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no marks for 'alpha'"):
        script("page_parts").between_marks("text\n", {"alpha": "| a |\n"})


def test_every_algorithm_has_its_page_and_every_page_its_curve(build: ModuleType) -> None:
    pages = {path.stem: path.read_text() for path in (ROOT / "docs" / "algorithms").glob("*.md")}
    assert set(pages) == {each.unpaired for each in REGISTRY}
    for name, text in pages.items():
        assert "$$" in text
        assert f"--agent {name}" in text
        agents = {each.name for each in REGISTRY if each.unpaired == name}
        studied = agents & {variant.partition(":")[0] for variant in LABELS}
        assert build.CURVE.findall(text) == [name] * bool(studied), f"a curve for each agent of the study: {name}"
        assert studied <= {*build.shipped("minatar").table["agent"]}


@pytest.mark.parametrize("name", ["bdqn", *slow("dqn", *OTHERS)])
def test_a_curve_is_one_picture(build: ModuleType, name: str) -> None:
    assert build.curve(name).count("<svg") == 1


def test_the_reference_has_every_agents_class(build: ModuleType) -> None:
    shown = build.on_page_markdown((ROOT / "docs" / "api" / "host.md").read_text())
    row = r"^\| \[`maxmean\.(\w+)`\]\(\.\./algorithms/([\w-]+)\.md\)(?:, paired)? \| `--agent ([\w*-]+)"
    linked = re.findall(row, shown, flags=re.M)
    assert linked == [(each.function, each.unpaired, each.name) for each in REGISTRY]


def test_a_curve_says_how_many_seeds_it_shows(build: ModuleType) -> None:
    assert "MinAtar, 5 seeds (20 of dqn on breakout; 20 of dqn on seaquest), learning rate" in build.curve("dqn")
    assert "MinAtar, 5 seeds, learning rate" in build.curve("bdqn")


def test_a_curve_shows_the_paired_agent_too(build: ModuleType) -> None:
    shown = {cell for cell in re.findall(r"<td>([^<]*)</td>", build.curve("ke-bdqn")) if "bdqn" in cell}
    assert shown == {"ke-bdqn", "ke*-bdqn"}
    assert ">ada-ke*-bdqn(0.0001)</td>" in build.curve("ada-ke-bdqn")


def test_each_game_counts_alike_however_many_seeds_it_has() -> None:
    """Near zero in one game with one seed and in none of the tenths of the other with three: half of it all."""
    rows = [("here", 0, 0.5), *(("there", seed, 2.0) for seed in range(3))]
    table = pd.DataFrame(rows, columns=["game", "seed", "bias"]).assign(
        variant="dqn", learning_rate=0.1, step=10, value=10.0
    )
    found = Results("minatar", "study", Settings(steps=10, learning_rates=(0.1,)), 0, table)
    assert script("agent_tables").often_near_zero(found, 0.1) == {"dqn": 0.5}


def test_an_unknown_curve_is_refused(build: ModuleType) -> None:
    with pytest.raises(ValueError, match="no curve of 'nobody'"):
        build.on_page_content("<!-- curve: nobody -->")
    with pytest.raises(ValueError, match="no runs of 'chess'"):
        build.on_page_content("<!-- five million steps: chess -->")


def test_longer_runs_are_drawn_where_the_note_speaks_of_them(build: ModuleType) -> None:
    text = (ROOT / "docs" / "notes" / "minatar.md").read_text()
    assert build.LONG.findall(text) == ["breakout", "space_invaders"]
    drawn = build.on_page_content("<!-- five million steps: breakout -->")
    assert drawn.startswith('<figure class="curve"><svg')
    assert "ke-bdqn with 10^-5: 5 seeds, 5 million" in drawn


def test_agents_with_the_paired_statistic_are_drawn_where_the_note_speaks_of_them(build: ModuleType) -> None:
    assert build.PAIRED.search((ROOT / "docs" / "notes" / "minatar.md").read_text())
    drawn = build.on_page_content("<!-- paired agents -->")
    assert drawn.startswith('<figure class="curve"><svg')
    assert "seaquest: scale of the kernel" in drawn


def test_all_formulas_of_the_pages_can_be_shown(build: ModuleType) -> None:
    pytest.importorskip("latex2mathml")
    shown = 0
    for path in (ROOT / "docs").rglob("*.md"):
        text = re.sub(r"^```.*?^```|`[^`\n]+`", "", path.read_text(), flags=re.M | re.S)
        for block, inline in re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", text, flags=re.S):
            assert "<math" in build.formula(block or inline, block=bool(block))
            shown += 1
    assert shown > 50


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.stem)
def test_a_guide_can_be_read_at_one_sitting(path: Path) -> None:
    """At most a thousand words beside its code, tables and folded parts; what is longer is two guides, or a note."""
    text = re.sub(r"^```.*?^```|^<details.*?^</details>|^\|.*?$", "", path.read_text(), flags=re.M | re.S)
    assert len(text.split()) <= 1_000


def test_docstrings_become_markdown(build: ModuleType) -> None:
    text = build.markdown_of(inspect.cleandoc(mev.t_estimate.__doc__ or ""))
    assert ">>>" in text.split("```pycon")[1]
    assert text.count("```") == 2
    assert text.count("$$") == 2
    assert build.markdown_of("see :func:`mev.t_statistic` and :math:`x^2`") == "see `mev.t_statistic` and $x^2$"


def test_the_navigation_names_every_page() -> None:
    named = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    assert named == {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}


def test_the_map_of_the_estimators_is_drawn_from_the_shipped_table(build: ModuleType) -> None:
    drawn = build.on_page_content("<p><!-- map: which --></p>")
    assert drawn.startswith('<p><figure class="curve"><svg')
    assert "spread of the true means" in drawn
    assert set(build.MAPS) == set(build.MAP.findall((ROOT / "docs" / "estimators.md").read_text()))
    assert build.on_page_content("<p>nothing</p>") == "<p>nothing</p>"
