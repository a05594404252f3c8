"""Facts about the front door: the same answer for the same data in every shape, in every unit and direction."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import maxmean as mm
from maxmean import mev
from maxmean.mev import inference
from maxmean.mev.inference.winner import infer_winner
from maxmean.mev.page import page

RNG = np.random.default_rng(0)
SAMPLES = {"A": RNG.normal(1.0, 1, 40), "B": RNG.normal(1.2, 1, 55), "C": RNG.normal(-2.0, 1, 30)}
MEANS = np.array([v.mean() for v in SAMPLES.values()])
ERRORS = np.array([v.std(ddof=1) / np.sqrt(len(v)) for v in SAMPLES.values()])
LONG = pd.DataFrame({"arm": np.repeat(list("ABC"), [40, 55, 30]), "outcome": np.concatenate([*SAMPLES.values()])})


def test_an_estimate_is_the_estimator_applied_to_the_moments() -> None:
    est = mm.estimate(SAMPLES, method="ke")
    np.testing.assert_allclose(est.value, mev.kernel_estimate(MEANS, ERRORS**2), rtol=1e-12)
    np.testing.assert_allclose(est.statistic, mev.t_statistic(MEANS, ERRORS**2), rtol=1e-10)
    np.testing.assert_allclose(est.weights, mev.kernel_weights(MEANS, ERRORS**2, mev.Gaussian()), atol=1e-12)
    np.testing.assert_allclose(est.probability_best("flat"), mev.best_probabilities(MEANS, ERRORS**2), atol=1e-12)
    assert list(est.weights.index) == ["A", "B", "C"]
    assert est.method == "ke"
    assert est.naive == max(est.problem.means)


SHAPES: dict[str, dict[str, Any]] = {
    "list": {"data": list(SAMPLES.values()), "names": list("ABC")},
    "frame": {"data": LONG, "by": "arm", "value": "outcome"},
    "frame, recognised": {"data": LONG},
    "wide frame": {"data": pd.DataFrame({k: pd.Series(v) for k, v in SAMPLES.items()})},
    "summaries": {"mean": dict(zip("ABC", MEANS, strict=True)), "se": dict(zip("ABC", ERRORS, strict=True))},
    "sd and n": {"mean": MEANS, "sd": ERRORS * np.sqrt([40, 55, 30]), "n": [40, 55, 30], "names": list("ABC")},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("method", ["me", "ae", "we", "te", "ke"])
def test_every_shape_of_the_same_data_gives_the_same(shape: str, method: str) -> None:
    expected = mm.estimate(SAMPLES, method=method)
    ragged = pytest.warns(mm.mev.DataWarning, match="rows are not paired") if shape == "wide frame" else nullcontext()
    with ragged:
        found = mm.estimate(method=method, **SHAPES[shape])
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-12)
    pd.testing.assert_series_equal(found.weights, expected.weights, atol=1e-12, check_index_type=False)
    assert found.options == expected.options


def test_other_libraries_arrays_are_welcome() -> None:
    import jax.numpy as jnp
    import torch

    table = RNG.normal(size=(20, 3)).astype(np.float32)
    expected = mm.estimate(table).value
    assert mm.estimate(jnp.asarray(table)).value == expected
    assert mm.estimate(torch.as_tensor(table)).value == expected
    assert mm.estimate([torch.as_tensor(table[:, k]) for k in range(3)], method="ke").value == expected


def test_a_table_is_paired_and_a_mapping_is_not() -> None:
    table = RNG.normal(size=(30, 3))
    columns = {f"option {k + 1}": table[:, k] for k in range(3)}
    assert mm.estimate(table, method="te*").value == mm.estimate(columns, method="te*").value
    assert "te*" in mm.compare(table, resamples=10).estimates
    assert "te*" not in mm.compare(columns, resamples=10).estimates
    assert "te*" in mm.compare(columns, resamples=10, paired=True).estimates
    assert "te*" not in mm.compare(table, resamples=10, paired=False).estimates
    with pytest.raises(mm.DataError, match=r"te\* needs paired samples"):
        mm.estimate(SAMPLES, method="te*")


@pytest.mark.parametrize(
    ("shape", "method"),
    [(shape, m) for shape in ("samples", "counts") for m in ("me", "ae", "de", "cve", "we", "mme", "te", "ke")]
    + [("summaries", m) for m in ("me", "ae", "we", "te", "ke")],
)
def test_lower_is_better_mirrors_everything(shape: str, method: str) -> None:
    mirrored: tuple[dict[str, Any], dict[str, Any], float]
    if shape == "samples":
        mirrored = ({"data": SAMPLES}, {"data": {k: -v for k, v in SAMPLES.items()}}, 0.0)
    elif shape == "counts":
        won, tried = np.array([3, 9, 30]), np.array([40, 60, 90])
        mirrored = ({"successes": won, "trials": tried}, {"successes": tried - won, "trials": tried}, 1.0)
    else:
        mirrored = ({"mean": MEANS, "se": ERRORS}, {"mean": -MEANS, "se": ERRORS}, 0.0)
    low = mm.estimate(**mirrored[0], method=method, lower_is_better=True, resamples=50)
    high = mm.estimate(**mirrored[1], method=method, resamples=50)
    origin = mirrored[2]
    np.testing.assert_allclose(low.value, origin - high.value, rtol=1e-12)
    np.testing.assert_allclose(low.bias().value, -high.bias().value, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(low.bias().interval, [-end for end in high.bias().interval[::-1]], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(low.interval(), origin - np.array(high.interval())[::-1], rtol=1e-12)
    np.testing.assert_allclose(low.weights, high.weights)
    np.testing.assert_allclose(low.winner().hybrid.interval, origin - np.array(high.winner().hybrid.interval)[::-1])


@settings(max_examples=25)
@given(st.integers(-990, 990), st.sampled_from(["me", "ae", "we", "te", "ke", "mme"]))
def test_units_do_not_matter_even_where_squares_leave_the_floating_point_range(power: int, method: str) -> None:
    scale = 2.0**power
    small = {k: v[:6] for k, v in SAMPLES.items()}
    plain = mm.estimate(small, method=method, resamples=5)
    scaled = mm.estimate({k: v * scale for k, v in small.items()}, method=method, resamples=5)
    np.testing.assert_allclose(scaled.value / scale, plain.value, rtol=1e-10)
    np.testing.assert_allclose(scaled.bias().value / scale, plain.bias().value, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scaled.weights, plain.weights, atol=1e-12)
    np.testing.assert_allclose(scaled.winner().hybrid.value / scale, plain.winner().hybrid.value, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300, 1.5e308])
def test_summaries_keep_their_digits_at_any_scale(scale: float) -> None:
    plain = mm.estimate(mean=[1.0, 1.1], se=[0.1, 0.2], resamples=5)
    scaled = mm.estimate(mean=[1.0 * scale, 1.1 * scale], se=[0.1 * scale, 0.2 * scale], resamples=5)
    np.testing.assert_allclose(scaled.value / scale, plain.value, rtol=1e-12)
    np.testing.assert_allclose(scaled.weights, plain.weights, rtol=1e-12)


def test_the_ends_of_the_floating_point_range_are_numbers_too() -> None:
    assert mm.estimate([[1.7e308, 1.6e308], [1e308, 1.2e308]], method="me").value == pytest.approx(1.65e308)
    assert mm.estimate([[5e-324, 1e-323], [5e-324, 0.0]], method="te").value > 0


def test_billions_of_trials_can_be_split() -> None:
    both = mm.compare(successes=[3 * 10**9, 4 * 10**9], trials=10**10, resamples=20)
    for method in ("de", "cve", "mme"):
        assert both.estimates[method].value == pytest.approx(0.4, abs=1e-4)


def test_winner_is_inferred_from_the_means_and_their_covariance() -> None:
    table = RNG.normal([0, 0.2, 0.1], 1, size=(50, 3)) + RNG.normal(size=(50, 1))
    est = mm.estimate(table, names=["a", "b", "c"])
    direct = infer_winner(table.mean(0), np.cov(table.T) / 50, freedom=49)
    winner = est.winner()
    assert winner.option == "abc"[direct.index]
    np.testing.assert_allclose(winner.conditional.value, direct.conditional.value, rtol=1e-9)
    np.testing.assert_allclose(winner.hybrid.interval, direct.hybrid.interval, rtol=1e-9)
    independent = mm.estimate(table, paired=False).winner().conditional
    np.testing.assert_allclose(
        independent.value, infer_winner(table.mean(0), table.var(0, ddof=1) / 50, freedom=49).conditional.value
    )


def test_zero_variance_everywhere_follows_the_rule_for_t() -> None:
    est = mm.estimate({"a": [1.0, 1.0], "b": [2.0, 2.0], "c": [2.0, 2.0, 2.0]}, resamples=10)
    assert est.value == 2
    assert est.statistic.tolist() == [-np.inf, 0, 0]
    assert est.probability_best().tolist() == [0, 0.5, 0.5]
    assert est.winner().hybrid.interval == (2.0, 2.0)


def test_compare_is_the_estimates_side_by_side() -> None:
    together = mm.compare(SAMPLES, resamples=100, seed=3)
    assert list(together.estimates) == ["me", "ae", "de", "cve", "we", "mme", "te", "ke"]
    for method, est in together.estimates.items():
        alone = mm.estimate(SAMPLES, method=method, resamples=100, seed=3)
        assert (alone.value, alone.bias(), alone.interval()) == (est.value, est.bias(), est.interval())
    table = together.table()
    assert table.loc["ke", "value"] == together.estimates["ke"].value
    assert json.loads(json.dumps(together.to_dict(), allow_nan=False)) == together.to_dict()
    assert together.answer.method == "ke"
    assert "B" in together.best_set
    assert "C" not in together.best_set


def test_compare_says_what_it_leaves_out_and_refuses_what_is_asked_for_in_vain() -> None:
    together = mm.compare(mean=MEANS, se=ERRORS, resamples=10)
    assert list(together.estimates) == ["me", "ae", "we", "te", "ke"]
    assert set(together.skipped) == {"de", "cve", "mme", "te*", "ke*"}
    with pytest.raises(mm.DataError, match="de splits the observations, and only summaries were given"):
        mm.compare(methods=["de"], mean=MEANS, se=ERRORS)
    with pytest.raises(mm.DataError, match="mme splits each option in 31, and 'C' has too few values"):
        mm.estimate(SAMPLES, method="mme", parts=31)
    with pytest.raises(mm.ArgumentError, match="level must lie between 0 and 1, not 2"):
        mm.compare(SAMPLES, level=2)


def test_infinite_ends_become_none_in_plain_data() -> None:
    zero = mm.compare(successes=[0, 3], trials=20, control="option 1", methods=["me"], resamples=10).to_dict()
    assert zero["lift"]["options"]["option 2"]["relative_interval"][1] is None


def test_the_bootstrap_needs_something_to_resample() -> None:
    with pytest.raises(mm.ArgumentError, match="resamples must be at least 2, not 1"):
        mm.estimate(SAMPLES, resamples=1)
    with pytest.raises(mm.ArgumentError, match="seed must be at least 0, not -1"):
        mm.estimate(SAMPLES, seed=-1)
    with pytest.raises(mm.ArgumentError, match="name at least one method"):
        mm.compare(SAMPLES, [])
    with pytest.raises(mm.ArgumentError, match="unknown method None"):
        mm.estimate(SAMPLES, method=None)  # type: ignore[arg-type]
    with pytest.raises(mm.ArgumentError, match="level must lie between 0 and 1, not 1"):
        mm.estimate(SAMPLES).interval(level=1)


def test_ties_do_not_depend_on_position() -> None:
    """A cve between equal options picks either, as the seed decides."""
    tied = {"a": [0.0, 1.0] * 5, "b": [1.0, 0.0] * 5}
    assert len({tuple(mm.estimate(tied, method="de", seed=s).weights) for s in range(30)}) == 2


def test_asking_for_pairs_does_not_make_them() -> None:
    """Samples that line up may be meant as pairs; what was declared unpaired, or comes in a long table, is not."""
    lists, table = [[1.0, 2.0, 4.0], [2.0, 3.0, 4.0]], np.array([[1.0, 2.0], [2.0, 3.0], [4.0, 4.0]])
    long = pd.DataFrame({"arm": list("aaabbb"), "value": [1.0, 2.0, 4.0, 2.0, 3.0, 4.0]})
    assert mm.estimate(lists, method="te*").value == mm.estimate(table, method="te*").value
    for refused in ({"data": lists, "paired": False}, {"data": table, "paired": False}, {"data": long}):
        with pytest.raises(mm.DataError, match=r"te\* needs paired samples"):
            mm.estimate(method="te*", **refused)


def test_an_exact_tie_is_said_and_what_is_known_about_each() -> None:
    tied = mm.compare(successes={"a": 5, "b": 5, "c": 1}, trials=1000, resamples=20)
    assert [tie.option for tie in tied.winner.tied] == ["a", "b"]
    first, second = tied.winner.tied
    assert first.interval == second.interval
    np.testing.assert_allclose(first.interval, tied.winner.recommended.interval)
    assert first.interval[0] < first.value < 0.005 < first.interval[1]
    assert tied.sentence().startswith("2 options share the largest mean, 0.0050; a fairer value of the best option is")
    low, high = first.interval
    assert f"with any of them, plan with {first.value:.4f} (shrinkage), {low:.4f} to {high:.4f}; " in tied.sentence()
    plain = tied.to_dict()
    assert plain["tied"] == ["a", "b"]
    assert plain["winner"]["tied"][1] == {"option": "b", "value": second.value, "interval": list(second.interval)}
    assert any("share the best mean" in note for note in tied.notes)
    assert not mm.compare(SAMPLES, ["ke"], resamples=5).winner.tied


def test_no_success_leaves_room_for_some() -> None:
    none = mm.estimate(successes=[0, 0, 0], trials=20).winner()
    assert len(none.tied) == 3
    for interval in (none.conditional.interval, none.recommended.interval):
        np.testing.assert_allclose(interval, (0.0, 1 - 0.025 ** (1 / 20)))
    failures = mm.estimate(successes=[20, 20], trials=20, lower_is_better=True).winner()
    np.testing.assert_allclose(failures.recommended.interval, (0.025 ** (1 / 20), 1.0))


def test_second_place_and_the_average_of_the_first() -> None:
    est = mm.estimate(SAMPLES)
    order = sorted(SAMPLES, key=lambda name: -np.mean(SAMPLES[name]))
    assert [est.winner(rank=rank).option for rank in range(1, len(order) + 1)] == order
    second = est.winner(rank=2)
    assert second.rank == 2
    assert second.recommended.interval[0] <= second.naive <= second.recommended.interval[1]
    top = est.top(2)
    assert top.options == tuple(order[:2])
    assert top.naive == pytest.approx(np.mean([np.mean(SAMPLES[name]) for name in order[:2]]))
    assert top.recommended.interval[0] < top.recommended.value < top.recommended.interval[1]
    shrunk = est.shrinkage()["value"]
    assert est.winner().recommended.value == pytest.approx(shrunk[order[0]])
    assert est.winner().recommended.method == "shrinkage"
    assert top.recommended.value == pytest.approx(shrunk[order[:2]].mean())
    last = est.winner(rank=len(order))  # nobody picked it for being good: it is drawn up
    assert last.recommended.value == pytest.approx(shrunk[order[-1]])
    assert last.recommended.value > last.naive
    with pytest.raises(mm.ArgumentError, match=f"rank must be at most {len(order)}, not 9"):
        est.winner(rank=9)
    with pytest.raises(mm.ArgumentError, match="k must be at least 1, not 0"):
        est.top(0)
    lower = mm.estimate({name: -values for name, values in SAMPLES.items()}, lower_is_better=True)
    np.testing.assert_allclose(lower.top(2).recommended.interval, [-end for end in top.recommended.interval[::-1]])


def test_of_several_in_the_first_place_each_has_the_same_answer() -> None:
    for est in (
        mm.estimate(successes=[3, 3, 1], trials=10),
        mm.estimate([[1.0, 3.0], [1.0, 3.0], [0.0, 1.0]]),
        mm.estimate(np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 1]])),
    ):
        first, second = (est.winner(rank=rank) for rank in (1, 2))
        assert (first.option, second.option) == ("option 1", "option 2")
        assert first.tied == second.tied
        assert first.recommended.interval == second.recommended.interval == second.hybrid.interval
        assert first.recommended.value == pytest.approx(second.recommended.value, rel=1e-12)
        assert not est.winner(rank=3).tied


@pytest.mark.parametrize("rows", [4, 40])
def test_the_order_of_paired_columns_does_not_matter(rows: int) -> None:
    """For any answer; what rounding leaves of it is below 1e-9."""
    rng = np.random.default_rng(13)
    table = rng.normal(size=(rows, 5)) * [1, 2, 1, 3, 1] + rng.normal(size=(rows, 1))
    order = [3, 0, 4, 1, 2]
    one, other = (
        mm.estimate(table[:, columns], names=[f"o{k}" for k in columns], control="o2")
        for columns in (list(range(5)), order)
    )
    for ask in (
        lambda est: est.interval(),
        lambda est: est.top(2).recommended.interval,
        lambda est: est.winner().hybrid.interval,
        lambda est: est.winner(rank=2).recommended.interval,
        lambda est: est.ranks().sort_index().to_numpy().ravel(),
        lambda est: est.shrinkage().sort_index().to_numpy().ravel(),
        lambda est: est.probability_best().sort_index().to_numpy(),
        lambda est: sorted(each.interval for each in est.lift().options),
    ):
        np.testing.assert_allclose(ask(one), ask(other), rtol=1e-9)
    assert set(one.best_set()) == set(other.best_set())


def test_who_beats_the_control_leaves_it_no_chance_to_be_the_best() -> None:
    """With two options there is one test, of counts and of means alike."""
    old, new = [0.35, -0.13, -0.48, -0.8, 1.66], [1.57, 1.15, 2.63, 0.42, 0.43]
    for est in (
        mm.estimate(successes={"old": 1, "new": 15}, trials=[20, 60], control="old"),
        mm.estimate({"old": old, "new": new}, control="old"),
    ):
        assert est.lift().beats == ("new",)
        assert est.best_set() == ("new",)


def test_own_intervals_are_exact_with_few_data() -> None:
    rates = mm.estimate(successes=[0, 2, 20], trials=20).problem.own_intervals(0.95)
    exact = [stats.binomtest(k, 20).proportion_ci() for k in (0, 2, 20)]
    np.testing.assert_allclose(rates, [(each.low, each.high) for each in exact], atol=1e-9)
    means = mm.estimate([[0.0, 1.0], [0.0, 1.0, 2.0]], lower_is_better=True).problem.own_intervals(0.9)
    students = [stats.ttest_1samp(values, 0.0).confidence_interval(0.9) for values in ([0.0, 1.0], [0.0, 1.0, 2.0])]
    np.testing.assert_allclose(means, [(float(each.low), float(each.high)) for each in students])


def test_a_winner_that_is_not_the_likely_best_is_noted() -> None:
    comparison = mm.compare(successes=[2, 65, 73, 53], trials=[5, 200, 200, 200], methods=["ke"], resamples=2)
    assert comparison.winner.option == "option 1"
    assert comparison.notes[0].startswith(
        "'option 3' is more likely the best than 'option 1', whose larger mean is less"
    )
    assert comparison.winner.conditional.value == 0.0
    assert comparison.notes[1].endswith("the value corrected for it is the end of the scale, 0")
    mirrored = mm.compare(
        successes=[3, 135, 127, 147], trials=[5, 200, 200, 200], methods=["ke"], resamples=2, lower_is_better=True
    )
    assert mirrored.notes[1].endswith("the value corrected for it is the end of the scale, 1")


def test_certainty_from_a_few_equal_values_is_noted() -> None:
    found = mm.compare({"a": [3.0] * 20, "b": [*range(20)]}, ["ke"], resamples=20)
    assert any(
        note.startswith("all values of 'a' are equal, so that its mean counts as certain") for note in found.notes
    )
    rates = mm.compare(successes={"a": 3, "b": 900}, trials={"a": 3, "b": 1000}, methods=["ke"], resamples=20)
    assert not any("as certain" in note for note in rates.notes)  # three of three are not always
    assert not mm.compare(SAMPLES, resamples=20).notes


def test_intervals_of_rates_stay_rates() -> None:
    found = mm.compare(successes=[99, 98, 100], trials=101, resamples=200)
    for est in found.estimates.values():
        low, high = est.interval()
        assert 0 <= low <= high <= 1
    assert 0 <= found.winner.hybrid.interval[0] <= found.winner.hybrid.interval[1] <= 1


def test_the_sentence_puts_forward_what_corrects() -> None:
    assert "fairer" not in mm.compare(SAMPLES, ["me"], resamples=10).sentence()
    assert "(cve)" in mm.compare(SAMPLES, ["ae", "cve"], resamples=10).sentence()


def test_python_takes_kernels_by_name_and_single_numbers_only() -> None:
    assert mm.estimate(SAMPLES, kernel="gaussian:0.5").value == mm.estimate(SAMPLES, kernel=mev.Gaussian(0.5)).value
    for wrong, sentence in {
        "alpha": "alpha must be a number",
        "seed": "seed must be a whole number",
        "resamples": "resamples must be a whole number",
        "parts": "parts must be a whole number",
        "draws": "draws must be a whole number",
    }.items():
        with pytest.raises(mm.ArgumentError, match=sentence):
            mm.estimate(SAMPLES, **{wrong: [0.1] if wrong == "alpha" else 2.5})  # type: ignore[arg-type]
    with pytest.raises(mm.ArgumentError, match="compare takes methods"):
        mm.compare(SAMPLES, method="ke")
    with pytest.raises(mm.ArgumentError, match="names must be a list"):
        mm.estimate([[1.0, 2.0], [2.0, 4.0]], names="ab")


def test_a_comparison_draws_itself(tmp_path: Path) -> None:
    mm.compare(SAMPLES, ["me", "ke"], resamples=10).plot(str(tmp_path / "best.svg"))
    assert (tmp_path / "best.svg").read_text().startswith("<?xml")


def test_estimates_can_be_compared_and_hashed_by_identity() -> None:
    one, other = mm.estimate(SAMPLES), mm.estimate(SAMPLES)
    assert one == one
    assert one != other
    assert len({one, other}) == 2


@pytest.mark.parametrize("wrong", ["x", "no", 1, 0.0, [], np.array([True, False])])
def test_a_truth_value_is_true_or_false(wrong: Any) -> None:
    for what in ("lower_is_better", "paired"):
        for ask in (mm.estimate, mm.compare):
            with pytest.raises(mm.ArgumentError, match=f"^{what} must be True or False, not "):
                ask(SAMPLES, **{what: wrong})
    with pytest.raises(mm.ArgumentError, match=r"^covariance must be True or False"):
        mev.ensemble_target(np.zeros((2, 2)), covariance=wrong)
    truth: Any = np.True_
    assert mm.estimate(SAMPLES, lower_is_better=truth).value == mm.estimate(SAMPLES, lower_is_better=True).value


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"resamples": 99_999_999_999}, "resamples must be at most 1,000,000, not 99999999999"),
        ({"resamples": 10**5000}, "resamples must be at most 1,000,000, not about 10^5000"),
        ({"resamples": True}, "resamples must be a whole number, not True"),
        ({"draws": 10**12}, "draws must be at most 1,000,000, not 1000000000000"),
        ({"parts": 10**30}, "parts must be at most 1,000, not about 10^30"),
        ({"seed": "x"}, "seed must be a whole number, not 'x'"),
        ({"seed": None}, "seed must be a whole number, not None"),
        ({"alpha": "x"}, "alpha must be a number, not 'x'"),
        ({"method": ["me"]}, "unknown method ['me']"),
        ({"names": 5}, "names must be a list of strings, not 5"),
        ({"names": ["a"]}, "there are 3 options, but 1 names"),
    ],
)
def test_a_setting_that_is_none(how: dict[str, Any], sentence: str) -> None:
    with pytest.raises(mm.ArgumentError) as refused:
        mm.estimate(SAMPLES, **how)
    assert str(refused.value).startswith(sentence)


def test_what_is_asked_later_is_checked_too(tmp_path: Path) -> None:
    est = mm.estimate(SAMPLES, seed=10**30)
    assert np.isfinite(est.bias().value)
    for ask, sentence in (
        (lambda: est.interval("x"), "level must be a number, not 'x'"),  # type: ignore[arg-type]
        (lambda: est.winner(level=[]), "level must be a number"),  # type: ignore[arg-type]
        (lambda: est.winner(beta="x"), "beta must be a number, not 'x'"),  # type: ignore[arg-type]
        (lambda: est.winner(beta=7), "beta must lie in [0, 1 - level), here [0, 0.05), not 7"),
        (lambda: mm.compare(SAMPLES, 5), "methods must be a list of names, not 5"),  # type: ignore[arg-type]
        (lambda: mm.compare(SAMPLES, ["me"], resamples=9).plot(5), "a picture needs a path"),  # type: ignore[arg-type]
        (lambda: mm.compare(SAMPLES, ["me"], resamples=9).plot("a\0.png"), "cannot write 'a\\x00.png'"),
    ):
        with pytest.raises(mm.ArgumentError) as refused:
            ask()
        assert str(refused.value).startswith(sentence)


def test_no_options_are_no_data() -> None:
    with pytest.raises(mm.DataError, match=r"^there are no options"):
        mm.estimate(mean=[], se=[])


def test_options_are_bounded_before_their_covariances_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(4, 12)) * rng.uniform(0.01, 1, 12)
    monkeypatch.setattr("maxmean.mev.problem.MOST_PAIRED", 11)
    with pytest.raises(mm.DataError, match=r"the most that can be compared as pairs: .*paired=False"):
        mm.estimate(table)
    with pytest.raises(mm.DataError, match=r"te\* compares up to 11 options as pairs"):
        mm.estimate(list(table.T), "te*")
    monkeypatch.setattr("maxmean.mev.problem.MOST_INTEGRATED", 11)
    with pytest.raises(mm.DataError, match=r"we integrates over up to 11 options; .*\(--draws 100\)"):
        mm.estimate(table, "we", paired=False)
    assert "we" in mm.compare(table, paired=False, resamples=9).skipped
    assert mm.estimate(table, "we", paired=False, draws=100).value < table.mean(axis=0).max()
    monkeypatch.setattr("maxmean.mev.data.options.MOST_OPTIONS", 11)
    with pytest.raises(mm.DataError, match="options, the most that can be compared"):
        mm.estimate(table, paired=False)


def test_the_interval_the_set_the_ranks_and_shrinkage_are_those_of_the_moments() -> None:
    for how, spread, freedom in (
        ({"data": SAMPLES, "paired": False}, None, np.array([len(v) - 1 for v in SAMPLES.values()])),
        ({"mean": MEANS, "se": ERRORS}, ERRORS**2, np.inf),
    ):
        est = mm.estimate(**how)
        means, variances = est.problem.data.means, est.problem.data.variances if spread is None else spread
        assert est.interval(0.9) == inference.maximum_interval(means, variances, level=0.9, freedom=freedom)
        there = inference.best_set(means, variances, freedom=freedom)
        assert est.best_set() == tuple(name for name, inside in zip(est.problem.names, there, strict=True) if inside)
        np.testing.assert_array_equal(est.ranks(), inference.rank_intervals(means, variances, freedom=freedom))
        wider = stats.t(freedom).isf(0.025) / stats.norm.isf(0.025) if np.ndim(freedom) else 1.0
        shrunk = inference.shrink(means, variances * wider**2)
        np.testing.assert_allclose(est.shrinkage()["value"], shrunk.values)
        np.testing.assert_allclose(est.shrinkage(0.8)[["low", "high"]], shrunk.intervals(0.8))
        if not np.ndim(freedom):
            np.testing.assert_array_equal(est.probability_best(), shrunk.chances)


def test_zeros_and_ones_have_the_interval_of_their_counts() -> None:
    clicks = {"a": np.repeat([1.0, 0.0], [3, 17]), "b": np.repeat([1.0, 0.0], [0, 30])}
    counted = {"successes": {"a": 3, "b": 0}, "trials": {"a": 20, "b": 30}}
    for lower in (False, True):
        one, other = mm.estimate(clicks, lower_is_better=lower), mm.estimate(**counted, lower_is_better=lower)  # type: ignore[arg-type]
        np.testing.assert_allclose(one.interval(), other.interval(), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(one.shrinkage(), other.shrinkage(), atol=1e-9)
        assert one.best_set() == other.best_set()
    assert mm.estimate(**counted, lower_is_better=True).interval()[1] > 0.0  # type: ignore[arg-type]


def test_an_unknown_prior_is_named() -> None:
    with pytest.raises(mm.ArgumentError, match="unknown prior 'jeffreys'"):
        mm.estimate(SAMPLES).probability_best("jeffreys")


def test_normal_data_of_many_options_are_not_called_skewed() -> None:
    """Of 50 normal options with 20 values one looks skewed by Cochran's rule in 24 of 25 data sets; said in 3.5% of 200 of them,
    so that four of 20 have a probability below 1%. Exponential data are always said to be."""
    rng = np.random.default_rng(0)
    said = [bool(mm.estimate(list(rng.normal(size=(50, 20)))).problem.skewed) for _ in range(20)]
    assert sum(said) < 4
    for options in (2, 10, 50):
        assert mm.estimate(list(rng.exponential(size=(options, 24)))).problem.skewed
    assert not mm.estimate([[0.0, 1.0], [5.0, 3.0]]).problem.skewed  # of two values nothing is known


def test_means_that_all_count_as_certain_are_named() -> None:
    (note, *_) = mm.compare({"a": [5.0, 5.0, 5.0], "b": [5.0, 5.0]}, ["ke"], resamples=5).notes
    assert note.startswith("all values of 'a', 'b' are equal, so that each of their means counts as certain")
    (note,) = mm.compare(successes=[0, 0], trials=50, methods=["ke"], resamples=5).notes  # none of 50 is not never
    assert "share the best mean" in note


def test_an_option_far_ahead_is_not_drawn_in_as_the_others_are() -> None:
    """The tails of independent options' prior see to it, and of correlated ones, whose prior is normal, the bound at 75%."""
    means = [8.0, *np.linspace(-1.0, 1.0, 49)]
    est = mm.estimate(mean=means, se=1.0)
    plan, half = est.winner().recommended, est.winner(level=0.5).conditional.interval[0]
    assert half < est.shrinkage()["value"].iloc[0] == pytest.approx(plan.value)
    assert plan.value < 8.0
    covariance = np.eye(50)
    covariance[1, 2] = covariance[2, 1] = 0.1
    est = mm.estimate(mean=means, covariance=covariance)
    assert est.shrinkage()["value"].iloc[0] < 6.5 < half == pytest.approx(est.winner().recommended.value)
    for close in ([0.1, *[0.0] * 9], [0.0] * 10):  # a close race, and a tie
        est = mm.estimate(mean=close, se=1.0)
        assert est.winner().recommended.value == pytest.approx(est.shrinkage()["value"].iloc[0])
    rates = mm.estimate(successes=[300, *[50] * 20], trials=1000)
    assert rates.winner(level=0.5).conditional.interval[0] <= rates.winner().recommended.value < 0.3


