"""A training's directory on the host: two that want it, a full disk, a damaged checkpoint."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import pandas as pd
import pytest

from host_toys import Walk, small
from maxmean import DQN
from maxmean.deep import directory
from maxmean.deep.directory import LOCK, CheckpointError, alone
from maxmean.deep.host import HostError, making, plain
from maxmean.deep.host import sinks as sinks_module
from maxmean.deep.host.driver import Driver
from maxmean.deep.host.keeping import Keeper
from maxmean.deep.host.training import HostTraining
from maxmean.deep.host.training import train as command
from maxmean.deep.networks import Nature
from maxmean.deep.places import Mark, Place
from maxmean.storage import appearing
from seldom import mostly_slow, slow
from strangers import forge_agent, linked, put, untouched

PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"


@pytest.fixture(autouse=True)
def _walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line's environments are walks."""
    monkeypatch.setattr(making, "make_env", lambda name: Walk())
    monkeypatch.setattr(making, "make_like", lambda env: Walk())


def train(out: Path, steps: int, seeds: int = 1, tensorboard: bool = False) -> pd.DataFrame:
    return command("Walk", [("dqn", {})], steps, seeds, None, small(), out, 50, tensorboard, False, True)[0]


def run_of(out: Path) -> Path:
    return out / "runs" / "dqn-seed0"


def left(out: Path) -> list[Path]:
    """What is half-written there."""
    return [path for path in out.rglob(".maxmean-*") if path.name != LOCK]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(making, "make_env", lambda name: Walk())
        patch.setattr(making, "make_like", lambda env: Walk())
        train(out, 300)
    return out


def same(one: Path, other: Path) -> None:
    """Tables and agents are the same, bit for bit."""
    from safetensors import safe_open

    for path in [*one.glob("*.parquet"), *one.glob("runs/*/*.parquet")]:
        assert path.read_bytes() == (other / path.relative_to(one)).read_bytes()
    sums = []
    for out in (one, other):
        with safe_open(run_of(out) / "training.safetensors", "numpy") as file:
            sums.append(file.metadata()["sha256"])
    assert sums[0] == sums[1]


def test_a_second_training_in_the_same_directory_gets_a_sentence_and_changes_nothing(
    whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    holding = (
        "import sys, time; from pathlib import Path; from maxmean.deep.directory import alone\n"
        "with alone(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", holding, str(out)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(CheckpointError, match=f"another process is training in {out}; wait until it has ended"):
            train(out, 500)
        other.kill()
    same(whole, out)
    assert train(out, 350)["step"].max() == 350


def test_an_agent_does_not_learn_where_another_one_does(tmp_path: Path) -> None:
    with (
        alone(tmp_path),
        pytest.raises(CheckpointError, match="another process is training in"),
    ):
        DQN(Walk(), eval_env=Walk(), **small()).learn(50, out=tmp_path)
    DQN(Walk(), eval_env=Walk(), **small()).learn(50, out=tmp_path)
    with alone(tmp_path):
        pass  # it has let go


def test_an_agent_does_not_write_over_a_training_that_is_further(tmp_path: Path) -> None:
    """Nor over another one that is not; what goes on from a file of the same training does."""
    out = tmp_path / "run"
    agent = DQN(Walk(), eval_env=Walk(), **small()).learn(100, out=out)
    saved = agent.save(tmp_path / "agent")
    agent.learn(100, out=out)
    before = (out / "records.parquet").read_bytes()
    for other in (DQN(Walk(), eval_env=Walk(), **small()), DQN(Walk(), eval_env=Walk(), **small(seed=1)).learn(300)):
        with pytest.raises(HostError, match="holds the records of another training, to step 200, and this agent"):
            other.learn(50, out=out)
    assert (out / "records.parquet").read_bytes() == before
    DQN.load(saved, Walk(), eval_env=Walk()).learn(100, out=out)
    assert (out / "records.parquet").read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"PAR1", b"a,b\n1,2\n"])
def test_a_file_that_is_no_table_of_records_is_not_written_over(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "records.parquet").write_bytes(content)
    with pytest.raises(HostError, match=r"records\.parquet is there already and is no training's table"):
        DQN(Walk(), eval_env=Walk(), **small()).learn(50, out=tmp_path)
    assert (tmp_path / "records.parquet").read_bytes() == content


