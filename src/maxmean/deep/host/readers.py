"""How to ask anybody's agent two things: what it would do, and what it thinks that is worth.

Models of other libraries are read in memory; no file is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from gymnasium import spaces

from .errors import HostError, sentence

LARGEST = float(np.finfo(np.float32).max)
"""The largest value that is compared with a return."""


class NotFiniteError(HostError):
    """An agent whose values are no numbers that a return could be compared with."""


@dataclass(frozen=True)
class Reader:
    """How to ask an agent."""

    act: Callable[[Any], Any]
    """What it does on an observation when it does not explore."""
    value: Callable[[Any, Any], float]
    """What it thinks an action is worth there."""
    discount: float | None = None
    """Its own discount factor, where it has one."""
    module: Any = None
    """Its network in PyTorch, where it has one: it may behave otherwise while it learns."""

    def asked(self, seen: Any, actions: spaces.Space) -> tuple[Any, float]:
        """What the agent does, as the environment takes it, and what it thinks that is worth."""
        try:
            action = action_for(actions, self.act(seen))
            value = self.value(seen, action)
        except HostError:
            raise
        except Exception as error:
            raise HostError(
                f"the agent was asked about what the environment shows, and said: {sentence(error) or type(error).__name__}"
            ) from error
        if not abs(value) <= LARGEST:
            raise NotFiniteError(
                f"the agent expects {value:g} from the action {_brief(action)}, and only finite values have a bias: its "
                "weights, or what it was shown, are no longer finite numbers, as after a training that diverged"
            )
        return action, value

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Without dropout and the like while it lasts; afterwards each layer is in the mode in which it was."""
        modes = [] if self.module is None else [(each, each.training) for each in self.module.modules()]
        if self.module is not None:
            self.module.eval()
        try:
            yield
        finally:
            for each, mode in modes:
                each.training = mode


def reader_of(agent: Any, seen: spaces.Space, actions: spaces.Space) -> Reader:
    """How to ask this agent in an environment with these spaces; one sentence for what is no agent, or one of another world."""
    if isinstance(agent, tuple) and len(agent) == 2 and all(callable(each) for each in agent):
        act, value = agent
        return Reader(act, lambda seen, action: _number(value(seen, action)))
    if is_from(agent, "stable_baselines3", "sb3_contrib") and hasattr(agent, "predict"):
        if not is_model(agent):
            raise HostError(f"give the model itself, such as a DQN, instead of its {type(agent).__name__}")
        return _of_stable_baselines(agent, seen, actions)
    if is_from(agent, "torch") and hasattr(agent, "forward"):
        return _by_all_values(lambda seen: _of_module(agent, seen), actions, agent)
    if callable(agent) and not isinstance(agent, type):
        return _by_all_values(agent, actions)
    what = f"a {type(agent).__name__}" if not isinstance(agent, type) else f"the class {agent.__name__}"
    hint = "; a saved model must be loaded first, DQN.load(path), say" if isinstance(agent, str | PathLike) else ""
    raise HostError(
        f"the bias of {what} cannot be measured: give a model of Stable-Baselines3, a PyTorch module, a "
        f"function from an observation to the values of all actions, or a pair of functions (act, value){hint}"
    )


def is_from(thing: Any, *packages: str) -> bool:
    """Whether its class is one of a package's, or made from one."""
    return any(kind.__module__.partition(".")[0] in packages for kind in type(thing).__mro__)


def is_model(agent: Any) -> bool:
    """Whether it is a model of Stable-Baselines3, which knows its environment."""
    return is_from(agent, "stable_baselines3", "sb3_contrib") and hasattr(agent, "get_env")


