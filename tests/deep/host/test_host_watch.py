"""`maxmean watch` for agents of Gymnasium environments: it shows what the agent does, and says what it cannot show."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from host_toys import Counter, small
from maxmean import DQN, KEBDQN, MaxMinDQN
from maxmean.cli import app
from maxmean.deep.host import HostError, watch
from maxmean.deep.host.making import make_env
from maxmean.deep.watch import WIDTH
from seldom import slow

BREAKOUT = "maxmean/Breakout-v0"  # it draws itself without pygame


def command(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["watch", *map(str, arguments)], env={"COLUMNS": "200"})


def returns(agent: Any, env: str, seeds: list[int]) -> list[float]:
    """What the agent gets in whole episodes, played by hand."""
    game, found = make_env(env), []
    for seed in seeds:
        seen, _ = game.reset(seed=seed)
        total, over = 0.0, False
        while not over:
            seen, reward, terminated, truncated, _ = game.step(agent.predict(seen)[0])
            total, over = total + float(reward), terminated or truncated
        found.append(total)
    return found


def test_a_training_of_the_command_line_is_watched(tmp_path: Path) -> None:
    """The GIF's episodes are those that the saved agent plays by itself; a frame a step, and one for each end."""
    out, gif = tmp_path / "run", tmp_path / "play.gif"
    options = ["--heads", "2", "--hidden", "8", "--warmup", "20", "--test-interval", "40", "--test-episodes", "1"]
    train = ["train", "--env", BREAKOUT, "--agent", "ke-bdqn", "--steps", "40", "--out", str(out), *options]
    trained = CliRunner().invoke(app, train, env={"COLUMNS": "200"})
    assert f"maxmean watch {out} --gif play.gif" in trained.output
    shown = command(out, "--gif", gif, "--episodes", 2, "--seed", 5)
    agent = KEBDQN.load(out / "runs" / "ke-bdqn-seed0" / "training.safetensors", BREAKOUT)
    first, second = returns(agent, BREAKOUT, [5, 6])
    policy, env = watch.load(out / "runs" / "ke-bdqn-seed0" / "training.safetensors")
    frames = sum(len(list(watch.play(policy, env, seed=seed))) for seed in (5, 6))
    sentence = f"ke-bdqn after 40 steps on {BREAKOUT}: {frames} frames, return {first:g}, {second:g}, in {gif}."
    assert sentence in shown.output
    with Image.open(gif) as picture:
        assert picture.size == (320 + WIDTH, 320)  # ten cells of 16 pixels, enlarged


def test_an_episode_is_cut_where_the_frames_end(tmp_path: Path) -> None:
    path = DQN(BREAKOUT, **small()).save(tmp_path / "agent")
    assert "3 frames, return 0 (cut after 3 frames)" in command(path, "--gif", tmp_path / "a.gif", "--frames", 3).output
    policy, env = watch.load(path)
    assert [moment.over for moment in watch.play(policy, env, frames=3)] == [False] * 3


@pytest.mark.parametrize("kind", [KEBDQN, *slow(DQN, MaxMinDQN)])
def test_what_is_watched_acts_as_what_was_saved(kind: Any, tmp_path: Path) -> None:
    """Also after a training in a vector environment; the name may come without its ending."""
    vector = gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="sync")
    agent = kind(vector, **small()).learn(60)
    agent.save(tmp_path / "agent")
    found = watch.training_at(tmp_path / "agent")
    assert found == tmp_path / "agent.safetensors"
    policy, _ = watch.load(found)
    seen = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    assert [policy.act(each) for each in seen] == agent.predict(seen)[0].tolist()
    q = np.asarray(agent.driver.program.values(agent.driver.run, seen))
    np.testing.assert_allclose([policy.values(each) for each in seen], q, rtol=1e-5, atol=1e-6)


def test_of_several_runs_the_best_is_watched(tmp_path: Path) -> None:
    for name, score in (("a", 1.0), ("b", 7.0), ("c", float("nan")), ("d", 2.0)):
        agent = DQN(Counter(), eval_env=Counter(), **small()).learn(50)
        agent.records.rows["records"][-1]["test_return"] = score
        agent.save(tmp_path / "runs" / name / "training")
    assert watch.training_at(tmp_path) == tmp_path / "runs" / "b" / "training.safetensors"
    assert watch.training_at(tmp_path / "runs" / "d") == tmp_path / "runs" / "d" / "training.safetensors"


def test_what_cannot_be_watched_gets_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        gymnasium.registry,
        "Counter-v0",
        gymnasium.envs.registration.EnvSpec("Counter-v0", entry_point="host_toys:Counter"),
    )
    blind = DQN("Counter-v0", **small()).save(tmp_path / "blind")
    with pytest.raises(HostError, match="Counter-v0 cannot be watched: it has no render mode 'rgb_array'"):
        watch.load(blind)
    nameless = DQN(Counter(), eval_env=Counter(), **small()).save(tmp_path / "nameless")
    with pytest.raises(HostError, match="does not say in which environment it was trained"):
        watch.load(nameless)
    timed = gymnasium.wrappers.TimeAwareObservation(gymnasium.make("CartPole-v1"))
    wrapped = DQN(timed, **small()).save(tmp_path / "wrapped")
    with pytest.raises(HostError, match=r"with wrappers that are not in the file: load it with maxmean\.DQN\.load"):
        watch.load(wrapped)
    DQN("CartPole-v1", **small(warmup=5)).learn(10, out=tmp_path / "records")
    assert "records but not the agent" in str(command(tmp_path / "records", "--gif", tmp_path / "a.gif").exception)
    assert "--episodes must be at least 1" in str(command(blind, "--gif", "a.gif", "--episodes", 0).exception)


def test_without_pygame_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)
    policy, env = watch.load(DQN("CartPole-v1", **small()).save(tmp_path / "agent"))
    with pytest.raises(HostError, match=r"CartPole-v1 cannot be drawn: pygame is not installed, run `pip install"):
        next(watch.play(policy, env))


def test_with_pygame_it_draws(tmp_path: Path) -> None:
    pytest.importorskip("pygame")
    path = DQN("CartPole-v1", **small()).save(tmp_path / "agent")
    policy, env = watch.load(path)
    first, *_, last = watch.play(policy, env, seed=1)
    assert first.picture.shape == (400, 600 + WIDTH, 3)
    assert (first.picture[:, :600] != last.picture[:, :600]).any()
    assert last.total >= 5
    assert watch.frame_rate(env) == 50
