"""Facts about Ray clusters: what is no cluster gets a sentence, and tasks that are lost are sent again."""

from __future__ import annotations

import socket
import sys
import threading
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from inside import maxmean
from maxmean.cluster import ClusterError, Lost, drain, joined

PREFACE = 33
"""Bytes with which a client of gRPC begins; one that closes before it has read them resets the connection."""


def join(address: str | None) -> None:
    with joined(address, None):
        pass


def test_a_ray_address_where_nobody_listens_is_refused_at_once() -> None:
    with pytest.raises(ClusterError, match=r"no Ray cluster answers at '127.0.0.1:9'"):
        join("127.0.0.1:9")


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("127.0.0.1:1", "no Ray cluster answers at '127.0.0.1:1': Connection refused"),
        ("ray://127.0.0.1:1", "no Ray cluster answers at 'ray://127.0.0.1:1': Connection refused"),
        ("[::1", "the address of a Ray cluster is auto, HOST:PORT or ray://HOST:PORT, not '[::1'"),
        (":6379", "the address of a Ray cluster is auto, HOST:PORT or ray://HOST:PORT, not ':6379'"),
        ("anyscale://me", "the address of a Ray cluster is auto, HOST:PORT or ray://HOST:PORT, not 'anyscale://me'"),
        (
            "127.0.0.1:99999",
            "the address of a Ray cluster is auto, HOST:PORT or ray://HOST:PORT, not '127.0.0.1:99999'",
        ),
        ("", "the address of a Ray cluster is auto, HOST:PORT or ray://HOST:PORT, not ''"),
    ],
)
def test_a_ray_address_that_leads_nowhere_is_one_sentence(tmp_path: Path, address: str, sentence: str) -> None:
    run = maxmean("reproduce", "ads", "--engine", "ray", "--address", address, "--quiet", "--out", tmp_path / "out")
    assert run.returncode == 2
    assert run.stderr == f"maxmean: {sentence}\n"


def test_something_else_that_listens_is_no_cluster() -> None:
    """Ray would try for minutes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def answer() -> None:
            talk, _ = server.accept()
            with talk:
                talk.settimeout(60)
                asked = b""
                while len(asked) < PREFACE and (more := talk.recv(PREFACE)):
                    asked += more
                talk.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ClusterError, match=f"no Ray cluster answers at '{address}': something else does"):
            join(address)
        thread.join()


@pytest.mark.parametrize("error", [RuntimeError, ConnectionError, ValueError, OSError, SystemError])
@pytest.mark.parametrize("address", [None, "auto"])
def test_rays_refusal_is_one_line(monkeypatch: pytest.MonkeyPatch, error: type[Exception], address: str | None) -> None:
    def init(**options: object) -> None:
        raise error("Version mismatch: the cluster has Ray 1.0\nTraceback: a page of it")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False, init=init))
    with pytest.raises(ClusterError) as refusal:
        join(address)
    where = "no Ray cluster answers at 'auto'" if address else "Ray does not start here"
    assert str(refusal.value) == f"{where}: Version mismatch: the cluster has Ray 1.0"


def test_without_ray_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ClusterError, match="the ray engine needs the package ray, which is not installed"):
        join(None)


class LostError(Exception):
    """As Ray says it."""


def pool(*outcomes: Any) -> Any:
    """A Ray whose tasks, in the order in which they are sent, end with these outcomes."""

    def get(reference: int) -> Any:
        if isinstance(outcomes[reference], Exception):
            raise outcomes[reference]
        return outcomes[reference]

    def wait(references: list[int], num_returns: int, timeout: float | None) -> tuple[list[int], list[int]]:
        assert len(references) <= 2
        return references[:num_returns], references[num_returns:]

    def cancel(reference: int, *, force: bool) -> None:
        assert force
        found.cancelled.append(reference)

    found = SimpleNamespace(
        get=get, wait=wait, cancel=cancel, cancelled=[], exceptions=SimpleNamespace(RayError=LostError)
    )
    return found


def test_a_lost_task_is_sent_again_if_that_is_wanted() -> None:
    """Two at once: a is lost, b ends, c is lost, a ends at its second attempt; c is not wanted again."""
    sent: list[str] = []
    beats: Counter[str] = Counter()

    def send(task: str) -> int:
        sent.append(task)
        return len(sent) - 1

    found = drain(
        pool(LostError("The worker died.\nA page of it"), 2, LostError(""), 4),
        "abc",
        send,
        lambda task, outcome: task == "a" and isinstance(outcome, Lost),
        room=2,
        beat=lambda: beats.update(["beat"]),
    )
    assert list(found) == [("b", 2), ("c", Lost("LostError")), ("a", 4)]
    assert sent == ["a", "b", "c", "a"]
    assert beats["beat"] == 4


@pytest.mark.parametrize("ended", [0, 1, 2])
def test_whoever_stops_listening_leaves_no_task_behind(ended: int) -> None:
    """Three tasks, two at once: those that are with the cluster are called off, and no others."""
    ray, references = pool(1, 2, 3), iter(range(3))
    found = drain(ray, "abc", lambda task: next(references), lambda task, outcome: False, room=2)
    for _ in range(ended):
        next(found)
    found.close()
    assert ray.cancelled == {0: [], 1: [1], 2: [2]}[ended]
    whole = pool(1, 2)
    assert list(drain(whole, "ab", "ab".index, lambda task, outcome: False)) == [("a", 1), ("b", 2)]
    assert whole.cancelled == []
