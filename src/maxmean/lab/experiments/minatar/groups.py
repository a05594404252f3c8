"""Groups: agents that train in one program on a GPU, and how one is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from ...change import number
from ...errors import LabError
from .variants import power

SEEDS_APART = 1000
"""So far apart are the runs' seeds of two seeds of the study."""
SEEDS, STEPS = "seeds=", "steps="
"""How the words begin that give a group seeds, or a number of steps, of its own."""
FORM = f"GAME@LEARNING_RATE[@LEARNING_RATE ...] AGENT AGENT ... [{SEEDS}FIRST-LAST] [{STEPS}NUMBER]"
LARGEST = 10**9
"""The most steps that a run may have."""


@dataclass(frozen=True)
class Group:
    """Agents on one game, each with one learning rate or with several."""

    game: str
    learning_rates: tuple[float, ...]
    agents: tuple[str, ...]
    seeds: range | None = None
    """Its own; without them it has the study's, which are 0, 1, ..."""
    steps: int | None = None
    """Its own number of steps; without one it has the study's."""

    @classmethod
    def parse(cls, text: str) -> Group:
        """A group from its text; a learning rate may be written as a power of ten.

        >>> Group.parse("breakout@10^-5@1e-4 dqn bdqn seeds=5-19")
        Group(game='breakout', learning_rates=(1e-05, 0.0001), agents=('dqn', 'bdqn'), seeds=range(5, 20), steps=None)
        >>> Group.parse("freeway@1e-4 ke-bdqn steps=5000000").steps
        5000000
        """
        where, *words = text.split() or [""]
        game, *rates = where.split("@")
        agents = tuple(word for word in words if not word.startswith((SEEDS, STEPS)))
        own = {mark: [word for word in words if word.startswith(mark)] for mark in (SEEDS, STEPS)}
        for mark, given in own.items():
            if len(given) > 1:
                raise LabError(f"a group has its {mark.removesuffix('=')} once, as in {FORM}, not as in {text!r}")
        seeds, steps = next(map(_seeds, own[SEEDS]), None), next(map(_steps, own[STEPS]), None)
        try:
            if not (rates and agents):
                raise ValueError
            return cls(game, tuple(map(number, rates)), agents, seeds, steps)
        except ValueError:
            raise LabError(f"a group is written as {FORM}, not {text!r}") from None

    def seeds_among(self, usual: int) -> range:
        """The seeds that it is run with in a study of so many."""
        return range(usual) if self.seeds is None else self.seeds

    def steps_among(self, usual: int) -> int:
        """The number of steps that it is run for in a study of so many."""
        return usual if self.steps is None else self.steps

    def parts(self, usual: int, *, together: bool, rates_apart: bool) -> list[dict[str, Any]]:
        """What it splits into in a study of so many seeds: all of it together, perhaps by learning rate, or each run."""
        seeds, rates = [*self.seeds_among(usual)], sorted(self.learning_rates)
        if not together:
            return [
                {"game": self.game, "learning_rate": rate, "agents": [name], "seeds": [seed]}
                for rate, name, seed in product(rates, self.agents, seeds)
            ]
        # A single learning rate is a number, which shards were known by before there could be several.
        several = rates if rates_apart or len(rates) == 1 else [rates]
        return [{"game": self.game, "learning_rate": own, "agents": [*self.agents], "seeds": seeds} for own in several]

    def __str__(self) -> str:
        seeds = "" if self.seeds is None else f" {SEEDS}{self.seeds[0]}-{self.seeds[-1]}"
        steps = "" if self.steps is None else f" {STEPS}{self.steps}"
        return f"{place(self.game, self.learning_rates)} {' '.join(self.agents)}{seeds}{steps}"


def rates_of(part: Mapping[str, Any]) -> list[float]:
    """The learning rates of a part.

    >>> rates_of({"learning_rate": 1e-5}), rates_of({"learning_rate": [1e-5, 1e-4]})
    ([1e-05], [1e-05, 0.0001])
    """
    rates = part["learning_rate"]
    return [*rates] if isinstance(rates, list) else [rates]


def place(game: str, rates: Iterable[float]) -> str:
    """A game and the learning rates there, as a group's text begins.

    >>> place("breakout", [1e-5, 10**-4.5])
    'breakout@10^-5@10^-4.5'
    """
    return "@".join([game, *map(power, rates)])


def _seeds(word: str) -> range:
    """Seeds from the first to the last. A number alone is refused: elsewhere ``seeds=20`` says how many there are."""
    first, _, last = word.removeprefix(SEEDS).partition("-")
    # No seed has more digits than this, and int() refuses numbers of thousands.
    if not all(end.isascii() and end.isdigit() and len(end) < 10 for end in (first, last)):
        raise LabError(f"a group's own seeds are written as {SEEDS}FIRST-LAST, such as {SEEDS}5-19, not {word!r}")
    if not int(first) <= int(last) < SEEDS_APART:
        raise LabError(
            f"a group's own seeds go from a smaller to a larger number below {SEEDS_APART}, such as {SEEDS}5-19, not {word!r}"
        )
    return range(int(first), int(last) + 1)


def _steps(word: str) -> int:
    """A number of steps, written in digits."""
    digits = word.removeprefix(STEPS)
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 10 and 0 < int(digits) <= LARGEST):
        raise LabError(
            f"a group's own steps are a whole number from 1 to {LARGEST:,}, such as {STEPS}5000000, not {word!r}"
        )
    return int(digits)
