"""How often the answers of `maxmean.estimate` hold, in 64 settings with known truth: intervals, sets, ranks, shrinkage.

    python benchmarks/coverage.py --workers 2

prints a table. Each setting is a file when it is done: stop the program any time, and the same command computes what is missing.
With 2,000 data sets a setting, a share of 95% has a standard error of half a point.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import maxmean as mm
from maxmean.storage import write_whole

RANKED = 10
"""Ranks, which take longest, are looked at in one of so many data sets."""

Draw = Callable[[np.random.Generator], dict[str, Any]]


@dataclass(frozen=True)
class Setting:
    """Data of which the truth is known."""

    name: str
    means: np.ndarray
    """The true means."""
    draw: Draw
    """Data, as `maxmean.estimate` takes them."""


def shapes(options: int, error: float) -> dict[str, np.ndarray]:
    """Where the true means lie, in units in which a mean has this standard error."""
    zero = np.zeros(options)
    return {
        "equal": zero,
        "linear": np.linspace(0.0, 3.0 * error, options),
        "one ahead": np.array([6.0 * error, *zero[1:]]),
        "two tied ahead": np.array([4.0 * error, 4.0 * error, *zero[2:]]),
    }


def gaussian(means: np.ndarray, n: np.ndarray, sd: np.ndarray) -> Draw:
    def draw(rng: np.random.Generator) -> dict[str, Any]:
        return {"data": [rng.normal(m, s, k) for m, s, k in zip(means, sd, n, strict=True)]}

    return draw


def counts(rates: np.ndarray, n: int) -> Draw:
    def draw(rng: np.random.Generator) -> dict[str, Any]:
        return {"successes": rng.binomial(n, rates), "trials": n}

    return draw


def skewed(options: int, n: int) -> Draw:
    """Log-normal, with mean 0 after its own is taken away."""
    return lambda rng: {"data": list(rng.lognormal(size=(options, n)) - math.exp(0.5))}


def heavy(options: int, n: int) -> Draw:
    return lambda rng: {"data": list(rng.standard_t(3, size=(options, n)))}


def paired(means: np.ndarray, n: int, correlation: float) -> Draw:
    def draw(rng: np.random.Generator) -> dict[str, Any]:
        own, shared = rng.standard_normal((n, len(means))), rng.standard_normal((n, 1))
        return {"data": means + math.sqrt(1 - correlation) * own + math.sqrt(correlation) * shared}

    return draw


def settings() -> Iterator[Setting]:
    """All of them."""
    for options in (2, 3, 10, 50, 200):
        for shape, means in shapes(options, 20**-0.5).items():
            if options > 2 or shape != "two tied ahead":
                draw = gaussian(means, np.full(options, 20), np.ones(options))
                yield Setting(f"Gaussian, {options} options, {shape}, n = 20", means, draw)
    for n in (3, 5, 10, 200):
        for options in (3, 10):
            for shape in ("equal", "linear"):
                means = shapes(options, n**-0.5)[shape]
                draw = gaussian(means, np.full(options, n), np.ones(options))
                yield Setting(f"Gaussian, {options} options, {shape}, n = {n}", means, draw)
    for options in (3, 10, 50):
        sizes, sd = np.linspace(10, 60, options).astype(int), np.linspace(2.0, 0.5, options)
        name = f"Gaussian, {options} options, equal, n = 10 to 60, unequal variances"
        yield Setting(name, np.zeros(options), gaussian(np.zeros(options), sizes, sd))
    for rate in (0.001, 0.01, 0.05, 0.5):
        for n in (20, 200, 2_000):
            rates = np.full(10, rate)
            yield Setting(f"rates, 10 options, all {rate:g}, n = {n:,}", rates, counts(rates, n))
        rates = np.linspace(rate / 2, rate, 10)
        yield Setting(f"rates, 10 options, {rate / 2:g} to {rate:g}, n = 200", rates, counts(rates, 200))
    for n in (20, 200):
        yield Setting(f"log-normal, 10 options, equal, n = {n}", np.zeros(10), skewed(10, n))
        yield Setting(f"Student's t with 3 degrees, 10 options, equal, n = {n}", np.zeros(10), heavy(10, n))
    for correlation in (0.5, 0.95):
        for options in (3, 10, 50):
            means = shapes(options, math.sqrt((1 - correlation) / 20))["linear"]
            draw = paired(means, 20, correlation)
            yield Setting(f"paired at {correlation:g}, {options} options, linear, n = 20", means, draw)


def measure(setting: Setting, data_sets: int) -> dict[str, Any]:
    """Shares of data sets in which each answer holds, and mean widths in units of the naive interval's."""
    truth, best = setting.means, float(setting.means.max())
    better, worse = ((side(truth, truth[:, None])).sum(axis=-1) for side in (np.greater, np.less))
    rows = []
    for k in range(data_sets):
        rng = np.random.default_rng([zlib.crc32(setting.name.encode()), k])
        est = mm.estimate(**setting.draw(rng))
        low, high = est.interval()
        winner = est.winner()
        own = truth[est.problem.names.index(winner.option)]
        error = est.problem.standard_errors[est.problem.names.index(winner.option)]
        naive = 2 * 1.959964 * error
        shrunk, names = est.shrinkage(), est.best_set()
        ranks = est.ranks().to_numpy() if k % RANKED == 0 else None
        rows.append(
            {
                "maximum": low <= best <= high,
                "maximum_width": (high - low) / naive if naive else math.nan,
                "naive": abs(winner.naive - best) <= naive / 2,
                "winner": winner.hybrid.interval[0] <= own <= winner.hybrid.interval[1],
                "winner_width": (winner.hybrid.interval[1] - winner.hybrid.interval[0]) / naive if naive else math.nan,
                "best_set": est.problem.names[int(truth.argmax())] in names,
                "best_set_size": len(names),
                "shrinkage": float(np.mean((shrunk["low"] <= truth) & (truth <= shrunk["high"]))),
                "ranks": math.nan
                if ranks is None
                else float(((ranks[:, 0] <= 1 + better) & (ranks[:, 1] >= len(truth) - worse)).all()),
            }
        )
    columns = {name: np.array([row[name] for row in rows], float) for name in rows[0]}
    found = {name: float(np.nanmean(each)) if np.isfinite(each).any() else None for name, each in columns.items()}
    return {"setting": setting.name, "data_sets": data_sets, **found}


