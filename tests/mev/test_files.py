"""Tables read as a stream, and files written whole."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from maxmean.mev.data import DataError
from maxmean.mev.files import check_figure, stream_table


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


@pytest.mark.parametrize("kind", ["png", "PDF", "svg"])
def test_figures_are_told_by_their_ending(kind: str, tmp_path: Path) -> None:
    assert check_figure(str(tmp_path / f"a.b.{kind}")) == kind.lower()
