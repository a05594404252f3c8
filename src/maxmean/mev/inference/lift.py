r"""Lift over a control: how much larger each mean is than the control's, as a difference and as a share of it.

**All options.** Differences to one control are correlated. Their intervals hold at once by the quantile of the largest
:math:`|t|` under these correlations (Dunnett, "A multiple comparison procedure for comparing several treatments with a control",
Journal of the American Statistical Association 50, 1955), here with a variance for each option.

**Shares.** A ratio of means has Fieller's interval, from the test that :math:`\mu_i - \rho \mu_c` is zero: exact for normal
means, where the delta method is not if the control's mean is uncertain. The correlations are those at the estimated ratios
(Dilba, Bretz, Guiard and Hothorn, "Simultaneous confidence intervals for ratios", Methods of Information in Medicine 43, 2004).

**The best one.** It was picked for its lift: :func:`maxmean.mev.inference.infer_winner` on the differences, in which the control
does not take part in the race.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Array, special
from ..errors import ArgumentError
from .checks import checked, checked_counts, checked_freedom, tail_of
from .exact import Rates
from .lift_rate import difference_bounds, ratio_bounds
from .shrinkage import shrink
from .simultaneous import diagonal, max_quantile
from .tails import difference_freedom, tail_probability, upper_quantile
from .winner import Winner, infer_winner


@dataclass(frozen=True)
class Lift:
    """Means beside a control's: see :func:`infer_lift`. K options, the control not among them."""

    control: int
    options: tuple[int, ...]
    """Which options the rows below are about."""
    difference: np.ndarray
    """Shape ``(K,)``."""
    interval: np.ndarray
    """Intervals of the differences, shape ``(K, 2)``; all hold at once with probability ``level``."""
    relative: np.ndarray
    """Differences as shares of the control's mean, without its sign; shape ``(K,)``."""
    relative_interval: np.ndarray
    """Shape ``(K, 2)``; all hold at once. The whole line if the control's mean may be zero."""
    beats: np.ndarray
    """Which options are better than the control, shape ``(K,)``: none of them wrongly, with probability ``level``."""
    best: Winner
    """The difference of the option with the best estimate, corrected for its having been picked; ``index`` is one of ``options``.
    Where lower is better, of the negated differences."""
    best_value: float
    """Its difference, drawn towards those of the others as in :func:`maxmean.mev.inference.shrink`."""
    best_relative: tuple[float, float]
    """``best.bounds`` for the share: Fieller's interval with as many standard errors to each side."""
    level: float


