"""Searches as their libraries hand them over, as tables: a study of Optuna, a fitted search of scikit-learn or its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import DataError
from .searches import HALVING, STEPS


def is_study(data: Any) -> bool:
    """Whether it is a study of Optuna."""
    return hasattr(data, "get_trials") and hasattr(data, "directions")


def is_cross_validation(data: Any) -> bool:
    """Whether it is a fitted search of scikit-learn, or its ``cv_results_``."""
    if hasattr(data, "cv_results_"):
        return True
    return isinstance(data, Mapping) and "params" in data and any(str(name).startswith("split0_test_") for name in data)


def refuse_one_model(data: Mapping[Any, Any]) -> None:
    """Refuse what ``cross_validate`` of scikit-learn gives: times and scores of one model, which are no options."""
    if {"fit_time", "score_time"} <= set(data):
        score = next((name for name in data if str(name).startswith("test_")), "test_score")
        raise DataError(
            f"cross_validate gives the times and scores of one model, not options: collect the scores of several, such as "
            f"{{name: cross_validate(...)[{score!r}]}}"
        )


def study_table(study: Any, value: Any) -> tuple[pa.Table, bool]:
    """The trials of a study as ``trials_dataframe`` has them, and whether its objective is minimised.

    Where every complete trial has the mean of its intermediate values, as scores of folds have, each of these is a row.
    """
    trials, count = study.get_trials(deepcopy=False), len(study.directions)
    if not trials:
        raise DataError("the study has no trials")
    columns = [f"values_{k}" for k in range(count)] if count > 1 else ["value"]
    if count > 1 and value not in columns:
        raise DataError(
            f"the study has {count} objectives, and options are compared by one: choose it with value, 'values_0' to "
            f"'values_{count - 1}'"
        )
    lower = study.directions[columns.index(value) if count > 1 else 0].name == "MINIMIZE"
    complete = [trial for trial in trials if trial.state.name == "COMPLETE"]
    steps = count == 1 and _averaged(complete)
    rows = [(trial, step) for trial in trials for step in ((steps and trial.intermediate_values) or {None: None})]
    names = dict.fromkeys(name for trial in trials for name in trial.params)
    fields: dict[str, Any] = {
        "number": [trial.number for trial, _ in rows],
        "state": [trial.state.name for trial, _ in rows],
        **{
            f"params_{name}": pa.array(
                [str(t.params[name]) if name in t.params else None for t, _ in rows], pa.string()
            )
            for name in names
        },
    }
    if steps:
        fields["step"] = [str(step) for _, step in rows]
        fields["value"] = pa.array([trial.intermediate_values.get(step) for trial, step in rows], pa.float64())
    else:
        for k, column in enumerate(columns):
            fields[column] = pa.array([trial.values[k] if trial.values else None for trial, _ in rows], pa.float64())
    return pa.table(fields, metadata={STEPS: b"1"} if steps else None), lower


def _averaged(trials: Sequence[Any]) -> bool:
    """Whether each trial's value is the mean of its intermediate values, and no parameters were tried twice."""
    if len({tuple(sorted((name, str(value)) for name, value in trial.params.items())) for trial in trials}) < len(
        trials
    ):
        return False
    reported = [np.array(list(trial.intermediate_values.values()), float) for trial in trials]
    return bool(trials) and all(
        len(each) > 1 and bool(np.isclose(each.mean(), trial.value, rtol=1e-9, atol=1e-12))
        for each, trial in zip(reported, trials, strict=True)
    )


def cross_validation_table(data: Any) -> tuple[pa.Table, float | None]:
    """The settings and their scores on each split, and the share of the data that a test set has, if that is known."""
    results = getattr(data, "cv_results_", data)
    if not isinstance(results, Mapping):
        return results, _test_share(data)  # a DataFrame
    fields: dict[str, Any] = {}
    for name, values in results.items():
        if name.startswith("param"):
            texts = [None if value is np.ma.masked else str(value) for value in values]
            fields[name] = pa.array(texts, pa.string())
        elif name.startswith("split") or name in HALVING:
            fields[name] = pa.array(np.asarray(values, float), from_pandas=True)
    return pa.table(fields), _test_share(data)


def _test_share(search: Any) -> float | None:
    """Of the data that a split uses, from a search's splitter; None: what a k-fold of so many splits has."""
    splitter = getattr(search, "cv", None)
    repeated = getattr(splitter, "cvargs", {}).get("n_splits")
    if isinstance(repeated, int):  # RepeatedKFold and its like
        return 1 / repeated
    test, train = getattr(splitter, "test_size", None), getattr(splitter, "train_size", None)
    if not isinstance(test, float):
        return None
    return test / (test + train) if isinstance(train, float) else test
