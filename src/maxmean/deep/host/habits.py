"""What is said to those who come from Stable-Baselines3: where its names have others here, the sentence names them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import ParamSpec, TypeVar

from .errors import HostError

P = ParamSpec("P")
R = TypeVar("R")

_RENAMED = {
    "buffer_size": "replay_capacity",
    "covariance": "paired",
    "gamma": "discount",
    "heads": "k",
    "learning_starts": "warmup",
    "lr": "learning_rate",
    "n_heads": "k",
    "n_steps": "n_step",
    "train_freq": "train_every",
}
"""Settings that are the same thing under another name."""

_POLICY = "the network is chosen by what the environment shows; network= gives another, such as Perceptron((64, 64))"
_EPSILON = "give exploration=maxmean.deep.EpsilonGreedy(initial, final, steps)"
_TENSORBOARD = "say learn(..., out='folder', tensorboard=True)"

_ELSEWHERE = {
    "policy": _POLICY,
    "policy_kwargs": _POLICY + ", and hidden= its last layer",
    "exploration_fraction": _EPSILON,
    "exploration_initial_eps": _EPSILON,
    "exploration_final_eps": _EPSILON,
    "tensorboard_log": _TENSORBOARD,
    "verbose": "say learn(..., progress_bar=True)",
    "device": "JAX takes the GPU if it has one; the variable JAX_PLATFORMS=cpu in the environment keeps it from that",
    "target_update_interval": "it is called target_period here, and counts updates",
    "tau": "the target network is copied as a whole, every target_period updates",
    "max_grad_norm": "gradients are not clipped; loss='huber' bounds them",
}
"""Settings that are found in another place, or in another form."""

_LEARNING = {
    "log_interval": "there is a record every test_interval steps, which is a setting of the agent",
    "tb_log_name": _TENSORBOARD,
    "reset_num_timesteps": "learn goes on counting, and a new agent begins at 0",
    "eval_freq": "the agent is tested every test_interval steps, which is a setting of the agent",
    "n_eval_episodes": "test_episodes is a setting of the agent",
    "eval_env": "eval_env is given when the agent is made",
    "verbose": "progress_bar=True shows how far it is",
}

_MEMBERS = {
    "set_env": "load(path, env) goes on in another environment",
    "get_env": "the environment is in .env",
    "get_vec_env": "the environment is in .env",
    "policy": "predict(observation) gives the action",
    "q_net": "predict(observation) gives the action",
    "logger": "the records are in .table, and learn's callback hears of each",
    "get_parameters": "save(path) and load(path, env) keep all of it",
    "set_parameters": "save(path) and load(path, env) keep all of it",
    "save_replay_buffer": "save(path) keeps the replay too",
    "load_replay_buffer": "load(path, env) brings the replay back too",
    "exploration_rate": "it is the column epsilon of .table",
}


def setting(agent: str, name: str, known: Collection[str]) -> str | None:
    """What is said of a setting that ``agent`` does not have and others may call so; nothing if nobody does.

    >>> setting("DQN", "gamma", ["discount"])
    "DQN has no setting 'gamma': it is called discount here"
    """
    ours = _RENAMED.get(name)
    if ours in known:
        return f"{agent} has no setting {name!r}: it is called {ours} here"
    if name.startswith("exploration_") and name in _ELSEWHERE and "k" in known:
        return f"{agent} has no setting {name!r}: {_EPSILON.replace('EpsilonGreedy', 'HeadPerEpisode')}"
    if name in _ELSEWHERE:
        return f"{agent} has no setting {name!r}: {_ELSEWHERE[name]}"
    return None


def member(kind: str, name: str) -> str:
    """What is said of a method or attribute that there is not."""
    hint = f": {_MEMBERS[name]}" if name in _MEMBERS else ""
    return f"{kind!r} object has no attribute {name!r}{hint}"


def understood(method: Callable[P, R]) -> Callable[P, R]:
    """The method, with one sentence that says what to write where it is called in a way that it cannot be."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def call(*given: P.args, **named: P.kwargs) -> R:
        try:
            return method(*given, **named)
        except TypeError as error:
            try:
                signature.bind(*given, **named)
            except TypeError as mismatch:
                owner = given[0] if inspect.isclass(given[0]) else type(given[0])
                raise HostError(_sentence(owner.__name__, method.__name__, mismatch, named)) from None
            raise error from None

    return call


def _sentence(owner: str, method: str, mismatch: TypeError, named: Collection[str]) -> str:
    if method == "__init__":
        return (
            f"{owner} takes the environment alone without a name, {owner}(env, learning_rate=1e-3, ...), not a policy: "
            f"{_POLICY}"
        )
    if method == "load":
        return f"{owner}.load needs the environment to go on in: {owner}.load(path, env), with an environment or its id"
    for name in named:
        if method == "learn" and name in _LEARNING:
            return f"learn takes no {name}: {_LEARNING[name]}"
    return f"{owner}.{method}: {mismatch}"