def infer_lift(
    means: Array,
    covariance: Array,
    control: int,
    *,
    level: float = 0.95,
    freedom: Array = math.inf,
    trials: Array | None = None,
    lower_is_better: bool = False,
) -> Lift:
    r"""Differences to a control, and the same as shares of it, with intervals that hold for all options at once.

    With :math:`d_i = x_i - x_c` and its standard error :math:`s_i`, the intervals are :math:`d_i \pm q s_i`, where q is the
    quantile of :math:`\max_i |d_i - \delta_i| / s_i`. The share :math:`\rho - 1 = \mu_i / \mu_c - 1` has the interval of all
    :math:`\rho` with

    .. math:: |x_i - \rho x_c| \le q \sqrt{v_i - 2 \rho\, v_{ic} + \rho^2 v_c}.

    Options beat the control by one-sided tests, of which those that have been rejected no longer count in q for the others
    (Romano and Wolf, 2005).

    Parameters
    ----------
    means, covariance, level
        As in :func:`maxmean.mev.inference.infer_winner`.
    control
        The number of the control, from 0.
    freedom
        Degrees of freedom of the standard errors, a number or one for each option. A difference of independent means has Welch's,
        or fewer if sample sizes differ; with a covariance matrix, the smallest counts for all, and q is Bonferroni's if there
        were fewer rows than twice the differences.
    trials
        Says that the means are rates of so many: intervals are those of score tests (Miettinen and Nurminen, 1985), and beating
        the control is tested as in :func:`maxmean.mev.inference.best_set`.
    lower_is_better
        The best option has the smallest mean, and beats the control by being below it.

    Examples
    --------
    >>> lift = infer_lift([10.0, 11.0, 12.0], [0.04, 0.04, 0.04], control=0)
    >>> lift.difference.tolist(), lift.interval.round(2).tolist()
    ([1.0, 2.0], [[0.37, 1.63], [1.37, 2.63]])
    >>> lift.relative.round(2).tolist(), lift.relative_interval.round(3).tolist(), lift.beats.tolist()
    ([0.1, 0.2], [[0.037, 0.168], [0.133, 0.271]], [True, True])
    >>> [round(end, 2) for end in lift.best.bounds]
    [1.41, 2.55]
    """
    x, covariances = checked(means, covariance)
    if not 0 <= control < len(x):
        raise ArgumentError(f"control must be from 0 to {len(x) - 1}, the number of an option, not {control}")
    if len(x) < 2:
        raise ArgumentError("a lift needs an option beside the control")
    alpha, sign = 2 * tail_of(level), -1 if lower_is_better else 1
    degrees = checked_freedom(freedom, len(x))
    counts = None if trials is None else checked_counts(np.rint(x * np.asarray(trials)), trials)

    against, rest = contrasts(x, covariances, degrees, control)
    ratios = _ratios(x, control)
    shares = Contrasts.of(x, covariances, degrees, control, np.where(np.isfinite(ratios), ratios, 1.0))
    best = infer_winner(sign * against.values, against.covariances, level=level, freedom=against.degrees)
    shrunk = best_shrunk(against, sign, best.index)
    best_relative = _best_relative(x, covariances, control, int(rest[best.index]), best, against, sign)
    if counts is None:
        reach = against.reach(alpha) * against.errors
        interval = np.stack([against.values - reach, against.values + reach], axis=-1)
        scores = against.scores
        around = shares.reach(alpha)
        relative = np.array([fieller(x, covariances, control, i, t, t) for i, t in zip(rest, around, strict=True)])
    else:
        k, n = counts
        rates = Rates(k, n, diagonal(covariances))
        scores = rates.scores(rest, np.array(control))
        normal = max_quantile(against.covariances, alpha)
        interval = difference_bounds(k[rest], n[rest], k[control], n[control], normal)
        relative = ratio_bounds(k[rest], n[rest], k[control], n[control], max_quantile(shares.covariances, alpha)) - 1
        if rates.few(
            rest[best.index], np.array(control)
        ):  # not to be taken for normal: what holds for all holds for the best
            low, high = sorted(sign * interval[best.index])
            best = replace(best, bounds=(float(low), float(high)))
            best_relative = float(relative[best.index][0]), float(relative[best.index][1])
    return Lift(
        control=control,
        options=tuple(rest.tolist()),
        difference=against.values,
        interval=interval,
        relative=(ratios - 1) * (np.sign(x[control]) or 1.0),
        relative_interval=relative,
        beats=step_down(sign * scores, against.covariances, alpha, against.known),
        best=best,
        best_value=sign * min(max(shrunk, best.bounds[0]), best.bounds[1]),
        best_relative=best_relative,
        level=float(level),
    )


def contrasts(
    x: np.ndarray, covariances: np.ndarray, degrees: np.ndarray, control: int
) -> tuple[Contrasts, np.ndarray]:
    """The differences to the control, and which options they are of."""
    rest = np.array([k for k in range(len(x)) if k != control])
    return Contrasts.of(x, covariances, degrees, control, np.ones(len(rest))), rest


def best_shrunk(against: Contrasts, sign: int, best: int) -> float:
    """The best difference, drawn towards the others; with few observations, by as much as Student's quantiles say."""
    known = upper_quantile(0.025, np.asarray(math.inf))
    wider = float(np.square(upper_quantile(0.025, against.degrees) / known).max())
    return float(shrink(sign * against.values, against.covariances * wider).values[best])


