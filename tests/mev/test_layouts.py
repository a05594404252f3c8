"""Recognising what the columns of a table are, and collecting them batch by batch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest

from maxmean.mev.data import Counts, DataError, Samples, Summaries
from maxmean.mev.layouts import Columns, Options, read_options

NOTHING: dict[str, str] = {}


def read(columns: Mapping[str, Sequence[object]], said: Mapping[str, str] = NOTHING, batch: int = 100) -> Options:
    """Options of a table that arrives in batches of so many rows."""
    return read_options(pa.table(dict(columns)).to_batches(max_chunksize=batch), Columns(**said))


@pytest.mark.parametrize(
    ("columns", "said", "taken_for"),
    [
        ({"variant": ["a", "a", "b", "b"], "score": [1, 2, 3, 4]}, {}, "long: .*'variant'.*'score'"),
        ({"Arm": ["a", "a", "b", "b"], "REWARD ": [1, 2, 3, 4]}, {}, "long: .*'Arm'.*'REWARD '"),
        ({"city": ["a", "a", "b", "b"], "kg": [1, 2, 3, 4]}, {}, "long: .*'city'.*'kg'"),
        ({"kg": [1, 1, 2, 2], "cm": [1, 2, 3, 4]}, {"by": "kg"}, "long: .*'kg'.*'cm'"),
        ({"a": ["1", "x", "2"], "b": ["1", "2", "3"], "c": ["x", "x", "y"]}, {"by": "c", "value": "b"}, "long: .*'c'.*'b'"),
        ({"2023": [1, 2], "2024": [3, 4]}, {}, "wide: 2 columns, one an option: '2023', '2024'"),
        ({"": [0, 1], "a": [1, 2], "b": [3, 4]}, {}, "wide: 2 columns"),
        ({"day": ["Mon", "Tue"], "a": [1, 2], "b": [3, 4]}, {"layout": "wide", "by": "day"}, "wide: 2 columns.*'a', 'b'"),
        ({"ad": ["a", "b"], "clicks": [1, 2], "impressions": [3, 4]}, {}, "counts: .*'ad'.*'clicks'.*'impressions'"),
        ({"clicks": [1, 2], "n": [3, 4]}, {}, "counts: one option a row"),
        ({"x": [1, 2], "y": [3, 4]}, {"successes": "x", "trials": "y"}, "counts: .*'x'.*'y'"),
        ({"x": ["a", "b"], "mean": [3, 4], "sem": [1, 1]}, {}, "summaries: .*'x'.*'mean'.*'sem'"),
        ({"x": ["a", "b"], "mean": [3, 4], "sd": [1, 1], "count": [3, 3]}, {}, "summaries: .*'sd' / sqrt.'count'"),
        ({"x": ["a", "b"], "avg": [3, 4], "sd": [1, 1], "se": [1, 1], "n": [9, 9]}, {"sd": "sd"}, "summaries: .*'sd' / sqrt"),
    ],
)  # fmt: skip
def test_columns_are_recognised(columns: Mapping[str, Sequence[object]], said: dict[str, str], taken_for: str) -> None:
    assert re.match(taken_for, read(columns, said).taken_for)


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_batches_do_not_matter(batch: int) -> None:
    """However a table is cut into batches, options come in order of appearance and rows in theirs."""
    long = read({"option": list("babcab"), "value": [1, 2, 3, 4, 5, 6]}, batch=batch)
    assert long.names == ("b", "a", "c")
    assert isinstance(long.data, Samples)
    assert [v.tolist() for v in long.data.values] == [[1, 3, 6], [2, 5], [4]]
    wide = read({"a": ["1", "2", "3"], "b": ["1", "", ""]}, batch=batch)
    assert isinstance(wide.data, Samples)
    assert [v.tolist() for v in wide.data.values] == [[1, 2, 3], [1]]
    assert not wide.data.paired
    counts = read({"option": list("aba"), "clicks": [1, 2, 3], "views": [4, 5, 6]}, batch=batch)
    assert isinstance(counts.data, Counts)
    assert (counts.data.successes.tolist(), counts.data.trials.tolist()) == ([4, 2], [10, 5])
    means = read({"option": list("ab"), "mean": [1, 2], "sd": [3.0, 4.0], "n": [9, 4]}, batch=batch)
    assert isinstance(means.data, Summaries)
    np.testing.assert_allclose(means.data.variances, [1.0, 4.0])
    assert means.data.n == (9, 4)


@pytest.mark.parametrize("batch", [1, 2, 100])
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"option": list("aabb"), "value": ["1", "2", "3", "x"]}, "row 4: column 'value' holds 'x'"),
        ({"option": ["a", "a", "", "b"], "value": [1, 2, 3, 4]}, "row 3: column 'option' names no option"),
        ({"a": [1.0, None, 3.0], "b": [1.0, 2.0, 3.0]}, "row 2: column 'a' is empty there but goes on later"),
        ({"option": list("aba"), "mean": [1, 2, 3], "se": [1, 1, 1]}, "row 3: option 'a' was summarised in row 1"),
    ],
)
def test_rows_are_counted_over_all_batches(batch: int, columns: Mapping[str, Sequence[object]], message: str) -> None:
    """The text column is given as such: a batch of one row would look like a column of names."""
    said = {"by": "option", "value": "value"} if "value" in columns else {}
    with pytest.raises(DataError, match=message):
        read(columns, said, batch)


def test_rows_of_a_wide_table_are_paired_unless_said_otherwise() -> None:
    options = read({"a": [1, 2], "b": [3, 4]})
    assert isinstance(options.data, Samples)
    assert options.data.paired
    assert options.unpaired().data == Samples(options.data.values, paired=False)


def test_many_options_are_no_trouble() -> None:
    names = [f"option {k}" for k in range(20_000)]
    assert read({"option": names + names, "value": list(range(40_000))}, batch=50_000).names == tuple(names)


@pytest.mark.parametrize("name", ["arm", "variant", "option"])
def test_numbered_options_are_no_wide_table(name: str) -> None:
    batch = pa.RecordBatch.from_pydict({name: ["0", "0", "1", "1"], "revenue": ["2.5", "3.1", "4.2", "5.0"]})
    options = read_options([batch], Columns())
    assert options.names == ("0", "1")
    assert options.taken_for.startswith("long")
