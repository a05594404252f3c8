"""The command line in this process, for tests whose point is not a process of its own: one takes a second to begin."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from maxmean import cli

COMMANDS = typer.main.get_command(cli.app)
"""What Typer makes of the signatures, once for all commands: it takes longer than most of them."""


@dataclass(frozen=True)
class Answer:
    """How a command ended and what it said; named as in ``subprocess``."""

    returncode: object
    stdout: str
    stderr: str


def maxmean(*arguments: object, cwd: Path | None = None, stdin: bytes | None = None, columns: int = 200) -> Answer:
    """``maxmean`` with these arguments, for a terminal of so many columns."""
    out, err = _stream(), _stream()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("COLUMNS", str(columns))
        patch.setattr(cli, "app", COMMANDS)
        patch.setattr(sys, "argv", ["maxmean", *map(str, arguments)])
        if stdin is not None:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        if cwd is not None:
            patch.chdir(cwd)
        status = cli.run()
    return Answer(status, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def _stream() -> Any:
    """Text that goes on as bytes, as standard output is."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True)
