"""Claims of the paper as functions from stored results to verdicts.

A claim has parts: margins that are positive when it is true, each measured with a 95% interval. This is the one rule for all
claims. A part holds when its interval lies above zero. It fails when the interval that it needs among all parts of the claim
(Bonferroni: level 1 - 0.05 / parts) lies below zero. Otherwise it is open: noise cannot decide it. The claim

- *holds* when every part does;
- *holds in part* when some part fails, and more hold than fail;
- *fails* when some part fails, and no more hold than fail;
- is *undecided* when no part fails and some are open.

So among twenty parts none fails by chance: with a probability of 95% no true part is said to fail. Holding needs no such care,
because all parts have to: the chance that a claim with a false part is said to hold is at most that of this part alone, 2.5%.
Where too little was measured, a claim is not judged at all, see :func:`large_enough`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from ..mev.show import escaped

if TYPE_CHECKING:
    from .experiment import Experiment, Results

Judgement = Literal["holds", "holds in part", "fails", "undecided", "too small to judge"]
IN_PART: Final = "holds in part"
TOO_SMALL: Final = "too small to judge"
COLOURS: Mapping[Judgement, str] = {
    "holds": "green",
    IN_PART: "cyan",
    "fails": "red",
    "undecided": "yellow",
    TOO_SMALL: "dim",
}
"""Every verdict there is, and how a terminal shows it."""
BEYOND: Final = "beyond the paper"
"""The section of an experiment that the paper does not have: its claims are ours, and counted apart."""
MARGIN = "margin: "
"""How the names of the margins begin among what was measured."""
NOT_JUDGED = "not judged: "
"""How those of margins begin that are shown beside another and decide nothing."""
MANY = 60
"""How many margins a page lists; of more, it says how many hold, fail and are open."""


@dataclass(frozen=True)
class Measured:
    """A number with its 95% interval; an exact number has an interval of no width."""

    value: float
    low: float
    high: float
    freedom: float = math.inf
    """Degrees of freedom of Student's interval; infinite for the normal one."""

    @classmethod
    def exact(cls, value: float) -> Measured:
        return cls(float(value), float(value), float(value))

    @classmethod
    def mean(cls, values: Any, level: float = 0.95) -> Measured:
        """Mean of independent runs, with Student's interval."""
        values = _some(values)
        if len(values) < 2:
            return cls(float(values.mean()), -math.inf, math.inf)
        return cls.around(values.mean(), values.std(ddof=1) / math.sqrt(len(values)), len(values) - 1, level)

    @classmethod
    def difference(cls, first: Any, second: Any, level: float = 0.95) -> Measured:
        """Mean of one group of runs minus that of an independent one, with Welch's interval."""
        groups = [_some(group) for group in (first, second)]
        gap = groups[0].mean() - groups[1].mean()
        if min(len(group) for group in groups) < 2:
            return cls(float(gap), -math.inf, math.inf)
        squares = [group.var(ddof=1) / len(group) for group in groups]
        if sum(squares) == 0:
            return cls.exact(gap)
        freedom = sum(squares) ** 2 / sum(s * s / (len(g) - 1) for s, g in zip(squares, groups, strict=True))
        return cls.around(gap, math.sqrt(sum(squares)), freedom, level)

    @classmethod
    def around(cls, value: float, error: float, freedom: float, level: float = 0.95) -> Measured:
        """A number with its standard error, and Student's interval with so many degrees of freedom."""
        from scipy.special import stdtrit

        reach = float(stdtrit(freedom, (1 + level) / 2)) * error
        return cls(float(value), float(value - reach), float(value + reach), float(freedom))

    @classmethod
    def least(cls, several: Sequence[Measured]) -> Measured:
        """The least of several numbers. All of them are above its low end; its high end allows for having looked for the least.

        >>> print(Measured.least([Measured(1.0, 0.5, 1.5), Measured(2.0, -1.0, 5.0)]))
        1 [-1, 1.572]
        """
        least = min(several, key=lambda each: each.value)
        ends = min(each.low for each in several), min(each.among(len(several)).high for each in several)
        return cls(least.value, *ends, min(each.freedom for each in several))

    def among(self, parts: int) -> Measured:
        """The same number with the interval that it needs as one of ``parts``, of the level 1 - 0.05 / parts.

        >>> one = Measured.around(1.0, 0.5, freedom=4)
        >>> print(one, one.among(20))
        1 [-0.3882, 2.388] 1 [-2.379, 4.379]
        """
        from scipy.special import ndtri, stdtrit

        tails = np.array([0.025, 0.025 / parts])
        one, own = ndtri(1 - tails) if math.isinf(self.freedom) else stdtrit(self.freedom, 1 - tails)
        wider = float(own / one)
        low, high = (
            self.value + wider * (end - self.value) if end != self.value else end for end in (self.low, self.high)
        )
        return Measured(self.value, low, high, self.freedom)

    def __neg__(self) -> Measured:
        return Measured(-self.value, -self.high, -self.low, self.freedom)

    def to_dict(self) -> dict[str, float | None]:
        ends = {"value": self.value, "low": self.low, "high": self.high}
        return {key: end if math.isfinite(end) else None for key, end in ends.items()}

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.value:.4g}"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


