"""Write what the shipped results say into the documents, between the marks ``<!-- NAME -->`` and ``<!-- end of NAME -->``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from agent_tables import agent_table, alpha_table, alphas_table, bias_table, rate_table, return_table
from minatar_note import note_tables
from page_parts import as_table, between_marks

from maxmean.lab.claims import BEYOND, Verdict, as_markdown, by_origin, tally
from maxmean.lab.experiment import Results
from maxmean.lab.experiments import EXPERIMENTS
from maxmean.lab.experiments.ads.figures import errors_of as ad_errors
from maxmean.lab.experiments.ads.settings import PLACES, Cell
from maxmean.lab.experiments.minatar.ends import Ends
from maxmean.lab.experiments.which import APART, errors_of
from maxmean.lab.run import SHIPPED, load_best, verdicts
from maxmean.lab.store import Store

HERE = Path(__file__).parent


def main() -> None:
    """Replace what stands between the marks of every page."""
    for page, text in pages().items():
        (HERE / page).write_text(text)


def pages() -> dict[str, str]:
    """The pages that have marks, as the shipped results want them."""
    store = Store(SHIPPED, create=False)
    study = load_best(store, EXPERIMENTS["minatar"])
    which = load_best(store, EXPERIMENTS["which"])
    ads = load_best(store, EXPERIMENTS["ads"])
    assert study is not None
    assert which is not None
    assert ads is not None
    ends = Ends(study)
    judged = verdicts(store)
    sentences = tomllib.loads((HERE / "verdicts.toml").read_text())
    tables = {
        "reproduction.md": {
            "count": count(judged),
            "verdicts": verdict_table(judged, sentences),
            "numbers": numbers(judged),
        },
        "bias.md": {"agents": agent_table(study, ends), "alpha": alpha_table(ends)},
        "estimators.md": {"regret": regret_table(which), "errors": errors_table(which), "gaps": gap_table(ads)},
        "notes/ads.md": {"places": places_table(ads), "shares": shares_table(judged)},
        "notes/minatar.md": note_tables(study, judged),
        "notes/bias.md": {
            "alphas": alphas_table(ends),
            "returns": return_table(ends),
            "biases": bias_table(study, ends),
            "rates": rate_table(ends),
        },
    }
    return {page: between_marks((HERE / page).read_text(), parts) for page, parts in tables.items()}


def count(judged: Sequence[Verdict]) -> str:
    """How many claims hold, fail or stay undecided; those beyond the paper are counted apart."""
    return "".join(f"{tally(some)}\n" for some in by_origin(judged) if some)


def verdict_table(judged: Sequence[Verdict], sentences: Mapping[str, Mapping[str, str]]) -> str:
    """Every claim with its verdict and one sentence, which was written for that verdict and no other."""
    if unknown := set(sentences) - {verdict.id for verdict in judged}:
        raise ValueError(f"there is a sentence but no claim: {', '.join(sorted(unknown))}")
    rows: dict[bool, list[list[str]]] = {False: [], True: []}
    for verdict in judged:
        sentence = sentences.get(verdict.id, {"verdict": "nothing", "found": ""})
        if sentence["verdict"] != verdict.verdict:
            raise ValueError(
                f"{verdict.id} {verdict.verdict}, and its sentence was written for {sentence['verdict']}: see verdicts.toml"
            )
        rows[verdict.beyond].append(
            [verdict.id, as_markdown(verdict.statement), f"**{verdict.label}**", sentence["found"]]
        )
    tables = [
        as_table(["claim", said, "verdict", "what we found"], rows[beyond], right=False)
        for said, beyond in (("the paper says", False), (BEYOND, True))
        if rows[beyond]
    ]
    return "\n".join(tables)


def numbers(judged: Sequence[Verdict]) -> str:
    """What was measured of every claim, folded: a page to look things up in."""
    return "\n".join(_folded(verdict) for verdict in judged)


def _folded(verdict: Verdict) -> str:
    where = BEYOND if verdict.beyond else f"section {verdict.where}"
    head = f"{verdict.id} {verdict.label} ({verdict.experiment}, {verdict.scale} scale, {where})"
    note = f"{as_markdown(verdict.note)}\n\n" if verdict.note else ""
    rows = [[as_markdown(name), str(number)] for name, number in verdict.listed.items()]
    return (
        f'<details markdown="1">\n<summary>{head}</summary>\n\n{note}'
        f"{as_table(['measured', 'value [95% interval]'], rows)}\n</details>\n"
    )


def regret_table(which: Results[Any]) -> str:
    """How much larger than the least each estimator's error may be, and where."""
    cells = errors_of(which)
    cells = cells[cells.index.get_level_values("spread") >= APART]
    over = cells.div(cells.min(axis=1), axis=0) - 1
    rows = []
    for name in over.max().sort_values().index:
        n, options, spread = over[name].idxmax()
        where = f"{options} options, spread {spread:g}, {n} observations"
        rows.append([f"`{name}`", f"{over[name].max():.0%}", where])
    return as_table(["estimator", "largest excess", "where"], rows)


