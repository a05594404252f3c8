"""Python data in every usual shape becomes the same options."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import maxmean as mm
from maxmean.mev.errors import ArgumentError, DataError

TABLE = np.array([[1.0, 2.0, 0.5], [2.5, 4.0, -1.0], [3.0, 2.5, 0.0], [1.5, 5.0, 0.25]])
NAMES = ["a", "b", "c"]
COLUMNS = dict(zip(NAMES, TABLE.T, strict=True))
LONG = pd.DataFrame([(name, x) for name, values in COLUMNS.items() for x in values], columns=["option", "value"])


@pytest.mark.parametrize(
    ("data", "how"),
    [
        (COLUMNS, {}),
        ({name: values.tolist() for name, values in COLUMNS.items()}, {}),
        ({name: torch.tensor(values, requires_grad=True) for name, values in COLUMNS.items()}, {}),
        ({name: pd.Series(values, index=[7, 7, 8, 9]) for name, values in COLUMNS.items()}, {}),
        (list(COLUMNS.values()), {"names": NAMES}),
        ((values for values in COLUMNS.values()), {"names": NAMES}),
        (TABLE, {"names": NAMES, "paired": False}),
        (torch.tensor(TABLE), {"names": NAMES, "paired": False}),
        (jnp.asarray(TABLE), {"names": NAMES, "paired": False}),
        (pd.DataFrame(COLUMNS), {"paired": False}),
        (pd.DataFrame(TABLE), {"names": NAMES, "paired": False}),
        (pa.table(COLUMNS), {"paired": False}),
        (LONG, {}),
        (LONG.rename(columns={"option": "x", "value": "y"}), {"by": "x", "value": "y"}),
        (LONG.assign(option=LONG["option"].astype("category")), {}),
        (LONG.assign(value=LONG["value"].astype(object)), {}),
        (LONG.assign(value=LONG["value"].astype(str)), {}),
        (LONG.convert_dtypes(dtype_backend="pyarrow"), {}),
    ],
)
def test_every_shape_gives_the_same_estimate(data: Any, how: dict[str, Any]) -> None:
    est = mm.estimate(data, resamples=20, **how)
    expected = mm.estimate(COLUMNS, resamples=20)
    assert est.weights.to_dict() == pytest.approx(expected.weights.to_dict(), rel=1e-12)
    assert (est.value, est.bias(), *est.interval()) == (expected.value, expected.bias(), *expected.interval())
    assert not est.problem.data.covariances


@pytest.mark.parametrize("data", [TABLE, pd.DataFrame(COLUMNS), COLUMNS, LONG], ids=["array", "wide", "dict", "long"])
def test_pairing_can_be_said(data: Any) -> None:
    star = mm.estimate(data, "te*", paired=True)
    assert star.problem.data.covariances is not None
    np.testing.assert_allclose(star.problem.data.covariances, np.cov(TABLE.T) / len(TABLE))
    assert mm.estimate(data, paired=False).problem.data.covariances is None


@pytest.mark.parametrize(
    "how",
    [
        {"successes": [3, 5], "trials": [10, 20]},
        {"successes": {"option 1": 3, "option 2": 5}, "trials": {"option 2": 20, "option 1": 10}},
        {"successes": np.array([3, 5]), "trials": [10, 20.0]},
        {"data": pd.DataFrame({"arm": ["option 1", "option 2"], "clicks": [3, 5], "views": [10, 20]})},
        {"data": pd.DataFrame({"s": [3, 5], "t": [10, 20]}), "successes": "s", "trials": "t", "names": ["option 1", "option 2"]},
    ],
)  # fmt: skip
def test_counts(how: dict[str, Any]) -> None:
    table = mm.estimate(**how).table()
    assert table.index.tolist() == ["option 1", "option 2"]
    np.testing.assert_allclose(table["mean"], [0.3, 0.25])
    np.testing.assert_allclose(table["se"], [np.sqrt(0.3 * 0.7 / 9), np.sqrt(0.25 * 0.75 / 19)])


def test_summaries_with_sd_and_n_or_se() -> None:
    by_se = mm.estimate(mean={"x": 1.0, "y": 2.0}, se={"x": 0.5, "y": 1.0})
    by_sd = mm.estimate(mean={"x": 1.0, "y": 2.0}, sd={"x": 1.5, "y": 3.0}, n=9)
    assert by_se.value == by_sd.value
    assert by_sd.table()["n"].tolist() == [9, 9]
    assert "n" not in by_se.table()


def frame(**columns: list[Any]) -> pd.DataFrame:
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({}, "no data"),
        ({"data": {}}, "there are no options"),
        ({"data": []}, "there are no options"),
        ({"data": np.zeros((2, 0))}, "there are no options"),
        ({"successes": {}, "trials": {}}, "there are no options"),
        ({"data": "abc"}, "no file 'abc'"),
        ({"data": 3.0}, "not float"),
        ({"data": np.zeros(3)}, "two axes.* not 1"),
        ({"data": {"a": [1, 2]}}, "only one option .'a'."),
        ({"data": {"a": [1, 2], "b": []}}, "'b' has fewer than two"),
        ({"data": {"a": [1, 2], "b": [1, "x"]}}, "'b': value 2 is 'x'"),
        ({"data": {"a": [1, 2], "b": [1, None]}}, "'b': value 2 is missing .nan.: drop_missing=True"),
        ({"data": {"a": [1, 2], "b": [1, np.inf]}}, "'b': value 2 is inf"),
        ({"data": {"a": [1, 2], "b": 3}}, "'b' needs a list"),
        ({"data": {"a": [1, 2], "b": [[1, 2], [3, 4]]}}, "'b' needs a list"),
        ({"data": {"a": [1, 2], "b": np.array([1j, 2])}}, "'b' holds values of type complex128"),
        ({"data": {"a": [1, 2], "b": np.array(["2020-01-01"] * 2, "M8[D]")}}, "'b' holds values of type datetime64"),
        ({"data": {"a": [1, 2], "b": np.ma.array([1, 2, 9], mask=[False, False, True])}}, "'b': value 3 is missing"),
        ({"data": {1: [1, 2], "1": [3, 4]}}, "'1' appears twice"),
        ({"data": {"a": [1, 2], "b": [1, 2, 3]}, "paired": True}, "same number of observations"),
        ({"data": frame(option=list("aab"), value=[1, "x", 3])}, "row 2: column 'value' holds 'x'"),
        ({"data": frame(option=list("aab"), value=[1, None, 3])}, "row 2: column 'value' is empty"),
        ({"data": pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])}, "'a' appears twice"),
        ({"data": pd.DataFrame()}, "no rows"),
        ({"data": LONG, "by": "optin"}, "no column 'optin'; did you mean 'option'"),
        ({"successes": [1, 2]}, "counts need successes .or a rate. and trials"),
        ({"successes": [1, 2], "trials": [3, 4, 5]}, "successes has 2 values for 3 options"),
        ({"successes": [1, 7], "trials": 5}, "'option 2': 7 successes out of 5"),
        ({"successes": [1, 1.5], "trials": 5}, "'option 2': 1.5 successes"),
        ({"successes": {"a": 1, "b": 2}, "trials": {"a": 3}}, "'b' has no trials"),
        ({"successes": {"a": 1}, "trials": {"a": 3, "b": 4}}, "'b' appears only in trials"),
        ({"mean": [1, 2]}, "standard error se, or"),
        ({"se": [1, 2]}, "need the mean"),
        ({"mean": [1, 2], "se": [1, -1]}, "'option 2': se is negative"),
        ({"mean": [1, np.nan], "se": 1}, "'option 2': mean is nan"),
        ({"mean": [1, 2], "sd": 1, "n": [2, 1]}, "'option 2' has fewer than two"),
        ({"mean": [1, 2], "sd": 1, "n": [2, 2.5]}, "'option 2': n must be a whole number"),
    ],
)
def test_mistakes_name_the_option_or_the_column(how: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        mm.estimate(**how)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"data": {"a": [1, 2], "b": [1, 2]}, "by": "x"}, "by can only be given with a table"),
        ({"data": {"a": [1, 2], "b": [1, 2]}, "names": ["x"]}, "2 options, but 1 names"),
        ({"data": LONG, "by": 0}, "by names a column"),
        ({"by": "x"}, "by needs a table"),
        ({"successes": [1, 2], "trials": 5, "paired": True}, "only observations can be paired"),
    ],
)
def test_arguments_that_do_not_go_with_the_data_are_named(how: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        mm.estimate(**how)
