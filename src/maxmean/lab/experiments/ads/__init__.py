"""Internet ads (section 7.1): the best click rate of several ads, from clicks alone.

The paper does not print its six settings. Here N, M and the upper limit of the click rates vary one at a time around a centre,
and all of them together over a region, with other places of the rates too.
"""

from . import claims
from .settings import Settings
from .study import ESTIMATORS, Ads

__all__ = ["ESTIMATORS", "Ads", "Settings", "claims"]
