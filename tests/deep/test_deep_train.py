"""Training as a whole: records, checkpoints, going on after a kill, policies, and what is refused."""

from __future__ import annotations

import io
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from deep_toys import CORRIDOR
from maxmean import deep, envs
from maxmean.deep import checkpoint, directory, progress
from maxmean.deep.core import memory
from maxmean.deep.device import memory as device_memory
from maxmean.deep.device import training
from maxmean.deep.device.block import Block, make_blocks
from maxmean.deep.device.memory import how_many_tests, need
from maxmean.deep.device.plan import TrainingPlan
from maxmean.deep.records import TABLES

SMALL = deep.Settings(
    warmup=100,
    replay_capacity=400,
    test_interval=200,
    target_period=50,
    test_episodes=2,
    bias_episodes=2,
    bias_episodes_per_head=1,
    hidden=8,
)
AGENTS = (deep.DQN(), deep.AdaTEBDQN(1e-3, 4, k=3))
"""One of each kind: whole networks that explore by epsilon, heads that adapt."""

WORLDS: dict[str, Any] = {"corridor": CORRIDOR, "breakout": "minatar/breakout"}
"""A step of the first takes no time, nor does it take long to compile."""

SCRIPT = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
from test_deep_train import small_training

def die(row):
    if row["step"] > int(sys.argv[5]):
        os.kill(os.getpid(), signal.SIGKILL)

