"""Several estimators side by side: the whole answer that the command line prints."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .asking import as_problem
from .errors import ArgumentError, DataError
from .estimate import Estimate, estimate_problem
from .inference import WinnerMean
from .lift import NamedLift
from .methods import METHODS, NEEDS_PAIRS, PAIRED, check_method
from .problem import Problem
from .settings import check_level
from .winner import NamedWinner, OptionMean

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


_PREFERRED = ("ke", "ke*", "te", "te*", "we", "cve", "mme", "de")
"""The methods that correct for the selection, the one to put forward first."""
_PREFERRED_OF_PAIRS = ("ke*", "te*", *(method for method in _PREFERRED if method not in PAIRED))
"""The same where the means' covariances are known."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Every requested estimate of one problem, its bias, and the winner.

    >>> both = compare({"A": [1.0, 2.0, 3.0], "B": [2.0, 3.0, 4.0]}, methods=["me", "te"])
    >>> {method: est.value for method, est in both.estimates.items()}
    {'me': 3.0, 'te': 2.5}
    """

    problem: Problem = field(repr=False)
    estimates: dict[str, Estimate]
    skipped: dict[str, str]
    """Methods that the data do not allow, with the reason."""
    winner: NamedWinner
    level: float = 0.95

    def table(self) -> pd.DataFrame:
        """One row per method: the estimate, its bias with the range of what it may be, and how many options count."""
        import pandas as pd

        rows = {
            method: {
                "value": est.value,
                "bias": est.bias().value,
                "bias_low": est.bias().interval[0],
                "bias_high": est.bias().interval[1],
                "options": len(est.options),
            }
            for method, est in self.estimates.items()
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("method")

    @property
    def answer(self) -> Estimate:
        """The estimate that the sentence and the picture put forward: the first that corrects for the selection."""
        preferred = _PREFERRED if self.problem.data.covariances is None else _PREFERRED_OF_PAIRS
        return next(iter([self.estimates[m] for m in preferred if m in self.estimates] or self.estimates.values()))

    @cached_property
    def maximum(self) -> tuple[float, float]:
        """The confidence interval for the best mean, the same for every method."""
        return self.problem.maximum(self.level)

    @property
    def maximum_value(self) -> float:
        """The answer's estimate, moved to the nearest end of the interval where it lies outside, which a note says."""
        low, high = self.maximum
        return min(max(self.answer.value, low), high)

    @cached_property
    def best_set(self) -> tuple[str, ...]:
        """The options among which the best one is with probability ``level``."""
        return self.problem.best_set(self.level)

    @cached_property
    def ranks(self) -> np.ndarray:
        """The range of every option's rank, [M, 2]."""
        return self.problem.ranks(self.level)

    @cached_property
    def shrunk(self) -> np.ndarray:
        """Every option's mean drawn towards the others, and the ends of its interval, [M, 3]."""
        return self.problem.shrunk(self.level)

    @cached_property
    def lift(self) -> NamedLift | None:
        """Every option beside the control, if one was named."""
        return None if self.problem.control is None else self.problem.lift(self.level)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know about these data before trusting the numbers."""
        notes = list(self.problem.notes)
        if self.winner.tied:
            notes.append(
                f"{len(self.winner.tied)} options share the best mean exactly: the intervals of their own means hold for all"
            )
        else:
            notes += self._about_the_winner()
        if self.problem.planned is not None:
            notes.append(
                f"the intervals hold at every look, and are shortest at {self.problem.planned:,} observations an option; "
                "shrunk means, P(best) and the bias are about this look alone"
            )
        if self.maximum_value != self.answer.value:
            notes.append(
                f"{self.answer.method} lies outside the interval: some options are known far better than others, and it averages "
                "over them"
            )
        if self.lift is not None and not all(
            math.isfinite(end) for each in self.lift.options for end in each.relative_interval
        ):
            notes.append(f"the mean of {self.lift.control!r} may be zero: a share of it may be anything")
        return tuple(notes)

    def _about_the_winner(self) -> list[str]:
        """What keeps the winner's numbers from meaning what one may think."""
        option, problem, notes = self.winner.option, self.problem, []
        likely = problem.names[int(problem.probability_best.argmax())]
        if likely != option:
            best = "smaller" if problem.lower_is_better else "larger"
            notes.append(f"{likely!r} is more likely the best than {option!r}, whose {best} mean is less certain")
        worst = 1.0 if problem.lower_is_better else 0.0
        if problem.counts is not None and self.winner.conditional.value == worst != self.winner.naive:
            notes.append(
                f"{option!r} won by as little as one can: given only that, its rate may be anything, and the value corrected for "
                f"it is the end of the scale, {worst:g}"
            )
        return notes

    def sentence(self) -> str:
        """The answer in plain words."""
        from .answer import plain

        return plain(self.worded())

    def worded(self) -> str:
        """:meth:`sentence`, with names marked for what sets text in two directions; see :func:`maxmean.mev.answer.among`."""
        from .answer import among
        from .show import confidence, decimals_for, number

        best = "smallest" if self.problem.lower_is_better else "largest"
        head, answer = self.winner, self.answer
        possible = len(self.best_set)
        others = f"the best is one of {possible} options" if possible > 1 else "no other option may be the best"
        name, places = among(head.option), decimals_for(self.problem.standard_errors)
        own = head.recommended
        naive, fair, planned, *ends = (
            number(value, places) for value in (head.naive, answer.value, own.value, *self.maximum, *own.interval)
        )
        covers = f"{confidence(self.level)} interval {ends[0]} to {ends[1]}"
        corrects = answer.method in _PREFERRED and self.maximum_value == answer.value  # else a note says why not
        fairer = f"a fairer value of the best option is {fair} ({answer.method})" if corrects else ""
        claim = f"{fairer}, {covers}" if fairer else f"the {best} true mean has the {covers}"
        if head.tied:
            values = sorted(tie.value for tie in head.tied)
            shown = " to ".join(dict.fromkeys(number(value, places) for value in (values[0], values[-1])))
            lows, highs = zip(*(tie.interval for tie in head.tied), strict=True)
            reach = f"{number(min(lows), places)} to {number(max(highs), places)}"
            return (
                f"{len(head.tied)} options share the {best} mean, {naive}; {claim}; with any of them, plan with {shown} "
                f"({own.method}), {reach}; {others}{_over_control(self)}."
            )
        claim = f"{claim}; with {name}, plan with {planned} ({own.method}), {ends[2]} to {ends[3]}"
        return f"{name} has the {best} mean, {naive}, but it was picked for looking good: {claim}; {others}{_over_control(self)}."

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw the options and where each method puts the best; with a ``path`` (.png, .pdf or .svg), write it there."""
        from .picture import plot

        return plot(self, path)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write one page to send: an HTML file with the sentence, the picture, the tables and what the words mean."""
        from .page import write_page

        write_page(self, path)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, numbers at full precision; what is infinite or unknown is None."""
        problem = self.problem
        n = problem.data.n or (None,) * len(problem.names)
        options = zip(problem.names, n, problem.means, problem.standard_errors, strict=True)
        return {
            "options": [{"name": name, "n": k, "mean": _finite(m), "se": _finite(s)} for name, k, m, s in options],
            "estimates": {
                method: {
                    "value": _finite(est.value),
                    "weights": _by_name(problem.names, est._weights),
                    "bias": {
                        "value": _finite(est.bias().value),
                        "interval": [_finite(end) for end in est.bias().interval],
                    },
                }
                for method, est in self.estimates.items()
            },
            "maximum": {
                "value": _finite(self.maximum_value),
                "interval": [_finite(end) for end in self.maximum],
            },
            "best_set": list(self.best_set),
            "ranks": {
                name: {"low": int(low), "high": int(high)}
                for name, (low, high) in zip(problem.names, self.ranks, strict=True)
            },
            "shrinkage": {
                name: {"value": _finite(value), "interval": [_finite(low), _finite(high)]}
                for name, (value, low, high) in zip(problem.names, self.shrunk, strict=True)
            },
            "probability_best": _by_name(problem.names, problem.probability_best),
            "winner": {
                "option": self.winner.option,
                "conditional": _mean(self.winner.conditional),
                "hybrid": _mean(self.winner.hybrid),
                "recommended": _mean(self.winner.recommended) | {"method": self.winner.recommended.method},
                "tied": [{"option": tie.option} | _mean(tie) for tie in self.winner.tied],
            },
            "tied": [tie.option for tie in self.winner.tied],
            "lift": None if self.lift is None else _lift(self.lift),
            "notes": list(self.notes),
            "level": self.level,
            "anytime": None if problem.planned is None else {"planned": problem.planned},
            "lower_is_better": problem.lower_is_better,
            "skipped": self.skipped,
            "taken_for": problem.taken_for,
        }

    def __repr__(self) -> str:
        return self.table().to_string()

    def _repr_html_(self) -> str:
        from .page import view

        return view(self, biases=True)


def compare(data: Any = None, methods: Sequence[str] | None = None, *, level: float = 0.95, **how: Any) -> Comparison:
    """Estimate the best option's mean by several methods side by side; by default all that the data allow.

    ``data`` and the other arguments are those of :func:`maxmean.estimate`.
    """
    if isinstance(methods, str):
        methods = [methods]
    if "method" in how:
        raise ArgumentError("compare takes methods, a list of names; estimate takes one method")
    return compare_problem(as_problem(data, **how), methods, level=level)


def compare_problem(
    problem: Problem,
    methods: Sequence[str] | None = None,
    *,
    level: float = 0.95,
    progress: Callable[[int], object] = lambda done: None,
) -> Comparison:
    """:func:`compare` on a problem that is ready; ``progress`` is called with the number of resamples done."""
    check_level(level)
    if methods is not None and not isinstance(methods, (list, tuple)):
        raise ArgumentError(f"methods must be a list of names, not {methods!r}")
    if methods is not None and not methods:
        raise ArgumentError("name at least one method")
    skipped = {method: reason for method in METHODS if (reason := problem.refusal(method)) is not None}
    if methods is not None:
        for method in methods:
            if check_method(method) in skipped:
                raise DataError(f"{method} {skipped[method]}")
        skipped = {}
    elif problem.data.covariances is None:
        # Unpaired data of equal lengths would allow them, but nothing says that the rows belong together.
        skipped |= dict.fromkeys(PAIRED, NEEDS_PAIRS)
    chosen = [method for method in METHODS if method in (methods or problem.methods) and method not in skipped]
    problem.biases(chosen, progress)
    estimates = {method: estimate_problem(problem, method) for method in chosen}
    return Comparison(problem, estimates, skipped, problem.winner(level), level)


def alone(est: Estimate, level: float) -> Comparison:
    """One estimate as a comparison; nothing is simulated."""
    return Comparison(est.problem, {est.method: est}, {}, est.problem.winner(level), level)


def _over_control(comparison: Comparison) -> str:
    """What the sentence says about the control, if there is one."""
    from .answer import among
    from .show import decimals_for, percent, signed

    lift, places = comparison.lift, decimals_for(comparison.problem.standard_errors)
    if lift is None:
        return ""
    best, control = lift.best, among(lift.control)
    low, high = (signed(end, places) for end in best.recommended.interval)
    value = f"{signed(best.recommended.value, places)} ({percent(best.relative.value)})"
    count = len(lift.beats)
    those = "no option beats it" if not count else f"{count} of {len(lift.options)} options beat{'s' * (count == 1)} it"
    if count == len(lift.options) == 1:
        those = "it beats it"
    return f"; over the control {control}, expect {value} of {among(best.option)}, {low} to {high}, and {those}"


def _lift(lift: NamedLift) -> dict[str, Any]:
    best = lift.best
    return {
        "control": lift.control,
        "options": {
            each.option: {
                "difference": _finite(each.difference),
                "interval": [_finite(end) for end in each.interval],
                "relative": _finite(each.relative),
                "relative_interval": [_finite(end) for end in each.relative_interval],
                "beats": each.beats,
            }
            for each in lift.options
        },
        "beats": list(lift.beats),
        "best": {
            "option": best.option,
            "recommended": _mean(best.recommended) | {"method": best.recommended.method},
            "relative": _mean(best.relative),
        },
    }


def _mean(mean: WinnerMean | OptionMean) -> dict[str, Any]:
    return {"value": _finite(mean.value), "interval": [_finite(end) for end in mean.interval]}


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _by_name(names: Sequence[str], values: Any) -> dict[str, float | None]:
    return {name: _finite(value) for name, value in zip(names, values, strict=True)}
