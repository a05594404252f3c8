"""Adapters: one environment or several side by side, stepped in the same way and begun anew in the same way."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from . import masks
from .errors import HostError
from .masks import Way
from .spaces import MASK, Sight, count_actions, sight, visible


class View(NamedTuple):
    """What there is to act on; every array has the environments as its first axis."""

    seen: NDArray[Any]
    legal: NDArray[np.bool_] | None
    """Which actions are legal, [n, actions]; None where all always are."""


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
    next_legal: NDArray[np.bool_] | None
    """Which actions are legal where the step led, [n, actions], and all where nothing follows; None where all always are."""
    legal: NDArray[np.bool_] | None
    """The same of what is acted on next."""
    lost: NDArray[np.bool_]
    """A life was lost and the episode goes on, where an agent is to take that for an end."""

    @property
    def final(self) -> NDArray[np.bool_]:
        """Nothing follows for an agent that learns: the episode has terminated, or a life was lost."""
        return self.terminated | self.lost

    @property
    def view(self) -> View:
        """What there is to act on next."""
        return View(self.seen, self.legal)


class EnvAdapter:
    """One environment, as a batch of one."""

    n = 1
    lives: NDArray[np.int64] | None = None
    """Lives that are left, [n], if losing one is an end for the agent; 0 where that is not known."""
    clips = False
    """Whether an agent learns from the rewards' signs alone."""

    def __init__(self, env: gymnasium.Env) -> None:
        self.env: Any = env
        self.sight: Sight = sight(env.observation_space)
        self.n_actions = count_actions(env.action_space)
        self.first_action = int(env.action_space.start)  # type: ignore[attr-defined]
        self.way = masks.way_of(env, env.observation_space, self.n_actions)
        self.steps = 0
        """Taken since ``reset``."""

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

    def teach(self, *, clip_reward: bool, terminal_on_life_loss: bool) -> None:
        """Say what an agent is to learn from."""
        self.clips = clip_reward
        self.lives = self.no_lives() if terminal_on_life_loss else None

    def no_lives(self) -> NDArray[np.int64]:
        """What stands for lives, [n], that are not known: the next step loses none of them."""
        return np.zeros(self.n, np.int64)

    def learned(self, after: EnvStep) -> NDArray[np.float32]:
        """The rewards that an agent learns from."""
        return np.sign(after.rewards) if self.clips else after.rewards

    def reset(self, seed: int) -> View:
        """Begin all episodes."""
        self.steps = 0
        return self._begin(self.env.reset(seed=seed))

    def step(self, actions: NDArray[np.integer]) -> EnvStep:
        """Take these actions [n], and begin anew where an episode has ended."""
        after = self.advance(actions)
        if not after.over[0]:
            return after
        new = self._begin(self.env.reset())
        return after._replace(seen=new.seen, legal=new.legal)

    def advance(self, actions: NDArray[np.integer]) -> EnvStep:
        """Take these actions [n], and stay where an episode has ended."""
        found = self.env.step(int(actions[0]) + self.first_action)
        self.steps += 1
        if len(found) != 5:
            raise HostError(
                f"step gave {len(found)} values, and an environment of Gymnasium gives 5: observation, reward, terminated, "
                "truncated, info"
            )
        raw, reward, terminated, truncated, info = found
        reached = self._alone(raw)
        ended, over = np.array([terminated], bool), np.array([bool(terminated or truncated)])
        legal = self._legal(raw, info, ended)
        return EnvStep(
            reached,
            _finite(_number(reward), "reward"),
            ended,
            over,
            reached,
            np.ones(1, bool),
            legal,
            legal,
            self._lost(info, over),
        )

    def rests(self, lane: int) -> bool:
        """Whether this environment stands at the end of an episode, to begin anew in the next step."""
        return False

    def _begin(self, found: Any) -> View:
        """What ``reset`` gave. The first one tells whether there are masks in ``info``, where nothing else has told it."""
        raw, info = _pair(found)
        if self.way is Way.UNKNOWN:
            self.way = Way.INFO if any(mask is not None for mask in self._in_info(info)) else Way.NOT
            if self.way is Way.NOT and (said := masks.near_miss(self.env, info)) is not None:
                warnings.warn(said, UserWarning, stacklevel=2)  # one place for all environments: it is said once
        seen = self._seen(raw)
        self._lost(info, np.ones(self.n, bool))
        return View(seen, self._legal(raw, info, np.zeros(self.n, bool)))

    def _lost(self, info: Any, fresh: NDArray[np.bool_], told: NDArray[np.bool_] | bool = True) -> NDArray[np.bool_]:
        """Where a life was lost with this step, [n], which is not where an episode is ``fresh`` or over.

        ``told`` says which environments ``info`` is of.
        """
        if self.lives is None:
            return np.zeros(self.n, bool)
        found = info.get("lives") if isinstance(info, dict) else [each.get("lives") for each in info]
        try:
            now = np.asarray(found, np.int64).reshape(self.n)
        except (TypeError, ValueError):
            raise HostError(
                "terminal_on_life_loss needs the lives in info['lives'], as Atari's games give them, and there is "
                f"{found!r:.60} {self._when()}"
            ) from None
        lost = (now < self.lives) & ~fresh
        self.lives = np.where(told, now, self.lives)
        return lost

    def _legal(self, raw: Any, info: Any, exempt: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """Which actions are legal, [n, actions], by what ``reset`` or ``step`` gave, and all where it does not matter."""
        if self.way is Way.NOT:
            if isinstance(info, dict) and MASK in info:
                raise HostError(
                    f"info[{MASK!r}] was there {self._when()}, but not at the first reset: give a mask at every reset and every "
                    "step"
                )
            return None
        if not self.way.masked:
            return None
        if exempt.all():
            return np.ones((self.n, self.n_actions), bool)
        if self.way is Way.METHOD:
            return self._checked(masks.by_method(self.env), exempt)
        return self._checked(self._in_observation(raw) if self.way is Way.OBSERVATION else self._in_info(info), exempt)

    def _checked(self, found: Sequence[Any], exempt: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Masks, if they are masks with a legal action."""
        legal = np.ones((self.n, self.n_actions), bool)
        for i in np.flatnonzero(~exempt).tolist():
            where = self._when() + (f" of environment {i}" if self.n > 1 else "")
            if found[i] is None:
                raise HostError(
                    f"{self.way.lacking} {where}, and this training has masks: give one at every reset and every step"
                )
            try:
                legal[i] = masks.mask_of(found[i], self.n_actions)
            except HostError as error:
                raise HostError(f"the environment gave no mask {where}: {error}") from None
            if not legal[i].any():
                raise HostError(
                    f"no action is legal {where}: have the episode terminate where nothing can be done, or allow an action that "
                    "does nothing"
                )
        return legal

    def _when(self) -> str:
        return f"after step {self.steps:,}" if self.steps else "at reset"

    def _in_info(self, info: Any) -> Sequence[Any]:
        return [info.get(MASK) if isinstance(info, dict) else None]

    def _in_observation(self, raw: Any) -> Sequence[Any]:
        return [raw.get(MASK)]

    def _seen(self, raw: Any) -> NDArray[Any]:
        return self._alone(raw)

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
        self.way = masks.way_of(env, env.single_observation_space, self.n_actions)
        if self.way is Way.METHOD and self.mode is AutoresetMode.SAME_STEP:
            self.way = Way.UNKNOWN  # it is too late to ask where an episode was truncated; info may say it
        self.steps = 0
        self.ended = np.zeros(self.n, bool)
        """Which episodes ended with the last step."""

    def reset(self, seed: int) -> View:
        view = super().reset(seed)
        if self.way is Way.NOT and self.mode is AutoresetMode.SAME_STEP and masks.has_method(self.env):
            raise HostError(
                "this vector environment begins anew in the same step, after which action_masks() cannot say what was legal "
                "where an episode was truncated: make it with autoreset_mode=NEXT_STEP, or give the masks in info or observations"
            )
        self.ended[:] = False
        return view

    def step(self, actions: NDArray[np.integer]) -> EnvStep:
        raw, rewards, terminated, truncated, info = self.env.step(np.asarray(actions) + self.first_action)
        self.steps += 1
        seen = self._seen(raw)
        terminated, over = np.asarray(terminated), np.asarray(terminated | truncated)
        lost = self._lost(info, over | self.ended if self.mode is AutoresetMode.NEXT_STEP else over)
        same = self.mode is AutoresetMode.SAME_STEP
        next_legal = legal = self._legal(raw, info, np.zeros(self.n, bool) if same else terminated)
        reached, counts = seen, np.ones(self.n, bool)
        if self.mode is AutoresetMode.NEXT_STEP:
            # What ended in the last step began anew in this one, and did nothing else.
            counts = ~self.ended
        elif over.any():
            if same:
                reached = self._finals(seen, over, info)
                last = self._legal(info.get("final_obs"), info.get("final_info", {}), terminated | ~over)
                next_legal = None if legal is None or last is None else np.where(over[:, None], last, legal)
            else:
                raw, info = self.env.reset(options={"reset_mask": over.copy()})
                reached, seen = seen, self._seen(raw)
                self._lost(info, over, told=over)
                new = self._legal(raw, info, ~over)
                legal = None if legal is None or new is None else np.where(over[:, None], new, legal)
        self.ended = over
        rewards = _finite(np.asarray(rewards, np.float32), "reward")
        return EnvStep(reached, rewards, terminated, over, seen, counts, next_legal, legal, lost)

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

    def _in_info(self, info: Any) -> Sequence[Any]:
        return masks.in_info(info, self.n)

    def _in_observation(self, raw: Any) -> Sequence[Any]:
        if isinstance(raw, dict):
            return raw[MASK]
        return [None if each is None else each.get(MASK) for each in raw]  # of episodes that ended

    def _seen(self, raw: Any) -> NDArray[Any]:
        return _visible(np.array(self.sight.many(raw)), self.sight.dtype)


def adapter_of(env: gymnasium.Env | VectorEnv) -> EnvAdapter:
    """The adapter of an environment or of a vector environment."""
    return VectorEnvAdapter(env) if isinstance(env, VectorEnv) else EnvAdapter(env)


def _pair(found: Any) -> tuple[Any, Any]:
    """What ``reset`` gave: the observation and a dict."""
    if not isinstance(found, tuple) or len(found) != 2:
        raise HostError(
            f"reset gave {type(found).__name__}, and an environment of Gymnasium gives a pair: observation, info"
        )
    return found


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
