"""Small experiments for the laboratory's tests, in a module that worker processes can import."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from rich.console import Console

from maxmean.lab.claims import Finding, Measured
from maxmean.lab.experiment import Experiment, Results
from maxmean.lab.gpu import GpuWork, Load

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


class GpuToy(Toy):
    """As if for a GPU: a shard takes a moment and one byte, says a line, and writes down when it begins and ends.

    The later ones are the longer ones. One that is told of company goes on when so many have begun, so that they are under way at
    once however busy the machine is. Ctrl-C makes a shard keep what it has done.
    """

    name = "gpu-toy"

    def __init__(
        self,
        log: Path,
        settings: Settings = Settings(),  # noqa: B008
        moment: float = 0.0,
        company: int = 1,
        full: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(settings)
        self.log, self.moment, self.company, self.full = log, moment, company, full

    def on_gpu(self, settings: Settings) -> GpuWork:
        return ToysOnGpu(settings, self.full)

    def resume(
        self,
        settings: Settings,
        part: Mapping[str, Any],
        rng: np.random.Generator,
        folder: Path,
        console: Console | None = None,
    ) -> pd.DataFrame:
        try:
            self.note(part, "begins")  # whoever reads it may press Ctrl-C before we go on
            if console is not None:
                console.print(f"shard {part['shard']} is under way", markup=False)
            deadline = time.monotonic() + 60
            while self.log.read_text().count("begins") < self.company and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(self.moment)
            return self.compute(settings, part, rng)
        except KeyboardInterrupt:
            self.note(part, "keeps")
            raise
        finally:
            self.note(part, "ends")

    def note(self, part: Mapping[str, Any], what: str) -> None:
        with self.log.open("a") as log:
            log.write(f"{part['shard']} {what}\n")


@dataclass(frozen=True)
class ToysOnGpu:
    settings: Settings
    full: frozenset[int] = frozenset()

    def load(self, part: Mapping[str, Any]) -> Load:
        return Load(1, part["shard"], part["shard"] in self.full)

    def trial(self, part: Mapping[str, Any]) -> Callable[[float], float]:
        if self.settings.trouble and part["shard"] == 2:
            misbehave(self.settings.trouble)
        return lambda seconds: 100.0 * (1 + part["shard"])


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
