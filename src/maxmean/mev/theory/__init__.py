"""What the estimators do on average: exact bias, variance and MSE for Gaussian means, and general bounds."""

from .bounds import bias_bounds, variance_bound
from .expectation import Expectation, kernel_expectation
from .pair import Moments, gaussian_pair

__all__ = ["Expectation", "Moments", "bias_bounds", "gaussian_pair", "kernel_expectation", "variance_bound"]
