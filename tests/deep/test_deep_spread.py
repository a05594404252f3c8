"""A training spread over a cluster: lost tasks go on where they were, and the directory is that of an undisturbed training."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from killing import content
from maxmean import deep
from maxmean.cluster import ATTEMPTS, ClusterError
from maxmean.deep import tasks
from maxmean.deep.directory import alone
from maxmean.deep.progress import SilentReporter, interruptible, stoppable
from maxmean.deep.records import TABLES, Records
from maxmean.deep.spread import Heard, spread
from maxmean.deep.tasks import MARK, RUNS, Place, TaskNews, Teller, pack

# --- a pool without processes ---


class LostError(Exception):
    """As Ray says it."""


class Handle:
    """A function or an actor of the pool: what it is called with is done at once."""

    def __init__(self, pool: Pool, work: Any) -> None:
        self.pool, self.work = pool, work

    def options(self, **options: Any) -> Handle:
        return self

    def remote(self, *arguments: Any) -> Any:
        if isinstance(self.work, type):
            actor = self.work(*arguments)
            methods = {"tell": Handle(self.pool, actor.tell), "take": Handle(self.pool, actor.take)}
            return SimpleNamespace(**methods)
        try:
            return Reference(self.work(*arguments))
        except LostError as error:
            return Reference(error)


@dataclass(eq=False)
class Reference:
    outcome: Any


class Pool:
    """Ray, as far as we use it."""

    exceptions = SimpleNamespace(RayError=LostError)

    def is_initialized(self) -> bool:
        return True

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0, "GPU": 2.0}

    def remote(self, work: Any) -> Handle:
        return Handle(self, work)

    def get(self, reference: Reference, timeout: float | None = None) -> Any:
        if isinstance(reference.outcome, LostError):
            raise reference.outcome
        return reference.outcome

    def wait(self, references: list[Any], num_returns: int, timeout: float | None) -> tuple[list[Any], list[Any]]:
        return references[:num_returns], references[num_returns:]


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Pool:
    ray = Pool()
    monkeypatch.setitem(sys.modules, "ray", ray)
    return ray


def row(part: str, step: int) -> dict[str, Any]:
    return {"variant": part, "learning_rate": 0.1, "seed": 0, "step": step}


@dataclass
class Walk:
    """A part of five steps, each of which is kept in its folder; its process is lost after those that are given."""

    name: str
    lost_after: list[int] = field(default_factory=list)
    error: str = ""
    runs: int = 1
    steps: int = 5

    def train(self, folder: Path, teller: Teller) -> bool:
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder):
            file = folder / "step"
            begin = int(file.read_text()) if file.exists() else 0
            records = Records()
            records.rows["records"] += [row(self.name, step) for step in range(1, begin + 1)]
            at = [begin]
            teller.watch(lambda: at[0], records)
            for step in range(begin + 1, self.steps + 1):
                if self.error:
                    raise deep.AgentError(self.error)
                records.rows["records"].append(row(self.name, step))
                at[0] = step
                file.write_text(str(step))
                if step in self.lost_after:
                    self.lost_after.remove(step)
                    raise LostError("The worker died.")
            return not teller.stopped()


def walked(pool: Pool, out: Path, *parts: Walk, **options: Any) -> tuple[bool, Records, list[Any]]:
    heard: list[Any] = []
    finished, records = spread(
        pool,
        parts,
        Place.of(out, {}),
        SilentReporter(),
        lambda records: None,
        on_record=lambda row: heard.append((row["variant"], row["step"])),
        resources={},
        **options,
    )
    return finished, records, heard


def test_a_lost_task_goes_on_and_every_record_is_heard_once(pool: Pool, tmp_path: Path) -> None:
    finished, records, heard = walked(pool, tmp_path, Walk("a", lost_after=[2, 4]), Walk("b"))
    assert finished
    assert sorted((row["variant"], row["step"]) for row in records.rows["records"]) == sorted(heard)
    assert sorted(heard) == [(name, step) for name in "ab" for step in range(1, 6)]
    assert [(tmp_path / RUNS / name / "step").read_text() for name in "ab"] == ["5", "5"]


def test_the_same_command_goes_on_and_hears_only_what_is_new(pool: Pool, tmp_path: Path) -> None:
    walked(pool, tmp_path, Walk("a", steps=3))
    _, records, heard = walked(pool, tmp_path, Walk("a"))
    assert heard == [("a", 4), ("a", 5)]
    assert len(records.rows["records"]) == 5


def test_a_task_that_gets_further_is_never_given_up_and_one_that_does_not_is(pool: Pool, tmp_path: Path) -> None:
    assert walked(pool, tmp_path / "on", Walk("a", lost_after=[1, 2, 3, 4, 5]))[0]
    stuck = Walk("a", steps=1, lost_after=[1] * 10)
    (tmp_path / "off").mkdir()

    def train(folder: Path, teller: Teller) -> bool:
        stuck.lost_after.pop()
        raise LostError("The node died.\nA page of it")

    stuck.train = train  # type: ignore[method-assign]
    with pytest.raises(
        ClusterError, match=r"1 of 2 runs failed; the first of them, a: The node died\. What is done is kept"
    ):
        walked(pool, tmp_path / "off", stuck, Walk("b"))
    assert len(stuck.lost_after) == 10 - ATTEMPTS
    assert (tmp_path / "off" / RUNS / "b" / "step").read_text() == "5"


def test_a_mistake_is_a_sentence_and_is_not_tried_again(pool: Pool, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="1 of 1 runs failed; the first of them, a: no room"):
        walked(pool, tmp_path, Walk("a", error="no room"))


def test_without_a_common_disk_the_files_come_and_go(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks that do not see the directory: what it has of a part is sent to them, and what they have made comes back."""
    monkeypatch.setattr(Place, "reached", lambda self: False)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "there"))
    (tmp_path / "there").mkdir()
    walked(pool, tmp_path / "out", Walk("a", steps=3))
    _, _, heard = walked(pool, tmp_path / "out", Walk("a", lost_after=[4]), Walk("b"))
    assert sorted(heard) == [("a", 4), ("a", 5), *(("b", step) for step in range(1, 6))]
    assert pack(tmp_path / "out" / RUNS / "a") == {"step": b"5"}
    assert not [path for path in (tmp_path / "there").rglob("*") if path.is_file()]


