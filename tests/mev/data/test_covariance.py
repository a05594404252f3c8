"""A covariance matrix of the means, given instead of observations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import maxmean as mm
from maxmean.mev.data.covariance import Covariances, read_covariances

ROWS = np.random.default_rng(0).normal([0.0, 0.3, 0.2, -0.4], 1.0, (40, 4)) + np.random.default_rng(1).normal(
    size=(40, 1)
)
NAMES = ["a", "b", "c", "d"]
MATRIX = np.cov(ROWS.T) / 40
MEANS = dict(zip(NAMES, ROWS.mean(axis=0), strict=True))
FRAME = pd.DataFrame(MATRIX, NAMES, NAMES)


@pytest.mark.parametrize("lower", [False, True])
def test_it_says_what_the_rows_say(lower: bool) -> None:
    """Means, their covariances and the number of rows are all that anything but the bias and split halves asks of pairs."""
    rows = mm.estimate(pd.DataFrame(ROWS, columns=NAMES), "ke*", lower_is_better=lower)
    given = mm.estimate(mean=MEANS, covariance=MATRIX, n=40, method="ke*", lower_is_better=lower)
    assert given.value == pytest.approx(rows.value)
    assert given.best_set() == rows.best_set()
    np.testing.assert_array_equal(given.ranks(), rows.ranks())
    np.testing.assert_allclose(given.interval(), rows.interval())
    np.testing.assert_allclose(given.shrinkage(), rows.shrinkage())
    np.testing.assert_allclose(given.probability_best(), rows.probability_best(), atol=1e-3)
    np.testing.assert_allclose(given.winner().hybrid.interval, rows.winner().hybrid.interval)
    np.testing.assert_allclose(given.statistic, rows.statistic)


def test_labels_are_matched_in_any_order_and_name_the_options() -> None:
    mixed = FRAME.loc[["d", "b", "a", "c"], ["b", "c", "a", "d"]]
    expected = mm.estimate(mean=MEANS, covariance=MATRIX).interval()
    for covariance in (FRAME, mixed, mixed.to_dict()):
        assert mm.estimate(mean=MEANS, covariance=covariance).interval() == pytest.approx(expected)
    assert mm.estimate(mean=list(MEANS.values()), covariance=FRAME).problem.names == tuple(NAMES)
    table = pd.DataFrame({"variant": NAMES, "mean": MEANS.values()})
    assert mm.estimate(table, covariance=mixed).interval() == pytest.approx(expected)
    assert mm.estimate(table.assign(se=np.sqrt(MATRIX.diagonal())), covariance=mixed).interval() == pytest.approx(
        expected
    )


def test_where_covariances_are_known_the_paired_methods_are_put_forward() -> None:
    both = mm.compare(mean=MEANS, covariance=MATRIX, resamples=20)
    assert both.answer.method == "ke*"
    assert mm.compare(pd.DataFrame(ROWS, columns=NAMES), ["te", "ke", "te*"], resamples=20).answer.method == "te*"
    assert mm.compare(mean=MEANS, se=0.1, resamples=20).answer.method == "ke"
    assert "(ke*)" in both.sentence()


def test_resamples_have_the_covariances() -> None:
    """20,000 draws: each covariance to five of its standard errors, at most 5 sqrt(2/20,000) of the product of two."""
    from maxmean.mev.data import Summaries

    data = Summaries.of(ROWS.mean(axis=0), None, None, None, NAMES, MATRIX)
    drawn = data.resample(20_000, np.random.default_rng(2)).means
    scale = np.sqrt(np.outer(MATRIX.diagonal(), MATRIX.diagonal()))
    assert (np.abs(np.cov(drawn.T) - MATRIX) < 5 * np.sqrt(2 / 20_000) * scale).all()


def test_files_with_names_and_without(tmp_path: Path) -> None:
    named, bare = tmp_path / "named.csv", tmp_path / "bare.csv"
    FRAME.loc[["c", "a", "d", "b"]].to_csv(named)
    np.savetxt(bare, MATRIX, delimiter=",")
    np.testing.assert_allclose(read_covariances(str(named)).among(NAMES), MATRIX)
    np.testing.assert_allclose(read_covariances(str(bare)).among(NAMES), MATRIX)
    assert read_covariances(str(bare)).names is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        ("hello\n", "has a line of names and no numbers"),
        ("1,2\n3\n", "row 2 of .* has 1 cells where 2 are expected"),
        ("1,x\n2,3\n", "row 1 of .*: number 2 is 'x', not a number"),
        (",a,b\na,1,0\nc,0,1\n", "no row for option 'b'"),
        (",a,a\na,1,0\na,0,1\n", "two rows for option 'a'"),
        (",a,b\na,1\nb,0\n", "row 1 of .* has 2 cells where 3 are expected"),
    ],
)
def test_files_that_are_no_matrix(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "matrix.csv"
    path.write_text(content)
    with pytest.raises(mm.DataError, match=says):
        read_covariances(str(path))


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(mm.DataError, match="there is no file"):
        read_covariances(str(tmp_path / "none.csv"))
    with pytest.raises(mm.DataError, match="cannot read"):
        read_covariances(str(tmp_path))
    (tmp_path / "bytes").write_bytes(b"\xff\xfe,1\n")
    with pytest.raises(mm.DataError, match="not UTF-8"):
        read_covariances(str(tmp_path / "bytes"))


@pytest.mark.parametrize(
    ("matrix", "says"),
    [
        ([[1.0, 0.5]], "must be a square matrix"),
        ([[1.0]], "has 1 rows for 2 options"),
        ([[1.0, "x"], [0.0, 1.0]], "matrix of numbers"),
        ([[1.0, np.nan], [np.nan, 1.0]], "the covariance of 'a' and 'b' is nan"),
        ([[1.0, 0.0], [0.0, -2.0]], r"the variance of 'b' is negative \(-2\)"),
        ([[1.0, 0.5], [0.4, 1.0]], "not symmetric: 0.5 for 'a' with 'b', but 0.4 for 'b' with 'a'"),
        ([[1.0, 3.0], [3.0, 4.0]], "the covariance of 'a' and 'b', 3, is too large for their variances, 1 and 4"),
        ([[1.0, 0.1], [0.1, 0.0]], "the covariance of 'a' and 'b', 0.1, is too large"),
        ({"a": {"a": 1.0}, "b": {"a": 0.0, "b": 1.0}}, "no entry for 'a' with 'b'"),
        (pd.DataFrame(np.eye(2), ["a", "c"], ["a", "c"]), "no column for option 'b'"),
        (pd.DataFrame(np.eye(3), ["a", "b", "c"], ["a", "b", "c"]), "a column for 'c', and there is no such option"),
    ],
)
def test_what_is_no_covariance_matrix_of_the_options(matrix: Any, says: str) -> None:
    with pytest.raises(mm.DataError, match=says):
        mm.estimate(mean={"a": 1.0, "b": 2.0}, covariance=matrix)


def test_correlations_that_cannot_be_all_at_once() -> None:
    with pytest.raises(mm.DataError, match=r"negative variance .*eigenvalue of the correlations is -0.8"):
        Covariances.of(np.array([[1, 0.9, 0.9], [0.9, 1, -0.9], [0.9, -0.9, 1]])).among(["a", "b", "c"])


def test_rounding_is_forgiven() -> None:
    """Three copies, written with four digits: the matrix is singular but for rounding, and has no negative eigenvalue here."""
    rounded = np.array([[0.3333, 0.3333, 0.3333], [0.3333, 0.3333, 0.3334], [0.3333, 0.3334, 0.3333]])
    assert np.linalg.eigvalsh(rounded)[0] < -1e-5
    matrix = Covariances.of(rounded).among(["a", "b", "c"])
    np.testing.assert_allclose(matrix, rounded, atol=2e-4)
    assert np.linalg.eigvalsh(matrix)[0] > -1e-12
    assert mm.estimate(mean=[1.0, 2.0, 3.0], covariance=rounded).best_set() == ("option 3",)


def test_it_goes_with_means_alone() -> None:
    with pytest.raises(mm.ArgumentError, match="that of observations is computed"):
        mm.estimate(ROWS, covariance=MATRIX)
    with pytest.raises(mm.ArgumentError, match="give mean"):
        mm.estimate(successes=[1, 2], trials=9, covariance=np.eye(2))
    with pytest.raises(mm.DataError, match=r"option 'a': its standard error is 0.5, but .* by the covariance matrix"):
        mm.estimate(mean=MEANS, se=0.5, covariance=MATRIX)
