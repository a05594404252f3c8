"""How good is the best one, really?

Estimators of the maximum expected value. ``maxmean.estimate(data)`` is the front door, :mod:`maxmean.mev` the statistics behind
it, :mod:`maxmean.tabular` the learners on finite MDPs, :mod:`maxmean.envs` environments in JAX, :mod:`maxmean.deep` deep
learners there, :mod:`maxmean.deep.host` the same in Gymnasium's environments, :mod:`maxmean.lab` the laboratory that checks them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .deep.registry import FUNCTIONS
from .lazy import lazily

if TYPE_CHECKING:
    from . import deep as deep
    from . import envs as envs
    from . import lab as lab
    from . import mev as mev
    from . import tabular as tabular
    from .deep.host import HostAgent
    from .deep.host.callback import bias_callback as bias_callback
    from .deep.host.measure import measure_bias as measure_bias
    from .deep.host.recommended import agent as agent
    from .mev.compare import Comparison as Comparison
    from .mev.compare import compare as compare
    from .mev.errors import ArgumentError as ArgumentError
    from .mev.errors import DataError as DataError
    from .mev.estimate import Estimate as Estimate
    from .mev.estimate import estimate as estimate
    from .mev.plan import Plan as Plan
    from .mev.plan import plan as plan

__version__ = "0.2.0"

_HOME = {
    "Comparison": "mev.compare",
    "compare": "mev.compare",
    "ArgumentError": "mev.errors",
    "DataError": "mev.errors",
    "Estimate": "mev.estimate",
    "Plan": "mev.plan",
    "plan": "mev.plan",
    "agent": "deep.host.recommended",
    "estimate": "mev.estimate",
    "bias_callback": "deep.host",
    "measure_bias": "deep.host",
} | dict.fromkeys(FUNCTIONS, "deep.host")

__all__ = sorted(["mev", *_HOME])

if TYPE_CHECKING:

    def __getattr__(name: str) -> type[HostAgent]: ...  # the agents of the registry; all else is named above

else:
    __getattr__, __dir__ = lazily(__name__, _HOME, modules=("deep", "envs", "lab", "mev", "tabular"))
