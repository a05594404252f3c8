"""How sure are we? Bootstrap bias and intervals of the estimators, and the probability of being best.

The mean of the *selected* option is another quantity than the maximum mean; :mod:`maxmean.mev.winner` treats it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .data import EXACT_RESAMPLING, Data, Samples, matrix_root
from .methods import DEFAULTS, METHODS, PAIRED, Settings, evaluate, needs_parts
from .probabilities import best_probabilities, integrable

RESAMPLES = 2_000
_CHUNK = 4_000_000  # numbers held at once
_DRAWN = 1_000_000_000  # numbers drawn for P(best) in all, half a minute's
_FEW_PARTS = 16


@dataclass(frozen=True)
class Bootstrap:
    """Errors that an estimator makes in the bootstrap world, whose truth is known: the sample means."""

    method: str
    value: float
    """The estimate itself."""
    errors: np.ndarray
    """Estimates from resamples minus the largest sample mean, one a resample."""

    @property
    def bias(self) -> float:
        """Bootstrap estimate of the estimator's bias."""
        return float(self.errors.mean())

    @property
    def standard_error(self) -> float:
        """Bootstrap estimate of the estimator's standard deviation."""
        return float(self.errors.std(ddof=1))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        r"""Basic bootstrap interval for the *maximum mean*, from the quantiles e of the errors.

        .. math:: [\hat\mu - e_{1-a/2},\ \hat\mu - e_{a/2}], \qquad a = 1 - \text{level}

        It corrects for the bias it sees. It is approximate, and least so where several options tie for the best: the
        bootstrap of a maximum is not consistent there (Andrews, 2000, Econometrica 68).
        """
        tail = (1 - level) / 2
        low, high = np.quantile(self.errors, [tail, 1 - tail])
        return float(self.value - high), float(self.value - low)


def bootstrap(
    data: Data,
    methods: Sequence[str],
    settings: Settings = DEFAULTS,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    progress: Callable[[int], object] = lambda done: None,
) -> dict[str, Bootstrap]:
    """Bootstrap several estimators on the same resamples.

    Each option's observations are resampled on their own, paired ones row by row, counts as binomial numbers and
    summaries as Gaussians. A method's numbers depend on ``seed`` alone, not on the other methods. ``progress`` hears
    after each chunk how many resamples are done.

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
    values = {method: float(evaluate(method, data, settings, rng=seed).value) for method in methods}
    return {m: Bootstrap(m, values[m], np.concatenate(estimates[m]) - truth) for m in methods}


def probability_best(data: Data, *, draws: int = 200_000, seed: int = 0) -> np.ndarray:
    """P(an option's mean is the largest), as a Gaussian posterior with a flat prior sees it; ties share.

    Independent options are integrated exactly, unless they are hundreds that spread very differently. Those are drawn (thousands
    of them less often), and so are paired ones, with their covariance: the standard error is at most ``0.5 / sqrt(draws)``.

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


def _cost(data: Data, settings: Settings, parts: Sequence[int]) -> int:
    """Numbers that one resample needs at once; the means of a few parts find room beside them."""
    drawn_means = max([settings.draws or 4, *(p for p in parts if p > _FEW_PARTS)]) * int(data.means.shape[-1])
    if not isinstance(data, Samples):
        return drawn_means
    options, rows = len(data.values), max(data.n)
    drawn = rows if rows <= EXACT_RESAMPLING else 4
    return max(drawn * (options if data.paired else 1) + options * options, drawn_means)
