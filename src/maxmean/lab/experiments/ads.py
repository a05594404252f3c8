"""Internet ads (section 7.1): the best click rate of several ads, from clicks alone.

The paper does not print its six settings. Here N, M and the upper limit of the click rates vary one at a time around a centre.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ...mev.methods import Settings as MethodSettings
from ...mev.methods import evaluate
from ...mev.processes import bernoulli_ads, click_rates
from ..claims import Finding, Measured
from ..errors import LabError
from ..experiment import Experiment, Results
from ..figures import canvas, caption, colour_of
from ..settings import SHARDS, Range, limited, within
from ..tables import TableLayout

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ESTIMATORS: dict[str, dict[str, Any]] = {
    "me": {"method": "me"},
    "cve": {"method": "cve"},
    "we": {"method": "we", "draws": 100},
    "we(exact)": {"method": "we"},
    "te(0.1)": {"method": "te"},
    "ke": {"method": "ke"},
}


@dataclass(frozen=True)
class Settings:
    """The centre, and what varies around it, two values each."""

    customers: int = 300_000
    ads: int = 30
    highest: float = 0.05
    vary_customers: tuple[int, ...] = (30_000, 150_000)
    vary_ads: tuple[int, ...] = (10, 60)
    vary_highest: tuple[float, ...] = (0.03, 0.1)
    lowest: float = 0.02
    runs: int = 10_000
    runs_a_shard: int = 2_500
    runs_a_block: int = 50
    """Runs that are averaged into one row; blocks are independent, so their spread gives the intervals."""

    def __post_init__(self) -> None:
        customers, ads, rate, two = Range(4, 10**9), Range(2, 1_000), Range(0, 1), (2, 2)
        within(
            self,
            customers=customers,
            ads=ads,
            highest=rate,
            vary_customers=replace(customers, entries=two),
            vary_ads=replace(ads, entries=two),
            vary_highest=replace(rate, entries=two),
            lowest=rate,
            runs=Range(2, 10**7),
            runs_a_shard=Range(1, 10**6),
            runs_a_block=Range(1, 10**6),
        )
        for name, problem in self.problems().items():
            if problem["customers"] % problem["ads"] or problem["customers"] < 2 * problem["ads"]:
                raise LabError(
                    f"customers are shared equally among ads, at least two for each: {problem['customers']:,} cannot be "
                    f"shared among {problem['ads']:,} ({name})"
                )
            if not self.lowest < problem["highest"]:
                high = problem["highest"]
                raise LabError(f"highest must be above lowest, {self.lowest:g}, not {high:g} ({name})")
        if len(self.problems()) < 7:
            raise LabError("two entries of vary_highest read alike: choose others")
        if self.runs < 2 * self.runs_a_block or self.runs % self.runs_a_block or self.runs_a_shard % self.runs_a_block:
            raise LabError(
                f"runs and runs_a_shard must be multiples of runs_a_block, {self.runs_a_block:,}, and runs at least twice "
                f"as many, not {self.runs:,} and {self.runs_a_shard:,}"
            )
        limited("runs_a_shard times ads", self.runs_a_shard * max(self.ads, *self.vary_ads), 10**6)
        limited("the number of shards", 7 * -(-self.runs // self.runs_a_shard), SHARDS)

    def problems(self) -> dict[str, dict[str, Any]]:
        """The centre and the six settings, by a label that says what is changed."""
        centre = {"customers": self.customers, "ads": self.ads, "highest": self.highest}
        changed: dict[str, dict[str, Any]] = {"centre": centre}
        changed |= {f"N = {n:,}": centre | {"customers": n} for n in self.vary_customers}
        changed |= {f"M = {m}": centre | {"ads": m} for m in self.vary_ads}
        changed |= {f"rates to {high:g}": centre | {"highest": high} for high in self.vary_highest}
        return changed


class Ads(Experiment[Settings]):
    """Bias, variance and MSE of the estimators on simulated ads."""

    name = "ads"
    title = "Internet ads"
    section = "7.1"
    size = ("runs",)

    def settings(self, scale: str) -> Settings:
        return Settings() if scale == "paper" else Settings(runs=1_000, runs_a_shard=1_000)

    def parts(self, settings: Settings) -> Sequence[Mapping[str, Any]]:
        starts = range(0, settings.runs, settings.runs_a_shard)
        return [{"problem": name, "first_run": start} for name in settings.problems() for start in starts]

    def layout(self, settings: Settings, part: Mapping[str, Any]) -> TableLayout:
        blocks = _runs(settings, part) // settings.runs_a_block
        return TableLayout(len(ESTIMATORS) * blocks, ("error", "squared"), ("problem", "estimator"))

    def compute(self, settings: Settings, part: Mapping[str, Any], rng: np.random.Generator) -> pd.DataFrame:
        import pandas as pd

        problem = settings.problems()[part["problem"]]
        data = bernoulli_ads(rng, lowest=settings.lowest, repetitions=_runs(settings, part), **problem)
        truth = click_rates(problem["ads"], settings.lowest, problem["highest"]).max()
        errors = {
            label: evaluate(how["method"], data, MethodSettings(draws=how.get("draws")), rng=rng).value - truth
            for label, how in ESTIMATORS.items()
        }
        rows = []
        for label, error in errors.items():
            blocks = error.reshape(-1, settings.runs_a_block)
            columns = {"error": blocks.mean(axis=1), "squared": (blocks**2).mean(axis=1)}
            rows.append(pd.DataFrame(columns).assign(problem=part["problem"], estimator=label))
        return pd.concat(rows, ignore_index=True)

    def figures(self, results: Results[Settings]) -> dict[str, Figure]:
        return {"mse": _bars(results)}


def _runs(settings: Settings, part: Mapping[str, Any]) -> int:
    """How many runs a shard has: the last one may have fewer."""
    return int(min(settings.runs_a_shard, settings.runs - part["first_run"]))


def _bars(results: Results[Settings]) -> Figure:
    """Squared bias and variance stacked to the MSE, one panel a setting."""
    names = list(results.settings.problems())[1:]
    figure, axes = canvas(2, 3, width=10, height=2.7)
    for ax, name in zip(axes.flat, [names[k] for k in (0, 2, 4, 1, 3, 5)], strict=True):
        for k, label in enumerate(ESTIMATORS):
            bias, squared = (_column(results, name, label, c).mean() for c in ("error", "squared"))
            colour = colour_of(label.removesuffix("(exact)"))
            ax.bar(k, bias**2, color=colour, alpha=0.45, hatch="//", lw=0)
            ax.bar(k, squared - bias**2, bottom=bias**2, color=colour, lw=0)
        ax.set_xticks(range(len(ESTIMATORS)), [label.replace("(exact)", "\nexact") for label in ESTIMATORS])
        caption(ax, f"MSE, {name}  (hatched: squared bias)")
        ax.ticklabel_format(axis="y", scilimits=(0, 0))
    return figure


def _paired(results: Results[Settings], problem: str, worse: str, better: str) -> Measured:
    """MSE of one minus MSE of the other on the same runs, relative to ME's, with its interval."""
    lost, kept, unit = (_column(results, problem, label, "squared") for label in (worse, better, "me"))
    return Measured.mean((lost - kept) / unit.mean())


