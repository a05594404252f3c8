"""Finite MDPs at native speed: problems, exact solutions, and Q-learning with controlled bias."""

from importlib.util import find_spec

from ..errors import missing

if find_spec("numba") is None:
    raise ModuleNotFoundError(missing("maxmean.tabular", "numba", extra="tabular"), name="numba")

from .algorithms import KEQ, TEQ, Algorithm, DoubleQ, MaxMinQ, Q, SelfCorrectingQ, VarianceTracker, WeightedQ
from .checks import MDPError
from .learn import Learned, learn
from .mdp import MDP
from .problems import cliff_walking, from_gymnasium, maximization_bias, noisy_grid, random_mdp
from .schedules import CLIFF_LEARNING_RATE, INVERSE_ROOT, Schedule, constant, polynomial
from .solve import Solution, evaluate, solve

__all__ = [
    "CLIFF_LEARNING_RATE",
    "INVERSE_ROOT",
    "KEQ",
    "MDP",
    "TEQ",
    "Algorithm",
    "DoubleQ",
    "Learned",
    "MDPError",
    "MaxMinQ",
    "Q",
    "Schedule",
    "SelfCorrectingQ",
    "Solution",
    "VarianceTracker",
    "WeightedQ",
    "cliff_walking",
    "constant",
    "evaluate",
    "from_gymnasium",
    "learn",
    "maximization_bias",
    "noisy_grid",
    "polynomial",
    "random_mdp",
    "solve",
]
