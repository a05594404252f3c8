"""The environments of ``host_gpu.py``: both sides of a comparison step the same ones.

MinAtar's Breakout is the package minatar's, which is NumPy's: a game of ours would share the accelerator with the agent. Atari's
games are ale-py's own vector environment or, without ale-py, one that takes as long and shows as much.
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv
from host import Breakout
from numpy.typing import NDArray

STEP_SECONDS = 0.42e-3
"""What one step of Breakout takes in ale-py's vector environment on one core (docs/notes/gymnasium.md)."""
FRAMES = 4
SIDE = 84
EPISODE = 500


def make(world: str, n: int) -> Any:
    """``n`` environments: one alone is a plain environment where there are such, others begin anew in the same step."""
    if world == "minatar":
        return Breakout() if n == 1 else SyncVectorEnv([Breakout] * n, autoreset_mode=AutoresetMode.SAME_STEP)
    if find_spec("ale_py") is None:
        return Frames(n)
    import ale_py

    gymnasium.register_envs(ale_py)
    return gymnasium.make_vec(
        f"ALE/{world}-v5",
        n,
        vectorization_mode="vector_entry_point",
        use_fire_reset=False,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )


def source(world: str) -> str:
    """Where a world's steps come from, in a word."""
    if world == "minatar":
        return "minatar"
    return "ale-py" if find_spec("ale_py") else "synthetic frames"


class Frames(VectorEnv):
    """What is seen of a video game: stacks of frames that roll on, episodes that end, and a step that takes its time.

    It stands for games that are played side by side on cores of their own, so ``n`` of them take no longer than one.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012  (Gymnasium has it as an attribute)

    def __init__(self, n: int, seconds: float = STEP_SECONDS) -> None:
        self.num_envs, self.seconds = n, seconds
        self.single_observation_space = gymnasium.spaces.Box(0, 255, (FRAMES, SIDE, SIDE), np.uint8)
        self.single_action_space = gymnasium.spaces.Discrete(4)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, n)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, n)
        self.pictures = np.random.default_rng(0).integers(256, size=(64, SIDE, SIDE), dtype=np.uint8)
        self.stacks = np.zeros((n, FRAMES, SIDE, SIDE), np.uint8)
        self.ages = np.zeros(n, np.int64)
        self.shown = 0

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        self.stacks[:] = 0
        self.ages = -(np.arange(self.num_envs) * EPISODE // self.num_envs)  # so that they do not end together
        self._show(np.arange(self.num_envs))
        return self.stacks.copy(), {}

    def step(self, actions: NDArray[np.integer]) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        end = time.perf_counter() + self.seconds
        self.stacks[:, :-1] = self.stacks[:, 1:].copy()
        self._show(np.arange(self.num_envs))
        self.ages += 1
        over, info = self.ages >= EPISODE, {}
        if over.any():
            info["final_obs"] = self.stacks.copy()
            fresh = np.flatnonzero(over)
            self.stacks[fresh], self.ages[fresh] = 0, 0
            self._show(fresh)
        seen, rewards = self.stacks.copy(), (actions == 1).astype(np.float32)
        while time.perf_counter() < end:
            time.sleep(0)  # others may have Python meanwhile, as while ale-py plays
        return seen, rewards, over, np.zeros(self.num_envs, bool), info

    def _show(self, lanes: NDArray[np.integer]) -> None:
        """One more frame in each of these environments."""
        self.stacks[lanes, -1] = self.pictures[(self.shown + np.arange(lanes.size)) % len(self.pictures)]
        self.shown += lanes.size
