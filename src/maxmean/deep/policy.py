"""Trained policies on their own: safetensors for the weights, JSON for what they mean, with a checksum of both.

Opening one cannot run code: a file names a trunk from a fixed table, and numbers are looked at before they are used.
"""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..storage import make_folder, sha256, write_whole
from ..untrusted import ContentError, contents, mapping, number, one_of, parse, several, take, text, truth, whole
from . import networks
from .checks import AgentError
from .core.acting import greedy_action
from .core.memory import available, size
from .networks import Convolution, Ensemble, Nature, Perceptron, Trunk, Weights

FORMAT = 2
"""1 had no checksum."""
SHIPPED = Path(__file__).parents[1] / "policies"
"""Trained agents that come with the package, by the name of their environment."""
_TRUNKS: dict[str, type[Trunk]] = {"convolution": Convolution, "nature": Nature, "perceptron": Perceptron}
_HEADER = 2**20
"""Bytes that what is said of a policy, and what safetensors writes before the weights, can have."""
_COPIES = 3
"""Times that the weights are in memory while they are read: the file, its arrays and the network's."""
_SIZE = whole(1, 2**20)
"""The check of a size: filters, units, rows, columns."""
_UNUSUAL = "prior", "dropout", "layer_norm"
"""What stands in the description of those networks alone that have it."""


@dataclass(frozen=True)
class Policy:
    """A trained agent that no longer learns."""

    network: Ensemble
    weights: Weights
    bootstrapped: bool
    """Whether its members vote; else it acts on their smallest values."""
    about: dict[str, Any]
    """The environment, the variant, the seed, the step, and its last test return and bias."""

    def act(self, observation: Any, legal: Any = None) -> int:
        """The action for one observation, among the ``legal`` ones (true or false, [actions]) where some are not."""
        q = jnp.asarray(self.values(observation))
        mask = None if legal is None else jnp.asarray(legal, bool)
        if mask is not None and (mask.shape != q.shape[1:] or not mask.any()):
            raise AgentError(
                f"legal must be true for one of {q.shape[1]} actions at least, and false for others, not {legal}"
            )
        return int(greedy_action(q, bootstrapped=self.bootstrapped, legal=mask))

    def values(self, observation: Any) -> np.ndarray:
        """Q by every member: [members, actions]."""
        seen = jnp.asarray(observation)
        if seen.shape != self.network.shape:
            raise AgentError(f"this policy sees observations of shape {self.network.shape}, not {seen.shape}")
        found = np.asarray(_values(self.network, self.weights, seen[None])[0])
        if not np.isfinite(found).all():
            raise AgentError("this policy's values are not finite numbers here: its actions mean nothing")
        return found

    def save(self, path: str | Path, *, half: bool = False, within: Path | None = None) -> None:
        """Write ``path`` (.safetensors) and what it means beside it (.json), each whole; on request in half precision.

        Links at ``path`` are followed, unless ``within`` names a directory that it lies in: there none is.
        """
        from safetensors.numpy import save

        path = with_suffix(path)
        make_folder(path.parent, within=within or path.parent)
        kind = np.float16 if half else np.float32
        arrays = {name: np.asarray(leaf).astype(kind) for name, leaf in named_leaves(self.weights)}
        network = {
            "trunk": describe_trunk(self.network.trunk),
            "shape": list(self.network.shape),
            "n_actions": self.network.n_actions,
            "members": self.network.members,
            "shared": self.network.shared,
            "hidden": self.network.hidden,
            **{name: getattr(self.network, name) for name in _UNUSUAL if getattr(self.network, name)},
        }
        said = {"format": FORMAT, "network": network, "bootstrapped": self.bootstrapped, "about": self.about}
        weights = save(arrays)
        said["sha256"] = _checksum(weights, said)
        write_whole(path, weights, within=within)
        beside = json.dumps(said, indent=1, allow_nan=False).encode()
        write_whole(path.with_suffix(".json"), beside, within=within)


def load(path: str | Path) -> Policy:
    """The policy in a file, or the best one in a training's directory, or one that comes with the package.

    >>> from maxmean import deep
    >>> deep.load("minatar/breakout").about["variant"]
    'ke-bdqn'
    """
    path = Path(path)
    if path.is_dir():
        path = _best(path)
    elif str(path) in shipped():
        path = SHIPPED / path
    path = with_suffix(path)
    try:
        return _read(path)
    except FileNotFoundError:
        known = f"; {', '.join(shipped())} come with maxmean" if shipped() else ""
        raise AgentError(f"there is no policy {path}, or its .json is not beside it{known}") from None
    except (AgentError, ContentError) as error:
        raise AgentError(f"{path} cannot be used: {error}") from None
    except Exception as error:  # whatever a stranger's file makes of the readers
        raise AgentError(f"{path} is not a policy of maxmean: {error}") from None


