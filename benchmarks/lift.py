"""How often the answers about lift over a control hold, with known truth: means, rates, ratios, rows of one user, covariates.

    python benchmarks/lift.py --workers 2

prints a table. Each setting is a file when it is done: stop the program any time, and the same command computes what is missing.
With 2,000 experiments a setting, a share of 95% has a standard error of half a point.
"""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from kept import arguments, complete, keep, read

import maxmean as mm


@dataclass(frozen=True)
class Setting:
    """Experiments of which the truth is known; the first option is the control."""

    name: str
    means: np.ndarray
    """The true means."""
    draw: Callable[[np.random.Generator], dict[str, Any]]
    """Data, as `maxmean.estimate` takes them."""
    how: dict[str, Any] = field(default_factory=dict)
    """What else `maxmean.estimate` is told."""


def gaussian(means: np.ndarray, n: list[int], sd: list[float]) -> Callable[[np.random.Generator], dict[str, Any]]:
    return lambda rng: {
        "data": {f"v{k}": rng.normal(m, s, c) for k, (m, s, c) in enumerate(zip(means, sd, n, strict=True))}
    }


def paired(means: np.ndarray, n: int, correlation: float) -> Callable[[np.random.Generator], dict[str, Any]]:
    def draw(rng: np.random.Generator) -> dict[str, Any]:
        own, shared = rng.standard_normal((n, len(means))), rng.standard_normal((n, 1))
        rows = means + 0.3 * (math.sqrt(1 - correlation) * own + math.sqrt(correlation) * shared)
        return {"data": pd.DataFrame(rows, columns=[f"v{k}" for k in range(len(means))])}

    return draw


def rates(means: np.ndarray, n: int) -> Callable[[np.random.Generator], dict[str, Any]]:
    return lambda rng: {"successes": {f"v{k}": rng.binomial(n, p) for k, p in enumerate(means)}, "trials": n}


def visits(lifts: np.ndarray, users: int) -> Callable[[np.random.Generator], dict[str, Any]]:
    """A user has a taste, a past, and some visits; a visit has items, at a price that depends on the taste.

    Spent per visit is (1 + lift) * (2 * 5), spent per item (1 + lift) * 5: taste and past have no effect on average.
    """

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        everybody = users * len(lifts)
        variant = np.repeat(np.arange(len(lifts)), users)
        taste = rng.normal(size=everybody)
        before = 20 + 5 * (0.8 * taste + 0.6 * rng.normal(size=everybody))
        user = np.repeat(np.arange(everybody), 1 + rng.poisson(2.0, everybody))
        items = rng.poisson(2.0, len(user))
        price = (5 + taste[user] + rng.normal(size=len(user))) * (1 + lifts[variant[user]])
        frame = {"user": user, "variant": [f"v{k}" for k in variant[user]], "items": items, "spent": items * price}
        return {"data": pd.DataFrame(frame | {"before": before[user]}), "by": "variant"}

    return draw


