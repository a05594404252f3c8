"""The first lines of a CSV file: comments, a line ``sep=;`` as Excel writes it, and the names of the columns."""

from __future__ import annotations

import codecs
import csv
import io
import re
from dataclasses import dataclass

from ..errors import DataError
from .limits import LONGEST_ROW, MOST_COLUMNS
from .notation import is_number

_MEGABYTES = f"{LONGEST_ROW >> 20} MB"
_SEPARATORS = ",;\t|"
_NO_SEPARATORS = '"#\\ \r\n\0.+-'
_SEP = re.compile(rb"\"?sep=(.)\"?\s*", re.IGNORECASE)  # of Excel


@dataclass(frozen=True)
class Header:
    """What the first lines say."""

    names: list[str]
    delimiter: str
    comments: bool = False
    """Whether lines that begin with # came before."""
    rest: bytes = b""
    """What has been read of the rows already."""


def read_header(handle: io.BufferedReader, name: str, longest: int) -> Header:
    """The header of the file that messages call ``name``, of which no line has more than ``longest`` bytes."""
    lines = _Lines(handle, name, longest)
    first, delimiter, comments = lines.next(), None, False
    if (said := _SEP.fullmatch(first)) is not None:
        delimiter, first = said[1].decode("latin-1"), lines.next()
        if not delimiter.isascii() or delimiter.isalnum() or delimiter in _NO_SEPARATORS:
            raise DataError(f"the first line of {name} says that {delimiter!r} separates columns, which it cannot")
    while first.startswith(b"#"):
        after = lines.next(b"")
        if _is_header(first, after, delimiter):
            header = _parse(lines, first, delimiter)
            return Header(
                [re.sub("^#\\s*(?=.)", "", header.names[0]), *header.names[1:]], header.delimiter, comments, after
            )
        comments, first = True, after
    if not first:
        raise DataError(f"{name} is empty")
    found = _parse(lines, first, delimiter)
    return Header(found.names, found.delimiter, comments)


class _Lines:
    """Lines that are not blank."""

    def __init__(self, handle: io.BufferedReader, name: str, longest: int) -> None:
        self.handle, self.name, self.longest = handle, name, longest
        self.blank = 0

    def next(self, otherwise: bytes | None = None) -> bytes:
        """The next one; at the end of the file ``otherwise``, or an error."""
        while line := self.handle.readline(self.longest):
            found = line.removeprefix(codecs.BOM_UTF8)
            if found.strip():
                return found
            self.blank += len(line)
            if self.blank > self.longest:
                raise DataError(f"{self.name} begins with more than {_MEGABYTES} of blank lines")
        if otherwise is None:
            raise DataError(f"{self.name} is empty")
        return otherwise


def _is_header(line: bytes, after: bytes, delimiter: str | None) -> bool:
    """Whether a line that begins with # names columns: as many as the line after it has, which holds a number."""
    mark = (delimiter or _delimiter(line.decode("utf-8", "replace"))).encode("utf-8", "replace")
    cells = after.split(mark)
    numbers = any(is_number(cell.decode("utf-8", "replace").strip().strip('"')) for cell in cells)
    return len(cells) > 1 and line.count(mark) + 1 == len(cells) and numbers


def _parse(lines: _Lines, first: bytes, delimiter: str | None) -> Header:
    name, longest = lines.name, lines.longest
    read, quotes, size = [first], first.count(b'"'), 0
    while quotes % 2:  # a quoted name may hold line breaks
        read.append(lines.handle.readline(longest))
        quotes, size = quotes + read[-1].count(b'"'), size + len(read[-1])
        if not read[-1] or size > longest:
            raise DataError(f"a quotation mark in the first line of {name} is never closed")
    whole = b"".join(read)
    text = whole.decode("utf-8", "strict" if len(whole) < longest else "ignore")  # it may be cut inside a character
    bare = re.sub(r'"[^"]*"', "", text)
    if "\r" in bare.rstrip("\r\n"):
        raise DataError(f"the lines of {name} end in carriage returns alone; save it with line feeds")
    if len(read[-1]) == longest:
        raise DataError(f"the first line of {name} is longer than {_MEGABYTES}: that is no table about options")
    mark = delimiter or _delimiter(bare)
    columns = bare.count(mark) + 1
    if columns > MOST_COLUMNS:
        raise DataError(f"{name} has {columns:,} columns; up to {MOST_COLUMNS:,} are read")
    try:
        return Header(next(csv.reader(io.StringIO(text, newline=""), delimiter=mark)), mark)
    except (csv.Error, ValueError, TypeError) as error:
        raise DataError(f"cannot read the first line of {name}: {error}") from None


def _delimiter(text: str) -> str:
    return max(_SEPARATORS, key=text.count)
