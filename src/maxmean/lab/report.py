"""The report: one HTML page that opens from disk, with every figure, its command, its settings and the claims."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files as packaged
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..drawing import check_matplotlibrc, own_style
from ..mev.show import escaped
from .change import differences
from .claims import BEYOND, IN_PART, TOO_SMALL, Verdict, by_origin, tally
from .experiment import Experiment, Results
from .experiments import EXPERIMENTS
from .figures import inline_svg, lay_out, save
from .files import read_bytes, write_file
from .loading import LeftOut, Say, unsaid
from .run import judge_all, nothing, trusting
from .store import DamagedError, Store, StoreError
from .tables import as_csv

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Report(NamedTuple):
    """A report that was written, and what it was written from."""

    page: Path
    verdicts: list[Verdict]
    """On every claim, those of experiments that the page has no section of too."""


def check_report(store: Store, folder: Path) -> None:
    """Refuse a folder that a report cannot be written into, or where no figure can be drawn."""
    for place in (folder, folder / "figures", folder / "tables"):
        if store.root in place.parents and place.is_symlink():  # of a stranger's choice
            raise StoreError(f"{str(place)!r} is a link: choose another folder for the report with --out")
    check_matplotlibrc()


def write_report(store: Store, folder: Path, prefer: tuple[str, int] | None = None, say: Say = unsaid) -> Report:
    """Write ``report.html`` with its figures (PDF, PNG) and tables (CSV) into ``folder``.

    It shows each experiment at the largest scale that is there, or the run that is preferred (scale, seed). What cannot be used
    is left out, and ``say`` hears why. Figures and tables of an earlier report in the same folder go.
    """
    check_report(store, folder)
    sections: dict[bool, list[str]] = {False: [], True: []}  # by whether they are beyond the paper
    verdicts: list[Verdict] = []
    shown: list[Verdict] = []
    written: set[str] = set()
    left_out: list[LeftOut] = []
    for judged in judge_all(store, prefer, left_out.append):
        verdicts += judged.verdicts
        if judged.results is None or not judged.complete:
            continue
        try:
            with trusting(judged.experiment, store), own_style({"text.parse_math": False}):
                figures = _figures(judged.experiment, judged.results)
                files = _files(judged.experiment.name, judged.results, figures)
                section = _section(judged.experiment, judged.results, judged.verdicts, figures)
        except DamagedError as error:
            left_out.append(LeftOut(judged.experiment.name, str(error)))
            continue
        for name, content in files.items():
            write_file(folder / name, content, folder)
        written |= set(files)
        sections[judged.experiment.beyond].append(section)
        shown += judged.verdicts
    if not any(sections.values()):
        raise StoreError(nothing(store, left_out))
    for each in left_out:
        say(each)
    page = folder / "report.html"
    earlier = _linked(page)
    write_file(page, _page(sections[False], sections[True], shown).encode(), folder)
    _remove(folder, earlier - written)
    return Report(page, verdicts)


def _linked(page: Path) -> set[str]:
    """The figures and tables of the report that is there already, by what its page links to; there may be none."""
    names = "|".join(EXPERIMENTS)
    link = rf'href="(figures/(?:{names})-[a-z0-9_-]+\.(?:pdf|png)|tables/(?:{names})(?:-apart)?\.csv)"'
    try:
        return set(re.findall(link, read_bytes(page).decode()))
    except (DamagedError, UnicodeDecodeError):
        return set()


def _remove(folder: Path, names: set[str]) -> None:
    """Take away what an earlier report left; what a link leads to is somebody else's."""
    for name in names:
        path = folder / name
        if not path.parent.is_symlink():
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _command(experiment: Experiment[Any], results: Results[Any]) -> str:
    """What computes these results; settings changed by hand are written out, against the scale that has most of them."""
    changes = {scale: differences(results.settings, experiment.settings(scale)) for scale in experiment.scales}
    scale = results.scale if results.scale in changes else min(changes, key=lambda each: len(changes[each]))
    sets = "".join(f" --set {shlex.quote(text)}" for text in changes[scale])
    return f"maxmean reproduce {experiment.name} --scale {scale}{sets} --seed {results.seed}"


def _figures(experiment: Experiment[Any], results: Results[Any]) -> dict[str, Figure]:
    """The experiment's figures by the names of their files, every part in its place."""
    figures = {f"{experiment.name}-{name}": figure for name, figure in experiment.figures(results).items()}
    for figure in figures.values():
        lay_out(figure)
    return figures