def _column(results: Results[Settings], problem: str, label: str, column: str) -> np.ndarray:
    """One number a block, in the order of the runs, the same for all estimators."""
    return results.rows(problem=problem, estimator=label)[column].to_numpy()


@Ads.claim("A1", "TE(0.1) and KE(Gaussian) have less MSE than ME, DE and WE in most of the six settings", "7.1")
def _a1(results: Results[Settings]) -> Finding:
    problems = list(results.settings.problems())[1:]
    margins: dict[str, Measured] = {}
    numbers: dict[str, Measured] = {}
    for label in ("te(0.1)", "ke"):
        wins = {p: [_paired(results, p, rival, label) for rival in ("me", "cve", "we")] for p in problems}
        sure = sum(all(m.low > 0 for m in found) for found in wins.values())
        possible = sum(all(m.high > 0 for m in found) for found in wins.values())
        half = (len(problems) + 1) / 2
        margins[f"settings beyond half in which {label} beats me, cve and we"] = Measured(
            sure - half, sure - half, possible - half
        )
        for problem, found in wins.items():
            numbers[f"{problem}: MSE saved by {label} against the best of me, cve, we, over me's"] = min(
                found, key=lambda m: m.value
            )
    effect = {p: _paired(results, p, "we", "we(exact)") for p in problems}
    numbers |= {f"{p}: MSE saved by exact we over 100 draws, over me's": m for p, m in effect.items()}
    largest = max(abs(m.value) for m in effect.values())
    note = (
        "The paper's six settings are not printed; these vary N, M and the upper rate one at a time around "
        f"N = {results.settings.customers:,}, M = {results.settings.ads}, rates up to {results.settings.highest:g}. "
        f"Integrating WE exactly instead of by 100 draws changes its MSE by at most {largest:.1%} of ME's."
    )
    return Finding(margins, numbers, note)


