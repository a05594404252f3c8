"""What data say of named options: means, how far they may be off, and what a reader should know before trusting them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .data import Counts, Samples, Summaries
from .data.moments import skewness, skewness_error
from .inference.checks import level_ties
from .inference.moderated import with_variances
from .inference.tails import largest_rate, smallest_rate, upper_quantile

_NORMAL = np.asarray(math.inf)  # degrees of freedom


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """Named options and their data, in units and direction in which larger is better.

    A value x of the user's data is ``origin + direction * unit * y`` for a y in here.
    """

    names: tuple[str, ...]
    data: Samples | Counts | Summaries
    origin: float = 0.0
    direction: int = 1
    unit: float = 1.0
    remarks: tuple[str, ...] = ()
    """What was guessed or left out when the data were read, a sentence each."""

    @property
    def lower_is_better(self) -> bool:
        return self.direction < 0

    def outward(self, value: float) -> float:
        """A value in the user's units; rates stay within [0, 1]."""
        found = self.origin + self.direction * self.unit * float(value)
        return found if self.counts is None else min(max(found, 0.0), 1.0)

    def interval(self, low: float, high: float) -> tuple[float, float]:
        """An interval in the user's units, its lower end first."""
        first, second = sorted((self.outward(low), self.outward(high)))
        return first, second

    @cached_property
    def estimates(self) -> np.ndarray:
        """The means in here; what differs by rounding alone is a tie, so that the order of the rows does not decide who wins."""
        if self.counts is not None:
            return np.asarray(self.counts.means)
        return level_ties(np.asarray(self.data.means), np.sqrt(np.asarray(self.data.variances)))

    @cached_property
    def means(self) -> list[float]:
        return [self.outward(mean) for mean in self.estimates.tolist()]

    @cached_property
    def standard_errors(self) -> list[float]:
        return [self.unit * math.sqrt(variance) for variance in self.data.variances]

    @cached_property
    def counts(self) -> Counts | None:
        """Successes and trials, if that is what the data are, one by one or counted; where lower is better, of the failures.

        Of paired rows they tell all about single rates, and :attr:`spread` tells about differences.
        """
        if isinstance(self.data, Counts):
            return self.data
        if not isinstance(self.data, Samples) or not is_rate(self.data):
            return None
        return Counts(np.array([np.count_nonzero(values) for values in self.data.values]), np.array(self.data.n))

    @property
    def paired(self) -> bool:
        """Whether there are covariances."""
        return self.data.covariances is not None

    @cached_property
    def spread(self) -> np.ndarray:
        """Covariances of the means where rows are paired, variances else; of rates, those that no successes do not make zero."""
        if self.counts is None:
            return np.asarray(self.data.covariances if self.paired else self.data.variances)
        rates = (self.counts.successes + 0.5) / (self.counts.trials + 1)
        variances = np.asarray(rates * (1 - rates) / self.counts.trials)
        return with_variances(np.asarray(self.data.covariances), variances) if self.paired else variances

    @cached_property
    def freedom(self) -> np.ndarray:
        """Degrees of freedom of the standard errors; infinite where the numbers of observations are not known, and for rates, but
        for the differences of paired ones.
        """
        if (self.counts is not None and not self.paired) or self.data.n is None:
            return np.full(len(self.names), math.inf)
        return np.asarray(self.data.n, float) - 1

    @property
    def trials(self) -> np.ndarray | None:
        """Of rates that are independent of each other."""
        return None if self.counts is None or self.paired else self.counts.trials

    @property
    def compared(self) -> dict[str, Any]:
        """What a comparison of all options knows besides means and spread."""
        alone = None
        if self.paired and self.counts is not None and isinstance(self.data, Samples):
            rows = np.stack(self.data.values, axis=-1)
            alone = rows.T @ (1 - rows)
        return {"freedom": self.freedom, "trials": self.trials, "alone": alone}

    def own_intervals(self, level: float) -> list[tuple[float, float]]:
        """Each option's interval as if it were the only one: Student's, or Clopper and Pearson's of a rate."""
        tail = (1 - level) / 2
        if self.counts is not None:
            k, n = np.broadcast_arrays(np.asarray(self.counts.successes, float), np.asarray(self.counts.trials, float))
            lows, highs = smallest_rate(k, n, tail), largest_rate(k, n, tail)
        else:
            reach = upper_quantile(tail, self.freedom) * np.sqrt(np.asarray(self.data.variances))
            lows, highs = self.estimates - reach, self.estimates + reach
        return [self.interval(*ends) for ends in zip(lows.tolist(), highs.tolist(), strict=True)]

    @cached_property
    def skewed(self) -> dict[str, float]:
        """The skewness of those options that have too few observations for it, by Cochran's rule: 25 times its square.

        Normal values look skewed too where they are few: none is named unless the most skewed option, or all of them together,
        are more so than in 99 of 100 sets of normal data.
        """
        if self.counts is not None or not isinstance(self.data, Samples):
            return {}
        found = {name: skewness(values) for name, values in zip(self.names, self.data.values, strict=True)}
        enough = dict(zip(self.names, self.data.n, strict=True))
        scores = np.array([each / skewness_error(enough[name]) for name, each in found.items()])
        most, together = float(np.abs(scores).max()), abs(float(scores.sum())) / math.sqrt(len(scores))
        if most < upper_quantile(0.0025 / len(scores), _NORMAL) and together < upper_quantile(0.0025, _NORMAL):
            return {}
        return {name: each for name, each in found.items() if enough[name] < 25 * each**2}

    @property
    def scarce(self) -> bool:
        """Whether there are too few observations to tell if means are normal: 20, or the leader's five successes and failures."""
        if self.counts is not None:
            leader = int(np.argmax(self.counts.means))
            found = int(self.counts.successes[leader])
            return min(found, self.counts.n[leader] - found) < 5
        return bool(self.freedom.min() < 19)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know about these data before trusting any number: if they are constant, few or skewed."""
        notes = list(self.remarks)
        errors = zip(self.names, self.standard_errors, strict=True)
        certain = [name for name, error in errors if error == 0 and self.counts is None]
        if certain:
            which = ", ".join(repr(name) for name in certain[:3]) + (", ..." if len(certain) > 3 else "")
            so = "its mean counts" if len(certain) == 1 else "each of their means counts"
            given = isinstance(self.data, Summaries)
            why = f"the standard error of {which} is zero" if given else f"all values of {which} are equal"
            notes.append(f"{why}, so that {so} as certain{'' if given else ', however few they are'}")
        if self.scarce and self.counts is None:
            notes.append(
                "these are few data: the intervals allow for it if single observations are normally distributed, which so few "
                "cannot show"
            )
        if self.skewed:
            name, most = max(self.skewed.items(), key=lambda item: abs(item[1]))
            others = f" and {len(self.skewed) - 1} more" if len(self.skewed) > 1 else ""
            verb = "have" if others else "has"
            # Here larger is better: a long tail below draws the standard error down exactly where the mean looks good.
            long_tail = min(self.skewed.values()) < 0
            often = (
                "the long tail is on the worse side, and intervals hold clearly" if long_tail else "intervals may hold"
            )
            notes.append(
                f"{name!r}{others} {verb} few values for how skewed they are ({self.direction * most:.1f}; "
                f"{math.ceil(25 * most**2):,} would do): {often} less often than they say"
            )
        return tuple(notes)


def is_rate(data: Samples | Counts) -> bool:
    """Whether there is nothing but zeros and ones, one by one or counted."""
    if isinstance(data, Counts):
        return True
    return all(bool(((values == 0) | (values == 1)).all()) for values in data.values)
