"""Tables of searches and leaderboards, a part of the corpus: trials of Optuna, cross-validation, a row a model.

The columns are those of ``study.trials_dataframe().to_csv()`` and of ``DataFrame(search.cv_results_).to_csv()``.
"""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pandas as pd

from tables import MISSING, File, _number, _without_comments, refused, text

_HEAD = "number,value,datetime_start,duration,params_depth,params_lr,state\n"


def _trials(*rows: str) -> str:
    begun = ",2026-01-31 10:00:00.5,0 days 00:00:01.2,"
    cells = [row.split() for row in rows]
    return _HEAD + "".join(
        f"{k},{value}{begun}{depth},{lr},{state}\n" for k, (value, depth, lr, state) in enumerate(cells)
    )


DONE = "COMPLETE"
REPEATED = _trials(
    f"1 2 0.1 {DONE}",
    f"3 4 0.123456 {DONE}",
    f"2 2 0.1 {DONE}",
    f"5 4 0.123456 {DONE}",
    f"9 4 0.1 {DONE}",
    f"7 4 0.1 {DONE}",
)
REPEATED_READ = {"depth=2, lr=0.1": [1, 2], "depth=4, lr=0.1235": [3, 5], "depth=4, lr=0.1": [9, 7]}
CUT = REPEATED + "6,,x,x,4,0.1,PRUNED\n7,1,x,x,4,0.1,PRUNED\n8,,x,x,2,0.1,FAIL\n9,,x,x,2,0.1,RUNNING\n"
SINGLE = _trials(f"1 2 0.1 {DONE}", f"3 4 0.1 {DONE}", f"2 2 0.2 {DONE}", f"3 4 0.1 {DONE}", f"6 4 0.1 {DONE}")
SINGLE_READ = {"depth=2, lr=0.1": (1, 0.5), "depth=4, lr=0.1": (4, 0.5 / math.sqrt(3)), "depth=2, lr=0.2": (2, 0.5)}
TWO = REPEATED.replace("value", "values_0").replace("duration", "values_1").replace("0 days 00:00:01.2", "4")

_SPLITS = "split0_test_score,split1_test_score,split2_test_score"
_CV = f"mean_fit_time,param_C,param_kernel,params,{_SPLITS},mean_test_score,rank_test_score\n"
FOLDS = _CV + (
    "0.01,0.1,rbf,\"{'C': 0.1, 'kernel': 'rbf'}\",0.5,0.75,0.25,0.5,2\n"
    "0.01,1.0,rbf,\"{'C': 1.0, 'kernel': 'rbf'}\",0.5,1,0.75,0.75,1\n"
)  # fmt: skip
_FACTOR = math.sqrt(1 + 3 * (1 / 3) / (2 / 3))  # three folds, each a third of the data
_SD = 0.25
FOLDS_READ = {"C=0.1": (0.5, _FACTOR * _SD / math.sqrt(3)), "C=1": (0.75, _FACTOR * _SD / math.sqrt(3))}
_HALVES = {name: (mean, se / _FACTOR * 2) for name, (mean, se) in FOLDS_READ.items()}  # sqrt(1 + 3)
_AGAIN = FOLDS + "0.01,0.1,rbf,x,1,1,1,1,1\n"
_FAILED = FOLDS + "0.01,9,rbf,x,,,,,3\n"
_HEAD_CV, *_ROWS_CV = FOLDS.splitlines()
HALVED = "\n".join((f"iter,n_resources,{_HEAD_CV}", *(f"0,20,{row}" for row in _AGAIN.splitlines()[1:]),
                    *(f"1,60,{row}" for row in _ROWS_CV), ""))  # fmt: skip
ANSWERS = "model,q1,q2,q3,q4,q5\na,1,0,1,1,0\nb,1,1,1,0,1\nc,0,0,1,0,0\n"
ANSWERS_READ = {"a": [1, 0, 1, 1, 0], "b": [1, 1, 1, 0, 1], "c": [0, 0, 1, 0, 0]}


def _beside(table: str, *cells: str) -> str:
    """The table with more cells after the first of each row."""
    lines = (line.partition(",") for line in table.splitlines())
    return "".join(f"{name},{more},{rest}\n" for (name, _, rest), more in zip(lines, cells, strict=True))


