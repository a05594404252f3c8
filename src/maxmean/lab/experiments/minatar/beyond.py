"""Claims of ours about MinAtar (X1 to X5): what the covariances of the heads change, in the last tenth of training.

The heads are trained on the same data: their values go up and down together, and a difference of two actions is known better than
the paper's statistic says, which takes them for independent. An agent with a star in its name is the one without it, with the
covariances.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...claims import BEYOND, Finding, Measured
from .claims import from_what_was_run
from .ends import Ends, NotRunError, listed
from .parts import UNBIASED, near_zero
from .study import MinAtarStudy
from .variants import ADAPTIVE, PAIRED_ADA_KE, PAIRED_ADA_TE, PAIRED_KE, PAIRED_TE

PLAIN_KE, PLAIN_TE = "ke-bdqn", "te-bdqn(0.1)"
SAID = {"test_return": "return", "value": "mean Q"}
"""What numbers call a column, where that is not its name."""

Compare = Callable[[Ends, str, str, str], dict[str, Measured]]
"""What a claim compares in one game, of two agents."""


@MinAtarStudy.claim("X1", "KE*-BDQN has a higher return than KE-BDQN", BEYOND)
@from_what_was_run
def _x1(ends: Ends) -> Finding:
    more = partial(_above, column="test_return", said="return of KE*-BDQN above KE-BDQN's")
    return _by_game(ends, (PAIRED_KE, PLAIN_KE), more, ("test_return",))


@MinAtarStudy.claim("X2", "the bias of KE*-BDQN is nearer to zero than KE-BDQN's", BEYOND)
@from_what_was_run
def _x2(ends: Ends) -> Finding:
    nearer = partial(_nearer_to_zero, said="|bias| of KE*-BDQN below KE-BDQN's")
    return _by_game(ends, (PAIRED_KE, PLAIN_KE), nearer, ("bias",))


@MinAtarStudy.claim("X3", "the bias of TE*-BDQN(0.1) is above TE-BDQN(0.1)'s", BEYOND)
@from_what_was_run
def _x3(ends: Ends) -> Finding:
    more = partial(_above, column="bias", said="bias of TE*-BDQN(0.1) above TE-BDQN(0.1)'s")
    return _by_game(ends, (PAIRED_TE, PLAIN_TE), more, ("bias",))


@MinAtarStudy.claim(
    "X4",
    "Ada-TE*-BDQN with step size 1e-4 is approximately unbiased, and its alpha ends below Ada-TE-BDQN's",
    BEYOND,
)
@from_what_was_run
def _x4(ends: Ends) -> Finding:
    return _by_game(ends, (PAIRED_ADA_TE, ADAPTIVE), _repaired, ("bias", "value", "alpha"))


def _repaired(ends: Ends, game: str, paired: str, plain: str) -> dict[str, Measured]:
    bias, value = (ends(column, game, paired) for column in ("bias", "value"))
    return {
        f"|bias| of Ada-TE*-BDQN below {UNBIASED:.0%} of its mean Q": near_zero(bias, value.mean()),
        **_above(ends, game, plain, paired, column="alpha", said="alpha of Ada-TE*-BDQN ends below Ada-TE-BDQN's"),
    }


@MinAtarStudy.claim("X5", "the bias of Ada-KE*-BDQN with step size 1e-4 is nearer to zero than KE*-BDQN's", BEYOND)
@from_what_was_run
def _x5(ends: Ends) -> Finding:
    nearer = partial(_nearer_to_zero, said="|bias| of Ada-KE*-BDQN below KE*-BDQN's")
    return _by_game(ends, (PAIRED_ADA_KE, PAIRED_KE), nearer, ("bias",))


def _above(ends: Ends, game: str, one: str, other: str, column: str, said: str) -> dict[str, Measured]:
    """How far one agent is above the other."""
    return {said: Measured.difference(ends(column, game, one), ends(column, game, other))}


def _nearer_to_zero(ends: Ends, game: str, near: str, far: str, said: str) -> dict[str, Measured]:
    """How much nearer the mean bias of one agent is: its size has an interval, as clear as the runs agree on its sign."""
    sizes = (np.sign(values.mean()) * values for values in (ends("bias", game, name) for name in (far, near)))
    return {said: Measured.difference(*sizes)}


def _by_game(ends: Ends, names: tuple[str, str], compare: Compare, columns: tuple[str, ...]) -> Finding:
    """How two agents compare in each of the games that both were run on, with these columns of each."""
    games, both = ends.games_with(*names), " and ".join(names)
    if not games:
        raise NotRunError(f"No game was run with both {both}.")
    margins = {f"{game}: {said}": found for game in games for said, found in compare(ends, game, *names).items()}
    numbers = {
        f"{game}: {SAID.get(column, column)} of {name}": Measured.mean(ends(column, game, name))
        for game in games
        for column in columns
        for name in names
    }
    missing = [game for game in ends.games if game not in games]
    return Finding(margins, numbers, f"Not run with both {both}: {listed(missing)}." if missing else "")
