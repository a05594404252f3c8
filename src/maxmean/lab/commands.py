"""The laboratory on the command line: ``maxmean reproduce``, ``list``, ``claims`` and ``report``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import missing

if TYPE_CHECKING:
    from rich.table import Table

    from .claims import Verdict
    from .loading import LeftOut
    from .store import Store

DEFAULT_OUT = "maxmean-results"

_Out = Annotated[
    str | None,
    typer.Option("--out", metavar="DIR", show_default="the results that come with maxmean", help="Where results are."),
]


def register(app: typer.Typer) -> None:
    """Add the laboratory's commands to the command line."""
    app.command()(reproduce)
    app.command(name="list")(list_experiments)
    app.command()(claims)
    app.command()(report)


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", show_default="all but minatar", help="Experiments; see 'maxmean list'."),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            help="quick (seconds, a first look), paper (the paper's own size); for minatar also study (between)."
        ),
    ] = "quick",
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Change a setting of the scale. May be given more than once."),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", metavar="", help="Only say what the work will take; for minatar with a short calibration."
        ),
    ] = False,
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Where results are kept.")] = DEFAULT_OUT,
    engine: Annotated[
        str | None,
        typer.Option(show_default="processes; inline where a GPU is wanted", help="inline, processes or ray."),
    ] = None,
    workers: Annotated[int | None, typer.Option(show_default="all cores", help="Processes at once.")] = None,
    address: Annotated[
        str | None, typer.Option(show_default="a local one", help="A running Ray cluster, such as auto or HOST:6379.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="No progress and no summary.")] = False,
) -> None:
    """Run the paper's experiments. Stop it any time: the same command goes on where it was.

    Ends with a report: one HTML page with every figure and the verdict on every claim.

    The exit status is 1 if something of what was asked for could not be computed or shown; what could is kept.
    """
    from rich.console import Console

    from ..mev.data import DataError
    from .engines import make_engine
    from .experiments import find_experiments
    from .progress import make_reporter
    from .report import write_report
    from .run import Job, verdicts
    from .run import reproduce as run
    from .store import Store

    if seed < 0:
        raise DataError(f"seed must not be negative, not {seed}")
    experiments = find_experiments(names or [])
    for experiment in [e for e in experiments if e.missing]:
        if names:
            raise DataError(str(experiment.missing))
        typer.echo(f"left out: {experiment.missing}", err=True)
        experiments.remove(experiment)
    jobs = [Job.of(experiment, scale, changes or ()) for experiment in experiments]
    console = Console(stderr=True, quiet=quiet)
    for job in jobs:
        for remark in job.experiment.remarks(job.settings):
            console.print(remark, markup=False, highlight=False)
    if dry_run:
        for job in jobs:
            print(job.experiment.forecast(job.settings, lambda text: console.print(text, markup=False)))
        return
    on_gpu = any(job.experiment.wants_gpu(job.settings) for job in jobs)
    chosen = make_engine(engine or ("inline" if on_gpu else "processes"), workers, address, None if quiet else console)
    store = Store(out)
    try:
        with make_reporter(console, quiet) as reporter:
            summary = run(jobs, store, chosen, seed, reporter)
    except KeyboardInterrupt:
        console.print("Stopped. What is finished is kept; the same command goes on from there.", markup=False)
        raise typer.Exit(130) from None
    if not quiet:
        print(f"{summary.computed} shard{'s' * (summary.computed != 1)} computed, {summary.kept} kept from before.")
    for outcome in summary.failed:
        typer.echo(
            f"failed: {outcome.shard} with settings {json.dumps(outcome.shard.settings)}\n{outcome.error}", err=True
        )
    left_out: list[LeftOut] = []
    asked = {experiment.name for experiment in experiments}
    if {outcome.shard.experiment for outcome in summary.failed} < asked:
        shown = (jobs[0].scale, seed)
        page = write_report(store, store.root / "report", shown, left_out.append)
        if not quiet:
            _print_verdicts(verdicts(store, shown))
            print(f"Report: {page}")
    _say(left_out)
    if summary.failed or any(each.experiment in asked for each in left_out):
        raise typer.Exit(1)


def list_experiments(
    names: Annotated[
        bool,
        typer.Option("--names", metavar="", help="Print the names of the experiments that run by default, one a line."),
    ] = False,
) -> None:
    """List the experiments, with the section of the paper and the claims they speak to, and the environments."""
    from rich.console import Console
    from rich.table import Column, Table

    from .experiments import EXPERIMENTS, find_experiments

    if names:
        print("\n".join(experiment.name for experiment in find_experiments([])))
        return
    columns = (Column("name", no_wrap=True), "what", "section", "claims", "shards by scale")
    table = Table(*columns, box=None, header_style="bold")
    for experiment in EXPERIMENTS.values():
        ids = " ".join(claim.id for claim in experiment.claims)
        sizes = ", ".join(f"{scale} {len(experiment.parts(experiment.settings(scale)))}" for scale in experiment.scales)
        table.add_row(experiment.name, experiment.title, experiment.section, ids, sizes)
    console = Console(highlight=False)
    console.print(table)
    console.print()
    if find_spec("jax") is None:
        console.print(missing("the list of environments", "jax"), markup=False)
    else:
        console.print(_environments())


def _environments() -> Table:
    """The games, with what can be seen and done in them."""
    from rich.table import Column, Table

    from ..envs.minatar import GAMES

    actions = ("nothing", "left", "up", "right", "down", "fire")
    columns = (Column("environment", no_wrap=True), "what is seen", "what can be done")
    table = Table(*columns, box=None, header_style="bold")
    for name, game in GAMES.items():
        table.add_row(name, ", ".join(game.channels), ", ".join(actions[action] for action in game.useful_actions))
    return table


def claims(
    out: _Out = None,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print a list of objects instead of a table.")
    ] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", metavar="", help="Print Markdown with every number.")
    ] = False,
) -> None:
    """Check the paper's claims against stored results: holds, fails or undecided, and why; numbers with --markdown or --json.

    An experiment whose results cannot be used is left out, and a sentence on standard error says why. The exit status is 0 if none was left out, 1 if some were, and 2 if there is nothing else.
    """  # noqa: E501  (a line break here is one in the help)
    from ..mev.data import DataError
    from .claims import markdown
    from .run import judge_all, nothing
    from .store import StoreError

    if as_json and as_markdown:
        raise DataError("choose one of --json and --markdown")
    store = _store(out)
    left_out: list[LeftOut] = []
    judged = list(judge_all(store, say=left_out.append))
    if not any(each.results for each in judged):
        raise StoreError(nothing(store, left_out))
    found = [verdict for each in judged for verdict in each.verdicts]
    if as_json:
        print(json.dumps([verdict.to_dict() for verdict in found], indent=2, allow_nan=False))
    elif as_markdown:
        print(markdown(found), end="")
    else:
        _print_verdicts(found)
    _end(left_out)


