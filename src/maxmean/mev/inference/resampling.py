"""The bootstrap: bias and standard error of every estimator of the maximum mean.

The mean of the *selected* option is another quantity than the maximum mean; :mod:`maxmean.mev.inference.winner` treats it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..data import Data, Samples
from ..data.samples import EXACT_RESAMPLING
from ..methods import DEFAULTS, METHODS, PAIRED, Settings, evaluate, needs_parts

RESAMPLES = 2_000
_CHUNK = 4_000_000  # numbers held at once
_FEW_PARTS = 16


@dataclass(frozen=True)
class Bootstrap:
    """Errors of an estimator on bootstrap resamples, where the truth is known: the sample means."""

    method: str
    value: float
    """The estimate itself."""
    errors: np.ndarray
    """Estimates from resamples minus the largest sample mean, one per resample."""

    @property
    def bias(self) -> float:
        """Bootstrap estimate of the estimator's bias."""
        return float(self.errors.mean())

    @property
    def standard_error(self) -> float:
        """Bootstrap estimate of the estimator's standard deviation."""
        return float(self.errors.std(ddof=1))


def bootstrap(
    data: Data,
    methods: Sequence[str],
    settings: Settings = DEFAULTS,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    values: Mapping[str, float] | None = None,
    progress: Callable[[int], object] = lambda done: None,
) -> dict[str, Bootstrap]:
    """Bootstrap several estimators on the same resamples.

    Each option's observations are resampled on their own, paired ones row by row, counts as binomial numbers and
    summaries as Gaussians. A method's numbers depend on ``seed`` alone, not on the other methods. ``values`` are the
    estimates themselves, where they are known already. ``progress`` is called after each chunk with the number of
    resamples done.

    >>> data = Samples.of([[1.0, 2.0, 3.0], [1.5, 2.5, 3.5]])
    >>> bootstrap(data, ["me"])["me"].bias > 0
    True
    """
    parts, pairs = needs_parts(methods, settings), not set(PAIRED).isdisjoint(methods)
    truth = data.means.max()
    estimates: dict[str, list[np.ndarray]] = {method: [] for method in methods}
    done, step = 0, max(1, _CHUNK // _cost(data, settings, parts))
    while done < resamples:
        size = min(step, resamples - done)
        copies = data.resample(size, np.random.default_rng([seed, done]), parts, pairs=pairs)
        for method in methods:
            rng = np.random.default_rng([seed, done, 1 + list(METHODS).index(method)])
            estimates[method].append(evaluate(method, copies, settings, rng=rng).value)
        done += size
        progress(done)
    if values is None:
        values = {method: float(evaluate(method, data, settings, rng=seed).value) for method in methods}
    return {m: Bootstrap(m, values[m], np.concatenate(estimates[m]) - truth) for m in methods}


def _cost(data: Data, settings: Settings, parts: Sequence[int]) -> int:
    """Numbers that one resample needs at once; the means of a few parts find room beside them."""
    drawn_means = max([settings.draws or 4, *(p for p in parts if p > _FEW_PARTS)]) * int(data.means.shape[-1])
    if not isinstance(data, Samples):
        return drawn_means
    options, rows = len(data.values), max(data.n)
    drawn = rows if rows <= EXACT_RESAMPLING else 4
    return max(drawn * (options if data.paired else 1) + options * options, drawn_means)
