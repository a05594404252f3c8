"""The algorithms. What each is made of is said in :mod:`maxmean.deep.agents`; how they are used, in :class:`Algorithm`."""

from __future__ import annotations

from .. import agents
from .algorithm import Algorithm


class DQN(Algorithm):
    """Deep Q-network (Mnih et al., 2015): the target is the largest value, and too large."""

    make = staticmethod(agents.DQN)


class DDQN(Algorithm):
    """Double DQN (van Hasselt et al., 2016): one network chooses the action, the other values it."""

    make = staticmethod(agents.DDQN)


class SCDQN(Algorithm):
    """Self-correcting DQN (Zhu and Rigotti, 2021): ``beta`` 1 is Double DQN, more corrects further."""

    make = staticmethod(agents.SCDQN)


class MaxMinDQN(Algorithm):
    """MaxMin DQN (Lan et al., 2020): ``n`` networks, the largest of their smallest values."""

    make = staticmethod(agents.MaxMinDQN)


class BDQN(Algorithm):
    """Bootstrapped DQN (Osband et al., 2016): ``k`` heads that explore in turn, with Double DQN's targets for each."""

    make = staticmethod(agents.BDQN)


class TEBDQN(Algorithm):
    """Bootstrapped DQN whose targets are T-estimates at level ``alpha``."""

    make = staticmethod(agents.TEBDQN)


class KEBDQN(Algorithm):
    """Bootstrapped DQN whose targets are K-estimates with ``kernel``."""

    make = staticmethod(agents.KEBDQN)


class AdaTEBDQN(Algorithm):
    """TE-BDQN that turns its alpha towards zero bias.

    After each target copy every head plays ``horizon`` (32) steps in ``eval_env``: with ten heads that is 320 steps there for
    every ``target_period`` updates of the training. A longer ``target_period`` or a shorter ``horizon`` makes it cheaper.
    """

    make = staticmethod(agents.AdaTEBDQN)


class AdaKEBDQN(Algorithm):
    """KE-BDQN that turns the scale of its Gaussian kernel towards zero bias, at the cost of :class:`AdaTEBDQN`."""

    make = staticmethod(agents.AdaKEBDQN)


ALGORITHMS: dict[str, type[Algorithm]] = {
    "dqn": DQN,
    "ddqn": DDQN,
    "scdqn": SCDQN,
    "maxmin-dqn": MaxMinDQN,
    "bdqn": BDQN,
    "te-bdqn": TEBDQN,
    "ke-bdqn": KEBDQN,
    "ada-te-bdqn": AdaTEBDQN,
    "ada-ke-bdqn": AdaKEBDQN,
}
"""By the names that tables and the command line use."""
