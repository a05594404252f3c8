"""A whole training in one file: safetensors, with what the arrays mean as JSON in its header, and a checksum of both.

The file appears whole or not at all. :mod:`maxmean.deep.host.loading` opens it, which cannot run code.
"""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...storage import appearing, make_folder, sha256
from ...untrusted import few_enough
from ..directory import system_error, unwritten
from ..policy import named_leaves, with_suffix
from . import plain, states
from .adapters import VectorEnvAdapter
from .errors import HostError

if TYPE_CHECKING:
    from .agent import HostAgent
    from .frames import Frames

FORMAT = 1
LONGEST_TEXT = 90_000_000
"""Characters that JSON may have in the header of a file, with each quotation mark and backslash counted twice: safetensors opens
no file with more than 100,000,000.
"""
_LEFT_OUT = {"kept": "the states that roll-outs begin in", "environment": "the environment's state"}


def describe(algorithm: HostAgent) -> dict[str, Any]:
    """What is trained, in plain values."""
    spec = algorithm.env.spec
    return {
        "algorithm": type(algorithm).__name__,
        "environment": None if spec is None else spec.id,
        "agent": algorithm.agent.describe(),
        "settings": algorithm.settings.describe(),
        "host": _host(algorithm),
        "world": algorithm.driver.world.describe(),
        "bias_from": "stored states" if algorithm.driver.keeps else "reset states",
    }


def _host(algorithm: HostAgent) -> dict[str, Any]:
    """The host's settings, in the words of the directories that trainings of 0.1 have written."""
    said = dataclasses.asdict(algorithm.host)
    for name in ("scale_observations", "clip_reward", "terminal_on_life_loss", "frames"):
        if not said[name]:
            del said[name]
    trunk = algorithm.driver.program.network.trunk
    return {**said, "network": repr(trunk).replace(", units=()", "")}


def save(algorithm: HostAgent, path: str | Path, *, within: Path | None = None) -> Path:
    """Write ``path`` (.safetensors), in the place that links there lead to; but through no link ``within`` a directory."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    driver = algorithm.driver
    driver.begin()
    clock, lanes, world = driver.clock, driver.lanes, driver.world
    arrays = {f"run.{name}": np.asarray(leaf) for name, leaf in run_leaves(driver.run)}
    filled = min(clock.stored, algorithm.settings.replay_capacity)
    if driver.frames is None:
        arrays["run.replay"] = arrays["run.replay"][:filled]
    else:
        for name, there in replay_parts(driver.frames, filled).items():
            arrays[name] = arrays[name][:there]
        arrays["frames.numbers"], arrays["frames.oldest"] = driver.frames.numbers, driver.frames.oldest[:filled]
    arrays |= {f"lanes.{name}": array for name, array in lanes.arrays.items()}
    arrays["pending"] = np.asarray(driver.pending)
    if isinstance(world, VectorEnvAdapter):
        arrays["ended"] = world.ended
    if world.lives is not None:
        arrays["lives"] = world.lives
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
    if driver.program.masked:
        about["masked"] = True
    if driver.frames is not None:
        frames = driver.frames
        about["frames"] = {"count": frames.store.stack.count, "written": frames.written, "first": frames.first}
    text = _text(about)
    # In the order of their axes, for safetensors writes memory as it lies; without a copy of what lies so, as the replay does.
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    path = file_of(path)
    try:
        make_folder(path.parent, within=within or path.parent)
        with appearing(path, within=within) as beside:
            save_file(arrays, beside, {"maxmean": text, "sha256": checksum(text, in_memory(arrays))})
    except (OSError, SafetensorError) as error:
        why = error if isinstance(error, OSError) else system_error(error)
        raise HostError(unwritten(path, why)) from None
    return path


def replay_parts(frames: Frames, filled: int) -> dict[str, int]:
    """The arrays of a replay of frames that grow, and how much of each is there after so many transitions."""
    return {"run.replay.rows": filled, "run.replay.frames": frames.filled, "run.replay.links": frames.filled}


def run_leaves(run: Any) -> list[tuple[str, Any]]:
    """The arrays of a run with their names in a file, where a run's traits have no name of their own."""
    return [(name.removeprefix("traits."), leaf) for name, leaf in named_leaves(run)]


def file_of(path: str | Path) -> Path:
    """The file that is meant, with its ending."""
    if not Path(path).name:
        raise HostError(f"a training is kept in a file, and {str(path)!r} names none")
    return with_suffix(path)


def _states(algorithm: HostAgent) -> tuple[Any, Any]:
    """The environment's state and those that were kept for roll-outs, as JSON has them: none where that cannot be."""
    if states.obstacle(algorithm.env) is not None:
        return None, []
    try:
        return plain.pack(states.get_state(algorithm.env)), plain.pack(list(algorithm.driver.kept))
    except HostError as error:  # it means something else by a state: what was learned is not lost for that
        warnings.warn(f"everything is saved but the environment's state ({error})", UserWarning, stacklevel=4)
        return None, []


def _text(about: dict[str, Any]) -> str:
    """What is said of the arrays, as JSON that can be read again; states that are too much for that are left out."""
    ways: tuple[dict[str, Any], ...] = ({}, {"kept": []}, {"kept": [], "environment": None})
    for without in ways:
        text = json.dumps({**about, **without})
        if few_enough(text) and len(text) + text.count('"') + text.count("\\") < LONGEST_TEXT:
            break
    else:
        raise HostError(
            f"what is known of this training is more than a file's header can hold, {LONGEST_TEXT:,} characters"
        )
    if without:
        warnings.warn(
            f"everything is saved but {' and '.join(_LEFT_OUT[name] for name in without)}: the file's header cannot hold so much",
            UserWarning,
            stacklevel=4,
        )
    return text


def checksum(text: str, arrays: Mapping[str, Iterable[bytes | memoryview]]) -> str:
    """Of the text and of named arrays' bytes, in the order of their names."""
    named = (chain([name.encode()], arrays[name]) for name in sorted(arrays))
    return sha256(chain([text.encode()], chain.from_iterable(named)))


def in_memory(arrays: Mapping[str, np.ndarray]) -> dict[str, list[memoryview]]:
    """The bytes of arrays, as they lie in memory."""
    return {name: [array.reshape(-1).view(np.uint8).data] for name, array in arrays.items()}
