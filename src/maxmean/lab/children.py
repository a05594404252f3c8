"""Child processes, one for each piece of work: who dies is known, and what it held of a GPU is free when it ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from typing import Any

PATIENCE = 60.0
"""Seconds that a child has to keep what it has done."""


class LostError(Exception):
    """A child ended without a word; the message says how."""


class Child:
    """A function under way in a process of its own; the two talk over a pipe.

    It starts with ``environment`` beside ours, because JAX and CUDA look at theirs once, when they are imported. Ctrl-C on the
    terminal reaches the parent alone, which passes it on (:func:`stop`). A child ends soon after its parent; one that does not
    follow it finds the pipe closed, and ends by itself.
    """

    def __init__(
        self, work: Callable[..., None], *arguments: Any, environment: Mapping[str, str], follows: bool = True
    ) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        told = (theirs, os.getpid() if follows else None, work, arguments)
        self.process = context.Process(target=_begin, args=told, daemon=follows)
        with _environment(environment), _deaf():
            self.process.start()
        theirs.close()

    def tell(self, message: Any) -> None:
        """Send it something."""
        try:
            self.connection.send(message)
        except OSError:
            raise LostError(self._end()) from None

    def hear(self) -> Any:
        """Wait for its next message."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            raise LostError(self._end()) from None

    def end(self) -> None:
        """Wait for the end of one that has said its last word."""
        self.process.join()
        self.connection.close()

    def _end(self) -> str:
        self.process.join(PATIENCE)
        code = self.process.exitcode
        if code is not None and code < 0:
            return f"its process was killed by {signal.Signals(-code).name}"
        return f"its process ended with status {code}"


def stop(children: Iterable[Child], patience: float = PATIENCE) -> None:
    """End children: as by Ctrl-C, after which a training keeps a checkpoint, and at once when their time is up."""
    children = list(children)
    deadline = time.monotonic() + patience
    try:
        for child in children:
            child.connection.close()  # nobody waits for a reader who has gone
            if child.process.is_alive() and child.process.pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(child.process.pid, signal.SIGINT)
        for child in children:
            child.process.join(max(0.0, deadline - time.monotonic()))
    finally:  # also when a second Ctrl-C came while we waited
        for child in children:
            child.process.kill()
            child.process.join()


def follow(parent: int) -> None:
    """End this process soon after its parent has."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """In here the environment has these variables; a process that is started takes them along."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _deaf() -> Iterator[None]:
    """A process that is started in here hears of Ctrl-C when it has begun: while it imports, it could only print a traceback."""
    resource_tracker.ensure_running()  # which multiprocessing starts beside the first child, and which is deaf itself
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(connection: Connection, parent: int | None, work: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """In the child. It ends here, without what Python does at the end: a library's thread could keep it from ending."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if parent is not None:
        follow(parent)
    status = 1
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        work(connection, *arguments)
        status = 0
    except KeyboardInterrupt:
        status = 130
    except (EOFError, BrokenPipeError):
        pass  # nobody listens any more
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        try:
            for stream in (sys.stdout, sys.stderr):
                with suppress(AttributeError, OSError, ValueError):
                    stream.flush()
        finally:  # also if we are told to stop just now
            os._exit(status)
