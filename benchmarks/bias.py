"""How often the range that `est.bias()` gives holds the estimator's true bias, and how wide it is.

    python benchmarks/bias.py

prints a table. The true means are fixed, the data drawn anew: Gaussian means with known standard errors of one, or observations.
The true bias is that of 20,000 data sets. "Bootstrap" is the bias at the sample means, averaged, which sees a part of it.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import maxmean as mm
from maxmean.mev.data import Summaries
from maxmean.mev.inference import bias_range
from maxmean.mev.methods import evaluate

METHODS = ("me", "te", "ke")


@dataclass(frozen=True)
class Setting:
    name: str
    means: np.ndarray
    """True means, in standard errors."""
    n: int = 0
    """Observations of each option; 0: means with known standard errors are given."""

    def draw(self, rng: np.random.Generator) -> dict[str, Any]:
        if not self.n:
            return {"mean": self.means + rng.standard_normal(len(self.means)), "se": 1.0}
        rows = self.means + np.sqrt(self.n) * rng.standard_normal((self.n, len(self.means)))
        return {"data": list(rows.T)}

    def summaries(self, data_sets: int, rng: np.random.Generator) -> Summaries:
        """Many data sets at once, as the methods take them."""
        shape = (data_sets, len(self.means))
        variances = np.ones(shape) if not self.n else rng.chisquare(self.n - 1, shape) / (self.n - 1)
        return Summaries(self.means + rng.standard_normal(shape), variances)


def settings() -> Iterator[Setting]:
    for options in (3, 10, 50):
        zero = np.zeros(options)
        yield Setting(f"{options} equal", zero)
        yield Setting(f"{options} evenly over three standard errors", np.linspace(0.0, 3.0, options))
        yield Setting(f"two tied, four ahead of {options - 2}", np.array([4.0, 4.0, *zero[2:]]))
        yield Setting(f"one six ahead of {options - 1}", np.array([6.0, *zero[1:]]))
    yield Setting("10 equal, n = 5", np.zeros(10), n=5)
    yield Setting("10 evenly over three standard errors, n = 5", np.linspace(0.0, 3.0, 10), n=5)


def measure(setting: Setting, data_sets: int, seed: int = 0) -> dict[str, dict[str, float]]:
    """By method: the true bias, what the bootstrap says on average, how often the range holds it, its mean ends."""
    rng = np.random.default_rng([zlib.crc32(setting.name.encode()), seed])
    many, best = setting.summaries(20_000, rng), float(setting.means.max())
    true = {method: float(np.mean(evaluate(method, many).value)) - best for method in METHODS}
    found: dict[str, list[tuple[float, float, float]]] = {method: [] for method in METHODS}
    for k in range(data_sets):
        both = mm.compare(**setting.draw(rng), methods=list(METHODS))
        data = both.problem.data  # a bootstrap's bias is that at the sample means
        naive = bias_range(data, METHODS, data.means[None], resamples=400, seed=k)  # or all would share one draw's luck
        for method, est in both.estimates.items():
            bias = est.bias()
            found[method].append((*bias.interval, naive[method].value))
    answers = {}
    for method, rows in found.items():
        low, high, naive_bias = np.array(rows).T
        near = 0.03  # of a standard error: what 400 resamples leave open
        held = (low - near <= true[method]) & (true[method] <= high + near)
        answers[method] = {
            "true": true[method],
            "bootstrap": float(naive_bias.mean()),
            "held": float(held.mean()),
            "low": float(low.mean()),
            "high": float(high.mean()),
        }
    return answers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-sets", type=int, default=300, help="of each setting (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    asked = parser.parse_args()
    print("| true means | " + " | ".join(f"{m}: true, bootstrap | range, held" for m in METHODS) + " |")
    print("|---|" + "--:|" * (2 * len(METHODS)))
    for setting in settings():
        cells = []
        for each in measure(setting, asked.data_sets, asked.seed).values():
            cells.append(f"{each['true']:+.2f}, {each['bootstrap']:+.2f}")
            cells.append(f"{each['low']:+.2f} to {each['high']:+.2f}, {each['held']:.0%}")
        print(f"| {setting.name} | " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
