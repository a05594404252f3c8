"""How often the answers of `maxmean.estimate` hold, in 87 settings with known truth: intervals, sets, ranks, shrinkage.

    python benchmarks/coverage.py --workers 2

prints tables. Every 500 data sets of a setting are a file when they are done: stop the program any time, and the same command
computes what is missing. With 8,000 data sets a setting, a share of 95% has a standard error of a quarter of a point.

`--peer` names a Python that has the package multiple-inference (1.2.0, with scipy < 1.12, numpy < 2 and pandas < 2.2). Its hybrid
interval of the winner's mean is computed from the first 100 data sets of each setting.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from kept import arguments, complete, keep, read
from scipy.stats import norm

import maxmean as mm
from maxmean.mev.estimate import Estimate

NORMAL = 1.959963984540054
TOP = 3
BLOCK = 500
"""Data sets that are kept together."""
PEER_SETS = 100

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


def counts(rates: np.ndarray, n: int | np.ndarray) -> Draw:
    def draw(rng: np.random.Generator) -> dict[str, Any]:
        return {"successes": rng.binomial(n, rates), "trials": n}

    return draw


def skewed(options: int, n: int, *, lower_is_better: bool = False) -> Draw:
    """Log-normal, with mean 0 after its own is taken away."""

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        values = list(rng.lognormal(size=(options, n)) - math.exp(0.5))
        return {"data": values, "lower_is_better": True} if lower_is_better else {"data": values}

    return draw


def heavy(options: int, n: int) -> Draw:
    return lambda rng: {"data": list(rng.standard_t(3, size=(options, n)))}


def paired(means: np.ndarray, n: int, correlation: float, sd: np.ndarray | float = 1.0) -> Draw:
    """Rows have a part in common; ``sd`` multiplies what each option has of its own."""

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        own, shared = rng.standard_normal((n, len(means))), rng.standard_normal((n, 1))
        return {"data": means + math.sqrt(1 - correlation) * sd * own + math.sqrt(correlation) * shared}

    return draw


def paired_rates(rates: np.ndarray, n: int, correlation: float) -> Draw:
    """Zeros and ones of the same rows: whether a normal variable, correlated between options, lies below its quantile."""
    limits = norm.ppf(rates)

    def draw(rng: np.random.Generator) -> dict[str, Any]:
        own, shared = rng.standard_normal((n, len(rates))), rng.standard_normal((n, 1))
        latent = math.sqrt(1 - correlation) * own + math.sqrt(correlation) * shared
        return {"data": (latent < limits).astype(float)}

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
    for name, drawn, spread in (
        ("3 options, equal, n = 2 and 3 beside 200, unequal variances", (2, 3, 200), (1, 1, 4)),
        ("4 options, equal, n = 2 beside 200, unequal variances", (2, 200, 200, 200), (1, 3, 3, 3)),
        ("6 options, equal, n = 2 to 1,000", (2, 2, 5, 5, 1_000, 1_000), (1, 1, 1, 1, 1, 1)),
    ):
        means = np.zeros(len(drawn))
        yield Setting(f"Gaussian, {name}", means, gaussian(means, np.array(drawn), np.array(spread, float)))
    for rate in (0.001, 0.01, 0.05, 0.5):
        for n in (20, 200, 2_000):
            rates = np.full(10, rate)
            yield Setting(f"rates, 10 options, all {rate:g}, n = {n:,}", rates, counts(rates, n))
        rates = np.linspace(rate / 2, rate, 10)
        yield Setting(f"rates, 10 options, {rate / 2:g} to {rate:g}, n = 200", rates, counts(rates, 200))
    for options in (2, 50):
        rates = np.full(options, 0.05)
        yield Setting(f"rates, {options} options, all 0.05, n = 200", rates, counts(rates, 200))
    for rate, trials, said in (
        (0.3, (2, 2, 5, 50, 5_000), "2 to 5,000"),
        (0.3, (20, 2_000, 2_000, 2_000), "20 and 2,000"),
        (0.05, (400, 4_000), "400 and 4,000"),
    ):
        rates = np.full(len(trials), rate)
        name = f"rates, {len(trials)} options, all {rate:g}, trials {said}"
        yield Setting(name, rates, counts(rates, np.array(trials)))
    for n in (20, 200):
        yield Setting(f"log-normal, 10 options, equal, n = {n}", np.zeros(10), skewed(10, n))
        draw = skewed(10, n, lower_is_better=True)
        yield Setting(f"log-normal, 10 options, equal, lower is better, n = {n}", np.zeros(10), draw)
        yield Setting(f"Student's t with 3 degrees, 10 options, equal, n = {n}", np.zeros(10), heavy(10, n))
    for n in (5, 10):
        means = shapes(10, math.sqrt(0.5 / n))["linear"]
        yield Setting(f"paired at 0.5, 10 options, linear, n = {n}", means, paired(means, n, 0.5))
    for options, n in ((10, 5), (10, 10), (10, 20), (50, 20)):
        means = np.zeros(options)
        yield Setting(f"paired at 0.5, {options} options, equal, n = {n}", means, paired(means, n, 0.5))
    for correlation in (0.5, 0.95):
        for options in (3, 10, 50):
            means = shapes(options, math.sqrt((1 - correlation) / 20))["linear"]
            draw = paired(means, 20, correlation)
            yield Setting(f"paired at {correlation:g}, {options} options, linear, n = 20", means, draw)
    draw = paired(np.zeros(6), 20, 0.5, np.geomspace(1, 30, 6))
    yield Setting("paired at 0.5, 6 options, equal, own spread 1 to 30, n = 20", np.zeros(6), draw)
    for options, rate, n in ((3, 0.5, 20), (10, 0.5, 200), (10, 0.05, 200), (6, 0.9, 500)):
        rates = np.full(options, rate)
        yield Setting(f"paired rates, {options} options, all {rate:g}, n = {n}", rates, paired_rates(rates, n, 0.5))
    for low, high in ((0.4, 0.6), (0.8, 0.9)):
        rates = np.linspace(low, high, 6)
        yield Setting(f"paired rates, 6 options, {low:g} to {high:g}, n = 200", rates, paired_rates(rates, 200, 0.5))


def data_set(setting: Setting, k: int) -> Estimate:
    rng = np.random.default_rng([zlib.crc32(setting.name.encode()), k])
    return mm.estimate(**setting.draw(rng))


def measure(setting: Setting, first: int) -> dict[str, Any]:
    """What a block of data sets adds up to, from this one on: in how many each answer holds, and how wide they are."""
    rows = [judged(setting.means, data_set(setting, k)) for k in range(first, first + BLOCK)]
    columns = {name: np.array([row[name] for row in rows], float) for name in rows[0]}
    columns = {name: each[~np.isnan(each)] for name, each in columns.items()}
    # The conditional interval may be infinite: half of them are no wider than what is told.
    columns["conditional width"][:] = np.median(columns["conditional width"])
    found = {name: (float(each.sum()), len(each)) for name, each in columns.items()}
    return {"setting": block(setting.name, first), "data_sets": BLOCK, "found": found}


def block(name: str, first: int) -> str:
    """What these data sets of a setting are called."""
    return f"{name}, from {first}"


def together(name: str, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Shares of data sets in which each answer holds, and mean widths in units of the naive interval's."""
    data_sets = sum(each["data_sets"] for each in blocks)
    sums = {answer: np.sum([each["found"][answer] for each in blocks], axis=0) for answer in blocks[0]["found"]}
    # Ties are rare: a share of one in twenty data sets, or fewer, would tell of chance.
    enough = {answer: total / count for answer, (total, count) in sums.items() if 20 * count > data_sets}
    means = {answer: float(enough.get(answer, math.nan)) for answer in sums}
    naive = means.pop("naive width")
    told = {answer: mean / naive if answer.endswith("width") else mean for answer, mean in means.items()}
    return {"setting": name, "data_sets": data_sets, **told}


