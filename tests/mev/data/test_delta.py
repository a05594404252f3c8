"""Ratios, rows of one unit and covariates: the textbook formulas, regression with its sandwich, and pairs as a special case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import maxmean as mm
from inside import maxmean
from maxmean.mev.data.delta import Rows, summarise_units


def shop(users: int = 60) -> pd.DataFrame:
    """Users with one to four visits each, in three variants; what they spent before tells what they spend."""
    rng = np.random.default_rng(3)
    before, variant = rng.gamma(2.0, 10.0, users), rng.integers(0, 3, users)
    visit = np.repeat(np.arange(users), rng.integers(1, 5, users))
    items = rng.poisson(2.0, len(visit))
    spent = items * (5 + 0.5 * variant[visit]) + rng.normal(size=users)[visit] + 0.2 * before[visit]
    frame = {"user": visit, "variant": [f"v{k}" for k in variant[visit]], "items": items, "spent": spent}
    return pd.DataFrame(frame | {"before": before[visit]})


def test_a_row_that_is_a_unit_is_an_observation() -> None:
    frame = shop()
    plain, rows = mm.estimate(frame, by="variant", value="spent"), frame.assign(row=range(len(frame)))
    as_units = mm.estimate(rows, by="variant", value="spent", cluster="row")
    assert as_units.problem.means == pytest.approx(plain.problem.means)
    assert as_units.problem.standard_errors == pytest.approx(plain.problem.standard_errors)
    assert as_units.problem.data.n == plain.problem.data.n
    assert as_units.problem.data.covariances is None


def test_a_ratio_has_the_variance_of_the_delta_method() -> None:
    frame = shop()
    found = mm.estimate(frame, by="variant", numerator="spent", denominator="items", cluster="user").problem
    for name, mean, error in zip(found.names, found.means, found.standard_errors, strict=True):
        users = frame[frame["variant"] == name].groupby("user")[["spent", "items"]].sum()
        ratio = users["spent"].sum() / users["items"].sum()
        (a, b), (_, c) = users.cov().to_numpy()
        variance = (a - 2 * ratio * b + ratio**2 * c) / users["items"].mean() ** 2 / len(users)
        assert (mean, error) == pytest.approx((ratio, variance**0.5))


def test_units_in_all_options_are_pairs() -> None:
    rows = np.random.default_rng(0).normal(size=(12, 3)) + np.random.default_rng(1).normal(size=(12, 1))
    found = summarise_units(
        Rows(np.tile([0, 1, 2], 12), rows.ravel(), cluster=np.repeat(np.arange(12), 3)), ("a", "b", "c")
    )
    assert found.covariances == pytest.approx(np.cov(rows.T) / 12)
    assert found.means == pytest.approx(rows.mean(axis=0))


def test_a_covariate_is_a_regression_with_its_sandwich() -> None:
    """Means of all options where the covariate has its overall mean, from least squares; White's covariance matrix."""
    frame = shop().groupby(["user", "variant"], as_index=False)[["spent", "before"]].mean()
    found = mm.estimate(frame, by="variant", value="spent", covariate="before").problem
    belongs = np.stack([frame["variant"] == name for name in found.names], axis=-1).astype(float)
    x = frame["before"].to_numpy() - frame["before"].mean()
    design = np.column_stack([belongs, x])
    solution, *_ = np.linalg.lstsq(design, frame["spent"].to_numpy(), rcond=None)
    assert found.means == pytest.approx(solution[:3])
    inverse = np.linalg.inv(design.T @ design)
    share = (inverse @ design.T * (frame["spent"].to_numpy() - design @ solution)).T[:, :3]
    share += solution[3] * x[:, None] / len(x)  # the overall mean is estimated too
    n, units = belongs.sum(axis=0), len(frame)
    factor = np.sqrt(n / (n - 1) * (units - 3) / (units - 4))
    assert found.data.covariances == pytest.approx(share.T @ share * np.outer(factor, factor))
    # What is explained is less in doubt.
    plain = mm.estimate(frame, by="variant", value="spent", control="v0").lift()
    adjusted = mm.estimate(frame, by="variant", value="spent", covariate="before", control="v0").lift()
    for one, other in zip(plain.options, adjusted.options, strict=True):
        assert other.interval[1] - other.interval[0] < one.interval[1] - one.interval[0]


