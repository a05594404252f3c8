"""``maxmean estimate``: the mean of the best option, from a table."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import takes
from .reading import COLUMNS, PANEL, ROWS, UNIT_COLUMNS, columns_of, reading_of

if TYPE_CHECKING:
    from rich.console import Console

_HOW = "How to estimate"


@takes(*COLUMNS, *ROWS, *UNIT_COLUMNS)
def estimate(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE", show_default=False, help="CSV, Parquet, Excel, SQLite or DuckDB; - is standard input."
        ),
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
    alpha: Annotated[float, typer.Option(help="Significance level of te, in (0, 0.5].", rich_help_panel=_HOW)] = 0.1,
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
    control: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The option to compare the others with: their lift.", rich_help_panel=_HOW),
    ] = None,
    anytime: Annotated[
        bool,
        typer.Option(
            "--anytime",
            metavar="",
            help="Intervals that hold at every look, however often you look and whenever you stop.",
            rich_help_panel=_HOW,
        ),
    ] = False,
    planned: Annotated[
        int | None,
        typer.Option(
            show_default="1000",
            help="Observations an option at which those of --anytime are shortest; choose it before the first look.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Level of all intervals.", rich_help_panel=_HOW)] = 0.95,
    resamples: Annotated[
        int, typer.Option(help="Resamples behind the bias, for each of 41 sets of true means.", rich_help_panel=_HOW)
    ] = 1000,
    seed: Annotated[
        int, typer.Option(help="Seed of these resamples and of the random splits.", rich_help_panel=_HOW)
    ] = 0,
    options: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            show_default="all",
            help="Options to compare; repeat it or separate names by commas. In a wide table, columns.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    covariance: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="CSV with the covariance matrix of the means, instead of standard errors: names of the options in the first "
            "row and column, or numbers alone.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    unpaired: Annotated[
        bool,
        typer.Option(
            "--unpaired", metavar="", help="Rows of a wide table do not belong together.", rich_help_panel=PANEL
        ),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print one JSON object instead of tables.")
    ] = False,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also draw a picture (.png, .pdf or .svg).", show_default=False)
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write one page to send (.html).", show_default=False),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", metavar="", help="No notes and no progress on standard error.")
    ] = False,
    **given: Any,
) -> None:
    """Estimate the mean of the best of several options, from a table of observations, counts or summaries.

    A long table has one observation a row (columns such as option and value), a wide one a column for each option; counts have successes and trials, summaries a mean with its standard error, or with sd and n.

    Example: maxmean estimate ads.csv --method ke --method te --plot ads.png
    """  # noqa: E501  (a line break here is one in the help)
    from rich.console import Console

    from ..mev import page, picture, show
    from ..mev.asking import planned_at
    from ..mev.compare import compare_problem
    from ..mev.data.collect import read_options
    from ..mev.data.covariance import read_covariances
    from ..mev.data.files import stream_table
    from ..mev.errors import ArgumentError, DataError
    from ..mev.methods import Settings, check_method, parse_kernel
    from ..mev.problem import Problem

    notes = Console(stderr=True, quiet=quiet, markup=False, emoji=False, highlight=False, soft_wrap=True)
    methods = [check_method(name.strip()) for entry in method for name in entry.split(",")] if method else None
    settings = Settings(alpha, parse_kernel(kernel), draws, parts)
    if plot is not None:
        picture.check_figure(plot)
    if report is not None:
        page.check_page(report)
    if covariance is not None and unpaired:
        raise ArgumentError(
            "--unpaired says that nothing belongs together, and --covariance how much it does: choose one"
        )
    matrix = None if covariance is None else read_covariances(covariance)
    columns = columns_of(given, matrix)
    reading = reading_of(given, options or [], paired=False if unpaired else None)
    with _progress(notes, "reading", 1.0) as progress:
        found = read_options(stream_table(source, progress, reading.sheet, reading.query), columns, reading)
    name = "standard input" if source == "-" else show.escaped(source)
    found = replace(
        found.unpaired() if unpaired else found, source="standard input" if source == "-" else Path(source).name
    )
    try:
        problem = Problem.of(
            found,
            settings,
            lower_is_better=lower_is_better,
            seed=seed,
            resamples=resamples,
            control=control,
            planned=planned_at(anytime, planned),
        )
    except DataError as error:
        raise DataError(f"{error} (the table was taken for {found.taken_for})") from None
    with _progress(notes, "bias", resamples) as resampling:
        comparison = compare_problem(problem, methods, level=level, progress=resampling)
    with picture.told() as lacking:
        if plot is not None:
            picture.plot(comparison, plot)
    if report is not None:
        page.write_page(comparison, report)
    notes.print(f"Read {name} as {show.escaped(found.taken_for)}.", style="dim")
    if as_json:
        print(json.dumps(comparison.to_dict(), indent=2, allow_nan=False), flush=True)
    else:
        show.print_answer(comparison)
    if plot is not None:
        notes.print(f"Picture: {show.escaped(plot)}", style="dim")
    for sentence in lacking:
        notes.print(f"note: {sentence}", style="yellow")
    if report is not None:
        notes.print(f"Report: {show.escaped(report)}", style="dim")


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
