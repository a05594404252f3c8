"""How often `Bias.interval`, and two of its errors, hold the true bias, in problems whose bias is known exactly.

    python benchmarks/bias_interval.py

prints a table. Each measurement plays new episodes. In the ordinary problems the predictions are the true values plus a constant,
which then is the bias, however often each state is visited. In the hard ones an episode is a single pair, and its bias is drawn
from a distribution with a long tail: lognormal with sigma = 1.5, or one for an episode in twenty and zero for the others.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from maxmean.deep.core.measuring import jackknife

EPISODES = (10, 30, 100, 300)
BLOCK = 500
"""Measurements whose episodes are played at once."""

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Problem:
    """A Markov chain with rewards, and what an agent expects in it."""

    name: str
    bias: float
    """The true one."""
    predicted: Floats
    """[places]: what the agent expects in each."""
    start: Callable[[np.random.Generator, int], Places]
    """So many first places."""
    step: Callable[[np.random.Generator, Places], tuple[Places, Floats]]
    """From places to the next ones, of which those below 0 or behind the last are the end, and the rewards."""
    discount: float = 0.99
    hard: bool = False

    def play(self, rng: np.random.Generator, episodes: int) -> tuple[Floats, Floats]:
        """Each episode's sum of predictions minus returns, and its number of steps."""
        sums, counts = np.zeros(episodes), np.zeros(episodes)
        playing, places, weight = np.arange(episodes), self.start(rng, episodes), 0.0
        while playing.size:
            weight = 1.0 + self.discount * weight  # this step's reward is in the returns of all steps before it
            after, rewards = self.step(rng, places)
            sums[playing] += self.predicted[places] - weight * rewards
            counts[playing] += 1.0
            goes_on = (after >= 0) & (after < len(self.predicted))
            playing, places = playing[goes_on], after[goes_on]
        return sums, counts


class Held(NamedTuple):
    """Shares of measurements that hold the true bias."""

    two_errors: float
    interval: float


def problems() -> Iterator[Problem]:
    """Five ordinary ones, then two hard ones."""

    def at(place: int) -> Callable[[np.random.Generator, int], Places]:
        return lambda rng, n: np.full(n, place)

    def chain(rng: np.random.Generator, places: Places) -> tuple[Places, Floats]:
        after = np.where(rng.random(places.size) < 0.8, places + 1, np.maximum(places - 1, 0))
        return after, 10.0 * (after == 5) - 1.0 + rng.normal(size=places.size)

    moves = 0.8 * np.eye(5, 6, 1)[:, :5] + 0.2 * np.eye(5)[[0, 0, 1, 2, 3]]
    values = np.linalg.solve(np.eye(5) - 0.95 * moves, np.array([-1.0, -1.0, -1.0, -1.0, -1.0 + 0.8 * 10.0]))
    yield Problem("chain", 1.7, values + 1.7, lambda rng, n: rng.integers(5, size=n), chain, 0.95)

    def geometric(rng: np.random.Generator, places: Places) -> tuple[Places, Floats]:
        return np.where(rng.random(places.size) < 0.1, -1, 0), np.ones(places.size)

    yield Problem("geometric", 1.0, np.array([1.0 / (1.0 - 0.9 * 0.99) + 1.0]), at(0), geometric)

    def walk(rng: np.random.Generator, places: Places) -> tuple[Places, Floats]:
        after = places + np.where(rng.random(places.size) < 0.5, 1, -1)
        return after, 1.0 * (after == 19) - 1.0 * (after == -1)

    moves, ends = 0.5 * (np.eye(19, k=1) + np.eye(19, k=-1)), np.array([-0.5, *np.zeros(17), 0.5])
    yield Problem("walk", 0.3, np.linalg.solve(np.eye(19) - 0.99 * moves, ends) + 0.3, at(9), walk)

    # In the next two a place is the number of steps that follow.
    def fixed(rng: np.random.Generator, places: Places) -> tuple[Places, Floats]:
        return places - 1, 1.0 + 2.0 * rng.normal(size=places.size)

    values = np.cumsum(0.98 ** np.arange(20.0))
    yield Problem("fixed length", 0.5, values + 0.5, at(19), fixed, 0.98)

    def noise(rng: np.random.Generator, places: Places) -> tuple[Places, Floats]:
        return places - 1, rng.normal(size=places.size)

    def five_or_sixty(rng: np.random.Generator, n: int) -> Places:
        return np.where(rng.random(n) < 0.3, 59, 4)

    yield Problem("two lengths", 2.0, np.full(60, 2.0), five_or_sixty, noise)  # worth nothing

    def lognormal(rng: np.random.Generator, places: Places) -> tuple[Places, Floats]:
        return places - 1, -rng.lognormal(sigma=1.5, size=places.size)

    yield Problem("lognormal", float(np.exp(1.5**2 / 2)), np.zeros(1), at(0), lognormal, hard=True)

    def one_in_twenty(rng: np.random.Generator, places: Places) -> tuple[Places, Floats]:
        return places - 1, -np.where(rng.random(places.size) < 0.05, 1.0, 0.0)

    yield Problem("one in twenty", 0.05, np.zeros(1), at(0), one_in_twenty, hard=True)


def measure(problem: Problem, episodes: int, measurements: int, seed: int = 0) -> Held:
    """Of so many measurements, each from so many episodes, the shares that hold the true bias."""
    rng = np.random.default_rng([zlib.crc32(problem.name.encode()), episodes, seed])
    rows = []
    for first in range(0, measurements, BLOCK):
        size = min(BLOCK, measurements - first)
        played = (each.reshape(size, 1, episodes) for each in problem.play(rng, size * episodes))
        rows += [(sums.sum() / counts.sum(), *jackknife(sums, counts)) for sums, counts in zip(*played, strict=True)]
    values, errors, freedoms = np.array(rows).T
    away = np.abs(values - problem.bias)
    return Held(float(np.mean(away <= 2.0 * errors)), float(np.mean(away <= stdtrit(freedoms, 0.975) * errors)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measurements", type=int, default=10_000, help="of each kind (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    asked = parser.parse_args()
    print("| problem | " + " | ".join(f"{k}: 2 errors | {k}: interval" for k in EPISODES) + " |")
    print("|---|" + "--:|" * (2 * len(EPISODES)))
    ordinary: list[list[float]] = []
    for problem in problems():
        if problem.hard and ordinary:  # docs/measure.md has this row, and the hard problems after it
            ranges = [f"{min(each):.1%} to {max(each):.1%}" for each in zip(*ordinary, strict=True)]
            print("| ordinary problems | " + " | ".join(ranges) + " |")
            ordinary = []
        shares = [share for k in EPISODES for share in measure(problem, k, asked.measurements, asked.seed)]
        print(f"| {problem.name} | " + " | ".join(f"{share:.1%}" for share in shares) + " |", flush=True)
        if not problem.hard:
            ordinary.append(shares)
    return 0


if __name__ == "__main__":
    sys.exit(main())
