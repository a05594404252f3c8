"""Our environments in Gymnasium: one at a time, with the state kept inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import missing
from .environment import EnvError, Environment
from .minatar import GAMES

if TYPE_CHECKING:
    from .gymnasium_env import GymnasiumEnv


def to_gymnasium(env: Environment, render_mode: str | None = None) -> GymnasiumEnv:
    """``env`` as a ``gymnasium.Env``, with a compiled step. ``render_mode`` is None or "rgb_array".

    Observations are NumPy arrays of the environment's own shape and type. Those of the games are bool, in a ``Box`` from False to
    True as in MinAtar's own wrapper, so that either can stand in for the other.

    ``reset(seed=...)`` begins anew: the same seed and actions give the same play. A reset without a seed goes on: what the
    environment carries over to the next episode (MinAtar's last action) is carried over.

    >>> from maxmean import envs
    >>> game = envs.to_gymnasium(envs.make("minatar/breakout"))
    >>> observation, info = game.reset(seed=0)
    >>> observation, reward, terminated, truncated, info = game.step(1)
    >>> observation.shape, reward, terminated, truncated
    ((10, 10, 4), 0.0, False, False)
    """
    if not isinstance(env, Environment):
        raise EnvError(f"to_gymnasium takes an environment, such as envs.make('minatar/breakout'), not {env!r}")
    try:
        from .gymnasium_env import GymnasiumEnv
    except ModuleNotFoundError as error:
        if error.name != "gymnasium":
            raise
        raise _missing() from None
    return GymnasiumEnv(env, render_mode)


def register_gymnasium() -> list[str]:
    """Make the games known to Gymnasium; the ids that ``gymnasium.make`` takes from then on, with the games' options.

    >>> register_gymnasium()[:2]
    ['maxmean/Asterix-v0', 'maxmean/Breakout-v0']
    >>> import gymnasium
    >>> gymnasium.make("maxmean/Breakout-v0", sticky=0.0, minimal_actions=True).action_space
    Discrete(3)
    """
    try:
        import gymnasium
    except ModuleNotFoundError:
        raise _missing() from None
    ids = {f"maxmean/{game.__name__}-v0": name for name, game in GAMES.items()}
    for gymnasium_id, name in ids.items():
        if gymnasium_id not in gymnasium.registry:
            gymnasium.register(gymnasium_id, entry_point=f"{__name__}_env:{name}")
    return list(ids)


def _missing() -> EnvError:
    return EnvError(missing("this", "gymnasium"))
