"""Which number to plan with: root mean squared errors of estimates of the winner's mean and of the largest one, in 43 settings.

    python benchmarks/planning.py --workers 2

prints a table, errors in standard errors of a mean. Each setting is a file when it is done: stop the program any time, and the
same command computes what is missing. With 1,000 data sets a setting, an error is known to about 3%.
"""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from kept import arguments, complete, keep, read

import maxmean as mm
from maxmean.mev.inference import Shrinkage, ShrinkageRate

Draw = Callable[[np.random.Generator], tuple[np.ndarray, dict[str, Any]]]
WINNER = ("naive", "conditional", "hybrid", "ke", "shrinkage", "recommended")
"""Estimates of the winner's own mean; the conditional one is kept inside the range of the sample means, for it can be -inf."""
MAXIMUM = ("me", "te", "ke", "we", "cve", "shrunk winner", "shrunk maximum")
"""Estimates of the largest mean: the last ones are the largest of the shrunk means, and the largest mean's expectation."""


@dataclass(frozen=True)
class Setting:
    """Data of which the truth is known."""

    name: str
    error: float
    """A mean's standard error, in which errors are told."""
    draw: Draw
    """The true means, and data as `maxmean.estimate` takes them."""


def shapes(options: int) -> Iterator[tuple[str, Callable[[np.random.Generator], np.ndarray]]]:
    """Where the true means lie, in standard errors."""
    rest = np.zeros(options - 1)
    yield "equal", lambda rng: np.zeros(options)
    for width in (1, 3, 10):
        yield f"spread over {width}", partial(_fixed, np.linspace(0.0, width, options))
    for ahead in (2, 4, 8):
        yield f"one ahead by {ahead}", partial(_fixed, np.array([float(ahead), *rest]))
    yield "two ahead by 4", lambda rng: np.array([4.0, 4.0, *rest[1:]])
    yield "normal", lambda rng: rng.normal(size=options)
    yield "heavy tails", lambda rng: rng.standard_t(3, size=options)


def _fixed(means: np.ndarray, _rng: np.random.Generator) -> np.ndarray:
    return means


def _normal(options: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=options)


def gaussian(means: Callable[[np.random.Generator], np.ndarray], n: int, sd: np.ndarray) -> Draw:
    """Observations; the first options are best."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, dict[str, Any]]:
        truth = means(rng) / math.sqrt(n)
        return truth, {"data": [rng.normal(m, s, n) for m, s in zip(truth, sd, strict=True)]}

    return draw


def counts(rates: np.ndarray, n: int | np.ndarray) -> Draw:
    return lambda rng: (rates, {"successes": rng.binomial(n, rates), "trials": n})


def paired(options: int, n: int) -> Draw:
    """Correlated at 0.8, with fewer rows than options."""

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, dict[str, Any]]:
        truth = rng.normal(size=options) * math.sqrt(0.2 / n)
        noise = math.sqrt(0.2) * rng.normal(size=(n, options)) + math.sqrt(0.8) * rng.normal(size=(n, 1))
        return truth, {"data": truth + noise}

    return draw


def settings() -> Iterator[Setting]:
    """All of them."""
    for options in (3, 10, 50):
        for shape, means in shapes(options):
            yield Setting(f"{options} options, {shape}", 20**-0.5, gaussian(means, 20, np.ones(options)))
        few = gaussian(partial(_normal, options), 5, np.ones(options))
        yield Setting(f"{options} options, normal, n = 5", 5**-0.5, few)
        unequal = gaussian(partial(_normal, options), 20, np.geomspace(0.5, 2.0, options))
        yield Setting(f"{options} options, normal, unequal variances", 20**-0.5, unequal)
    for rate, n in ((0.01, 200), (0.05, 1_000), (0.5, 100)):
        rates = np.linspace(rate / 2, rate, 10)
        error = math.sqrt(rate * (1 - rate) / n)
        yield Setting(f"10 rates, {rate / 2:g} to {rate:g}, n = {n:,}", error, counts(rates, n))
    draw = counts(np.array([0.1, 0.01, 0.01, 0.01]), np.array([10, 1_000, 1_000, 1_000]))
    yield Setting("4 rates, 0.1 with n = 10, three of 0.01 with n = 1,000", math.sqrt(0.09 / 10), draw)
    draw = counts(np.linspace(0.02, 0.05, 6), np.array([50, 2_000, 50, 2_000, 50, 2_000]))
    yield Setting("6 rates, 0.02 to 0.05, n = 50 and 2,000", math.sqrt(0.05 * 0.95 / 2_000), draw)
    for options in (3, 10):
        yield Setting(f"{options} options, normal, paired, n = 8", 8**-0.5, paired(options, 8))


def found(est: Any, rng: np.random.Generator) -> tuple[str, dict[str, float], dict[str, float]]:
    """The winner's name, estimates of its mean, and estimates of the largest mean."""
    winner, problem = est.winner(), est.problem
    low, high = min(problem.means), max(problem.means)
    shrunk = problem.shrinkage
    assert isinstance(shrunk, Shrinkage | ShrinkageRate)
    weights, first, second = shrunk.parts  # means and standard deviations, or the parameters of Beta distributions
    options = np.arange(len(problem.names))
    chosen = (rng.random((400, 1, len(options))) > np.cumsum(weights, axis=0)).sum(axis=1)
    chosen = np.minimum(chosen, len(weights) - 1)  # [draws, options]: which part of each option's posterior
    drawing = rng.normal if isinstance(shrunk, Shrinkage) else rng.beta
    drawn = drawing(first[chosen, options], second[chosen, options])
    own = {
        "naive": winner.naive,
        "conditional": min(max(winner.conditional.value, low), high),
        "hybrid": winner.hybrid.value,
        "ke": est.value,
        "shrinkage": problem.outward(shrunk.values[problem.names.index(winner.option)]),
        "recommended": winner.recommended.value,
    }
    most = {method: problem.outward(problem.evaluate(method).value) for method in ("me", "te", "ke", "we", "cve")}
    most["shrunk winner"] = problem.outward(shrunk.values.max())
    most["shrunk maximum"] = problem.outward(drawn.max(axis=-1).mean())
    return winner.option, own, most


