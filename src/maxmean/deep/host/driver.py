"""The driver: an agent and its environments on their way, one step after the other."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..core.family import Family
from ..core.memory import need_of, refuse_too_much
from ..core.run import Run, Tally
from ..core.update import copy_target
from ..networks import Ensemble, Perceptron
from ..settings import Settings
from . import states
from .adapters import EnvAdapter, EnvStep, VectorEnvAdapter, View
from .errors import HostError
from .frames import Frames, stack_of
from .masks import Way
from .program import HostProgram, host_program
from .rollouts import Player
from .settings import Choice, Host

KEPT_STATES = 1_000
"""Environment states that are kept for roll-outs, spread evenly over the replay's transitions."""


@dataclass
class Clock:
    """All that is counted."""

    calls: int = 0
    """Messages to the device."""
    stored: int = 0
    """Transitions: the steps that all else is measured by."""
    updates: int = 0
    begun: int = 0
    """Episodes."""
    ended: int = 0
    """Episodes since the last record."""
    returns: float = 0.0
    """The sum of their returns."""


@dataclass
class Lanes:
    """What is known of each environment."""

    seen: NDArray[Any]
    """What the pending actions were chosen on."""
    episode: NDArray[np.uint32]
    total: NDArray[np.float64]
    """Return of the episode so far."""
    earlier: NDArray[np.int32]
    """[n, n_step - 1]: the numbers of the episode's last transitions, the latest first, or -1: the next step lengthens them."""

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """What there is to keep, by name."""
        arrays = {"seen": self.seen, "episode": self.episode, "total": self.total, "earlier": self.earlier}
        return {name: array for name, array in arrays.items() if array.size}


