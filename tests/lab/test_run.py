"""Facts about runs: resumed, shared and damaged ones give what an undisturbed one gives."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from inside import maxmean
from maxmean.lab.claims import judge
from maxmean.lab.engines import Inline
from maxmean.lab.progress import Silent
from maxmean.lab.run import ExperimentJob, load, load_best, reproduce
from maxmean.lab.store import Store
from toys import Settings, Toy

ONE = [sys.executable, "-m", "maxmean.cli", "reproduce", "gaussian", "--scale", "quick"]
COMMAND = [*ONE, "correlation"]


class Notes(Silent):
    def __init__(self) -> None:
        self.sentences: list[str] = []

    def say(self, sentence: str) -> None:
        self.sentences.append(sentence)


def run(store: Store, settings: Settings = Settings(), seed: int = 0, notes: Notes | None = None) -> tuple[int, int]:  # noqa: B008
    summary = reproduce([ExperimentJob.of(Toy(settings), "quick")], store, Inline(), seed, notes or Notes())
    return summary.computed, summary.kept


def finished(folder: Path) -> int:
    """How many shards there are."""
    return len(list(folder.glob("*/*.parquet")))


def checksums(folder: Path) -> dict[str, str]:
    tables = folder.glob("*/*.parquet")
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in tables}


def test_the_same_command_skips_what_is_done(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert run(store) == (6, 0)
    assert run(store) == (0, 6)


def test_changed_settings_do_not_mix_with_old_results(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run(store)
    assert run(store, Settings(draws=7)) == (6, 0)
    results = load(store, Toy(Settings(draws=7)), "quick", 0)
    assert results is not None
    assert len(results.table) == 42
    assert run(store, seed=1) == (6, 0)


def test_a_damaged_shard_is_named_and_computed_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run(store)
    before = checksums(tmp_path)
    victim = tmp_path / next(iter(before))
    victim.write_bytes(victim.read_bytes()[:30])
    notes = Notes()
    assert run(store, notes=notes) == (1, 5)
    assert str(victim) in notes.sentences[0]
    assert "computed again" in notes.sentences[0]
    assert checksums(tmp_path) == before


def test_results_are_joined_in_the_order_of_the_shards(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run(store)
    results = load_best(store, Toy())
    assert results is not None
    assert results.table["shard"].tolist() == [k for k in range(6) for _ in range(5)]
    assert results.missing == 0


def test_missing_and_damaged_shards_leave_the_verdict_open(tmp_path: Path) -> None:
    store, toy = Store(tmp_path), Toy()
    assert judge(toy, load_best(store, toy))[0].note == "not run yet"
    run(store)
    next(tmp_path.glob("toy/*.parquet")).unlink()
    results = load_best(store, toy)
    assert results is not None
    assert results.missing == 1
    (verdict,) = judge(toy, results)
    assert verdict.verdict == "undecided"
    assert "missing or damaged: 1;" in verdict.note


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"shards": 3}', '{"shards": [{"a": 1}]}'])
def test_a_damaged_plan_counts_as_never_run_and_is_written_again(tmp_path: Path, content: str) -> None:
    store = Store(tmp_path)
    run(store)
    (tmp_path / "toy" / "quick-0.plan.json").write_text(content)
    assert load_best(store, Toy()) is None
    assert run(store) == (0, 6)
    assert load_best(store, Toy()) is not None


def test_a_manifest_without_its_content_is_damage_that_heals(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run(store)
    manifest = next(path for path in tmp_path.glob("toy/*.json") if "plan" not in path.name)
    manifest.write_text(json.dumps({"sha256": json.loads(manifest.read_text())["sha256"]}))
    notes = Notes()
    assert run(store, notes=notes) == (1, 5)
    assert str(manifest) in notes.sentences[0]


def test_each_seed_and_scale_has_its_own_results(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run(store, seed=1)
    run(store, seed=2)
    first, second = (load_best(store, Toy(), ("quick", seed)) for seed in (1, 2))
    assert first is not None
    assert second is not None
    assert (first.seed, second.seed) == (1, 2)
    assert not first.table.equals(second.table)
    latest = load_best(store, Toy())
    assert latest is not None
    assert latest.seed == 2


def test_results_of_an_older_version_of_an_experiment_are_not_taken_for_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    run(store)
    monkeypatch.setattr(Toy, "version", 2)
    assert load_best(store, Toy()) is None
    assert run(store) == (6, 0)


def test_a_failed_shard_is_said_and_the_rest_is_kept(tmp_path: Path) -> None:
    store, notes = Store(tmp_path), Notes()
    summary = reproduce([ExperimentJob.of(Toy(Settings(trouble="raise")), "quick")], store, Inline(), 0, notes)
    assert (summary.computed, len(summary.failed)) == (5, 1)
    assert notes.sentences == ["toy(shard=2) failed: RuntimeError: shard 2 always fails"]
    assert len(checksums(tmp_path)) == 5


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    subprocess.run([*COMMAND, "--out", str(out), "--engine", "inline", "--quiet"], check=True)
    return checksums(out)


def kill_and_resume(command: list[str], out: Path, arguments: list[str], kills: int, seed: int) -> int:
    """Kill a run ``kills`` times, each time soon after it has finished something more; then let it finish."""
    chance = random.Random(seed)
    command = [*command, "--out", str(out), "--quiet", *arguments]
    struck = 0
    while struck < kills:
        process = subprocess.Popen(command, start_new_session=True)
        goal = finished(out) + chance.choice([0, 0, 1])
        while process.poll() is None and (not out.exists() or finished(out) < goal):
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 1.5))
        if process.poll() is not None:
            break
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        struck += 1
    subprocess.run(command, check=True)
    return struck


def test_killed_runs_resume_to_the_same_bits(tmp_path: Path) -> None:
    assert maxmean(*ONE[3:], "--out", tmp_path / "whole", "--engine", "inline", "--quiet").returncode == 0
    assert kill_and_resume(ONE, tmp_path / "out", ["--workers", "2"], kills=1, seed=5) == 1
    assert checksums(tmp_path / "out") == checksums(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [["--workers", "1"], ["--workers", "2"], ["--engine", "inline"], ["--engine", "ray", "--workers", "2"]],
)
def test_killed_runs_resume_to_the_same_bits_on_every_engine(
    tmp_path: Path, undisturbed: dict[str, str], arguments: list[str]
) -> None:
    assert kill_and_resume(COMMAND, tmp_path / "out", arguments, kills=5, seed=2) == 5
    assert checksums(tmp_path / "out") == undisturbed


@pytest.mark.slow
def test_a_real_local_ray_gives_the_same_bits(tmp_path: Path, undisturbed: dict[str, str]) -> None:
    out = tmp_path / "out"
    subprocess.run([*COMMAND, "--out", str(out), "--engine", "ray", "--workers", "2", "--quiet"], check=True)
    assert checksums(out) == undisturbed


@pytest.mark.slow
def test_two_processes_on_one_directory_do_not_harm_each_other(tmp_path: Path, undisturbed: dict[str, str]) -> None:
    command = [*COMMAND, "--out", str(tmp_path / "out"), "--workers", "1", "--quiet"]
    both = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert checksums(tmp_path / "out") == undisturbed


def test_workers_follow_a_killed_parent(tmp_path: Path) -> None:
    process = subprocess.Popen([*COMMAND, "--out", str(tmp_path / "out"), "--workers", "2", "--quiet"])
    while not list((tmp_path / "out").glob("*/*.parquet")):
        time.sleep(0.02)
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
    assert children
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    end = time.monotonic() + 20
    while any(alive(int(child)) for child in children):
        assert time.monotonic() < end
        time.sleep(0.1)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen([*COMMAND, "--out", str(out)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while not list(out.glob("*/*.parquet")):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on" in errors
    assert "Traceback" not in errors
    assert not list(out.rglob(".maxmean-*"))
    tables = [pd.read_parquet(path) for path in out.glob("*/*.parquet")]
    assert tables


def test_what_a_finished_shard_was_made_from_goes(tmp_path: Path) -> None:
    """A kill between the manifest and that leaves it; the next run takes it away."""
    store = Store(tmp_path)
    run(store)
    (first, *_) = Toy().shards(Settings(), 0)
    (store.folder(first) / "checkpoints").mkdir(parents=True)
    run(store)
    assert store.has(first)
    assert not store.folder(first).exists()
