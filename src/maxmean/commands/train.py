"""``maxmean train``: agents on the device, or in Gymnasium's environments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..deep import PACKAGES
from ..deep.registry import USAGE
from ..deep.settings import AgentOptions, Settings
from ..errors import need
from . import CommandError
from .options import option, options_of, takes

ON_DEVICE = ("minatar/", "gymnax/")
"""What the names begin with that :func:`maxmean.envs.make` knows; all others are Gymnasium's."""

_AGENT, _LEARNING, _GAME = "The agents", "Learning", "MinAtar"
_SPELLED = {"k": "--heads"}
_OWN = options_of(AgentOptions, panel=_AGENT, spelled=_SPELLED)
_LEARNED = [each for each in options_of(Settings, panel=_LEARNING) if each.name != "learning_rate"]
_PLAYED = [
    option("sticky", float, 0.1, "Probability that the last action is repeated.", panel=_GAME),
    option("no_ramping", bool, False, "No increasing difficulty.", panel=_GAME),
    option("minimal_actions", bool, False, "Only the actions that do something in this game.", panel=_GAME),
    option("step_limit", int, "the game's own", "Steps after which an episode is truncated.", panel=_GAME),
]


@takes(*_OWN, *_LEARNED, *_PLAYED)
def train(
    env: Annotated[str, typer.Option("--env", metavar="NAME", help="Such as minatar/breakout or CartPole-v1.")],
    out: Annotated[str, typer.Option("--out", metavar="DIR", help="Where records, checkpoints and policies are kept.")],
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            metavar="NAME[:NUMBER]",
            show_default="the recommended one",
            help=f"{USAGE}. May be given more than once.",
        ),
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps of each run.")] = 5_000_000,
    seeds: Annotated[int, typer.Option(help="Runs of each agent, with seeds 0, 1, ...")] = 1,
    learning_rate: Annotated[
        list[float] | None, typer.Option(show_default="10^-4.5", help="May be given more than once.")
    ] = None,
    checkpoint_interval: Annotated[int, typer.Option(help="Steps between two checkpoints.")] = 50_000,
    workers: Annotated[int | None, typer.Option(show_default="all cores", help="Runs at once, on a CPU.")] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", metavar="", help="Gymnasium: records to TensorBoard too.")
    ] = False,
    wandb: Annotated[
        bool, typer.Option("--wandb", metavar="", help="Gymnasium: records to Weights & Biases too.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", metavar="", help="No progress and no summary.")] = False,
    **given: Any,
) -> None:
    """Train agents. Stop it at any time: the same command resumes.

    minatar/... and gymnax/... run on the device, all runs at once; any other name is a Gymnasium id, stepped on the host, one run after the other, with defaults that depend on the observation type instead of those below. Writes records.parquet (return, bias and more at every test).
    """  # noqa: E501  (a line break here is one in the help)
    if env.startswith(ON_DEVICE):
        need("training", *PACKAGES, extra="deep")
    else:
        from ..deep.host.making import need_gymnasium

        need_gymnasium()
    options = _game_options({each.name: given[each.name] for each in _PLAYED if each.name in given})
    learning = {each.name: given[each.name] for each in _LEARNED if each.name in given}
    common = {each.name: given.get(each.name) for each in _OWN}
    if agent is None:
        agent, common, learning = _recommended(env, options, common, learning, quiet)
    _refuse_unused(agent, common)
    chosen = [(text, common) for text in agent]
    if env.startswith(ON_DEVICE):
        if tensorboard or wandb:
            raise CommandError(f"--tensorboard and --wandb are for Gymnasium's environments, not for {env}")
        records, finished = _on_device(
            env, chosen, steps, seeds, learning_rate, learning, options, out, checkpoint_interval, workers, quiet
        )
    else:
        from ..deep.host.training import train as train_on_host

        if options:
            raise CommandError(f"{', '.join(options)} can be set for minatar's games, not for {env}")
        if workers is not None:
            raise CommandError(f"--workers is for minatar and gymnax: the runs of {env} come one after the other")
        records, finished = train_on_host(
            env,
            chosen,
            steps,
            seeds,
            learning_rate,
            learning,
            Path(out),
            checkpoint_interval,
            tensorboard,
            wandb,
            quiet,
        )
    if not finished:
        raise typer.Exit(130)
    if not quiet:
        _summarise(records)
        typer.echo(f"Records: {Path(out) / 'records.parquet'}. See it play: maxmean watch {out} --gif play.gif")


def _recommended(
    env: str, options: dict[str, Any], common: dict[str, Any], learning: dict[str, Any], quiet: bool
) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
    """The recommended agent for an environment, its options and the settings of its training; what is given replaces them."""
    if env.startswith(ON_DEVICE):
        from .. import envs
        from ..deep.recommended import recommended

        found = recommended(envs.make(env, **options).observation.shape).on_device
    else:
        from ..deep.host.making import make_env
        from ..deep.host.recommended import recommendation

        found = recommendation(make_env(env))
    if not quiet:
        typer.echo(f"Training the recommended agent, {found.agent}; --agent NAME trains another.", err=True)
    own = {name: found.settings.get(name) if value is None else value for name, value in common.items()}
    return [found.agent], own, {name: each for name, each in found.settings.items() if name not in own} | learning


def _game_options(given: dict[str, Any]) -> dict[str, Any]:
    """The options of :func:`maxmean.envs.make`."""
    ramping = {"ramping": False} if given.pop("no_ramping", False) else {}
    return given | ramping


def _on_device(
    env: str,
    chosen: list[tuple[str, dict[str, Any]]],
    steps: int,
    seeds: int,
    learning_rate: list[float] | None,
    learning: dict[str, Any],
    options: dict[str, Any],
    out: str,
    checkpoint_interval: int,
    workers: int | None,
    quiet: bool,
) -> tuple[Any, bool]:
    """Train where environment and agent are one program; the records, and whether all steps were taken."""
    from .. import envs
    from ..deep.agents import parse_agent
    from ..deep.device.training import train as run

    found = run(
        envs.make(env, **options),
        [parse_agent(text, **arguments) for text, arguments in chosen],
        steps=steps,
        seeds=seeds,
        learning_rates=learning_rate or None,
        settings=Settings(**learning),
        out=out,
        checkpoint_interval=checkpoint_interval,
        workers=workers,
        quiet=quiet,
    )
    return found.records, found.finished


def _refuse_unused(agents: list[str], common: dict[str, Any]) -> None:
    """Refuse an option that none of the agents takes, rather than leave it unheard."""
    from ..deep.agents import parse_arguments

    taken = {name for text in agents for name in parse_arguments(text, **common)[1]}
    for name, value in common.items():
        if value is not None and name not in taken:
            option = _SPELLED.get(name, f"--{name.replace('_', '-')}")
            raise CommandError(f"{option} is for other agents: {', '.join(agents)} cannot take it")


def _summarise(records: Any) -> None:
    """Each variant's last return and bias, as means over the seeds."""
    from rich.console import Console
    from rich.table import Table

    from ..deep.records import latest

    own = [name for name in ("alpha", "scale") if records[name].notna().any()]
    table = Table("agent", "learning rate", "return", "bias", *own)
    for (variant, rate), row in latest(records, ("test_return", "bias", *own)).iterrows():
        numbers = ["" if row[name] != row[name] else f"{row[name]:.3f}" for name in own]
        table.add_row(str(variant), f"{rate:.3g}", f"{row.test_return:.2f}", f"{row.bias:+.3f}", *numbers)
    Console().print(table)
