"""The settings of the ads: six around a centre, and a region of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ....mev.processes import click_rates
from ...errors import LabError
from ...settings import SHARDS, Range, limited, within

PLACES = {
    "even": "rates evenly spaced, as in the paper",
    "random": "rates uniform at random",
    "one ahead": "one ad at the top, the others evenly over the lower half",
    "tied top": "half of the ads at the top together, the others evenly below",
}
"""Where the true click rates lie between their limits, in words."""
REGION = "region"
"""What the tables say in place of the name of one of the six settings."""


class Cell(NamedTuple):
    """One setting of the region."""

    places: str
    highest: float
    ads: int
    customers: int

    def __str__(self) -> str:
        return f"{self.places}, N = {self.customers:,}, M = {self.ads}, rates to {self.highest:g}"


@dataclass(frozen=True)
class Settings:
    """The centre, and what varies around it, two values each; and a region, all values with all others."""

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
    region_customers: tuple[int, ...] = (10_000, 30_000, 100_000, 300_000, 1_000_000)
    region_ads: tuple[int, ...] = (5, 10, 20, 50, 100, 200)
    region_highest: tuple[float, ...] = (0.01, 0.03, 0.05, 0.1, 0.2)
    """Where one is not above ``lowest``, the lower limit is less: the same share of it as at the centre."""
    region_places: tuple[str, ...] = tuple(PLACES)
    region_runs: int = 4_000
    """In each setting of the region."""
    region_runs_a_block: int = 200

    def __post_init__(self) -> None:
        customers, ads, rate, runs, two = Range(4, 10**9), Range(2, 1_000), Range(0, 1), Range(1, 10**6), (2, 2)
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
            runs_a_shard=runs,
            runs_a_block=runs,
            region_customers=replace(customers, entries=(1, 20)),
            region_ads=replace(ads, entries=(1, 20)),
            region_highest=Range(1e-6, 1, entries=(1, 20)),
            region_runs=runs,
            region_runs_a_block=runs,
        )
        if not set(self.region_places) <= set(PLACES) or not 1 <= len(set(self.region_places)) == len(
            self.region_places
        ):
            raise LabError(f"region_places must be among {', '.join(PLACES)}, each once")
        region = {
            f"N = {n:,}, M = {m}, in the region": {"customers": n, "ads": m}
            for n, m in product(self.region_customers, self.region_ads)
        }
        for name, problem in (self.problems() | region).items():
            if problem["customers"] % problem["ads"] or problem["customers"] < 2 * problem["ads"]:
                raise LabError(
                    f"customers are shared equally among ads, at least two for each: {problem['customers']:,} cannot be "
                    f"shared among {problem['ads']:,} ({name})"
                )
        for name, problem in self.problems().items():
            if not self.lowest < problem["highest"]:
                high = problem["highest"]
                raise LabError(f"highest must be above lowest, {self.lowest:g}, not {high:g} ({name})")
        if len(self.problems()) < 7:
            raise LabError("two entries of vary_highest read alike: choose others")
        if len({str(cell) for cell in self.region()}) < len(self.region()):
            raise LabError("two entries of region_customers, region_ads or region_highest read alike: choose others")
        if self.runs < 2 * self.runs_a_block or self.runs % self.runs_a_block or self.runs_a_shard % self.runs_a_block:
            raise LabError(
                f"runs and runs_a_shard must be multiples of runs_a_block, {self.runs_a_block:,}, and runs at least twice "
                f"as many, not {self.runs:,} and {self.runs_a_shard:,}"
            )
        if self.region_runs < 2 * self.region_runs_a_block or self.region_runs % self.region_runs_a_block:
            raise LabError(
                f"region_runs must be a multiple of region_runs_a_block, {self.region_runs_a_block:,}, and at least twice as "
                f"many, not {self.region_runs:,}"
            )
        limited("runs_a_shard times ads", self.runs_a_shard * max(self.ads, *self.vary_ads), 10**6)
        blocks = self.region_runs // self.region_runs_a_block
        settings = len(self.region_customers) * len(self.region_highest)
        limited("region_runs by region_runs_a_block, times the settings of a shard", blocks * settings, 10**5)
        limited("region_runs_a_block times region_ads", self.region_runs_a_block * max(self.region_ads), 10**6)
        shards = 7 * -(-self.runs // self.runs_a_shard) + len(self.region_places) * len(self.region_ads)
        limited("the number of shards", shards, SHARDS)

    def problems(self) -> dict[str, dict[str, Any]]:
        """The centre and the six settings, by a label that says what is changed."""
        centre = {"customers": self.customers, "ads": self.ads, "highest": self.highest}
        changed: dict[str, dict[str, Any]] = {"centre": centre}
        changed |= {f"N = {n:,}": centre | {"customers": n} for n in self.vary_customers}
        changed |= {f"M = {m}": centre | {"ads": m} for m in self.vary_ads}
        changed |= {f"rates to {high:g}": centre | {"highest": high} for high in self.vary_highest}
        return changed

    def region(self) -> list[Cell]:
        """Every setting of the region."""
        return [
            Cell(*each)
            for each in product(self.region_places, self.region_highest, self.region_ads, self.region_customers)
        ]

    def limits(self, cell: Cell) -> tuple[float, float]:
        """Between which the true click rates of a setting of the region lie."""
        high = cell.highest
        return (self.lowest if self.lowest < high else self.lowest / self.highest * high), high

    def gap(self, cell: Cell) -> float:
        """How far the best ad lies ahead of the next, on average, in standard errors of a click rate at the upper limit."""
        low, high = self.limits(cell)
        shares = {
            "even": 1 / (cell.ads - 1),
            "random": 1 / (cell.ads + 1),
            "one ahead": (1 + 1 / (cell.ads - 1)) / 2,
            "tied top": 0.0,
        }
        error = (high * (1 - high) * cell.ads / cell.customers) ** 0.5
        return (high - low) * shares[cell.places] / error

    def rates(self, cell: Cell, runs: int, rng: np.random.Generator) -> np.ndarray:
        """The true click rates of a setting of the region, shape ``(ads,)``, or ``(runs, ads)`` where chance places them."""
        low, high = self.limits(cell)
        even = click_rates(cell.ads, low, high)
        match cell.places:
            case "random":
                return rng.uniform(low, high, (runs, cell.ads))
            case "one ahead":
                return np.append((low + even[:-1]) / 2, high)
            case "tied top":
                return np.minimum(2 * even - low, high)
            case _:
                return even
