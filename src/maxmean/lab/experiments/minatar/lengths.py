"""How many steps the runs have that a part of a claim is judged on, where some are longer than the study's.

This is the one rule for the claims about the end of training (D3, D5, D6 and D7). It was fixed before their longer runs were
made, but for the first four groups:

- A part is judged at the longest length at which all runs that it compares exist, with no fewer seeds than the study has.
- All runs of a part have the same length. The same part at shorter lengths is shown beside it and decides nothing.
- "The best of the others" is one part for each length: an agent is compared with the best of those that were run as long as
  itself, and at the study's own length with the best of the rest. So each of the others counts once, where it was run longest.

Which runs exist decides the length, never what they measure. D1, D2 and D4 keep the study's own length: the seeds of D1 and D2
were fixed for it, and D4 asks for agents without adaptation in all games at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from ...claims import Finding, Measured
from .ends import Ends, NotRunError, other_seeds

Compare = Callable[[Ends], Mapping[str, Measured]]
"""Parts of a claim, or other numbers, from runs of one length; NotRunError where some of these runs are missing."""


def judged_by_length(ends: Ends, parts: Iterable[Compare], numbers: Compare, note: str = "") -> Finding:
    """What was found at the study's own length and at longer ones; the note says how many parts rest on which."""
    margins: dict[str, Measured] = {}
    beside: dict[str, dict[str, Measured]] = {}
    counts: Counter[int] = Counter()
    for part in parts:
        (longest, found), *shorter = _where_run(ends, part)
        counts[longest.settings.steps] += len(found)
        judged = [name if longest is ends else _after(longest, name) for name in found]
        margins |= dict(zip(judged, found.values(), strict=True))
        for own, same in shorter:
            for name, (other, number) in zip(judged, same.items(), strict=True):
                beside.setdefault(name, {})[_after(own, other)] = number
    return Finding(margins, _side_by_side(ends, numbers), (note + _lengths_note(ends, counts)).strip(), beside)


def rivals(ends: Ends, game: str, name: str, rate: float | None = None) -> list[list[str]]:
    """All other variants that were run here, by the longest length at which both this one and they were, the longest first."""
    groups: list[list[str]] = []
    known = {name}
    for own in ends.lengths:
        here = own.variants(game, rate)
        if name in here and (new := [other for other in here if other not in known]):
            groups.append(new)
            known |= {*new}
    return groups


def run_at_some_length(ends: Ends, game: str, rate: float | None = None) -> set[str]:
    """The paper's variants that were run here at the study's own length or at a longer one."""
    return {name for own in ends.lengths for name in own.variants(game, rate)}


def _where_run(ends: Ends, part: Compare) -> list[tuple[Ends, Mapping[str, Measured]]]:
    """What a part is at each length that has its runs, the longest first."""
    found = []
    missing = NotRunError()
    for own in ends.lengths:
        try:
            found.append((own, part(own)))
        except NotRunError as error:
            missing = error
    if not found:
        raise missing
    return found


def _side_by_side(ends: Ends, numbers: Compare) -> dict[str, Measured]:
    """Numbers at the study's own length, each followed by the same one at longer lengths."""
    found = {own: numbers(own) for own in reversed(ends.lengths)}
    names = dict.fromkeys(name for each in found.values() for name in each)
    return {
        name if own is ends else _after(own, name): each[name]
        for name in names
        for own, each in found.items()
        if name in each
    }


def _lengths_note(ends: Ends, counts: Mapping[int, int]) -> str:
    """How many parts rest on which length, and on how many seeds, where it is not the study's own for all."""
    if {*counts} <= {ends.settings.steps}:
        return ""
    several = []
    for own in ends.lengths:
        seeds = [f"{own.settings.seeds} seeds", other_seeds(own.means.reset_index(), own.settings.seeds)]
        said = f" ({'; '.join(filter(None, seeds))})" if own is not ends else ""
        if count := counts.get(own.settings.steps, 0):
            several.append(f"on {own.settings.steps:,} steps {count}{said}")
    return f" Judged, of {sum(counts.values())} parts: {', '.join(several)}."


def _after(ends: Ends, name: str) -> str:
    return f"{name}, {ends.settings.steps:,} steps"
