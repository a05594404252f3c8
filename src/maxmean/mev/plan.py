"""How many more data: observations of every option until the best is told apart, from a pilot or from guesses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import unknown
from .asking import as_problem
from .data.inputs import default_names
from .errors import ArgumentError, DataError
from .inference.power import MOST, Supposed, grid, needed
from .inference.simultaneous import diagonal
from .problem import Problem
from .settings import check_level, check_number, check_truth, check_whole

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class PlanPoint:
    """What to expect with so many observations of every option."""

    n: int
    picked: float
    """P(the option that looks best is the best)."""
    told: float
    """P(the best is told apart from all others), or P(it beats the control)."""
    width: float | None = None
    """The mean width of the interval for the option that looks best, if a width was asked for."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Observations of every option that reach a goal, and what fewer and more of them do."""

    n: int
    """Observations of every option."""
    best: str
    """The option that is supposed to be the best."""
    means: dict[str, float]
    """What the means are supposed to be."""
    power: float
    level: float
    width: float | None
    control: str | None
    curve: tuple[PlanPoint, ...]
    """From an eighth to the double of ``n``."""
    source: str
    """Where the means come from, in words."""
    lower_is_better: bool = False

    @property
    def point(self) -> PlanPoint:
        """What to expect with ``n`` observations of every option."""
        return next(each for each in self.curve if each.n == self.n)

    def sentence(self) -> str:
        """The answer in plain words."""
        from .show import confidence, number, shortened, visible

        what = "told apart from all others" if self.control is None else f"seen to beat {visible(self.control)}"
        best, width = visible(self.best), self.point.width
        reached = f"{best} is {what} with probability {self.point.told:.0%}"
        if width is not None:
            whose = f"{best}'s lift" if self.control is not None else "the option that looks best"
            reached = f"the {confidence(self.level)} interval of {whose} is {number(width)} wide on average"
        listed = ", ".join(f"{visible(name)} {number(mean)}" for name, mean in self.means.items())
        return (
            f"With {self.n:,} observations of each of {len(self.means)} options {reached}, if the true means are "
            f"{shortened(listed, 200)} ({self.source})."
        )

    def table(self) -> pd.DataFrame:
        """One row for each number of observations: P(picked), P(told apart) and, if asked for, the width."""
        import pandas as pd

        rows = {each.n: {"picked": each.picked, "told": each.told, "width": each.width} for each in self.curve}
        frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("n")
        return frame if self.width is not None else frame.drop(columns="width")

    def plot(self, path: str) -> None:
        """Draw the curve and write it to ``path`` (.png, .pdf or .svg)."""
        from .plan_picture import plot_plan

        plot_plan(self, path)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "n": self.n,
            "best": self.best,
            "means": self.means,
            "source": self.source,
            "power": self.power,
            "level": self.level,
            "width": self.width,
            "control": self.control,
            "lower_is_better": self.lower_is_better,
            "curve": [vars(each) for each in self.curve],
        }


