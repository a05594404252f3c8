"""Database files: what a query selects is read, and nothing else can be done with one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import maxmean as mm
from maxmean.mev.data import databases
from maxmean.mev.errors import ArgumentError, DataError

ROWS = [("a", 1.0), ("a", 2.0), ("b", 3.0), ("b", 5.0)]
AB = {"a": 1.5, "b": 4.0}
ENDLESS = "with recursive r(n) as (select 1 union all select n + 1 from r) select max(n) from r"


def sqlite(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("create table sales (ad text, eur real)")
        connection.executemany("insert into sales values (?, ?)", ROWS)
        for statement in statements:
            connection.execute(statement)
    connection.close()


def duck(path: Path, *statements: str) -> None:
    with pytest.importorskip("duckdb").connect(str(path)) as connection:
        connection.execute("create table sales (ad varchar, eur double)")
        connection.executemany("insert into sales values (?, ?)", ROWS)
        for statement in statements:
            connection.execute(statement)


KINDS = {"sqlite": sqlite, "duckdb": duck}
Make = Callable[..., None]


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest) -> Make:
    return KINDS[request.param]


def means(*given: Any, **how: Any) -> dict[str, float]:
    return dict(mm.estimate(*given, **how).table()["mean"])


def test_the_only_table_is_read_and_a_query_selects(make: Make, tmp_path: Path) -> None:
    make(tmp_path / "a %#b.db")
    before = (tmp_path / "a %#b.db").read_bytes()
    assert means(tmp_path / "a %#b.db") == AB
    query = "select eur + 1 as value, upper(ad) as option from sales where eur < 5 union all select 6, 'B'"
    assert means(tmp_path / "a %#b.db", query=query) == {"A": 2.5, "B": 5.0}
    assert [path.name for path in tmp_path.iterdir()] == ["a %#b.db"]
    assert (tmp_path / "a %#b.db").read_bytes() == before


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (None, "has the tables .*'sales'.*--query"),
        ("select * from nosuch", "nosuch"),
        ("selec * from sales", "syntax error"),
        ("delete from sales", "a query selects, in one statement"),
        ("select 1; select 2", "a query selects, in one statement"),
        ("attach 'other.db' as other", "a query selects, in one statement"),
        ("pragma user_version = 3", "a query selects, in one statement"),
        ("select ad, eur from sales where eur > 9", "the table has no rows"),
    ],
)
def test_a_query_can_do_nothing_else(make: Make, query: str | None, message: str, tmp_path: Path) -> None:
    make(tmp_path / "t.db", "create table other (x integer)")
    with pytest.raises(DataError, match=message) as refusal:
        mm.estimate(tmp_path / "t.db", query=query)
    assert "\n" not in str(refusal.value)
    assert [path.name for path in tmp_path.iterdir()] == ["t.db"]


def test_a_query_that_does_not_end_is_interrupted(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "_LONGEST", 0.2)
    make(tmp_path / "t.db", f"create view endless as {ENDLESS}")
    with pytest.raises(DataError, match="took more than 0 s"):
        mm.estimate(tmp_path / "t.db", query="select * from endless")


def test_views_of_a_stranger_reach_no_other_file(tmp_path: Path) -> None:
    sqlite(tmp_path / "s.db", "create view loads as select load_extension('other.so') as value")
    with pytest.raises(DataError, match="load_extension"):
        mm.estimate(tmp_path / "s.db", query="select * from loads")
    with pytest.raises(DataError, match="load_extension"):
        mm.estimate(tmp_path / "s.db", query="select load_extension('other.so')")
    (tmp_path / "secret.csv").write_text("ad,eur\na,1\n")
    secret = f"read_csv('{tmp_path / 'secret.csv'}')"
    duck(tmp_path / "d.db", f"create view secrets as select * from {secret}")
    for query in ("select * from secrets", f"select * from {secret}", "select * from read_text('/etc/hostname')"):
        with pytest.raises(DataError, match="Permission Error"):
            mm.estimate(tmp_path / "d.db", query=query)


def test_a_query_does_not_see_variables_of_python(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS, columns=["ad", "eur"])
    duck(tmp_path / "t.db")
    with pytest.raises(DataError, match="frame does not exist"):
        mm.estimate(tmp_path / "t.db", query="select * from frame")
    assert len(frame) == len(ROWS)


def test_a_write_ahead_log_is_read(tmp_path: Path) -> None:
    """What is in the log alone is not left out in silence."""
    writer = sqlite3.connect(tmp_path / "t.db")
    writer.execute("pragma journal_mode = wal")
    writer.execute("create table sales (ad text, eur real)")
    writer.executemany("insert into sales values (?, ?)", ROWS)
    writer.commit()
    assert (tmp_path / "t.db-wal").stat().st_size
    assert means(tmp_path / "t.db") == AB
    writer.close()


def test_queries_are_for_databases(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("ad,eur\na,1\nb,2\n")
    with pytest.raises(DataError, match="no database"):
        mm.estimate(tmp_path / "t.csv", query="select 1")
    for data, query in (({"a": [1.0, 2.0], "b": [1.0, 2.0]}, "select 1"), (tmp_path / "t.csv", " ")):
        with pytest.raises(ArgumentError, match="query"):
            mm.estimate(data, query=query)


def test_damaged_databases_are_refused_in_one_line(make: Make, tmp_path: Path) -> None:
    make(tmp_path / "t.db")
    whole = (tmp_path / "t.db").read_bytes()
    for content in (whole[:100], whole[:3000], whole[:20] + b"\0" * 80 + whole[100:]):
        (tmp_path / "t.db").write_bytes(content)
        with pytest.raises(DataError, match=r"cannot read|has no tables") as refusal:
            mm.estimate(tmp_path / "t.db")
        assert "\n" not in str(refusal.value)
