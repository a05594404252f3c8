"""The command line. The laboratory's commands are in :mod:`maxmean.lab.commands`."""

from __future__ import annotations

import atexit
import io
import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, NoReturn, TextIO

import typer

from . import __version__
from .deep import commands as deep_commands
from .errors import MaxmeanError
from .lab import commands as lab_commands

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    name="maxmean",
    help="How good is the best one, really? Estimators of the maximum expected value.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


INTERRUPTED = 130
"""The exit status after Ctrl-C."""


def main() -> NoReturn:
    """The command ``maxmean``: run the command line, and end the process with its status."""
    _leave(run())


def run() -> int:
    """Run the command line; a user's mistake ends in one sentence on standard error and exit status 2."""
    try:
        warnings.showwarning = _remark
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a terminal without Unicode shows escapes instead
                stream.reconfigure(errors="backslashreplace")
        status = _status()
        if sys.stdout is not None:
            sys.stdout.flush()  # while it can still be said that it could not be written
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except MaxmeanError as error:
        _complain(str(error))
        return 2
    except MemoryError:
        _complain("there is not enough memory for that")
        return 2
    except BrokenPipeError:  # the reader has seen enough
        _drop_output()
        return 1
    except OSError as error:
        why = error.strerror or str(error) or type(error).__name__
        _complain(
            f"cannot write the answer: {why}" if error.filename is None else f"cannot use {error.filename}: {why}"
        )
        _drop_output()
        return 1


def _status() -> int:
    """The exit status that Typer would end Python with; it says 130 for Ctrl-C."""
    try:
        app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _leave(status: int) -> NoReturn:
    """End the process after all that Python does when it ends, but for taking itself apart.

    A library's thread that is still at work (Arrow's, for one) may call Python meanwhile, which then aborts or waits for ever.
    Whoever presses Ctrl-C does not wait for threads either.
    """
    if status != INTERRUPTED:
        threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # closed by the caller, or full
            stream.flush()
    os._exit(status)


def _complain(sentence: str) -> None:
    from .mev.show import escaped, shortened

    if sys.stderr is not None:  # closed by the caller
        print(f"maxmean: {shortened(escaped(sentence), 500)}", file=sys.stderr)


_shown_by_python = warnings.showwarning


