"""The bias of anybody's agent: how much larger its values are than what its policy then gets.

An agent is asked (:mod:`.readers`) about what it sees in a world (:mod:`.worlds`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...errors import brief
from ...luck import undisturbed
from ..checks import AgentError, real_number, whole_number
from ..progress import standard_error
from . import states
from .errors import HostError
from .readers import NotFiniteError, Reader, reader_of
from .rollouts import LIMIT, RESETS, STATES, Bias, PlayedEpisode, compared
from .worlds import SingleEnv, learns_in, world_of

PATIENCE = 2.0
"""Seconds after which a person at a terminal is told how far it is."""


def measure_bias(
    agent: Any,
    env: Any,
    *,
    episodes: int = 30,
    discount: float | None = None,
    starts: Sequence[tuple[Any, Any]] = (),
    seed: int = 0,
    limit: int = LIMIT,
) -> Bias:
    r"""How much an agent's values exceed the discounted returns that its own policy then gets (the paper's Algorithm 3).

    .. math:: \widehat{\text{bias}} = \frac1n \sum_{(s, a)} \Big( Q(s, a) - \sum_t \gamma^t r_t \Big)

    over all pairs that greedy episodes visit. Where an episode is truncated, its return goes on with the value of its last state.
    The global random generators of Python, NumPy and PyTorch, on GPUs too, are afterwards as they were: a seeded training goes on
    the same.

    Parameters
    ----------
    agent
        A DQN, QR-DQN, SAC, TD3, DDPG or TQC model of Stable-Baselines3 or sb3-contrib; a PyTorch module that maps a batch of
        observations to the values of all actions, as in CleanRL's scripts; a function from one observation to the values of all
        actions; a pair of functions ``(act, value)``, where ``act(observation)`` is an action and ``value(observation, action)``
        a number; or one of our own agents, which is measured as :meth:`HostAgent.bias` does.
    env
        A Gymnasium environment or its id, or a ``VecEnv`` of Stable-Baselines3 with one environment; in the wrappers of the
        training. Episodes are begun anew in it. If a model has a ``VecNormalize``, its statistics are used, and do not change.
    episodes
        How many episodes are played. With fewer than 30 the error and the interval are rough, most of all where episodes differ
        much in length.
    discount
        The discount factor; a model of Stable-Baselines3 knows its own.
    starts
        Pairs ``(observation, state)`` in which episodes begin, in turn; a state is what
        ``maxmean.deep.host.states.get_state(env)`` gives, of environments that have one. By default they begin with a reset.
    seed
        Of the resets: the same seed gives the same episodes.
    limit
        Steps after which an episode is cut off, as one that is truncated.

    Returns
    -------
    Bias
        With its standard error, episodes being the units, a 95% interval, and by fifths of the predicted value.

    Examples
    --------
    An agent that expects 5 in CartPole, whatever it sees, and pushes to the left. The pole falls within ten steps or so, and with
    a discount of 1 the return is the number of steps left:

    >>> import maxmean
    >>> found = maxmean.measure_bias(lambda seen: [5.0, 0.0], "CartPole-v1", discount=1.0, episodes=20)
    >>> abs(found.value) < 0.5, found.episodes
    (True, 20)
    """
    from .agent import HostAgent

    number = checked(whole_number, "episodes", episodes)
    most = checked(whole_number, "limit", limit)
    begin = checked(seed_number, "seed", seed)
    given = None if discount is None else checked(real_number, "discount", discount)
    if not isinstance(starts, Sequence) or isinstance(starts, str):
        raise HostError(f"starts must be a list of pairs (observation, state), not {brief(starts)}")
    if isinstance(agent, HostAgent):
        own = (None, agent.env, agent.env.spec and agent.env.spec.id)
        if env not in own or given is not None or len(starts) or most != LIMIT or begin:
            raise HostError(
                "an agent of ours is measured in its own eval_env, with its own discount, seed and states: say "
                "agent.bias(episodes)"
            )
        with undisturbed():
            found = agent.bias(number)
        if not np.isfinite(found.value):
            raise NotFiniteError(
                "the agent's values, or the returns, are not finite, as after a training that diverged"
            )
        return found
    return measured(agent, env, number, given, starts, begin, most)


def seed_number(name: str, value: Any) -> int:
    """A whole number from 0 on."""
    return whole_number(name, value, least=0)


def measured(
    agent: Any,
    env: Any,
    episodes: int,
    discount: float | None = None,
    starts: Sequence[tuple[Any, Any]] = (),
    seed: int = 0,
    limit: int = LIMIT,
    *,
    quiet: bool = False,
) -> Bias:
    """:func:`measure_bias` with checked numbers; ``quiet``: whatever the time that it takes."""
    with undisturbed(), world_of(env, agent) as world, _telling(episodes, quiet=quiet) as tell:
        reader = reader_of(agent, world.observation_space, world.action_space)
        known = reader.discount if discount is None else discount
        if known is None:
            raise HostError(
                "an agent that is a function or a module has no discount factor of its own: give discount=0.99, say"
            )
        if not 0.0 <= known <= 1.0:
            raise HostError(f"discount must be from 0 to 1, not {known}")
        try:
            with reader.evaluating():
                begins = _begins(world, starts, episodes, seed)
                played = [_play(reader, world, seen, known, limit, tell) for seen in begins]
        finally:
            if learns_in(agent, env):
                agent._last_obs = None  # its environment is elsewhere now: learning goes on with a new episode
        return compared(played, 1, STATES if len(starts) else RESETS)[1]


def _begins(world: SingleEnv, starts: Sequence[tuple[Any, Any]], episodes: int, seed: int) -> Iterator[Any]:
    """The first observation of each episode, with the environment put there when it is asked for."""
    if len(starts):
        why = states.obstacle(world.env) if type(world) is SingleEnv else "its environment is not Gymnasium's own"
        if why is not None:
            raise HostError(f"episodes cannot begin in starts: {why}")
        if not all(isinstance(each, tuple | list) and len(each) == 2 for each in starts):
            raise HostError("starts must be pairs (observation, state), with what states.get_state(env) gives")
    luck = [int(word >> 1) for word in np.random.SeedSequence(seed).generate_state(episodes)]
    for number, own in enumerate(luck):
        seen = world.reset(own)
        if len(starts):
            seen, state = starts[number % len(starts)]
            states.set_state(world.env, state, np.random.default_rng(own))
        yield seen


def _play(
    reader: Reader, world: SingleEnv, seen: Any, discount: float, limit: int, tell: Callable[[int], object]
) -> PlayedEpisode:
    """One episode without exploration; ``tell`` hears of every step, and of the last with 0."""
    values, rewards, tail = [], [], 0.0
    for step in range(1, limit + 1):
        action, value = reader.asked(seen, world.action_space)
        seen, reward, terminated, truncated = world.step(action)
        values.append(value)
        rewards.append(reward)
        if terminated or truncated or step == limit:
            tail = 0.0 if terminated else reader.asked(seen, world.action_space)[1]
            break
        tell(step)
    tell(0)
    return PlayedEpisode.of(values, rewards, tail, discount)


@contextmanager
def _telling(episodes: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Say how far it is, on one line of a terminal, when that takes its time."""
    console, begin = standard_error(), time.monotonic()
    done, shown, silent = 0, begin + PATIENCE - 0.5, quiet or not console.is_terminal

    def tell(step: int) -> None:
        nonlocal done, shown
        done += step == 0
        if not silent and time.monotonic() - shown > 0.5:
            shown = time.monotonic()
            console.file.write(f"\r{done:,} of {episodes:,} episodes, {step:,} steps of the next \x1b[K")
            console.file.flush()

    try:
        yield tell
    finally:
        if shown > begin + PATIENCE:
            console.file.write("\r\x1b[K")
            console.file.flush()


def checked(check: Callable[..., Any], name: str, value: Any) -> Any:
    """What ``check`` makes of a setting; what it refuses is a mistake in this room's words."""
    try:
        return check(name, value)
    except AgentError as error:
        raise HostError(str(error)) from None
