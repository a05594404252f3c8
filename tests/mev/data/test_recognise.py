"""Recognising what the columns of a table mean."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from maxmean.mev.data.layout import Columns
from maxmean.mev.data.recognise import recognise


@pytest.mark.parametrize(
    ("columns", "said", "taken_for"),
    [
        ({"variant": ["a", "a", "b", "b"], "score": [1, 2, 3, 4]}, {}, "long: .*'variant'.*'score'"),
        ({"Arm": ["a", "a", "b", "b"], "REWARD ": [1, 2, 3, 4]}, {}, "long: .*'Arm'.*'REWARD '"),
        ({"city": ["a", "a", "b", "b"], "kg": [1, 2, 3, 4]}, {}, "long: .*'city'.*'kg'"),
        ({"kg": [1, 1, 2, 2], "cm": [1, 2, 3, 4]}, {"by": "kg"}, "long: .*'kg'.*'cm'"),
        ({"a": ["1", "x", "2"], "b": ["1", "2", "3"], "c": ["x", "x", "y"]}, {"by": "c", "value": "b"}, "long: .*'c'.*'b'"),
        ({"2023": [1, 2], "2024": [3, 4]}, {}, "wide: 2 columns, one an option: '2023', '2024'"),
        ({"": [0, 1], "a": [1, 2], "b": [3, 4]}, {}, "wide: 2 columns"),
        ({"day": ["Mon", "Tue"], "a": [1, 2], "b": [3, 4]}, {"layout": "wide", "by": "day"}, "wide: 2 columns.*'a', 'b'"),
        ({"ad": ["a", "b"], "clicks": [1, 2], "impressions": [3, 4]}, {}, "counts: .*'ad'.*'clicks'.*'impressions'"),
        ({"clicks": [1, 2], "n": [3, 4]}, {}, "counts: one option a row"),
        ({"x": [1, 2], "y": [3, 4]}, {"successes": "x", "trials": "y"}, "counts: .*'x'.*'y'"),
        ({"x": ["a", "b"], "mean": [3, 4], "sem": [1, 1]}, {}, "summaries: .*'x'.*'mean'.*'sem'"),
        ({"x": ["a", "b"], "mean": [3, 4], "sd": [1, 1], "count": [3, 3]}, {}, "summaries: .*'sd' / sqrt.'count'"),
        ({"x": ["a", "b"], "avg": [3, 4], "sd": [1, 1], "se": [1, 1], "n": [9, 9]}, {"sd": "sd"}, "summaries: .*'sd' / sqrt"),
    ],
)  # fmt: skip
def test_columns_are_recognised(columns: Mapping[str, Sequence[object]], said: dict[str, str], taken_for: str) -> None:
    (batch,) = pa.table(dict(columns)).to_batches()
    assert re.match(taken_for, str(recognise(batch, Columns(**said))))
