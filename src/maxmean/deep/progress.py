"""What a person sees of a training while it goes on: a live line on a terminal, plain lines when piped, nothing when quiet."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, cast

from rich.console import Console
from rich.live import Live
from rich.text import Text

from .records import Records, latest


class _Listener:
    """Standard error, as it is when something is said. A training does not end because nobody hears of it any more: the pipe
    is closed, the terminal gone, the disk of the log full.
    """

    @property
    def stream(self) -> Any:
        return getattr(sys.stderr, "rich_proxied_file", sys.stderr)

    @property
    def encoding(self) -> str:
        return getattr(self.stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        with suppress(OSError, ValueError):
            return self.stream is not None and self.stream.isatty()
        return False

    def write(self, text: str) -> int:
        self._try(lambda stream: stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._try(lambda stream: stream.flush())

    def _try(self, act: Callable[[Any], object]) -> None:
        stream = self.stream
        try:
            if stream is not None:
                act(stream)
        except (OSError, ValueError):
            with suppress(OSError, ValueError):  # lest Python tries again when it ends
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def standard_error(*, quiet: bool = False) -> Console:
    """Where a training says how it is going."""
    return Console(file=cast("IO[str]", _Listener()), quiet=quiet)


class SilentReporter:
    """Hears what happens in a training, and says nothing of it."""

    def say(self, sentence: str) -> None:
        """Something that a person should know."""

    def tick(self, step: int, begin: int | None = None) -> None:
        """All runs have got to this step, and began at another one, if that was not known before."""

    def record(self, records: Records) -> None:
        """There are new records."""

    def __enter__(self) -> SilentReporter:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to put away."""


class Line(SilentReporter):
    """One line: steps, steps a second over all runs, time left, and each variant's latest return and bias."""

    def __init__(self, console: Console, steps: int, runs: int, begin: int) -> None:
        self.console, self.steps, self.runs = console, steps, runs
        self.begin, self.at, self.started = begin, begin, time.monotonic()
        self.latest = ""
        self.live = Live(console=console, refresh_per_second=4, transient=True) if console.is_terminal else None
        self.shown = 0.0

    def __enter__(self) -> Line:
        if self.live:
            self._show()
            self.live.start()
            self.live.refresh()  # at once: the first steps wait for the compiler
        return self

    def __exit__(self, *error: object) -> None:
        if self.live:
            self.live.stop()

    def say(self, sentence: str) -> None:
        self.console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def tick(self, step: int, begin: int | None = None) -> None:
        self.at, self.begin = step, self.begin if begin is None else begin
        self._show()

    def record(self, records: Records) -> None:
        means = latest(records.frame())
        self.latest = "  ".join(_measured(_name(index), row.test_return, row.bias) for index, row in means.iterrows())
        if not self.live and (time.monotonic() - self.shown > 10.0 or self.at >= self.steps):
            self.say(self.line())
            self.shown = time.monotonic()

    def _show(self) -> None:
        if self.live:
            self.live.update(Text(self.line(), no_wrap=True, overflow="ellipsis"))

    def line(self) -> str:
        """The line as it stands."""
        passed = time.monotonic() - self.started
        rate = (self.at - self.begin) / passed if passed > 0.0 else 0.0
        left = _time((self.steps - self.at) / rate) if rate > 0.0 else "?"
        share = self.at / self.steps
        return f"{self.at:,} of {self.steps:,} steps ({share:.0%})  {rate * self.runs:,.0f} steps/s  {left} left  {self.latest}"


class Times:
    """Seconds by what they were spent on. The first time of each also compiles: what it takes beyond the mean of the others is
    counted apart.

    >>> times = Times()
    >>> times.spent = {"learning": [5.0, 3.0, 3.0], "tests": [1.0]}
    >>> print(times)
    12 s: learning 75%, tests 8%, compiling 17%.
    """

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {}

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        begin = time.monotonic()
        yield
        self.spent.setdefault(what, []).append(time.monotonic() - begin)

    @property
    def total(self) -> float:
        return sum(map(sum, self.spent.values()))

    def __str__(self) -> str:
        extra = {what: _beyond(seconds) for what, seconds in self.spent.items()}
        parts = {what: sum(seconds) - extra[what] for what, seconds in self.spent.items()}
        parts["compiling"] = sum(extra.values())
        return f"{self.total:,.0f} s: {', '.join(f'{what} {part / self.total:.0%}' for what, part in parts.items())}."


def _beyond(seconds: Sequence[float]) -> float:
    """What the first one takes beyond the mean of the others; nothing where there are none."""
    first, *others = seconds
    return max(0.0, first - sum(others) / len(others)) if others else 0.0


def make_reporter(console: Console, quiet: bool, steps: int, runs: int, begin: int) -> SilentReporter:
    return SilentReporter() if quiet else Line(console, steps, runs, begin)


def _measured(name: str, returned: float, bias: float) -> str:
    """What was measured of a variant, without what was not.

    >>> _measured("dqn", 3.0, float("nan"))
    'dqn return 3.0'
    """
    parts = [(returned, f"return {returned:.1f}"), (bias, f"bias {bias:+.2f}")]
    return " ".join([name, *(text for value, text in parts if math.isfinite(value))])


def _name(index: Any) -> str:
    return str(index[0]) if isinstance(index, tuple) else str(index)


def _time(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


_others: list[Callable[[], bool]] = []
"""Who may ask to stop, beside the keyboard."""


@contextmanager
def stoppable(by: Callable[[], bool]) -> Iterator[None]:
    """In here a training stops when ``by`` is true, as it does at a first Ctrl-C."""
    _others.append(by)
    try:
        yield
    finally:
        _others.remove(by)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """A first Ctrl-C asks to stop after the piece at hand; a second one stops at once."""
    asked = threading.Event()

    def stopped() -> bool:
        return asked.is_set() or any(by() for by in _others)

    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return

    def ask(*_: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)
