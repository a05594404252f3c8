"""Facts about files that appear whole or not at all."""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from maxmean import storage
from maxmean.storage import PREFIX, as_parquet, make_folder, sweep, write_whole


def test_a_written_file_is_all_there_is(tmp_path: Path) -> None:
    target = tmp_path / ("n" * 250 + ".svg")  # as long as a name may be
    write_whole(target, b"all of it")
    assert target.read_bytes() == b"all of it"
    assert os.listdir(tmp_path) == [target.name]


def test_a_whole_file_replaces_the_old_one_and_obeys_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    before = os.umask(0o027)
    try:
        write_whole(path, b"new")
    finally:
        os.umask(before)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_one_and_the_file_that_it_leads_to_is_written(there: bool, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    if there:
        (store / "file").write_text("old")
    link = tmp_path / "link"
    link.symlink_to(Path("store", "file"))
    write_whole(link, b"new")
    assert link.is_symlink()
    assert (store / "file").read_bytes() == b"new"
    assert os.listdir(store) == ["file"]


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failing_write_leaves_what_was_there(
    failure: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "old.png"
    target.write_bytes(b"old")

    def fail(handle: int) -> None:
        raise failure

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(type(failure)):
        write_whole(target, b"new")
    assert target.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["old.png"]


def test_what_another_process_is_writing_stays_though_the_clock_was_set_forward(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as ended:
        ended.wait()
    dead, alive = tmp_path / f"{PREFIX}{ended.pid}-00", tmp_path / f"{PREFIX}{os.getppid()}-00"
    for path in (dead, alive):
        path.touch()
        os.utime(path, (0, 0))
    sweep(tmp_path)
    assert os.listdir(tmp_path) == [alive.name]


def test_within_a_directory_no_link_is_followed(tmp_path: Path) -> None:
    """A link in the file's place goes, one on the way is an error; what they lead to stays as it is."""
    (precious := tmp_path / "precious").write_text("data")
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (root := tmp_path / "root").mkdir()
    (root / "file").symlink_to(precious)
    (root / "folder").symlink_to(elsewhere)
    (root / "nowhere").symlink_to(tmp_path / "not there")
    write_whole(root / "file", b"new", within=root)
    for way in ("folder", "folder/below", "nowhere"):
        said = f"the folder {way.partition('/')[0]} is a link"
        with pytest.raises(OSError, match=said):
            write_whole(root / way / "file", b"new", within=root)
        with pytest.raises(OSError, match=said):
            make_folder(root / way, within=root)
    assert (precious.read_text(), (root / "file").read_text(), (root / "file").is_symlink()) == ("data", "new", False)
    assert os.listdir(elsewhere) == []
    assert not (tmp_path / "not there").exists()


def test_the_directory_that_was_named_may_be_a_link(tmp_path: Path) -> None:
    (real := tmp_path / "real").mkdir()
    (root := tmp_path / "root").symlink_to(real)
    make_folder(root / "a" / "b", within=root)
    write_whole(root / "a" / "b" / "file", b"new", within=root)
    assert (real / "a" / "b" / "file").read_bytes() == b"new"


def test_checksums_and_flushes_are_made_in_one_place(tmp_path: Path) -> None:
    """So that every file of ours is as safe as the others."""
    sources = Path(storage.__file__).parent.rglob("*.py")
    assert [path.name for path in sources if re.search(r"hashlib|fsync", path.read_text())] == ["storage.py"]
    content = bytes(range(256)) * 10_000
    (tmp_path / "file").write_bytes(content)
    halves: list[bytes | memoryview] = [content[:7], memoryview(content)[7:]]
    assert storage.sha256(halves) == storage.sha256_of(tmp_path / "file") == hashlib.sha256(content).hexdigest()


@pytest.fixture
def records() -> pd.DataFrame:
    """Numbers that seldom repeat beside some that do, with all that a float can be."""
    numbers = np.random.default_rng(0).standard_normal(4000)
    numbers[:4] = np.nan, np.inf, -np.inf, -0.0
    return pd.DataFrame(
        {
            "step": np.arange(4000),
            "bias": numbers.astype(np.float32),
            "value": numbers,
            "share": np.arange(4000) % 1500 / 1500,
            "gap": np.where(np.arange(4000) < 2100, np.nan, numbers),
            "agent": "dqn",
        }
    )


def test_numbers_that_seldom_repeat_take_less_room_in_tables(records: pd.DataFrame) -> None:
    plain = io.BytesIO()
    records.to_parquet(plain, compression="zstd", index=False)
    kept = as_parquet(records)
    assert len(kept) < 0.9 * len(plain.getvalue())
    row = pq.ParquetFile(io.BytesIO(kept)).metadata.row_group(0)
    encodings = {records.columns[i]: row.column(i).encodings for i in range(row.num_columns)}
    assert [name for name, each in encodings.items() if "BYTE_STREAM_SPLIT" in each] == ["bias", "value"]
    assert all("RLE_DICTIONARY" in encodings[name] for name in ("share", "gap"))


def test_tables_are_read_as_they_were_bit_for_bit(records: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    path.write_bytes(as_parquet(records))
    others = [duckdb.read_parquet(str(path)).df(), pl.read_parquet(path).to_pandas()]
    for found in (pd.read_parquet(path), *others):
        assert list(found) == list(records)
        for name in ("step", "bias", "value", "share", "gap"):
            assert found[name].to_numpy().tobytes() == records[name].to_numpy().tobytes()
        assert set(found["agent"]) == {"dqn"}


def test_columns_whose_names_read_alike_are_stored() -> None:
    table = pd.DataFrame([[0.5, 1.5], [2.5, 3.5]], columns=[0, "0"]).assign(name=["a", "b"])
    found = pq.ParquetFile(io.BytesIO(as_parquet(table))).read()
    assert [column.to_pylist() for column in found.columns] == [[0.5, 2.5], [1.5, 3.5], ["a", "b"]]


def test_a_table_without_rows_is_one(records: pd.DataFrame) -> None:
    empty = records.iloc[:0]
    assert pd.read_parquet(io.BytesIO(as_parquet(empty))).dtypes["bias"] == np.float32