def _some(values: Any) -> np.ndarray:
    """Numbers, of which there is at least one: a claim is not judged on what is not there."""
    numbers = np.asarray(values, dtype=float)
    if not numbers.size:
        raise ValueError("nothing was measured of what a claim speaks of")
    return numbers


@dataclass(frozen=True)
class Finding:
    """What a judge reports: the margins that decide, other numbers worth knowing, and a sentence where one is needed."""

    margins: Mapping[str, Measured]
    """Positive when the claim holds."""
    numbers: Mapping[str, Measured] = field(default_factory=dict)
    note: str = ""
    beside: Mapping[str, Mapping[str, Measured]] = field(default_factory=dict)
    """By the name of a margin, the same one measured in other ways, which are shown with it and decide nothing."""

    @property
    def measured(self) -> dict[str, Measured]:
        """Everything by the name that tables have for it."""
        found = dict(self.numbers)
        for name, margin in self.margins.items():
            found[f"{MARGIN}{name}"] = margin
            found |= {f"{NOT_JUDGED}{other}": number for other, number in self.beside.get(name, {}).items()}
        return found

    @property
    def judgement(self) -> Judgement:
        parts = Parts.of(self.margins)
        if parts.fail:
            return IN_PART if len(parts.hold) > len(parts.fail) else "fails"
        return "holds" if parts.hold and not parts.open else "undecided"


@dataclass(frozen=True)
class Parts:
    """The margins of a claim, sorted by what they say of it; the module's own text has the rule."""

    hold: Mapping[str, Measured]
    fail: Mapping[str, Measured]
    open: Mapping[str, Measured]

    @classmethod
    def of(cls, margins: Mapping[str, Measured]) -> Parts:
        hold = {name: each for name, each in margins.items() if each.low > 0}
        fail = {name: each for name, each in margins.items() if each.among(len(margins)).high < 0}
        return cls(hold, fail, {name: each for name, each in margins.items() if name not in hold and name not in fail})

    @property
    def total(self) -> int:
        return len(self.hold) + len(self.fail) + len(self.open)


Judge: TypeAlias = "Callable[[Results[Any]], Finding]"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, or of ours, and how it is judged."""

    id: str
    statement: str
    where: str
    """The section of the paper; ``beyond the paper`` for one of ours about an experiment of the paper's."""
    judge: Judge