def errors_table(which: Results[Any]) -> str:
    """Root mean squared errors with 20 observations each."""
    cells = errors_of(which).loc[20]
    rows = [
        [str(options), f"{spread:g}", *(f"**{each:.2f}**" if each == row.min() else f"{each:.2f}" for each in row)]
        for (options, spread), row in cells.iterrows()
    ]
    return as_table(["options", "spread", *(f"`{name}`" for name in cells.columns)], rows)


def gap_table(ads: Results[Any]) -> str:
    """Which estimator has the least error, by how far the best ad lies ahead of the next; rates evenly spaced or at random."""
    errors = ad_errors(ads).loc[["even", "random"]]
    gaps = np.array([ads.settings.gap(Cell(*cell)) for cell in errors.index])
    rows = []
    for low, high in pairwise((0, 0.5, 1, 2, np.inf)):
        some = errors[(gaps >= low) & (gaps < high)]
        first = (
            f"{low:g} to {high:g}" if low and high < np.inf else f"below {high:g}" if not low else f"{low:g} or more"
        )
        rows.append([first, *_least_counts(some, ("ae", "ke", "we", "me")), f"{_loss(some):.0%}"])
    head = ["best ad ahead of the next, in standard errors", "`ae` has the least error", "`ke`", "`we`", "`me`"]
    return as_table([*head, "`ke` loses at most"], rows)


def places_table(ads: Results[Any]) -> str:
    """In how many settings of the region each estimator has the least error, by where the rates lie."""
    errors = ad_errors(ads)
    rows = [[PLACES[place], *_least_counts(errors.loc[place], errors.columns)] for place in ads.settings.region_places]
    rows.append(["all", *_least_counts(errors, errors.columns)])
    return as_table(["least error", *(f"`{name}`" for name in errors.columns)], rows)


def _least_counts(errors: pd.DataFrame, names: Iterable[str]) -> list[str]:
    best = errors.idxmin(axis=1)
    return [str((best == name).sum()) for name in names]


def _loss(errors: pd.DataFrame) -> float:
    return float((errors["ke"] / errors.min(axis=1) - 1).max())


def shares_table(judged: Sequence[Verdict]) -> str:
    """In what share of the region each statement of A1 and A2 is seen to hold, and where the rates lie in each way."""
    rows: dict[str, list[str]] = {}
    for verdict in judged:
        if verdict.id in ("A1", "A2"):
            for name, number in verdict.measured.items():
                if name.startswith("share of "):
                    _, what = name.split(" in which ")
                    rows.setdefault(f"{verdict.id}: {what}", []).append(f"{number.value:.0%}")
    return as_table(["seen to hold in", "the region", *PLACES], [[name, *cells] for name, cells in rows.items()])


if __name__ == "__main__":
    main()
