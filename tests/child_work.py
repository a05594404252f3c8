"""Work for child processes, which import it by name: they do not know the test files."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path


def tell_about(connection: Connection, name: str) -> None:
    connection.send((os.environ.get(name), os.getpgid(0) == os.getpid()))


def wait_for_ctrl_c(connection: Connection, path: Path) -> None:
    try:
        connection.send("ready")  # whoever hears it may press Ctrl-C before we go on
        time.sleep(60)
    except KeyboardInterrupt:
        path.write_text("kept")
        raise


def be_deaf(connection: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection.send("ready")
    time.sleep(60)


def die(connection: Connection) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def say_who_and_wait(connection: Connection) -> None:
    """The work of a child process that has nothing to do."""
    connection.send(os.getpid())
    time.sleep(60)