def damage(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    if how == "byte":
        content[-1] ^= 1
    path.write_bytes({"half": bytes(content[: len(content) // 2]), "nothing": b""}.get(how, bytes(content)))


@pytest.mark.parametrize("how", ["byte", *slow("half", "nothing")])
def test_a_damaged_checkpoint_is_named_and_the_one_before_serves(
    whole: Path, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also if it is killed while it writes the next one: the damaged one never takes the place of the sound one."""
    out = tmp_path / "run"
    train(out, 200)
    newest, before = run_of(out) / "training.safetensors", run_of(out) / "training-before.safetensors"
    damage(newest, how)
    sound = before.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("maxmean.deep.host.saving.appearing", fail(errno.EIO))
        with pytest.raises(HostError, match="Input/output error"):
            train(out, 300)
    assert before.read_bytes() == sound
    command("Walk", [("dqn", {})], 300, 1, None, small(), out, 50, False, False, False)
    said = " ".join(capsys.readouterr().err.split())
    assert re.search(
        r"training\.safetensors .*damaged.*; going back to the one before\. dqn-seed0, going on from step 150", said
    )
    same(whole, out)


@contextlib.contextmanager
def breaking(at: int) -> Iterator[None]:
    """A machine that breaks when a training has taken so many steps, or a few more."""
    step = Driver.step

    def broken(driver: Driver) -> None:
        if driver.clock.stored >= at:
            raise OSError("the lights went out")
        step(driver)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Driver, "step", broken)
        with pytest.raises(OSError, match="the lights went out"):
            yield


@pytest.mark.parametrize(("every", "last"), [(30, 120), (70, 140), (1_000, 0)])
def test_checkpoints_are_kept_every_so_many_steps_whenever_tests_are(
    whole: Path, tmp_path: Path, every: int, last: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is a test every 50 steps. One that breaks after step 145 goes on from its last checkpoint, and ends the same."""
    out, kept, begun = tmp_path / "run", [], []
    save, load = Keeper.save, Keeper.load

    def saving(keeper: Keeper, agent: Any) -> None:
        kept.append(agent.num_timesteps)
        save(keeper, agent)

    def loading(keeper: Keeper, *given: Any) -> Any:
        agent = load(keeper, *given)
        begun.append(agent and agent.num_timesteps)
        return agent

    monkeypatch.setattr(Keeper, "save", saving)
    monkeypatch.setattr(Keeper, "load", loading)
    with breaking(145):
        command("Walk", [("dqn", {})], 300, 1, None, small(), out, every, False, False, True)
    command("Walk", [("dqn", {})], 300, 1, None, small(), out, every, False, False, True)
    assert kept == sorted({*range(every, 301, every), 300})
    assert begun == [None, last or None]
    same(whole, out)


def test_several_environments_go_on_from_checkpoints_between_their_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven steps at a time: tests come a little after each 50th step, and checkpoints a little after each 40th."""

    monkeypatch.setattr(making, "make_training", lambda name, n: gymnasium.vector.SyncVectorEnv([Walk] * n))

    def learn(out: str) -> None:
        command("Walk", [("dqn", {})], 300, 1, None, small(), tmp_path / out, 40, False, False, True, num_envs=7)

    learn("whole")
    with breaking(145):
        learn("broken")
    learn("broken")
    same(tmp_path / "whole", tmp_path / "broken")
    steps = pd.read_parquet(tmp_path / "broken" / "records.parquet")["step"]
    assert any(step % 50 for step in steps)


def test_there_is_a_newest_checkpoint_at_every_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, seen = tmp_path / "run", []
    real = appearing

    def looking(path: Path, **more: Any) -> Any:
        if path.name.startswith("training"):
            seen.append([(run_of(out) / f"training{end}.safetensors").exists() for end in ("", "-before")])
        return real(path, **more)

    monkeypatch.setattr("maxmean.deep.host.saving.appearing", looking)
    train(out, 150)
    assert seen == [[False, False], [True, True], [True, True]]
    assert sorted(path.name for path in run_of(out).glob("training*")) == [
        "training-before.safetensors",
        "training.safetensors",
    ]


def test_where_no_checkpoint_is_sound_it_says_so_and_nothing_is_lost(tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(out, 100)
    for path in run_of(out).glob("training*"):
        damage(path, "half")
    with pytest.raises(HostError, match=r"no sound one is beside it: remove .*dqn-seed0 to begin anew"):
        train(out, 200)
    shutil.rmtree(run_of(out))
    assert train(out, 200)["step"].tolist() == [50, 100, 150, 200]


def test_a_disk_without_links_has_two_checkpoints_too(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", fail(errno.EPERM))
    train(tmp_path / "run", 300)
    damage(run_of(tmp_path / "run") / "training.safetensors", "half")
    train(tmp_path / "run", 300)
    same(whole, tmp_path / "run")


def fail(code: int) -> Callable[..., Any]:
    def failing(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return failing


def refuse(*_: object, **__: object) -> None:
    from safetensors import SafetensorError

    raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")


WRITES: dict[str, tuple[str, Callable[..., Any], str]] = {
    "plan": ("maxmean.deep.directory.write_whole", fail(errno.ENOSPC), r"cannot use .*run: No space left"),
    "run's plan": (
        "maxmean.deep.host.sinks.write_plan",
        fail(errno.ENOSPC),
        r"cannot write .*dqn-seed0/plan\.json: No space",
    ),
    "records": (
        "maxmean.deep.records.write_whole",
        fail(errno.ENOSPC),
        r"cannot write .*seed0/records\.parquet: No space",
    ),
    "all records": (
        "maxmean.deep.host.training.write_whole",
        fail(errno.ENOSPC),
        r"cannot write .*run/records\.parquet: No space",
    ),
    "checkpoint": ("safetensors.numpy.save_file", refuse, r"cannot write .*training\.safetensors: No space left"),
    "the one before": (
        "maxmean.deep.host.keeping.appearing",
        fail(errno.ENOSPC),
        r"cannot write .*-before\.safetensors: No space",
    ),
}


@pytest.mark.parametrize("what", mostly_slow(WRITES, ["run's plan", "checkpoint", "all records"]))
def test_a_disk_that_is_full_at_any_write_is_one_sentence_and_the_same_command_goes_on(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    out = tmp_path / "run"
    if what != "plan":
        train(out, 100)
    with monkeypatch.context() as patch:
        patch.setattr(*WRITES[what][:2])
        with pytest.raises((HostError, CheckpointError), match=WRITES[what][2]) as error:
            train(out, 300)
    assert what == "plan" or "what was kept is whole: make room, and the same command goes on" in str(error.value)
    assert "\n" not in str(error.value)
    assert not left(out)
    train(out, 300)
    same(whole, out)


class Writer:
    """TensorBoard's, on a full disk."""

    def __init__(self, folder: str, filename_suffix: str) -> None: ...
    def add_scalar(self, name: str, value: float, step: int) -> None: ...
    def close(self) -> None: ...
    def flush(self) -> None:
        raise RuntimeError("event file: No space left on device")


class Waiting(Writer):
    """One whose thread has died of it."""

    def flush(self) -> None:
        threading.Event().wait()

    def close(self) -> None:
        self.flush()


@pytest.mark.parametrize(
    ("writer", "why"), [(Writer, "No space left on device"), (Waiting, "TensorBoard's library does not answer")]
)
def test_tensorboard_on_a_full_disk_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: type[Writer], why: str
) -> None:
    monkeypatch.setattr(sinks_module, "_summary_writer", lambda: writer)
    monkeypatch.setattr(sinks_module, "PATIENCE", 1.0)
    with pytest.raises(HostError, match=rf"^cannot write .*tensorboard: {why}.*the same command goes on"):
        train(tmp_path / "run", 100, tensorboard=True)
    with alone(run_of(tmp_path / "run")):
        pass  # it has let go


QUIETLY = {"JAX_ENABLE_COMPILATION_CACHE": "false", "PYTHONDONTWRITEBYTECODE": "1"}
"""Else the tests' own cache has its say on such a limit, and Python keeps half of a module's bytecode and trips over it."""
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
from maxmean.cli import main
main()
"""


def test_a_limit_on_the_size_of_files_is_one_sentence(tmp_path: Path) -> None:
    """Through the real library, which has words of its own for it."""
    options = ["train", "--env", "CartPole-v1", "--agent", "dqn", "--steps", "200", "--quiet", "--hidden", "8"]
    options += ["--warmup", "20", "--test-interval", "50", "--test-episodes", "1", "--checkpoint-interval", "50"]
    options += ["--out", str(tmp_path / "run")]
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, "15000", *options],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | QUIETLY,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert re.fullmatch(
        r"maxmean: cannot write .*training\.safetensors: File too large; .* goes on from it\n", run.stderr
    )
    assert not left(tmp_path / "run")


def test_a_directory_that_is_taken_away_is_said_to_be_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "run"

    class Thief(Walk):
        def step(self, action: Any) -> Any:
            if self.episode == 12 and out.exists():
                shutil.rmtree(out)
            return super().step(action)

    monkeypatch.setattr(making, "make_env", lambda name: Thief())
    with pytest.raises(CheckpointError, match=r"cannot write .*records\.parquet: its directory is gone"):
        train(out, 300)
    assert not out.exists()


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """In a directory from a stranger it could lead to any file of the user's."""
    (precious := tmp_path / "precious").write_text("data")
    (out := tmp_path / "run").mkdir()
    (out / directory.LOCK).symlink_to(precious)
    with pytest.raises(directory.CheckpointError, match="cannot use"), directory.alone(out):
        pass
    assert precious.read_text() == "data"


def test_links_in_the_directory_are_not_written_through(whole: Path, tmp_path: Path) -> None:
    """In a directory from a stranger they could lead to any file of the user's."""
    out = tmp_path / "run"
    train(out, 200)
    files = [path for path in [*out.iterdir(), *run_of(out).iterdir()] if path.is_file() and path.name != LOCK]
    aside = linked(files, tmp_path / "aside")
    assert len(aside) == 8
    train(out, 300)
    assert untouched(aside)
    assert [path for path in out.rglob("*") if path.is_symlink()] == [out / "plan.json"]  # which is not written again
    same(whole, out)


@pytest.mark.parametrize("name", ["runs", "runs/dqn-seed0", "runs/dqn-seed0/tensorboard"])
def test_a_folder_that_is_a_link_is_refused(whole: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    if not (out / name).exists():
        (out / name).mkdir()
    (out / name).rename(tmp_path / "theirs")
    (out / name).symlink_to(tmp_path / "theirs")
    there = sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "theirs").rglob("*"))
    with pytest.raises(CheckpointError, match=f"the folder {Path(name).name} is a link, which could lead anywhere"):
        train(out, 350, tensorboard=True)
    assert sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "theirs").rglob("*")) == there


def test_a_link_that_the_user_names_is_followed(tmp_path: Path) -> None:
    agent = DQN(Walk(), eval_env=Walk(), **small())
    (tmp_path / "link.safetensors").symlink_to(tmp_path / "agent.safetensors")
    agent.save(tmp_path / "link.safetensors")
    assert (tmp_path / "link.safetensors").is_symlink()
    assert DQN.load(tmp_path / "agent.safetensors", Walk(), eval_env=Walk()).num_timesteps == 0


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "learning rate": ({"learning_rate": 0.5}, r"settings\.learning_rate is 0\.5 there and 0\.001 here"),
    "seed": ({"seed": 7}, r"host\.seed is 7 there and 0 here"),
    "memory": ({"hidden": 2**31 - 1}, "this training needs"),
    "network": ({"network": Nature()}, "network=Nature sees pictures"),
}


@pytest.mark.parametrize("what", mostly_slow(OTHERS, ["seed", "memory"]))
def test_a_checkpoint_of_other_settings_is_passed_over(
    whole: Path, tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command says how the agent learns, not a file that anybody may have put there."""
    out, (given, said) = tmp_path / "run", OTHERS[what]
    train(out, 200)
    newest, before = run_of(out) / "training.safetensors", run_of(out) / "training-before.safetensors"
    forge_agent(newest, lambda text: text["given"].update({name: plain.pack(each) for name, each in given.items()}))
    theirs = newest.read_bytes()
    command("Walk", [("dqn", {})], 300, 1, None, small(), out, 50, False, False, False)
    heard = " ".join(capsys.readouterr().err.split())
    assert re.search(rf"{said}.*; going back to the one before\. dqn-seed0, going on from step 150", heard)
    same(whole, out)
    for path in (newest, before):
        path.write_bytes(theirs)
    with pytest.raises(HostError, match=f"{said}.*; no sound one is beside it: remove .*dqn-seed0 to begin anew") as no:
        train(out, 400)
    assert "\n" not in str(no.value)


def at_step(step: int, tests: list[int]) -> Callable[[dict[str, Any]], None]:
    """A clock that stands there, and records of those tests."""

    def change(text: dict[str, Any]) -> None:
        rows = text["records"]["records"]
        text["clock"]["stored"], text["records"]["records"] = step, [{**rows[0], "step": test} for test in tests]

    return change


FURTHER = {
    "the clock alone": put("clock/stored", 2**31 - 1),
    "the clock and a test": at_step(2**31 - 1, [50, 100, 150, 2**31 - 1]),
    "no tests": at_step(300, []),
    "one test less": at_step(300, [50, 100, 150, 250, 300]),
    "another run": lambda text: text["records"]["records"][0].update(seed=1),
}


@pytest.mark.parametrize("what", mostly_slow(FURTHER, ["the clock and a test", "one test less"]))
def test_a_checkpoint_that_is_further_than_its_records_is_passed_over(
    whole: Path, tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The training would be over before it has begun."""
    out = tmp_path / "run"
    train(out, 200)
    forge_agent(newest := run_of(out) / "training.safetensors", FURTHER[what])
    command("Walk", [("dqn", {})], 300, 1, None, small(), out, 50, False, False, False)
    heard = " ".join(capsys.readouterr().err.split())
    assert re.search(
        rf"{newest} is at step [0-9,]+, and its records do not reach there; going back to the one before\. "
        "dqn-seed0, going on from step 150",
        heard,
    )
    same(whole, out)


def test_a_training_that_is_further_than_asked_for_stays_as_it_is(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    records, finished = command("Walk", [("dqn", {})], 200, 1, None, small(), out, 50, False, False, False)
    assert finished
    assert records["step"].max() == 300
    assert "dqn-seed0 is at step 300 already." in capsys.readouterr().err
    same(whole, out)


@pytest.mark.parametrize("how", ["half", "another", "pipe", *slow("nothing", "folder", "gone")])
def test_damaged_records_of_a_finished_run_are_written_anew(tmp_path: Path, how: str) -> None:
    """From its checkpoint, which has them; a run that is under way meanwhile is not kept from its own."""
    out = tmp_path / "run"
    train(out, 100, seeds=2)
    before, path = (out / "records.parquet").read_bytes(), out / "runs" / "dqn-seed1" / "records.parquet"
    if how in ("half", "nothing"):
        damage(path, how)
    elif how == "another":
        pd.DataFrame({"a": [1]}).to_parquet(path)
    else:
        path.unlink()
    if how == "pipe":
        os.mkfifo(path)
    if how == "folder":
        path.mkdir()
        with pytest.raises(CheckpointError, match=r"cannot write .*dqn-seed1/records\.parquet: Is a directory"):
            train(out, 100, seeds=2)
        return
    assert len(train(out, 100, seeds=2)) == 4
    assert (out / "records.parquet").read_bytes() == before


class Closing(Walk):
    """Knows how many of it are open."""

    opened = 0

    def __init__(self) -> None:
        super().__init__()
        Closing.opened += 1

    def close(self) -> None:
        Closing.opened -= 1


def test_while_it_trains_only_its_own_environments_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a run, and not also those of each agent that the plan was made from."""
    monkeypatch.setattr(Closing, "opened", 0)
    monkeypatch.setattr(making, "make_env", lambda name: Closing())
    monkeypatch.setattr("maxmean.deep.host.agent.make_like", lambda env: Closing())
    before: list[int] = []

    def run(*_: object, **__: object) -> bool:
        before.append(Closing.opened)
        return True

    monkeypatch.setattr(HostTraining, "run", run)
    command("Walk", [("dqn", {}), ("ddqn", {})], 50, 1, None, small(), tmp_path, 50, False, False, True)
    assert before == [0, 0]


def test_before_a_cluster_is_asked_no_agent_takes_the_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX takes three quarters of a GPU's memory with its first array, unless it is told not to; tasks may want that GPU."""
    monkeypatch.setenv(PREALLOCATE, "")
    monkeypatch.delenv(PREALLOCATE)
    seen: list[str | None] = []

    def make(training: HostTraining) -> Walk:
        seen.append(os.environ.get(PREALLOCATE))
        raise HostError("no environment")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: True))
    monkeypatch.setattr(HostTraining, "make", make)
    with pytest.raises(HostError, match="no environment"):
        command("Walk", [("dqn", {})], 50, 1, None, small(), tmp_path, 50, False, False, True, engine="ray")
    assert seen == ["false"]


def test_what_a_cluster_has_begun_is_ended_by_one(tmp_path: Path) -> None:
    """As on the device: tasks may still be at it, or have what they did on other machines."""
    out = tmp_path / "run"
    train(out, 50)
    Place.of(out, Mark())
    with pytest.raises(CheckpointError, match="was begun on a Ray cluster and is not finished"):
        train(out, 100)
