"""From the arguments of :func:`maxmean.estimate` to the problem that they describe."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .data.inputs import as_options
from .data.layout import Reading
from .errors import ArgumentError, DataWarning
from .inference.bias import NOISE
from .kernels import Gaussian, Kernel, as_kernel
from .methods import Settings, parse_kernel
from .problem import Problem
from .settings import check_truth

PLANNED = 1_000
"""Observations of each option at which always-valid intervals are shortest, unless told otherwise."""


def as_problem(
    data: Any = None,
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
) -> Problem:
    """The problem that the arguments of :func:`maxmean.estimate` describe, all but the method."""
    columns = {
        "by": by,
        "value": value,
        "successes": successes,
        "trials": trials,
        "rate": rate,
        "mean": mean,
        "se": se,
        "sd": sd,
        "n": n,
        "lower": lower,
        "upper": upper,
        "unit": unit,
        "numerator": numerator,
        "denominator": denominator,
        "cluster": cluster,
        "covariate": covariate,
        "layout": layout,
    }
    chosen = parse_kernel(kernel) if isinstance(kernel, str) else as_kernel(kernel)
    settings = Settings(alpha, chosen, draws, parts)
    reading = Reading.of(
        options=options,
        where=where,
        drop_missing=drop_missing,
        decimal=decimal,
        limits_level=limits_level,
        sheet=sheet,
        query=query,
        test_size=test_size,
    )
    found = as_options(data, columns, names, paired, covariance, reading)
    for remark in found.remarks:
        warnings.warn(remark, DataWarning, stacklevel=3)
    return Problem.of(
        found,
        settings,
        lower_is_better=lower_is_better,
        seed=seed,
        resamples=resamples,
        control=control,
        planned=planned_at(anytime, planned),
    )


def planned_at(anytime: bool, planned: int | None) -> int | None:
    """Observations at which always-valid intervals are shortest; None if no such intervals are asked for."""
    if check_truth("anytime", anytime):
        return PLANNED if planned is None else planned
    if planned is not None:
        raise ArgumentError("planned is about the intervals of anytime, which were not asked for: ask for both or none")
    return None