def test_few_and_skewed_data_are_said_to_be() -> None:
    rng = np.random.default_rng(0)
    few = mm.compare({"a": rng.normal(size=10), "b": rng.normal(size=30)}, ["ke"], resamples=5)
    assert any("these are few data" in note and "normally distributed" in note for note in few.notes)
    rare = mm.compare(successes=[0, 2], trials=50, methods=["ke"], resamples=5)
    assert not any("these are few data" in note for note in rare.notes)  # what is said of counts is exact
    assert not mm.compare(successes=[10, 12], trials=50, methods=["ke"], resamples=5).notes
    skewed = mm.compare({"a": rng.lognormal(sigma=2.0, size=40), "b": rng.normal(size=40)}, ["ke"], resamples=5)
    (note,) = skewed.notes
    assert "'a' has few values for how skewed they are" in note
    assert not mm.compare({"a": rng.lognormal(size=40_000), "b": rng.normal(size=40)}, ["ke"], resamples=5).notes


def test_a_long_tail_on_the_worse_side_is_said_to_be_worse() -> None:
    """The smallest of log-normal means: 58% of 95% intervals held with twenty values each, and all of them upwards."""
    data = list(np.random.default_rng(0).lognormal(size=(3, 20)))
    (upwards,), (downwards,) = (mm.estimate(data, lower_is_better=lower).notes for lower in (False, True))
    assert "intervals may hold less often" in upwards
    assert "the long tail is on the worse side, and intervals hold clearly less often" in downwards
    assert upwards.partition(";")[0] == downwards.partition(";")[0]  # the skewness of the data as they were given


