"""Tables as people have them: each with what must be read from it, or the sentence that must be said.

A file is its bytes. ``independent`` reads the same bytes by pandas and plain Python with explicit arguments: what separates the
columns, how numbers are written, which column plays which role.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

LONG = "option,value\na,1\na,2\nb,3\nb,5\n"
AB = {"a": [1.0, 2.0], "b": [3.0, 5.0]}
COUNTS = {"a": (3, 50), "b": (7, 60)}


@dataclass(frozen=True)
class File:
    """A file, what is said about it, and what must be read: numbers of each option, (successes, trials), or (mean, se)."""

    content: bytes
    reads: Mapping[str, Any] | None = None
    says: tuple[str, ...] = ()
    """Parts of the sentence that refuses it, or of the remarks."""
    said: Mapping[str, Any] = field(default_factory=dict)
    csv: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of ``pandas.read_csv``."""
    unpack: Callable[[bytes], bytes] = bytes
    needs: str | None = None
    """A package without which it cannot be read."""


def text(content: str, reads: Mapping[str, Any], *says: str, sep: str = ",", **said: Any) -> File:
    """A CSV file that is read."""
    return File(content.encode(), reads, says, said, {"sep": sep})


def refused(content: str, *says: str, **said: Any) -> File:
    """A CSV file that is refused with a sentence."""
    return File(content.encode(), None, says, said, {"sep": max(",;", key=content.count)})


def _zip(content: bytes, *more: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("t.csv", *more):
            archive.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), content)
    return out.getvalue()


