"""The command ``maxmean``: what it runs is in :mod:`maxmean.commands`; here is how it begins, fails and ends."""

from __future__ import annotations

import atexit
import io
import os
import sys
import threading
import warnings
from contextlib import suppress
from typing import Annotated, NoReturn, TextIO

import typer

from . import __version__
from .commands.estimate import estimate
from .commands.laboratory import claims, list_experiments, report, reproduce
from .commands.plan import plan
from .commands.train import train
from .commands.watch import watch
from .errors import MaxmeanError

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


for _command in (estimate, plan, reproduce, claims, report, train, watch):
    app.command()(_command)
app.command(name="list")(list_experiments)


if __name__ == "__main__":
    main()
