"""Facts about the ads: where their rates lie, what is made of blocks of runs, and how a region is judged."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from maxmean.lab.claims import Measured, Parts, judge
from maxmean.lab.experiment import Results
from maxmean.lab.experiments import EXPERIMENTS
from maxmean.lab.experiments.ads import Settings
from maxmean.lab.experiments.ads.blocks import Blocks
from maxmean.lab.experiments.ads.figures import errors_of
from maxmean.lab.experiments.ads.settings import REGION, Cell
from maxmean.lab.experiments.ads.study import IN_REGION
from maxmean.lab.run import SHIPPED, load_best
from maxmean.lab.store import Store

ROOT = Path(__file__).parents[2]
SMALL = replace(
    Settings(), region_customers=(10_000,), region_ads=(5, 10), region_highest=(0.05, 0.1), region_places=("even",)
)
"""A region of four settings."""


@cache
def shipped() -> Results[Settings]:
    results = load_best(Store(SHIPPED, create=False), EXPERIMENTS["ads"])
    assert results is not None
    return results


@pytest.mark.parametrize(
    ("places", "rates"),
    [
        ("even", [0.02, 0.04, 0.06, 0.08, 0.1]),
        ("one ahead", [0.02, 0.03, 0.04, 0.05, 0.1]),
        ("tied top", [0.02, 0.06, 0.1, 0.1, 0.1]),
    ],
)
def test_rates_lie_where_they_are_said_to(places: str, rates: list[float]) -> None:
    rng = np.random.default_rng(0)
    np.testing.assert_allclose(Settings().rates(Cell(places, 0.1, 5, 10_000), 3, rng), rates)


def test_rates_at_random_are_drawn_anew_between_the_limits() -> None:
    """The upper limit 0.01 lies below the paper's lower one: there it is 0.4 of it, as 0.02 is of 0.05."""
    rng = np.random.default_rng(0)
    for highest, lowest in ((0.1, 0.02), (0.01, 0.004)):
        rates = Settings().rates(Cell("random", highest, 50, 10_000), 400, rng)
        assert rates.shape == (400, 50)
        assert lowest <= rates.min() < rates.max() <= highest
        assert scipy.stats.kstest(rates.ravel(), "uniform", (lowest, highest - lowest)).pvalue > 1e-6


def made(
    squares: dict[str, list[list[float]]], errors: dict[str, list[list[float]]] | None = None
) -> Results[Settings]:
    """The small region with these squares, by estimator, a list of blocks for each setting; the six settings have the first."""
    rows = []
    six = [(name, ("even", *problem.values())) for name, problem in SMALL.problems().items()]
    cells = [(REGION, (c.places, c.customers, c.ads, c.highest)) for c in SMALL.region()]
    for k, (problem, setting) in enumerate([*cells, *six]):
        for name, by_setting in squares.items():
            place = k % len(cells) if problem == REGION else 0
            noise = (errors or {}).get(name, [[0.0] * 4] * len(cells))[place]
            rows += [(problem, *setting, name, e, s) for e, s in zip(noise, by_setting[place], strict=True)]
    columns = ["problem", "places", "customers", "ads", "highest", "estimator", "error", "squared"]
    return Results("ads", "custom", SMALL, 0, pd.DataFrame(rows, columns=columns))


def around(*levels: float) -> list[list[float]]:
    """Four blocks a setting, around these levels."""
    return [[level - 0.01, level + 0.01, level - 0.02, level + 0.02] for level in levels]


