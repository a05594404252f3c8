"""The incomplete beta function for PyTorch, against SciPy and against its own density."""

from __future__ import annotations

from itertools import product

import mpmath
import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch

from maxmean.mev.torch_special import betainc
from seldom import mostly_slow

SHAPES = (0.1, 0.5, 1.0, 2.7, 30.0, 1e3, 1e4)
FEW = [(a, b) for i, a in enumerate(SHAPES) for j, b in enumerate(SHAPES) if (i - 2 * j) % 7 in (0, 3)]
FEW += [(0.1, 1e4), (1e4, 1e4)]
"""Each shape twice in either place, and the extremes together."""


def positions(a: float, b: float) -> np.ndarray:
    """Points next to both ends and around the mean, where the function rises."""
    law = scipy.stats.beta(a, b)
    around = np.clip(law.mean() + law.std() * np.linspace(-4, 4, 17), 0, 1)
    return np.concatenate([[0.0, 1.0], np.geomspace(1e-300, 0.5, 20), 1 - np.geomspace(1e-12, 0.5, 20), around])


@pytest.mark.parametrize("shapes", mostly_slow(product(SHAPES, SHAPES), FEW), ids=str)
def test_agrees_with_scipy_to_1e_10(shapes: tuple[float, float]) -> None:
    a, b = shapes
    x = positions(a, b)
    ours = betainc(a, b, torch.as_tensor(x)).numpy()
    np.testing.assert_allclose(ours, scipy.special.betainc(a, b, x), rtol=0, atol=1e-10)


def test_the_arcsine_law_holds_up_to_the_last_digit_before_one() -> None:
    """I_x(1/2, 1/2) = 1 - (2/pi) asin(sqrt(1 - x)). SciPy 1.17 is 1e-9 off here."""
    rest = np.geomspace(2**-53, 0.5, 30)
    x = 1 - rest
    exact = 1 - 2 / np.pi * np.arcsin(np.sqrt(1 - x))
    np.testing.assert_allclose(betainc(0.5, 0.5, torch.as_tensor(x)).numpy(), exact, rtol=0, atol=1e-15)


@pytest.mark.parametrize(("a", "b", "x"), [(2.5, 0.5, 1e-4), (0.5, 2.5, 0.3), (50.0, 0.5, 0.2), (2.0, 0.5, 1e-20)])
def test_small_values_keep_their_relative_accuracy(a: float, b: float, x: float) -> None:
    exact = mpmath.betainc(a, b, 0, x, regularized=True)
    assert float(betainc(a, b, torch.tensor(x, dtype=torch.float64))) == pytest.approx(float(exact), rel=1e-12, abs=0)


def test_float32_is_float64_rounded_once() -> None:
    x = torch.linspace(0, 1, 101, dtype=torch.float32)
    ours = betainc(2.0, 0.5, x)
    assert ours.dtype == torch.float32
    assert torch.equal(ours, betainc(2.0, 0.5, x.double()).float())


def test_parameters_broadcast_against_the_positions() -> None:
    a, x = np.array([[0.5], [2.0]]), np.array([0.1, 0.4, 0.9])
    ours = betainc(torch.as_tensor(a), 3.0, torch.as_tensor(x)).numpy()
    np.testing.assert_allclose(ours, scipy.special.betainc(a, 3.0, x), rtol=1e-13)


@pytest.mark.parametrize("shapes", mostly_slow(product(SHAPES, SHAPES), FEW), ids=str)
def test_the_gradient_is_the_density(shapes: tuple[float, float]) -> None:
    a, b = shapes
    spread = scipy.stats.beta(a, b)
    x = torch.as_tensor(np.clip(spread.ppf(np.linspace(0.05, 0.95, 7)), 1e-200, 1 - 1e-12)).requires_grad_()
    betainc(a, b, x).sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), spread.pdf(x.detach().numpy()), rtol=1e-9)


def test_the_gradient_has_the_shape_of_the_positions_it_was_broadcast_from() -> None:
    x = torch.tensor([0.3, 0.6], dtype=torch.float64, requires_grad=True)
    betainc(torch.tensor([[1.0], [2.0]]), 2.0, x).sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    density = sum(scipy.stats.beta(a, 2.0).pdf(x.detach().numpy()) for a in (1.0, 2.0))
    np.testing.assert_allclose(x.grad.numpy(), density, rtol=1e-12)


@pytest.mark.parametrize("which", ["a", "b"])
def test_a_gradient_in_the_shape_parameters_is_refused_and_not_taken_for_zero(which: str) -> None:
    shapes = {"a": 2.0, "b": 3.0, which: torch.tensor(2.0, requires_grad=True)}
    with pytest.raises(ValueError, match="no gradient with respect to a and b"):
        betainc(x=torch.tensor(0.5), **shapes)
    with torch.no_grad():
        assert 0 < float(betainc(x=torch.tensor(0.5), **shapes)) < 1
