"""Scores over many seeds: the interquartile mean, with stratified-bootstrap bands (Agarwal et al., 2021). Every seed counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RESAMPLES = 2_000


def iqm(scores: np.ndarray, axis: int = -1) -> np.ndarray:
    """The interquartile mean: the mean of the middle half, without a quarter of the scores (rounded down) at each end.

    >>> float(iqm(np.array([0.0, 1.0, 2.0, 100.0])))
    1.5
    """
    n = scores.shape[axis]
    cut = n // 4
    ordered = np.partition(scores, (cut, n - cut - 1), axis)
    return np.asarray(np.moveaxis(ordered, axis, 0)[cut : n - cut].mean(axis=0))


def band(
    strata: Sequence[np.ndarray], rng: np.random.Generator, *, level: float = 0.95, resamples: int = RESAMPLES
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The IQM over all strata with its percentile-bootstrap band: (value, low, high).

    A stratum is what belongs together, such as a game: an array [seeds, ...] whose further axes (steps, say) are the same for
    all. Seeds are drawn anew within each stratum, whole: a seed's steps stay together.
    """
    picks = [np.sort(rng.integers(len(scores), size=(resamples, len(scores)))) for scores in strata]
    # The order of the seeds does not matter, and of a few seeds there are but few resamples: 126 of five.
    different, which = np.unique(np.concatenate(picks, axis=1), axis=0, return_inverse=True)
    edges = np.cumsum([len(scores) for scores in strata])[:-1]
    drawn = [scores[part] for scores, part in zip(strata, np.split(different, edges, axis=1), strict=True)]
    value = iqm(np.concatenate(list(strata)), axis=0)
    means = iqm(np.concatenate(drawn, axis=1), axis=1)[which]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return value, low, high