A_DECADE = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7]


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("rank", [1, 2])
def test_means_that_differ_by_rounding_are_tied(paired: bool, rank: int) -> None:
    """Sums of the same numbers in another order; given that one of them won, nothing is known beyond what is known of all."""
    data = {"a": A_DECADE, "b": A_DECADE[::-1], "c": [0.0, 0.1, 0.4, 0.3, 0.2, 0.5]}
    est = mm.estimate(data, paired=paired)
    first, second, _ = est.problem.data.means
    assert 0 < abs(first - second) < 1e-15
    winner = est.winner(rank=rank)
    assert [tie.option for tie in winner.tied] == ["a", "b"]
    own = winner.tied[rank - 1]
    assert own.option == winner.option
    for answer in (winner.conditional, winner.hybrid, winner.recommended):
        assert (answer.value, answer.interval) == (own.value, own.interval)
        assert -1 < answer.interval[0] <= answer.value <= answer.interval[1] < 2


def test_what_is_tied_in_counts_is_what_the_table_of_ties_says() -> None:
    winner = mm.estimate(successes=[20, 20, 19], trials=20).winner()
    assert winner.conditional.value == winner.hybrid.value == winner.tied[0].value > 0.8


def test_without_a_share_for_the_projection_the_hybrid_is_the_conditional_answer() -> None:
    winner = mm.estimate(SAMPLES).winner(beta=0)
    assert winner.hybrid.value == pytest.approx(winner.conditional.value)
    assert winner.hybrid.interval == pytest.approx(winner.conditional.interval)


