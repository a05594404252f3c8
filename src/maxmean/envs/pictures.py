"""Pictures of games, in MinAtar's colours."""

from __future__ import annotations

import functools
import io
import itertools
from collections.abc import Iterable, Iterator
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..drawing import matplotlib
from ..storage import write_whole
from .environment import EnvError, Environment

FPS = 20
"""Frames a second, as MinAtar shows them."""
LONGEST = 65_535
"""Hundredths of a second for which a GIF can hold a frame."""


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
    inner = np.linspace(0.0, 1.0, channels + 2)[1:-1]
    colours = np.vstack([np.zeros(3), matplotlib().colormaps["cubehelix"](inner)[:, :3]])
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
    if not isinstance(fps, Real) or not 1 <= fps <= 50:
        raise EnvError(f"fps must be from 1 to 50, not {fps!r}")
    if not isinstance(frames, Iterable):
        raise EnvError(f"frames are pictures, one after the other, not {frames!r}")
    pictures: list[NDArray[np.uint8]] = []
    for frame in frames:
        pictures.append(_picture(frame, pictures))
    if not pictures:
        raise EnvError(f"there are no frames to write to {target.name!r}")
    hundredths = max(round(100 / fps), 1)
    images = [Image.fromarray(picture) for picture in _stirred(pictures, LONGEST // hundredths)]
    buffer = io.BytesIO()
    images[0].save(buffer, "gif", save_all=True, append_images=images[1:], duration=10 * hundredths, loop=0)
    try:
        write_whole(target, buffer.getvalue())
    except (OSError, ValueError) as error:  # of a name with a NUL in it, Python says ValueError
        raise EnvError(f"cannot write {str(path)!r}: {getattr(error, 'strerror', error)}") from None


def _picture(frame: ArrayLike, before: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """``frame`` as an array, if it is a picture of the size of those ``before``."""
    try:
        picture = np.asarray(frame)
        shown = f"{picture.dtype} {list(picture.shape)}"
        fits = picture.dtype == np.uint8 and picture.ndim == 3 and picture.shape[2] == 3 and picture.size > 0
    except (TypeError, ValueError):  # rows of different lengths, or a state
        shown, fits = f"no array but a {type(frame).__name__}", False
    if not fits or (before and picture.shape != before[0].shape):
        raise EnvError(
            f"frame {len(before)} is {shown}; frames are uint8 [height, width, 3], all of one size and not empty"
        )
    return picture


def _stirred(pictures: list[NDArray[np.uint8]], longest: int) -> Iterator[NDArray[np.uint8]]:
    """The pictures, of which less than ``longest`` in a row are equal.

    Pillow makes one frame of equal ones, and a GIF cannot hold it for longer. So what stands still that long is stirred for a
    frame: the last bit of one corner.
    """
    still = 0
    yield pictures[0]
    for before, picture in itertools.pairwise(pictures):
        still = (still + 1) % longest if np.array_equal(before, picture) else 0
        if still == longest - 1:
            picture = picture.copy()
            picture[0, 0, 0] ^= 1
        yield picture
