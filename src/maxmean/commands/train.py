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

_AGENT, _LEARNING, _GAME, _HOSTED = "The agents", "Learning", "MinAtar", "Gymnasium and Atari"
_SPELLED = {"k": "--heads"}
_OWN = options_of(AgentOptions, panel=_AGENT, spelled=_SPELLED)
_LEARNED = [each for each in options_of(Settings, panel=_LEARNING) if each.name != "learning_rate"]
_PLAYED = [
    option("sticky", float, 0.1, "Probability that the last action is repeated.", panel=_GAME),
    option("no_ramping", bool, False, "No increasing difficulty.", panel=_GAME),
    option("minimal_actions", bool, False, "Only the actions that do something in this game.", panel=_GAME),
    option("step_limit", int, "the game's own", "Steps after which an episode is truncated.", panel=_GAME),
]
_STEPPED = [
    option("num_envs", int, 1, "Environments side by side.", panel=_HOSTED),
    option(
        "no_clip_reward", bool, False, "Atari: learn from the rewards as they are, not from their signs.", panel=_HOSTED
    ),
    option(
        "terminal_on_life_loss", bool, False, "Atari: a lost life is an end for the agent that learns.", panel=_HOSTED
    ),
    option(
        "frames",
        int,
        "as the environment says",
        "Frames that an observation is a stack of, each stored once; 1 stores whole observations.",
        panel=_HOSTED,
    ),
]


@takes(*_OWN, *_LEARNED, *_STEPPED, *_PLAYED)
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
    engine: Annotated[
        str, typer.Option(help="local, or ray: the runs are spread over a Ray cluster's cores or GPUs.")
    ] = "local",
    address: Annotated[
        str | None, typer.Option(show_default="a local one", help="A running Ray cluster, such as auto or HOST:6379.")
    ] = None,
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

    minatar/... and gymnax/... run on the device, all runs at once; any other name is a Gymnasium id, stepped on the host, one run after the other (at once with --engine ray), with defaults that depend on the observation type instead of those below. Writes records.parquet (return, bias and more at every test).
    """  # noqa: E501  (a line break here is one in the help)
    if env.startswith(ON_DEVICE):
        need("training", *PACKAGES, extra="deep")
    else:
        from ..deep.host.making import need_gymnasium

        need_gymnasium()
    options = _game_options({each.name: given[each.name] for each in _PLAYED if each.name in given})
    learning = {each.name: given[each.name] for each in _LEARNED if each.name in given}
    common = {each.name: given.get(each.name) for each in _OWN}
    hosted = {each.name: given[each.name] for each in _STEPPED if each.name in given}
    if hosted and env.startswith(ON_DEVICE):
        flag = next(iter(hosted)).replace("_", "-")
        raise CommandError(f"--{flag} is for Gymnasium's environments, not for {env}")
    if hosted.get("frames", 1) < 1:
        raise CommandError(
            f"--frames must be at least 1, not {hosted['frames']}; leave it out to stack as the environment says"
        )
    if agent is None:
        agent, common, learning = _recommended(env, options, common, learning, quiet)
    _refuse_unused(agent, common)
    chosen = [(text, common) for text in agent]
    if env.startswith(ON_DEVICE):
        if tensorboard or wandb:
            raise CommandError(f"--tensorboard and --wandb are for Gymnasium's environments, not for {env}")
        records, finished = _on_device(
            env,
            chosen,
            steps,
            seeds,
            learning_rate,
            learning,
            options,
            out,
            checkpoint_interval,
            workers,
            engine,
            address,
            quiet,
        )
    else:
        from ..deep.host.training import train as train_on_host

        if options:
            raise CommandError(f"{', '.join(options)} can be set for minatar's games, not for {env}")
        if workers is not None and engine == "local":
            raise CommandError(
                f"--workers is for minatar and gymnax, or for --engine ray: the runs of {env} come one after the other"
            )
        records, finished = train_on_host(
            env,
            chosen,
            steps,
            seeds,
            learning_rate,
            {**learning, **_host_settings(hosted)},
            Path(out),
            checkpoint_interval,
            tensorboard,
            wandb,
            quiet,
            num_envs=hosted.get("num_envs", 1),
            engine=engine,
            workers=workers,
            address=address,
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


def _host_settings(hosted: dict[str, Any]) -> dict[str, Any]:
    """The settings of :class:`maxmean.deep.host.settings.Host`."""
    clipping = {"clip_reward": False} if "no_clip_reward" in hosted else {}
    return {name: value for name, value in hosted.items() if name in ("terminal_on_life_loss", "frames")} | clipping


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
    engine: str,
    address: str | None,
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
        engine=engine,
        address=address,
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
