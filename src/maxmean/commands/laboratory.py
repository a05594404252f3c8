"""The laboratory on the command line: ``maxmean reproduce``, ``list``, ``claims`` and ``report``."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import missing

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ..lab.experiment import Shard
    from ..lab.loading import LeftOut
    from ..lab.run import ExperimentJob
    from ..lab.store import Store

DEFAULT_OUT = "maxmean-results"

_From = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="DIR", show_default="the results that come with maxmean", help="Where to read results from."
    ),
]


def _old(name: str) -> Any:
    """An option as it was once spelt, which is not shown and gets a sentence."""
    return typer.Option(name, metavar="DIR", hidden=True)


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
            "--dry-run", metavar="", help="Only print how much work is left; for minatar after a short calibration."
        ),
    ] = False,
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Where results are kept.")] = DEFAULT_OUT,
    engine: Annotated[
        str | None,
        typer.Option(
            show_default="processes; for minatar gpu, or inline without one", help="inline, processes, gpu or ray."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            show_default="all cores; on a GPU by a short calibration",
            help="Processes at once; on a GPU, shards side by side.",
        ),
    ] = None,
    address: Annotated[
        str | None, typer.Option(show_default="a local one", help="A running Ray cluster, such as auto or HOST:6379.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="No progress and no summary.")] = False,
) -> None:
    """Run the paper's experiments. Stop it at any time: the same command resumes.

    Ends with a report: one HTML page with every figure and the verdict on every claim that the scale can judge.

    The exit status is 1 if some of the results could not be computed or shown; the others are kept.
    """
    from rich.console import Console

    from ..lab.closing import print_closing
    from ..lab.engines import make_engine
    from ..lab.experiments import find_experiments
    from ..lab.gpu import has_gpu
    from ..lab.progress import make_reporter
    from ..lab.report import check_report, write_report
    from ..lab.run import ExperimentJob, left_to_do
    from ..lab.run import reproduce as run
    from ..lab.store import Store
    from . import CommandError

    if seed < 0:
        raise CommandError(f"seed must not be negative, not {seed}")
    experiments = find_experiments(names or [])
    for experiment in [e for e in experiments if e.missing]:
        if names:
            raise CommandError(str(experiment.missing))
        typer.echo(f"left out: {experiment.missing}", err=True)
        experiments.remove(experiment)
    jobs = [ExperimentJob.of(experiment, scale, changes or ()) for experiment in experiments]
    console = Console(stderr=True, quiet=quiet)
    for job in jobs:
        for remark in job.experiment.remarks(job.settings):
            console.print(remark, markup=False, highlight=False)
    wants_gpu = any(job.experiment.on_gpu(job.settings) is not None for job in jobs)
    usual = "processes" if not wants_gpu else "gpu" if has_gpu() else "inline"
    chosen = make_engine(engine or usual, workers, address, None if quiet else console)
    if dry_run:
        if wants_gpu and has_gpu() and engine in ("processes", "ray"):
            console.print(
                "What follows is for --engine gpu, several shards at once on this machine's GPU.", markup=False
            )
        at_once, there = 1 if engine == "inline" else workers, Store.found(out)
        for job in jobs:
            _foretell(job, left_to_do(job, there, seed), out, at_once, console)
        return
    store = Store(out)
    folder = store.root / "report"
    check_report(store, folder)  # now, not after hours of computing
    begin = time.monotonic()
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
        scale = jobs[0].scale
        written = write_report(store, folder, (scale, seed), left_out.append)
        if not quiet:
            print_closing(experiments, scale, time.monotonic() - begin, written)
    _say(left_out)
    if summary.failed or any(each.experiment in asked for each in left_out):
        raise typer.Exit(1)


def _foretell(job: ExperimentJob, left: Sequence[Shard], out: str, workers: int | None, console: Console) -> None:
    """Print what the shards that are left will take, and how many are there already."""
    experiment, every = job.experiment, len(job.experiment.parts(job.settings))
    if not left:
        print(f"{experiment.name}: all {every} shards are in {out!r} already")
        return
    if len(left) < every:
        print(f"{experiment.name}: {every - len(left)} of {every} shards are in {out!r} already; for the others:")
    print(experiment.forecast(job.settings, left, lambda text: console.print(text, markup=False), workers))


def list_experiments(
    names: Annotated[
        bool,
        typer.Option(
            "--names", metavar="", help="Print the names of the experiments that run by default, one per line."
        ),
    ] = False,
) -> None:
    """List the experiments, with their section of the paper and the claims they judge, the agents and the environments."""
    from rich.console import Console
    from rich.table import Column, Table

    from ..lab.experiments import EXPERIMENTS, find_experiments

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
    console.print(_agents())
    console.print()
    if find_spec("jax") is None:
        console.print(missing("the list of environments", "jax"), markup=False, soft_wrap=True)
    else:
        console.print(_environments())


def _agents() -> Table:
    """The agents as ``maxmean train --agent`` takes them; a number or a kernel may follow the colon."""
    from rich.table import Column, Table
    from rich.text import Text

    from ..deep.registry import REGISTRY, sentences

    said = sentences()
    table = Table(Column("agent", no_wrap=True), "what it is", box=None, header_style="bold")
    for each in REGISTRY:
        table.add_row(each.usage, Text(said[each.name]))
    return table


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
    source: _From = None,
    out: Annotated[str | None, _old("--out")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print a list of objects instead of a table.")
    ] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", metavar="", help="Print Markdown with every number.")
    ] = False,
) -> None:
    """Check the paper's claims against stored results: holds, holds in part, fails or undecided, and why; numbers with --markdown or --json.

    A claim is judged if at least as much was measured as at the paper's scale (for MinAtar: its study); otherwise the verdict is 'too small to judge'.

    An experiment whose results cannot be used is left out, and a sentence on standard error says why. The exit status is 0 if none was left out, 1 if some were, and 2 if there is nothing else.
    """  # noqa: E501  (a line break here is one in the help)
    from ..lab.claims import markdown
    from ..lab.closing import print_verdicts
    from ..lab.run import judge_all, nothing
    from ..lab.store import StoreError
    from . import CommandError

    if as_json and as_markdown:
        raise CommandError("choose one of --json and --markdown")
    if out is not None:
        raise CommandError(f"claims reads results and writes none: type --from {shlex.quote(out)} instead of --out")
    store = _store(source)
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
        print_verdicts(found)
    _end(left_out)


def report(
    source: _From = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="DIR",
            show_default="report in the folder of --from, or maxmean-report",
            help="Where to write.",
        ),
    ] = None,
    to: Annotated[str | None, _old("--to")] = None,
) -> None:
    """Write the report: one self-contained HTML page, the figures as PDF and PNG, the tables as CSV.

    An experiment whose results cannot be used is left out, and a sentence on standard error says why. The exit status is 0 if none was left out, 1 if some were, and 2 if there is nothing else.
    """  # noqa: E501  (a line break here is one in the help)
    from ..lab.report import write_report
    from ..lab.store import holds_results
    from . import CommandError

    if to is not None:
        raise CommandError(
            f"a report is written to --out: type --out {shlex.quote(to)} instead of --to, and --from for results"
        )
    if out is not None and source is None and holds_results(out):
        raise CommandError(
            f"{out!r} holds results: type --from {shlex.quote(out)} to read them; --out is where to write"
        )
    folder = Path(out) if out else Path(source) / "report" if source else Path("maxmean-report")
    left_out: list[LeftOut] = []
    print(f"Report: {write_report(_store(source), folder, say=left_out.append).page}")
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


def _store(source: str | None) -> Store:
    from ..lab.run import SHIPPED
    from ..lab.store import Store

    return Store(source if source is not None else SHIPPED, create=False)
