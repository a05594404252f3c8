"""A whole training in one file: safetensors, with what the arrays mean as JSON in its header, and a checksum of both.

The file appears whole or not at all. Opening one cannot run code.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ..deep.directory import system_error, unwritten
from ..deep.policy import named_leaves, with_suffix
from ..deep.program import Run
from ..deep.records import Records
from ..whole import appearing
from . import plain, states
from .errors import HostError
from .learner import KEPT_STATES, Clock, Lanes
from .worlds import Worlds

if TYPE_CHECKING:
    from .algorithm import Algorithm

    A = TypeVar("A", bound=Algorithm)

FORMAT = 1


def describe(algorithm: Algorithm) -> dict[str, Any]:
    """What is trained, in plain values."""
    sight, spec = algorithm.learner.world.sight, algorithm.env.spec
    return {
        "algorithm": type(algorithm).__name__,
        "environment": None if spec is None else spec.id,
        "agent": algorithm.agent.describe(),
        "settings": dataclasses.asdict(algorithm.settings),
        "host": {**dataclasses.asdict(algorithm.host), "network": repr(algorithm.learner.engine.program.network.trunk)},
        "world": {
            "environments": algorithm.learner.world.n,
            "shape": list(sight.shape),
            "type": sight.dtype.name,
            "actions": algorithm.learner.world.n_actions,
        },
        "bias_from": "stored states" if algorithm.learner.keeps else "reset states",
    }


def save(algorithm: Algorithm, path: str | Path) -> Path:
    """Write ``path`` (.safetensors)."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    learner = algorithm.learner
    learner.begin()
    clock, lanes, world = learner.clock, learner.lanes, learner.world
    arrays = {f"run.{name}": np.asarray(leaf) for name, leaf in named_leaves(learner.run)}
    filled = min(clock.stored, algorithm.settings.replay_capacity)
    arrays["run.replay"] = arrays["run.replay"][:filled]
    arrays |= {f"lanes.{field.name}": np.asarray(getattr(lanes, field.name)) for field in dataclasses.fields(lanes)}
    arrays["pending"] = np.asarray(learner.pending)
    if isinstance(world, Worlds):
        arrays["ended"] = world.ended
    state, kept = _states(algorithm)
    about = {
        "format": FORMAT,
        "about": describe(algorithm),
        "given": {name: plain.pack(value) for name, value in algorithm.given.items()},
        "clock": dataclasses.asdict(clock),
        "records": algorithm.records.rows,
        "layers": states.layers(algorithm.env),
        "environment": state,
        "kept": kept,
    }
    text = json.dumps(about)
    # In the order of their axes, for safetensors writes memory as it lies; without a copy of what lies so, as the replay does.
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    path = _file(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with appearing(path) as beside:
            save_file(arrays, beside, {"maxmean": text, "sha256": _checksum(text, sorted(arrays.items()))})
    except (OSError, SafetensorError) as error:
        why = error if isinstance(error, OSError) else system_error(error)
        raise HostError(unwritten(path, why)) from None
    return path


def load(cls: type[A], path: str | Path, env: Any, settings: dict[str, Any]) -> A:
    """The algorithm in a file."""
    path = _file(path)
    text, arrays = read(path)
    there = text["about"]["algorithm"]
    if there != cls.__name__:
        raise HostError(f"{path} holds a {there}, not a {cls.__name__}: load it with maxmean.{there}.load")
    given = {name: plain.unpack(value) for name, value in text["given"].items() if name not in settings}
    algorithm = cls(env, **given, **settings)
    here, known = describe(algorithm)["world"], text["about"]["world"]
    if here != known:
        raise HostError(f"{path} was trained in another kind of environment: {_difference(known, here)}")
    learner, clock = algorithm.learner, Clock(**text["clock"])
    learner.begin()
    empty = learner.run.replay
    filled, missing = len(arrays["run.replay"]), empty.shape[0] - len(arrays["run.replay"])
    if filled != min(clock.stored, empty.shape[0]):
        capacity = text["about"]["settings"]["replay_capacity"]
        raise HostError(
            f"the {filled:,} transitions of {path} do not fit into a replay of {empty.shape[0]:,}: load it with "
            f"replay_capacity={capacity}"
        )
    if missing > 0:
        rest = np.zeros((missing, *empty.shape[1:]), np.uint32)
        arrays["run.replay"] = np.concatenate([arrays["run.replay"], rest])
    empty.delete()  # it may be gigabytes, which the one from the file needs
    leaves = [_fitting(path, arrays, f"run.{name}", leaf) for name, leaf in named_leaves(learner.run)]
    learner.run = _with_own(jax.tree.unflatten(jax.tree.structure(learner.run), leaves), learner.run, algorithm, text)
    learner.clock = clock
    learner.kept = deque((tuple(each) for each in plain.unpack(text["kept"])), maxlen=KEPT_STATES)
    algorithm.records = Records(text["records"])
    why = _restore(algorithm, text)
    if why is None:
        learner.lanes = Lanes(**{field.name: arrays[f"lanes.{field.name}"] for field in dataclasses.fields(Lanes)})
        learner.pending = arrays["pending"]
        if isinstance(learner.world, Worlds):
            learner.world.ended = arrays["ended"]
            learner.world.env._autoreset_envs = arrays["ended"].copy()
    else:
        warnings.warn(
            f"everything is restored but the environment's state ({why}): a new episode begins",
            UserWarning,
            stacklevel=4,
        )
        luck = np.random.SeedSequence([algorithm.host.seed, learner.clock.calls]).generate_state(1)
        learner.enter(learner.world.reset(int(luck[0] >> 1)))
    return algorithm


def _file(path: str | Path) -> Path:
    if not Path(path).name:
        raise HostError(f"a training is kept in a file, and {str(path)!r} names none")
    return with_suffix(path)


def _states(algorithm: Algorithm) -> tuple[Any, Any]:
    """The environment's state and those that were kept for roll-outs, as JSON has them: none where that cannot be."""
    if states.obstacle(algorithm.env) is not None:
        return None, []
    try:
        return plain.pack(states.get_state(algorithm.env)), plain.pack(list(algorithm.learner.kept))
    except HostError as error:  # it means something else by a state: what was learned is not lost for that
        warnings.warn(f"everything is saved but the environment's state ({error})", UserWarning, stacklevel=4)
        return None, []


def _restore(algorithm: Algorithm, text: dict[str, Any]) -> str | None:
    """Put the environment where it was; or say why that cannot be done."""
    why = states.obstacle(algorithm.env)
    if why is not None:
        return why
    if text["environment"] is None:
        return "its state was not saved"
    if text.get("layers") != states.layers(algorithm.env):
        return "it is made otherwise than the one that was saved"
    states.set_state(algorithm.env, plain.unpack(text["environment"]))
    return None


def read(path: Path, wanted: str = "") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is in a file, if it is whole and ours; of the arrays, those whose names begin with ``wanted``."""
    from safetensors import safe_open

    arrays: dict[str, np.ndarray] = {}

    def each(file: Any) -> Iterator[tuple[str, np.ndarray]]:
        for name in sorted(file.keys()):
            array = np.require(file.get_tensor(name), requirements="W")
            if name.startswith(wanted):
                arrays[name] = array
            yield name, array

    try:
        with safe_open(path, "numpy") as file:
            header = file.metadata() or {}
            checksum = _checksum(header.get("maxmean", ""), each(file))
    except FileNotFoundError:
        raise HostError(f"there is no file {path}") from None
    except Exception as error:  # whatever a stranger's file makes of the reader
        raise HostError(f"{path} is not a training of maxmean, or is damaged: {error}") from None
    if "maxmean" not in header or "sha256" not in header:
        raise HostError(f"{path} is not a training of maxmean")
    if header["sha256"] != checksum:
        raise HostError(f"{path} is damaged: its checksum is wrong")
    text = json.loads(header["maxmean"])
    if text["format"] != FORMAT:
        raise HostError(f"{path} has format {text['format']}, which this version of maxmean does not know")
    return text, arrays


def _checksum(text: str, arrays: Iterable[tuple[str, np.ndarray]]) -> str:
    """Of the text and of named arrays, in the order of their names."""
    digest = hashlib.sha256(text.encode())
    for name, array in arrays:
        digest.update(name.encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _fitting(path: Path, arrays: dict[str, np.ndarray], name: str, leaf: Any) -> jax.Array:
    array = arrays.pop(name, None)
    if array is None or array.shape != leaf.shape or array.dtype != leaf.dtype:
        raise HostError(
            f"{path} cannot be used: its array {name} is missing or has another shape; were other settings given?"
        )
    return jnp.asarray(array)


def _with_own(run: Run, new: Run, algorithm: Algorithm, text: dict[str, Any]) -> Run:
    """The run from the file, with the numbers that settings give it: they may have been given anew."""
    run = run._replace(key=new.key, learning_rate=new.learning_rate, adaptation_rate=new.adaptation_rate)
    agent = algorithm.agent
    begun = text["about"]["agent"][agent.parameter_name or "parameter"]
    return run if agent.parameter == begun else run._replace(parameter=new.parameter)  # else as far as it has adapted


def _difference(known: dict[str, Any], here: dict[str, Any]) -> str:
    name = next(name for name in known if known[name] != here.get(name))
    return f"{name} is {known[name]} there and {here.get(name)} here"
