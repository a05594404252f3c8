"""Environments from their ids: Gymnasium's, ours, and Atari's with the usual wrappers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from ...errors import missing, need, unknown
from .errors import HostError, sentence

_ELSEWHERE = {
    "minatar/": "is a game on the device: maxmean.deep.train and 'maxmean train' take it; for Gymnasium it is called "
    "'maxmean/Breakout-v0' and the like",
    "gymnax/": "is an environment on the device: maxmean.deep.train and 'maxmean train' take it; "
    "maxmean.envs.to_gymnasium(maxmean.envs.make({name!r})) makes one of Gymnasium of it",
    "brax/": "is Brax's, whose actions are continuous, and the agents here choose among a number of actions: wrap it with a "
    "discrete action space, as an environment of Gymnasium or of maxmean.envs",
    "jumanji/": "is Jumanji's, for which there is no adapter: make an environment of maxmean.envs that calls it and picks the "
    "array that the network sees",
}
"""What is said of ids that are not Gymnasium's, by how they begin."""


def need_gymnasium() -> None:
    """Say in one sentence what is missing, if something is."""
    need("a Gymnasium agent", "gymnasium", "jax", "optax", "safetensors", extra="deep,gymnasium", error=HostError)


def make_env(name: str, **options: Any) -> Any:
    """The environment with that id; Atari's (``ALE/...``) in grey, 84 x 84, four frames at once, four frames a step.

    The options are those of ``gymnasium.make``.
    """
    import gymnasium

    from ...envs import register_gymnasium

    register_gymnasium()
    if name.startswith("ALE/"):
        return _atari(name, **options)
    for others, said in _ELSEWHERE.items():
        if name.startswith(others):
            raise HostError(f"{name} {said.format(name=name)}")
    if name.endswith("NoFrameskip-v4"):  # as they were called for many years, and bare
        game = name.removesuffix("NoFrameskip-v4")
        raise HostError(f"{name} is an old name of Atari's: 'ALE/{game}-v5' comes with the usual wrappers")
    try:
        return gymnasium.make(name, **options)
    except gymnasium.error.DependencyNotInstalled as error:
        raise HostError(f"{name} cannot be made: {sentence(error)}") from None
    except (gymnasium.error.Error, ImportError, ValueError) as error:
        if name in gymnasium.registry:
            raise HostError(f"{name} cannot be made: {sentence(error)}") from None
        package = name.partition(":")[0] if ":" in name else ""
        if package and find_spec(package.partition(".")[0]) is None:
            raise HostError(f"{name} needs the package {package}, which is not installed") from None
        known = sorted(gymnasium.registry)
        within = [each for each in known if name and name.lower() in each.lower()]
        near = unknown("Gymnasium has no environment", name, within or known, cutoff=0.3 if within else 0.65)
        near = near.partition(" (there are")[0]
        raise HostError(
            f"{near} (gymnasium.pprint_registry() lists all {len(known)} that it knows; those of another package are called "
            "package:id, so that it is imported)"
        ) from None


def make_training(name: str, num_envs: int = 1) -> Any:
    """The environment with that id to train in, or several of them side by side as one vector environment.

    Atari's games are ale-py's own vector environment in any case, which shows what the usual wrappers do and is quicker.
    """
    import gymnasium

    if name.startswith("ALE/"):
        return _ale(name, num_envs)
    env = make_env(name)
    if num_envs == 1:
        return env
    env.close()  # it was made for what is said of an id that is none
    return gymnasium.make_vec(name, num_envs, vectorization_mode="sync")


def is_known(name: str) -> bool:
    """Whether a file may name that environment: its code is there already, or is Gymnasium's own or ours."""
    import gymnasium

    from ...envs import register_gymnasium

    register_gymnasium()
    if name.startswith("ALE/") and ":" not in name and find_spec("ale_py") is not None:
        import ale_py

        gymnasium.register_envs(ale_py)
    spec = gymnasium.registry.get(name)
    if spec is None:
        return False
    there = callable(spec.entry_point) or str(spec.entry_point).partition(":")[0] in sys.modules
    return there or str(spec.entry_point).startswith(_OWN)


_OWN = (
    "gymnasium.envs.classic_control.",
    "gymnasium.envs.toy_text.",
    "gymnasium.envs.box2d",
    "maxmean.envs.gymnasium_env:",
    "ale_py.",
)
"""Where the code of environments lies that a file may name. Others of Gymnasium's registry import MuJoCo, Flax and the like."""


def opened(env: Any, name: str, make: Callable[[str], Any] | None = None) -> Any:
    """An environment, from itself or its id, of which it is made by ``make``; by default :func:`make_env`."""
    import gymnasium

    if isinstance(env, str):
        return (make or make_env)(env)
    if isinstance(env, gymnasium.Env | gymnasium.vector.VectorEnv):
        return env
    refuse_ours(env, name)
    what = f"not {env.__name__}: call it" if callable(env) and hasattr(env, "__name__") else f"not {type(env).__name__}"
    if type(env).__module__.startswith("stable_baselines3."):
        what += ": gymnasium.make_vec(id, num_envs) makes one that fits"
    raise HostError(f"{name} must be a Gymnasium environment, its id, or a vector environment, {what}")