def _files(name: str, results: Results[Any], figures: Mapping[str, Figure]) -> dict[str, bytes]:
    """An experiment's files beside the page, by their paths."""
    drawn = {
        f"figures/{stem}.{kind}": save(figure, kind, stem)
        for stem, figure in figures.items()
        for kind in ("pdf", "png")
    }
    tables = {f"tables/{name}.csv": results.table}
    if results.apart:
        tables[f"tables/{name}-apart.csv"] = _apart(results)
    return {path: as_csv(table) for path, table in tables.items()} | drawn


def _apart(results: Results[Any]) -> pd.DataFrame:
    """The tables of shards with settings of their own, with a column for each setting in which one differs."""
    import pandas as pd

    usual = vars(results.settings)
    changed = {name: None for own in results.apart for name, value in vars(own).items() if value != usual[name]}
    return pd.concat(
        [
            table.assign(**{f"setting {name}": vars(own)[name] for name in changed})
            for own, table in results.apart.items()
        ],
        ignore_index=True,
    )


def _section(
    experiment: Experiment[Any], results: Results[Any], verdicts: Sequence[Verdict], figures: Mapping[str, Figure]
) -> str:
    shown = []
    for stem, figure in figures.items():
        links = " ".join(f'<a href="figures/{stem}.{kind}">{kind.upper()}</a>' for kind in ("pdf", "png"))
        shown.append(f"<figure>{inline_svg(figure, stem)}<figcaption>{links}</figcaption></figure>")
    command = _command(experiment, results)
    apart = ""
    if results.apart:
        rows = sum(map(len, results.apart.values()))
        apart = f' <a href="tables/{experiment.name}-apart.csv">With settings of their own ({rows:,} rows, CSV)</a>'
    settings = "".join(
        f"<tr><th>{_text(name)}</th><td>{_text(value)}</td></tr>" for name, value in vars(results.settings).items()
    )
    return f"""
<section id="{_text(experiment.name)}">
<h2>{_text(experiment.title)} <small>{"" if experiment.beyond else "section "}{_text(experiment.section)}</small></h2>
<pre><code>{_text(command)}</code></pre>
{"".join(shown)}
{_claims_table(verdicts)}
<details><summary>Settings, tables and versions</summary>
<div class="wide"><table>{settings}</table></div>
<p>Computed in {results.seconds:.0f} s, all shards together, with {_text("; ".join(results.versions))}.
<a href="tables/{experiment.name}.csv">Table ({len(results.table):,} rows, CSV)</a>{apart}</p></details>
</section>"""


def _claims_table(verdicts: Sequence[Verdict]) -> str:
    rows = "".join(
        f"""<tr><td><b>{_text(v.id)}</b></td><td>{_text(v.statement)}{_small(v.why)}{_small(v.note if v.note != v.why else "")}
<details><summary>{len(v.listed)} numbers</summary><table class="numbers">{_numbers(v)}</table></details></td>
<td><span class="{_class(v)}">{v.label}</span></td></tr>"""
        for v in verdicts
    )
    head = "<tr><th>claim</th><th>statement</th><th>verdict</th></tr>"
    return f'<div class="wide"><table class="claims">{head}{rows}</table></div>'


def _class(verdict: Verdict) -> str:
    """How the style sheet calls a verdict."""
    return {TOO_SMALL: "unjudged", IN_PART: "part"}.get(verdict.verdict, verdict.verdict)


def _small(text: str) -> str:
    return f"<small>{_text(text)}</small>" if text else ""


def _numbers(verdict: Verdict) -> str:
    return "".join(
        f"<tr><td>{_text(name)}</td><td>{_text(number)}</td></tr>" for name, number in verdict.listed.items()
    )


def _overview(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return ""
    links = "".join(
        f'<a class="{_class(v)}" href="#{_text(v.experiment)}" title="{_text(v.statement)}">{_text(v.id)}</a>'
        for v in verdicts
    )
    return f'<p class="overview">{links}</p>\n'


def _page(sections: Sequence[str], own: Sequence[str], verdicts: Sequence[Verdict]) -> str:
    """The page: the paper's experiments, and under a heading of their own those beyond it."""
    papers, ours = by_origin(verdicts)
    beyond = f"\n<h1>{BEYOND.capitalize()}</h1>\n{_overview(ours)}{''.join(own)}" if own else ""
    style = packaged("maxmean.lab").joinpath("report.css").read_text()
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>maxmean: the paper's experiments, reproduced</title>
<link rel="icon" href="data:,">
<style>{style}</style></head>
<body><main>
<h1>The paper's experiments, reproduced</h1>
<p>{tally(verdicts)} A verdict uses the 95% intervals of what was measured: a claim holds when every margin lies above
zero with its whole interval, and fails when one lies below. Where too little was measured, it is not judged.</p>
{_overview(papers)}{"".join(sections)}{beyond}
</main></body></html>
"""


def _text(value: Any) -> str:
    return html.escape(escaped(str(value)))