SEARCHES: dict[str, File] = {
    "trials, repeated": text(REPEATED, REPEATED_READ),
    "trials, an index": text("".join(f"{k or ''},{line}\n" for k, line in enumerate(REPEATED.splitlines())), REPEATED_READ),
    "trials, states as Python writes them": text(REPEATED.replace(DONE, "TrialState.COMPLETE"), REPEATED_READ),
    "trials, pruned and failed": text(CUT, REPEATED_READ, "4 of 10 trials were left out: 2 pruned, 1 failed, 1 still running"),
    "trials, a part of them": text(CUT, {"lr=0.1235": [3, 5], "lr=0.1": [9, 7]}, "2 of 6 trials", where="params_depth = 4"),
    "trials, once": refused(
        SINGLE, "2 of 3 parameter sets were tried once", "--se 1.7, by those that were tried more often",
    ),
    "trials, once, error known": text(SINGLE, SINGLE_READ, se="0.5"),
    "trials, none complete": refused(REPEATED.replace(DONE, "FAIL"), "no trial is complete (6 failed)"),
    "trials, two objectives": refused(TWO, "2 objectives, 'values_0', 'values_1'", "--value values_0"),
    "trials, one of two": text(
        TWO, {name: [4, 4] for name in REPEATED_READ}, value="values_1",
    ),
    "trials, one setting": refused(
        _trials(f"1 2 0.1 {DONE}", f"3 2 0.1 {DONE}"), "all rows have the same parameters",
    ),
    "folds": text(FOLDS, FOLDS_READ, "standard errors are 1.58 times", "3-fold", "--test-size"),
    "folds, halves": text(FOLDS, _HALVES, "2.00 times", "test sets of 0.5", test_size=0.5),
    "folds, taken for independent": text(
        FOLDS, {"C=0.1": (0.5, _SD / math.sqrt(3)), "C=1": (0.75, _SD / math.sqrt(3))}, test_size=0,
    ),
    "folds, a setting twice": text(
        _AGAIN, {"C=0.1": (0.75, _FACTOR * 0.125 / math.sqrt(3)), "C=1": FOLDS_READ["C=1"]}, "1 settings were repeated", "1.58",
    ),
    "folds, halving": text(HALVED, FOLDS_READ, "2 iterations of a halving search", "2 settings, with 60"),
    "folds, halving, first": text(
        HALVED, {"C=0.1": (0.75, _FACTOR * 0.125 / math.sqrt(3)), "C=1": FOLDS_READ["C=1"]}, "1 settings were repeated",
        where="iter = 0",
    ),
    "folds, halving to one": refused(
        HALVED + f"2,180,{_ROWS_CV[0]}\n", "one setting is in the last iteration", '--where "iter = 1"',
    ),
    "folds, halving, no iteration": refused(HALVED.replace("\n1,60", "\n,60"), "'iter' is empty in 2 of 5 rows"),
    "folds, a fit failed": refused(_FAILED, "1 of 3 settings have no score", "--drop-missing"),
    "folds, a failed fit dropped": text(_FAILED, FOLDS_READ, "1 of 3 settings have no score and were left", drop_missing=True),
    "folds, two scores": refused(FOLDS.replace("mean_test_score", "split0_test_f1"), "several scores, 'score', 'f1'"),
    "folds, a split twice": refused(FOLDS.replace("split0_", "split1_"), "column 'split1_test_score' appears twice"),
    "folds, unknown score": refused(FOLDS, "no score 'f1' (there are 'score')", value="f1"),
    "answers": text(ANSWERS, ANSWERS_READ),
    "answers in words": text(ANSWERS.replace(",1", ",True").replace(",0", ",False"), ANSWERS_READ),
    "answers, some missing": text(
        ANSWERS.replace("b,1,", "b,,"), {name: values[1:] for name, values in ANSWERS_READ.items()},
        "1 of 5 columns was left out, since a value is missing there ('q1')", drop_missing=True,
    ),
    "answers, one missing": refused(
        ANSWERS.replace("b,1,", "b,,"), "row 2: column 'q1' is empty, and 1 of 5 columns lack", "--drop-missing"
    ),
    "answers, no name": refused(ANSWERS + ",1,1,1,1,1\n", "row 4: column 'model' names no option, in 1 of 4 rows"),
    "answers, and their mean": text(
        _beside(ANSWERS, "params,q0,average,share", "7,0.5,0.5,0.6", "13,1,0.9,0.8", "70,0,0.1,0.2"),
        {"a": [0.5, *ANSWERS_READ["a"]], "b": [1, *ANSWERS_READ["b"]], "c": [0, *ANSWERS_READ["c"]]},
        "'params' holds other numbers than from 0 to 1 and is no unit", "'average' sums the others up, by its name,",
        "'share' is the mean of the others and is no unit", "'q0' counts as a unit", layout="transposed",
    ),
    "answers, none of a model": refused(ANSWERS + "d,,,,,\n", "1 of 4 options have no score"),
    "answers, some models": text(
        ANSWERS + "d,,,,,\n", {"a": ANSWERS_READ["a"], "c": ANSWERS_READ["c"]}, options=["a", "c"], layout="transposed"
    ),
    "scores of models": refused(ANSWERS.replace("a,1", "a,0.5"), "--layout transposed"),
    "scores of models, said": text(
        ANSWERS.replace("a,1", "a,0.5"), {**ANSWERS_READ, "a": [0.5, 0, 1, 1, 0]}, "'q1' counts as a unit",
        layout="transposed",
    ),
    "few answers": refused("model,q1,q2\na,1,0\nb,1,1\n", "--layout transposed"),
    "a number for all": text("model,mean\na,1\nb,2\n", {"a": (1, 0.5), "b": (2, 0.5)}, mean="mean", se="0.5"),
}  # fmt: skip


