"""The front door: ``KEBDQN(env).learn(50_000)``, and what comes after it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from ..agent import Agent
from ..checks import AgentError, whole_number
from ..core.measuring import Measurement
from ..core.memory import fitting
from ..progress import interruptible, make_reporter, standard_error
from ..records import Records
from ..runs import RunId, Variant
from . import habits, loading, saving
from .adapters import EnvAdapter, adapter_of
from .driver import Driver
from .errors import HostError, Stopped
from .making import is_atari, make_like, make_training, opened
from .masks import Way, mask_of
from .rollouts import NONE, Bias, no_bias
from .settings import choose
from .sinks import Sinks, open_sinks
from .spaces import MASK, batched, visible

Callback = Callable[[dict[str, Any]], Any]


class HostAgent:
    """An agent that learns in a Gymnasium environment. The subclasses, one for each algorithm, only name their targets.

    Parameters
    ----------
    env
        An environment, its id, or a vector environment; with discrete actions.
    eval_env
        A second environment, in which the agent is tested and its bias measured; by default one more of ``env``'s id.
    settings
        Those of the agent (``alpha``, ``kernel``, ``k``, ... ; see :mod:`maxmean.deep.agents`), of its training
        (:class:`maxmean.deep.Settings`) and of the host (:class:`maxmean.deep.host.settings.Host`: ``seed``, ``network``,
        ``train_every``, ``gradient_steps``, ``measure_bias``, ``scale_observations``, ``clip_reward``,
        ``terminal_on_life_loss``, ``frames``). The defaults are those of the
        observations' kind (:data:`maxmean.deep.host.settings.PRESETS`).
    """

    make: ClassVar[Callable[..., Agent]]
    """The agent of :mod:`maxmean.deep.agents` that this is."""
    after_step: Callable[[], object] | None = None
    """Called while it learns, after each step and its record: when checkpoints are due depends on steps, not on records."""

    @habits.understood
    def __init__(self, env: Any, *, eval_env: Any = None, **settings: Any) -> None:
        self.env = opened(env, "env", make_training)
        world = adapter_of(self.env)
        self.given = settings
        self.choice = choose(type(self).make, world.sight, settings)
        if self.choice.host.clip_reward is None:
            self.choice = self.choice._replace(host=replace(self.choice.host, clip_reward=is_atari(self.env)))
        self.agent, self.settings, self.host = self.choice
        second = _second(make_like(self.env) if eval_env is None else opened(eval_env, "eval_env", make_training))
        if second is not None and second.env.unwrapped is self.env.unwrapped:
            raise HostError("eval_env must be a second environment: tests in env itself would cut its episodes short")
        if second is not None and not second.like(world):
            if eval_env is not None:
                raise HostError("eval_env has other observations or actions than env")
            second.env.close()
            second = None  # what we made is not what env is: a wrapper has changed it
        self.driver = Driver(self.choice, world, second)
        if self.agent.adaptation is not None and second is None:
            raise HostError(f"{type(self).__name__} adapts by playing in a second environment: give it one as eval_env")
        self.records = Records()
        self._luck = np.random.default_rng(self.host.seed)

    def __repr__(self) -> str:
        where = type(self.env.unwrapped).__name__ if self.env.spec is None else self.env.spec.id
        return f"{type(self).__name__}({where}, {self.num_timesteps:,} steps)"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Nothing has that name; say what has the name's meaning, where something does."""
            raise AttributeError(habits.member(type(self).__name__, name), name=name, obj=self)

    @property
    def num_timesteps(self) -> int:
        """Steps taken so far: transitions, over all environments."""
        return self.driver.clock.stored

    @property
    def run_id(self) -> RunId:
        """Which run the records are of."""
        return RunId(Variant(self.agent, self.settings.learning_rate), self.host.seed)

    @property
    def table(self) -> pd.DataFrame:
        """The records so far, one row for each test; see :mod:`maxmean.deep.records`."""
        return self.records.frame()

    @habits.understood
    def learn(
        self,
        total_timesteps: float,
        callback: Callback | None = None,
        *,
        progress_bar: bool = False,
        out: str | Path | None = None,
        tensorboard: bool = False,
        wandb: bool = False,
    ) -> Self:
        """Take so many further steps, and learn from them.

        Every ``test_interval`` steps and at the end there is a record: return of greedy test episodes, bias, loss and so on.
        ``callback`` is called with each as a dict, and stops the training by returning False. ``out`` is a folder for the tables
        (Parquet); ``tensorboard`` and ``wandb`` send the records there as well. Ctrl-C stops between two steps: what is learned
        stays, and ``learn`` or ``save`` can follow.
        """
        if callback is not None and not callable(callback):
            raise HostError(f"callback must be a function of a record, which is a dict, not {callback!r}")
        driver, interval = self.driver, self.settings.test_interval
        goal = self.num_timesteps + _whole("total_timesteps", total_timesteps)
        _whole("the number of all steps", goal)
        reporter = make_reporter(standard_error(), not progress_bar, goal, 1, self.num_timesteps)
        sinks = open_sinks(self.describe(), out, self.num_timesteps, self.records, tensorboard=tensorboard, wandb=wandb)
        with fitting(driver.need), sinks, reporter, interruptible() as stopped:
            driver.begin()
            while self.num_timesteps < goal:
                tests = self.num_timesteps // interval
                driver.step()
                if driver.clock.calls % 64 == 0:
                    reporter.tick(self.num_timesteps)
                more = True
                if self.num_timesteps // interval > tests or self.num_timesteps >= goal:
                    row = self._record(sinks)
                    reporter.tick(self.num_timesteps)
                    reporter.record(self.records)
                    more = callback is None or callback(row) is not False
                if self.after_step is not None:
                    self.after_step()
                if stopped():  # after the record: one that is due would not be made up for
                    raise Stopped
                if not more:
                    break
        if driver.clock.updates == 0:
            every = self.host.train_every
            rarely = f", and an update comes every {every:,} steps (train_every)" if every > 1 else ""
            warnings.warn(
                f"nothing is learned yet: the first {self.settings.warmup:,} steps are random ones (the setting warmup){rarely}",
                UserWarning,
                stacklevel=3,
            )
        return self

    def predict(
        self,
        observation: Any,
        deterministic: bool = True,
        *,
        action_masks: Any = None,
        state: None = None,
        episode_start: Any = None,
    ) -> tuple[Any, None]:
        """The action for an observation, or the actions for a batch of them; and None, for there is no hidden state.

        Deterministic, heads vote and others act on the smallest of their values; else the agent explores as it does in training.
        ``action_masks`` say which actions are legal, [actions] or [batch, actions]; a mask in the observation is found there.
        ``state`` and ``episode_start`` are there for code that hands them to every agent, and change nothing.
        """
        if not isinstance(deterministic, bool | np.bool_):
            raise HostError(f"deterministic must be True or False, not {deterministic!r}")
        driver, world = self.driver, self.driver.world
        driver.make()
        space = self.env.single_observation_space if isinstance(self.env, VectorEnv) else self.env.observation_space
        many = batched(space, observation)
        seen = np.ascontiguousarray(world.sight.many(observation) if many else world.sight.one(observation)[None])
        try:
            seen = visible(seen, world.sight.dtype)
        except HostError as error:
            raise HostError(f"predict was given {observation!r}; {error}") from None
        if not len(seen):
            return np.zeros(0, np.int64), None
        if action_masks is None and world.way is Way.OBSERVATION:
            action_masks = observation.get(MASK)
        legal = None if action_masks is None else _legal(action_masks, len(seen), world.n_actions, many=many)
        if deterministic:
            actions = np.asarray(driver.program.greedy(driver.run, seen, legal))
        else:
            words = self._luck.integers(2**32, size=(len(seen), 3), dtype=np.uint32)
            actions = np.asarray(driver.program.explore(driver.run, seen, np.int32(self.num_timesteps), words, legal))
        actions = actions.astype(np.int64) + world.first_action
        return (actions if many else actions[0]), None

    def bias(self, episodes: int | None = None) -> Bias:
        """How much Q is too large (or, where negative, too small), by Monte Carlo roll-outs in ``eval_env``.

        ``episodes`` is their number, for each head where there are heads; by default as in the records.
        """
        player = self.driver.player()
        if player is None:
            raise HostError("the bias is measured in a second environment: give one as eval_env")
        number = self._bias_episodes if episodes is None else _whole("episodes", episodes)
        self.driver.make()
        return player.bias(self.driver.run, self.num_timesteps, self._heads, number)[1]

    def save(self, path: str | Path) -> Path:
        """Write all of it to one file: weights, optimiser, replay, counters, records, and the environment's state where it can
        be had. The file appears whole, with a checksum, and opening it cannot run code.
        """
        return saving.save(self, path)

    @classmethod
    @habits.understood
    def load(cls, path: str | Path, env: Any, **settings: Any) -> Self:
        """What :meth:`save` wrote, in an environment of the same spaces. Learning goes on as if it had never stopped, if the
        environment can be put into its state; else it says so, and a new episode begins. ``eval_env`` and objects that cannot
        be written to a file are given anew; settings may be, and then hold from here on.
        """
        return loading.load(cls, path, env, settings)

    def describe(self) -> dict[str, Any]:
        """What is being trained, as plain values."""
        return saving.describe(self)

    @property
    def _heads(self) -> int:
        return self.driver.program.family.heads

    @property
    def _bias_episodes(self) -> int:
        return self.settings.measuring.episodes(bootstrapped=self.agent.bootstrapped)

    def _record(self, sinks: Sinks) -> dict[str, Any]:
        """Measure, and hand the record on."""
        driver, step = self.driver, self.num_timesteps
        player, run = driver.player(), driver.run
        test_return, sums, how = np.nan, no_bias(self._heads), NONE
        if player is not None:
            test_return = player.test_return(run, step, self.settings.test_episodes)
            if self.host.measure_bias:
                sums, bias = player.bias(run, step, self._heads, self._bias_episodes)
                how = bias.how
        found = Measurement(
            test_return, sums, driver.take_tally(), np.asarray(run.traits.parameter), np.asarray(run.diverged)
        )
        row = {**self.records.add_run(self.run_id, step, found), "bias_from": how}
        sinks.add(row, self.records)
        return row


def _whole(name: str, value: Any) -> int:
    try:
        return whole_number(name, value)
    except AgentError as error:
        raise HostError(str(error)) from None


def _legal(given: Any, n: int, n_actions: int, *, many: bool) -> NDArray[np.bool_]:
    """The masks for so many observations, [n, actions]; one may be for all of them."""
    rows = list(given) if many and np.iterable(given) else [given]
    if many and not any(np.iterable(each) for each in rows):
        rows = [given] * n
    if len(rows) != n:
        raise HostError(f"there are {n} observations and {len(rows)} masks")
    legal = np.stack([mask_of(each, n_actions) for each in rows])
    if not legal.any(axis=1).all():
        raise HostError("predict was given a mask without a legal action")
    return legal


def _second(env: Any) -> EnvAdapter | None:
    """The world for tests."""
    if isinstance(env, VectorEnv) and env.num_envs > 1:
        raise HostError("eval_env must be one environment, not a vector environment of several")
    return None if env is None else adapter_of(env)
