"""Where an agent of others is measured: one environment of Gymnasium, or the only one of a ``VecEnv`` of Stable-Baselines3."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from .errors import HostError, sentence
from .making import opened, refuse_ours
from .readers import is_from, is_model

_STATISTICS = ("obs_rms", "ret_rms", "norm_obs", "norm_reward", "clip_obs", "clip_reward", "epsilon")
"""What a ``VecNormalize`` normalises with."""


class StepTaken(NamedTuple):
    """What followed an action."""

    seen: Any
    reward: float
    terminated: bool
    truncated: bool


class SingleEnv:
    """One environment of Gymnasium. What it cannot do is said in a sentence."""

    def __init__(self, env: Any) -> None:
        self.env, self.observation_space, self.action_space = env, env.observation_space, env.action_space

    def reset(self, seed: int) -> Any:
        found = _told(f"reset(seed={seed})", lambda: self.env.reset(seed=seed))
        if not isinstance(found, tuple) or len(found) != 2:
            raise HostError("env.reset gives a pair, observation and info, in Gymnasium; this one does not")
        return found[0]

    def step(self, action: Any) -> StepTaken:
        found = _told(f"step({action})", lambda: self.env.step(action))
        if not isinstance(found, tuple) or len(found) != 5:
            raise HostError("env.step gives observation, reward, terminated, truncated and info; this one does not")
        seen, reward, terminated, truncated, _ = found
        return StepTaken(seen, _reward(reward), bool(terminated), bool(truncated))


class SingleVecEnv(SingleEnv):
    """The only environment of a ``VecEnv``."""

    def __init__(self, env: Any) -> None:
        if env.num_envs != 1:
            raise HostError(
                f"env must be a VecEnv with one environment, not with {env.num_envs}: make_vec_env(id, n_envs=1), in the same "
                "wrappers"
            )
        super().__init__(env)

    def reset(self, seed: int) -> Any:
        def begin() -> Any:
            self.env.seed(seed)
            return self.env.reset()

        return _first(_told(f"reset() after seed({seed})", begin))

    def step(self, action: Any) -> StepTaken:
        seen, rewards, over, infos = _told(f"step([{action}])", lambda: self.env.step(np.asarray(action)[None]))
        about = infos[0]
        truncated = bool(over[0]) and bool(about.get("TimeLimit.truncated", False))
        last = about["terminal_observation"] if over[0] else _first(seen)
        return StepTaken(last, _reward(rewards[0]), bool(over[0]) and not truncated, truncated)


class NormalisedEnv(SingleEnv):
    """A world as a model sees it, and is paid in it, that learned in a ``VecNormalize``."""

    def __init__(self, world: SingleEnv, by: Any) -> None:
        super().__init__(world.env)
        self.world, self.by = world, by

    def reset(self, seed: int) -> Any:
        return self._shown(self.world.reset(seed))

    def step(self, action: Any) -> StepTaken:
        found = self.world.step(action)
        reward = self.by.normalize_reward(np.array([found.reward]))[0]
        return found._replace(seen=self._shown(found.seen), reward=float(reward))

    def _shown(self, seen: Any) -> Any:
        try:
            return self.by.normalize_obs(seen)
        except Exception as error:
            raise HostError(
                f"the model's VecNormalize cannot normalise what env shows ({sentence(error)}): give an environment in the "
                "wrappers of the training, its VecNormalize included"
            ) from error


@contextmanager
def world_of(env: Any, agent: Any) -> Iterator[SingleEnv]:
    """The world to measure an agent in. A ``VecNormalize`` learns nothing there, and normalises as the agent's own does."""
    many = _is_vec(env)
    own = agent.get_vec_normalize_env() if is_model(agent) else None
    layers = [each for each in _layers(env) if _normalises(each)] if many else []
    if not many:
        world = SingleEnv(_one(env, agent))
        try:
            yield world if own is None else NormalisedEnv(world, own)
        finally:
            if isinstance(env, str):
                world.env.close()
    elif not layers:
        yield SingleVecEnv(env) if own is None else NormalisedEnv(SingleVecEnv(env), own)
    else:
        by = layers[0] if own is None else own
        _check_seen(by)
        before = [dict(vars(each)) for each in layers]
        layers[0].__dict__ |= {
            name: getattr(by, name) for name in _STATISTICS if name in vars(by) or hasattr(type(by), name)
        }
        for each in layers:
            each.training = False
        try:
            yield SingleVecEnv(env)
        finally:
            for each, kept in zip(layers, before, strict=True):
                for name in ("training", *_STATISTICS):
                    vars(each).pop(name, None)
                each.__dict__ |= {name: kept[name] for name in ("training", *_STATISTICS) if name in kept}


