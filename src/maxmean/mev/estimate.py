"""The front door: data in any usual shape in, an answer to *how good is the best one, really?* out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .data import Counts, Data, DataError, Samples, Summaries, unit_for
from .inference import RESAMPLES, Bootstrap, bootstrap, probability_best
from .inputs import as_options, check_variances, refuse_unusable
from .kernels import Gaussian, Kernel, as_kernel
from .limits import MOST_PAIRED, MOST_RESAMPLES, TOO_MANY_PAIRED
from .methods import METHODS, NEEDS_PAIRS, PAIRED, SPLITTING, Settings, check_method, evaluate, parse_kernel
from .probabilities import MOST_INTEGRATED
from .settings import check_number, check_truth, check_whole
from .statistic import t_statistic
from .winner import WinnerMean, infer_winner

if TYPE_CHECKING:
    import pandas as pd

    from .layouts import Options


@dataclass(frozen=True, eq=False)
class Problem:
    """Named options, ready to be estimated: the data in units and direction in which larger is better.

    A value x of the user's data is ``origin + direction * unit * y`` for a y in here.
    """

    names: tuple[str, ...]
    data: Samples | Counts | Summaries
    settings: Settings
    seed: int = 0
    resamples: int = RESAMPLES
    origin: float = 0.0
    direction: int = 1
    unit: float = 1.0
    taken_for: str = ""
    pairable: bool = False
    _bootstraps: dict[str, Bootstrap] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, options: Options, settings: Settings, *, lower_is_better: bool, seed: int, resamples: int) -> Problem:
        refuse_unusable(options)
        check_truth("lower_is_better", lower_is_better)
        check_whole("seed", seed, 0)
        check_whole("resamples", resamples, 2, MOST_RESAMPLES)
        data, origin, unit = options.data, 0.0, 1.0
        if isinstance(data, Samples) and data.paired and len(options.names) > MOST_PAIRED:
            raise DataError(TOO_MANY_PAIRED)
        if isinstance(data, Counts):
            if lower_is_better:  # few successes are many failures
                data, origin = Counts(data.trials - data.successes, data.trials), 1.0
        else:
            unit = data.unit if isinstance(data, Summaries) else unit_for(*data.values)
            further = 1.0 if isinstance(data, Summaries) else 1 / unit
            data = data.scaled(-further if lower_is_better else further)
        direction = -1 if lower_is_better else 1
        check_variances(options.names, data.variances)
        return cls(
            options.names, data, settings, seed, resamples, origin, direction, unit, options.taken_for, options.pairable
        )

    @property
    def lower_is_better(self) -> bool:
        return self.direction < 0

    def outward(self, value: float) -> float:
        """A value in the user's units."""
        return self.origin + self.direction * self.unit * float(value)

    def interval(self, low: float, high: float) -> tuple[float, float]:
        """An interval in the user's units, its lower end first; rates stay within [0, 1]."""
        ends = sorted((self.outward(low), self.outward(high)))
        if isinstance(self.data, Counts):
            ends = [min(max(end, 0.0), 1.0) for end in ends]
        return ends[0], ends[1]

    @cached_property
    def means(self) -> list[float]:
        return [self.outward(mean) for mean in self.data.means]

    @cached_property
    def standard_errors(self) -> list[float]:
        return [self.unit * math.sqrt(variance) for variance in self.data.variances]

    @cached_property
    def probability_best(self) -> np.ndarray:
        return probability_best(self.data, seed=self.seed)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that this data allows."""
        return tuple(method for method in METHODS if self.refusal(method) is None)

    def refusal(self, method: str) -> str | None:
        """Why a method cannot be used here, or None."""
        if method in PAIRED and self.paired_data is None:
            return NEEDS_PAIRS
        if method in PAIRED and len(self.names) > MOST_PAIRED:
            return f"compares up to {MOST_PAIRED:,} options as pairs"
        if method == "we" and self.settings.draws is None and len(self.names) > MOST_INTEGRATED:
            return (
                f"integrates over up to {MOST_INTEGRATED} options; with more, say how many draws to take (--draws 100)"
            )
        if method not in SPLITTING:
            return None
        if isinstance(self.data, Summaries):
            return "splits the observations, and only summaries were given"
        parts = self.settings.parts if method == "mme" else 2
        few = next((name for name, n in zip(self.names, self.data.n, strict=True) if n < parts), None)
        return None if few is None else f"splits each option in {parts}, and {few!r} has too few values"

    @property
    def paired_data(self) -> Data | None:
        """The data with covariances: paired as they are, or samples that line up and are asked for as pairs."""
        if not isinstance(self.data, Samples) or not (self.data.paired or self.pairable) or len(set(self.data.n)) > 1:
            return None
        return self.data if self.data.paired else Samples(self.data.values, paired=True)

    def data_for(self, method: str) -> Data:
        return (self.paired_data or self.data) if method in PAIRED else self.data

    def bootstraps(self, methods: Sequence[str], progress: Callable[[int], object]) -> dict[str, Bootstrap]:
        """Bootstrap whichever of ``methods`` have not been bootstrapped yet, those that share data in one go."""
        for star in (False, True):
            missing = [m for m in methods if m not in self._bootstraps and (m in PAIRED) == star]
            if missing:
                found = bootstrap(
                    self.data_for(missing[0]),
                    missing,
                    self.settings,
                    resamples=self.resamples,
                    seed=self.seed,
                    progress=progress,
                )
                self._bootstraps.update(found)
        return {method: self._bootstraps[method] for method in methods}

    def winner(self, level: float = 0.95, beta: float | None = None) -> NamedWinner:
        check_level(level)
        if beta is not None:
            check_number("beta", beta)
            if not 0 <= beta < 1 - level:
                raise DataError(f"beta must lie in [0, 1 - level), here [0, {1 - level:.6g}), not {beta}")
        spread = self.data.variances if self.data.covariances is None else self.data.covariances
        found = infer_winner(self.data.means, spread, level=level, beta=beta)
        conditional, hybrid = (
            WinnerMean(self.outward(mean.value), self.interval(*mean.interval))
            for mean in (found.conditional, found.hybrid)
        )
        best = self.data.means == self.data.means.max()
        tied = tuple(name for name, tie in zip(self.names, best, strict=True) if tie) if best.sum() > 1 else ()
        return NamedWinner(self.names[found.index], self.means[found.index], conditional, hybrid, tied)


@dataclass(frozen=True)
class NamedWinner:
    """The option with the best sample mean, and what its own mean is once its selection is accounted for."""

    option: str
    naive: float
    """Its sample mean: too good, because it was selected for being good."""
    conditional: WinnerMean
    """Median-unbiased given that it won."""
    hybrid: WinnerMean
    """The same, kept inside a simultaneous interval: much shorter when the race is close."""
    tied: tuple[str, ...] = ()
    """All options that share the best mean, where several do. Nothing selects one of them, and neither correction applies."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate of the best option's mean.

    >>> est = estimate({"A": [1.0, 2.0, 3.0], "B": [2.0, 3.0, 4.0]}, method="te")
    >>> est.value, est.options
    (2.5, ('A', 'B'))
    """

    method: str
    """Name of the estimator."""
    value: float
    """The estimate."""
    problem: Problem = field(repr=False)
    _weights: np.ndarray = field(repr=False)

    @property
    def weights(self) -> pd.Series:
        """How much each option counts; they add up to one."""
        return self._series(self._weights, "weight")

    @property
    def statistic(self) -> pd.Series:
        """T of each option against the best: 0 for the best, negative for the rest."""
        data = self.problem.data_for(self.method)
        covariances = data.covariances if self.method in PAIRED else None
        return self._series(t_statistic(data.means, data.variances, covariances=covariances), "T")

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that count at all."""
        return tuple(name for name, weight in zip(self.problem.names, self._weights, strict=True) if weight > 0)

    @property
    def naive(self) -> float:
        """The best sample mean."""
        return self.problem.outward(self.problem.data.means.max())

    def bias(self) -> float:
        """Bootstrap estimate of this estimator's bias: what it says too much, on data like these."""
        return self.problem.direction * self.problem.unit * self._bootstrap.bias

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Basic bootstrap interval for the maximum mean; see :meth:`maxmean.mev.inference.Bootstrap.interval`."""
        check_level(level)
        return self.problem.interval(*self._bootstrap.interval(level))

    def probability_best(self) -> pd.Series:
        """P(an option is the best), under Gaussian means."""
        return self._series(self.problem.probability_best, "P(best)")

    def winner(self, level: float = 0.95, beta: float | None = None) -> NamedWinner:
        """The leading option's own mean, corrected for its having been selected (Andrews, Kitagawa and McCloskey)."""
        return self.problem.winner(level, beta)

    def table(self) -> pd.DataFrame:
        """One row an option: n, mean, se, T, weight and P(best)."""
        import pandas as pd

        columns = {
            "n": self.problem.data.n,
            "mean": self.problem.means,
            "se": self.problem.standard_errors,
            "T": self.statistic.to_numpy(),
            "weight": self._weights,
            "P(best)": self.problem.probability_best,
        }
        return pd.DataFrame({k: v for k, v in columns.items() if v is not None}, index=self._index)

    def __repr__(self) -> str:
        best = "lowest" if self.problem.lower_is_better else "largest"
        count, total = len(self.options), len(self.problem.names)
        return (
            f"Estimate({self.method}: {self.value:.6g}; {best} mean {self.naive:.6g}; {count} of {total} options count)"
        )

    def _repr_html_(self) -> str:
        from .show import html_page

        return html_page(self)

    @property
    def _bootstrap(self) -> Bootstrap:
        return self.problem.bootstraps([self.method], lambda done: None)[self.method]

    @property
    def _index(self) -> pd.Index:
        import pandas as pd

        return pd.Index(self.problem.names, name="option")

    def _series(self, values: Any, name: str) -> pd.Series:
        import pandas as pd

        return pd.Series(values, index=self._index, name=name)