def test_a_setting_is_a_part_and_holds_only_if_both_beat_all_three() -> None:
    """KE and TE are best in the first two, TE is not in the third; in the fourth KE lies where WE lies, to less than noise."""
    squares = {
        "me": around(4, 4, 4, 4),
        "cve": around(5, 5, 5, 5),
        "we": [*around(3, 3, 3), [2.03, 1.99, 2.0, 2.0]],
        "we(exact)": around(3, 3, 3, 2),
        "te": around(1, 1, 3.5, 1),
        "ke": around(2, 2, 2, 2),
    }
    claim = next(claim for claim in EXPERIMENTS["ads"].claims if claim.id == "A1")
    found = claim.judge(made(squares))
    parts = Parts.of(found.margins)
    assert [[*some] for some in (parts.hold, parts.fail, parts.open)] == [
        ["even, N = 10,000, M = 5, rates to 0.05", "even, N = 10,000, M = 10, rates to 0.05"],
        ["even, N = 10,000, M = 5, rates to 0.1"],
        ["even, N = 10,000, M = 10, rates to 0.1"],
    ]
    assert found.judgement == "holds in part"
    region = "share of the region in which"
    assert found.numbers[f"{region} te and ke beat me, cve and we"] == Measured(0.5, 0.5, 0.75)
    assert found.numbers[f"{region} te beats me, cve and we"] == Measured(0.75, 0.75, 0.75)
    assert found.numbers[f"{region} ke beats me, cve and we"] == Measured(0.75, 0.75, 1.0)
    assert "KE does in 6 and TE in 6" in found.note


def test_of_the_blocks_the_region_is_told_by_what_it_says_and_not_by_its_order() -> None:
    squares = {"me": around(1, 2, 3, 4), "ke": around(5, 6, 7, 8)}
    results = made(squares)
    order = results.table.sort_values(["highest", "customers"], ascending=False, kind="stable")
    for table in (results.table, order):
        found = Blocks.of_region(replace(results, table=table))
        assert found.settings == SMALL.region()
        np.testing.assert_allclose(found.squares[:, found.estimators.index("ke")], squares["ke"])


def test_the_spread_of_a_difference_of_variances_is_that_of_leaving_blocks_out() -> None:
    rng = np.random.default_rng(1)
    errors = {name: rng.normal(size=(4, 4)).tolist() for name in ("me", "cve")}
    squares = {name: (np.square(errors[name]) + rng.uniform(1, 2, (4, 4))).tolist() for name in errors}
    found = Blocks.of_region(made(squares, errors)).varies_more("cve", "me")[2]

    def gap(keep: list[int]) -> float:
        cve, me = (
            np.mean(np.array(squares[n][2])[keep]) - np.mean(np.array(errors[n][2])[keep]) ** 2 for n in ("cve", "me")
        )
        return float((cve - me) / me)

    left_out = np.array([gap([j for j in range(4) if j != k]) for k in range(4)])
    error = np.sqrt(3 / 4 * np.square(left_out - left_out.mean()).sum())
    assert found.value == pytest.approx(gap([0, 1, 2, 3]))
    assert found.high == pytest.approx(found.value + scipy.stats.t.ppf(0.975, 3) * error)


def cell_rates(cell: Cell) -> np.ndarray:
    return shipped().settings.rates(cell, 1, np.random.default_rng(0))


def test_the_average_of_all_has_its_exact_error_all_over_the_region() -> None:
    """Bias and variance of the average are known. Each of 450 settings is within 8 standard errors, Student's with 19 degrees.

    False alarm: 1e-4.
    """
    blocks = Blocks.of_region(shipped())
    place, checked = blocks.estimators.index("ae"), 0
    for cell, squares in zip(shipped().settings.region(), blocks.squares[:, place], strict=True):
        if cell.places == "random":
            continue
        rates, shown = cell_rates(cell), cell.customers // cell.ads
        exact = (rates.mean() - rates.max()) ** 2 + (rates * (1 - rates)).sum() / shown / cell.ads**2
        assert abs(squares.mean() - exact) < 8 * squares.std(ddof=1) / np.sqrt(squares.size), cell
        checked += 1
    assert checked == 450


@pytest.mark.parametrize("places", ["even", "one ahead", "tied top"])
@pytest.mark.parametrize(("ads", "customers"), [(5, 10_000), (50, 30_000), (200, 100_000)])
def test_the_largest_mean_has_its_exact_error(places: str, ads: int, customers: int) -> None:
    """The law of the largest of independent binomials, against 4,000 runs, to 6 standard errors. False alarm: 1e-5."""
    cell, shown = Cell(places, 0.1, ads, customers), customers // ads
    clicks = np.arange(shown + 1)
    below = np.prod([scipy.stats.binom.cdf(clicks, shown, rate) for rate in cell_rates(cell)], axis=0)
    exact = np.diff(below, prepend=0.0) @ np.square(clicks / shown - 0.1)
    blocks = Blocks.of_region(shipped())
    squares = blocks.squares[shipped().settings.region().index(cell), blocks.estimators.index("me")]
    assert abs(squares.mean() - exact) < 6 * squares.std(ddof=1) / np.sqrt(squares.size)


