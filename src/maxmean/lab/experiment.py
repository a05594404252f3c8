"""What an experiment is: settings for some scales, independent shards, a table from each, figures and claims from them all.

A new experiment is one file in ``lab/experiments/`` with one subclass of :class:`Experiment`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from ..errors import missing
from ..storage import sha256
from .claims import BEYOND, Claim, Judge

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure
    from rich.console import Console

    from .gpu import GpuWork
    from .tables import TableLayout

SCALES = ("quick", "custom", "study", "paper")
"""From the smallest to the largest; ``custom`` is any of the others with some setting changed."""

S = TypeVar("S")
"""An experiment's settings: a frozen dataclass of numbers, texts and tuples of them."""


class Experiment(ABC, Generic[S]):
    """One experiment, of the paper or beyond it. Stateless: everything that a result depends on is in its settings and seed."""

    name: ClassVar[str]
    title: ClassVar[str]
    section: ClassVar[str]
    """Where the paper has it; ``beyond the paper`` where it does not, and its claims are shown and counted apart."""
    version: ClassVar[int] = 1
    """Raised when ``compute`` changes its numbers, so that old tables are not taken for new ones."""
    claims: ClassVar[tuple[Claim, ...]] = ()
    """What it speaks to, in the order in which :meth:`claim` heard of them."""
    needs: ClassVar[tuple[str, str] | None] = None
    """A module beyond the core that it computes with, and the extra that brings it."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Packages beyond the core on which its numbers depend: their versions are kept with the tables."""

    scales: ClassVar[tuple[str, ...]] = ("quick", "paper")
    """The scales that it has settings for."""
    judged_from: ClassVar[str] = "paper"
    """The smallest scale at which its claims are judged, see :func:`maxmean.lab.claims.large_enough`."""
    size: ClassVar[tuple[str, ...]] = ()
    """Settings that say how much is measured: a claim is not judged where they are less than at that scale."""
    selectors: ClassVar[tuple[str, ...]] = ()
    """Settings that only say which shards there are, because the parts have all of it: a shard is the same whatever they are."""
    only_by_name: ClassVar[bool] = False
    """Whether it is left out unless it is named, because it takes a GPU, or days."""

    @classmethod
    def claim(cls, id: str, statement: str, where: str) -> Callable[[Judge], Judge]:
        """Stands above the function that judges a claim of the paper, with where the paper makes it."""

        def register(judge: Judge) -> Judge:
            cls.claims = (*cls.claims, Claim(id, statement, where, judge))
            return judge

        return register

    @property
    def beyond(self) -> bool:
        """Whether the paper does not have it."""
        return self.section == BEYOND

    @property
    def missing(self) -> str | None:
        """What must be installed before it can be computed, in words, or None."""
        if self.needs is None or find_spec(self.needs[0]) is not None:
            return None
        return missing(self.name, self.needs[0], extra=self.needs[1])

    @abstractmethod
    def settings(self, scale: str) -> S:
        """The settings of a scale: ``quick`` takes seconds, ``paper`` is the paper's own size, ``study`` lies between."""

    @abstractmethod
    def parts(self, settings: S) -> Sequence[Mapping[str, Any]]:
        """What the work splits into: one mapping of plain values for each independent shard."""

    @abstractmethod
    def compute(self, settings: S, part: Mapping[str, Any], rng: np.random.Generator) -> pd.DataFrame:
        """One shard's table. All its randomness comes from ``rng``."""

    def layout(self, settings: S, part: Mapping[str, Any]) -> TableLayout | None:
        """What one shard's table has, so that a table that somebody else wrote can be checked; None if that is not known."""
        return None

    def resume(
        self,
        settings: S,
        part: Mapping[str, Any],
        rng: np.random.Generator,
        folder: Path,
        console: Console | None = None,
    ) -> pd.DataFrame:
        """As ``compute``, for shards that take long.

        They keep their state in ``folder``, where an earlier attempt may have left some, and say on ``console`` how far they are.
        """
        return self.compute(settings, part, rng)

    def on_gpu(self, settings: S) -> GpuWork | None:
        """What shards with these settings are to a GPU; None if they are not made for one."""
        return None

    def brief(self, part: Mapping[str, Any]) -> str:
        """A shard in few words, to tell its lines from another's."""
        return " ".join(map(str, part.values()))

    def forecast(
        self, settings: S, left: Sequence[Shard], say: Callable[[str], None], workers: int | None = None
    ) -> str:
        """What the shards that are left will take, in words, with so many workers; ``say`` hears what is being measured."""
        return f"{self.name}: {len(left)} shard{'s' * (len(left) != 1)}"

    @abstractmethod
    def figures(self, results: Results[S]) -> dict[str, Figure]:
        """The figures, by a short name."""

    def check(self, settings: S) -> None:
        """Raise a LabError for what cannot be run, before anything is; for what the settings cannot know by themselves."""

    def remarks(self, settings: S) -> Sequence[str]:
        """What one may not expect of these settings, a line each."""
        return ()

    def settings_of(self, settings: S, shard: Shard) -> S:
        """The settings that one shard is computed with: those of the run, unless it has some of its own."""
        own = {name: tuple(value) if isinstance(value, list) else value for name, value in shard.settings.items()}
        same = all(vars(settings)[name] == value for name, value in own.items())
        return settings if same else replace(settings, **own)  # type: ignore[type-var]

    def shards(self, settings: S, seed: int) -> list[Shard]:
        """The shards of these settings, in the order in which their tables are joined."""
        own = {name: value for name, value in plain(settings).items() if name not in self.selectors}
        return [Shard(self.name, self.version, own, dict(part), seed) for part in self.parts(settings)]


