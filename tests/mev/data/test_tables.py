"""Every table of the corpus is read as it must be, or refused with the sentence that it must be."""

from __future__ import annotations

import importlib.util
import random
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzzing import mutate
from maxmean.errors import MaxmeanError
from maxmean.mev.data import Counts, Samples, Summaries
from maxmean.mev.data.collect import read_options
from maxmean.mev.data.files import stream_table
from maxmean.mev.data.gather import gather
from maxmean.mev.data.layout import Columns, Layout, Reading
from maxmean.mev.data.options import Options, refuse_unusable
from maxmean.mev.errors import DataError
from search_tables import SEARCHES, independent_search
from tables import FILES as TABLES
from tables import File, independent

FILES = {**TABLES, **SEARCHES}

LONGEST = 10
"""Seconds for one table; the machine may be busy."""

COLUMNS = {"by", "value", "successes", "trials", "rate", "mean", "se", "sd", "n", "lower", "upper", "unit", "layout"}


def read(path: Path, said: Mapping[str, Any]) -> tuple[Options, Layout]:
    """The options of a file, and the layout that it was taken for."""
    columns = Columns(**{name: value for name, value in said.items() if name in COLUMNS})
    reading = Reading.of(**{name: value for name, value in said.items() if name not in COLUMNS})
    layouts = []
    with pytest.MonkeyPatch.context() as patch:

        def listening(*given: Any) -> Any:
            found = gather(*given)
            layouts.append(found[0])
            return found

        patch.setattr("maxmean.mev.data.collect.gather", listening)
        options = read_options(stream_table(str(path), sheet=reading.sheet), columns, reading)
    refuse_unusable(options)
    return options, layouts[0]


def numbers(options: Options) -> dict[str, Any]:
    """What was read, in the form that the corpus has it in."""
    data = options.data
    if isinstance(data, Samples):
        return {name: values.tolist() for name, values in zip(options.names, data.values, strict=True)}
    if isinstance(data, Counts):
        return dict(zip(options.names, zip(data.successes.tolist(), data.trials.tolist(), strict=True), strict=True))
    assert isinstance(data, Summaries)
    means, errors = data.means * data.unit, np.sqrt(data.variances) * data.unit
    return dict(zip(options.names, zip(means.tolist(), errors.tolist(), strict=True), strict=True))


def same(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, err_msg=name)


def by_pandas(file: File, content: bytes, layout: Layout, remarks: tuple[str, ...]) -> dict[str, Any]:
    """What an independent reader makes of it."""
    return (independent if layout.origin is None else independent_search)(file, content, layout, remarks)


def test_the_corpus_has_eighty_tables() -> None:
    assert len(FILES) >= 80


@pytest.mark.parametrize("name", FILES)
def test_a_table_is_read_or_refused_with_a_sentence(name: str, tmp_path: Path) -> None:
    file = FILES[name]
    if file.needs and importlib.util.find_spec(file.needs) is None:
        pytest.skip(f"{file.needs} is not installed")
    path = tmp_path / "table"
    path.write_bytes(file.content)
    if file.reads is None:
        with pytest.raises(DataError) as refusal:
            read(path, file.said)
        said = str(refusal.value)
        assert "\n" not in said
    else:
        options, layout = read(path, file.said)
        said = "\n".join(options.remarks)
        same(numbers(options), file.reads)
        assert options.names == tuple(file.reads)
        same(by_pandas(file, file.content, layout, options.remarks), file.reads)
        assert bool(file.says) == bool(options.remarks)
    for part in file.says:
        assert part in said


NASTY = (
    "", "NA", "-", "nan", "inf", "1e999", "1,5", "1,234", "1.234,5", "12%", "$3", "€3", "yes", "no", "true", "x", " ", "B ",
    "Total", "#", "'", "0x10", "1_000", "2024-01-01", "9" * 400, "-0", "1e-400", "\u00a0", "−1", "=1+1", "2", "0.5", "a", "b",
    "se", "n", "mean", "id", "1;2", "1|2", "٣",
)  # fmt: skip
"""What may stand in a cell."""


def damaged(file: File, luck: random.Random) -> bytes:
    """The file with a few changes: of its bytes, or of its cells, rows and columns."""
    if file.unpack is not bytes or b'"' in file.content or file.csv.get("encoding") or luck.random() < 0.4:
        return mutate(file.content, luck)
    sep = file.csv.get("sep", ",").encode()
    rows = [line.split(sep) for line in file.content.split(b"\n")]
    for _ in range(luck.choice((1, 1, 1, 2))):
        row = luck.randrange(len(rows))
        match luck.randrange(5):
            case 0 | 1:
                rows[row][luck.randrange(len(rows[row]))] = luck.choice(NASTY).encode()
            case 2:
                rows.insert(luck.randrange(len(rows)), list(rows[row]))
            case 3:
                rows[1:] = luck.sample(rows[1:], len(rows) - 1)
            case _:
                name, cell = luck.choice(NASTY).encode(), luck.choice(NASTY).encode()
                rows = [[*cells, cell if k else name] if cells != [b""] else cells for k, cells in enumerate(rows)]
    return b"\n".join(sep.join(cells) for cells in rows)


def fuzz(cases: int, seed: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """Read damaged tables: how many were read and refused, and what must not have happened."""
    luck, happened, faults = random.Random(seed), Counter[str](), []
    names = [name for name, file in FILES.items() if not file.needs or importlib.util.find_spec(file.needs)]
    good = [name for name in names if FILES[name].reads]
    path = folder / "table"
    for _ in range(cases):
        file = FILES[luck.choice(good if luck.random() < 0.8 else names)]
        path.write_bytes(damaged(file, luck))
        begin = time.monotonic()
        outcome, fault = attempt(file, path)
        happened[outcome] += 1
        faults += [fault] if fault else []
        if time.monotonic() - begin > LONGEST:
            faults.append(f"slow: {path.read_bytes()!r}")
    return happened, faults


def attempt(file: File, path: Path) -> tuple[str, str]:
    """Read one: it is refused in one line, or read as pandas reads it; anything else is a fault."""
    content = path.read_bytes()
    what = f"{content!r} with {dict(file.said)}"
    try:
        options, layout = read(path, file.said)
    except MaxmeanError as refusal:
        return "refused", f"two lines: {refusal}" if "\n" in str(refusal) else ""
    except Exception as error:
        return "crashed", f"{error!r}: {what}"
    what += f", taken for {options.taken_for} {options.remarks}"
    try:
        same(numbers(options), by_pandas(file, content, layout, options.remarks))
    except Exception as error:
        return "differs", f"{str(error)[:300]}: {what}"
    return "read", ""


def test_damaged_tables_are_refused_or_read_as_pandas_reads_them(tmp_path: Path) -> None:
    happened, faults = fuzz(300, 0, tmp_path)
    assert faults == []
    assert min(happened["read"], happened["refused"]) > 50


@pytest.mark.slow
def test_ten_thousand_damaged_tables_are_refused_or_read_as_pandas_reads_them(tmp_path: Path) -> None:
    happened, faults = fuzz(10_000, 1, tmp_path)
    assert faults == []
    assert min(happened["read"], happened["refused"]) > 1_000
