"""Adapters: one environment or several side by side, stepped in the same way and begun anew in the same way."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from .errors import HostError
from .spaces import Sight, count_actions, sight, visible


class EnvStep(NamedTuple):
    """What one step of all environments gave; every array has the environments as its first axis."""

    reached: NDArray[Any]
    """What was seen where the step led, also where an episode ended there."""
    rewards: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    """The episode has come to its own end: nothing follows. A truncated episode is not terminated."""
    over: NDArray[np.bool_]
    """The episode has ended, either way."""
    seen: NDArray[Any]
    """What to act on next: as ``reached``, or the first sight of a new episode."""
    counts: NDArray[np.bool_]
    """False where the environment did nothing but begin anew, whatever the action was: there is no transition to learn from."""


class EnvAdapter:
    """One environment, as a batch of one."""

    n = 1

    def __init__(self, env: gymnasium.Env) -> None:
        self.env: Any = env
        self.sight: Sight = sight(env.observation_space)
        self.n_actions = count_actions(env.action_space)
        self.first_action = int(env.action_space.start)  # type: ignore[attr-defined]

    def like(self, other: EnvAdapter) -> bool:
        """Whether it shows and offers what another does."""
        mine, theirs = self.sight, other.sight
        return (mine.shape, mine.dtype, self.n_actions) == (theirs.shape, theirs.dtype, other.n_actions)

    def describe(self) -> dict[str, Any]:
        """What it shows and offers, as plain values."""
        return {
            "environments": self.n,
            "shape": list(self.sight.shape),
            "type": self.sight.dtype.name,
            "actions": self.n_actions,
        }

    def reset(self, seed: int) -> NDArray[Any]:
        """Begin all episodes; what is seen: [n, ...]."""
        return self._alone(_first(self.env.reset(seed=seed)))

    def step(self, actions: NDArray[np.integer]) -> EnvStep:
        """Take these actions [n], and begin anew where an episode has ended."""
        after = self.advance(actions)
        return after._replace(seen=self._alone(_first(self.env.reset()))) if after.over[0] else after

    def advance(self, actions: NDArray[np.integer]) -> EnvStep:
        """Take these actions [n], and stay where an episode has ended."""
        found = self.env.step(int(actions[0]) + self.first_action)
        if len(found) != 5:
            raise HostError(
                f"step gave {len(found)} values, and an environment of Gymnasium gives 5: observation, reward, terminated, "
                "truncated, info"
            )
        raw, reward, terminated, truncated, _ = found
        reached = self._alone(raw)
        return EnvStep(
            reached,
            _finite(_number(reward), "reward"),
            np.array([terminated], bool),
            np.array([bool(terminated or truncated)]),
            reached,
            np.ones(1, bool),
        )

    def rests(self, lane: int) -> bool:
        """Whether this environment stands at the end of an episode, to begin anew in the next step."""
        return False

    def _alone(self, seen: Any) -> NDArray[Any]:
        found = np.array(self.sight.one(seen))  # a copy: an environment may write into its array again
        if found.shape != self.sight.shape:
            raise HostError(
                f"the environment gave an observation of shape {np.shape(seen)}, which is none of its observation_space, "
                f"{self.env.observation_space}"
            )
        return _visible(found, self.sight.dtype)[None]


class VectorEnvAdapter(EnvAdapter):
    """A vector environment, whatever its way of beginning anew."""

    def __init__(self, env: VectorEnv) -> None:
        self.env = env
        self.n = int(env.num_envs)
        self.sight = sight(env.single_observation_space)
        self.n_actions = count_actions(env.single_action_space)
        self.first_action = int(env.single_action_space.start)  # type: ignore[attr-defined]
        self.mode = _mode(env)
        self.ended = np.zeros(self.n, bool)
        """Which episodes ended with the last step."""

    def reset(self, seed: int) -> NDArray[Any]:
        seen, _ = self.env.reset(seed=seed)
        self.ended[:] = False
        return self._all(seen)

    def step(self, actions: NDArray[np.integer]) -> EnvStep:
        raw, rewards, terminated, truncated, info = self.env.step(np.asarray(actions) + self.first_action)
        seen = self._all(raw)
        over = np.asarray(terminated | truncated)
        reached, counts = seen, np.ones(self.n, bool)
        if self.mode is AutoresetMode.NEXT_STEP:
            # What ended in the last step began anew in this one, and did nothing else.
            counts = ~self.ended
        elif over.any():
            if self.mode is AutoresetMode.SAME_STEP:
                reached = self._finals(seen, over, info)
            else:
                raw, _ = self.env.reset(options={"reset_mask": over.copy()})
                reached, seen = seen, self._all(raw)
        self.ended = over
        rewards = _finite(np.asarray(rewards, np.float32), "reward")
        return EnvStep(reached, rewards, np.asarray(terminated), over, seen, counts)

    def rests(self, lane: int) -> bool:
        return bool(self.mode is AutoresetMode.NEXT_STEP and self.ended[lane])

    def _finals(self, seen: NDArray[Any], over: NDArray[np.bool_], info: dict[str, Any]) -> NDArray[Any]:
        """What was seen last where an episode ended: it is in ``info``, for ``seen`` is of the new episode already."""
        if "final_obs" not in info:
            raise HostError(
                "this vector environment begins anew in the same step but does not say in info['final_obs'] where it was"
            )
        reached = seen.copy()
        for i in np.flatnonzero(over):
            reached[i] = _visible(np.array(self.sight.one(info["final_obs"][i])), self.sight.dtype)
        return reached

    def _all(self, seen: Any) -> NDArray[Any]:
        return _visible(np.array(self.sight.many(seen)), self.sight.dtype)


def adapter_of(env: gymnasium.Env | VectorEnv) -> EnvAdapter:
    """The adapter of an environment or of a vector environment."""
    return VectorEnvAdapter(env) if isinstance(env, VectorEnv) else EnvAdapter(env)


def _first(found: Any) -> Any:
    """The observation of what ``reset`` gave."""
    if not isinstance(found, tuple) or len(found) != 2:
        raise HostError(
            f"reset gave {type(found).__name__}, and an environment of Gymnasium gives a pair: observation, info"
        )
    return found[0]


def _number(reward: Any) -> NDArray[np.float32]:
    """A reward as an array of one."""
    try:
        return np.asarray(reward, np.float32).reshape(1)
    except (TypeError, ValueError):
        raise HostError(f"the environment gave the reward {reward!r}, which is not one number") from None


def _visible(found: NDArray[Any], dtype: np.dtype) -> NDArray[Any]:
    """An observation in the type that the network sees."""
    try:
        return visible(found, dtype)
    except HostError as error:
        shown = " ".join(np.array2string(found, separator=", ", threshold=16).split())
        raise HostError(f"the environment gave the observation {shown}; {error}") from None


def _finite(found: NDArray[Any], what: str) -> NDArray[Any]:
    """What was found, if a network can learn from it."""
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise HostError(f"the environment gave the {what} {found.tolist()}; only finite numbers can be learned from")
    return found


def _mode(env: VectorEnv) -> AutoresetMode:
    """How a vector environment begins anew; Gymnasium's first vector environments did so in the next step, and did not say it."""
    return AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))