def test_the_sentence_gives_no_value_outside_its_interval() -> None:
    """One option of four is known a hundred times better than the others, and the estimate is an average over all."""
    odd = mm.estimate(successes=[0, 3, 5, 1], trials=[10, 20, 30, 5000], lower_is_better=True)
    assert not odd.interval()[0] <= odd.value <= odd.interval()[1]
    assert "fairer" not in odd.sentence()
    assert "the smallest true mean has the 95% interval" in odd.sentence()


def test_levels_have_all_their_digits() -> None:
    assert "99.9% interval" in mm.estimate(SAMPLES).sentence(level=0.999)


def test_an_estimate_has_the_notes_of_a_comparison() -> None:
    few = {"a": [1.0, 2.0, 4.0], "b": [5.0, 5.0, 5.0]}
    est = mm.estimate(few)
    assert est.notes == mm.compare(few, ["ke"], resamples=5).notes
    assert [note[:20] for note in est.notes[:2]] == ["all values of 'b' ar", "these are few data: "]
    assert repr(est).endswith("see its notes)")
    assert not mm.estimate(SAMPLES).notes
    assert "notes" not in repr(mm.estimate(SAMPLES))


def test_shrunk_rates_are_rates() -> None:
    shrunk = mm.estimate(successes=[0, 0, 0], trials=20).shrinkage().to_numpy()
    assert ((shrunk >= 0) & (shrunk <= 1)).all()


