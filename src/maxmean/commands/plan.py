"""``maxmean plan``: how many observations it takes, from a pilot or from guesses."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from .options import takes
from .reading import COLUMNS, ROWS, columns_of, reading_of

_GUESS = "From guesses, instead of a pilot"


@takes(*COLUMNS, *ROWS)
def plan(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            show_default=False,
            help="A pilot: CSV, Parquet, Excel, SQLite or DuckDB; - is standard input.",
        ),
    ] = None,
    power: Annotated[float, typer.Option(help="The probability to reach.")] = 0.8,
    width: Annotated[
        float | None, typer.Option(help="Plan for an interval so wide on average, instead of for --power.")
    ] = None,
    difference: Annotated[
        float | None,
        typer.Option(help="The smallest difference that matters: the best is ahead by it, all others are equal."),
    ] = None,
    control: Annotated[
        str | None, typer.Option(metavar="NAME", help="Until the best beats this option, not until it beats all.")
    ] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals and of the set of the best.")] = 0.95,
    lower_is_better: Annotated[
        bool, typer.Option("--lower-is-better", metavar="", help="The best option has the smallest mean.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the simulations.")] = 0,
    means: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS", help="Means, separated by commas; with NAME=NUMBER, named.", rich_help_panel=_GUESS
        ),
    ] = None,
    sds: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="Standard deviation of one observation, one or one for each.",
            rich_help_panel=_GUESS,
        ),
    ] = None,
    rates: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Success rates, instead of --means.", rich_help_panel=_GUESS)
    ] = None,
    options: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|NAMES",
            help="How many options, with --difference; of a pilot, those to compare, separated by commas.",
            rich_help_panel=_GUESS,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print one JSON object instead of a table.")
    ] = False,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Also draw the curve (.png, .pdf or .svg).", show_default=False)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="No notes on standard error.")] = False,
    **given: Any,
) -> None:
    """Say how many observations of every option it takes until the best one is told apart from all others.

    From a pilot, whose means are drawn towards each other since the best is ahead by luck too, or from guesses.

    Example: maxmean plan --rates old=0.030,new=0.033 --plot plan.png
    """
    from rich.console import Console

    from ..mev import picture, show
    from ..mev.data.collect import read_options
    from ..mev.data.files import stream_table
    from ..mev.errors import ArgumentError
    from ..mev.methods import Settings
    from ..mev.plan import plan as plan_guesses
    from ..mev.plan import plan_problem
    from ..mev.problem import Problem

    notes = Console(stderr=True, quiet=quiet, markup=False, emoji=False, highlight=False, soft_wrap=True)
    if plot is not None:
        picture.check_figure(plot)
    remarks: list[str] = []
    guesses = {"--means": means, "--sds": sds, "--rates": rates}
    said = [name for name, given in guesses.items() if given is not None]
    if source is None:
        if given:
            flag = next(iter(given)).replace("_", "-")
            raise ArgumentError(f"--{flag} says how to read a pilot, and there is none: give a file, or leave it out")
        if not said and options is None:
            raise ArgumentError("give a pilot (a file), or guesses (--means and --sds, --rates, or --options)")
        found = plan_guesses(
            means=_numbers("--means", means),
            sds=_numbers("--sds", sds),
            rates=_numbers("--rates", rates),
            options=None if options is None else _count(options),
            difference=difference,
            power=power,
            width=width,
            level=level,
            control=control,
            lower_is_better=lower_is_better,
            seed=seed,
        )
    else:
        if said:
            raise ArgumentError(f"{', '.join(said)} is a guess, and {source!r} a pilot: give one or the other")
        reading = reading_of(given, [] if options is None else [options])
        pilot = read_options(stream_table(source, sheet=reading.sheet, query=reading.query), columns_of(given), reading)
        remarks += pilot.remarks
        if pilot.taken_for.startswith("cross-validation"):
            remarks.append("an observation of this plan is a split of the same data, which tells less than new data do")
        problem = Problem.of(pilot, Settings(), lower_is_better=lower_is_better, seed=seed, resamples=2)
        found = plan_problem(
            problem, difference=difference, power=power, width=width, level=level, control=control, seed=seed
        )
        name = "standard input" if source == "-" else show.escaped(source)
        notes.print(f"Read {name} as {show.escaped(pilot.taken_for)}.", style="dim")
    with picture.told() as lacking:
        if plot is not None:
            found.plot(plot)
    if as_json:
        print(json.dumps(found.to_dict() | {"notes": remarks}, indent=2, allow_nan=False), flush=True)
    else:
        show.print_plan(found)
        for sentence in remarks:
            print(f"note: {show.escaped(sentence)}")
    if plot is not None:
        notes.print(f"Picture: {show.escaped(plot)}", style="dim")
    for sentence in lacking:
        notes.print(f"note: {sentence}", style="yellow")


def _count(text: str) -> int:
    from ..mev.errors import ArgumentError

    if not text.strip().isdecimal():
        raise ArgumentError(f"--options is how many there are, if there is no pilot, not {text!r}")
    return int(text)


def _numbers(name: str, text: str | None) -> object:
    """Numbers separated by commas, by name where they have names; one alone as a number."""
    from ..mev.errors import ArgumentError

    if text is None:
        return None
    pairs = [piece.rpartition("=") for piece in text.split(",")]
    try:
        numbers = [float(number) for _, _, number in pairs]
    except ValueError:
        raise ArgumentError(f"{name} takes numbers separated by commas, or NAME=NUMBER, not {text!r}") from None
    if all(equals for _, equals, _ in pairs):
        return {called.strip(): number for (called, _, _), number in zip(pairs, numbers, strict=True)}
    if any(equals for _, equals, _ in pairs):
        raise ArgumentError(f"{name}: name all options or none, not {text!r}")
    return numbers[0] if len(numbers) == 1 else numbers