def plain(settings: Any) -> dict[str, Any]:
    """Settings as JSON has them."""
    return dict(json.loads(json.dumps(asdict(settings))))


@dataclass(frozen=True)
class Shard:
    """An independent piece of an experiment, known by its content: same content, same key, same random numbers."""

    experiment: str
    version: int
    settings: dict[str, Any]
    """Without the selectors."""
    part: dict[str, Any]
    seed: int

    @cached_property
    def key(self) -> str:
        return self._digest.hex()[:20]

    @property
    def _digest(self) -> bytes:
        content = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return bytes.fromhex(sha256([content.encode()]))

    def rng(self) -> np.random.Generator:
        """The shard's own generator: it depends on nothing but the content."""
        return np.random.default_rng(np.frombuffer(self._digest, dtype=np.uint32))

    def __str__(self) -> str:
        part = ", ".join(f"{key}={value}" for key, value in self.part.items())
        return f"{self.experiment}({part})"


@dataclass(frozen=True)
class Results(Generic[S]):
    """The joined tables of one experiment at one scale."""

    experiment: str
    scale: str
    settings: S
    seed: int
    table: pd.DataFrame
    missing: int = 0
    """Shards that are not there yet, or cannot be used."""
    seconds: float = 0.0
    """Computing time of all shards together."""
    versions: tuple[str, ...] = ()
    """Software that the tables were made with."""
    damage: tuple[str, ...] = ()
    """What is wrong with those of the missing shards that are there."""
    apart: Mapping[S, pd.DataFrame] = field(default_factory=dict)
    """The tables of shards with settings of their own, by those: they are not joined with the others."""
    _places: dict[tuple[str, ...], dict[Any, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def rows(self, **where: Any) -> pd.DataFrame:
        """The rows of the table that have these values in these columns; where they are is looked up once for all values."""
        columns = tuple(where)
        if columns not in self._places:
            self._places[columns] = self.table.groupby(list(columns), sort=False).indices
        values = tuple(where.values())
        return self.table.take(self._places[columns].get(values if len(values) > 1 else values[0], ()))
