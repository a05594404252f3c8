"""Facts about verdicts: intervals decide, noise cannot."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from maxmean.lab.claims import (
    MARGIN,
    NOT_JUDGED,
    Finding,
    Judgement,
    Measured,
    Verdict,
    judge,
    large_enough,
    markdown,
    tally,
)
from maxmean.lab.closing import print_verdicts
from maxmean.lab.engines import Inline
from maxmean.lab.experiment import Experiment, Results
from maxmean.lab.experiments import EXPERIMENTS
from maxmean.lab.progress import Silent
from maxmean.lab.run import SHIPPED, ExperimentJob, load_best, reproduce
from maxmean.lab.store import Store
from toys import Settings, Toy

CLAIMS = [
    f"{kind}{k}"
    for kind, count in {"S": 13, "A": 3, "M": 5, "W": 5, "T": 1, "E": 3, "D": 7}.items()
    for k in range(1, count + 1)
]


def finding(*ends: tuple[float, float]) -> Finding:
    return Finding({f"margin {k}": Measured((low + high) / 2, low, high) for k, (low, high) in enumerate(ends)})


@pytest.mark.parametrize(
    ("ends", "judgement"),
    [
        ([(0.1, 0.2), (1.0, 1.0)], "holds"),
        ([(0.1, 0.2), (-0.1, 0.3)], "undecided"),
        ([(0.1, 0.2), (-0.3, -0.1)], "fails"),
        ([(0.1, 0.2), (0.1, 0.2), (-0.3, -0.1)], "holds in part"),
        ([(0.1, 0.2), (0.1, 0.2), (-0.3, -0.1), (-0.1, 0.1)], "holds in part"),
        ([(0.1, 0.2), (0.1, 0.2), (-0.3, -0.1), (-1.0, -1.0)], "fails"),
        ([(-0.1, 0.3), (-0.3, -0.1)], "fails"),
        ([(0.0, 0.0)], "undecided"),
        ([(-math.inf, math.inf)], "undecided"),
        ([], "undecided"),
    ],
)
def test_the_intervals_decide(ends: list[tuple[float, float]], judgement: str) -> None:
    assert finding(*ends).judgement == judgement


def test_what_is_shown_beside_a_part_decides_nothing() -> None:
    """It follows its margin in the table, and is no part: the claim holds."""
    clear, failing = Measured.exact(1.0), Measured.exact(-1.0)
    found = Finding({"long": clear, "other": clear}, {"number": failing}, beside={"long": {"short": failing}})
    assert found.judgement == "holds"
    assert [*found.measured] == ["number", f"{MARGIN}long", f"{NOT_JUDGED}short", f"{MARGIN}other"]
    verdict = Verdict("X1", "", "", found.judgement, found.measured, "paper", "toy")
    assert {*verdict.parts.hold} == {"long", "other"}
    assert not verdict.parts.fail


def test_among_several_parts_none_fails_by_chance() -> None:
    """Of twenty true parts some fails in at most 5% of claims: at most 22 of 200 (binomial tail 0.05%). At 95% each it is 40%."""
    failed, each = 0, 0
    for seed in range(200):
        parts = {
            str(k): Measured.mean(row) for k, row in enumerate(np.random.default_rng([7, seed]).normal(size=(20, 5)))
        }
        failed += Finding(parts).judgement in ("fails", "holds in part")
        each += any(part.high < 0 for part in parts.values())
    assert failed <= 22
    assert each > 50


def test_the_interval_among_several_is_bonferronis() -> None:
    values = np.random.default_rng(3).normal(size=6)
    expected = stats.t.interval(1 - 0.05 / 8, 5, loc=values.mean(), scale=stats.sem(values))
    found = Measured.mean(values).among(8)
    np.testing.assert_allclose((found.low, found.high), expected, rtol=1e-9)
    normal = Measured(0.0, -1.959964, 1.959964).among(10)
    assert normal.high == pytest.approx(stats.norm.isf(0.0025), rel=1e-6)
    assert Measured.exact(2.0).among(5) == Measured.exact(2.0)
    assert Measured(1.0, -math.inf, math.inf).among(5).low == -math.inf


def test_the_interval_of_runs_is_students() -> None:
    values = np.random.default_rng(0).normal(size=12)
    expected = stats.t.interval(0.95, 11, loc=values.mean(), scale=stats.sem(values))
    found = Measured.mean(values)
    np.testing.assert_allclose((found.low, found.high), expected, rtol=1e-12)
    assert math.isinf(Measured.mean([1.0]).high)


def test_the_interval_of_a_difference_is_welchs() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(1, 1, 12), rng.normal(0, 3, 5)
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    found = Measured.difference(first, second)
    np.testing.assert_allclose((found.low, found.high), (expected.low, expected.high), rtol=1e-12)
    assert math.isinf(Measured.difference([1.0], second).low)
    assert Measured.difference([2.0, 2.0], [1.0, 1.0]) == Measured.exact(1.0)


def test_noise_around_zero_is_undecided_and_a_clear_effect_is_not(tmp_path_factory: pytest.TempPathFactory) -> None:
    """False verdicts on a true zero happen in 5% of runs: at most 12 of 100 (binomial tail 0.2%)."""
    decided = 0
    for seed in range(100):
        values = np.random.default_rng([5, seed]).normal(size=30)
        decided += Finding({"zero": Measured.mean(values)}).judgement != "undecided"
        assert Finding({"clear": Measured.mean(values + 3)}).judgement == "holds"
        assert Finding({"clear": Measured.mean(values - 3)}).judgement == "fails"
    assert decided <= 12


def test_a_verdict_says_what_it_hangs_on() -> None:
    clear, open_, failing = Measured(1.0, 0.5, 1.5), Measured(0.5, -0.5, 1.5), Measured(-1.0, -1.5, -0.5)

    def why(verdict: Judgement, note: str = "", **measured: Measured) -> str:
        named = {name if name == "number" else f"margin: {name}": number for name, number in measured.items()}
        return Verdict("S1", "x", "2", verdict, named, "paper", "gaussian", note).why

    assert why("holds", a=clear, number=failing) == ""
    half, lost = "0.5 [-0.5, 1.5]", "-1 [-1.5, -0.5]"
    assert why("undecided", a=clear, b=open_) == f"open: 'b' by {half}"
    four = why("undecided", a=open_, b=open_, c=open_, d=open_)
    assert four == f"open: 'a' by {half}, 'b' by {half}, 'c' by {half} and 1 more"
    assert why("fails", a=open_, b=failing) == f"fails: 'b' by {lost}; open: 'a' by {half}"
    assert why("undecided", "not run yet") == "not run yet"


def test_a_verdict_is_plain_data() -> None:
    verdict = Verdict("S1", "x", "2", "holds", {"a": Measured(1.0, -math.inf, 2.0)}, "paper", "gaussian")
    plain = json.loads(json.dumps(verdict.to_dict(), allow_nan=False))
    assert plain["measured"] == {"a": {"value": 1.0, "low": None, "high": 2.0}}
    assert {"id", "verdict", "measured", "scale", "experiment"} <= set(plain)


def test_a_verdict_counts_its_parts() -> None:
    parts = {"margin: a": Measured(1.0, 0.5, 1.5), "margin: b": Measured.exact(1.0), "margin: c": Measured.exact(-1.0)}
    verdict = Verdict("S1", "x", "2", "holds in part", {**parts, "other": Measured.exact(3.0)}, "paper", "gaussian")
    assert verdict.label == "holds in part (2 of 3)"
    assert replace(verdict, verdict="fails").label == "fails (2 of 3 hold)"
    lost = {"margin: c": Measured.exact(-1.0)}
    assert replace(verdict, verdict="undecided").label == "undecided (2 of 3 hold)"
    assert [replace(verdict, verdict=word, measured=lost).label for word in ("fails", "undecided")] == [
        "fails",
        "undecided",
    ]
    assert replace(verdict, verdict="holds").label == "holds"
    assert verdict.to_dict()["parts"] == {"hold": 2, "fail": 1, "open": 0}
    assert "### S1: holds in part (2 of 3)" in markdown([verdict])


def test_of_hundreds_of_margins_a_page_lists_how_many_hold() -> None:
    margins = {f"margin: {k}": Measured.exact(1.0 if k < 70 else -1.0) for k in range(100)}
    verdict = Verdict("S1", "x", "2", "holds in part", {"other": Measured.exact(3.0), **margins}, "paper", "gaussian")
    assert [number.value for number in verdict.listed.values()] == [3.0, 70, 30, 0]
    assert "margin: 7 " not in markdown([verdict])
    assert len(verdict.to_dict()["measured"]) == 101
    assert replace(verdict, note="Most do.").why == "Most do."
    few = replace(verdict, measured={"margin: a": Measured.exact(1.0)})
    assert few.listed == few.measured


def test_the_least_of_several_is_above_zero_only_if_all_are() -> None:
    """And it lies below zero, at the level that choosing among three takes, only if one of them does."""
    clear, open_, lost = Measured(1.0, 0.5, 1.5), Measured(0.5, -0.5, 1.5), Measured(-1.0, -1.5, -0.5)
    assert Measured.least([clear, clear]).low == 0.5
    assert Measured.least([clear, open_]).low == -0.5
    found = Measured.least([clear, open_, lost])
    assert (found.value, found.low, found.high) == (-1.0, -1.5, lost.among(3).high)
    assert Measured.least([lost]) == lost


def test_markdown_has_every_claim_and_number() -> None:
    verdict = Verdict("S1", "a | b", "2", "fails", {"|x|": Measured.exact(0.25)}, "paper", "gaussian", "A note.")
    text = markdown([verdict])
    assert "| S1 |" in text
    assert "A note." in text
    assert r"\|x\| | 0.25 |" in text


PAPERS = Verdict("S1", "a", "2", "holds", {}, "paper", "gaussian")
OURS = Verdict("X1", "b", "nowhere", "fails", {}, "paper", "toy", beyond=True)


def test_claims_beyond_the_paper_are_counted_and_headed_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        tally([PAPERS, OURS])
        == f"{tally([PAPERS])} Of 1 claim beyond the paper 0 hold, 0 hold in part, 1 fails and 0 are undecided."
    )
    assert markdown([OURS, PAPERS]) == f"{markdown([PAPERS])}\n{markdown([OURS])}"
    assert markdown([OURS]).startswith("## Beyond the paper\n\n| claim |")
    assert "section" not in markdown([OURS])
    print_verdicts([OURS, PAPERS])
    papers, ours = capsys.readouterr().out.split("\nBeyond the paper:\n")
    assert "S1" in papers
    assert "X1" in ours
    print_verdicts([PAPERS])
    assert capsys.readouterr().out == papers
    assert "beyond_the_paper" not in PAPERS.to_dict()
    assert OURS.to_dict()["beyond_the_paper"]
    monkeypatch.setattr(Toy, "section", "beyond the paper")
    assert [verdict.beyond for verdict in judge(Toy(), None)] == [True]


def test_claims_are_judged_from_the_store(tmp_path_factory: pytest.TempPathFactory) -> None:
    store, toy = Store(tmp_path_factory.mktemp("store") / "out"), Toy(Settings(shards=4, draws=400))
    reproduce([ExperimentJob.of(toy, "quick")], store, Inline(), 0, Silent())
    results = load_best(store, toy)
    assert isinstance(results, Results)
    (verdict,) = judge(toy, results)
    expected = stats.t.interval(0.95, 1599, loc=results.table["value"].mean(), scale=stats.sem(results.table["value"]))
    np.testing.assert_allclose(verdict.measured["margin: mean"].low, expected[0], rtol=1e-9)


def test_every_claim_so_far_is_spoken_to_once() -> None:
    ids = [claim.id for experiment in EXPERIMENTS.values() for claim in experiment.claims]
    assert ids == [
        *(f"S{k}" for k in range(1, 14)),
        "A1",
        "A2",
        "A3",
        *(f"M{k}" for k in range(1, 6)),
        *(f"W{k}" for k in range(1, 6)),
        "T1",
        *(f"E{k}" for k in range(1, 4)),
        *(f"D{k}" for k in range(1, 8)),
        *(f"X{k}" for k in range(1, 6)),
    ]


def of_its_size(experiment: Experiment[Any], scale: str) -> dict[str, Any]:
    return {name: vars(experiment.settings(scale))[name] for name in experiment.size}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_claims_are_judged_where_nothing_is_smaller_than_at_the_scale_that_judges(name: str) -> None:
    experiment = EXPERIMENTS[name]
    least = experiment.settings(experiment.judged_from)
    judging = [scale for scale in experiment.scales if large_enough(experiment, experiment.settings(scale))]
    assert judging == [scale for scale in experiment.scales if scale != "quick"]
    for field, value in of_its_size(experiment, experiment.judged_from).items():
        listed = isinstance(value, tuple)
        less, more = (value[1:], (*value, max(value) * 2)) if listed else (value - 1, value + 1)
        kind = SimpleNamespace  # settings that no experiment could be run with count the same
        assert not large_enough(experiment, kind(**vars(least) | {field: less})), field
        assert large_enough(experiment, kind(**vars(least) | {field: more})), field


def test_an_experiment_without_a_size_is_judged_at_every_scale() -> None:
    assert large_enough(Toy(), Settings(draws=1))


def test_the_scales_name_does_not_judge() -> None:
    """A stranger's plan may call anything the paper's."""
    experiment = EXPERIMENTS["convergence"]
    results = load_best(Store(SHIPPED, create=False), experiment)
    assert results is not None
    (verdict,) = judge(experiment, results)
    assert verdict.verdict == "holds"
    few = replace(results, settings=replace(results.settings, problems=19))
    (verdict,) = judge(experiment, few)
    assert (verdict.verdict, verdict.scale) == ("too small to judge", "paper")
    assert (judge(experiment, replace(results, scale="custom"))[0].verdict) == "holds"


def test_a_claim_stands_above_its_judge() -> None:
    class Other(Toy):
        pass

    @Other.claim("X2", "the mean is negative", "nowhere")
    def lower(results: Results[Settings]) -> Finding:
        return Finding({"mean": Measured.mean(-results.table["value"])})

    assert [claim.id for claim in Other.claims] == ["X1", "X2"]
    assert Other.claims[1].judge is lower
    assert [claim.id for claim in Toy.claims] == ["X1"]


def test_nothing_is_judged_on_what_is_not_there() -> None:
    with pytest.raises(ValueError, match="nothing was measured of what a claim speaks of"):
        Measured.mean([])
    with pytest.raises(ValueError, match="nothing was measured of what a claim speaks of"):
        Measured.difference([1.0], [])
