"""The bias of anybody's agent: how much larger its values are than what its policy then gets.

An agent is asked two things: what it would do, and what it thinks that is worth. :func:`reader_of` finds out how to ask. Models
of other libraries are read in memory; no file is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import need
from ..checks import AgentError, real_number, whole_number
from .errors import HostError, sentence
from .making import opened
from .rollouts import LIMIT, RESETS, STATES, Bias, PlayedEpisode, compared


@dataclass(frozen=True)
class Reader:
    """How to ask an agent."""

    act: Callable[[Any], Any]
    """What it does on an observation when it does not explore."""
    value: Callable[[Any, Any], float]
    """What it thinks an action is worth there."""
    discount: float | None = None
    """Its own discount factor, where it has one."""


def measure_bias(
    agent: Any,
    env: Any,
    *,
    episodes: int = 10,
    discount: float | None = None,
    starts: Sequence[tuple[Any, Any]] = (),
    seed: int = 0,
    limit: int = LIMIT,
) -> Bias:
    r"""How much an agent's values exceed the discounted returns that its own policy then gets (the paper's Algorithm 3).

    .. math:: \widehat{\text{bias}} = \frac1n \sum_{(s, a)} \Big( Q(s, a) - \sum_t \gamma^t r_t \Big)

    over all pairs that greedy episodes visit. Where an episode is truncated, its return goes on with the value of its last state.

    Parameters
    ----------
    agent
        A DQN, QR-DQN, SAC, TD3, DDPG or TQC model of Stable-Baselines3 or sb3-contrib; a PyTorch module that maps a batch of
        observations to the values of all actions, as in CleanRL's scripts; a function from one observation to the values of all
        actions; a pair of functions ``(act, value)``, where ``act(observation)`` is an action and ``value(observation, action)``
        a number; or one of our own agents, which is measured as :meth:`HostAgent.bias` does.
    env
        A Gymnasium environment or its id, in which nobody else is playing: episodes are begun anew. For a model of
        Stable-Baselines3 that was trained in a ``VecEnv``, such as a ``VecNormalize``, one of those with a single environment.
    episodes
        How many episodes are played.
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
        With its standard error, episodes being the units, and by fifths of the predicted value.

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

    number = _checked(whole_number, "episodes", episodes)
    most = _checked(whole_number, "limit", limit)
    if isinstance(agent, HostAgent):
        return agent.bias(number)
    reader = reader_of(agent)
    known = reader.discount if discount is None else _checked(real_number, "discount", discount)
    if known is None:
        raise HostError(
            "an agent that is a function or a module has no discount factor of its own: give discount=0.99, say"
        )
    if not 0.0 <= known <= 1.0:
        raise HostError(f"discount must be from 0 to 1, not {known}")
    world = _world(env)
    begins = _begins(world, starts, number, seed)
    return compared([_play(reader, world, seen, known, most) for seen in begins], 1, STATES if starts else RESETS)[1]


def bias_callback(env: Any, *, every: int = 10_000, episodes: int = 5, seed: int = 0) -> Any:
    """A callback for Stable-Baselines3 that measures the bias while a model learns.

    ``model.learn(..., callback=maxmean.bias_callback(env))`` logs ``bias/mean``, ``bias/error`` and ``bias/value`` (the mean
    prediction) after every ``every`` steps, to TensorBoard where the model logs there. ``env`` is a second environment. The
    callback's ``table`` has what was measured, one row each time.
    """
    need("bias_callback", "stable_baselines3", error=HostError)
    from stable_baselines3.common.callbacks import BaseCallback

    steps, world = _checked(whole_number, "every", every), env if not isinstance(env, str) else opened(env, "env")

    class BiasCallback(BaseCallback):  # type: ignore[misc, unused-ignore]
        """Measures the bias of the model that it is called for."""

        def __init__(self) -> None:
            super().__init__()
            self.table: list[dict[str, float]] = []

        def _on_step(self) -> bool:
            done = self.table[-1]["step"] if self.table else 0
            if self.num_timesteps - done >= steps:
                found = measure_bias(self.model, world, episodes=episodes, seed=seed)
                value = float(np.mean(found.values))
                row = {"step": self.num_timesteps, "mean": found.value, "error": found.error, "value": value}
                self.table.append(row)
                for name in ("mean", "error", "value"):
                    self.logger.record(f"bias/{name}", row[name])
                self.logger.dump(self.num_timesteps)
            return True

    return BiasCallback()


def reader_of(agent: Any) -> Reader:
    """How to ask this agent; one sentence for what is none."""
    if isinstance(agent, tuple) and len(agent) == 2 and all(callable(each) for each in agent):
        act, value = agent
        return Reader(act, lambda seen, action: _number(value(seen, action)))
    if _is_from(agent, "stable_baselines3", "sb3_contrib") and hasattr(agent, "predict"):
        return _of_stable_baselines(agent)
    if _is_from(agent, "torch"):
        return _by_all_values(lambda seen: _of_module(agent, seen))
    if callable(agent):
        return _by_all_values(agent)
    raise HostError(
        f"the bias of a {type(agent).__name__} cannot be measured: give a model of Stable-Baselines3, a PyTorch module, a "
        "function from an observation to the values of all actions, or a pair of functions (act, value)"
    )


def _is_from(thing: Any, *packages: str) -> bool:
    """Whether its class is one of a package's, or made from one."""
    return any(kind.__module__.partition(".")[0] in packages for kind in type(thing).__mro__)