def _unzip(content: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read("t.csv")


_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_TIES = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def _xlsx(**sheets: str) -> bytes:
    """An Excel file as small as one can be, its sheets written as CSV; what reads as a number is one."""
    kinds, ties, book, out = "", "", "", io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:

        def put(name: str, content: str) -> None:
            whole = f'<?xml version="1.0" encoding="UTF-8"?>{content}'
            archive.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), whole)

        for k, (title, content) in enumerate(sheets.items(), start=1):
            rows = "".join("<row>" + "".join(map(_cell, line.split(","))) + "</row>" for line in content.splitlines())
            put(f"xl/worksheets/sheet{k}.xml", f'<worksheet xmlns="{_SHEET}"><sheetData>{rows}</sheetData></worksheet>')
            kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"
            kinds += f'<Override PartName="/xl/worksheets/sheet{k}.xml" ContentType="{kind}"/>'
            ties += f'<Relationship Id="r{k}" Type="{_TIES}/worksheet" Target="worksheets/sheet{k}.xml"/>'
            book += f'<sheet name="{title}" sheetId="{k}" r:id="r{k}"/>'
        kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
        put("xl/workbook.xml", f'<workbook xmlns="{_SHEET}" xmlns:r="{_TIES}"><sheets>{book}</sheets></workbook>')
        put("xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{_PACKAGE}/relationships">{ties}</Relationships>')
        tie = f'<Relationship Id="r1" Type="{_TIES}/officeDocument" Target="xl/workbook.xml"/>'
        put("_rels/.rels", f'<Relationships xmlns="{_PACKAGE}/relationships">{tie}</Relationships>')
        kinds += f'<Override PartName="/xl/workbook.xml" ContentType="{kind}"/>'
        kinds += '<Default Extension="xml" ContentType="application/xml"/>'
        put("[Content_Types].xml", f'<Types xmlns="{_PACKAGE}/content-types">{kinds}</Types>')
    return out.getvalue()


def _cell(text: str) -> str:
    if not text:
        return "<c/>"
    try:
        return f"<c><v>{float(text)}</v></c>"
    except ValueError:
        return f'<c t="inlineStr"><is><t>{text}</t></is></c>'


def _first_sheet(content: bytes) -> bytes:
    """The first sheet as CSV."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        root = ElementTree.fromstring(archive.read("xl/worksheets/sheet1.xml"))
    rows = [["".join(cell.itertext()) for cell in row] for row in root.iter(f"{{{_SHEET}}}row")]
    out = io.StringIO()
    csv.writer(out).writerows(row for row in rows if sum(map(bool, row)) > 1)
    return out.getvalue().encode()


def _parquet(**columns: Any) -> bytes:
    out = io.BytesIO()
    pd.DataFrame(columns).to_parquet(out, index=False)
    return out.getvalue()


def _as_csv(content: bytes) -> bytes:
    return pd.DataFrame(pq.read_table(io.BytesIO(content)).to_pydict()).to_csv(index=False).encode()


WIDE = "a,b\n1.5,2\n2.5,3\n0.5,7\n"
WIDE_AB = {"a": [1.5, 2.5, 0.5], "b": [2.0, 3.0, 7.0]}
QUESTIONS = "question,gpt,claude\n" + "".join(f"{k},{k % 2},{int(k % 3 > 0)}\n" for k in range(1, 13))
QUESTIONS_READ = {"gpt": [k % 2 for k in range(1, 13)], "claude": [int(k % 3 > 0) for k in range(1, 13)]}
DAYS = "day,a,b\n" + "".join(f"2024-01-0{k},{k / 2},{k * k}\n" for k in range(1, 5))
DAYS_READ = {"a": [0.5, 1.0, 1.5, 2.0], "b": [1, 4, 9, 16]}
ODD = "visits,a,b\n" + "".join(f"{300 + k * k % 47},{k % 3},{k % 4}\n" for k in range(10))
UNITS = "user,variant,spent\nu1,a,1\nu2,a,2\nu3,a,4\nu2,b,5\nu1,b,3\nu3,b,9\n"
GAPS = "option,value\na,1\na,{}\na,2\nb,3\nb,5\n"
WIDE_GAPS = "a,b\n1.5,2\n,3\n0.5,7\n2.5,1\n"
POINTS = "ad;eur\na;1.234\na;999\nb;2.345\nb;12\n"
LIMITS = "model,estimate,lower,upper\na,1,0.02,1.98\nb,2,0.04,3.96\n"
LIMITS_READ = {"a": (1.0, 0.98 / 1.959963984540054), "b": (2.0, 1.96 / 1.959963984540054)}

FILES: dict[str, File] = {
    # --- plain tables ---
    "long": text(LONG, AB),
    "wide": text(WIDE, WIDE_AB),
    "counts": text("ad,clicks,views\na,3,50\nb,7,60\n", COUNTS),
    "counts that add up": text("ad,clicks,views\na,1,20\nb,7,60\na,2,30\n", COUNTS),
    "summaries": text("option,mean,se\na,1,0.5\nb,2,0.25\n", {"a": (1.0, 0.5), "b": (2.0, 0.25)}),
    "describe": text("ad,count,mean,std,min,max\na,9,1,3,0,4\nb,4,2,1,1,5\n", {"a": (1.0, 1.0), "b": (2.0, 0.5)}),
    "two columns with names of their own": text("city,kg\nx,1\nx,2\ny,3\ny,5\n", {"x": [1, 2], "y": [3, 5]}),
    "byte order mark": File(b"\xef\xbb\xbf" + LONG.encode(), AB, csv={"encoding": "utf-8-sig"}),
    "windows": text(LONG.replace("\n", "\r\n"), AB),
    "blank lines": text(LONG.replace("\n", "\n\n"), AB),
    "quotes": text('option,value\n"a","1"\n"a",2\n"b",3\nb,"5"\n', AB),
    "saved index": text(",option,value\n0,a,1\n1,a,2\n2,b,3\n3,b,5\n", AB),
    "true and false": text("ad,bought\nx,true\nx,false\ny,True\ny,FALSE\ny,true\n", {"x": [1, 0], "y": [1, 0, 1]}),
    "numbered options": text("arm,revenue\n0,2.5\n0,3.1\n1,4.2\n1,5\n", {"0": [2.5, 3.1], "1": [4.2, 5]}),
    # --- separators, comments, encodings, packed ---
    "semicolons": text(LONG.replace(",", ";"), AB, sep=";"),
    "tabs": text(LONG.replace(",", "\t"), AB, sep="\t"),
    "pipes": text(LONG.replace(",", "|"), AB, sep="|"),
    "sep line": File(("sep=;\n" + LONG.replace(",", ";")).encode(), AB, csv={"sep": ";"}),
    "sep line of a rare mark": File(("sep=^\n" + LONG.replace(",", "^")).encode(), AB, csv={"sep": "^"}),
    "sep line of a letter": refused("sep=v\noption,value\na,1\n", "'v' separates columns, which it cannot"),
    "comments above": File(b"# exported, today\n# by us\n" + LONG.encode(), AB),
    "comment below": File(LONG.encode() + b"# that was all\n", AB),
    "header in a comment": File(b"# option,value\n" + LONG.partition("\n")[2].encode(), AB),
    "comment or name": refused("# a note\noption,value\n#1,1\n#1,2\nb,3\nb,5\n", "row 1 begins with '#'"),
    "written on Windows": File(LONG.replace("a,", "ä,").encode("cp1252"), None, ("not UTF-8 text", "-f cp1252")),
    "written on Windows, header": File(LONG.replace("value", "größe").encode("cp1252"), None, ("not UTF-8 text", "-f cp1252")),
    "utf-16": File(LONG.encode("utf-16"), AB, csv={"encoding": "utf-16"}),
    "utf-16, big end first": File(b"\xfe\xff" + LONG.encode("utf-16-be"), AB, csv={"encoding": "utf-16"}),
    "gzip": File(gzip.compress(LONG.encode(), mtime=0), AB, unpack=gzip.decompress),
    "bzip2": File(bz2.compress(LONG.encode()), AB, unpack=bz2.decompress),
    "xz": File(lzma.compress(LONG.encode()), AB, unpack=lzma.decompress),
    "zip": File(_zip(LONG.encode()), AB, unpack=_unzip),
    "zip of a mac": File(_zip(LONG.encode(), "__MACOSX/._t.csv"), AB, unpack=_unzip),
    "zip of two": File(_zip(LONG.encode(), "u.csv"), says=("2 files", "unpack it")),
    "excel": File(_xlsx(Sheet1=LONG, Empty=""), AB, unpack=_first_sheet, needs="openpyxl"),
    "excel with a title": File(_xlsx(Data="Results\n\n" + LONG), AB, unpack=_first_sheet, needs="openpyxl"),
    "excel with two sheets": File(_xlsx(May=LONG, June=LONG), says=("'May', 'June'", "--sheet"), needs="openpyxl"),
    "excel, sheet named": File(
        _xlsx(May=LONG, June="x,y\n1,2\n"), AB, said={"sheet": "May"}, unpack=_first_sheet, needs="openpyxl"
    ),
    "parquet": File(_parquet(option=list("aabb"), value=[1.0, 2.0, 3.0, 5.0]), AB, unpack=_as_csv),
    "parquet, categories": File(
        _parquet(option=pd.Categorical(list("aabb")), value=[1, 2, 3, 5]), AB, unpack=_as_csv
    ),
    "old excel": File(b"\xd0\xcf\x11\xe0" + bytes(600), says=("save it as .xlsx or CSV",)),
    # --- names ---
    "blanks around names": text(
        "option,value\na,1\n'B',2\na,2\nB ,3\nB,5\n B,4\n'B',1\n",
        {"a": [1, 2], "'B'": [2, 1], "B": [3, 5, 4]},
        "'B ' and 'B' count as one option",
    ),
    "capitals": text("option,value\nb,1\nb,2\nB,3\nB,5\n", {"b": [1, 2], "B": [3, 5]}, "'b' and 'B' count as two"),
    "blanks in a header": text("a, b\n1.5,2\n2.5,3\n0.5,7\n", WIDE_AB),
    "japanese": text("広告,値\n赤,1\n赤,2\n青,3\n青,5\n", {"赤": [1, 2], "青": [3, 5]}),
    # --- totals ---
    "total": refused(
        "ad,clicks,views\na,3,50\nb,7,60\nTotal,10,110\n", "'Total' looks like a sum", '--where "ad != Total"'
    ),
    "total left out": text(
        "ad,clicks,views\na,3,50\nb,7,60\nTotal,10,110\n", COUNTS, where=["ad != Total"]
    ),
    "total kept": text(
        "ad,clicks,views\na,3,50\nTotal,10,110\nc,1,9\n", {"a": (3, 50), "Total": (10, 110)}, options=["a", "Total"]
    ),
    "grand total": refused("shop,revenue\na,1.5\na,2\nb,3\nb,5\nGrand Total,11.5\n", "'Grand Total' looks like a sum"),
    "all": refused("shop,revenue\na,1.5\na,2\nb,3\nb,5\nAll,11.5\nAll,3\n", "'All' looks like a sum"),
    "total of columns": refused("a,b,total\n1.5,2,3.5\n2.5,3,5.5\n0.5,7,7.5\n", "'total' looks like a sum", "--options a,b"),
    # --- ids and dates ---
    "numbered questions": text(QUESTIONS, QUESTIONS_READ, "'question' numbers the rows and is no option"),
    "numbers from 101": text(
        "\n".join(["nr,a,b", *(f"{k},{k % 3},{k % 2}" for k in range(101, 109))]) + "\n",
        {"a": [k % 3 for k in range(101, 109)], "b": [k % 2 for k in range(101, 109)]},
        "'nr' numbers the rows",
    ),
    "an id": text(
        "user_id,a,b\n1093,1.5,2\n2441,2.5,3\n3,0.5,7\n", WIDE_AB, "'user_id' numbers the rows and is no option"
    ),
    "months and one value": refused("month,temp_max\n1,3.5\n2,4.5\n3,9.1\n4,12\n", "only column 'temp_max' has values", "--by"),
    "shops and one value": refused("store_id,revenue\n17,1200\n4,900\n23,1500\n", "only column 'revenue' has values"),
    "shops that repeat": refused("store_id,revenue\n17,1200\n17,900\n23,1500\n23,700\n", "'store_id'", "--by store_id"),
    "shops that repeat, named": text(
        "store_id,revenue\n17,1200\n17,900\n23,1500\n23,700\n", {"17": [1200, 900], "23": [1500, 700]}, by="store_id"
    ),
    "one odd column": refused(
        ODD, "'visits' has a different whole number", "--unit visits"
    ),
    "one odd column, wide": text(
        ODD,
        {"visits": [300 + k * k % 47 for k in range(10)], "a": [k % 3 for k in range(10)], "b": [k % 4 for k in range(10)]},
        layout="wide",
    ),
    "whole numbers all over": text(
        "a,b\n310,12\n270,9\n295,17\n402,3\n333,8\n", {"a": [310, 270, 295, 402, 333], "b": [12, 9, 17, 3, 8]}
    ),
    "dates": text(DAYS, DAYS_READ, "'day' dates the rows and is no option"),
    "dates, wide": text(DAYS, DAYS_READ, "'day' dates the rows", layout="wide"),
    "german dates": text(
        "Tag;a;b\n01.02.2024;1.5;2\n02.02.2024;2.5;3\n03.02.2024;0.5;7\n", WIDE_AB, "'Tag' dates the rows", sep=";"
    ),
    "text id": refused("city,a,b\nx,1.5,2\ny,2.5,3\nz,0.5,7\n", "--by city --value a", "--unit city"),
    "text id, wide": refused("city,a,b\nx,1.5,2\ny,2.5,3\nz,0.5,7\n", "'city' holds text", "--unit city", layout="wide"),
    "text id as the unit": text("city,a,b\nx,1.5,2\ny,2.5,3\nz,0.5,7\n", WIDE_AB, unit="city"),
    "a unit twice": refused("city,a,b\nx,1.5,2\ny,2.5,3\nx,0.5,7\n", "row 3: city 'x' was in row 1 already", unit="city"),
    "one of the columns": text(
        "city,a,b,c\nx,1.5,2,9\ny,2.5,3,8\nz,0.5,7,8\n", WIDE_AB, options=["a", "b"]
    ),
    "an id beside long data": text(
        "variant,user_id,revenue\na,1,1\na,2,2\nb,1,3\nb,2,5\n", AB, "same 'user_id' are not paired; --unit user_id"
    ),
    "an id beside long data of any name": text(
        "id,diet,pulse\n1,a,1\n2,a,2\n3,b,3\n4,b,5\n", AB
    ),
    "six rows before and after": text(
        "before,after\n12,10\n15,15\n11,12\n18,12\n", {"before": [12, 15, 11, 18], "after": [10, 15, 12, 12]}
    ),
    "scores of nobody": refused("seed,score\n1,0.5\n2,0.75\n1,0.25\n", "--by"),
    "truth and numbers": text("treated,outcome\nyes,1.5\nno,2\nno,4\nyes,3\n", {"yes": [1.5, 3], "no": [2, 4]}),
    # --- units ---
    "units": text(UNITS, {"a": [1, 2, 4], "b": [3, 5, 9]}, by="variant", value="spent", unit="user"),
    "units, columns recognised": text(UNITS, {"a": [1, 2, 4], "b": [3, 5, 9]}, unit="user"),
    "units that lack": refused(UNITS + "u4,a,7\n", "1 of 4 units", "'u4'", "--drop-missing", unit="user"),
    "units that lack, dropped": text(
        UNITS + "u4,a,7\n", {"a": [1, 2, 4], "b": [3, 5, 9]}, "1 of 4 units", unit="user", drop_missing=True
    ),
    "units twice": refused(UNITS + "u1,a,7\n", "row 7: user 'u1' has a value of option 'a' in row 1", unit="user"),
    "two kinds of successes": text(
        "variant,opens,sent,clicks\na,20,50,3\nb,30,60,7\n", COUNTS, "successes are those in 'clicks'", "--successes opens",
    ),
    "two kinds of successes, said": text(
        "variant,opens,sent,clicks\na,20,50,3\nb,30,60,7\n", {"a": (20, 50), "b": (30, 60)}, successes="opens",
    ),
    # --- rows that count ---
    "where": text("land,ad,eur\nDE,a,1\nDE,a,2\nFR,a,9\nDE,b,3\nDE,b,5\n", AB, where="land = DE", by="ad"),
    "where, two": text(
        "land,ad,eur\nDE,a,1\nDE,a,2\nFR,a,9\nDE,b,3\nDE,b,5\nDE,c,5\n", AB, where=["land = DE", "ad != c"], by="ad"
    ),
    "where nobody is": refused("land,ad,eur\nDE,a,1\nFR,b,2\n", "no row fulfils land = IT", "'DE', 'FR'", where="land = IT"),
    "where a number": text(
        'n,ad,eur\n"1,000",a,1\n1000,a,2\n1000.0,b,3\n1e3,b,5\n100,b,9\n', AB, where="n = 1000", by="ad", value="eur",
    ),
    "where not a number": text(
        "n,ad,eur\n2.0,a,1\n3,a,2\n1.0,a,9\n2,b,3\n3,b,5\n1,b,9\n", AB, where="n != 1", by="ad", value="eur",
    ),
    "where a code": refused("zip,ad,eur\n007,a,1\n007,b,2\n", "no row fulfils zip = 7: column 'zip' holds", where="zip = 7"),
    "where a long number": refused(
        "u,ad,eur\n9007199254740993,a,1\n5,b,2\n", "no row fulfils u = 9007199254740992", where="u = 9007199254740992",
    ),
    "where a version": refused(
        "v,ad,eur\n1.1,a,1\n1.10,a,2\n", "'1.1', '1.10', which are the same number", "(v = '1.1')", where="v = 1.1", by="ad",
        value="eur",
    ),
    "where not what never is": refused(
        LONG, "no row fulfils option = c: column 'option' holds 'a', 'b'", where="option != c",
    ),
    "where together nobody is": refused(LONG, "no row fulfils option = a and value = 3", where=["option = a", "value = 3"]),
    "where of no column": refused(LONG, "no column 'optin'; did you mean 'option'", where="optin = a"),
    # --- missing ---
    "empty": refused(GAPS.format(""), "row 2: column 'value' is empty, in 1 of 5 rows", "--drop-missing"),
    **{
        f"missing as {word}": refused(GAPS.format(word), "row 2: column 'value' is empty, in 1 of 5 rows", "--drop-missing")
        for word in ("NA", "n/a", "N/A", "-", "null", "NaN")
    },
    "missing, dropped": text(GAPS.format("NA"), AB, "1 of 5 rows was left out", drop_missing=True),
    "nan, dropped": text(GAPS.format("nan"), AB, "1 of 5 rows was left out", drop_missing=True),
    "no option, dropped": text(
        "option,value\na,1\n,7\na,2\nb,3\nb,5\n", AB, "'option' is empty there", drop_missing=True
    ),
    "hole in a wide table": refused(WIDE_GAPS, "row 2: column 'a' is empty, in 1 of 4 rows", "--drop-missing"),
    "hole in a wide table, dropped": text(
        WIDE_GAPS, {"a": [1.5, 0.5, 2.5], "b": [2, 7, 1]}, "1 of 4 rows was left out", drop_missing=True
    ),
    "hole in a wide table, unpaired": text(
        WIDE_GAPS, {"a": [1.5, 0.5, 2.5], "b": [2, 3, 7, 1]}, "1 missing value", drop_missing=True, paired=False
    ),
    "columns that end early": text(
        "a,b\n1.5,2\n2.5,3\n,7\n", {"a": [1.5, 2.5], "b": [2, 3, 7]},
        "'a' ends after 2 values and 'b' after 3, so that rows are not paired", "--drop-missing",
    ),
    "the last units lack a value": refused(
        "q,m1,m2\nx,1.5,2\ny,2.5,3\nz,2,\nw,1,\n", "row 3: column 'm2' is empty, in 2 of 4 rows", "--drop-missing", unit="q",
    ),
    "the last units lack a value, dropped": text(
        "q,m1,m2\nx,1.5,2\ny,2.5,3\nz,2,\n", {"m1": [1.5, 2.5], "m2": [2, 3]}, "1 of 3 rows", unit="q", drop_missing=True,
    ),
    "the last day lacks a value": refused(
        "day,m1,m2\n2024-01-01,1.5,2\n2024-01-02,2.5,3\n2024-01-03,,7\n", "row 3: column 'm1' is empty, in 1 of 3 rows",
    ),
    "the last of chosen options lacks a value": refused(
        "id,m1,m2\n1,1.5,2\n2,2.5,3\n3,,7\n", "row 3: column 'm1' is empty, in 1 of 3 rows", options=["m1", "m2"],
    ),
    "infinite": refused(GAPS.format("inf"), "row 2: column 'value' is inf"),
    # --- numbers ---
    "points and semicolons": refused(POINTS, "'eur' holds '1.234' beside '999', and its point may separate", "--decimal ,"),
    "points and semicolons, missing": refused(POINTS + "a;NA\n", "'1.234' beside '999'"),
    "points and semicolons, signs": refused(re.sub("(?<=;)([0-9.]+)", r"\1 €", POINTS), "'1.234' beside '999'"),
    "points and semicolons, thousands": text(
        POINTS, {"a": [1234, 999], "b": [2345, 12]}, "'1.234' was read as 1234", sep=";", decimal=",",
    ),
    "points and semicolons, decimals": text(POINTS, {"a": [1.234, 999], "b": [2.345, 12]}, sep=";", decimal="."),
    "points and semicolons, sure": text(
        POINTS.replace(";12\n", ";0.125\n"), {"a": [1.234, 999], "b": [2.345, 0.125]}, sep=";",
    ),
    "thousands": text(
        'shop,eur\na,"12,034"\na,"1,796.30"\nb,3\nb,5\n',
        {"a": [12034, 1796.3], "b": [3, 5]}, "'12,034' was read as 12034",
    ),
    "thousands or decimals": refused("shop;eur\na;12,034\na;9,500\nb;3,000\nb;5,100\n", "'12,034'", "--decimal"),
    "thousands, said": text(
        "shop;eur\na;12,034\na;9,500\nb;3,000\nb;5\n", {"a": [12034, 9500], "b": [3000, 5]},
        "was read as 12034", sep=";", decimal="."
    ),
    "decimals, said": text(
        "shop;eur\na;12,034\na;9,500\nb;3,000\nb;5\n", {"a": [12.034, 9.5], "b": [3, 5]},
        "was read as 12.034", sep=";", decimal=","
    ),
    "thousands of counts": text(
        "ad;clicks;views\na;3;1,050\nb;7;2,060\n",
        {"a": (3, 1050), "b": (7, 2060)}, "read as 1050", sep=";",
    ),
    "decimal commas": text(
        "shop;eur\na;1,5\na;2\nb;3,25\nb;1.005,5\n",
        {"a": [1.5, 2], "b": [3.25, 1005.5]}, "'1,5' was read as 1.5", sep=";",
    ),
    "commas and points": refused(
        "ad;mean;se\na;1,5;0.25\nb;2,5;0.5\n",
        "a comma in column 'mean' and a point in 'se'", "--decimal",
    ),
    "gaps of thousands": text("shop;eur\na;1 250,5\na;2\nb;3\nb;5\n", {"a": [1250.5, 2], "b": [3, 5]}, "read as 1250.5", sep=";"),
    "percent": text("ad,rate\na,17.96%\na,3 %\nb,5%\nb,6%\n", {"a": [0.1796, 0.03], "b": [0.05, 0.06]}, "read as 0.1796"),
    "dollars": text('ad,cost\na,$179.63\na,"$1,000"\nb,-$3\nb,$5\n', {"a": [179.63, 1000], "b": [-3, 5]}, "read as 1000"),
    "euros": text("ad;cost\na;179,63 €\na;2 €\nb;3 €\nb;5,5 €\n", {"a": [179.63, 2], "b": [3, 5.5]}, "read as 179.63", sep=";"),
    "two currencies": refused("ad,cost\na,$179.63\na,€2\nb,$3\nb,$5\n", "row 2: column 'cost' holds '€2', not a number"),
    "percent here and there": refused("ad,rate\na,17.96%\na,0.03\nb,5%\nb,6%\n", "row 2: column 'rate' holds '0.03'"),
    "yes and no": text("ad,bought\na,yes\na,no\nb,Yes\nb,no\nb,yes\n", {"a": [1, 0], "b": [1, 0, 1]}),
    "yes, no and maybe": refused("ad,bought\na,yes\na,no\nb,maybe\nb,no\nb,yes\n", "row 3: column 'bought' holds 'maybe'"),
    "a stray word": refused("ad,eur\na,1\na,2\nb,x\nb,5\n", "row 3: column 'eur' holds 'x', not a number"),
    "a minus of unicode": text("ad,eur\na,1\na,−2\nb,3\nb,5\n", {"a": [1, -2], "b": [3, 5]}),
    # --- counts and summaries by other names ---
    "sessions": text("Page,Sessions,Purchases\na,50,3\nb,60,7\n", COUNTS),
    "rate and n": text("ad,rate,n\na,0.06,50\nb,0.1167,60\n", COUNTS),
    "percent and n": text("ad,CTR,Impressions\na,6%,50\nb,11.67%,60\n", COUNTS, "read as 0.06"),
    "rate of many": text("ad,rate,n\na,0.1,50000\nb,0.12,60000\n", {"a": (5000, 50000), "b": (7200, 60000)}, "give or take"),
    "rate that is none": refused("ad,rate,n\na,6,50\nb,11.67,60\n", "row 1: column 'rate' holds 6", "12.5%"),
    "rate of no counts": refused("ad,rate,n\na,0.5,3\nb,0.5,4\n", "row 1: 0.5 of 3 trials is no whole number", "--se"),
    "accuracy": text("model,accuracy,stderr\na,0.5,0.1\nb,0.75,0.2\n", {"a": (0.5, 0.1), "b": (0.75, 0.2)}),
    "acc_stderr": text(
        "model,acc,acc_stderr,alias\na,0.5,0.1,x\nb,0.75,0.2,x\n",
        {"a": (0.5, 0.1), "b": (0.75, 0.2)}, by="model",
    ),
    "std. error": text("Variant,Mean,Std. Error\na,1,0.5\nb,2,0.25\n", {"a": (1.0, 0.5), "b": (2.0, 0.25)}),
    "mean and n": refused("ad,mean,n\na,1,9\nb,2,4\n", "--by ad"),
    "mean and sd": refused("ad,mean,sd\na,1,9\nb,2,4\n", "no column is known to hold the n", "--n"),
    "limits": text(LIMITS, LIMITS_READ, "taken for those of level 0.95", "--limits-level"),
    "limits, quantiles": text(LIMITS.replace("lower,upper", "2.5 %,97.5 %"), LIMITS_READ),
    "limits of 90%": text(
        "model,est,CI 90% low,CI 90% high\na,1,0.02,1.98\nb,2,0.04,3.96\n",
        {"a": (1.0, 0.98 / 1.6448536269514722), "b": (2.0, 1.96 / 1.6448536269514722)},
        mean="est",
    ),
    "limits, level said": text(
        LIMITS, {"a": (1.0, 0.98 / 1.6448536269514722), "b": (2.0, 1.96 / 1.6448536269514722)}, limits_level=0.9
    ),
    "limits of a ratio": refused(LIMITS.replace("1.98", "4.9"), "'a': its limits 0.02 and 4.9 are not symmetric", "--se"),
    "limits elsewhere": refused(LIMITS.replace("a,1,", "a,9,"), "'a': its mean 9 is not between its limits"),
    # --- what cannot be told ---
    "two texts": refused("x,y,z\na,b,1\nc,d,2\n", "'x', 'y', 'z'", "--by x --value z"),
    "no numbers": refused("x,y\na,b\nc,d\n", "none of them holds numbers"),
    "nothing but ids": refused(
        "store_id,revenue\n3,1\n1,2\n2,3\n9,4\n7,5\n", "every column tells the rows apart", "--by store_id --value revenue",
    ),
    "half a header": refused(
        "150,4,setosa\n5.1,3.5,1.4\n4.9,3.0,1.4\n", "numbers ('150', '4') beside names ('setosa')", "--layout wide",
    ),
    "blanks between columns": refused("Chins Situps Jumps\n5 162 60\n2 110 60\n", "blanks do not separate", "commas"),
    "JSON": refused('[{"ad":"a","eur":1},\n{"ad":"b","eur":2}]\n', "is JSON", "read_json"),
    "years beside texts": refused(
        "Country,Code,1960,1961\nAruba,ABW,4.8,4.6\nAngola,AGO,7.3,7.4\n", "cannot tell", "--by Country",
    ),
    "a person in several rows": refused(
        "individual,mode,choice\n1,1,0\n1,2,1\n2,1,1\n2,2,0\n", "'individual' has the name of an id", "--unit individual",
    ),
    "dates in words": text(
        "symbol,date,price\nA,Jan 1 2000,1\nA,Feb 1 2000,2\nB,Jan 1 2000,3\nB,Feb 1 2000,5\n", {"A": [1, 2], "B": [3, 5]},
        "rows with the same 'date' are not paired",
    ),
    "other scales": text(
        "duration,rate\n7,0.01\n52,0.02\n9,0.03\n", {"duration": [7, 52, 9], "rate": [0.01, 0.02, 0.03]},
        "'duration' spread 1,000 times as much as those of 'rate'",
    ),
    "no header": refused("a,2.5\na,3\nb,4\nb,4\n", "first line holds numbers"),
    "an empty column": text("a,b,notes\n1.5,2,\n2.5,3,\n0.5,7,\n", WIDE_AB, "'notes' is empty and is no option"),
}  # fmt: skip


def _number(text: str, remark: str) -> float:
    """A number as a remark of the reader says that its column is written; ``remark`` ends in: 'example' was read as value."""
    words = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "y": 1.0, "n": 0.0, "t": 1.0, "f": 0.0}
    text = text.strip().replace("−", "-")
    if text.lower() in words:
        return words[text.lower()]
    if not remark:
        return float(text)
    example, _, value = remark.partition(": ")[2].rpartition(" was read as ")
    plain = text.replace("−", "-").translate(dict.fromkeys(map(ord, " '\u00a0\u202f\u2019$€£¥%\""), None))
    shown = example.strip("'\"").replace("−", "-").translate(dict.fromkeys(map(ord, " '\u00a0\u202f\u2019$€£¥%"), None))
    share = 0.01 if "%" in example else 1.0
    for thousands, decimal in ((",", "."), (".", ",")):
        with suppress(ValueError):
            said = float(shown.replace(thousands, "").replace(decimal, ".")) * share
            if abs(said - float(value)) <= 1e-9 * abs(said):
                return float(plain.replace(thousands, "").replace(decimal, ".")) * share
    raise ValueError(text)


MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none", "-", "--", ".", "?"}


def _without_comments(content: bytes, how: Mapping[str, Any], names: set[str]) -> bytes:
    """The lines from the one on that has all ``names``, without those that begin with # and have one column."""
    sep, lines = how["sep"].encode(), content.splitlines(keepends=True)

    def named(line: bytes) -> bool:
        return all(name.encode() in line for name in names)

    begin = next((k for k, line in enumerate(lines) if named(line)), 0)
    while lines[begin].startswith(b"#") and lines[begin + 1].startswith(b"#") and named(lines[begin + 1]):
        begin += 1
    kept = [line for line in lines[begin:] if not (line.startswith(b"#") and sep not in line)]
    return b"".join([re.sub(rb"^#\s*(?!\s*%b)" % re.escape(sep), b"", kept[0]), *kept[1:]])


def independent(file: File, content: bytes, layout: Any, remarks: tuple[str, ...]) -> dict[str, Any]:
    """What pandas and plain Python read from ``content`` with the roles of ``layout`` and the notation of the remarks."""
    how: dict[str, Any] = {
        "sep": ",",
        "dtype": str,
        "keep_default_na": False,
        "index_col": False,
        "skip_blank_lines": True,
    }
    plain = file.unpack(content)
    if not any(b'"' in line and line[:1] != b"#" for line in plain.splitlines()) and "encoding" not in file.csv:
        plain = _without_comments(plain, how | dict(file.csv), {*layout.roles.values(), *layout.options})
    frame = pd.read_csv(io.BytesIO(plain), **how | dict(file.csv))
    frame.columns = [str(name) for name in frame.columns]
    for condition in [file.said["where"]] if isinstance(file.said.get("where"), str) else file.said.get("where", ()):
        which, equal, value = condition.partition(" != " if "!=" in condition else " = ")
        cells, wanted = frame[which].str.strip(), pd.to_numeric(value, errors="coerce")
        same = (cells == value) | (pd.to_numeric(cells.str.replace(",", ""), errors="coerce") == wanted)
        frame = frame[same if equal == " = " else ~same]
    if file.said.get("options") and "by" in layout.roles:
        frame = frame[frame[layout.roles["by"]].str.strip().isin(file.said["options"])]

    def column(name: str) -> np.ndarray:
        remark = next((each for each in remarks if each.startswith(f"column {name!r}: ")), "")
        cells = [str(cell) for cell in frame[name]]
        return np.array([np.nan if cell.strip().lower() in MISSING else _number(cell, remark) for cell in cells])

    drop = file.said.get("drop_missing", False)
    if layout.kind == "wide":
        columns = {name.strip(): column(name) for name in layout.options}
        if drop and file.said.get("paired") is not False:
            whole = ~np.logical_or.reduce([np.isnan(values) for values in columns.values()])
            columns = {name: values[whole] for name, values in columns.items()}
        return {name: values[~np.isnan(values)].tolist() for name, values in columns.items()}
    numbers = {role: column(name) for role, name in layout.roles.items() if role not in ("by", "unit")}
    by = (
        [str(cell).strip() for cell in frame[layout.roles["by"]]]
        if "by" in layout.roles
        else [f"row {k + 1}" for k in range(len(frame))]
    )
    rows = pd.DataFrame({"by": [str(name).strip() for name in by], **numbers})
    if "unit" in layout.roles:
        rows["unit"] = [str(cell).strip() for cell in frame[layout.roles["unit"]]]
    if rows.isna().to_numpy().any() or (rows["by"] == "").any():
        assert drop
        rows = rows[~rows.isna().any(axis=1) & (rows["by"] != "")]
    groups = rows.groupby("by", sort=False)
    if layout.kind == "counts":
        if "rate" in rows:
            rows["successes"] = (rows["rate"] * rows["trials"]).round()
        sums = rows.groupby("by", sort=False)[["successes", "trials"]].sum()
        return {str(name): (row.successes, row.trials) for name, row in sums.iterrows()}
    if layout.kind == "summaries":
        assert groups.ngroups == len(rows)
        if "lower" in rows:
            se = (rows["upper"] - rows["lower"]) / 2 / {0.9: 1.6448536269514722, 0.95: 1.959963984540054}[layout.level]
        else:
            se = (
                rows["se"]
                if "se" in rows
                else rows["sd"] / np.sqrt(rows["n"])
                if "sd" in rows
                else [layout.error] * len(rows)
            )
        return {name: (mean, error) for name, mean, error in zip(rows["by"], rows["mean"], se, strict=True)}
    if "unit" in rows:
        table = rows.pivot(index="unit", columns="by", values="value").reindex(rows["unit"].unique())
        table = table.dropna() if drop else table
        return {name: table[name].tolist() for name in rows["by"].unique()}
    return {str(name): group["value"].tolist() for name, group in groups}


def cells(content: bytes, sep: str) -> list[list[str]]:
    """The cells of a CSV file."""
    return list(csv.reader(io.StringIO(content.decode(), newline=""), delimiter=sep))
