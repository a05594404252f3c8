"""Whether plans are kept: experiments with as many observations as `maxmean.plan` says, answered by `maxmean.estimate`.

    python benchmarks/plans.py

prints a table. Each setting is a file when it is done: stop the program any time, and the same command computes what is missing.
With 2,000 experiments a setting, a share of 80% has a standard error of 0.9 points.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from kept import arguments, complete, keep, read

import maxmean as mm


@dataclass(frozen=True)
class Setting:
    """Guesses that are right."""

    name: str
    means: np.ndarray
    sds: np.ndarray | None
    """Standard deviations of one observation; None for rates."""
    power: float = 0.8
    how: dict[str, Any] = field(default_factory=dict)

    def plan(self) -> mm.Plan:
        guesses: dict[str, Any] = {"rates": self.means} if self.sds is None else {"means": self.means, "sds": self.sds}
        return mm.plan(**guesses, power=self.power, seed=1, **self.how)


def settings() -> Iterator[Setting]:
    """All of them."""
    three, ten = np.array([0.0, 0.2, 0.5]), np.linspace(0.0, 1.0, 10)
    yield Setting("normal, 3 options", three, np.ones(3))
    yield Setting("normal, 3 options, power 95%", three, np.ones(3), 0.95)
    yield Setting("normal, 3 options, far apart", 4 * three, np.ones(3))
    yield Setting("normal, 10 options evenly", ten, np.ones(10))
    yield Setting("normal, 4 options, one ahead, unequal spreads", np.array([0, 0, 0, 0.4]), np.array([1, 2, 0.5, 1.5]))
    yield Setting("normal, 3 options, control", three, np.ones(3), 0.8, {"control": "option 1"})
    yield Setting("normal, 3 options, lower is better", three, np.ones(3), 0.8, {"lower_is_better": True})
    yield Setting("rates, 0.030, 0.033, 0.036", np.array([0.03, 0.033, 0.036]), None)
    yield Setting("rates, 0.02, 0.1, 0.3", np.array([0.02, 0.1, 0.3]), None)
    yield Setting("rates, 0.05, 0.05, 0.06, control", np.array([0.05, 0.05, 0.06]), None, 0.8, {"control": "option 1"})


def measure(setting: Setting, experiments: int) -> dict[str, Any]:
    """The share of experiments in which the goal is reached."""
    found = setting.plan()
    reached = 0
    for k in range(experiments):
        rng = np.random.default_rng([zlib.crc32(setting.name.encode()), k])
        if setting.sds is None:
            data: dict[str, Any] = {"successes": rng.binomial(found.n, setting.means), "trials": found.n}
        else:
            pairs = zip(setting.means, setting.sds, strict=True)
            data = {"data": [rng.normal(mean, sd, found.n) for mean, sd in pairs]}
        est = mm.estimate(**data, **setting.how)
        reached += found.best in est.lift().beats if "control" in setting.how else est.best_set() == (found.best,)
    return {
        "setting": setting.name,
        "experiments": experiments,
        "n": found.n,
        "said": found.point.told,
        "reached": reached / experiments,
    }


def compute(name: str, experiments: int, out: Path) -> None:
    """Compute one setting, and keep what was found."""
    setting = next(each for each in settings() if each.name == name)
    keep(measure(setting, experiments), out)


def table(out: Path) -> str:
    """What is there, as a table."""
    lines = ["| setting | observations | asked for | said | reached |", "|---|--:|--:|--:|--:|"]
    kept = read(out, (each.name for each in settings()))
    for setting in settings():
        if (found := kept.get(setting.name)) is not None:
            cells = [f"{found['n']:,}", *(f"{100 * p:.1f}%" for p in (setting.power, found["said"], found["reached"]))]
            lines.append(f"| {setting.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    asked = arguments(__doc__, "experiments", 2_000, "out/plans").parse_args()
    complete(compute, (each.name for each in settings()), asked, asked.experiments, asked.out)
    print(table(asked.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
