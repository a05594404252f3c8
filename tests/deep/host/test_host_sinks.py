"""Records in TensorBoard and Weights & Biases, through the real libraries where they are installed."""

from __future__ import annotations

import math
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from host_toys import Counter, Walk, small
from maxmean import DQN, KEBDQN
from maxmean.deep.host import HostError


def test_tensorboard_shows_the_tables_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorBoard's own reader finds every finite number of the table, to float32, at its step; and nothing else.

    Also of two trainings that begin in the same second, after which the files are named.
    """
    pytest.importorskip("tensorboardX")
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    agent = KEBDQN(Walk(), eval_env=Walk(), k=2, **small(measure_bias=True, bias_episodes_per_head=2))
    monkeypatch.setattr(time, "time", lambda: 1_700_000_000.0)
    agent.learn(120, out=tmp_path, tensorboard=True)
    agent.learn(30, out=tmp_path, tensorboard=True)
    reader = events.EventAccumulator(str(tmp_path / "tensorboard"))
    reader.Reload()
    table = agent.table.set_index("step").drop(columns=["seed", "learning_rate"]).select_dtypes("number")
    for name in table:
        shown = {event.step: event.value for event in reader.Scalars(name)} if name in reader.Tags()["scalars"] else {}
        assert shown == {step: np.float32(value) for step, value in table[name].items() if math.isfinite(value)}
    assert set(reader.Tags()["scalars"]) <= set(table)
    assert [event.step for event in reader.Scalars("test_return")] == [50, 100, 120, 150]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The runs that Weights & Biases begins, offline; each is [config, logged, exit code or None until it is finished]."""
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    begun: list[Any] = []
    init = wandb.init

    def spied(**settings: Any) -> Any:
        run = init(**settings)
        about: list[Any] = [dict(run.config), [], None]
        log, finish = run.log, run.finish

        def heard(row: dict[str, float], step: int) -> None:
            about[1].append((step, row))
            log(row, step=step)

        def finished(exit_code: int) -> None:
            about[2] = exit_code
            finish(exit_code=exit_code)

        run.log, run.finish = heard, finished
        begun.append(about)
        return run

    monkeypatch.setattr(wandb, "init", spied)
    return begun


def test_weights_and_biases_hears_every_record_and_the_end(runs: list[Any]) -> None:
    import wandb

    agent = DQN(Counter(), eval_env=Counter(), **small()).learn(100, wandb=True)
    agent.learn(50, wandb=True)
    assert [code for _, _, code in runs] == [0, 0]
    assert [[step for step, _ in logged] for _, logged, _ in runs] == [[50, 100], [150]]
    assert [row["test_return"] for _, logged, _ in runs for _, row in logged] == agent.table["test_return"].tolist()
    assert runs[0][0]["algorithm"] == "DQN"
    assert wandb.run is None


@pytest.mark.parametrize("end", ["error", "ctrl-c", "reset"])
def test_weights_and_biases_hears_of_a_training_that_broke_off(end: str, runs: list[Any]) -> None:
    import wandb

    class Broken(Counter):
        def reset(self, **options: Any) -> Any:
            raise RuntimeError("no start")

    def stop(row: dict[str, Any]) -> None:
        if end == "error":
            raise RuntimeError("no end")
        os.kill(os.getpid(), signal.SIGINT)

    env = Broken() if end == "reset" else Counter()
    with pytest.raises(KeyboardInterrupt if end == "ctrl-c" else RuntimeError):
        DQN(env, eval_env=Counter(), **small()).learn(100, callback=stop, wandb=True)
    assert [code for _, _, code in runs] == [1]
    assert wandb.run is None


def test_weights_and_biases_without_an_account_gets_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb")

    def refuse(**settings: Any) -> None:
        raise wandb.errors.UsageError("No API key configured.\nUse `wandb login` to log in.")

    monkeypatch.setattr(wandb, "init", refuse)
    with pytest.raises(HostError, match=r"No API key configured. Use `wandb login` to log in \(WANDB_MODE=offline"):
        DQN(Counter(), eval_env=Counter(), **small()).learn(10, wandb=True)