def independent_search(file: File, content: bytes, layout: Any, remarks: tuple[str, ...]) -> dict[str, Any]:
    """What pandas and plain Python read from a search or a transposed table."""
    kind, said = layout.origin.kind, file.said
    names = {*layout.origin.roles.values(), *layout.origin.options} - {"score"}
    plain = content if b'"' in content else _without_comments(content, {"sep": ","}, names)
    frame = pd.read_csv(io.BytesIO(plain), dtype=str, keep_default_na=False, index_col=False)
    if "where" in said:
        name, _, value = said["where"].partition(" = ")
        frame = frame[frame[name].str.strip() == value]

    def column(name: str) -> list[float]:
        remark = next((each for each in remarks if each.startswith(f"column {name!r}: ")), "")
        return [np.nan if cell.strip().lower() in MISSING else _number(cell, remark) for cell in frame[name]]

    if kind == "trials":
        frame = frame[[state.split(".")[-1].upper() == DONE for state in frame["state"]]]
        rows = pd.DataFrame({"by": _named(frame, "params_"), "value": column(layout.origin.roles["value"])})
        assert said.get("drop_missing") or not rows["value"].isna().any()
        groups = rows.groupby("by", sort=False)["value"]
        if "se" in said:
            return {str(name): (each.mean(), float(said["se"]) / math.sqrt(len(each))) for name, each in groups}
        return {str(name): each.tolist() for name, each in groups}
    if {"iter", "n_resources"} <= set(frame):
        frame = frame[frame["iter"] == max(frame["iter"], key=float)]
    scores = pd.DataFrame({name: column(name) for name in layout.origin.options})
    if kind == "transposed":
        scores.index = pd.Index([cell.strip() for cell in frame[layout.origin.roles["by"]]])
    else:
        scores = scores.groupby(_named(frame, "param_"), sort=False).agg(lambda each: each.mean(skipna=False))
    if said.get("options"):
        scores = scores[scores.index.isin(said["options"])]
    if said.get("drop_missing"):
        if kind == "transposed":  # a row without a name goes before its gaps cost others their columns
            scores = scores[~scores.index.str.lower().isin(MISSING)]
        scores = scores.dropna(how="all").dropna(axis=1)
    assert not scores.isna().to_numpy().any()
    assert scores.index.is_unique
    if kind == "transposed":
        return {str(name): row.tolist() for name, row in scores.iterrows()}
    k = scores.shape[1]
    share = said.get("test_size", 1 / k)
    largest = float(scores.abs().to_numpy().max()) or 1.0  # whose square may be no number
    errors = (scores / largest).std(axis=1) * largest / math.sqrt(k) * math.sqrt(1 + k * share / (1 - share))
    return {str(name): (float(scores.loc[name].mean()), float(errors[name])) for name in scores.index}


def _named(frame: pd.DataFrame, prefix: str) -> list[str]:
    """The settings: those that differ, floats to four digits unless two become one."""
    if not any(name.startswith(prefix) for name in frame.columns):
        return frame["params"].tolist()
    columns = {}
    for name in frame.columns:
        if name.startswith(prefix):
            cells = [
                "" if c.strip().lower() in MISSING - {"none"} or c.strip() == "none" else c.strip() for c in frame[name]
            ]
            columns[name[len(prefix) :]] = _short(cells)
    columns = {name: cells for name, cells in columns.items() if len(set(cells)) > 1}
    return [
        ", ".join(f"{name}={cells[k]}" for name, cells in columns.items() if cells[k]).strip() or "no parameters"
        for k in range(len(frame))
    ]


def _short(cells: list[str]) -> list[str]:
    exact, short = [], []
    for cell in cells:
        try:
            number = float(cell) if "." in cell or "e" in cell else None
        except ValueError:
            number = None
        exact.append(number)
        short.append(cell if number is None else f"{number:.4g}")
    numbers = {number for number in exact if number is not None}
    shown = {name for name, number in zip(short, exact, strict=True) if number is not None}
    return short if len(shown) == len(numbers) else cells
