"""Named options with their data, whatever they were read from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..errors import DataError
from .counts import Counts
from .limits import MOST_OPTIONS, TOO_MANY
from .samples import Samples
from .summaries import Summaries


@dataclass(frozen=True)
class Options:
    """Named options and their data."""

    names: tuple[str, ...]
    data: Samples | Counts | Summaries
    taken_for: str = ""
    """What the input was read as, in words."""
    pairable: bool = False
    """Whether row k of every option may be treated as a pair if ``te*`` or ``ke*`` is requested."""
    lower_is_better: bool | None = None
    """Whether the best has the smallest mean, if the input says so."""
    remarks: tuple[str, ...] = ()
    """What was guessed or left out when the input was read, and changes the answer: a sentence each."""
    source: str = ""
    """The name of the file that it was read from."""

    def unpaired(self) -> Options:
        """The same options, with rows that do not belong together."""
        data = replace(self.data, paired=False) if isinstance(self.data, Samples) else self.data
        return replace(self, data=data, pairable=False)


def refuse_unusable(options: Options) -> None:
    """Refuse what no estimator can use, in one sentence that names the option.

    The readers have checked already that the values are finite.
    """
    names = options.names
    if not names:
        raise DataError("there are no options")
    if len(names) < 2:
        raise DataError(f"there is only one option ({names[0]!r}); estimating the best needs at least two")
    if len(names) > MOST_OPTIONS:
        raise DataError(TOO_MANY)
    if (twice := repeated(names)) is not None:
        raise DataError(f"option {twice!r} appears twice")
    what = "trials" if isinstance(options.data, Counts) else "values"
    for name, n in zip(names, options.data.n or (), strict=False):
        if n < 2:
            raise DataError(f"option {name!r} has fewer than two {what}: leave it out, or wait for more")


def repeated(names: Iterable[str]) -> str | None:
    """The first name that occurs a second time, or None.

    >>> repeated("abcb")
    'b'
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
