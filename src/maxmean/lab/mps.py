"""NVIDIA's multi-process service (MPS): with it the kernels of several programs overlap on one GPU, without it they take turns.

A running service is used as it is. Otherwise one is started, with a pipe of its own, so that nobody else's programs meet it, and
stopped at the end. A process that does nothing else holds it, and stops it even if this one is killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

from .children import Child, LostError, stop

CONTROL = "nvidia-cuda-mps-control"
"""The program that starts the service, and passes it commands on standard input."""
SOON = 10.0
"""Seconds within which a service answers that has begun well."""


@contextmanager
def multi_process_service(say: Callable[[str], None]) -> Iterator[dict[str, str] | None]:
    """The variables that a program needs to use the service; None where there is no service, and ``say`` hears why."""
    if shutil.which(CONTROL) is None:
        say(f"NVIDIA's multi-process service ({CONTROL}) is not installed.")
        yield None
    elif _answers({}):
        yield {}
    else:
        holder = Child(_hold, environment={}, follows=False)
        try:
            try:
                variables = holder.hear()
            except LostError:
                variables = None
            if variables is None:
                say(f"NVIDIA's multi-process service ({CONTROL}) does not start here.")
            yield variables
        finally:
            stop([holder])


def _hold(connection: Connection) -> None:
    """In a process of its own: start a service, say where it is, and stop it when nobody is at the other end any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end of the pipe is the sign
    with tempfile.TemporaryDirectory(prefix="maxmean-mps-", ignore_cleanup_errors=True) as folder:
        variables = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        try:
            connection.send(variables if _start(variables) else None)
            with suppress(EOFError, OSError):
                connection.recv()
        finally:
            _command("quit", variables)


def _start(variables: Mapping[str, str]) -> bool:
    """Start a service where these variables lead; whether it answers."""
    nul = subprocess.DEVNULL  # it keeps what it is given as its output, so that a pipe would never end
    deadline = time.monotonic() + SOON
    try:
        subprocess.run(
            [CONTROL, "-d"], env=os.environ | variables, stdin=nul, stdout=nul, stderr=nul, timeout=SOON, check=True
        )
        while not (answers := _answers(variables)) and time.monotonic() < deadline:
            time.sleep(0.1)
    except (OSError, subprocess.SubprocessError):
        return False
    return answers


def _answers(variables: Mapping[str, str]) -> bool:
    """Whether there is a service where these variables lead: one that is there answers this question with a number."""
    try:
        float(_command("get_default_active_thread_percentage", variables))
    except ValueError:
        return False
    return True


def _command(text: str, variables: Mapping[str, str]) -> bytes:
    """Pass a command to the service: its answer, which is empty if there is none."""
    try:
        return subprocess.run(
            [CONTROL],
            input=f"{text}\n".encode(),
            env=os.environ | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SOON,
            check=False,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return b""
