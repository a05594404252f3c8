"""The laboratory on the command line: ``maxmean reproduce``, ``list``, ``claims`` and ``report``."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

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
    """
    from rich.console import Console

    from ..mev.data import DataError
    from .engines import make_engine
    from .experiments import find_experiments
    from .progress import make_reporter
    from .report import write_report
    from .run import Job
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
    if len({outcome.shard.experiment for outcome in summary.failed}) < len(experiments):
        shown = (jobs[0].scale, seed)
        page = write_report(store, store.root / "report", shown)
        if not quiet:
            _print_verdicts(store, shown)
            print(f"Report: {page}")
    if summary.failed:
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
        console.print("The environments need jax: pip install 'maxmean[jax]'", markup=False)
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
    """Check the paper's claims against stored results: holds, fails or undecided, and why; numbers with --markdown or --json."""
    from ..mev.data import DataError
    from .claims import markdown
    from .run import verdicts

    store = _store(out)
    if as_json and as_markdown:
        raise DataError("choose one of --json and --markdown")
    if as_json:
        print(json.dumps([verdict.to_dict() for verdict in verdicts(store)], indent=2, allow_nan=False))
    elif as_markdown:
        print(markdown(verdicts(store)), end="")
    else:
        _print_verdicts(store)


def report(
    out: _Out = None,
    to: Annotated[
        str | None,
        typer.Option(metavar="DIR", show_default="DIR/report, or maxmean-report", help="Where to write the report."),
    ] = None,
) -> None:
    """Write the report: one self-contained HTML page, the figures as PDF and PNG, the tables as CSV."""
    from .report import write_report

    folder = Path(to) if to else Path(out) / "report" if out else Path("maxmean-report")
    print(f"Report: {write_report(_store(out), folder)}")


def _store(out: str | None) -> Store:
    from .run import SHIPPED
    from .store import Store

    return Store(out if out is not None else SHIPPED, create=False)


def _print_verdicts(store: Store, prefer: tuple[str, int] | None = None) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from .run import verdicts

    colours = {"holds": "green", "fails": "red", "undecided": "yellow"}
    table = Table("claim", "verdict", "statement", "scale", "experiment", box=None, header_style="bold", pad_edge=False)
    for v in verdicts(store, prefer):
        if v.scale == "none":
            continue  # never run here
        statement = Text(v.statement)
        if v.why:
            statement.append(f"\n{v.why}", "dim")
        table.add_row(v.id, Text(v.verdict, colours[v.verdict]), statement, v.scale, v.experiment)
    Console(highlight=False).print(table)
