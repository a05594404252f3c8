"""Studies of Optuna and cross-validation of scikit-learn, as these libraries hand them over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import maxmean as mm
from maxmean.mev.errors import ArgumentError, DataError, DataWarning


def study(
    *trials: tuple[float | None, dict[str, Any]], directions: tuple[str, ...] = ("minimize",), **steps: Any
) -> Any:
    """A study with these values and parameters; a value of None is a trial that was pruned."""
    optuna = pytest.importorskip("optuna")
    found = optuna.create_study(directions=list(directions))
    known = {
        "lr": optuna.distributions.FloatDistribution(0.0, 1.0),
        "decay": optuna.distributions.CategoricalDistribution(("cosine",)),
    }
    for k, (value, params) in enumerate(trials):
        trial = optuna.trial.create_trial(
            state=optuna.trial.TrialState.PRUNED if value is None else optuna.trial.TrialState.COMPLETE,
            values=None if value is None else [value] * len(directions),
            params=params,
            distributions={name: known[name] for name in params},
            intermediate_values=dict(enumerate(steps["reported"][k])) if steps else {},
        )
        found.add_trial(trial)
    return found


A, B, C = {"lr": 0.1}, {"lr": 0.2}, {"lr": 0.2, "decay": "cosine"}


def test_trials_with_the_same_parameters_are_observations_of_one_option() -> None:
    """A parameter that a trial does not have makes it another option; the direction is the study's."""
    with pytest.warns(DataWarning, match="^1 of 7 trials were left out: 1 pruned$"):
        est = mm.estimate(study((3.0, A), (1.0, C), (5.0, A), (None, B), (2.0, B), (4.0, B), (2.0, C)))
    assert est.table()["mean"].to_dict() == {"lr=0.1": 4.0, "lr=0.2, decay=cosine": 1.5, "lr=0.2": 3.0}
    assert est.table()["n"].tolist() == [2, 2, 2]
    assert est.naive == 1.5
    assert est.winner().option == "lr=0.2, decay=cosine"


def test_a_study_and_its_table_are_the_same(tmp_path: Any) -> None:
    found = study((3.0, A), (5.0, A), (2.0, B), (4.0, B), directions=("maximize",))
    found.trials_dataframe().to_csv(tmp_path / "trials.csv")
    want = mm.estimate(found)
    for table in (found.trials_dataframe(), tmp_path / "trials.csv"):
        np.testing.assert_array_equal(mm.estimate(table).weights, want.weights)
        assert mm.estimate(table).problem.names == want.problem.names


def test_the_error_of_one_trial_may_be_known() -> None:
    """Its mean over n trials has that error over the root of n."""
    table = mm.estimate(study((3.0, A), (5.0, A), (2.0, B)), se=0.6).table()
    np.testing.assert_allclose(table["se"], [0.6 / np.sqrt(2), 0.6])


def test_reported_scores_whose_mean_is_the_value_are_observations() -> None:
    scores = [[0.5, 0.75, 1.0], [0.25, 0.5, 0.0]]
    found = study((0.75, A), (0.25, B), reported=scores)
    with pytest.warns(DataWarning, match="mean of its 3 intermediate values"):
        data = mm.estimate(found).problem.data
    np.testing.assert_allclose(np.asarray(data.covariances), np.cov(scores) / 3)
    with pytest.raises(DataError, match="2 of 2 parameter sets were tried once"):
        mm.estimate(study((0.75, A), (0.26, B), reported=scores))  # a learning curve, whose end is no mean


@pytest.mark.filterwarnings("ignore::maxmean.mev.DataWarning")
def test_trials_that_were_pruned_are_counted_once_however_much_they_reported() -> None:
    scores = [[0.5, 0.75, 1.0], [0.1, 0.2], [0.25, 0.5, 0.0], []]
    with pytest.warns(DataWarning, match="^2 of 4 trials were left out: 2 pruned$"):
        est = mm.estimate(study((0.75, A), (None, C), (0.25, B), (None, C), reported=scores))
    assert est.table()["mean"].to_dict() == {"lr=0.1": 0.75, "lr=0.2": 0.25}


