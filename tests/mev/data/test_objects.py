"""Objects of Python's libraries for tables: what is read from each, or the sentence that is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import maxmean as mm
from maxmean.mev.errors import ArgumentError, DataError, DataWarning

ROWS = {"ad": list("aabb"), "eur": [1.0, 2.0, 3.0, 5.0]}
FRAME = pd.DataFrame(ROWS)
AB = {"a": 1.5, "b": 4.0}
CLICKS = pd.Series({"red": 3, "blue": 7})
VIEWS = pd.Series({"blue": 60, "red": 50})
ADS = pd.DataFrame({"clicks": [30, 40, 50], "views": [1000, 1000, 2000]})


class Exchanged:
    """A table that shows nothing but the dataframe interchange protocol."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __dataframe__(self, *given: Any, **named: Any) -> Any:
        return self.table.__dataframe__(*given, **named)


class Streamed:
    """A table that shows nothing but Arrow's stream."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested)


def polars(columns: dict[str, Any]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns)


def duck() -> Any:
    return pytest.importorskip("duckdb").sql(
        "SELECT * FROM (VALUES ('a', 1), ('a', 2), ('b', 3), ('b', 5)) AS t(ad, eur)"
    )


OBJECTS: dict[str, tuple[Callable[[], Any], dict[str, Any], dict[str, float]]] = {
    "pandas": (lambda: FRAME, {}, AB),
    "pandas, index of names": (lambda: FRAME.set_index("ad"), {}, AB),
    "series with names": (lambda: FRAME.set_index("ad")["eur"], {}, AB),
    "filtered frame": (lambda: pd.concat([FRAME, FRAME.assign(ad="c")]).query("ad != 'c'"), {}, AB),
    "groups of a column": (lambda: FRAME.groupby("ad")["eur"], {}, AB),
    "groups of a frame": (lambda: FRAME.groupby("ad"), {}, AB),
    "groups by two": (lambda: FRAME.assign(day=[1, 1, 2, 2]).groupby(["ad", "day"])["eur"], {}, {"a, 1": 1.5, "b, 2": 4.0}),
    "groups, column named": (lambda: FRAME.assign(n=9).groupby("ad"), {"value": "eur"}, AB),
    "mean and sem": (lambda: FRAME.groupby("ad")["eur"].agg(["mean", "sem"]), {}, AB),
    "mean and sem of a frame": (lambda: FRAME.groupby("ad").agg(["mean", "sem"]), {}, AB),
    "describe": (lambda: FRAME.groupby("ad")["eur"].describe(), {}, AB),
    "wide, dates as index": (
        lambda: pd.DataFrame({"a": [1.5, 1.5, 1.5], "b": [4.0, 3.5, 4.5]}, pd.date_range("2024-01-01", periods=3)), {}, AB,
    ),
    "pyarrow": (lambda: pa.table(ROWS), {}, AB),
    "record batch": (lambda: pa.record_batch(ROWS), {}, AB),
    "views of text": (lambda: pa.table({**ROWS, "ad": pa.array(ROWS["ad"], pa.string_view())}), {}, AB),
    "stream": (lambda: Streamed(pa.table({**ROWS, "ad": pa.array(ROWS["ad"], pa.string_view())})), {}, AB),
    "interchange": (lambda: Exchanged(pa.table(ROWS)), {}, AB),
    "polars": (lambda: polars(ROWS), {}, AB),
    "polars, lazy": (lambda: polars(ROWS).lazy(), {}, AB),
    "polars, categories": (lambda: polars(ROWS).cast({"ad": pytest.importorskip("polars").Categorical}), {}, AB),
    "duckdb": (duck, {}, AB),
    "series": (lambda: None, {"successes": CLICKS, "trials": VIEWS}, {"red": 3 / 50, "blue": 7 / 60}),
    "numbered series": (
        lambda: None, {"successes": ADS.clicks, "trials": ADS.views[::-1]},
        {"option 1": 0.03, "option 2": 0.04, "option 3": 0.025},
    ),
    "named and numbered series": (
        lambda: None, {"mean": CLICKS.rename_axis("ad"), "se": pd.Series([0.5, 0.1])}, {"red": 3, "blue": 7},
    ),
    "series and a number": (lambda: None, {"successes": CLICKS, "trials": 100}, {"red": 0.03, "blue": 0.07}),
    "rates": (lambda: None, {"rate": {"x": 0.06, "y": 0.1}, "trials": 50}, {"x": 0.06, "y": 0.1}),
    "limits": (lambda: None, {"mean": [1, 2], "lower": [0, 1], "upper": [2, 3]}, {"option 1": 1, "option 2": 2}),
    "units": (
        lambda: pd.DataFrame({"ad": list("abab"), "eur": [1.0, 4.5, 2.0, 3.5], "user": [7, 8, 8, 7]}), {"unit": "user"}, AB,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_is_read(name: str) -> None:
    make, how, means = OBJECTS[name]
    est = mm.estimate(make(), **how)
    assert est.table()["mean"].to_dict() == pytest.approx(means)


def test_a_path_is_read(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "t.csv.gz", index=False)
    for path in (tmp_path / "t.csv.gz", str(tmp_path / "t.csv.gz")):
        assert mm.estimate(path).table()["mean"].to_dict() == AB


def test_units_pair_long_rows() -> None:
    """The covariance is that of the same users, whatever the order of the rows."""
    make, how, _ = OBJECTS["units"]
    data = mm.estimate(make(), **how).problem.data
    assert data.covariances is not None
    np.testing.assert_allclose(np.asarray(data.covariances), np.cov(np.array([[1.0, 2.0], [3.5, 4.5]])) / 2)


def test_where_compares_numbers_as_numbers() -> None:
    frame = pd.DataFrame({"ad": list("aabbb"), "eur": [1.0, 2, 3, 5, 9], "year": [2024.0, 2024, 2024, 2024, 2023]})
    assert mm.estimate(frame, by="ad", value="eur", where="year = 2024").table()["mean"].to_dict() == AB


def test_a_version_in_quotation_marks_is_a_name() -> None:
    frame = FRAME.assign(version=["1.1", "1.1", "1.1", "1.1"])
    more = pd.concat([frame, frame.assign(version="1.10", eur=9.0)], ignore_index=True)
    assert mm.estimate(more, by="ad", value="eur", where="version = '1.1'").table()["mean"].to_dict() == AB


def test_missing_values_are_dropped_and_said() -> None:
    holes = {"a": [1.0, np.nan, 2.0], "b": [3.0, 4.0, 5.0]}
    with pytest.warns(DataWarning, match="^1 missing value was left out$"):
        assert mm.estimate(holes, drop_missing=True).table()["n"].tolist() == [2, 3]
    with pytest.warns(DataWarning, match="^1 of 3 rows was left out, since a value is missing there$"):
        assert mm.estimate(np.column_stack(list(holes.values())), drop_missing=True).table()["n"].tolist() == [2, 2]
    with pytest.warns(DataWarning, match="^1 of 3 rows was left out, since 'a' is empty there$"):
        assert mm.estimate(pd.DataFrame(holes), drop_missing=True).table()["n"].tolist() == [2, 2]


def test_rows_of_no_group_are_said() -> None:
    more = pd.concat([FRAME, pd.DataFrame({"ad": [None, None], "eur": [9.0, 9.0]})])
    for groups in (more.groupby("ad"), more.groupby("ad")["eur"]):
        with pytest.warns(DataWarning, match="^2 of 6 rows were left out, since they name no group$"):
            assert mm.estimate(groups).table()["mean"].to_dict() == AB


def test_what_a_reader_guessed_is_a_warning_and_a_note() -> None:
    frame = pd.DataFrame({"ad": list("aabb"), "ctr": ["10%", "12%", "20%", "22%"]})
    with pytest.warns(DataWarning, match="'10%' was read as 0.1"):
        notes = mm.compare(frame).to_dict()["notes"]
    assert "column 'ctr': '10%' was read as 0.1" in notes


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"successes": CLICKS, "trials": VIEWS.rename({"blue": "green"})}, "'blue' has no trials"),
        ({"successes": CLICKS, "trials": pd.concat([VIEWS, VIEWS])}, "'blue' appears twice in trials"),
        ({"successes": ADS.clicks[:2], "trials": ADS.views[1:]}, "successes and trials are Series with different labels"),
        ({"mean": CLICKS, "se": pd.Series([1.0, 2.0], [1, 0])}, "mean and se are Series with different labels"),
        ({"data": {"fit_time": [1, 2], "score_time": [1, 2], "test_f1": [0.5, 0.75]}}, r"one model.*\['test_f1'\]"),
        ({"data": FRAME.assign(n=9).groupby("ad")}, "columns 'eur', 'n': name one with value"),
        ({"data": FRAME.assign(n=9).groupby("ad"), "value": "x"}, "no column 'x'"),
        ({"data": FRAME.assign(ad=["a", "a", "Total", "Total"])}, "'Total' looks like a sum"),
        ({"data": pd.DataFrame({"a": [1.5, None, 3], "b": [1.0, 2, 9]})}, "row 2: column 'a' is empty, in 1 of 3 rows"),
        ({"data": pd.Series([1.0, 2.0])}, "two axes"),
        ({"mean": [1, 2], "lower": [0, 1]}, "confidence limits are lower and upper"),
        ({"mean": [1, 2], "lower": [0, 1], "upper": [2, 9]}, "'option 2': its limits 1 and 9 are not symmetric"),
        ({"rate": [0.5, 0.25], "trials": 3}, "0.5 of 3 trials is no whole number"),
    ],
)  # fmt: skip
def test_a_doubt_is_a_sentence(how: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        mm.estimate(**how)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"data": FRAME, "where": "eur"}, "where is a column, = or !=, and a value"),
        ({"data": FRAME, "decimal": ";"}, "decimal must be a point or a comma"),
        ({"data": FRAME, "options": "a"}, "options must be a list of names"),
        ({"data": FRAME, "limits_level": 95}, "between 0 and 1"),
        ({"data": ROWS["eur"], "where": "ad = a"}, "where, options, decimal, query and layout choose from a table"),
        ({"unit": "user", "mean": [1, 2], "se": 1}, "unit needs a table"),
    ],
)
def test_an_argument_that_makes_no_sense_is_named(how: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        mm.estimate(**how)