def judged(truth: np.ndarray, est: Estimate) -> dict[str, float]:
    """Which answers hold, and how wide they are."""
    problem, names = est.problem, est.problem.names
    winner, second, top = est.winner(), est.winner(rank=2), est.top(min(TOP, len(names)))
    shrunk, ranks, best_set = est.shrinkage(), est.ranks().to_numpy(), est.best_set()
    own = {name: float(mean) for name, mean in zip(names, truth, strict=True)}
    good = -truth if problem.lower_is_better else truth
    best = int(good.argmax())
    better, worse = (side(good, good[:, None]).sum(axis=-1) for side in (np.greater, np.less))
    naive = NORMAL * problem.standard_errors[names.index(winner.option)]
    intervals = {
        "maximum": (float(truth[best]), est.interval()),
        "naive maximum": (float(truth[best]), (winner.naive - naive, winner.naive + naive)),
        "naive": (own[winner.option], (winner.naive - naive, winner.naive + naive)),
        "conditional": (own[winner.option], winner.conditional.interval),
        "hybrid": (own[winner.option], winner.hybrid.interval),
        "recommended": (own[winner.option], winner.recommended.interval),
        "second": (own[second.option], second.hybrid.interval),
        "second recommended": (own[second.option], second.recommended.interval),
        "top": (float(np.mean([own[name] for name in top.options])), top.recommended.interval),
    }
    found = {name: float(low <= value <= high) for name, (value, (low, high)) in intervals.items()}
    found |= {f"{name} width": high - low for name, (_, (low, high)) in intervals.items()}
    tied = [each.interval[0] <= own[each.option] <= each.interval[1] for each in winner.tied]
    return found | {
        "tied": float(all(tied)) if tied else math.nan,
        "best set": float(names[best] in best_set),
        "best set size": len(best_set),
        "ranks": float(((ranks[:, 0] <= 1 + better) & (ranks[:, 1] >= len(truth) - worse)).all()),
        "rank length": float(np.mean(ranks[:, 1] - ranks[:, 0] + 1)),
        "shrinkage": float(np.mean((shrunk["low"] <= truth) & (truth <= shrunk["high"]))),
        "shrunk winner": float(shrunk["low"][winner.option] <= own[winner.option] <= shrunk["high"][winner.option]),
        "shrinkage width": float(np.mean(shrunk["high"] - shrunk["low"])),
        "warned": float(problem.scarce or bool(problem.skewed)),
    }