def measure(setting: Setting, data_sets: int) -> dict[str, Any]:
    """Root mean squared errors, in standard errors."""
    squares: dict[str, list[float]] = {}
    for k in range(data_sets):
        rng = np.random.default_rng([zlib.crc32(setting.name.encode()), k])
        truth, data = setting.draw(rng)
        est = mm.estimate(**data)
        option, own, most = found(est, rng)
        goals = (("winner", truth[est.problem.names.index(option)], own), ("maximum", truth.max(), most))
        for goal, value, estimates in goals:
            for name, estimate in estimates.items():
                squares.setdefault(f"{goal} {name}", []).append(((estimate - value) / setting.error) ** 2)
    errors = {name: math.sqrt(float(np.mean(each))) for name, each in squares.items()}
    return {"setting": setting.name, "data_sets": data_sets, **errors}


def compute(name: str, data_sets: int, out: Path) -> None:
    """Compute one setting, and keep what was found."""
    setting = next(each for each in settings() if each.name == name)
    keep(measure(setting, data_sets), out)


def table(out: Path) -> str:
    """What is there, as a table, the least error of each goal in bold; below it the root mean square over all settings."""
    columns = [("winner", name) for name in WINNER] + [("maximum", name) for name in MAXIMUM]
    lines = [
        "| setting | " + " | ".join(f"{goal}: {name}" for goal, name in columns) + " |",
        "|---|" + "--:|" * len(columns),
    ]
    done = read(out, (each.name for each in settings())).values()
    if not done:
        return "\n".join(lines)
    names = [f"{goal} {name}" for goal, name in columns]
    rows = {each["setting"]: np.array([each[name] for name in names]) for each in done}
    rows["all, root mean square"] = np.sqrt(np.mean(np.square([*rows.values()]), axis=0))
    rows["the largest"] = np.max([*rows.values()], axis=0)
    for name, errors in rows.items():
        parts = errors[: len(WINNER)], errors[len(WINNER) :]
        cells = [f"**{e:.2f}**" if e == part.min() else f"{e:.2f}" for part in parts for e in part]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    asked = arguments(__doc__, "data-sets", 1_000, "out/planning").parse_args()
    complete(compute, (each.name for each in settings()), asked, asked.data_sets, asked.out)
    print(table(asked.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
