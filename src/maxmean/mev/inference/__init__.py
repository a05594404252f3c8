"""How sure are we? Intervals for the maximum, the set of the best, ranks, shrinkage, the winner, lift over a control, bias."""

from .anytime import Sequences, rate_sequence, sequence_reach
from .best import probability_best
from .bias import EstimatorBias, bias_range
from .lift import Lift, infer_lift
from .maximum import maximum_interval, maximum_rate_interval
from .paired_rate import infer_paired_winner_rate, maximum_paired_rate_interval
from .posterior import Posterior
from .ranks import best_set, rank_intervals
from .shrinkage import Shrinkage, shrink
from .shrinkage_rate import ShrinkageRate, shrink_rate
from .top import Top, infer_top, infer_top_rate
from .winner import Winner, WinnerMean, infer_winner
from .winner_rate import infer_winner_rate

__all__ = [
    "EstimatorBias",
    "Lift",
    "Posterior",
    "Sequences",
    "Shrinkage",
    "ShrinkageRate",
    "Top",
    "Winner",
    "WinnerMean",
    "best_set",
    "bias_range",
    "infer_lift",
    "infer_paired_winner_rate",
    "infer_top",
    "infer_top_rate",
    "infer_winner",
    "infer_winner_rate",
    "maximum_interval",
    "maximum_paired_rate_interval",
    "maximum_rate_interval",
    "probability_best",
    "rank_intervals",
    "rate_sequence",
    "sequence_reach",
    "shrink",
    "shrink_rate",
]
