"""One page to send: the answer as an HTML file that needs nothing else, and the view of it in a notebook."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from importlib.resources import files as packaged
from typing import TYPE_CHECKING

from .answer import (
    Shown,
    about,
    among,
    best_mean,
    estimates_grid,
    lift_grids,
    not_shown,
    options_grid,
    winner_grid,
)
from .charts import charts
from .glossary import glossary
from .markup import picture, table, text
from .show import confidence, decimals_for, escaped, number, percent, signed
from .target import check_target, write_target

if TYPE_CHECKING:
    from .compare import Comparison

PAGES = ("html", "htm")

_TABLES = Shown(rows=1000, width=120)
_PICTURE = Shown(rows=30, width=60)
_VIEW = Shown(rows=20, width=60)
_TO = " to\N{NO-BREAK SPACE}"


def check_page(path: str | os.PathLike[str]) -> None:
    """Refuse a path that no page can be written to."""
    check_target(path, PAGES, "a report")


def write_page(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Write a comparison as one HTML file, whole or not at all."""
    check_page(path)
    write_target(path, page(comparison).encode())


def page(comparison: Comparison) -> str:
    """The whole page; it asks the browser to fetch nothing and to run nothing."""
    notes = "".join(f"<li>{text(escaped(note))}</li>" for note in comparison.notes)
    tables = [options_grid(comparison, _TABLES), estimates_grid(comparison)]
    others = [winner_grid(comparison, _TABLES), *lift_grids(comparison, _TABLES)]
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="color-scheme" content="light dark">
<title>How good is the best one, really?</title>
<link rel="icon" href="data:,">
<style>{_style()}</style></head>
<body class="maxmean"><main>
<header><h1>How good is the best one, really?</h1>
<p class="lead">{text(comparison.worded())}</p></header>
{_key_numbers(comparison)}
{f"<aside><h2>Before you rely on it</h2><ul>{notes}</ul></aside>" if notes else ""}
<section><h2>The picture</h2>{picture(charts(comparison, _PICTURE))}</section>
<section><h2>The numbers</h2>
<p class="quiet">{text(about(comparison))}</p>
{"".join(map(table, tables))}
{"".join(f'<p class="quiet">{text(line)}</p>' for line in not_shown(comparison))}
<p><b>{text(best_mean(comparison))}</b></p>
{"".join(map(table, others))}</section>
<section><h2>What was read</h2>{_list(_read(comparison))}</section>
<section><h2>What the words mean</h2>{_list(glossary(comparison))}</section>
<footer>{text(_made_with())}</footer>
</main></body></html>
"""


def view(comparison: Comparison, *, biases: bool) -> str:
    """The answer in a notebook; without ``biases``, which take a while, there is no table of the methods."""
    grids = [options_grid(comparison, _VIEW)]
    if biases:
        grids += [estimates_grid(comparison), winner_grid(comparison, _VIEW), *lift_grids(comparison, _VIEW)]
    notes = "".join(f'<p class="quiet">note: {text(escaped(note))}</p>' for note in comparison.notes)
    return (
        f'<div class="maxmean view"><style>{_style()}</style><p class="lead">{text(comparison.worded())}</p>{notes}'
        f"{picture(charts(comparison, _VIEW))}{''.join(map(table, grids))}</div>"
    )


def _key_numbers(comparison: Comparison) -> str:
    problem, winner, lift = comparison.problem, comparison.winner, comparison.lift
    places, level = decimals_for(problem.standard_errors), confidence(comparison.level)
    largest = "smallest" if problem.lower_is_better else "largest"

    def covers(ends: Iterable[str]) -> str:
        return f"{level} interval {_TO.join(ends)}"

    own, answer = winner.recommended, comparison.answer
    name = among(winner.option, 60)
    naive = number(winner.naive, places)
    if winner.tied:
        values = sorted(tie.value for tie in winner.tied)
        planned = " to ".join(dict.fromkeys(number(value, places) for value in (values[0], values[-1])))
        those = f"{len(winner.tied):,} options"
        cards = [
            ("looks best", naive, [f"{those} share this mean"]),
            ("plan with", planned, [f"for each of these {those}"]),
        ]
    else:
        ends = covers(number(end, places) for end in own.interval)
        cards = [("looks best", naive, [name, "as observed"]), ("plan with", number(own.value, places), [name, ends])]
    ends = covers(number(end, places) for end in comparison.maximum)
    among_all = f"{len(comparison.best_set):,} of {len(problem.names):,}"
    cards += [
        (f"{largest} true mean", number(comparison.maximum_value, places), [f"by {answer.method}", ends]),
        ("may be the best", among_all, ["options", f"with {level} probability"]),
    ]
    if lift is not None:
        best = lift.best
        value = f"{among(best.option, 60)}, {signed(best.recommended.value, places)}"
        ends = covers(signed(end, places) for end in best.recommended.interval)
        cards.append((f"lift over {among(lift.control, 60)}", percent(best.relative.value), [value, ends]))
    shown = "".join(
        f"<div><dt>{text(term)}</dt><dd><b>{text(value)}</b></dd>{''.join(f'<dd>{text(line)}</dd>' for line in lines)}</div>"
        for term, value, lines in cards
    )
    return f'<dl class="key">{shown}</dl>'


def _read(comparison: Comparison) -> list[tuple[str, str]]:
    """Where the numbers come from."""
    problem, n = comparison.problem, comparison.problem.data.n
    if n is None:
        counted = "the data do not say how many"
    else:
        each = f"{n[0]:,} of each option" if len(set(n)) == 1 else f"{min(n):,} to {max(n):,} of an option"
        counted = f"{sum(n):,}; {each}"
    remarks = len(problem.remarks)
    guessed = (
        "nothing"
        if not remarks
        else "see the first note above"
        if remarks == 1
        else f"see the first {remarks} notes above"
    )
    rows = [
        ("data", escaped(problem.source) or "given in Python"),
        ("read as", escaped(problem.taken_for)),
        ("guessed or left out", guessed),
        ("observations", counted),
        ("intervals", confidence(comparison.level)),
        ("simulations", f"{problem.resamples:,} resamples behind the bias, seed {problem.seed}"),
    ]
    if problem.control is not None:
        rows.append(("control", among(problem.control, 120)))
    if problem.planned is not None:
        rows.append(
            ("planned", f"intervals that hold at every look, shortest at {problem.planned:,} observations an option")
        )
    return [(term, words) for term, words in rows if words]


def _list(rows: Iterable[tuple[str, str]]) -> str:
    return f'<dl class="words">{"".join(f"<dt>{text(a)}</dt><dd>{text(b)}</dd>" for a, b in rows)}</dl>'


def _made_with() -> str:
    from .. import __version__

    return f"Computed with maxmean {__version__}."


@cache
def _style() -> str:
    return packaged("maxmean.mev").joinpath("page.css").read_text()
