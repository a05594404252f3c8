r"""The estimators' bias, with what is not known about it.

How much an estimator overestimates depends on the true means, :math:`b(\mu) = E_\mu(\hat\mu) - \max_i \mu_i`, and most of all on
how close the best of them are. That is not known: in a close race the sample means lie further apart than the true ones, and the
bias at the sample means, which is what a bootstrap gives, is a fraction of the true one. So b is computed at many true means that
the data allow. Noise around each of them is that of resamples of the data, the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..data import Counts, Data, Summaries, summarise
from ..methods import DEFAULTS, METHODS, PAIRED, Settings, evaluate, needs_parts

NOISE = 1_000
"""Resamples around each set of means."""
_HELD = 25_000  # numbers of them, of all options
_HELD_PAIRS = 1_000_000  # covariances at once
_WEIGHED = 640  # resamples times options for which P(best) is integrated, around each set of means
_INTEGRATED, _DRAWS = 30, 5  # options up to which it is, and draws from which it is estimated, without bias, for more
_FEWEST = 8


@dataclass(frozen=True)
class EstimatorBias:
    """By how much an estimator overestimates the best mean on average; negative if it underestimates."""

    value: float
    """Averaged over the true means that the data allow."""
    interval: tuple[float, float]
    """The smallest and the largest among them: the true bias lies between these about as often as a 95% interval holds."""


def bias_range(
    data: Data,
    methods: Sequence[str],
    truths: np.ndarray,
    settings: Settings = DEFAULTS,
    *,
    variances: np.ndarray | None = None,
    resamples: int = NOISE,
    seed: int = 0,
    progress: Callable[[int], object] = lambda done: None,
) -> dict[str, EstimatorBias]:
    r"""The bias of several estimators at several possible true means.

    Parameters
    ----------
    data
        What is resampled: observations on their own or row by row, counts as binomial numbers, summaries as Gaussians. Only the
        differences of resamples from their average count, moved to each of the ``truths``.
    methods
        Names of estimators.
    truths
        Possible true means, shape ``(K, M)``.
    settings
        Of the estimators.
    variances
        Of the means, shape ``(M,)``, if they are known better than from the data of each option alone.
    resamples
        Around each of them; at most 25,000 over the number of options, fewer for ``we`` and paired methods, which take longer.
    seed
        Of the resamples and of random splits.
    progress
        Called with the number of resamples done, after each of the ``truths``.

    Examples
    --------
    Two options that are known equally well, if they are equal, and if they are two standard errors apart; the largest mean is too
    large by :math:`1/\sqrt{\pi} = 0.56` standard errors, and by 0.05:

    >>> data = Summaries(np.array([0.3, 0.0]), np.ones(2))
    >>> bias = bias_range(data, ["me"], np.array([[0.0, 0.0], [2.0, 0.0]]), resamples=4_000)["me"]
    >>> [round(end, 1) for end in bias.interval]
    [0.1, 0.6]
    """
    found: dict[str, list[float]] = {method: [] for method in methods}
    spread = np.asarray(_variances(data) if variances is None else variances)
    copies = _resampled(data, methods, settings, resamples, seed)
    noises = {method: _noise(copies, spread, _size(method, len(copies.means), len(spread))) for method in methods}
    for k, truth in enumerate(truths):
        for method, noise in noises.items():
            rng = np.random.default_rng([seed, k, 1 + list(METHODS).index(method)])
            values = evaluate(method, noise.shifted(truth), _quick(settings, len(spread)), rng=rng).value
            found[method].append(float(np.mean(values)) - float(np.max(truth)))
        progress((k + 1) * resamples // len(truths))
    return {method: EstimatorBias(float(np.mean(each)), (min(each), max(each))) for method, each in found.items()}


def _variances(data: Data) -> np.ndarray:
    if not isinstance(data, Counts):
        return np.asarray(data.variances)
    rates = (data.successes + 0.5) / (data.trials + 1)
    return rates * (1 - rates) / data.trials


def _size(method: str, resamples: int, options: int) -> int:
    """How many resamples a method gets."""
    if method != "we" or options > _INTEGRATED:
        return resamples
    return min(resamples, max(_FEWEST, _WEIGHED // options))


def _quick(settings: Settings, options: int) -> Settings:
    """Settings under which ``we`` has the same expectation and takes little longer than the others."""
    return replace(settings, draws=_DRAWS) if settings.draws is None and options > _INTEGRATED else settings


def _resampled(data: Data, methods: Sequence[str], settings: Settings, resamples: int, seed: int) -> Summaries:
    """Resamples of the data: the same whatever the methods, but for their number and what paired ones need."""
    options, pairs = int(data.means.shape[-1]), not set(PAIRED).isdisjoint(methods)
    size = min(resamples, max(_FEWEST, _HELD // options))
    if pairs:
        size = min(size, max(_FEWEST, _HELD_PAIRS // options**2))
    own = pairs and options**2 * size <= _HELD_PAIRS  # whether there is room for covariances of their own
    parts, rng = needs_parts(methods, settings), np.random.default_rng(seed)
    if isinstance(data, Counts):  # half a success more and half a failure: none is no proof that there are none
        return summarise(Counts(data.successes + 0.5, data.trials + 1).resample(size, rng), rng, parts)
    copies = data.resample(size, rng, parts, pairs=own)
    assert isinstance(copies, Summaries)
    return replace(copies, covariances=data.covariances) if pairs and not own else copies


def _noise(copies: Summaries, variances: np.ndarray, size: int) -> Summaries:
    """The first of these resamples around zero, exactly as wide as the standard errors say, so that few are enough.

    Those of few rows are too narrow anyway.
    """
    means = copies.means[:size]
    centre = means.mean(axis=0)
    drawn = np.mean(np.square(means - centre), axis=0)
    grow = np.sqrt(np.divide(variances, drawn, out=np.ones_like(drawn), where=drawn > 0))
    covariances = copies.covariances
    if covariances is not None:
        covariances = (covariances[:size] if covariances.ndim > 2 else covariances) * (grow[:, None] * grow)
    return replace(
        copies,
        means=(means - centre) * grow,
        variances=copies.variances[:size] * grow**2,
        covariances=covariances,
        parts={p: (part[:, :size] - centre) * grow for p, part in copies.parts.items()},
    )