def report(
    out: _Out = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="DIR", show_default="DIR/report, or maxmean-report", help="Where to write the report."),
    ] = None,
) -> None:
    """Write the report: one self-contained HTML page, the figures as PDF and PNG, the tables as CSV.

    An experiment whose results cannot be used is left out, and a sentence on standard error says why. The exit status is 0 if none was left out, 1 if some were, and 2 if there is nothing else.
    """  # noqa: E501  (a line break here is one in the help)
    from .report import write_report

    folder = Path(to) if to else Path(out) / "report" if out else Path("maxmean-report")
    left_out: list[LeftOut] = []
    print(f"Report: {write_report(_store(out), folder, say=left_out.append)}")
    _end(left_out)


def _end(left_out: Sequence[LeftOut]) -> None:
    """Say what was left out, and end with a status that tells whether something was."""
    _say(left_out)
    if left_out:
        raise typer.Exit(1)


def _say(left_out: Sequence[LeftOut]) -> None:
    from ..mev.show import escaped, shortened

    for each in left_out:
        typer.echo(f"left out: {shortened(escaped(str(each)), 500)}", err=True)


def _store(out: str | None) -> Store:
    from .run import SHIPPED
    from .store import Store

    return Store(out if out is not None else SHIPPED, create=False)


def _print_verdicts(verdicts: Sequence[Verdict]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..mev.show import escaped

    colours = {"holds": "green", "fails": "red", "undecided": "yellow"}
    table = Table("claim", "verdict", "statement", "scale", "experiment", box=None, header_style="bold", pad_edge=False)
    for v in verdicts:
        if v.scale == "none":
            continue  # never run here
        statement = Text(v.statement)
        if v.why:
            statement.append(f"\n{escaped(v.why)}", "dim")
        table.add_row(v.id, Text(v.verdict, colours[v.verdict]), statement, v.scale, v.experiment)
    Console(highlight=False).print(table)
