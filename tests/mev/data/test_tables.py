"""Every table of the corpus is read as it must be, or refused with the sentence that it must be."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxmean.mev.data import Counts, Samples, Summaries
from maxmean.mev.data.collect import read_options
from maxmean.mev.data.files import stream_table
from maxmean.mev.data.gather import gather
from maxmean.mev.data.layout import Columns, Layout, Reading
from maxmean.mev.data.options import Options, refuse_unusable
from maxmean.mev.errors import DataError
from tables import FILES, independent

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
        options = read_options(stream_table(str(path)), columns, reading)
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
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, err_msg=name)


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
        same(independent(file, file.content, layout, options.remarks), file.reads)
        assert bool(file.says) == bool(options.remarks)
    for part in file.says:
        assert part in said