def action_for(space: spaces.Space, action: Any) -> Any:
    """An action as the environment takes it: also from a tensor, or from an array of one; one sentence for what is none."""
    if not isinstance(space, spaces.Discrete | spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        return action
    found = np.asarray(_plain(action))
    if isinstance(space, spaces.Discrete):
        if found.size == 1 and found.dtype.kind in "biu" and space.contains(int(found.reshape(()))):
            return int(found.reshape(()))
        last = int(space.start + space.n) - 1
        raise HostError(
            f"the agent's action is {_brief(action)}, and those of the environment are {space.start} to {last}"
        )
    sound = found.size == np.prod(space.shape, dtype=int) and found.dtype.kind in "biuf"
    if not sound or not (isinstance(space, spaces.Box) or space.contains(found.reshape(space.shape))):
        raise HostError(f"the agent's action is {_brief(action)}, and the environment takes those of {_brief(space)}")
    return found.reshape(space.shape)


def _by_all_values(values: Callable[[Any], Any], actions: spaces.Space, module: Any = None) -> Reader:
    """An agent that takes the action with the largest value."""
    if not isinstance(actions, spaces.Discrete):
        raise HostError(
            f"values of all actions are for discrete ones, and the environment's are {_brief(actions)}: give a pair of functions "
            "(act, value)"
        )
    first, number = int(actions.start), int(actions.n)

    def all_of(seen: Any) -> Any:
        found = np.asarray(_plain(values(seen)), float)
        if found.ndim != 1:
            raise HostError(
                f"a function of one observation gives the values of all actions, [actions], not {found.shape}"
            )
        if len(found) != number:
            raise HostError(f"the agent has values of {len(found)} actions, and the environment has {number}")
        return found

    def value(seen: Any, action: Any) -> float:
        return float(all_of(seen)[action - first])

    return Reader(lambda seen: first + int(np.argmax(all_of(seen))), value, module=module)


def _of_module(module: Any, seen: Any) -> Any:
    """The values that a PyTorch module gives one observation."""
    import torch

    if isinstance(seen, dict):
        raise HostError(
            "a PyTorch module is given one array, and the environment shows a dict: give a pair of functions"
        )
    like = _like(module)
    with torch.no_grad():
        found = module(torch.as_tensor(np.asarray(seen), dtype=like.dtype, device=like.device)[None])
    if not isinstance(found, torch.Tensor):
        raise HostError(
            f"a PyTorch module gives one tensor, the values [batch, actions], not a {type(found).__name__}; one that remembers "
            "what it saw (a recurrent one) cannot be measured"
        )
    return found[0]


def _like(module: Any) -> Any:
    """A tensor of the type and on the device that a module computes with."""
    import torch

    parameters = module.parameters() if isinstance(module, torch.nn.Module) else ()
    return next((each for each in parameters if each.is_floating_point()), torch.zeros(()))


def _of_stable_baselines(model: Any, seen: spaces.Space, actions: spaces.Space) -> Reader:
    """Q of a model of Stable-Baselines3: of its network for all actions, or of its critics for the policy's action."""
    import torch

    if not any(hasattr(model, name) for name in ("q_net", "quantile_net", "critic")):
        raise HostError(f"{type(model).__name__} learns no values of actions, and so has no bias of them")
    for what, learned, given in (
        ("observations", model.observation_space, seen),
        ("actions", model.action_space, actions),
    ):
        if not _alike(learned, given):
            raise HostError(
                f"the model learned with the {what} {_brief(learned)}, and those of env are {_brief(given)}: give an environment "
                "like the one it learned in, in the same wrappers"
            )

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
        dtype = _like(model.critic).dtype  # the action space may have another
        scaled = torch.as_tensor(model.policy.scale_action(np.asarray(action)), dtype=dtype, device=model.device)
        with torch.no_grad():
            found = model.critic(looked_at(seen), scaled.reshape(1, -1))
        if isinstance(found, tuple):  # several critics, of which the smallest is learned from
            return float(torch.cat(found, dim=1).min())
        return float(found.mean())  # quantiles, [batch, critics, quantiles]

    network: Any = getattr(model, "q_net", None) or getattr(model, "quantile_net", None)
    return Reader(act, of_pair if network is None else of_all, float(model.gamma), model.policy)


def _alike(learned: Any, given: Any) -> bool:
    """Whether a model that learned with a space takes what comes from another. Pictures may have their channels first or last."""
    if isinstance(learned, spaces.Dict) and isinstance(given, spaces.Dict):
        return set(learned) == set(given) and all(_alike(learned[name], given[name]) for name in learned)
    if isinstance(learned, spaces.Box) and isinstance(given, spaces.Box):
        shape = given.shape
        return learned.shape in (shape, (shape[-1], *shape[:-1]) if len(shape) == 3 else shape)
    return bool(learned == given)


def _plain(found: Any) -> Any:
    """A tensor of PyTorch as an array; all else as it is."""
    if not hasattr(found, "detach"):
        return found
    found = found.detach().cpu()
    try:
        return found.numpy()
    except TypeError:  # bfloat16, which NumPy does not have
        return found.float().numpy()


def _number(value: Any) -> float:
    found = np.asarray(_plain(value))
    if found.size != 1:
        raise HostError(f"value(observation, action) gives one number, not an array of shape {found.shape}")
    return float(found.reshape(()))


def _brief(thing: Any) -> str:
    if isinstance(thing, spaces.Box):  # its bounds, an array each, would hide the shape
        return f"Box{thing.shape}"
    return " ".join(str(thing).split())[:100]