def test_a_covariate_in_every_row_of_a_unit_counts_once() -> None:
    frame = shop()
    sums = frame.groupby(["user", "variant"], as_index=False).agg(
        spent=("spent", "sum"), rows=("spent", "size"), before=("before", "first")
    )
    by_row = mm.estimate(frame, by="variant", value="spent", cluster="user", covariate="before").problem
    by_user = mm.estimate(sums, by="variant", numerator="spent", denominator="rows", covariate="before").problem
    assert by_row.means == pytest.approx(by_user.means)
    assert by_row.data.covariances == pytest.approx(by_user.data.covariances)


def test_units_of_measurement_do_not_matter() -> None:
    frame = shop()
    how: dict[str, Any] = {"by": "variant", "value": "spent", "cluster": "user", "covariate": "before"}
    one = mm.estimate(frame, **how).problem
    other = mm.estimate(frame.assign(spent=frame["spent"] * 1e200, before=frame["before"] * 1e-200), **how).problem
    assert other.means == pytest.approx([1e200 * mean for mean in one.means])
    assert other.standard_errors == pytest.approx([1e200 * error for error in one.standard_errors])


def test_the_command_reads_them(tmp_path: Path) -> None:
    frame = shop()
    frame.to_csv(tmp_path / "shop.csv", index=False)
    ratio = ("--numerator", "spent", "--denominator", "items")
    more = ("--cluster", "user", "--covariate", "before", "--control", "v0", "-m", "ke", "--resamples", "10")
    answer = maxmean("estimate", tmp_path / "shop.csv", *ratio, *more)
    assert answer.returncode == 0
    assert "the ratio of 'spent' to 'items', rows of one 'user' together, adjusted for 'before'" in answer.stderr
    assert "Lift over v0" in answer.stdout


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"numerator": "spent"}, r"needs a denominator \(--denominator\)"),
        ({"denominator": "items"}, r"needs a numerator \(--numerator\)"),
        ({"value": "before", "numerator": "spent", "denominator": "items"}, "are the same thing"),
        ({"value": "spent", "cluster": "usr"}, "did you mean 'user'"),
        ({"value": "spent", "cluster": "spent"}, "cannot be both value and cluster"),
        ({"successes": "spent", "cluster": "user"}, r"cluster \(--cluster, column 'user'\) does not belong"),
        ({"value": "spent", "covariate": "same"}, "it explains nothing"),
        ({"value": "spent", "cluster": "same"}, "fewer than two units"),
        ({"numerator": "spent", "denominator": "zero"}, "denominator adds up to zero"),
        ({"numerator": "spent", "denominator": "loss"}, "row 1: column 'loss' is negative"),
        ({"value": "spent", "cluster": "user", "unit": "same"}, "pairs rows of which a unit has one for each option"),
        ({"value": "spent", "cluster": "hole"}, "row 2: column 'hole' is empty"),
    ],
)
def test_what_cannot_be_is_said(how: dict[str, Any], said: str) -> None:
    frame = shop().assign(same=1.0, zero=0, loss=-1, hole="u")
    frame.loc[1, "hole"] = " "
    with pytest.raises((mm.DataError, mm.ArgumentError), match=said):
        mm.estimate(frame, by="variant", **how)


def test_rows_are_chosen_and_left_out_before_they_are_summed_up() -> None:
    frame = shop()
    how: dict[str, Any] = {"by": "variant", "numerator": "spent", "denominator": "items", "cluster": "user"}
    frame.loc[3, "items"] = np.nan
    chosen = mm.estimate(frame, where="variant != v1", drop_missing=True, **how).problem
    apart = mm.estimate(frame.drop(index=3).query("variant != 'v1'"), **how).problem
    assert chosen.names == apart.names
    np.testing.assert_array_equal(chosen.means, apart.means)
    np.testing.assert_array_equal(chosen.standard_errors, apart.standard_errors)


def test_arrays_have_no_columns() -> None:
    with pytest.raises(mm.ArgumentError, match="cluster needs a table"):
        mm.estimate(mean=[1.0, 2.0], se=0.1, cluster="user")
