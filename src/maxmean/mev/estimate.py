"""The front door: data in any usual shape in, an answer to *how good is the best one, really?* out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import unknown
from .asking import as_problem
from .errors import ArgumentError
from .inference import EstimatorBias
from .inference.bias import NOISE
from .kernels import Gaussian, Kernel
from .lift import NamedLift
from .methods import PAIRED, check_method
from .problem import Problem
from .statistic import t_statistic
from .winner import NamedTop, NamedWinner

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from .compare import Comparison


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
        """The weight of each option; they sum to one."""
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

    def bias(self) -> EstimatorBias:
        """By how much this estimator overestimates on average, on data like these.

        It depends on how close the true means are: ``interval`` has the bias at all that the data allow, ``value`` its
        average. See :func:`maxmean.mev.inference.bias_range`.
        """
        return self.problem.bias(self.method)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval for the best mean, the same for every method.

        It covers with few observations, with rare successes and with many options: see
        :func:`maxmean.mev.inference.maximum_interval` and :func:`maxmean.mev.inference.maximum_rate_interval`.
        """
        return self.problem.maximum(level)

    def best_set(self, level: float = 0.95) -> tuple[str, ...]:
        """Options among which the best one is with probability ``level``; see :func:`maxmean.mev.inference.best_set`."""
        return self.problem.best_set(level)

    def ranks(self, level: float = 0.95) -> pd.DataFrame:
        """The range of each option's rank, ``low`` to ``high``; all hold at once with probability ``level``."""
        return self._frame(self.problem.ranks(level), ("low", "high"))

    def shrinkage(self, level: float = 0.95) -> pd.DataFrame:
        """Each option's mean drawn towards the others, ``value``, with its interval; see :func:`maxmean.mev.inference.shrink`,
        and :func:`maxmean.mev.inference.shrink_rate` for counts.
        """
        return self._frame(self.problem.shrunk(level), ("value", "low", "high"))

    def probability_best(self, prior: str = "shrinkage") -> pd.Series:
        """P(an option is the best): with the means drawn towards each other, or with a ``flat`` prior, which makes a leader look
        surer than it is.
        """
        if prior not in ("shrinkage", "flat"):
            raise ArgumentError(unknown("unknown prior", str(prior), ["shrinkage", "flat"]))
        found = self.problem.probability_best if prior == "shrinkage" else self.problem.flat_probability_best
        return self._series(found, "P(best)")

    def winner(self, level: float = 0.95, beta: float | None = None, *, rank: int = 1) -> NamedWinner:
        """The leading option's own mean, corrected for selection (Andrews, Kitagawa and McCloskey), and a number to plan with.

        ``rank=2`` is the option in second place, and so on.

        >>> winner = estimate(successes={"red": 30, "blue": 36}, trials=1000).winner()
        >>> round(winner.recommended.value, 4), [round(end, 4) for end in winner.recommended.interval]
        (0.035, [0.0229, 0.0495])
        """
        return self.problem.winner(level, beta, rank)

    def top(self, k: int, level: float = 0.95) -> NamedTop:
        """The k leading options, and the average of their means, corrected for selection.

        >>> top = estimate(successes={"red": 30, "blue": 36, "green": 20}, trials=1000).top(2)
        >>> top.options, top.naive
        (('blue', 'red'), 0.033)
        """
        return self.problem.top(k, level)

    def lift(self, level: float = 0.95) -> NamedLift:
        """Every option beside the ``control``: differences and shares that hold at once, and the best one's, corrected.

        >>> lift = estimate(successes={"red": 300, "blue": 360}, trials=10_000, control="red").lift()
        >>> lift.beats, round(lift.best.naive, 4), [round(end, 3) for end in lift.best.relative.interval]
        (('blue',), 0.006, [0.032, 0.398])
        """
        return self.problem.lift(level)

    def table(self) -> pd.DataFrame:
        """One row per option: n, mean, se, T, weight and P(best)."""
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

    def sentence(self, level: float = 0.95) -> str:
        """The answer in plain words.

        >>> estimate(successes={"red": 30, "blue": 36}, trials=1000).sentence().partition(": ")[0]
        'blue has the largest mean, 0.0360, but it was picked for looking good'
        """
        return self._alone(level).sentence()

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before trusting the numbers: data that are few, skewed or constant, ties, what was guessed.

        They are no warnings, for they say how far to trust an answer, not that it is wrong; ``repr`` says if there are some about
        the data. What was guessed or left out in reading is a :class:`DataWarning` too.

        >>> estimate({"A": [1.0, 2.0, 3.0], "B": [7.0, 7.0, 7.0]}).notes[0]
        "all values of 'B' are equal, so that its mean counts as certain, however few they are"
        """
        return self._alone(0.95).notes

    def plot(self, path: str | os.PathLike[str] | None = None, level: float = 0.95) -> Figure:
        """Draw the options and where the best is; with a ``path`` (.png, .pdf or .svg), write it there."""
        return self._alone(level).plot(path)

    def report(self, path: str | os.PathLike[str], level: float = 0.95) -> None:
        """Write one page to send: an HTML file with the sentence, the picture, the tables and what the words mean.

        It has this method alone; ``maxmean.compare(...).report(path)`` puts all beside each other.
        """
        self._alone(level).report(path)

    def __repr__(self) -> str:
        best = "lowest" if self.problem.lower_is_better else "largest"
        count, total = len(self.options), len(self.problem.names)
        noted = "; see its notes" if self.problem.notes else ""
        return f"Estimate({self.method}: {self.value:.6g}; {best} mean {self.naive:.6g}; {count} of {total} options count{noted})"

    def _repr_html_(self) -> str:
        from .page import view

        return view(self._alone(0.95), biases=False)

    def _alone(self, level: float) -> Comparison:
        from .compare import alone

        return alone(self, level)

    @property
    def _index(self) -> pd.Index:
        import pandas as pd

        return pd.Index(self.problem.names, name="option")

    def _frame(self, rows: np.ndarray, columns: Sequence[str]) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(rows, index=self._index, columns=list(columns))

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
    rate: Any = None,
    mean: Any = None,
    se: Any = None,
    sd: Any = None,
    n: Any = None,
    lower: Any = None,
    upper: Any = None,
    limits_level: float | None = None,
    numerator: str | None = None,
    denominator: str | None = None,
    cluster: str | None = None,
    covariate: str | None = None,
    covariance: Any = None,
    unit: str | None = None,
    layout: str | None = None,
    options: Sequence[str] = (),
    where: str | Sequence[str] = (),
    drop_missing: bool = False,
    decimal: str | None = None,
    sheet: str | None = None,
    query: str | None = None,
    test_size: float | None = None,
    names: Sequence[str] | None = None,
    paired: bool | None = None,
    alpha: float = 0.1,
    kernel: Kernel | Callable[[Any], Any] | str = Gaussian(),  # noqa: B008  (frozen)
    draws: int | None = None,
    parts: int = 2,
    lower_is_better: bool = False,
    resamples: int = NOISE,
    seed: int = 0,
    control: str | None = None,
    anytime: bool = False,
    planned: int | None = None,
) -> Estimate:
    """Estimate the mean of the best of several options.

    Parameters
    ----------
    data
        A mapping or a list with one array of observations per option; a 2-D array (rows are observations, columns
        options, taken as paired); or a table, whose layout is recognised from the columns or set with the arguments below: the
        path of a file, a DataFrame of pandas or polars, a DuckDB relation, anything with Arrow's or the dataframe interchange
        protocol; a pandas GroupBy; a study of Optuna, whose trials with the same parameters are observations of one option; or a
        fitted search of scikit-learn or its ``cv_results_``, whose options are the settings, paired by split. What was guessed
        or left out and changes the answer is a :class:`DataWarning`.
    method
        One of ``me ae de cve we mme te ke te* ke*``.
    by, value
        Columns of a long table: the options' names and the observations.
    successes, trials, rate, mean, se, sd, n, lower, upper
        Counts (successes or a rate, and trials), or summaries (a mean with se, with sd and n, or with confidence limits that are
        symmetric about it). Columns of a table; without ``data``, arrays, mappings or Series with one number per option; labels
        are names. As a number beside a table, ``se`` is the standard error of every row's value, such as that of one trial.
    limits_level
        Of ``lower`` and ``upper``; None: what the columns' names tell, or 0.95.
    numerator, denominator
        Columns of a long table whose sums are divided, instead of ``value``: revenue per order, clicks per view.
    cluster
        Column that says which rows belong to one unit, such as a user: units are independent of each other, their rows are not.
    covariate
        Column with something known of each unit from before the experiment, for whose chance differences means are adjusted.
    covariance
        Covariance matrix of the means, instead of their standard errors: an array, shape ``(M, M)``, or a DataFrame or a mapping
        of mappings with the options' names. Everything uses it as it uses the covariance of paired observations.
    unit
        Column of a table that says which rows belong together (a user, a day): long data are paired by it.
    layout
        ``long``, ``wide``, ``counts``, ``summaries``, or ``transposed`` (a row an option, a column a unit).
    options
        The options of a table to compare, by name: columns of a wide one. By default all.
    where
        Conditions that rows of a table must fulfil, such as ``"country = DE"`` or ``"ad != Total"``.
    drop_missing
        Leave out rows without a value; units, if they are paired.
    decimal
        Decimal mark of numbers in text, ``"."`` or ``","``, where it cannot be told.
    sheet
        Sheet of an Excel file that has several.
    query
        What to select from the file of a database, SQLite's or DuckDB's.
    test_size
        Share of the data in each test set, if the observations are paired scores of cross-validation: its splits share training
        data, for which the covariance of the means is corrected (Nadeau and Bengio, 2003). Searches of scikit-learn know it.
    names
        Names of the options, if the data have none.
    paired
        Whether row k of every option belongs to the same unit (a user, a day). Needs equal lengths.
    alpha, kernel, draws, parts
        Level of ``te``; kernel of ``ke``, or its name as on the command line; Monte Carlo draws of ``we`` (None:
        exact); parts of ``mme``.
    lower_is_better
        The best is the smallest mean.
    resamples, seed
        Of the simulations behind ``bias()``, for each of 41 sets of true means; ``seed`` also of the random splits and
        ties of ``de``, ``cve``, ``mme``.
    control
        The option that :meth:`Estimate.lift` compares the others with.
    anytime, planned
        Intervals that hold at all looks at the growing data at once, however often you look and whenever you stop. They are
        shortest when there are ``planned`` observations of each option (None: 1,000), a number to choose before the first
        look, and replace those of ``interval()``, ``best_set()``, ``ranks()``, ``winner()``, ``top()`` and ``lift()``.

    Examples
    --------
    >>> est = estimate(successes={"red": 30, "blue": 36}, trials=1000, method="ke")
    >>> round(est.value, 4), est.winner().option
    (0.0341, 'blue')

    Means that move together differ by more than they seem to, one by one:

    >>> means, together = [1.0, 0.7], [[0.25, 0.24], [0.24, 0.25]]
    >>> estimate(mean=means, covariance=together).best_set(), estimate(mean=means, se=0.5).best_set()
    (('option 1',), ('option 1', 'option 2'))
    """
    check_method(method)
    problem = as_problem(
        data,
        by=by,
        value=value,
        successes=successes,
        trials=trials,
        rate=rate,
        mean=mean,
        se=se,
        sd=sd,
        n=n,
        lower=lower,
        upper=upper,
        limits_level=limits_level,
        numerator=numerator,
        denominator=denominator,
        cluster=cluster,
        covariate=covariate,
        covariance=covariance,
        unit=unit,
        layout=layout,
        options=options,
        where=where,
        drop_missing=drop_missing,
        decimal=decimal,
        sheet=sheet,
        query=query,
        test_size=test_size,
        names=names,
        paired=paired,
        alpha=alpha,
        kernel=kernel,
        draws=draws,
        parts=parts,
        lower_is_better=lower_is_better,
        resamples=resamples,
        seed=seed,
        control=control,
        anytime=anytime,
        planned=planned,
    )
    return estimate_problem(problem, method)


def estimate_problem(problem: Problem, method: str) -> Estimate:
    """One method on a problem that is ready."""
    found = problem.evaluate(method)
    return Estimate(method, problem.outward(found.value), problem, found.weights)
