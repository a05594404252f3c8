"""The problem is posed once: its data are checked once, and nothing is estimated that nobody asked for."""

from __future__ import annotations

import inspect
from collections import Counter
from typing import Any

import numpy as np
import pytest

import maxmean as mm
from maxmean.mev import inference, problem
from maxmean.mev.asking import as_problem
from maxmean.mev.data import Data
from maxmean.mev.data.options import Options, refuse_unusable
from maxmean.mev.methods import Evaluation, evaluate

SAMPLES = {"A": [1.0, 2.0, 4.0, 3.0], "B": [2.0, 2.5, 3.0, 5.0], "C": [0.0, 1.0, 0.5, 0.2]}


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each method was applied to the data themselves, not to bootstrap copies."""
    seen: Counter[str] = Counter()

    def counting(method: str, data: Data, *rest: Any, **more: Any) -> Evaluation:
        seen[method] += np.ndim(data.means) == 1
        return evaluate(method, data, *rest, **more)

    monkeypatch.setattr(problem, "evaluate", counting)
    monkeypatch.setattr(inference.bias, "evaluate", counting)
    return seen


def test_compare_estimates_what_is_asked_for_and_each_once(evaluated: Counter[str]) -> None:
    together = mm.compare(SAMPLES, ["ke", "we"], resamples=10)
    assert {method: count for method, count in evaluated.items() if count} == {"ke": 1, "we": 1}
    together.to_dict(), together.sentence(), repr(together), together._repr_html_()
    assert {method: count for method, count in evaluated.items() if count} == {"ke": 1, "we": 1}


def test_one_estimate_is_one_evaluation(evaluated: Counter[str]) -> None:
    est = mm.estimate(SAMPLES, "cve", resamples=10)
    est.bias(), est.interval(), est.table()
    assert evaluated["cve"] == sum(evaluated.values()) == 1


def test_the_data_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[tuple[str, ...]] = []

    def recording(options: Options) -> None:
        checked.append(options.names)
        refuse_unusable(options)

    monkeypatch.setattr(problem, "refuse_unusable", recording)
    for ask in (mm.estimate, mm.compare):
        checked.clear()
        ask(SAMPLES, resamples=10)
        assert checked == [("A", "B", "C")]


def test_compare_takes_every_argument_of_estimate_but_the_method() -> None:
    taken = dict(inspect.signature(mm.estimate).parameters)
    del taken["method"]
    assert taken == dict(inspect.signature(as_problem).parameters)


def test_covariances_of_samples_that_line_up_are_made_once() -> None:
    posed = as_problem(list(SAMPLES.values()))
    assert posed.data.covariances is None
    assert posed.data_for("te*") is posed.data_for("ke*")