@pytest.mark.parametrize(
    ("make", "how", "error", "message"),
    [
        (lambda: study((1.0, A), directions=("minimize", "maximize")), {}, DataError, "2 objectives.*'values_0' to 'values_1'"),
        (lambda: study(), {}, DataError, "no trials"),
        (lambda: study((1.0, A), (2.0, A), (1.0, B), (2.0, B), directions=("maximize",)), {"lower_is_better": True},
         ArgumentError, "maximises"),
        (lambda: study((1.0, A), (2.0, B)), {"se": -1.0}, ArgumentError, "positive number, not -1.0"),
        (lambda: {"a": [1.0, 2.0], "b": [2.0, 4.0]}, {"test_size": 1.5}, ArgumentError, "share of the data"),
        (lambda: {"a": [1.0, 2.0], "b": [2.0, 4.0]}, {"test_size": 0.2}, ArgumentError, "paired"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_said(make: Any, how: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mm.estimate(make(), **how)


def test_one_of_two_objectives_has_its_own_direction() -> None:
    found = study((1.0, A), (2.0, A), (4.0, B), (6.0, B), directions=("minimize", "maximize"))
    assert mm.estimate(found, value="values_0").winner().option == "lr=0.1"
    assert mm.estimate(found, value="values_1").winner().option == "lr=0.2"


RESULTS = {
    "params": [{"C": 1, "kernel": "rbf"}, {"C": 1, "kernel": "poly", "degree": 2}],
    "param_C": np.ma.masked_array([1, 1], [False, False], dtype=object),
    "param_kernel": np.ma.masked_array(["rbf", "poly"], [False, False], dtype=object),
    "param_degree": np.ma.masked_array([0, 2], [True, False], dtype=object),
    "split0_test_score": np.array([0.5, 0.25]),
    "split1_test_score": np.array([1.0, 0.75]),
    "split2_test_score": np.array([0.75, 0.0]),
    "split3_test_score": np.array([0.75, 1.0]),
    "mean_test_score": np.array([0.75, 0.5]),
}
SPLITTERS = {
    "an iterable, or a number": (None, 1 / 4),
    "RepeatedKFold": (SimpleNamespace(cvargs={"n_splits": 2}, n_repeats=2), 1 / 2),
    "ShuffleSplit": (SimpleNamespace(test_size=0.1, train_size=None), 0.1),
    "ShuffleSplit of a part": (SimpleNamespace(test_size=0.1, train_size=0.3), 1 / 4),
}


@pytest.mark.parametrize("splitter", SPLITTERS)
@pytest.mark.filterwarnings("ignore::maxmean.mev.DataWarning")
def test_variances_of_folds_are_those_of_nadeau_and_bengio(splitter: str) -> None:
    """(1/k + n_test/n_train) s², for covariances as well; masked parameters are not part of the name."""
    cv, share = SPLITTERS[splitter]
    est = mm.estimate(SimpleNamespace(cv_results_=RESULTS, cv=cv))
    scores = np.array([RESULTS[f"split{k}_test_score"] for k in range(4)])
    data = est.problem.data
    np.testing.assert_allclose(np.asarray(data.covariances), (1 / 4 + share / (1 - share)) * np.cov(scores.T))
    assert est.problem.names == ("kernel=rbf", "kernel=poly, degree=2")
    assert est.table()["mean"].tolist() == [0.75, 0.5]


@pytest.mark.filterwarnings("ignore::maxmean.mev.DataWarning")
def test_results_as_a_mapping_a_frame_or_arrays_are_the_same() -> None:
    pandas = pytest.importorskip("pandas")
    scores = np.array([RESULTS[f"split{k}_test_score"] for k in range(4)])
    want = mm.estimate(scores, names=["kernel=rbf", "kernel=poly, degree=2"], test_size=0.25).table()
    for given in (RESULTS, pandas.DataFrame(RESULTS)):
        pandas.testing.assert_frame_equal(mm.estimate(given).table(), want)


@pytest.mark.filterwarnings("ignore::maxmean.mev.DataWarning")
def test_the_last_iteration_of_halving_is_compared() -> None:
    """Scores of fits that were given less are not averaged with them."""
    double = [0, 1, 0, 1]
    twice = {name: values[double] for name, values in RESULTS.items() if isinstance(values, np.ndarray)}
    twice |= {f"split{k}_test_score": twice[f"split{k}_test_score"] * [0.1, 0.1, 1, 1] for k in range(4)}
    halved = {"params": list(RESULTS["params"]) * 2, "iter": [0, 0, 1, 1], "n_resources": [9, 9, 27, 27], **twice}
    with pytest.warns(DataWarning, match="last is compared: 2 settings, with 27"):
        est = mm.estimate(halved)
    assert est.table()["mean"].tolist() == [0.75, 0.5]