def _remark(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning of ours is a sentence; of others', whatever they make of it."""
    if os.path.dirname(__file__) in filename:
        _complain(str(message))
    else:
        _shown_by_python(message, category, filename, lineno, file, line)


def _drop_output() -> None:
    """Forget what standard output could not take, lest Python tries again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _version(asked: bool) -> None:
    if asked:
        print(f"maxmean {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", metavar="", callback=_version, is_eager=True, help="Print the version and stop."),
    ] = False,
) -> None:
    """How good is the best one, really? Estimators of the maximum expected value."""


_DATA = "How to read the table (default: recognised from the columns)"
_HOW = "How to estimate"


@app.command()
def estimate(
    source: Annotated[
        str, typer.Argument(metavar="FILE", show_default=False, help="A CSV or Parquet file, or - for standard input.")
    ],
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            metavar="NAME",
            show_default="all that the data allows",
            help="me, ae, de, cve, we, mme, te, ke, te*, ke*; repeat it or separate names by commas.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option(help="Significance level of te and of 'in the race', in (0, 0.5].", rich_help_panel=_HOW)
    ] = 0.1,
    kernel: Annotated[
        str,
        typer.Option(
            metavar="NAME[:NUMBERS]",
            help="Kernel of ke: gaussian[:scale], student-t[:df], epanechnikov, triangle, softmax, beta[:a,b], "
            "indicator[:alpha].",
            rich_help_panel=_HOW,
        ),
    ] = "gaussian",
    draws: Annotated[
        int | None,
        typer.Option(
            show_default="exact", help="Monte Carlo draws of we instead of integration.", rich_help_panel=_HOW
        ),
    ] = None,
    parts: Annotated[int, typer.Option(help="Parts that mme splits each option into.", rich_help_panel=_HOW)] = 2,
    lower_is_better: Annotated[
        bool,
        typer.Option(
            "--lower-is-better", metavar="", help="The best option has the smallest mean.", rich_help_panel=_HOW
        ),
    ] = False,
    level: Annotated[float, typer.Option(help="Level of all intervals.", rich_help_panel=_HOW)] = 0.95,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples.", rich_help_panel=_HOW)] = 2000,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap and the random splits.", rich_help_panel=_HOW)] = 0,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Names of the options; in a wide table, a column to leave out.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Observations (long).", rich_help_panel=_DATA)
    ] = None,
    successes: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="How many times it worked (counts).", rich_help_panel=_DATA)
    ] = None,
    trials: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="How many times it was tried (counts).", rich_help_panel=_DATA)
    ] = None,
    mean: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Mean of each option (summaries).", rich_help_panel=_DATA)
    ] = None,
    se: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Standard error of the mean.", rich_help_panel=_DATA)
    ] = None,
    sd: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Standard deviation; needs --n.", rich_help_panel=_DATA)
    ] = None,
    n: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Number of observations.", rich_help_panel=_DATA)
    ] = None,
    layout: Annotated[
        str | None, typer.Option(metavar="NAME", help="long, wide, counts or summaries.", rich_help_panel=_DATA)
    ] = None,
    unpaired: Annotated[
        bool,
        typer.Option(
            "--unpaired", metavar="", help="Rows of a wide table do not belong together.", rich_help_panel=_DATA
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print one JSON object instead of tables.")
    ] = False,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also draw a picture (.png, .pdf or .svg).", show_default=False)
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", metavar="", help="No notes and no progress on standard error.")
    ] = False,
) -> None:
    """Estimate the mean of the best of several options, from a table of observations, counts or summaries.

    A long table has one observation a row (columns such as option and value), a wide one a column for each option; counts have successes and trials, summaries a mean with its standard error, or with sd and n.

    Example: maxmean estimate ads.csv --method ke --method te --plot ads.png
    """  # noqa: E501  (a line break here is one in the help)
    from rich.console import Console

    from .mev import picture, show
    from .mev.compare import compare_problem
    from .mev.data import DataError
    from .mev.estimate import Problem
    from .mev.files import check_figure, stream_table
    from .mev.inputs import refuse_unusable
    from .mev.layouts import Columns, read_options
    from .mev.methods import Settings, check_method, parse_kernel

    notes = Console(stderr=True, quiet=quiet, markup=False, emoji=False, highlight=False, soft_wrap=True)
    methods = [check_method(name.strip()) for entry in method for name in entry.split(",")] if method else None
    settings = Settings(alpha, parse_kernel(kernel), draws, parts)
    if plot is not None:
        check_figure(plot)
    columns = Columns(by, value, successes, trials, mean, se, sd, n, layout)
    with _progress(notes, "reading", 1.0) as reading:
        options = read_options(stream_table(source, reading), columns)
    try:
        refuse_unusable(options)
    except DataError as error:
        raise DataError(f"{error} (the table was taken for {options.taken_for})") from None
    if unpaired:
        options = options.unpaired()
    problem = Problem.of(options, settings, lower_is_better=lower_is_better, seed=seed, resamples=resamples)
    with _progress(notes, "bootstrap", resamples) as resampling:
        comparison = compare_problem(problem, methods, level=level, progress=resampling)
    if plot is not None:
        picture.plot(comparison, plot)
    name = "standard input" if source == "-" else show.escaped(source)
    notes.print(f"Read {name} as {show.escaped(options.taken_for)}.", style="dim")
    if as_json:
        print(json.dumps(comparison.to_dict(), indent=2, allow_nan=False), flush=True)
    else:
        show.print_answer(comparison)
    if plot is not None:
        notes.print(f"Picture: {show.escaped(plot)}", style="dim")


lab_commands.register(app)
deep_commands.register(app)


class _Meter:
    """Tells a person how far a job is, once it has taken two seconds; nobody but a person is told."""

    def __init__(self, console: Console, what: str, total: float) -> None:
        self.console, self.what, self.total = console, what, total
        self.begin = time.monotonic()
        self.status = console.status("")
        self.shown = False

    def __call__(self, done: float) -> None:
        if time.monotonic() - self.begin < 2 or not self.console.is_terminal or self.console.quiet:
            return
        if not self.shown:
            self.status.start()
            self.shown = True
        share = done / self.total
        left = (time.monotonic() - self.begin) * (1 - share) / max(share, 1e-9)
        self.status.update(f"{self.what}: {share:.0%}, {left:.0f} s left")


@contextmanager
def _progress(console: Console, what: str, total: float) -> Iterator[_Meter]:
    meter = _Meter(console, what, total)
    try:
        yield meter
    finally:
        if meter.shown:
            meter.status.stop()


if __name__ == "__main__":
    main()
