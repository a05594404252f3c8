"""One file an experiment, of the paper or beyond it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import unknown
from ..errors import LabError
from ..experiment import Experiment
from .ads import Ads
from .autocorrelation import Autocorrelation
from .cliff import Cliff
from .cliff_rates import CliffRates
from .convergence import Convergence
from .correlation import Correlation
from .gaussian import GaussianPair
from .kernels import TunedKernels
from .maximization_bias import MaximizationBias
from .minatar import MinAtarStudy
from .which import WhichEstimator

EXPERIMENTS: dict[str, Experiment[Any]] = {
    experiment.name: experiment
    for experiment in (
        GaussianPair(),
        TunedKernels(),
        Autocorrelation(),
        Correlation(),
        Ads(),
        MaximizationBias(),
        Cliff(),
        CliffRates(),
        Convergence(),
        WhichEstimator(),
        MinAtarStudy(),
    )
}
"""Every experiment by name, in the paper's order; ours before the one that takes a GPU."""


def find_experiments(names: Sequence[str]) -> list[Experiment[Any]]:
    """The named experiments; where none is named, all but those that are run only by name."""
    for name in names:
        if name not in EXPERIMENTS:
            raise LabError(unknown("unknown experiment", name, EXPERIMENTS))
    usual = [name for name, experiment in EXPERIMENTS.items() if not experiment.only_by_name]
    return [EXPERIMENTS[name] for name in dict.fromkeys(names or usual)]
