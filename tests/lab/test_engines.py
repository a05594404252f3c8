"""Facts about the engines: they agree to the bit, retry, report what fails and go on."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from inside import maxmean
from maxmean.lab.engines import ATTEMPTS, Inline, Processes, ShardEngine, Task, make_engine
from maxmean.lab.errors import LabError
from seldom import mostly_slow
from toys import Settings, Toy

ENGINES: dict[str, Callable[[], ShardEngine]] = {
    "inline": Inline,
    "one process": lambda: Processes(1),
    "two processes": lambda: Processes(2),
}


def tasks(settings: Settings = Settings(), seed: int = 0) -> list[Task]:  # noqa: B008
    toy = Toy(settings)
    return [Task(toy, settings, shard, Path("nowhere")) for shard in toy.shards(settings, seed)]


def tables(engine: ShardEngine, settings: Settings = Settings()) -> dict[str, bytes | None]:  # noqa: B008
    return {outcome.shard.key: outcome.table for outcome in engine.run(tasks(settings))}


@pytest.mark.parametrize("name", [n for n in ENGINES if n != "inline"])
def test_engines_agree_to_the_bit(name: str) -> None:
    expected = tables(Inline())
    assert len(expected) == 6
    assert tables(ENGINES[name]()) == expected


@pytest.mark.parametrize("name", mostly_slow(ENGINES, ["inline", "two processes"]))
def test_a_shard_that_always_fails_is_reported_and_the_others_go_on(name: str) -> None:
    outcomes = list(ENGINES[name]().run(tasks(Settings(trouble="raise"))))
    failed = [outcome for outcome in outcomes if outcome.table is None]
    assert len(outcomes) == 6
    assert [outcome.shard.part for outcome in failed] == [{"shard": 2}]
    assert "shard 2 always fails" in failed[0].error


@pytest.mark.parametrize("name", mostly_slow(ENGINES, ["inline", "two processes"]))
def test_a_shard_that_fails_once_is_tried_again(name: str, tmp_path: Path) -> None:
    found = tables(ENGINES[name](), Settings(trouble=str(tmp_path / "tried")))
    assert len(found) == 6
    assert None not in found.values()


def test_a_shard_that_kills_its_process_is_found_and_the_others_go_on() -> None:
    outcomes = list(Processes(2).run(tasks(Settings(trouble="die"))))
    assert len(outcomes) == 6
    (failed,) = [outcome for outcome in outcomes if outcome.table is None]
    assert failed.shard.part == {"shard": 2}
    assert "killed" in failed.error


def test_a_killing_shard_is_tried_as_often_as_any_other(tmp_path: Path) -> None:
    log = tmp_path / "log"
    list(Processes(2).run(tasks(Settings(shards=4, trouble=f"die and log {log}"))))
    assert log.read_text().count("x") == ATTEMPTS


def test_a_ray_address_where_nobody_listens_is_refused_at_once() -> None:
    with pytest.raises(LabError, match=r"no Ray cluster answers at '127.0.0.1:9'"):
        next(make_engine("ray", None, "127.0.0.1:9").run(tasks()))


def test_stopping_early_stops_the_work() -> None:
    outcomes = Processes(2).run(tasks(Settings(shards=500)))
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]


def test_engines_by_name() -> None:
    assert isinstance(make_engine("inline", None, None), Inline)
    assert make_engine("processes", 3, None).workers == 3  # type: ignore[attr-defined]
    assert ATTEMPTS > 1
    for arguments, sentence in {
        ("cluster", None, None): "unknown engine 'cluster'",
        ("processes", 0, None): "workers must be a whole number from 1 to 1,024, not 0",
        ("processes", None, "auto"): "an address goes with the ray engine",
    }.items():
        with pytest.raises(LabError, match=sentence):
            make_engine(*arguments)


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
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def answer() -> None:
            talk, _ = server.accept()
            with talk:
                talk.recv(100)
                talk.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(LabError, match=f"no Ray cluster answers at '{address}': something else does"):
            next(make_engine("ray", None, address).run(tasks()))
        thread.join()


@pytest.mark.parametrize("error", [RuntimeError, ConnectionError, ValueError, OSError, SystemError])
@pytest.mark.parametrize("address", [None, "auto"])
def test_rays_refusal_is_one_line(monkeypatch: pytest.MonkeyPatch, error: type[Exception], address: str | None) -> None:
    def init(**options: object) -> None:
        raise error("Version mismatch: the cluster has Ray 1.0\nTraceback: a page of it")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False, init=init))
    with pytest.raises(LabError) as refusal:
        next(make_engine("ray", None, address).run(tasks()))
    where = "no Ray cluster answers at 'auto'" if address else "Ray does not start here"
    assert str(refusal.value) == f"{where}: Version mismatch: the cluster has Ray 1.0"


def test_without_ray_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(LabError, match="the ray engine needs the package ray, which is not installed"):
        next(make_engine("ray", None, None).run(tasks()))
