"""The examples run, learn from what they should, and their targets are the deep engine's."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optuna
import pytest
import torch

import maxmean
from maxmean import mev
from maxmean.deep import targets
from maxmean.mev.methods import parse_kernel

EXAMPLES = Path(__file__).parents[2] / "examples"
KERNELS = ["gaussian", "gaussian:0.84", "indicator:0.1", "indicator:0.5", "epanechnikov", "beta:2,0.5"]
ROUNDING = {"beta:2,0.5": 40.0}
"""How many roundings may lie between the libraries, four by default; JAX's incomplete beta function is off by 27."""
FEW = ["--trials", "2", "--steps", "200", "--heads", "2", "--warmup", "100"]
SMALL = ["--steps", "300", "--warmup", "100", "--heads", "3", "--hidden", "16", "--report-every", "100"]


def load(name: str) -> ModuleType:
    """An example as a module; what it imports of others may warn."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
    return module


def engine_targets(kernel: str, rewards: Any, discounts: Any, heads: Any) -> Any:
    """Bellman targets by deep's rule: [batch, heads]."""
    rule = targets.KernelBased(parse_kernel(kernel))
    values = jax.vmap(lambda q: rule(targets.NextValues(q, q), jnp.float32(0)))(jnp.asarray(heads))
    return np.asarray(rewards[:, None] + discounts[:, None] * values)