@dataclass(frozen=True)
class Contrasts:
    """Estimates x_i - r_i x_c of all options but the control."""

    values: np.ndarray
    covariances: np.ndarray
    """Shape ``(K, K)``."""
    degrees: np.ndarray
    """Welch's degrees of freedom, fewer if sample sizes differ, or the smallest of all if there are covariances."""
    known: float = math.inf
    """Degrees of freedom of the correlations; infinite for independent options, whose differences share the control alone."""

    @classmethod
    def of(
        cls, x: np.ndarray, covariances: np.ndarray, degrees: np.ndarray, control: int, ratios: np.ndarray
    ) -> Contrasts:
        rest = np.array([k for k in range(len(x)) if k != control])
        values = x[rest] - ratios * x[control]
        variances = diagonal(covariances)
        own, base = variances[rest], np.square(ratios) * variances[control]
        both = np.outer(ratios, ratios) * variances[control]
        if covariances.ndim == 1:
            both[np.diag_indices(len(rest))] += own
            freedom = difference_freedom(own, base, degrees[rest], degrees[control])
        else:
            with_control = np.outer(covariances[rest, control], ratios)
            both += covariances[np.ix_(rest, rest)] - with_control - with_control.T
            freedom = np.full(len(rest), float(degrees.min()))
        known = math.inf if covariances.ndim == 1 else float(degrees.min())
        nothing = both.diagonal() <= 1e-13 * (own + base)  # the control itself under another name
        both[nothing], both[:, nothing] = 0.0, 0.0
        return cls(values, both, freedom, known)

    @property
    def errors(self) -> np.ndarray:
        return np.sqrt(self.covariances.diagonal())

    def reach(self, alpha: float) -> np.ndarray:
        """Standard errors to each side that are not exceeded anywhere, but with probability ``alpha``."""
        return upper_quantile(
            special(np).ndtr(-max_quantile(self.covariances, alpha, freedom=self.known)), self.degrees
        )

    @property
    def scores(self) -> np.ndarray:
        """Normal scores of the differences, as of :func:`maxmean.mev.inference.best_set`; certain ones are infinite."""
        errors = self.errors
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(errors > 0, self.values / errors, np.where(self.values == 0, 0.0, np.inf * self.values))
        finite = np.isfinite(t)
        tails = tail_probability(np.abs(t[finite]), self.degrees[finite])
        t[finite] = np.copysign(special(np).ndtri(tails), t[finite])
        return t


def step_down(scores: np.ndarray, covariances: np.ndarray, alpha: float, freedom: float = math.inf) -> np.ndarray:
    """Which scores are too large for chance, the familywise error being alpha."""
    beats = np.isposinf(scores)
    open_ = ~beats
    while open_.any():
        limit = max(max_quantile(covariances[np.ix_(open_, open_)], alpha, 1, freedom), 0.0)
        rejected = open_ & (scores > limit)
        if not rejected.any():
            break
        beats |= rejected
        open_ &= ~rejected
    return beats


def _ratios(x: np.ndarray, control: int) -> np.ndarray:
    """Means as multiples of the control's; nan where that is zero."""
    rest = np.delete(x, control)
    return rest / x[control] if x[control] else np.full(len(rest), math.nan)


def fieller(
    x: np.ndarray, covariances: np.ndarray, control: int, i: int, below: float, above: float
) -> tuple[float, float]:
    """The shares at which option i is at most ``below`` standard errors above what they say, and at most ``above`` below it."""
    variances, c = diagonal(covariances), control
    covariance = 0.0 if covariances.ndim == 1 else float(covariances[i, c])
    sign = 1.0 if x[c] > 0 else -1.0

    def end(t: float, side: float) -> float:
        if not math.isfinite(t):
            return side * math.inf
        a, b = x[c] ** 2 - t**2 * variances[c], x[i] * x[c] - t**2 * covariance
        e = x[i] ** 2 - t**2 * variances[i]
        if a <= 0:
            return side * math.inf
        root = (b + sign * side * math.sqrt(max(b * b - a * e, 0.0))) / a
        return float(sign * (root - 1))

    return end(below, -1.0), end(above, 1.0)


def _best_relative(
    x: np.ndarray, covariances: np.ndarray, control: int, i: int, best: Winner, against: Contrasts, sign: int
) -> tuple[float, float]:
    error = float(against.errors[best.index])
    low, high = best.bounds
    value = sign * float(against.values[best.index])
    if not x[control]:
        return -math.inf, math.inf
    below, above = ((value - low) / error, (high - value) / error) if error else (0.0, 0.0)
    return fieller(x, covariances, control, i, *((below, above) if sign > 0 else (above, below)))
