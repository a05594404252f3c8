"""A training's directory on the device: whose it is, what a clock, a full disk and a stranger can do to it."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from deep_toys import CORRIDOR
from inside import maxmean
from maxmean import deep, storage
from maxmean.deep import checkpoint, directory
from maxmean.deep.records import Records
from seldom import mostly_slow, slow
from strangers import linked, untouched

TINY = deep.Settings(
    warmup=60,
    replay_capacity=400,
    test_interval=100,
    target_period=50,
    test_episodes=2,
    bias_episodes=1,
    bias_episodes_per_head=1,
    hidden=8,
)


def train(out: Path, steps: int, **more: Any) -> deep.Training:
    return deep.train(CORRIDOR, "dqn", steps=steps, settings=TINY, out=out, checkpoint_interval=100, **more)


def steps_kept(out: Path) -> list[int]:
    return [int(path.name.partition("-")[0]) for path in checkpoint.checkpoints(out / "checkpoints")]


def left(out: Path) -> list[Path]:
    """What is half-written there."""
    return [path for path in out.rglob(".maxmean-*") if path.name != directory.LOCK]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    train(out, 500)
    return out


def same(one: Path, other: Path) -> None:
    for path in [*one.glob("*.parquet"), *one.glob("policies/*")]:
        assert path.read_bytes() == (other / path.relative_to(one)).read_bytes()


def test_the_newest_checkpoint_is_the_furthest_whatever_the_clock_says(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock goes backwards throughout, in the files' names of former versions too."""
    out, now = tmp_path / "run", time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now - 10**15)
    train(out, 200)
    for path in checkpoint.checkpoints(out / "checkpoints"):
        step = int(path.name.partition("-")[0])
        path.rename(path.with_name(f"{step:012d}-{now - step * 10**12:020d}"))
    assert steps_kept(out) == [200, 100]
    train(out, 300)
    assert steps_kept(out) == [300, 200]
    train(out, 500)
    assert steps_kept(out) == [500, 400]
    same(whole, out)


