"""Configurations of the algorithms: their names, their defaults, and what they refuse."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from maxmean import mev
from maxmean.tabular.algorithms import (
    KEQ,
    TEQ,
    Algorithm,
    DoubleQ,
    MaxMinQ,
    Q,
    SelfCorrectingQ,
    VarianceTracker,
    WeightedQ,
)

ALL: list[Algorithm] = [Q(), DoubleQ(), WeightedQ(), SelfCorrectingQ(), MaxMinQ(), TEQ(), KEQ()]


def test_names() -> None:
    assert [algorithm.name for algorithm in ALL] == ["q", "dq", "wq", "scq", "mmq", "te-q", "ke-q"]


@pytest.mark.parametrize("algorithm", ALL, ids=lambda a: a.name)
def test_configurations_are_frozen_and_equal_by_value(algorithm: Algorithm) -> None:
    assert algorithm == type(algorithm)()
    assert hash(algorithm) == hash(type(algorithm)())
    with pytest.raises(dataclasses.FrozenInstanceError):
        algorithm.anything = 1  # type: ignore[attr-defined]


def test_numbers_of_tables() -> None:
    assert [algorithm.tables for algorithm in ALL] == [1, 2, 1, 1, 2, 1, 1]
    assert MaxMinQ(7).tables == 7


def test_te_q_is_ke_q_with_the_indicator() -> None:
    assert TEQ(0.05).kernel == mev.Indicator(0.05)
    assert TEQ(alpha=0.3, tracker=VarianceTracker(2.0)).tracker.variance == 2.0
    assert isinstance(TEQ(), KEQ)
    assert TEQ(0.05) != TEQ(0.1)


def test_replacing_alpha_replaces_the_kernel() -> None:
    assert dataclasses.replace(TEQ(0.1), alpha=0.4).kernel == mev.Indicator(0.4)


def test_ke_q_takes_any_kernel_and_any_function() -> None:
    assert KEQ().kernel == mev.Gaussian()
    assert KEQ(mev.StudentT(3.0)).kernel == mev.StudentT(3.0)
    own = KEQ(lambda t: np.exp(t)).kernel
    assert isinstance(own, mev.Kernel)
    assert own(np.array([-1.0]))[0] == math.exp(-1)


def test_initial_weights_of_the_variance() -> None:
    assert (VarianceTracker().omega, VarianceTracker().omega_squared) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: TEQ(0.0), "alpha must lie in (0, 0.5], not 0.0"),
        (lambda: TEQ(alpha=0.6), "alpha must lie in (0, 0.5], not 0.6"),
        (lambda: TEQ(math.nan), "alpha must lie in (0, 0.5], not nan"),
        (lambda: KEQ(mev.Gaussian(-1.0)), "scale must be positive and finite, not -1.0"),
        (lambda: SelfCorrectingQ(-1.0), "beta must be finite and not negative, not -1.0"),
        (lambda: SelfCorrectingQ(math.inf), "beta must be finite and not negative, not inf"),
        (lambda: SelfCorrectingQ(previous="episode"), "previous must be 'update' or 'step', not 'episode'"),
        (lambda: WeightedQ(0), "draws must be at least 1, not 0"),
        (lambda: WeightedQ(2.5), "draws must be a whole number, not 2.5"),  # type: ignore[arg-type]
        (lambda: MaxMinQ(0), "n must be at least 1, not 0"),
        (lambda: MaxMinQ(1.5), "n must be a whole number, not 1.5"),  # type: ignore[arg-type]
        (lambda: VarianceTracker(0.0), "the initial variance must be positive and finite, not 0.0"),
        (lambda: VarianceTracker(-1.0), "the initial variance must be positive and finite, not -1.0"),
        (lambda: VarianceTracker(math.inf), "the initial variance must be positive and finite, not inf"),
        (lambda: VarianceTracker(omega=0.0), "omega must lie in (0, 1], not 0.0"),
        (lambda: VarianceTracker(omega=1.1), "omega must lie in (0, 1], not 1.1"),
        (lambda: VarianceTracker(omega_squared=-0.5), "omega_squared must lie in (0, 1], not -0.5"),
        (lambda: VarianceTracker(omega_squared=math.nan), "omega_squared must lie in (0, 1], not nan"),
        (lambda: VarianceTracker("x"), "the initial variance must be a number, not 'x'"),  # type: ignore[arg-type]
        (lambda: VarianceTracker(omega=None), "omega must be a number, not None"),  # type: ignore[arg-type]
        (lambda: SelfCorrectingQ("x"), "beta must be a number, not 'x'"),  # type: ignore[arg-type]
        (lambda: WeightedQ(10**12), "draws must be at most 1,000,000, not 1000000000000"),
        (lambda: MaxMinQ(10**9), "n must be at most 10,000, not 1000000000"),
        (lambda: TEQ("x"), "alpha must be a number, not 'x'"),  # type: ignore[arg-type]
        (lambda: TEQ(tracker=3), "tracker must be a VarianceTracker, such as VarianceTracker(), not 3"),  # type: ignore[arg-type]
    ],
)
def test_bad_parameters(make: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        make()


@pytest.mark.parametrize(
    ("kernel", "why"),
    [
        (0.1, "a kernel is a function of T"),
        (lambda t: 0 * t + 1, "must tend to 0"),
        (lambda t: -np.exp(t), "must not be negative"),
    ],
)
def test_functions_that_are_no_kernels(kernel: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        KEQ(kernel)
