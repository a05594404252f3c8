"""Collecting the columns of a table batch by batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest

from maxmean.mev.data import Counts, DataError, Samples, Summaries
from maxmean.mev.data.collect import read_options
from maxmean.mev.data.layout import Columns
from maxmean.mev.data.options import Options

NOTHING: dict[str, str] = {}


def read(columns: Mapping[str, Sequence[object]], said: Mapping[str, str] = NOTHING, batch: int = 100) -> Options:
    """Options of a table that arrives in batches of so many rows."""
    return read_options(pa.table(dict(columns)).to_batches(max_chunksize=batch), Columns(**said))


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_batches_do_not_matter(batch: int) -> None:
    """However a table is cut into batches, options come in order of appearance and rows in theirs."""
    long = read({"option": list("babcab"), "value": [1, 2, 3, 4, 5, 6]}, batch=batch)
    assert long.names == ("b", "a", "c")
    assert isinstance(long.data, Samples)
    assert [v.tolist() for v in long.data.values] == [[1, 3, 6], [2, 5], [4]]
    wide = read({"a": ["1", "2", "4"], "b": ["1", "", ""]}, batch=batch)
    assert isinstance(wide.data, Samples)
    assert [v.tolist() for v in wide.data.values] == [[1, 2, 4], [1]]
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
        ({"a": [1.0, None, 3.0], "b": [1.0, 2.0, 4.0]}, "row 2: column 'a' is empty, in 1 of 3 rows"),
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
