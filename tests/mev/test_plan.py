"""Plans: the textbook's numbers where it has them, kept promises, mirror images, and what is said of guesses that cannot be."""

from __future__ import annotations

import inspect
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import maxmean as mm
from inside import maxmean
from maxmean.commands.plan import plan as plan_command
from maxmean.mev import data as readers
from maxmean.mev.inference.power import Supposed
from seldom import slow

SLACK = 0.06
"""Of a number of observations: 4,000 simulations know a probability of 80% to 0.6 points, and the number to 2%."""


def textbook(tail: float, power: float, variances: float, gap: float) -> float:
    return float((norm.isf(tail) + norm.ppf(power)) ** 2 * variances / gap**2)


@pytest.mark.parametrize("power", [0.8, 0.95])
def test_two_options_take_what_the_textbook_says(power: float) -> None:
    """The set of the best spends 4.5% of 5% on its second step."""
    found = mm.plan(means={"old": 10.0, "new": 10.5}, sds={"old": 2.0, "new": 1.0}, power=power)
    assert found.n == pytest.approx(textbook(0.045, power, 5.0, 0.5), rel=SLACK)
    assert found.best == "new"
    assert found.point.told >= power
    assert [each.n for each in found.curve] == sorted(each.n for each in found.curve)


def test_rates_have_their_own_spread() -> None:
    found = mm.plan(rates=[0.10, 0.13])
    assert found.n == pytest.approx(textbook(0.045, 0.8, 0.1 * 0.9 + 0.13 * 0.87, 0.03), rel=SLACK)


def test_a_control_is_beaten_by_a_one_sided_test() -> None:
    found = mm.plan(means=[0.0, 0.3], sds=1.0, control="option 1")
    assert found.n == pytest.approx(textbook(0.05, 0.8, 2.0, 0.3), rel=SLACK)
    assert "seen to beat option 1 with probability" in found.sentence()


@pytest.mark.slow
def test_one_far_ahead_has_nearly_the_width_of_one_alone() -> None:
    """The lower bound spends half of its 2.5% on a bound c for both options, and the rest below it."""
    c = norm.isf(1 - (1 - 0.0125) ** 0.5)
    lower = norm.isf(0.0125 / (1 - 0.0125) * norm.cdf(c) + norm.sf(c))
    found = mm.plan(means=[0.0, 50.0], sds=3.0, width=1.0)
    assert found.n == pytest.approx(((norm.isf(0.025) + lower) * 3.0) ** 2, rel=SLACK)
    assert found.point.width == pytest.approx(1.0, rel=0.03)


@pytest.mark.slow
def test_a_plan_is_kept() -> None:
    """600 experiments: 5 points are three standard errors. Few successes, which are compared by Fisher's test."""
    truth, rng = np.array([0.05, 0.1, 0.35]), np.random.default_rng(0)
    found = mm.plan(rates=truth)
    reached = [
        mm.estimate(successes=rng.binomial(found.n, truth), trials=found.n).best_set() == ("option 3",)
        for _ in range(600)
    ]
    assert np.mean(reached) == pytest.approx(found.point.told, abs=0.05)


@pytest.mark.parametrize("how", [*slow({"rates": [0.3, 0.5, 0.35]}), {"means": [3.0, 1.0, 2.5], "sds": 2.0}])
def test_where_less_is_better_the_smallest_is_told_apart(how: dict[str, Any]) -> None:
    (what, values), *more = how.items()
    turned = [1 - v if what == "rates" else -v for v in values]
    down, up = mm.plan(**how, lower_is_better=True), mm.plan(**({what: turned} | dict(more)))
    assert down.best == up.best == f"option {1 + int(np.argmin(values))}"
    assert down.n == pytest.approx(up.n, rel=SLACK)
    assert down.means == dict(zip(("option 1", "option 2", "option 3"), values, strict=True))


@pytest.mark.slow
def test_a_difference_is_the_hardest_case() -> None:
    found = mm.plan(means=1.0, options=3, difference=0.5, sds=1.0)
    assert list(found.means.values()) == [1.0, 1.0, 1.5]
    assert found.n > mm.plan(means=[0.0, 1.0, 1.5], sds=1.0).n
    assert list(mm.plan(rates=0.5, difference=0.2, lower_is_better=True).means.values()) == pytest.approx([0.5, 0.3])


@pytest.mark.slow
def test_a_pilot_gives_its_shrunk_means_and_its_spread() -> None:
    rng = np.random.default_rng(0)
    pilot = {name: rng.normal(mean, 2.0, 50) for name, mean in (("a", 10.0), ("b", 11.0), ("c", 13.0))}
    found, est = mm.plan(pilot), mm.estimate(pilot)
    assert found.means == pytest.approx(est.shrinkage()["value"].to_dict())
    known = mm.plan(pilot, difference=1.0)
    assert sorted(known.means.values())[1] == pytest.approx(sorted(known.means.values())[2] - 1.0)
    assert known.n == pytest.approx(mm.plan(means=0.0, options=3, difference=1.0, sds=2.0).n, rel=0.25)
    thousands = {name: 1000 * values for name, values in pilot.items()}
    assert mm.plan(thousands, difference=1000.0).n == pytest.approx(known.n, rel=0.02)
    assert mm.plan(successes=[30, 60], trials=1_000).n > 2