def compare_with_peer(setting: Setting, python: str) -> dict[str, Any]:
    """Coverage and mean widths of the peer's hybrid interval, and of ours from the same data."""
    estimates = [data_set(setting, k) for k in range(PEER_SETS)]
    # It wants an invertible matrix, and looks for the largest.
    estimates = [e for e in estimates if min(e.problem.standard_errors) > 0 and not e.problem.lower_is_better]
    if len(estimates) < PEER_SETS // 2:
        return {"setting": setting.name, "data_sets": len(estimates)}
    problems = [est.problem for est in estimates]
    asked = [
        {"means": list(p.means), "covariance": (np.diag(p.spread) if p.spread.ndim == 1 else p.spread).tolist()}
        for p in problems
    ]
    script = Path(__file__).with_name("coverage_peer.py")
    ran = subprocess.run([python, str(script)], input=json.dumps(asked), capture_output=True, text=True, check=True)
    theirs = np.array(json.loads(ran.stdout))
    ours = np.array([est.winner().hybrid.interval for est in estimates])
    truth = np.array([setting.means[int(np.argmax(p.means))] for p in problems])
    naive = np.mean([2 * NORMAL * p.standard_errors[int(np.argmax(p.means))] for p in problems])
    found = {"setting": setting.name, "data_sets": len(estimates)}
    for name, ends in (("theirs", theirs), ("ours", ours)):
        found[name] = float(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])))
        found[f"{name} width"] = float(np.mean(ends[:, 1] - ends[:, 0]) / naive)
    return found


def compute(name: str, out: Path, peer: str) -> None:
    """Compute one setting beside the peer, or a block of data sets of one, and keep what was found."""
    for setting in settings():
        if peer and setting.name == name:
            keep(compare_with_peer(setting, peer), out, ENDINGS[True])
        elif not peer and name.startswith(block(setting.name, 0)[:-1]):
            keep(measure(setting, int(name.rsplit(" ", 1)[1])), out)


