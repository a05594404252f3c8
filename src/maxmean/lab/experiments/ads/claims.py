"""What the paper claims of the ads. A1 and A2 are judged over the region: each of its settings is a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from ...claims import Finding, Measured, Parts
from ...experiment import Results
from .blocks import Blocks
from .settings import Cell, Settings
from .study import DRAWS, ESTIMATORS, Ads

RIVALS = ("me", "cve", "we")
"""What the paper compares TE and KE with; its DE is computed as CVE."""
OURS = ("te", "ke")


def _wins(blocks: Blocks, name: str) -> list[Measured]:
    """By setting, the MSE that an estimator saves against the best of its rivals."""
    return _least(*(blocks.saved(rival, name) for rival in RIVALS))


def _least(*several: Sequence[Measured]) -> list[Measured]:
    return [Measured.least(each) for each in zip(*several, strict=True)]


def _named(blocks: Blocks, found: Sequence[Measured]) -> dict[str, Measured]:
    return {str(setting): each for setting, each in zip(blocks.settings, found, strict=True)}


def _shares(blocks: Blocks, what: str, found: Sequence[Measured]) -> dict[str, Measured]:
    """In what share of the region something is true, and by where the rates lie: from surely to possibly."""
    groups: dict[str, list[Measured]] = {"the region": list(found)}
    for cell, each in zip(blocks.settings, found, strict=True):
        assert isinstance(cell, Cell)
        groups.setdefault(f"rates {cell.places}", []).append(each)
    return {f"share of {group} in which {what}": _share(some) for group, some in groups.items()}


def _share(some: Sequence[Measured]) -> Measured:
    parts = Parts.of(dict(zip(map(str, range(len(some))), some, strict=True)))
    holds, fails = len(parts.hold) / len(some), len(parts.fail) / len(some)
    return Measured(holds, holds, 1 - fails)


@Ads.claim("A1", "TE(0.1) and KE(Gaussian) have less MSE than ME, DE and WE in most of the six settings", "7.1")
def _a1(results: Results[Settings]) -> Finding:
    region, six = Blocks.of_region(results), Blocks.of_six(results)
    wins = {name: _wins(region, name) for name in OURS}
    both = _least(*wins.values())
    numbers = _shares(region, "te and ke beat me, cve and we", both)
    for name in OURS:
        numbers |= _shares(region, f"{name} beats me, cve and we", wins[name])
    ours = {name: _named(six, _wins(six, name)) for name in OURS}
    for name, found in ours.items():
        numbers |= {f"{p}: MSE saved by {name} against the best of me, cve, we, over me's": m for p, m in found.items()}
    effect = _named(six, six.saved("we", "we(exact)"))
    numbers |= {f"{p}: MSE saved by exact we over {DRAWS} draws, over me's": m for p, m in effect.items()}
    settings = results.settings
    note = (
        f"The paper's six settings are not printed, so the parts are {len(both)} settings of a region. KE beats all three in "
        f"{_percent(wins['ke'])} of them, TE in {_percent(wins['te'])}, both in {_percent(both)}. In the six settings that "
        f"vary N, M and the upper rate one at a time around N = {settings.customers:,}, M = {settings.ads}, rates up to "
        f"{settings.highest:g}, KE does in {_count(ours['ke'])} and TE in {_count(ours['te'])}. WE is drawn {DRAWS} times; "
        f"integrated exactly, its MSE in the six changes by at most {max(abs(m.value) for m in effect.values()):.1%} of ME's."
    )
    return Finding(_named(region, both), numbers, note)


def _count(found: Mapping[str, Measured]) -> int:
    return sum(each.low > 0 for each in found.values())


def _percent(found: Sequence[Measured]) -> str:
    return f"{_share(found).value:.0%}"


@Ads.claim("A2", "DE often varies most, ME is biased upwards, WE beats ME and DE", "7.1")
def _a2(results: Results[Settings]) -> Finding:
    region, six = Blocks.of_region(results), Blocks.of_six(results)
    found = _statements(region)
    numbers: dict[str, Measured] = {}
    for statement, by_setting in found.items():
        numbers |= _shares(region, statement, by_setting)
    ours = {statement: _named(six, by_setting) for statement, by_setting in _statements(six).items()}
    for statement, by_problem in ours.items():
        numbers |= {f"{problem}: {statement}, by": each for problem, each in by_problem.items()}
    every = _least(*found.values())
    shares = ", ".join(f"{statement} in {_percent(by_setting)}" for statement, by_setting in found.items())
    note = (
        f"DE is computed as CVE, as in the paper. The parts are the {len(every)} settings of the region, in each of which all "
        f"of it is true or not: {shares}. Of the six settings: "
        f"{', '.join(f'{statement} in {_count(by_problem)}' for statement, by_problem in ours.items())}."
    )
    return Finding(_named(region, every), numbers, note)


def _statements(blocks: Blocks) -> dict[str, list[Measured]]:
    """What A2 says, by setting: how much more variance CVE has than the next, over ME's; ME's bias in its standard deviations;
    and the MSE that WE saves, over ME's.
    """
    return {
        "cve varies most": _least(*(blocks.varies_more("cve", other) for other in ("me", "we", "te", "ke"))),
        "me is biased upwards": blocks.bias("me"),
        "we beats me": blocks.saved("me", "we"),
        "we beats cve": blocks.saved("cve", "we"),
    }


@Ads.claim("A3", "MSE falls with the number of customers", "7.1")
def _a3(results: Results[Settings]) -> Finding:
    settings = results.settings
    order = [f"N = {n:,}" for n in sorted(settings.vary_customers)] + ["centre"]
    margins: dict[str, Measured] = {}
    numbers: dict[str, Measured] = {}
    for label in ESTIMATORS:
        found = [Measured.mean(results.rows(problem=p, estimator=label)["squared"]) for p in order]
        falls = [
            Measured(a.value - b.value, a.low - b.high, a.high - b.low, min(a.freedom, b.freedom))
            for a, b in pairwise(found)
        ]
        margins[f"fall of {label}'s MSE from one N to the next, least"] = Measured.least(falls)
        numbers |= {f"MSE of {label}, {p}": m for p, m in zip(order, found, strict=True)}
    return Finding(margins, numbers)
