"""A sheet of an Excel workbook as a stream of Arrow record batches, every cell as text."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from ...errors import need, unknown
from ..errors import DataError
from .cells import cell_text, text_batch
from .layout import listed
from .limits import MOST_CELLS, MOST_COLUMNS, MOST_UNPACKED

_ROWS = 10_000  # in a batch

Row = tuple[Any, ...]


def is_workbook(archive: zipfile.ZipFile) -> bool:
    return "xl/workbook.xml" in archive.namelist()


def stream_workbook(archive: zipfile.ZipFile, file: Any, name: str, sheet: str | None) -> Iterator[pa.RecordBatch]:
    """Batches of the sheet that is named, or of the only one that holds anything; ``archive`` is ``file``, opened."""
    need("reading Excel files", "openpyxl", extra="excel", error=DataError)
    import openpyxl

    if sum(each.file_size for each in archive.infolist()) > MOST_UNPACKED:
        raise DataError(f"{name} unpacks to more than {MOST_UNPACKED >> 20} MB: save the sheet as CSV")
    file.seek(0)
    try:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        rows = _rows(book, name, sheet)
        yield from _batches(rows, name)
    except DataError:
        raise
    except Exception as error:  # a stranger's XML: openpyxl raises whatever it stumbles over
        raise DataError(f"cannot read {name} as an Excel file: {str(error).partition(chr(10))[0][:200]}") from None


def _rows(book: Any, name: str, sheet: str | None) -> Iterator[Row]:
    titles = [each.title for each in book.worksheets]
    if sheet is not None:
        if sheet not in titles:
            raise DataError(unknown(f"{name} has no sheet", sheet, titles))
        return _filled(book[sheet])
    begun = [
        (title, rows, first) for title in titles if (first := next(rows := _filled(book[title]), None)) is not None
    ]
    if not begun:
        raise DataError(f"{name} is empty")
    if len(begun) > 1:
        raise DataError(f"{name} has the sheets {listed([each[0] for each in begun])}: choose one with sheet (--sheet)")
    _, rows, first = begun[0]
    return chain([first], rows)


def _filled(sheet: Any) -> Iterator[Row]:
    """Rows that hold anything."""
    for count, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        if count * max(len(row), 1) > MOST_CELLS:
            raise DataError(f"sheet {sheet.title!r} has more than {MOST_CELLS:,} cells: save it as CSV")
        if any(cell is not None and cell != "" for cell in row):
            yield row


def _batches(rows: Iterator[Row], name: str) -> Iterator[pa.RecordBatch]:
    """The first row with two names or more is the header; what stands above it is a title."""
    header = next((row for row in rows if sum(cell is not None for cell in row) > 1), None)
    if header is None:
        raise DataError(f"{name} has no row with two columns")
    if len(header) > MOST_COLUMNS:
        raise DataError(f"{name} has {len(header):,} columns; up to {MOST_COLUMNS:,} are read")
    names = [cell_text(cell) or "" for cell in header]
    yield text_batch([], names)
    while some := list(islice(rows, _ROWS)):
        yield text_batch(some, names)
