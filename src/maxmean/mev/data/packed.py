"""Files inside others: .gz, .bz2, .xz and .zip with one table in it; and text in UTF-16. All as streams of plain bytes."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zipfile
import zlib
from typing import IO, Any

from ..errors import DataError
from .limits import MOST_INFLATED

ZIP = b"PK\x03\x04"
LONGEST_MAGIC = 12
"""Bytes that tell what a file is."""
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError, RuntimeError)
"""What the unpacking libraries raise, beside OSError."""

_FOREIGN = {
    b"\xd0\xcf\x11\xe0": "an Excel file of the old kind: save it as .xlsx or CSV",
    b"\x28\xb5\x2f\xfd": "compressed with zstd: unpack it first",
    b"7z\xbc\xaf": "a 7z archive: unpack it first",
    b"[{": "JSON: make it a CSV file first (in Python, pandas.read_json(...).to_csv(...))",
    b'{"': "JSON: make it a CSV file first (in Python, pandas.read_json(...).to_csv(...))",
    b"Rar!": "a RAR archive: unpack it first",
    b"%PDF": "a PDF: a table is a CSV, Parquet or Excel file",
}
_HIDDEN = ("__MACOSX/", ".DS_Store")


class _Bounded(io.RawIOBase):
    """What ``source`` unpacks to, up to a limit: few bytes may stand for any number."""

    def __init__(self, source: Any, name: str) -> None:
        self.source, self.name, self.left = source, name, MOST_INFLATED

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self.source.read(len(buffer))
        self.left -= len(piece)
        if self.left < 0:
            raise DataError(f"{self.name} unpacks to more than {MOST_INFLATED >> 20:,} MB: unpack it and give its path")
        buffer[: len(piece)] = piece
        return len(piece)


class _Recoded(io.RawIOBase):
    """UTF-16, which begins with a mark of its byte order, as UTF-8."""

    def __init__(self, source: IO[bytes]) -> None:
        self.source, self.decoder, self.ready = source, codecs.getincrementaldecoder("utf-16")(), b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.ready:
            piece = self.source.read(1 << 16)
            self.ready = self.decoder.decode(piece, final=not piece).encode("utf-8", "surrogatepass")
            if not piece:
                break
        taken, self.ready = self.ready[: len(buffer)], self.ready[len(buffer) :]
        buffer[: len(taken)] = taken
        return len(taken)


def unpacked(handle: io.BufferedReader, name: str) -> io.BufferedReader | None:
    """What is inside ``handle``, if it is packed or in UTF-16; None if it is neither."""
    start = handle.peek(LONGEST_MAGIC)[:LONGEST_MAGIC]
    for magic, what in _FOREIGN.items():
        if start.startswith(magic):
            raise DataError(f"{name} is {what}")
    if start.startswith(b"\x1f\x8b"):
        return _bounded(gzip.GzipFile(fileobj=handle), name)
    if start.startswith(b"BZh") and start[4:8] == b"1AY&":
        return _bounded(bz2.BZ2File(handle), name)
    if start.startswith(b"\xfd7zXZ\x00"):
        return _bounded(lzma.LZMAFile(handle), name)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return io.BufferedReader(_Recoded(handle))
    return None


def only_member(archive: zipfile.ZipFile, name: str) -> io.BufferedReader:
    """The one file in a zip archive."""
    members = [each for each in archive.infolist() if not each.is_dir() and not _is_hidden(each.filename)]
    if len(members) != 1:
        inside = f"{len(members):,} files, such as {members[0].filename!r}" if members else "no file"
        raise DataError(f"{name} holds {inside}: one table is read, so unpack it and give the path of one")
    if members[0].flag_bits & 1:
        raise DataError(f"{name} is protected by a password: unpack it first")
    return _bounded(archive.open(members[0]), name)


def _is_hidden(name: str) -> bool:
    return name.startswith(_HIDDEN[0]) or name.endswith(_HIDDEN[1])


def _bounded(source: Any, name: str) -> io.BufferedReader:
    return io.BufferedReader(_Bounded(source, name), 1 << 16)