small_training(Path(sys.argv[3]), world=sys.argv[4], on_record=die)
"""


def small_training(out: Path | None, steps: int = 1_000, *, world: str = "corridor", **options: Any) -> deep.Training:
    return deep.train(
        WORLDS[world], AGENTS, steps=steps, seeds=2, settings=SMALL, out=out, checkpoint_interval=200, **options
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, deep.Training]:
    out = tmp_path_factory.mktemp("whole") / "run"
    return out, small_training(out)


def test_every_run_has_a_record_at_every_test(whole: tuple[Path, deep.Training]) -> None:
    _, found = whole
    assert found.finished
    expected = {
        (step, label, seed)
        for step in range(200, 1001, 200)
        for label in ("dqn", "ada-te-bdqn(0.001)")
        for seed in (0, 1)
    }
    assert set(found.records[["step", "variant", "seed"]].itertuples(index=False, name=None)) == expected
    assert len(found.records) == len(expected)
    assert found.records["test_return"].notna().all()
    assert found.records["bias"].notna().all()
    assert (found.records["bias_pairs"] > 0).all()
    assert (found.records["diverged"] == -1).all()


def test_alpha_is_recorded_for_agents_that_have_one_and_moves_where_it_adapts(
    whole: tuple[Path, deep.Training],
) -> None:
    records = whole[1].records
    assert records[records["agent"] == "dqn"]["alpha"].isna().all()
    alpha = records[records["agent"] == "ada-te-bdqn"]["alpha"]
    assert alpha.between(1e-6, 0.5).all()
    assert alpha.nunique() > 1


def test_epsilon_falls_and_heads_have_none(whole: tuple[Path, deep.Training]) -> None:
    records = whole[1].records
    dqn = records[(records["agent"] == "dqn") & (records["seed"] == 0)]
    np.testing.assert_allclose(dqn["epsilon"], 1.0 - 0.9 * dqn["step"] / 100_000, rtol=1e-6)
    assert (records[records["agent"] != "dqn"]["epsilon"] == 0.0).all()


def test_the_bias_is_the_mean_of_the_heads(whole: tuple[Path, deep.Training]) -> None:
    found = whole[1]
    heads = found.heads.groupby(["step", "variant", "seed"])["bias"].mean()
    records = found.records[found.records["agent"] == "ada-te-bdqn"].set_index(["step", "variant", "seed"])["bias"]
    np.testing.assert_allclose(heads.sort_index(), records.sort_index(), rtol=1e-5, atol=1e-6)
    assert set(found.heads["head"]) == {0, 1, 2}
    assert set(found.quantiles["fifth"]) == set(range(5))


def test_the_tables_are_on_the_disk_as_they_were_given(whole: tuple[Path, deep.Training]) -> None:
    out, found = whole
    for name, frame in zip(TABLES, (found.records, found.heads, found.quantiles), strict=True):
        pd.testing.assert_frame_equal(pd.read_parquet(out / f"{name}.parquet"), frame)


def test_two_checkpoints_are_kept(whole: tuple[Path, deep.Training]) -> None:
    steps = [int(path.name.split("-")[0]) for path in checkpoint.checkpoints(whole[0] / "checkpoints")]
    assert steps == [1000, 800]


def test_a_finished_training_is_not_computed_again(whole: tuple[Path, deep.Training]) -> None:
    out, found = whole
    begin = (out / "records.parquet").stat().st_mtime_ns
    again = small_training(out)
    pd.testing.assert_frame_equal(again.records, found.records)
    assert (out / "records.parquet").stat().st_mtime_ns == begin


def test_more_steps_go_on_from_there(whole: tuple[Path, deep.Training], tmp_path: Path) -> None:
    small_training(tmp_path / "run", steps=600)
    longer = small_training(tmp_path / "run", steps=1_000)
    same_training(whole, (tmp_path / "run", longer))


def same_training(first: tuple[Path, deep.Training], second: tuple[Path, deep.Training]) -> None:
    """Records and parameters are the same, bit for bit."""
    for name in TABLES:
        assert (first[0] / f"{name}.parquet").read_bytes() == (second[0] / f"{name}.parquet").read_bytes()
    for path in sorted((first[0] / "policies").iterdir()):
        assert path.read_bytes() == (second[0] / "policies" / path.name).read_bytes()


def killed_after(out: Path, step: int, world: str = "corridor") -> None:
    """Start the training in a process of its own, which is killed at the first record behind the checkpoint of this step."""
    here = Path(__file__).parent
    command = [sys.executable, "-c", SCRIPT, str(here), str(here.parent), str(out), world, str(step)]
    process = subprocess.run(command, capture_output=True, check=False)
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()
    assert max(int(path.name.split("-")[0]) for path in checkpoint.checkpoints(out / "checkpoints")) == step
    assert not (out / "policies").exists()


def test_a_killed_training_goes_on_and_ends_the_same(whole: tuple[Path, deep.Training], tmp_path: Path) -> None:
    killed_after(tmp_path / "run", 400)
    same_training(whole, (tmp_path / "run", small_training(tmp_path / "run")))


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_a_training_killed_several_times_ends_the_same(world: str, tmp_path: Path) -> None:
    undisturbed = small_training(tmp_path / "whole", world=world)
    for step in (200, 400, 600, 800):
        killed_after(tmp_path / "run", step, world)
    killed = small_training(tmp_path / "run", world=world)
    same_training((tmp_path / "whole", undisturbed), (tmp_path / "run", killed))


def test_a_damaged_checkpoint_is_named_and_the_one_before_serves(
    whole: tuple[Path, deep.Training], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    small_training(out, steps=800)
    newest = checkpoint.checkpoints(out / "checkpoints")[0]
    victim = max((path for path in newest.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    found = small_training(out, quiet=False)
    said = capsys.readouterr().err
    assert newest.name in said
    assert "damaged" in said
    assert "Going on from step 600." in said
    same_training(whole, (out, found))


def test_ctrl_c_keeps_what_is_done(tmp_path: Path, whole: tuple[Path, deep.Training]) -> None:
    calls = 0

    def interrupt(row: dict[str, object]) -> None:
        nonlocal calls
        calls += 1
        if calls == 5:  # in the second round of records
            os.kill(os.getpid(), signal.SIGINT)

    stopped = small_training(tmp_path / "run", on_record=interrupt)
    assert not stopped.finished
    assert stopped.records["step"].max() == 400
    same_training(whole, (tmp_path / "run", small_training(tmp_path / "run")))


@pytest.mark.parametrize("step", [pytest.param(400, marks=pytest.mark.slow), 1_000])
def test_ctrl_c_just_before_a_test_loses_no_record(
    tmp_path: Path, whole: tuple[Path, deep.Training], monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """The signal comes in the last piece of the last run before a test, also before the last one of all."""
    advance, arrived = Block.advance, []

    def interrupt(block: Block, end: int, stopped: Any) -> None:
        advance(block, end, stopped)
        if end == step:
            arrived.append(block)
            if len(arrived) == 2 * len(AGENTS):
                os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Block, "advance", interrupt)
    stopped = small_training(tmp_path / "run", workers=1)
    monkeypatch.undo()
    assert stopped.finished == (step == 1_000)
    assert stopped.records["step"].max() == step
    same_training(whole, (tmp_path / "run", small_training(tmp_path / "run")))


def test_agents_in_another_order_are_refused(whole: tuple[Path, deep.Training]) -> None:
    with pytest.raises(deep.CheckpointError, match="agents come in another order"):
        deep.train(CORRIDOR, AGENTS[::-1], steps=1_000, seeds=2, settings=SMALL, out=whole[0])


def test_a_directory_of_another_training_is_refused_with_the_difference(whole: tuple[Path, deep.Training]) -> None:
    with pytest.raises(
        deep.CheckpointError, match=r"holds another training: learning_rates is .* choose another directory"
    ):
        small_training(whole[0], learning_rates=1e-3)
    with pytest.raises(deep.CheckpointError, match=r"settings\.discount is 0\.99 there and 0\.9 here"):
        deep.train(
            CORRIDOR,
            AGENTS,
            steps=10,
            seeds=2,
            settings=deep.Settings(**{**vars(SMALL), "discount": 0.9}),
            out=whole[0],
        )


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(deep.CheckpointError, match="not empty"):
        small_training(tmp_path)


def test_what_a_kill_left_before_there_was_a_plan_is_nothing(tmp_path: Path) -> None:
    (tmp_path / ".maxmean-123-abcd").write_text("{")
    with directory.held(tmp_path, "device training", {"a": 1}):
        assert not (tmp_path / ".maxmean-123-abcd").exists()
    assert json.loads((tmp_path / "plan.json").read_text()) == {"kind": "device training", "a": 1}


def test_two_trainings_do_not_share_a_directory(tmp_path: Path) -> None:
    """Else one would sweep away the checkpoint that the other is writing. The hold ends with its process."""
    holding = (
        "import sys, time; from pathlib import Path; from maxmean.deep import directory\n"
        "with directory.alone(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", holding, str(tmp_path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(deep.CheckpointError, match="another process is training in"), directory.alone(tmp_path):
            pass
        other.kill()
    with directory.alone(tmp_path):
        pass


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "steps must be at least 1"),
        ({"seeds": 0}, "at least one agent, one learning rate and one seed"),
        ({"seeds": [1, 1]}, "named twice"),
        ({"seeds": [-1]}, "a seed must be at least 0"),
        ({"learning_rates": -1.0}, "learning_rate must be positive, not -1.0"),
        ({"agents": [deep.TEBDQN(0.1), deep.TEBDQN(0.1)]}, r"both be called te-bdqn\(0.1\)"),
    ],
)
def test_bad_input_gets_one_sentence(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"agents": deep.DQN(), "steps": 10, "settings": SMALL, **change}
    with pytest.raises(deep.AgentError, match=message):
        deep.train(CORRIDOR, **arguments)


def test_a_diverged_run_is_reported_and_kept_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    found = deep.train(CORRIDOR, deep.DQN(), steps=400, learning_rates=[1e-4, 1e30], settings=SMALL, quiet=False)
    last = found.records[found.records["step"] == 400].set_index("learning_rate")["diverged"]
    assert last[1e-4] == -1
    assert 100 <= last[1e30] < 400
    said = f"dqn with learning rate 1e+30 and seed 0 diverged: its loss is not finite since step {last[1e30]}."
    assert " ".join(capsys.readouterr().err.split()).count(said) == 1  # of two records


def test_memory_is_said_up_front_and_what_cannot_fit_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = TrainingPlan.of(envs.make("minatar/seaquest"), deep.KEBDQN(), 100, None, deep.Settings())
    needed = need(make_blocks(plan, batched=True))
    assert needed.replay < 3 * 2**30  # a hundred seeds of the largest game fit in a few GiB
    monkeypatch.setattr(memory, "available", lambda: 10_000)
    with pytest.raises(
        deep.AgentError, match=r"needs .* but there are 9.8 KiB; use fewer seeds or fewer test_episodes and"
    ):
        small_training(None)


def test_a_policy_acts_as_it_did_and_is_plain_data(whole: tuple[Path, deep.Training]) -> None:
    out, found = whole
    loaded = deep.load(out / "policies" / "ada-te-bdqn-0.001.safetensors")
    trained = found.policies["ada-te-bdqn-0.001"]
    _, seen = CORRIDOR.reset(jnp.array([0, 1], jnp.uint32))
    np.testing.assert_array_equal(loaded.values(seen), trained.values(seen))
    assert loaded.act(seen) == trained.act(seen)
    assert json.loads((out / "policies" / "dqn.json").read_text())["about"]["environment"]["name"] == "table"
    assert deep.load(out).about["variant"] in {"dqn", "ada-te-bdqn(0.001)"}


@pytest.mark.parametrize("damage", ["text", "weights", "shape", "format"])
def test_a_file_that_is_no_policy_is_refused(whole: tuple[Path, deep.Training], tmp_path: Path, damage: str) -> None:
    path = tmp_path / "dqn.safetensors"
    path.write_bytes((whole[0] / "policies" / "dqn.safetensors").read_bytes())
    text = json.loads((whole[0] / "policies" / "dqn.json").read_text())
    if damage == "weights":
        path.write_bytes(b"\x00" * 100)
    if damage == "shape":
        text["network"]["hidden"] = 9
    if damage == "format":
        text["format"] = 99
    (tmp_path / "dqn.json").write_text("{" if damage == "text" else json.dumps(text))
    with pytest.raises(deep.AgentError, match=r"dqn\.safetensors"):
        deep.load(path)


def test_there_must_be_a_policy(tmp_path: Path) -> None:
    with pytest.raises(deep.AgentError, match="no policies"):
        deep.load(tmp_path)
    with pytest.raises(deep.AgentError, match="no policy"):
        deep.load(tmp_path / "none")


def test_a_policy_refuses_observations_of_another_game(whole: tuple[Path, deep.Training]) -> None:
    with pytest.raises(deep.AgentError, match=r"sees observations of shape \(5,\), not \(10, 10, 10\)"):
        whole[1].policies["dqn"].act(np.zeros((10, 10, 10), bool))


def test_what_the_time_went_into(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of ours: what the first of each takes beyond the others is for compiling. One that failed is not counted."""
    clock = iter([0.0, 7.0, 7.0, 9.0, 9.0, 12.0, 12.0, 14.0, 14.0])
    monkeypatch.setattr("maxmean.deep.progress.time.monotonic", lambda: next(clock))
    times = progress.Times()
    for what in ("learning", "tests", "learning", "tests"):
        with times(what):
            pass
    with pytest.raises(ZeroDivisionError), times("learning"):
        raise ZeroDivisionError
    assert str(times) == "14 s: learning 43%, tests 29%, compiling 29%."


