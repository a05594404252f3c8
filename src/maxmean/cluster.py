"""Ray clusters: join one or start one, and have it compute tasks that outlive the machines they are computed on."""

from __future__ import annotations

import logging
import os
import re
import socket
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from .errors import MaxmeanError, missing

ATTEMPTS = 3
"""How often a task is tried before it is reported as failed."""
MOST_WORKERS = 1_024
"""How many processes may compute at once."""

T = TypeVar("T")


class ClusterError(MaxmeanError):
    """An engine that is not there, or no cluster where one should be; the message says what to do."""


@dataclass(frozen=True)
class Lost:
    """What came of a task whose process, machine or code failed: nothing but the reason."""

    reason: str


def check_engine(name: str, known: Sequence[str], workers: int | None, address: str | None) -> None:
    """Refuse an engine that there is not, too many workers, and an address that nobody would look at.

    >>> check_engine("cluster", ("local", "ray"), None, None)
    Traceback (most recent call last):
    maxmean.cluster.ClusterError: unknown engine 'cluster' (there are local, ray)
    """
    if workers is not None and not 1 <= workers <= MOST_WORKERS:
        raise ClusterError(f"workers must be a whole number from 1 to {MOST_WORKERS:,}, not {workers}")
    if name not in known:
        raise ClusterError(f"unknown engine {name!r} (there are {', '.join(known)})")
    if address is not None and name != "ray":
        raise ClusterError('an address goes with the ray engine: engine="ray" (--engine ray)')


def found(address: str | None) -> Any:
    """Ray, if it is installed and something like a cluster answers at the address; a sentence if not, before anything is done."""
    try:
        import ray
    except ImportError:
        raise ClusterError(missing("the ray engine", "ray")) from None
    if not ray.is_initialized():
        check_reachable(address)
    return ray


@contextmanager
def joined(
    address: str | None,
    workers: int | None,
    *,
    ray: Any = None,
    aloud: bool = False,
    say: Callable[[str], None] = lambda sentence: None,
) -> Iterator[Any]:
    """Ray, in a cluster: a running one at ``address``, or one started on this machine for the occasion, with so many workers.

    ``ray`` is what :func:`found` gave, if it was asked already. With ``aloud`` one hears what tasks print, wherever they are
    computed. ``say`` hears that one is started.
    """
    ray = ray or found(address)
    started = not ray.is_initialized()
    if started:
        local = {"address": "local", "num_cpus": workers or cores(), "include_dashboard": False}
        if address is None:
            tasks = _counted(workers or cores(), "task")
            say(f"Starting Ray on this machine for {tasks} at once; address= (--address) joins a running cluster.")
        try:
            with warnings.catch_warnings():  # of JAX: what is forked there becomes another program at once
                warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
                where = {"address": address} if address else local
                ray.init(**where, log_to_driver=aloud, logging_level=logging.ERROR)
        except Exception as error:  # of many kinds: no cluster, another version of Ray or Python, no room to start one
            nowhere = f"no Ray cluster answers at {address!r}" if address else "Ray does not start here"
            raise ClusterError(f"{nowhere}: {_first_line(error)}") from None
    try:
        yield ray
    finally:
        if started:
            ray.shutdown()


def gpus(ray: Any) -> int:
    """How many GPUs the cluster has."""
    return int(ray.cluster_resources().get("GPU", 0))


def described(ray: Any) -> str:
    """The cluster in words."""
    parts = [_counted(int(ray.cluster_resources().get("CPU", 0)), "CPU")]
    parts += [_counted(gpus(ray), "GPU")] if gpus(ray) else []
    return f"a Ray cluster with {' and '.join(parts)}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def drain(
    ray: Any,
    tasks: Sequence[T],
    send: Callable[[T], Any],
    again: Callable[[T, Any], bool],
    *,
    room: int | None = None,
    beat: Callable[[], None] | None = None,
) -> Generator[tuple[T, Any], None, None]:
    """Each task with what came of it (:class:`Lost` if nothing did), as they end; one that ``again`` is true of is sent again.

    At most ``room`` of them are with the cluster at once, by default all. ``beat`` is called about once a second. Tasks that are
    with the cluster when nobody listens any more are called off.
    """
    waiting, running = deque(tasks), dict[Any, T]()
    try:
        while waiting or running:
            while waiting and (room is None or len(running) < room):
                task = waiting.popleft()
                running[send(task)] = task
            ended, _ = ray.wait(list(running), num_returns=1, timeout=None if beat is None else 1.0)
            if beat is not None:
                beat()
            for reference in ended:
                task = running.pop(reference)
                try:
                    outcome = ray.get(reference)
                except ray.exceptions.RayError as error:
                    outcome = Lost(_first_line(getattr(error, "cause", None) or error))
                if again(task, outcome):
                    waiting.append(task)
                else:
                    yield task, outcome
    finally:
        for reference in running:
            ray.cancel(reference, force=True)


def check_reachable(address: str | None) -> None:
    """Refuse an address where no cluster can be; Ray itself would try for minutes, or import what the address names."""
    if address in (None, "auto", "local"):
        return
    place = re.fullmatch(r"(?:ray://)?(?:\[([0-9a-fA-F:]+)\]|([\w.-]+)):([0-9]{1,5})", address)
    if place is None or not 0 < int(place[3]) < 2**16:
        raise ClusterError(f"the address of a Ray cluster is auto, HOST:PORT or ray://HOST:PORT, not {address!r}")
    try:
        with socket.create_connection((place[1] or place[2], int(place[3])), timeout=10) as talk:
            if "RAY_USE_TLS" not in os.environ and not _speaks_http2(talk):
                raise ClusterError(
                    f"no Ray cluster answers at {address!r}: something else does; by default it has port 6379"
                )
    except OSError as error:
        raise ClusterError(f"no Ray cluster answers at {address!r}: {error.strerror or error}") from None


def _speaks_http2(talk: socket.socket) -> bool:
    """Whether what listens begins as every gRPC server does: a client's preface is answered with a frame of settings."""
    preface, settings = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 4
    talk.sendall(preface + bytes([0, 0, 0, settings, 0, 0, 0, 0, 0]))
    head = b""
    while len(head) < 4 and (more := talk.recv(9)):
        head += more
    return len(head) >= 4 and head[3] == settings


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
