"""Facts about what is read from and written to a directory that a stranger filled, and about disks that refuse."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from inside import maxmean
from maxmean.lab import report
from maxmean.lab.claims import Measured, Verdict, markdown
from maxmean.lab.experiment import Shard
from maxmean.lab.experiments import EXPERIMENTS
from maxmean.lab.files import LARGEST_JSON, DamagedError, StoreError, read_bytes, read_object, write_file
from maxmean.lab.loading import load
from maxmean.lab.report import write_report
from maxmean.lab.run import SHIPPED
from maxmean.lab.store import Store
from maxmean.lab.tables import TableError, TableLayout, as_csv, read_table
from maxmean.storage import as_parquet
from seldom import mostly_slow

ESCAPE = "\x1b[31m\u202e\r\n"


def test_what_does_not_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), Path("/dev/null"), tmp_path / "pipe"):
        with pytest.raises(DamagedError, match=rf"'{path}' cannot be used: \w+ is no file"):
            read_bytes(path)
    for path in (tmp_path, tmp_path / "nowhere", Path("/proc/self/mem")):
        with pytest.raises(DamagedError, match=rf"'{path}' cannot be read"):
            read_bytes(path)
    large = tmp_path / "large"
    large.touch()
    os.truncate(large, LARGEST_JSON + 1)
    with pytest.raises(DamagedError, match=r"is too large: 16,777,217 bytes, of at most 16,777,216"):
        read_object(large)


def test_a_link_is_replaced_and_not_written_through(tmp_path: Path) -> None:
    mine, link = tmp_path / "mine", tmp_path / "folder" / "link"
    mine.write_text("mine")
    link.parent.mkdir()
    link.symlink_to(mine)
    write_file(link, b"theirs", link.parent)
    assert mine.read_text() == "mine"
    assert not link.is_symlink()
    assert link.read_bytes() == b"theirs"


def test_a_store_writes_and_removes_nothing_where_a_strangers_link_leads(tmp_path: Path) -> None:
    store, theirs, shard = Store(tmp_path / "results"), tmp_path / "theirs", Shard("kernels", 1, {}, {}, 0)
    store.write(shard, b"table", 1.0)
    store.folder(shard).symlink_to(theirs)
    assert not os.path.lexists(store.folder(shard))
    (tmp_path / "results" / "kernels").rename(theirs)
    (tmp_path / "results" / "kernels").symlink_to(theirs)
    there = {path: path.read_bytes() for path in theirs.iterdir()}
    said = "cannot write .*: the folder kernels is a link, which could lead anywhere"
    with pytest.raises(StoreError, match=said):
        Store(tmp_path / "results").write(shard, b"other", 1.0)
    with pytest.raises(StoreError, match=said):
        store.remove(shard)
    assert {path: path.read_bytes() for path in theirs.iterdir()} == there


def small(folder: Path) -> Path:
    """Results of one experiment."""
    shutil.copytree(SHIPPED / "kernels", folder / "kernels")
    shutil.copy(SHIPPED / "maxmean-results.json", folder)
    return folder


@pytest.mark.parametrize("place", ["report", "report/figures", "report/tables"])
def test_a_report_does_not_go_where_a_strangers_link_leads(tmp_path: Path, place: str) -> None:
    out, mine = small(tmp_path / "out"), tmp_path / "mine"
    mine.mkdir()
    (out / place).parent.mkdir(exist_ok=True)
    (out / place).symlink_to(mine)
    there = sorted(out.rglob("*"))
    for command in (("report", "--from", out), ("reproduce", "gaussian", "--out", out)):
        run = maxmean(*command)
        assert run.returncode == 2
        assert run.stderr == f"maxmean: '{out / place}' is a link: choose another folder for the report with --out\n"
    assert not list(mine.iterdir())
    assert sorted(out.rglob("*")) == there  # it is said before anything is computed


@pytest.fixture
def unpainted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "lay_out", lambda figure: None)
    monkeypatch.setattr(report, "save", lambda figure, kind, stem: kind.encode())
    monkeypatch.setattr(report, "inline_svg", lambda figure, stem: "<svg></svg>")


@pytest.mark.usefixtures("unpainted")
def test_figures_of_an_earlier_report_go_and_nothing_else(tmp_path: Path) -> None:
    out, folder = small(tmp_path / "out"), tmp_path / "report"
    shutil.copytree(SHIPPED / "gaussian", out / "gaussian")
    page = write_report(Store(out, create=False), folder).page
    assert (folder / "figures" / "gaussian-te.pdf").is_file()
    mine = [
        folder / "figures" / "gaussian-mine.png",
        folder / "notes.txt",
        tmp_path / "secret.csv",
        folder / "tables" / "x.csv",
    ]
    for path in mine:
        path.write_text("mine")
    named = "".join(
        f'<a href="{name}">' for name in ("../secret.csv", "tables/x.csv", "notes.txt", "tables/../notes.txt")
    )
    page.write_text(page.read_text() + named)
    shutil.rmtree(out / "gaussian")
    write_report(Store(out, create=False), folder)
    assert not list(folder.rglob("*gaussian-te*"))
    assert not (folder / "tables" / "gaussian.csv").exists()
    assert (folder / "figures" / "kernels-curves.pdf").is_file()
    assert [path.read_text() for path in mine] == ["mine"] * 4


@pytest.mark.usefixtures("unpainted")
@pytest.mark.parametrize("place", ["report", "report/figures", "report/report.html", "report/tables/kernels.csv"])
def test_what_is_in_the_way_of_a_report_is_named(tmp_path: Path, place: str) -> None:
    out = small(tmp_path / "out")
    way = tmp_path / place
    way.parent.mkdir(parents=True, exist_ok=True)
    way.mkdir() if way.suffix else way.touch()
    run = maxmean("report", "--from", out, "--out", tmp_path / "report")
    assert run.returncode == 2
    (line,) = run.stderr.splitlines()
    assert line.startswith(f"maxmean: cannot write '{tmp_path / 'report'}")
    assert line.endswith("is in the way; move it elsewhere")


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "the disk of '{}' is full; what is finished is kept: make room and run the same command"),
        (errno.EROFS, "cannot write '{}': Read-only file system"),
        (errno.EFBIG, "cannot write '{}': File too large"),
        (errno.EIO, "cannot write '{}': Input/output error"),
        (None, "cannot write '{}': oh"),
    ],
)
def test_a_disk_that_refuses_is_one_sentence_with_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int | None, sentence: str
) -> None:
    target = tmp_path / "x.json"
    target.write_text("before")

    def refuse(*arguments: object) -> None:
        raise OSError(number, os.strerror(number)) if number else OSError("oh")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StoreError) as error:
        write_file(target, b"after", target.parent)
    monkeypatch.undo()
    assert str(error.value) == sentence.format(target)
    assert target.read_text() == "before"
    assert os.listdir(tmp_path) == ["x.json"]


def test_a_limit_on_the_size_of_files_is_one_sentence_and_what_is_kept_is_whole(tmp_path: Path) -> None:
    """As with ``ulimit -f``: small shards are kept, the first that is too large is named."""
    command = [sys.executable, "-m", "maxmean.cli", "reproduce", "gaussian", "--engine", "inline", "--quiet"]
    limited = ["bash", "-c", 'ulimit -f 8; exec "$@"', "bash", *command, "--out", str(tmp_path)]
    own = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}  # Python would keep bytecode cut short by the limit
    run = subprocess.run(limited, capture_output=True, text=True, check=False, env=own)
    assert run.returncode == 2
    (line,) = run.stderr.splitlines()
    assert line.startswith(f"maxmean: cannot write '{tmp_path}/gaussian/")
    assert line.endswith("File too large")
    results = load(Store(tmp_path, create=False), EXPERIMENTS["gaussian"], "quick", 0)
    assert results is not None
    assert results.damage == ()
    assert 0 < results.missing < 13


def test_nothing_of_an_impossible_table_is_unpacked() -> None:
    layout = TableLayout(2, ("x",), ("name",))
    good = pd.DataFrame({"x": [1.0, 2.0], "name": ["a", "b"]})
    pd.testing.assert_frame_equal(read_table(as_parquet(good), layout), good, check_dtype=False)
    before = pa.total_allocated_bytes()
    with pytest.raises(TableError, match="it has 3 rows, and its settings make 2"):
        read_table(as_parquet(pd.DataFrame({"x": [1.0] * 3, "name": ["a"] * 3})), layout)
    with pytest.raises(TableError, match=r"holds 'a', and it should be of 'b'"):
        read_table(as_parquet(good), layout, {"name": "b"})
    with pytest.raises(TableError, match="it has no column 'name'"):
        read_table(as_parquet(good[["x"]]), layout)
    with pytest.raises(TableError, match="its column 'x' does not hold numbers"):
        read_table(as_parquet(good.assign(x=["a", "b"])), layout)
    with pytest.raises(TableError, match="neither numbers nor texts but list"):
        read_table(as_parquet(good.assign(x=[[1], [2]])))
    assert pa.total_allocated_bytes() - before < 1e6


def test_a_spreadsheet_takes_no_text_for_a_formula() -> None:
    texts = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "x=1", "te-q", None]
    table = pd.DataFrame({"=name": texts, "x": [-0.5] * len(texts), "n": [-1] * len(texts)})
    rows = pd.read_csv(pd.io.common.BytesIO(as_csv(table)))
    assert list(rows.columns) == ["'=name", "x", "n"]
    assert rows["'=name"].tolist()[:-1] == ["'=1+1", "'+1", "'-1", "'@x", r"\tx", r"\rx", "x=1", "te-q"]
    assert rows["x"].tolist() == [-0.5] * len(texts)
    assert rows["n"].tolist() == [-1] * len(texts)


LARGE = ("minatar", "maximization-bias", "ads")


@pytest.mark.parametrize("name", mostly_slow(EXPERIMENTS, [name for name in EXPERIMENTS if name not in LARGE]))
def test_our_own_tables_are_what_they_were_as_csv(name: str) -> None:
    results = load(Store(SHIPPED, create=False), EXPERIMENTS[name], "study" if name == "minatar" else "paper", 0)
    assert results is not None
    assert (
        hashlib.sha256(as_csv(results.table)).digest()
        == hashlib.sha256(results.table.to_csv(index=False).encode()).digest()
    )


def test_whatever_a_verdict_says_moves_nothing_on_a_terminal() -> None:
    verdict = Verdict("S1", ESCAPE, "2", "fails", {ESCAPE: Measured.exact(1)}, "paper", "x", ESCAPE)
    text = markdown([verdict]).replace("\n", "")
    assert text.isprintable()
    page = report._claims_table([verdict]).replace("\n", "")
    assert page.isprintable()


@pytest.mark.parametrize("command", ["claims", "report"])
def test_the_help_says_what_the_exit_status_means(command: str) -> None:
    words = " ".join(maxmean(command, "--help", columns=300).stdout.split())
    assert "The exit status is 0 if none was left out, 1 if some were, and 2 if there is nothing else." in words
