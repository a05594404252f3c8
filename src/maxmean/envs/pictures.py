"""Pictures of games, in MinAtar's colours."""

from __future__ import annotations

import functools
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..whole import write_whole
from .environment import EnvError, Environment

FPS = 20
"""Frames a second, as MinAtar shows them."""


def render(env: Environment, state: Any, *, scale: int = 16) -> NDArray[np.uint8]:
    """A picture of ``state``: uint8 [rows * scale, columns * scale, 3].

    A cell has the colour of its highest channel, black if none is set. For environments that observe cells, [rows, columns,
    channels], as the MinAtar games do.

    >>> import jax
    >>> from maxmean import envs
    >>> game = envs.make("minatar/breakout")
    >>> state, _ = game.reset(jax.random.key(0))
    >>> envs.render(game, state).shape
    (160, 160, 3)
    """
    cells = np.asarray(env.observe(state))
    if cells.ndim != 3:
        raise EnvError(f"{env.name} cannot be drawn: it observes {list(cells.shape)}, not [rows, columns, channels]")
    if scale < 1:
        raise EnvError(f"scale must be at least 1, not {scale}")
    channels = cells.shape[-1]
    highest = np.max((cells != 0) * np.arange(1, channels + 1), axis=-1)
    return np.kron(palette(channels)[highest], np.ones((scale, scale, 1), np.uint8))


@functools.cache
def palette(channels: int) -> NDArray[np.uint8]:
    """The colours, uint8 [channels + 1, 3]: black, then the inner ones of channels + 2 even points of "cubehelix".

    >>> palette(4)[:2].tolist()
    [[0, 0, 0], [22, 61, 78]]
    """
    import matplotlib as mpl

    inner = np.linspace(0.0, 1.0, channels + 2)[1:-1]
    colours = np.vstack([np.zeros(3), mpl.colormaps["cubehelix"](inner)[:, :3]])
    return np.round(255 * colours).astype(np.uint8)


def save_gif(frames: Iterable[ArrayLike], path: str | Path, *, fps: float = FPS) -> None:
    """Write pictures, uint8 [height, width, 3] each, as a moving one that repeats; the file appears whole or not at all.

    A GIF counts time in hundredths of a second, so that ``fps`` is met to that.
    """
    from PIL import Image

    target = Path(path)
    if target.suffix.lower() != ".gif":
        raise EnvError(f"a moving picture ends in .gif, not {target.name!r}")
    if not target.parent.is_dir():
        raise EnvError(f"there is no folder {str(target.parent)!r} to write {target.name!r} to")
    if not 1 <= fps <= 50:
        raise EnvError(f"fps must be from 1 to 50, not {fps}")
    pictures = [np.asarray(frame) for frame in frames]
    if not pictures:
        raise EnvError(f"there are no frames to write to {target.name!r}")
    for k, picture in enumerate(pictures):
        if picture.dtype != np.uint8 or picture.shape != (*pictures[0].shape[:2], 3):
            raise EnvError(
                f"frame {k} is {picture.dtype} {list(picture.shape)}; frames are uint8 [height, width, 3], all of one size"
            )
    images = [Image.fromarray(picture) for picture in pictures]
    buffer = io.BytesIO()
    hundredths = max(round(100 / fps), 1)
    images[0].save(buffer, "gif", save_all=True, append_images=images[1:], duration=10 * hundredths, loop=0)
    try:
        write_whole(target, buffer.getvalue())
    except OSError as error:
        raise EnvError(f"cannot write {str(path)!r}: {error.strerror}") from None