def estimate(
    data: Any = None,
    method: str = "ke",
    *,
    by: Any = None,
    value: Any = None,
    successes: Any = None,
    trials: Any = None,
    mean: Any = None,
    se: Any = None,
    sd: Any = None,
    n: Any = None,
    names: Sequence[str] | None = None,
    paired: bool | None = None,
    alpha: float = 0.1,
    kernel: Kernel | Callable[[Any], Any] | str = Gaussian(),  # noqa: B008  (frozen)
    draws: int | None = None,
    parts: int = 2,
    lower_is_better: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Estimate the mean of the best of several options.

    Parameters
    ----------
    data
        A mapping or a list with one array of observations an option; a 2-D array (rows are observations, columns
        options, taken as paired); or a DataFrame: its layout is recognised from its columns or said with the next ones.
    method
        One of ``me ae de cve we mme te ke te* ke*``.
    by, value
        Columns of a long DataFrame: the options' names and the observations.
    successes, trials, mean, se, sd, n
        Counts, or summaries (a mean with se, or with sd and n). Columns of a DataFrame; without ``data``, arrays or
        mappings with one number an option.
    names
        Names for the options, where the data has none.
    paired
        Whether row k of every option belongs to one unit. Equal lengths are needed.
    alpha, kernel, draws, parts
        Level of ``te``; kernel of ``ke``, or its name as on the command line; Monte Carlo draws of ``we`` (None:
        exact); parts of ``mme``.
    lower_is_better
        The best is the smallest mean.
    resamples, seed
        Of the bootstrap and of the random splits and ties of ``de``, ``cve``, ``mme``.

    Examples
    --------
    >>> est = estimate(successes={"red": 30, "blue": 36}, trials=1000, method="ke")
    >>> round(est.value, 4), est.winner().option
    (0.0341, 'blue')
    """
    check_method(method)
    columns = {"by": by, "value": value, "successes": successes, "trials": trials, "mean": mean, "se": se, "sd": sd}
    chosen = parse_kernel(kernel) if isinstance(kernel, str) else as_kernel(kernel)
    settings = Settings(alpha, chosen, draws, parts)
    options = as_options(data, columns | {"n": n}, names, paired)
    problem = Problem.of(options, settings, lower_is_better=lower_is_better, seed=seed, resamples=resamples)
    return estimate_problem(problem, method)


def check_level(level: float) -> None:
    check_number("level", level)
    if not 0 < level < 1:
        raise DataError(f"level must lie between 0 and 1, not {level}")


def estimate_problem(problem: Problem, method: str) -> Estimate:
    """One method on a problem that is ready."""
    refusal = problem.refusal(check_method(method))
    if refusal is not None:
        raise DataError(f"{method} {refusal}")
    outcome = evaluate(method, problem.data_for(method), problem.settings, rng=problem.seed)
    return Estimate(method, problem.outward(outcome.value), problem, outcome.weights)
