"""The algorithms as small frozen configurations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..mev import Gaussian, Indicator, Kernel
from ..mev.kernels import as_kernel
from .checks import MDPError, check_number, check_whole

MOST_DRAWS = 1_000_000
MOST_TABLES = 10_000


@dataclass(frozen=True)
class Algorithm:
    """What all algorithms share."""

    name: ClassVar[str]

    @property
    def tables(self) -> int:
        """How many Q-tables it keeps."""
        return 1


@dataclass(frozen=True)
class Q(Algorithm):
    r"""Q-learning (Watkins): :math:`y = r + \gamma \max_a Q(s', a)`."""

    name: ClassVar[str] = "q"


@dataclass(frozen=True)
class DoubleQ(Algorithm):
    r"""Double Q-learning (van Hasselt, 2010): one of two tables, drawn at random, is updated towards the other's value.

    .. math:: y = r + \gamma\, Q_B(s', \arg\max_a Q_A(s', a))

    It acts on the sum of the tables, and their average is what is reported. Ties in the choice are broken at random.
    """

    name: ClassVar[str] = "dq"

    @property
    def tables(self) -> int:
        return 2


@dataclass(frozen=True)
class WeightedQ(Algorithm):
    r"""Weighted Q-learning (D'Eramo et al., 2016): values weighted by the probability that they are the largest.

    .. math:: y = r + \gamma \sum_a w_a Q(s', a), \quad w_a = P(a \text{ is the largest under } N(Q, s^2))
    """

    draws: int = 100
    """Monte Carlo draws for the weights, from a table of 4,096 normal quantiles: far finer than 100 draws can tell."""
    name: ClassVar[str] = "wq"

    def __post_init__(self) -> None:
        check_whole("draws", self.draws, 1, MOST_DRAWS)


@dataclass(frozen=True)
class SelfCorrectingQ(Algorithm):
    r"""Self-correcting Q-learning (Zhu and Rigotti, 2021).

    .. math:: Q_\beta = Q - \beta (Q - Q_{\text{prev}}), \quad y = r + \gamma\, Q(s', \arg\max_a Q_\beta(s', a))
    """

    beta: float = 2.0
    """Strength of the correction; 0 is Q-learning."""
    previous: str = "update"
    """What Q_prev is: ``update``, each entry's value before its own last update; ``step``, the table one step ago."""
    name: ClassVar[str] = "scq"

    def __post_init__(self) -> None:
        check_number("beta", self.beta)
        if not 0 <= self.beta < math.inf:
            raise MDPError(f"beta must be finite and not negative, not {self.beta}")
        if self.previous not in ("update", "step"):
            raise MDPError(f"previous must be 'update' or 'step', not {self.previous!r}")


@dataclass(frozen=True)
class MaxMinQ(Algorithm):
    r"""MaxMin Q-learning (Lan et al., 2020): acts on and maximises the smallest of N tables; one of them is updated a step.

    .. math:: y = r + \gamma \max_a \min_i Q_i(s', a)
    """

    n: int = 2
    """Number of tables; 1 is Q-learning."""
    name: ClassVar[str] = "mmq"

    def __post_init__(self) -> None:
        check_whole("n", self.n, 1, MOST_TABLES)

    @property
    def tables(self) -> int:
        return self.n


@dataclass(frozen=True)
class VarianceTracker:
    r"""The running variance of a Q-value (D'Eramo et al., 2019), with the effective sample size of its learning rates.

    .. math:: \omega \leftarrow (1 - \tau) \omega + \tau, \quad \omega_2 \leftarrow (1 - \tau)^2 \omega_2 + \tau^2, \quad
        v \leftarrow (1 - \tau)(v + \tau (y - Q)^2), \quad \operatorname{Var} Q = v \omega_2 / \omega^2
    """

    variance: float = 1.0
    """Initial process variance v > 0. The paper leaves it open, and it matters early on."""
    omega: float = 1.0
    """Initial omega in (0, 1]."""
    omega_squared: float = 1.0
    """Initial omega_2 in (0, 1]."""

    def __post_init__(self) -> None:
        check_number("the initial variance", self.variance)
        if not 0 < self.variance < math.inf:
            raise MDPError(f"the initial variance must be positive and finite, not {self.variance}")
        for what, value in (("omega", self.omega), ("omega_squared", self.omega_squared)):
            check_number(what, value)
            if not 0 < value <= 1:
                raise MDPError(f"{what} must lie in (0, 1], not {value}")


@dataclass(frozen=True)
class KEQ(Algorithm):
    r"""KE-Q-learning: the K-estimate of the largest value, from the values and their running variances.

    .. math:: y = r + \gamma \operatorname{KE}_a Q(s', a)
    """

    kernel: Kernel | Callable[[Any], Any] = Gaussian()  # noqa: RUF009  (frozen)
    """Any kernel of :mod:`maxmean.mev`, or a function of T."""
    tracker: VarianceTracker = field(default=VarianceTracker(), kw_only=True)  # so that TEQ(0.05) means alpha
    name: ClassVar[str] = "ke-q"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernel", as_kernel(self.kernel))
        self._check_tracker()

    def _check_tracker(self) -> None:
        if not isinstance(self.tracker, VarianceTracker):
            raise MDPError(f"tracker must be a VarianceTracker, such as VarianceTracker(), not {self.tracker!r}")


@dataclass(frozen=True)
class TEQ(KEQ):
    """TE-Q-learning: KE-Q-learning with the T-Estimator's kernel. alpha = 0.5 is Q-learning."""

    alpha: float = 0.1
    """Significance level in (0, 0.5]."""
    kernel: Kernel | Callable[[Any], Any] = field(init=False, default=Indicator(0.1))
    name: ClassVar[str] = "te-q"

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha)
        object.__setattr__(self, "kernel", Indicator(self.alpha))
        self._check_tracker()
