"""Small experiments for the laboratory's tests, in a module that worker processes can import."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from maxmean.lab.claims import Finding, Measured
from maxmean.lab.experiment import Experiment, Results

if TYPE_CHECKING:  # every worker process imports this module
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Settings:
    shards: int = 6
    draws: int = 5
    trouble: str = ""
    """What goes wrong in shard 2: 'raise', 'die', 'die and log PATH', or the path of a file that must exist for it to go well."""


class Toy(Experiment[Settings]):
    name = "toy"
    title = "A toy"
    section = "none"

    def __init__(self, settings: Settings = Settings()) -> None:  # noqa: B008
        self._settings = settings

    def settings(self, scale: str) -> Settings:
        return self._settings

    def parts(self, settings: Settings) -> Sequence[Mapping[str, Any]]:
        return [{"shard": k} for k in range(settings.shards)]

    def compute(self, settings: Settings, part: Mapping[str, Any], rng: np.random.Generator) -> pd.DataFrame:
        if part["shard"] == 2 and settings.trouble:
            misbehave(settings.trouble)
        return pd.DataFrame({"shard": part["shard"], "value": rng.normal(size=settings.draws)})

    def figures(self, results: Results[Settings]) -> dict[str, Figure]:
        return {}


def misbehave(trouble: str) -> None:
    if trouble == "raise":
        raise RuntimeError("shard 2 always fails")
    if trouble.startswith("die"):
        if "log" in trouble:
            with Path(trouble.rpartition(" ")[2]).open("a") as log:
                log.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    marker = Path(trouble)
    if not marker.exists():
        marker.touch()
        raise RuntimeError("the first attempt fails")


@Toy.claim("X1", "the mean is positive", "nowhere")
def _judge(results: Results[Settings]) -> Finding:
    return Finding({"mean": Measured.mean(results.table["value"])})
