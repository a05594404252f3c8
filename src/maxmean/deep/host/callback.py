"""The bias of a model of Stable-Baselines3 while it learns."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ...errors import need
from ...luck import undisturbed
from ..checks import whole_number
from .errors import HostError
from .making import opened, refuse_ours
from .measure import checked, measured, seed_number
from .readers import NotFiniteError, reader_of
from .rollouts import LIMIT
from .worlds import learns_in, refuse_other_rules, world_of


def bias_callback(env: Any, *, every: int = 10_000, episodes: int = 5, seed: int = 0, limit: int = LIMIT) -> Any:
    """A callback for Stable-Baselines3 that measures the bias while a model learns.

    ``model.learn(..., callback=maxmean.bias_callback(env))`` logs ``bias/mean``, ``bias/error`` and ``bias/value`` (the mean
    prediction) after every ``every`` steps, to TensorBoard where the model logs there; a shorter training is measured at its
    end. ``env`` is a second environment, or its id; if the model learns in a ``VecNormalize``, its statistics are used. The
    callback's ``table`` has what was measured, one row each time. ``episodes``, ``seed`` and ``limit`` are those of
    :func:`measure_bias`; of few episodes the error is rough.
    """
    need("bias_callback", "stable_baselines3", pip="stable-baselines3", error=HostError)
    from stable_baselines3.common.callbacks import BaseCallback

    steps, number, most = (
        checked(whole_number, name, value)
        for name, value in (("every", every), ("episodes", episodes), ("limit", limit))
    )
    begin = checked(seed_number, "seed", seed)
    refuse_ours(env, "env")
    refuse_other_rules(env, model=True)
    with undisturbed():
        world = opened(env, "env") if isinstance(env, str) else env

    class BiasCallback(BaseCallback):  # type: ignore[misc, unused-ignore]
        """Measures the bias of the model that it is called for."""

        def __init__(self) -> None:
            super().__init__()
            self.table: list[dict[str, float]] = []
            self.last = self.begin = 0

        def _on_training_start(self) -> None:
            """What cannot be measured is said before the first step."""
            if learns_in(self.model, world):
                raise HostError(
                    "env is the one that the model learns in, and measuring there would cut its episodes: give a second"
                )
            with undisturbed(), world_of(world, self.model) as found:
                reader_of(self.model, found.observation_space, found.action_space)
            self.last = self.begin = self.model.num_timesteps

        def _on_step(self) -> bool:
            if self.num_timesteps - self.last >= steps:
                self._measure()
            return True

        def _on_training_end(self) -> None:
            """A training of fewer steps than ``every`` has not been measured yet."""
            if self.last == self.begin < self.model.num_timesteps:
                self._measure()

        def _measure(self) -> None:
            self.last = self.num_timesteps
            row = self._measured()
            self.table.append({"step": self.num_timesteps, **row})
            for name, value in row.items():
                self.logger.record(f"bias/{name}", value)
            self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
            self.logger.dump(self.num_timesteps)

        def _measured(self) -> dict[str, float]:
            """A model that has diverged has no bias, and it is not for us to end its training."""
            try:
                found = measured(self.model, world, number, seed=begin, limit=most, quiet=True)
            except NotFiniteError as error:
                warnings.warn(str(error), UserWarning, stacklevel=4)
                return dict.fromkeys(("mean", "error", "value"), math.nan)
            return {"mean": found.value, "error": found.error, "value": found.predicted}

    return BiasCallback()