def plan(
    data: Any = None,
    *,
    means: Any = None,
    sds: Any = None,
    rates: Any = None,
    options: int | None = None,
    difference: float | None = None,
    names: Sequence[str] | None = None,
    power: float = 0.8,
    width: float | None = None,
    level: float = 0.95,
    control: str | None = None,
    lower_is_better: bool = False,
    seed: int = 0,
    **how: Any,
) -> Plan:
    r"""How many observations of every option it takes until the best one is told apart from all others.

    "Told apart" means that :meth:`maxmean.Estimate.best_set` holds it alone; with a ``control``, that it is one of
    ``lift().beats``. Experiments are simulated with the means that are supposed to be true, and answered as real ones are.

    Parameters
    ----------
    data
        A pilot, as :func:`maxmean.estimate` takes it, with other arguments of that function. Its means are drawn towards each
        other, for the best one is ahead by luck too: see :func:`maxmean.mev.inference.shrink`.
    means, sds
        Guesses instead of a pilot: the mean of every option, as a list or by name, and the standard deviation of one observation,
        one number or one for each.
    rates
        Guesses of success rates instead: observations are zeros and ones.
    options, difference
        The best is this much better than all others, which are equal: the hardest case with this difference. With a pilot, only
        its spread counts then. Without one, ``rates`` or ``means`` is the others' value (0 if it is left out), and ``options``
        says how many there are.
    names
        Names of the options.
    power
        The probability to reach.
    width
        Plan for the interval of ``winner().recommended`` (with a control, of ``lift().best.recommended``) to be so wide on
        average, instead of for ``power``.
    level, control, lower_is_better, seed
        As in :func:`maxmean.estimate`; ``seed`` is that of the simulations.
    **how
        Other arguments of :func:`maxmean.estimate`, about the pilot.

    Examples
    --------
    >>> found = plan(means={"old": 10.0, "new": 10.5}, sds=2.0)
    >>> found.best, 185 < found.n < 205, 0.79 < found.point.told < 0.82
    ('new', True, True)

    The textbook formula has 2 (1.695 + 0.842)² (2.0/0.5)² = 206: 1.695 belongs to the 4.5% that the set of the best spends here.
    """
    check_level(level)
    for name, value in (("power", power), ("difference", difference), ("width", width)):
        if value is not None:
            check_number(name, value)
    if not 0 < power < 1:
        raise ArgumentError(f"power must lie between 0 and 1, not {power}")
    for name, value in (("difference", difference), ("width", width)):
        if value is not None and not (value > 0 and math.isfinite(value)):
            raise ArgumentError(f"{name} must be a positive number, not {value}")
    check_truth("lower_is_better", lower_is_better)
    check_whole("seed", seed, 0)
    sign = -1 if lower_is_better else 1
    guessed = means is not None or rates is not None or options is not None
    if guessed and (data is not None or how):
        raise ArgumentError("means, rates and options are guesses, instead of a pilot: give one or the other")
    if guessed:
        called, found, source = _guesses(means, sds, rates, options, difference, names, sign)
    else:
        problem = as_problem(data, names=names, lower_is_better=lower_is_better, **how)
        return plan_problem(
            problem, difference=difference, power=power, width=width, level=level, control=control, seed=seed
        )
    return _planned(called, found, source, sign, 1.0, power, width, level, control, seed)


def plan_problem(
    problem: Problem,
    *,
    difference: float | None = None,
    power: float = 0.8,
    width: float | None = None,
    level: float = 0.95,
    control: str | None = None,
    seed: int = 0,
) -> Plan:
    """:func:`plan` from a pilot that is ready."""
    if problem.data.n is None:
        raise DataError("a pilot needs the number of observations of every option: give n (--n)")
    n = np.asarray(problem.data.n, float)
    shrunk = problem.shrinkage.values
    rates = problem.counts is not None and problem.spread.ndim == 1
    sign = problem.direction
    centre = problem.origin + sign * shrunk
    spread = problem.spread * (n if problem.spread.ndim == 1 else np.sqrt(np.outer(n, n)))
    source = "the pilot's, drawn towards each other"
    if difference is not None:
        apart = difference / problem.unit
        leader = float(centre[int(np.argmax(sign * centre))])
        centre = np.where(np.arange(len(n)) == int(np.argmax(sign * centre)), leader, leader - sign * apart)
        source = "the best is ahead by the difference, with the pilot's spread"
    if rates and not ((centre > 0) & (centre < 1)).all():
        raise DataError("a rate would lie outside 0 to 1: plan with a smaller difference")
    found = _Guess(centre, spread, rates)
    chosen = control if control is not None else problem.control
    return _planned(problem.names, found, source, sign, problem.unit, power, width, level, chosen, seed)


@dataclass(frozen=True)
class _Guess:
    """Means as the user has them, but for the unit, and one observation's spread."""

    means: np.ndarray
    spread: np.ndarray
    rates: bool