@dataclass(frozen=True)
class Verdict:
    """A claim, judged on the results at hand."""

    id: str
    statement: str
    where: str
    verdict: Judgement
    measured: Mapping[str, Measured]
    scale: str
    experiment: str
    note: str = ""
    beyond: bool = False
    """Whether it is a claim of ours, beyond the paper."""

    @property
    def parts(self) -> Parts:
        """What the claim's margins say, one by one."""
        margins = {name.removeprefix(MARGIN): each for name, each in self.measured.items() if name.startswith(MARGIN)}
        return Parts.of(margins)

    @property
    def label(self) -> str:
        """The verdict, with how many of the parts hold where only some do."""
        if self.verdict not in (IN_PART, "fails", "undecided") or not self.parts.hold:
            return self.verdict
        return f"{self.verdict} ({len(self.parts.hold)} of {self.parts.total}{' hold' * (self.verdict != IN_PART)})"

    @property
    def why(self) -> str:
        """What keeps the claim from holding: the parts that fail and those that are open, or why it was not judged.

        With more than :data:`MANY` parts it is the note: the first of them would say nothing of the others.
        """
        if not self.measured or self.verdict == TOO_SMALL or (self.parts.total > MANY and self.verdict != "holds"):
            return self.note
        kinds = {"fails": self.parts.fail, "open": self.parts.open}
        return "; ".join(f"{word}: {_first(some)}" for word, some in kinds.items() if some)

    @property
    def listed(self) -> Mapping[str, Measured]:
        """What a page lists of what was measured: everything, but :data:`MANY` margins at most; :meth:`to_dict` has them all."""
        if self.parts.total <= MANY:
            return self.measured
        kinds = {"hold": self.parts.hold, "fail": self.parts.fail, "are open": self.parts.open}
        counts = {
            f"margins that {word} (one by one: maxmean claims --json)": Measured.exact(len(some))
            for word, some in kinds.items()
        }
        return {name: each for name, each in self.measured.items() if not name.startswith(MARGIN)} | counts

    def to_dict(self) -> dict[str, Any]:
        own = {"beyond_the_paper": True} if self.beyond else {}
        return {
            "id": self.id,
            "verdict": self.verdict,
            "parts": {"hold": len(self.parts.hold), "fail": len(self.parts.fail), "open": len(self.parts.open)},
            "measured": {name: number.to_dict() for name, number in self.measured.items()},
            "scale": self.scale,
            "experiment": self.experiment,
            "statement": self.statement,
            "where": self.where,
            "note": self.note,
            **own,
        }


def _first(parts: Mapping[str, Measured], most: int = 3) -> str:
    """The first parts with their margins, and how many more there are."""
    named = [f"'{name}' by {number}" for name, number in parts.items()]
    return ", ".join(named[:most]) + (f" and {len(named) - most} more" if len(named) > most else "")


def large_enough(experiment: Experiment[Any], settings: Any) -> bool:
    """Whether as much was measured as it takes to judge an experiment's claims. This is the one rule:

    none of the settings that the experiment names as its ``size`` may be less than at the scale that it is ``judged_from``
    (``paper``; for MinAtar ``study``). A number is less when it is smaller, a list when it lacks an entry. What the scale is
    called does not matter: ``quick`` is too small, and settings changed by hand (``custom``) can judge when nothing was made
    smaller. An experiment that names no size can be judged at every scale.
    """
    least, found = vars(experiment.settings(experiment.judged_from)), vars(settings)
    return all(
        {*least[name]} <= {*found[name]} if isinstance(least[name], tuple) else least[name] <= found[name]
        for name in experiment.size
    )


def judge(experiment: Experiment[Any], results: Results[Any] | None) -> list[Verdict]:
    """Verdicts on all claims that an experiment speaks to. Without complete results they are undecided."""
    if results is None:
        return _unjudged(experiment, "none", "not run yet")
    if results.missing:
        note = f"shards that are missing or damaged: {results.missing}; the same 'maxmean reproduce' computes them"
        return _unjudged(experiment, results.scale, note)
    enough = large_enough(experiment, results.settings)
    verdicts = []
    for claim in experiment.claims:
        found = claim.judge(results)
        note = found.note if enough else f"judged at the {experiment.judged_from} scale: {_larger(experiment)}"
        verdict = found.judgement if enough else TOO_SMALL
        verdicts.append(_verdict(experiment, claim, results.scale, verdict, found.measured, note))
    return verdicts


def _unjudged(experiment: Experiment[Any], scale: str, note: str) -> list[Verdict]:
    return [_verdict(experiment, claim, scale, "undecided", {}, note) for claim in experiment.claims]