def refuse_ours(env: Any, name: str) -> None:
    """Refuse an environment of :mod:`maxmean.envs`, with what makes one of Gymnasium of it."""
    from ...envs import Environment

    if isinstance(env, Environment):
        raise HostError(
            f"{name} must be a Gymnasium environment, and a {type(env).__name__} is one of maxmean.envs: give "
            f"maxmean.envs.to_gymnasium({name})"
        )


_ALE_VECTOR = "ale_py.vector_env"
"""The module of ale-py's own vector environment."""
_OF_MANY = ("num_envs", "vectorization_mode", "vector_kwargs", "wrappers")
"""What ``gymnasium.make_vec`` writes beside the environment's own options."""
_OF_LEARNING = ("reward_clipping", "episodic_life", "life_loss_info", "autoreset_mode", "batch_size", "num_threads")
"""Options of ale-py's vector environment that a test has no use for."""


def make_like(env: Any) -> Any | None:
    """A second environment of the same kind, where it is known how to make one."""
    import gymnasium
    from gymnasium.wrappers import vector

    bystanders = (vector.RecordEpisodeStatistics, vector.RecordVideo, vector.HumanRendering, vector.DictInfoToList)
    while isinstance(env, bystanders):
        env = env.env
    if isinstance(env, gymnasium.vector.VectorWrapper):
        return None  # it changes what all environments show or pay, and there is no such wrapper for one
    if isinstance(env, gymnasium.vector.SyncVectorEnv):
        return make_like(env.envs[0])
    spec = getattr(env, "spec", None)
    if spec is None:
        return None
    many = isinstance(env, gymnasium.vector.VectorEnv)
    if type(env).__module__ == _ALE_VECTOR:  # with its size and colours, but for whole games and their scores
        own = {each: spec.kwargs[each] for each in spec.kwargs if each not in (*_OF_MANY, *_OF_LEARNING)}
        return _ale(spec.id, 1, **own)
    if many and spec.kwargs.get("wrappers"):
        return None
    try:
        if many:
            return gymnasium.make(spec.id, **{name: spec.kwargs[name] for name in spec.kwargs if name not in _OF_MANY})
        second = gymnasium.make(spec)  # with its wrappers, where Gymnasium has written them down
    except (gymnasium.error.Error, TypeError, ValueError):
        return None
    _share_statistics(env, second)
    return second


def _share_statistics(env: Any, second: Any) -> None:
    """Have the second environment normalise by what the first has seen: with its own statistics it would show another world."""
    import gymnasium

    kinds = ((gymnasium.wrappers.NormalizeObservation, "obs_rms"), (gymnasium.wrappers.NormalizeReward, "return_rms"))
    while env is not env.unwrapped and type(env) is type(second):
        for kind, name in kinds:
            if type(env) is kind:
                setattr(second, name, getattr(env, name))
                second.update_running_mean = False
        env, second = env.env, second.env


def is_atari(env: Any) -> bool:
    """Whether it is a game of ale-py's, or several of one."""
    import gymnasium

    inner = env.unwrapped
    if isinstance(inner, gymnasium.vector.AsyncVectorEnv):  # which does not show its environments
        return all(inner.call("has_wrapper_attr", "ale"))
    if isinstance(inner, gymnasium.vector.SyncVectorEnv):
        inner = inner.envs[0].unwrapped
    return type(inner).__module__ in ("ale_py.env", _ALE_VECTOR)


def _atari(name: str, **options: Any) -> Any:
    """As Machado et al. (2018) and most papers play it: sticky actions of the v5 ids, no ends at lost lives."""
    import gymnasium

    with _registered(name, ("ale_py", "ale-py"), ("cv2", "opencv-python-headless")):
        game = gymnasium.make(name, frameskip=1, **options)
    game = gymnasium.wrappers.AtariPreprocessing(game, noop_max=30, frame_skip=4, screen_size=84)
    return gymnasium.wrappers.FrameStackObservation(game, 4, padding_type="zero")


def _ale(name: str, num_envs: int, **options: Any) -> Any:
    """The same as a vector environment."""
    import gymnasium

    own = {"reward_clipping": False, "use_fire_reset": False, **options}
    with _registered(name, ("ale_py", "ale-py")):
        return gymnasium.make_vec(name, num_envs, vectorization_mode="vector_entry_point", **own)


@contextmanager
def _registered(name: str, *packages: tuple[str, str]) -> Iterator[None]:
    """Have Gymnasium know Atari's games; one sentence for what is missing, or for a game that is none."""
    import gymnasium

    for package, extra in packages:
        if find_spec(package) is None:
            raise HostError(missing(name, extra, extra="atari"))
    import ale_py

    gymnasium.register_envs(ale_py)
    try:
        yield
    except gymnasium.error.Error as error:
        raise HostError(f"{name} cannot be made: {sentence(error)}") from None