def _by_all_values(values: Callable[[Any], Any]) -> Reader:
    """An agent that takes the action with the largest value."""

    def all_of(seen: Any) -> Any:
        found = np.asarray(values(seen), float)
        if found.ndim != 1:
            raise HostError(
                f"a function of one observation gives the values of all actions, [actions], not {found.shape}"
            )
        return found

    return Reader(lambda seen: int(np.argmax(all_of(seen))), lambda seen, action: float(all_of(seen)[int(action)]))


def _of_module(module: Any, seen: Any) -> Any:
    """The values that a PyTorch module gives one observation."""
    import torch

    place = next(iter(module.parameters()), torch.zeros(())).device
    with torch.no_grad():
        found = module(torch.as_tensor(np.asarray(seen), dtype=torch.float32, device=place)[None])
    return found[0].cpu().numpy()


def _of_stable_baselines(model: Any) -> Reader:
    """Q of a model of Stable-Baselines3: of its network for all actions, or of its critics for the policy's action."""
    import torch

    def act(seen: Any) -> Any:
        return model.predict(seen, deterministic=True)[0]

    def looked_at(seen: Any) -> Any:
        return model.policy.obs_to_tensor(seen)[0]

    def of_all(seen: Any, action: Any) -> float:
        with torch.no_grad():
            found = network(looked_at(seen))
        found = found.mean(dim=1) if found.ndim == 3 else found  # quantiles, [batch, quantiles, actions]
        return float(found[0, int(action)])

    def of_pair(seen: Any, action: Any) -> float:
        scaled = torch.as_tensor(model.policy.scale_action(np.asarray(action)), device=model.device)
        with torch.no_grad():
            found = model.critic(looked_at(seen), scaled.reshape(1, -1))
        if isinstance(found, tuple):  # several critics, of which the smallest is learned from
            return float(torch.cat(found, dim=1).min())
        return float(found.mean())  # quantiles, [batch, critics, quantiles]

    if hasattr(model, "q_net") or hasattr(model, "quantile_net"):
        network = model.q_net if hasattr(model, "q_net") else model.quantile_net
        return Reader(act, of_all, float(model.gamma))
    if not hasattr(model, "critic"):
        raise HostError(f"{type(model).__name__} learns no values of actions, and so has no bias of them")
    return Reader(act, of_pair, float(model.gamma))


class _Alone:
    """The only environment of a ``VecEnv``, which Stable-Baselines3 has for one too, as Gymnasium would step it."""

    def __init__(self, env: Any) -> None:
        if env.num_envs != 1:
            raise HostError(f"env must be a VecEnv with one environment, not with {env.num_envs}")
        self.env = env

    def reset(self, seed: int) -> tuple[Any, dict[str, Any]]:
        self.env.seed(seed)
        return _first(self.env.reset()), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        seen, rewards, over, infos = self.env.step(np.asarray(action)[None])
        about = infos[0]
        truncated = bool(over[0]) and bool(about.get("TimeLimit.truncated", False))
        last = about["terminal_observation"] if over[0] else _first(seen)
        return last, float(rewards[0]), bool(over[0]) and not truncated, truncated, about


def _first(seen: Any) -> Any:
    return {name: each[0] for name, each in seen.items()} if isinstance(seen, dict) else seen[0]


def _world(env: Any) -> Any:
    if _is_from(env, "stable_baselines3") and hasattr(env, "step_async"):
        return _Alone(env)
    import gymnasium

    made = opened(env, "env")
    if isinstance(made, gymnasium.vector.VectorEnv):
        raise HostError("env must be one environment, not a vector environment")
    return made


def _begins(world: Any, starts: Sequence[tuple[Any, Any]], episodes: int, seed: int) -> Iterator[Any]:
    """The first observation of each episode, with the environment put there when it is asked for."""
    from . import states

    luck = [int(word >> 1) for word in np.random.SeedSequence(seed).generate_state(episodes)]
    for number, own in enumerate(luck):
        seen, _ = world.reset(seed=own)
        if starts:
            seen, state = starts[number % len(starts)]
            states.set_state(world, state, np.random.default_rng(own))
        yield seen


def _play(reader: Reader, world: Any, seen: Any, discount: float, limit: int) -> PlayedEpisode:
    """One episode without exploration."""
    values, rewards, tail = [], [], 0.0
    for step in range(1, limit + 1):
        action, value = _asked(reader, seen)
        seen, reward, terminated, truncated, _ = world.step(action)
        values.append(value)
        rewards.append(float(reward))
        if terminated or truncated or step == limit:
            tail = 0.0 if terminated else _asked(reader, seen)[1]
            break
    return PlayedEpisode.of(values, rewards, tail, discount)


def _asked(reader: Reader, seen: Any) -> tuple[Any, float]:
    """What the agent does, and what it thinks that is worth."""
    try:
        action = reader.act(seen)
        return action, reader.value(seen, action)
    except HostError:
        raise
    except Exception as error:
        raise HostError(f"the agent was asked about what the environment shows, and said: {sentence(error)}") from error


def _number(value: Any) -> float:
    return float(np.asarray(value.detach().cpu() if hasattr(value, "detach") else value).reshape(()))


def _checked(check: Callable[..., Any], name: str, value: Any) -> Any:
    try:
        return check(name, value)
    except AgentError as error:
        raise HostError(str(error)) from None
