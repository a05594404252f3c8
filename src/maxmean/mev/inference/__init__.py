"""How sure are we? The bootstrap of the estimators, the probability of being best, and the winner's own mean."""

from .best import probability_best
from .resampling import RESAMPLES, Bootstrap, bootstrap
from .winner import Winner, WinnerMean, infer_winner

__all__ = ["RESAMPLES", "Bootstrap", "Winner", "WinnerMean", "bootstrap", "infer_winner", "probability_best"]