def settings() -> Iterator[Setting]:
    """All of them."""
    equal, apart = np.ones(4), np.array([1.0, 1.0, 1.1, 1.2])
    for n in (5, 20, 200):
        yield Setting(f"means, 4 equal, n = {n}", equal, gaussian(equal, [n] * 4, [0.3] * 4))
    yield Setting("means, 4 apart, n = 20", apart, gaussian(apart, [20] * 4, [0.3] * 4))
    uneven = gaussian(equal, [80, 10, 20, 40], [0.2, 0.5, 0.3, 0.2])
    yield Setting("means, 4 equal, n = 10 to 80, unequal variances", equal, uneven)
    yield Setting("means, 4 apart, n = 20, lower is better", apart, gaussian(apart, [20] * 4, [0.3] * 4), LOWER)
    many = np.ones(11)
    yield Setting("means, 11 equal, n = 20", many, gaussian(many, [20] * 11, [0.3] * 11))
    for correlation in (0.5, 0.9):
        yield Setting(f"means, 4 equal, paired at {correlation}, n = 20", equal, paired(equal, 20, correlation))
    for rate, n in ((0.01, 200), (0.05, 200), (0.05, 2_000), (0.5, 50)):
        p = np.full(4, rate)
        yield Setting(f"rates, 4 of {rate:g}, n = {n:,}", p, rates(p, n))
    p = np.array([0.05, 0.04, 0.05, 0.06])
    yield Setting("rates, 0.04 to 0.06, n = 1,000, lower is better", p, rates(p, 1_000), LOWER)
    lifts = np.array([0.0, 0.0, 0.03, 0.06])
    for users in (30, 300):
        draw = visits(lifts, users)
        ratio = {"numerator": "spent", "denominator": "items", "cluster": "user"}
        yield Setting(f"ratio, {users} users", 5 * (1 + lifts), draw, ratio)
        yield Setting(f"cluster, {users} users", 10 * (1 + lifts), draw, {"value": "spent", "cluster": "user"})
        past = {"covariate": "before", "cluster": "user"}
        yield Setting(f"covariate, {users} users", 10 * (1 + lifts), draw, {"value": "spent"} | past)
        yield Setting(f"ratio with a covariate, {users} users", 5 * (1 + lifts), draw, ratio | past)


LOWER = {"lower_is_better": True}


def measure(setting: Setting, experiments: int) -> dict[str, Any]:
    """Shares of experiments in which each answer holds, and the mean width of the differences' intervals."""
    control, *rest = setting.means.tolist()
    lifts = {f"v{k}": (m - control, (m - control) / control) for k, m in enumerate(rest, start=1)}
    better = -1 if setting.how.get("lower_is_better") else 1
    rows = []
    for k in range(experiments):
        rng = np.random.default_rng([zlib.crc32(setting.name.encode()), k])
        lift = mm.estimate(**setting.draw(rng), **setting.how, control="v0").lift()
        best, picked = lift.best, lifts[lift.best.option]
        rows.append(
            {
                "difference": all(_holds(each.interval, lifts[each.option][0]) for each in lift.options),
                "relative": all(_holds(each.relative_interval, lifts[each.option][1]) for each in lift.options),
                "best": _holds(best.recommended.interval, picked[0]),
                "best_relative": _holds(best.relative.interval, picked[1]),
                "best_naive": best.naive - picked[0],
                "best_corrected": best.recommended.value - picked[0],
                "wrongly_beats": any(better * lifts[name][0] <= 0 for name in lift.beats),
                "width": float(np.mean([each.interval[1] - each.interval[0] for each in lift.options])),
            }
        )
    found = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return {"setting": setting.name, "experiments": experiments, **found}


def _holds(interval: tuple[float, float], truth: float) -> bool:
    return interval[0] - 1e-12 <= truth <= interval[1] + 1e-12


def compute(name: str, experiments: int, out: Path) -> None:
    """Compute one setting, and keep what was found."""
    setting = next(each for each in settings() if each.name == name)
    keep(measure(setting, experiments), out)


def table(out: Path) -> str:
    """What is there, as a table."""
    shown = ("difference", "relative", "best", "best_relative", "wrongly_beats")
    lines = [
        "| setting | differences | relative | best | best, relative | wrongly beats | best: error, corrected | width |",
        "|---|" + "--:|" * 7,
    ]
    kept = read(out, (each.name for each in settings()))
    for setting in settings():
        if (found := kept.get(setting.name)) is not None:
            cells = [f"{100 * found[name]:.1f}%" for name in shown]
            cells += [f"{found['best_naive']:+.4f}, {found['best_corrected']:+.4f}", f"{found['width']:.4f}"]
            lines.append(f"| {setting.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    asked = arguments(__doc__, "experiments", 2_000, "out/lift").parse_args()
    complete(compute, (each.name for each in settings()), asked, asked.experiments, asked.out)
    print(table(asked.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
