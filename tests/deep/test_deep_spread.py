"""A training spread over a cluster: lost tasks go on where they were, and the directory is that of an undisturbed training."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pandas as pd
import pytest

from killing import content
from maxmean import deep
from maxmean.cluster import ATTEMPTS, ClusterError, joined
from maxmean.deep import progress, tasks
from maxmean.deep.directory import BusyError, alone
from maxmean.deep.host.training import HostPart, HostRun, HostTraining
from maxmean.deep.places import MARK, RUNS, Mark, Place, pack, read_mark, refuse_spread
from maxmean.deep.progress import Line, SilentReporter, interruptible, standard_error, stoppable
from maxmean.deep.records import TABLES, Records
from maxmean.deep.spread import Heard, spread
from maxmean.deep.telling import Board, Reply, TaskNews, Teller

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
    util = SimpleNamespace(scheduling_strategies=SimpleNamespace(NodeAffinitySchedulingStrategy=Mock()))

    def __init__(self) -> None:
        self.cancelled: list[Reference] = []

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

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: "here")

    def cancel(self, reference: Reference, *, force: bool) -> None:
        assert force
        self.cancelled.append(reference)


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
    talks: bool = False
    """Whether it tells of each step at once."""
    begun: list[int] = field(default_factory=list)

    def train(self, folder: Path, teller: Teller) -> bool:
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder):
            file = folder / "step"
            begin = int(file.read_text()) if file.exists() else 0
            records = Records()
            records.rows["records"] += [row(self.name, step) for step in range(1, begin + 1)]
            at = [begin]
            self.begun.append(begin)
            teller.watch(lambda: at[0], records)
            for step in range(begin + 1, self.steps + 1):
                if self.error:
                    raise deep.AgentError(self.error)
                records.rows["records"].append(row(self.name, step))
                at[0] = step
                file.write_text(str(step))
                if self.talks:
                    teller._once()
                if step in self.lost_after:
                    self.lost_after.remove(step)
                    raise LostError("The worker died.")
            return not teller.stopped()


def walked(pool: Pool, out: Path, *parts: Walk, **options: Any) -> tuple[bool, Records, list[Any]]:
    heard: list[Any] = []
    finished, records = spread(
        pool,
        parts,
        Place.of(out, Mark()),
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


def test_the_speed_of_a_training_that_goes_on_is_that_of_its_new_steps(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs that have 900 of their 1,000 steps; ten seconds later each has taken ten more."""
    times = iter([0.0])
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(times, 10.0)))
    line = Line(standard_error(), 1000, 2, 0)
    monkeypatch.setattr(line, "record", lambda records: None)
    for name in "ab":
        (tmp_path / RUNS / name).mkdir(parents=True)
        (tmp_path / RUNS / name / "step").write_text("900")
    parts = [Walk(name, steps=910) for name in "ab"]
    spread(pool, parts, Place.of(tmp_path, Mark()), line, lambda records: None, resources={})
    assert line.line().startswith("910 of 1,000 steps (91%)  2 steps/s  1:30 left")


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


def test_without_a_common_disk_the_files_come_and_go(pool: Pool, tmp_path: Path, there: Path) -> None:
    """Tasks that do not see the directory: what it has of a part is sent to them, and what they have made comes back."""
    walked(pool, tmp_path / "out", Walk("a", steps=3))
    _, _, heard = walked(pool, tmp_path / "out", Walk("a", lost_after=[4]), Walk("b"))
    assert sorted(heard) == [("a", 4), ("a", 5), *(("b", step) for step in range(1, 6))]
    assert pack(tmp_path / "out" / RUNS / "a") == {"step": b"5"}
    assert not [path for path in there.rglob("*") if path.is_file()]


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where tasks have their folders that do not see the training's directory."""
    monkeypatch.setattr(Place, "reached", lambda self: False)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "there"))
    (tmp_path / "there").mkdir()
    return tmp_path / "there"


class Killed(BaseException):
    """The process is no more."""


@contextlib.contextmanager
def killed_after(calls: int, within: Path) -> Iterator[None]:
    """Ends when so many times something below a folder was moved or removed; nothing does so afterwards."""
    left = calls

    def deadly(act: Callable[..., Any]) -> Callable[..., Any]:
        def acting(path: Any, *more: Any, **options: Any) -> None:
            nonlocal left
            if within not in Path(path).parents:
                return act(path, *more, **options)
            if left > 0:
                act(path, *more, **options)
                left -= 1
            if left == 0:
                raise Killed
            return None

        return acting

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", deadly(os.replace))
        patch.setattr(shutil, "rmtree", deadly(shutil.rmtree))
        yield