def test_the_map_has_every_setting_of_the_issue_and_every_estimator() -> None:
    settings, errors = shipped().settings, errors_of(shipped())
    for values, ends in (
        (settings.region_customers, (10_000, 1_000_000)),
        (settings.region_ads, (5, 200)),
        (settings.region_highest, (0.01, 0.2)),
    ):
        assert (min(values), max(values)) == ends
    assert errors.shape == (600, 8)
    assert set(errors.columns) == set(IN_REGION)
    assert errors.notna().all(axis=None)


def test_what_the_guide_says_of_gaps_is_so() -> None:
    """Rates evenly spaced or at random; and one ad ahead, where ke loses most between one and four standard errors."""
    settings, errors = shipped().settings, errors_of(shipped())
    cells = [Cell(*cell) for cell in errors.index]
    best, loss = errors.idxmin(axis=1).to_numpy(), (errors["ke"] / errors.min(axis=1) - 1).to_numpy()
    gaps, places = np.array([settings.gap(cell) for cell in cells]), np.array([cell.places for cell in cells])
    spread = np.isin(places, ("even", "random"))
    assert set(best[spread & (gaps >= 2)]) == {"me"}
    near = spread & (gaps < 0.5)
    assert set(best[near]) == {"ke", "ae", "we"}
    assert loss[near & (best == "we")].max() < 0.02
    assert loss[spread & (gaps >= 0.5)].max() < 0.12  # it loses little
    for k in np.flatnonzero(spread):
        low, high = settings.limits(cells[k])
        shown = cells[k].customers / cells[k].ads
        varies = np.linspace(low, high, cells[k].ads).std(ddof=1) / np.sqrt(high * (1 - high) / shown)
        assert (best[k] == "ae") == (varies < 0.4) or abs(varies - 0.4) < 0.02, cells[k]
        assert best[k] != "ae" or high * shown <= 15
    ahead = places == "one ahead"
    assert 0.9 < loss[ahead & (gaps > 1) & (gaps < 4)].max() < 1
    assert loss[ahead & (gaps >= 4)].max() < 0.35


def test_the_gap_at_random_is_the_mean_of_drawn_ones() -> None:
    """20,000 draws, to 2%: five standard errors, as a gap is about exponential."""
    settings, cell = Settings(), Cell("random", 0.1, 10, 10_000)
    rates = np.sort(settings.rates(cell, 20_000, np.random.default_rng(3)), axis=1)
    error = np.sqrt(0.1 * 0.9 / 1_000)
    assert settings.gap(cell) == pytest.approx((rates[:, -1] - rates[:, -2]).mean() / error, rel=5 / np.sqrt(20_000))
    for places in ("even", "one ahead", "tied top"):
        rates = np.sort(settings.rates(cell._replace(places=places), 1, np.random.default_rng(3)))
        assert settings.gap(cell._replace(places=places)) == pytest.approx((rates[-1] - rates[-2]) / error)


@pytest.mark.parametrize("claim", ["A1", "A2"])
def test_the_sentence_of_a_verdict_has_its_numbers_from_the_tables(claim: str) -> None:
    """Every share in it was measured over the whole region, and every other number is one of the note, or how many parts hold."""
    sentence = tomllib.loads((ROOT / "docs" / "verdicts.toml").read_text())[claim]["found"]
    verdict = next(each for each in judge(EXPERIMENTS["ads"], shipped()) if each.id == claim)
    shares = {f"{m.value:.0%}" for name, m in verdict.measured.items() if name.startswith("share of the region")}
    said = set(re.findall(r"\d+%", sentence))
    assert said
    assert said <= shares
    counts = {*re.findall(r"\d+", verdict.note), str(len(verdict.parts.hold)), "1"}  # TE(0.1)
    assert set(re.findall(r"\b[1-9]\d*\b(?!%)", sentence)) <= counts
    assert str(len(verdict.parts.hold)) in sentence