ENDINGS = (".json", ".peer.json")
"""Of the files with our own results, and of those beside the peer's."""
ANSWERS = {
    "maximum": "maximum width",
    "conditional": "conditional width",
    "hybrid": "hybrid width",
    "recommended": "recommended width",
    "best set": "best set size",
    "ranks": "rank length",
    "shrinkage": "shrinkage width",
    "shrunk winner": "",
    "second": "second width",
    "second recommended": "second recommended width",
    "top": "top width",
    "tied": "",
    "naive": "",
}
"""What is asked about, and how large it is: widths in units of the naive interval's, numbers of options and of ranks."""
SHOWN = ("maximum", "conditional", "hybrid", "recommended", "best set", "ranks", "shrinkage", "shrunk winner", "naive")
KINDS: dict[str, Callable[[str], bool]] = {
    "normal, n = 20 or more; counts": lambda name: not _odd(name) and not _few(name),
    "normal, n from 2 to 10": lambda name: not _odd(name) and _few(name),
    "log-normal, Student's t": lambda name: _odd(name),
}


def _odd(name: str) -> bool:
    return name.startswith(("log-normal", "Student"))


def _few(name: str) -> bool:
    return name.endswith(
        ("n = 3", "n = 5", "n = 10", "n = 2 to 1,000", "unequal variances")
    )  # those begin with ten or fewer


def results(out: Path, data_sets: int) -> dict[str, dict[str, Any]]:
    """What is there, by setting."""
    found = {}
    for name in (each.name for each in settings()):
        blocks = list(read(out, (block(name, first) for first in range(0, data_sets, BLOCK))).values())
        if blocks:
            found[name] = together(name, blocks)
    return found


def table(found: dict[str, dict[str, Any]]) -> str:
    """Every setting: how often each answer holds, and how large it is; in how many data sets there are few or skewed values."""
    rows = [[name, *(_cell(each, answer) for answer in SHOWN), _share(each["warned"])] for name, each in found.items()]
    return _lines(["setting", *SHOWN, "few or skewed"], rows)


def worst(found: dict[str, dict[str, Any]]) -> str:
    """The setting in which each answer holds least often, by kind of data."""
    rows = []
    for answer in ANSWERS:
        cells = []
        for chosen in KINDS.values():
            shares = {
                name: each[answer] for name, each in found.items() if chosen(name) and not math.isnan(each[answer])
            }
            least = min(shares, key=shares.__getitem__, default="")
            cells.append(f"{_share(shares[least])} ({least})" if least else "-")
        rows.append([answer, *cells])
    return _lines(["answer", *KINDS], rows)


def peers(found: dict[str, dict[str, Any]]) -> str:
    """The hybrid intervals of both packages, from the same data."""
    shown = ("theirs", "ours")
    rows = [
        [name, str(each["data_sets"]), *(f"{_share(each[who])}, {each[f'{who} width']:.2f}" for who in shown)]
        for name, each in found.items()
        if "theirs" in each
    ]
    return _lines(["setting", "data sets", "multiple-inference: held, width", "maxmean: held, width"], rows)


def _cell(found: dict[str, Any], answer: str) -> str:
    share, size = _share(found[answer]), ANSWERS[answer]
    if not size:
        return share
    return f"{share}, {found[size]:.2f}" if size.endswith("width") else f"{share}, {found[size]:.1f}"


def _share(value: float) -> str:
    return f"{100 * value:.1f}%"


def _lines(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(each) + " |" for each in lines)


def main() -> int:
    parser = arguments(__doc__, "data-sets", 8_000, "out/coverage")
    parser.add_argument("--peer", default="", metavar="PYTHON", help="compare with multiple-inference instead")
    asked = parser.parse_args()
    # Those that take longest first.
    names = [each.name for each in sorted(settings(), key=lambda each: -len(each.means))]
    blocks = [block(name, first) for first in range(0, asked.data_sets, BLOCK) for name in names]
    complete(compute, names if asked.peer else blocks, asked, asked.out, asked.peer, ending=ENDINGS[bool(asked.peer)])
    found, beside = results(asked.out, asked.data_sets), read(asked.out, names, ENDINGS[True])
    print(worst(found), table(found), peers(beside), sep="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
