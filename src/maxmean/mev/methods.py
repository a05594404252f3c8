"""The estimators by the names that Python, the command line and the tables share, applied to any shape of data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from ..errors import unknown
from .arrays import Array, Rng, namespace, streams
from .data import Data
from .errors import ArgumentError, DataError, KernelError
from .estimators import (
    cross_validation_estimate,
    double_estimate,
    kernel_weights,
    maxmin_estimate,
    random_argmax,
    weighted_mean,
)
from .kernels import KERNELS, Gaussian, Indicator, Kernel
from .probabilities import best_probabilities
from .settings import check_number, check_whole

METHODS: dict[str, str] = {
    "me": "largest mean, naive",
    "ae": "average of all",
    "de": "one half picks",
    "cve": "halves pick in turn",
    "we": "weighted by P(best)",
    "mme": "largest of minima",
    "te": "average of the race",
    "ke": "weighted by kernel",
    "te*": "te, paired",
    "ke*": "ke, paired",
}
"""Every method, with a description short enough for a table."""

_LOWER = {"me": "smallest mean, naive", "mme": "smallest of maxima"}


def described(method: str, lower_is_better: bool) -> str:
    """A method in few words.

    >>> described("me", False), described("me", True)
    ('largest mean, naive', 'smallest mean, naive')
    """
    return _LOWER.get(method, METHODS[method]) if lower_is_better else METHODS[method]


MOST_DRAWS = 1_000_000
MOST_PARTS = 1_000
SPLITTING = ("de", "cve", "mme")
PAIRED = ("te*", "ke*")
NEEDS_PAIRS = "needs paired samples, the same units in the same order for every option, or a covariance matrix"


@dataclass(frozen=True)
class Settings:
    """Settings of the estimators."""

    alpha: float = 0.1
    """Significance level of ``te`` and ``te*``, in (0, 0.5]."""
    kernel: Kernel = Gaussian()  # noqa: RUF009  (frozen)
    """Kernel of ``ke`` and ``ke*``."""
    draws: int | None = None
    """Monte Carlo draws of ``we``; None integrates exactly."""
    parts: int = 2
    """Parts that ``mme`` splits each option's data into."""

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha)
        Indicator(self.alpha)
        check_whole("parts", self.parts, 1, MOST_PARTS)
        if self.draws is not None:
            check_whole("draws", self.draws, 1, MOST_DRAWS)


@dataclass(frozen=True)
class Evaluation:
    """An estimate with the weights it gives the options; both keep the leading axes of the data."""

    value: Array
    weights: Array


DEFAULTS = Settings()


def check_method(method: str) -> str:
    """``method``, if there is one of that name; otherwise an error that names the nearest."""
    if isinstance(method, str) and method in METHODS:
        return method
    raise ArgumentError(unknown("unknown method", method, METHODS))


def parse_kernel(text: str) -> Kernel:
    """A kernel from its name and, after a colon, its parameters.

    >>> parse_kernel("beta:2,0.5")
    Beta(a=2.0, b=0.5)
    """
    name, _, numbers = text.strip().lower().partition(":")
    if name not in KERNELS:
        raise KernelError(unknown("unknown kernel", name, KERNELS))
    takes = [f.name for f in fields(KERNELS[name])]  # type: ignore[arg-type]
    try:
        parameters = [float(number) for number in numbers.split(",")] if numbers else []
    except ValueError:
        raise KernelError(f"kernel {name!r} takes numbers after the colon, not {numbers!r}") from None
    if len(parameters) > len(takes):
        raise KernelError(f"kernel {name!r} takes at most {len(takes)} numbers, not {len(parameters)}")
    return KERNELS[name](*parameters)


def needs_parts(methods: Sequence[str], settings: Settings) -> tuple[int, ...]:
    """The numbers of parts into which ``methods`` split the data."""
    halves = {2} if {"de", "cve"} & set(methods) else set()
    return tuple(sorted(halves | ({settings.parts} if "mme" in methods else set())))


def evaluate(method: str, data: Data, settings: Settings = DEFAULTS, *, rng: Rng = 0) -> Evaluation:
    """Apply one estimator to data of any shape and of any array library.

    >>> from maxmean.mev.data import Samples
    >>> float(evaluate("te", Samples.of([[1.0, 3.0], [2.0, 2.0, 5.0], [0.0, -1.0]])).value)
    2.5
    """
    xp = namespace(data.means)
    # A source that is used twice gives the same numbers twice: the weights are those of the very choice that was made.
    splitting, choosing = streams(rng, 2)
    match check_method(method):
        case "me":
            return _weighted(data, _shares(data.means == xp.max(data.means, axis=-1, keepdims=True), data))
        case "ae":
            return _weighted(data, _shares(xp.ones_like(data.means), data))
        case "we":
            return _weighted(data, best_probabilities(data.means, data.variances, draws=settings.draws, rng=choosing))
        case "te" | "ke":
            return _weighted(data, kernel_weights(data.means, data.variances, _kernel(method, settings)))
        case "te*" | "ke*":
            return _weighted(data, _paired_weights(method, data, settings))
        case "de":
            halves = data.split(2, splitting)
            chosen = random_argmax(halves[0], choosing)
            return Evaluation(double_estimate(halves[0], halves[1], choosing), _shares(chosen, data))
        case "cve":
            halves = data.split(2, splitting)
            chosen = random_argmax(halves, choosing)
            value = cross_validation_estimate(halves[0], halves[1], choosing)
            return Evaluation(value, xp.mean(_shares(chosen, data), axis=0))
        case _:
            parts = data.split(settings.parts, splitting)
            return Evaluation(maxmin_estimate(parts), _shares(random_argmax(xp.min(parts, axis=0), choosing), data))


def _kernel(method: str, settings: Settings) -> Kernel:
    return Indicator(settings.alpha) if method.startswith("te") else settings.kernel


def _paired_weights(method: str, data: Data, settings: Settings) -> Array:
    if data.covariances is None:
        raise DataError(f"{method} {NEEDS_PAIRS}")
    return kernel_weights(data.means, data.variances, _kernel(method, settings), covariances=data.covariances)


def _weighted(data: Data, weights: Array) -> Evaluation:
    return Evaluation(weighted_mean(data.means, weights), weights)


def _shares(chosen: Array, data: Data) -> Array:
    xp = namespace(chosen)
    chosen = xp.astype(chosen, data.means.dtype)
    return chosen / xp.sum(chosen, axis=-1, keepdims=True)
