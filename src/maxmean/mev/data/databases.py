"""A query on a database file, SQLite's or DuckDB's, as a stream of Arrow record batches. It reads that file and nothing else.

A stranger's file may hold views that do anything a query may do: databases are opened read-only, and a query can neither write,
nor open another file, nor load an extension, nor run for ever.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from ...errors import need
from ..errors import DataError
from .cells import text_batch
from .layout import listed, quoted
from .limits import LONGEST_ROW

SQLITE = b"SQLite f"
"""What an SQLite file begins with."""
_DUCK, _DUCK_AT = b"DUCK", 8  # after a checksum
_LONGEST = 300.0  # seconds of a query
_MEMORY = "512MiB"  # that DuckDB may use for itself; SQLite's cache has 2 MB
_ROWS = 10_000  # in a batch
_READING = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)


def is_database(start: bytes) -> bool:
    """Whether a file that begins like this is a database."""
    return start.startswith(SQLITE) or start[_DUCK_AT:].startswith(_DUCK)


def stream_query(path: str, start: bytes, query: str | None) -> Iterator[pa.RecordBatch]:
    """Batches of what ``query`` selects, or of the only table; ``start`` are the first bytes of the file."""
    yield from (_sqlite if start.startswith(SQLITE) else _duckdb)(path, query)


def _sqlite(path: str, query: str | None) -> Iterator[pa.RecordBatch]:
    # What is in a write-ahead log would be missing from an immutable file; without a log, nothing is made beside the file.
    log = Path(f"{path}-wal")
    how = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"
    try:
        connection = sqlite3.connect(f"file:{quote(path)}?{how}", uri=True, check_same_thread=False)
        with _limited(connection.interrupt, path), _closing(connection):
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_ROW)
            connection.set_authorizer(_only_reading)
            tables = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
            found = connection.execute(query or _only(path, [str(row[0]) for row in connection.execute(tables)]))
            if found.description is None:
                raise DataError(_not_a_query(query))
            names = [column[0] for column in found.description]
            yield text_batch([], names)
            while rows := found.fetchmany(_ROWS):
                yield text_batch(rows, names)
    except (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError, MemoryError) as error:
        other = str(error) == "not authorized" or "one statement at a time" in str(error)
        raise DataError(_not_a_query(query) if other else _failed(path, error)) from None


def _only_reading(action: int, first: str | None, second: str | None, *where: str | None) -> int:
    allowed = action in _READING and second != "load_extension"
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _duckdb(path: str, query: str | None) -> Iterator[pa.RecordBatch]:
    need("reading DuckDB files", "duckdb", extra="duckdb", error=DataError)
    import duckdb

    settings: dict[str, Any] = {
        "enable_external_access": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "python_enable_replacements": "false",
        "temp_directory": "",
        "memory_limit": _MEMORY,
        "lock_configuration": "true",
    }
    try:
        connection = duckdb.connect(path, read_only=True, config=settings)
        with _limited(connection.interrupt, path), _closing(connection):
            tables = "SELECT table_name FROM information_schema.tables ORDER BY table_name"
            query = query or _only(path, [row[0] for row in connection.execute(tables).fetchall()])
            statements = connection.extract_statements(query)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise DataError(_not_a_query(query))
            yield from pa.RecordBatchReader.from_stream(connection.sql(query))
    except (duckdb.Error, pa.ArrowException) as error:
        raise DataError(_failed(path, error)) from None


@contextmanager
def _limited(interrupt: Callable[[], None], path: str) -> Iterator[None]:
    """Interrupt a query that goes on for too long."""
    expired = threading.Event()

    def stop() -> None:
        expired.set()
        interrupt()

    timer = threading.Timer(_LONGEST, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception:
        if expired.is_set():
            raise DataError(
                f"the query on {path!r} took more than {_LONGEST:.0f} s: store its result as a table"
            ) from None
        raise
    finally:
        timer.cancel()


@contextmanager
def _closing(connection: Any) -> Iterator[None]:
    try:
        yield
    finally:
        connection.close()


def _only(path: str, tables: list[str]) -> str:
    """A query for the only table."""
    if not tables:
        raise DataError(f"{path!r} has no tables")
    if len(tables) > 1:
        example = quoted(f"select * from {tables[0]}")
        raise DataError(f"{path!r} has the tables {listed(tables)}: say what to read with query (--query {example})")
    name = tables[0].replace('"', '""')
    return f'SELECT * FROM "{name}"'


def _not_a_query(query: str | None) -> str:
    return f'a query selects, in one statement (--query "select ..."), not {query!r}'


def _failed(path: str, error: BaseException) -> str:
    said = str(error).partition("\n")[0][:200] or type(error).__name__
    return f"cannot read {path!r} by the query: {said}"
