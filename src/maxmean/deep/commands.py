"""Deep learning on the command line: ``maxmean train`` and ``maxmean watch``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import need
from ..host.making import need_gymnasium
from . import PACKAGES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .policy import Policy
    from .watch import Moment


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command()(train)
    app.command()(watch)


ON_DEVICE = ("minatar/", "gymnax/")
"""What the names begin with that :func:`maxmean.envs.make` knows; all others are Gymnasium's."""

MOST_FRAMES = 10_000
"""Frames of a moving picture, which are all in memory before it is written."""

_AGENTS = (
    "dqn, ddqn, scdqn:BETA, maxmin-dqn:N, bdqn:HEADS, te-bdqn:ALPHA, ke-bdqn:KERNEL, ada-te-bdqn:STEP, ada-ke-bdqn:STEP. "
    "May be given more than once."
)


def train(
    env: Annotated[str, typer.Option("--env", metavar="NAME", help="Such as minatar/breakout or CartPole-v1.")],
    agent: Annotated[list[str], typer.Option("--agent", metavar="NAME[:NUMBER]", help=_AGENTS)],
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Where records, checkpoints and policies are kept.")],
    steps: Annotated[int, typer.Option(help="Steps of each run.")] = 5_000_000,
    seeds: Annotated[int, typer.Option(help="Runs of each agent, with seeds 0, 1, ...")] = 1,
    learning_rate: Annotated[
        list[float] | None, typer.Option(show_default="10^-4.5", help="May be given more than once.")
    ] = None,
    heads: Annotated[int | None, typer.Option(show_default="10", help="Heads of the bootstrapped agents.")] = None,
    mask: Annotated[
        float | None, typer.Option(show_default="1.0", help="Probability that a head learns a transition.")
    ] = None,
    alpha: Annotated[float | None, typer.Option(show_default="0.25", help="Where ada-te-bdqn's alpha begins.")] = None,
    horizon: Annotated[int | None, typer.Option(show_default="32", help="Steps of an adaptation's roll-outs.")] = None,
    per_head: Annotated[bool, typer.Option("--per-head", metavar="", help="Adapt one parameter a head.")] = False,
    covariance: Annotated[
        bool, typer.Option("--covariance", metavar="", help="Correct the statistic by covariances.")
    ] = False,
    sticky: Annotated[float | None, typer.Option(show_default="0.1", help="MinAtar's sticky probability.")] = None,
    no_ramping: Annotated[
        bool, typer.Option("--no-ramping", metavar="", help="MinAtar without increasing difficulty.")
    ] = False,
    minimal_actions: Annotated[
        bool, typer.Option("--minimal-actions", metavar="", help="MinAtar without useless actions.")
    ] = False,
    step_limit: Annotated[
        int | None, typer.Option(show_default="its own", help="Steps after which an episode is cut.")
    ] = None,
    optimizer: Annotated[str | None, typer.Option(show_default="adam", help="adam or rmsprop.")] = None,
    loss: Annotated[str | None, typer.Option(show_default="mse", help="mse or huber.")] = None,
    batch_size: Annotated[int | None, typer.Option(show_default="32", help="Transitions of an update.")] = None,
    discount: Annotated[float | None, typer.Option(show_default="0.99", help="The discount factor.")] = None,
    replay_capacity: Annotated[
        int | None, typer.Option(show_default="100000", help="Transitions that are kept.")
    ] = None,
    warmup: Annotated[int | None, typer.Option(show_default="5000", help="Random steps before learning.")] = None,
    target_period: Annotated[
        int | None, typer.Option(show_default="1000", help="Updates between two target copies.")
    ] = None,
    hidden: Annotated[int | None, typer.Option(show_default="128", help="Units of a member's hidden layer.")] = None,
    test_interval: Annotated[
        int | None, typer.Option(show_default="10000", help="Steps between two tests and records.")
    ] = None,
    test_episodes: Annotated[int | None, typer.Option(show_default="10", help="Episodes of a test.")] = None,
    checkpoint_interval: Annotated[int, typer.Option(help="Steps between two checkpoints.")] = 50_000,
    workers: Annotated[int | None, typer.Option(show_default="all cores", help="Runs at once, on a CPU.")] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", metavar="", help="Gymnasium: records to TensorBoard too.")
    ] = False,
    wandb: Annotated[
        bool, typer.Option("--wandb", metavar="", help="Gymnasium: records to Weights & Biases too.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="No progress and no summary.")] = False,
) -> None:
    """Train agents. Stop it any time: the same command goes on where it was.

    minatar/... and gymnax/... run on the device, all runs at once; every other name is an id of Gymnasium, stepped on the host, one run after the other, with defaults that suit it instead of those below. Writes records.parquet (return, bias and more at every test).
    """  # noqa: E501  (a line break here is one in the help)
    if env.startswith(ON_DEVICE):
        _need_jax()
    else:
        need_gymnasium()
    common = {
        "k": heads,
        "mask": mask,
        "alpha": alpha,
        "horizon": horizon,
        "per_head": per_head or None,
        "covariance": covariance or None,
    }
    _refuse_unused(agent, common)
    chosen = [(text, common) for text in agent]
    given = {
        "optimizer": optimizer,
        "loss": loss,
        "batch_size": batch_size,
        "discount": discount,
        "replay_capacity": replay_capacity,
        "warmup": warmup,
        "target_period": target_period,
        "hidden": hidden,
        "test_interval": test_interval,
        "test_episodes": test_episodes,
    }
    given = {name: value for name, value in given.items() if value is not None}
    options: dict[str, Any] = {"sticky": sticky, "step_limit": step_limit}
    options |= {"ramping": False} if no_ramping else {}
    options |= {"minimal_actions": True} if minimal_actions else {}
    options = {name: value for name, value in options.items() if value is not None}
    if env.startswith(ON_DEVICE):
        if tensorboard or wandb:
            raise _refusal(f"--tensorboard and --wandb are for Gymnasium's environments, not for {env}")
        records, finished = _on_device(
            env, chosen, steps, seeds, learning_rate, given, options, out, checkpoint_interval, workers, quiet
        )
    else:
        from ..host.commands import train as train_on_host

        if options:
            raise _refusal(f"{', '.join(options)} can be set for minatar's games, not for {env}")
        if workers is not None:
            raise _refusal(f"--workers is for minatar and gymnax: the runs of {env} come one after the other")
        records, finished = train_on_host(
            env, chosen, steps, seeds, learning_rate, given, Path(out), checkpoint_interval, tensorboard, wandb, quiet
        )
    if not finished:
        raise typer.Exit(130)
    if not quiet:
        _summarise(records)
        typer.echo(f"Records: {Path(out) / 'records.parquet'}. See it play: maxmean watch {out} --gif play.gif")


def _on_device(
    env: str,
    chosen: list[tuple[str, dict[str, Any]]],
    steps: int,
    seeds: int,
    learning_rate: list[float] | None,
    given: dict[str, Any],
    options: dict[str, Any],
    out: str,
    checkpoint_interval: int,
    workers: int | None,
    quiet: bool,
) -> tuple[Any, bool]:
    """Train where environment and agent are one program; the records, and whether all steps were taken."""
    from .. import envs
    from .agents import parse_agent
    from .settings import Settings
    from .training import train as run

    found = run(
        envs.make(env, **options),
        [parse_agent(text, **arguments) for text, arguments in chosen],
        steps=steps,
        seeds=seeds,
        learning_rates=learning_rate or None,
        settings=Settings(**given),
        out=out,
        checkpoint_interval=checkpoint_interval,
        workers=workers,
        quiet=quiet,
    )
    return found.records, found.finished


def watch(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="DIR", help="A training's directory, a policy, a saved agent, or one that ships: minatar/breakout."
        ),
    ],
    gif: Annotated[str, typer.Option("--gif", metavar="FILE", help="Where the moving picture goes.")],
    seed: Annotated[int, typer.Option(help="Seed of the game; of the first, if there are several episodes.")] = 0,
    episodes: Annotated[int, typer.Option(help="Episodes, one after the other.")] = 1,
    frames: Annotated[int, typer.Option(help="Frames of an episode at most.")] = 400,
    env: Annotated[
        str | None,
        typer.Option(
            "--env",
            metavar="ID",
            show_default="the one it was trained in",
            help="Environment of a Gymnasium agent. One that is imported from a package (package:id) must be named here.",
        ),
    ] = None,
    fps: Annotated[float | None, typer.Option(show_default="15, or Gymnasium's", help="Frames a second.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="No progress and no summary.")] = False,
) -> None:
    """Show a trained agent at play, with its Q-values and their spread across its members beside the picture."""
    _need_jax()
    from rich.console import Console
    from rich.progress import track

    from ..envs import save_gif
    from .watch import check_play, title

    if episodes < 1:
        raise _refusal(f"--episodes must be at least 1, not {episodes}")
    if episodes * frames > MOST_FRAMES:
        raise _refusal(f"--episodes times --frames must be at most {MOST_FRAMES:,}, not {episodes * frames:,}")
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
        from ..host import watch as host

        training = host.training_at(path)
        if training is not None:
            policy, made = host.load(training, env)
            return policy, partial(host.play, policy, made), host.frame_rate(made)
    from .policy import load
    from .watch import play

    if env is not None:
        raise _refusal(f"--env is for agents of Gymnasium's environments: a policy at {path} would know its own")
    chosen = load(path)
    return chosen, partial(play, chosen), 15.0


def _refusal(sentence: str) -> ValueError:
    from ..mev.data import DataError

    return DataError(sentence)


def _refuse_unused(agents: list[str], common: dict[str, Any]) -> None:
    """Refuse an option that none of the agents takes, rather than leave it unheard."""
    from .agents import parse_arguments

    taken = {name for text in agents for name in parse_arguments(text, **common)[1]}
    for name, value in common.items():
        if value is not None and name not in taken:
            option = "--heads" if name == "k" else f"--{name.replace('_', '-')}"
            raise _refusal(f"{option} is for other agents: {', '.join(agents)} cannot take it")


def _need_jax() -> None:
    """Say in one sentence what is missing, if something is."""
    need("training", *PACKAGES, extra="deep")


def _summarise(records: Any) -> None:
    """Each variant's last return and bias, as means over the seeds."""
    from rich.console import Console
    from rich.table import Table

    from .records import latest

    table = Table("agent", "learning rate", "return", "bias", "alpha")
    for (variant, rate), row in latest(records, ("test_return", "bias", "alpha")).iterrows():
        alpha = "" if row.alpha != row.alpha else f"{row.alpha:.3f}"
        table.add_row(str(variant), f"{rate:.3g}", f"{row.test_return:.2f}", f"{row.bias:+.3f}", alpha)
    Console().print(table)