def file_of(out: Path, name: str) -> Path:
    return out / f"{zlib.crc32(name.encode()):08x}.json"


def compute(name: str, data_sets: int, out: Path) -> str:
    """Compute one setting, and keep what was found."""
    setting = next(each for each in settings() if each.name == name)
    write_whole(file_of(out, name), json.dumps(measure(setting, data_sets), indent=1).encode())
    return name


def table(out: Path) -> str:
    """What is there, as a table."""
    shown = (
        "maximum",
        "maximum_width",
        "naive",
        "winner",
        "winner_width",
        "best_set",
        "best_set_size",
        "ranks",
        "shrinkage",
    )
    lines = [
        "| setting | maximum | its width | naive | winner, hybrid | its width | best set | its size | ranks | shrinkage |",
        "|---|" + "--:|" * len(shown),
    ]
    for setting in settings():
        if (path := file_of(out, setting.name)).exists():
            found = json.loads(path.read_text())
            cells = [_cell(name, found[name]) for name in shown]
            lines.append(f"| {setting.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return (
        f"{value:.2f}" if name.endswith("width") else f"{value:.1f}" if name.endswith("size") else f"{100 * value:.1f}%"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-sets", type=int, default=2_000, help="of each setting (%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="settings at once (%(default)s)")
    parser.add_argument("--only", default="", help="settings whose names contain this")
    parser.add_argument("--out", type=Path, default=Path("out/coverage"), help="where they are kept (%(default)s)")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    missing = [
        each.name for each in settings() if asked.only in each.name and not file_of(asked.out, each.name).exists()
    ]
    begin = time.monotonic()
    with ProcessPoolExecutor(asked.workers) as pool:
        under_way = [pool.submit(compute, name, asked.data_sets, asked.out) for name in missing]
        for done, each in enumerate(as_completed(under_way), start=1):
            left = (time.monotonic() - begin) / done * (len(missing) - done)
            print(f"[{done} of {len(missing)}, {left / 60:.0f} min left] {each.result()}", file=sys.stderr, flush=True)
    print(table(asked.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