def test_a_kill_while_files_come_back_loses_no_step(pool: Pool, tmp_path: Path, there: Path) -> None:
    """The directory has three steps, and five come back: at every moment it has the three or the five."""
    begun = set()
    for calls in range(1, 100):
        out = tmp_path / str(calls)
        walked(pool, out, Walk("a", steps=3))
        try:
            with killed_after(calls, out / RUNS):
                walked(pool, out, Walk("a"))
        except Killed:
            last = Walk("a")
            walked(pool, out, last)
            begun |= set(last.begun)
            assert sorted(path.name for path in (out / RUNS).iterdir()) == ["a", MARK]
        else:
            break
    assert begun == {3, 5}


def test_what_could_not_be_brought_home_stays_where_it_is(
    pool: Pool, tmp_path: Path, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr("maxmean.deep.spread.unpack", Mock(side_effect=full))
    with pytest.raises(deep.CheckpointError, match=r"cannot write .*: No space left"):
        walked(pool, tmp_path / "out", Walk("a"))
    assert [path.read_text() for path in there.rglob("step")] == ["5"]


def test_a_task_waits_for_a_process_that_was_given_up(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / RUNS / "a").mkdir(parents=True)
    lock = alone(tmp_path / RUNS / "a")
    lock.__enter__()
    waiting = SimpleNamespace(monotonic=time.monotonic, sleep=lambda seconds: lock.__exit__(None, None, None))
    monkeypatch.setattr(tasks, "time", waiting)
    assert walked(pool, tmp_path, Walk("a"))[0]


def test_ctrl_c_stops_the_tasks(pool: Pool, tmp_path: Path) -> None:
    with stoppable(lambda: True):
        finished, *_ = walked(pool, tmp_path, Walk("a"), Walk("b"), workers=1)
    assert not finished
    assert not (tmp_path / RUNS / "b").exists()
    assert (tmp_path / RUNS / MARK).exists()


def test_whatever_ends_a_training_its_tasks_end_too(
    pool: Pool, tmp_path: Path, there: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when on_record raises, or the disk is full: Ray may be the user's, and live on."""
    with pytest.raises(ZeroDivisionError):
        spread(
            pool,
            [Walk("a"), Walk("b")],
            Place.of(tmp_path, Mark()),
            SilentReporter(),
            lambda records: None,
            on_record=Mock(side_effect=ZeroDivisionError),
            resources={},
        )
    assert len(pool.cancelled) == 2
    monkeypatch.setattr("maxmean.deep.spread.unpack", Mock(side_effect=OSError(errno.ENOSPC, "No space left")))
    with pytest.raises(deep.CheckpointError):
        walked(pool, tmp_path, Walk("a"), Walk("b"))
    assert len(pool.cancelled) == 3


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
        heard.hear(TaskNews("a", attempt, steps[-1], begins, rows, [], 0))

    tell(1, 0, 1, 2, 3)
    tell(2, 0, 1, 2)
    tell(1, 3, 4)
    tell(2, 2, 3)
    assert [each["step"] for each in heard.records().rows["records"]] == [1, 2, 3]
    assert heard.mean_step == 3 // 2


@pytest.mark.parametrize("lost", range(1, 8))
def test_what_a_board_loses_is_heard_all_the_same(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    """It acknowledges, then dies with all that it holds, and a new one takes its place."""
    calls, tell = 0, Board.tell

    def losing(board: Board, message: TaskNews) -> Any:
        nonlocal calls
        answer, calls = tell(board, message), calls + 1
        if calls == lost:
            board.__init__()  # type: ignore[misc]
        return answer

    monkeypatch.setattr(Board, "tell", losing)
    _, records, heard = walked(pool, tmp_path, Walk("a", talks=True))
    assert [each["step"] for each in records.rows["records"]] == [1, 2, 3, 4, 5]
    assert heard == [("a", step) for step in range(1, 6)]


def test_rows_whose_forerunners_are_missing_wait_for_them() -> None:
    heard = Heard([Walk("a")])

    def tell(begin: int, *steps: int) -> list[int]:
        rows = {table: [row("a", step) for step in steps] if table == "records" else [] for table in TABLES}
        begins = {table: begin if table == "records" else 0 for table in TABLES}
        heard.hear(TaskNews("a", 1, steps[-1], begins, rows, [], 0))
        return [each["step"] for each in heard.records().rows["records"]]

    assert tell(2, 3, 4) == []
    assert tell(2, 3, 4, 5) == []
    assert tell(0, 1, 2, 3) == [1, 2, 3]
    assert tell(3, 4, 5) == [1, 2, 3, 4, 5]


def test_what_a_board_loses_is_asked_for() -> None:
    """Long before the task ends: three messages after a row that came alone, the others come too."""
    board, records, heard = Board(), Records(), Heard([Walk("a")])
    teller = Teller(board.tell, "a", 1)
    teller.watch(lambda: len(records.rows["records"]), records)
    for step in range(1, 8):
        records.rows["records"].append(row("a", step))
        teller._once()
        if step == 2:
            board = Board()
            teller._tell = board.tell
        for message in board.take(False, heard.torn):
            heard.hear(message)
        there = [each["step"] for each in heard.records().rows["records"]]
        assert there == [1] if step < 6 else list(range(1, step + 1))
    assert not heard.torn


def test_a_board_that_does_not_answer_hears_all_later() -> None:
    told: list[TaskNews] = []
    answers = iter([None, Reply(), Reply(stop=True)])

    def tell(news: TaskNews) -> Reply | None:
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
        ({"address": "auto"}, r'an address goes with the ray engine: engine="ray" \(--engine ray\)'),
        (
            {"engine": "ray", "address": "here", "out": tmp_path / "out"},
            "the address of a Ray cluster is auto, HOST:PORT",
        ),
    ):
        with pytest.raises((ClusterError, deep.AgentError), match=sentence):
            deep.train("minatar/breakout", "dqn", steps=10, **arguments)
    Place.of(tmp_path, Mark())
    with pytest.raises(
        deep.CheckpointError,
        match=r"was begun on a Ray cluster and is not finished: go on with engine=\"ray\" \(--engine ray\)",
    ):
        refuse_spread(tmp_path)


@pytest.mark.parametrize(
    ("mark", "fault"),
    [
        ('{"token": "x", "batched": true, "pieces": 1}', "its entry 'token' must be 32 hexadecimal digits, not 'x'"),
        ('{"token": "%s/../x", "batched": true, "pieces": 1}', "its entry 'token' must be 32 hexadecimal digits"),
        ('{"token": "%s", "pieces": 1}', "its entry 'batched' is missing"),
        ('{"token": "%s", "batched": 1, "pieces": 1}', "its entry 'batched' must be true or false, not 1"),
        ('{"token": "%s", "batched": true, "pieces": 0}', "its entry 'pieces' must be a whole number from 1 to"),
        ('{"token": "%s", "batched": true, "pieces": true}', "its entry 'pieces' must be a whole number from 1 to"),
        ("[]", "it holds no JSON object"),
        ("{", "it is not JSON"),
    ],
)
def test_a_mark_that_is_none_is_one_sentence(tmp_path: Path, mark: str, fault: str) -> None:
    """And no task takes the directory for its own."""
    (tmp_path / RUNS).mkdir()
    (tmp_path / RUNS / MARK).write_text(mark.replace("%s", "0" * 32))
    assert not Place(tmp_path, "0" * 32).reached()
    with pytest.raises(
        deep.CheckpointError, match=rf"spread\.json cannot be used: {fault}.*; choose another directory"
    ):
        read_mark(tmp_path)


def test_an_address_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Mock()
    monkeypatch.setattr("maxmean.cluster.check_reachable", asked)
    monkeypatch.setitem(
        sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False, init=Mock(side_effect=OSError))
    )
    with pytest.raises(ClusterError, match="no Ray cluster answers at 'auto'"):
        deep.train("minatar/breakout", "dqn", steps=10, engine="ray", address="auto", out=tmp_path / "out")
    asked.assert_called_once_with("auto")


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


class Trying:
    """Tries something beside what goes on, again and again, until it can be ``done`` or it is over."""

    def __init__(self, act: Callable[[], bool]) -> None:
        self.done, self._act, self._over = False, act, threading.Event()
        self._thread = threading.Thread(target=self._try, daemon=True)

    def __enter__(self) -> Trying:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _try(self) -> None:
        while not (self.done or self._over.wait(0.02)):
            self.done = self._act()


def kill_one(out: Path, pattern: str) -> bool:
    """Kill a process that trains, once there are such files; whether one was killed."""
    if not any(out.glob(pattern)):
        return False
    for pid in workers()[:1]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return True
    return False


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("whole") / "out"
    deep.train("minatar/breakout", AGENTS, steps=2000, seeds=2, settings=SMALL, out=out, checkpoint_interval=400)
    return sums(out)


@pytest.mark.slow
def test_a_killed_worker_changes_no_bit(tmp_path: Path, undisturbed: dict[str, str]) -> None:
    """Killed once a checkpoint is there, and before the end."""
    out, rows = tmp_path / "out", list[Any]()
    with Trying(lambda: kill_one(out, "runs/*/checkpoints/0*")) as killing:
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
        assert killing.done
    assert found.finished
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
        node, out = cluster.add_node(num_cpus=1), tmp_path / "out"

        def lose() -> bool:
            if len([*out.glob("runs/*/checkpoints/0*")]) < 2 or len(workers()) < 2:
                return False
            cluster.remove_node(node, allow_graceful=False)
            return True

        with Trying(lose) as losing:
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
            assert losing.done
    finally:
        cluster.shutdown()
    assert sums(out) == undisturbed


def cart(steps: int) -> HostPart:
    given = {"warmup": 100, "replay_capacity": 400, "test_interval": 100, "test_episodes": 1, "hidden": 8, "seed": 0}
    return HostPart(HostTraining("CartPole-v1", steps, 100, False, False), HostRun("dqn-seed0", "dqn", given))


@pytest.mark.slow
def test_files_come_home_from_a_machine_and_stay_there_no_longer(tmp_path: Path) -> None:
    """Without a mark there is no task that reaches the directory."""
    place, part = Place(tmp_path, Mark().token), cart(200)
    there = Path(tempfile.gettempdir()) / f"maxmean-{place.token}"
    try:
        with joined(None, 1) as ray:
            assert spread(ray, [part], place, SilentReporter(), lambda records: None, resources={"num_cpus": 1})[0]
        assert (tmp_path / RUNS / part.name / "training.safetensors").exists()
        assert not [*there.iterdir()]
    finally:
        shutil.rmtree(there)


@pytest.mark.slow
def test_where_ray_lives_on_the_tasks_do_not(tmp_path: Path) -> None:
    place, part, training = Place.of(tmp_path, Mark()), cart(1_000_000), list[int]()

    def on_record(row: dict[str, Any]) -> None:
        training.extend(workers())
        raise ZeroDivisionError

    with joined(None, 1) as ray:
        with pytest.raises(ZeroDivisionError):
            spread(
                ray,
                [part],
                place,
                SilentReporter(),
                lambda records: None,
                on_record=on_record,
                resources={"num_cpus": 1},
            )
        deadline = time.monotonic() + 30
        while workers() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert training
        assert not workers()
        while True:
            try:
                with alone(tmp_path / RUNS / part.name):
                    break
            except BusyError:  # a process that ends has no name any more when it lets go of its files
                assert time.monotonic() < deadline
                time.sleep(0.1)


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


def test_a_kill_while_the_tasks_folders_go_does_no_harm(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The training is whole by then, and goes on wherever one likes."""
    arguments: dict[str, Any] = {"settings": SMALL, "out": tmp_path / "out"}

    def half(folder: Path, **options: Any) -> None:
        for part in folder.glob("0*"):
            rmtree(part)
            raise Killed

    rmtree = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", half)
    with pytest.raises(Killed):
        deep.train("minatar/breakout", "dqn", steps=10, engine="ray", **arguments)
    monkeypatch.setattr(shutil, "rmtree", rmtree)
    again = deep.train("minatar/breakout", "dqn", steps=10, batched=True, **arguments)
    assert again.finished
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_dir()) == ["checkpoints", "policies"]


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

    def run(out: Path, **engine: Any) -> Any:
        return train("CartPole-v1", [("dqn", {})], 6000, 3, None, given, out, 500, False, False, True, **engine)

    records, _ = run(tmp_path / "here")
    out = tmp_path / "there"
    with Trying(lambda: kill_one(out, "runs/*/training.safetensors")) as killing:
        spread_records, finished = run(out, engine="ray", workers=2)
        assert killing.done
    assert finished
    assert spread_records.equals(records)
    assert sums(out) == sums(tmp_path / "here")