def learns_in(agent: Any, env: Any) -> bool:
    """Whether a model of Stable-Baselines3 has this environment to learn in."""
    own = agent.get_env() if is_model(agent) else None
    if own is None or isinstance(env, str):
        return False
    base = _layers(own)[-1]
    if _is_vec(env):
        return _layers(env)[-1] is base
    return any(each.unwrapped is getattr(env, "unwrapped", None) for each in getattr(base, "envs", ()))


def _normalises(layer: Any) -> bool:
    """Whether it is a ``VecNormalize`` itself. One that wraps one has all its attributes too, but its class does not."""
    return hasattr(type(layer), "normalize_obs")


def _is_vec(env: Any) -> bool:
    return is_from(env, "stable_baselines3") and hasattr(env, "step_async")


def _layers(env: Any) -> list[Any]:
    """A ``VecEnv`` and what it wraps, from the outermost on."""
    layers = [env]
    while hasattr(layers[-1], "venv"):
        layers.append(layers[-1].venv)
    return layers


def refuse_other_rules(env: Any, *, model: bool) -> None:
    """Refuse the id of an Atari game for an agent of others, which learned it by other rules than those of our ``ALE/...`` ids.

    Stable-Baselines3's ``make_atari_env`` clips rewards and ends episodes at a lost life; CleanRL's wrappers do the same.
    """
    if not isinstance(env, str) or not (env.startswith("ALE/") or env.endswith("NoFrameskip-v4")):
        return
    if model:
        raise HostError(
            f"{env} alone has other rules than a model of Stable-Baselines3 learns Atari's games by: give "
            f"env=VecFrameStack(make_atari_env({env!r}, n_envs=1), n_stack=4), or whatever it learned in"
        )
    if env.endswith("NoFrameskip-v4"):
        raise HostError(
            f"{env} comes without wrappers: give an environment in those of the training, instead of its id"
        )


def _one(env: Any, agent: Any) -> Any:
    refuse_ours(env, "env")
    refuse_other_rules(env, model=is_model(agent))
    if not isinstance(env, str | gymnasium.Env | gymnasium.vector.VectorEnv):
        what = "a function: call it" if callable(env) else f"a {type(env).__name__}"
        raise HostError(f"env must be a Gymnasium environment, its id, or a VecEnv of Stable-Baselines3, not {what}")
    made = opened(env, "env")
    if isinstance(made, gymnasium.vector.VectorEnv):
        raise HostError("env must be one environment, not a vector environment: gymnasium.make(id), say")
    return made


def _check_seen(layer: Any) -> None:
    """Statistics of nothing would show another world than the one the agent learned in."""
    found = [getattr(layer, name, None) for name in ("obs_rms", "ret_rms")]
    known = [
        part for each in found if each is not None for part in (each.values() if isinstance(each, dict) else (each,))
    ]
    if known and all(each.count < 1.0 for each in known):
        raise HostError(
            "env is a VecNormalize that has seen nothing: give it the statistics of the training, "
            "VecNormalize.load(path, venv), say"
        )


def _first(seen: Any) -> Any:
    return {name: each[0] for name, each in seen.items()} if isinstance(seen, dict) else seen[0]


def _reward(found: Any) -> float:
    try:
        reward = float(found)
    except (TypeError, ValueError):
        raise HostError(f"the environment gave the reward {found!r:.60}, which is not one number") from None
    if not np.isfinite(reward):
        raise HostError(f"the environment gave the reward {reward}; only finite ones have a return")
    return reward


def _told(what: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except HostError:
        raise
    except Exception as error:
        raise HostError(f"env.{what} said: {sentence(error) or type(error).__name__}") from error