def _guesses(
    means: Any,
    sds: Any,
    rates: Any,
    options: int | None,
    difference: float | None,
    names: Sequence[str] | None,
    sign: int,
) -> tuple[tuple[str, ...], _Guess, str]:
    if means is not None and rates is not None:
        raise ArgumentError("means and rates are two ways to say the same: give one")
    what = "rates" if rates is not None else "means"
    given = rates if rates is not None else means if means is not None else 0.0
    called = [str(name) for name in given] if isinstance(given, Mapping) else None
    centre = _numbers(what, list(given.values()) if isinstance(given, Mapping) else given)
    if difference is not None:
        if centre.size > 1:
            raise ArgumentError(
                f"with a difference, {what} is one number, that of all but the best: say how many with options"
            )
        count = check_whole("options", 2 if options is None else options, 2, 10_000)
        centre = np.concatenate(
            [np.full(count - 1, float(centre.reshape(-1)[0])), centre.reshape(-1)[:1] + sign * difference]
        )
    elif options is not None:
        raise ArgumentError("options goes with a difference, by which the best one is ahead")
    if centre.ndim != 1 or centre.size < 2:
        raise ArgumentError(f"{what} must be at least two numbers, or one with a difference")
    if names is not None:
        called = [str(name) for name in names]
    called = called or default_names(len(centre))
    if len(called) != len(centre) or len(set(called)) != len(called):
        raise ArgumentError(f"there are {len(centre)} options and {len(set(called))} different names")
    if rates is not None:
        if sds is not None:
            raise ArgumentError("the spread of rates follows from them: leave sds out")
        if not ((centre > 0) & (centre < 1)).all():
            raise ArgumentError(f"rates must lie between 0 and 1, not {centre[(centre <= 0) | (centre >= 1)][0]:g}")
        return tuple(called), _Guess(centre, np.zeros(len(centre)), True), "as guessed"
    if sds is None:
        raise ArgumentError("means need sds (--sds), the standard deviation of one observation")
    deviations = _numbers("sds", [sds[name] for name in called] if isinstance(sds, Mapping) else sds)
    if deviations.size not in (1, len(centre)) or not (deviations > 0).all():
        raise ArgumentError(f"sds must be positive, one number or one for each of {len(centre)} options")
    spread = np.square(np.broadcast_to(deviations.reshape(-1) if deviations.ndim else deviations, centre.shape))
    return tuple(called), _Guess(centre, spread, False), "as guessed"


def _numbers(what: str, given: Any) -> np.ndarray:
    try:
        found = np.asarray(given, float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{what} must be numbers, not {given!r}") from None
    if not np.isfinite(found).all():
        raise ArgumentError(f"{what} must be finite numbers")
    return found


def _planned(
    names: tuple[str, ...],
    guess: _Guess,
    source: str,
    sign: int,
    unit: float,
    power: float,
    width: float | None,
    level: float,
    control: str | None,
    seed: int,
) -> Plan:
    check_level(level)
    if control is not None and control not in names:
        raise ArgumentError(unknown("there is no option for a control called", control, names[:20]))
    inner = guess.means if sign > 0 else (1 - guess.means if guess.rates else -guess.means)
    number = None if control is None else names.index(control)
    supposed = Supposed(inner, guess.spread, guess.rates, level, number, seed)
    if width is None:
        _refuse_ties(supposed, names)
        n = needed(lambda n: supposed.told(n) >= power, supposed.first_guess(power))
    else:
        wide = width / unit
        # A width falls as the root of the observations: one look leads close to the goal.
        start = min(supposed.first_guess(power) if supposed.gap > 0 else 100, 10_000)
        start = int(min(max(start * (supposed.width(start) / wide) ** 2, 2), MOST))
        n = needed(lambda n: supposed.width(n) <= wide, start)
    points = tuple(
        PlanPoint(k, supposed.picked(k), supposed.told(k), None if width is None else unit * supposed.width(k))
        for k in sorted({*grid(n), n})
    )
    return Plan(
        n,
        names[supposed.best],
        {name: float(unit * mean) for name, mean in zip(names, guess.means, strict=True)},
        power,
        level,
        width,
        control,
        points,
        source,
        sign < 0,
    )


def _refuse_ties(supposed: Supposed, names: tuple[str, ...]) -> None:
    best = names[supposed.best]
    spread = math.sqrt(
        float((supposed.means * (1 - supposed.means) if supposed.rates else diagonal(supposed.spread)).max())
    )
    if supposed.control is not None and supposed.gap <= 0:
        raise DataError(f"{names[supposed.control]!r} is supposed to be no worse than {best!r}, the best of the others")
    if supposed.gap <= 1e-4 * spread:
        raise DataError(
            f"{best!r} is supposed to be ahead by {supposed.gap:.2g} only, which no amount of data shows: plan with the smallest "
            "difference that matters (difference=, --difference)"
        )
