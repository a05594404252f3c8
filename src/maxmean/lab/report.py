"""The report: one HTML page that opens from disk, with every figure, its command, its settings and the claims."""

from __future__ import annotations

import html
import shlex
from collections.abc import Sequence
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..whole import write_whole
from .change import differences
from .claims import Verdict, judge
from .experiment import Experiment, Results
from .experiments import EXPERIMENTS
from .figures import inline_svg, lay_out, save
from .run import load_best
from .store import Store, StoreError


def write_report(store: Store, folder: Path, prefer: tuple[str, int] | None = None) -> Path:
    """Write ``report.html`` with its figures (PDF, PNG) and tables (CSV) into ``folder``; returns the page's path.

    It shows each experiment at the largest scale that is there, or the run that is preferred (scale, seed).
    """
    sections, verdicts = [], []
    try:
        for name in ("figures", "tables"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for experiment in EXPERIMENTS.values():
            results = load_best(store, experiment, prefer)
            found = judge(experiment, results)
            if results is not None and not results.missing:
                verdicts += found
                sections.append(_section(experiment, results, found, folder))
        if not sections:
            raise StoreError(
                f"no experiment is complete in {str(store.root)!r}: 'maxmean reproduce' with this --out computes them, "
                "and goes on with one that was stopped when it has the same arguments"
            )
        page = folder / "report.html"
        write_whole(page, _page(sections, verdicts).encode())
    except OSError as error:
        raise StoreError(f"cannot write the report to {str(folder)!r}: {error.strerror}") from None
    return page


def _command(experiment: Experiment[Any], results: Results[Any]) -> str:
    """What computes these results; settings changed by hand are written out, against the scale that has most of them."""
    changes = {scale: differences(results.settings, experiment.settings(scale)) for scale in experiment.scales}
    scale = results.scale if results.scale in changes else min(changes, key=lambda each: len(changes[each]))
    sets = "".join(f" --set {shlex.quote(text)}" for text in changes[scale])
    return f"maxmean reproduce {experiment.name} --scale {scale}{sets} --seed {results.seed}"


def _section(experiment: Experiment[Any], results: Results[Any], verdicts: Sequence[Verdict], folder: Path) -> str:
    table = f"tables/{experiment.name}.csv"
    write_whole(folder / table, results.table.to_csv(index=False).encode())
    figures = []
    for name, figure in experiment.figures(results).items():
        stem = f"{experiment.name}-{name}"
        lay_out(figure)
        for kind in ("pdf", "png"):
            write_whole(folder / "figures" / f"{stem}.{kind}", save(figure, kind, stem))
        links = " ".join(f'<a href="figures/{stem}.{kind}">{kind.upper()}</a>' for kind in ("pdf", "png"))
        figures.append(f"<figure>{inline_svg(figure, stem)}<figcaption>{links}</figcaption></figure>")
    command = _command(experiment, results)
    settings = "".join(
        f"<tr><th>{_text(f.name)}</th><td>{_text(getattr(results.settings, f.name))}</td></tr>"
        for f in fields(results.settings)
    )
    return f"""
<section id="{_text(experiment.name)}">
<h2>{_text(experiment.title)} <small>section {_text(experiment.section)}</small></h2>
<pre><code>{_text(command)}</code></pre>
{"".join(figures)}
{_claims_table(verdicts)}
<details><summary>Settings, tables and versions</summary>
<div class="wide"><table>{settings}</table></div>
<p>Computed in {results.seconds:.0f} s, all shards together, with {_text("; ".join(results.versions))}.
<a href="{table}">Table ({len(results.table):,} rows, CSV)</a></p></details>
</section>"""


def _claims_table(verdicts: Sequence[Verdict]) -> str:
    rows = "".join(
        f"""<tr><td><b>{_text(v.id)}</b></td><td>{_text(v.statement)}{_small(v.why)}{_small(v.note if v.note != v.why else "")}
<details><summary>{len(v.measured)} numbers</summary><table class="numbers">{_numbers(v)}</table></details></td>
<td><span class="{v.verdict}">{v.verdict}</span></td></tr>"""
        for v in verdicts
    )
    head = "<tr><th>claim</th><th>statement</th><th>verdict</th></tr>"
    return f'<div class="wide"><table class="claims">{head}{rows}</table></div>'


def _small(text: str) -> str:
    return f"<small>{_text(text)}</small>" if text else ""


def _numbers(verdict: Verdict) -> str:
    return "".join(
        f"<tr><td>{_text(name)}</td><td>{_text(number)}</td></tr>" for name, number in verdict.measured.items()
    )


def _page(sections: Sequence[str], verdicts: Sequence[Verdict]) -> str:
    count = {word: sum(v.verdict == word for v in verdicts) for word in ("holds", "fails", "undecided")}
    overview = "".join(
        f'<a class="{v.verdict}" href="#{_text(v.experiment)}" title="{_text(v.statement)}">{_text(v.id)}</a>'
        for v in verdicts
    )
    style = files("maxmean.lab").joinpath("report.css").read_text()
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>maxmean: the paper's experiments, reproduced</title>
<link rel="icon" href="data:,">
<style>{style}</style></head>
<body><main>
<h1>The paper's experiments, reproduced</h1>
<p>Of {len(verdicts)} claims {count["holds"]} hold, {count["fails"]} fail and {count["undecided"]} are undecided. A verdict uses
the 95% intervals of what was measured: a claim holds when every margin lies above zero with its whole interval, and fails
when one lies below.</p>
<p class="overview">{overview}</p>
{"".join(sections)}
</main></body></html>
"""


def _text(value: Any) -> str:
    return html.escape(str(value))
