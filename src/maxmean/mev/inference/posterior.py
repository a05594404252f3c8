"""What every posterior of the options' means can be asked, whatever the data are."""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Posterior(Protocol):
    """All means drawn towards each other: :func:`maxmean.mev.inference.shrink` and :func:`maxmean.mev.inference.shrink_rate`."""

    @property
    def values(self) -> np.ndarray:
        """Posterior expectations, shape ``(M,)``."""

    def intervals(self, level: float = 0.95) -> np.ndarray:
        """Intervals, shape ``(M, 2)``, of which ``level`` hold on average over the options."""

    @property
    def chances(self) -> np.ndarray:
        """The probability that an option is the best, shape ``(M,)``."""

    def draw(self, size: int) -> np.ndarray:
        """True means that the data allow, shape ``(size, M)``."""