def _verdict(
    experiment: Experiment[Any],
    claim: Claim,
    scale: str,
    verdict: Judgement,
    measured: Mapping[str, Measured],
    note: str,
) -> Verdict:
    own = experiment.beyond or claim.where == BEYOND
    return Verdict(
        claim.id, claim.statement, claim.where, verdict, measured, scale, experiment.name, note=note, beyond=own
    )


def _larger(experiment: Experiment[Any]) -> str:
    """What computes results that can judge."""
    return f"maxmean reproduce {experiment.name} --scale {experiment.judged_from}"


def by_origin(verdicts: Sequence[Verdict]) -> tuple[list[Verdict], list[Verdict]]:
    """The verdicts on the paper's claims, and those on claims beyond the paper."""
    return [each for each in verdicts if not each.beyond], [each for each in verdicts if each.beyond]


def tally(verdicts: Sequence[Verdict]) -> str:
    """How many claims there are of each verdict, as a sentence; one more for claims beyond the paper.

    >>> found = [Verdict(f"X{k}", "", "", "holds" if k else "fails", {}, "paper", "toy") for k in range(3)]
    >>> tally(found)
    'Of 3 claims 2 hold, 0 hold in part, 1 fails and 0 are undecided.'
    >>> tally([Verdict("Y1", "", "", "holds", {}, "paper", "other", beyond=True)])
    'Of 1 claim beyond the paper 1 holds, 0 hold in part, 0 fail and 0 are undecided.'
    """
    papers, own = by_origin(verdicts)
    sentences = [_tally(papers)] if papers or not own else []
    return " ".join([*sentences, *([_tally(own, f" {BEYOND}")] if own else [])])


def _tally(verdicts: Sequence[Verdict], of: str = "") -> str:
    count = Counter(verdict.verdict for verdict in verdicts)
    words: dict[Judgement, tuple[str, str]] = {
        "holds": ("holds", "hold"),
        IN_PART: ("holds in part", "hold in part"),
        "fails": ("fails", "fail"),
        "undecided": ("is undecided", "are undecided"),
    }
    if count[TOO_SMALL]:
        words[TOO_SMALL] = ("was measured at too small a scale", "were measured at too small a scale")
    parts = [f"{count[word]} {one if count[word] == 1 else many}" for word, (one, many) in words.items()]
    return f"Of {len(verdicts)} claim{'s' * (len(verdicts) != 1)}{of} {', '.join(parts[:-1])} and {parts[-1]}."


def markdown(verdicts: Sequence[Verdict]) -> str:
    """Verdicts as a Markdown table with one section a claim, for the documentation; claims beyond the paper have their own."""
    papers, own = by_origin(verdicts)
    parts = [_markdown(papers)] if papers or not own else []
    return "\n".join([*parts, *([f"## {BEYOND.capitalize()}\n\n{_markdown(own)}"] if own else [])])


def _markdown(verdicts: Sequence[Verdict]) -> str:
    lines = ["| claim | statement | verdict | scale | experiment |", "|---|---|---|---|---|"]
    lines += [
        f"| {v.id} | {as_markdown(v.statement)} | **{v.label}** | {v.scale} | `{v.experiment}` |" for v in verdicts
    ]
    for v in verdicts:
        lines += [
            "",
            f"### {v.id}: {v.label}",
            "",
            f"{as_markdown(v.statement)}{'' if v.beyond else f' (section {v.where})'}.",
            "",
        ]
        lines += [as_markdown(v.note), ""] if v.note else []
        lines += ["| measured | value [95% interval] |", "|---|---|"]
        lines += [f"| {as_markdown(name)} | {number} |" for name, number in v.listed.items()]
    return "\n".join(lines) + "\n"


def as_markdown(text: str) -> str:
    r"""A text in Markdown, in a table or outside, that is shown as it is.

    >>> print(as_markdown("|bias| of KE*-BDQN"))
    \|bias\| of KE\*-BDQN
    """
    return re.sub(r"([*|])", r"\\\1", escaped(text))
