"""How often the leader is the best option, beside what `probability_best` says, in problems whose true means are drawn at random.

    python benchmarks/leader.py

prints a table. The true means are normal with a spread that is given in standard errors: one number, or drawn for every problem
between a quarter and two, each doubling as probable as any other. The truth is no count of successes but their probability, given
the estimates, the spread and the standard errors that the data were drawn with: a few hundred problems tell points apart. Of
counts, true rates are drawn from 3,000 quantiles of a distribution, and the truth is that of one who knows these.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri, xlog1py, xlogy

import maxmean as mm
from maxmean.mev.probabilities import best_probabilities

ANY = (0.25, 2.0)
"""Spreads between which that of a problem is drawn."""


@dataclass(frozen=True)
class Setting:
    """Problems of one kind."""

    options: int
    spreads: tuple[float, float] = ANY
    errors: tuple[float, float] = (1.0, 1.0)
    """Standard errors of the first and the last option; those between are evenly spaced."""
    n: int = 0
    """Observations of each; 0: means with known standard errors are given."""
    correlation: float = 0.0
    """Of the observations, which are paired if it is not 0."""

    @property
    def name(self) -> str:
        spread = f"{self.spreads[0]:g}" + (f" to {self.spreads[1]:g}" if self.spreads[1] > self.spreads[0] else "")
        unequal = (
            f", standard errors {self.errors[0]:g} to {self.errors[1]:g}" if self.errors[0] < self.errors[1] else ""
        )
        observed = f", n = {self.n}" if self.n else ""
        paired = f", paired at {self.correlation:g}" if self.correlation else ""
        return f"{self.options} options, spread {spread}{unequal}{observed}{paired}"

    def draw(self, rng: np.random.Generator) -> tuple[dict[str, Any], np.ndarray]:
        """Data as `maxmean.estimate` takes them, and each option's probability of being the best for one who knows the spread."""
        low, high = np.log(self.spreads)
        spread, errors = float(np.exp(rng.uniform(low, high))), np.linspace(*self.errors, self.options)
        means = rng.normal(0.0, spread, self.options)
        if self.n:
            own, shared = rng.standard_normal((self.n, self.options)), rng.standard_normal((self.n, 1))
            noise = np.sqrt(self.n) * errors * (own + np.sqrt(self.correlation / (1 - self.correlation)) * shared)
            rows = means + noise
            estimates = rows.mean(axis=0)
            data = {"data": rows} if self.correlation else {"data": list(rows.T)}
        else:
            estimates = means + errors * rng.standard_normal(self.options)
            data = {"mean": estimates, "se": errors}
        # What pairs share says nothing about their differences, nor does the centre if the standard errors are equal.
        kept = spread**2 / (spread**2 + errors**2)
        return data, best_probabilities(kept * estimates, kept * errors**2)


SCORES = ndtri((np.arange(3_000) + 0.5) / 3_000)
"""Quantiles of the normal distribution."""


@dataclass(frozen=True)
class RateSetting:
    """Problems of counts."""

    name: str
    trials: tuple[int, ...]
    rates: Callable[[np.random.Generator], np.ndarray]
    """Quantiles of what the true rates are drawn from."""

    def draw(self, rng: np.random.Generator) -> tuple[dict[str, Any], np.ndarray]:
        """Data as `maxmean.estimate` takes them, and each option's probability of being the best for one who knows the prior."""
        n, rates = np.array(self.trials), self.rates(rng)
        k = rng.binomial(n, rng.choice(rates, len(n)))
        logs = xlogy(k[:, None], rates) + xlog1py((n - k)[:, None], -rates)
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        below = np.cumsum(weights, axis=1) - weights / 2
        truth = np.array([weights[i] @ np.prod(np.delete(below, i, axis=0), axis=0) for i in range(len(n))])
        return {"successes": k, "trials": n}, truth / truth.sum()


def rate_settings() -> Iterator[RateSetting]:
    """Four with one prior for all problems, which spread by one to two standard errors, and two in which the spread varies."""

    def around(rate: float, n: int) -> Callable[[np.random.Generator], np.ndarray]:
        unit = (rate * (1 - rate) * n) ** -0.5  # a standard error, in log-odds
        return lambda rng: expit(logit(rate) + unit * np.exp(rng.uniform(*np.log(ANY))) * SCORES)

    yield RateSetting(
        "6 rates around 1%, log-odds spread by 0.7, n = 200", (200,) * 6, lambda _: expit(logit(0.01) + 0.7 * SCORES)
    )
    yield RateSetting("6 rates around 30%, spread by 5%, n = 100", (100,) * 6, lambda _: 0.3 + 0.05 * SCORES)
    yield RateSetting(
        "6 rates around 3%, spread by 1%, n = 1,000", (1_000,) * 6, lambda _: np.maximum(0.03 + 0.01 * SCORES, 1e-6)
    )
    yield RateSetting(
        "4 rates around 5%, log-odds spread by 1, n = 20, 20, 2,000, 2,000",
        (20, 20, 2_000, 2_000),
        lambda _: expit(logit(0.05) + SCORES),
    )
    yield RateSetting("6 rates around 5%, spread 0.25 to 2, n = 500", (500,) * 6, around(0.05, 500))
    yield RateSetting("10 rates around 1%, spread 0.25 to 2, n = 1,000", (1_000,) * 10, around(0.01, 1_000))


def settings() -> Iterator[Setting]:
    """Ten in which the spread varies, two with little else to go by, and spreads one by one."""
    for options in (3, 10, 50):
        yield Setting(options)
        yield Setting(options, errors=(0.5, 2.0))
    for n in (5, 10):
        yield Setting(3, n=n)
    yield Setting(10, n=5)
    yield Setting(10, n=20, correlation=0.8)
    yield Setting(10, n=5, correlation=0.8)
    yield Setting(10, errors=(0.5, 2.0), n=5)
    for options in (3, 10, 50):
        for spread in (0.25, 0.5, 1.0, 2.0):
            yield Setting(options, spreads=(spread, spread))


def measure(setting: Setting | RateSetting, problems: int, seed: int = 0) -> dict[str, float]:
    """The leader's probability of being the best, on average: in truth, as said, and as said without a prior."""
    found = []
    for k in range(problems):
        data, truth = setting.draw(np.random.default_rng([zlib.crc32(setting.name.encode()), seed, k]))
        est = mm.estimate(**data)
        leader = int(est.problem.data.means.argmax())
        said, flat = (est.probability_best(prior).iloc[leader] for prior in ("shrinkage", "flat"))
        found.append((truth[leader], said, flat))
    means = np.mean(found, axis=0)
    error = float(np.std([said - true for true, said, _ in found], ddof=1) / problems**0.5)
    return {"true": float(means[0]), "said": float(means[1]), "flat": float(means[2]), "error": error}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1_000, help="of each setting (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--only", default="", help="settings whose names contain this")
    asked = parser.parse_args()
    print("| problems | true | said | difference, standard error | flat prior |")
    print("|---|--:|--:|--:|--:|")
    chosen: list[Setting | RateSetting] = [*settings(), *rate_settings()]
    for setting in (each for each in chosen if asked.only in each.name):
        each = measure(setting, asked.problems, asked.seed)
        points = f"{100 * (each['said'] - each['true']):+.1f} ± {100 * each['error']:.1f}"
        print(
            f"| {setting.name} | {each['true']:.3f} | {each['said']:.3f} | {points} | {each['flat']:.3f} |", flush=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