def test_a_damaged_checkpoint_is_not_kept_in_place_of_a_sound_one(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(out, 400)
    (newest, before) = checkpoint.checkpoints(out / "checkpoints")
    (newest / "steps.json").write_text("[0]")
    train(out, 400)
    assert steps_kept(out) == [400, 300]
    assert newest not in checkpoint.checkpoints(out / "checkpoints")
    assert before in checkpoint.checkpoints(out / "checkpoints")
    train(out, 500)
    same(whole, out)


def test_what_a_killed_process_left_goes_with_the_next_one(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(out, 100)
    for folder in (out, out / "checkpoints", out / "policies"):
        (folder / ".maxmean-1-00").write_text("{")
        (folder / ".maxmean-1-01").mkdir()
        (folder / ".maxmean-1-01" / "part").touch()
    train(out, 500)
    assert not left(out)
    same(whole, out)


def fail(code: int) -> Callable[..., Any]:
    def failing(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return failing


WRITES = {
    "plan": ("maxmean.deep.directory.write_whole", "cannot use .*run: No space left on device"),
    "records": ("maxmean.deep.records.write_whole", "cannot write .*run/records.parquet: No space left"),
    "arrays": ("maxmean.deep.checkpoint.save_file", "cannot write .*run/checkpoints: No space left"),
    "steps": ("maxmean.deep.checkpoint.write_whole", "cannot write .*run/checkpoints: No space left"),
    "flush": ("maxmean.deep.checkpoint.flush", "cannot write .*run/checkpoints: No space left"),
    "policies": ("maxmean.deep.policy.write_whole", "cannot write .*policies/dqn.safetensors: No space left"),
}


@pytest.mark.parametrize("what", mostly_slow(WRITES, ["plan", "records", "arrays"]))
def test_a_disk_that_is_full_at_any_write_is_one_sentence_and_the_same_command_goes_on(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    out = tmp_path / "run"
    if what != "plan":
        train(out, 200)
    kept = steps_kept(out)
    with monkeypatch.context() as patch:
        patch.setattr(WRITES[what][0], fail(errno.ENOSPC))
        with pytest.raises(deep.CheckpointError, match=WRITES[what][1]) as error:
            train(out, 500)
    assert what == "plan" or "make room, and the same command goes on" in str(error.value)
    assert "\n" not in str(error.value)
    assert steps_kept(out)[: len(kept)] == kept if what != "policies" else True
    assert not left(out)
    train(out, 500)
    same(whole, out)


QUIETLY = {"JAX_ENABLE_COMPILATION_CACHE": "false", "PYTHONDONTWRITEBYTECODE": "1"}
"""Else the tests' own cache has its say on such a limit, and Python keeps half of a module's bytecode and trips over it."""
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
from maxmean.cli import main
main()
"""


@pytest.mark.slow
def test_a_limit_on_the_size_of_files_is_one_sentence(tmp_path: Path) -> None:
    """Through the real libraries, which have words of their own for it. The host's driver is asked every time."""
    command = ["train", "--env", "minatar/breakout", "--agent", "dqn", "--steps", "200", "--quiet"]
    command += ["--warmup", "60", "--replay-capacity", "400", "--test-interval", "100", "--target-period", "50"]
    command += ["--test-episodes", "2", "--hidden", "8", "--checkpoint-interval", "100", "--out", str(tmp_path / "run")]
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, "20000", *command],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | QUIETLY,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert re.fullmatch(r"maxmean: cannot write .*/checkpoints: File too large; .* goes on from it\n", run.stderr)
    assert not left(tmp_path / "run")


def test_a_directory_that_is_taken_away_is_not_made_again(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(deep.CheckpointError, match=r"cannot write .*records\.parquet: its directory is gone"):
        train(out, 300, on_record=lambda row: shutil.rmtree(out))
    assert not out.exists()


def test_a_file_in_the_way_of_the_checkpoints_is_named(tmp_path: Path) -> None:
    out = tmp_path / "run"

    def hinder(row: dict[str, Any]) -> None:
        (out / "checkpoints").touch()

    with pytest.raises(deep.CheckpointError, match=r"cannot write .*checkpoints: File exists"):
        train(out, 300, on_record=hinder)


DEEP = "[" * 100_000
PLANS = {
    "list": b"[]",
    "deep": DEEP.encode(),
    "deep objects": b'{"a":' * 100_000,
    "nan": b'{"environment": NaN}',
    "no keys": b"{}",
    "text": b'"plan"',
    "number": b"1" * 5_000,
    "not UTF-8": b"\xff\xfe",
    "cut": b'{"environment": {"na',
    "nothing": b"",
}


@pytest.mark.parametrize("plan", PLANS)
def test_a_strangers_plan_is_refused_in_a_sentence(tmp_path: Path, plan: str) -> None:
    (tmp_path / "plan.json").write_bytes(PLANS[plan])
    with pytest.raises(deep.CheckpointError, match=r"choose another directory$"):
        train(tmp_path, 100)
    assert os.listdir(tmp_path) == ["plan.json"]


FORMER: dict[directory.Kind, dict[str, Any]] = {
    "device training": {"environment": {"name": "x", "options": {}}, "agents": {"dqn": {"members": 1}}, "seeds": [0]},
    "host training": {"environment": "X-v1", "trainings": [{"algorithm": "DQN"}], "seeds": 1},
    "agent": {"algorithm": "DQN", "environment": "X-v1"},
    "benchmark": {"agent": "dqn", "environment": "X-v1", "steps": 9, "about": {"algorithm": "DQN"}},
}


@pytest.mark.parametrize("kind", FORMER)
def test_a_plan_of_0_1_which_does_not_say_its_kind_is_still_its_training_s(
    tmp_path: Path, kind: directory.Kind
) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(FORMER[kind]))
    assert directory.read_plan(tmp_path) == {"kind": kind, **FORMER[kind]}
    with directory.held(tmp_path, kind, FORMER[kind]):
        assert json.loads((tmp_path / "plan.json").read_text()) == FORMER[kind]


def test_a_plan_of_another_kind_is_another_training(tmp_path: Path) -> None:
    directory.write_plan(tmp_path, "agent", {"seeds": 1})
    with (
        pytest.raises(deep.CheckpointError, match="kind is 'agent' there and 'host training' here; choose another"),
        directory.held(tmp_path, "host training", {"seeds": 1}),
    ):
        pass
    assert os.listdir(tmp_path) == ["plan.json"]


@pytest.mark.parametrize("kind", ["folder", "pipe", "link to nothing"])
def test_a_plan_that_is_no_file_is_refused_and_nothing_waits_for_it(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "plan.json"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("nowhere")
    with pytest.raises(deep.CheckpointError, match="choose another directory"):
        train(tmp_path, 100)


def tamper(folder: Path, change: Callable[[Path], None]) -> None:
    """Change a checkpoint as a stranger does who computes the checksums anew."""
    change(folder)
    sums = {name: storage.sha256_of(folder / name) for name in checkpoint._files(folder)}
    (folder / "checksums.json").write_text(json.dumps(sums))


def write(name: str, content: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))

    return change


def outside(folder: Path) -> None:
    (folder / "records.parquet").unlink()
    (folder / "records.parquet").symlink_to("/etc/passwd")


def other_columns(folder: Path) -> None:
    pd.DataFrame({"a": [1]}).to_parquet(folder / "records.parquet")


def many_rows(folder: Path) -> None:
    frame = pd.read_parquet(folder / "records.parquet")
    frame.take(np.tile(np.arange(len(frame)), 11_000)).to_parquet(folder / "records.parquet")


def later(folder: Path) -> None:
    """All tests at a later time, which has tests of its own."""
    frame = pd.read_parquet(folder / "records.parquet")
    frame.assign(step=frame["step"] + 10_000).to_parquet(folder / "records.parquet")
    write("steps.json", [10_500])(folder)


def another(folder: Path) -> None:
    """A run that there is not."""
    frame = pd.read_parquet(folder / "records.parquet")
    frame.assign(seed=7).to_parquet(folder / "records.parquet")


def texts(folder: Path) -> None:
    frame = pd.read_parquet(folder / "records.parquet")
    frame.assign(step="x").to_parquet(folder / "records.parquet")


def long_texts(folder: Path) -> None:
    frame = pd.read_parquet(folder / "records.parquet")
    frame.assign(agent="x" * 100_000).to_parquet(folder / "records.parquet")


def cut(folder: Path) -> None:
    os.truncate(folder / "state.safetensors", 1_000)


def formerly(folder: Path, parts: int = 1) -> None:
    """Write the arrays as former versions did, in parts that claim to be so many times as long."""
    import tensorstore
    from safetensors.numpy import load_file

    arrays = load_file(folder / "state.safetensors")
    (folder / "state.safetensors").unlink()
    context = tensorstore.Context()
    base = {"driver": "file", "path": f"{folder / 'state'}/"}
    for name, array in arrays.items():
        spec = {"driver": "zarr", "kvstore": {"driver": "ocdbt", "base": base, "path": f"{name}/"}}
        spec["metadata"] = {"chunks": [parts * side for side in array.shape], "compressor": {"id": "zstd", "level": 1}}
        store = tensorstore.open(spec, context=context, create=True, dtype=array.dtype, shape=array.shape).result()
        store.write(array).result()


def no_database(folder: Path) -> None:
    formerly(folder)
    for path in (folder / "state" / "d").iterdir():
        path.write_bytes(b"")


def huge_parts(folder: Path) -> None:
    formerly(folder, parts=100)


TAMPERED: dict[str, tuple[Callable[[Path], None], str]] = {
    "steps are texts": (write("steps.json", ["x"]), "steps.json is no list of steps"),
    "steps are negative": (write("steps.json", [-1]), "steps.json is no list of steps"),
    "steps are an object": (write("steps.json", {}), "steps.json is no list of steps"),
    "steps are truths": (write("steps.json", [True]), "steps.json is no list of steps"),
    "steps are nested": (write("steps.json", DEEP), "nested too deeply"),
    "steps are beyond numbers": (write("steps.json", [10**30]), "steps.json is no list of steps"),
    "records of others": (other_columns, "records.parquet has other columns"),
    "too many records": (many_rows, "records.parquet has 55,000 rows"),
    "records are texts": (texts, "records.parquet has a column step of another kind"),
    "records are nothing": (write("records.parquet", "PAR1"), "records.parquet cannot be read"),
    "records have long texts": (long_texts, "records.parquet has a text in its column agent that is no label"),
    "arrays are cut": (cut, "its arrays cannot be read"),
    "arrays are a text": (write("state.safetensors", "x" * 1_000), "its arrays cannot be read"),
    "a database of nothing": (no_database, "its arrays cannot be read"),
    "parts larger than the arrays": (huge_parts, "are larger than the array"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_strangers_checkpoint_with_right_checksums_is_passed_over(
    whole: Path, tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(whole, tmp_path / "run")
    newest = checkpoint.checkpoints(tmp_path / "run" / "checkpoints")[0]
    tamper(newest, TAMPERED[what][0])
    modules = set(sys.modules)
    train(tmp_path / "run", 500)
    said = " ".join(capsys.readouterr().err.split())
    assert re.search(f"{newest.name} is damaged .*{TAMPERED[what][1]}.*going back to the one before", said)
    ours = ("pyarrow", "pandas", "numpy", "jax", "rich", "tensorstore")  # imported by what reads, the first time
    assert not {name for name in set(sys.modules) - modules if not name.startswith(ours)}
    same(whole, tmp_path / "run")


UNTESTED: dict[str, tuple[Callable[[Path], None], str]] = {
    "steps that were not tested": (write("steps.json", [700]), "700"),
    "tests that are left out": (later, "10,500"),
    "records of another run": (another, "500"),
}


@pytest.mark.parametrize("what", UNTESTED)
def test_a_checkpoint_that_is_further_than_its_records_is_refused(whole: Path, tmp_path: Path, what: str) -> None:
    """The training would be over before it has begun."""
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    newest, (change, step) = checkpoint.checkpoints(out / "checkpoints")[0], UNTESTED[what]
    tamper(newest, change)
    said = f"{newest} is at step {step}, and its records do not reach there: remove it, and the same command goes on"
    with pytest.raises(deep.CheckpointError, match=said):
        train(out, 500)
    shutil.rmtree(newest)
    train(out, 500)
    same(whole, out)


def test_how_much_is_read_is_not_the_files_choice(whole: Path, tmp_path: Path) -> None:
    """Steps that are too far to be believed would let a table have hundreds of millions of rows."""
    shutil.copytree(whole, tmp_path / "run")
    newest = checkpoint.checkpoints(tmp_path / "run" / "checkpoints")[0]

    def forge(folder: Path) -> None:
        frame = pd.read_parquet(folder / "records.parquet")
        frame.take(np.tile(np.arange(len(frame)), 60_000)).to_parquet(folder / "records.parquet")
        write("steps.json", [2**31 - 1])(folder)

    tamper(newest, forge)
    with pytest.raises(deep.CheckpointError, match=rf"{newest} is at step 2,147,483,647, far beyond the 500 steps"):
        train(tmp_path / "run", 500)
    assert newest.is_dir()


def test_a_training_that_is_further_than_asked_for_stays_as_it_is(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    found = train(out, 300)
    assert found.finished
    assert found.records["step"].max() == 500
    assert steps_kept(out) == steps_kept(whole)
    same(whole, out)


def test_a_file_of_holes_is_not_read_for_hours(whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(whole, tmp_path / "run")
    newest = checkpoint.checkpoints(tmp_path / "run" / "checkpoints")[0]
    os.truncate(newest / "state.safetensors", 2**42)
    train(tmp_path / "run", 500)
    assert "its files are larger than this training's can be" in " ".join(capsys.readouterr().err.split())
    same(whole, tmp_path / "run")


@pytest.mark.parametrize("name", ["../../../../../../etc/passwd", "/etc/passwd", "state/../../../plan.json"])
def test_checksums_are_not_followed_out_of_the_checkpoint(
    whole: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(whole, tmp_path / "run")
    newest = checkpoint.checkpoints(tmp_path / "run" / "checkpoints")[0]
    sums = json.loads((newest / "checksums.json").read_text())
    (newest / "checksums.json").write_text(json.dumps({name: "0" * 64, **sums}))
    opened: list[Path] = []
    real = storage.sha256_of

    def spied(path: Path) -> str:
        opened.append(path)
        return real(path)

    monkeypatch.setattr(checkpoint, "sha256_of", spied)
    train(tmp_path / "run", 500)
    assert f"{name} is missing" in " ".join(capsys.readouterr().err.split()).replace("- ", "-")
    assert all(path.resolve().is_relative_to(tmp_path / "run" / "checkpoints") for path in opened)


@pytest.mark.parametrize("what", ["link", "pipe", "more"])
def test_a_checkpoint_holds_its_own_files_and_nothing_else(
    whole: Path, tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(whole, tmp_path / "run")
    newest = checkpoint.checkpoints(tmp_path / "run" / "checkpoints")[0]
    if what == "link":
        outside(newest)
    elif what == "pipe":
        os.mkfifo(newest / "pipe")
    else:
        (newest / "more").touch()
    train(tmp_path / "run", 500)
    said = " ".join(capsys.readouterr().err.split())
    assert re.search("is no file|is not in its list of checksums", said)
    assert "going back to the one before" in said


def test_a_checkpoint_of_a_former_version_is_gone_on_with(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(out, 300)
    for path in checkpoint.checkpoints(out / "checkpoints"):
        tamper(path, formerly)
        path.rename(path.with_name(f"{path.name[:12]}-{time.time_ns():020d}"))
    heard: list[int] = []
    train(out, 500, console=Console(file=io.StringIO()), on_record=lambda row: heard.append(row["step"]))
    assert heard == [400, 500]
    same(whole, out)


@pytest.mark.parametrize("change", ["steps", "shapes", "names", "types"])
def test_a_checkpoint_of_another_shape_is_refused_before_memory_is_taken(
    whole: Path, tmp_path: Path, change: str
) -> None:
    shutil.copytree(whole, tmp_path / "run")
    newest = checkpoint.checkpoints(tmp_path / "run" / "checkpoints")[0]

    def changed(folder: Path) -> None:
        path = folder / "state.safetensors"
        size = int.from_bytes(path.read_bytes()[:8], "little")
        header = json.loads(path.read_bytes()[8 : 8 + size])
        name = max(header, key=lambda name: header[name].get("data_offsets", [0, 0])[1])
        begin, end = header[name]["data_offsets"]
        if change == "names":
            header["another"] = header.pop(name)
        elif change == "types":
            header[name]["dtype"] = {"U32": "I32", "F32": "U32"}.get(header[name]["dtype"], "U8")
        else:
            header[name]["shape"] = [2**28, *header[name]["shape"][1:]] if len(header[name]["shape"]) == 1 else [2**28]
            header[name]["dtype"], header[name]["data_offsets"] = "U8", [begin, begin + 2**28]
            end = begin + 2**28
        text = json.dumps(header).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + path.read_bytes()[8 + size :])
        os.truncate(path, 8 + len(text) + max(end, begin))

    tamper(newest, write("steps.json", [500, 500]) if change == "steps" else changed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(deep.CheckpointError, match="a training of another shape"):
        train(tmp_path / "run", 500)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kilobytes


def test_records_go_through_a_file_without_a_change(whole: Path) -> None:
    found = Records.read(whole, 10**6)
    for name in ("records", "heads", "quantiles"):
        pd.testing.assert_frame_equal(found.frame(name), pd.read_parquet(whole / f"{name}.parquet"))


def test_the_second_process_on_the_command_line_gets_the_sentence(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    options = ["--env", "minatar/breakout", "--agent", "dqn", "--steps", "10", "--replay-capacity", "100"]
    with directory.alone(tmp_path / "run"):
        answer = maxmean("train", *options, "--out", tmp_path / "run")
    assert answer.returncode == 2
    assert answer.stderr.startswith(f"maxmean: another process is training in {tmp_path / 'run'}; wait until it has")


@pytest.mark.parametrize("where", ["full disk", "closed pipe", *slow("nowhere", "closed file")])
def test_a_training_goes_on_though_nobody_hears_of_it(
    whole: Path, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if where == "closed pipe":
        reader, writer = os.pipe()
        os.close(reader)
        stream: Any = os.fdopen(writer, "w", buffering=1)
    else:
        stream = None if where == "nowhere" else Path("/dev/full").open("w", buffering=1)  # noqa: SIM115
    if where == "closed file":
        stream.close()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        assert train(tmp_path / "run", 500, quiet=False).finished
    if where in ("full disk", "closed pipe"):
        stream.close()  # what it could not take is forgotten
    same(whole, tmp_path / "run")


@pytest.mark.parametrize("env", ["minatar/breakout", "CartPole-v1"])
def test_a_name_that_is_not_utf8_is_refused_before_anything_is_written(env: str, tmp_path: Path) -> None:
    out = f"{tmp_path}/run-\udcff"
    answer = maxmean("train", "--env", env, "--agent", "dqn", "--steps", 10, "--replay-capacity", 100, "--out", out)
    assert answer.returncode == 2
    assert re.fullmatch(r"maxmean: the name of the directory .*udcff' is not UTF-8; choose another .*\n", answer.stderr)
    assert not os.listdir(tmp_path)
    with pytest.raises(deep.CheckpointError, match="is not UTF-8"):
        train(tmp_path / "a\0b", 10)


def test_any_other_name_will_do(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "two\nlines \x1b[31m [bold] %s {0} \u00e9"
    train(out, 500)
    same(whole, out)


def test_links_in_the_directory_are_not_written_through(whole: Path, tmp_path: Path) -> None:
    """In a directory from a stranger they could lead to any file of the user's."""
    out = tmp_path / "run"
    shutil.copytree(whole, out)
    shutil.rmtree(checkpoint.checkpoints(out / "checkpoints")[0])
    files = [
        path for path in [*out.iterdir(), *out.glob("policies/*")] if path.is_file() and path.name != directory.LOCK
    ]
    aside = linked(files, tmp_path / "aside")
    assert len(aside) == 6
    train(out, 500)
    assert untouched(aside)
    assert [path.name for path in out.rglob("*") if path.is_symlink()] == ["plan.json"]  # which is not written again
    same(whole, out)


@pytest.mark.parametrize("name", ["checkpoints", "policies"])
def test_a_folder_that_is_a_link_is_refused_before_the_training(whole: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(whole, tmp_path / "run")
    (tmp_path / "run" / name).rename(tmp_path / "theirs")
    (tmp_path / "run" / name).symlink_to(tmp_path / "theirs")
    there = sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "theirs").rglob("*"))
    with pytest.raises(deep.CheckpointError, match=f"cannot use .*run: the folder {name} is a link"):
        train(tmp_path / "run", 600)
    assert sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "theirs").rglob("*")) == there


def test_a_directory_that_is_named_by_a_link_is_used(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to(tmp_path / "real")
    (tmp_path / "real").mkdir()
    train(tmp_path / "run", 500)
    assert (tmp_path / "run").is_symlink()
    same(whole, tmp_path / "real")
