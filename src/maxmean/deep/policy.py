"""Trained policies on their own: safetensors for the weights, JSON for what they mean. Opening one cannot run code."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..whole import write_whole
from . import networks
from .agents import AgentError
from .exploration import vote
from .networks import Convolution, Ensemble, Nature, Perceptron, Trunk, Weights
from .plan import describe_environment
from .program import Program

FORMAT = 1
SHIPPED = Path(__file__).parents[1] / "policies"
"""Trained agents that come with the package, by the name of their environment."""
_TRUNKS: dict[str, type[Trunk]] = {"convolution": Convolution, "nature": Nature, "perceptron": Perceptron}


@dataclass(frozen=True)
class Policy:
    """A trained agent that no longer learns."""

    network: Ensemble
    weights: Weights
    bootstrapped: bool
    """Whether its members vote; else it acts on their smallest values."""
    about: dict[str, Any]
    """The environment, the variant, the seed, the step, and its last test return and bias."""

    def act(self, observation: Any) -> int:
        """The action for one observation."""
        q = jnp.asarray(self.values(observation))
        return int(vote(q) if self.bootstrapped else jnp.argmax(jnp.min(q, axis=0)))

    def values(self, observation: Any) -> np.ndarray:
        """Q by every member: [members, actions]."""
        seen = jnp.asarray(observation)
        if seen.shape != self.network.shape:
            raise AgentError(f"this policy sees observations of shape {self.network.shape}, not {seen.shape}")
        return np.asarray(_values(self.network, self.weights, seen[None])[0])

    def save(self, path: str | Path, *, half: bool = False) -> None:
        """Write ``path`` (.safetensors) and what it means beside it (.json), each whole; on request in half precision."""
        from safetensors.numpy import save

        path = with_suffix(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = np.float16 if half else np.float32
        arrays = {name: np.asarray(leaf).astype(kind) for name, leaf in named_leaves(self.weights)}
        write_whole(path, save(arrays))
        network = {
            "trunk": describe_trunk(self.network.trunk),
            "shape": list(self.network.shape),
            "n_actions": self.network.n_actions,
            "members": self.network.members,
            "shared": self.network.shared,
            "hidden": self.network.hidden,
        }
        text = {"format": FORMAT, "network": network, "bootstrapped": self.bootstrapped, "about": self.about}
        write_whole(path.with_suffix(".json"), json.dumps(text, indent=1, allow_nan=False).encode())


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
        from safetensors.numpy import load_file

        text = json.loads(path.with_suffix(".json").read_text())
        if text["format"] != FORMAT:
            raise AgentError(f"it has format {text['format']}, which this version of maxmean does not know")
        known = text["network"]
        network = Ensemble(
            described_trunk(known["trunk"]),
            tuple(known["shape"]),
            int(known["n_actions"]),
            int(known["members"]),
            bool(known["shared"]),
            int(known["hidden"]),
        )
        arrays = load_file(path)
        shapes = jax.eval_shape(network.create, jax.random.key(0))
        weights = jax.tree.unflatten(
            jax.tree.structure(shapes), [_checked(arrays, name, leaf) for name, leaf in named_leaves(shapes)]
        )
        return Policy(network, weights, bool(text["bootstrapped"]), dict(text["about"]))
    except FileNotFoundError:
        known = f"; {', '.join(shipped())} come with maxmean" if shipped() else ""
        raise AgentError(f"there is no policy {path}, or its .json is not beside it{known}") from None
    except AgentError as error:
        raise AgentError(f"{path} cannot be used: {error}") from None
    except Exception as error:  # whatever a stranger's file makes of the readers
        raise AgentError(f"{path} is not a policy of maxmean: {error}") from None


def export(program: Program, weights: Weights, members: int, about: dict[str, Any]) -> Policy:
    """The policy of a run that uses so many members."""
    network = program.network
    if members < network.members:
        weights = jax.tree.map(lambda leaf: leaf[:members] if members > 1 else leaf[0], weights)
        network = dataclasses.replace(network, members=members)
    about = {"environment": describe_environment(program.environment), **about}
    return Policy(network, weights, program.family.bootstrapped, about)


def shipped() -> list[str]:
    """The names of the policies that come with the package."""
    return sorted(path.relative_to(SHIPPED).with_suffix("").as_posix() for path in SHIPPED.rglob("*.safetensors"))


def policies(folder: str | Path) -> list[Path]:
    """All policies of a training's directory."""
    return sorted((Path(folder) / "policies").glob("*.safetensors"))


def _best(folder: Path) -> Path:
    found = policies(folder)
    if not found:
        raise AgentError(f"there are no policies in {folder} (a training writes them when it ends)")

    def score(path: Path) -> float:
        try:
            return float(json.loads(path.with_suffix(".json").read_text())["about"]["test_return"])
        except (OSError, ValueError, KeyError, TypeError):
            return float("-inf")

    return max(found, key=score)


def with_suffix(path: str | Path) -> Path:
    """The path with .safetensors at its end."""
    path = Path(path)
    return path if path.suffix == ".safetensors" else path.with_name(path.name + ".safetensors")


def describe_trunk(trunk: Trunk) -> dict[str, Any]:
    """A trunk as plain values; an error for those that are not this package's own."""
    for kind, known in _TRUNKS.items():
        if isinstance(trunk, known):
            return {"kind": kind, **vars(trunk)}
    raise AgentError(f"a network with the trunk {trunk!r} cannot be written to a file")


def described_trunk(text: dict[str, Any]) -> Trunk:
    """The trunk that :func:`describe_trunk` described."""
    return _TRUNKS[text["kind"]](**{k: tuple(v) if isinstance(v, list) else v for k, v in text.items() if k != "kind"})


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
