"""Facts about runs of several lengths: which of them a part of a claim is judged on, and what is shown beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from maxmean.lab.claims import MARGIN, NOT_JUDGED, Measured, Verdict, judge
from maxmean.lab.experiment import Results
from maxmean.lab.experiments import EXPERIMENTS
from maxmean.lab.experiments.minatar.ends import Ends
from maxmean.lab.experiments.minatar.lengths import rivals
from maxmean.lab.experiments.minatar.study import Settings
from maxmean.lab.experiments.minatar.variants import ADAPTIVE, MIDDLE_RATE, SMALLEST_RATE, VARIANTS

MINATAR = EXPERIMENTS["minatar"]
GAMES = ("breakout", "space_invaders")
SHORT, LONG = 1_000_000, 5_000_000
ENDING = ", 5,000,000 steps"
BY_LENGTH = ("D3", "D5", "D6", "D7")

Run = tuple[str, float, str]
"""A game, a learning rate and a variant."""


def rows(run: Run, steps: int, seeds: Iterable[int] = range(5), **columns: float) -> list[dict[str, Any]]:
    """A run's last test and one before its last tenth, in which everything is the other way round. Seeds differ by 0.01."""
    game, rate, variant = run
    usual = {"test_return": 10.0, "bias": 0.0, "value": 10.0, "alpha": 0.3} | columns
    about = {"game": game, "learning_rate": rate, "variant": variant}
    return [
        about | {"seed": seed, "step": step} | {name: sign * (value + 0.01 * seed) for name, value in usual.items()}
        for seed in seeds
        for step, sign in ((steps, 1), (9 * steps // 10, -1))
    ]


def study(longer: Mapping[int, list[dict[str, Any]]] | None = None, **returns: float) -> Results[Any]:
    """All agents on two games with two rates, all alike but for the returns by variant, and longer runs as given."""
    settings = Settings(games=GAMES, steps=SHORT, seeds=5, learning_rates=(MIDDLE_RATE,))
    usual = [
        row
        for run in product(GAMES, (SMALLEST_RATE, MIDDLE_RATE), VARIANTS)
        for row in rows(run, SHORT, test_return=returns.get(run[2].partition("-")[0], 10.0))
    ]
    apart = {
        Settings(games=GAMES, steps=steps, seeds=5, learning_rates=(MIDDLE_RATE,)): pd.DataFrame(own)
        for steps, own in (longer or {}).items()
    }
    return Results("minatar", "study", settings, 0, pd.DataFrame(usual), apart=apart)


def judged(found: Results[Any], claim: str) -> Verdict:
    """The verdict on one claim; the others are not judged."""
    claims = tuple(each for each in MINATAR.claims if each.id == claim)
    (verdict,) = judge(type("Alone", (type(MINATAR),), {"claims": claims})(), found)
    return verdict


def margins(found: Results[Any], claim: str) -> dict[str, Measured]:
    return {name.removeprefix(MARGIN): each for name, each in judged(found, claim).measured.items() if MARGIN in name}


def on_longer_runs(found: Results[Any], claim: str) -> list[str]:
    return [name.removesuffix(ENDING) for name in margins(found, claim) if name.endswith(ENDING)]


def test_without_longer_runs_nothing_speaks_of_lengths() -> None:
    for verdict in judge(MINATAR, study()):
        assert "steps" not in verdict.note
        assert not [name for name in verdict.measured if "steps" in name or name.startswith(NOT_JUDGED)]


@pytest.mark.parametrize(
    "other",
    [
        {SHORT // 2: rows(("breakout", MIDDLE_RATE, "ke-bdqn"), SHORT // 2)},
        {LONG: rows(("breakout", MIDDLE_RATE, "ke*-bdqn"), LONG)},
        {LONG: rows(("breakout", MIDDLE_RATE, "dqn"), LONG)},
    ],
    ids=["shorter", "beyond the paper", "one that is compared with another"],
)
def test_runs_that_complete_no_comparison_change_nothing_that_is_judged(other: dict[int, list[dict[str, Any]]]) -> None:
    for claim in BY_LENGTH:
        assert margins(study(other), claim) == margins(study(), claim)
        assert judged(study(other), claim).note == judged(study(), claim).note


def test_a_part_is_judged_on_longer_runs_as_soon_as_all_that_it_compares_are_there() -> None:
    """DQN with one learning rate is not enough for D7, and with both it is; the other agents' parts stay."""
    half = "dqn: less than half of the return at 10^-4.5"
    usual = rows(("breakout", MIDDLE_RATE, "dqn"), LONG, test_return=40.0)
    slowly = rows(("breakout", SMALLEST_RATE, "dqn"), LONG, test_return=30.0)
    assert on_longer_runs(study({LONG: usual}), "D7") == []
    both = study({LONG: usual + slowly})
    assert on_longer_runs(both, "D7") == [half]
    five = 0.01 * np.arange(5)
    by_hand = Measured.difference(0.5 * (40.0 + five), 30.0 + five)
    found = margins(both, "D7")
    assert str(found[half + ENDING]) == str(by_hand)
    assert len(found) == len(margins(study(), "D7")) == 15
    assert judged(both, "D7").note == "Judged, of 15 parts: on 5,000,000 steps 1 (5 seeds), on 1,000,000 steps 14."


def test_both_lengths_are_shown_side_by_side() -> None:
    runs = [("breakout", rate, "dqn") for rate in (SMALLEST_RATE, MIDDLE_RATE)]
    found = judged(study({LONG: [row for run in runs for row in rows(run, LONG, test_return=30.0)]}), "D7")
    half = "dqn: less than half of the return at 10^-4.5"
    names = [*found.measured]
    assert names[:4] == [f"dqn: {what} at 10^-5{steps}" for what in ("return", "bias") for steps in ("", ENDING)]
    at = names.index(f"{MARGIN}{half}{ENDING}")
    assert names[at + 1] == f"{NOT_JUDGED}{half}, 1,000,000 steps"
    alone = margins(study(), "D7")[half]
    assert found.measured[f"{NOT_JUDGED}{half}, 1,000,000 steps"] == alone
    assert found.parts.total == 15  # what is shown beside a part is none


def test_longer_runs_are_shown_where_they_cannot_judge_yet() -> None:
    found = judged(study({LONG: rows(("space_invaders", MIDDLE_RATE, "te-bdqn(0.1)"), LONG, bias=-7.0)}), "D6")
    assert found.measured[f"bias of te-bdqn(0.1){ENDING}"].value == pytest.approx(-6.98)
    assert found.parts == judged(study(), "D6").parts


def test_the_last_tenth_of_a_longer_run_is_a_tenth_of_its_own_steps() -> None:
    late = rows(("breakout", MIDDLE_RATE, ADAPTIVE), LONG)
    early = [row | {"step": step, "alpha": 9.0} for row in late[::2] for step in (SHORT, 9 * LONG // 10)]
    kept = [row for row in late if row["step"] == LONG]
    found = judged(study({LONG: kept + early}), "D3")
    assert found.measured[f"breakout: final alpha{ENDING}"].value == pytest.approx(0.32)


def test_alpha_is_judged_game_by_game() -> None:
    """On Breakout after five million steps, on Space Invaders after one."""
    found = study({LONG: rows(("breakout", MIDDLE_RATE, ADAPTIVE), LONG, alpha=0.1)})
    parts = judged(found, "D3").parts
    assert len(on_longer_runs(found, "D3")) == 4
    assert {*on_longer_runs(found, "D3")} == {name for name in margins(study(), "D3") if name.startswith("breakout")}
    assert {*parts.fail} == {
        f"breakout: alpha ends above its start of 0.25{ENDING}",
        f"breakout: alpha ends above 0.2{ENDING}",
    }


def test_the_best_of_the_others_is_one_part_for_each_length() -> None:
    """So every other agent is compared with once, where it was run longest; KE-BDQN must be above the best of each kind."""
    few = ("ke-bdqn", "dqn", "maxmin-dqn(2)")
    level = {"ke-bdqn": 30.0, "dqn": 12.0, "maxmin-dqn(2)": 31.0}
    runs = {name: rows(("space_invaders", MIDDLE_RATE, name), LONG, test_return=level[name]) for name in few}
    found = study({LONG: [row for own in runs.values() for row in own]}, ke=14.0, dqn=20.0)
    groups = rivals(Ends(found), "space_invaders", "ke-bdqn")
    assert groups[0] == ["dqn", "maxmin-dqn(2)"]
    assert sorted([*groups[0], *groups[1], "ke-bdqn"]) == sorted(VARIANTS)
    above = {name: each.value for name, each in margins(found, "D6").items() if "above the best" in name}
    # 20 of DQN after a million steps counts no more
    assert above == {
        f"KE-BDQN's return above the best of 2 others (maxmin-dqn(2)){ENDING}": pytest.approx(-1.0),
        "KE-BDQN's return above the best of 12 others (ddqn)": pytest.approx(4.0),
    }
    beside = judged(found, "D6").measured[
        f"{NOT_JUDGED}KE-BDQN's return above the best of 2 others (dqn), 1,000,000 steps"
    ]
    assert beside.value == pytest.approx(-6.0)


def test_what_is_compared_with_agents_that_were_not_run_longer_stays_where_it_was() -> None:
    """TE-BDQN(0.1) lacks longer runs, so that D6 is judged on them in KE-BDQN's bias alone."""
    own = rows(("space_invaders", MIDDLE_RATE, "ke-bdqn"), LONG, test_return=99.0, bias=-3.0)
    found, before = margins(study({LONG: own}), "D6"), margins(study(), "D6")
    assert [name for name in found if name.endswith(ENDING)] == [f"KE-BDQN's bias is negative{ENDING}"]
    assert {name: each for name, each in found.items() if name in before} == {
        name: each for name, each in before.items() if "negative" not in name
    }
    te = rows(("space_invaders", MIDDLE_RATE, "te-bdqn(0.1)"), LONG, test_return=90.0, bias=-5.0)
    names = ("above the best of 1 other (te-bdqn(0.1))", "bias is negative", "(0.1)'s bias is lower", "return is lower")
    both = on_longer_runs(study({LONG: own + te}), "D6")
    assert all(any(name.endswith(ending) for name in both) for ending in names)
    assert len(both) == len(names)


def test_robust_agents_are_compared_at_each_length_with_those_that_have_it() -> None:
    runs = [*product((MIDDLE_RATE,), ("dqn", "ke-bdqn", ADAPTIVE)), *product((SMALLEST_RATE,), ("dqn", "ke-bdqn"))]
    found = study({LONG: [row for rate, name in runs for row in rows(("breakout", rate, name), LONG)]})
    assert [name.partition(" (")[0] for name in on_longer_runs(found, "D5")] == [
        "breakout with 10^-5: ke-bdqn keeps 70% of the best of 1 other",
        "breakout: ke-bdqn keeps 70% of the best of 2 others",
        f"breakout: {ADAPTIVE} keeps 70% of the best of 2 others",
    ]
    rest = [
        name.partition(" (")[0] for name in margins(found, "D5") if "breakout" in name and not name.endswith(ENDING)
    ]
    assert rest == [
        "breakout with 10^-5: ke-bdqn keeps 70% of the best of 13 others",
        f"breakout with 10^-5: {ADAPTIVE} keeps 70% of the best of 14 others",
        "breakout: ke-bdqn keeps 70% of the best of 12 others",
        f"breakout: {ADAPTIVE} keeps 70% of the best of 12 others",
    ]


def test_means_over_games_take_all_agents_on_all_games() -> None:
    """One run of thirty is missing: nothing of D5's first half is judged on them; with it, all of every claim is."""
    runs = [*product(GAMES, (SMALLEST_RATE, MIDDLE_RATE), VARIANTS)]
    whole = [row for run in runs for row in rows(run, LONG)]
    lacking = [row for run in runs if run != ("breakout", MIDDLE_RATE, "scdqn(4)") for row in rows(run, LONG)]
    assert not [name for name in on_longer_runs(study({LONG: lacking}), "D5") if name.startswith("heads")]
    for claim in BY_LENGTH:
        found, before = margins(study({LONG: whole}), claim), margins(study(), claim)
        assert [name.removesuffix(ENDING) for name in found] == [*before]
        assert all(name.endswith(ENDING) for name in found)


def test_no_comparison_mixes_two_lengths() -> None:
    """What is judged on longer runs knows nothing of the others, and the other way round."""
    runs = [("space_invaders", MIDDLE_RATE, name) for name in ("ke-bdqn", "dqn")]
    longer = [row for run in runs for row in rows(run, LONG, test_return=20.0)]
    usual = study({LONG: longer})
    moved = study({LONG: longer}, ke=70.0, dqn=80.0, maxmin=90.0)
    stretched = study({LONG: [row | {"test_return": 7 * row["test_return"]} for row in longer]})
    for claim in BY_LENGTH:
        before, other = margins(usual, claim), margins(moved, claim)
        assert {name: each for name, each in before.items() if name.endswith(ENDING)} == {
            name: each for name, each in other.items() if name.endswith(ENDING)
        }
        other = margins(stretched, claim)
        assert {name: each for name, each in before.items() if not name.endswith(ENDING)} == {
            name: each for name, each in other.items() if not name.endswith(ENDING)
        }


def test_no_seed_of_a_longer_run_is_dropped() -> None:
    """Seven seeds are seven, and said; fewer than the study has are not enough to judge on."""
    run = ("breakout", MIDDLE_RATE, ADAPTIVE)
    found = study({LONG: rows(run, LONG, seeds=range(7))})
    alpha = judged(found, "D3").measured[f"breakout: final alpha{ENDING}"]
    assert str(alpha) == str(Measured.mean(0.3 + 0.01 * np.arange(7)))
    assert f"on 5,000,000 steps 4 (5 seeds; 7 of {ADAPTIVE} on breakout), on" in judged(found, "D3").note
    assert margins(study({LONG: rows(run, LONG, seeds=range(4))}), "D3") == margins(study(), "D3")


def test_of_several_lengths_the_longest_that_has_all_runs_decides() -> None:
    between = 2_000_000
    both = [("breakout", rate, "dqn") for rate in (SMALLEST_RATE, MIDDLE_RATE)]
    some = {between: [row for run in both for row in rows(run, between)], LONG: rows(both[0], LONG)}
    half = "dqn: less than half of the return at 10^-4.5"
    found = judged(study(some), "D7")
    assert f"{MARGIN}{half}, 2,000,000 steps" in found.measured
    assert found.note.endswith("on 2,000,000 steps 1 (5 seeds), on 1,000,000 steps 14.")
    every = {**some, LONG: [row for run in both for row in rows(run, LONG)]}
    names = [*judged(study(every), "D7").measured]
    at = names.index(f"{MARGIN}{half}{ENDING}")
    assert names[at + 1 : at + 3] == [f"{NOT_JUDGED}{half}, {steps:,} steps" for steps in (between, SHORT)]


def test_longer_runs_may_turn_a_verdict() -> None:
    """Alpha is below its start in one game after a million steps, and above it in both after five."""
    low = study()
    adapted = (low.table["variant"] == ADAPTIVE) & (low.table["game"] == "breakout")
    low.table["alpha"] -= 0.15 * (adapted & (low.table["step"] == SHORT))
    assert judged(low, "D3").verdict == "holds in part"
    long = {LONG: rows(("breakout", MIDDLE_RATE, ADAPTIVE), LONG)}
    turned = study(long)
    turned.table["alpha"] = low.table["alpha"]
    assert judged(turned, "D3").verdict == "holds"
