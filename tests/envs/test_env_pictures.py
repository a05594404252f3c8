"""Pictures in MinAtar's colours, and moving ones that appear whole."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jax
import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from maxmean import envs
from maxmean.envs.pictures import palette


@pytest.mark.parametrize("channels", [1, 4, 6, 7, 10])
def test_the_colours_are_those_of_minatar(channels: int) -> None:
    """It takes seaborn's, which are inner points of a colormap of Matplotlib."""
    import seaborn

    assert palette(channels)[0].tolist() == [0, 0, 0]
    np.testing.assert_array_equal(
        palette(channels)[1:], np.round(255 * np.array(seaborn.color_palette("cubehelix", channels)))
    )
    for k in range(channels):
        point = mpl.colormaps["cubehelix"]((k + 1) / (channels + 1))
        np.testing.assert_array_equal(palette(channels)[k + 1], np.round(255 * np.array(point[:3])))


@cache
def played(game: str) -> tuple[envs.Environment, Any, Any]:
    """A game after thirty steps: itself, its state and what is seen."""
    env = envs.make(game)
    state, observation = jax.jit(env.reset)(jax.random.key(0))
    step = jax.jit(env.step)
    for k in range(30):
        state, observation, *_ = step(jax.random.key(k), state, k % 6)
    return env, state, np.asarray(observation)


@pytest.mark.parametrize("game", envs.list())
@pytest.mark.parametrize("scale", [1, 3])
def test_a_cell_has_the_colour_of_its_highest_channel(game: str, scale: int) -> None:
    env, state, seen = played(game)
    picture = envs.render(env, state, scale=scale)
    assert picture.dtype == np.uint8
    assert picture.shape == (10 * scale, 10 * scale, 3)
    for y in range(10):
        for x in range(10):
            highest = max((c + 1 for c in range(seen.shape[-1]) if seen[y, x, c]), default=0)
            block = picture[y * scale : (y + 1) * scale, x * scale : (x + 1) * scale]
            assert (block == palette(seen.shape[-1])[highest]).all()


def test_what_minatar_draws_is_what_we_draw() -> None:
    from minatar.gym import BaseEnv

    theirs = BaseEnv("breakout", render_mode="rgb_array")
    theirs.reset(seed=0)
    game = theirs.game.env
    env = envs.make("minatar/breakout")
    for key in range(9):  # until the ball comes from the same side
        state, _ = env.reset(jax.random.key(key))
        if int(state.game.ball_x) == game.ball_x:
            break
    np.testing.assert_array_equal(envs.render(env, state, scale=1), np.round(255 * theirs.render()))


def test_a_moving_picture_holds_the_frames_and_their_pace(tmp_path: Path) -> None:
    env = envs.to_gymnasium(envs.make("minatar/seaquest"), render_mode="rgb_array")
    env.reset(seed=0)
    frames = []
    for k in range(12):
        env.step([3, 4, 5][k % 3])
        frame = env.render()
        assert frame is not None
        frames.append(frame)
    envs.save_gif(frames, tmp_path / "x.gif", fps=10)
    assert [p.name for p in tmp_path.iterdir()] == ["x.gif"]
    with Image.open(tmp_path / "x.gif") as moving:
        shown, total = [], 0
        for k in range(getattr(moving, "n_frames", 1)):
            moving.seek(k)
            repeats = round(moving.info["duration"] / 100)  # what stands still is one frame that lasts
            shown += [np.asarray(moving.convert("RGB"))] * repeats
            total += moving.info["duration"]
    assert total == 1200
    np.testing.assert_array_equal(shown, frames)


@pytest.mark.parametrize("frames", [655, 656, 1_400])
def test_what_stands_still_for_longer_than_a_gif_can_hold_a_frame_takes_its_time(frames: int, tmp_path: Path) -> None:
    """That is 655.35 seconds; the picture is off by one shade at most."""
    envs.save_gif([FRAME] * frames, tmp_path / "x.gif", fps=1)
    total = 0
    with Image.open(tmp_path / "x.gif") as moving:
        for k in range(getattr(moving, "n_frames", 1)):
            moving.seek(k)
            total += moving.info["duration"]
            assert np.asarray(moving.convert("RGB")).max() <= 1
    assert total == 1000 * frames


FRAME = np.zeros((4, 4, 3), np.uint8)
STATE = jax.jit(envs.Breakout().reset)(jax.random.key(0))[0]
MISTAKES: list[tuple[Any, str, Any, str]] = [
    ([FRAME], "x.png", 20, "a moving picture ends in .gif, not 'x.png'"),
    ([FRAME], "nowhere/x.gif", 20, "there is no folder"),
    ([], "x.gif", 20, "there are no frames to write to 'x.gif'"),
    ([FRAME], "x.gif", 0, "fps must be from 1 to 50, not 0"),
    ([FRAME], "x.gif", float("nan"), "fps must be from 1 to 50"),
    ([FRAME], "x.gif", "20", "fps must be from 1 to 50, not '20'"),
    ([FRAME], "x.gif", None, "fps must be from 1 to 50, not None"),
    (None, "x.gif", 20, "frames are pictures, one after the other, not None"),
    ([FRAME, FRAME[:2]], "x.gif", 20, "frame 1 is uint8 [2, 4, 3]"),
    ([FRAME[..., 0]], "x.gif", 20, "frame 0 is uint8 [4, 4]"),
    ([FRAME / 2], "x.gif", 20, "frame 0 is float64"),
    ([FRAME[:0]], "x.gif", 20, "frame 0 is uint8 [0, 4, 3]"),
    ([FRAME, [[[0, 0, 0], [0, 0]]]], "x.gif", 20, "frame 1 is no array but a list"),
    ([STATE], "x.gif", 20, "frame 0 is no array but a State"),
    ([FRAME], "folder.gif", 20, "cannot write"),
    ([FRAME], "x\0.gif", 20, "embedded null byte"),
]


@pytest.mark.parametrize(("frames", "name", "fps", "says"), MISTAKES, ids=[m[3][:30] for m in MISTAKES])
def test_mistakes_get_one_sentence_and_leave_nothing(
    frames: Any, name: str, fps: Any, says: str, tmp_path: Path
) -> None:
    (tmp_path / "folder.gif").mkdir()
    with pytest.raises(envs.EnvError) as caught:
        envs.save_gif(frames, tmp_path / name, fps=fps)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["folder.gif"]


def test_what_has_no_cells_is_not_drawn() -> None:
    class Blind(envs.Breakout):
        def observe(self, state: Any) -> jax.Array:
            return super().observe(state).ravel()

    env = Blind()
    state, _ = env.reset(jax.random.key(0))
    with pytest.raises(envs.EnvError, match=r"cannot be drawn: it observes \[400\]"):
        envs.render(env, state)
    with pytest.raises(envs.EnvError, match="scale must be at least 1, not 0"):
        envs.render(envs.Breakout(), state, scale=0)
