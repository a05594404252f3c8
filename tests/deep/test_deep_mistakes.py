"""Mistakes get one sentence: in agents, rules, settings, directories, policies and on the command line."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from deep_toys import CORRIDOR
from maxmean import deep, mev
from maxmean.cli import app
from maxmean.deep import checkpoint
from maxmean.deep.targets import NextValues
from maxmean.deep.watch import play
from strangers import forge_policy, put

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
OPTIONS = ["--warmup", "60", "--replay-capacity", "400", "--test-interval", "100", "--target-period", "50"]
OPTIONS += ["--test-episodes", "2", "--hidden", "8"]
"""With these, DQN learns by the program of ``deep.train``'s example, compiled once."""


def scalar(q: NextValues, parameter: jax.Array) -> jax.Array:
    return jnp.max(q.target)


def looks_online(q: NextValues, parameter: jax.Array) -> jax.Array:
    return jnp.max(q.online, axis=-1)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: deep.train(CORRIDOR, deep.Agent("x", scalar), steps=100, settings=TINY),
            r"scalar must give one value",
        ),
        (lambda: deep.train(CORRIDOR, deep.Agent("x", looks_online), steps=100, settings=TINY), r"online=True"),
        (lambda: deep.train(CORRIDOR, "dqn", steps=100.5), "steps must be a whole number"),  # type: ignore[arg-type]
        (lambda: deep.train(CORRIDOR, "dqn", steps=0), "steps must be at least 1"),
        (lambda: deep.train(CORRIDOR, "dqn", steps=1, workers=-1), "workers must be at least 1"),
        (lambda: deep.train(CORRIDOR, "dqn", steps=1, seeds=[0.5]), "a seed must be a whole"),  # type: ignore[list-item]
        (lambda: deep.train(CORRIDOR, "dqn", steps=1, learning_rates=[1e-4, 1e-4]), "learning rate is named twice"),
        (
            lambda: deep.train(CORRIDOR, "dqn", steps=1, learning_rates=[np.inf]),
            "learning_rate must be a finite number",
        ),
        (lambda: deep.train(CORRIDOR, deep.DQN, steps=1), "an agent is a maxmean.deep.Agent"),  # type: ignore[arg-type]
        (lambda: deep.train(None, "dqn", steps=1), "environment must be a name"),  # type: ignore[arg-type]
        (lambda: deep.train(CORRIDOR, "dqn", steps=1, settings={}), "settings must be"),  # type: ignore[arg-type]
        (lambda: deep.train(CORRIDOR, [deep.BDQN(2), deep.BDQN(3)], steps=1), "both be called bdqn"),
        (lambda: deep.MaxMinDQN(2.5), "number of members must be a whole number"),  # type: ignore[arg-type]
        (lambda: deep.Settings(hidden=8.5), "hidden must be a whole number, not 8.5"),  # type: ignore[arg-type]
    ],
)
def test_what_makes_no_sense_is_refused(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(deep.AgentError, match=sentence):
        call()


def test_whole_numbers_may_be_written_as_floats_or_come_from_numpy() -> None:
    found = deep.train(CORRIDOR, "dqn", steps=1e2, seeds=np.int64(1), learning_rates=np.float32(1e-3), settings=TINY)  # type: ignore[arg-type]
    assert found.records["step"].tolist() == [100]


def test_kernels_set_agents_apart() -> None:
    assert deep.KEBDQN().label == "ke-bdqn"
    assert deep.KEBDQN(mev.Beta(2, 0.5)).label == "ke-bdqn(Beta(a=2, b=0.5))"


def test_a_rule_that_is_an_object_describes_itself_alike_in_every_process() -> None:
    class Rule:
        def __call__(self, q: NextValues, parameter: jax.Array) -> jax.Array:
            return jnp.max(q.target, axis=-1)

    assert " at 0x" not in deep.Agent("x", Rule()).describe()["rule"]


def test_a_run_that_diverged_leaves_no_policy(tmp_path: Path) -> None:
    found = deep.train(CORRIDOR, "dqn", steps=300, learning_rates=1e30, settings=TINY, out=tmp_path / "run")
    assert (found.records["diverged"].iloc[-1]) >= 0
    assert found.policies == {}
    with pytest.raises(deep.AgentError, match="there are no policies"):
        deep.load(tmp_path / "run")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training on Breakout, made by the command."""
    out = tmp_path_factory.mktemp("commands") / "run"
    arguments = ["train", "--env", "minatar/breakout", "--agent", "dqn", "--steps", "200", "--out", str(out), *OPTIONS]
    run = CliRunner().invoke(app, [*arguments, "--checkpoint-interval", "100"], env={"COLUMNS": "200"})
    assert run.exit_code == 0, run.output
    assert f"maxmean watch {out} --gif play.gif" in run.output
    return out


def test_the_commands_train_and_watch(trained: Path, tmp_path: Path) -> None:
    records = pd.read_parquet(trained / "records.parquet")
    assert records["step"].tolist() == [100, 200]
    gif = tmp_path / "play.gif"
    run = CliRunner().invoke(app, ["watch", str(trained), "--gif", str(gif), "--frames", "5"])
    assert run.exit_code == 0, run.output
    assert "dqn after 200 steps on minatar/breakout" in run.output
    assert gif.read_bytes()[:6] == b"GIF89a"


def test_a_file_that_cannot_be_written_is_refused_before_the_game(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play(*_: object, **__: object) -> Iterator[object]:
        raise AssertionError("it was played")
        yield

    monkeypatch.setattr("maxmean.deep.watch.play", play)
    for name, sentence in (("play.mp4", "ends in .gif"), ("nowhere/play.gif", "there is no folder")):
        run = CliRunner().invoke(app, ["watch", str(trained), "--gif", str(tmp_path / name), "--quiet"])
        assert sentence in str(run.exception)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--agent", "dqn", "--alpha", "0.3"], "--alpha is for other agents: dqn cannot take it"),
        (["--agent", "dqn", "--prior", "1"], "--prior is for other agents"),
        (
            ["--agent", "dqn", "--agent", "ddqn", "--heads", "3"],
            "--heads is for other agents: dqn, ddqn cannot take it",
        ),
    ],
)
def test_an_option_that_no_agent_takes_is_refused(tmp_path: Path, options: list[str], sentence: str) -> None:
    out = tmp_path / "run"
    run = CliRunner().invoke(app, ["train", "--env", "minatar/breakout", *options, "--out", str(out)])
    assert sentence in str(run.exception)
    assert not out.exists()


def test_the_number_after_the_colon_wins_and_the_option_serves_the_others() -> None:
    assert deep.agents.parse_agent("te-bdqn:0.1", alpha=0.3).label == "te-bdqn(0.1)"
    assert deep.agents.parse_agent("te-bdqn", alpha=0.3).label == "te-bdqn(0.3)"
    assert deep.agents.parse_agent(" Ada-TE-BDQN", alpha=0.3).parameter == 0.3


@pytest.mark.parametrize(
    ("about", "sentence"),
    [
        ({}, "does not say what it was trained on"),
        ({"environment": "minatar/breakout"}, "does not say what it was trained on"),
        ({"environment": {"name": "minatar/breakout", "options": [1]}}, "does not say what it was trained on"),
        ({"environment": {"name": "minatar/seaquest", "options": {}}}, "does not fit minatar/seaquest"),
        ({"environment": {"name": "minatar/breakout", "options": {"minimal_actions": True}}}, "does not fit"),
    ],
)
def test_a_strangers_policy_is_looked_at_before_it_plays(
    trained: Path, tmp_path: Path, about: dict[str, Any], sentence: str
) -> None:
    for path in (trained / "policies").iterdir():
        shutil.copy(path, tmp_path)
    forge_policy(tmp_path / "dqn.safetensors", put("about", about))
    with pytest.raises(deep.AgentError, match=sentence):
        next(play(deep.load(tmp_path / "dqn")))


def test_a_policy_sees_what_it_was_made_for(trained: Path) -> None:
    with pytest.raises(deep.AgentError, match=r"observations of shape \(10, 10, 4\), not \(3,\)"):
        deep.load(trained).values(np.zeros(3))


def test_damaged_checkpoints_and_plans_are_said(trained: Path, tmp_path: Path) -> None:
    """The newest without a list that is worth the name, the older one changed: both are named, and that nothing is left."""
    shutil.copytree(trained, tmp_path / "run")
    newest, older = checkpoint.checkpoints(tmp_path / "run" / "checkpoints")
    (newest / "checksums.json").write_text("{}")
    (newest / "state.safetensors").unlink()
    (older / "steps.json").write_text("[7]")
    heard: list[str] = []
    assert checkpoint.restore(tmp_path / "run" / "checkpoints", [], 7, heard.append) is None
    assert "its list of checksums is not whole); going back to the one before" in heard[0]
    assert "steps.json has changed); there is none before it: starting anew" in heard[1]
    for content in (b"[]", b"\xff\xfe"):
        (tmp_path / "run" / "plan.json").write_bytes(content)
        with pytest.raises(deep.CheckpointError, match="choose another directory"):
            deep.train("minatar/breakout", "dqn", steps=200, settings=TINY, out=tmp_path / "run")


def test_a_full_disk_is_told_in_a_sentence_and_what_was_kept_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    deep.train(CORRIDOR, "dqn", steps=100, settings=TINY, out=out)
    kept = checkpoint.checkpoints(out / "checkpoints")
    real = shutil.disk_usage(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: real._replace(free=1))
        with pytest.raises(deep.CheckpointError, match=r"may take .* has 1\.0 B left; .* make room"):
            deep.train(CORRIDOR, "dqn", steps=200, settings=TINY, out=out)
    assert checkpoint.checkpoints(out / "checkpoints") == kept
    assert deep.train(CORRIDOR, "dqn", steps=200, settings=TINY, out=out).records["step"].tolist() == [100, 200]
