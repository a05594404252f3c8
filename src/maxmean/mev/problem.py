"""The problem that is estimated: named options, their data, and what was chosen about the estimators."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..errors import unknown
from .data import Counts, Data, Samples, Summaries
from .data.limits import MOST_PAIRED, MOST_RESAMPLES, TOO_MANY_PAIRED
from .data.moments import unit_for
from .data.options import Options, refuse_unusable
from .errors import ArgumentError, DataError
from .evidence import Evidence, is_rate
from .inference import (
    EstimatorBias,
    Posterior,
    Sequences,
    Winner,
    best_set,
    bias_range,
    infer_lift,
    infer_paired_winner_rate,
    infer_top,
    infer_top_rate,
    infer_winner,
    infer_winner_rate,
    maximum_interval,
    maximum_paired_rate_interval,
    maximum_rate_interval,
    probability_best,
    rank_intervals,
    shrink,
    shrink_rate,
)
from .inference.bias import NOISE
from .inference.moderated import (
    differences_from_average,
    moderated_covariances,
    moderated_variances,
    widening,
    with_variances,
)
from .inference.shrinkage import first_copies
from .inference.simultaneous import diagonal
from .inference.tails import upper_quantile
from .lift import NamedLift, name_lift
from .methods import (
    METHODS,
    NEEDS_PAIRS,
    PAIRED,
    SPLITTING,
    Evaluation,
    Settings,
    check_method,
    evaluate,
)
from .probabilities import MOST_INTEGRATED
from .settings import check_level, check_number, check_truth, check_whole
from .winner import NamedTop, NamedWinner, name_top, name_winner

_POSSIBLE = 39
"""True means that are drawn: a further draw would lie between the smallest and the largest of so many 95% of the time."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem(Evidence):
    """Named options with their data, ready to be estimated, and the answers to every question about them."""

    settings: Settings
    seed: int = 0
    resamples: int = NOISE
    taken_for: str = ""
    pairable: bool = False
    control: str | None = None
    """The option that the others are compared with, if one was named."""
    planned: int | None = None
    """Observations of each option at which always-valid intervals are shortest; None for intervals that hold for one look."""
    source: str = ""
    """The name of the file that the data were read from."""
    _evaluations: dict[str, Evaluation] = field(default_factory=dict, init=False, repr=False)
    _biases: dict[str, EstimatorBias] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls,
        options: Options,
        settings: Settings,
        *,
        lower_is_better: bool,
        seed: int,
        resamples: int,
        control: str | None = None,
        planned: int | None = None,
    ) -> Problem:
        """Check settings and data, once; flip and rescale the data so that larger is better and no square overflows."""
        check_truth("lower_is_better", lower_is_better)
        if lower_is_better and options.lower_is_better is False:
            raise ArgumentError("the study maximises its objective, and lower_is_better says otherwise")
        lower_is_better = lower_is_better or bool(options.lower_is_better)
        check_whole("seed", seed, 0)
        check_whole("resamples", resamples, 2, MOST_RESAMPLES)
        refuse_unusable(options)
        if control is not None and control not in options.names:
            raise ArgumentError(unknown("there is no option for a control called", control, options.names[:20]))
        if control is not None and len(options.names) > MOST_PAIRED:
            raise DataError(f"a control is compared with up to {MOST_PAIRED:,} options: keep the best ones")
        if planned is not None:
            check_whole("planned", planned, 1)
            if options.data.n is None:
                raise DataError("always-valid intervals need the number of observations of every option: give n (--n)")
            if len(options.names) > MOST_PAIRED:
                raise DataError(f"always-valid intervals are for up to {MOST_PAIRED:,} options: keep the best ones")
        data, origin, unit = options.data, 0.0, 1.0
        if isinstance(data, Samples) and data.paired and len(options.names) > MOST_PAIRED:
            raise DataError(TOO_MANY_PAIRED)
        if lower_is_better and not isinstance(data, Summaries) and is_rate(data):
            data, origin = data.failures(), 1.0  # few successes are many failures
        elif not isinstance(data, Counts):
            unit = data.unit if isinstance(data, Summaries) else unit_for(*data.values)
            further = 1.0 if isinstance(data, Summaries) else 1 / unit
            data = data.scaled(-further if lower_is_better else further)
        direction = -1 if lower_is_better else 1
        for name, variance in zip(options.names, data.variances, strict=True):
            if not math.isfinite(variance):
                raise DataError(f"option {name!r} spreads too widely for its variance to be a number")
        return cls(
            names=options.names,
            data=data,
            origin=origin,
            direction=direction,
            unit=unit,
            remarks=options.remarks,
            settings=settings,
            seed=seed,
            resamples=resamples,
            taken_for=options.taken_for,
            pairable=options.pairable,
            control=control,
            planned=planned,
            source=options.source,
        )

    @cached_property
    def flat_probability_best(self) -> np.ndarray:
        """P(an option is the best) if nothing is known beforehand."""
        return probability_best(self.data, seed=self.seed)

    @property
    def probability_best(self) -> np.ndarray:
        """P(an option is the best), the means drawn towards each other as in :attr:`shrinkage`."""
        return self.posterior.chances

    @cached_property
    def posterior(self) -> Posterior:
        """As :attr:`shrinkage`, to draw the means from: with few observations, variances are drawn towards each other too."""
        if self.trials is not None:
            return self.shrinkage
        spread, freedom = self._moderated
        if spread.ndim == 1:
            return shrink(self.estimates, spread * widening(freedom))
        return shrink(self.estimates, differences_from_average(spread) if np.isfinite(freedom).any() else spread)

    @cached_property
    def _moderated(self) -> tuple[np.ndarray, np.ndarray]:
        """:attr:`spread` and :attr:`freedom`, where the options' variances inform each other's."""
        if not np.isfinite(self.freedom).any():
            return self.spread, self.freedom
        if self.spread.ndim == 2:
            kept, copies = np.unique(first_copies(self.estimates, self.spread), return_inverse=True)
            found = moderated_covariances(self.spread[np.ix_(kept, kept)], float(self.freedom.min()))
            found = found[np.ix_(copies, copies)]
            return self._not_surer(found) if self.counts is not None else found, self.freedom
        variances, freedom = moderated_variances(self.spread * (self.freedom + 1), self.freedom)
        return variances / (self.freedom + 1), freedom

    def _not_surer(self, covariances: np.ndarray) -> np.ndarray:
        """The same correlations of paired rates; a variance follows from the rate, and others may raise it but not lower it."""
        return with_variances(covariances, np.maximum(covariances.diagonal(), self.spread.diagonal()))

    @cached_property
    def shrinkage(self) -> Posterior:
        """All means drawn towards each other, in the units of the data in here."""
        if self.trials is not None:
            assert self.counts is not None
            return shrink_rate(self.counts.successes, self.trials)
        return shrink(self.estimates, self._alike * self._wider)

    @property
    def _alike(self) -> np.ndarray:
        """:attr:`spread`, but that options with few successes or rows are more alike: chance decides which of them look certain.

        Of paired rates, each with four successes, or failures if these are rarer, more at the rate of all together.
        """
        if self.counts is None or not self.paired:
            return self.spread if self.spread.ndim == 1 else self._moderated[0]
        k, n = self.counts.successes, self.counts.trials
        usual = float((k.sum() + 0.5) / (n.sum() + 1))
        more = 4 / min(usual, 1 - usual)
        rates = (k + more * usual) / (n + more)
        return self._not_surer(with_variances(self._moderated[0], np.asarray(rates * (1 - rates) / n)))

    @property
    def _wider(self) -> np.ndarray | float:
        """What variances are multiplied by, for standard errors are estimated: Student's squared quantile over the normal one."""
        ratio = np.square(upper_quantile(0.025, self.freedom) / upper_quantile(0.025, np.asarray(math.inf)))
        return ratio if self.spread.ndim == 1 else float(ratio.max())

    def maximum(self, level: float = 0.95) -> tuple[float, float]:
        """A confidence interval for the best mean; see :func:`maxmean.mev.inference.maximum_interval`."""
        check_level(level)
        if self.planned is not None:
            return self.interval(*self.sequences(level).maximum())
        if self.counts is not None:
            found = maximum_paired_rate_interval if self.paired else maximum_rate_interval
            return self.interval(*found(self.counts.successes, self.counts.trials, level=level))
        return self.interval(*maximum_interval(self.estimates, self.spread, level=level, freedom=self.freedom))

    def best_set(self, level: float = 0.95) -> tuple[str, ...]:
        """The options of which one is the best; see :func:`maxmean.mev.inference.best_set`."""
        check_level(level)
        if self.planned is not None:
            found = self.sequences(level).best_set()
        else:
            found = best_set(self.estimates, self.spread, level=level, **self.compared)
        return tuple(name for name, there in zip(self.names, found, strict=True) if there)

    def ranks(self, level: float = 0.95) -> np.ndarray:
        """The range of every option's rank, [M, 2]; see :func:`maxmean.mev.inference.rank_intervals`."""
        check_level(level)
        if self.planned is not None:
            return self.sequences(level).ranks()
        return rank_intervals(self.estimates, self.spread, level=level, **self.compared)

    def sequences(self, level: float = 0.95) -> Sequences:
        """What holds at all looks at once; see :class:`maxmean.mev.inference.Sequences`."""
        check_level(level)
        if self.planned is None:
            raise ArgumentError("always-valid intervals have to be asked for: anytime=True (--anytime)")
        return self._sequences(self.estimates, level)

    def _sequences(self, means: np.ndarray, level: float) -> Sequences:
        assert self.planned is not None
        assert self.data.n is not None
        n, freedom = np.asarray(self.data.n, float), self.freedom
        trials = None if self.counts is None else self.counts.trials
        return Sequences.of(means, self.spread, n, planned=self.planned, level=level, freedom=freedom, trials=trials)

    def shrunk(self, level: float = 0.95) -> np.ndarray:
        """Each option's value by :attr:`shrinkage` and the ends of its interval, [M, 3], in the user's units."""
        check_level(level)
        ends = [self.interval(*ends) for ends in self.shrinkage.intervals(level)]
        # Of an option that is certain, value and ends are the same number but for rounding.
        values = np.clip([self.outward(value) for value in self.shrinkage.values], *np.transpose(ends))
        return np.column_stack([values, np.array(ends)])

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that the data allow."""
        return tuple(method for method in METHODS if self.refusal(method) is None)

    def refusal(self, method: str) -> str | None:
        """Why a method cannot be used here, or None."""
        if method in PAIRED and self.paired_data is None:
            return NEEDS_PAIRS
        if method in PAIRED and len(self.names) > MOST_PAIRED:
            return f"compares up to {MOST_PAIRED:,} options as pairs"
        if method == "we" and self.settings.draws is None and len(self.names) > MOST_INTEGRATED:
            return f"integrates over up to {MOST_INTEGRATED} options; with more, set the number of draws (--draws 100)"
        if method not in SPLITTING:
            return None
        if isinstance(self.data, Summaries):
            return "splits the observations, and only summaries were given"
        parts = self.settings.parts if method == "mme" else 2
        few = next((name for name, n in zip(self.names, self.data.n, strict=True) if n < parts), None)
        return None if few is None else f"splits each option in {parts}, and {few!r} has too few values"

    @cached_property
    def paired_data(self) -> Data | None:
        """The data with covariances: those given, or of paired samples, or of equally many that may be treated as pairs."""
        if isinstance(self.data, Summaries):
            return None if self.data.covariances is None else self.data
        if not isinstance(self.data, Samples) or not (self.data.paired or self.pairable) or len(set(self.data.n)) > 1:
            return None
        return self.data if self.data.paired else Samples(self.data.values, paired=True)

    def data_for(self, method: str) -> Data:
        return (self.paired_data or self.data) if method in PAIRED else self.data

    def evaluate(self, method: str) -> Evaluation:
        """What ``method`` makes of the data, computed once."""
        if check_method(method) not in self._evaluations:
            refusal = self.refusal(method)
            if refusal is not None:
                raise DataError(f"{method} {refusal}")
            self._evaluations[method] = evaluate(method, self.data_for(method), self.settings, rng=self.seed)
        return self._evaluations[method]

    def biases(self, methods: Sequence[str], progress: Callable[[int], object]) -> dict[str, EstimatorBias]:
        """What is known about the bias of ``methods``, each computed once, in the units of the data in here."""
        for star in (False, True):
            missing = [m for m in methods if m not in self._biases and (m in PAIRED) == star]
            for method in missing:
                if (refusal := self.refusal(method)) is not None:
                    raise DataError(f"{method} {refusal}")
            if missing:
                found = bias_range(
                    self.data_for(missing[0]),
                    missing,
                    self.possible_means,
                    self.settings,
                    variances=self._moderated[0] if self.spread.ndim == 1 else diagonal(self.spread),
                    resamples=self.resamples,
                    seed=self.seed,
                    progress=progress,
                )
                self._biases.update(found)
        return {method: self._biases[method] for method in methods}

    def bias(self, method: str) -> EstimatorBias:
        """The same of one method, in the user's units."""
        found, factor = self.biases([method], lambda done: None)[method], self.direction * self.unit
        low, high = sorted(factor * end for end in found.interval)
        return EstimatorBias(factor * found.value, (low, high))

    @cached_property
    def possible_means(self) -> np.ndarray:
        """True means that the data allow, [K, M]: draws from :attr:`posterior`, as observed, and with the leading ones equal."""
        drawn, means = self.posterior.draw(_POSSIBLE), self.estimates
        leader = int(means.argmax())
        apart = diagonal(self.spread) + diagonal(self.spread)[leader]
        if self.spread.ndim == 2:
            apart = np.maximum(apart - 2 * self.spread[leader], 0.0)
        reach = upper_quantile(0.01 / max(len(means) - 1, 1), self.freedom)
        close = means >= means[leader] - reach * np.sqrt(apart)
        equal = np.where(close, self.shrinkage.values[close].mean(), np.minimum(means, means[close].mean()))
        return np.concatenate([drawn, means[None], equal[None]])

    def winner(self, level: float = 0.95, beta: float | None = None, rank: int = 1) -> NamedWinner:
        """The option in a place, the first unless told otherwise; see :func:`maxmean.mev.inference.infer_winner`."""
        check_level(level)
        check_whole("rank", rank, 1, len(self.names))
        if beta is not None:
            check_number("beta", beta)
            if not 0 <= beta < 1 - level:
                raise ArgumentError(f"beta must lie in [0, 1 - level), here [0, {1 - level:.6g}), not {beta}")
        leaders = np.flatnonzero(self.estimates == self.estimates.max()).tolist()
        if rank > len(leaders):
            return name_winner(self, self._winner(level, beta, rank), rank)
        found = self._winner(level, beta, 1)
        own = leaders[rank - 1]  # of several in the first place, each is as good as the other
        return name_winner(self, replace(found, index=own, bounds=found.tied.get(own, found.bounds)), rank)

    def _winner(self, level: float, beta: float | None, rank: int) -> Winner:
        if self.planned is not None:
            return self.sequences(level).winner(rank)
        if self.counts is None:
            return infer_winner(self.estimates, self.spread, level=level, beta=beta, freedom=self.freedom, rank=rank)
        k, n = self.counts.successes, self.counts.trials
        if self.paired:
            freedom = self.freedom
            return infer_paired_winner_rate(k, n, self.spread, level=level, beta=beta, freedom=freedom, rank=rank)
        return infer_winner_rate(k, n, level=level, beta=beta, rank=rank)

    def top(self, k: int, level: float = 0.95) -> NamedTop:
        """The k options that look best; see :func:`maxmean.mev.inference.infer_top`."""
        check_level(level)
        check_whole("k", k, 1, len(self.names))
        if self.planned is not None:
            found = self.sequences(level).top(k)
        elif self.counts is not None:
            found = infer_top_rate(self.counts.successes, self.counts.trials, k, level=level)
        else:
            found = infer_top(self.estimates, self.spread, k, level=level, freedom=self.freedom)
        return name_top(self, found)

    def lift(self, level: float = 0.95) -> NamedLift:
        """Every option beside the control; see :func:`maxmean.mev.inference.infer_lift`."""
        check_level(level)
        if self.control is None:
            raise ArgumentError("a lift is one over a control: name it with control= (--control)")
        control, lower = self.names.index(self.control), self.lower_is_better
        # As the user has them, but for the unit: a share is one of the user's own mean, also where less is better.
        means = self.origin + self.direction * self.estimates
        if self.planned is not None:
            found = self._sequences(means, level).lift(control, lower_is_better=lower)
        else:
            found = infer_lift(
                means,
                self.spread,
                control,
                level=level,
                freedom=self.freedom,
                trials=self.trials,
                lower_is_better=lower,
            )
        return name_lift(self, found, float(means[control]))