def test_a_task_waits_for_a_process_that_was_given_up(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / RUNS / "a").mkdir(parents=True)
    lock = alone(tmp_path / RUNS / "a")
    lock.__enter__()
    monkeypatch.setattr("time.sleep", lambda seconds: lock.__exit__(None, None, None))
    assert walked(pool, tmp_path, Walk("a"))[0]


def test_ctrl_c_stops_the_tasks(pool: Pool, tmp_path: Path) -> None:
    with stoppable(lambda: True):
        finished, *_ = walked(pool, tmp_path, Walk("a"), Walk("b"), workers=1)
    assert not finished
    assert not (tmp_path / RUNS / "b").exists()
    assert (tmp_path / RUNS / MARK).exists()


def test_whoever_may_stop_a_training_is_asked_only_there() -> None:
    with stoppable(lambda: True), interruptible() as stopped:
        assert stopped()
    with interruptible() as stopped:
        assert not stopped()


def test_what_a_process_tells_that_was_given_up_is_not_heard() -> None:
    heard = Heard([Walk("a"), Walk("b")])

    def tell(attempt: int, begin: int, *steps: int) -> None:
        rows = {table: [row("a", step) for step in steps] if table == "records" else [] for table in TABLES}
        begins = {table: begin if table == "records" else 0 for table in TABLES}
        heard.hear(TaskNews("a", attempt, steps[-1], begins, rows, 0, []))

    tell(1, 0, 1, 2, 3)
    tell(2, 0, 1, 2)
    tell(1, 3, 4)
    tell(2, 2, 3)
    assert [each["step"] for each in heard.records().rows["records"]] == [1, 2, 3]
    assert heard.mean_step == 3 // 2


