"""``maxmean.agent(env)``: the recommended agent for an environment, with nothing to choose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import HostError
from .making import make_training, need_gymnasium, opened

if TYPE_CHECKING:
    from ..recommended import Recommendation
    from .agent import HostAgent


def agent(env: Any, *others: Any, eval_env: Any = None, **settings: Any) -> HostAgent:
    """The recommended agent for an environment.

    It is one of the package's agents, such as :class:`maxmean.KEBDQN`, with settings that suit the kind of observation (see
    :data:`maxmean.deep.recommended.RECOMMENDED`); what is given in ``settings`` replaces them. It is saved and loaded as what it
    is: ``type(agent).load(path, env)``.

    Examples
    --------
    >>> import maxmean
    >>> maxmean.agent("CartPole-v1", seed=1)
    KEBDQN(CartPole-v1, 0 steps)
    """
    need_gymnasium()
    from .classes import HOST_AGENTS

    if others:
        raise HostError("agent takes the environment alone without a name: agent(env, learning_rate=1e-3, ...)")
    env = opened(env, "env", make_training)
    name, own = recommendation(env).arguments
    return HOST_AGENTS[name](env, eval_env=eval_env, **{**own, **settings})


def recommendation(env: Any) -> Recommendation:
    """What is recommended for an environment."""
    from ..recommended import recommended
    from .adapters import adapter_of

    return recommended(adapter_of(env).sight.shape)
