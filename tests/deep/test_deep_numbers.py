"""Numbers and types that make no sense get one sentence, before anything is computed or written."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from deep_toys import CORRIDOR
from inside import maxmean
from maxmean import deep
from maxmean.deep.core import memory
from maxmean.deep.device.plan import TrainingPlan
from maxmean.deep.runs import MOST_RUNS
from maxmean.deep.settings import Settings

ODD: Any = object()
NUMBERS = ("learning_rate", "discount")
COUNTS = tuple(name for name in vars(Settings()) if name not in (*NUMBERS, "n_step", "optimizer", "loss"))


@pytest.mark.parametrize("value", ["x", None, [1], True, ODD, 1j, np.array([1.0]), {}])
@pytest.mark.parametrize("name", [*NUMBERS, *COUNTS, "n_step"])
def test_a_setting_of_another_type_is_named(name: str, value: Any) -> None:
    kind = "number" if name in NUMBERS else "whole number"
    with pytest.raises(deep.AgentError, match=f"^{name} must be a {kind}, not"):
        Settings(**{name: value})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e300, np.float32("nan")])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_is_finite_also_in_the_devices_floats(name: str, value: float) -> None:
    with pytest.raises(deep.AgentError, match=f"^{name} must be a finite number, not"):
        Settings(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [2**31, 2**63, 10**30, 1e30])
@pytest.mark.parametrize("name", COUNTS)
def test_a_count_fits_into_the_devices_integers(name: str, value: Any) -> None:
    with pytest.raises(deep.AgentError, match=f"^{name} must be at most 2,147,483,647, not"):
        Settings(**{name: value})


MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: deep.SCDQN(float("inf")), "beta must be a finite number, not inf"),
    (lambda: deep.SCDQN(ODD), "beta must be a number"),
    (lambda: deep.TEBDQN(float("nan")), "alpha must be a finite number, not nan"),
    (lambda: deep.TEBDQN("0.1"), "alpha must be a number, not '0.1'"),  # type: ignore[arg-type]
    (lambda: deep.TEBDQN(k="3"), "the number of heads must be a whole number, not '3'"),  # type: ignore[arg-type]
    (lambda: deep.TEBDQN(k=10**7), "an agent has 1 to 32 members, not 10000000"),
    (lambda: deep.TEBDQN(paired="no"), "paired must be True or False, not 'no'"),  # type: ignore[arg-type]
    (lambda: deep.KEBDQN(paired=1), "paired must be True or False, not 1"),  # type: ignore[arg-type]
    (lambda: deep.BDQN(True), "the number of heads must be a whole number, not True"),
    (lambda: deep.BDQN(mask=None), "the mask's probability must be a number, not None"),  # type: ignore[arg-type]
    (lambda: deep.MaxMinDQN([1]), "the number of members must be a whole number"),  # type: ignore[arg-type]
    (lambda: deep.AdaTEBDQN("x"), "step_size of the adaptation must be a number"),  # type: ignore[arg-type]
    (lambda: deep.AdaTEBDQN(float("inf")), "step_size of the adaptation must be a finite number, not inf"),
    (lambda: deep.AdaTEBDQN(horizon=2.5), "horizon of the adaptation must be a whole number"),  # type: ignore[arg-type]
    (lambda: deep.AdaTEBDQN(per_head=0), "per_head must be True or False, not 0"),  # type: ignore[arg-type]
    (lambda: deep.AdaKEBDQN(scale="x"), "the kernel's scale must be a number"),  # type: ignore[arg-type]
    (lambda: deep.Adaptation(direction=2), "direction of the adaptation must be 1 or -1, not 2"),
    (lambda: deep.DQN(0.1), r"exploration must be one of maxmean\.deep's .*, not 0\.1"),  # type: ignore[arg-type]
    (lambda: deep.DQN(deep.EpsilonGreedy(2.0)), "EpsilonGreedy's initial is a probability, from 0 to 1, not 2.0"),
    (lambda: deep.DQN(deep.EpsilonGreedy(1.0, ODD)), "EpsilonGreedy's final must be a number"),
    (lambda: deep.DQN(deep.EpsilonGreedy(steps=-1)), "EpsilonGreedy's steps must not be negative"),
    (lambda: deep.Agent("x", None), "a rule, which is a function, not 'x' and None"),  # type: ignore[arg-type]
    (lambda: deep.Agent("x", max, adaptation=3), "adaptation must be a maxmean.deep.Adaptation"),  # type: ignore[arg-type]
    (lambda: train(steps=[1]), "steps must be a whole number"),
    (lambda: train(steps=None), "steps must be a whole number, not None"),
    (lambda: train(steps=1e30), "steps must be at most 2,147,483,647, not 1e\\+30"),
    (lambda: train(seeds="3"), "a seed must be a whole number, not '3'"),
    (lambda: train(seeds=True), "seeds must be a whole number, not True"),
    (lambda: train(seeds=None), "a seed must be a whole number, not None"),
    (lambda: train(seeds=99_999_999), "seeds must be at most 10,000, not 99999999"),
    (lambda: train(steps=10**5000), "steps must be at most 2,147,483,647, not about 10\\^5000"),
    (lambda: deep.SCDQN(10**5000), "beta must be a finite number, not about 10\\^5000"),
    (lambda: train(seeds=itertools.count()), "a training has at most 10,000 runs"),
    (lambda: train(seeds=[2**32]), "a seed must be at most 4,294,967,295"),
    (lambda: train(learning_rates="x"), "learning_rate must be a number, not 'x'"),
    (lambda: train(learning_rates=[None]), "learning_rate must be a number, not None"),
    (lambda: train(checkpoint_interval=-1), "checkpoint_interval must be at least 1, not -1"),
    (lambda: train(checkpoint_interval="x"), "checkpoint_interval must be a whole number"),
    (lambda: train(workers=0.5), "workers must be a whole number"),
    (lambda: train(batched="x"), "batched must be True or False, not 'x'"),
    (lambda: train(out=3), "out must be a path, not 3"),
    (lambda: train(on_record=3), "on_record must be a function"),
    (lambda: train(agents=3), r"an agent is a maxmean\.deep\.Agent"),
    (lambda: train(agents=[]), "at least one agent"),
]


def train(agents: Any = "dqn", **arguments: Any) -> deep.Training:
    return deep.train(CORRIDOR, agents, **{"steps": 10, **arguments})


@pytest.mark.parametrize(("call", "sentence"), MISTAKES, ids=[str(i) for i in range(len(MISTAKES))])
def test_what_makes_no_sense_is_named(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(deep.AgentError, match=sentence) as error:
        call()
    assert "\n" not in str(error.value)


LARGE: dict[str, tuple[deep.Settings, deep.Agent, str]] = {
    "replay": (Settings(replay_capacity=10**9), deep.DQN(), "a smaller replay_capacity"),
    "hidden": (Settings(hidden=10**9), deep.DQN(), "a smaller hidden"),
    "batch": (Settings(batch_size=10**9), deep.DQN(), "a smaller batch_size"),
    "everything": (Settings(**dict.fromkeys(COUNTS, 2**31 - 1)), deep.DQN(), "a smaller batch_size"),  # type: ignore[arg-type]
    "tests": (Settings(test_episodes=2**31 - 1), deep.DQN(), "fewer test_episodes and bias_episodes"),
    "bias": (Settings(bias_episodes=10**8), deep.DQN(), "fewer test_episodes and bias_episodes"),
    "horizon": (Settings(), deep.AdaTEBDQN(horizon=10**9), "fewer test_episodes and bias_episodes"),
}


@pytest.mark.parametrize("what", LARGE)
def test_what_is_too_large_for_the_device_is_refused_before_memory_is_taken(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available", lambda: 16 * 2**30)
    settings, agent, cure = LARGE[what]
    begin = time.monotonic()
    with pytest.raises(deep.AgentError, match=f"^this training needs .*, but there are 16.0 GiB; .* {cure}$"):
        deep.train("minatar/seaquest", agent, steps=10, settings=settings)
    assert time.monotonic() - begin < 20


def test_as_many_runs_as_there_may_be_are_refused_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 2**30)
    with pytest.raises(deep.AgentError, match="use fewer seeds"):
        train(seeds=MOST_RUNS)
    with pytest.raises(deep.AgentError, match="at most 10,000 runs, not 20,000"):
        TrainingPlan.of(CORRIDOR, ["dqn", "ddqn"], MOST_RUNS, None, Settings())


@pytest.mark.parametrize(
    "said", ["RESOURCE_EXHAUSTED: 8 GiB", "INTERNAL: Out of memory allocating 184580789392 bytes."]
)
def test_a_device_that_finds_no_room_is_told_in_a_sentence(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> None:
        raise jax.errors.JaxRuntimeError(said)

    monkeypatch.setattr(deep.device.block.Block, "create", full)
    with pytest.raises(deep.AgentError, match="the device has not enough memory left for this training, which needs"):
        train()


def test_another_error_of_the_device_is_not_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> None:
        raise jax.errors.JaxRuntimeError("INTERNAL: something else")

    monkeypatch.setattr(deep.device.block.Block, "create", broken)
    with pytest.raises(jax.errors.JaxRuntimeError, match="something else"):
        train()


OPTIONS = ["steps", "seeds", "learning-rate", "heads", "mask", "alpha", "horizon", "batch-size", "discount"]
OPTIONS += ["replay-capacity", "warmup", "target-period", "hidden", "test-interval", "test-episodes"]
OPTIONS += ["checkpoint-interval"]
LARGE_RATES = ("1e30", str(2**63), "1" + "0" * 30)
"""Learning rates that make no sense, but are one."""


@pytest.mark.parametrize("env", ["minatar/breakout", "CartPole-v1"])
@pytest.mark.parametrize("option", OPTIONS)
def test_every_number_on_the_command_line_is_looked_at(env: str, option: str, tmp_path: Path) -> None:
    for value in ("-1", "nan", "inf", *LARGE_RATES[:2], ""):
        if option == "learning-rate" and value in LARGE_RATES:
            continue
        options = ["--env", env, "--agent", "ada-te-bdqn", f"--{option}={value}", "--out", tmp_path / "run", "--quiet"]
        answer = maxmean("train", *options)
        assert answer.returncode == 2, (value, answer.stderr)
        assert "Traceback" not in answer.stderr
        if "Usage:" not in answer.stderr:  # of a text that is no number, Typer has its own words
            assert re.fullmatch(r"maxmean: [^\n]+\n", answer.stderr), answer.stderr
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("env", ["minatar/breakout", "CartPole-v1"])
@pytest.mark.parametrize(
    "agent",
    ["scdqn:inf", "scdqn:nan", "te-bdqn:nan", "ada-te-bdqn:inf", "maxmin-dqn:99999999", "bdqn:0", "bdqn:-1", ":"],
)
def test_every_number_after_a_colon_is_looked_at(env: str, agent: str, tmp_path: Path) -> None:
    answer = maxmean("train", "--env", env, "--agent", agent, "--out", tmp_path / "run")
    assert answer.returncode == 2
    assert re.fullmatch(r"maxmean: [^\n]+\n", answer.stderr), answer.stderr
    assert not (tmp_path / "run").exists()
