"""The statistics: estimators of the maximum expected value, on NumPy, JAX and PyTorch arrays."""

from __future__ import annotations

from ..lazy import lazily
from .data import Counts, Samples, Summaries
from .ensemble import ensemble_target
from .errors import ArgumentError, DataError, DataWarning, KernelError, PictureWarning
from .estimators import (
    average_estimate,
    cross_validation_estimate,
    double_estimate,
    kernel_estimate,
    kernel_weights,
    maximum_estimate,
    maxmin_estimate,
    t_estimate,
    weighted_estimate,
    weighted_mean,
)
from .kernel_checks import check_kernel
from .kernels import (
    KERNELS,
    Beta,
    Custom,
    Epanechnikov,
    Gaussian,
    Indicator,
    Kernel,
    Softmax,
    StudentT,
    Triangle,
)
from .methods import METHODS, Settings, evaluate
from .probabilities import best_probabilities
from .statistic import t_statistic

_SUBMODULES = ("data", "inference", "methods", "processes", "theory", "tuning")

__all__ = [
    "KERNELS",
    "METHODS",
    "ArgumentError",
    "Beta",
    "Counts",
    "Custom",
    "DataError",
    "DataWarning",
    "Epanechnikov",
    "Gaussian",
    "Indicator",
    "Kernel",
    "KernelError",
    "PictureWarning",
    "Samples",
    "Settings",
    "Softmax",
    "StudentT",
    "Summaries",
    "Triangle",
    "average_estimate",
    "best_probabilities",
    "check_kernel",
    "cross_validation_estimate",
    "double_estimate",
    "ensemble_target",
    "evaluate",
    "kernel_estimate",
    "kernel_weights",
    "maximum_estimate",
    "maxmin_estimate",
    "t_estimate",
    "t_statistic",
    "weighted_estimate",
    "weighted_mean",
]


__getattr__, _ = lazily(__name__, {}, modules=_SUBMODULES)


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])
