"""How often the bootstrap intervals cover the true maximum mean. Prints the table of docs/statistics.md; takes minutes."""

from __future__ import annotations

import numpy as np

from maxmean.mev.inference import bootstrap
from maxmean.mev.processes import bernoulli_ads, click_rates, independent_gaussians

METHODS = ("me", "ae", "de", "cve", "we", "mme", "te", "ke")
DATA_SETS, RESAMPLES = 1_000, 1_000


def main() -> None:
    """Four settings, from all options equal to one far ahead."""
    print("| setting | " + " | ".join(f"`{method}`" for method in METHODS) + " |")
    print("|---|" + "---|" * len(METHODS))
    for label, highest, lowest in (
        ("10 ads, 1,200 each, 0.02 to 0.05", 0.05, 0.02),
        ("10 equal ads, 0.05", 0.05, 0.05),
    ):
        covered = np.zeros(len(METHODS))
        for seed in range(DATA_SETS):
            rng = np.random.default_rng([1, seed])
            data = bernoulli_ads(rng, ads=10, customers=12_000, lowest=lowest, highest=highest)
            one = type(data)(data.successes[0], data.trials)
            covered += _covers(one, float(click_rates(10, lowest, highest).max()), seed)
        _print(label, covered)
    for label, gap in (("2 Gaussians, equal, n = 100", 0.0), ("2 Gaussians, 3 standard errors apart", 3.0)):
        covered = np.zeros(len(METHODS))
        for seed in range(DATA_SETS):
            sample = independent_gaussians(np.random.default_rng([2, seed]))
            first, second = (values[0] for values in sample.values)
            covered += _covers(type(sample)((first + gap, second)), gap, seed)
        _print(label, covered)


def _covers(data, truth: float, seed: int) -> np.ndarray:  # type: ignore[no-untyped-def]
    found = bootstrap(data, METHODS, resamples=RESAMPLES, seed=seed)
    ends = [found[method].interval() for method in METHODS]
    return np.array([low <= truth <= high for low, high in ends])


def _print(label: str, covered: np.ndarray) -> None:
    print(f"| {label} | " + " | ".join(f"{share:.0%}" for share in covered / DATA_SETS) + " |", flush=True)


if __name__ == "__main__":
    main()
