"""The probability that an option is the best one."""

from __future__ import annotations

import numpy as np

from ..data import Data
from ..data.moments import matrix_root
from ..probabilities import best_probabilities, integrable
from .shrinkage import first_copies

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
    means, variances, root = data.means, data.variances, None
    if data.covariances is None:
        draws = min(draws, _DRAWN // len(means))
    else:  # copies share what one of them would win, however their draws are rounded
        kept, which = np.unique(first_copies(means, data.covariances), return_inverse=True)
        means, root = means[kept], matrix_root(data.covariances[np.ix_(kept, kept)])
    wins, done = np.zeros(len(means)), 0
    while done < draws:
        size = min(max(1, _CHUNK // len(wins)), draws - done)
        noise = rng.standard_normal((size, len(wins)))
        values = means + (noise * np.sqrt(variances) if root is None else noise @ root)
        best = values == values.max(axis=-1, keepdims=True)
        wins += (best / best.sum(axis=-1, keepdims=True)).sum(axis=0)
        done += size
    return wins / draws if root is None else (wins / draws / np.bincount(which))[which]