def test_pairs_take_fewer() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(60, 1)) + rng.normal([0.0, 0.4], 0.5, (60, 2))
    apart, together = (mm.plan(rows, paired=paired, difference=0.3) for paired in (False, True))
    assert together.n < apart.n / 2


def test_all_forms(tmp_path: Path) -> None:
    answer = maxmean("plan", "--rates", "old=0.10,<b>=0.13", "--json", "--plot", tmp_path / "x.svg")
    assert answer.returncode == 0
    said = json.loads(answer.stdout)
    assert said["best"] == "<b>"
    assert said["means"] == {"old": 0.1, "<b>": 0.13}
    assert any(point["n"] == said["n"] for point in said["curve"])
    texts = [node.text or "" for node in ElementTree.parse(tmp_path / "x.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert f"{said['n']:,} observations of every option" in texts
    table = tmp_path / "pilot.csv"
    table.write_text("option,successes,trials\na,100,1000\nb,160,1000\n")
    shown = maxmean("plan", table, "--power", "0.9")
    assert "told apart from all others with probability 9" in " ".join(shown.stdout.split())
    assert "counts" in shown.stderr


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"means": [1.0, 1.0], "sds": 1.0}, "no amount of data shows"),
        ({"means": [1.0, 2.0]}, "means need sds"),
        ({"means": [1.0, 2.0], "sds": -1.0}, "sds must be positive"),
        ({"means": [1.0, 2.0], "rates": [0.1, 0.2]}, "give one"),
        ({"means": [1.0, 2.0], "sds": 1.0, "difference": 1.0}, "is one number"),
        ({"means": [1.0, 2.0], "sds": 1.0, "options": 3}, "goes with a difference"),
        ({"rates": [0.1, 1.2]}, "rates must lie between 0 and 1, not 1.2"),
        ({"rates": [0.1, 0.2], "sds": 1.0}, "leave sds out"),
        ({"rates": [0.1]}, "at least two numbers"),
        ({"rates": [0.1, "x"]}, "must be numbers"),
        ({"rates": [0.1, 0.2], "power": 1.0}, "power must lie between 0 and 1"),
        ({"rates": [0.1, 0.2], "width": 0.0}, "width must be a positive number"),
        ({"rates": [0.1, 0.2], "control": "x"}, "no option for a control"),
        ({"rates": {"a": 0.2, "b": 0.1}, "control": "a"}, "'a' is supposed to be no worse than 'b'"),
        ({"rates": [0.1, 0.2], "data": {"a": [1.0, 2.0]}}, "instead of a pilot"),
        ({"means": [0.0, 0.001], "sds": 1.0, "width": 1e-9}, "more than 1,000,000,000 observations"),
        ({"mean": [1.0, 2.0], "se": 0.1}, "a pilot needs the number of observations"),
    ],
)
def test_what_cannot_be_planned_is_said(how: dict[str, Any], said: str) -> None:
    with pytest.raises((mm.DataError, mm.ArgumentError), match=said):
        mm.plan(**how)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give a pilot"),
        (("--options", "a,b", "--difference", "1", "--sds", "1"), "--options is how many there are"),
        (("--means", "1,x", "--sds", "1"), "takes numbers separated by commas"),
        (("--means", "a=1,2", "--sds", "1"), "name all options or none"),
        (("x.csv", "--rates", "0.1,0.2"), "is a guess, and 'x.csv' a pilot"),
        (("--rates", "0.1,0.2", "--where", "x = 1"), "--where says how to read a pilot, and there is none"),
    ],
)
def test_the_command_says_what_is_missing(arguments: tuple[str, ...], said: str) -> None:
    answer = maxmean("plan", *arguments)
    assert answer.returncode == 2
    assert said in answer.stderr


def test_the_command_reads_a_pilot_as_estimate_does(tmp_path: Path) -> None:
    """Every hint of the readers names an option that the command has, and what was left out is in the answer."""
    sources = "".join(path.read_text() for path in Path(readers.__file__).parent.glob("*.py"))
    hints = {hint.replace("-", "_") for hint in re.findall("--([a-z][a-z-]+)", sources)}
    others = {"cluster", "numerator", "unpaired"}  # said of what estimate alone takes
    assert hints - others <= set(inspect.signature(plan_command).parameters)
    table = tmp_path / "pilot.csv"
    table.write_text("land,ad,eur\nDE,a,1\nDE,a,2\nFR,a,9\nDE,b,3\nDE,b,5\nDE,b,NA\nDE,c,9\n")
    chosen = ("--options", "a,b", "--where", "land = DE", "--by", "ad", "--value", "eur", "--drop-missing")
    said = json.loads(maxmean("plan", table, *chosen, "--json", "-q").stdout)
    assert said["notes"] == ["1 of 5 rows was left out, since 'eur' is empty there"]
    assert said["n"] == mm.plan(data={"a": [1.0, 2.0], "b": [3.0, 5.0]}).n


def test_ties_do_not_go_to_the_option_that_is_named_first() -> None:
    """By hand, of 89 trials each: the better one alone has successes, or neither has any and one of both is picked at random."""
    better, worse = 1 - 0.99**89, 1 - 0.9999**89
    picked = better * (1 - worse) + (1 - better) * (1 - worse) / 2  # both succeed in less than a hundredth
    for rates in ([0.01, 0.0001], [0.0001, 0.01]):
        found = Supposed(np.array(rates), np.ones(2), rates=True).picked(89)
        assert found == pytest.approx(picked, abs=0.02)