@Ads.claim("A2", "DE often varies most, ME is biased upwards, WE beats ME and DE", "7.1")
def _a2(results: Results[Settings]) -> Finding:
    problems = list(results.settings.problems())[1:]
    margins: dict[str, Measured] = {}
    numbers: dict[str, Measured] = {}
    sure = possible = 0
    for problem in problems:
        rivals = {label: _variance_gap(results, problem, "cve", label) for label in ESTIMATORS if label != "cve"}
        closest = min(rivals.values(), key=lambda m: m.value)
        sure, possible = sure + (closest.low > 0), possible + (closest.high > 0)
        numbers[f"{problem}: variance of cve minus the largest other, over me's"] = closest
        errors = _column(results, problem, "me", "error")
        spread = np.sqrt(_column(results, problem, "me", "squared").mean() - errors.mean() ** 2)
        margins[f"{problem}: bias of me in its standard deviations"] = Measured.mean(errors / spread)
        margins[f"{problem}: MSE saved by we against me"] = _paired(results, problem, "me", "we")
        margins[f"{problem}: MSE saved by we against cve"] = _paired(results, problem, "cve", "we")
    half = (len(problems) + 1) / 2
    margins["settings beyond half in which cve varies most"] = Measured(sure - half, sure - half, possible - half)
    lost = [p for p in problems if margins[f"{p}: MSE saved by we against me"].high < 0]
    small = [p for p in problems if not margins[f"{p}: bias of me in its standard deviations"].low > 0]
    note = "DE is computed as CVE, as in the paper."
    if lost:
        note += f" WE does not beat ME where the ads are far apart for the number of customers ({'; '.join(lost)})."
    if small:
        note += f" ME's bias is too small to be seen in: {'; '.join(small)}."
    return Finding(margins, numbers, note)


def _variance_gap(results: Results[Settings], problem: str, more: str, less: str) -> Measured:
    """Variance of one estimator minus another's, over ME's, with an interval by the jackknife over blocks."""
    pieces = {
        label: [_column(results, problem, label, c) for c in ("error", "squared")] for label in (more, less, "me")
    }

    def gap(keep: np.ndarray) -> float:
        variance = {label: squared[keep].mean() - error[keep].mean() ** 2 for label, (error, squared) in pieces.items()}
        return float((variance[more] - variance[less]) / variance["me"])

    n = len(pieces[more][0])
    left_out = np.array([gap(np.arange(n) != k) for k in range(n)])
    whole = gap(np.ones(n, dtype=bool))
    return Measured.around(whole, float(np.sqrt((n - 1) / n * ((left_out - left_out.mean()) ** 2).sum())), n - 1)


@Ads.claim("A3", "MSE falls with the number of customers", "7.1")
def _a3(results: Results[Settings]) -> Finding:
    settings = results.settings
    order = [f"N = {n:,}" for n in sorted(settings.vary_customers)] + ["centre"]
    margins: dict[str, Measured] = {}
    numbers: dict[str, Measured] = {}
    for label in ESTIMATORS:
        found = [Measured.mean(_column(results, problem, label, "squared")) for problem in order]
        falls = [Measured(a.value - b.value, a.low - b.high, a.high - b.low) for a, b in pairwise(found)]
        margins[f"fall of {label}'s MSE from one N to the next, least"] = min(falls, key=lambda m: m.high)
        numbers |= {f"MSE of {label}, {p}": m for p, m in zip(order, found, strict=True)}
    return Finding(margins, numbers)
