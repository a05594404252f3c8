"""The special functions that the kernels need, for PyTorch tensors.

PyTorch has no incomplete beta function, and its normal distribution function is 0 below -8.4.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.special import log_ndtr, ndtri

__all__ = ["betainc", "log_ndtr", "ndtr", "ndtri"]

_TERMS = 500  # the continued fraction needs about sqrt(max(a, b)) terms: enough for a, b up to 1e5
_TINY = 1e-300


def ndtr(x: torch.Tensor) -> torch.Tensor:
    r"""Standard normal distribution function :math:`\Phi(x)`, to full relative accuracy in the lower tail.

    >>> float(ndtr(torch.tensor(0.0)))
    0.5
    """
    return 0.5 * torch.erfc(x * -math.sqrt(0.5))


def betainc(a: Any, b: Any, x: torch.Tensor) -> torch.Tensor:
    r"""Regularised incomplete beta function :math:`I_x(a, b)`, differentiable in ``x``, computed in float64.

    The continued fraction of DiDonato and Morris (1992, eq. 9) by Lentz's method, on the side of the mean where it converges
    fast; the other side by :math:`I_x(a, b) = 1 - I_{1-x}(b, a)`. There is no derivative in ``a`` and ``b``, as in JAX.

    >>> float(betainc(2.0, 3.0, torch.tensor(0.5, dtype=torch.float64)))
    0.6875
    """
    a, b = (torch.as_tensor(p, dtype=torch.float64, device=x.device) for p in (a, b))
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
        raise ValueError("the incomplete beta function has no gradient with respect to a and b; detach them")
    return _BetaInc.apply(a, b, x)  # type: ignore[no-untyped-call]


class _BetaInc(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(a, b, x)
        a, b, z = torch.broadcast_tensors(a, b, x.to(torch.float64))  # type: ignore[no-untyped-call]
        swap = z > (a + 1) / (a + b + 2)
        p, q, y = torch.where(swap, b, a), torch.where(swap, a, b), torch.where(swap, 1 - z, z)
        value = torch.exp(_log_density(p, q, y) + torch.log(y) + torch.log1p(-y)) * _fraction(p, q, y) / p
        value = torch.where(y <= 0, torch.zeros_like(y), value)
        return torch.where(swap, 1 - value, value).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[None, None, torch.Tensor]:
        a, b, x = ctx.saved_tensors
        z = x.to(torch.float64).clamp(1e-300, 1 - 1e-16)
        density = torch.exp(_log_density(a, b, z)).to(x.dtype)
        inside = (x > 0) & (x < 1)
        slope = gradients[0] * torch.where(inside, density, torch.zeros_like(density))
        return None, None, slope.sum_to_size(x.shape)


def _log_density(a: torch.Tensor, b: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    log_beta = torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
    return torch.xlogy(a - 1, x) + torch.special.xlog1py(b - 1, -x) - log_beta


def _fraction(a: torch.Tensor, b: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The continued fraction 1/(1+ d1/(1+ d2/(1+ ...))) with the beta function's coefficients d."""
    c = torch.ones_like(x)
    d = 1 / _nonzero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        previous = value
        for coefficient in (even, odd):
            d = 1 / _nonzero(1 + coefficient * d)
            c = _nonzero(1 + coefficient / c)
            value = value * d * c
        if torch.equal(value, previous):
            break
    return value


def _nonzero(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.abs() < _TINY, torch.full_like(x, _TINY), x)
