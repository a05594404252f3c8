"""What the laboratory says on a terminal: verdicts in a table, and how a run ends, which fits one screen."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from importlib.resources import files as packaged
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..mev.show import escaped
from .claims import BEYOND, COLOURS, TOO_SMALL, Verdict, by_origin

if TYPE_CHECKING:
    from rich.table import Table

    from .experiment import Experiment
    from .report import Report

WIDTH = 80
"""Columns of the smallest terminal that a run's end is written for."""


def print_verdicts(verdicts: Sequence[Verdict]) -> None:
    """A line for each claim of what was run, and what keeps it from holding; claims beyond the paper have their own table."""
    from rich.console import Console

    console = Console(highlight=False)
    papers, own = by_origin(
        [verdict for verdict in verdicts if verdict.scale != "none"]
    )  # the others were never run here
    if papers:
        console.print(_table(papers))
    if own:
        console.print(f"\n{BEYOND.capitalize()}:" if papers else f"{BEYOND.capitalize()}:", style="bold")
        console.print(_table(own))


def _table(verdicts: Sequence[Verdict]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table("claim", "verdict", "statement", "scale", "experiment", box=None, header_style="bold", pad_edge=False)
    for verdict in verdicts:
        statement = Text(verdict.statement)
        if verdict.why:
            statement.append(f"\n{escaped(verdict.why)}", "dim")
        judged = Text(verdict.label, COLOURS[verdict.verdict])
        table.add_row(verdict.id, judged, statement, verdict.scale, verdict.experiment)
    return table


def print_closing(experiments: Sequence[Experiment[Any]], scale: str, seconds: float, report: Report) -> None:
    """How a run ends: what ran, the verdicts if the scale can judge, where the report is and what to try next."""
    names = [experiment.name for experiment in experiments]
    several = f"{len(names)} experiments" if len(names) > 1 else "1 experiment"
    _print(f"{several} at the {scale} scale in {seconds:.0f} s: {', '.join(names)}.")
    judged = [verdict for verdict in report.verdicts if verdict.verdict != TOO_SMALL]
    small = [verdict for verdict in report.verdicts if verdict.verdict == TOO_SMALL]
    print_verdicts(judged)
    for whose, some in zip(("the paper's claims", f"claims {BEYOND}:"), by_origin(small), strict=True):
        if some:
            _print(f"Too small to judge {whose} {', '.join(_spans([verdict.id for verdict in some]))}.")
    if "ads" in names:
        print()
        _print(about_the_ads())
    if small:
        print("\nNext, try:")
        commands = {
            f"{_program()} estimate {_path(_ads())}": "every estimator",
            f"{_program()} claims": "the verdicts",
            f"{_program()} reproduce --scale paper --out results": "ten minutes",
        }
        for command, what in commands.items():
            print(f"  {command:<{max(map(len, commands))}}  # {what}")
    print(f"Report: {report.page}")


def about_the_ads() -> str:
    """What is to be learned from the ads that come with the package."""
    import pandas as pd

    from ..mev.estimate import estimate

    clicks = pd.read_csv(_ads())
    rates = clicks.groupby("ad")["clicked"].mean()
    found = estimate(clicks, "ke", by="ad", value="clicked")
    return (
        f"The {len(rates)} ads that come with maxmean: {rates.idxmax()} has the highest click rate, {rates.max():.4f}, but "
        f"was picked for it; a fairer value of the best is {found.value:.4f} (ke)."
    )


def _program() -> str:
    """How this program is called here: one that was installed beside the work is not found by its name."""
    called = Path(sys.argv[0])
    return _path(called) if called.name == "maxmean" and not shutil.which("maxmean") else "maxmean"


def _ads() -> Path:
    return Path(str(packaged("maxmean") / "data" / "ads.csv"))


def _path(path: Path) -> str:
    """A path as one would type it here."""
    here = os.path.relpath(path)
    return here if len(here) < len(str(path)) else str(path)


def _spans(ids: Sequence[str]) -> list[str]:
    """Claims that follow each other, from the first to the last of each letter.

    >>> _spans(["S1", "S2", "S3", "A1", "M2"])
    ['S1-S3', 'A1', 'M2']
    """
    letters = dict.fromkeys(name[0] for name in ids)
    ends = [[name for name in ids if name[0] == letter] for letter in letters]
    return [own[0] if len(own) == 1 else f"{own[0]}-{own[-1]}" for own in ends]


def _print(text: str) -> None:
    print(textwrap.fill(text, WIDTH, break_on_hyphens=False))