def _read(path: Path) -> Policy:
    """The policy in this file and the one beside it, if they are whole and fit each other."""
    from safetensors.numpy import load

    said = _said(path)
    if not 1 <= take(said, "format", whole()) <= FORMAT:
        raise AgentError(f"it has format {said['format']}, which this version of maxmean does not know")
    known, about = take(said, "network", mapping), take(said, "about", mapping)
    network = Ensemble(
        described_trunk(take(known, "trunk", mapping)),
        take(known, "shape", several(_SIZE, 1, 8)),
        take(known, "n_actions", whole(1, 256)),
        take(known, "members", whole(1, 32)),
        take(known, "shared", truth),
        take(known, "hidden", _SIZE),
        prior=_share(known, "prior"),
        dropout=_share(known, "dropout"),
        layer_norm="layer_norm" in known and take(known, "layer_norm", truth),
    )
    shapes = jax.eval_shape(network.create, jax.random.key(0))
    needed, there = sum(4 * math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes)), available()
    if there is not None and _COPIES * needed > there:
        raise AgentError(f"its network takes {size(needed)}, and this machine has {size(there)} of memory")
    data = contents(path, _HEADER + needed)
    if said["format"] == 1:
        warnings.warn(
            f"{path} was written by maxmean 0.1, without a checksum: were it damaged, nobody would know",
            UserWarning,
            stacklevel=3,
        )
    elif take(said, "sha256", text) != _checksum(data, {name: said[name] for name in said if name != "sha256"}):
        raise AgentError("it is damaged, or its .json belongs to another policy: their checksum is wrong")
    arrays = load(data)
    weights = jax.tree.unflatten(
        jax.tree.structure(shapes), [_checked(arrays, name, leaf) for name, leaf in named_leaves(shapes)]
    )
    if len(arrays) > len(jax.tree.leaves(shapes)):
        raise AgentError("it holds arrays that have no place in its network")
    if not all_finite(weights):
        raise AgentError("its weights are not finite numbers: the agent has diverged, and its actions mean nothing")
    return Policy(network, weights, take(said, "bootstrapped", truth), about)


def _share(known: dict[str, Any], name: str) -> float:
    """One of :data:`_UNUSUAL`, a number."""
    found = take(known, name, number) if name in known else 0.0
    if not 0.0 <= found < (1.0 if name == "dropout" else math.inf):
        raise ContentError(f"its {name} is {found:g}")
    return found


def _said(path: Path) -> dict[str, Any]:
    """What stands beside a policy."""
    return parse(contents(path.with_suffix(".json"), _HEADER))


def export(network: Ensemble, weights: Weights, members: int, bootstrapped: bool, about: dict[str, Any]) -> Policy:
    """The policy of a run that uses so many of a network's members."""
    if members < network.members:
        weights = jax.tree.map(lambda leaf: leaf[:members] if members > 1 else leaf[0], weights)
        network = dataclasses.replace(network, members=members)
    return Policy(network, weights, bootstrapped, about)


def shipped() -> list[str]:
    """The names of the policies that come with the package."""
    return sorted(path.relative_to(SHIPPED).with_suffix("").as_posix() for path in SHIPPED.rglob("*.safetensors"))


def policies(folder: str | Path) -> list[Path]:
    """All policies of a training's directory."""
    return sorted((Path(folder) / "policies").glob("*.safetensors"))


def _best(folder: Path) -> Path:
    found = policies(folder)
    if not found:
        for saved in [*folder.glob("training.safetensors"), *folder.glob("runs/*/training.safetensors")]:
            raise AgentError(
                f"{folder} holds agents of Gymnasium environments: load one with maxmean.KEBDQN.load({str(saved)!r}, env), or "
                "the class that it is of"
            )
        raise AgentError(f"there are no policies in {folder} (a training writes them when it ends)")

    def score(path: Path) -> float:
        try:
            return take(take(_said(path), "about", mapping), "test_return", number)
        except (OSError, ContentError):
            return -math.inf

    return max(found, key=score)


def with_suffix(path: str | Path) -> Path:
    """The path with .safetensors at its end."""
    path = Path(path)
    return path if path.suffix == ".safetensors" else path.with_name(path.name + ".safetensors")


def describe_trunk(trunk: Trunk) -> dict[str, Any]:
    """A trunk as plain values; an error for those that are not this package's own."""
    for kind, known in _TRUNKS.items():
        if type(trunk) is known:  # a class made from one of ours may compute something else
            return {"kind": kind, **{name: each for name, each in vars(trunk).items() if each or name != "units"}}
    raise AgentError(f"a network with the trunk {trunk!r} cannot be written to a file")


def described_trunk(said: dict[str, Any]) -> Trunk:
    """The trunk that :func:`describe_trunk` described; :class:`ContentError` where it cannot have."""
    kind = _TRUNKS[take(said, "kind", one_of(_TRUNKS))]
    fields = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    if set(said) | {"units"} != {"kind", "units", *fields} or ("units" in said and "units" not in fields):
        raise ContentError(f"its trunk has other entries than kind, {', '.join(fields)}")
    checks = {"widths": several(_SIZE, 0, 64), "units": several(_positive, 1)}
    return kind(**{name: take(said, name, checks.get(name, _SIZE)) for name in fields if name in said})


def _positive(value: Any) -> float:
    found = number(value)
    if not 0.0 < found < math.inf:
        raise ContentError(f"{found:g} is not a positive number")
    return found


def all_finite(weights: Any) -> bool:
    """Whether all weights are finite numbers; those of a run that has diverged are not."""
    return all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(weights))  # NumPy compiles nothing for it


def named_leaves(weights: Any) -> list[tuple[str, Any]]:
    return [
        (jax.tree_util.keystr(path).lstrip("."), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(weights)
    ]


def _checked(arrays: dict[str, np.ndarray], name: str, leaf: Any) -> jax.Array:
    array = arrays.get(name)
    if array is None or array.shape != leaf.shape or array.dtype not in (np.float16, np.float32):
        raise AgentError(f"its array {name} is missing or has another shape")
    return jnp.asarray(array, leaf.dtype)


_values = jax.jit(networks.Ensemble.values, static_argnums=0)


def _checksum(weights: bytes, said: dict[str, Any]) -> str:
    """Of the weights' file, and of what is said of it in the order of names."""
    return sha256([weights, json.dumps(said, sort_keys=True, separators=(",", ":")).encode()])