def numbers(batch: int = 64, heads: int = 10, actions: int = 4) -> tuple[Any, Any, Any]:
    """Rewards, discounts and values of the heads, of very different sizes."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(batch, heads, actions)) * 10.0 ** rng.integers(-2, 4, size=(batch, 1, 1))
    discounts = np.where(rng.random(batch) < 0.2, 0.0, 0.99)
    return tuple(a.astype(np.float32) for a in (rng.normal(size=batch), discounts, values))  # type: ignore[return-value]


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_pytorch_example_has_the_deep_engines_target(kernel: str) -> None:
    example = load("torch_bootstrapped_dqn")
    rewards, discounts, heads = numbers()
    nothing = torch.zeros(())
    batch = example.Batch(nothing, nothing, torch.tensor(rewards), torch.tensor(discounts), torch.tensor(heads))
    found = example.bellman_targets(lambda q: q, batch, parse_kernel(kernel))
    assert found.dtype == torch.float32
    sizes = np.abs(heads).max(axis=-1) + np.abs(rewards)[:, None]
    error = np.abs(found.numpy() - engine_targets(kernel, rewards, discounts, heads)) / sizes
    assert error.max() < ROUNDING.get(kernel, 4.0) * np.finfo(np.float32).eps


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_rlax_example_has_the_deep_engines_target(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rlax", exc_type=ImportError)
    example = load("rlax_dqn")
    rewards, discounts, heads = numbers()
    # The values of the state before are zero, so that the errors are the targets themselves.
    monkeypatch.setattr(example, "values", lambda parameters, q: parameters * q)
    batch = example.Batch(heads, np.zeros(64, np.int32), rewards, discounts, heads)
    each: Any = jax.vmap(lambda t: example.errors(jnp.float32(0), jnp.float32(1), parse_kernel(kernel), t))
    expected = engine_targets(kernel, rewards, discounts, heads)
    sizes = np.abs(heads).max(axis=-1) + np.abs(rewards)[:, None]
    error = np.abs(np.asarray(each(batch)) - expected) / sizes
    assert error.max() < ROUNDING.get(kernel, 4.0) * np.finfo(np.float32).eps


def test_the_pytorch_example_runs_and_the_same_seed_gives_the_same_returns(capsys: pytest.CaptureFixture[str]) -> None:
    example = load("torch_bootstrapped_dqn")
    args = example.arguments(SMALL)
    (first, returns), (second, again) = example.train(args), example.train(args)
    assert returns == again
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert example.play(args.env, first, episodes=1, seed=0) >= 1
    assert "step     300" in capsys.readouterr().out


def test_the_pytorch_examples_update_takes_the_heads_to_their_targets() -> None:
    example = load("torch_bootstrapped_dqn")
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    torch.set_num_threads(1)
    network, replay = example.Network(4, 2, 3, 32), example.Replay(8, 4)
    for i in range(20):  # more than fit: the last eight stay
        replay.add(rng.normal(size=4), i % 2, float(i), 0.0, np.zeros(4))
    assert sorted(replay.columns[2]) == list(range(12, 20))
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    for _ in range(300):
        batch = replay.sample(rng, 16)
        loss = example.loss_of(network, batch, example.bellman_targets(network, batch, mev.Gaussian()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert float(loss.detach()) < 0.5  # of three heads, with rewards from 12 to 19 and no discount


def test_the_dqn_example_measures_its_bias(capsys: pytest.CaptureFixture[str]) -> None:
    """The last measurement is that of the network that it ends with."""
    example = load("torch_dqn")
    args = example.arguments(
        ["--steps", "300", "--learning-starts", "100", "--bias-every", "150", "--bias-episodes", "2"]
    )
    network, biases = example.train(args)
    assert len(biases) == 2
    assert biases[-1] == maxmean.measure_bias(network, "CartPole-v1", discount=args.gamma, episodes=2)
    assert f"step     300: bias {biases[-1].value:+.2f}" in capsys.readouterr().out


def test_the_rlax_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rlax", exc_type=ImportError)
    assert load("rlax_dqn").main(SMALL) >= 1
    assert "step     300" in capsys.readouterr().out


def test_optuna_searches_and_prunes_by_the_running_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a training that only pretends: the score is the learning rate, the bias grows with alpha."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = load("tune_optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def pretended(alpha: float, learning_rate: float, *, steps: int, hear: Any, **_: Any) -> Any:
        progress = sys.modules["tuning"].Progress()
        for step in range(steps // 10, steps + 1, steps // 10):
            progress.returns.append(learning_rate)
            progress.biases.append(-alpha * step)
            hear(step, progress)
        return progress

    monkeypatch.setattr(example, "objective", pretended)
    study = example.main(["--trials", "20", "--steps", "100"])
    pruned = [t for t in study.trials if t.state == optuna.trial.TrialState.PRUNED]
    kept = [t for t in study.trials if t.state == optuna.trial.TrialState.COMPLETE]
    assert pruned
    assert len(kept) > 4
    for trial in pruned:  # what was given up had a larger bias than the median of those before
        before = [t.params["alpha"] for t in kept if t.number < trial.number]
        assert trial.params["alpha"] > np.median(before)
        assert 50 <= trial.last_step < 100
    assert study.best_value == max(t.params["learning_rate"] for t in kept)


def run(name: str, *arguments: str, folder: Path) -> str:
    """What an example prints, run as a user would."""
    paths = [str(EXAMPLES.parent / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_optuna_tunes_a_real_agent(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    load("tune_optuna").main(FEW)
    out = capsys.readouterr().out
    assert "2 trials, 0 given up early" in out
    assert "best: alpha 0." in out


@pytest.mark.slow
def test_ray_tunes_a_real_agent_through_the_same_objective(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    out = run("tune_ray", *FEW, "--trials", "1", "--out", str(tmp_path / "ray"), folder=tmp_path)
    assert "1 trials, 0 failed" in out


@pytest.mark.parametrize("name", ["torch_bootstrapped_dqn", "torch_dqn", "rlax_dqn", "tune_optuna", "tune_ray"])
def test_the_help_says_what_the_defaults_are(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    needs = {"rlax_dqn": "rlax", "tune_ray": "ray"}
    if name in needs and importlib.util.find_spec(needs[name]) is None:
        pytest.skip(f"needs {needs[name]}")
    with pytest.raises(SystemExit):
        load(name).main(["--help"])
    assert "(default: 20000)" in " ".join(capsys.readouterr().out.split())


def test_the_running_bias_is_that_of_the_last_three_records(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = load("tuning").Progress(returns=[1.0, 2.0, 3.0, 7.0], biases=[100.0, -1.0, -2.0, -6.0])
    assert progress.running_bias == 3.0
    assert progress.score == 4.0