def test_a_number_to_plan_with_takes_its_width_from_its_own_option() -> None:
    """Two options that are hardly known do not blur one that is; by hand, its upper bound is 1.96 standard errors above it."""
    comparison = mm.compare(mean=[0.0, 0.3, 1.0], se=[1.0, 1.0, 0.1], resamples=2)
    assert comparison.winner.recommended.interval[1] == pytest.approx(1.0 + 0.1 * 1.959964)
    assert comparison.winner.hybrid.interval[0] == pytest.approx(comparison.winner.recommended.interval[0], abs=0.1)


def test_nobody_is_told_to_plan_with_more_than_was_seen() -> None:
    """Options that go up and down together, some far more than others: shrinkage alone may lift the winner."""
    for seed in range(40):
        rng = np.random.default_rng([7, seed])
        rows = (0.45 * rng.normal(size=(20, 5)) + rng.normal(size=(20, 1))) * np.array([0.2, 0.5, 1.0, 2.0, 5.0])
        for lower in (False, True):
            winner = mm.estimate(rows, lower_is_better=lower).winner()
            naive, planned = (
                (-winner.naive, -winner.recommended.value) if lower else (winner.naive, winner.recommended.value)
            )
            assert planned <= naive
            low, high = winner.recommended.interval
            assert low <= winner.recommended.value <= high


