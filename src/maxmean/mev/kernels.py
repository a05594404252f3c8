r"""Kernels: the weight of an option, as a function of its statistic T <= 0.

A kernel is non-negative, increases on (-inf, 0] and tends to zero at -inf; the best option always counts in full, kappa(0).
Each is a frozen dataclass that is called with T. Parameters may be numbers or arrays that broadcast against T, JAX tracers
included: every kernel is a JAX pytree, so that ``jax.vmap`` runs over many alphas in one program.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from . import pytrees
from .arrays import Array, as_floats, beside, is_jax, is_torch, namespace, quiet, special
from .errors import KernelError
from .kernel_checks import check_kernel, require


class Kernel(ABC):
    """What all kernels share. Call one with T to get the (not yet normalised) weights."""

    name: ClassVar[str]
    static: ClassVar[bool] = False
    """Whether its fields are constants for JAX and not leaves that may be traced."""

    def __post_init__(self) -> None:
        pytrees.register(type(self))
        self._check()

    def _check(self) -> None:  # noqa: B027  (kernels without parameters have nothing to check)
        """Raise :class:`KernelError` for parameters outside their range."""

    @property
    def kinks(self) -> tuple[float, ...]:
        """The T < 0 where the kernel is not smooth: quadrature must split there."""
        return ()

    @abstractmethod
    def __call__(self, statistic: Array) -> Array:
        """Weights for the statistics T <= 0, of the same shape."""


@dataclass(frozen=True)
class Indicator(Kernel):
    r"""The T-Estimator's kernel: one for every option that the test at level alpha does not reject, zero for the rest.

    .. math:: \kappa(T) = 1\{T \ge \Phi^{-1}(\alpha)\}

    >>> Indicator(alpha=0.1)(np.array([-1.3, -1.2, 0.0]))
    array([0., 1., 1.])
    """

    alpha: Any = 0.1
    """Significance level in (0, 0.5]. At 0.5 only the largest mean counts."""

    name: ClassVar[str] = "indicator"

    def _check(self) -> None:
        require(self.alpha, lambda a: (a > 0) & (a <= 0.5), "alpha must lie in (0, 0.5]")

    @property
    def kinks(self) -> tuple[float, ...]:
        return (float(_ndtri(self.alpha)),) if self.alpha < 0.5 else ()

    def __call__(self, statistic: Array) -> Array:
        xp = namespace(statistic, self.alpha)
        (statistic,) = as_floats(xp, statistic)
        return xp.astype(statistic >= beside(_ndtri(self.alpha), statistic), statistic.dtype)


@dataclass(frozen=True)
class Gaussian(Kernel):
    r"""The Gaussian distribution function with standard deviation lambda, the K-Estimator's usual kernel.

    .. math:: \kappa(T) = \Phi(T / \lambda)

    >>> Gaussian()(np.array([-40.0, -1.0, 0.0])).round(4)
    array([0.    , 0.1587, 0.5   ])
    """

    scale: Any = 1.0
    """Standard deviation lambda > 0. Towards zero the estimate becomes the maximum, towards infinity the average."""

    name: ClassVar[str] = "gaussian"

    def _check(self) -> None:
        require(self.scale, lambda s: (s > 0) & np.isfinite(s), "scale must be positive and finite")

    def __call__(self, statistic: Array) -> Array:
        xp = namespace(statistic, self.scale)
        (statistic,) = as_floats(xp, statistic)
        if _is_one(self.scale):
            return special(xp).ndtr(statistic)
        certain, statistic = _apart(xp, statistic)
        with quiet(xp):
            weights = special(xp).ndtr(statistic / beside(self.scale, statistic))
        return xp.where(certain, xp.zeros_like(weights), weights)


@dataclass(frozen=True)
class StudentT(Kernel):
    r"""The distribution function of Student's t: heavier tails than the Gaussian, so weaker options keep more weight.

    .. math:: \kappa(T) = F_{t(\nu)}(T) = \tfrac12 I_{\nu / (\nu + T^2)}(\nu/2, 1/2)

    >>> StudentT(df=1.0)(np.array([-1.0, 0.0])).round(4)
    array([0.25, 0.5 ])
    """

    df: Any = 5.0
    """Degrees of freedom nu > 0."""

    name: ClassVar[str] = "student-t"

    def _check(self) -> None:
        require(self.df, lambda d: (d > 0) & np.isfinite(d), "df must be positive and finite")

    def __call__(self, statistic: Array) -> Array:
        xp = namespace(statistic, self.df)
        (statistic,) = as_floats(xp, statistic)
        certain, statistic = _apart(xp, statistic)
        df = beside(self.df, statistic)
        with quiet(xp):
            scaled = statistic / df**0.5
        # Far out, T is held where its square is finite, and with it the derivative.
        scaled = xp.clip(scaled, -math.sqrt(float(xp.finfo(statistic.dtype).max)) / 16, None)
        # Close to T = 0 the argument 1/(1 + T²/nu) would lose T: there the complementary integral keeps it. At T = 0 itself
        # that integral has an infinite slope, which the inner `where` keeps out of the gradient.
        ratio = scaled * scaled
        near, centre = ratio < 1, ratio == 0
        half = xp.ones_like(ratio) * 0.5
        df_half = xp.ones_like(ratio) * (df / 2)
        complement = special(xp).betainc(half, df_half, xp.where(near & ~centre, ratio / (1 + ratio), half))
        tail = special(xp).betainc(df_half, half, xp.where(near, half, 1 / (1 + ratio)))
        weights = 0.5 * xp.where(near, 1 - xp.where(centre, xp.zeros_like(ratio), complement), tail)
        return xp.where(certain, xp.zeros_like(weights), weights)


@dataclass(frozen=True)
class Epanechnikov(Kernel):
    r"""A parabola on [-1, 0]: an option more than one standard error below the best has no weight.

    .. math:: \kappa(T) = \tfrac34 (1 - T^2)\, 1\{|T| \le 1\}

    >>> Epanechnikov()(np.array([-2.0, -0.5, 0.0]))
    array([0.    , 0.5625, 0.75  ])
    """

    name: ClassVar[str] = "epanechnikov"

    @property
    def kinks(self) -> tuple[float, ...]:
        return (-1.0,)

    def __call__(self, statistic: Array) -> Array:
        near = _clipped(statistic, -1.0)
        return 0.75 * (1 - near * near)


@dataclass(frozen=True)
class Triangle(Kernel):
    r"""A straight line on [-1, 0].

    .. math:: \kappa(T) = (1 - |T|)\, 1\{|T| \le 1\}

    >>> Triangle()(np.array([-2.0, -0.25, 0.0]))
    array([0.  , 0.75, 1.  ])
    """

    name: ClassVar[str] = "triangle"

    @property
    def kinks(self) -> tuple[float, ...]:
        return (-1.0,)

    def __call__(self, statistic: Array) -> Array:
        return 1 + _clipped(statistic, -1.0)


@dataclass(frozen=True)
class Softmax(Kernel):
    r"""The exponential function of T (not of the mean, as the softmax operators of reinforcement learning have it).

    .. math:: \kappa(T) = \exp(T)

    >>> Softmax()(np.array([-np.inf, 0.0]))
    array([0., 1.])
    """

    name: ClassVar[str] = "softmax"

    def __call__(self, statistic: Array) -> Array:
        xp = namespace(statistic)
        (statistic,) = as_floats(xp, statistic)
        with quiet(xp):
            return xp.exp(statistic)


@dataclass(frozen=True)
class Beta(Kernel):
    r"""The beta distribution function, moved from [0, 1] to [-5, 0].

    .. math:: \kappa(T) = I_{1 + T/5}(a, b) \text{ for } T \ge -5, \quad 0 \text{ below}

    >>> Beta(a=1.0, b=1.0)(np.array([-6.0, -2.5, 0.0]))
    array([0. , 0.5, 1. ])
    """

    a: Any = 2.0
    """First shape parameter, positive."""
    b: Any = 0.5
    """Second shape parameter, positive."""

    name: ClassVar[str] = "beta"
    support: ClassVar[float] = 5.0

    def _check(self) -> None:
        require(self.a, lambda a: (a > 0) & np.isfinite(a), "a must be positive and finite")
        require(self.b, lambda b: (b > 0) & np.isfinite(b), "b must be positive and finite")

    @property
    def kinks(self) -> tuple[float, ...]:
        return (-self.support,)

    def __call__(self, statistic: Array) -> Array:
        xp = namespace(statistic, self.a, self.b)
        (statistic,) = as_floats(xp, statistic)
        position = 1 + _clipped(statistic, -self.support) / self.support
        a, b = (xp.ones_like(position) * beside(p, position) for p in (self.a, self.b))
        # At the ends the value is known and the slope is infinite or zero: the inner `where` keeps gradients finite.
        interior = (position > 0) & (position < 1)
        value = special(xp).betainc(a, b, xp.where(interior, position, xp.ones_like(position) * 0.5))
        return xp.where(interior, value, xp.astype(position > 0, position.dtype))


@dataclass(frozen=True)
class Custom(Kernel):
    """Any function of T as a kernel, checked on a grid when it is made.

    >>> kernel = Custom(lambda t: np.exp(2 * t))
    >>> Custom(lambda t: 0 * t + 1)
    Traceback (most recent call last):
    maxmean.mev.errors.KernelError: the kernel must tend to 0 as T goes to -inf, but is 1 at T = -1e+12 (1 at T = 0)
    """

    function: Callable[[Array], Array]
    """Called with an array of finite T <= 0; returns the weights, of the same shape. At T = -inf the weight is 0."""
    kinks_at: tuple[float, ...] = ()
    """The T < 0 where the function jumps or bends, if any: :mod:`maxmean.mev.theory` needs them to be exact."""
    label: str = "custom"

    name: ClassVar[str] = "custom"
    static: ClassVar[bool] = True  # a function is no leaf

    def _check(self) -> None:
        check_kernel(self.function)

    @property
    def kinks(self) -> tuple[float, ...]:
        return self.kinks_at

    def __call__(self, statistic: Array) -> Array:
        (statistic,) = as_floats(namespace(statistic), statistic)
        certain, statistic = _apart(namespace(statistic), statistic)
        weights = self.function(statistic)
        xp = namespace(weights)
        return xp.where(beside(certain, weights) > 0, xp.zeros_like(weights), weights)


KERNELS: dict[str, type[Kernel]] = {
    cls.name: cls for cls in (Indicator, Gaussian, StudentT, Epanechnikov, Triangle, Softmax, Beta)
}
"""Kernels by the name that the command line and the tables use."""


def as_kernel(kernel: Kernel | Callable[[Array], Array]) -> Kernel:
    """``kernel`` itself, or a plain function of T wrapped in :class:`Custom` and thereby checked."""
    if isinstance(kernel, Kernel):
        return kernel
    if not callable(kernel):
        raise KernelError(f"a kernel is a function of T, such as maxmean.mev.Gaussian(), not {kernel!r}")
    return Custom(kernel)


def _ndtri(alpha: Any) -> Any:
    """Standard normal quantile; a plain number stays one, so that it takes the type of what it meets."""
    if is_torch(alpha) or is_jax(alpha):
        return special(namespace(alpha)).ndtri(alpha)
    quantile = special(np).ndtri(alpha)
    return quantile if np.ndim(quantile) else float(quantile)


def _is_one(parameter: Any) -> bool:
    return isinstance(parameter, (int, float)) and parameter == 1


def _apart(xp: Any, statistic: Array) -> tuple[Array, Array]:
    """Where T is -inf, and T with another value there: the weight is 0, and no derivative may meet the infinity."""
    certain = statistic == -xp.inf
    return certain, xp.where(certain, xp.zeros_like(statistic), statistic)


def _clipped(statistic: Array, lowest: float) -> Array:
    xp = namespace(statistic)
    (statistic,) = as_floats(xp, statistic)
    return xp.clip(statistic, lowest, None)


pytrees.register_family(Kernel)
