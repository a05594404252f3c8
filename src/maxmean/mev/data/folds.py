"""Scores of cross-validation: folds share training data, so that their mean is less certain than that of independent scores."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..errors import ArgumentError, DataError
from .moments import unit_for
from .options import Options
from .samples import Samples
from .summaries import Summaries


def allow_for_overlap(options: Options, test_size: float | None = None) -> Options:
    r"""The options' means with the covariance of scores whose training data overlap (Nadeau and Bengio, 2003).

    .. math:: \widehat{\mathrm{Var}}(\bar x) = \Big(\frac1k + \frac{n_\text{test}}{n_\text{train}}\Big)\, s^2

    for k scores; ``test_size`` is the test set's share of the data, 1/k if it is not known. Covariances have the same factor.

    >>> scores = Samples((np.array([0.8, 0.9, 0.7, 0.8]), np.array([0.6, 0.7, 0.5, 0.7])), paired=True)
    >>> corrected = allow_for_overlap(Options(("rbf", "linear"), scores), 0.25)
    >>> (corrected.data.variances / scores.variances).round(3).tolist()
    [2.333, 2.333]
    """
    scores = options.data
    if not isinstance(scores, Samples) or not scores.paired:
        raise ArgumentError(
            "test_size (--test-size) is for scores of all options on the same splits: paired observations"
        )
    splits = scores.n[0]
    if splits < 2:
        raise DataError(f"option {options.names[0]!r} has fewer than two values")
    share = 1 / splits if test_size is None else test_size
    factor = 1 + splits * share / (1 - share)
    unit, n = unit_for(*scores.values), np.full(len(options.names), splits)
    scaled = scores.scaled(1 / unit)  # so that no square overflows
    found = Summaries.of(
        np.asarray(scaled.means), None, None, n, options.names, factor * np.asarray(scaled.covariances)
    )
    data = replace(found, unit=unit * found.unit)
    guessed = f"if a test set has 1/{splits} of the data, as in {splits}-fold cross-validation; else say test_size (--test-size)"
    remark = (
        f"splits share training data: standard errors are {math.sqrt(factor):.2f} times those of independent scores (Nadeau and "
        f"Bengio, 2003), {guessed if test_size is None else f'for test sets of {test_size:.3g} of the data'}"
    )
    return replace(options, data=data, remarks=(*options.remarks, *([remark] if factor > 1 else [])))
