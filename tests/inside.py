"""The command line in this process, for tests whose point is not a process of its own: one takes a second to begin."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from maxmean import cli


@dataclass(frozen=True)
class Answer:
    """How a command ended and what it said; named as in ``subprocess``."""

    returncode: object
    stdout: str
    stderr: str


def maxmean(*arguments: str, cwd: Path | None = None) -> Answer:
    """``maxmean`` with these arguments, on a wide terminal."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("COLUMNS", "200")
        patch.setattr(sys, "argv", ["maxmean", *arguments])
        if cwd is not None:
            patch.chdir(cwd)
        with pytest.raises(SystemExit) as end:
            cli.main()
    return Answer(end.value.code or 0, out.getvalue(), err.getvalue())
