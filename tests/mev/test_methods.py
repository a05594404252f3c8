"""Facts about the estimators under their public names, on every shape of data and every array library."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from maxmean import mev
from maxmean.mev.data import Counts, DataError, Samples, Summaries, summarise
from maxmean.mev.errors import ArgumentError, KernelError
from maxmean.mev.methods import METHODS, Settings, check_method, evaluate, needs_parts, parse_kernel
from seldom import mostly_slow

TABLE = np.random.default_rng(0).normal([0.0, 0.3, 0.2, -3.0], 1.0, size=(30, 4))


@pytest.mark.parametrize("method", METHODS)
def test_weights_add_up_to_one_and_none_is_negative(method: str) -> None:
    weights = evaluate(method, Samples.of(TABLE)).weights
    assert np.all(weights >= 0)
    np.testing.assert_allclose(weights.sum(), 1)


@pytest.mark.parametrize("method", ["me", "ae", "we", "te", "ke", "te*", "ke*"])
def test_the_value_is_the_weighted_mean_of_the_means(method: str) -> None:
    data = Samples.of(TABLE)
    outcome = evaluate(method, data)
    np.testing.assert_allclose(outcome.value, outcome.weights @ data.means, rtol=1e-13)


def test_names_lead_to_the_estimators() -> None:
    data, settings = Samples.of(TABLE), Settings(alpha=0.2, kernel=mev.Triangle(), draws=50)
    moments = (data.means, data.variances)
    assert evaluate("me", data).value == data.means.max()
    np.testing.assert_allclose(evaluate("ae", data).value, data.means.mean(), rtol=1e-13)
    assert evaluate("te", data, settings).value == mev.t_estimate(*moments, 0.2)
    assert evaluate("ke", data, settings).value == mev.kernel_estimate(*moments, mev.Triangle())
    expected = mev.kernel_estimate(*moments, mev.Triangle(), covariances=data.covariances)
    assert evaluate("ke*", data, settings).value == expected
    np.testing.assert_allclose(evaluate("we", data).value, mev.weighted_estimate(*moments), rtol=1e-12)
    assert evaluate("we", data, settings).weights.tolist() != evaluate("we", data).weights.tolist()


def test_splitting_methods_use_one_split_and_report_the_choice_they_made() -> None:
    """A stored split makes them deterministic up to ties, and here are none."""
    halves = np.array([[1.0, 5.0, 3.0], [4.0, 2.0, 3.5]])
    data = Summaries(halves.mean(0), np.ones(3), parts={2: halves})
    de, cve, mme = (evaluate(method, data) for method in ("de", "cve", "mme"))
    assert (de.value, de.weights.tolist()) == (2.0, [0, 1, 0])
    assert (cve.value, cve.weights.tolist()) == (1.5, [0.5, 0.5, 0])
    assert (mme.value, mme.weights.tolist()) == (3.0, [0, 0, 1])


def test_de_weights_follow_the_random_choice_between_ties() -> None:
    halves = np.array([[7.0, 7.0], [1.0, 2.0]])
    data = Summaries(halves.mean(0), np.ones(2), parts={2: halves})
    outcomes = [evaluate("de", data, rng=seed) for seed in range(60)]
    assert {(float(o.value), *o.weights.tolist()) for o in outcomes} == {(1.0, 1.0, 0.0), (2.0, 0.0, 1.0)}


@pytest.mark.parametrize("method", METHODS)
def test_batches_are_problems_side_by_side(method: str) -> None:
    """Random methods get their split from outside, and their ties never happen."""
    tables = np.random.default_rng(3).normal(size=(5, 40, 3))
    batch = summarise(Samples.of(tables), rng=0)
    assert batch.covariances is not None
    together = evaluate(method, batch)
    for k in range(5):
        one = Summaries(
            batch.means[k],
            batch.variances[k],
            covariances=batch.covariances[k],
            parts={2: batch.parts[2][:, k]},
        )
        np.testing.assert_allclose(evaluate(method, one).value, together.value[k], rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_numbers(method: str) -> None:
    data, settings = Samples.of(TABLE), Settings(draws=20, parts=3)
    first, second = (evaluate(method, data, settings, rng=9) for _ in range(2))
    assert first.value == second.value
    assert first.weights.tolist() == second.weights.tolist()


@pytest.mark.parametrize(
    "case",
    mostly_slow(product(METHODS, ("jax", "torch")), [*product(METHODS, ["torch"]), ("de", "jax"), ("ke", "jax")]),
    ids=str,
)
def test_samples_of_other_libraries_give_the_same(case: tuple[str, str]) -> None:
    """Only the random splits differ: those are drawn by each library's own generator, so they are checked by range."""
    method, kind = case
    samples: Any
    rng: Any
    if kind == "jax":
        import jax

        samples, rng = jax.numpy.asarray(TABLE, dtype="float32"), jax.random.key(0)
    else:
        import torch

        samples, rng = torch.as_tensor(TABLE), torch.Generator().manual_seed(0)
    outcome = evaluate(method, Samples.of(samples), rng=rng)
    assert type(outcome.value) is type(samples) or kind == "jax"
    if method in ("de", "cve", "mme"):
        assert TABLE.min() < float(outcome.value) < TABLE.max()
    else:
        np.testing.assert_allclose(float(outcome.value), evaluate(method, Samples.of(TABLE)).value, rtol=1e-4)


def test_what_cannot_be_done_is_said() -> None:
    with pytest.raises(DataError, match=r"te\* needs paired samples"):
        evaluate("te*", Counts(np.array([1, 2]), np.array([5, 5])))
    with pytest.raises(DataError, match="only summaries were given"):
        evaluate("de", Summaries(np.zeros(2), np.ones(2)))
    with pytest.raises(ArgumentError, match="parts must be at least 1, not 0"):
        Settings(parts=0)
    with pytest.raises(ArgumentError, match="draws must be at least 1, not 0"):
        Settings(draws=0)
    with pytest.raises(KernelError, match=r"alpha must lie in \(0, 0.5\], not 0.6"):
        Settings(alpha=0.6)


@pytest.mark.parametrize(("wrong", "near"), [("ket", "ke"), ("KE", "ke"), ("cvee", "cve"), ("T*", "te*")])
def test_an_unknown_method_is_answered_with_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(
        ArgumentError, match=f"unknown method '{wrong.replace('*', chr(92) + '*')}'; did you mean '.*e"
    ) as error:
        check_method(wrong)
    assert repr(near) in str(error.value)


def test_kernels_by_name() -> None:
    assert parse_kernel("gaussian:0.84") == mev.Gaussian(0.84)
    assert parse_kernel(" Student-T:3 ") == mev.StudentT(3.0)
    assert parse_kernel("softmax") == mev.Softmax()
    for text, sentence in {
        "gausian": "did you mean 'gaussian'",
        "softmax:1": "takes at most 0 numbers, not 1",
        "beta:1,x": "takes numbers after the colon, not '1,x'",
        "gaussian:-1": "scale must be positive",
        "zzz": "unknown kernel 'zzz'",
    }.items():
        with pytest.raises(KernelError, match=sentence):
            parse_kernel(text)


def test_only_the_needed_splits_are_asked_for() -> None:
    assert needs_parts(["me", "te"], Settings()) == ()
    assert needs_parts(["de", "mme"], Settings(parts=5)) == (2, 5)
    assert needs_parts(["cve"], Settings(parts=5)) == (2,)
