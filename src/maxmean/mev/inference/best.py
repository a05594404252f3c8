"""The probability that an option is the best one."""

from __future__ import annotations

import numpy as np

from ..data import Data
from ..data.moments import matrix_root
from ..probabilities import best_probabilities, integrable

_CHUNK = 4_000_000  # numbers held at once
_DRAWN = 1_000_000_000  # numbers drawn in all, half a minute's


def probability_best(data: Data, *, draws: int = 200_000, seed: int = 0) -> np.ndarray:
    """P(an option's mean is the largest), under a Gaussian posterior with a flat prior; ties are shared equally.

    Independent options are integrated exactly, unless there are hundreds with very different variances. Those are
    simulated (with fewer draws for thousands), and so are paired ones, with their covariance: the standard error is at
    most ``0.5 / sqrt(draws)``.

    >>> from maxmean.mev import Samples
    >>> probability_best(Samples.of([[1.0, 3.0], [1.0, 3.0]]))
    array([0.5, 0.5])
    """
    if data.covariances is None and integrable(data.variances):
        return best_probabilities(data.means, data.variances)
    rng = np.random.default_rng(seed)
    root = None if data.covariances is None else matrix_root(data.covariances)
    if root is None:
        draws = min(draws, _DRAWN // len(data.means))
    wins, done = np.zeros(len(data.means)), 0
    while done < draws:
        size = min(max(1, _CHUNK // len(wins)), draws - done)
        noise = rng.standard_normal((size, len(wins)))
        values = data.means + (noise * np.sqrt(data.variances) if root is None else noise @ root)
        best = values == values.max(axis=-1, keepdims=True)
        wins += (best / best.sum(axis=-1, keepdims=True)).sum(axis=0)
        done += size
    return wins / draws
