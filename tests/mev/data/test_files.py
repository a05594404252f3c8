"""Tables read as a stream, and files written whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from maxmean.mev.data.files import stream_table
from maxmean.mev.errors import DataError
from seldom import slow


def test_columns_of_csv_are_text_whatever_they_hold(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a;"b;\n""c"""\n1;true\n;"NA"\n')
    table = pa.Table.from_batches(stream_table(str(path)))
    assert table.to_pydict() == {"a": ["1", ""], 'b;\n"c"': ["true", "NA"]}


def test_large_files_are_streamed_and_tell_their_progress(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1.25,some text\n" * 600_000)
    heard: list[float] = []
    sizes = [batch.num_rows for batch in stream_table(str(path), heard.append)]
    assert len(sizes) > 1
    assert sum(sizes) == 600_000
    assert heard == sorted(heard)
    assert heard[-1] == 1.0


def test_a_quote_that_is_never_closed_is_found_quickly(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('12" vinyl,lp\n' + "1,2\n" * 1_500_000)
    with pytest.raises(DataError, match="quotation mark in the first line"):
        next(stream_table(str(path)))


FOOTERS = """
import random, sys
import pandas as pd
from maxmean.mev.errors import DataError
from maxmean.mev.data.files import stream_table

path, luck, counts = sys.argv[1], random.Random(0), {"read": 0, "refused": 0}
pd.DataFrame({"option": list("abc") * 40, "value": [0.5] * 120}).to_parquet(path)
whole = open(path, "rb").read()
for place in range(len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"), len(whole)):
    for bit in luck.sample(range(8), int(sys.argv[2])):
        changed = bytearray(whole)
        changed[place] ^= 1 << bit
        open(path, "wb").write(changed)
        try:
            list(stream_table(path))
            counts["read"] += 1
        except DataError:
            counts["refused"] += 1
print(min(counts.values()))
"""


@pytest.mark.parametrize("bits", [1, *slow(4)])
def test_no_byte_of_a_parquet_files_footer_ends_the_process(bits: int, tmp_path: Path) -> None:
    """PyArrow calls abort for some of them when it is asked for the description of a column."""
    command = [sys.executable, "-W", "ignore", "-c", FOOTERS, str(tmp_path / "data.parquet"), str(bits)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 100


UNUSED = """
import sys
from maxmean import cli
sys.argv = ["maxmean", "estimate", sys.argv[1], "--quiet", "--resamples", "40"]
assert cli.run() == 0
print(sorted({"pandas", "scipy.stats", "scipy.optimize", "matplotlib", "openpyxl"} & set(sys.modules)))
"""


def test_what_takes_long_to_import_is_not_imported_for_an_answer(tmp_path: Path) -> None:
    """Together they take longer than a million rows."""
    path = tmp_path / "t.csv"
    path.write_text("ad,eur\n" + "a,1\nb,2\nc,4\na,2\nb,5\nc,9\na,3\nb,3\n" * 5)
    done = subprocess.run([sys.executable, "-c", UNUSED, str(path)], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "[]"
