"""How learning rates and exploration fall: one formula for all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .checks import MDPError, check_number


@dataclass(frozen=True)
class Schedule:
    r"""A rate that falls with the number n >= 1 of times that it was used for a pair or a state, this time included.

    .. math:: \rho(n) = \text{scale} \cdot \left(\frac{\text{delay} + 1}{\text{delay} + n}\right)^{\text{power}}

    >>> Schedule(scale=0.1, delay=100, power=1)(1), round(Schedule(scale=1, power=0.5)(4), 3)
    (0.1, 0.5)
    """

    scale: float
    """The rate at n = 1, in (0, 1]; a rate of exploration may be 0."""
    delay: float = 0.0
    """The larger, the later it falls."""
    power: float = 0.0
    """0 is constant; Robbins and Monro's conditions need more than 0.5 and at most 1."""

    def __post_init__(self) -> None:
        for what, value in (("a rate", self.scale), ("delay", self.delay), ("power", self.power)):
            check_number(what, value)
        if not 0 <= self.scale <= 1:
            raise MDPError(f"a rate must lie in [0, 1], not {self.scale}")
        for what, value in (("delay", self.delay), ("power", self.power)):
            if not 0 <= value < math.inf:
                raise MDPError(f"{what} must be finite and not negative, not {value}")

    def __call__(self, n: int) -> float:
        return self.scale * ((self.delay + 1) / (self.delay + n)) ** self.power


def constant(rate: float) -> Schedule:
    """The same rate always."""
    return Schedule(rate)


def polynomial(power: float, scale: float = 1.0) -> Schedule:
    """Rate that falls as scale / n^power."""
    return Schedule(scale, 0.0, power)


CLIFF_LEARNING_RATE = Schedule(0.1, 100.0, 1.0)
"""0.1 (100 + 1) / (100 + n), by the updates of the pair: the paper's rate for Cliff Walking."""

INVERSE_ROOT = Schedule(1.0, 0.0, 0.5)
"""1 / sqrt(n), by the visits of the state: the paper's annealed exploration."""