def test_a_long_training_says_what_its_time_went_into(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    for long, ends in ((0.0, True), (1e6, False)):
        monkeypatch.setattr(training, "LONG", long)
        said.seek(said.truncate(0))
        small_training(None, 200, quiet=False, console=Console(file=said, width=200))
        assert ("compiling" in said.getvalue().splitlines()[-1]) is ends


def training_with(
    monkeypatch: pytest.MonkeyPatch, tests: int, out: Path | None = None, steps: int = 1_000, **options: Any
) -> deep.Training:
    monkeypatch.setattr(training, "how_many_tests", lambda *_: tests)
    options = {"checkpoint_interval": 600, "batched": True} | options
    return deep.train(CORRIDOR, AGENTS, steps=steps, seeds=2, settings=SMALL, out=out, **options)


def same_tables(first: deep.Training, second: deep.Training) -> None:
    for name in ("records", "heads", "quantiles"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(second, name), check_exact=True)


def test_tests_run_at_once_find_what_they_find_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five tests, three at a time: at the first checkpoint all three wait, at the end two."""
    same_tables(training_with(monkeypatch, 3), training_with(monkeypatch, 1))


def test_tests_that_wait_are_run_before_a_checkpoint_and_at_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uninterrupted, look, looks = training_with(monkeypatch, 3, tmp_path / "whole"), Block.look, 0

    def interrupt(block: Block) -> None:
        nonlocal looks
        look(block)
        looks += 1
        if looks == 4:  # two blocks: the second test of three, so that neither tests nor a checkpoint are due
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Block, "look", interrupt)
    stopped = training_with(monkeypatch, 3, tmp_path / "stopped")
    assert not stopped.finished
    assert sorted(set(stopped.records["step"])) == [200, 400]
    same_tables(training_with(monkeypatch, 3, tmp_path / "stopped"), uninterrupted)


def test_no_test_waits_at_a_checkpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Four tests at once, and a checkpoint after every two: a kill after it must not cost what nobody has found out yet."""
    keep, kept, asked = training.Session._keep, [], []

    def look(session: training.Session) -> None:
        kept.append((session.blocks[0].step, sum(len(block.waiting) for block in session.blocks)))
        keep(session)

    def four(plan: TrainingPlan, batched: bool | None, between: int) -> int:
        asked.append(between)
        return 4

    monkeypatch.setattr(training.Session, "_keep", look)
    monkeypatch.setattr(training, "how_many_tests", four)
    deep.train(CORRIDOR, AGENTS[0], steps=1_000, settings=SMALL, out=tmp_path, checkpoint_interval=400, batched=True)
    assert kept == [(400, 0), (800, 0), (1_000, 0)]
    assert asked == [2]


def plan_of(*agents: deep.Agent, seeds: int = 10, game: str = "breakout", **changes: int) -> TrainingPlan:
    return TrainingPlan.of(envs.make(f"minatar/{game}"), agents, seeds, None, deep.Settings(**changes))  # type: ignore[arg-type]


def needed_by(plan: TrainingPlan, tests: int) -> memory.Need:
    return need(make_blocks(plan, batched=True, tests=tests))


def test_how_many_tests_are_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ten = plan_of(deep.KEBDQN())
    assert how_many_tests(ten, None, 10) == 1  # on a CPU
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(device_memory, "available", lambda: 2**37)
    found = [
        how_many_tests(plan_of(deep.KEBDQN(), seeds=seeds), None, between)
        for seeds, between in ((10, 10), (1, 99), (10, 0), (40, 10), (200, 10))
    ]
    assert found == [10, 10, 1, 3, 1]
    assert how_many_tests(ten, False, 10) == 1
    # Of families of 80 and of 40 runs the larger one decides.
    assert how_many_tests(plan_of(deep.KEBDQN(), deep.TEBDQN(0.1), deep.DQN(), seeds=40), None, 10) == 1


def test_how_much_memory_tests_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share of what there is, and never so much that a training is refused that fits with one test at a time."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    ten = plan_of(deep.KEBDQN())
    more = needed_by(ten, 4).total - needed_by(ten, 1).total
    monkeypatch.setattr(device_memory, "available", lambda: math.ceil(more / device_memory.SHARE))
    assert how_many_tests(ten, None, 10) == 4
    monkeypatch.setattr(device_memory, "available", lambda: 1)
    assert how_many_tests(ten, None, 10) == 1
    large = plan_of(deep.KEBDQN(), game="seaquest", replay_capacity=10_000_000)
    there = math.ceil(needed_by(large, 2).total / memory.FULL)
    monkeypatch.setattr(device_memory, "available", lambda: there)
    assert how_many_tests(large, None, 10) == 2


def test_snapshots_that_wait_take_memory() -> None:
    """Each is held twice when its turn comes: by itself, and stacked with the others. All blocks' wait at the same time."""
    heads, one = plan_of(deep.KEBDQN()), plan_of(deep.DQN())
    alone, ten = (needed_by(heads, tests) for tests in (1, 10))
    weights = alone.networks // memory.COPIES
    assert ten == alone._replace(rollouts=10 * alone.rollouts + 2 * 10 * weights)
    smaller = needed_by(one, 1).networks // memory.COPIES
    both = needed_by(plan_of(deep.KEBDQN(), deep.DQN()), 10)
    assert both.rollouts == ten.rollouts + 10 * smaller
