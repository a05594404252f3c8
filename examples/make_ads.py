"""Make the bundled data set: ten simulated ads, clicked or not.

The true click rates are equally spaced from 2% to 5%, so the best ad's true rate is 5%; each ad is shown 1,200 times.
Run from the repository: ``python examples/make_ads.py > src/maxmean/data/ads.csv``.
"""

from __future__ import annotations

import sys

import numpy as np

from maxmean.mev.processes import click_rates

ADS, IMPRESSIONS, SEED = 10, 1_200, 2023


def main() -> None:
    """Write one row an impression, in the random order in which customers came."""
    rng = np.random.default_rng(SEED)
    shown = rng.permutation(np.repeat(np.arange(ADS), IMPRESSIONS))
    clicked = rng.random(shown.size) < click_rates(ADS)[rng.permutation(ADS)][shown]
    sys.stdout.write("ad,clicked\n")
    sys.stdout.writelines(f"ad {chr(65 + ad)},{int(click)}\n" for ad, click in zip(shown, clicked, strict=True))


if __name__ == "__main__":
    main()
