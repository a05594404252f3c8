"""Lift over a control, from data to every form of the answer."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import maxmean as mm
from inside import maxmean
from maxmean.mev.glossary import glossary
from maxmean.mev.inference import infer_lift

CLICKS = {"old": 300, "new": 360, "other": 310}
RNG = np.random.default_rng(0)
TIMES = {"old": RNG.normal(10.0, 1.0, 40), "new": RNG.normal(9.0, 1.0, 40), "other": RNG.normal(10.1, 1.0, 40)}


def test_an_option_that_beats_the_control_with_zero_in_its_interval_is_explained() -> None:
    """1.8 standard errors lie between 1.645, from where a one-sided test at 5% rejects, and 1.96, a two-sided one."""
    found = mm.compare(mean={"old": 0.0, "new": 1.8}, se=0.5**0.5, methods=["ke"], control="old", resamples=2)
    assert found.lift is not None
    (new,) = found.lift.options
    assert new.beats
    assert new.interval[0] < 0
    assert "although its interval just includes zero" in dict(glossary(found))["beats it"]


def test_all_forms_say_the_same(tmp_path: Path) -> None:
    found = mm.compare(successes=CLICKS, trials=10_000, methods=["ke"], control="old", resamples=10)
    lift = found.lift
    assert lift is not None
    said = json.loads(json.dumps(found.to_dict()))["lift"]
    assert said["control"] == "old"
    assert said["beats"] == list(lift.beats) == ["new"]
    assert list(said["options"]) == ["new", "other"]
    assert lift.table().loc["new", "difference"] == said["options"]["new"]["difference"] == pytest.approx(0.006)
    assert said["options"]["new"]["relative"] == pytest.approx(0.2)
    assert tuple(said["best"]["recommended"]["interval"]) == lift.best.recommended.interval
    assert "over the control old, expect" in found.sentence()
    assert "1 of 2 options beats it" in found.sentence()
    assert "<td>" in found._repr_html_()
    found.plot(str(tmp_path / "x.svg"))
    texts = [node.text or "" for node in ElementTree.parse(tmp_path / "x.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert any(text.startswith("Lift over old") for text in texts)
    assert "new  +20.0%" in texts
    assert mm.compare(successes=CLICKS, trials=10_000, methods=["ke"], resamples=10).to_dict()["lift"] is None


def test_the_command_has_it(tmp_path: Path) -> None:
    table = tmp_path / "ads.csv"
    table.write_text("option,successes,trials\n" + "".join(f"{name},{k},10000\n" for name, k in CLICKS.items()))
    answer = maxmean("estimate", table, "--control", "old", "-m", "ke", "--resamples", "10")
    assert answer.returncode == 0
    assert "Lift over old" in answer.stdout
    assert "+20.0%" in answer.stdout
    wrong = maxmean("estimate", table, "--control", "odl")
    assert wrong.returncode == 2
    assert "did you mean 'old'?" in wrong.stderr


@pytest.mark.parametrize("scale", [1.0, 1e200])
def test_units_scale_differences_and_leave_shares(scale: float) -> None:
    lift, scaled = (
        mm.estimate({k: factor * v for k, v in TIMES.items()}, control="old", lower_is_better=True).lift()
        for factor in (1.0, scale)
    )
    assert lift.beats == scaled.beats == ("new",)
    for one, other in zip(lift.options, scaled.options, strict=True):
        assert other.interval == pytest.approx([scale * end for end in one.interval])
        assert other.relative_interval == pytest.approx(one.relative_interval)
    assert scaled.best.recommended.value == pytest.approx(scale * lift.best.recommended.value)


def test_where_less_is_better_a_share_is_still_one_of_the_users_mean() -> None:
    """300 complaints of 10,000 that become 240 are 20% fewer, though successes are counted inside."""
    lift = mm.estimate(successes={"old": 300, "new": 240}, trials=10_000, lower_is_better=True, control="old").lift()
    (new,) = lift.options
    assert (new.difference, new.relative) == pytest.approx((-0.006, -0.2))
    assert new.relative_interval[0] < -0.2 < new.relative_interval[1] < 0
    assert lift.beats == ("new",)
    assert lift.best.naive == pytest.approx(-0.006)
    assert lift.best.recommended.interval[0] <= lift.best.recommended.value <= lift.best.recommended.interval[1] < 0
    assert lift.best.relative.value == pytest.approx(lift.best.recommended.value / 0.03)


def test_zeros_and_ones_are_rates_and_pairs_are_pairs() -> None:
    rows = np.random.default_rng(2).normal(size=(20, 1)) + np.array([5.0, 5.3]) + RNG.normal(0, 0.1, (20, 2))
    apart, together = (mm.estimate(rows, control="option 1", paired=paired).lift() for paired in (False, True))
    assert together.beats == ("option 2",)
    assert apart.beats == ()
    covariance = np.cov(rows.T) / 20
    expected = infer_lift(rows.mean(axis=0), covariance, 0, freedom=19)
    assert together.options[0].interval == pytest.approx(expected.interval[0])
    ones = {"a": np.repeat([0.0, 1.0], [15, 5]), "b": np.repeat([0.0, 1.0], [10, 10])}
    counted = mm.estimate(successes={"a": 5, "b": 10}, trials=20, control="a").lift()
    assert mm.estimate(ones, control="a").lift() == counted


def test_a_control_that_may_be_zero_is_said() -> None:
    found = mm.compare({"a": [-1.0, 0.0, 1.0], "b": [1.0, 2.0, 2.5]}, ["ke"], control="a", resamples=10)
    assert any("the mean of 'a' may be zero" in note for note in found.notes)
    shown = found.to_dict()["lift"]["options"]["b"]
    assert shown["relative"] is None
    assert shown["relative_interval"] == [None, None]
    assert found.lift is not None
    assert math.isnan(found.lift.options[0].relative)


def test_without_a_control_there_is_no_lift() -> None:
    with pytest.raises(mm.ArgumentError, match="name it with control="):
        mm.estimate(TIMES).lift()


def test_no_rate_is_less_by_more_than_all_of_the_control() -> None:
    rows = np.array([[1, 1], [0, 1], [1, 0], [0, 0], [0, 1], [0, 0], [0, 1], [1, 1]], float)
    lift = mm.estimate(rows, control="option 1", paired=True).lift()
    assert lift.options[0].relative_interval[0] == -1.0
    assert lift.best.relative.interval[0] == -1.0
    assert lift.options[0].interval[0] < 0 < lift.options[0].interval[1]


def test_the_best_of_few_trials_has_the_bounds_that_hold_for_all() -> None:
    """No success in five trials beside 30% of 5,000: a rate below zero is not among what is possible."""
    for counts, trials in (([1500, 0], [5000, 5]), ([0, 2], [100_000, 2])):
        lift = mm.estimate(successes=counts, trials=trials, control="option 1").lift()
        assert lift.best.recommended.interval == pytest.approx(lift.options[0].interval)
        assert lift.best.relative.interval == pytest.approx(lift.options[0].relative_interval)
        low, high = lift.best.recommended.interval
        assert low <= lift.best.recommended.value <= high
        assert -1 <= low <= high <= 1
