"""``maxmean watch``: a trained agent at play."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from ..deep import PACKAGES
from ..errors import need
from . import CommandError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..deep.policy import Policy
    from ..deep.watch import Moment

MOST_FRAMES = 10_000
"""Frames of a moving picture, which are all in memory before it is written."""


def watch(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="DIR", help="A training's directory, a policy, a saved agent, or one that ships: minatar/breakout."
        ),
    ],
    gif: Annotated[str, typer.Option("--gif", metavar="FILE", help="The GIF to write.")],
    seed: Annotated[int, typer.Option(help="Seed of the game; of the first, if there are several episodes.")] = 0,
    episodes: Annotated[int, typer.Option(help="Episodes, one after the other.")] = 1,
    frames: Annotated[int, typer.Option(help="Maximum number of frames per episode.")] = 400,
    env: Annotated[
        str | None,
        typer.Option(
            "--env",
            metavar="ID",
            show_default="the one it was trained in",
            help="Environment of a Gymnasium agent. One that is imported from a package (package:id) must be named here.",
        ),
    ] = None,
    fps: Annotated[float | None, typer.Option(show_default="15, or Gymnasium's", help="Frames per second.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="No progress and no summary.")] = False,
) -> None:
    """Show a trained agent at play, with its Q-values and their spread across its members beside the picture."""
    need("watching an agent", *PACKAGES, extra="deep")
    from rich.console import Console
    from rich.progress import track

    from ..deep.watch import check_play, title
    from ..envs import save_gif

    if episodes < 1:
        raise CommandError(f"--episodes must be at least 1, not {episodes}")
    if episodes * frames > MOST_FRAMES:
        raise CommandError(f"--episodes times --frames must be at most {MOST_FRAMES:,}, not {episodes * frames:,}")
    for first in (seed, seed + episodes - 1):
        check_play(first, frames)
    chosen, play, rate = _player(policy, env)
    console = Console(stderr=True, quiet=quiet)
    shown, returns = 0, []

    def pictures() -> Iterator[NDArray[np.uint8]]:
        nonlocal shown
        for episode in range(episodes):
            game = play(seed=seed + episode, frames=frames)
            for moment in track(game, "playing", total=frames, console=console, disable=quiet):
                shown += 1
                yield moment.picture
            returns.append(f"{moment.total:g}" + ("" if moment.over else f" (cut after {frames} frames)"))

    save_gif(pictures(), gif, fps=rate if fps is None else fps)
    if not quiet:
        typer.echo(f"{title(chosen)}: {shown} frames, return {', '.join(returns)}, in {gif}.")


def _player(path: str, env: str | None) -> tuple[Policy, Callable[..., Iterator[Moment]], float]:
    """The policy at ``path``, a function that plays an episode of it, and frames a second; from either engine."""
    if find_spec("gymnasium") is not None:
        from ..deep.host import watch as host

        training = host.training_at(path)
        if training is not None:
            policy, made = host.load(training, env)
            return policy, partial(host.play, policy, made), host.frame_rate(made)
    from ..deep.policy import load
    from ..deep.watch import play

    if env is not None:
        raise CommandError(f"--env is for agents of Gymnasium's environments: a policy at {path} would know its own")
    chosen = load(path)
    return chosen, partial(play, chosen), 15.0
