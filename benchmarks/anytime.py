"""How often always-valid answers fail at any of 1,000 looks at data that grow, and how often the usual ones do.

    python benchmarks/anytime.py

prints a table. Each setting is a file when it is done: stop the program any time, and the same command computes what is missing.
With 2,000 experiments a setting, a share of 5% has a standard error of half a point.

The looks of one experiment are computed at once from running sums, by the formulas in `maxmean.mev.inference.anytime`; at the
first look that fails, and at a random one of every twentieth experiment, `maxmean.estimate(anytime=True)` must say the same.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from kept import arguments, complete, keep, read
from scipy.special import ndtri

import maxmean as mm
from maxmean.mev.inference.anytime import rate_evidence, sequence_reach

LOOKS = 1_000
PLANNED = 1_000
ALPHA = 0.05


@dataclass(frozen=True)
class Setting:
    """Observations that come in, the same number of every option between two looks; the first option is the control."""

    name: str
    means: np.ndarray
    draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
    """Observations, [n, M]."""
    step: int
    """Observations of each option between looks."""
    rates: bool = False


def settings() -> Iterator[Setting]:
    """All of them."""
    equal, apart = np.zeros(3), np.array([0.0, 0.05, 0.1])
    for step in (1, 10):
        yield Setting(f"normal, 3 equal, every {step}", equal, lambda rng, shape: rng.normal(size=shape), step)
    yield Setting("normal, 3 apart, every 5", apart, lambda rng, shape: apart + rng.normal(size=shape), 5)
    yield Setting("exponential, 3 equal, every 5", equal, lambda rng, shape: rng.exponential(size=shape) - 1, 5)
    for p, step in ((0.01, 10), (0.05, 10), (0.5, 1)):
        yield Setting(f"rates, 3 of {p:g}, every {step}", np.full(3, p), zeros_and_ones(p), step, True)


def zeros_and_ones(p: float) -> Callable[[np.random.Generator, tuple[int, int]], np.ndarray]:
    return lambda rng, shape: (rng.random(shape) < p) * 1.0


def failures(setting: Setting, values: np.ndarray) -> dict[str, np.ndarray]:
    """At which looks each answer fails, [looks]."""
    options, truth = values.shape[1], setting.means
    n = np.arange(setting.step, len(values) + 1, setting.step)
    n = n[n >= 2][:LOOKS]
    sums, squares = (np.cumsum(each, axis=0)[n - 1] for each in (values, np.square(values)))
    size = n[:, None].astype(float)
    means = sums / size
    if setting.rates:
        adjusted = (sums + 0.5) / (size + 1)
        variances, freedom = adjusted * (1 - adjusted) / size, np.full_like(size, np.inf)
    else:
        variances = np.maximum(squares / size - np.square(means), 0.0) * size / (size - 1) / size
        freedom = size - 1

    def excluded(share: float, at: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        """Where a value lies below an option's sequence, and where above, [looks, M]."""
        if setting.rates:
            out = rate_evidence(sums, size, np.asarray(at), share, PLANNED) > -np.log(share)
            return out & (means > at), out & (means < at)
        far = sequence_reach(size, freedom, share, PLANNED) * np.sqrt(variances)
        return means - far > at, means + far < at

    below, above = excluded(ALPHA / options, truth)
    too_high = excluded(ALPHA / 2 / options, truth.max())[0].any(axis=1)
    too_low = excluded(ALPHA / 2, truth.max())[1].all(axis=1)
    both = variances[:, :1] + variances[:, 1:]
    parts = np.square(variances) / freedom
    with np.errstate(divide="ignore", invalid="ignore"):
        welch = np.square(both) / (parts[:, :1] + parts[:, 1:]) if not setting.rates else np.full(both.shape, np.inf)
    reach = sequence_reach(size, welch, ALPHA / (options - 1), PLANNED)
    gaps = means[:, 1:] - means[:, :1]
    far = reach * np.sqrt(both)
    winner = means.argmax(axis=1)
    usual = -ndtri(ALPHA / 2) * np.sqrt(both[:, 0])
    return {
        "winner": (below | above)[np.arange(len(n)), winner],
        "maximum": too_high | too_low,
        "lift": (np.abs(gaps - (truth[1:] - truth[0])) > far).any(axis=1),
        "usual": np.abs(gaps[:, 0] - (truth[1] - truth[0])) > usual,
        "n": n,
    }


def check(setting: Setting, values: np.ndarray, found: dict[str, np.ndarray], look: int) -> None:
    """That `maxmean.estimate` says the same at one look."""
    n, truth = int(found["n"][look]), setting.means
    est = mm.estimate(list(values[:n].T), control="option 1", anytime=True, planned=PLANNED)
    winner, (low, high), lift = est.winner(), est.interval(), est.lift()
    own = truth[est.problem.names.index(winner.option)]
    said = {
        "winner": not winner.hybrid.interval[0] <= own <= winner.hybrid.interval[1],
        "maximum": not low <= truth.max() <= high,
        "lift": any(
            not each.interval[0] <= m - truth[0] <= each.interval[1]
            for each, m in zip(lift.options, truth[1:], strict=True)
        ),
    }
    assert said == {name: bool(found[name][look]) for name in said}, (setting.name, n)


def measure(setting: Setting, experiments: int) -> dict[str, Any]:
    """Shares of experiments in which each answer fails at some look."""
    failed = dict.fromkeys(("winner", "maximum", "lift", "usual"), 0)
    for k in range(experiments):
        rng = np.random.default_rng([zlib.crc32(setting.name.encode()), k])
        values = setting.draw(rng, (setting.step * LOOKS + 1, len(setting.means)))
        found = failures(setting, values)
        looks = {int(found[name].argmax()) for name in failed if name != "usual" and found[name].any()}
        if k % 20 == 0:
            looks.add(int(rng.integers(2, len(found["n"]))))
        for look in looks:
            check(setting, values, found, look)
        for name in failed:
            failed[name] += bool(found[name].any())
    return {"setting": setting.name, "experiments": experiments} | {k: v / experiments for k, v in failed.items()}


def compute(name: str, experiments: int, out: Path) -> None:
    """Compute one setting, and keep what was found."""
    setting = next(each for each in settings() if each.name == name)
    keep(measure(setting, experiments), out)


def table(out: Path) -> str:
    """What is there, as a table."""
    lines = [
        "| setting | winner | maximum | lift | the usual interval of one difference |",
        "|---|--:|--:|--:|--:|",
    ]
    kept = read(out, (each.name for each in settings()))
    for setting in settings():
        if (found := kept.get(setting.name)) is not None:
            cells = [f"{100 * found[name]:.1f}%" for name in ("winner", "maximum", "lift", "usual")]
            lines.append(f"| {setting.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    asked = arguments(__doc__, "experiments", 2_000, "out/anytime").parse_args()
    complete(compute, (each.name for each in settings()), asked, asked.experiments, asked.out)
    print(table(asked.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
