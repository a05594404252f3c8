"""Claims of ours about MinAtar (X1, X2): what the covariances of the heads change, in the last tenth of training.

The heads are trained on the same data: their values go up and down together, and a difference of two actions is known better than
the paper's statistic says, which takes them for independent. KE*-BDQN is KE-BDQN with the covariances.
"""

from __future__ import annotations

import numpy as np

from ...claims import BEYOND, Finding, Measured
from .claims import from_what_was_run
from .ends import Ends, NotRunError, listed
from .study import MinAtarStudy
from .variants import PAIRED

PLAIN = "ke-bdqn"


@MinAtarStudy.claim("X1", "KE*-BDQN has a higher return than KE-BDQN", BEYOND)
@from_what_was_run
def _x1(ends: Ends) -> Finding:
    margins, numbers = {}, {}
    games, note = _compared(ends)
    for game in games:
        paired, plain = (ends("test_return", game, name) for name in (PAIRED, PLAIN))
        margins[f"{game}: return of KE*-BDQN above KE-BDQN's"] = Measured.difference(paired, plain)
        numbers[f"{game}: return of {PAIRED}"] = Measured.mean(paired)
        numbers[f"{game}: return of {PLAIN}"] = Measured.mean(plain)
    return Finding(margins, numbers, note)


@MinAtarStudy.claim("X2", "the bias of KE*-BDQN is nearer to zero than KE-BDQN's", BEYOND)
@from_what_was_run
def _x2(ends: Ends) -> Finding:
    margins, numbers = {}, {}
    games, note = _compared(ends)
    for game in games:
        paired, plain = (ends("bias", game, name) for name in (PAIRED, PLAIN))
        # The size of a mean bias, with its interval: as clear as the runs agree on its sign.
        sizes = (np.sign(values.mean()) * values for values in (plain, paired))
        margins[f"{game}: |bias| of KE*-BDQN below KE-BDQN's"] = Measured.difference(*sizes)
        numbers[f"{game}: bias of {PAIRED}"] = Measured.mean(paired)
        numbers[f"{game}: bias of {PLAIN}"] = Measured.mean(plain)
    return Finding(margins, numbers, note)


def _compared(ends: Ends) -> tuple[list[str], str]:
    """The games that both were run on, and a sentence about those that they were not."""
    games = ends.games_with(PAIRED, PLAIN)
    if not games:
        raise NotRunError("KE*-BDQN was not run.")
    missing = [game for game in ends.games if game not in games]
    return games, f"KE*-BDQN was not run on {listed(missing)}." if missing else ""