def test_a_board_that_does_not_answer_hears_all_later() -> None:
    told: list[TaskNews] = []
    answers = iter([None, False, True])

    def tell(news: TaskNews) -> bool | None:
        told.append(news)
        return next(answers)

    teller, records = Teller(tell, "a", 1), Records()
    teller.watch(lambda: 1, records)
    teller.say("something.")
    for step in (1, 2, 3):
        records.rows["records"].append(row("a", step))
        teller._once()
    assert [[each["step"] for each in news.rows["records"]] for news in told] == [[1], [1, 2], [3]]
    assert [news.begins["records"] for news in told] == [0, 0, 2]
    assert [news.sentences for news in told] == [["something."], ["something."], []]
    assert teller.stopped()


def test_what_cannot_be_is_a_sentence(tmp_path: Path) -> None:
    for arguments, sentence in (
        ({"engine": "cluster"}, r"unknown engine 'cluster' \(there are local, ray\)"),
        ({"engine": "ray"}, "the ray engine keeps what its tasks do in a directory: give one as out"),
        ({"address": "auto"}, "an address goes with the ray engine: --engine ray"),
        (
            {"engine": "ray", "address": "here", "out": tmp_path / "out"},
            "the address of a Ray cluster is auto, HOST:PORT",
        ),
    ):
        with pytest.raises((ClusterError, deep.AgentError), match=sentence):
            deep.train("minatar/breakout", "dqn", steps=10, **arguments)
    Place.of(tmp_path, {})
    with pytest.raises(
        deep.CheckpointError, match="was begun on a Ray cluster and is not finished: go on with --engine ray"
    ):
        tasks.refuse_spread(tmp_path)


# --- Ray itself ---

SMALL = deep.Settings(
    warmup=100, replay_capacity=400, target_period=50, test_interval=200, test_episodes=2, bias_episodes=2, hidden=8
)
AGENTS = ["dqn", "te-bdqn:0.1"]


def sums(out: Path) -> dict[str, str]:
    """The checksums of what stays; of checkpoints, the last, whose number says how many there were."""
    last = max((out / "checkpoints").iterdir(), default=None) if (out / "checkpoints").exists() else None
    found = {}
    for path in out.rglob("*"):
        name = path.relative_to(out).as_posix()
        if not path.is_file() or path.name.startswith(".maxmean-"):
            continue
        if name.startswith("checkpoints/"):
            if path.parent != last or path.name == "checksums.json":
                continue
            name = f"checkpoints/last/{path.name}"
        found[name] = hashlib.sha256(content(path)).hexdigest()
    return found


