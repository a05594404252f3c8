"""Write what the shipped results say into the documents, between the marks ``<!-- NAME -->`` and ``<!-- end of NAME -->``."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from maxmean.lab.claims import BEYOND, IN_PART, Measured, Verdict, by_origin
from maxmean.lab.experiment import Results
from maxmean.lab.experiments import EXPERIMENTS
from maxmean.lab.experiments.minatar.claims import UNBIASED
from maxmean.lab.experiments.minatar.ends import Ends, mean_over_games
from maxmean.lab.experiments.minatar.variants import ADAPTIVE, ALPHAS, VARIANTS, power
from maxmean.lab.experiments.which import APART, errors_of
from maxmean.lab.run import SHIPPED, load_best, verdicts
from maxmean.lab.store import Store

HERE = Path(__file__).parent


COMPARED = {
    "D1": [("breakout", "dqn", "ddqn"), ("seaquest", "dqn", "ddqn")],
    "D2": [("breakout", "te-bdqn(0.2)", "te-bdqn(0.1)"), ("asterix", "te-bdqn(0.4)", "te-bdqn(0.3)")],
}
"""The differences of bias for which the study has more seeds than for the others, by the claim that they are margins of."""


def main() -> None:
    """Replace what stands between the marks of every page."""
    for page, text in pages().items():
        (HERE / page).write_text(text)


def pages() -> dict[str, str]:
    """The pages that have marks, as the shipped results want them."""
    store = Store(SHIPPED, create=False)
    study = load_best(store, EXPERIMENTS["minatar"])
    which = load_best(store, EXPERIMENTS["which"])
    assert study is not None
    assert which is not None
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
        "estimators.md": {"regret": regret_table(which), "errors": errors_table(which)},
        "notes/minatar.md": {"seeds": seeds_table(study), "longer": longer_table(study)},
        "notes/bias.md": {
            "alphas": alphas_table(ends),
            "returns": return_table(ends),
            "biases": bias_table(study, ends),
            "rates": rate_table(ends),
        },
    }
    return {page: _between((HERE / page).read_text(), parts) for page, parts in tables.items()}


def count(judged: Sequence[Verdict]) -> str:
    """How many claims hold, fail or stay undecided; those beyond the paper are counted apart."""
    return "".join(
        f"Of {len(some)} claims{of}, **{found['holds']} hold, {found[IN_PART]} hold in part, {found['fails']} fail and "
        f"{found['undecided']} are undecided**.\n"
        for of, some in zip(("", f" {BEYOND}"), by_origin(judged), strict=True)
        if some and (found := Counter(verdict.verdict for verdict in some))
    )


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
        rows[verdict.beyond].append([verdict.id, _cell(verdict.statement), f"**{verdict.label}**", sentence["found"]])
    tables = [
        _table(["claim", said, "verdict", "what we found"], rows[beyond], right=False)
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
    note = f"{verdict.note}\n\n" if verdict.note else ""
    rows = [[_cell(name), str(number)] for name, number in verdict.measured.items()]
    return (
        f'<details markdown="1">\n<summary>{head}</summary>\n\n{note}'
        f"{_table(['measured', 'value [95% interval]'], rows)}\n</details>\n"
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
    return _table(["estimator", "largest excess", "where"], rows)


def errors_table(which: Results[Any]) -> str:
    """Root mean squared errors with 20 observations each."""
    cells = errors_of(which).loc[20]
    rows = [
        [str(options), f"{spread:g}", *(f"**{each:.2f}**" if each == row.min() else f"{each:.2f}" for each in row)]
        for (options, spread), row in cells.iterrows()
    ]
    return _table(["options", "spread", *(f"`{name}`" for name in cells.columns)], rows)


def seeds_table(study: Results[Any]) -> str:
    """The margins with more seeds: over those that all have, over the further ones alone, and over all, which is judged."""
    new = study.table["seed"] >= study.settings.seeds
    looks = [Ends(replace(study, table=study.table[rows])) for rows in (~new, new, new | ~new)]
    few, more, every = (len(ends("bias", *COMPARED["D1"][0][:2])) for ends in looks)
    rows = [
        [
            f"{claim}, {_title(game)}: bias of `{higher}` above `{lower}`'s",
            *(str(Measured.difference(ends("bias", game, higher), ends("bias", game, lower))) for ends in looks),
        ]
        for claim, compared in COMPARED.items()
        for game, higher, lower in compared
    ]
    return _table(["margin [95% interval]", f"first {few} seeds", f"{more} further ones", f"all {every}, judged"], rows)


def longer_table(study: Results[Any]) -> str:
    """The runs that are longer than the study's, by million steps: means over the half million before."""
    rows = []
    every = pd.concat(study.apart.values())
    for (game, rate, variant), table in every.groupby(["game", "learning_rate", "variant"]):
        for million in range(1, int(table["step"].max() // 1_000_000) + 1):
            end = million * 1_000_000
            window = table[(table["step"] > end - 500_000) & (table["step"] <= end)]
            runs = window.groupby("seed")[["test_return", "bias", "value"]].mean()
            numbers = (_number(runs[column].to_numpy(), column) for column in runs)
            rows.append([_title(game), f"`{variant}`", power(rate), str(million), *numbers])
    return _table(["game", "agent", "learning rate", "million steps", "return", "bias", "mean Q"], rows)


def agent_table(study: Results[Any], ends: Ends) -> str:
    """Every agent in one line: what it gets, how far its values are off, and how often they are right."""
    near = often_near_zero(study, ends.rate)
    shares = {name: mean_over_games(ends.shares("test_return", name)) for name in VARIANTS}
    rows = [
        [f"`{name}`", _number(shares[name], "share"), _range(ends, name), f"{near[name]:.0%}"]
        for name in sorted(VARIANTS, key=lambda name: -shares[name].value)
    ]
    return _table(["agent", "return, share of the best", "bias, share of mean Q", "near zero"], rows)


def _range(ends: Ends, name: str) -> str:
    """The bias as a share of the mean value in the game where it is lowest, and where it is highest."""
    shares = [ends("bias", game, name).mean() / ends("value", game, name).mean() for game in ends.games]
    return f"{min(shares):+.0%} to {max(shares):+.0%}"


def alpha_table(ends: Ends) -> str:
    """TE-BDQN's bias by alpha, and BDQN's, whose heads have Double DQN's target."""
    names = [*(f"te-bdqn({alpha})" for alpha in ALPHAS), "bdqn"]
    rows = [[_title(game), *(_number(ends("bias", game, name), "bias") for name in names)] for game in ends.games]
    return _table(["bias", f"alpha {ALPHAS[0]}", *map(str, ALPHAS[1:]), "BDQN"], rows)


def alphas_table(ends: Ends) -> str:
    """TE-BDQN's mean value and return by alpha, and BDQN's."""
    names = [*(f"te-bdqn({alpha})" for alpha in ALPHAS), "bdqn"]
    rows = []
    for game in ends.games:
        for title, column in (("mean Q", "value"), ("return", "test_return")):
            rows.append([f"{_title(game)}, {title}", *(_number(ends(column, game, name), column) for name in names)])
    return _table(["TE-BDQN", f"alpha {ALPHAS[0]}", *map(str, ALPHAS[1:]), "BDQN"], rows)


def return_table(ends: Ends) -> str:
    """Every agent's return, the best on average first."""
    shares = {name: mean_over_games(ends.shares("test_return", name)) for name in VARIANTS}
    rows = [
        [
            f"`{name}`",
            *(_number(ends("test_return", game, name), "test_return") for game in ends.games),
            _number(shares[name], "share"),
        ]
        for name in sorted(VARIANTS, key=lambda name: -shares[name].value)
    ]
    return _table(["return", *map(_title, ends.games), "of the best"], rows)


def bias_table(study: Results[Any], ends: Ends) -> str:
    """Every agent's bias, and how often it is near zero: the one that is most often so first."""
    near = often_near_zero(study, ends.rate)
    rows = [
        [f"`{name}`", *(_number(ends("bias", game, name), "bias") for game in ends.games), f"{near[name]:.0%}"]
        for name in sorted(VARIANTS, key=lambda name: -near[name])
    ]
    return _table(["bias", *map(_title, ends.games), "near zero"], rows)


def rate_table(ends: Ends) -> str:
    """Return and bias by learning rate of the agents that were run with several, and the alpha that Ada-TE ended with."""
    rates = sorted({rate for game in ends.games for rate in ends.rates(game)})
    rows = []
    for game in ends.games:
        run = {rate: ends.variants(game, rate) for rate in ends.rates(game)}
        several = [name for name in VARIANTS if sum(name in names for names in run.values()) > 1]
        adaptive = [name for name in several if name == ADAPTIVE]
        for title, column, names in (
            ("return", "test_return", several),
            ("bias", "bias", several),
            ("alpha", "alpha", adaptive),
        ):
            for name in names:
                cells = [
                    _number(ends(column, game, name, rate), column) if name in run.get(rate, ()) else ""
                    for rate in rates
                ]
                rows.append([f"{_title(game)}, {title} of `{name}`", *cells])
    return _table(["learning rate", *map(power, rates)], rows)


def often_near_zero(study: Results[Any], rate: float) -> dict[str, float]:
    """By agent, the share of the tenths of its runs in which the bias is small beside the mean value; each game counts alike."""
    table = study.table[study.table["learning_rate"] == rate]
    tenth = np.ceil(10 * table["step"] / study.settings.steps)
    means = table.assign(tenth=tenth).groupby(["variant", "game", "seed", "tenth"])[["bias", "value"]].mean()
    near = means["bias"].abs() < UNBIASED * means["value"].abs()
    by_game = near.groupby(["variant", "game"]).mean()
    return {str(name): float(share) for name, share in by_game.groupby("variant").mean().items()}


def _number(runs: np.ndarray | Measured, column: str) -> str:
    """The mean of the runs, or what was measured of them, with half of its interval."""
    found = runs if isinstance(runs, Measured) else Measured.mean(runs)
    digits = {"bias": 2, "value": 1, "share": 2, "alpha": 2}.get(column, 0 if found.value >= 100 else 1)
    return f"{found.value:.{digits}f} ± {found.high - found.value:.{digits}f}"


def _title(game: str) -> str:
    return game.replace("_", " ").title()


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: bool = True) -> str:
    lines = [head, ["---", *["--:" if right else "---"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _between(text: str, parts: dict[str, str]) -> str:
    for name, part in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not (found and closed):
            raise ValueError(f"a page has no marks for '{name}'")
        text = before + begin + part + end + after
    return text


if __name__ == "__main__":
    main()