def test_the_value_of_the_maximum_lies_in_its_interval() -> None:
    comparison = mm.compare(mean=[0.0, 0.3, 1.0], se=[1.0, 1.0, 0.1], resamples=2)
    maximum = comparison.to_dict()["maximum"]
    assert comparison.estimates["ke"].value < maximum["interval"][0] == maximum["value"]
    assert any("lies outside the interval" in note for note in comparison.notes)
    assert f"<b>{maximum['value']:.2f}</b>" in page(comparison)


def test_what_is_given_is_called_by_its_name() -> None:
    assert mm.estimate(mean=[1.0, 2.0], se=[0.0, 0.1]).notes[0].startswith("the standard error of 'option 1' is zero")
    with pytest.raises(mm.DataError, match="has fewer than two trials: leave it out, or wait for more"):
        mm.estimate(successes=[1, 3], trials=[1, 20])
    with pytest.raises(mm.DataError, match="read_csv"):
        mm.estimate(mean=[1.0, 2.0], covariance="matrix.csv")


def test_a_shrunk_mean_lies_in_its_interval_also_if_it_is_certain() -> None:
    rng = np.random.default_rng(1)
    shrunk = mm.estimate({"a": rng.normal(0, 1, 20), "b": [0.3] * 20, "c": [0.0] * 20}).shrinkage()
    assert (shrunk["low"] <= shrunk["value"]).all()
    assert (shrunk["value"] <= shrunk["high"]).all()
