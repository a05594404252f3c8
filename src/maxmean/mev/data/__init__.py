"""Data about several options, in the three shapes it comes in: samples, counts, or summaries.

All three give what the estimators ask for: ``means``, ``variances`` (of the means), ``covariances`` (of the means, for
paired samples), the means of disjoint random parts (``split``), and bootstrap copies of themselves (``resample``). A
batch of problems is the same thing with leading axes.
"""

from ..errors import DataError
from .counts import Counts
from .protocol import Data
from .samples import Samples
from .summaries import Summaries, summarise

__all__ = ["Counts", "Data", "DataError", "Samples", "Summaries", "summarise"]
