"""CSV is cut into blocks of whole rows: where, does not matter; by whom, does."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmean.mev.data import csv_blocks, csv_header
from maxmean.mev.data.csv_blocks import stream_csv
from maxmean.mev.data.files import stream_table
from maxmean.mev.errors import DataError

FIELDS = ["1", "a", "", "é", '"a,b"', '"a\nb"', '"a\r\nb"', '"a""b"', 'x"y', '"ab"c', '""', '" "', '"\r\n"', "'", "\0"]


def read(content: bytes, block: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    monkeypatch.setattr(csv_blocks, "LONGEST_ROW", block)
    batches = stream_csv(io.BufferedReader(io.BytesIO(content)), "t")
    return pa.Table.from_batches(batches).to_pydict()


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.lists(st.sampled_from(FIELDS), min_size=2, max_size=2), max_size=40),
    end=st.sampled_from(["\n", "\r\n", "\n\n"]),
    last=st.booleans(),
    block=st.integers(40, 200),
)
def test_it_does_not_matter_where_the_blocks_end(rows: list[list[str]], end: str, last: bool, block: int) -> None:
    content = ("p,q\n" + end.join(",".join(row) for row in rows) + (end if last else "")).encode()
    with pytest.MonkeyPatch.context() as patch:
        assert read(content, block, patch) == read(content, 1 << 20, patch)


@pytest.mark.parametrize("block", [40, 64, 1 << 20])
def test_a_refused_row_is_named_by_its_number_in_the_table(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = b"a,1\n" * 50
    with pytest.raises(DataError, match=r"^row 51 has 3 columns, the header 2$"):
        read(b"p,q\n" + rows + b"a,1,2\n" + rows, block, monkeypatch)
    with pytest.raises(DataError, match=r"^row 51: t is not UTF-8 text there: "):
        read(b"p,q\n" + rows + b"\xff,1\n" + rows, block, monkeypatch)


def test_a_ragged_row_that_is_not_text_says_nothing_else(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"p,q\na,1\n\xff\xfe,1,2\n")
    with pytest.raises(DataError, match="row 2 has 3 columns, the header 2"):
        list(stream_table(str(tmp_path / "t.csv")))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"p,q\n1,2\n" + b"x" * 300 + b",2\n", "row 2 of t is longer than 4 MB; no table about options needs that"),
        (b'p,q\n1,2\n"' + b"x,1\n" * 300, "row 2 of t is longer than 4 MB: is a quotation mark never closed?"),
        (b"," * 1000, "the first line of t is longer than 4 MB: that is no table about options"),
        (bytes(1000), "the first line of t is longer than 4 MB: that is no table about options"),
        ("é".encode() * 1000, "the first line of t is longer than 4 MB: that is no table about options"),
        (b"\n" * 1000, "t begins with more than 4 MB of blank lines"),
        (b"p,q\r1,2\r" * 100, "the lines of t end in carriage returns alone; save it with line feeds"),
        (b'"' + b"p\n" * 1000, "a quotation mark in the first line of t is never closed"),
    ],
    ids=["row", "quote", "commas", "zeros", "cut character", "blank", "mac", "header quote"],
)
def test_nothing_is_read_without_end(content: bytes, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is 99 bytes here, and what lies far behind it is never asked for."""
    monkeypatch.setattr(csv_blocks, "LONGEST_ROW", 99)
    source = io.BytesIO(content * 1000)
    with pytest.raises(DataError) as refused:
        list(stream_csv(io.BufferedReader(source, 16), "t"))
    assert str(refused.value) == sentence
    assert source.tell() < 1000


def test_too_many_columns_are_refused_before_any_row_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_header, "MOST_COLUMNS", 3)
    assert read(b"a;b;c\n1;2;3\n", 99, monkeypatch) == {"a": ["1"], "b": ["2"], "c": ["3"]}
    with pytest.raises(DataError, match=r"^t has 4 columns; up to 3 are read$"):
        read(b"a;b;c;d\n", 99, monkeypatch)


def test_nobody_reads_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of Arrow's that called Python would outlive the reader, and Python itself."""

    class Source(io.BytesIO):
        def readinto(self, buffer: object) -> int:
            readers.add(threading.get_ident())
            return super().readinto(buffer)  # type: ignore[arg-type]

    readers: set[int] = set()
    monkeypatch.setattr(csv_blocks, "LONGEST_ROW", 1000)
    source = Source(b"p,q\n" + b"1,2\n" * 10_000)
    batches = stream_csv(io.BufferedReader(source, 100), "t")
    assert next(batches).num_rows == 250
    assert source.tell() <= 1100
    assert readers == {threading.get_ident()}
