"""Parquet from strangers: what it would take is known before it is taken, and nested columns are named."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maxmean.mev.data import columns, files, limits, parquet_pages
from maxmean.mev.data.collect import read_options
from maxmean.mev.data.files import stream_table
from maxmean.mev.data.layout import Columns
from maxmean.mev.data.options import Options
from maxmean.mev.errors import DataError

LONG = pa.table({"option": list("aabb"), "value": [1.0, 2.0, 3.0, 5.0]})
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def file(table: pa.Table, **how: Any) -> str:
        pq.write_table(table, tmp_path / "t.parquet", **how)
        return str(tmp_path / "t.parquet")

    return file


def read(path: str, **said: str) -> Options:
    return read_options(stream_table(path), Columns(**said))


def values(options: Options) -> dict[str, list[float]]:
    return {name: list(v) for name, v in zip(options.names, options.data.values, strict=True)}  # type: ignore[union-attr]


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_pages_of_every_kind_are_understood(write: Write, compression: str, version: str, dictionary: bool) -> None:
    rng = np.random.default_rng(0)
    names = [f"option {k % 7}" for k in range(5000)]
    table = pa.table({"option": names, "value": rng.normal(size=5000), "tags": [["x"]] * 5000})
    path = write(
        table, compression=compression, data_page_version=version, use_dictionary=dictionary, data_page_size=1000,
        row_group_size=1500, write_statistics=True,
    )  # fmt: skip
    found = values(read(path))
    for k in range(7):
        np.testing.assert_array_equal(found[f"option {k}"], table["value"].to_numpy()[k::7])


def test_one_long_text_may_not_stand_in_every_row(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_pages, "MOST_TEXT", 100_000)
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(60_000, np.int32)), ["x" * 1000])
    for how in ({}, {"store_schema": False}):
        with pytest.raises(
            DataError, match=r"^column 'option' holds 57 MB of text in 60,000 rows; up to 0 MB are read$"
        ):
            read(write(pa.table({"option": long, "value": np.ones(60_000)}), **how))


def test_a_page_that_unpacks_to_too_much_is_not_unpacked(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_pages, "MOST_UNPACKED", 3 << 20)
    text = ["x" * (2 << 20), "y"]
    path = write(pa.table({"a": text, "b": text}), compression="zstd", use_dictionary=False, write_statistics=False)
    assert Path(path).stat().st_size < 5000
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(DataError, match=r"unpack to 4 MB at once; up to 3 MB are read$"):
        read(path)


@pytest.mark.parametrize(
    ("limit", "most", "sentence"),
    [
        ("MOST_VALUES", 3, "has 4 rows: there are more than"),
        ("MOST_COLUMNS", 1, "has 2 columns; up to 1 are read"),
        ("MOST_PAGES", 1, "is cut into more than 1 pages"),
    ],
)
def test_bounds(write: Write, monkeypatch: pytest.MonkeyPatch, limit: str, most: int, sentence: str) -> None:
    monkeypatch.setattr(parquet_pages, limit, most)
    with pytest.raises(DataError, match=sentence):
        read(write(LONG))


def test_a_pipe_is_held_in_memory_and_so_it_is_bounded(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(LONG)
    monkeypatch.setattr(files, "_LONGEST_PIPE", 100)
    with open(path, "rb") as handle, pytest.raises(DataError, match="give its path instead of a pipe"):
        list(files._stream(handle, "standard input"))


ODD: dict[str, Any] = {
    "list": pa.array([[1.0]] * 4),
    "list in a list": pa.array([[[1.0]]] * 4),
    "list of fixed size": pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float64(), 2)),
    "struct": pa.array([{"x": 1.0}] * 4),
    "map": pa.array([[("k", 1.0)]] * 4, pa.map_(pa.string(), pa.float64())),
}


@pytest.mark.parametrize("kind", list(ODD))
def test_a_nested_column_is_named_where_it_is_needed_and_left_out_where_not(write: Write, kind: str) -> None:
    odd = ODD[kind]
    for frame in (
        {"option": LONG["option"], "value": odd},
        {"option": odd, "value": LONG["value"]},
        {"p": LONG["value"], "q": odd},
    ):
        name = next(name for name, column in frame.items() if column is odd)
        with pytest.raises(
            DataError, match=rf"^column '{name}' is nested \(.*\): one number or one name a row is needed$"
        ):
            read(write(pa.table(frame)))
    beside = write(LONG.append_column("x", odd))
    assert values(read(beside)) == {"a": [1.0, 2.0], "b": [3.0, 5.0]}
    with pytest.raises(DataError, match=r"^column 'x' is nested"):
        read(beside, value="x")


def test_a_dictionary_of_lists_is_nested() -> None:
    lists = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1, 1]), pa.array([[1.0], [2.0]]))
    with pytest.raises(DataError, match=r"^column 'value' is nested \(dictionary"):
        read_options(pa.table({"option": list("aabb"), "value": lists}).to_batches(), Columns())


@pytest.mark.parametrize(
    ("column", "as_value", "as_option"),
    [
        (pa.nulls(4), "row 1: column 'x' is empty", "row 1: column 'x' names no option"),
        (pa.array([b"a"] * 4), "row 1: column 'x' holds a binary, not a number", r"column 'x' holds bytes \(binary\)"),
        (
            pa.array([b"a"] * 4, pa.binary(1)),
            "holds a fixed_size_binary",
            r"column 'x' holds bytes \(fixed_size_binary",
        ),
        (pa.array([1, 1, 2, 2], pa.timestamp("ns")), r"holds a timestamp\[ns\], not a number", None),
        (pa.array([1, 1, 2, 2], pa.duration("s")), r"holds a duration\[s\], not a number", None),
        (
            pa.array([2**31 - 1] * 4, pa.date32()),
            r"holds a date32\[day\]",
            r"column 'x' holds values of type date32\[day\]",
        ),
        (pa.array([datetime.time(1)] * 4), r"holds a time64\[us\], not a number", "only one option"),
        (pa.array([Decimal(1), Decimal(1), Decimal(2), Decimal(2)]), None, None),
        (pa.array([2**64 - 1, 2**64 - 1, 2, 2], pa.uint64()), None, None),
    ],
    ids=["null", "binary", "bytes", "timestamp", "duration", "date", "time", "decimal", "uint64"],
)
def test_other_types_are_read_or_named(
    write: Write, column: pa.Array, as_value: str | None, as_option: str | None
) -> None:
    for said, other, sentence in (
        ({"by": "y", "value": "x"}, list("aabb"), as_value),
        ({"by": "x", "value": "y"}, [1.0, 2.0, 3.0, 4.0], as_option),
    ):
        path = write(pa.table({"x": column, "y": other}))
        if sentence is None:
            assert len(read(path, **said).names) == 2
        elif sentence == "only one option":
            assert len(read(path, **said).names) == 1
        else:
            with pytest.raises(DataError, match=sentence):
                read(path, **said)


def test_text_that_is_none_is_refused(write: Write) -> None:
    offsets = pa.array([0, 1, 2, 3, 4], pa.int32()).buffers()[1]
    broken = pa.Array.from_buffers(pa.string(), 4, [None, offsets, pa.py_buffer(b"\xff\xfeab")])
    for table in ({"option": broken, "value": LONG["value"]}, {"option": LONG["option"], "value": broken}):
        with pytest.raises(DataError, match="Invalid UTF8"):
            read(write(pa.table(table)))


def test_an_empty_table_has_no_rows_and_a_repeated_column_is_named(write: Write) -> None:
    with pytest.raises(DataError, match="the table has no rows"):
        read(write(LONG.slice(0, 0)))
    with pytest.raises(DataError, match="column 'value' appears twice"):
        read(write(pa.Table.from_arrays([LONG["option"], LONG["value"], LONG["value"]], ["option", "value", "value"])))


def test_damaged_files_are_refused_or_read(write: Write, tmp_path: Path) -> None:
    """Cut off, or with bytes changed: a DataError or a table, and nothing else."""
    whole = Path(write(LONG)).read_bytes()
    rng = random.Random(0)
    damaged = tmp_path / "damaged.parquet"
    said: list[str] = []
    for k in range(300):
        data = bytearray(whole[: rng.randrange(4, len(whole))] if k % 3 == 0 else whole)
        for _ in range(rng.choice((0, 1, 3)) if k % 3 == 0 else rng.choice((1, 2, 8))):
            data[rng.randrange(4, len(data))] = rng.randrange(256)
        damaged.write_bytes(data)
        try:
            read(str(damaged))
        except DataError as error:
            said.append(str(error))
    assert len(said) > 150
    assert not any("\n" in sentence for sentence in said)


def test_option_numbers_hold_all_options() -> None:
    assert np.iinfo(columns.CODE).max >= limits.MOST_OPTIONS