@dataclass
class Driver:
    """The whole state of a training, on the host and on the device."""

    choice: Choice
    world: EnvAdapter
    eval_world: EnvAdapter | None
    made: bool = False
    """Whether there is a run."""
    started: bool = False
    """Whether the first episode has begun."""
    run: Run = field(init=False)
    pending: Any = field(init=False)
    """The next actions, [n], under way on the device."""
    lanes: Lanes = field(init=False)
    frames: Frames | None = None
    """The frames that the device has, where each is stored once."""
    clock: Clock = field(default_factory=Clock)
    kept: deque[tuple[Any, ...]] = field(default_factory=lambda: deque(maxlen=KEPT_STATES))
    """What was seen in states of the environment, and the states; then what was legal there, where actions may be illegal, and
    the lives, [1], where losing one is an end.
    """

    def __post_init__(self) -> None:
        settings = self.choice.settings
        if settings.n_step * self.world.n > settings.replay_capacity:
            raise HostError(
                f"with {self.world.n} environments and n_step={settings.n_step} replay_capacity must be at least "
                f"{settings.n_step * self.world.n:,}, not {settings.replay_capacity:,}"
            )
        for world in (self.world, self.eval_world):
            if world is not None:
                host = self.choice.host
                world.teach(clip_reward=bool(host.clip_reward), terminal_on_life_loss=host.terminal_on_life_loss)
        self.stack = stack_of(self.world.env, self.world.sight, self.choice.host.frames)
        self._make_program()
        other = None if self.eval_world is None else self.eval_world.env
        self.keeps = other is not None and states.alike(self.world.env, other)
        self.keep_every = max(1, settings.replay_capacity // KEPT_STATES)

    def _make_program(self) -> None:
        """Make the program for what is known of the environment."""
        agent, settings, host = self.choice
        family = Family.of([agent])
        network = network_of(family, self.world, settings, host)
        self.program: HostProgram = host_program(
            family,
            network,
            settings.learning,
            self.world.sight.dtype.name,
            self.world.n,
            settings.warmup,
            host.gradient_steps,
            self.world.way.masked,
            self.stack,
        )
        learning = self.program.learning
        self.need = need_of(network, settings.learning, learning.layout, learning.frames)
        refuse_too_much(self.need)

    def use_masks(self, masked: bool) -> None:
        """Go on as a training was that had masks, or none; nothing has been stored yet."""
        if not masked:
            self.world.way = Way.IGNORED
            if self.eval_world is not None:
                self.eval_world.way = Way.IGNORED
        elif self.world.way is Way.UNKNOWN:
            self.world.way = Way.INFO
        self._follow_masks()

    def use_frames(self, count: int) -> None:
        """Go on as a training was that stored each frame of stacks of so many once, or, with 0, whole observations."""
        if count != (0 if self.stack is None else self.stack.count):
            self.stack = stack_of(self.world.env, self.world.sight, max(1, count))
            self._make_program()
            self.made = False

    def _follow_masks(self) -> None:
        """Have the program that the environment's masks need. A run that was made before has learned nothing."""
        if self.program.masked != self.world.way.masked:
            self._make_program()
            self.made = False

    def make(self) -> None:
        """Make the run, unless there is one. The environment is left alone: its owner may be playing in it."""
        if self.made:
            return
        agent, settings, host = self.choice
        traits = self.program.family.traits(agent, settings.learning_rate)
        self.run = self.program.create(jnp.array([0, host.seed], jnp.uint32), traits)
        self.frames = None if self.program.frames is None else Frames(self.program.frames, self.world.n)
        self.made = True

    def begin(self) -> None:
        """Put the training at its beginning, unless it has begun."""
        if self.started:
            return
        view = self.world.reset(self.choice.host.seed)
        self._follow_masks()
        self.make()
        self.enter(view)
        self.started = True

    def enter(self, view: View) -> None:
        """Begin an episode in every environment, and choose the first actions."""
        n, others = self.world.n, self.choice.settings.n_step - 1
        episodes = np.arange(n, dtype=np.uint32) + np.uint32(self.clock.begun)
        self.lanes = Lanes(view.seen, episodes, np.zeros(n), np.full((n, others), -1, np.int32))
        self.clock.begun += n
        first = np.zeros(n, self.program.message)
        first["episode"], first["stored"], first["call"] = self.lanes.episode, self.clock.stored, self.clock.calls
        first["earlier"] = self.lanes.earlier
        if self.program.masked:
            first["legal"] = view.legal
        self.clock.calls += 1
        if self.frames is None:
            first["seen"] = view.seen
        else:
            self.frames.enter(first, view.seen, self.clock.stored)
            self.run = self.program.store(self.run, _rows(first))
        self.pending = self._act(_rows(first))

    def step(self) -> None:
        """One step of all environments, and what is learned from it."""
        _, settings, host = self.choice
        actions = np.asarray(self.pending)
        after = self.world.step(actions)
        message = _rows(self._tell(actions, after))
        clock = self.clock
        clock.stored += self.world.n if after.counts.all() else int(after.counts.sum())
        learns = clock.stored > settings.warmup and clock.calls % host.train_every == 0
        self.pending = self._act(message)
        self.run = self.program.learn(self.run, message) if learns else self.program.store(self.run, message)
        clock.calls += 1
        self._turn_page(after)
        if learns:
            period = settings.target_period
            copies = clock.updates // period
            clock.updates += host.gradient_steps
            if clock.updates // period > copies:
                self._copy_target()

    def _act(self, message: NDArray[np.uint32]) -> Any:
        """The next actions, under way. From a GPU they are sent as soon as they are there, not when the host asks for them."""
        actions = self.program.act(self.run, message)
        if jax.default_backend() != "cpu":
            actions.copy_to_host_async()
        return actions

    def _tell(self, actions: NDArray[np.integer], after: EnvStep) -> NDArray[Any]:
        """The message to the device. It is a new array each time: the device may still be reading the last one."""
        message = np.empty(self.world.n, self.program.message)
        message["action"] = actions
        message["reward"] = self.world.learned(after)
        message["terminated"] = after.final
        message["mask"] = 0xFFFFFFFF
        message["counts"] = after.counts
        message["call"] = self.clock.calls
        message["stored"] = self.clock.stored
        if after.over.any():
            fresh = np.flatnonzero(after.over)
            self.lanes.episode[fresh] = self.clock.begun + np.arange(fresh.size)
            self.clock.begun += fresh.size
        message["episode"] = self.lanes.episode
        message["earlier"] = self.lanes.earlier
        if self.program.masked:
            message["next_legal"], message["legal"] = after.next_legal, after.legal
        if self.frames is None:
            message["state"], message["next_state"], message["seen"] = self.lanes.seen, after.reached, after.seen
        else:
            self.frames.tell(message, self.lanes.seen, after, self.clock.stored)
        return message

    def _turn_page(self, after: EnvStep) -> None:
        """Sum up the episodes, and keep a state now and then."""
        lanes, clock = self.lanes, self.clock
        lanes.seen = after.seen
        lanes.total += after.rewards
        if lanes.earlier.size:
            numbers = clock.stored - after.counts[::-1].cumsum()[::-1]
            grown = np.column_stack([numbers, lanes.earlier[:, :-1]])
            lanes.earlier = np.where((after.counts & ~after.over & ~after.lost)[:, None], grown, -1).astype(np.int32)
        if after.over.any():
            clock.ended += int(after.over.sum())
            clock.returns += float(lanes.total[after.over].sum())
            lanes.total[after.over] = 0.0
        if self.keeps and clock.calls % self.keep_every == 0:
            lane = (clock.calls // self.keep_every) % self.world.n
            env = self.world.env.envs[lane] if isinstance(self.world, VectorEnvAdapter) else self.world.env
            if not self.world.rests(lane):
                seen, legal = np.array(after.seen[lane]), () if after.legal is None else (np.array(after.legal[lane]),)
                lives = () if self.world.lives is None else (np.array(self.world.lives[lane : lane + 1]),)
                self.kept.append((seen, states.get_state(env), *legal, *lives))

    def _copy_target(self) -> None:
        """The target network becomes a copy of the one that learns; then the agent adapts, if it does."""
        self.run = self.run._replace(learner=copy_target(self.run.learner))
        if self.program.family.adaptation is not None:
            player = self.player()
            assert player is not None
            self.run = player.adapt(self.run, self.clock.stored)

    def player(self) -> Player | None:
        """Who plays roll-outs, if there is an environment for them."""
        if self.eval_world is None:
            return None
        _, settings, host = self.choice
        return Player(self.program, self.eval_world, self.kept, host.seed, settings.discount)

    def take_tally(self) -> Tally:
        """The sums since the last record, which begin anew."""
        tally = jax.tree.map(np.asarray, self.run.tally)._replace(
            episodes=np.int32(self.clock.ended), returns=np.float32(self.clock.returns)
        )
        self.run = self.run._replace(tally=jax.tree.map(jnp.zeros_like, self.run.tally))
        self.clock.ended, self.clock.returns = 0, 0.0
        return tally


def network_of(family: Family, world: EnvAdapter, settings: Settings, host: Host) -> Ensemble:
    """The network for what a world shows and offers."""
    sight = world.sight
    trunk = host.network or sight.trunk
    if host.scale_observations and isinstance(trunk, Perceptron):
        trunk = replace(trunk, units=sight.units)
    return family.network(trunk, sight.shape, world.n_actions, settings.hidden)


def _rows(message: NDArray[Any]) -> NDArray[np.uint32]:
    """A message as the words that the device reads."""
    return message.view(np.uint32).reshape(message.shape[0], -1)