def workers() -> list[int]:
    """The processes of ours that train for Ray."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(b"ray::train"):
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if os.getpid() in ancestors(pid)]


def ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return
        yield pid


def once_there(ready: Callable[[], bool], act: Callable[[], None]) -> threading.Thread:
    """Does something as soon as it is time."""

    def wait() -> None:
        deadline = time.monotonic() + 300
        while not ready() and time.monotonic() < deadline:
            time.sleep(0.02)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def kill_one(killed: list[int]) -> None:
    for pid in workers()[:1]:
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("whole") / "out"
    deep.train("minatar/breakout", AGENTS, steps=2000, seeds=2, settings=SMALL, out=out, checkpoint_interval=400)
    return sums(out)


@pytest.mark.slow
def test_a_killed_worker_changes_no_bit(tmp_path: Path, undisturbed: dict[str, str]) -> None:
    """Killed once a checkpoint is there, and before the end."""
    out, killed, rows = tmp_path / "out", list[int](), list[Any]()
    thread = once_there(lambda: any(out.glob("runs/*/checkpoints/0*")), lambda: kill_one(killed))
    found = deep.train(
        "minatar/breakout",
        AGENTS,
        steps=2000,
        seeds=2,
        settings=SMALL,
        out=out,
        checkpoint_interval=400,
        engine="ray",
        workers=2,
        on_record=rows.append,
    )
    thread.join()
    assert found.finished
    assert len(killed) == 1
    assert sums(out) == undisturbed
    assert len(rows) == len(found.records) == 2 * 2 * 10
    again = deep.train("minatar/breakout", AGENTS, steps=2000, seeds=2, settings=SMALL, out=out)  # and here it goes on
    assert again.records.equals(found.records)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:os.fork")  # by Ray's test cluster
def test_a_lost_node_changes_no_bit(tmp_path: Path, undisturbed: dict[str, str]) -> None:
    utils = pytest.importorskip("ray.cluster_utils")
    cluster = utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        node, out, gone = cluster.add_node(num_cpus=1), tmp_path / "out", list[bool]()

        def lose() -> None:
            cluster.remove_node(node, allow_graceful=False)
            gone.append(True)

        thread = once_there(lambda: len([*out.glob("runs/*/checkpoints/0*")]) > 1, lose)
        deep.train(
            "minatar/breakout",
            AGENTS,
            steps=2000,
            seeds=2,
            settings=SMALL,
            out=out,
            checkpoint_interval=400,
            engine="ray",
            address=cluster.address,
        )
        thread.join()
    finally:
        cluster.shutdown()
    assert gone
    assert sums(out) == undisturbed


@pytest.mark.slow
def test_the_shares_of_two_gpus_become_one_block_again(pool: Pool, tmp_path: Path) -> None:
    """Four runs of a family, two and two; the last bits are the compiler's, which knows how many a program has."""
    arguments: dict[str, Any] = {"seeds": 2, "settings": SMALL, "checkpoint_interval": 400}
    agents = ["te-bdqn:0.1", "te-bdqn:0.2"]
    deep.train("minatar/breakout", agents, steps=400, batched=True, out=tmp_path / "one", **arguments)
    one = deep.train("minatar/breakout", agents, steps=800, batched=True, out=tmp_path / "one", **arguments)
    deep.train("minatar/breakout", agents, steps=400, engine="ray", out=tmp_path / "two", **arguments)
    assert not (tmp_path / "two" / RUNS).exists()
    two = deep.train("minatar/breakout", agents, steps=800, engine="ray", out=tmp_path / "two", **arguments)
    pd.testing.assert_frame_equal(one.records, two.records, rtol=1e-3, atol=1e-4)
    more = deep.train("minatar/breakout", agents, steps=1000, batched=True, out=tmp_path / "two", **arguments)
    assert set(more.records["step"]) == {200, 400, 600, 800, 1000}


@pytest.mark.slow
def test_what_was_begun_here_goes_on_on_a_cluster(tmp_path: Path, undisturbed: dict[str, str]) -> None:
    arguments: dict[str, Any] = {"seeds": 2, "settings": SMALL, "out": tmp_path / "out", "checkpoint_interval": 400}
    deep.train("minatar/breakout", AGENTS, steps=800, **arguments)
    deep.train("minatar/breakout", AGENTS, steps=2000, engine="ray", workers=2, **arguments)
    assert sums(tmp_path / "out") == undisturbed


@pytest.mark.slow
def test_gymnasiums_runs_on_a_cluster_are_those_of_one_process(tmp_path: Path) -> None:
    from maxmean.deep.host.training import train

    given = {"warmup": 100, "replay_capacity": 400, "test_interval": 500, "test_episodes": 2, "hidden": 8}
    killed: list[int] = []

    def run(out: Path, **engine: Any) -> Any:
        return train("CartPole-v1", [("dqn", {})], 6000, 3, None, given, out, 500, False, False, True, **engine)

    records, _ = run(tmp_path / "here")
    out = tmp_path / "there"
    thread = once_there(lambda: any(out.glob("runs/*/training.safetensors")), lambda: kill_one(killed))
    spread_records, finished = run(out, engine="ray", workers=2)
    thread.join()
    assert finished
    assert len(killed) == 1
    assert spread_records.equals(records)
    assert sums(out) == sums(tmp_path / "here")
